//! What belongs to a target: its partitions, the disk it is a partition of, what lies below it. And the users of any of
//! these, by the kernel's own lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use super::Finding;
use crate::parse::mountinfo;
use crate::root::{DevNum, SysRoot, Thing};
use crate::sys;

/// Deeper than this is a loop in the description, not a stack.
const MAX_DEPTH: usize = 16;

/// Everything that counts as the target: a use of it is a use of the target.
#[derive(Clone, Debug, Default)]
pub struct Family {
    /// The target.
    pub(super) target: Option<Thing>,
    /// Each thing with how people call it.
    pub(super) things: BTreeMap<Thing, String>,
    /// Their directories in sysfs.
    dirs: Vec<(String, String)>,
    /// Loop devices on the way down from the target: not users of it.
    below: BTreeSet<String>,
    /// What could not be found out.
    unknown: Vec<String>,
}

/// A bound loop device.
struct Loop {
    name: String,
    backing: Option<Thing>,
    path: String,
    offset: i64,
}

impl Family {
    /// Finds it.
    #[must_use]
    pub fn of(root: &SysRoot, target: Thing) -> Family {
        let mut family = Family { target: Some(target), ..Family::default() };
        match target {
            Thing::Block(dev) => family.device(root, dev, 0),
            other => {
                family.things.insert(other, "it".into());
            }
        }
        family
    }

    fn device(&mut self, root: &SysRoot, dev: DevNum, depth: usize) {
        let Some(dir) = root.canonical(&format!("/sys/dev/block/{dev}")) else {
            self.things.insert(Thing::Block(dev), format!("device {dev}"));
            self.unknown.push(format!("device {dev} is not listed in /sys/dev/block"));
            return;
        };
        if depth > MAX_DEPTH || !self.add(Thing::Block(dev), &dir) {
            return;
        }
        for entry in root.list(&dir) {
            let part = format!("{dir}/{entry}");
            if root.exists(&format!("{part}/partition"))
                && let Some(dev) = number(root, &part)
            {
                self.add(Thing::Block(dev), &part);
            }
        }
        let mut whole = dir.clone();
        if root.exists(&format!("{dir}/partition"))
            && let Some((parent, _)) = dir.rsplit_once('/')
        {
            whole = parent.into();
            if let Some(dev) = number(root, parent) {
                self.add(Thing::Block(dev), parent);
            }
        }
        if root.exists(&format!("{whole}/loop/backing_file")) {
            let name = base(&whole);
            let found = of_loop(root, &name, &whole);
            self.below.insert(name.clone());
            match found.backing {
                Some(Thing::Block(dev)) => self.device(root, dev, depth + 1),
                Some(thing) => {
                    let what = format!("{}, which {name} lies on,", found.path);
                    self.things.entry(thing).or_insert(what);
                }
                None => self.unknown.push(format!("what {name} lies on ({})", found.path)),
            }
        }
    }

    /// Whether it is new.
    fn add(&mut self, thing: Thing, dir: &str) -> bool {
        let new = !self.things.contains_key(&thing);
        if new {
            let node = format!("/dev/{}", base(dir).replace('!', "/"));
            self.dirs.push((dir.into(), node.clone()));
            self.things.insert(thing, node);
        }
        new
    }

    /// How people call a thing of the family.
    pub(super) fn called(&self, thing: &Thing) -> Option<&str> {
        self.things.get(thing).map(String::as_str)
    }

    /// The file of the family with this inode number, on any file system.
    pub(super) fn of_inode(&self, number: &[u8]) -> Option<Thing> {
        let number: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        let is = |t: &&Thing| matches!(t, Thing::Inode(_, n) if *n == number);
        self.things.keys().find(is).copied()
    }

    /// Users by the kernel's own lists.
    pub(super) fn users(&self, root: &SysRoot) -> Vec<Finding> {
        let mut found = self.mounted(root);
        self.swap(root, &mut found);
        for (dir, node) in &self.dirs {
            for holder in root.list(&format!("{dir}/holders")) {
                found.push(Finding::always(format!("{node} is part of {holder}")));
            }
            if root.exists(&format!("{dir}/bcache")) {
                found.push(Finding::always(format!("{node} is registered with bcache")));
            }
            if self.target == number(root, dir).map(Thing::Block)
                && let Some(part) = partition(root, dir)
            {
                found.push(Finding::content(format!("it has partitions ({part})")));
            }
        }
        self.loops(root, &mut found);
        self.btrfs(root, &mut found);
        self.exports(root, &mut found);
        found.extend(
            self.unknown.iter().map(|u| Finding::unknown(format!("it cannot be found out: {u}"))),
        );
        found
    }

    /// Mounts that this process sees; [`super::scan`] looks into all namespaces.
    fn mounted(&self, root: &SysRoot) -> Vec<Finding> {
        let mounts = mountinfo::parse(&root.get("/proc/self/mountinfo").unwrap_or_default());
        mounts.iter().filter_map(|m| self.mount(m)).collect()
    }

    /// The finding of a mount of one of ours.
    pub(super) fn mount(&self, m: &mountinfo::Mount) -> Option<Finding> {
        let node = self.called(&Thing::Block(m.dev)).or_else(|| {
            // File systems with a number of their own name their device only.
            let of = |(_, node): &&(String, String)| *node == m.source;
            self.dirs.iter().find(of).map(|(_, node)| node.as_str())
        })?;
        Some(Finding::always(format!("{node} is mounted on {}", m.point)))
    }

