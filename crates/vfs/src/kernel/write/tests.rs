use std::cell::RefCell;
use std::rc::Rc;

use super::super::World;
use super::super::memory::{Memory, Settings};
use super::super::testing::{Flat, Path, run};
use super::*;
use crate::cache::readahead::Stream;
use crate::cache::throttle::DirtyLimits;

fn open(size: u64) -> Open {
    Open { file: 1, size, ra: 32, large_folios: false, stream: Stream::default(), noted: true }
}

fn kernel(world: &Rc<RefCell<World>>, task: u32) -> Kernel {
    world.borrow_mut().memory.open(1);
    Kernel::new(world.clone(), task)
}

fn kib(log: &[(u64, BioOut)]) -> Vec<(Op, u64, u32, Flags)> {
    log.iter().map(|(_, b)| (b.op, b.sector / 2, b.sectors / 2, b.flags)).collect()
}

/// Dirty pages in any order are written in that of the file, neighbours together. Linux 6.12.
#[test]
fn a_sync_writes_runs_in_order_of_the_file() {
    let world = Rc::new(RefCell::new(World::default()));
    let k = kernel(&world, 0);
    let path: Path = Box::pin(async move {
        let mut file = open(64 << 20);
        for (at, len) in [(40, 4), (1000, 4), (36, 4), (500, 8), (0, 4)] {
            k.write(&mut file, &Flat, at << 10, len << 10).await;
        }
        k.write_and_wait(1, &Flat).await;
    });
    let log = run(&world, vec![path], 1, 1000);
    let expected =
        [(0, 4), (36, 8), (500, 8), (1000, 4)].map(|(a, n)| (Op::Write, a, n, Flags::SYNC));
    assert_eq!(kib(&log), expected);
    let world = world.borrow();
    assert!(world.memory.accounts() && world.memory.dirty + world.memory.writeback == 0);
}

/// A write of bytes reads the page first, and both ends of a longer one; beyond the end nothing is read.
#[test]
fn pages_changed_in_part_are_read_first() {
    let world = Rc::new(RefCell::new(World::default()));
    let k = kernel(&world, 0);
    let path: Path = Box::pin(async move {
        let mut file = open(4 << 20);
        k.write(&mut file, &Flat, 100, 100).await;
        k.write(&mut file, &Flat, 2_001_000, 5000).await;
        k.write(&mut file, &Flat, (4 << 20) + 10, 100).await;
        k.write(&mut file, &Flat, 0, 4096).await;
        assert_eq!(file.size, (4 << 20) + 110);
    });
    let log = run(&world, vec![path], 1, 1000);
    assert_eq!(kib(&log), [0, 1952, 1956].map(|at| (Op::Read, at, 4, Flags::NONE)));
}

/// Background write-back begins at the look after the threshold: after 2,080 pages, then 2,112 more, as in Linux 6.12.
/// The flusher runs when the call that looked is over, so its 64 KiB go along.
#[test]
fn background_writeback_begins_at_a_look() {
    let limits = DirtyLimits {
        background_percent: 0,
        dirty_percent: 0,
        background_bytes: 8 << 20,
        dirty_bytes: 64 << 20,
    };
    let settings = Settings { limits, ..Settings::default() };
    let mut world = World::default();
    world.memory = Memory::new(settings);
    let world = Rc::new(RefCell::new(world));
    let (k, f) = (kernel(&world, 0), kernel(&world, 1));
    // The device is known: it has a share.
    world.borrow_mut().memory.introduce(4096);
    let writer: Path = Box::pin(async move {
        let mut file = open(0);
        for i in 0..384 {
            k.write(&mut file, &Flat, i << 16, 1 << 16).await;
            k.wait(Wait::Compute(1_000_000)).await;
        }
    });
    let flusher: Path = Box::pin(async move { f.flusher(&Flat).await });
    let log = run(&world, vec![writer, flusher], 1, 1000);
    let sizes: Vec<_> = kib(&log).iter().map(|b| (b.1, b.2)).collect();
    assert_eq!(sizes, [(0, 8320 + 64), (8384, 8448)]);
    let world = world.borrow();
    assert_eq!(world.memory.dirty * 4, 7808 - 64);
    assert!(world.memory.accounts());
}

/// When a writer goes on that has filled memory up to where it first sleeps, for two ticks.
fn first_pause(wheel: bool) -> u64 {
    let limits = DirtyLimits {
        background_percent: 0,
        dirty_percent: 0,
        background_bytes: 64 << 20,
        dirty_bytes: 256 << 20,
    };
    let mut world = World::default();
    world.memory = Memory::new(Settings { limits, wheel, ..Settings::default() });
    let world = Rc::new(RefCell::new(world));
    let k = kernel(&world, 0);
    let writer: Path = Box::pin(async move {
        let mut file = open(0);
        let mut at = 0;
        while k.with(|w| w.now) == 0 {
            k.write(&mut file, &Flat, at, 1 << 16).await;
            at += 1 << 16;
        }
    });
    run(&world, vec![writer], 1, 1000);
    let world = world.borrow();
    // A little over the middle of both limits: 40,992 pages when it looked, as in the event log, and the rest of its call.
    assert_eq!(world.memory.dirty, 40992 + 16);
    world.now
}

/// Event log of 6.12: a pause of 2 ticks is over at the third tick, one of 44 at the 45th. Before 4.8 a timer went off at its
/// own tick.
#[test]
fn a_pause_ends_a_tick_later_since_timers_wait_in_a_wheel() {
    assert_eq!((first_pause(true), first_pause(false)), (12_000_000, 8_000_000));
}

/// At the limit a writer sleeps again and again, as long as the disk takes, and dirties no page in between.
#[test]
fn nothing_is_dirtied_at_the_limit() {
    let limits = DirtyLimits {
        background_percent: 0,
        dirty_percent: 0,
        background_bytes: 4 << 20,
        dirty_bytes: 8 << 20,
    };
    let mut world = World::default();
    world.memory = Memory::new(Settings { limits, ..Settings::default() });
    let world = Rc::new(RefCell::new(world));
    let (watch, k) = (kernel(&world, 0), kernel(&world, 1));
    // No flusher comes.
    let writer: Path = Box::pin(async move {
        let mut file = open(0);
        for page in 0.. {
            k.write(&mut file, &Flat, page << 12, 1 << 12).await;
        }
    });
    let watcher: Path = Box::pin(async move {
        let dirty = || watch.with(|w| w.memory.dirty);
        watch.wait(Wait::Until(10_000_000_000)).await;
        let at_limit = dirty();
        watch.wait(Wait::Until(60_000_000_000)).await;
        assert_eq!(dirty(), at_limit);
    });
    run(&world, vec![watcher, writer], 1, 1000);
}
