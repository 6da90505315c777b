//! The scenario files of these families, played on the scheduler alone: no block layer, no merging.
//! What needs either is played by the simulator's own tests.
#![allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]

use std::path::Path;

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, QueueFacts};
use iosched_types::{IoPrio, Op, ReqId, Request};
use toml::{Table, Value};

const FAMILIES: [&str; 3] = ["noop", "deadline", "mq-deadline"];

fn ns(v: &Value) -> u64 {
    let ms = v.as_float().or(v.as_integer().map(|i| i as f64)).expect("a time in ms");
    (ms * 1e6).round() as u64
}

fn request(t: &Table) -> (u64, Request) {
    let int = |k: &str| t[k].as_integer().expect("a number");
    let op = t["op"].as_str().and_then(|s| s.chars().next()).and_then(Op::from_letter);
    let sectors = u32::try_from(int("sectors")).expect("a length");
    let mut r = Request::new(op.expect("an operation"), int("sector") as u64, sectors);
    r.task = int("pid") as u32;
    if let Some(p) = t.get("prio") {
        r.prio = p.as_str().and_then(IoPrio::parse).expect("a priority");
    }
    (ns(&t["t_ms"]), r)
}

/// The driver: at which times it asks, how many commands it takes, how long each lasts.
struct Driver {
    bench: Bench,
    arrivals: Vec<(u64, Request)>,
    in_flight: Vec<(u64, ReqId)>,
    order: Vec<String>,
}

impl Driver {
    fn arrive(&mut self, now: u64) {
        let due = self.arrivals.iter().take_while(|a| a.0 <= now).count();
        for (t, r) in self.arrivals.drain(..due).collect::<Vec<_>>() {
            self.bench.insert_request(t, r);
        }
    }

    fn pull(&mut self, now: u64) -> Option<ReqId> {
        let Dispatch::Request(id) = self.bench.dispatch(now) else { return None };
        self.order.push(format!("{} @{:.3}", self.bench.name(id), now as f64 / 1e6));
        Some(id)
    }

    fn pull_at(&mut self, times: &[Value], completes: bool) {
        for now in times.iter().map(ns) {
            self.arrive(now);
            if let Some(id) = self.pull(now).filter(|_| completes) {
                self.bench.complete(now, id);
            }
        }
    }

    fn serve(&mut self, depth: usize, service: u64) {
        let mut now = 0;
        loop {
            self.arrive(now);
            while self.in_flight.len() < depth {
                let Some(id) = self.pull(now) else { break };
                self.in_flight.push((now + service, id));
            }
            let done = self.in_flight.first().map(|f| f.0);
            let Some(next) = done.into_iter().chain(self.arrivals.first().map(|a| a.0)).min()
            else {
                return;
            };
            now = next;
            while self.in_flight.first().is_some_and(|f| f.0 <= now) {
                let (_, id) = self.in_flight.remove(0);
                self.bench.complete(now, id);
            }
        }
    }
}

fn play(t: &Table) -> Vec<String> {
    let none = Table::new();
    let set = t.get("tunables").and_then(Value::as_table).unwrap_or(&none);
    let set: Vec<(&str, i64)> =
        set.iter().map(|(k, v)| (k.as_str(), v.as_integer().expect("a number"))).collect();
    let hz = t.get("hz").and_then(Value::as_integer).unwrap_or(1000) as u32;
    let zone_sectors = t.get("zone_sectors").and_then(Value::as_integer).unwrap_or(0) as u64;
    let queue = QueueFacts { hz, zone_sectors, ..QueueFacts::default() };
    let requests = t["request"].as_array().expect("requests");
    let mut arrivals: Vec<_> =
        requests.iter().map(|r| request(r.as_table().expect("a table"))).collect();
    arrivals.sort_by_key(|a| a.0);
    let bench = Bench::on(t["scheduler"].as_str().expect("a name"), &set, queue);
    let mut driver = Driver { bench, arrivals, in_flight: Vec::new(), order: Vec::new() };
    match t.get("pull_at_ms").and_then(Value::as_array) {
        Some(times) => driver.pull_at(times, t["completes"].as_str() == Some("at-once")),
        None => {
            let depth = t["driver_depth"].as_integer().expect("a depth") as usize;
            driver.serve(depth, ns(&t["service_ms"]));
        }
    }
    driver.order
}

#[test]
fn scenario_files_hold_for_the_scheduler_alone() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let mut played = 0;
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let t: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        let family = t["scheduler"].as_str().unwrap().split('@').next().unwrap();
        let merges = t.get("merges").and_then(Value::as_bool).unwrap_or(true);
        // Other schedulers taking over is the block layer's work.
        if merges || t.contains_key("switch") || !FAMILIES.contains(&family) {
            continue;
        }
        played += 1;
        let order = play(&t);
        let expected = std::fs::read_to_string(path.with_extension("expected")).unwrap();
        let expected: Vec<&str> = expected.lines().collect();
        // A line without a time leaves it open.
        let same = order.len() == expected.len()
            && order.iter().zip(&expected).all(|(o, e)| o == e || o.split(' ').next() == Some(e));
        assert!(same, "{}: {order:?}, expected {expected:?}", path.display());
    }
    assert!(played >= 30, "found {played}");
}
