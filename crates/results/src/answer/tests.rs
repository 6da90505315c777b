use iosched_engine::stream;
use iosched_experiment::record::{BackendKind, DirStats, JobRecord, Metric, Record, TrialId};

use super::*;
use crate::cells::{charge_starved, group};

fn trial(workload: &str, scheduler: &str, repetition: u32) -> Record {
    Record {
        trial: TrialId {
            device: "disk".into(),
            workload: workload.into(),
            scheduler: scheduler.into(),
            kernel: "6.12".into(),
            repetition,
            ..TrialId::default()
        },
        backend: BackendKind::Real,
        ..Record::default()
    }
}

/// A job that reads or writes `rate` bytes a second in `ios` I/Os of `latency` ns each.
fn side(rate: f64, ios: u64, latency: u64) -> DirStats {
    let mut d = DirStats { ios, bytes: rate as u64, runtime: 1_000_000_000, ..DirStats::default() };
    (0..ios).for_each(|_| d.clat.record(latency));
    d
}

fn with_metric(mut r: Record, name: &str, unit: &str, higher: bool, value: f64) -> Record {
    r.metrics.push(Metric {
        name: name.into(),
        value,
        unit: unit.into(),
        higher_is_better: Some(higher),
        censored: false,
    });
    r
}

fn of(records: &[Record]) -> Vec<Answer> {
    let mut cells = group(records);
    charge_starved([&mut cells]);
    answers(&cells, &candidates_of(records))
}

#[test]
fn core_time_is_no_latency() {
    let mut all = Vec::new();
    for (scheduler, cost) in [("none", 100.0), ("bfq", 50.0)] {
        for i in 1..=3 {
            let mut r = trial("w", scheduler, i);
            let read = side(1e8, 200, 1_000);
            r.jobs.push(JobRecord { name: "a".into(), read, ..JobRecord::default() });
            all.push(with_metric(r, "cpu_fio", "us/IO", false, cost + f64::from(i)));
        }
    }
    let answers = of(&all);
    assert!(goal(&answers, "latency").words.contains("by completion p99 of reads"));
    assert_eq!(goal(&answers, "CPU time").winner.as_deref(), Some("bfq"));
}

#[test]
fn single_values_within_one_percent_are_level_together() {
    let one = |scheduler: &str, value: f64| {
        with_metric(trial("w", scheduler, 1), "seconds", "s", false, value)
    };
    let all = of(&[one("none", 10.0), one("bfq", 10.09), one("kyber", 11.0)]);
    let words = &goal(&all, "run time").words;
    assert!(
        words.starts_with("Level within 1 %: none and bfq (by seconds in 1 workload)"),
        "{words}"
    );
    let apart = of(&[one("none", 10.0), one("bfq", 10.2)]);
    assert!(goal(&apart, "run time").words.starts_with("Lowest: none (−2.0 % against bfq"));
}

#[test]
fn a_figure_that_only_describes_the_run_is_no_goal() {
    let with = |scheduler: &str, value: f64| {
        let mut r = with_metric(trial("w", scheduler, 1), "tps", "1/s", true, value);
        let count = Metric { name: "checkpoints".into(), value, ..Metric::default() };
        r.metrics.push(count);
        r
    };
    let all = of(&[with("none", 10.0), with("bfq", 20.0)]);
    assert_eq!(all.iter().map(|a| a.goal.as_str()).collect::<Vec<_>>(), ["throughput"]);
}

fn goal<'a>(all: &'a [Answer], name: &str) -> &'a Answer {
    all.iter().find(|a| a.goal == name).unwrap_or_else(|| panic!("{name} in {all:?}"))
}

/// Rates of schedulers in some workloads, five runs a percent apart.
fn rates(of: &[(&str, &[f64])]) -> Vec<Record> {
    let mut out = Vec::new();
    for (s, rates) in of {
        for (w, rate) in rates.iter().enumerate() {
            for i in 1..=5 {
                let mut r = trial(&format!("w{w}"), s, i);
                let read = side(rate * (1.0 + f64::from(i % 3) * 0.005), 1, 1_000);
                r.jobs.push(JobRecord { name: "a".into(), read, ..JobRecord::default() });
                out.push(r);
            }
        }
    }
    out
}

