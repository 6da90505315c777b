//! What can go wrong in a simulation.

use iosched_devices::SpecError;
use iosched_schedulers::TunableError;
use iosched_types::Diagnostic;

/// Why a trial could not be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The device model refuses its parameters.
    #[error("device \"{name}\": {source}")]
    Device {
        /// Device name.
        name: String,
        /// Why.
        source: SpecError,
    },
    /// A tunable does not fit.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// The jobs do not fit the device.
    #[error("{0}")]
    Layout(Box<Diagnostic>),
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
    /// Whoever watches wanted it to end.
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
}
