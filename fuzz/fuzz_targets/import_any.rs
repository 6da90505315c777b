//! Any text through format detection and its importer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let _ = iosched_results::import::import("fuzz", &text, None, &Default::default());
});
