//! Logs of strace: what is understood, what is refused and where.

use std::collections::BTreeMap;
use std::sync::Arc;

use iosched_syscalls::{Call, Entry, Errno, Kind, OpenFlags};
use iosched_workloads::strace::{Act, Log, Options, Part, Replay, parse, parse_part};

mod before;
mod devices;
mod flags;
mod forms;
mod tasks;

fn log(text: &str) -> Log {
    parse("x.strace", text, Options::default()).unwrap_or_else(|d| panic!("{d}"))
}

fn acts(log: &Log, task: usize) -> Vec<Act> {
    log.tasks[task].steps.iter().map(|s| s.act).filter(|a| *a != Act::Null).collect()
}

fn files(log: &Log) -> Vec<(&str, u64)> {
    log.files.iter().map(|(n, b)| (&**n, *b)).collect()
}

#[test]
fn calls_name_open_files_not_numbers() {
    let l = log("openat(AT_FDCWD, \"a\", O_RDWR|O_CREAT|O_EXCL, 0644) = 3\n\
                 openat(AT_FDCWD, \"b\", O_RDONLY) = 4\n\
                 close(3) = 0\n\
                 openat(AT_FDCWD, \"/c/d\", O_WRONLY|O_DSYNC) = 3\n\
                 write(3, \"x\"..., 100) = 100\n\
                 pread64(4, \"\"..., 512, 4096) = 200\n\
                 write(9, \"x\", 1) = 1\n");
    let rw = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let expected = [
        Act::Open { name: 0, flags: rw, file: 0 },
        Act::Open { name: 1, flags: OpenFlags::READ, file: 1 },
        Act::Close { file: 0 },
        Act::Open { name: 2, flags: OpenFlags::WRITE | OpenFlags::DSYNC, file: 2 },
        Act::Write { file: 2, len: 100 },
        Act::Pread { file: 1, at: 4096, len: 512 },
        Act::Elsewhere { bytes: 1 },
    ];
    assert_eq!(acts(&l, 0), expected);
    assert_eq!(l.names.iter().map(|n| &**n).collect::<Vec<_>>(), ["work/a", "work/b", "root/c/d"]);
    // The first was made by the log; of the third nobody knows more than that it was there.
    assert_eq!(files(&l), [("root/c/d", 0), ("work/b", 4296)]);
    assert_eq!(l.elsewhere.get("write"), Some(&1));
}

#[test]
fn lengths_are_worked_out() {
    let l = log("open(\"grows\", O_RDWR) = 3\n\
                 fstat(3, {st_mode=S_IFREG|0644, st_size=1000, ...}) = 0\n\
                 lseek(3, 0, SEEK_END) = 1000\n\
                 write(3, \"\"..., 50) = 50\n\
                 fstat(3, {st_mode=S_IFREG|0644, st_size=1050, ...}) = 0\n\
                 open(\"maybe\", O_RDWR|O_CREAT, 0644) = 4\n\
                 read(4, \"\"..., 10) = 10\n\
                 open(\"fresh\", O_RDWR|O_CREAT, 0644) = 5\n\
                 write(5, \"\"..., 10) = 10\n\
                 pread64(5, \"\"..., 10, 0) = 10\n\
                 stat(\"dir\", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0\n\
                 rename(\"old/name\", \"new\") = 0\n\
                 unlink(\"gone\") = 0\n");
    assert_eq!(
        files(&l),
        [("work/gone", 0), ("work/grows", 1000), ("work/maybe", 10), ("work/old/name", 0)]
    );
    assert_eq!(l.directories.iter().map(|d| &**d).collect::<Vec<_>>(), ["work/dir", "work/old"]);
}

#[test]
fn a_number_that_is_given_again_before_close_comes_back_is_the_new_file() {
    let l = log("1 open(\"a\", O_RDONLY) = 3\n\
                 1 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 2\n\
                 1 close(3 <unfinished ...>\n\
                 2 open(\"b\", O_RDONLY) = 3\n\
                 1 <... close resumed>) = 0\n\
                 2 read(3, \"\"..., 7) = 7\n");
    assert!(l.tasks[1].thread);
    assert_eq!(acts(&l, 1)[1], Act::Read { file: 1, len: 7 });
}

