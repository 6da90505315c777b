//! The files `examples/scenarios/bfq-*.toml` without a block layer: what `iosched explain` shows must not
//! depend on more than the scheduler. `BLESS=1 cargo test` rewrites the expectations.

use std::collections::BTreeMap;
use std::fmt::Write;

use iosched_schedulers::QueueFacts;
use iosched_types::units::nanos_from_ms;
use iosched_types::{Flags, IoPrio, Op, Request};

use super::driver::Rig;

type Table = BTreeMap<String, String>;

/// The few forms of TOML that these files use.
fn tables(text: &str) -> (Table, Table, Vec<Table>) {
    let (mut top, mut tunables, mut requests) = (Table::new(), Table::new(), Vec::new());
    let mut section = "";
    for line in text.lines().map(|l| l.split('#').next().unwrap_or("").trim()) {
        match line {
            "" => {}
            "[tunables]" => section = "tunables",
            "[[request]]" => {
                section = "request";
                requests.push(Table::new());
            }
            _ => {
                let (k, v) = line.split_once(" = ").expect("key = value");
                let at = match section {
                    "tunables" => &mut tunables,
                    "request" => requests.last_mut().expect("in a request"),
                    _ => &mut top,
                };
                at.insert(k.into(), v.trim_matches('"').into());
            }
        }
    }
    (top, tunables, requests)
}

fn number<T: std::str::FromStr>(t: &Table, key: &str) -> Option<T> {
    t.get(key).map(|v| v.parse().ok().expect("a number"))
}

fn ns(t: &Table, key: &str) -> u64 {
    nanos_from_ms(number(t, key).expect("a time")).expect("a sane time")
}

fn request(t: &Table) -> Request {
    let op = Op::from_letter(t["op"].chars().next().expect("an operation")).expect("an operation");
    let mut r = Request::new(
        op,
        number(t, "sector").expect("a sector"),
        number(t, "sectors").expect("a size"),
    );
    r.task = number(t, "pid").expect("a pid");
    if let Some(prio) = t.get("prio") {
        r.prio = IoPrio::parse(prio).expect("a priority");
    }
    if t.get("sync").is_some_and(|s| s == "true") {
        r.flags = Flags::SYNC;
    }
    r
}

fn play(text: &str) -> String {
    let (top, tunables, requests) = tables(text);
    let set: Vec<(&str, i64)> =
        tunables.iter().map(|(k, v)| (k.as_str(), v.parse().expect("a value"))).collect();
    let queue = QueueFacts { hz: number(&top, "hz").unwrap_or(250), ..QueueFacts::default() };
    let service = ns(&top, "service_ms");
    let depth = number(&top, "driver_depth").expect("a depth");
    let mut rig = Rig::new(&top["scheduler"], &set, queue, depth, move |_| service).parallel();
    for t in &requests {
        let r = request(t);
        let start = if t.contains_key("after") { u64::MAX } else { ns(t, "t_ms") };
        rig.process(start, 1, 0, move |n| (n == 0).then(|| r.clone()));
    }
    for (i, t) in requests.iter().enumerate() {
        if let Some(after) = number::<u32>(t, "after") {
            rig.hands_over(after + 1, i as u32 + 1, ns(t, "t_ms"));
        }
    }
    rig.run_to(100_000_000_000);
    let mut out = String::new();
    for s in &rig.sent {
        let _ = writeln!(out, "{}{} @{:.3}", s.op.letter(), s.sector, s.at as f64 / 1e6);
    }
    assert_eq!(rig.sent.len(), requests.len());
    out
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]
fn scenario_files_give_what_they_expect() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let mut files = 0;
    for entry in std::fs::read_dir(&dir).expect("the folder of scenarios") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        if !name.starts_with("bfq-") || !name.ends_with(".toml") {
            continue;
        }
        files += 1;
        let got = play(&std::fs::read_to_string(&path).expect("a readable file"));
        let expected = path.with_extension("expected");
        iosched_testing::golden(&expected, &got);
    }
    assert!(files > 15, "{files} files");
}
