//! In steady state no command allocates memory.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use iosched_devices::{Command, Device, truth};
use iosched_testing::allocations;
use iosched_types::Op;

/// Keeps 64 commands in flight until `commands` more have completed; mixed, with some flushes.
fn run(device: &mut dyn Device, done: &mut Vec<iosched_devices::Completion>, commands: u64) {
    let places = device.capacity() / 65_536;
    let (mut state, mut count) = (7u64, 0);
    while count < commands {
        let now = device.next_wakeup().unwrap_or(0);
        device.advance(now, done);
        count += done.len() as u64;
        done.clear();
        while device.in_flight() < 64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let op = match (state >> 40) % 64 {
                0 => Op::Flush,
                1..32 => Op::Read,
                _ => Op::Write,
            };
            let len = if op == Op::Flush { 0 } else { 4096 << ((state >> 50) % 4) };
            let offset = ((state >> 8) % places) * 65_536;
            device.submit(now, Command { id: 0, op, offset, len, fua: false });
        }
    }
}

/// One test in this file: the counter is the whole program's.
#[test]
fn no_command_allocates_in_steady_state() {
    let text = include_str!("../../../../data/truth/devices.toml");
    for d in truth::parse("devices.toml", text).unwrap() {
        let mut device = d.spec.build().unwrap();
        let mut done = Vec::with_capacity(4096);
        run(&mut *device, &mut done, 60_000);
        let before = allocations();
        run(&mut *device, &mut done, 60_000);
        let made = allocations() - before;
        // A queue may still grow to a new record length; a doubling or two is not "per command".
        assert!(made <= 8, "{}: {made} allocations in 60000 commands", d.spec.name);
    }
}