#[test]
fn copies_of_a_descriptor_are_one_file_until_the_last_is_closed() {
    let l = log("open(\"a\", O_RDONLY) = 3\ndup2(3, 0) = 0\nfcntl(3, F_DUPFD_CLOEXEC, 10) = 10\n\
                 close(3) = 0\nexecve(\"/bin/x\", [], []) = 0\nread(0, \"\"..., 5) = 5\nclose(0) = 0\n");
    let acts = acts(&l, 0);
    assert_eq!(acts[1..], [Act::Read { file: 0, len: 5 }, Act::Close { file: 0 }]);
}

#[test]
fn what_is_not_simulated_is_named_and_counted() {
    let text = "futex(0x7f, FUTEX_WAIT, 0, NULL) = 0\nfutex(0x7f, FUTEX_WAKE, 1) = 1\n\
                epoll_wait(3, [], 10, 5) = 0\nread(5, \"\", 4) = 4\nopen(\"/dev/null\", O_RDWR) = 4\n";
    let l = log(text);
    assert_eq!(Log::list(&l.unknown), "futex 2, epoll_wait 1");
    assert_eq!(Log::list(&l.elsewhere), "open 1, read 1");
    let strict = Options { refuse_unknown: true, ..Options::default() };
    let e = parse("x.strace", text, strict).unwrap_err().to_string();
    assert!(e.contains("futex 2, epoll_wait 1"), "{e}");
}

#[test]
fn what_is_no_log_is_refused_with_its_place() {
    let refused = |t: &str| parse("x.strace", t, Options::default()).unwrap_err();
    let d = refused("1 read(3, \"\", 5) = 0\nhello world\n1 close(3) = 0\n");
    assert_eq!((d.line, d.column), (2, 1));
    assert!(d.help.contains("strace -f -ttt -T -o FILE"), "{d}");
    let d = refused("1 read(3, \"\", 5) = 0\n1 close(3) is fine\n1 close(3) = 0\n");
    assert_eq!((d.line, d.column), (2, 11));
    assert!(refused("").message.contains("no system call"));
    let l = log("1 read(3, \"\", 5) = 0\n1 read(3, \"abc");
    assert!(l.warnings[0].contains("ends in the middle of line 2"), "{:?}", l.warnings);
    let l =
        log("strace: [ Process PID=9 runs in 32 bit mode. ]\n9 _llseek(3, 0, [0], SEEK_SET) = 0\n");
    assert!(l.warnings[0].contains("32 bit mode"), "{:?}", l.warnings);
}

