use std::cell::RefCell;
use std::rc::Rc;

use super::super::World;
use super::super::memory::{self, Memory};
use super::super::read::Open;
use super::super::testing::{Flat, Path, run};
use super::*;
use crate::cache::readahead::Stream;

const S: u64 = 1_000_000_000;

fn kernel(world: &Rc<RefCell<World>>, task: u32) -> Kernel {
    world.borrow_mut().memory.open(1);
    world.borrow_mut().memory.open(2);
    Kernel::new(world.clone(), task)
}

fn file(file: u32) -> Open {
    Open { file, size: 0, ra: 32, large_folios: false, stream: Stream::default(), noted: true }
}

/// Times of the writes, in seconds, of a disk that is known, or not.
fn written(known: bool, writes: &'static [(u64, u32)]) -> Vec<u64> {
    let world = Rc::new(RefCell::new(World::default()));
    if known {
        world.borrow_mut().memory.introduce(4096);
    }
    let (k, f) = (kernel(&world, 0), kernel(&world, 1));
    let writer: Path = Box::pin(async move {
        for (at, inode) in writes {
            k.wait(Wait::Until(at * S)).await;
            k.write(&mut file(*inode), &Flat, 0, 4096).await;
        }
        k.wait(Wait::Until(100 * S)).await;
    });
    let flusher: Path = Box::pin(async move { f.flusher(&Flat).await });
    run(&world, vec![writer, flusher], 1, 1000).iter().map(|(at, _)| at / S).collect()
}

#[test]
fn dirty_pages_wait_for_thirty_seconds_and_the_next_look() {
    assert_eq!(written(true, &[(1, 1)]), [31]);
    assert_eq!(written(true, &[(1, 1), (3, 2)]), [31, 36]);
    // The time is the file's, not the page's.
    assert_eq!(written(true, &[(1, 1), (29, 1)]), [31]);
}

#[test]
fn pages_written_back_are_counted_for_whose_work_it_was() {
    let world = Rc::new(RefCell::new(World::default()));
    let k = kernel(&world, 0);
    let path: Path = Box::pin(async move {
        k.write(&mut file(1), &Flat, 0, 3 * 4096).await;
        let moved = k.with(|w| w.memory.take_moved());
        assert_eq!((moved.came, moved.written), (3, 0));
        k.write_range(1, &Flat, (0, u64::MAX), u64::MAX, iosched_types::Flags::SYNC, None).await;
        assert_eq!(k.with(|w| w.memory.take_moved()).written, 3);
    });
    run(&world, vec![path], 1, 1000);
}

/// What `sync_file_range` starts: flags of the bios and when the call came back, with a page under way that is dirty again.
fn range_started(range_writes_sync: bool) -> (Vec<Flags>, u64) {
    let settings = memory::Settings { range_writes_sync, ..Default::default() };
    let world = Rc::new(RefCell::new(World::default()));
    world.borrow_mut().memory = Memory::new(settings);
    let k = kernel(&world, 0);
    let path: Path = Box::pin(async move {
        k.write(&mut file(1), &Flat, 0, 2 * 4096).await;
        k.write_some(1, &Flat, (0, 1)).await;
        k.write(&mut file(1), &Flat, 0, 4096).await;
        k.sync_range(1, &Flat, (0, u64::MAX), false).await;
    });
    let log = run(&world, vec![path], 1, 1000);
    let now = world.borrow().now;
    (log.iter().map(|(_, b)| b.flags).collect(), now)
}

#[test]
fn sync_file_range_wrote_as_fsync_does_before_linux_5_2() {
    assert_eq!(range_started(false), (vec![Flags::NONE, Flags::NONE], 0));
    assert_eq!(range_started(true), (vec![Flags::NONE, Flags::SYNC], 1000));
}

#[test]
fn a_disk_that_never_wrote_is_written_at_the_first_look() {
    assert_eq!(written(false, &[(1, 1)]), [6]);
}

#[test]
fn a_sync_of_all_files_is_told_when_it_is_done() {
    let world = Rc::new(RefCell::new(World::default()));
    let (k, f) = (kernel(&world, 0), kernel(&world, 1));
    let writer: Path = Box::pin(async move {
        k.write(&mut file(1), &Flat, 0, 8192).await;
        k.write(&mut file(2), &Flat, 1 << 20, 4096).await;
        k.wait(Wait::Compute(1000)).await;
        k.sync_pages(&Flat).await;
        k.flush().await;
        assert_eq!(k.with(|w| (w.memory.dirty, w.memory.writeback)), (0, 0));
    });
    let flusher: Path = Box::pin(async move { f.flusher(&Flat).await });
    let log = run(&world, vec![writer, flusher], 1, 1000);
    let flags: Vec<_> = log.iter().map(|(_, b)| (b.sectors, b.flags)).collect();
    assert_eq!(
        flags,
        [(16, Flags::NONE), (8, Flags::NONE), (0, Flags::PREFLUSH.with(Flags::SYNC))]
    );
}

/// A disk without room.
struct Full;

impl Backing for Full {
    type Place = Flat;

    fn place(&self, _: u32) -> Flat {
        Flat
    }

    async fn prepare(&self, _: &Kernel, _: u32, from: u64, to: u64) -> u64 {
        // The third page is there already.
        if from == 2 { to.min(3) } else { from }
    }

    async fn write_metadata(&self, _: &Kernel, _: Flags) {}
}

#[test]
fn pages_without_a_place_are_lost_and_the_next_sync_is_told() {
    let world = Rc::new(RefCell::new(World::default()));
    let k = kernel(&world, 0);
    let writer: Path = Box::pin(async move {
        k.write(&mut file(1), &Flat, 0, 5 * 4096).await;
        k.write_and_wait(1, &Full).await;
        assert_eq!(k.with(|w| (w.memory.dirty, w.memory.written, w.memory.dropped)), (0, 1, 4));
        assert!(k.with(|w| w.has_lost(1)));
        assert!(!k.with(|w| w.has_lost(1) || w.has_lost(2)));
    });
    assert_eq!(run(&world, vec![writer], 1, 1000).len(), 1);
}

/// The background threshold of a machine with 7.1 was 24,885 pages, and the device had written nothing. 1 and 10 MiB waited for
/// their 30 s, 11.25 MiB left at the flusher's first look.
#[test]
fn an_idle_device_has_an_eighth_of_what_is_left_since_7_1() {
    let over = |dirty: u64, idle_share: bool| {
        let settings = memory::Settings { idle_share, ..memory::Settings::default() };
        let mut memory = Memory::new(settings);
        memory.dirty = dirty;
        dirty > memory.share_of(24_885, 0)
    };
    assert_eq!([256, 2560, 2880].map(|dirty| over(dirty, true)), [false, false, true]);
    assert_eq!([256, 2560, 2880].map(|dirty| over(dirty, false)), [true; 3]);
}
