//! Answers and tables tell the same.

use iosched_engine::stream;

use super::*;
use crate::cells::judge_cells;
use crate::stats::{Verdict, VerdictOptions};

/// A normal number.
fn normal(rng: &mut iosched_engine::Stream) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// Two jobs that share a disk: throughput, latency and fairness of one workload.
fn shared(seed: u64, runs: u32) -> Vec<Record> {
    let mut rng = stream(seed, "shared");
    let mut records = Vec::new();
    for (s, ahead) in [("none", 0.0), ("kyber", 0.02), ("bfq", 0.06), ("mq-deadline", 0.0)] {
        for i in 1..=runs {
            let mut r = trial("w", s, i);
            // bfq shares evenly; what both move together does not depend on it.
            let apart = if s == "bfq" { 0.0 } else { 0.3 };
            for (name, share) in [("a", 1.15 - apart), ("b", 1.15 + apart)] {
                let by = (ahead + 0.04 * normal(&mut rng)).exp();
                let read = side(1e8 * by * share, 200, (1e6 / by) as u64);
                r.jobs.push(JobRecord { name: name.into(), read, ..JobRecord::default() });
            }
            records.push(r);
        }
    }
    records
}

/// The card and the table of fairness, of latency and of throughput are one judgement.
#[test]
fn a_card_says_what_the_table_of_its_figure_says() {
    let measures =
        [("throughput", "read.bw"), ("latency", "read.clat.p99"), ("fairness", "fairness.jain")];
    let mut found = [0; 3];
    for seed in 0..60 {
        let records = shared(seed, 5);
        let mut cells = group(&records);
        charge_starved([&mut cells]);
        let table = judge_cells(&cells, None, VerdictOptions::default());
        let all = of(&records);
        for ((name, measure), found) in measures.into_iter().zip(&mut found) {
            for stand in goal(&all, name).field.iter().filter(|s| !s.base) {
                let line = table
                    .lines
                    .iter()
                    .find(|l| l.measure == measure && l.key.scheduler == stand.scheduler);
                let judged = line.unwrap().against_base.as_ref().unwrap();
                let side = match judged.verdict {
                    Verdict::Better => Side::Better,
                    Verdict::Worse => Side::Worse,
                    _ => Side::Level,
                };
                assert_eq!(stand.side, side, "{seed} {name}: {stand:?} {judged:?}");
                *found += usize::from(side != Side::Level);
            }
        }
    }
    assert!(found.iter().all(|n| *n > 0), "{found:?}");
}

/// Six workloads whose rounds go up and down together, as on a machine that gets warm.
fn in_rounds(seed: u64, ahead: f64, backend: BackendKind) -> Vec<Record> {
    let mut rng = stream(seed, "rounds");
    let mut records = Vec::new();
    for w in 0..6 {
        for i in 1..=5 {
            let round = normal(&mut rng);
            for (s, ahead) in [("none", 0.0), ("bfq", ahead)] {
                let by = (ahead + 0.2 * round + 0.01 * normal(&mut rng)).exp();
                let mut r = trial(&format!("w{w}"), s, i);
                r.backend = backend;
                let read = side(1e8 * by, 1, 1_000);
                r.jobs.push(JobRecord { name: "a".into(), read, ..JobRecord::default() });
                records.push(r);
            }
        }
    }
    records
}

/// What each table finds by its pairs, the answer over all of them finds, too.
#[test]
fn pairs_count_over_several_figures() {
    let a = goal(&of(&in_rounds(1, 0.028, BackendKind::Real)), "throughput").clone();
    assert_eq!((a.winner.as_deref(), a.certainty), (Some("bfq"), Certainty::Measured), "{a:?}");
    let lead = a.lead.unwrap();
    assert_eq!((lead.scheduler.as_str(), lead.against.as_str()), ("bfq", "none"));
    let (low, high) = lead.interval.unwrap();
    assert!(low > 1.0 && high < 1.06 && (1.01..1.05).contains(&lead.ratio), "{lead:?}");
    // Rounds of another tool are no pairs.
    let apart = goal(&of(&in_rounds(1, 0.028, BackendKind::Imported)), "throughput").clone();
    assert_eq!(apart.winner, None, "{apart:?}");
}

