//! The job file parser (and the I/O log parser behind it) on any text.
#![no_main]

use iosched_workloads::fio::{Lookup, check_files, iolog, parse};
use libfuzzer_sys::fuzz_target;

struct Machine;

impl Lookup for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        (!name.is_empty()).then(|| name.to_string())
    }

    fn keyword(&self, _: &str) -> Option<u64> {
        Some(4096)
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // What is included is the rest of the text, so that includes and logs are fuzzed as well.
    let include = |path: &str| match text.split_once(path) {
        Some((_, rest)) if !path.is_empty() => Ok(rest.to_string()),
        _ => Err("no such file".to_string()),
    };
    match parse("fuzz.fio", text, &Machine, &include, &[]) {
        Ok(set) => {
            assert!(!set.jobs.is_empty());
            let _ = check_files(&set);
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            errors.iter().for_each(|e| drop(e.to_string()));
        }
    }
    let _ = iolog::parse("fuzz.log", text);
});