#[test]
fn who_is_measurably_ahead_of_all_is_named() {
    let all =
        of(&rates(&[("none", &[1e8, 1e8]), ("bfq", &[1.3e8, 1.2e8]), ("kyber", &[1e8, 1.01e8])]));
    let a = goal(&all, "throughput");
    assert_eq!((a.winner.as_deref(), a.chip), (Some("bfq"), Chip::Measured));
    assert!(
        a.words.starts_with("bfq: +24 % [") && a.words.contains("against kyber"),
        "{}",
        a.words
    );
    assert!(a.notes[0].contains("5 runs of each"), "{:?}", a.notes);
}

/// Trims speak for the throughput only where nothing else is done.
#[test]
fn trims_beside_reads_win_nothing() {
    let with_trims = |reads: bool| {
        let mut all = rates(&[("none", &[1e8]), ("bfq", &[1.3e8])]);
        for r in &mut all {
            let many = if r.trial.scheduler == "none" { 9_000 } else { 1_000 };
            let mut trim = side(many as f64 * 1e6, 1, 1_000);
            trim.ios = many + 10 * u64::from(r.trial.repetition % 3);
            r.jobs.push(JobRecord { name: "t".into(), trim, ..JobRecord::default() });
            if !reads {
                r.jobs.remove(0);
            }
        }
        goal(&of(&all), "throughput").winner.clone()
    };
    assert_eq!(with_trims(true).as_deref(), Some("bfq"));
    assert_eq!(with_trims(false).as_deref(), Some("none"));
}

#[test]
fn one_measure_that_carries_a_lead_is_named() {
    let all = of(&rates(&[("none", &[1e8, 1e8, 1e8]), ("bfq", &[1.5e8, 1e8, 1e8])]));
    let a = goal(&all, "throughput");
    assert_eq!(a.chip, Chip::OneMeasure);
    assert!(a.words.contains("without w0 it is ±0 %"), "{}", a.words);
}

#[test]
fn one_run_proves_nothing() {
    let mut records = rates(&[("none", &[1e8]), ("bfq", &[1.5e8])]);
    records.retain(|r| r.trial.repetition == 1);
    let a = of(&records);
    assert_eq!((a[0].winner.as_deref(), a[0].chip), (None, Chip::NotTestable));
    assert!(a[0].words.starts_with("Highest: bfq"), "{}", a[0].words);
}

#[test]
fn a_starved_reader_counts_against_its_scheduler() {
    // bfq lets the reader through; kyber serves the writer only and has next to no reads to take a percentile of.
    let mut records = Vec::new();
    for (s, reads, latency) in
        [("bfq", 400, 5_000_000), ("none", 300, 9_000_000), ("kyber", 3, 20_000_000)]
    {
        for i in 1..=5u32 {
            let mut r = trial("mixed", s, i);
            let jitter = 1.0 + f64::from(i) * 0.002;
            let read = side(1e6 * jitter, reads, (f64::from(latency) * jitter) as u64);
            let write = side(if s == "kyber" { 1.1e8 } else { 1e8 } * jitter, 200, 1_000);
            r.jobs.push(JobRecord { name: "a".into(), read, write, ..JobRecord::default() });
            records.push(r);
        }
    }
    let all = of(&records);
    let latency = goal(&all, "latency");
    assert_eq!(latency.winner.as_deref(), Some("bfq"));
    assert!(
        latency.notes.iter().any(|n| n.starts_with("kyber starved reads of mixed")),
        "{latency:?}"
    );
    // Throughput is that of the whole workload, not of reads and writes apart; and it has its price.
    let throughput = goal(&all, "throughput");
    assert_eq!(throughput.winner.as_deref(), Some("kyber"));
    let price = "Its price: completion p99 of reads in mixed ~";
    assert!(throughput.notes.iter().any(|n| n.starts_with(price)), "{throughput:?}");
}

