//! The pictures of `docs/benchmarks`: what each program calls, drawn by the program itself.
//!
//! `BLESS=1 cargo test -p iosched --test all pictures` draws them anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use iosched_workloads::programs::PROGRAMS;

use super::{JOB, Place};

/// Programs with what is given beside `--quick --device hdd-7200 --scheduler none`. Beside random readers a start
/// has few enough calls to keep them all.
const PICTURES: &[(&str, &[&str])] = &[
    ("apache", &[]),
    ("compilebench", &[]),
    ("dbench", &[]),
    ("file-copy", &[]),
    ("fs-mark", &[]),
    ("interleaved", &[]),
    ("iozone", &[]),
    ("kernel-compile", &[]),
    ("kernel-tasks", &[]),
    ("nginx", &[]),
    ("pg-test-fsync", &[]),
    ("pgbench", &[]),
    ("php-compile", &[]),
    ("postmark", &[]),
    ("sqlite", &[]),
    ("startup", &["--param", "load=10r-rand"]),
    ("video", &["--param", "load=10r-rand", "--param", "iterations=1"]),
];

/// Programs without a picture, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("rd", "reads, and nothing else"),
    ("fsops", "one operation, of which there are thirty"),
    ("relay", "made to test the simulator, no benchmark"),
];

#[test]
fn every_program_has_a_picture_and_an_example() {
    let all: BTreeSet<_> = PROGRAMS.iter().map(|d| d.name).collect();
    let here = PICTURES.iter().map(|p| p.0).chain(WITHOUT.iter().map(|w| w.0));
    assert_eq!(here.clone().count(), all.len(), "each once, in PICTURES or WITHOUT");
    assert_eq!(here.collect::<BTreeSet<_>>(), all, "left is {}, right PROGRAMS", file!());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut examples = String::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|e| e == "toml") {
            examples += &std::fs::read_to_string(file).unwrap();
        }
    }
    for name in all {
        let named = [format!("program = \"{name}\""), format!("program = \"{name} ")];
        let line = [format!("\"{name}\","), format!("\"{name} ")];
        assert!(named.iter().chain(&line).any(|n| examples.contains(n)), "no example of {name}");
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks")
}

#[test]
fn pictures_of_calls_are_up_to_date() {
    let place = Place::new();
    let bless = std::env::var_os("BLESS").is_some();
    for (name, more) in PICTURES {
        let picture = format!("{name}.svg");
        let args = ["run", name, "--quick", "--device", "hdd-7200", "--scheduler", "none"];
        let args = [&args, *more, &["--calls", &picture]].concat();
        let out = place.iosched(&args).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && !said.contains("left out"), "{name}: {said}");
        let drawn = std::fs::read_to_string(place.dir.path().join(&picture)).unwrap();
        let there = docs().join("calls").join(&picture);
        if bless {
            std::fs::write(&there, &drawn).unwrap();
        }
        let old = std::fs::read_to_string(&there).unwrap_or_default();
        assert!(old == drawn, "docs/benchmarks/calls/{picture} is out of date: see {}", file!());
    }
}

#[test]
fn every_page_shows_its_pictures() {
    let mut pages = String::new();
    for page in std::fs::read_dir(docs()).unwrap() {
        let page = page.unwrap().path();
        if page.extension().is_some_and(|e| e == "md") {
            pages += &std::fs::read_to_string(page).unwrap();
        }
    }
    for (name, _) in PICTURES {
        assert!(pages.contains(&format!("](calls/{name}.svg)")), "no page shows calls/{name}.svg");
    }
}

#[test]
fn calls_are_printed_as_text() {
    let place = Place::new();
    let args = ["run", "sqlite", "--quick", "--device", "ssd-sata", "--scheduler", "bfq"];
    let text = place.out(&[&args[..], &["--calls", "-"]].concat());
    assert!(text.starts_with("sqlite on ssd-sata under bfq@"), "{text}");
    let json = place.out(&[&args[..], &["--calls", "-", "--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["operations"][0]["operation"], "insert");
    assert!(text.contains("\ninsert: ") && text.contains("\n  fdatasync "), "{text}");
}

#[test]
fn what_has_no_calls_to_show_is_refused() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let fio = ["run", &job, "--device", "ssd-sata", "--scheduler", "none", "--calls", "-"];
    assert!(place.fails(2, &fio).contains("job is no program"));
    let args = ["run", "sqlite", "--device", "ssd-sata", "--scheduler", "none"];
    let live = [&args[..], &["--backend", "emulated", "--calls", "-"]].concat();
    assert!(place.fails(2, &live).contains("--calls shows calls in the simulator"));
    let csv = [&args[..], &["--calls", "-", "--format", "csv"]].concat();
    assert!(place.fails(2, &csv).contains("--calls has no such form"));
    let both = [&args[..], &["--calls", "a.svg", "--format", "json"]].concat();
    assert!(place.fails(2, &both).contains("a picture of calls is no JSON"));
    let photograph = [&args[..], &["--calls", "a.PNG"]].concat();
    assert!(place.fails(2, &photograph).contains("--calls draws no .PNG"));
    let nowhere = [&args[..], &["--calls", "missing/a.svg"]].concat();
    assert!(place.fails(2, &nowhere).contains("missing"));
}
