//! The scenario files of Kyber, played without a block layer.
#![allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]

use std::path::Path;

use toml::{Table, Value};

use super::*;

#[test]
fn scenario_files_hold() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut played = 0;
    for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let t: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        let name = t["scheduler"].as_str().unwrap();
        if !name.starts_with("kyber") || t["merges"].as_bool() != Some(false) {
            continue;
        }
        assert_eq!(t["completes"].as_str(), Some("never"));
        let mut b = bench(name);
        for r in t["request"].as_array().unwrap() {
            let op = Op::from_letter(r["op"].as_str().unwrap().chars().next().unwrap()).unwrap();
            let sync = r.get("sync").and_then(Value::as_bool).unwrap_or(op == Op::Read);
            insert_at(&mut b, 0, request(op, r["sector"].as_integer().unwrap() as u64, sync));
        }
        let mut order = String::new();
        for time in t["pull_at_ms"].as_array().unwrap() {
            if let Some(id) = dispatch(&mut b, time.as_integer().unwrap() as u64 * MS, 0) {
                order += &format!("{}\n", b.name(id));
            }
        }
        let expected = std::fs::read_to_string(path.with_extension("expected")).unwrap();
        assert_eq!(order, expected, "{}", path.display());
        played += 1;
    }
    assert!(played >= 2, "found {played}");
}
