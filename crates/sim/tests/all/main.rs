//! The simulator from outside: guarantees, scenarios, and its figures beside kernels and real machines.
//!
//! All tests of the crate are in this one program, so that they are linked once.

use iosched_testing::Counting;

mod beside_the_kernel;
mod beside_the_kernels_files;
mod call_errors;
mod call_files;
mod catalogue_figures;
mod cores;
mod fio_files;
mod fio_loop;
mod guarantees;
mod measured;
mod responsiveness;
mod scenario_errors;
mod scenario_files;
mod signatures;

/// Counts for each thread, so tests that run beside each other do not see each other's allocations.
#[global_allocator]
static GLOBAL: Counting = Counting;
