//! Every scenario of `examples/scenarios/` gives what is written beside it: one line per dispatched
//! request, `R1000`, or `R1000 @5.000` where the time matters.
#![allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use iosched_devices::{DeviceSpec, catalogue};
use iosched_sim::scenario::{Explanation, Scenario, run};

fn lookup(name: &str) -> Result<DeviceSpec, String> {
    catalogue::find(name).map_err(|e| e.to_string())
}

fn play(path: &Path) -> Result<Explanation, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let scenario =
        Scenario::from_toml(&path.display().to_string(), &text).map_err(|e| e.to_string())?;
    let e = run(&scenario, &lookup).map_err(|e| e.to_string())?;
    check(&scenario, &e);
    Ok(e)
}

/// What holds for every scenario.
fn check(scenario: &Scenario, e: &Explanation) {
    let mut shown: Vec<usize> = e.dispatched.iter().flat_map(|d| d.requests.clone()).collect();
    shown.extend(&e.pending);
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown, (0..scenario.requests.len()).collect::<Vec<_>>(), "each request shows up");
    assert!(e.dispatched.is_sorted_by_key(|d| d.t_ns));
    assert!(e.dispatched.iter().all(|d| !d.reason.is_empty()), "{e}");
    assert!(e.idle.iter().all(|i| i.to_ns > i.from_ns && !i.reason.is_empty()), "{e}");
    assert!(e.to_string().lines().all(|l| l.chars().count() <= 80), "{e}");
}

fn files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let entries = std::fs::read_dir(dir).expect("the folder of scenarios");
    let mut all: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    all.sort();
    all
}

/// The lines that differ, side by side.
fn diff(wanted: &str, got: &str) -> String {
    let (mut a, mut b) = (wanted.lines(), got.lines());
    let mut out = String::new();
    loop {
        let (want, got) = (a.next(), b.next());
        if want.is_none() && got.is_none() {
            return out;
        }
        let mark = if want == got { ' ' } else { '!' };
        let _ = writeln!(out, "{mark} {:24} | {}", want.unwrap_or(""), got.unwrap_or(""));
    }
}

#[test]
fn scenario_files_give_what_they_expect() {
    let mut wrong = String::new();
    let files = files();
    for path in &files {
        let wanted =
            std::fs::read_to_string(path.with_extension("expected")).expect("its expectations");
        let with_times = wanted.contains('@');
        let got = match play(path) {
            Err(e) => format!("{e}\n"),
            Ok(e) => e.dispatched.iter().fold(String::new(), |mut out, d| {
                let _ = write!(out, "{}{}", d.op.letter(), d.sector);
                if with_times {
                    let _ = write!(out, " @{}.{:03}", d.t_ns / 1_000_000, d.t_ns / 1000 % 1000);
                }
                out + "\n"
            }),
        };
        if got != wanted {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let _ = writeln!(wrong, "{name}: expected | got\n{}", diff(&wanted, &got));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(files.len() > 90, "{} files", files.len());
}
