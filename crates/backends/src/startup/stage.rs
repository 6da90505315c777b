//! A file system on the tested disk, with a small root to start the command from, and the files of the load.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iosched_experiment::{Access, Startup};
use iosched_lab::machine::Interrupt;
use iosched_types::Bytes;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::surroundings::{Surroundings, make_room};
use crate::emulate::EmulatedDisk;
use crate::error::{Error, Result};
use crate::filesystem::FileSystem;
use crate::ground::{Ground, Purpose};
use crate::guardian::GuardianCommand;
use crate::load::probe;
use crate::sys;

/// Where programs are looked for.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// The stage. Dropped from the top: on a directory in which something is mounted nothing can be removed.
#[derive(Debug)]
pub struct Stage {
    /// The disk's node, for raw readers.
    pub(crate) node: PathBuf,
    /// The disks' kernel names.
    pub(crate) disks: Vec<String>,
    /// Load files.
    pub(crate) files: Vec<PathBuf>,
    /// Size of each.
    file_bytes: u64,
    /// What the small root has.
    installed: Vec<PathBuf>,
    /// Where each program was found the first time. The small root keeps a program that the machine has lost.
    programs: BTreeMap<String, PathBuf>,
    /// The small root with the surroundings that a program expects. Made once there is a root, and dropped before the
    /// file system below.
    surroundings: Option<Surroundings>,
    ground: Ground,
}

impl Stage {
    /// Makes a file system on an emulated disk, which answers at once from now until it is reset.
    ///
    /// # Errors
    /// [`Error::NoTool`] without `mkfs.ext4`, [`Error::Io`].
    pub fn on_emulated(
        disk: &EmulatedDisk,
        what: &Startup,
        interrupt: &Interrupt,
    ) -> Result<Stage> {
        let kind = FileSystem::default();
        let ground = Ground::on_emulated(disk, Purpose::Startup, needed(what), &kind, interrupt)?;
        Ok(Stage::of(ground, disk.node(), vec![disk.name()]))
    }

    /// Uses a directory of a mounted file system on `disks` (kernel names). Raw readers get the first.
    ///
    /// # Errors
    /// [`Error::Io`], and what keeps the change from being written down.
    pub fn in_directory(
        dir: &Path,
        disks: &[&str],
        state_dir: &Path,
        guardian: Option<&GuardianCommand>,
    ) -> Result<Stage> {
        let ground = Ground::in_directory(dir, Purpose::Startup, state_dir, guardian)?;
        let node = Path::new("/dev").join(disks.first().copied().unwrap_or_default());
        Ok(Stage::of(ground, node, disks.iter().map(|d| (*d).to_string()).collect()))
    }

    fn of(ground: Ground, node: PathBuf, disks: Vec<String>) -> Stage {
        Stage {
            node,
            disks,
            files: Vec::new(),
            file_bytes: 0,
            installed: Vec::new(),
            programs: BTreeMap::new(),
            surroundings: None,
            ground,
        }
    }

    /// Whether a start has room here.
    #[must_use]
    pub fn has_room(&self, what: &Startup) -> bool {
        self.ground.mounted().is_none_or(|(_, room)| needed(what) <= room)
    }

    /// Copies what a start needs: the command, its libraries, and the load's files. Existing files stay.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::DiskFull`], [`Error::Interrupted`], [`Error::Input`] for a command that
    /// is not there.
    pub fn provide(&mut self, what: &Startup, interrupt: &Interrupt) -> Result<()> {
        let program = what.command.first().map_or("", String::as_str);
        let mut wanted = vec![self.program(program)?];
        self.programs.insert(program.to_string(), wanted[0].clone());
        wanted.extend(what.files.iter().map(PathBuf::from));
        // Files that the arguments name: xterm -e /bin/true.
        let named = what.command.iter().skip(1).map(PathBuf::from);
        wanted.extend(named.filter(|p| p.is_absolute() && p.is_file()));
        wanted.retain(|w| !self.installed.contains(w));
        let count = load_files(what);
        if what.file_bytes > self.file_bytes && count > 0 {
            self.files.clear();
            self.file_bytes = what.file_bytes;
        }
        if wanted.is_empty() && self.files.len() >= count {
            return Ok(());
        }
        for path in wanted {
            self.install(&path, interrupt)?;
            self.installed.push(path);
        }
        for i in self.files.len()..count {
            let path = self.ground.dir().join(load_file(i as u32));
            // An emulated disk is as fast on zeros, and storing them costs nothing.
            let noise = self.ground.mounted().is_none().then_some(i as u64);
            write_file(&path, self.file_bytes, noise, interrupt)?;
            self.files.push(path);
        }
        self.surround()?;
        nix::unistd::sync();
        Ok(())
    }

