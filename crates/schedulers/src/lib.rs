//! Every I/O scheduler that Linux has had, written from a behavioural specification.
//!
//! Each algorithm is one file or folder. It implements [`Scheduler`] and owns a [`Descriptor`]. One line
//! in the list below makes it known to the parser, `iosched list`, the shell completions, the man page and the
//! documentation. `template.rs` is a small commented scheduler to start from.
//!
//! A scheduler sees requests, time and its own tunables. It never sees a device model, a workload name
//! or a benchmark.

/// Every scheduler, in the order in which people list them: a module each, whose [`Descriptor`] is in
/// [`registry::SCHEDULERS`]. A new one is its file and its line here.
macro_rules! schedulers {
    ($($name:ident)*) => {
        $(pub mod $name;)*

        pub(crate) static DESCRIPTORS: &[&Descriptor] = &[$(&$name::DESCRIPTOR),*];
    };
}

schedulers! {
    noop
    anticipatory
    deadline
    cfq
    none
    mq_deadline
    kyber
    bfq
    adios
}

mod api;
pub mod choice;
mod deadline_parts;
mod descriptor;
pub mod docs;
pub mod ewma;
pub mod jiffies;
pub mod list;
mod mq_deadline_levels;
mod mq_deadline_tunables;
mod mq_deadline_zones;
pub mod pair;
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
    BlockPath, Build, BuildArgs, DefaultFacts, Descriptor, Facts, Generation, KernelVersion,
    Tunable, TunableError, TunableValues, unknown_help,
};
