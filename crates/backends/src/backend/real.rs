//! The running kernel on a real disk.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use iosched_experiment::{BackendKind, Record, Trial};

use super::live::{LiveOptions, Place, Run};
use super::{Backend, Requirement};
use crate::discover;
use crate::error::{Error, Result};
use crate::parse::mountinfo;
use crate::root::SysRoot;
use crate::signature;
use crate::startup::Stage;
use crate::switch::{self, Disks};

/// Leave to destroy the data of a device: the name the user repeated in `--destroy-data=/dev/NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destroy(pub Option<String>);

/// Runs fio on a device or on a file of a mounted file system.
#[derive(Debug)]
pub struct Real {
    target: PathBuf,
    destroy: Destroy,
    options: LiveOptions,
    ready: Option<Ready>,
}

#[derive(Debug)]
struct Ready {
    /// Made for the first start of a command.
    stage: Option<Stage>,
    disks: Disks,
    /// Whether writing to the target was found to harm nobody.
    may_write: bool,
}

impl Real {
    /// A backend for a target: a file (which must exist with its full size) or a device node.
    #[must_use]
    pub fn new(target: impl Into<PathBuf>, destroy: Destroy, options: LiveOptions) -> Self {
        Real { target: target.into(), destroy, options, ready: None }
    }
}

impl Backend for Real {
    fn kind(&self) -> BackendKind {
        BackendKind::Real
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![super::root("switching schedulers"), super::fio()]
    }

    fn prepare(&mut self, trial: &Trial) -> Result<()> {
        if self.ready.is_some() {
            return Ok(());
        }
        super::require(self.requirements())?;
        let root = SysRoot::default();
        let name = self.target.to_string_lossy();
        let stack = discover::find(&root, &name)?;
        let disks: Vec<&str> = stack.compared()?.iter().map(|l| l.name.as_str()).collect();
        let may_write = writes(trial);
        if may_write {
            check_target(&root, &self.target, &self.destroy)?;
        }
        let options = switch::Options {
            state_dir: self.options.state_dir.clone(),
            guardian: self.options.guardian.clone(),
        };
        let disks = Disks::begin(disks, &options)?;
        self.ready = Some(Ready { stage: None, disks, may_write });
        Ok(())
    }

