//! Starts of programs beside loads, beside those of the block layer of 3.14. `iosched validate data/truth-startup-3.14` and the
//! same with `--dispatch` show it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test over files")]

use std::io::Read;

use iosched_sim::validate::{StartCase, StartFolder, parse_later_log};

use super::beside_the_kernel::data;

/// Starts that take another time, and how many rows of them (`docs/fidelity.md`).
const OTHER_TIMES: &[(&str, usize)] = &[
    ("bash.10r-rand.cfq", 1),
    ("bash.5r5w-rand.bfq", 1),
    ("bash.5r5w-rand.cfq", 1),
    ("konsole.5r5w-rand.bfq", 1),
];

/// Logs that part, and where.
const PARTS: &[(&str, usize)] =
    &[("bash.5r5w-rand.bfq", 0), ("bash.5r5w-rand.cfq", 0), ("konsole.5r5w-rand.bfq", 0)];

fn read(name: &str) -> String {
    std::fs::read_to_string(data("truth-startup-3.14").join(name)).unwrap()
}

/// The folder, with its own facts or with those that its README names.
fn folder(own: bool) -> StartFolder {
    let programs = std::fs::read_dir(data("truth-startup-3.14").join("programs")).unwrap();
    let programs = programs.map(|e| e.unwrap().path());
    let programs =
        programs.map(|p| (p.display().to_string(), std::fs::read_to_string(&p).unwrap())).collect();
    let rows = read("startup.json");
    let (devices, taken) = (read("devices.toml"), read("truth.toml"));
    let devices = own.then_some(("devices.toml", devices.as_str()));
    let taken = own.then_some(("truth.toml", taken.as_str()));
    StartFolder::parse(("startup.json", &rows), programs, devices, taken).unwrap()
}

/// Within 3 %, and more than a minute where the kernel's took more than a minute.
#[test]
fn starts_take_the_kernels_time() {
    let folder = folder(false);
    let cases = folder.plan();
    let same = crate::spread(&cases, |case| {
        let ours = case.start.as_ref().unwrap().run().unwrap();
        case.row.start_s.is_within(0.03, ours.start_s)
    });
    let others: Vec<String> =
        cases.iter().zip(same).filter(|(_, same)| !same).map(|(c, _)| c.name()).collect();
    let known: Vec<String> =
        OTHER_TIMES.iter().flat_map(|(name, n)| vec![name.to_string(); *n]).collect();
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    assert_eq!(sorted(others), known);
    assert_eq!(cases.len(), 140);
}

/// From the program's begin on, to the nanosecond.
#[test]
fn every_command_of_a_start_is_the_kernels() {
    let folder = folder(true);
    let mut cases = folder.plan();
    cases.retain(|c| c.row.repetition == 1);
    let compared = crate::spread(&cases, |case| {
        let name = case.name();
        let file = data("truth-startup-3.14").join("dispatch").join(format!("{name}.log.gz"));
        let packed = std::fs::read(file).ok()?;
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
        let kernel = parse_later_log(&name, &text).unwrap();
        let parting = case.start.as_ref().unwrap().beside_log(&kernel).unwrap();
        let known = PARTS.iter().find(|p| p.0 == name).map(|p| p.1);
        assert_eq!(parting.first, known, "{name}: the first command that differs");
        if known.is_none() {
            assert_eq!(parting.ours, kernel, "{name}");
        }
        Some(())
    });
    assert_eq!(compared.iter().flatten().count(), 27);
}

/// Faults of a folder have their places.
#[test]
fn a_wrong_folder_says_where() {
    let one = |row: &str, program: &str| {
        let rows = format!("{{\"rows\": [{row}]}}");
        let programs = vec![("programs/bash.1.json".to_string(), program.to_string())];
        StartFolder::parse(("startup.json", &rows), programs, None, None)
    };
    let row = |load: &str, start: &str| {
        format!(
            r#"{{"device": "hdd7k_ncq", "program": "bash", "load": "{load}", "scheduler": "bfq",
            "repetition": 1, "start_s": {start}}}"#
        )
    };
    let program = "[[1000, [[4096, 4096]]]]";
    let why = |load: &str, program: &str| {
        let folder = one(&row(load, "1.0"), program).unwrap();
        let cases: Vec<StartCase<'_>> = folder.plan();
        cases[0].start.as_ref().map(|_| ()).unwrap_err().clone()
    };
    let e = one(&row("0r", "\"Y\""), program).unwrap_err();
    assert!(e.message.contains("\"X\"") && e.file == "startup.json", "{e}");
    let e = one(&row("0r", "1.0"), "[[1000]]").unwrap_err();
    assert_eq!((e.file.as_str(), e.line), ("programs/bash.1.json", 1), "{e}");
    assert!(why("5x-seq", program).contains("5r5w-rand"));
    assert!(why("99r-seq", program).contains("more room"));
    assert!(why("0r", "[[0, [[68719476736, 4096]]]]").contains("behind the end"));
    assert!(why("0r", "[[0, []]]").contains("reads nothing"));
}
