//! The running kernel on an emulated disk.

use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd};

use iosched_experiment::record::DEFAULT_SCHEDULER;
use iosched_experiment::{BackendKind, Record, Site, Trial};
use iosched_lab::machine::{Backend, Interrupt, Requirement};

use super::live::{Floor, LiveOptions, Model, Place, Run};
use super::noted::invalidate;
use crate::emulate::{self, EmulatedDisk, model_limits};
use crate::error::{Error, Result};
use crate::filesystem::FileSystem;
use crate::ground::{Ground, Purpose};
use crate::startup::Stage;
use crate::switch::{self, Disks};
use crate::target::open_node;
use crate::trace::Took;

/// Up to this many commands a second the block trace follows each of them. Reading the trace takes about 2 µs of CPU
/// time a command.
const FOLLOWED_IOPS: f64 = 20_000.0;

/// Makes the disk of each trial's device and runs fio on it.
#[derive(Debug, Default)]
pub struct Emulated {
    options: LiveOptions,
    disk_options: emulate::Options,
    current: Option<Current>,
}

/// A disk in place. Fields go in this order: the file system lies on the disk.
#[derive(Debug)]
struct Current {
    files: Files,
    disks: Disks,
    disk: EmulatedDisk,
}

/// A file system on the disk.
#[derive(Debug, Default)]
enum Files {
    #[default]
    None,
    /// For starts of commands.
    Stage(Stage),
    /// For programs and for jobs on files.
    Ground(Ground, FileSystem),
}

/// Whether a trial needs a file system.
fn on_files(trial: &Trial) -> bool {
    trial.site() != Site::Disk
}

impl Files {
    /// Makes the disk ready for a trial that needs a file system.
    fn ready(&mut self, disk: &EmulatedDisk, trial: &Trial, interrupt: &Interrupt) -> Result<()> {
        if let Some(what) = trial.work.startup() {
            if !matches!(self, Files::Stage(stage) if stage.has_room(what)) {
                // The old one is unmounted first.
                *self = Files::None;
                *self = Files::Stage(Stage::on_emulated(disk, what, interrupt)?);
            }
            let Files::Stage(stage) = self else { return Ok(()) };
            disk.fast_forward();
            let provided = stage.provide(what, interrupt);
            disk.reset().and(provided)?;
        } else if on_files(trial) {
            let kind = FileSystem::of(&trial.host)?;
            if !matches!(self, Files::Ground(_, has) if *has == kind) {
                *self = Files::None;
                let ground =
                    Ground::on_emulated(disk, Purpose::Program, disk.bytes(), &kind, interrupt)?;
                *self = Files::Ground(ground, kind);
            }
            // The program's files are made before the disk takes its time.
            disk.fast_forward();
        }
        Ok(())
    }
}

impl Emulated {
    /// With options for the runs and for the disks. State directory and guardian come from the options for the runs.
    #[must_use]
    pub fn new(options: LiveOptions, disk_options: emulate::Options) -> Self {
        let disk_options = emulate::Options {
            state_dir: options.state_dir.clone(),
            guardian: options.guardian.clone(),
            interrupt: options.interrupt.clone(),
            ..disk_options
        };
        Emulated { options, disk_options, current: None }
    }

    /// The disk in place.
    #[must_use]
    pub fn disk(&self) -> Option<&EmulatedDisk> {
        self.current.as_ref().map(|c| &c.disk)
    }
}

impl Backend for Emulated {
    fn kind(&self) -> BackendKind {
        BackendKind::Emulated
    }

    fn requirements(&self) -> Vec<Requirement> {
        let way = || emulate::Transport::best().title().to_string();
        let disk = emulate::requirements().map(|()| way());
        let disk = Requirement { what: "a way to emulated disks", state: disk };
        vec![super::root("emulating a disk"), disk, super::fio(&self.options.interrupt)]
    }

