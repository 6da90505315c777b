//! What was measured elsewhere, as `validate` reads it: any text, no panic.
#![no_main]

use iosched_sim::validate::{FileFolder, Measured, TruthFolder, parse_bios, parse_dispatch_log};
use libfuzzer_sys::fuzz_target;

const DEVICES: (&str, &str) = ("devices.toml", "[fixed]\nkind = \"fixed\"\nlat_ns = 100000\npar = 8\ncap = 17179869184\nqueue_depth = 32\n");

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let results = ("results.json", text);
    let _ = parse_dispatch_log("fuzz.log", text).map_err(|e| e.to_string());
    let _ = parse_bios(text);
    let _ = Measured::parse("fuzz.json", text).map_err(|e| e.to_string());
    let _ = TruthFolder::parse(DEVICES, Vec::new(), results, None).map_err(|e| e.to_string());
    if let Ok(folder) = FileFolder::parse(DEVICES, results, &|_| None) {
        let _ = folder.plan();
    }
});
