//! The block device of an emulated disk: a loop device over FUSE, or a ublk device. Each is written down before it is
//! made.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use iosched_devices::DeviceSpec;
use iosched_types::Nanos;

use super::{EmulatedDisk, Options, data_place, fuse_and_loop, probe, unavailable};
use crate::emulate::clockwork::Clockwork;
use crate::emulate::data::DataStore;
use crate::emulate::limits::model_limits;
use crate::emulate::port::{Bell, BellPull, MAX_TRANSFER};
use crate::emulate::selfcheck::{self, SelfCheck};
use crate::emulate::serve::Shared;
use crate::emulate::transport::{Switched, Transport};
use crate::emulate::{fuse, ublk};
use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::root::{DevNum, SysRoot};
use crate::state::{Change, LABEL, StateFile, restore_command};
use crate::{restore, sys};

/// The search for a free number begins here. Lower numbers are left to others.
const FIRST: u32 = 64;
const LAST: u32 = 1023;
/// loop's own depth; a driver cannot have more.
const LOOP_DEPTH: u32 = 128;

/// Idle CPUs are kept awake for models that answer a read sooner than this.
const QUICK: Nanos = 1_000_000;

/// What is there of it.
#[derive(Debug)]
pub(super) enum Block {
    None,
    Loop { number: u32, label: String },
    Ublk { number: u32, device: Box<ublk::Device> },
}

impl Block {
    pub(super) fn name(&self) -> String {
        match self {
            Block::None => String::new(),
            Block::Loop { number, .. } => format!("loop{number}"),
            Block::Ublk { number, .. } => format!("ublkb{number}"),
        }
    }

    /// The most commands that the driver can have in flight, and the driver.
    pub(super) fn most(&self) -> (u32, &'static str) {
        match self {
            Block::Ublk { .. } => (ublk::MAX_DEPTH, "ublk"),
            _ => (LOOP_DEPTH, "loop"),
        }
    }
}

/// Makes a disk by one way.
///
/// # Errors
/// [`Error::Unavailable`] when the way is none here, [`Error::Unrestored`], [`Error::Io`].
pub(super) fn disk_by(
    way: Transport,
    spec: &DeviceSpec,
    bytes: u64,
    options: &Options,
) -> Result<EmulatedDisk> {
    let data = DataStore::open(&options.data, bytes)
        .map_err(|e| Error::io("making room for data in", data_place(&options.data), e))?;
    let work = Clockwork::new(probe(bytes, selfcheck::PROBE_LATENCY)?);
    let (bell, pull) = Bell::new().map_err(|e| Error::io("making", "a pipe", e))?;
    // A process that waits for a millisecond does not notice the time to wake a CPU.
    let quick = model_limits(spec)?.read_latency < QUICK;
    let mut disk = EmulatedDisk {
        bytes,
        block: Block::None,
        shared: Shared::new(work, data, bell, quick),
        transport: way,
        thread: None,
        state: None,
        guardian: None,
        file: None,
        check: SelfCheck::default(),
        notes: Vec::new(),
        spec: spec.clone(),
    };
    match way {
        Transport::Ublk => disk.by_ublk(pull, options)?,
        Transport::Fuse | Transport::FuseRing => disk.by_fuse(pull, options)?,
    }
    Ok(disk)
}

impl EmulatedDisk {
    fn label(&self) -> String {
        // The kernel keeps 63 bytes.
        let name = self.spec.name.chars().filter(char::is_ascii_graphic).take(40);
        format!("{LABEL}{}:{}", std::process::id(), name.collect::<String>())
    }

    /// Writes a device down and starts its guardian. `None`: another instance is about to take this number.
    fn written(&mut self, name: &str, change: Change, options: &Options) -> Result<Option<()>> {
        let state = match StateFile::create(&options.state_dir, name, change) {
            Ok(state) => state,
            Err(Error::Locked { .. }) => return Ok(None),
            Err(e) => return Err(e),
        };
        if let Some(command) = &options.guardian {
            match Guardian::start(command, &state) {
                Ok(guardian) => self.guardian = Some(guardian),
                Err(e) => {
                    state.finish()?;
                    return Err(e);
                }
            }
        }
        self.state = Some(state);
        Ok(Some(()))
    }

    /// The device was not made after all.
    fn unwritten(&mut self) -> Result<()> {
        if let Some(state) = self.state.take() {
            state.finish()?;
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.join();
        }
        Ok(())
    }

    fn by_fuse(&mut self, pull: BellPull, options: &Options) -> Result<()> {
        fuse_and_loop()?;
        let way = self.transport;
        let ring = way == Transport::FuseRing;
        let switched = ring.then(|| Switched::on(options)).transpose()?;
        let served = fuse::serve(Arc::clone(&self.shared), pull, self.bytes, ring);
        if let Some(switched) = switched {
            switched.back()?;
        }
        let (file, thread) = served.map_err(|e| unavailable(way, e.to_string()))?;
        self.thread = Some(thread);
        self.bind_loop(&file, options)?;
        self.file = options.measure.then_some(file);
        Ok(())
    }