    fn swap(&self, root: &SysRoot, found: &mut Vec<Finding>) {
        let swaps = root.get("/proc/swaps").unwrap_or_default();
        for path in swaps.lines().skip(1).filter_map(|l| l.split_whitespace().next()) {
            if let Some(name) = self.named(root, &mountinfo::unescape(path)) {
                found.push(Finding::always(format!("{name} is swap space")));
            }
        }
    }

    /// The usual name of what a path leads to, if that belongs to the family.
    fn named(&self, root: &SysRoot, path: &str) -> Option<&str> {
        self.called(&root.thing(path).ok()?)
    }

    fn loops(&self, root: &SysRoot, found: &mut Vec<Finding>) {
        for name in root.list("/sys/block").into_iter().filter(|n| n.starts_with("loop")) {
            let dir = format!("/sys/block/{name}");
            if self.below.contains(&name) || !root.exists(&format!("{dir}/loop/backing_file")) {
                continue;
            }
            let l = of_loop(root, &name, &dir);
            match l.backing.as_ref().map(|b| self.called(b)) {
                Some(Some(what)) => {
                    let at = if l.offset > 0 {
                        format!(" from byte {} on", l.offset)
                    } else {
                        String::new()
                    };
                    found.push(Finding::always(format!("{what} backs /dev/{}{at}", l.name)));
                }
                Some(None) => {}
                None => {
                    let what = format!("what /dev/{} lies on ({}) cannot be seen", l.name, l.path);
                    found.push(Finding::unknown(what));
                }
            }
        }
    }

    /// Members of mounted btrfs file systems that no mount names.
    fn btrfs(&self, root: &SysRoot, found: &mut Vec<Finding>) {
        for uuid in root.list("/sys/fs/btrfs") {
            for member in root.list(&format!("/sys/fs/btrfs/{uuid}/devices")) {
                let node = format!("/dev/{}", member.replace('!', "/"));
                if self.dirs.iter().any(|(_, n)| *n == node) {
                    found.push(Finding::always(format!("{node} is part of btrfs {uuid}")));
                }
            }
        }
    }

    /// Devices that are exported to other machines or virtual machines, or written to by zram.
    fn exports(&self, root: &SysRoot, found: &mut Vec<Finding>) {
        for (pattern, what) in EXPORTS {
            for path in expand(root, pattern) {
                let text = root.get(&path).unwrap_or_default();
                let names = text.split_whitespace().filter(|w| w.starts_with('/'));
                // A name with blanks is the whole text.
                for name in names.chain(std::iter::once(text.as_str())) {
                    if let Some(ours) = self.named(root, name) {
                        found.push(Finding::always(format!("{ours} is {what} ({path})")));
                        break;
                    }
                }
            }
        }
    }
}

/// Files in which the kernel lists its exports: a name, or a name among other words.
const EXPORTS: &[(&str, &str)] = &[
    ("/sys/kernel/config/target/core/*/*/udev_path", "exported by the SCSI target"),
    ("/sys/kernel/config/target/core/*/*/info", "exported by the SCSI target"),
    ("/sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path", "exported over NVMe"),
    ("/sys/kernel/config/usb_gadget/*/functions/*/*/file", "exported over USB"),
    ("/sys/block/*/backing_dev", "what zram writes back to"),
];

/// Paths that fit a pattern in which `*` is any one name.
fn expand(root: &SysRoot, pattern: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    for part in pattern.split('/').skip(1) {
        paths = paths
            .into_iter()
            .flat_map(|p| match part {
                "*" => root.list(&p).into_iter().map(|n| format!("{p}/{n}")).collect(),
                name => vec![format!("{p}/{name}")],
            })
            .collect();
    }
    paths.retain(|p| root.exists(p));
    paths
}

fn of_loop(root: &SysRoot, name: &str, dir: &str) -> Loop {
    let path = root.get(&format!("{dir}/loop/backing_file")).unwrap_or_default();
    let offset = root.number(&format!("{dir}/loop/offset")).unwrap_or(0);
    let asked = if root.is_machine() { ask_loop(name) } else { None };
    // The kernel's name comes first, because the user's may lead elsewhere by now.
    let backing = asked.or_else(|| root.thing(&path).ok());
    Loop { name: name.replace('!', "/"), backing, path, offset }
}

/// What the kernel says that a loop device lies on.
pub(crate) fn ask_loop(name: &str) -> Option<Thing> {
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC);
    let (dev, inode, rdev) = sys::loop_backing(&options.open(format!("/dev/{name}")).ok()?).ok()?;
    Some(if rdev == 0 { Thing::Inode(packed(dev), inode) } else { Thing::Block(packed(rdev)) })
}

/// A device number as the kernel packs it for programs: 20 bits of minor around 12 of major.
fn packed(dev: u64) -> DevNum {
    DevNum { major: (dev >> 8) & 0xfff, minor: (dev & 0xff) | ((dev >> 12) & 0xf_ff00) }
}

fn number(root: &SysRoot, dir: &str) -> Option<DevNum> {
    DevNum::parse(&root.get(&format!("{dir}/dev"))?)
}

/// The first partition of a disk.
fn partition(root: &SysRoot, dir: &str) -> Option<String> {
    root.list(dir).into_iter().find(|e| root.exists(&format!("{dir}/{e}/partition")))
}

fn base(dir: &str) -> String {
    dir.rsplit('/').next().unwrap_or_default().into()
}
