//! Our reading beside blkparse's own sums of the same recording.

use std::io::Read;

use iosched_trace::{Io, open, unpack};
use iosched_types::Op;

use crate::{files, read};

/// The figures behind a name in blkparse's table of all CPUs: count and KiB.
fn blkparse(name: &str) -> (u64, u64) {
    let input = files(&["blkparse.txt.xz"]).remove(0);
    let mut text = String::new();
    unpack::unpack(input.from).unwrap().all.read_to_string(&mut text).unwrap();
    let total = text.split_once("Total (").unwrap().1;
    let rest = total.split_once(&format!("{name}:")).unwrap().1;
    let mut numbers = rest.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty());
    let count = numbers.next().unwrap().parse().unwrap();
    (count, numbers.next().unwrap().trim_end_matches("KiB").parse().unwrap())
}

fn sum(ios: &[Io], op: Op, done: bool) -> (u64, u64) {
    let of = ios.iter().filter(|io| {
        // blkparse counts an empty flush as a write.
        let write = if io.op == Op::Flush { Op::Write } else { io.op };
        write == op && (!done || io.done.is_some())
    });
    let (mut count, mut bytes) = (0, 0);
    for io in of {
        count += 1;
        bytes += io.len;
    }
    (count, bytes / 1024)
}

#[test]
fn binary_and_text_have_blkparse_s_own_sums() {
    for names in [&["loop0.blktrace.0", "loop0.blktrace.1"][..], &["blkparse.txt.xz"]] {
        let (ios, tables) = read(open(files(names), None).unwrap()).unwrap();
        assert_eq!(sum(&ios, Op::Read, false), blkparse("Reads Queued"), "{names:?}");
        assert_eq!(sum(&ios, Op::Write, false), blkparse("Writes Queued"), "{names:?}");
        // Parts of split bios count one by one there: bytes are the same.
        assert_eq!(sum(&ios, Op::Read, true).1, blkparse("Reads Completed").1, "{names:?}");
        assert_eq!(sum(&ios, Op::Write, true).1, blkparse("Writes Completed").1, "{names:?}");
        assert_eq!((tables.tally.unfinished, tables.tally.dropped()), (0, 0), "{names:?}");
    }
}

#[test]
fn binary_and_text_give_the_same_ios() {
    let (binary, _) =
        read(open(files(&["loop0.blktrace.0", "loop0.blktrace.1"]), None).unwrap()).unwrap();
    let (text, _) = read(open(files(&["blkparse.txt.xz"]), None).unwrap()).unwrap();
    assert_eq!(binary.len(), text.len());
    for (b, t) in binary.iter().zip(&text) {
        assert_eq!(b, t);
    }
}

/// The trace points of one kernel, read from three tools' text of loads that are alike.
#[test]
fn trace_points_have_tasks_priorities_and_latencies() {
    for name in ["ftrace.txt.zst", "trace-cmd.txt.gz", "perf.txt.bz2"] {
        let (ios, tables) = read(open(files(&[name]), None).unwrap()).unwrap();
        let fio: Vec<_> = ios
            .iter()
            .filter(|io| {
                tables.tasks.text(io.task) == "fio" && tables.disks.text(io.disk).starts_with("7,")
            })
            .collect();
        assert!(fio.len() > 200, "{name}: {}", fio.len());
        assert!(fio.iter().all(|io| io.done.is_some() && io.issued.is_some()), "{name}");
        let urgent = fio.iter().filter(|io| io.prio.to_string() == "rt/2");
        assert!(urgent.clone().count() > 20, "{name}");
        assert!(urgent.clone().all(|io| io.op != Op::Read), "{name}");
        assert_eq!(tables.tally.dropped(), 0, "{name}: {:?}", tables.tally.skipped);
    }
}