/// Under bfq the first job was done before the second began: there is no fairness, which is not starvation.
#[test]
fn jobs_that_did_not_meet_have_no_fairness_to_compare() {
    let all = |apart: bool| {
        let mut records = rates(&[("none", &[1e8]), ("bfq", &[1e8])]);
        for r in &mut records {
            let late = apart && r.trial.scheduler == "bfq";
            let second = JobRecord { name: "b".into(), ..r.jobs[0].clone() };
            r.jobs.push(second);
            for (job, began) in r.jobs.iter_mut().zip([0, if late { 2_000 } else { 0 }]) {
                (job.began, job.ended) = (began, began + 1_000);
            }
        }
        of(&records)
    };
    assert!(all(false).iter().any(|a| a.goal == "fairness"));
    let apart = all(true);
    assert!(apart.iter().all(|a| a.goal != "fairness"), "{apart:?}");
    assert!(apart.iter().flat_map(|a| &a.notes).all(|n| !n.contains("starved")), "{apart:?}");
}

/// Too few reads for a p99 that took 8 s each are no better than the 100 ms of others.
#[test]
fn who_starves_is_charged_at_least_with_its_own_waits() {
    let mut records = Vec::new();
    for (workload, s, reads, ms) in [
        ("mixed", "none", 300, 100),
        ("mixed", "bfq", 3, 8000),
        ("calm", "none", 400, 50),
        ("calm", "bfq", 400, 20),
    ] {
        for i in 1..=5u32 {
            let mut r = trial(workload, s, i);
            let latency = ms * 1_000_000 + u64::from(i) * 1000;
            let read = side(1e6, reads, latency);
            r.jobs.push(JobRecord { name: "a".into(), read, ..JobRecord::default() });
            records.push(r);
        }
    }
    let all = of(&records);
    assert_eq!(goal(&all, "latency").winner.as_deref(), Some("none"), "{all:?}");
}

#[test]
fn schedulers_that_the_kernel_lacks_are_history() {
    let all = of(&rates(&[
        ("none", &[1e8]),
        ("anticipatory@2.6.32", &[2e8]),
        ("bfq", &[1.2e8]),
        ("cfq", &[1e8]),
    ]));
    let a = goal(&all, "throughput");
    assert_eq!(a.winner.as_deref(), Some("bfq"));
    let history = "Not in Linux 6.12: anticipatory@2.6.32 +67 % against bfq";
    assert!(a.notes.iter().any(|n| n == history), "{:?}", a.notes);
    assert_eq!(gone("CFQ", "4.12.0-999"), None);
    assert!(gone("cfq", "6.12").unwrap().contains("lived in"));
    assert_eq!(gone("MQ BFQ", "4.12"), None, "a name that nobody knows is not called gone");
    assert_eq!(gone("cfq", "before 2.6.33"), None);
}

#[test]
fn the_field_stands_better_or_worse_than_the_base() {
    let mut records = rates(&[
        ("none", &[1e8]),
        ("bfq", &[1.2e8]),
        ("kyber", &[1.1e8]),
        ("mq-deadline", &[0.9e8]),
        ("bfq@4.12", &[1.002e8]),
        ("anticipatory@2.6.32", &[2e8]),
    ]);
    let sides = |records: &[Record]| -> Vec<Side> {
        goal(&of(records), "throughput").field.iter().map(|s| s.side).collect()
    };
    let (level, better, worse) = (Side::Level, Side::Better, Side::Worse);
    // History is not judged, and the base is level with itself.
    assert_eq!(sides(&records), [level, better, better, worse, level, level]);
    records.retain(|r| r.trial.repetition == 1);
    assert_eq!(sides(&records), [level; 6], "one value of each");
}

#[test]
fn equal_schedulers_stand_level() {
    let page = |seed: u64| null(seed, 3, 5)[0].field.iter().any(|s| s.side != Side::Level);
    let marked = (0..200).filter(|seed| page(*seed)).count();
    assert!(marked <= 14, "{marked} of 200: a share of 5 %, give or take chance");
}

