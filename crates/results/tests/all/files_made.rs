//! fs_mark and PostMark.

use crate::imports::{figure, read, refused};

#[test]
fn fs_mark_has_a_figure_of_each_pass() {
    let r = read(("f.txt", include_str!("../data/imports/fs_mark.txt")));
    let names: Vec<&str> = r.iter().map(|r| r.trial.scheduler.as_str()).collect();
    assert_eq!(names, ["mq-deadline", "bfq"]);
    assert_eq!((figure(&r[0], "files, pass 1"), figure(&r[0], "files, pass 2")), (1226.5, 564.0));
    assert_eq!((figure(&r[0], "files"), figure(&r[1], "files")), (895.25, 1192.25));
    assert_eq!(figure(&r[0], "overhead, pass 2"), 6015.0);
    assert_eq!(r[0].provenance["tool"], "fs_mark 3.3");
}

/// fs_mark 3.3 with `-v`.
#[test]
fn fs_mark_tells_of_calls() {
    let text = "\
FSUse%        Count         Size    Files/sec     App Overhead        CREAT (Min/Avg/Max)        FSYNC (Min/Avg/Max)         SYNC (Min/Avg/Max)
    88           20         4096        233.9              354       28       50       84      383     4184    19788        0        0        0
";
    let r = &read(("f.txt", text))[0];
    assert_eq!((figure(r, "CREAT mean, pass 1"), figure(r, "FSYNC max, pass 1")), (50.0, 19788.0));
    assert!(r.metrics.iter().all(|m| !m.name.starts_with("SYNC")), "not called");
    let e = refused(&text.replace("       84 ", " "));
    assert!(e.contains("values for"), "{e}");
    let e = refused("FSUse%        Count         Size    Files/sec     App Overhead\n");
    assert!(e.contains("stopped early"), "{e}");
}

#[test]
fn postmark_has_rates() {
    let r = read(("p.txt", include_str!("../data/imports/postmark.txt")));
    assert_eq!(r.len(), 2);
    for (name, value) in [
        ("transactions", 5000.0),
        ("created", 4432.0),
        ("created, creation alone", 2000.0),
        ("deleted, mixed with transactions", 2568.0),
        ("read", 2510.0),
        ("read data", 29.17),
        ("written data", 52.94),
        ("time", 1.0),
    ] {
        assert_eq!(figure(&r[0], name), value, "{name}");
    }
    let small = "PostMark v1.51 : 8/14/01\nTime:\n\t1 seconds total\n\t1 seconds of transactions (20 per second)\n\
                 Data:\n\t5.24 kilobytes read (5.24 kilobytes per second)\n";
    let r = &read(("p.txt", small))[0];
    let read = r.metrics.iter().find(|m| m.name == "read data").map(|m| (m.value, m.unit.as_str()));
    assert_eq!(read, Some((5.24, "KiB/s")));
    assert!(refused("PostMark v1.51 : 8/14/01\nTime:\n").contains("stopped early"));
}
