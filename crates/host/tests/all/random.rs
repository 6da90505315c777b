//! The bodies of the fuzz targets `program` and `strace`, on fixed seeds.

use crate::rig::{log, random};
use iosched_engine::stream;

#[test]
fn random_programs_end_and_are_accounted_for() {
    for seed in 0..3000 {
        let mut stream = stream(seed, "program");
        let len = stream.below(300) as usize;
        let bytes: Vec<u8> = (0..len).map(|_| stream.below(256) as u8).collect();
        let run = || random::check(&bytes);
        assert!(std::panic::catch_unwind(run).is_ok(), "seed {seed}: {bytes:?}");
    }
}

/// Lines that strace prints; pieces of them are put together, cut and repeated.
const LINES: &[&str] = &[
    "100 1700000000.000000 openat(AT_FDCWD, \"a\", O_RDWR|O_CREAT, 0644) = 3 <0.000010>",
    "100 1700000000.000100 read(3, \"\"..., 4096) = 4096 <0.000010>",
    "100 1700000000.000200 write(3, \"x\"..., 99999999999) = 99999999999 <0.000010>",
    "100 1700000000.000300 clone(child_stack=NULL, flags=CLONE_VM|CLONE_THREAD|CLONE_FILES) = 101",
    "100 1700000000.000300 vfork() = 102",
    "101 1700000000.000400 fallocate(3, 0, 0, 17592186044415) = 0 <0.000010>",
    "101 1700000000.000400 pread64(3, <unfinished ...>",
    "101 1700000000.000500 <... pread64 resumed> \"\"..., 512, 4096) = 512",
    "101 1700000000.000600 +++ exited with 0 +++",
    "100 1700000000.000700 wait4(-1, NULL, 0, NULL) = 101",
    "100 1700000000.000800 pipe2([4, 5], 0) = 0",
    "102 1700000000.000900 read(4, \"\", 1) = 1",
    "100 1700000000.000900 rename(\"a\", \"/b/c\") = -1 ENOENT (No such file or directory)",
    "100 1700000000.001000 ftruncate(3, 9223372036854775807) = 0",
    "100 1700000000.001100 --- SIGCHLD {si_signo=SIGCHLD} ---",
    "100 1700000000.001200 lseek(3, -9223372036854775808, SEEK_SET) = -1 EINVAL",
    "100 1700000000.001300 close(3) = 0",
    "[pid 103] fsync(3) = 0 <99999999999999.9>",
    "12:00:00 sync() = 0",
    "100 1700000000.001400 write(3, \"x\", 9223372036854775807) = 9223372036854775807 <0.000010>",
    "100 1900000000.000000 getpid() = 100 <0.000010>",
    "101 9999999999.000000 fsync(3) = 0 <0.000010>",
    "100 1700000000.001500 link(\"a\", \"b\") = 0",
    "100 1700000000.001600 rename(\"b\", \"a\") = 0",
    "100 1700000000.001600 rename(\"b\", \"c\") = 0",
    "101 1700000000.001700 unlink(\"a\") = 0",
    "100 1700000000.001700 unlink(\"b\") = 0",
    "100 1700000000.001800 openat(AT_FDCWD, \"b\", O_RDWR|O_CREAT|O_EXCL, 0644) = 5",
    "100 1700000000.001900 copy_file_range(3, NULL, 5, NULL, 9223372036854775807, 0) = 4096",
    "100 1700000000.002000 fork() = 2",
    "104 1700000000.002100 read(3, \"x\", 1) = 1",
    "104 1700000000.002200 fork() = 100",
    "100 1700000000.002300 wait4(2, NULL, 0, NULL) = 2",
    "100 1700000000.002400 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=1000000000000000000, tv_nsec=0}, NULL) = 0",
];

#[test]
fn any_text_is_read_or_refused() {
    for seed in 0..3000 {
        let mut stream = stream(seed, "strace");
        let mut text = String::new();
        for _ in 0..stream.below(12) {
            let line = LINES[stream.below(LINES.len() as u64) as usize];
            let cut = match stream.below(8) {
                0 => stream.below(line.len() as u64) as usize,
                _ => line.len(),
            };
            text.push_str(&line[..cut]);
            match stream.below(10) {
                0 => text.push(char::from(stream.below(128) as u8)),
                _ => text.push('\n'),
            }
        }
        let run = || log::check(&text);
        assert!(std::panic::catch_unwind(run).is_ok(), "seed {seed}: {text}");
    }
}