    /// Creates and binds a loop device.
    fn bind_loop(&mut self, file: &File, options: &Options) -> Result<()> {
        let root = SysRoot::default();
        // FUSE connections go by the minor number of their file system.
        let meta = file.metadata().map_err(|e| Error::io("looking at", "the FUSE file", e))?;
        let connection = DevNum::from_raw(meta.dev()).minor;
        let control =
            sys::loop_control().map_err(|e| Error::io("opening", "/dev/loop-control", e))?;
        let label = self.label();
        for number in FIRST..=LAST {
            if root.exists(&format!("/sys/block/loop{number}")) {
                continue;
            }
            let change = Change::EmulatedDisk { number, label: label.clone(), connection };
            if self.written(&format!("loop{number}"), change, options)?.is_none() {
                continue;
            }
            if let Err(e) = sys::loop_add(&control, number) {
                self.unwritten()?;
                if e.kind() == std::io::ErrorKind::AlreadyExists {
                    continue;
                }
                return Err(Error::io("creating", format!("/dev/loop{number}"), e));
            }
            self.block = Block::Loop { number, label: label.clone() };
            let node = self.node();
            let device = OpenOptions::new().read(true).write(true).open(&node).map_err(|e| {
                Error::Unavailable {
                    what: node.display().to_string(),
                    why: e.to_string(),
                    help: "in a container, give it the host's /dev".into(),
                }
            })?;
            return sys::loop_bind(&device, file, &label, self.spec.logical_block)
                .map_err(|e| Error::io("binding", node, e));
        }
        Err(taken("loop", &options.state_dir))
    }

    /// Creates, serves and shows a device of ublk.
    fn by_ublk(&mut self, pull: BellPull, options: &Options) -> Result<()> {
        let way = self.transport;
        let label = self.label();
        let transfer = self.spec.max_hw_sectors_kb.min(MAX_TRANSFER >> 10) << 10;
        let params = ublk::Params {
            bytes: self.bytes,
            logical_block: self.spec.logical_block,
            max_io_bytes: transfer,
            rotational: self.spec.rotational,
            write_cache: self.spec.write_cache,
            fua: self.spec.fua,
        };
        let most = |n: u32, most: u32| u16::try_from(n.clamp(1, most)).unwrap_or(u16::MAX);
        for number in FIRST..=LAST {
            if std::fs::exists(format!("/dev/ublkc{number}")).unwrap_or(true) {
                continue;
            }
            let change = Change::UblkDisk { number, label: label.clone() };
            if self.written(&format!("ublkb{number}"), change, options)?.is_none() {
                continue;
            }
            let wanted = ublk::DevInfo {
                queues: most(self.spec.hw_queues, 4096),
                depth: most(self.spec.queue_depth, ublk::MAX_DEPTH),
                max_io_bytes: MAX_TRANSFER,
                device: number,
                mark: ublk::mark(&label),
                ..ublk::DevInfo::default()
            };
            let device = match ublk::Device::add(&wanted, params) {
                Ok(device) => device,
                Err(e) => {
                    // What may have been made of it goes.
                    let _ = ublk::remove(number, &label);
                    self.unwritten()?;
                    if e.kind() == std::io::ErrorKind::AlreadyExists {
                        continue;
                    }
                    return Err(unavailable(way, e.to_string()));
                }
            };
            let form = device.form();
            self.block = Block::Ublk { number, device: Box::new(device) };
            if u32::from(form.queues) != self.spec.hw_queues.max(1) {
                let (has, wants) = (form.queues, self.spec.hw_queues);
                self.notes
                    .push(format!("{has} hardware queues, not {wants}: one a CPU is the most"));
            }
            let Block::Ublk { device, .. } = &mut self.block else { continue };
            let failed = |e: std::io::Error| unavailable(way, e.to_string());
            self.thread = Some(device.serve(Arc::clone(&self.shared), pull).map_err(failed)?);
            return device.show().map_err(failed);
        }
        Err(taken("ublk", &options.state_dir))
    }

    /// Removes the block device. A device in use stays.
    pub(super) fn remove_block(&mut self, again: &str) -> Result<()> {
        let node = self.node();
        let users = match self.block {
            Block::Ublk { .. } => self.users(),
            _ => Vec::new(),
        };
        match std::mem::replace(&mut self.block, Block::None) {
            Block::None => Ok(()),
            Block::Loop { number, label } => {
                restore::remove_loop(number, &label, again).map(|_| ())
            }
            Block::Ublk { mut device, .. } => {
                // It would be taken from under them.
                if let Some(user) = users.first() {
                    let why = format!("{user}; when it is free, run: {again}");
                    return Err(Error::InUse { device: node.display().to_string(), why });
                }
                let io = |e| Error::io("removing", &node, e);
                device.stop().map_err(io)?;
                // The kernel waits for the character device, which the thread has open.
                self.end_thread();
                device.delete().map_err(io)
            }
        }
    }
}

fn taken(kind: &str, state_dir: &Path) -> Error {
    Error::Unavailable {
        what: format!("a free {kind} device"),
        why: format!("{kind}{FIRST} to {kind}{LAST} are all taken"),
        help: format!("run: {}", restore_command(state_dir)),
    }
}
