//! Who made whom: children, terminals, namespaces.

use super::*;

const FORKS: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"log\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3 <0.000010>
10 1700000000.000100 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>
11 1700000000.000150 write(3, \"ab\", 2 <unfinished ...>
10 1700000000.000160 <... clone resumed>, child_tidptr=0x7f) = 11 <0.000060>
11 1700000000.000200 <... write resumed>) = 2 <0.000050>
10 1700000000.000260 wait4(-1,  <unfinished ...>
11 1700000000.000300 exit_group(3) = ?
11 1700000000.000310 +++ exited with 3 +++
10 1700000000.000320 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 11 <0.000060>
10 1700000000.000330 --- SIGCHLD {si_signo=SIGCHLD} ---
10 1700000000.001320 fsync(3) = 0 <0.008000>
10 1700000000.009320 exit_group(0) = ?
10 1700000000.009400 +++ exited with 0 +++
";

/// Who made a task, what it wrote and how often it waited for the disk.
fn did(log: &Log) -> Vec<(u32, Option<usize>, [usize; 2])> {
    let count =
        |task: usize, of: fn(&Act) -> bool| acts(log, task).iter().filter(|a| of(a)).count();
    let tasks = log.tasks.iter().enumerate();
    let of = |i| {
        let writes = count(i, |a| matches!(a, Act::Pwrite { .. }));
        [writes, count(i, |a| matches!(a, Act::Fsync { .. }))]
    };
    tasks.map(|(i, t)| (t.pid, t.parent, of(i))).collect()
}

/// The program's own number and parent of each task.
fn family(log: &Log) -> Vec<(u32, Option<usize>)> {
    log.tasks.iter().map(|t| (t.pid, t.parent)).collect()
}

#[test]
fn children_inherit_and_are_waited_for() {
    let l = log(FORKS);
    assert_eq!(l.tasks.len(), 2);
    assert_eq!((l.tasks[1].pid, l.tasks[1].parent, l.tasks[1].thread), (11, Some(0), false));
    assert_eq!(acts(&l, 1), [Act::Write { file: 0, len: 2 }]);
    let parent = acts(&l, 0);
    assert_eq!(
        parent[1..],
        [Act::Child { task: 1 }, Act::Join { task: 1 }, Act::Fsync { file: 0 }]
    );
    // Between the call that came back and the one after it the program used the CPU.
    let think = |i: usize| l.tasks[0].steps[i].think;
    assert_eq!((think(1), think(2), think(3)), (90_000, 100_000, 1_000_000));
    assert_eq!(l.tasks[1].steps[0].think, 50_000);
    assert!(l.paced && l.warnings.is_empty(), "{:?}", l.warnings);
}

#[test]
fn a_log_from_a_terminal_is_understood() {
    let l = log("openat(AT_FDCWD, \"f\", O_RDONLY) = 3\n\
                 clone(child_stack=NULL, flags=SIGCHLDstrace: Process 21 attached\n\
                 , child_tidptr=0x7f) = 21\n\
                 [pid    20] read(3,  <unfinished ...>\n\
                 [pid    21] read(3, \"a\", 1) = 1\n\
                 [pid    20] <... read resumed>\"b\", 1) = 1\n\
                 [pid    21] +++ exited with 0 +++\n\
                 wait4(-1, NULL, 0, NULL) = 21\n\
                 --- SIGCHLD {si_signo=SIGCHLD, si_pid=21} ---\n");
    assert_eq!(l.tasks.len(), 2);
    assert_eq!((l.tasks[0].pid, l.tasks[1].pid), (20, 21));
    assert_eq!(acts(&l, 0).last(), Some(&Act::Join { task: 1 }));
    assert_eq!(acts(&l, 1), [Act::Read { file: 0, len: 1 }]);
    assert_eq!(files(&l), [("work/f", 2)], "one position for both");
}

/// The call that made a child has come back, and the parent goes on without a number until strace follows the child.
#[test]
fn a_second_child_on_a_terminal_does_not_take_the_parents_place() {
    let text = |sync: &str| {
        format!(
            "1.000000 openat(AT_FDCWD, \"f\", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3 <0.000010>\n\
             1.001000 clone(child_stack=NULL, flags=SIGCHLD, child_tidptr=0x7f) = 101 <0.000300>\n\
             strace: Process 101 attached\n\
             [pid   100] 1.003100 wait4(101,  <unfinished ...>\n\
             [pid   101] 1.004000 exit_group(3) = ?\n\
             [pid   101] 1.004100 +++ exited with 3 +++\n\
             1.004500 <... wait4 resumed>[{{WIFEXITED(s)}}], 0, NULL) = 101 <0.001400>\n\
             1.005000 clone(child_stack=NULL, flags=SIGCHLD, child_tidptr=0x7f) = 102 <0.000327>\n\
             {sync}\
             [pid   100] 1.006000 wait4(102,  <unfinished ...>\n\
             [pid   102] 1.007000 pwrite64(3, \"zzzz\"..., 4096, 0) = 4096 <0.000015>\n\
             [pid   102] 1.007500 fsync(3)  = 0 <0.001009>\n\
             [pid   102] 1.009000 exit_group(3) = ?\n\
             [pid   102] 1.009100 +++ exited with 3 +++\n\
             1.009500 <... wait4 resumed>[{{WIFEXITED(s)}}], 0, NULL) = 102 <0.003400>\n\
             1.010000 pwrite64(3, \"zzzz\"..., 4096, 4096) = 4096 <0.000015>\n\
             1.010500 fsync(3)  = 0 <0.001009>\n\
             1.012000 exit_group(0) = ?\n\
             1.012100 +++ exited with 0 +++\n"
        )
    };
    let whole = "1.005500 fsync(3) = 0 <0.000157>\nstrace: Process 102 attached\n";
    let split = "1.005500 fsync(3strace: Process 102 attached\n)                = 0 <0.000157>\n";
    for sync in [whole, split] {
        let l = log(&text(sync));
        assert_eq!(did(&l), [(100, None, [1, 2]), (101, Some(0), [0, 0]), (102, Some(0), [1, 1])]);
        assert!(l.warnings.is_empty() && l.unknown.is_empty(), "{:?} {:?}", l.warnings, l.unknown);
    }
}

/// A child may outlive its parent and go on alone; a call may be interrupted twice; and with `-qq` no line says that a
/// task is gone.
#[test]
fn whoever_is_left_on_a_terminal_has_the_lines_without_a_number() {
    let l = log("openat(AT_FDCWD, \"f\", O_RDWR) = 3\n\
                 vfork(strace: Process 21 attached\n\
                 \x20<unfinished ...>\n\
                 [pid    20] <... vfork resumed>) = 21\n\
                 [pid    20] exit_group(0) = ?\n\
                 [pid    20] +++ exited with 0 +++\n\
                 fsync(3) = 0\n\
                 clone(flags=SIGCHLDstrace: Process 22 attached\n\
                 , child_tidptr=0x7f) = 22\n\
                 [pid    22] pwrite64(3, \"z\", 1, 0) = 1\n\
                 [pid    22] exit_group(0) = ?\n\
                 pwrite64(3, \"z\", 1, 0) = 1\n\
                 exit_group(0) = ?\n\
                 +++ exited with 0 +++\n");
    assert_eq!(did(&l), [(20, None, [0, 0]), (21, Some(0), [1, 1]), (22, Some(1), [1, 0])]);
    let l = log("fsync(3strace: Process 21 attached\nstrace: Process 22 attached\n) = 0\n");
    assert_eq!((l.tasks.len(), l.calls), (1, 1));
}

#[test]
fn children_with_the_numbers_of_another_namespace_are_found() {
    // The child's first line comes while its birth is under way …
    let l = log("10 vfork( <unfinished ...>\n\
                 11 openat(AT_FDCWD, \"a\", O_RDONLY) = 3\n\
                 10 <... vfork resumed>) = 2\n\
                 10 wait4(-1,  <unfinished ...>\n\
                 11 +++ exited with 0 +++\n\
                 10 <... wait4 resumed>NULL, 0, NULL) = 2\n");
    assert_eq!(family(&l), [(10, None), (11, Some(0))]);
    assert_eq!(acts(&l, 0), [Act::Child { task: 1 }, Act::Join { task: 1 }]);
    // … or after it.
    let l = log("10 clone(flags=SIGCHLD) = 2\n\
                 10 clone(flags=SIGCHLD) = 3\n\
                 11 openat(AT_FDCWD, \"a\", O_RDONLY) = 3\n\
                 12 openat(AT_FDCWD, \"b\", O_RDONLY) = 3\n\
                 10 wait4(3, NULL, 0, NULL) = 3\n\
                 10 wait4(2, NULL, 0, NULL) = 2\n");
    assert_eq!(family(&l), [(10, None), (11, Some(0)), (12, Some(0))]);
    let made = [Act::Child { task: 1 }, Act::Child { task: 2 }];
    assert_eq!(acts(&l, 0), [made[0], made[1], Act::Join { task: 2 }, Act::Join { task: 1 }]);
}

#[test]
fn nobody_is_made_by_those_who_descend_from_it() {
    let l = log("12 fork() = 13\n13 fork() = 12\n");
    assert_eq!(acts(&l, 0), [Act::Child { task: 1 }]);
    assert_eq!(acts(&l, 1), []);
    assert!(l.warnings[0].starts_with("line 2: process 13 made 12"), "{:?}", l.warnings);
    let l = log("12 fork() = 12\n");
    assert_eq!(acts(&l, 0), []);
    // A number that is given again is another process.
    let l = log("12 fork() = 13\n12 fork() = 13\n");
    assert_eq!(acts(&l, 0), [Act::Child { task: 1 }, Act::Child { task: 2 }]);
}

#[test]
fn without_think_times_children_begin_at_once() {
    let text = "12 1700000000.000001 fork() = 13 <0.000001>\n\
                13 1700000009.000000 getpid() = 13 <0.000001>\n";
    let think = |think| {
        let l = parse("x", text, Options { think, ..Options::default() }).unwrap();
        l.tasks[1].steps[0].think
    };
    assert_eq!((think(true), think(false)), (8_999_999_000, 0));
}

#[test]
fn a_call_in_which_a_task_is_killed_is_counted() {
    let open = "1 openat(AT_FDCWD, \"f\", O_RDWR) = 3\n";
    let l = log(&format!("{open}1 fsync(3 <unfinished ...>\n1 +++ killed by SIGKILL +++\n"));
    let said = "1 call had not come back when the log or its task ended: left out";
    assert!(l.warnings.iter().any(|w| w == said), "{:?}", l.warnings);
    // An end is no call that is missing.
    let l = log(&format!("{open}1 exit_group(0 <unfinished ...>\n1 +++ exited with 0 +++\n"));
    assert!(!l.warnings.iter().any(|w| w.contains("come back")), "{:?}", l.warnings);
}