    fn run(&mut self, trial: &Trial) -> Result<Record> {
        self.prepare(trial)?;
        let Some(ready) = &mut self.ready else {
            return Err(Error::Trial { message: "the device was not prepared".into() });
        };
        if writes(trial) && !ready.may_write {
            check_target(&SysRoot::default(), &self.target, &self.destroy)?;
            ready.may_write = true;
        }
        let stage = match &trial.startup {
            Some(what) => {
                let stage = match &mut ready.stage {
                    Some(stage) => stage,
                    none => {
                        let dir = directory(&self.target)?;
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
                Some((what, &*stage))
            }
            None => None,
        };
        let bytes = if stage.is_some() { 0 } else { size_of(&self.target)? };
        let run = Run {
            kind: BackendKind::Real,
            trial,
            place: Place { target: &self.target, bytes },
            disks: &ready.disks,
            options: &self.options,
            late_share: &|| None,
            model: None,
        };
        match stage {
            Some((what, stage)) => run.startup(what, stage),
            None => run.fio(),
        }
    }

    fn cleanup(&mut self) -> Result<()> {
        let Some(Ready { stage, disks, .. }) = self.ready.take() else { return Ok(()) };
        drop(stage);
        disks.finish().map(|_| ())
    }
}

fn writes(trial: &Trial) -> bool {
    trial.jobs.jobs.iter().any(|j| j.pattern.write || j.pattern.trim)
}

/// Where a small root can be made: the directory that the target is, or is in.
fn directory(target: &Path) -> Result<PathBuf> {
    let meta = std::fs::metadata(target).map_err(|e| Error::io("looking at", target, e))?;
    if meta.is_dir() {
        return Ok(target.into());
    }
    if meta.is_file() {
        return Ok(target
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
            .into());
    }
    let message = format!("no command can start from {} itself", target.display());
    Err(Error::input(message, "name a directory of a file system on it"))
}

fn size_of(target: &Path) -> Result<u64> {
    let io = |e| Error::io("reading the size of", target, e);
    let mut file = File::open(target).map_err(io)?;
    if file.metadata().map_err(io)?.is_dir() {
        let message =
            format!("{} is a directory; jobs work on a file or a device", target.display());
        return Err(Error::input(message, "name a file in it that has its full size"));
    }
    let bytes = file.seek(SeekFrom::End(0)).map_err(io)?;
    if bytes == 0 {
        let message = format!("{} is empty", target.display());
        return Err(Error::input(message, "write the file once in full size before comparing"));
    }
    Ok(bytes)
}

/// Refuses to write to a device that holds anything, unless its name was repeated.
///
/// # Errors
/// [`Error::InUse`] saying what is on it; a mounted or held device is refused in any case.
pub fn check_target(root: &SysRoot, target: &Path, destroy: &Destroy) -> Result<()> {
    let is_block = std::fs::metadata(target)
        .map_err(|e| Error::io("looking at", target, e))?
        .file_type()
        .is_block_device();
    if !is_block {
        return Ok(());
    }
    let device = target.display().to_string();
    let refuse = |why: String| Err(Error::InUse { device: device.clone(), why });
    let name = std::fs::canonicalize(target)
        .ok()
        .and_then(|p| p.strip_prefix("/dev").ok().map(|n| n.to_string_lossy().replace('/', "!")));
    let name = name.ok_or_else(|| Error::NoDevice { name: device.clone(), help: String::new() })?;
    if let Some(user) = user_of(root, &name) {
        return refuse(user);
    }
    // Exclusive opening fails for whatever the kernel itself uses: mounts, swap, members of arrays.
    if let Err(e) = OpenOptions::new().read(true).write(true).custom_flags_excl().open(target)
        && e.kind() == std::io::ErrorKind::ResourceBusy
    {
        return refuse("the kernel uses it (mounted, swap, or part of something)".into());
    }
    if destroy.0.as_deref() == Some(device.as_str()) {
        return Ok(());
    }
    let mut head = vec![0u8; signature::HEAD];
    let mut file = File::open(target).map_err(|e| Error::io("reading", target, e))?;
    let n = read_up_to(&mut file, &mut head).map_err(|e| Error::io("reading", target, e))?;
    if !root.list(&format!("/sys/class/block/{name}")).iter().all(|e| !is_partition(root, &name, e))
    {
        return refuse("it has partitions".into());
    }
    match signature::find(&head[..n]) {
        Some(what) => refuse(format!("it holds {what}")),
        None => Ok(()),
    }
}

trait Exclusive {
    fn custom_flags_excl(&mut self) -> &mut Self;
}

impl Exclusive for OpenOptions {
    fn custom_flags_excl(&mut self) -> &mut Self {
        use std::os::unix::fs::OpenOptionsExt;
        self.custom_flags(nix::libc::O_EXCL)
    }
}

fn read_up_to(file: &mut File, buf: &mut [u8]) -> std::io::Result<usize> {
    let mut n = 0;
    while n < buf.len() {
        match file.read(&mut buf[n..])? {
            0 => break,
            m => n += m,
        }
    }
    Ok(n)
}

fn is_partition(root: &SysRoot, disk: &str, entry: &str) -> bool {
    root.exists(&format!("/sys/class/block/{disk}/{entry}/partition"))
}

/// Who uses a device or one of its partitions: a mount, swap, a device above.
fn user_of(root: &SysRoot, name: &str) -> Option<String> {
    let mounts = mountinfo::parse(&root.get("/proc/self/mountinfo").unwrap_or_default());
    let swaps = root.get("/proc/swaps").unwrap_or_default();
    let dir = format!("/sys/class/block/{name}");
    let mut devices = vec![(name.to_string(), dir.clone())];
    for entry in root.list(&dir) {
        if is_partition(root, name, &entry) {
            devices.push((entry.clone(), format!("{dir}/{entry}")));
        }
    }
    devices.into_iter().find_map(|(device, dir)| {
        let number = root.get(&format!("{dir}/dev"));
        let node = format!("/dev/{}", device.replace('!', "/"));
        let mounted = mounts
            .iter()
            .find(|m| Some(m.dev.to_string()) == number || m.source == node)
            .map(|m| format!("{node} is mounted on {}", m.point));
        let swap = swaps.lines().any(|l| l.split_whitespace().next() == Some(node.as_str()));
        let holders = root.list(&format!("{dir}/holders"));
        mounted
            .or_else(|| swap.then(|| format!("{node} is swap space")))
            .or_else(|| holders.first().map(|h| format!("{node} is part of {h}")))
    })
}
