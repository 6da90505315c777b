//! What can go wrong in a simulation.

use iosched_devices::SpecError;
use iosched_host::HostError;
use iosched_schedulers::TunableError;
use iosched_syscalls::Errno;
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
    /// The start of a command.
    #[error("\"{0}\" is the start of a program, which the simulator does not run")]
    Startup(String),
    /// A fio job, or fio itself as it makes the jobs' files, ended with an error.
    #[error("{who}: {errno} in {call}")]
    Fio {
        /// Which.
        who: String,
        /// Why.
        errno: Errno,
        /// In this call.
        call: &'static str,
    },
    /// The run did not come to its end.
    #[error(transparent)]
    Host(#[from] HostError),
}
