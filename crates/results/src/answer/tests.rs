use iosched_experiment::record::{
    BackendKind, DirStats, HALVES_DIFFER, JobRecord, Metric, Record, TrialId, Warning,
};

use super::*;
use crate::cells::{charge_starved, group};

mod chance;
mod gaps;
mod limits;
mod one_source;
mod own;

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
    assert!(goal(&answers, "latency").words.contains("By completion p99 of reads"));
    assert_eq!(goal(&answers, "CPU time").winner.as_deref(), Some("bfq"));
}

/// The options of a published test do not say which test it is.
#[test]
fn a_test_of_another_program_is_named_by_its_title() {
    let options = "Test Target: Default Test Directory";
    let with = |scheduler: &str, value: f64| {
        let r = trial(&format!("SQLite 3.8: {options}"), scheduler, 1);
        with_metric(r, options, "Seconds", false, value)
    };
    let all = of(&[with("none", 10.0), with("bfq", 20.0)]);
    assert!(all[0].words.contains("By SQLite 3.8 in 1 workload"), "{all:?}");
    let own = with_metric(trial("w", "none", 1), "tps", "1/s", true, 1.0);
    let all = of(&[own, with_metric(trial("w", "bfq", 1), "tps", "1/s", true, 2.0)]);
    assert!(all[0].words.contains("By tps in 1 workload"), "{all:?}");
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
    assert_eq!((a.winner.as_deref(), a.certainty), (Some("bfq"), Certainty::Measured));
    assert!(a.words.starts_with("bfq: +24 % (in every run) against kyber"), "{}", a.words);
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
    assert_eq!(a.certainty, Certainty::OneWorkload);
    assert!(a.words.contains("one workload carries it: without w0 it is ±0 %"), "{}", a.words);
}

/// What is left of the lead is nearly all of it: nobody carries it alone.
#[test]
fn a_lead_that_all_measures_share_is_carried_by_none() {
    let all = of(&rates(&[("none", &[1e8, 1e8, 1e8]), ("bfq", &[1.011e8, 1.009e8, 1.0105e8])]));
    let a = goal(&all, "throughput");
    assert!(!a.words.contains("carries it"), "{}", a.words);
}

/// The kernel has only one of the two that were asked for.
#[test]
fn a_scheduler_that_the_kernel_lacks_is_compared_where_it_was_asked_for() {
    let mut records = rates(&[("cfq@4.12", &[1.5e8, 1.5e8, 1.5e8]), ("bfq", &[1e8, 1e8, 1e8])]);
    records.iter_mut().for_each(|r| r.trial.kernel = "6.12".into());
    let all = of(&records);
    let a = goal(&all, "throughput");
    assert_eq!(a.winner.as_deref(), Some("cfq@4.12"), "{}", a.words);
    let note = "Linux 6.12 has no cfq@4.12";
    assert!(a.notes.iter().any(|n| n.contains(note) && n.contains("compared")), "{:?}", a.notes);
}

/// One run of each proves nothing, and less where one measure has all of the lead.
#[test]
fn one_measure_of_one_run_is_named() {
    let mut records = rates(&[("none", &[1e8, 1e8, 1e8]), ("bfq", &[1.5e8, 1e8, 1e8])]);
    records.retain(|r| r.trial.repetition == 3);
    let a = goal(&of(&records), "throughput").clone();
    assert_eq!((a.winner, a.certainty), (None, Certainty::NotTestable));
    assert!(a.words.contains("without w0 it is ±0 %"), "{}", a.words);
}

/// +50 % in one workload and −33 % in another are no "no measurable difference", though their mean is.
#[test]
fn differences_that_cancel_out_are_told() {
    let a =
        goal(&of(&rates(&[("none", &[1e8, 1.5e8]), ("bfq", &[1.5e8, 1e8])])), "throughput").clone();
    assert!(a.words.starts_with("No clear winner between"), "{}", a.words);
    let both = a.notes.iter().find(|n| n.contains(", but "));
    assert!(both.is_some_and(|n| n.contains("+50 %") && n.contains("−33 %")), "{:?}", a.notes);
    let level =
        goal(&of(&rates(&[("none", &[1e8, 1e8]), ("bfq", &[1e8, 1e8])])), "throughput").clone();
    assert!(
        level.words.starts_with(DIFFERENCE) && !level.notes.iter().any(|n| n.contains(", but "))
    );
}

