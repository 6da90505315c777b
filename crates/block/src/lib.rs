//! The block layer: from bios to requests to the device and back.
//!
//! Both of Linux's block layers are here. The **legacy** single-queue path ([`legacy`]) has a device plug (2.6.18) or a
//! plug per task, a request pool with congestion and batching, and a dispatch queue. The **blk-mq** path ([`mq`]) has
//! software queues, hardware contexts, driver and scheduler tags, direct issue and staging. Both share requests,
//! limits, the merge search ([`merge`]), the flush machine and the plug per task. The [`KernelProfile`] and the
//! scheduler decide which one runs.

mod allocate;
mod bios;
mod build;
mod config;
mod flush;
mod issue;
mod legacy;
mod merge;
mod mq;
mod plug;
mod pool;
pub mod profile;
mod pull;
mod queue;
#[cfg(test)]
mod scenarios;
mod state;
mod stats;
mod switch;
mod tags;
mod timeline;
mod trace;
mod wbt;

pub use config::{Limits, QueueConfig, QueueSetting, SchedulerChoice, queue_settings};
pub use profile::{CpuModel, CpuProfile, KernelProfile, SchedulerCost};
pub use queue::{Done, Queue, Submit};
pub use stats::{Issue, QueueStats};
pub use switch::SwitchError;
pub use timeline::{DiskId, Event, QueueEvent, Timeline};
pub use trace::{Trace, TraceEvent};
