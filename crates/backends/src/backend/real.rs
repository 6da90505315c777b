//! The running kernel on a real disk.

use std::path::{Path, PathBuf};

use iosched_experiment::{BackendKind, Record, Site, Trial};
use iosched_lab::machine::{Backend, Requirement};
use iosched_workloads::fio::JobSpec;

use super::live::{Floor, LiveOptions, Place, Run};
use crate::benchmark;
use crate::error::{Error, Result};
use crate::ground::{Ground, Purpose, check_room};
use crate::root::SysRoot;
use crate::startup::Stage;
use crate::switch::{self, Disks};
use crate::target::{self, Kind, Leave, Target};

/// Runs fio on a device or on a file of a mounted file system.
#[derive(Debug)]
pub struct Real {
    name: String,
    leave: Leave,
    options: LiveOptions,
    ready: Option<Ready>,
}

#[derive(Debug)]
struct Ready {
    /// Made for the first start of a command.
    stage: Option<Stage>,
    /// Made for the first program.
    ground: Option<Ground>,
    disks: Disks,
    /// Held until the experiment is over. Dropped last.
    target: Target,
}

impl Real {
    /// A backend for a target as the user names it: a device, a file (that exists in its full size, or is made), or a
    /// directory to start commands from.
    #[must_use]
    pub fn new(name: impl Into<String>, leave: Leave, options: LiveOptions) -> Self {
        Real { name: name.into(), leave, options, ready: None }
    }

    /// Follows the name once, and holds what it leads to.
    fn find(&self, trial: &Trial) -> Result<Target> {
        let root = SysRoot::default();
        let path = target::resolve(&root, &self.name)?;
        if path.symlink_metadata().is_err()
            && let Some(bytes) = self.leave.size
        {
            target::create(&path, bytes, &self.options.interrupt)?;
        }
        let mut target = Target::find(&root, &self.name)?;
        self.ready_for(&mut target, trial)?;
        if let Some(load) = trial.work.load() {
            let (what, needed) = benchmark::room(trial, load, &self.options.tools)?;
            check_room(&directory(&target)?, target.path(), what, needed)?;
        }
        Ok(target)
    }

    /// Makes sure that the trial may do its work on the target.
    fn ready_for(&self, target: &mut Target, trial: &Trial) -> Result<()> {
        let root = SysRoot::default();
        if in_directory(target, trial) {
            return directory(target).map(drop);
        }
        if target.kind() == Kind::Directory {
            let message = format!(
                "{} is a directory; jobs that are direct and name none work on a file or a device",
                self.name
            );
            let help = format!(
                "have a file made in it: --device {}/iosched-test.img --size 8G",
                self.name.trim_end_matches('/')
            );
            return Err(Error::input(message, help));
        }
        if let Some(e) = impossible(target.kind(), trial) {
            return Err(e);
        }
        if trial.work.writes() {
            if target.is_claimed() {
                target.still_ours(&root)?;
            }
            target.claim(&root, &self.leave)?;
        }
        if target.bytes() == 0 {
            let message = format!("{} is empty", target.path());
            return Err(Error::input(message, "name a disk or file with data to read"));
        }
        target.lay_out(&root, &self.leave, &self.options.interrupt)
    }
}

/// What fio cannot do on a target of this kind, in any state.
#[must_use]
pub fn impossible(kind: Kind, trial: &Trial) -> Option<Error> {
    let trims = |j: &&JobSpec| j.pattern.trim;
    let job = trial.jobs().jobs.iter().find(trims).filter(|_| kind == Kind::File)?;
    let message = format!("job \"{}\" trims: fio trims devices, not files", job.name);
    Some(Error::input(message, "name a disk or a loop device, or leave the trims out"))
}

impl Backend for Real {
    fn kind(&self) -> BackendKind {
        BackendKind::Real
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![super::root("switching schedulers"), super::fio(&self.options.interrupt)]
    }

