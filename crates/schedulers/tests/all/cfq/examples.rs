//! The scenario files `examples/scenarios/cfq-*.toml` without a block layer: what `iosched explain` shows
//! for them is what is expected beside them. `BLESS=1 cargo test` rewrites that.
#![allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]

use std::path::Path;

use iosched_schedulers::Dispatch;
use iosched_types::units::nanos_from_ms;
use iosched_types::{Flags, IoPrio, Op, Request};

use super::driver::Machine;

/// The keys that these files use; one of them per line.
#[derive(Default)]
struct Scenario {
    scheduler: String,
    service: f64,
    pulls: Vec<f64>,
    requests: Vec<Wanted>,
}

struct Wanted {
    at: f64,
    after: Option<usize>,
    request: Request,
}

fn parse(text: &str) -> Scenario {
    let mut s = Scenario::default();
    for line in text.lines() {
        let line = line.split('#').next().unwrap().trim();
        if line == "[[request]]" {
            let request = Request::new(Op::Read, 0, 8);
            s.requests.push(Wanted { at: 0.0, after: None, request });
            continue;
        }
        let Some((key, value)) = line.split_once(" = ") else { continue };
        let value = value.trim_matches('"');
        match (key, s.requests.last_mut()) {
            ("scheduler", _) => s.scheduler = value.into(),
            ("service_ms", _) => s.service = value.parse().unwrap(),
            ("pull_at_ms", _) => {
                let list = value.trim_matches(['[', ']']).split(',');
                s.pulls = list.map(|t| t.trim().parse().unwrap()).collect();
            }
            ("kernel" | "completes", None) => {}
            ("merges", None) => assert_eq!(value, "false"),
            ("driver_depth", None) => assert_eq!(value, "1"),
            ("hz", None) => assert_eq!(value, "1000"),
            ("t_ms", Some(r)) => r.at = value.parse().unwrap(),
            ("after", Some(r)) => r.after = Some(value.parse().unwrap()),
            ("op", Some(r)) => {
                r.request.op = Op::from_letter(value.chars().next().unwrap()).unwrap()
            }
            ("sector", Some(r)) => r.request.sector = value.parse().unwrap(),
            ("sectors", Some(r)) => r.request.sectors = value.parse().unwrap(),
            ("pid", Some(r)) => r.request.task = value.parse().unwrap(),
            ("sync", Some(r)) if value == "true" => r.request.flags = Flags::SYNC,
            ("sync", Some(_)) => {}
            ("prio", Some(r)) => r.request.prio = IoPrio::parse(value).unwrap(),
            _ => panic!("unknown line {line}"),
        }
    }
    s
}

fn play(s: &Scenario) -> String {
    let mut m = Machine::new(&s.scheduler, &[]).device(1, s.service);
    if !s.pulls.is_empty() {
        return pull(m, s);
    }
    for (n, w) in s.requests.iter().enumerate() {
        m.number(w.request.sector, n);
        match w.after {
            None => m.submit(w.at, w.request.clone()),
            Some(first) => m.submit_after(first, w.at, w.request.clone()),
        }
    }
    m.run(10_000.0);
    m.sent.iter().map(|s| format!("{} @{:.3}\n", s.name, s.at as f64 / 1e6)).collect()
}

/// The driver asks at the times given; what it gets is done at once.
fn pull(mut m: Machine, s: &Scenario) -> String {
    let mut order = String::new();
    let mut left: Vec<&Wanted> = s.requests.iter().collect();
    for at in &s.pulls {
        let now = nanos_from_ms(*at).unwrap();
        left.retain(|w| {
            let come = w.at <= *at;
            if come {
                m.b.insert_request(nanos_from_ms(w.at).unwrap(), w.request.clone());
            }
            !come
        });
        if let Dispatch::Request(id) = m.b.dispatch(now) {
            order += &format!("{}\n", m.b.name(id));
            m.b.complete(now, id);
        }
    }
    order
}

#[test]
fn scenario_files_end_as_expected() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut files = 0;
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("cfq-") || !name.ends_with(".toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        // This device takes one command at a time; the simulator's tests play the others.
        if text.contains("\ndevice = ")
            || !text.contains("\ndriver_depth = 1\n") && !text.contains("\npull_at_ms")
        {
            continue;
        }
        files += 1;
        let got = play(&parse(&text));
        let beside = path.with_extension("expected");
        iosched_testing::golden(&beside, &got);
    }
    assert!(files >= 16, "{files} files");
}
