//! Every program that can be named, both ways.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::OpenOptionsExt;

use iosched_block::CpuModel;
use iosched_host::programs::Measured;
use iosched_workloads::programs::{Descriptor, PROGRAMS};
use rustix::fs::OFlags;

use super::beside::{Both, Calls, live, same, simulated};

/// Lines of parameters that make a program short.
struct Row {
    program: &'static str,
    alike: Alike,
    lines: &'static [&'static str],
}

/// How far a program is the same with real calls and in the simulator.
#[derive(Clone, Copy)]
enum Alike {
    /// Call by call in each task, with all answers.
    Calls,
    /// In how often each task makes each call, in bytes and in figures. Why not call by call:
    Counts(&'static str),
    /// In which figures it has. Why not in its calls:
    Figures(&'static str),
}

/// Reasons.
const ORDER: &str = "it takes names in the order in which a directory has them";
const SUMS: &str = "it adds up times in shared memory";
const FIRST: &str = "which of its tasks comes first is chance";
const TIMED: &str = "it does as much as its time lets it";
const SLEEPERS: &str = "who syncs for whom, and how often a writer looks, is a matter of time";

const fn row(program: &'static str, alike: Alike, lines: &'static [&'static str]) -> Row {
    Row { program, alike, lines }
}

/// At least one row for each program.
const ROWS: &[Row] = &[
    row("rd", Alike::Calls, &["mmap small 4096 0 4096 20 2M"]),
    row("fsops", Alike::Calls, &["create_fsync dir 2 4 4096 1"]),
    row("relay", Alike::Calls, &["3 4 4096 50"]),
    row(
        "sqlite",
        Alike::Calls,
        &["6 2", "6 2 truncate normal", "6 1 persist off", "6 2 wal full 4096"],
    ),
    row("fs-mark", Alike::Counts(SUMS), &["5 20000", "4 9000 3 2 4 2", "4 9000 1 0 5"]),
    row("postmark", Alike::Calls, &["20 200 500 20000"]),
    row("pg-test-fsync", Alike::Figures(TIMED), &["1"]),
    row("iozone", Alike::Counts(SUMS), &["200k 64k 1 read", "200k 64k 1 write 0 1"]),
    row("file-copy", Alike::Calls, &["3M 2"]),
    row("dbench", Alike::Figures(TIMED), &["2 1 0"]),
    row("compilebench", Alike::Counts(ORDER), &["1 1 1"]),
    row("pgbench", Alike::Figures(SLEEPERS), &["2 8 60 30", "2 4 60 1000 tpcb 16M 1 1 300 32M 1"]),
    row("kernel-compile", Alike::Calls, &["1 6 1 10000 100 0"]),
    row("php-compile", Alike::Calls, &["1 6 1 10000"]),
    row("nginx", Alike::Calls, &["50 1 1"]),
    row("apache", Alike::Calls, &["50 1 1"]),
    row("apache", Alike::Figures(FIRST), &["200 20 5"]),
    row("kernel-tasks", Alike::Calls, &["checkout 0 0 1M 60 1"]),
    row("kernel-tasks", Alike::Counts(FIRST), &["grep 0 0 1M 60 1"]),
    row("kernel-tasks", Alike::Figures(TIMED), &["make 0 0 1M 1 1", "merge 1 1 1M 60 1"]),
    row("startup", Alike::Counts(FIRST), &["bash 0r 2 60 0 1M"]),
    row("video", Alike::Figures(TIMED), &["0r 1 24k 0 5 1 1M 0 none"]),
    row("interleaved", Alike::Figures(TIMED), &["2 16k 16k 1 1M"]),
];

/// Programs that open a file with `O_DIRECT`, which not every file system takes.
const DIRECT: &[&str] = &["pg-test-fsync", "startup", "interleaved"];

#[test]
fn no_program_is_without_a_row() {
    let rows: BTreeSet<_> = ROWS.iter().map(|r| r.program).collect();
    let all: BTreeSet<_> = PROGRAMS.iter().map(|d| d.name).collect();
    assert_eq!(rows, all, "left are the rows of {}, right the programs", file!());
    assert!(ROWS.iter().all(|r| !r.lines.is_empty()));
    assert!(DIRECT.iter().all(|name| all.contains(name)));
}

#[test]
fn programs_make_the_same_calls() {
    each(|alike| matches!(alike, Alike::Calls), |line, _, make| same(line, make));
}

#[test]
fn programs_make_each_call_as_often() {
    each(
        |alike| matches!(alike, Alike::Counts(_)),
        |line, why, make| {
            let [a, b] = both(line, &make, CpuModel::Zero);
            assert_eq!(counts(&a), counts(&b), "{line} ({why}); left is live");
            assert_eq!(figures(&a.0), figures(&b.0), "{line}; left is live");
        },
    );
}

#[test]
fn programs_that_go_by_the_clock_have_the_same_figures() {
    each(
        |alike| matches!(alike, Alike::Figures(_)),
        |line, why, make| {
            // Looks and calls take time, as an end by the clock would never come otherwise.
            let [a, b] = both(line, &make, CpuModel::Cost).map(|(measured, _)| figures(&measured));
            assert_eq!(a, b, "{line} ({why}); left is live");
            let (descriptor, _) = Descriptor::from_command_line(line).unwrap();
            let own: BTreeSet<_> = descriptor.figures.iter().map(|f| f.name).collect();
            assert!(!a.is_empty() && a.is_subset(&own), "{line}: {a:?}");
        },
    );
}

/// Runs `check` on each line of the rows of a kind: with the line, the reason of the row and the program.
fn each(of: impl Fn(Alike) -> bool, check: impl Fn(&str, &str, &dyn Fn() -> Both)) {
    for row in ROWS.iter().filter(|row| of(row.alike)) {
        if DIRECT.contains(&row.program) && !takes_direct() {
            println!("SKIPPED: {}: temporary files take no O_DIRECT", row.program);
            continue;
        }
        let why = match row.alike {
            Alike::Calls => "",
            Alike::Counts(why) | Alike::Figures(why) => why,
        };
        for parameters in row.lines {
            let line = format!("{} {parameters}", row.program);
            let (d, p) = Descriptor::from_command_line(&line).unwrap();
            check(&line, why, &|| Both { prepare: d.preparation(&p), run: d.measured(&p) });
        }
    }
}

fn takes_direct() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let mut options = std::fs::OpenOptions::new();
    let direct = options.write(true).create(true).custom_flags(OFlags::DIRECT.bits().cast_signed());
    direct.open(dir.path().join("file")).is_ok()
}

type Run = (Measured, Calls);

fn both(line: &str, make: &dyn Fn() -> Both, cpu: CpuModel) -> [Run; 2] {
    [live(make()), simulated(make(), cpu)]
        .map(|(measured, calls)| (measured.unwrap_or_else(|e| panic!("{line}: {e}")), calls))
}

/// How often each task made each call, and the bytes of all reads and writes.
fn counts((measured, calls): &Run) -> (BTreeMap<(&str, &str), u64>, [u64; 2]) {
    let mut kinds = BTreeMap::new();
    for (task, calls) in calls {
        for call in calls {
            let kind = call.split(' ').next().unwrap_or_default();
            *kinds.entry((&**task, kind)).or_default() += 1;
        }
    }
    let bytes =
        measured.tasks.values().fold([0; 2], |sum, t| [sum[0] + t.read.1, sum[1] + t.write.1]);
    (kinds, bytes)
}

fn figures(m: &Measured) -> BTreeSet<&'static str> {
    m.figures.iter().map(|(name, _)| *name).collect()
}