#[test]
fn a_metric_has_its_own_name() {
    let mut records = Vec::new();
    for (s, cpu, seconds) in [("none", 2.0, 10.0), ("bfq", 4.0, 9.0)] {
        for i in 1..=5u32 {
            let jitter = 1.0 + f64::from(i) * 0.001;
            let r = with_metric(trial("t", s, i), "record 4 k", "CPU%", false, cpu * jitter);
            records.push(with_metric(r, "build", "Seconds", false, seconds * jitter));
        }
    }
    let mut all = of(&records);
    all.iter_mut().for_each(|a| a.words.clear());
    let goals: Vec<&str> = all.iter().map(|a| a.goal.as_str()).collect();
    assert_eq!(goals, ["run time", "CPU%"]);
}

/// Frames that are shown and frames that are dropped.
#[test]
fn one_unit_in_two_directions_is_two_goals() {
    let mut all = Vec::new();
    for (scheduler, shown, dropped) in [("none", 500.0, 400.0), ("bfq", 480.0, 10.0)] {
        for i in 1..=3 {
            let d = f64::from(i);
            let r = with_metric(trial("w", scheduler, i), "frames", "frames", true, shown + d);
            all.push(with_metric(r, "frames dropped", "frames", false, dropped + d));
        }
    }
    let answers = of(&all);
    assert_eq!(goal(&answers, "frames").winner.as_deref(), Some("none"));
    assert_eq!(goal(&answers, "frames dropped").winner.as_deref(), Some("bfq"));
}

/// fsync and reads of one run wait together. Counted as independent figures, they would be surer than they are.
#[test]
fn figures_of_one_run_are_one_run() {
    // Both figures go up and down with the run.
    let runs = [0.9, -1.1, 0.3, -0.6, 0.5];
    let mut records = Vec::new();
    for (s, ahead) in [("none", 0.0), ("bfq", 0.6)] {
        for (i, run) in (1..).zip(runs) {
            let ms = |own: f64| (1e7 * (0.5 * run + own - ahead).exp()) as u64;
            let mut job = JobRecord { name: "a".into(), ..JobRecord::default() };
            (job.read, job.sync) = (side(1e8, 200, ms(0.0)), side(0.0, 200, ms(0.1)));
            let mut r = trial("w", s, i);
            r.jobs.push(job);
            records.push(r);
        }
    }
    let all = of(&records);
    let a = goal(&all, "latency");
    let bfq = a.field.iter().find(|s| s.scheduler == "bfq").unwrap();
    // Welch over five runs a side: sd 0.43, difference 0.6.
    let sd = crate::stats::mean_and_sd(&runs.map(|r| 0.5 * r)).1;
    let t = 0.6 / (sd * (2.0f64 / 5.0).sqrt());
    let p = 2.0 * crate::stats::special::t_cdf(-t, 8.0);
    assert!((bfq.p.unwrap() - p).abs() < 0.01, "{:?}, not {p}", bfq.p);
    assert!(p > 0.05 && a.winner.is_none(), "{a:?}");
}

/// Two figures of each run that depend on each other: at most 5 % of equal schedulers are named.
#[test]
fn dependent_figures_name_no_winner_by_chance() {
    let named = |seed: u64| {
        let mut rng = stream(seed, "dependent");
        let mut normal = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        let (mut cells, mut candidates) = (Cells::default(), Vec::new());
        for s in ["none", "bfq"] {
            candidates.push(Candidate::new("disk", s, s, "6.12"));
            for i in 1..=5 {
                let run = normal();
                let mut r = trial("w", s, i);
                for name in ["a", "b", "c"] {
                    let value = (0.2 * (0.95 * run + 0.3 * normal())).exp();
                    r = with_metric(r, name, "ms", false, value);
                }
                cells.add(&r);
            }
        }
        answers(&cells, &candidates)[0].winner.is_some()
    };
    let wrong = (0..400).filter(|seed| named(*seed)).count();
    assert!(wrong <= 28, "{wrong} of 400: a share of 5 %, give or take chance");
}

