//! Making a disk of a model, and removing it.

mod block;
mod setup;

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use iosched_devices::DeviceSpec;
use iosched_lab::machine::Interrupt;

use super::data::DataMode;
use super::selfcheck::SelfCheck;
use super::serve::Shared;
use super::served::Served;
use super::transport::Transport;
use crate::error::{Error, Result};
use crate::guardian::{Guardian, GuardianCommand};
use crate::inspect::{self, Weight};
use crate::restore;
use crate::root::SysRoot;
use crate::state::{STATE_DIR, StateFile, restore_command};
use block::Block;
pub(super) use setup::probe;

/// How to emulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size instead of the model's.
    pub bytes: Option<u64>,
    /// Hardware queue depth instead of the model's.
    pub depth: Option<u32>,
    /// Where data is kept.
    pub data: DataMode,
    /// The way to the kernel; the fastest that the machine has if `None`.
    pub transport: Option<Transport>,
    /// `queue/read_ahead_kb`.
    pub read_ahead_kb: u32,
    /// Where state files go.
    pub state_dir: PathBuf,
    /// Serve a model that is too fast for this machine as fast as possible, instead of refusing it.
    pub unchecked: bool,
    /// What ends the start early.
    pub interrupt: Interrupt,
    /// Keep the FUSE file open, so that it can be measured beside the disk.
    pub measure: bool,
    /// How to start the guardian; `None` goes without (tests of single parts).
    pub guardian: Option<GuardianCommand>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            bytes: None,
            depth: None,
            data: DataMode::Memory,
            transport: None,
            read_ahead_kb: 128,
            state_dir: STATE_DIR.into(),
            unchecked: false,
            interrupt: Interrupt::default(),
            measure: false,
            guardian: None,
        }
    }
}

/// An emulated disk in place. Dropping the value removes the disk.
pub struct EmulatedDisk {
    spec: DeviceSpec,
    bytes: u64,
    block: Block,
    shared: Arc<Shared>,
    transport: Transport,
    thread: Option<JoinHandle<()>>,
    state: Option<StateFile>,
    guardian: Option<Guardian>,
    /// The FUSE file, where it is wanted.
    file: Option<File>,
    check: SelfCheck,
    /// What could not be made as the model has it.
    notes: Vec<String>,
}

