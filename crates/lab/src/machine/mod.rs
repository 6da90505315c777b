//! Runs on the machine itself: which backend, one trial at a time, in rounds. What changes a machine is not here: the
//! caller hands it in as a [`Machine`].

mod error;
mod interrupt;
mod mock;
pub mod protocol;
mod rounds;
mod sim;
pub mod steady;

use std::fmt::Debug;

use iosched_experiment::{BackendKind, Experiment, Record, Trial};

pub use error::{Error, ExitClass, Result};
pub use interrupt::Interrupt;
pub use mock::{Fault, Mock};
pub(crate) use rounds::run;
pub use sim::Sim;

/// What can run trials on a machine.
pub trait Machine: Debug + Send + Sync {
    /// Refuses before anything runs: a refusal of the last trial must not come after hours on others.
    ///
    /// # Errors
    /// The first reason.
    fn look_at_all(&self, e: &Experiment, trials: &[Trial]) -> Result<()>;

    /// The backend of an experiment, for cells of which `first` is one.
    ///
    /// # Errors
    /// There is none of this kind.
    fn backend(&self, e: &Experiment, first: &Trial) -> Result<Box<dyn Backend>>;
}

/// Something a backend needs of the machine.
#[derive(Debug)]
pub struct Requirement {
    /// What: `root`, `fio 3.19`, `/dev/fuse`.
    pub what: &'static str,
    /// Met, with what was found; or what is wrong.
    pub state: Result<String>,
}

/// A way to run trials. The order of calls is `requirements`, `prepare`, `run` any number of times,
/// `cleanup`; dropping a backend cleans up too.
pub trait Backend {
    /// Which one it is.
    fn kind(&self) -> BackendKind;

    /// What the backend needs, met or not. Looking changes nothing.
    fn requirements(&self) -> Vec<Requirement>;

    /// Gets ready for a trial's device: makes the emulated disk, or writes down the state of the real one.
    ///
    /// # Errors
    /// The first requirement that is missing, or what stands in the way.
    fn prepare(&mut self, trial: &Trial) -> Result<()>;

    /// Runs one trial.
    ///
    /// # Errors
    /// A trial that yields no figures; one with unusable figures is a record marked invalid.
    fn run(&mut self, trial: &Trial) -> Result<Record>;

    /// Puts the machine back as it was.
    ///
    /// # Errors
    /// What could not be put back; the state file stays for `iosched restore`.
    fn cleanup(&mut self) -> Result<()>;
}

/// The first missing requirement as the error it is.
///
/// # Errors
/// That error.
pub fn require(requirements: Vec<Requirement>) -> Result<()> {
    requirements.into_iter().try_for_each(|r| r.state.map(|_| ()))
}
