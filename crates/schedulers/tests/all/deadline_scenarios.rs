//! The worked scenarios of noop, deadline and mq-deadline: what the kernel's rules give, derived by hand.

use iosched_schedulers::script::play;

/// Plays a scenario and returns only the names of what was dispatched.
fn order(script: &str) -> String {
    let out = play(script).expect("a scenario");
    let names: Vec<&str> = out
        .lines()
        .map(|l| l.split_once(' ').map_or(l, |(_, rest)| rest))
        .map(|l| l.split(':').next().unwrap_or(l))
        .collect();
    names.join(" ")
}

/// The same scenario under several generations.
fn check(schedulers: &[&str], body: &str, expected: &str) {
    for s in schedulers {
        assert_eq!(order(&format!("scheduler {s}\n{body}")), expected, "{s}");
    }
}

const OLD: &[&str] = &["deadline@2.6.18"];
const LEGACY: &[&str] = &["deadline@2.6.24", "deadline@3.12", "deadline@4.12"];
const ABC: &[&str] = &["mq-deadline@4.12", "mq-deadline@5.15", "mq-deadline@6.1"];
const D: &[&str] = &["mq-deadline@6.12"];

#[test]
fn noop_is_first_in_first_out() {
    check(
        &["noop@2.6.18", "noop@3.12"],
        "at 0 insert R900 W100 R500\nat 0 drain",
        "R900 W100 R500 -",
    );
}

const DL1: &str = "set fifo_batch=2 writes_starved=2
    at 0 insert R1000 R2000 R3000 R4000 R5000 R6000 R7000 R8000 W100 W200 W300 W400
    at 0 drain";

#[test]
fn dl_1_and_md_1_batches_and_starved_writes() {
    let seeks = "R1000 R2000 W100 R3000 R4000 W200 R5000 R6000 W300 R7000 R8000 W400 -";
    let batches = "R1000 R2000 R3000 R4000 W100 W200 R5000 R6000 R7000 R8000 W300 W400 -";
    let writes_first = "W100 W200 R1000 R2000 R3000 R4000 W300 W400 R5000 R6000 R7000 R8000 -";
    check(OLD, DL1, seeks);
    check(LEGACY, DL1, batches);
    check(ABC, DL1, batches);
    check(D, DL1, writes_first);
    let sixteen = DL1.replace("fifo_batch=2", "fifo_batch=16");
    check(OLD, &sixteen, seeks);
    let all = "R1000 R2000 R3000 R4000 R5000 R6000 R7000 R8000 W100 W200 W300 W400 -";
    check(LEGACY, &sixteen, all);
}

#[test]
fn dl_2_where_a_sweep_starts() {
    let body = "at 0 insert R5000\nat 10 insert R1000 R2000 R3000\nat 20 drain";
    check(OLD, body, "R1000 R2000 R3000 R5000 -");
    check(LEGACY, body, "R5000 R1000 R2000 R3000 -");
}

#[test]
fn dl_3_and_md_5_a_batch_is_immune_to_expiry() {
    let body = "set fifo_batch=4
        at 0 insert R1000 R10 R1008 R1016 R1024 R1032 R1040
        at 0 pull 2
        at 600 drain";
    let legacy = "R1000 R1008 R1016 R1024 R10 R1032 R1040 -";
    check(LEGACY, body, legacy);
    check(ABC, body, legacy);
    check(D, body, "R10 R1000 R1008 R1016 R1024 R1032 R1040 -");
    assert!(order(&format!("scheduler {}\n{body}", OLD[0])).starts_with("R10 "));
}

#[test]
fn dl_4_and_md_4_expiry_at_equality() {
    let body = "set fifo_batch=1
        at 0 insert R1000 R10 R1008 R1016
        at 0 pull 1
        at 500 drain";
    let (at, after): (Vec<&str>, Vec<&str>) = LEGACY.iter().partition(|g| **g == "deadline@4.12");
    check(&after, body, "R1000 R1008 R1016 R10 -");
    check(&at, body, "R1000 R10 R1008 R1016 -");
    check(ABC, body, "R1000 R10 R1008 R1016 -");
    check(D, body, "R10 R1000 R1008 R1016 -");
}

#[test]
fn dl_6_and_md_3_late_inserts() {
    let body = "at 0 insert R100 R300\nat 0 pull 1\nat 0 insert R200\nat 0 drain";
    for g in [OLD, LEGACY, ABC] {
        check(g, body, "R100 R300 R200 -");
    }
    check(D, body, "R100 R200 R300 -");
    let body = "at 0 insert R100\nat 0 pull 1\nat 0 insert R50 R200 W10\nat 0 drain";
    for g in [OLD, LEGACY, ABC] {
        check(g, body, "R100 R50 R200 W10 -");
    }
    check(D, body, "R100 R200 R50 W10 -");
}

#[test]
fn mq_1_what_is_staged_is_out_of_reach() {
    // Two in flight, 300 already pulled when 250 arrives: 250 comes last whatever the generation.
    let body = "at 0 insert R100 R200 R300 R400\nat 0 hold 3\nat 1 insert R250\nat 1 drain";
    check(ABC, body, "R100 R200 R300 R400 R250 -");
    check(D, body, "R100 R200 R300 R400 R250 -");
    // With a budget first only two are out: 6.5 and later see 250 in time.
    let body = "at 0 insert R100 R200 R300 R400\nat 0 hold 2\nat 1 insert R250\nat 1 drain";
    check(ABC, body, "R100 R200 R300 R400 R250 -");
    check(D, body, "R100 R200 R250 R300 R400 -");
}

#[test]
fn md_6_priorities() {
    let body = "at 0 insert R300:idle R200:be/4 R100:rt/0\nat 0 hold 2\nat 1 hold 1";
    check(&["mq-deadline@4.12"], body, "R300 R200 R100");
    check(&["mq-deadline@5.15"], body, "R100 R200 R300");
    let body = "at 0 insert R300:idle R200:be/4 R100:rt/0
        at 0 hold 2
        at 1 complete R100
        at 1 hold 2
        at 2 complete R200
        at 2 hold 2";
    check(&["mq-deadline@6.1", "mq-deadline@6.12"], body, "R100 - R200 - R300 -");
}

#[test]
fn md_7_aging() {
    let insert = "at 0 insert R200:be/4\nat 9000 insert R1:rt/0 R2:rt/0 R3:rt/0 R4:rt/0\n";
    let aged = format!("{insert}at 9999 pull 1\nat 10000 pull 1");
    check(&["mq-deadline@6.1", "mq-deadline@6.12"], &aged, "R1 R200");
    check(&["mq-deadline@5.15"], &aged, "R1 R2");
}

#[test]
fn no_class_counts_as_best_effort() {
    let body = "at 0 insert R300:be/7 R200 R100:none\nat 0 drain";
    check(&["mq-deadline@5.15", "mq-deadline@6.1"], body, "R300 R200 R100 -");
    check(D, body, "R100 R200 R300 -");
}