impl std::fmt::Debug for EmulatedDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmulatedDisk").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl EmulatedDisk {
    /// Makes a block device of a model.
    ///
    /// # Errors
    /// [`Error::NotRoot`], [`Error::Unavailable`] without FUSE or loop, [`Error::TooFast`], [`Error::Io`].
    pub fn start(spec: &DeviceSpec, options: &Options) -> Result<EmulatedDisk> {
        root_only()?;
        let mut spec = spec.clone();
        let invalid = |e: iosched_devices::SpecError| Error::input(e.to_string(), String::new());
        if let Some(depth) = options.depth {
            spec.queue_depth = depth;
        }
        if let Some(stack) = &spec.stack {
            return Err(crate::emulate::stacked(&spec, stack));
        }
        let model = spec.build().map_err(invalid)?;
        let bytes = options.bytes.unwrap_or(model.capacity());
        if bytes > model.capacity() {
            return Err(Error::input(
                format!("{bytes} bytes are more than {} has: {}", spec.name, model.capacity()),
                "the model says nothing about what lies beyond its end; leave out --size, or use another device",
            ));
        }
        let bytes = bytes / u64::from(spec.logical_block) * u64::from(spec.logical_block);
        if bytes < 1 << 20 {
            return Err(Error::input("an emulated disk needs at least 1 MiB", String::new()));
        }
        let mut disk = connect(&spec, bytes, options)?;
        disk.shape(options)?;
        disk.self_check(bytes, options)?;
        let (model, lead) = (disk.spec.build().map_err(invalid)?, disk.lead());
        disk.settle(model, lead)?;
        Ok(disk)
    }

    /// Kernel name: `loop64` or `ublkb64`.
    #[must_use]
    pub fn name(&self) -> String {
        self.block.name()
    }

    /// Device node.
    #[must_use]
    pub fn node(&self) -> PathBuf {
        Path::new("/dev").join(self.name())
    }

    /// Size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What is emulated, with the options applied.
    #[must_use]
    pub fn spec(&self) -> &DeviceSpec {
        &self.spec
    }

    /// The way to the kernel.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// What the self-check found.
    #[must_use]
    pub fn self_check_result(&self) -> SelfCheck {
        self.check
    }

    /// What differs from the model, one sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Figures so far.
    #[must_use]
    pub fn served(&self) -> Served {
        self.shared.work.served()
    }

    /// The model's own counters.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.shared.work.counters()
    }

    /// How long before an answer is due the server stops sleeping, and how long it has been awake for that since the
    /// start. Sleeps end late, and the server measures how late while it serves.
    #[must_use]
    pub fn waking(&self) -> (Duration, Duration) {
        let (margin, awake) = self.shared.waking();
        (Duration::from_nanos(margin), Duration::from_nanos(awake))
    }

    pub(super) fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Puts a fresh instance of the model in place, as after power-on. So every trial starts alike.
    ///
    /// # Errors
    /// [`Error::Trial`] when the disk does not become idle.
    pub fn reset(&self) -> Result<()> {
        let device = self.spec.build().map_err(|e| Error::input(e.to_string(), String::new()))?;
        self.settle(device, self.lead())
    }

    /// From now until [`reset`](Self::reset) the server answers everything at once. This is for filling the disk.
    pub fn fast_forward(&self) {
        self.shared.hurry();
    }

    /// The users of the disk, as `/dev/loop64 is open in fio (process 17)`: mounts of all namespaces, processes, and
    /// devices on top of it.
    #[must_use]
    pub fn users(&self) -> Vec<String> {
        let root = SysRoot::default();
        let Ok(thing) = root.thing(&self.node().to_string_lossy()) else { return Vec::new() };
        let found = inspect::users(&root, thing).into_iter();
        found.filter(|f| f.weight == Weight::Always).map(|f| f.what).collect()
    }

    /// The memory limit, if a write did not fit into it.
    #[must_use]
    pub fn is_full(&self) -> Option<u64> {
        self.shared.data.is_full()
    }

    /// Asks the kernel to release the disk when its last user does. The disk keeps its speed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn release(&self) -> Result<()> {
        // ublk takes a disk from its users at once, or not at all. So the disk stays until it has no user.
        let Block::Loop { .. } = self.block else { return Ok(()) };
        let io = |e| Error::io("detaching", self.node(), e);
        let device = OpenOptions::new().read(true).open(self.node()).map_err(io)?;
        match crate::sys::loop_unbind(&device) {
            // It is gone already.
            Err(e) if e.raw_os_error() == Some(nix::libc::ENXIO) => Ok(()),
            other => other.map_err(io),
        }
    }

    /// Whether anybody still uses a disk that was [released](Self::release).
    #[must_use]
    pub fn is_held(&self) -> bool {
        match self.block {
            Block::None => false,
            Block::Loop { number, .. } => restore::is_bound(number),
            Block::Ublk { .. } => !self.users().is_empty(),
        }
    }

    /// Takes the disk away.
    ///
    /// # Errors
    /// [`Error::InUse`] when it is mounted or open; `iosched restore` finishes the job later.
    pub fn stop(mut self) -> Result<()> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<()> {
        // I/O in flight and dirty data need not take the model's time any more.
        self.shared.hurry();
        self.file = None;
        // Dropped when that fails, so that the guardian tries.
        let state = self.state.take();
        let again =
            state.as_ref().map_or_else(|| restore_command(Path::new(STATE_DIR)), StateFile::again);
        self.remove_block(&again)?;
        if let Some(state) = state {
            state.finish()?;
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.join();
        }
        self.end_thread();
        Ok(())
    }

    fn end_thread(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for EmulatedDisk {
    fn drop(&mut self) {
        // An error cannot be reported here. The guardian and `iosched restore` are the second and third line of
        // defence.
        let _ = self.take_away();
    }
}

/// Makes a disk by the given way, or by the fastest that works.
fn connect(spec: &DeviceSpec, bytes: u64, options: &Options) -> Result<EmulatedDisk> {
    let mut notes = Vec::new();
    let ways: Vec<Transport> = match options.transport {
        Some(way) => match way.missing() {
            Some(why) => return Err(unavailable(way, why)),
            None => vec![way],
        },
        None => Transport::choice().collect(),
    };
    let mut failed = Error::Trial { message: "there is no way to serve a disk".into() };
    for way in ways {
        match block::disk_by(way, spec, bytes, options) {
            Ok(mut disk) => {
                disk.notes.splice(0..0, notes);
                return Ok(disk);
            }
            // A state file that was left behind must be restored first, not worked around.
            Err(e @ (Error::Unrestored { .. } | Error::Interrupted { .. })) => return Err(e),
            Err(e) => {
                notes.push(format!("{} did not work: {e}", way.title()));
                failed = e;
            }
        }
    }
    Err(failed)
}

fn unavailable(way: Transport, why: String) -> Error {
    Error::Unavailable {
        what: way.title().into(),
        why,
        help: match way {
            Transport::Ublk => "needs Linux 6.0 with CONFIG_BLK_DEV_UBLK: modprobe ublk_drv",
            _ => "needs Linux 5.2 with FUSE; in a container: --device /dev/fuse and CAP_SYS_ADMIN",
        }
        .into(),
    }
}

fn data_place(mode: &DataMode) -> PathBuf {
    match mode {
        DataMode::File(dir) => dir.clone(),
        _ => "memory".into(),
    }
}

fn root_only() -> Result<()> {
    match nix::unistd::geteuid().is_root() {
        true => Ok(()),
        false => Err(Error::NotRoot { what: "emulating a disk".into() }),
    }
}

/// Root, and what the way that would be chosen needs.
///
/// # Errors
/// The first that is missing.
pub(crate) fn requirements() -> Result<()> {
    root_only()?;
    match Transport::best() {
        Transport::Ublk => Ok(()),
        Transport::Fuse | Transport::FuseRing => fuse_and_loop(),
    }
}

/// FUSE and loop.
fn fuse_and_loop() -> Result<()> {
    for (node, what, help) in [
        ("/dev/fuse", "FUSE", "modprobe fuse; in a container: --device /dev/fuse"),
        (
            "/dev/loop-control",
            "loop devices",
            "modprobe loop; in a container: --device /dev/loop-control",
        ),
    ] {
        OpenOptions::new().read(true).write(true).open(node).map_err(|e| Error::Unavailable {
            what: what.into(),
            why: format!("{node}: {e}"),
            help: help.into(),
        })?;
    }
    Ok(())
}