/// 301,056 and 305,152 ns are neighbouring bins of the histogram.
#[test]
fn one_bin_is_no_difference() {
    let mut records = Vec::new();
    for (s, ns) in [("none", 305_152), ("bfq", 301_056)] {
        for i in 1..=5u32 {
            let mut r = trial("w", s, i);
            r.backend = BackendKind::Sim;
            let read = side(1e8, 200, ns);
            r.jobs.push(JobRecord { name: "a".into(), read, ..JobRecord::default() });
            records.push(r);
        }
    }
    let all = of(&records);
    let a = goal(&all, "latency");
    assert_eq!((a.winner.as_deref(), a.chip), (None, Chip::NotMeasurable));
    assert!(a.words.contains("less than 1.6 % apart"), "{}", a.words);
    let table =
        crate::cells::analyse(&records, Some("none"), crate::stats::VerdictOptions::default());
    let line =
        table.lines.iter().find(|l| l.measure == "read.clat.p99" && l.against_base.is_some());
    assert_eq!(line.unwrap().against_base.as_ref().unwrap().words(), "negligible (exact)");
}

/// No errors under one scheduler, some under others: no starvation, and no ratio.
#[test]
fn zeros_are_not_compared_as_ratios() {
    let mut records = Vec::new();
    for (s, errors) in [("none", [1.0, 0.0, 0.0]), ("bfq", [0.0; 3])] {
        for (i, n) in (1..).zip(errors) {
            records.push(with_metric(trial("load", s, i), "errors", "", false, n));
        }
    }
    let all = of(&records);
    let a = goal(&all, "errors");
    assert_eq!((a.winner.as_deref(), a.chip), (None, Chip::NotTestable));
    let words =
        "errors in load: has zeros, not comparable as a ratio (means: none 0.333, bfq 0.000)";
    assert_eq!(a.words, words);
    assert!(!text(&all, 80).contains("starved"));
}

/// What explains level figures is not said where somebody is ahead or may be.
#[test]
fn no_reason_for_a_tie_of_leaders_alone() {
    let reason = |rate: [f64; 3]| {
        let [a, b, c] = rate.map(|r| [r]);
        let mut records = rates(&[("none", &a), ("bfq", &b), ("kyber", &c)]);
        for r in &mut records {
            r.device.max_in_flight = 17;
            r.provenance.insert(DEVICE_DEPTH.into(), "32".into());
        }
        let words = goal(&of(&records), "throughput").words.clone();
        words.contains("nothing to reorder")
    };
    assert!(reason([1e8, 1.001e8, 1.002e8]));
    assert!(!reason([1e8, 1.001e8, 0.75e8]));
}

#[test]
fn a_tie_says_why() {
    let mut records = rates(&[("none", &[1e8]), ("bfq", &[1.001e8])]);
    for r in &mut records {
        r.device.max_in_flight = 17;
        r.provenance.insert(DEVICE_DEPTH.into(), "32".into());
    }
    let all = of(&records);
    let a = goal(&all, "throughput");
    assert_eq!((a.winner.as_deref(), a.chip), (None, Chip::NotMeasurable));
    assert!(a.words.contains("never more than 17 requests in flight"), "{}", a.words);
    let shown = text(&all, 60);
    assert!(shown.lines().all(|l| l.chars().count() <= 60), "{shown}");
    assert!(shown.starts_with("Answer for disk\n  throughput"), "{shown}");
}

fn null(seed: u64, workloads: u32, rounds: u32) -> Vec<Answer> {
    let mut rng = stream(seed, "answer");
    let (mut cells, mut candidates) = (Cells::default(), Vec::new());
    for s in ["none", "mq-deadline", "kyber", "bfq"] {
        candidates.push(Candidate::new("disk", s, s, "6.12"));
        for w in 0..workloads {
            for i in 1..=rounds {
                let noise: f64 = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                let value = 1e8 * (0.05 * noise).exp();
                cells.add(&with_metric(trial(&format!("w{w}"), s, i), "rate", "MB/s", true, value));
            }
        }
    }
    answers(&cells, &candidates)
}

