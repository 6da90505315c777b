//! What can go wrong in a simulation.

use iosched_devices::SpecError;
use iosched_host::HostError;
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
    /// The run did not come to its end.
    #[error(transparent)]
    Host(#[from] HostError),
}
