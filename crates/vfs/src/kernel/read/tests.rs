use std::cell::RefCell;
use std::rc::Rc;

use iosched_types::TaskId;

use super::super::World;
use super::super::testing::{Flat, Path, run};
use super::*;

fn reader(world: &Rc<RefCell<World>>, task: TaskId, calls: Vec<(u64, u64)>) -> Path {
    let kernel = Kernel::new(world.clone(), task);
    Box::pin(async move {
        kernel.with(|w| w.memory.open(1));
        let mut open = Open {
            file: 1,
            size: 64 << 20,
            ra: 32,
            large_folios: false,
            stream: Stream::default(),
            noted: true,
        };
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
