//! The block layer: from bios to requests to the device and back.
//!
//! Both of Linux's block layers are here. The **legacy** single-queue path ([`legacy`]) has a device plug (2.6.18) or
//! a plug per task, a request pool with congestion and batching, and a dispatch queue. The **blk-mq** path ([`mq`]) has
//! software queues, hardware contexts, driver and scheduler tags, direct issue and staging. The [`KernelProfile`] and the
//! scheduler decide which one runs.
//!
//! [`Stack`] is what a host submits to: one queue, or several as the legs of an array.
//!
//! [`Queue`] is the face of both. Each stands on the [`steps`] that both take alike (merge search, flush machine, plug
//! of a thread, end of a request), and these on the parts in `core`. Nothing leads back up.

mod config;
mod core;
mod legacy;
mod mq;
mod outbox;
mod path;
pub mod profile;
mod queue;
#[cfg(test)]
mod scenarios;
mod stack;
mod state;
mod stats;
mod steps;
mod timeline;

pub use crate::core::trace::{Trace, TraceEvent};
pub use config::{
    ArrayConfig, Level, Limits, QueueConfig, QueueSetting, SchedulerChoice, queue_settings,
};
pub use outbox::{Done, Outbox, Room, Submit};
pub use profile::{CpuModel, CpuProfile, KernelProfile, SchedulerCost};
pub use queue::{Queue, SwitchError};
pub use stack::{Keep, LegStats, Reel, Routed, Stack, Taped, Waits, Why};
pub use stats::{Issue, QueueStats};
pub use timeline::{ArrayEvent, DiskId, Event, QueueEvent, Timeline};
