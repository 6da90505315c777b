//! Nothing delivered, cells that are missing or failed, and values below zero.

use iosched_experiment::record::Status;

use super::*;
use crate::cells::analyse;
use crate::stats::{Verdict, VerdictOptions};

/// One metric of some schedulers, run by run.
fn runs(workload: &str, metric: (&str, &str, bool), of: &[(&str, [f64; 5])]) -> Vec<Record> {
    let (name, unit, higher) = metric;
    let one =
        |s: &str, (i, v): (u32, &f64)| with_metric(trial(workload, s, i), name, unit, higher, *v);
    of.iter().flat_map(|(s, all)| (1..).zip(all).map(|x| one(s, x)).collect::<Vec<_>>()).collect()
}

const TPS: (&str, &str, bool) = ("tps", "1/s", true);
const GOOD: [f64; 5] = [102.6, 100.6, 101.2, 99.5, 103.4];
const LIKE: [f64; 5] = [99.9, 101.0, 102.2, 100.3, 100.8];

const THIRD: [f64; 5] = [100.4, 99.1, 101.9, 100.2, 99.6];

fn side_of(a: &Answer, scheduler: &str) -> (f64, Side) {
    let s = a.field.iter().find(|s| s.scheduler == scheduler).unwrap();
    (s.ratio, s.side)
}

/// Nothing is no "less than 5 % apart" of something, however the base is chosen.
#[test]
fn who_delivers_nothing_is_infinitely_worse() {
    let all = of(&runs("w", TPS, &[("none", [0.0; 5]), ("mq-deadline", GOOD), ("bfq", LIKE)]));
    let a = goal(&all, "throughput");
    assert!(a.words.starts_with("No measurable difference between mq-deadline and bfq"), "{a:?}");
    assert_eq!(side_of(a, "none"), (0.0, Side::Worse), "{a:?}");
    assert!(a.notes.iter().any(|n| n == "tps in w is 0 in 5 of 5 runs of none"), "{a:?}");
    assert!(!a.notes.iter().any(|n| n.contains("worst known")), "{a:?}");
    let all = of(&runs("w", TPS, &[("none", [0.0; 5]), ("mq-deadline", [0.0; 5]), ("bfq", GOOD)]));
    let a = goal(&all, "throughput");
    assert_eq!((a.winner.as_deref(), a.certainty), (Some("bfq"), Certainty::Measured), "{a:?}");
    assert!(a.words.starts_with("bfq: ∞× against none, the next"), "{a:?}");
    assert_eq!(a.lead.as_ref().unwrap().ratio, f64::INFINITY);
    // Nobody delivers anything: nothing is compared.
    let all = of(&runs("w", TPS, &[("none", [0.0; 5]), ("bfq", [0.0; 5])]));
    assert_eq!(goal(&all, "throughput").certainty, Certainty::NotTestable);
}

/// Only a scheduler of another kernel delivers anything: it is infinitely better than the base. JSON has a number.
#[test]
fn infinitely_better_than_the_base() {
    let all = [("none", [0.0; 5]), ("mq-deadline", [0.0; 5]), ("cfq", GOOD)];
    let all = of(&runs("w", TPS, &all));
    let a = goal(&all, "throughput");
    assert_eq!(side_of(a, "cfq").0, f64::INFINITY, "{a:?}");
    assert!(a.notes.iter().any(|n| n == "Not in Linux 6.12: cfq ∞× against none"), "{a:?}");
    let json = serde_json::to_value(a).unwrap();
    assert_eq!(json["field"][2]["ratio"].as_f64(), Some(f64::MAX), "{json}");
}

/// In the mean of several workloads, nothing in one of them is not made up for in the others.
#[test]
fn nothing_in_one_workload_wins_in_no_mean() {
    let mut records = runs("w0", TPS, &[("none", GOOD.map(|v| v * 9.0)), ("bfq", LIKE)]);
    records.extend(runs("w1", TPS, &[("none", [0.0; 5]), ("bfq", GOOD)]));
    let a = goal(&of(&records), "throughput").clone();
    assert_eq!(a.winner.as_deref(), Some("bfq"), "{a:?}");
}

/// Reads that never came are no reads of the weakest run.
#[test]
fn a_reader_without_reads_moved_nothing() {
    let mut records = rates(&[("none", &[1e8]), ("bfq", &[1e8])]);
    for r in records.iter_mut().filter(|r| r.trial.scheduler == "bfq") {
        r.jobs[0].read = DirStats::default();
        r.jobs[0].sync = side(0.0, 200, 1_000);
    }
    let a = goal(&of(&records), "throughput").clone();
    assert_eq!((a.winner.as_deref(), side_of(&a, "bfq").0), (Some("none"), 0.0), "{a:?}");
}

