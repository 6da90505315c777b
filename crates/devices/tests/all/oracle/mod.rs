//! The models against slow transcriptions of their definition, on random parameters and commands.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod fixed;
mod hdd;
mod ssd;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosched_devices::{Command, Completion, DeviceSpec, Model};
use iosched_types::Op;
use proptest::prelude::*;

/// The heap of the definition: (time, order of creation).
pub(crate) struct Heap<E> {
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    events: Vec<E>,
}

impl<E: Clone> Heap<E> {
    pub(crate) fn new() -> Self {
        Heap { heap: BinaryHeap::new(), events: Vec::new() }
    }
    pub(crate) fn push(&mut self, time: u64, event: E) {
        self.heap.push(Reverse((time, self.events.len())));
        self.events.push(event);
    }
    pub(crate) fn pop_until(&mut self, now: u64) -> Option<(u64, E)> {
        let Reverse((time, order)) = *self.heap.peek()?;
        if time > now {
            return None;
        }
        self.heap.pop();
        Some((time, self.events[order].clone()))
    }
}

/// A transcription: told of arrivals, asked for what has completed.
pub(crate) trait Oracle {
    fn arrive(&mut self, now: u64, r: Command);
    fn run(&mut self, now: u64, done: &mut Vec<Completion>);
}

/// (pause before it, operation, offset, length) with offsets and lengths that collide often.
fn commands(cap: u64) -> impl Strategy<Value = Vec<(u64, Command)>> {
    let pause = prop_oneof![4 => Just(0u64), 2 => 0u64..50, 1 => 0u64..3_000, 1 => 0u64..60_000];
    let op = prop_oneof![
        5 => Just(Op::Read), 5 => Just(Op::Write), 1 => Just(Op::Flush), 1 => Just(Op::Discard)
    ];
    let place = (0..cap / 512, 0u64..40, 0u64..8);
    proptest::collection::vec((pause, op, place), 1..120).prop_map(move |all| {
        let (mut now, mut end) = (0, 0);
        let each = all.into_iter().enumerate().map(|(i, (pause, op, (sector, len, follow)))| {
            now += pause;
            // Some follow their predecessor, some lie close to the beginning, the rest anywhere.
            let sector = match follow {
                0 | 1 => end,
                2 => sector % 64,
                _ => sector,
            };
            let len = if op == Op::Flush { 0 } else { len * 512 };
            let offset = (sector * 512).min(cap - len);
            end = (offset + len) / 512;
            (now, Command { id: i as u32, op, offset, len, fua: false })
        });
        each.collect()
    })
}

/// Runs both and compares every completion and the order of completions.
fn same(model: Model, oracle: &mut dyn Oracle, commands: &[(u64, Command)]) {
    let mut device = DeviceSpec::new("random", model).build().unwrap();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for (now, c) in commands {
        // In one go or from wake-up to wake-up: no difference.
        if c.id % 2 == 0 {
            while let Some(t) = device.next_wakeup().filter(|t| t <= now) {
                device.advance(t, &mut ours);
            }
        }
        device.advance(*now, &mut ours);
        device.submit(*now, *c);
        oracle.run(*now, &mut theirs);
        oracle.arrive(*now, *c);
    }
    device.advance(u64::MAX, &mut ours);
    oracle.run(u64::MAX, &mut theirs);
    assert_eq!(device.in_flight(), 0);
    assert_eq!(device.next_wakeup(), None);
    assert_eq!(ours.len(), commands.len());
    assert_eq!(ours, theirs);
}

const CAP: u64 = 1 << 22;

/// A value that is often the same as another, so that ties happen.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), Just(10), Just(20), 0u64..100, 0u64..5_000]
}

fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), Just(512_000_000), 1_000_000u64..10_000_000_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn fixed_device(
        (depth, flush_ns, lat_ns, par) in (0u64..6, time(), time(), 1u64..5),
        commands in commands(CAP),
    ) {
        let p = fixed::params(CAP, depth, flush_ns, lat_ns + 1, par);
        same(Model::Fixed(p.clone()), &mut fixed::Slow::new(p), &commands);
    }

    #[test]
    fn disk(p in hdd::params(CAP), commands in commands(CAP)) {
        same(Model::Hdd(p.clone()), &mut hdd::Slow::new(p), &commands);
    }

    #[test]
    fn big_disk(p in hdd::params(18 << 40), commands in commands(18 << 40)) {
        same(Model::Hdd(p.clone()), &mut hdd::Slow::new(p), &commands);
    }

    #[test]
    fn solid_state_drive(p in ssd::params(CAP), commands in commands(CAP)) {
        same(Model::Ssd(p.clone()), &mut ssd::Slow::new(p), &commands);
    }
}
