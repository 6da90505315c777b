//! A tracefs instance of our own: its buffers, clock and events are apart from those of every other tracer. It is
//! written down before it is made, and taken away whatever happens.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::guardian::{Guardian, GuardianCommand};
use crate::kernel_fs::KernelFs;
use crate::root::{DevNum, SysRoot};
use crate::state::{Change, StateFile};

/// Instances of this process so far: several disks may be traced at once.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// An instance.
#[derive(Debug)]
pub(crate) struct Instance {
    tracefs: KernelFs,
    dir: PathBuf,
    state: Option<StateFile>,
    guardian: Option<Guardian>,
}

impl Instance {
    /// Makes an instance with buffers of this many KiB a CPU. Its times are those of the program's own clock.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without tracefs, [`Error::Io`]. `help` says what to do without.
    pub(crate) fn make(
        buffer_kb: u64,
        state_dir: &Path,
        guardian: Option<&GuardianCommand>,
        help: &str,
    ) -> Result<Instance> {
        let tracefs = KernelFs::tracefs().map_err(|e| Error::Unavailable {
            what: "tracefs".into(),
            why: why(&e, &SysRoot::default()),
            help: help.into(),
        })?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("iosched-{}-{count}", std::process::id());
        let change = Change::TraceInstance { name: name.clone() };
        let state = StateFile::create(state_dir, &format!("trace-{name}"), change)?;
        let dir = tracefs.root().real(&format!("/instances/{name}"));
        let guardian = match guardian.map(|g| Guardian::start(g, &state)).transpose() {
            Ok(guardian) => guardian,
            Err(e) => {
                state.finish()?;
                return Err(e);
            }
        };
        let instance = Instance { tracefs, dir, state: Some(state), guardian };
        fs::create_dir(&instance.dir).map_err(|e| match e.raw_os_error() {
            Some(nix::libc::EPERM | nix::libc::EACCES) => Error::Unavailable {
                what: "a trace instance".into(),
                why: why(&e, &SysRoot::default()),
                help: help.into(),
            },
            _ => Error::io("creating", &instance.dir, e),
        })?;
        instance.set("buffer_size_kb", &buffer_kb.to_string())?;
        instance.set("trace_clock", "mono")?;
        Ok(instance)
    }

    /// Writes to one of its files.
    pub(crate) fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, value).map_err(|e| Error::io("writing", path, e))
    }

    /// Reads one of its files.
    pub(crate) fn get(&self, file: &str) -> Result<String> {
        let path = self.dir.join(file);
        fs::read_to_string(&path).map_err(|e| Error::io("reading", path, e))
    }

    /// Where one of its files is.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Whether the kernel has an event.
    pub(crate) fn has(&self, event: &str) -> bool {
        self.path(&format!("events/block/{event}")).is_dir()
    }

    /// Has the kernel pass only those of an event that a filter lets through; [`enable`](Self::enable) begins it.
    pub(crate) fn filter(&self, event: &str, filter: &str) -> Result<()> {
        self.set(&format!("events/block/{event}/filter"), filter)
    }

    /// Begins or ends an event.
    pub(crate) fn enable(&self, event: &str, on: bool) -> Result<()> {
        self.set(&format!("events/block/{event}/enable"), if on { "1" } else { "0" })
    }

    /// Takes it away. Its files must be closed.
    pub(crate) fn take_away(&mut self) -> Result<()> {
        let Some(state) = self.state.take() else { return Ok(()) };
        remove(&self.dir)?;
        state.finish()?;
        if let Some(guardian) = self.guardian.take() {
            guardian.join();
        }
        Ok(())
    }

    /// Where tracefs is.
    pub(crate) fn tracefs(&self) -> &SysRoot {
        self.tracefs.root()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The state file stays when this fails.
        let _ = self.take_away();
    }
}

/// Why tracefs is closed.
fn why(e: &std::io::Error, root: &SysRoot) -> String {
    let lockdown = root.get("/sys/kernel/security/lockdown").unwrap_or_default();
    match e.raw_os_error() {
        Some(nix::libc::ENODEV) => "this kernel is built without it (CONFIG_FTRACE)".into(),
        Some(nix::libc::EPERM | nix::libc::EACCES) if lockdown.contains("[confidentiality]") => {
            "the kernel is locked down ([confidentiality] in /sys/kernel/security/lockdown)".into()
        }
        Some(nix::libc::EPERM | nix::libc::EACCES) => {
            format!("{e}: the process has no right to it, as in a container")
        }
        _ => e.to_string(),
    }
}

/// Removes a trace instance; `false` when there was none. A child that another thread has just forked holds the
/// instance's files open until it executes its program, so a busy instance is tried again.
pub(crate) fn remove(dir: &Path) -> Result<bool> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let deadline = Instant::now() + PATIENCE;
    loop {
        match fs::remove_dir(dir) {
            Ok(()) => return Ok(true),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(e) => return Err(Error::io("removing", dir, e)),
        }
    }
}

/// The kernel's filter for the events of some disks.
pub(crate) fn of_disks(root: &SysRoot, disks: &[&str]) -> Result<String> {
    let mut any = Vec::new();
    for disk in disks {
        let number = root.get(&format!("/sys/block/{}/dev", disk.replace('/', "!")));
        let dev = number.as_deref().and_then(DevNum::parse).ok_or_else(|| Error::NoDevice {
            name: (*disk).into(),
            help: "it has no device number, so it cannot be traced".into(),
        })?;
        any.push(format!("dev == {}", dev.major << 20 | dev.minor));
    }
    Ok(any.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_tracefs_is_told_by_its_reason() {
        let dir = tempfile::tempdir().unwrap();
        let root = SysRoot::at(dir.path());
        let error = |n| std::io::Error::from_raw_os_error(n);
        assert!(why(&error(nix::libc::ENODEV), &root).contains("CONFIG_FTRACE"));
        assert!(why(&error(nix::libc::EPERM), &root).contains("container"));
        std::fs::create_dir_all(dir.path().join("sys/kernel/security")).unwrap();
        let lockdown = dir.path().join("sys/kernel/security/lockdown");
        std::fs::write(lockdown, "none integrity [confidentiality]\n").unwrap();
        assert!(why(&error(nix::libc::EPERM), &root).contains("locked down"));
    }
}
