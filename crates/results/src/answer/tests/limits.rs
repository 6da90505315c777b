//! Starved processes, limits, zeros, and what a winner costs.

use super::*;

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
    assert_eq!((a.winner.as_deref(), a.certainty), (None, Certainty::NotTestable));
    let words =
        "errors in load: has zeros, not comparable as a ratio (means: none 0.333, bfq 0.000)";
    assert_eq!(a.words, words);
    assert!(!text(&all, 80).contains("starved"));
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

/// Who pays may be one job of several: the totals show nothing of it.
#[test]
fn a_price_may_be_that_of_one_job() {
    let mut records = Vec::new();
    for (s, bulk, victim) in [("none", 10, 10), ("bfq", 9, 60)] {
        for i in 1..=5u32 {
            let mut r = trial("mixed", s, i);
            let job = |name: &str, ios: u64, ms: u64| {
                let read = side(1e8, ios, ms * 1_000_000 + u64::from(i) * 1000);
                JobRecord { name: name.into(), read, ..JobRecord::default() }
            };
            r.jobs = vec![job("bulk", 100_000, bulk), job("victim", 200, victim)];
            records.push(r);
        }
    }
    let all = of(&records);
    let latency = goal(&all, "latency");
    assert_eq!(latency.winner.as_deref(), Some("bfq"));
    let price = "Its price: completion p99 of reads of job victim in mixed 6";
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
    assert!(none.approximate && none.interval.is_none());
    // The table says the same.
    let table =
        crate::cells::analyse(&records, Some("none"), crate::stats::VerdictOptions::default());
    let judged = table.lines.iter().find_map(|l| l.against_base.as_ref()).unwrap();
    assert!((judged.ratio.unwrap() * none.ratio - 1.0).abs() < 1e-9, "{judged:?} {none:?}");
    assert_eq!(judged.verdict, crate::stats::Verdict::Better);
}

/// One run of each: none gave the film up, bfq dropped some frames. That is the order, and no test; equal values at the
/// limit are ordered by which of them is only a bound.
#[test]
fn a_run_that_gave_up_is_behind_every_run_that_did_not() {
    for (dropped, words) in [(1.67, "Lowest: bfq (~"), (100.0, "Level within 1 %: bfq, none")] {
        let one = |scheduler: &str, value: f64, censored: bool| {
            let mut r = with_metric(trial("video", scheduler, 1), "drop rate", "%", false, value);
            r.metrics[0].censored = censored;
            r
        };
        let all = of(&[one("none", 100.0, true), one("bfq", dropped, false)]);
        let answer = all.iter().find(|a| a.goal.starts_with("drop rate")).unwrap();
        assert!(answer.words.replace(" and ", ", ").starts_with(words), "{answer:?}");
        assert_eq!(answer.certainty, Certainty::NotTestable);
        assert!(answer.notes.iter().any(|n| n.contains("1 of 1 runs of none")), "{answer:?}");
    }
}

/// Three runs that gave up beside three that did not: the order came out the same each time. What differs by a chance of
/// one run in three, or was done by a starved process, is not parted so.
#[test]
fn who_gave_up_in_every_run_is_behind_who_never_did() {
    let film = |scheduler: &str, runs: &[(f64, bool)]| -> Vec<Record> {
        let one = |(i, (dropped, gave_up)): (u32, &(f64, bool))| {
            let mut r =
                with_metric(trial("video", scheduler, i), "drop rate", "%", false, *dropped);
            r.metrics[0].censored = *gave_up;
            r
        };
        (1..).zip(runs).map(one).collect()
    };
    let answer = |parts: &[Vec<Record>]| {
        let all = of(&parts.concat());
        all.into_iter().find(|a| a.goal.starts_with("drop rate")).unwrap()
    };
    let (limit, fine) = ([(100.0, true); 3], [(1.67, false), (1.5, false), (1.7, false)]);
    let a = answer(&[film("none", &limit), film("bfq", &fine)]);
    assert_eq!((a.winner.as_deref(), a.certainty), (Some("bfq"), Certainty::ByLimit), "{a:?}");
    let count = "none gave up in 3 of 3 runs and bfq in 0 of 3";
    assert!(a.notes.iter().any(|n| n.starts_with(count)), "{a:?}");
    // The second of those that never gave up decides who is first, and none stays behind both.
    let level = [(1.6, false), (1.75, false), (1.52, false)];
    let a = answer(&[film("none", &limit), film("bfq", &fine), film("kyber", &level)]);
    assert_eq!(a.winner, None, "{a:?}");
    assert!(a.words.contains("bfq and kyber") || a.words.contains("kyber and bfq"), "{a:?}");
    assert!(!a.words.contains("none"), "{a:?}");
    let once = [(1.67, false), (100.0, true), (1.7, false)];
    assert_eq!(answer(&[film("none", &limit), film("bfq", &once)]).winner, None);
    assert_eq!(answer(&[film("none", &limit[..1]), film("bfq", &fine)]).winner, None);
}
