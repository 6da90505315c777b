//! The reader of strace logs on any text, and the replay of whatever it takes.
#![no_main]

#[path = "../../crates/host/tests/rig/mod.rs"]
mod rig;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        rig::log::check(text);
    }
});
