//! Every I/O scheduler Linux ever had, written from a behavioural specification.
//!
//! One file (or folder) per algorithm implements [`Scheduler`] and owns a [`Descriptor`]; one line in
//! [`registry`] makes it known to the parser, `iosched list`, the shell completions, the man page and the
//! documentation. `template.rs` is a small commented scheduler to start from.
//!
//! A scheduler sees requests, time and its own tunables. It never sees a device model, a workload name
//! or a benchmark.

pub mod anticipatory;
mod api;
pub mod bfq;
pub mod cfq;
pub mod choice;
pub mod deadline;
mod deadline_parts;
mod descriptor;
pub mod docs;
pub mod ewma;
pub mod jiffies;
pub mod kyber;
pub mod list;
pub mod mq_deadline;
mod mq_deadline_levels;
mod mq_deadline_tunables;
mod mq_deadline_zones;
pub mod none;
pub mod noop;
pub mod registry;
pub mod script;
pub mod template;
pub mod testing;
pub mod tree;

pub use api::{
    Actions, Cgroup, Ctx, Dispatch, Hooks, Idling, MayQueue, MergeKind, Merging, Position,
    QueueFacts, Scheduler, TaskInfo, Why,
};
pub use descriptor::{
    BlockPath, BuildArgs, DefaultFacts, Descriptor, Facts, Generation, KernelVersion, Tunable,
    TunableError, TunableValues, unknown_help,
};
