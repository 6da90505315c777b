//! The forms in which logs are passed on: ended by Ctrl-C, with the tables of `-C`, quoted.

use iosched_workloads::strace::{Act, Log, Options, parse, recognise};

use super::{acts, log};

fn pwrites(l: &Log) -> usize {
    let steps = l.tasks.iter().flat_map(|t| &t.steps);
    steps.filter(|s| matches!(s.act, Act::Pwrite { .. })).count()
}

/// Ends of logs of strace 6.1, `-f -tt -T -p`, `-f -y -p` and `-r -p`, ended by SIGINT.
#[test]
fn a_log_ends_where_strace_lets_go() {
    let calls = "18:39:24.779269 pwrite64(3</a>, \"xx\"..., 4096, 53248) = 4096 <0.000034>\n";
    let sleep =
        "18:39:24.8 clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, {tv_sec=5, tv_nsec=2}, ";
    let sync = "18:39:24.779355 fdatasync(3</a>";
    let gone = "strace: Process 28980 detached";
    for (end, left) in [
        // The last to be let go of stands behind it.
        (format!("[pid 28980] {sync}{gone}\n <detached ...>\nstrace: Process 29041 detached\n"), 1),
        // All are let go of before the line goes on.
        (
            format!("[pid 28980] {sleep}{gone}\nstrace: Process 29041 detached\n <detached ...>\n"),
            1,
        ),
        (format!("{sleep}{gone}\n <detached ...>\n"), 1),
        (format!("{sleep}^C{gone}\n <detached ...>\n"), 1),
        (format!("{sleep}^C <unfinished ...>\n"), 1),
        (
            format!(
                "{sleep}^C{{tv_sec=3, tv_nsec=1}}) = ? ERESTART_RESTARTBLOCK (Interrupted) <1.2>\n"
            ),
            0,
        ),
        (format!("^C{gone}\n <detached ...>\n"), 0),
        // Before 4.9.
        (format!("{sleep}Process 28980 detached\n <detached ...>\n"), 1),
        // The end was not copied.
        (format!("{sleep}{gone}\n"), 1),
        (format!("{sleep}{gone}\n{calls}"), 1),
    ] {
        let text = format!("strace: Process 28980 attached\n{calls}{end}");
        assert!(recognise(&text));
        let l = log(&text);
        assert!(pwrites(&l) >= 1 && l.tasks.len() == 1, "{text}{:?}", l.tasks);
        let told = l.warnings.iter().any(|w| w.contains("1 call had not come back"));
        assert_eq!(told, left == 1, "{text}{:?}", l.warnings);
        assert!(l.warnings.iter().all(|w| !w.contains("in the middle")), "{:?}", l.warnings);
    }
}

#[test]
fn a_child_that_is_attached_inside_of_a_line_is_still_one() {
    let l =
        log("clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLDstrace: Process 8 attached\n\
                 , child_tidptr=0x7f) = 8\n\
                 [pid 8] creat(\"a\", 0644strace: Process 7 detached\n <detached ...>\n\
                 strace: Process 8 detached\n");
    assert_eq!((l.tasks.len(), l.tasks[1].parent), (2, Some(0)));
    let cut = parse(
        "x",
        "close(3) = 0\nclone(flags=SIGCHLDstrace: Process 8 attached\n",
        Options::default(),
    );
    let said = cut.unwrap_or_else(|d| panic!("{d}")).warnings.join("\n");
    assert!(said.contains("in the middle of line 2"), "{said}");
}

const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 93.80    0.007267         117        62           fdatasync
  0.19    0.000015           1        11        10 ioctl
------ ----------- ----------- --------- --------- ----------------
100.00    0.007747          24       316        15 total
";

#[test]
fn the_tables_of_c_are_no_calls() {
    let calls = "1 pwrite64(3</a>, \"x\", 1, 0) = 1\n1 fsync(3</a>) = 0\n";
    let columns = TABLE.replace("% time     seconds", "calls");
    for table in
        [TABLE.to_string(), format!("System call usage summary for 32 bit mode:\n{TABLE}"), columns]
    {
        let text = format!("{calls}{table}{calls}");
        assert!(recognise(&text));
        assert_eq!(pwrites(&log(&text)), 2, "{table}");
    }
    // Cut behind the table's first lines.
    let cut: String = TABLE.lines().take(3).flat_map(|l| [l, "\n"]).collect();
    assert_eq!(pwrites(&log(&format!("{calls}{cut}"))), 1);
    // A log of -c has nothing else.
    assert!(recognise(TABLE));
    let e = parse("x", TABLE, Options::default()).unwrap_err().to_string();
    assert!(e.contains("strace -c counts calls") && e.contains("-ttt -T -o"), "{e}");
}

#[test]
fn quoted_logs_are_logs() {
    let text = "Bob wrote:\n\
                > $ strace -f -k -p 1\n\
                > 1 pwrite64(3</a>, \"x > y\", 5, 0) = 5\n\
                >  > /usr/lib/libc.so.6(pwrite64+0x14) [0xf9a24]\n\
                >\n\
                > 1 fsync(3</a>strace: Process 1 detached\n\
                >  <detached ...>\n\
                It is slow.\n";
    assert!(recognise(text));
    assert_eq!(acts(&log(text), 0).len(), 1, "{:?}", log(text).warnings);
    let twice: String = text.lines().flat_map(|l| ["> ", l, "\n"]).collect();
    assert_eq!(log(&twice).tasks, log(text).tasks);
    let fenced = "> ```\n> close(3) = 0\n> fsync(4</a>) = 0\n> ```\n> and so on\n";
    assert!(recognise(fenced) && acts(&log(fenced), 0).len() == 1);
    let job = "> [a]\n> rw=read\n> size=1m\n";
    assert!(!recognise(job));
}
