//! The backends of this machine, as a runner of experiments takes them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use iosched_experiment::{Disk, Experiment, Site, Trial};
use iosched_lab::machine::{self, Backend, Interrupt};

use super::{Emulated, LiveOptions, Real, refusals};
use crate::emulate::{self, DataMode};
use crate::error::Result;
use crate::guardian::GuardianCommand;
use crate::root::SysRoot;
use crate::target::{self, Leave};

/// How the machine may be used.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Where state files go.
    pub state_dir: PathBuf,
    /// How a guardian is started.
    pub guardian: Option<GuardianCommand>,
    /// What may be overwritten.
    pub leave: Leave,
    /// Whether block events are traced into the records.
    pub trace: bool,
    /// The user's own copies of programs that workloads stand for: name, file.
    pub tools: Vec<(&'static str, PathBuf)>,
    /// The signals that end a run.
    pub interrupt: Interrupt,
}

impl machine::Machine for Machine {
    fn look_at_all(&self, e: &Experiment, trials: &[Trial]) -> Result<()> {
        let all: Vec<&Trial> = trials.iter().collect();
        let refused = refusals(e.backend, &all, &self.tools, &self.interrupt);
        refused.into_iter().next().map_or(Ok(()), Err)?;
        if e.backend.has_model() {
            return Ok(());
        }
        let fio = |t: &&Trial| matches!(t.site(), Site::Disk | Site::FilesOfJobs);
        let writes = |t: &&Trial| e.steady.is_some() || t.work.writes();
        let writing = trials.iter().filter(fio).filter(writes);
        let devices: BTreeSet<&str> = writing.map(|t| t.device.name.as_str()).collect();
        if devices.len() > 1 {
            for device in devices {
                target::check(&SysRoot::default(), device, &self.leave)?;
            }
        }
        Ok(())
    }

    fn backend(&self, e: &Experiment, first: &Trial) -> Result<Box<dyn Backend>> {
        let options = LiveOptions {
            state_dir: self.state_dir.clone(),
            guardian: self.guardian.clone(),
            interrupt: self.interrupt.clone(),
            trace: self.trace,
            keep_state: e.steady.is_some(),
            tools: self.tools.clone(),
            ..LiveOptions::default()
        };
        // Nothing reads back what jobs write to the bare disk.
        let data = match first.site() {
            Site::Disk => DataMode::Discard,
            Site::FilesOfJobs | Site::Files | Site::Root => DataMode::Memory,
        };
        Ok(match e.backend.traits().disk {
            Disk::Model => {
                let disk = emulate::Options { data, ..emulate::Options::default() };
                Box::new(Emulated::new(options, disk))
            }
            Disk::Named => Box::new(Real::new(&first.device.name, self.leave.clone(), options)),
        })
    }
}
