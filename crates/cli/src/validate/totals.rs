//! The summary of a validation: errors, processes' shares, and the order of the schedulers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use iosched_report::terminal::{Align, Cell, Grid};
use iosched_results::stats::quantile;
use iosched_sim::validate::{PAGE_CACHE, PROGRAMS, Row};

use super::table::percent;
use crate::tables::columns;

/// Metrics in the order in which they are shown.
const METRICS: [&str; 18] = [
    "iops",
    "bw",
    "clat_mean",
    "clat_p50",
    "clat_p99",
    "sync_mean",
    "lat_mean",
    "lat_p50",
    "lat_p99",
    "cpu",
    "elapsed",
    "op_mean",
    "op_p99",
    "requests",
    "bytes",
    "flushes",
    "commits",
    "throughput",
];
/// How large a difference still counts as the same share, and from when schedulers count as different.
const TENTH: f64 = 0.1;

/// The summary. Jobs around the page cache and through it are judged apart: other code of the kernel moves their data.
pub(super) fn render(rows: &[Row]) -> String {
    let (programs, jobs): (Vec<Row>, Vec<Row>) =
        rows.iter().cloned().partition(|r| r.set == PROGRAMS);
    if programs.is_empty() {
        return of_jobs(rows);
    }
    let programs = format!("Programs:\n{}", summary(&programs));
    if jobs.is_empty() { programs } else { format!("{}\n{programs}", of_jobs(&jobs)) }
}

fn of_jobs(rows: &[Row]) -> String {
    let (cached, direct): (Vec<Row>, Vec<Row>) =
        rows.iter().cloned().partition(|r| r.set == PAGE_CACHE);
    if cached.is_empty() {
        return summary(rows);
    }
    let jobs: BTreeSet<&str> = cached.iter().map(|r| r.job.as_str()).collect();
    let jobs = jobs.into_iter().collect::<Vec<_>>().join(", ");
    let through = format!("Through the page cache ({jobs}):\n{}", summary(&cached));
    match direct[..] {
        [] => through,
        _ => format!("Direct I/O:\n{}\n{through}", summary(&direct)),
    }
}

fn summary(rows: &[Row]) -> String {
    let mut out = errors(rows);
    let shares = shares(rows);
    if !shares.is_empty() {
        out.push_str("Runs in which every process' share of the IOPS is within 10 %:\n");
        for (scheduler, (within, all)) in shares {
            let _ = writeln!(out, "  {scheduler:<12} {within} of {all}");
        }
    }
    let pairs = pairs(rows);
    if pairs.differ > 0 {
        let Pairs { differ, same_order } = pairs;
        let what = if on_files(rows) { "IOPS or time" } else { "IOPS" };
        let _ = writeln!(
            out,
            "Pairs of schedulers that differ by more than 10 % in the kernel's {what}: {differ},\n\
             {same_order} of them in the same order here"
        );
    }
    out
}

/// For each scheduler the runs with several processes in which all have their share, and all such runs.
fn shares(rows: &[Row]) -> BTreeMap<&str, (usize, usize)> {
    let mut runs: BTreeMap<[&str; 4], BTreeMap<&str, [f64; 2]>> = BTreeMap::new();
    for r in rows.iter().filter(|r| r.metric == "iops" && r.section != "*") {
        let run = runs.entry([&r.scheduler, &r.device, &r.job, &r.fs]).or_default();
        let process = run.entry(&r.section).or_default();
        process[0] += r.kernel;
        process[1] += r.ours;
    }
    let mut all: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for ([scheduler, ..], processes) in &runs {
        let sum = |i: usize| processes.values().map(|p| p[i]).sum::<f64>();
        let sums = [sum(0), sum(1)];
        let same = |p: &[f64; 2]| {
            let [kernel, ours] = [p[0] / sums[0], p[1] / sums[1]];
            (ours - kernel).abs() <= TENTH * kernel
        };
        let count = all.entry(scheduler).or_default();
        count.0 += usize::from(processes.values().all(same));
        count.1 += 1;
    }
    all
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Pairs {
    differ: usize,
    same_order: usize,
}

/// Whether the rows are of programs and jobs on file systems, which are told apart by their sets.
fn on_files(rows: &[Row]) -> bool {
    rows.iter().any(|r| !r.fs.is_empty())
}

/// Pairs of schedulers in one device and job that differ in the kernel: by the IOPS of the run, on file systems by those of
/// each job, or by the time of a program.
fn pairs(rows: &[Row]) -> Pairs {
    type Run<'a> = [&'a str; 6];
    let mut runs: BTreeMap<Run<'_>, Vec<[f64; 2]>> = BTreeMap::new();
    let decides = |r: &&Row| match r.metric {
        "iops" => r.section == "*" || !r.fs.is_empty(),
        metric => metric == "elapsed",
    };
    for r in rows.iter().filter(decides) {
        let run = [&r.device, &r.job, &r.fs, &r.section, r.op, r.metric];
        runs.entry(run).or_default().push([r.kernel, r.ours]);
    }
    let mut all = Pairs::default();
    for run in runs.values() {
        for (i, a) in run.iter().enumerate() {
            for b in &run[i + 1..] {
                let (low, high) = if a[0] < b[0] { (a, b) } else { (b, a) };
                if high[0] > low[0] * (1.0 + TENTH) {
                    all.differ += 1;
                    all.same_order += usize::from(high[1] > low[1]);
                }
            }
        }
    }
    all
}

