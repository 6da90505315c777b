//! The stack of block devices under a path.

use std::path::Path;

use iosched_types::nearest::did_you_mean;

use crate::error::{Error, Result};
use crate::inspect::ask_loop;
use crate::parse::{mountinfo, scheduler};
use crate::root::{DevNum, Node, SysRoot, Thing};

/// Deeper than this is a loop in the description, not a stack.
const MAX_DEPTH: usize = 16;

/// What a layer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// A file system, its type and mount point.
    FileSystem {
        /// `ext4`, `btrfs`, `overlay` …
        fstype: String,
        /// Where it is mounted.
        point: String,
    },
    /// A partition of the layer below.
    Partition,
    /// A loop device over a file.
    Loop {
        /// The file.
        backing: String,
    },
    /// A device-mapper device.
    Dm {
        /// `lvm`, `crypt`, `mpath`, `dm` …
        kind: String,
        /// The name under `/dev/mapper`.
        name: String,
    },
    /// Software RAID.
    Md {
        /// `raid1` …
        level: String,
    },
    /// The head of an NVMe multipath device.
    NvmeMultipath,
    /// A disk: nothing below.
    Disk,
    /// Something that the kernel does not tell.
    Unknown {
        /// Why not.
        why: String,
        /// What to name instead.
        help: String,
    },
}

/// One layer with what it lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Kernel name (`/` where sysfs writes `!`), or the mount point of a file system.
    pub name: String,
    /// What it is.
    pub kind: LayerKind,
    /// Schedulers its queue offers; empty when it has no request queue of its own.
    pub schedulers: Vec<String>,
    /// The one in force.
    pub scheduler: Option<String>,
    /// What it lies on.
    pub below: Vec<Layer>,
}

/// What a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// As the user wrote it.
    pub target: String,
    /// The topmost layer.
    pub top: Layer,
}

impl Stack {
    /// All layers, top first.
    #[must_use]
    pub fn layers(&self) -> Vec<&Layer> {
        fn walk<'a>(layer: &'a Layer, out: &mut Vec<&'a Layer>) {
            out.push(layer);
            layer.below.iter().for_each(|l| walk(l, out));
        }
        let mut out = Vec::new();
        walk(&self.top, &mut out);
        out
    }

    /// The devices with a scheduler that works on the target's I/O, top first:
    ///
    /// * A bio-based device (LVM, LUKS, RAID, NVMe multipath head) has none; the disks below it have one.
    /// * A request-based multipath device has its own, and its paths are left alone.
    /// * A loop device has one, and so has the disk of its file.
    #[must_use]
    pub fn queues(&self) -> Vec<&Layer> {
        fn walk<'a>(layer: &'a Layer, out: &mut Vec<&'a Layer>) {
            let own = layer.schedulers.len() > 1;
            if own && !out.iter().any(|l| l.name == layer.name) {
                out.push(layer);
            }
            let paths = matches!(&layer.kind, LayerKind::Dm { kind, .. } if kind == "mpath");
            if !(own && paths) {
                layer.below.iter().for_each(|l| walk(l, out));
            }
        }
        let mut out = Vec::new();
        walk(&self.top, &mut out);
        out
    }

    /// The first queue from the top. Its scheduler is compared.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when nothing below has a scheduler.
    pub fn queue(&self) -> Result<&Layer> {
        self.queues().first().copied().ok_or_else(|| Error::Unavailable {
            what: format!("an I/O scheduler for {}", self.target),
            why: "no block device with a request queue lies below it".into(),
            help: "name a file or a disk on a block device; see: iosched doctor".into(),
        })
    }

    /// The disks to compare schedulers on: on every way down from the target the first queue that has a choice. All of
    /// them are switched together.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is none, or when part of the target's I/O goes where nothing can be
    /// switched: the figures would be those of a mixture.
    pub fn compared(&self) -> Result<Vec<&Layer>> {
        fn walk<'a>(layer: &'a Layer, out: &mut Vec<&'a Layer>, without: &mut Vec<&'a Layer>) {
            if layer.schedulers.len() > 1 {
                if !out.iter().any(|l| l.name == layer.name) {
                    out.push(layer);
                }
            } else if layer.below.is_empty() {
                without.push(layer);
            } else {
                layer.below.iter().for_each(|l| walk(l, out, without));
            }
        }
        let (mut out, mut without) = (Vec::new(), Vec::new());
        walk(&self.top, &mut out, &mut without);
        for layer in &without {
            if let LayerKind::Unknown { why, help } = &layer.kind {
                let what = format!("one scheduler for all of {}", self.target);
                return Err(Error::Unavailable { what, why: why.clone(), help: help.clone() });
            }
        }
        if out.is_empty() {
            return self.queue().map(|l| vec![l]);
        }
        if let Some(Layer { name, .. }) = without.first() {
            let disks: Vec<&str> = out.iter().map(|l| l.name.as_str()).collect();
            return Err(Error::Unavailable {
                what: format!("one scheduler for all of {}", self.target),
                why: format!(
                    "it lies on {}, and on {name}, where none can be set",
                    disks.join(", ")
                ),
                help: "name a target whose disks all have schedulers; see: iosched doctor".into(),
            });
        }
        out.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(out)
    }

    /// The tree, two spaces per level, at most 80 columns.
    #[must_use]
    pub fn render(&self) -> String {
        fn walk(layer: &Layer, depth: usize, out: &mut String) {
            let what = match &layer.kind {
                LayerKind::FileSystem { fstype, .. } => fstype.clone(),
                LayerKind::Partition => "partition".into(),
                LayerKind::Loop { backing } => format!("loop over {backing}"),
                LayerKind::Dm { kind, name } => format!("{kind} {name}"),
                LayerKind::Md { level } => format!("md {level}"),
                LayerKind::NvmeMultipath => "NVMe multipath".into(),
                LayerKind::Disk => "disk".into(),
                LayerKind::Unknown { .. } => "unknown".into(),
            };
            let scheduler =
                layer.scheduler.as_ref().map_or_else(String::new, |s| format!("  [{s}]"));
            let line = format!("{:w$}{}  {what}{scheduler}", "", layer.name, w = depth * 2);
            out.extend(line.chars().take(80));
            out.push('\n');
            layer.below.iter().for_each(|l| walk(l, depth + 1, out));
        }
        let mut out = String::new();
        walk(&self.top, 0, &mut out);
        out
    }
}

