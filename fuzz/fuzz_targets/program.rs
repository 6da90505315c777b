//! Random programs over system calls on the simulated host: nobody sleeps for ever, every task is accounted for.
#![no_main]

#[path = "../../crates/host/tests/rig/mod.rs"]
mod rig;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rig::random::check(data));