    /// A program by its path or name; one that is in the small root need not be on the machine any more.
    ///
    /// # Errors
    /// As [`find_program`].
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        self.programs.get(name).map_or_else(|| find_program(name), |p| Ok(p.clone()))
    }

    /// Mounts the surroundings that a program expects, visible to no other process.
    fn surround(&mut self) -> Result<()> {
        if self.surroundings.is_some() {
            return Ok(());
        }
        let root = self.root();
        make_room(&root)?;
        // Any directory will do, because the tree that it covers is opened before.
        let at = Path::new("/proc");
        let copy = self.ground.copy()?;
        self.surroundings = Some(match (self.ground.mounted(), &copy) {
            (Some((mount, _)), _) => {
                Surroundings::make(&at.join(Purpose::Startup.stem()).join("root"), (mount, at))?
            }
            (None, Some(copy)) => Surroundings::make(&at.join("root"), (copy.as_fd(), at))?,
            (None, None) => {
                return Err(Error::Trial { message: "there is nothing to start from".into() });
            }
        });
        Ok(())
    }

    /// Makes sure that the name of its directory still leads to it.
    ///
    /// # Errors
    /// [`Error::Trial`] if not, [`Error::Io`].
    pub(crate) fn in_place(&self) -> Result<()> {
        self.ground.in_place()
    }

    /// Has a command start in the small root.
    ///
    /// # Errors
    /// [`Error::Trial`] before [`provide`](Self::provide): it must not start in the machine's own.
    pub(crate) fn enter(&self, command: &mut Command) -> Result<()> {
        let Some(s) = &self.surroundings else {
            return Err(Error::Trial { message: "the small root was not provided".into() });
        };
        sys::in_root(command, s.namespace.as_fd(), s.root.clone());
        Ok(())
    }

    /// Copies a file or folder to the same place in the small root, a program with its libraries.
    fn install(&self, path: &Path, interrupt: &Interrupt) -> Result<()> {
        let meta = fs::metadata(path).map_err(|e| Error::io("reading", path, e))?;
        if meta.is_dir() {
            for entry in fs::read_dir(path).map_err(|e| Error::io("reading", path, e))? {
                let entry = entry.map_err(|e| Error::io("reading", path, e))?.path();
                // No command can need a link to nowhere.
                if entry.exists() {
                    self.install(&entry, interrupt)?;
                }
            }
            return Ok(());
        }
        // Opening a pipe would wait for a writer.
        if !meta.is_file() {
            let message = format!("{} is no regular file", path.display());
            return Err(Error::input(message, "name files and folders of files"));
        }
        let root = self.root();
        let mut all = vec![path.to_path_buf()];
        if std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0 {
            all.extend(libraries(path, interrupt)?);
        }
        for file in all {
            let to = inside(&root, &file);
            let parent = to.parent().unwrap_or(&root);
            fs::create_dir_all(parent).map_err(|e| Error::io("creating", parent, e))?;
            if !to.exists() {
                fs::copy(&file, &to).map_err(|e| Error::io("copying to", &to, e))?;
            }
        }
        Ok(())
    }

    /// The folder with the load's files, open.
    pub(crate) fn open(&self) -> Result<File> {
        self.ground.open()
    }

    /// The small root.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.ground.dir().join("root")
    }
}

impl Stage {
    /// Takes away what it made.
    ///
    /// # Errors
    /// Why a directory stays, such as a mount inside; its state file stays then too, for `iosched restore`.
    pub fn finish(self) -> Result<()> {
        let Stage { surroundings, ground, .. } = self;
        // A directory on which something is mounted somewhere cannot be removed.
        drop(surroundings);
        ground.finish()
    }
}

