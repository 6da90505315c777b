//! Core time of a task.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Core time of one process, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuTime {
    /// In the program.
    pub user: Nanos,
    /// In the kernel: system calls, switches, the scheduler, and the two below.
    pub system: Nanos,
    /// Spinning for the scheduler's lock (simulator only).
    pub spinning: Nanos,
    /// In interrupts that its completions made (simulator only).
    pub interrupts: Nanos,
}

impl CpuTime {
    /// User and system time.
    #[must_use]
    pub fn total(&self) -> Nanos {
        self.user + self.system
    }

    /// Whether nothing is known, or nothing was used.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == CpuTime::default()
    }

    /// Adds another process's time.
    pub fn add(&mut self, other: &CpuTime) {
        self.user += other.user;
        self.system += other.system;
        self.spinning += other.spinning;
        self.interrupts += other.interrupts;
    }
}
