//! Every scenario of `examples/scenarios/` gives what is written beside it. Of requests: one line per dispatched one,
//! `R1000`, or `R1000 @5.000` where the time matters. Of calls: each with its bios below it, blocks of 4 KiB where a bio
//! moves no pages of a file, and what kernel threads do with the time. `BLESS=1` writes that of calls anew.
#![allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use iosched_devices::{DeviceSpec, catalogue};
use iosched_sim::scenario::{Explanation, Scenario, run};

use super::call_files;

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
    assert!(e.to_string().lines().all(|l| l.chars().count() <= 80), "{e}");
    if let Some(calls) = &e.calls {
        return call_files::check(calls);
    }
    let mut shown: Vec<usize> = e.dispatched.iter().flat_map(|d| d.requests.clone()).collect();
    shown.extend(&e.pending);
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown, (0..scenario.requests.len()).collect::<Vec<_>>(), "each request shows up");
    assert!(e.dispatched.is_sorted_by_key(|d| d.t_ns));
    assert!(e.dispatched.iter().all(|d| !d.reason.is_empty()), "{e}");
    assert!(e.idle.iter().all(|i| i.to_ns > i.from_ns && !i.reason.is_empty()), "{e}");
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
        let expected = path.with_extension("expected");
        if std::env::var_os("BLESS").is_some()
            && let Ok(Explanation { calls: Some(calls), .. }) = play(path)
        {
            std::fs::write(&expected, call_files::brief(&calls)).expect("expectations");
        }
        let wanted = std::fs::read_to_string(&expected).expect("its expectations");
        let with_times = wanted.contains('@');
        let got = match play(path) {
            Err(e) => format!("{e}\n"),
            Ok(Explanation { calls: Some(calls), .. }) => call_files::brief(&calls),
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

/// Reasons are in the scheduler's own words, with its figures.
#[test]
fn reasons_name_the_mechanism() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    for (file, words) in [
        ("as-1-anticipatory-2.6.18", "nothing from pid 1 in 6 ms"),
        ("as-3-anticipatory-2.6.32", "no wait after 3 ms: close: 200 sectors from pid 1's last"),
        (
            "kyber-kb-1-6.12",
            "READ batch ended: 16 of 16; WRITE token 1 of 128, 1 of 8 in the batch",
        ),
        ("cfq-prio-4.12", "slice expired: 180 ms = 180 ms (pid 1)"),
        ("cfq-fifo-4.12", "expired: 130 ms >= 125 ms"),
        ("cfq-drain-in-flight-4.12", "drains 3 asynchronous requests first"),
        ("bfq-newcomer-6.12", "pid 1 weight-raised ×30, interactive, until 10.5 s"),
        ("bfq-ping-pong-4.12", "slice of pid 1 expired TOO_IDLE after 8 ms, budget 10922 → 1024"),
        ("bfq-app-start-6.12", "preempted by pid 20: coefficient 30 > 1"),
        ("bfq-soft-real-time-6.12", "preempted by pid 1: coefficient 3000 > 30"),
        ("bfq-burst-6.12", "8 new queues in a burst: none of them counts as interactive"),
        ("bfq-injection-6.12", "injected pid 2: limit 2"),
        ("bfq-waker-6.12", "injected pid 2: the waker of pid 1"),
    ] {
        let e = play(&dir.join(format!("{file}.toml"))).expect("a scenario that runs");
        let said = e.dispatched.iter().any(|d| d.reason.contains(words));
        assert!(said, "{file} does not say \"{words}\":\n{e}");
    }
}
