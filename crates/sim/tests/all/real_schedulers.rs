//! The scenarios of `data/scenarios`: order and times are those of the real schedulers.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads the files it checks"
)]

use iosched_sim::scenario::{Scenario, run};

use super::beside_the_kernel::data;

/// Scenarios that part, and at which dispatch (`docs/fidelity.md`).
const PARTS: &[(&str, usize)] = &[("min-deadline-0", 13)];

/// Times of the files have three digits, and 2.6.18 counts in µs.
const CLOSE_NS: u64 = 1_500;

/// `R100 @1.234`, in order.
fn expected(text: &str) -> Vec<(String, u64)> {
    let line = |l: &str| {
        let (name, ms) = l.split_once(" @").unwrap();
        (name.to_string(), (ms.trim().parse::<f64>().unwrap() * 1e6).round() as u64)
    };
    text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#')).map(line).collect()
}

fn each_ends_as_the_real_one(version: &str, most: usize) {
    let mut files: Vec<_> = std::fs::read_dir(data("scenarios").join(version))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    assert_eq!(files.len(), most, "scenarios of {version}");
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario = Scenario::from_toml(&name, &text).unwrap();
        let ours = run(&scenario, &|_| Err("none is named".into())).unwrap().dispatched;
        let ours: Vec<(String, u64)> =
            ours.iter().map(|d| (format!("{}{}", d.op.letter(), d.sector), d.t_ns)).collect();
        let real = expected(&std::fs::read_to_string(path.with_extension("expected")).unwrap());
        let same = |i: &usize| {
            let (r, o) = (&real[*i], &ours[*i]);
            r.0 == o.0 && r.1.abs_diff(o.1) <= CLOSE_NS
        };
        let both = real.len().min(ours.len());
        let first = (0..both).find(|i| !same(i)).or((real.len() != ours.len()).then_some(both));
        let known = PARTS.iter().find(|p| p.0 == name).map(|p| p.1);
        assert_eq!(first, known, "{version}/{name}: the first dispatch that differs");
    }
}

#[test]
fn scenarios_of_2_6_18_end_as_there() {
    each_ends_as_the_real_one("2.6.18", 48);
}

#[test]
fn scenarios_of_3_14_end_as_there() {
    each_ends_as_the_real_one("3.14", 40);
}
