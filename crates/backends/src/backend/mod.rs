//! What runs a trial.

mod before;
mod drifting;
mod emulated;
mod live;
mod looks;
mod machine;
mod noted;
mod real;

pub use before::{Own, fio_for, programs, refusals};
pub use emulated::Emulated;
pub use live::LiveOptions;
pub use machine::Machine;
pub use real::{Real, impossible};

pub(crate) use noted::{Traced, invalidate as invalidate_record};

use std::path::PathBuf;

use iosched_experiment::Trial;
use iosched_lab::machine::{Interrupt, Requirement, require};

use crate::benchmark;
use crate::error::{Error, Result};

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
