//! What runs a trial.

mod before;
mod drifting;
mod emulated;
mod live;
mod looks;
mod mock;
mod noted;
mod real;
mod sim;

pub use before::{Own, fio_for, programs, refusals};
pub use emulated::Emulated;
pub use live::LiveOptions;
pub use mock::{Fault, Mock};
pub use real::{Real, impossible};
pub use sim::Sim;

pub(crate) use noted::{Traced, invalidate as invalidate_record};

use std::path::PathBuf;

use iosched_experiment::{BackendKind, Record, Trial};

use crate::benchmark;
use crate::error::{Error, Result};
use crate::load::child::Interrupt;

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

/// What of a backend's requirements a trial needs: programs run without fio, and some with tools of their own. `own` are
/// the user's files of tools.
pub(crate) fn needed(
    requirements: Vec<Requirement>,
    trial: &Trial,
    own: &[(&'static str, PathBuf)],
    interrupt: &Interrupt,
) -> Result<()> {
    let needs = |r: &Requirement| trial.work.needs_fio() || r.what != FIO;
    require(requirements.into_iter().filter(needs).collect())?;
    let Some((recipe, params)) = benchmark::behind(trial) else { return Ok(()) };
    (recipe.can)(params)?;
    recipe.find(own, interrupt).map(drop)
}

/// The oldest fio that will do.
const FIO: &str = "fio 3.19 or newer";

pub(crate) fn root(what: &str) -> Requirement {
    let state = if nix::unistd::geteuid().is_root() {
        Ok("yes".into())
    } else {
        Err(Error::NotRoot { what: what.into() })
    };
    Requirement { what: "root", state }
}

pub(crate) fn fio(interrupt: &Interrupt) -> Requirement {
    Requirement { what: FIO, state: crate::load::fio::found(interrupt) }
}