/// One run of five with nothing: the answer says of it what the table says.
#[test]
fn one_run_with_nothing_counts_as_in_the_table() {
    let one = [99.2, 100.2, 0.0, 98.4, 100.7];
    let records = runs("w", TPS, &[("none", one), ("bfq", GOOD)]);
    let a = goal(&of(&records), "throughput").clone();
    let table = analyse(&records, Some("none"), VerdictOptions::default());
    let judged = table.lines.iter().find_map(|l| l.against_base.as_ref()).unwrap();
    assert!((side_of(&a, "bfq").0 / judged.ratio.unwrap() - 1.0).abs() < 1e-9, "{a:?} {judged:?}");
    assert_eq!((judged.verdict, a.winner.clone()), (Verdict::NotEnoughData, None), "{a:?}");
    // Among several workloads it is the same mean.
    let mut both = records.clone();
    both.extend(runs("w1", TPS, &[("none", GOOD), ("bfq", GOOD)]));
    let all = of(&both);
    let ratio = side_of(goal(&all, "throughput"), "bfq").0;
    assert!((ratio / judged.ratio.unwrap().sqrt() - 1.0).abs() < 0.01, "{ratio}");
}

fn three(without: &[(&str, &str)]) -> Vec<Record> {
    let mut out = Vec::new();
    for (w, kyber) in [("w0", 0.94), ("w1", 0.94), ("w2", 2.0)] {
        let all =
            [("none", GOOD), ("bfq", LIKE.map(|v| v * 0.94)), ("kyber", THIRD.map(|v| v * kyber))];
        out.extend(runs(w, TPS, &all));
    }
    out.retain(|r| !without.contains(&(&r.trial.scheduler, &r.trial.workload)));
    out
}

/// bfq lacks the workload that decides: the others are judged by it all the same.
#[test]
fn a_missing_cell_takes_out_its_scheduler_and_no_workload() {
    assert_eq!(goal(&of(&three(&[])), "throughput").winner.as_deref(), Some("kyber"));
    let all = of(&three(&[("bfq", "w2")]));
    let a = goal(&all, "throughput");
    assert_eq!(a.winner.as_deref(), Some("kyber"), "{a:?}");
    assert!(a.words.contains("3 workloads"), "{a:?}");
    assert_eq!(a.notes[0], "Judged without bfq, which lacks w2", "{a:?}");
    assert!(a.field.iter().all(|s| s.scheduler != "bfq"));
    assert!(a.certainty != Certainty::Measured);
}

#[test]
fn a_failed_cell_counts_against_who_failed() {
    let mut records = three(&[]);
    for r in records.iter_mut().filter(|r| r.trial.workload == "w2") {
        if r.trial.scheduler == "kyber" {
            r.status = Status::Failed(String::new());
        }
    }
    let a = goal(&of(&records), "throughput").clone();
    assert_eq!((a.winner.as_deref(), a.certainty), (Some("none"), Certainty::Incomplete), "{a:?}");
    assert_eq!(a.notes[0], "Judged without kyber, which failed in w2", "{a:?}");
    let table = analyse(&records, None, VerdictOptions::default());
    assert_eq!(table.incomplete[0].1, "no reason recorded");
}

/// Nearly everybody lacks something: what all share is judged, and what is left out is said.
#[test]
fn where_nobody_is_whole_the_shared_workloads_count() {
    let all = of(&three(&[("bfq", "w1"), ("kyber", "w1"), ("none", "w2")]));
    let a = goal(&all, "throughput");
    assert!(a.words.contains("in 1 workload"), "{a:?}");
    assert_eq!(
        a.notes[0], "Judged without w1 and w2: none lacks w2; bfq lacks w1; kyber lacks w1",
        "{a:?}"
    );
    let nothing = of(&three(&[("bfq", "w1"), ("kyber", "w2"), ("none", "w0")]));
    let a = goal(&nothing, "throughput");
    assert_eq!((a.winner.clone(), a.certainty), (None, Certainty::NotTestable));
    let words = "Nothing to compare: no two schedulers share all workloads (bfq lacks w1; kyber lacks w2; \
                 none lacks w0)";
    assert_eq!(a.words, words);
}