#[test]
fn pairs_name_no_winner_by_chance() {
    let named = |seed: &u64| {
        goal(&of(&in_rounds(*seed, 0.0, BackendKind::Real)), "throughput").winner.is_some()
    };
    let wrong = (0..300).filter(named).count();
    assert!(wrong <= 22, "{wrong} of 300: a share of 5 %, give or take chance");
}

/// Level in the mean, but a table calls one figure better: that is not "no difference".
#[test]
fn a_single_difference_is_not_hidden_by_the_mean() {
    let all = of(&rates(&[("none", &[1e8; 6]), ("bfq", &[1.04e8, 1e8, 1e8, 1e8, 1e8, 1e8])]));
    let a = goal(&all, "throughput");
    assert_eq!((a.winner.as_deref(), a.certainty), (None, Certainty::NotMeasurable));
    assert!(a.words.starts_with("No clear winner between"), "{}", a.words);
    assert!(a.words.contains("in the mean of these, but not in each of them"), "{}", a.words);
    assert!(a.notes.iter().any(|n| n == "bfq against none: throughput in w0 +4.0 %"), "{a:?}");
}

/// A program whose clients wait: mean and percentiles of its operations are one distribution, and count once.
#[test]
fn one_latency_of_an_operation_counts() {
    let program = |without_p99: bool| {
        let mut records = Vec::new();
        for (s, mean, p99) in [("none", 100.0, 900.0), ("bfq", 110.0, 300.0)] {
            for i in 1..=5 {
                let jitter = 1.0 + f64::from(i) * 0.001;
                let mut r = with_metric(trial("w", s, i), "txn rate", "1/s", true, 1e4 / mean);
                for (end, us) in [("mean", mean), ("p50", mean), ("p95", mean), ("max", 9e3)] {
                    r = with_metric(r, &format!("txn {end} latency"), "us", false, us * jitter);
                }
                if !(without_p99 && i == 3) {
                    r = with_metric(r, "txn p99 latency", "us", false, p99 * jitter);
                }
                records.push(r);
            }
        }
        goal(&of(&records), "latency").clone()
    };
    let a = program(false);
    assert_eq!(a.winner.as_deref(), Some("bfq"), "{a:?}");
    assert!(a.words.contains("By txn p99 latency in 1 workload"), "{}", a.words);
    let a = program(true);
    assert_eq!(a.winner.as_deref(), Some("none"), "{a:?}");
    assert!(a.words.contains("By txn p95 latency"), "{}", a.words);
}

/// Two syncs have no high percentile. Their mean tells more than the median, which is one of them.
#[test]
fn of_a_few_operations_the_mean_counts() {
    let mut records = Vec::new();
    for (s, mean) in [("none", 20.0), ("bfq", 30.0)] {
        let mut r = trial("w", s, 1);
        for (end, us) in [("mean", mean), ("p50", 40.0 - mean), ("max", 40.0)] {
            r = with_metric(r, &format!("sync {end} latency"), "us", false, us);
        }
        records.push(r);
    }
    let all = of(&records);
    let a = goal(&all, "latency");
    assert!(a.words.starts_with("Lowest: none") && a.words.contains("By sync mean"), "{}", a.words);
}