/// Runs that repeat each other to the last digit are one draw, however many there are.
#[test]
fn runs_without_chance_are_one_draw() {
    let mut records = rates(&[("none", &[1e8]), ("bfq", &[1.3e8])]);
    records.retain(|r| r.trial.repetition == 3);
    let all: Vec<Record> = (1..=5)
        .flat_map(|i| {
            records.iter().cloned().map(move |mut r| {
                (r.trial.repetition, r.backend) = (i, BackendKind::Sim);
                r
            })
        })
        .collect();
    let a = goal(&of(&all), "throughput").clone();
    assert_eq!((a.winner.as_deref(), a.certainty), (Some("bfq"), Certainty::OneDraw), "{a:?}");
    assert!(a.notes.iter().any(|n| n.contains("All runs of none and bfq are alike")), "{a:?}");
}

/// A web server that writes nothing but its log: who is ahead there is so by core time.
#[test]
fn a_lead_on_a_device_without_work_says_so() {
    let mut records = rates(&[("none", &[1e8]), ("bfq", &[1.3e8])]);
    let told = |records: &[Record]| {
        let a = goal(&of(records), "throughput").clone();
        assert_eq!(a.winner.as_deref(), Some("bfq"));
        a.notes.iter().any(|n| n == "The device was busy for less than 1 % of the time")
    };
    for busy in [5_000_000, 500_000_000] {
        for r in &mut records {
            (r.device.max_in_flight, r.elapsed, r.device.busy) = (1, 1_000_000_000, busy);
        }
        assert_eq!(told(&records), busy == 5_000_000);
    }
}

/// Two runs of each lie apart by chance once in three, so nothing is said of them.
#[test]
fn chance_is_no_difference_both_ways() {
    let mut records = rates(&[("none", &[1e8, 1.2e8]), ("bfq", &[1.1e8, 1.1e8])]);
    records.retain(|r| r.trial.repetition < 3);
    for r in &mut records {
        let noise = if r.trial.repetition == 1 { 0.97 } else { 1.03 };
        r.jobs[0].read.bytes = (r.jobs[0].read.bytes as f64 * noise) as u64;
    }
    let a = goal(&of(&records), "throughput").clone();
    assert!(!a.notes.iter().any(|n| n.contains(", but ")), "{a:?}");
}

#[test]
fn a_lead_in_runs_that_are_not_steady_is_none_yet() {
    let mut records = rates(&[("none", &[1e8]), ("bfq", &[1.3e8])]);
    assert_eq!(goal(&of(&records), "throughput").certainty, Certainty::Measured);
    let unlike = Warning { code: HALVES_DIFFER.into(), ..Warning::default() };
    records
        .iter_mut()
        .filter(|r| r.trial.scheduler == "bfq")
        .for_each(|r| r.warnings.push(unlike.clone()));
    let a = goal(&of(&records), "throughput").clone();
    assert_eq!((a.winner.as_deref(), a.certainty), (Some("bfq"), Certainty::NotSteady));
    assert!(a.notes.iter().any(|n| n.contains("rate of runs of bfq")), "{:?}", a.notes);
}

/// Who wins the throughput with write-back pays with reads: not against the usual base, but against a third.
#[test]
fn a_price_is_against_whoever_does_best() {
    let mut records = rates(&[("none", &[1e8]), ("mq-deadline", &[1.3e8]), ("bfq", &[1e8])]);
    for r in &mut records {
        let reads = if r.trial.scheduler == "bfq" { 0.5e8 } else { 0.1e8 };
        r.jobs[0].write = side(r.jobs[0].read.bytes as f64 - reads, 1, 1_000);
        r.jobs[0].read = side(reads, 1, 1_000);
    }
    let a = goal(&of(&records), "throughput").clone();
    assert_eq!(a.winner.as_deref(), Some("mq-deadline"));
    let price = "Its price: read throughput in w0 −80 % against bfq";
    assert!(a.notes.iter().any(|n| n == price), "{:?}", a.notes);
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

#[test]
fn a_percent_sign_stays_with_its_number() {
    let text = super::wrap("", 2, "throughput is worse by -9.7 % against none", 28);
    assert_eq!(text, "throughput is worse by\n  -9.7 % against none\n");
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

/// kyber came with 4.12: no later version of it makes it a scheduler that was removed.
#[test]
fn a_later_version_is_not_removed() {
    let of = |name: &str, kernel: &str| absence(name, kernel).to_string();
    assert_eq!(of("kyber@5.0", "4.12"), "no, it has kyber@4.12");
    assert_eq!(of("kyber@4.12", "4.12"), "yes");
    assert_eq!(of("kyber@4.12", "3.12"), "not yet: it comes with 4.12");
    assert_eq!(of("cfq@4.12", "6.12"), "no, removed after 4.20");
    assert_eq!(meaning("kyber@5.0", "4.12").until(), None);
    assert_eq!(meaning("cfq@4.12", "6.12").until(), Some("4.20"));
}