/// −10 dB is not "−1.2 times" 12 dB. Differences give the direction, and no ratio is told.
#[test]
fn below_zero_there_are_no_ratios() {
    let quiet = [-12.4, -11.6, -11.7, -12.3, -12.8];
    for (higher, better) in [(true, Verdict::Better), (false, Verdict::Worse)] {
        let metric = ("gain", "dB", higher);
        let loud = [2.9, 3.1, 3.0, 2.8, 3.3];
        let records = runs("w", metric, &[("none", quiet), ("bfq", loud)]);
        let all = of(&records);
        let a = goal(&all, "dB");
        assert_eq!((a.winner.clone(), a.certainty), (None, Certainty::NotTestable), "{a:?}");
        assert!(a.words.contains("has values below zero"), "{a:?}");
        let table = analyse(&records, Some("none"), VerdictOptions::default());
        let judged = table.lines.iter().find_map(|l| l.against_base.as_ref()).unwrap();
        assert_eq!((judged.verdict, judged.ratio, judged.ratio_ci), (better, None, None));
    }
}

/// Without whom people hid, another one may win: each answer says so.
#[test]
fn hidden_schedulers_are_named() {
    let mut all = of(&rates(&[("none", &[1e8]), ("bfq", &[1.3e8])]));
    without_hidden(&mut all, &["kyber".into(), "cfq".into()]);
    assert!(all.iter().all(|a| a.notes[0] == "Without kyber and cfq, which are hidden"), "{all:?}");
}

/// Runs of a scheduler that the kernel lacks decide nothing, so it does not matter that they are alike.
#[test]
fn a_removed_scheduler_makes_no_draw() {
    let mut records =
        rates(&[("none", &[1e8]), ("bfq", &[1.3e8]), ("anticipatory@2.6.32", &[0.9e8])]);
    for r in records.iter_mut().filter(|r| r.trial.scheduler.starts_with("anti")) {
        r.jobs[0].read.bytes = 90_000_000;
    }
    records.retain(|r| r.trial.scheduler != "bfq" || r.trial.repetition < 4);
    let a = goal(&of(&records), "throughput").clone();
    assert_eq!((a.winner.as_deref(), a.certainty), (Some("bfq"), Certainty::Measured), "{a:?}");
    assert!(a.notes.iter().any(|n| n.ends_with("3 to 5 runs of each")), "{a:?}");
}

/// What a workload reads and writes is the throughput of tables, by either name.
#[test]
fn the_total_is_a_goal() {
    let mut records = rates(&[("none", &[1e8]), ("bfq", &[1.3e8])]);
    for r in &mut records {
        r.jobs[0].write = r.jobs[0].read.clone();
        r.provenance.insert(GOAL.into(), crate::measure::TOTAL.into());
    }
    let all = of(&records);
    assert_eq!((all[0].goal.as_str(), all[0].decides), ("throughput", true), "{all:?}");
}

/// The sentence counts what the small print names.
#[test]
fn measures_are_counted_once() {
    let mut records = Vec::new();
    for (s, by) in [("none", 1.0), ("bfq", 1.3)] {
        for i in 1..=5u32 {
            let rate = by * (1.0 + f64::from(i) * 0.001);
            let mut io = trial("io", s, i);
            let read = side(1e8 * rate, 200, 1_000);
            io.jobs.push(JobRecord { name: "a".into(), read, ..JobRecord::default() });
            records.push(io);
            let mut r = trial("w", s, i);
            for name in ["transactions", "tps", "bells rung", "whistles blown", "trains sent"] {
                r = with_metric(r, name, "1/s", true, 100.0 * rate);
            }
            records.push(r);
        }
    }
    let all = of(&records);
    let a = goal(&all, "throughput");
    assert!(a.words.contains("By 6 measures"), "{a:?}");
    let named = a.notes.iter().find(|n| n.starts_with("The 6 measures: ")).unwrap();
    assert!(named.contains("data rate") && !named.contains("throughput"), "{named}");
}

/// Results of a tool that says only its own figure moved something all the same.
#[test]
fn a_rate_that_nobody_said_is_not_zero() {
    let mut records = runs("w", TPS, &[("none", GOOD), ("bfq", LIKE), ("kyber", LIKE)]);
    for r in records.iter_mut().filter(|r| r.trial.scheduler != "kyber") {
        r.metrics[0].name = "read.bw".into();
    }
    for r in records.iter_mut().filter(|r| r.trial.scheduler == "kyber") {
        (r.metrics[0].name, r.metrics[0].unit) = ("bells".into(), "bells".into());
    }
    let a = goal(&of(&records), "throughput").clone();
    assert!(a.field.iter().all(|s| s.scheduler != "kyber"), "{a:?}");
    assert!(a.notes[0].contains("kyber, which has no such figure in w"), "{a:?}");
}