/// What the experiment asks for is answered first, and by that measure.
#[test]
fn the_goal_of_an_experiment_decides() {
    let mut records = rates(&[("none", &[1e8]), ("bfq", &[0.8e8])]);
    for r in &mut records {
        let ns = if r.trial.scheduler == "bfq" { 1_000_000 } else { 9_000_000 };
        let start = side(1e6, 50, ns + u64::from(r.trial.repetition) * 1000);
        r.jobs.push(JobRecord { name: "start".into(), read: start, ..JobRecord::default() });
    }
    let with = |goal: &str| {
        let mut records = records.clone();
        for r in &mut records {
            r.provenance.insert(GOAL.into(), goal.into());
        }
        let answers = of(&records);
        let unknown = unmeasured(&group(&records), &candidates_of(&records), &answers);
        (answers, unknown)
    };
    let (all, unknown) = with("job/start/read.clat.mean");
    assert_eq!(
        (all[0].goal.as_str(), all[0].decides),
        ("completion mean of reads of job start", true)
    );
    assert_eq!((all[0].winner.as_deref(), unknown), (Some("bfq"), None), "{all:?}");
    assert!(all[1..].iter().all(|a| !a.decides) && goal(&all, "throughput").winner.is_some());
    // A goal of answers by its name, or by the one figure that it has, comes first and is there once.
    for name in ["throughput", "read.bw"] {
        let (all, _) = with(name);
        assert_eq!((all[0].goal.as_str(), all[0].decides), ("throughput", true), "{name}");
        assert_eq!(all.iter().filter(|a| a.goal == "throughput").count(), 1);
    }
    let (all, unknown) = with("job/start/read.clat.men");
    assert!(all.iter().all(|a| !a.decides));
    assert!(unknown.unwrap().contains("job/start/read.clat.mean"));
}

/// Of two latencies of the same I/Os one is compared. Whoever asks for the other one is told so.
#[test]
fn a_goal_that_is_compared_by_another_latency_is_told() {
    let mut records = rates(&[("none", &[1e8]), ("bfq", &[1.3e8])]);
    let note = |records: &mut Vec<Record>, goal: &str| {
        for r in records.iter_mut() {
            r.provenance.insert(GOAL.into(), goal.into());
        }
        let (answers, notes) = answers_of(records);
        assert!(answers.iter().any(|a| a.decides) == notes.is_empty(), "{notes:?}");
        notes
    };
    let nothing: [&str; 0] = [];
    assert_eq!(note(&mut records, "read.clat.mean"), nothing);
    let said = "the experiment asks for \"read.lat.mean\", but these results are compared by \
                \"read.clat.mean\"";
    assert_eq!(note(&mut records, "read.lat.mean"), [said]);
    for r in &mut records {
        r.jobs[0].read.lat_hist = r.jobs[0].read.clat.clone();
    }
    assert_eq!(note(&mut records, "read.lat.mean"), nothing);
    let said = "the experiment asks for \"read.clat.mean\", but these results are compared by \
                \"read.lat.mean\"";
    assert_eq!(note(&mut records, "read.clat.mean"), [said]);
}

/// Beside the means of a table, the geometric mean of ratios needs its name.
#[test]
fn a_price_says_what_kind_of_mean_it_is() {
    let price = |writes: [f64; 5]| {
        let mut records = Vec::new();
        for s in ["none", "bfq"] {
            for (i, w) in (1..).zip(writes) {
                let mut r = trial("w", s, i);
                let jitter = 1.0 + f64::from(i) * 0.001;
                let read = side(if s == "bfq" { 2e8 } else { 0.5e8 } * jitter, 1, 1_000);
                let write = side(if s == "bfq" { 0.5e8 * w } else { 1e8 } * jitter, 1, 1_000);
                r.jobs.push(JobRecord { name: "a".into(), read, write, ..JobRecord::default() });
                records.push(r);
            }
        }
        let a = goal(&of(&records), "throughput").clone();
        a.notes.into_iter().find(|n| n.starts_with("Its price")).unwrap()
    };
    assert_eq!(price([1.0; 5]), "Its price: write throughput in w −50 % against none");
    let uneven = price([0.5, 1.0, 1.0, 1.0, 1.0]);
    assert!(uneven.ends_with(", the geometric mean of the runs' ratios"), "{uneven}");
}