    fn prepare(&mut self, trial: &Trial) -> Result<()> {
        if self.ready.is_some() {
            return Ok(());
        }
        let o = &self.options;
        super::needed(self.requirements(), trial, &o.tools, &o.interrupt)?;
        let target = self.find(trial)?;
        let compared = target.stack().compared()?;
        let disks: Vec<&str> = compared.iter().map(|l| l.name.as_str()).collect();
        let options = switch::Options {
            state_dir: self.options.state_dir.clone(),
            guardian: self.options.guardian.clone(),
        };
        let below = target.stack().queues().into_iter().map(|l| l.name.as_str());
        let below: Vec<&str> = below.filter(|name| !disks.contains(name)).collect();
        let disks = Disks::begin(disks, &options)?.over(below)?;
        self.ready = Some(Ready { stage: None, ground: None, disks, target });
        Ok(())
    }

    fn run(&mut self, trial: &Trial) -> Result<Record> {
        self.prepare(trial)?;
        let Some(mut ready) = self.ready.take() else {
            return Err(Error::Trial { message: "the device was not prepared".into() });
        };
        let result = self.run_on(&mut ready, trial);
        self.ready = Some(ready);
        result
    }

    fn cleanup(&mut self) -> Result<()> {
        let Some(Ready { stage, ground, disks, target }) = self.ready.take() else {
            return Ok(());
        };
        let cleared = stage.map_or(Ok(()), Stage::finish);
        let cleared = ground.map_or(Ok(()), Ground::finish).and(cleared);
        let restored = disks.finish();
        drop(target);
        restored.and(cleared)
    }
}

impl Real {
    fn run_on(&self, ready: &mut Ready, trial: &Trial) -> Result<Record> {
        self.ready_for(&mut ready.target, trial)?;
        let stage = match trial.work.startup() {
            Some(what) => {
                let stage = match &mut ready.stage {
                    Some(stage) => stage,
                    none => {
                        let dir = directory(&ready.target)?;
                        let o = &self.options;
                        let guardian = o.guardian.as_ref();
                        none.insert(Stage::in_directory(
                            &dir,
                            &ready.disks.names(),
                            &o.state_dir,
                            guardian,
                        )?)
                    }
                };
                stage.provide(what, &self.options.interrupt)?;
                Some(&*stage)
            }
            None => None,
        };
        let files = stage.is_none() && in_directory(&ready.target, trial);
        if files && ready.ground.is_none() {
            let (dir, o) = (directory(&ready.target)?, &self.options);
            let guardian = o.guardian.as_ref();
            ready.ground =
                Some(Ground::in_directory(&dir, Purpose::Program, &o.state_dir, guardian)?);
        }
        // Names in a directory of another user's may be made to lead elsewhere.
        let in_place = || {
            stage.map_or(Ok(()), Stage::in_place)?;
            ready.ground.as_ref().map_or(Ok(()), Ground::in_place)
        };
        in_place()?;
        let target = &ready.target;
        let run = Run {
            kind: BackendKind::Real,
            trial,
            place: Place {
                shown: target.path(),
                path: target.handed_down(),
                descriptor: target.descriptor(),
                bytes: target.bytes(),
            },
            disks: &ready.disks,
            options: &self.options,
            late_share: &|| None,
            model: None,
            unused: &|| target.unused(&SysRoot::default()),
        };
        let floor = match (stage, &ready.ground) {
            (Some(stage), _) => Floor::Stage(stage),
            (None, Some(ground)) if files => Floor::Ground(ground),
            (None, _) => Floor::Bare,
        };
        let record = run.work(floor, &|| Ok(()))?;
        in_place()?;
        Ok(record)
    }
}

/// Whether a trial's files lie in a directory. Jobs on a file or a device have regions of it.
fn in_directory(target: &Target, trial: &Trial) -> bool {
    match trial.site() {
        Site::Files | Site::Root => true,
        Site::FilesOfJobs => target.kind() == Kind::Directory,
        Site::Disk => false,
    }
}

/// Where commands and programs can have their files: the target itself if it is a directory, else the directory that holds it.
fn directory(target: &Target) -> Result<PathBuf> {
    let path = Path::new(target.path());
    match target.kind() {
        Kind::Directory => Ok(path.into()),
        Kind::File => Ok(path.parent().unwrap_or(Path::new("/")).into()),
        Kind::Block => {
            let message = format!("{} itself has no directory to run in", target.path());
            Err(Error::input(message, "name a directory of a file system on it"))
        }
    }
}
