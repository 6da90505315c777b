//! The simulator from outside: guarantees, scenarios, and its figures beside kernels and real machines.
//!
//! All tests of the crate are in this one program, so that they are linked once.

use iosched_testing::Counting;

mod beside_other_kernels;
mod beside_programs;
mod beside_starts;
mod beside_the_kernel;
mod beside_the_kernels_files;
mod call_errors;
mod call_files;
mod catalogue_figures;
mod cores;
mod fio_ends;
mod fio_files;
mod fio_loop;
mod group_commits;
mod guarantees;
mod measured;
mod real_schedulers;
mod replays;
mod responsiveness;
mod scenario_errors;
mod scenario_files;
mod signatures;
mod synced_files;
mod synced_writes;

/// Counts for each thread, so tests that run beside each other do not see each other's allocations.
#[global_allocator]
static GLOBAL: Counting = Counting;

/// What becomes of each, in their order, worked out by as many threads as there are cores. A test of many trials in a
/// row would run alone at the end.
#[allow(clippy::disallowed_methods, reason = "tests of many trials side by side")]
fn spread<T: Sync, R: Send>(all: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut out = Vec::new();
        loop {
            let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(one) = all.get(at) else { return out };
            out.push((at, of(one)));
        }
    };
    let mut out: Vec<(usize, R)> = std::thread::scope(|scope| {
        let each: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |t: std::thread::ScopedJoinHandle<'_, Vec<(usize, R)>>| {
            t.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
        };
        each.into_iter().flat_map(join).collect()
    });
    out.sort_by_key(|r| r.0);
    out.into_iter().map(|r| r.1).collect()
}