#[test]
fn equal_schedulers_have_no_winner() {
    // 50,240 trials.
    assert_eq!(null(1, 80, 157)[0].winner, None);
    let named = (0..200).filter(|seed| null(*seed, 3, 5)[0].winner.is_some()).count();
    assert!(named <= 10, "{named} of 200");
}

#[test]
fn a_percent_sign_stays_with_its_number() {
    let text = super::wrap("", 2, "throughput is worse by -9.7 % against none", 28);
    assert_eq!(text, "throughput is worse by\n  -9.7 % against none\n");
}

/// The dearest price is one figure, and may be one that no goal counts: writes beside reads.
#[test]
fn a_price_is_the_worst_single_figure() {
    let mut records = Vec::new();
    for (s, reads, writes) in [("none", 10, 10), ("bfq", 5, 57)] {
        for i in 1..=5u32 {
            let mut r = trial("mixed", s, i);
            let of = |ms: u64| ms * 1_000_000 + u64::from(i) * 1000;
            let jitter = 1.0 + f64::from(i) * 0.001;
            let read = side(1e8 * jitter, 200, of(reads));
            let write = side(if s == "bfq" { 0.5e8 } else { 1e8 } * jitter, 200, of(writes));
            r.jobs.push(JobRecord { name: "a".into(), read, write, ..JobRecord::default() });
            records.push(r);
        }
    }
    let all = of(&records);
    let latency = goal(&all, "latency");
    assert_eq!(latency.winner.as_deref(), Some("bfq"));
    let price = "Its price: completion p99 of writes in mixed 5.7";
    assert!(latency.notes.iter().any(|n| n.starts_with(price)), "{:?}", latency.notes);
}

/// Four of seven runs beyond the limit of 60 s: no interval, and the ratio is only about right.
#[test]
fn runs_beyond_a_limit_give_no_interval() {
    let mut records = Vec::new();
    for (s, seconds) in [("none", 30.0), ("bfq", 28.0)] {
        for i in 1..=7u32 {
            let value = seconds + f64::from(i) * 0.1;
            let mut r = with_metric(trial("start", s, i), "startup_time", "s", false, value);
            if s == "none" && i <= 4 {
                (r.metrics[0].value, r.metrics[0].censored) = (60.0, true);
            }
            records.push(r);
        }
    }
    let all = of(&records);
    let a = goal(&all, "start-up time");
    assert_eq!(a.winner.as_deref(), Some("bfq"), "{a:?}");
    assert!(a.words.starts_with("bfq: ~−3") && !a.words.contains('['), "{}", a.words);
    assert!(a.notes.iter().any(|n| n.contains("4 of 7 runs of none in start")), "{:?}", a.notes);
    let none = a.field.iter().find(|s| s.scheduler == "bfq").unwrap();
    assert!(none.about && none.interval.is_none());
    // The table says the same.
    let table =
        crate::cells::analyse(&records, Some("none"), crate::stats::VerdictOptions::default());
    let judged = table.lines.iter().find_map(|l| l.against_base.as_ref()).unwrap();
    assert!((judged.ratio.unwrap() * none.ratio - 1.0).abs() < 1e-9, "{judged:?} {none:?}");
    assert_eq!(judged.verdict, crate::stats::Verdict::Better);
}

/// A tool that prints MB/s and IOPS of one test measured one thing.
#[test]
fn one_thing_is_counted_once() {
    let published = crate::published::records("linux-4.12").unwrap();
    let all = answers(&group(&published), &candidates_of(&published));
    let throughput = all.iter().find(|a| a.goal == "throughput").unwrap();
    assert!(throughput.words.contains("of 6 workloads"), "{}", throughput.words);
    assert!(throughput.words.contains("+12 %"), "{}", throughput.words);
}