    fn prepare(&mut self, trial: &Trial) -> Result<()> {
        let fits = |c: &Current| {
            // Jobs write to the disk itself, so they would destroy a file system on it.
            let bare = on_files(trial) || matches!(c.files, Files::None);
            c.disk.spec().name == trial.device.name && bare
        };
        if self.current.as_ref().is_some_and(fits) {
            return Ok(());
        }
        let o = &self.options;
        super::needed(self.requirements(), trial, &o.tools, &o.interrupt)?;
        self.cleanup()?;
        let disk = EmulatedDisk::start(&trial.device, &self.disk_options)?;
        let options = switch::Options {
            state_dir: self.options.state_dir.clone(),
            guardian: self.options.guardian.clone(),
        };
        let disks = Disks::begin([disk.name().as_str()], &options)?;
        self.current = Some(Current { files: Files::None, disks, disk });
        Ok(())
    }

    fn run(&mut self, trial: &Trial) -> Result<Record> {
        self.prepare(trial)?;
        let Some(Current { files, disks, disk }) = &mut self.current else {
            return Err(Error::Trial { message: "there is no emulated disk".into() });
        };
        if on_files(trial) {
            files.ready(disk, trial, &self.options.interrupt)?;
        } else if !self.options.keep_state {
            disk.reset()?;
        }
        let disk: &EmulatedDisk = disk;
        let node = disk.node();
        // Held while the load runs. A file system on it holds it, too.
        let held = open_node(&disk.name(), &node, !on_files(trial))?;
        let before = RefCell::new(disk.served());
        let late = || {
            let (served, before) = (disk.served(), before.borrow().clone());
            let latency = served.latency.saturating_sub(before.latency);
            Some(served.late.saturating_sub(before.late) as f64 / latency.max(1) as f64)
        };
        let answered = || {
            let served = disk.served();
            let [data @ .., flushes] = served.commands;
            let time = served.latency.saturating_sub(served.flushing);
            let data = Took { commands: data.iter().sum(), time };
            (data, Took { commands: flushes, time: served.flushing })
        };
        let fast = model_limits(disk.spec())?.random_iops > FOLLOWED_IOPS;
        let run = Run {
            kind: BackendKind::Emulated,
            trial,
            place: Place {
                shown: &node.display().to_string(),
                path: format!("/proc/self/fd/{}", held.as_raw_fd()).into(),
                descriptor: held.as_fd(),
                bytes: disk.bytes(),
            },
            disks,
            options: &self.options,
            late_share: &late,
            model: Some(Model { answered: &answered, fast }),
            // The disk's content is the model's. Other users show in the figures.
            unused: &|| Ok(()),
        };
        // What made the files of a program is not part of its figures.
        let cold = || {
            disk.reset()?;
            before.replace(disk.served());
            Ok(())
        };
        let floor = match files {
            Files::Stage(stage) => Floor::Stage(stage),
            Files::Ground(ground, _) => Floor::Ground(ground),
            Files::None => Floor::Bare,
        };
        let mut record = run.work(floor, &cold)?;
        let (served, before) = (disk.served(), before.borrow().clone());
        record.device.max_in_flight = u32::try_from(served.max_in_flight).unwrap_or(u32::MAX);
        record.device.seeks = served.seeks.saturating_sub(before.seeks);
        record.device.travel = served.travel.saturating_sub(before.travel);
        for (counter, value) in disk.counters() {
            record.device.counters.insert(counter.into(), value);
        }
        let very_late = served.very_late.saturating_sub(before.very_late);
        record.device.counters.insert("answers over 1 ms late".into(), very_late);
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
        // Of the modelled disk; the one that serves it is a loop device, which has another.
        let default = trial.default_scheduler().to_string();
        record.provenance.insert(DEFAULT_SCHEDULER.into(), default);
        record.provenance.insert("emulation".into(), disk.self_check_result().render());
        record.provenance.insert("emulation.transport".into(), disk.transport().to_string());
        for (i, note) in disk.notes().iter().enumerate() {
            record.provenance.insert(format!("emulation.note.{}", i + 1), note.clone());
        }
        Ok(record)
    }

    fn cleanup(&mut self) -> Result<()> {
        let Some(Current { files, disks, disk }) = self.current.take() else { return Ok(()) };
        drop(files);
        // The queue's settings go with the disk, but its state file has to go too.
        let restored = disks.finish();
        disk.stop()?;
        restored.map(|_| ())
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        // The state file stays for changes that cannot be undone here.
        let _ = self.cleanup();
    }
}
