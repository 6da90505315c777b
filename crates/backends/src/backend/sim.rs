//! The simulator as a backend.

use iosched_experiment::{BackendKind, Record, Trial};

use super::{Backend, Requirement};
use crate::error::{Error, Result};

/// Needs nothing, changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sim;

impl Backend for Sim {
    fn kind(&self) -> BackendKind {
        BackendKind::Sim
    }

    fn requirements(&self) -> Vec<Requirement> {
        Vec::new()
    }

    fn prepare(&mut self, _trial: &Trial) -> Result<()> {
        Ok(())
    }

    fn run(&mut self, trial: &Trial) -> Result<Record> {
        iosched_sim::simulate(trial).map_err(|e| Error::Trial { message: e.to_string() })
    }

    fn cleanup(&mut self) -> Result<()> {
        Ok(())
    }
}