/// Finds the stack under `what`.
///
/// # Errors
/// [`Error::NoDevice`] with the nearest name, [`Error::Io`] when a path cannot be looked at.
pub fn find(root: &SysRoot, what: &str) -> Result<Stack> {
    let top = if what.contains('/') || what.starts_with('.') {
        of_path(root, what, 0)?
    } else {
        let sys = what.replace('/', "!");
        let number = root.get(&format!("/sys/class/block/{sys}/dev"));
        match number.as_deref().and_then(DevNum::parse) {
            Some(dev) => of_device(root, dev, 0)?,
            None => return Err(no_device(root, what)),
        }
    };
    Ok(Stack { target: what.into(), top })
}

/// The stack under something that is open. `node` says what it is, `path` where it was found. No name is looked up
/// again.
///
/// # Errors
/// As [`find`].
pub fn find_opened(root: &SysRoot, what: &str, node: Node, path: &str) -> Result<Stack> {
    let top = match node {
        Node::Block(dev) => of_device(root, dev, 0)?,
        file => of_file(root, file, path.into(), 0)?,
    };
    Ok(Stack { target: what.into(), top })
}

pub(crate) fn no_device(root: &SysRoot, what: &str) -> Error {
    let names = root.list("/sys/class/block");
    let word = what.trim_start_matches("/dev/");
    let near = did_you_mean(word, names.iter().map(String::as_str));
    let help = if near.is_empty() {
        let disks = root.list("/sys/block");
        format!("there are {}", disks.join(", "))
    } else {
        near
    };
    Error::NoDevice { name: what.into(), help }
}

/// A path that state files, job files and records could not hold.
pub(crate) fn not_utf8(path: &Path) -> Error {
    Error::input(
        format!("{}: the name is not UTF-8", path.display()),
        "rename it, or choose another place",
    )
}

/// A path that leads nowhere.
pub(crate) fn no_path(path: &str) -> Error {
    Error::input(
        format!("{path}: no such file, folder or device"),
        "a device is named by /dev/NAME or NAME, anything else by a path that exists",
    )
}

fn of_path(root: &SysRoot, path: &str, depth: usize) -> Result<Layer> {
    // The root of the system is joined to a path, so one that counts from the working directory must not be.
    let absolute = std::path::absolute(path).map_err(|e| Error::io("looking at", path, e))?;
    let path = absolute.to_str().ok_or_else(|| not_utf8(&absolute))?;
    let node = root.node(Path::new(path)).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound if path.starts_with("/dev/") => no_device(root, path),
        std::io::ErrorKind::NotFound => no_path(path),
        _ => Error::io("looking at", path, e),
    })?;
    if let Node::Block(dev) = node {
        return of_device(root, dev, depth);
    }
    let full = root.canonical(path).unwrap_or_else(|| path.into());
    of_file(root, node, full, depth)
}

