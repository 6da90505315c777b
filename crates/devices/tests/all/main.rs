//! The device models from outside: files, catalogue, logs of the kernel, oracles, allocations.
//!
//! All tests of the crate are in this one program, so that they are linked once.

use iosched_testing::Counting;

mod allocation;
mod bad_input;
mod catalogue;
mod catalogue_figures;
mod datasheet;
mod dispatch;
mod extensions;
mod oracle;

/// Counts for each thread, so tests that run beside each other do not see each other's allocations.
#[global_allocator]
static GLOBAL: Counting = Counting;
