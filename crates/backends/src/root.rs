//! The machine's `/sys`, `/proc`, `/dev` and `/etc`, with an exchangeable root so that discovery can be
//! tested on trees of files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a path names, as far as finding its device goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A block device node with this number.
    Block(DevNum),
    /// A file or directory on a file system with this device number.
    File(DevNum),
    /// A file or directory on the btrfs of this id. Its device number is no mount's.
    Btrfs([u8; 16]),
}

impl Node {
    /// Of a file or directory, at a path that leads to it.
    #[must_use]
    pub fn of_file(path: &Path, meta: &fs::Metadata) -> Node {
        let dev = DevNum::from_raw(meta.dev());
        // Of special files an open would do something, and they lie on no disk of their own.
        let plain = dev.major == 0 && (meta.is_file() || meta.is_dir());
        plain.then(|| btrfs_id(path)).flatten().map_or(Node::File(dev), Node::Btrfs)
    }
}

fn btrfs_id(path: &Path) -> Option<[u8; 16]> {
    // `BTRFS_SUPER_MAGIC` of `linux/magic.h`. Other file systems may understand the question in another way.
    if rustix::fs::statfs(path).ok()?.f_type != 0x9123_683e {
        return None;
    }
    crate::sys::btrfs_id(&fs::File::open(path).ok()?).ok()
}

/// The identity of a file, whatever its name. Two names of one file have one identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// A block device.
    Block(DevNum),
    /// A file or directory: device number of its file system, and inode.
    Inode(DevNum, u64),
    /// A socket. Its queue may hold descriptors that no process has open yet.
    Socket,
}

/// Device number as `/sys/dev/block` spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DevNum {
    /// Major number; 0 for file systems without a device.
    pub major: u64,
    /// Minor number.
    pub minor: u64,
}

impl DevNum {
    /// From `stat`'s packed form.
    #[must_use]
    pub fn from_raw(dev: u64) -> Self {
        DevNum { major: nix::sys::stat::major(dev), minor: nix::sys::stat::minor(dev) }
    }

    /// Reads `8:16`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DevNum { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl std::fmt::Display for DevNum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The root under which machine files are looked up. Paths given to its methods start with `/`.
#[derive(Clone, Debug)]
pub struct SysRoot {
    root: PathBuf,
    nodes: BTreeMap<PathBuf, Node>,
}

impl Default for SysRoot {
    fn default() -> Self {
        SysRoot { root: PathBuf::from("/"), nodes: BTreeMap::new() }
    }
}

fn identity(path: &Path) -> io::Result<Thing> {
    use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
    let wanted = StatxFlags::TYPE | StatxFlags::INO;
    let s = statx(CWD, path, AtFlags::STATX_DONT_SYNC, wanted)?;
    let dev = |major: u32, minor: u32| DevNum { major: major.into(), minor: minor.into() };
    Ok(match FileType::from_raw_mode(s.stx_mode.into()) {
        FileType::BlockDevice => Thing::Block(dev(s.stx_rdev_major, s.stx_rdev_minor)),
        FileType::Socket => Thing::Socket,
        _ => Thing::Inode(dev(s.stx_dev_major, s.stx_dev_minor), s.stx_ino),
    })
}

/// Files of `/sys` and `/proc` are small; nothing larger than this is read.
const LIMIT: u64 = 4 << 20;

impl SysRoot {
    /// A tree of files in place of `/`; `nodes` says what `stat` would say of paths in it.
    #[must_use]
    pub fn fixture(root: impl Into<PathBuf>, nodes: BTreeMap<PathBuf, Node>) -> Self {
        let root = root.into();
        SysRoot { root: fs::canonicalize(&root).unwrap_or(root), nodes }
    }

    /// A directory as root, taken as it is (a descriptor's path must not be resolved).
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        SysRoot { root: root.into(), nodes: BTreeMap::new() }
    }

    /// Where a path is on this machine.
    #[must_use]
    pub fn real(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text without the trailing newline.
    ///
    /// # Errors
    /// The system's; text that is not UTF-8 is taken with replacement characters.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        fs::File::open(self.real(path))?.take(LIMIT).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\0']).to_string())
    }

    /// Like [`read`](Self::read), `None` when it cannot be read.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    /// A file that holds one number.
    #[must_use]
    pub fn number(&self, path: &str) -> Option<i64> {
        self.get(path)?.trim().parse().ok()
    }

    /// Names in a directory, sorted; empty when there is no such directory.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        let Ok(dir) = fs::read_dir(self.real(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            dir.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Whether a path exists.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.real(path).exists()
    }

    /// The path with all links followed, as seen from the root.
    #[must_use]
    pub fn canonical(&self, path: &str) -> Option<String> {
        let real = fs::canonicalize(self.real(path)).ok()?;
        let inner = real.strip_prefix(&self.root).ok()?;
        Some(format!("/{}", inner.display()))
    }

    /// What a path names.
    ///
    /// # Errors
    /// The system's.
    pub fn node(&self, path: &Path) -> io::Result<Node> {
        if let Some(node) = self.nodes.get(path) {
            return Ok(*node);
        }
        let meta = fs::metadata(self.root.join(path.strip_prefix("/").unwrap_or(path)))?;
        Ok(if meta.file_type().is_block_device() {
            Node::Block(DevNum::from_raw(meta.rdev()))
        } else {
            Node::of_file(&self.root.join(path.strip_prefix("/").unwrap_or(path)), &meta)
        })
    }

    /// What a path leads to, links followed. The system asks no server for it. So a dead network file system cannot
    /// hang a scan of all open files.
    ///
    /// # Errors
    /// The system's.
    pub fn thing(&self, path: &str) -> io::Result<Thing> {
        if !self.nodes.is_empty() {
            let real = self.real(path);
            let real = fs::read_link(&real).unwrap_or(real);
            let inner =
                real.strip_prefix(&self.root).map_or(real.clone(), |p| Path::new("/").join(p));
            if let Some(Node::Block(dev)) = self.nodes.get(&inner) {
                return Ok(Thing::Block(*dev));
            }
        }
        identity(&self.real(path))
    }

    /// Whether this is the machine's own root.
    #[must_use]
    pub fn is_machine(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Writes an attribute with a single `write(2)`: some attributes act on every write.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, path: &str, value: &str) -> io::Result<()> {
        use std::io::Write;
        let mut file = fs::OpenOptions::new().write(true).open(self.real(path))?;
        let n = file.write(value.as_bytes())?;
        if n < value.len() {
            return Err(io::Error::new(io::ErrorKind::WriteZero, "partly written"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_read_back() {
        let d = DevNum { major: 259, minor: 3 };
        assert_eq!(DevNum::parse(&d.to_string()), Some(d));
        for bad in ["", "8", "8:", "x:1", "8:1:2"] {
            assert_eq!(DevNum::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_fixture_root_shadows_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sys/block/sda")).unwrap();
        fs::write(dir.path().join("sys/block/sda/size"), "8\n").unwrap();
        let root = SysRoot::fixture(dir.path(), BTreeMap::new());
        assert_eq!(root.number("/sys/block/sda/size"), Some(8));
        assert_eq!(root.list("/sys/block"), ["sda"]);
        assert!(root.get("/proc/version").is_none());
    }
}