/// A file on a file system, at this path with all links followed. Only numbers that the kernel tells lead to devices.
/// The paths among a mount's options and its source are those of the day of the mount: by now, or as seen from here,
/// they may lead elsewhere.
fn of_file(root: &SysRoot, node: Node, full: String, depth: usize) -> Result<Layer> {
    let mounts = mountinfo::parse(&root.get("/proc/self/mountinfo").unwrap_or_default());
    let (mount, below) = match node {
        Node::Btrfs(id) => {
            // Its files have the numbers of subvolumes, which no mount has.
            let mount = mounts.iter().rfind(|m| m.fstype == "btrfs" && holds(&m.point, &full));
            (mount, members(root, id, depth + 1)?)
        }
        Node::Block(dev) | Node::File(dev) => {
            let mount = mounts.iter().rfind(|m| m.dev == dev && holds(&m.point, &full));
            let mount = mount.or_else(|| mounts.iter().rfind(|m| m.dev == dev));
            (mount, file_below(root, dev, mount, depth + 1)?)
        }
    };
    let (fstype, point) =
        mount.map_or(("file system".into(), full), |m| (m.fstype.clone(), m.point.clone()));
    Ok(Layer {
        name: point.clone(),
        kind: LayerKind::FileSystem { fstype, point },
        schedulers: Vec::new(),
        scheduler: None,
        below,
    })
}

fn holds(point: &str, path: &str) -> bool {
    point == "/" || path == point || path.strip_prefix(point).is_some_and(|r| r.starts_with('/'))
}

/// Mount options that name a further disk of a file system: the log and the real-time part of XFS, the journal of ext4.
const FURTHER: &[&str] = &["logdev", "rtdev", "journal_path", "journal_dev"];

/// What a file system of this number lies on.
fn file_below(
    root: &SysRoot,
    dev: DevNum,
    mount: Option<&mountinfo::Mount>,
    depth: usize,
) -> Result<Vec<Layer>> {
    if dev.major != 0 {
        let mut below = vec![of_device(root, dev, depth)?];
        for (option, path) in FURTHER.iter().filter_map(|o| Some((o, mount?.option(o)?))) {
            let why = format!(
                "part of it lies on the device that was named {path} when it was mounted ({option}); which that is \
                 cannot be told from the name"
            );
            below.push(unknown(path.into(), why, "name a file system that lies on one disk"));
        }
        return Ok(below);
    }
    Ok(match mount.map(|m| m.fstype.as_str()) {
        Some("overlay") => {
            let why = "it is on an overlay, whose directories below are known by paths only, and those may lead \
                       elsewhere by now";
            let help =
                "name a file or directory of the file system below (its upperdir), or the disk";
            vec![unknown("below the overlay".into(), why.into(), help)]
        }
        Some("btrfs") => {
            let why = "the kernel does not tell the disks of this btrfs to this process";
            vec![unknown("members".into(), why.into(), "run it as root; see: iosched doctor")]
        }
        // In memory, on another machine, or in a program.
        _ => Vec::new(),
    })
}

/// The disks of a btrfs, by its id.
fn members(root: &SysRoot, id: [u8; 16], depth: usize) -> Result<Vec<Layer>> {
    let hex: String = id.iter().map(|b| format!("{b:02x}")).collect();
    let id = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    let dir = format!("/sys/fs/btrfs/{id}/devices");
    let found = listed(root, &dir, depth)?;
    if found.is_empty() {
        let why = format!("/sys/fs/btrfs does not list the members of btrfs {id}");
        return Ok(vec![unknown("members".into(), why, "name a disk; see: iosched doctor")]);
    }
    Ok(found)
}

/// What is there but cannot be looked at.
fn unknown(name: String, why: String, help: &str) -> Layer {
    let kind = LayerKind::Unknown { why, help: help.into() };
    Layer { name, kind, schedulers: Vec::new(), scheduler: None, below: Vec::new() }
}

