//! What kernels do differently with an array.

use iosched_schedulers::KernelVersion;

use crate::config::Level;
use crate::profile::{KernelProfile, LegacyFlush};

/// How a kernel flushes an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlushRule {
    /// The legs are flushed beside the data (since 6.11).
    Beside,
    /// The legs are flushed, then the data go, one round at a time.
    Rounds,
    /// Barriers are passed on (2.6.18).
    Barrier,
}

impl FlushRule {
    pub(super) fn of(profile: &KernelProfile, level: Level) -> FlushRule {
        let new = profile.kernel_version() >= KernelVersion(6, 11, 0);
        match profile.legacy.flush {
            LegacyFlush::Barrier => FlushRule::Barrier,
            LegacyFlush::FlushFua if level == Level::Raid1 && new => FlushRule::Beside,
            LegacyFlush::FlushFua => FlushRule::Rounds,
        }
    }
}

/// Who sends the writes of a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    Task,
    /// The array's thread where there is a bitmap and the task has no plug.
    TaskIfPlugged,
    /// The array's thread.
    Thread,
}

impl Sender {
    pub(super) fn of(kernel: KernelVersion, level: Level) -> Sender {
        match kernel {
            _ if level != Level::Raid1 => Sender::Task,
            k if k < KernelVersion(3, 6, 0) => Sender::Thread,
            k if k < KernelVersion(6, 5, 0) => Sender::TaskIfPlugged,
            _ => Sender::Task,
        }
    }

    /// Whether the array's thread sends a write of a thread with or without a plug.
    pub(super) fn is_thread(self, bitmap: bool, plugged: bool) -> bool {
        match self {
            Sender::Task => false,
            Sender::TaskIfPlugged => bitmap && !plugged,
            Sender::Thread => true,
        }
    }
}
