//! What can go wrong while a machine runs.

use iosched_syscalls::Errno;

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Nothing can happen any more although processes wait.
    #[error(
        "the simulation is stuck at {at_ms:.3} ms: {waiting} processes wait, {pending} requests are \
         queued and nothing is at the device; this is a defect of the scheduler or the device model"
    )]
    Stuck {
        /// Virtual time in ms.
        at_ms: f64,
        /// Waiting processes.
        waiting: usize,
        /// Queued requests.
        pending: usize,
    },
    /// The watcher wanted it to end.
    #[error("the simulation was stopped")]
    Stopped,
    /// Time does not move on.
    #[error(
        "virtual time stands still at {at_ms:.3} ms after {events} events: the device model or the \
         job makes no progress (a zero service time with an endless job, say)"
    )]
    NoProgress {
        /// Virtual time in ms.
        at_ms: f64,
        /// Events at this instant.
        events: u64,
    },
    /// All tasks of a program wait for each other.
    #[error(
        "the program is stuck at {at_ms:.3} ms: {} and nothing can wake {} ({who}); \
         {}",
        if *.waiting == 1 { "1 task waits".into() } else { format!("{} tasks wait", .waiting) },
        if *.waiting == 1 { "it" } else { "them" },
        cause(.who)
    )]
    Deadlock {
        /// Virtual time in ms.
        at_ms: f64,
        /// Waiting tasks.
        waiting: usize,
        /// The first few, and for what they wait.
        who: String,
    },
    /// A task of a program ended with an error.
    #[error("task {task} of the program ended with {errno} in {call}")]
    Program {
        /// Which.
        task: u32,
        /// Why.
        errno: Errno,
        /// In its last call.
        call: &'static str,
    },
    /// A task of a program never waits for anything that takes time.
    #[error(
        "task {task} of the program made {calls} calls at {at_ms:.3} ms without waiting for anything that takes \
         time; let it sleep or compute, or use a kernel profile with [cpu] model = \"cost\""
    )]
    NeverWaits {
        /// Which.
        task: u32,
        /// Virtual time in ms.
        at_ms: f64,
        /// Calls.
        calls: u64,
    },
}

/// What lets tasks wait for ever.
fn cause(who: &str) -> &'static str {
    if who.contains("for time") {
        "the virtual clock ends after 584 years, before a sleep of this length does"
    } else {
        "a barrier, pipe or child that never comes is a defect of the program, or of the log"
    }
}