/// A program by its path, or by name where programs are.
///
/// # Errors
/// [`Error::Input`] when there is none.
pub fn find_program(name: &str) -> Result<PathBuf> {
    let found = if name.contains('/') {
        Some(PathBuf::from(name)).filter(|p| p.is_absolute() && probe::is_program(p))
    } else {
        PATH.split(':').map(|d| Path::new(d).join(name)).find(|p| probe::is_program(p))
    };
    found.ok_or_else(|| {
        let message = format!("there is no program \"{name}\" to start");
        Error::input(message, format!("name it by its full path, or install it into one of {PATH}"))
    })
}

/// Name of a file of the load.
pub(crate) fn load_file(i: u32) -> String {
    format!("load.{i}")
}

/// Files that the load reads and writes.
fn load_files(what: &Startup) -> usize {
    if what.load.access == Access::Raw {
        return 0;
    }
    (what.load.readers + what.load.writers) as usize
}

/// Room for a start on a file system of its own: the load, a twentieth for what ext4 keeps to itself, and
/// 2 GiB for programs.
fn needed(what: &Startup) -> Bytes {
    let load = what.file_bytes.saturating_mul(load_files(what) as u64);
    load.saturating_add(load / 20).saturating_add(2 << 30)
}

/// A file of zeros, or of noise from a seed, because some disks are faster on zeros. Its data leaves the page cache as
/// it is written, so large files need no memory.
fn write_file(path: &Path, bytes: u64, noise: Option<u64>, interrupt: &Interrupt) -> Result<()> {
    const STRETCH: u64 = 64 << 20;
    let io = |e| Error::io("writing", path, e);
    let mut file = File::create(path).map_err(io)?;
    let mut block = vec![0u8; 1 << 20];
    if let Some(seed) = noise {
        let mut stream = iosched_engine::stream(seed, "load-file");
        block.chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&stream.next_u64().to_le_bytes()));
    }
    let mut done = 0;
    while done < bytes {
        let n = (bytes - done).min(block.len() as u64);
        file.write_all(&block[..n as usize]).map_err(io)?;
        done += n;
        if done % STRETCH == 0 || done == bytes {
            interrupt.check()?;
            file.sync_data().map_err(io)?;
            let advice = PosixFadviseAdvice::POSIX_FADV_DONTNEED;
            posix_fadvise(&file, 0, 0, advice).map_err(|e| io(e.into()))?;
        }
    }
    file.sync_all().map_err(io)
}

/// The libraries a program needs, with the loader, as `ldd` lists them.
///
/// # Errors
/// [`Error::NoTool`], [`Error::Interrupted`]; a program that `ldd` cannot read needs none.
pub fn libraries(program: &Path, interrupt: &Interrupt) -> Result<Vec<PathBuf>> {
    let mut command = Command::new("ldd");
    command.arg(program);
    let (_, printed) = probe::listen(command, "libc-bin", LDD_LIMIT, interrupt)?;
    Ok(parse_ldd(&printed))
}

/// How long `ldd` may take: it starts the program's loader.
const LDD_LIMIT: Duration = Duration::from_secs(60);

/// Where a file lies in the small root. As in any root, `..` leads nowhere above it.
fn inside(root: &Path, file: &Path) -> PathBuf {
    let mut parts = Vec::new();
    for c in file.components() {
        match c {
            Component::Normal(name) => parts.push(name),
            Component::ParentDir => {
                parts.pop();
            }
            _ => {}
        }
    }
    root.join(parts.iter().collect::<PathBuf>())
}

fn parse_ldd(text: &str) -> Vec<PathBuf> {
    text.split_whitespace().filter(|w| w.starts_with('/')).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_copied_outside_of_the_small_root() {
        let root = Path::new("/s/small");
        for (file, to) in [
            ("/usr/lib/a", "/s/small/usr/lib/a"),
            ("/usr/lib/jvm/bin/../lib/b.so", "/s/small/usr/lib/jvm/lib/b.so"),
            ("/tmp/../../../../etc/shadow", "/s/small/etc/shadow"),
            ("../x", "/s/small/x"),
        ] {
            assert_eq!(inside(root, Path::new(file)), Path::new(to));
        }
    }

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
