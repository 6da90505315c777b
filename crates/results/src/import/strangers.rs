//! Outputs that have no figures to compare, known by name so that the answer can say what to do instead.

use iosched_types::Diagnostic;

/// What is known of them: name, how it is recognised, what to do.
type Known = (&'static str, fn(&str, &[&str]) -> bool, &'static str);

const REPLAY: &str = "a trace has no result to compare: `iosched trace info FILE` says what is in it, and `iosched trace convert FILE -o \
    FILE.log` makes a log that a fio job replays (read_iolog=FILE.log)";
const OBSERVES: &str =
    "it observes a machine and is no result of a run: measure with fio, and import fio's JSON";

const CSV: &str = "its figures are not read: put them into CSV with the columns scheduler, workload, metric, unit, value";

const ALL: [Known; 23] = [
    (
        "the output of test_fsync, PostgreSQL 9.0 or older",
        |t, l| {
            t.contains("Simple write timing:") && t.contains("sync")
                || l.iter().any(|l| l.trim_end().ends_with("/second")) && t.contains("sync")
        },
        "it counts otherwise than newer ones: run pg_test_fsync of PostgreSQL 9.1 or newer, and import what it prints",
    ),
    (
        "a binary trace of blktrace",
        |t, _| t.starts_with("\u{7}tae") || t.starts_with("eat\u{7}") || t.contains("\u{7}tae"),
        REPLAY,
    ),
    ("a trace of blkparse", |_, l| most(l, blkparse), REPLAY),
    ("a summary of btt", |t, _| t.contains("==================== All Devices"), OBSERVES),
    (
        "an I/O log of fio",
        |_, l| l.first().is_some_and(|l| l.starts_with("fio version ") && l.contains("iolog")),
        "it is a load, not a result: a job with read_iolog=FILE replays it (`iosched run JOB.fio`)",
    ),
    (
        "a log of bandwidth, IOPS or latency of fio",
        |_, l| most(l, fio_log),
        "import fio's own report: --output-format=json+ --output=FILE has the figures of the whole run",
    ),
    (
        "biosnoop's output",
        |t, _| {
            t.contains("COMM") && t.contains("SECTOR") && t.contains("BYTES") && t.contains("DISK")
        },
        REPLAY,
    ),
    (
        "a histogram of biolatency or bpftrace",
        |t, _| t.contains("distribution") && t.contains("|*") || t.contains(" |@"),
        OBSERVES,
    ),
    (
        "the output of a bpftrace script",
        |t, _| t.lines().any(attaching),
        "its columns are the script's own: `iosched record` records a disk's I/O, and `iosched trace` reads traces of \
            blkparse, biosnoop and tracefs",
    ),
    (
        "a trace of the kernel's tracefs",
        |t, _| t.contains("block_rq_") && t.contains(": block_"),
        REPLAY,
    ),
    (
        "iostat's output",
        |t, _| {
            t.contains("%util")
                || t.contains("\"sysstat\"")
                || t.contains("Blk_read/s")
                || t.contains("kB_read/s")
        },
        OBSERVES,
    ),
    (
        "iotop's output",
        |t, _| {
            let head = |l: &str| l.contains("DISK READ") && l.contains("DISK WRITE");
            t.lines().any(head) && (t.contains("Total DISK READ") || t.contains("PRIO"))
        },
        OBSERVES,
    ),
    (
        "filebench's output",
        |t, _| t.contains("Filebench Version") || t.contains("IO Summary:") && t.contains("ops/s"),
        CSV,
    ),
    (
        "stress-ng's output",
        |t, _| t.contains("stress-ng: ") || t.contains("stress-ng-version:"),
        "bogo operations of different stressors are not the same work; a fio job has figures to compare: import its JSON",
    ),
    ("a table of CrystalDiskMark", |t, _| t.contains("CrystalDiskMark"), CSV),
    ("vmstat's output", |t, _| t.contains("procs -----------memory"), OBSERVES),
    ("diskstats of the kernel", |_, l| most(l, diskstats), OBSERVES),
    ("vdbench's output", |t, _| t.contains("Vdbench") || t.contains("avg_2-"), CSV),
    (
        "ioping's output",
        |t, l| {
            let words = ["ioping statistics", "requests completed in"];
            words.iter().any(|w| t.contains(w)) || t.contains("cmd: ioping ") || most(l, ioping)
        },
        "it is no load that a scheduler can order; a fio job with iodepth=1 and rw=randread measures the same: import its JSON",
    ),
    (
        "hdparm's output",
        |t, _| t.contains("Timing buffered disk reads") || t.contains("Timing cached reads"),
        "one reader without a queue; a fio job with rw=read measures the same: import its JSON",
    ),
    (
        "dd's output",
        |t, _| t.contains("records in") && t.contains("records out"),
        "put the rate into CSV with the columns scheduler, workload, metric, unit, value",
    ),
    (
        "a log of strace",
        |t, _| super::strace(t),
        "it is a load, not a result: `iosched run FILE` replays it",
    ),
    (
        "a fio job",
        |t, _| {
            t.lines().any(|l| l.trim().starts_with('['))
                && t.lines().any(|l| {
                    ["rw=", "readwrite=", "ioengine="].iter().any(|k| l.trim().starts_with(k))
                })
        },
        "it is a load, not a result: `iosched run FILE` runs it",
    ),
];

