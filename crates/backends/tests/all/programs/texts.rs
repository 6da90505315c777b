//! The programs that can be named, and logs.

use std::sync::Arc;

use iosched_workloads::programs::Descriptor;
use iosched_workloads::strace::{self, Options, Replay};

use super::beside::{Both, live, same};

fn program(line: &str) -> Both {
    let (d, params) = Descriptor::from_command_line(line).unwrap();
    Both { prepare: d.preparation(&params), run: d.measured(&params) }
}

#[test]
fn reads_are_the_same() {
    for pattern in ["pread", "mmap", "two", "two2", "fadvrandom", "fadvseq"] {
        for place in ["4096 0 4096 20", "100 0 12345 9", "65536 900000 -65536 12"] {
            let line = format!("rd {pattern} small {place} 2M 1M");
            same(&line, || program(&line));
        }
    }
}

#[test]
fn file_operations_are_the_same() {
    let word = Descriptor::find("fsops").unwrap().params.iter().find(|p| p.name == "op").unwrap();
    let ops = match word.kind {
        iosched_workloads::programs::Kind::Word(ops) => ops,
        _ => panic!("a word"),
    };
    for op in ops {
        for (nproc, n, size, arg) in [(1, 5, 4096, 0), (3, 4, 8192, 1)] {
            let arg = if op.starts_with("over") || op.contains("_over") { arg << 20 } else { arg };
            let line = format!("fsops {op} dir/deep {nproc} {n} {size} {arg}");
            same(&line, || program(&line));
        }
    }
}

#[test]
fn relays_are_the_same() {
    for line in ["relay 1 3 4096 0", "relay 4 5 100 50"] {
        same(line, || program(line));
    }
}

#[test]
fn live_runs_know_their_core_time() {
    let (measured, _) = live(program("relay 3 4 4096 2000"));
    let measured = measured.unwrap();
    for (task, stats) in measured.tasks.iter().filter(|(t, _)| **t > 0) {
        // Four records with 2 ms of computation before each; clocks of core time may be coarse.
        assert!(stats.cpu.total() >= 8_000_000, "task {task}: {:?}", stats.cpu);
        assert!(stats.ended > stats.began && stats.write.2.max() > 0, "task {task}");
    }
}

/// A shell that copies, lists, removes and pipes, in a form that strace prints.
const LOG: &str = r#"100 1.000000 openat(AT_FDCWD, "/etc/data", O_RDONLY) = 3 <0.000010>
100 1.000100 fstat(3, {st_mode=S_IFREG|0644, st_size=10000, ...}) = 0 <0.000005>
100 1.000200 read(3, "x"..., 4096) = 4096 <0.000010>
100 1.000300 pread64(3, "x"..., 4096, 8192) = 1808 <0.000010>
100 1.000400 mkdir("out", 0755) = 0 <0.000010>
100 1.000450 mkdir("out", 0755) = -1 EEXIST (File exists) <0.000010>
100 1.000500 openat(AT_FDCWD, "out/copy", O_RDWR|O_CREAT|O_TRUNC, 0644) = 4 <0.000010>
100 1.000600 write(4, "y"..., 5904) = 5904 <0.000010>
100 1.000700 pipe2([5, 6], 0) = 0 <0.000010>
100 1.000800 clone(child_stack=NULL, flags=SIGCHLD) = 101 <0.000100>
101 1.001000 close(5) = 0 <0.000005>
101 1.001100 write(6, "zz", 2) = 2 <0.000010>
101 1.001150 lseek(4, 0, SEEK_CUR) = 5904 <0.000010>
101 1.001200 exit_group(0) = ?
101 1.001210 +++ exited with 0 +++
100 1.001300 read(5, "zz", 10) = 2 <0.000010>
100 1.001400 wait4(-1, NULL, 0, NULL) = 101 <0.000010>
100 1.001500 fsync(4) = 0 <0.001000>
100 1.002600 rename("out/copy", "out/final") = 0 <0.000010>
100 1.002650 rename("out/copy", "out/final") = -1 ENOENT (No such file or directory) <0.000010>
100 1.002700 unlink("out/final") = 0 <0.000010>
100 1.002750 rmdir("out") = 0 <0.000010>
100 1.002800 close(4) = 0 <0.000005>
100 1.002900 close(4) = -1 EBADF (Bad file descriptor) <0.000005>
100 1.003000 +++ exited with 0 +++
"#;

#[test]
fn a_log_of_strace_is_played_the_same_way() {
    let log = Arc::new(strace::parse("t.strace", LOG, Options::default()).unwrap());
    let replays = std::sync::Mutex::new(Vec::new());
    same("a log", || {
        let replay = Replay::new(log.clone());
        replays.lock().unwrap().push(replay.clone());
        Both { prepare: Some(replay.preparation(None)), run: replay.measured() }
    });
    for replay in replays.into_inner().unwrap() {
        assert_eq!(replay.answered_otherwise(), None);
    }
}
