//! Scenarios of system calls: a machine that is given, and any text behind it.
#![no_main]

use iosched_devices::catalogue;
use iosched_sim::scenario::calls::StepKind;
use iosched_sim::scenario::{Scenario, run};
use libfuzzer_sys::fuzz_target;

const MACHINE: &str = "scheduler = \"mq-deadline\"\nservice_ms = 1\nmemory = \"16M\"\n[filesystem]\nsize = \"1G\"\n\
    [[file]]\npath = \"a\"\nsize = \"64K\"\n[[call]]\ncall = \"open\"\nfile = \"a\"\nflags = \"read, write\"\n";

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // Long scenarios are valid and slow, which is not what is looked for here.
    if text.contains("times") || text.contains("until_ms") {
        return;
    }
    let scenario = match Scenario::from_toml("fuzz.toml", &format!("{MACHINE}{text}")) {
        Ok(scenario) => scenario,
        Err(e) => {
            drop(e.to_string());
            return;
        }
    };
    let lookup = |name: &str| catalogue::find(name).map_err(|e| e.to_string());
    let Ok(explanation) = run(&scenario, &lookup) else { return };
    drop(explanation.to_string());
    let Some(calls) = explanation.calls else { return };
    if calls.cut {
        return;
    }
    // Every call returns, and every bio is somebody's.
    assert!(calls.calls.iter().all(|c| c.to_ns.is_some()));
    let bios = calls.steps.iter().filter(|s| matches!(s.kind, StepKind::Submits { .. })).count();
    assert_eq!(bios, calls.bios.len());
});
