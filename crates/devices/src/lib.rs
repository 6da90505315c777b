//! Disk and SSD models and the catalogue of devices.
//!
//! A [`Device`] has no clock. The host tells it when a command arrives, asks when it wants to be looked at next, and
//! advances it to a time. The simulator drives it by the virtual clock, the emulated disk by the wall clock. Both drive
//! the same object.

pub mod catalogue;
pub mod datasheet;
pub mod describe;
pub mod figure;
pub mod models;
pub mod params;
pub mod spec;
pub mod state;
pub mod truth;

mod by_timer;
mod lanes;
mod leftover;
mod math;
mod read;
mod shifted;
mod stack;

pub use by_timer::ByTimer;
pub use figure::{Confidence, Figure, FigureValue, Price};
pub use leftover::Writer;
pub use shifted::Shifted;
pub use spec::{DeviceSpec, Model, SpecError};
pub use stack::{StackKind, StackSpec};
pub use state::{DeviceState, Fill};
pub use truth::TruthDevice;

use iosched_types::{Bytes, Nanos, Op, Sector};

/// What the host sends to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The host's cookie, handed back in the [`Completion`].
    pub id: u32,
    /// Operation.
    pub op: Op,
    /// Byte offset.
    pub offset: Bytes,
    /// Length in bytes (0 for a flush).
    pub len: Bytes,
    /// Force unit access: complete only when the data is on stable media.
    pub fua: bool,
}

/// A command the device finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The host's cookie.
    pub id: u32,
    /// When the device began to serve it.
    pub t_start: Nanos,
    /// When it was done.
    pub t_done: Nanos,
}

/// A device model: a deterministic state machine without a clock.
///
/// The host calls [`advance`](Device::advance)`(t)` before [`submit`](Device::submit) at `t`. So an arrival is handled
/// after all internal events with time ≤ t, and at a completion instant the device picks its next command before the
/// host can react.
pub trait Device: Send {
    /// Size in bytes.
    fn capacity(&self) -> Bytes;

    /// A command arrives at `now` (≥ every earlier time given to this device).
    fn submit(&mut self, now: Nanos, command: Command);

    /// When the next internal event happens; `None` when nothing goes on.
    fn next_wakeup(&self) -> Option<Nanos>;

    /// Handles all internal events with time ≤ `now`; completions are appended in event order.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// Commands accepted and not completed.
    fn in_flight(&self) -> usize;

    /// Where the head is (end of the last command served), for pictures; 0 where there is no head.
    fn position(&self) -> Sector {
        0
    }

    /// Caches whose filling makes writes faster than they stay: name, bytes in them, bytes that they hold.
    fn caches(&self) -> Vec<(&'static str, Bytes, Bytes)> {
        Vec::new()
    }

    /// Named counters for the record: seeks, head travel in sectors, cache hits, busy time in ns …
    fn counters(&self) -> Vec<(&'static str, u64)>;
}
