//! The simulator as a backend.

use std::ops::ControlFlow;

use iosched_experiment::{BackendKind, Record, Trial};
use iosched_sim::Progress;

use super::{Backend, Error, Requirement, Result};

/// Needs nothing, changes nothing.
#[derive(Default)]
pub struct Sim<'a> {
    watch: Option<&'a mut dyn FnMut(Progress) -> ControlFlow<()>>,
}

impl<'a> Sim<'a> {
    /// A simulator that reports its progress, and hears whether to go on.
    pub fn watched(watch: &'a mut dyn FnMut(Progress) -> ControlFlow<()>) -> Sim<'a> {
        Sim { watch: Some(watch) }
    }
}

impl Backend for Sim<'_> {
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
        let record = match &mut self.watch {
            Some(watch) => iosched_sim::simulate_with(trial, watch),
            None => iosched_sim::simulate(trial),
        };
        record.map_err(|e| Error::Trial { message: e.to_string() })
    }

    fn cleanup(&mut self) -> Result<()> {
        Ok(())
    }
}
