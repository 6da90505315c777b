#![no_main]
//! fio's JSON output as job records: any text, no panic.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = iosched_experiment::fio_json::parse(&String::from_utf8_lossy(data));
});
