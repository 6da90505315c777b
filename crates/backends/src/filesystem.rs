//! File systems that we make on emulated disks, with the machine's own tools.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use iosched_experiment::{AccessTime, FsType, HostSpec};
use iosched_lab::machine::Interrupt;
use iosched_types::Bytes;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};

use crate::error::{Error, Result};
use crate::load::probe;
use crate::parse::version;
use crate::root::SysRoot;

/// Options that say what is done anyway. The kernel's XFS has not known `barrier` since Linux 4.19.
/// Times of access are attributes of the mount.
const IMPLIED: &[&str] = &[
    "defaults",
    "rw",
    "noatime",
    "relatime",
    "strictatime",
    "atime",
    "barrier",
    "nodiscard",
    "delalloc",
    "reservation",
];

/// What is made and how it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    kind: FsType,
    options: Vec<String>,
    /// Reads change times only if an option says so.
    atime: MountAttrFlags,
    size: Option<Bytes>,
}

impl Default for FileSystem {
    /// ext4 as wide as the room for it.
    fn default() -> Self {
        let (kind, atime) = (FsType::Ext4, MountAttrFlags::MOUNT_ATTR_NOATIME);
        FileSystem { kind, options: Vec::new(), atime, size: None }
    }
}

impl FileSystem {
    /// The one that an experiment asks for.
    ///
    /// # Errors
    /// [`Error::Input`] for one that no kernel has, and for one that was used before.
    pub fn of(host: &HostSpec) -> Result<FileSystem> {
        let kind = host.filesystem;
        if kind == FsType::Simple {
            let message = format!("\"{}\" is a file system of the simulator", kind.name());
            return Err(Error::input(message, "a live run makes ext4, ext3 or xfs"));
        }
        if host.fill.is_some() {
            let message = "a file system that is made for a live run is fresh";
            return Err(Error::input(message, "leave fill out, or ask the simulator"));
        }
        let atime = match host.options.atime {
            AccessTime::Never => MountAttrFlags::MOUNT_ATTR_NOATIME,
            AccessTime::Relative => MountAttrFlags::empty(),
            AccessTime::Strict => MountAttrFlags::MOUNT_ATTR_STRICTATIME,
        };
        let wanted = host.given.iter().filter(|o| !IMPLIED.contains(&o.as_str()));
        Ok(FileSystem { kind, options: wanted.cloned().collect(), atime, size: host.size })
    }

    /// Its name, as `mount` takes it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Makes it at the start of the disk, no larger than its content, with one directory for everything on ext4, which
    /// would put a directory of the top level anywhere, by a random number of each file system, and on a large file
    /// system parts of the load, too. Every run would measure other distances, and a drive that prefers near requests
    /// starves files that lie far away. XFS has no such number.
    pub(crate) fn make(
        &self,
        node: &Path,
        directory: &str,
        room: Bytes,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let room = self.size.unwrap_or(room).min(room);
        if self.kind == FsType::Xfs {
            let mut make = Command::new("mkfs.xfs");
            make.args(["-q", "-f", "-K", "-d", &format!("size={room}")]).arg(node);
            return must("mkfs.xfs", "xfsprogs", make, interrupt);
        }
        let tool = if self.kind == FsType::Ext3 { "mkfs.ext3" } else { "mkfs.ext4" };
        let mut make = Command::new(tool);
        make.args(["-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1"]).arg(node);
        make.arg(format!("{}k", room >> 10));
        must(tool, "e2fsprogs", make, interrupt)?;
        let mut add = Command::new("debugfs");
        add.args(["-w", "-R", &format!("mkdir {directory}")]).arg(node);
        must("debugfs", "e2fsprogs", add, interrupt)
    }

