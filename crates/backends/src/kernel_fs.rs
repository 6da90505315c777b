//! debugfs and tracefs where the system has not mounted them: mounted for this process alone, visible
//! nowhere, gone with the last descriptor.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::root::SysRoot;

/// A kernel file system and where to look into it.
#[derive(Debug)]
pub struct KernelFs {
    root: SysRoot,
    /// Keeps a private mount alive.
    _mount: Option<OwnedFd>,
}

impl KernelFs {
    /// debugfs.
    ///
    /// # Errors
    /// `EPERM` without root or under lockdown, `ENODEV` when the kernel has none.
    pub fn debugfs() -> io::Result<Self> {
        Self::open("debugfs", "/sys/kernel/debug", "/sys/kernel/debug/block")
    }

    /// tracefs.
    ///
    /// # Errors
    /// As [`debugfs`](Self::debugfs).
    pub fn tracefs() -> io::Result<Self> {
        Self::open("tracefs", "/sys/kernel/tracing", "/sys/kernel/tracing/instances")
    }

    fn open(fstype: &str, usual: &str, sign: &str) -> io::Result<Self> {
        if std::fs::metadata(sign).is_ok() {
            return Ok(KernelFs { root: SysRoot::at(usual), _mount: None });
        }
        let context = fsopen(fstype, FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let root = SysRoot::at(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(KernelFs { root, _mount: Some(mount) })
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> &SysRoot {
        &self.root
    }
}

/// Cuts a FUSE connection: everything waiting for its server fails.
///
/// # Errors
/// The system's; a connection that is gone is no error.
pub(crate) fn abort_fuse(connection: u64) -> io::Result<()> {
    let context = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let path = format!("/proc/self/fd/{}/{connection}/abort", mount.as_raw_fd());
    match std::fs::write(path, "1") {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
