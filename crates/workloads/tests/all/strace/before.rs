//! Logs of programs that strace was attached to: descriptors from before the log, and the forms in which logs are passed on.

use iosched_workloads::strace::{Act, recognise};

use super::{acts, files, log};

/// As people post it: a terminal's output, paths by `-y`.
const ATTACHED: &str = "\
strace: Process 15596 attached with 11 threads
[pid 15596] pwrite64(30</config/ms.db-journal>, \"SQLite\"..., 4096, 4620) = 4096
[pid 15596] fsync(30</config/ms.db-journal>) = 0
[pid 15597] read(12<socket:[4711]>, \"x\", 100) = 1
[pid 15597] write(31</var/log/a (deleted)>, \"x\", 10) = 10
[pid 15596] pwrite64(26</config/ms.db>, \"\\r\"..., 4096, 8192) = 4096
[pid 15596] write(1</dev/pts/0<char 136:0>>, \"x\", 1) = 1
^Cstrace: Process 15596 detached
[pid 15597] read(5,  <detached ...>
";

#[test]
fn paths_tell_what_was_open() {
    let l = log(ATTACHED);
    let wanted =
        [("root/config/ms.db", 12288), ("root/config/ms.db-journal", 8716), ("root/var/log/a", 0)];
    let mut there = files(&l);
    there.sort_unstable();
    assert_eq!(there, wanted);
    assert_eq!(l.inherited.len(), 3);
    let io = acts(&l, 0);
    assert!(matches!(io[0], Act::Pwrite { at: 4620, len: 4096, .. }), "{io:?}");
    assert!(matches!(io[1], Act::Fsync { .. }));
    assert_eq!(l.elsewhere["read"], 1, "a socket is no file");
    let said = l.warnings.join("\n");
    assert!(said.contains("30 is /config/ms.db-journal") && said.contains("threads"), "{said}");
    assert!(l.has_io() && l.threads);
}

#[test]
fn calls_that_only_files_take_tell_it_too() {
    let l = log("[pid 1] 16:24:18.724129 pwrite64(50, \"a\", 5, 21) = 5 <0.000124>\n\
                 [pid 1] 16:24:18.724878 write(46, \"a\", 318) = 318 <0.000147>\n\
                 [pid 2] 16:24:18.727515 pwrite64(44, \"a\"..., 1024, 1024 <unfinished ...>\n\
                 [pid 3] 16:24:18.727558 read(35, \"a\", 4672) = 318 <0.000064>\n\
                 [pid 2] 16:24:18.727647 <... pwrite64 resumed> ) = 1024 <0.000108>\n\
                 [pid 1] 16:24:18.728 write(60, \"a\", 100) = 100 <0.00001>\n\
                 [pid 1] 16:24:18.729 fdatasync(60) = 0 <0.00001>\n");
    let mut there = files(&l);
    there.sort_unstable();
    let name = |n| format!("work/_before/descriptor-{n}");
    let wanted = [(name(44), 2048), (name(50), 26), (name(60), 0)];
    assert_eq!(there, wanted.each_ref().map(|(n, b)| (n.as_str(), *b)));
    assert_eq!((l.elsewhere["write"], l.elsewhere["read"]), (1, 1));
    let said = l.warnings.join("\n");
    assert!(said.contains("44, 50, 60") && said.contains("35, 46"), "{said}");
    assert!(
        acts(&l, 0).iter().any(|a| matches!(a, Act::Write { len: 100, .. })),
        "before its sync"
    );
}

/// A failed call tells nothing: on a pipe these end with ESPIPE or EINVAL.
#[test]
fn calls_that_failed_tell_nothing() {
    let l = log("1 lseek(5, 0, SEEK_CUR) = -1 ESPIPE (Illegal seek)\n\
                 1 fsync(5) = -1 EINVAL (Invalid argument)\n1 write(5, \"a\", 3) = 3\n");
    assert!(l.inherited.is_empty() && !l.has_io());
}

#[test]
fn asynchronous_io_of_an_attached_data_base() {
    let l = log(
        "1 io_submit(0x7f, 1, [{aio_data=0x7, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=10</d/ibdata1>, \
                 aio_buf=\"x\"..., aio_nbytes=16384, aio_offset=32768}]) = 1\n\
                 1 io_getevents(0x7f, 1, 256, [{data=0, obj=0, res=16384, res2=0}], NULL) = 1\n",
    );
    assert_eq!(files(&l), [("root/d/ibdata1", 49152)]);
    assert!(acts(&l, 0).iter().any(|a| matches!(a, Act::Submit { at: 32768, .. })));
}

/// Two tasks that are given one number at once are two processes.
#[test]
fn processes_are_told_apart() {
    let l =
        log("1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n2 openat(AT_FDCWD, \"/b\", O_RDONLY) = 3\n\
                 1 pread64(9, \"\", 10, 0) = 10\n2 pread64(9, \"\", 10, 0) = 10\n");
    assert!(!l.threads);
    assert_eq!(l.inherited.len(), 2, "9 is another file for each");
    let l = log("1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n2 pread64(3, \"\", 10, 0) = 10\n");
    assert!(l.threads && l.inherited.is_empty(), "the thread uses what the other one opened");
}

#[test]
fn logs_are_known_by_their_lines() {
    for text in [
        ATTACHED,
        "```\n1 16:24:18.724129 pwrite64(50, \"a\", 5, 21) = 5 <0.000124>\n```\n",
        "What I see:\n\n```text\n$ strace -f -p 7\n     0.000123 read(3, \"\", 5) = 0\n```\nAny idea?\n",
        "12:34:56 (+     0.000000) fsync(3) = 0\n",
        "Process 7 attached - interrupt to quit\nfsync(3) = 0\nProcess 7 detached\n",
        "1700000000.123456 openat(AT_FDCWD, \"a\", O_RDONLY) = 3\n",
    ] {
        assert!(recognise(text), "{text}");
        assert!(log(text).calls > 0);
    }
    for text in [
        "[a]\nrw=read\nbs=4k\n",
        "",
        "fio version 2 iolog\n/dev/sda add\n",
        "int main(void) { return f(1); }\n",
    ] {
        assert!(!recognise(text), "{text}");
    }
}
