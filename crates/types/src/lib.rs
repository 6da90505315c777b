//! The words every crate of iosched shares: units, operations, bios, requests, latency histograms
//! and the diagnostics that point at the place in a file where something is wrong.
//!
//! The crate is pure: no file system, clock, environment, threads or global state.

pub mod cgroup;
pub mod cpu_time;
pub mod diag;
pub mod fifo;
pub mod hist;
pub mod nearest;
pub mod op;
pub mod prio;
pub mod request;
pub mod units;

pub use cpu_time::CpuTime;
pub use diag::Diagnostic;
pub use fifo::Fifo;
pub use hist::LatencyHistogram;
pub use op::{Dir, Flags, Op};
pub use prio::{IoPrio, PrioClass};
pub use request::{Bio, BioId, DirectSync, NO_REQ, ReqId, Request, Requests, TaskId};
pub use units::{Bytes, Nanos, SECTOR, Sector};
