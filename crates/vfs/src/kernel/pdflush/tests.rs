use std::cell::RefCell;
use std::rc::Rc;

use super::super::BioOut;
use super::super::memory::{Memory, Settings};
use super::super::testing::{Flat, Path, run};
use super::*;
use crate::cache::readahead::{Era, Stream};
use crate::cache::throttle::DirtyLimits;

const SECOND: u64 = 1_000_000_000;
/// 256 MiB: writers look after 1,024 pages, 6,553 may be dirty before `pdflush` comes, 26,214 at all.
const PAGES: u64 = 1 << 16;

fn world() -> Rc<RefCell<World>> {
    let limits = DirtyLimits {
        background_percent: 10,
        dirty_percent: 40,
        background_bytes: 0,
        dirty_bytes: 0,
    };
    let settings = Settings {
        pages: PAGES,
        limits,
        era: Era::Twin,
        writers_write: true,
        bio_pages: 1,
        hz: 1000,
        ..Settings::default()
    };
    let mut world = World::default();
    world.memory = Memory::new(settings);
    Rc::new(RefCell::new(world))
}

fn open(file: u32) -> Open {
    Open { file, size: 0, ra: 32, large_folios: false, stream: Stream::default(), noted: true }
}

fn kernel(world: &Rc<RefCell<World>>, task: u32, file: u32) -> Kernel {
    world.borrow_mut().memory.open(file);
    Kernel::new(world.clone(), task)
}

fn pdflush(world: &Rc<RefCell<World>>, task: u32) -> Path {
    let k = Kernel::new(world.clone(), task);
    Box::pin(async move { k.pdflush(&Flat).await })
}

fn pages(log: &[(u64, BioOut)]) -> Vec<u64> {
    log.iter().map(|(_, b)| b.sector / 8).collect()
}

/// Below both limits nothing is written for 30 s; then page by page, at the next look.
#[test]
fn old_pages_go_at_a_look() {
    let world = world();
    let k = kernel(&world, 0, 1);
    let program: Path = Box::pin(async move {
        k.wait(Wait::Until(3 * SECOND)).await;
        k.write_and_look(&mut open(1), &Flat, 0, 64 << 10).await;
        k.wait(Wait::Until(60 * SECOND)).await;
    });
    let log = run(&world, vec![program, pdflush(&world, 1)], 1, 1000);
    assert_eq!(pages(&log), (0..16).collect::<Vec<_>>());
    assert!(log.iter().all(|(_, b)| b.sectors == 8 && b.flags == Flags::NONE));
    // Dirty since 3 s, old at 33, looked at every 5.
    assert_eq!(log[0].0, 35 * SECOND);
    assert!(world.borrow().memory.accounts());
}

/// A file system that notes which pages became dirty.
struct Noting(RefCell<Vec<(u64, u64)>>);

impl Backing for Noting {
    type Place = Flat;

    fn place(&self, _: u32) -> Flat {
        Flat
    }

    async fn prepare(&self, _: &Kernel, _: u32, _: u64, to: u64) -> u64 {
        to
    }

    async fn dirtied(&self, _: &Kernel, _: u32, pages: (u64, u64)) {
        self.0.borrow_mut().push(pages);
    }

    async fn write_metadata(&self, _: &Kernel, _: Flags) {}
}

/// The file system is told of pages before the look that follows, not at the end of the call.
#[test]
fn pages_are_told_of_as_they_become_dirty() {
    let world = world();
    let k = kernel(&world, 0, 1);
    let program: Path = Box::pin(async move {
        let files = Noting(RefCell::default());
        k.write_and_look(&mut open(1), &files, 100, 2500 * 4096).await;
        assert_eq!(*files.0.borrow(), [(0, 1024), (1024, 2048), (2048, 2501)]);
    });
    run(&world, vec![program], 1, 1000);
}

/// Over the background limit `pdflush` writes until it is met; the writer does not sleep.
#[test]
fn pdflush_writes_down_to_the_background_limit() {
    let world = world();
    let k = kernel(&world, 0, 1);
    let program: Path = Box::pin(async move {
        let mut file = open(1);
        k.write_and_look(&mut file, &Flat, 0, 8192 * 4096).await;
        assert_eq!(k.with(|w| w.now), 0, "no wait");
        k.wait(Wait::Until(SECOND)).await;
    });
    let log = run(&world, vec![program, pdflush(&world, 1)], 1, 1000);
    // 7,168 pages at the first look over 6,553; rounds of 1,024 from 8,192 down.
    assert_eq!(log.len(), 2048);
    assert_eq!(world.borrow().memory.dirty, 8192 - 2048);
}

/// Over the dirty limit the writer writes itself: half as much again as it may write between two looks, of whatever
/// file has been dirty longest.
#[test]
fn writers_over_the_limit_write_themselves() {
    let world = world();
    let (k, other) = (kernel(&world, 0, 1), kernel(&world, 1, 2));
    let first: Path = Box::pin(async move {
        // Another file, dirty first.
        k.write_and_look(&mut open(1), &Flat, 0, 6000 * 4096).await;
        k.wait(Wait::Until(SECOND)).await;
    });
    let second: Path = Box::pin(async move {
        other.wait(Wait::Until(1000)).await;
        // pdflush is asleep: the disk is congested.
        other.with(|w| w.congested[1] = true);
        let mut file = open(2);
        other.write_and_look(&mut file, &Flat, 0, 22_000 * 4096).await;
    });
    let log = run(&world, vec![first, second, pdflush(&world, 2)], 2, 1000);
    let writers = log.len();
    assert!(writers >= 1536, "{writers}");
    assert_eq!(pages(&log)[..1536], (0..1536).collect::<Vec<_>>()[..], "the other file goes first");
    let w = world.borrow();
    assert!(w.memory.dirty + w.memory.writeback <= 26_214 + 1024, "{}", w.memory.dirty);
}

