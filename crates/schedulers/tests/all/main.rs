//! The schedulers from outside: scenarios, golden files, guarantees, allocations, documentation.
//!
//! All tests of the crate are in this one program, so that they are linked once.

use iosched_testing::Counting;

mod adios;
mod anticipatory;
mod bfq;
mod cfq;
mod cfq_no_allocation;
mod deadline_guarantees;
mod deadline_hooks;
mod deadline_oracle;
mod deadline_scenarios;
mod docs;
mod golden;
mod kyber;
mod mq_deadline_zones;
mod no_allocation;
mod scenario_files;

/// Counts for each thread, so tests that run beside each other do not see each other's allocations.
#[global_allocator]
static GLOBAL: Counting = Counting;