#[test]
fn failures_are_replayed_where_the_disk_decides_them() {
    let l = log("open(\"no\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
                 mkdir(\"d\", 0777) = -1 EEXIST (File exists)\n\
                 read(7, 0x7f, 5) = -1 EBADF (Bad file descriptor)\n\
                 nanosleep({tv_sec=1, tv_nsec=5}, NULL) = 0\n");
    assert_eq!(l.tasks[0].steps[0].answer, Some(Err(Errno::ENOENT)));
    assert_eq!(l.directories.iter().map(|d| &**d).collect::<Vec<_>>(), ["work/d"]);
    assert_eq!(acts(&l, 0).last(), Some(&Act::Pause { time: 1_000_000_005 }));
}

#[test]
fn pauses_names_and_calls_without_an_end() {
    let log = |t: &str| parse("x.strace", t, Options::default()).unwrap();
    let pause = |t: &str| match acts(&log(t), 0).last() {
        Some(Act::Pause { time }) => *time,
        other => panic!("{other:?}"),
    };
    let long = "nanosleep({tv_sec=1000000000000000000, tv_nsec=0}, NULL) = 0";
    assert_eq!(pause(&format!("1 1700000000.0 {long} <0.000010>\n")), 10_000);
    assert_eq!(pause(&format!("1 {long}\n")), 100 * 365 * 86_400 * 1_000_000_000);
    // The kernel takes no such names: nothing is made of them.
    let deep = "a/".repeat(2_048);
    let wide = "b".repeat(256);
    let l = log(&format!("mkdir(\"{deep}\", 0755) = 0\nmkdir(\"{wide}\", 0755) = 0\n"));
    assert_eq!(l.elsewhere.get("mkdir"), Some(&2), "{:?}", l.elsewhere);
    // Killed inside of a call: said, not silent.
    let l = log("1 openat(AT_FDCWD, \"f\", O_RDWR) = 3\n1 fsync(3 <unfinished ...>\n\
                 1 <... fsync resumed>) = ?\n1 +++ killed by SIGKILL +++\n");
    let said = "1 call had not come back when the log or its task ended: left out";
    assert!(l.warnings.iter().any(|w| w == said), "{:?}", l.warnings);
    let l = log("1 openat(AT_FDCWD, \"f\", O_RDWR) = 3\n1 exit_group(0) = ?\n");
    assert!(!l.warnings.iter().any(|w| w.contains("come back")), "{:?}", l.warnings);
}

#[test]
fn stamps_of_another_kind_are_no_pauses() {
    let l = log("100 12:00:00 sync() = 0\n\
                 100 1700000000.000100 sync() = 0\n\
                 100 12:00:02 sync() = 0\n");
    let thinks: u64 = l.tasks[0].steps.iter().map(|s| s.think).sum();
    assert!(thinks <= 2_000_000_000, "{thinks} ns");
    assert!(!l.warnings.iter().any(|w| w.contains("goes back")), "{:?}", l.warnings);
    let l = log("100 1700000060.5 sync() = 0\n100 1700000000.5 sync() = 0\n");
    assert!(l.warnings.iter().any(|w| w.starts_with("line 2: the clock goes back by 60 s")));
}

/// A shell starts, goes to the directory and runs a program there; everything else is elsewhere.
#[test]
fn a_part_of_a_log_is_one_directory_and_what_a_shell_runs() {
    let text = "1 openat(AT_FDCWD, \"/etc/profile\", O_RDONLY) = 3\n\
                1 read(3, \"\"..., 4096) = 100\n\
                1 chdir(\"/mnt/x\") = 0\n\
                1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
                2 openat(AT_FDCWD, \"a\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
                2 openat(AT_FDCWD, \"/mnt/o/in\", O_RDONLY) = 3\n\
                2 read(3, \"\"..., 8192) = 5000\n\
                2 openat(AT_FDCWD, \"/mnt/x/d/f\", O_RDONLY) = 4\n\
                2 read(4, \"\"..., 4096) = 4096\n\
                1 wait4(-1, NULL, 0, NULL) = 2\n";
    let part = Part { below: "/mnt/x".into(), failure: 1000 };
    let l = parse_part("x", text, Options::default(), part).unwrap_or_else(|d| panic!("{d}"));
    assert_eq!(acts(&l, 0), [Act::Child { task: 1 }, Act::Join { task: 1 }]);
    let read = OpenFlags::READ;
    let expected = [
        Act::Open { name: 0, flags: read, file: 0 },
        Act::Elsewhere { bytes: 5000 },
        Act::Open { name: 1, flags: read, file: 1 },
        Act::Read { file: 1, len: 4096 },
    ];
    assert_eq!(acts(&l, 1), expected);
    // What failed takes longer, before the next call.
    assert_eq!(l.tasks[1].steps.iter().map(|s| s.think).collect::<Vec<_>>(), [0, 1000, 0, 0, 0]);
    assert_eq!(files(&l), [("d/f", 4096)]);
    assert_eq!(l.directories.iter().map(|d| &**d).collect::<Vec<_>>(), ["d"]);
}

/// Links that the log makes are made and read; calls through them go to where they lead. A circle stays one.
#[test]
fn symbolic_links_lead_on() {
    let l = log("symlink(\"../b/f\", \"a/l\") = 0\n\
                 openat(AT_FDCWD, \"a/l\", O_RDONLY) = 3\n\
                 read(3, \"\"..., 100) = 100\n\
                 lstat(\"a/l\", {st_mode=S_IFLNK|0777, st_size=6, ...}) = 0\n\
                 readlink(\"a/l\", \"../b/f\", 4096) = 6\n\
                 symlinkat(\"x\", AT_FDCWD, \"y\") = 0\n\
                 symlink(\"y\", \"x\") = 0\n\
                 open(\"x\", O_RDONLY) = -1 ELOOP (Too many levels of symbolic links)\n\
                 rename(\"a/l\", \"m\") = 0\n\
                 open(\"m\", O_RDONLY) = 4\n\
                 unlink(\"m\") = 0\n");
    let name = |text: &str| l.names.iter().position(|n| &**n == text).unwrap() as u32;
    let read = OpenFlags::READ;
    let (f, moved) = (name("work/b/f"), name("work/m"));
    let expected = [
        Act::Symlink { target: name("../b/f"), name: name("work/a/l") },
        Act::Open { name: f, flags: read, file: 0 },
        Act::Read { file: 0, len: 100 },
        Act::Stat { name: name("work/a/l"), follow: false },
        Act::ReadLink { name: name("work/a/l") },
        Act::Symlink { target: name("x"), name: name("work/y") },
        Act::Symlink { target: name("y"), name: name("work/x") },
        Act::Open { name: name("work/x"), flags: read, file: 1 },
        Act::Rename { from: name("work/a/l"), to: moved },
        Act::Open { name: f, flags: read, file: 2 },
        Act::Unlink { name: moved },
    ];
    assert_eq!(acts(&l, 0), expected);
    assert_eq!(files(&l), [("work/b/f", 100)], "links were not there before");
}

/// The directories that a replay makes before it begins, and how often each is asked for.
fn made_before(log: Log) -> BTreeMap<String, u32> {
    let mut made = BTreeMap::new();
    let mut program = (Replay::new(Arc::new(log)).preparation(None).0)();
    let mut answer = Ok(0);
    while let Some(call) = program.resume(0, answer) {
        answer = match call {
            Call::Mkdir { path } => {
                *made.entry(path.to_string()).or_default() += 1;
                Ok(0)
            }
            Call::Stat { .. } => Err(Errno::ENOENT),
            Call::Write { len, .. } => Ok(len),
            _ => Ok(3),
        };
    }
    made
}

#[test]
fn a_deep_tree_is_made_with_one_call_for_each_directory() {
    let mut text = String::new();
    let deep = vec!["d"; 200].join("/");
    text.push_str(&format!("stat(\"{deep}\", {{st_mode=S_IFDIR|0755, st_size=4096}}) = 0\n"));
    for i in 0..20 {
        text.push_str(&format!("openat(AT_FDCWD, \"{deep}/f{i}\", O_RDONLY) = 3\nclose(3) = 0\n"));
    }
    let made = made_before(log(&text));
    assert!(made.contains_key(&format!("work/{deep}")), "{made:?}");
    // The root, the directory in which the log began, and 200 below it.
    assert_eq!((made.len(), made.values().sum::<u32>()), (202, 202));
}

#[test]
fn a_file_with_two_names_is_one_file() {
    let names = |l: &Log| -> Vec<String> { l.names.iter().map(|n| n.to_string()).collect() };
    // As git makes an object durable: written under one name, linked, and the first name removed.
    let l = log("openat(AT_FDCWD, \"tmp\", O_RDWR|O_CREAT|O_EXCL, 0444) = 3\n\
                 write(3, \"x\"..., 4096) = 4096\n\
                 close(3) = 0\n\
                 link(\"tmp\", \"object\") = 0\n\
                 unlink(\"tmp\") = 0\n\
                 openat(AT_FDCWD, \"object\", O_RDONLY) = 3\n\
                 fsync(3) = 0\n");
    assert!(l.unknown.is_empty() && l.files.is_empty(), "{:?} {:?}", l.unknown, l.files);
    let a = acts(&l, 0);
    let name = |n: &str| names(&l).iter().position(|x| x == n).unwrap() as u32;
    let (tmp, object) = (name("work/tmp"), name("work/object"));
    assert!(
        a.contains(&Act::Touch { name: tmp }) && a.contains(&Act::Rename { from: tmp, to: object }),
        "{a:?}"
    );
    assert!(!a.iter().any(|x| matches!(x, Act::Unlink { .. })), "the file stays: {a:?}");
    // The other name goes first: the file keeps the one it was made under.
    let l = log(
        "link(\"a\", \"b\") = 0\nunlink(\"b\") = 0\nstat(\"a\", {st_mode=S_IFREG|0644, st_size=9}) = 0\n",
    );
    assert!(!acts(&l, 0).iter().any(|x| matches!(x, Act::Rename { .. } | Act::Unlink { .. })));
    assert_eq!(files(&l), [("work/a", 9)]);
    // Renaming one name over the other of the same file does nothing; over another file that one goes.
    let l = log("link(\"a\", \"b\") = 0\nrename(\"a\", \"b\") = 0\n");
    assert!(!acts(&l, 0).iter().any(|x| matches!(x, Act::Rename { .. })));
    let l = log("link(\"a\", \"b\") = 0\nstat(\"c\", {st_mode=S_IFREG|0644, st_size=9}) = 0\n\
                 rename(\"b\", \"c\") = 0\nopenat(AT_FDCWD, \"c\", O_RDONLY) = 3\n");
    let c = l.names.iter().position(|n| &**n == "work/c").unwrap() as u32;
    let a0 = l.names.iter().position(|n| &**n == "work/a").unwrap() as u32;
    assert!(acts(&l, 0).contains(&Act::Unlink { name: c }));
    assert!(
        acts(&l, 0).iter().any(|x| matches!(x, Act::Open { name, .. } if *name == a0)),
        "c leads to a"
    );
}

/// Three calls take 624 ms of a second, as `strace -t -T` says: 376 ms are left to think.
#[test]
fn whole_seconds_do_not_make_pauses_longer() {
    let text = "1 12:00:00 sync() = 0 <0.200000>\n\
                1 12:00:00 sync() = 0 <0.224000>\n\
                1 12:00:00 sync() = 0 <0.200000>\n\
                1 12:00:01 sync() = 0 <0.000010>\n";
    let thinks = |l: &Log| l.tasks[0].steps.iter().map(|s| s.think).collect::<Vec<_>>();
    let l = log(text);
    assert_eq!(thinks(&l), [0, 0, 0, 376_000_000]);
    assert!(l.warnings.iter().any(|w| w.contains("whole seconds")), "{:?}", l.warnings);
    let fine = log(&text.replace(":00 ", ":00.0 ").replace(":01 ", ":01.0 "));
    assert!(!fine.warnings.iter().any(|w| w.contains("whole seconds")), "{:?}", fine.warnings);
    // A child begins when its parent really made it.
    let l = log("1 12:00:00 sync() = 0 <0.900000>\n\
                 1 12:00:00 clone(child_stack=NULL, flags=SIGCHLD) = 2 <0.000100>\n\
                 2 12:00:01 sync() = 0 <0.000010>\n");
    assert_eq!(l.tasks[1].steps[0].think, 100_000_000);
}

#[test]
fn copies_with_places_are_a_read_and_a_write() {
    let l = log("open(\"a\", O_RDONLY) = 5\n\
                 open(\"b\", O_RDWR|O_CREAT|O_EXCL, 0644) = 9\n\
                 copy_file_range(5, [0], 9, [8388608], 4096, 0) = 4096\n\
                 copy_file_range(5, NULL, 9, [0] => [512], 512, 0) = 512\n\
                 copy_file_range(5, NULL, 9, NULL, 100, 0) = 100\n");
    let expected = [
        Act::Pread { file: 0, at: 0, len: 4096 },
        Act::Pwrite { file: 1, at: 8_388_608, len: 4096 },
        Act::Read { file: 0, len: 512 },
        Act::Pwrite { file: 1, at: 0, len: 512 },
        Act::CopyRange { from: 0, to: 1, len: 100 },
    ];
    assert_eq!(acts(&l, 0)[2..], expected);
    assert!(l.unknown.is_empty(), "{:?}", l.unknown);
}

/// As strace 6.1 prints them, with a vector and one on a socket.
#[test]
fn asynchronous_ios_are_replayed() {
    let l = log("openat(AT_FDCWD, \"f\", O_RDWR|O_DIRECT) = 6\n\
         io_setup(4, [0x7ff5]) = 0\n\
         io_submit(0x7ff5, 2, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=6, aio_buf=0x56, \
         aio_nbytes=4096, aio_offset=61440}, {aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=6</f>, \
         aio_buf=\"\\0, aio_offset=7\"..., aio_nbytes=512, aio_offset=0}]) = 2\n\
         io_submit(0x7ff5, 2, [{aio_lio_opcode=IOCB_CMD_PWRITEV, aio_fildes=6, aio_buf=[{iov_base=\"\", \
         iov_len=100}, {iov_base=\"\", iov_len=28}], aio_nbytes=2, aio_offset=8192}, \
         {aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=9, aio_nbytes=512, aio_offset=0}]) = 2\n\
         io_getevents(0x7ff5, 1, 4, [{data=0, obj=0x1, res=4096, res2=0}, {data=0, obj=0x2}], NULL) = 2\n");
    let expected = [
        Act::Submit { file: 0, write: false, at: 61_440, len: 4096 },
        Act::Submit { file: 0, write: true, at: 0, len: 512 },
        Act::Submit { file: 0, write: true, at: 8192, len: 128 },
        Act::Reap { count: 2 },
    ];
    assert_eq!(acts(&l, 0)[1..], expected);
    assert_eq!(files(&l), [("work/f", 65_536)]);
    assert_eq!(l.warnings[0], "1 of 4 I/Os are left out (io_submit 1)");
    // Another thread waits for what it did not submit.
    let l = log("io_getevents(0x7ff5, 1, 4, [{data=0, obj=0x1}], NULL) = 1\n");
    assert_eq!(l.unknown.get("io_getevents"), Some(&1));
}

#[test]
fn a_log_without_most_of_its_io_is_said_loudly() {
    let l = log("open(\"f\", O_RDWR) = 3\n\
                 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 3, 0) = 0x7f\n\
                 read(3, \"\"..., 10) = 10\n\
                 io_uring_enter(4, 8, 8, IORING_ENTER_GETEVENTS, NULL, 8) = 8\n\
                 splice(3, NULL, 5, NULL, 10, 0) = 10\n");
    let said = "MOST OF THIS LOG'S I/O IS NOT REPLAYED: 9 of 10 I/Os are left out (io_uring_enter 8, splice 1)";
    assert_eq!(l.warnings[0], said);
    assert!(l.warnings.iter().any(|w| w.starts_with("1 maps of files")), "{:?}", l.warnings);
}

#[test]
fn one_file_of_several_gives_a_hint() {
    let text = "clone(child_stack=NULL, flags=SIGCHLD) = 77\nwait4(77, NULL, 0, NULL) = 77\n";
    let hinted = |t: &str| log(t).warnings.iter().any(|w| w.contains("strace -ff"));
    assert!(hinted(text));
    let with = text.replace("clone", "1 clone").replace("wait4", "77 sync() = 0\n1 wait4");
    assert!(!hinted(&with));
}

/// A pipe's bytes come in other pieces than in the log.
#[test]
fn a_pipe_is_read_until_as_much_has_come_as_in_the_log() {
    let l = log("pipe([3, 4]) = 0\nread(3, \"\"..., 100) = 10\nread(3, \"\", 100) = 0\n");
    assert_eq!(l.tasks[0].steps[2].answer, Some(Ok(0)));
    let replay = Replay::new(Arc::new(l));
    let mut player = (replay.measured().0)();
    assert!(matches!(player.resume(0, Ok(0)), Some(Call::Pipe)));
    let mut asked = Vec::new();
    for answer in [5 | 6 << 32, 4, 6, 0] {
        match player.resume(1, Ok(answer)) {
            Some(Call::Read { len, .. }) => asked.push(len),
            Some(Call::Note { bytes, .. }) => assert_eq!(bytes, 10),
            other => panic!("{:?}", other.is_some()),
        }
    }
    assert_eq!(asked, [10, 6, 100]);
    assert_eq!(replay.answered_otherwise(), None);
}

/// A map that is given back was read like a file; of one that stays only the first page is known to be. Libraries are not read.
#[test]
fn maps_that_are_given_back_are_read() {
    let l = log("openat(AT_FDCWD, \"a\", O_RDONLY) = 3\n\
                 fstat(3, {st_mode=S_IFREG|0644, st_size=9000, ...}) = 0\n\
                 mmap(NULL, 9000, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000000000\n\
                 mmap(NULL, 9000, PROT_READ, MAP_PRIVATE, 3, 0x1000) = 0x7f0000010000\n\
                 mmap(NULL, 9000, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3, 0) = 0x7f0000020000\n\
                 munmap(0x7f0000000000, 9000) = 0\n");
    let expected = [
        Act::Map { file: 0, at: 0, len: 9000, map: 0, whole: true },
        Act::Map { file: 0, at: 4096, len: 9000, map: 1, whole: false },
        Act::Unmap { map: 0 },
    ];
    let maps: Vec<Act> = acts(&l, 0).into_iter().skip(2).collect();
    assert_eq!(maps, expected);
    let mut player = (Replay::new(Arc::new(l)).measured().0)();
    let (mut answer, mut loads) = (Ok(0), Vec::new());
    while let Some(call) = player.resume(0, answer) {
        answer = match call {
            Call::Open { .. } => Ok(5),
            Call::Map { at, .. } => Ok(at / 4096),
            Call::Load { map, at } => {
                loads.push((map.0, at));
                Ok(0)
            }
            _ => Ok(0),
        };
    }
    assert_eq!(loads, [(0, 0), (0, 4096), (0, 8192), (1, 0)]);
}

/// Files that were there are made in the order of their inodes, as they lay on the disk of the log's machine.
#[test]
fn files_are_made_in_the_order_of_their_inodes() {
    let l = log("stat(\"a\", {st_ino=12, st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n\
                 stat(\"b\", {st_ino=11, st_mode=S_IFREG|0644, st_size=2, ...}) = 0\n\
                 openat(AT_FDCWD, \"d\", O_RDONLY|O_DIRECTORY) = 3\n\
                 getdents64(3, [{d_ino=10, d_off=1, d_reclen=24, d_type=DT_REG, d_name=\"c\"}], 32768) = 24\n");
    assert_eq!(files(&l), [("work/d/c", 0), ("work/b", 2), ("work/a", 1)]);
}

/// A program that goes through a directory in the order of its names goes in that of the replay's file system; one with an order
/// of its own keeps it.
#[test]
fn a_walk_goes_in_the_order_of_the_file_system() {
    let listing = "openat(AT_FDCWD, \"d\", O_RDONLY|O_DIRECTORY) = 3\n\
                   getdents64(3, [{d_ino=1, d_type=DT_REG, d_name=\"x\"}, {d_ino=2, d_type=DT_REG, d_name=\"y\"}, \
                   {d_ino=3, d_type=DT_REG, d_name=\"z\"}], 32768) = 72\n\
                   getdents64(3, [], 32768) = 0\nclose(3) = 0\n";
    let read = |name: &str| {
        format!(
            "openat(AT_FDCWD, \"d/{name}\", O_RDONLY) = 3\nread(3, \"\"..., 10) = 5\nclose(3) = 0\n"
        )
    };
    let order = |names: [&str; 3]| {
        let l = log(&(listing.to_string() + &names.map(read).concat() + "sync() = 0\n"));
        let mut player = (Replay::new(Arc::new(l)).measured().0)();
        let (mut answer, mut opened, mut listed) = (Ok(0), Vec::new(), false);
        while let Some(call) = player.resume(0, answer) {
            answer = Ok(5);
            match call {
                Call::Open { path, .. } => opened.push(path.to_string()),
                Call::ReadDir { into, .. } => {
                    let names = if listed { &[][..] } else { &["y", "z", "x"][..] };
                    let all = names.iter().map(|n| Entry { name: (*n).into(), kind: Kind::File });
                    into.replace(all.collect());
                    listed = true;
                }
                Call::Sync => opened.push("sync".into()),
                _ => {}
            }
        }
        opened
    };
    let walked = ["work/d", "work/d/y", "work/d/z", "work/d/x", "sync"];
    assert_eq!(order(["x", "y", "z"]), walked);
    let own = ["work/d", "work/d/z", "work/d/x", "work/d/y", "sync"];
    assert_eq!(order(["z", "x", "y"]), own);
}
