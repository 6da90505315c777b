//! The running kernel on an emulated disk.

use iosched_experiment::{BackendKind, Record, Trial};

use super::live::{self, LiveOptions, Place, invalidate};
use super::{Backend, Requirement};
use crate::emulate::{self, EmulatedDisk};
use crate::error::Result;
use crate::switch::{self, Session};

/// Makes the disk of each trial's device and runs fio on it.
#[derive(Debug, Default)]
pub struct Emulated {
    options: LiveOptions,
    disk_options: emulate::Options,
    current: Option<(Session, EmulatedDisk)>,
}

impl Emulated {
    /// With options for the runs and for the disks; state directory and guardian are the runs'.
    #[must_use]
    pub fn new(options: LiveOptions, disk_options: emulate::Options) -> Self {
        let disk_options = emulate::Options {
            state_dir: options.state_dir.clone(),
            guardian: options.guardian.clone(),
            ..disk_options
        };
        Emulated { options, disk_options, current: None }
    }

    /// The disk in place.
    #[must_use]
    pub fn disk(&self) -> Option<&EmulatedDisk> {
        self.current.as_ref().map(|(_, d)| d)
    }
}

impl Backend for Emulated {
    fn kind(&self) -> BackendKind {
        BackendKind::Emulated
    }

    fn requirements(&self) -> Vec<Requirement> {
        let disk = emulate::requirements().map(|()| "yes".into());
        let disk = Requirement { what: "FUSE and loop devices", state: disk };
        vec![super::root("emulating a disk"), disk, super::fio()]
    }

    fn prepare(&mut self, trial: &Trial) -> Result<()> {
        if self.current.as_ref().is_some_and(|(_, d)| d.spec().name == trial.device.name) {
            return Ok(());
        }
        super::require(self.requirements())?;
        self.cleanup()?;
        let disk = EmulatedDisk::start(&trial.device, &self.disk_options)?;
        let options = switch::Options {
            state_dir: self.options.state_dir.clone(),
            guardian: self.options.guardian.clone(),
        };
        let session = Session::begin(&disk.name(), &options)?;
        self.current = Some((session, disk));
        Ok(())
    }

    fn run(&mut self, trial: &Trial) -> Result<Record> {
        self.prepare(trial)?;
        let Some((session, disk)) = &self.current else {
            return Err(crate::Error::Trial { message: "there is no emulated disk".into() });
        };
        disk.reset()?;
        let (name, node) = (disk.name(), disk.node());
        let place = Place { disk: &name, target: &node, bytes: disk.bytes() };
        let late = || {
            let served = disk.served();
            Some(served.late as f64 / served.latency.max(1) as f64)
        };
        let mut record =
            live::run(BackendKind::Emulated, trial, &place, session, &self.options, &late)?;
        let served = disk.served();
        record.device.max_in_flight = u32::try_from(served.max_in_flight).unwrap_or(u32::MAX);
        (record.device.seeks, record.device.travel) = (served.seeks, served.travel);
        for (counter, value) in disk.counters() {
            record.device.counters.insert(counter.into(), value);
        }
        record.device.counters.insert("answers over 1 ms late".into(), served.very_late);
        let late = late().unwrap_or_default();
        if late > self.options.thresholds.late_share {
            invalidate(
                &mut record,
                format!(
                    "the emulated disk answered late: {:.0} % of its time; the machine is too busy",
                    late * 100.0
                ),
            );
        }
        record.provenance.insert("model".into(), trial.device.name.clone());
        record.provenance.insert("emulation".into(), disk.self_check_result().render());
        for (i, note) in disk.notes().iter().enumerate() {
            record.provenance.insert(format!("emulation.note.{}", i + 1), note.clone());
        }
        Ok(record)
    }

    fn cleanup(&mut self) -> Result<()> {
        let Some((session, disk)) = self.current.take() else { return Ok(()) };
        // The queue's settings go with the loop device, but its state file has to go too.
        let restored = session.finish();
        disk.stop()?;
        restored.map(|_| ())
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        // State files stay behind what cannot be undone here.
        let _ = self.cleanup();
    }
}