fn of_device(root: &SysRoot, dev: DevNum, depth: usize) -> Result<Layer> {
    let missing = || Error::NoDevice {
        name: dev.to_string(),
        help: "it is not listed in /sys/dev/block".into(),
    };
    let dir = root.canonical(&format!("/sys/dev/block/{dev}")).ok_or_else(missing)?;
    let (parent, sysname) = dir.rsplit_once('/').ok_or_else(missing)?;
    let list = root.get(&format!("{dir}/queue/scheduler")).map(|t| scheduler::parse(&t));
    let mut layer = Layer {
        name: sysname.replace('!', "/"),
        kind: LayerKind::Disk,
        schedulers: list.as_ref().map_or_else(Vec::new, |l| l.names.clone()),
        scheduler: list.and_then(|l| l.current),
        below: Vec::new(),
    };
    if depth > MAX_DEPTH {
        return Ok(layer);
    }
    if root.exists(&format!("{dir}/partition")) {
        layer.kind = LayerKind::Partition;
        let number = root.get(&format!("{parent}/dev")).and_then(|t| DevNum::parse(&t));
        layer.below = vec![of_device(root, number.ok_or_else(missing)?, depth + 1)?];
    } else if let Some(backing) = root.get(&format!("{dir}/loop/backing_file")) {
        // The file may be gone, or out of this process's sight. The stack ends here then.
        layer.below = of_loop(root, &layer.name, &backing, depth + 1).into_iter().collect();
        layer.kind = LayerKind::Loop { backing };
    } else if let Some(name) = root.get(&format!("{dir}/dm/name")) {
        let uuid = root.get(&format!("{dir}/dm/uuid")).unwrap_or_default();
        let kind = uuid.split('-').next().filter(|k| !k.is_empty()).unwrap_or("dm");
        layer.kind = LayerKind::Dm { kind: kind.to_ascii_lowercase(), name };
        layer.below = slaves(root, &dir, depth)?;
    } else if let Some(level) = root.get(&format!("{dir}/md/level")) {
        layer.kind = LayerKind::Md { level };
        layer.below = slaves(root, &dir, depth)?;
    } else {
        let paths = root.list(&format!("{dir}/multipath"));
        if !paths.is_empty() {
            layer.kind = LayerKind::NvmeMultipath;
            layer.below = paths
                .iter()
                .filter_map(|p| hidden_path(root, &format!("{dir}/multipath/{p}"), p))
                .collect();
        } else {
            // bcache and other stacked drivers list their members too.
            layer.below = slaves(root, &dir, depth)?;
        }
    }
    Ok(layer)
}

/// What a bound loop device lies on. The kernel tells numbers; the path is that of the day when it was bound, and leads to
/// the file only if the numbers agree.
fn of_loop(root: &SysRoot, name: &str, path: &str, depth: usize) -> Option<Layer> {
    let by_path = || of_path(root, path, depth).ok();
    let Some(thing) = root.is_machine().then(|| ask_loop(name)).flatten() else {
        // Without the right to ask there is none to switch a scheduler either.
        return by_path();
    };
    match thing {
        Thing::Block(dev) => of_device(root, dev, depth).ok(),
        _ if root.thing(path).is_ok_and(|t| t == thing) => by_path(),
        Thing::Inode(dev, _) => of_file(root, Node::File(dev), path.into(), depth).ok(),
        Thing::Socket => None,
    }
}

fn slaves(root: &SysRoot, dir: &str, depth: usize) -> Result<Vec<Layer>> {
    listed(root, &format!("{dir}/slaves"), depth + 1)
}

/// The devices that a directory of sysfs lists. One that has gone meanwhile is not passed over.
fn listed(root: &SysRoot, dir: &str, depth: usize) -> Result<Vec<Layer>> {
    let device = |name: &String| {
        let number = DevNum::parse(&root.get(&format!("{dir}/{name}/dev")).unwrap_or_default());
        match number {
            Some(dev) => of_device(root, dev, depth),
            None => {
                let why = format!("{dir} lists {name}, which has no device number");
                Ok(unknown(name.clone(), why, "name a disk; see: iosched doctor"))
            }
        }
    };
    root.list(dir).iter().map(device).collect()
}

/// A path of an NVMe multipath device: hidden, without a device number, but with a queue of its own.
fn hidden_path(root: &SysRoot, dir: &str, name: &str) -> Option<Layer> {
    let list = scheduler::parse(&root.get(&format!("{dir}/queue/scheduler"))?);
    Some(Layer {
        name: name.into(),
        kind: LayerKind::Disk,
        schedulers: list.names,
        scheduler: list.current,
        below: Vec::new(),
    })
}
