//! What the model of a page cache takes, so that 100 GB of cached pages can be simulated.

use iosched_testing::{Counting, held};
use iosched_vfs::kernel::memory::{Memory, Settings};

#[global_allocator]
static COUNTING: Counting = Counting;

/// 100 GB.
const PAGES: u64 = 100_000_000_000 / 4096;

/// Bytes a page, of a file whose pages come into memory in runs in this order and are used so many times.
fn bytes_a_page(uses: u32, runs: impl Iterator<Item = (u64, u64)> + Clone) -> f64 {
    let before = held();
    let mut memory = Memory::new(Settings { pages: PAGES, ..Settings::default() });
    let file = 0;
    memory.open(file);
    for (from, to) in runs.clone() {
        memory.insert(file, from, to, 1);
    }
    let mut most = held() - before;
    for _ in 0..uses {
        for (i, (from, to)) in runs.clone().enumerate() {
            memory.touch(file, from, to);
            if i % 1000 == 0 {
                most = most.max(held() - before);
            }
        }
    }
    most as f64 / memory.cached() as f64
}

/// Every page once, in an order without neighbours: a step that has no factor in common with a prime. As many pages as
/// are worst for what doubles when it grows.
fn alone() -> impl Iterator<Item = (u64, u64)> + Clone {
    const PRIME: u64 = 1_100_009;
    (0..PRIME).map(|i| i * 786_433 % PRIME).map(|p| (p, p + 1))
}

/// Read or written in order, 128 KiB at a time.
#[test]
fn a_page_of_a_stream_takes_two_bytes() {
    let taken = bytes_a_page(0, (0..PAGES / 32).map(|i| (i * 32, (i + 1) * 32)));
    assert!(taken <= 2.0, "{taken:.2} bytes a page");
}

#[test]
fn a_page_that_comes_alone_takes_sixteen_bytes_at_most() {
    let taken = bytes_a_page(0, alone());
    assert!(taken <= 16.0, "{taken:.2} bytes a page");
}

/// Used pages move to another list.
#[test]
fn a_page_that_is_used_takes_sixteen_bytes_at_most() {
    let taken = bytes_a_page(2, alone());
    assert!(taken <= 16.0, "{taken:.2} bytes a page");
}