    /// Mounts it where nobody sees it, for as long as the answer is open.
    pub(crate) fn mount(&self, node: &Path) -> Result<OwnedFd> {
        let io = |e: rustix::io::Errno| Error::io("mounting", node, e.into());
        let context = fsopen(self.name(), FsOpenFlags::FSOPEN_CLOEXEC).map_err(io)?;
        fsconfig_set_string(&context, "source", node).map_err(io)?;
        if self.kind == FsType::Ext4 {
            // The kernel would write the inode tables in the background, into the middle of a measurement.
            fsconfig_set_flag(&context, "noinit_itable").map_err(io)?;
            // It would read the bitmap of every block group some time within the first five seconds, amid the program's
            // own reads: 400 of 450 on a disk of 1 TB. `load_bitmaps` does it before.
            if prefetches(&SysRoot::default()) {
                fsconfig_set_flag(&context, "no_prefetch_block_bitmaps").map_err(io)?;
            }
        }
        for option in &self.options {
            let set = match option.split_once('=') {
                Some((key, value)) => fsconfig_set_string(&context, key, value),
                None => fsconfig_set_flag(&context, option.as_str()),
            };
            set.map_err(|_| {
                let message = format!(
                    "the running kernel's {} does not take the mount option {option}",
                    self.name()
                );
                Error::input(message, "leave it out, or ask the simulator")
            })?;
        }
        fsconfig_create(&context).map_err(io)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, self.atime).map_err(io)?;
        if self.kind == FsType::Ext4 {
            load_bitmaps(&SysRoot::default(), node);
        }
        Ok(mount)
    }
}

/// Has all bitmaps of blocks read now: the list of groups shows what is in them. The allocator then works as some seconds
/// after any mount. Where there is no such list the reads come later, as on any machine.
fn load_bitmaps(root: &SysRoot, node: &Path) {
    if let Some(name) = node.file_name() {
        let _ = root.get(&format!("/proc/fs/ext4/{}/mb_groups", name.to_string_lossy()));
    }
}

/// Whether the running kernel's ext4 prefetches bitmaps after a mount, and can be told not to: since Linux 5.8 it has the
/// option (then `prefetch_block_bitmaps` was asked for), since 5.9 it prefetches unless told.
fn prefetches(root: &SysRoot) -> bool {
    let release = root.get("/proc/sys/kernel/osrelease").unwrap_or_default();
    version::parse(&release).is_some_and(|(_, parts)| parts >= vec![5, 9])
}

/// How long a tool may take. On an emulated disk that answers at once even a large file system takes seconds.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs a tool of a package. It ends with us, with a signal, and in time.
fn must(tool: &str, package: &str, command: Command, interrupt: &Interrupt) -> Result<()> {
    let (status, printed) = probe::listen(command, package, LIMIT, interrupt)?;
    match status {
        Some(status) if status.success() => Ok(()),
        status => Err(Error::Tool {
            tool: tool.into(),
            status: status.map_or_else(|| "a time-out".into(), |s| s.to_string()),
            message: printed.trim().to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_a_tool_and_its_words_are_told() {
        let shell = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        };
        let signal = Interrupt::default();
        let e = must("mkfs", "x", shell("echo no disk >&2; exit 3"), &signal).unwrap_err();
        assert!(e.to_string().contains("mkfs failed with exit status: 3: no disk"), "{e}");
        signal.raise(signal_hook::consts::SIGTERM);
        let e = must("mkfs", "x", shell("sleep 1000"), &signal).unwrap_err();
        assert!(matches!(e, Error::Interrupted { .. }), "{e:?}");
    }

    #[test]
    fn what_an_experiment_asks_for_is_handed_to_the_kernel() {
        let mut host = HostSpec::default();
        assert_eq!(FileSystem::of(&host).unwrap(), FileSystem::default());
        host.set_filesystem("ext4:nobarrier,commit=30,noatime").unwrap();
        let ext4 = FileSystem::of(&host).unwrap();
        assert_eq!(
            (ext4.name(), ext4.options),
            ("ext4", vec!["nobarrier".into(), "commit=30".into()])
        );
        let mut host = HostSpec::default();
        host.set_filesystem("xfs:barrier").unwrap();
        let xfs = FileSystem::of(&host).unwrap();
        assert_eq!((xfs.name(), xfs.options.len()), ("xfs", 0));
        let mut host = HostSpec::default();
        host.set_filesystem("simple").unwrap();
        assert!(FileSystem::of(&host).unwrap_err().to_string().contains("simulator"));
    }
}
