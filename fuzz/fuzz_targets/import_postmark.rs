//! Any text through the PostMark importer; what it accepts must go out again as CSV and PTS.
#![no_main]

use iosched_results::export;
use iosched_results::import::{Format, import};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(records) = import("fuzz", &text, Some(Format::Postmark), &Default::default()) {
        let _ = export::to_csv(&records);
        let _ = export::export("fuzz", &records, export::Format::Pts);
    }
});
