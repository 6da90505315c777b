//! What tests of several crates share: an allocator that counts, and golden files.
#![allow(unsafe_code, reason = "a global allocator is unsafe by its trait")]
#![allow(clippy::disallowed_methods, reason = "tests read and write the files they check")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

/// Counts what takes memory in each thread. A test binary makes it its `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is being torn down has nothing left to count.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

fn hold(more: usize, less: usize) {
    let _ = HELD.try_with(|n| n.set(n.get() + more as i64 - less as i64));
}

/// How often this thread has taken memory, or more of it, under [`Counting`].
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Bytes that this thread has taken under [`Counting`], less those that it gave back, be they of another thread.
#[must_use]
pub fn held() -> i64 {
    HELD.get()
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size(), 0);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        hold(size, layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(ptr, layout, size) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        hold(0, layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Compares a file with what it should hold now; with `BLESS=1` in the environment it is written instead.
///
/// # Panics
/// The file holds something else (the first line that differs is named), or cannot be written.
#[track_caller]
pub fn golden(path: &Path, now: &str) {
    let old = std::fs::read_to_string(path).unwrap_or_default();
    if old == now {
        return;
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, now).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return;
    }
    let end = [old.lines().count(), now.lines().count()].into_iter().max().unwrap_or(0);
    let line = |text: &str, i: usize| text.lines().nth(i).unwrap_or("(the end)").to_string();
    let at = (0..end).find(|i| line(&old, *i) != line(now, *i)).unwrap_or(end);
    panic!(
        "{}:{} is out of date; BLESS=1 cargo test writes it anew\n  file: {}\n  now:  {}\nAll of it:\n{now}",
        path.display(),
        at + 1,
        line(&old, at),
        line(now, at)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static GLOBAL: Counting = Counting;

    #[test]
    fn memory_is_counted() {
        let before = allocations();
        let mut v: Vec<u8> = std::hint::black_box(Vec::with_capacity(10));
        v.reserve_exact(1000);
        assert_eq!(allocations() - before, 2);
    }

    #[test]
    #[should_panic(expected = "is out of date")]
    fn another_text_is_noticed() {
        golden(Path::new("no such file"), "text\n");
    }
}