/// A look that cannot write because everything is on its way waits until a request is given back, or 100 ms.
#[test]
fn a_writer_with_nothing_to_write_waits_for_the_disk() {
    let world = world();
    let k = kernel(&world, 0, 1);
    let program: Path = Box::pin(async move {
        let mut file = open(1);
        k.write_and_look(&mut file, &Flat, 0, 26_000 * 4096).await;
        k.write_some(1, &Flat, (0, u64::MAX)).await;
        k.with(|w| w.congested[1] = true);
        k.write_and_look(&mut file, &Flat, 26_000 * 4096, 1200 * 4096).await;
    });
    // So slow that nothing comes back within the wait.
    let log = run(&world, vec![program], 1, 250_000_000);
    assert!(world.borrow().now >= 100_000_000);
    assert!(log.len() > 26_000);
}

/// `sync` writes everything and waits; metadata is left to its file system.
#[test]
fn sync_writes_all_files() {
    let world = world();
    let k = kernel(&world, 0, 1);
    world.borrow_mut().memory.open(2);
    let program: Path = Box::pin(async move {
        k.write_and_look(&mut open(1), &Flat, 0, 8192).await;
        k.write_and_look(&mut open(2), &Flat, 1 << 20, 8192).await;
        k.with(|w| w.flusher.dirtied(METADATA, w.now));
        k.sync_pages(&Flat).await;
    });
    let log = run(&world, vec![program], 1, 1000);
    assert_eq!(pages(&log), [0, 1, 256, 257]);
    let w = world.borrow();
    assert_eq!((w.memory.dirty, w.memory.writeback, w.flusher.inodes()), (0, 0, 1));
}

/// Pages that are dirty again while they are written have no second turn in the same round: who writes back went round for ever.
#[test]
fn pages_on_their_way_are_left_for_another_round() {
    let world = world();
    let k = kernel(&world, 0, 1);
    let program: Path = Box::pin(async move {
        let mut file = open(1);
        k.write_and_look(&mut file, &Flat, 0, 16 * 4096).await;
        k.write_some(1, &Flat, (0, u64::MAX)).await;
        k.write_and_look(&mut file, &Flat, 0, 8 * 4096).await;
        let round = Round { pages: 100, until: Nanos::MAX, leaves_off: false };
        assert_eq!(k.write_back(&Flat, round).await.pages, 0);
        assert_eq!(k.with(|w| (w.memory.dirty, w.memory.writeback)), (8, 16));
        // `sync` waits for them, and what it has written is not forgotten: it is dirty once more.
        k.sync_pages(&Flat).await;
        assert_eq!(k.with(|w| (w.memory.dirty, w.memory.writeback)), (0, 0));
        k.write_and_look(&mut file, &Flat, 0, 4096).await;
        assert_eq!(k.write_back(&Flat, round).await.pages, 1);
    });
    let log = run(&world, vec![program], 1, 1_000_000);
    assert_eq!(log.len(), 16 + 8 + 1);
    assert!(world.borrow().memory.accounts());
}

/// The worked scenarios of read-ahead with two windows, through `read`: single reads, a stream, reads of 1 MiB.
#[test]
fn reads_go_by_two_windows() {
    let reads = |calls: &[(u64, u64)]| {
        let world = world();
        let k = kernel(&world, 0, 1);
        let calls = calls.to_vec();
        let program: Path = Box::pin(async move {
            let mut file = Open { size: 64 << 20, ..open(1) };
            for (at, kib) in calls {
                let n = k.with(|w| w.read_cached(&mut file, at << 10, kib << 10));
                let n = match n {
                    Some(n) => n,
                    None => k.read(&mut file, &Flat, at << 10, kib << 10).await,
                };
                assert_eq!(n, kib << 10);
            }
        });
        let log = run(&world, vec![program], 1, 1000);
        assert!(log.iter().all(|(_, b)| b.flags == Flags::NONE), "no bio says that it reads ahead");
        log.iter().map(|(_, b)| (b.sector / 2, b.sectors / 2)).collect::<Vec<_>>()
    };
    let every = |n: u64, step: u64, kib: u64| (0..n).map(|i| (i * step, kib)).collect::<Vec<_>>();
    // A stride: 16 KiB first, then each page alone.
    let expected: Vec<_> = [(0, 16)].into_iter().chain((2..16).map(|i| (i * 12, 4))).collect();
    assert_eq!(reads(&every(16, 12, 4)), expected);
    assert_eq!(reads(&every(13, 20, 20)), [(0, 64), (64, 128), (192, 128), (320, 128)]);
    assert_eq!(reads(&every(3, 128, 128)), [(0, 128), (128, 128), (256, 128), (384, 128)]);
    let large = reads(&every(2, 1024, 1024));
    assert_eq!(large, (0..17).map(|i| (i * 128, 128)).collect::<Vec<_>>(), "128 KiB at a time");
}
