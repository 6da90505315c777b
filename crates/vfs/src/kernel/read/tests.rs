use std::cell::RefCell;
use std::rc::Rc;

use iosched_types::TaskId;

use super::super::World;
use super::super::testing::{Flat, Path, run};
use super::*;

fn file() -> Open {
    Open {
        file: 1,
        size: 64 << 20,
        ra: 32,
        large_folios: false,
        stream: Stream::default(),
        noted: true,
    }
}

fn reader(world: &Rc<RefCell<World>>, task: TaskId, calls: Vec<(u64, u64)>) -> Path {
    let kernel = Kernel::new(world.clone(), task);
    Box::pin(async move {
        kernel.with(|w| w.memory.open(1));
        let mut open = file();
        for (at, len) in calls {
            assert_eq!(kernel.read(&mut open, &Flat, at, len).await, len);
        }
    })
}

/// The next window is asked for before the reader sleeps on its page.
#[test]
fn a_stream_of_64_kib_reads_keeps_two_windows_under_way() {
    let world = Rc::new(RefCell::new(World::default()));
    let calls = (0..16).map(|i| (i << 16, 1 << 16)).collect();
    let log = run(&world, vec![reader(&world, 0, calls)], 1, 100_000);
    let seen: Vec<_> = log.iter().map(|(at, b)| (at / 1000, b.sector / 2, b.sectors / 2)).collect();
    assert_eq!(
        seen,
        [
            (0, 0, 128),
            (100, 128, 128),
            (100, 256, 128),
            (200, 384, 128),
            (200, 512, 128),
            (300, 640, 128),
            (300, 768, 128),
            (400, 896, 128),
            (400, 1024, 128)
        ]
    );
}

/// A second reader waits for the page that the first one has asked for.
#[test]
fn two_readers_of_a_page_read_it_once() {
    let world = Rc::new(RefCell::new(World::default()));
    let log = run(
        &world,
        vec![reader(&world, 0, vec![(8 << 20, 4096)]), reader(&world, 1, vec![(8 << 20, 4096)])],
        2,
        1000,
    );
    assert_eq!(log.len(), 1);
    assert_eq!(world.borrow_mut().memory.cached(), 1);
}

/// Linux 6.12 with windows of 128 KiB: a missing page of a map is read with those around it. A map that is touched page by page
/// comes to the mark at three quarters, and from then on to one at the start of each window.
#[test]
fn a_fault_reads_around() {
    let touched = |pages: std::ops::Range<u64>| -> Vec<(u64, u32)> {
        let world = Rc::new(RefCell::new(World::default()));
        let kernel = Kernel::new(world.clone(), 0);
        let path: Path = Box::pin(async move {
            kernel.with(|w| w.memory.open(1));
            let mut open = file();
            for page in pages {
                kernel.fault(&mut open, &Flat, page, Order::Unsaid).await;
            }
        });
        let log = run(&world, vec![path], 1, 100_000);
        log.iter().map(|(_, b)| (b.sector / 2, b.sectors / 2)).collect()
    };
    assert_eq!(touched(0..24), [(0, 128)]);
    assert_eq!(touched(0..33), [(0, 128), (128, 128), (256, 128)]);
    assert_eq!(touched(128..136), [(448, 128)]);
    assert_eq!(touched(128..145), [(448, 128), (576, 128), (704, 128)]);
}

/// Linux 6.12: what was said of the map decides what a fault reads beside its page. What was said of the open file does not,
/// but for the marks of an ordered map.
#[test]
fn a_fault_heeds_what_was_said_of_its_map() {
    let touched = |order, random, pages: std::ops::Range<u64>| -> Vec<(u64, u32, bool)> {
        let world = Rc::new(RefCell::new(World::default()));
        let kernel = Kernel::new(world.clone(), 0);
        let path: Path = Box::pin(async move {
            kernel.with(|w| w.memory.open(1));
            let mut open = file();
            open.stream.random = random;
            for page in pages {
                kernel.fault(&mut open, &Flat, page, order).await;
            }
        });
        let log = run(&world, vec![path], 1, 100_000);
        let seen = |b: &BioOut| (b.sector / 8, b.sectors / 8, b.flags.has(Flags::RAHEAD));
        log.iter().map(|(_, b)| seen(b)).collect()
    };
    let ahead = |starts: &[u64]| -> Vec<_> { starts.iter().map(|s| (*s, 32, true)).collect() };
    assert_eq!(
        touched(Order::Random, false, 512..515),
        [(512, 1, false), (513, 1, false), (514, 1, false)]
    );
    assert_eq!(touched(Order::Sequential, false, 0..33), ahead(&[0, 32, 64]));
    assert_eq!(touched(Order::Sequential, true, 512..600), ahead(&[512, 544, 576]));
    assert_eq!(touched(Order::Unsaid, true, 512..530), ahead(&[496, 528, 560]));
}
