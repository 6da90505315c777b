//! The scenario files of the anticipatory scheduler, played without a block layer.
#![allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]

use std::path::Path;

use toml::{Table, Value};

use super::driver::Listed;
use super::*;
use iosched_types::{Flags, Request};

fn ns(v: &Value) -> u64 {
    (v.as_float().unwrap() * 1e6).round() as u64
}

fn listed(v: &Value) -> Listed {
    let t = v.as_table().unwrap();
    let int = |k: &str| t[k].as_integer().unwrap() as u64;
    let op = Op::from_letter(t["op"].as_str().unwrap().chars().next().unwrap()).unwrap();
    let mut request = Request::new(op, int("sector"), int("sectors") as u32);
    request.task = int("pid") as u32;
    if t.get("sync").and_then(Value::as_bool) == Some(true) {
        request.flags = Flags::SYNC;
    }
    let after = t.get("after").map(|v| v.as_integer().unwrap() as usize);
    let exits = t.get("exits").and_then(Value::as_bool) == Some(true);
    Listed { at: ns(&t["t_ms"]), after, request, exits }
}

#[test]
fn scenario_files_hold() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut played = 0;
    for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let t: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        let name = t["scheduler"].as_str().unwrap();
        if !name.starts_with("anticipatory") || t["merges"].as_bool() != Some(false) {
            continue;
        }
        assert_eq!(ns(&t["service_ms"]), 5 * MS, "what the driver's device takes");
        let mut d = driver(name);
        d.depth = t["driver_depth"].as_integer().unwrap() as u32;
        d.list(t["request"].as_array().unwrap().iter().map(listed).collect());
        d.run(100_000 * MS);
        let line = |i: &driver::Issued| {
            format!("{}{} @{:.3}\n", i.op.letter(), i.sector, i.at as f64 / 1e6)
        };
        let order: String = d.issued.iter().map(line).collect();
        let expected = std::fs::read_to_string(path.with_extension("expected")).unwrap();
        assert_eq!(order, expected, "{}", path.display());
        played += 1;
    }
    assert!(played >= 6, "found {played}");
}
