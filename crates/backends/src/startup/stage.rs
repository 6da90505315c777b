//! A file system on the tested disk with a small root to start the command from and files to load it.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};

use super::mix::{Access, Mix};
use crate::emulate::EmulatedDisk;
use crate::error::{Error, Result};

/// The stage. A file system of ours is mounted where nobody sees it and goes away with it.
#[derive(Debug)]
pub struct Stage {
    dir: PathBuf,
    /// The disk's node, for raw readers.
    pub(crate) node: PathBuf,
    /// The disk's kernel name.
    pub(crate) disk: String,
    /// Load files.
    pub(crate) files: Vec<PathBuf>,
    /// Size of each.
    pub(crate) file_bytes: u64,
    /// Keeps the private mount alive; `None` for a directory of somebody else's.
    mount: Option<OwnedFd>,
}

impl Stage {
    /// Makes a file system on an emulated disk, copies the command, writes the load's files. The disk
    /// answers at once meanwhile and is as after power-on afterwards.
    ///
    /// # Errors
    /// [`Error::NoTool`] without `mkfs.ext4`, [`Error::Io`].
    pub fn on_emulated(
        disk: &EmulatedDisk,
        program: &Path,
        mix: Mix,
        file_bytes: u64,
    ) -> Result<Stage> {
        disk.fast_forward();
        let node = disk.node();
        make_file_system(&node)?;
        let mount = mount(&node)?;
        // A path that the command's own process can follow too.
        let dir = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), mount.as_raw_fd()));
        let mut stage = Stage {
            dir,
            node,
            disk: disk.name(),
            files: Vec::new(),
            file_bytes,
            mount: Some(mount),
        };
        stage.fill(program, mix)?;
        disk.reset()?;
        Ok(stage)
    }

    /// Uses a directory of a mounted file system on `disk` (a kernel name).
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::DiskFull`].
    pub fn in_directory(
        dir: &Path,
        disk: &str,
        program: &Path,
        mix: Mix,
        file_bytes: u64,
    ) -> Result<Stage> {
        let dir = dir.join(format!("iosched-startup-{}", std::process::id()));
        fs::create_dir(&dir).map_err(|e| Error::io("creating", &dir, e))?;
        let mut stage = Stage {
            dir,
            node: Path::new("/dev").join(disk),
            disk: disk.into(),
            files: Vec::new(),
            file_bytes,
            mount: None,
        };
        stage.fill(program, mix)?;
        Ok(stage)
    }

    fn fill(&mut self, program: &Path, mix: Mix) -> Result<()> {
        let root = self.root();
        for file in libraries(program)?.iter().chain([&program.to_path_buf()]) {
            let to = root.join(file.strip_prefix("/").unwrap_or(file));
            let parent = to.parent().unwrap_or(&root);
            fs::create_dir_all(parent).map_err(|e| Error::io("creating", parent, e))?;
            fs::copy(file, &to).map_err(|e| Error::io("copying to", &to, e))?;
        }
        if mix.access != Access::Raw {
            for i in 0..mix.readers + mix.writers {
                let path = self.dir.join(format!("load.{i}"));
                write_noise(&path, self.file_bytes, u64::from(i))?;
                self.files.push(path);
            }
        }
        nix::unistd::sync();
        Ok(())
    }

    /// The small root.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.dir.join("root")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.mount.is_none() {
            // A directory of our own making in somebody else's file system.
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

fn make_file_system(node: &Path) -> Result<()> {
    let mut command = Command::new("mkfs.ext4");
    command.args(["-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1"]).arg(node);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|_| Error::NoTool { tool: "mkfs.ext4".into(), package: "e2fsprogs".into() })?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Tool {
        tool: "mkfs.ext4".into(),
        status: output.status.to_string(),
        message: String::from_utf8_lossy(&output.stderr).trim().to_string(),
    })
}

fn mount(node: &Path) -> Result<OwnedFd> {
    let io = |e: rustix::io::Errno| Error::io("mounting", node, e.into());
    let context = fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC).map_err(io)?;
    fsconfig_set_string(&context, "source", node).map_err(io)?;
    // The kernel would write the inode tables in the background, into the middle of a measurement.
    fsconfig_set_flag(&context, "noinit_itable").map_err(io)?;
    fsconfig_create(&context).map_err(io)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOATIME).map_err(io)
}

/// Incompressible data: some disks are faster on zeros.
fn write_noise(path: &Path, bytes: u64, seed: u64) -> Result<()> {
    let io = |e| Error::io("writing", path, e);
    let mut file = File::create(path).map_err(io)?;
    let mut stream = iosched_engine::stream(seed, "load-file");
    let block: Vec<u8> = (0..1 << 17).flat_map(|_| stream.next_u64().to_le_bytes()).collect();
    let mut left = bytes;
    while left > 0 {
        let n = left.min(block.len() as u64);
        file.write_all(&block[..n as usize]).map_err(io)?;
        left -= n;
    }
    file.sync_all().map_err(io)
}

/// The libraries a program needs, with the loader, as `ldd` lists them.
///
/// # Errors
/// [`Error::NoTool`]; a program that `ldd` cannot read needs none.
pub fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).stdin(Stdio::null()).output();
    let output =
        output.map_err(|_| Error::NoTool { tool: "ldd".into(), package: "libc-bin".into() })?;
    Ok(parse_ldd(&String::from_utf8_lossy(&output.stdout)))
}

fn parse_ldd(text: &str) -> Vec<PathBuf> {
    text.split_whitespace().filter(|w| w.starts_with('/')).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ldd_is_read() {
        let text = "\tlinux-vdso.so.1 (0x00007)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(
            parse_ldd(text),
            [PathBuf::from("/lib/x/libc.so.6"), PathBuf::from("/lib64/ld-linux-x86-64.so.2")]
        );
        assert!(parse_ldd("\tstatically linked\n").is_empty());
    }
}