/// Whether most of the lines are of a kind.
fn most(lines: &[&str], of: fn(&str) -> bool) -> bool {
    let n = lines.iter().filter(|l| of(l)).count();
    n > 0 && 2 * n > lines.len()
}

/// `259,0    1     9482     7.124364072  8699  Q  DS 0 + 1172272 [fio]`.
fn blkparse(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [device, cpu, number, time, pid, action, ..] = words[..] else { return false };
    let digits = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_digit());
    device.split_once(',').is_some_and(|(a, b)| digits(a) && digits(b))
        && digits(cpu)
        && digits(number)
        && digits(pid)
        && time.parse::<f64>().is_ok()
        && time.contains('.')
        && action.len() <= 2
        && action.bytes().all(|b| b.is_ascii_uppercase())
}

/// `Attaching 3 probes...`.
fn attaching(line: &str) -> bool {
    line.trim().strip_prefix("Attaching ").is_some_and(|rest| {
        let (count, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        count.parse::<u32>().is_ok() && rest.starts_with("probe")
    })
}

/// `199 359280228 554 2268714 19320 1805428 5179894 1822513 200 361840149`: ioping -B.
fn ioping(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.len() == 10 && words.iter().all(|w| w.bytes().all(|b| b.is_ascii_digit()))
}

/// `1000, 55296, 0, 0, 0`: time, value, direction, block size.
fn fio_log(line: &str) -> bool {
    let fields: Vec<&str> = line.split(',').collect();
    (4..=6).contains(&fields.len())
        && fields.iter().all(|f| {
            f.trim().trim_start_matches("0x").bytes().all(|b| b.is_ascii_hexdigit())
                && !f.trim().is_empty()
        })
        && matches!(fields[2].trim(), "0" | "1" | "2")
}

/// `254  0 vda 1 2 3 …`.
fn diskstats(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.len() >= 14
        && words.iter().enumerate().all(|(i, w)| i == 2 || w.bytes().all(|b| b.is_ascii_digit()))
        && words[2].starts_with(|c: char| c.is_ascii_alphabetic())
}

/// What a file is that cannot be imported.
pub(super) fn refusal(file: &str, head: &str) -> Option<Diagnostic> {
    if head.trim_matches(['\u{feff}', '\0']).trim().is_empty() {
        let help = "was the measurement stopped before it printed anything?";
        return Some(Diagnostic::file(file, "the file is empty").with_help(help));
    }
    let lines: Vec<&str> = head
        .lines()
        .filter(|l| !l.trim().is_empty() && !l.starts_with("#####"))
        .take(200)
        .collect();
    // The last line of the head may be cut.
    let (name, _, what) = ALL.iter().find(|k| (k.1)(head, &lines))?;
    Some(
        Diagnostic::file(file, format!("this is {name}: nothing of it can be imported"))
            .with_help(*what),
    )
}