/// Median and worst error by scheduler and metric, on file systems by set and file system. Rates count whole runs, latencies
/// each process.
fn errors(rows: &[Row]) -> String {
    let mut groups: BTreeMap<(String, usize), Vec<&Row>> = BTreeMap::new();
    for r in rows {
        let whole = r.section == "*";
        // Figures of a real machine exist for whole runs only.
        let rate = matches!(r.metric, "iops" | "bw" | "cpu") || r.metric.starts_with("lat_");
        let Some(metric) = METRICS.iter().position(|m| *m == r.metric) else { continue };
        if r.set == PROGRAMS {
            groups.entry((r.scheduler.clone(), metric)).or_default().push(r);
        } else if !r.fs.is_empty() {
            groups.entry((format!("{} {}", r.set, r.fs), metric)).or_default().push(r);
        } else if whole == rate {
            groups.entry((r.scheduler.clone(), metric)).or_default().push(r);
        }
    }
    let files = on_files(rows) && rows.iter().all(|r| r.set != PROGRAMS);
    let mut grid = Grid::new()
        .lead(2)
        .whole()
        .column(if files { "set" } else { "scheduler" }, Align::Left)
        .column("metric", Align::Left)
        .column("figures", Align::Right)
        .column("median |error|", Align::Right)
        .column("worst", Align::Right)
        .column("in", Align::Left);
    for ((group, metric), mut rows) in groups {
        rows.sort_by(|a, b| a.error.abs().total_cmp(&b.error.abs()));
        let sorted: Vec<f64> = rows.iter().map(|r| r.error.abs()).collect();
        let (Some(median), Some(worst)) = (quantile(&sorted, 0.5), rows.last()) else { continue };
        let process =
            if worst.section == "*" { String::new() } else { format!(" {}", worst.section) };
        let scheduler = if files { format!("/{}", worst.scheduler) } else { String::new() };
        grid.row(vec![
            Cell::new(group),
            Cell::new(METRICS[metric]),
            Cell::new(rows.len().to_string()),
            Cell::new(format!("{:.3} %", median * 100.0)),
            Cell::new(percent(worst.error)),
            Cell::new(format!("{}/{}{scheduler}{process}", worst.device, worst.job)),
        ]);
    }
    grid.render(columns(), false) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(scheduler: &str, section: &str, kernel: f64, ours: f64) -> Row {
        Row {
            device: "hdd".into(),
            job: "mix".into(),
            fs: String::new(),
            set: String::new(),
            section: section.into(),
            op: "read",
            scheduler: scheduler.into(),
            metric: "iops",
            kernel,
            ours,
            error: ours / kernel - 1.0,
        }
    }

    #[test]
    fn a_share_counts_and_not_the_rate() {
        let double = [row("bfq", "a#0", 100.0, 200.0), row("bfq", "b#0", 50.0, 100.0)];
        assert_eq!(shares(&double)["bfq"], (1, 1));
        let moved = [row("bfq", "a#0", 100.0, 85.0), row("bfq", "b#0", 50.0, 65.0)];
        assert_eq!(shares(&moved)["bfq"], (0, 1));
    }

    /// Each has a summary of its own: a wrong figure of one must not stand for the other.
    #[test]
    fn jobs_through_the_page_cache_are_summed_up_apart() {
        let cached = |ours| Row {
            job: "buf".into(),
            set: PAGE_CACHE.into(),
            ..row("bfq", "*", 100.0, ours)
        };
        let direct = row("bfq", "*", 100.0, 101.0);
        let both = render(&[direct.clone(), cached(50.0)]);
        let (first, second) = both.split_once("Through the page cache (buf):\n").unwrap();
        assert!(first.starts_with("Direct I/O:\n") && first.contains("+1.00 %"), "{both}");
        assert!(!first.contains("-50.00 %") && second.contains("-50.00 %"), "{both}");
        assert!(!render(&[direct]).contains("irect"));
        assert!(render(&[cached(50.0)]).starts_with("Through"));
    }

    /// Narrow terminals get two tables; each says which figure a line is about.
    #[test]
    fn each_part_of_the_list_names_the_metric() {
        let mut long = row("mq-deadline", "*", 100.0, 101.0);
        long.job = "n processes at depth 128 on 10 cores (n=256)".into();
        let out = errors(&[long]);
        let places: Vec<&str> = out.lines().filter(|l| l.starts_with("mq-deadline")).collect();
        assert!(places.iter().all(|l| l.contains(" iops")), "{out}");
    }

    /// A job on a file system is judged by set, with the IOPS of each of its sections; time is better when less.
    #[test]
    fn rows_on_file_systems_are_summed_up_by_set() {
        let on_files = |scheduler, metric, kernel, ours| Row {
            fs: "xfs".into(),
            set: "B".into(),
            metric,
            ..row(scheduler, "w", kernel, ours)
        };
        let rows = [
            on_files("kyber", "iops", 100.0, 150.0),
            on_files("bfq", "iops", 50.0, 60.0),
            on_files("kyber", "elapsed", 50.0, 60.0),
            on_files("bfq", "elapsed", 100.0, 55.0),
        ];
        let out = summary(&rows);
        assert!(out.contains("B xfs") && out.contains("hdd/mix/kyber w"), "{out}");
        assert!(out.contains("IOPS or time: 2,\n1 of them"), "{out}");
    }

    #[test]
    fn order_counts_where_the_kernel_differs() {
        let rows = [
            row("none", "*", 100.0, 100.0),
            row("kyber", "*", 105.0, 90.0),
            row("bfq", "*", 200.0, 95.0),
        ];
        assert_eq!(pairs(&rows), Pairs { differ: 2, same_order: 1 });
    }
}
