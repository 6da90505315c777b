//! One pass over all processes: open files, mappings, and what is mounted in any mount namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;

use super::Finding;
use super::family::Family;
use crate::parse::mountinfo;
use crate::root::{SysRoot, Thing};

/// Inode of the initial process namespace. In any other namespace some processes cannot be seen.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What was seen.
#[derive(Debug, Default)]
pub struct Scan {
    users: Vec<(Thing, String)>,
    mounts: Vec<Finding>,
    /// Processes that may not be looked into.
    unseen: Vec<String>,
    /// Processes with descriptors on their way to them.
    in_flight: Vec<String>,
    /// We are in a namespace of processes of our own.
    nested: bool,
}

/// Looks at every process but this one.
#[must_use]
pub fn scan(root: &SysRoot, family: &Family) -> Scan {
    let mut scan = Scan::default();
    let own = std::process::id().to_string();
    let mut pass = Pass { root, family, mapped: BTreeMap::new(), namespaces: BTreeSet::new() };
    // Our own mounts are seen by the family itself.
    pass.namespaces.extend(fs::read_link(root.real("/proc/self/ns/mnt")));
    let ours = fs::read_link(root.real("/proc/self/ns/pid"));
    scan.nested = ours.is_ok_and(|n| n.as_os_str() != FIRST_PID_NAMESPACE);
    for pid in root.list("/proc") {
        if pid != own && pid.bytes().all(|b| b.is_ascii_digit()) {
            pass.process(&pid, &mut scan);
        }
    }
    scan
}

struct Pass<'a> {
    root: &'a SysRoot,
    family: &'a Family,
    /// What each mapped inode is, as `/proc` spells device and inode.
    mapped: BTreeMap<String, Option<Thing>>,
    namespaces: BTreeSet<std::path::PathBuf>,
}

impl Pass<'_> {
    fn process(&mut self, pid: &str, scan: &mut Scan) {
        let dir = format!("/proc/{pid}");
        let tasks = self.tasks(&dir);
        let mut seen = true;
        for dir in &tasks {
            seen &= self.descriptors(dir, scan);
        }
        seen &= self.mappings(&dir, scan);
        self.mounts(&dir, scan);
        if !seen && self.root.exists(&dir) {
            scan.unseen.push(self.name(&dir));
        }
    }

    /// The process, or its threads where the first of them is dead and the others go on.
    fn tasks(&self, dir: &str) -> Vec<String> {
        let stat = self.root.get(&format!("{dir}/stat")).unwrap_or_default();
        let dead = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
        if !dead {
            return vec![dir.into()];
        }
        let tasks = self.root.list(&format!("{dir}/task"));
        tasks.into_iter().map(|t| format!("{dir}/task/{t}")).collect()
    }

    /// Whether they could be seen.
    fn descriptors(&self, dir: &str, scan: &mut Scan) -> bool {
        let entries = match fs::read_dir(self.root.real(&format!("{dir}/fd"))) {
            Ok(entries) => entries,
            Err(e) => return e.kind() != ErrorKind::PermissionDenied,
        };
        let mut seen = true;
        for entry in entries.flatten() {
            let number = entry.file_name().to_string_lossy().into_owned();
            match self.root.thing(&format!("{dir}/fd/{number}")) {
                Ok(Thing::Socket) if self.carries(dir, &number) => {
                    scan.in_flight.push(self.name(dir));
                }
                Ok(thing) if self.family.called(&thing).is_some() => {
                    scan.users.push((thing, format!("open in {}", self.name(dir))));
                }
                Ok(thing @ Thing::Inode(..)) => self.ring(dir, &number, thing, scan),
                Ok(_) => {}
                Err(e) => seen &= e.kind() != ErrorKind::PermissionDenied,
            }
        }
        seen
    }

    /// Whether a socket's queue holds descriptors. No process has these open, and yet they are in use.
    fn carries(&self, dir: &str, number: &str) -> bool {
        let info = self.root.get(&format!("{dir}/fdinfo/{number}")).unwrap_or_default();
        let count = info.lines().find_map(|l| l.strip_prefix("scm_fds:"));
        count.is_some_and(|c| c.trim() != "0")
    }

    /// Files that are registered with an io_uring. They may be closed and yet in use; the ring names them.
    fn ring(&self, dir: &str, number: &str, thing: Thing, scan: &mut Scan) {
        let Thing::Inode(dev, _) = thing else { return };
        // Anonymous inodes have a small device number of no file system that can be a target's.
        if dev.major != 0 {
            return;
        }
        let link = fs::read_link(self.root.real(&format!("{dir}/fd/{number}")));
        if link.is_ok_and(|l| l.as_os_str() == "anon_inode:[io_uring]") {
            let info = self.root.get(&format!("{dir}/fdinfo/{number}")).unwrap_or_default();
            let files = info.lines().skip_while(|l| !l.starts_with("UserFiles:")).skip(1);
            for file in files.take_while(|l| l.starts_with(' ')) {
                let Some((_, path)) = file.split_once(": ") else { continue };
                let thing = self.root.thing(path).ok();
                if let Some(thing) = thing.filter(|t| self.family.called(t).is_some()) {
                    scan.users.push((thing, format!("in an io_uring of {}", self.name(dir))));
                }
            }
        }
    }

    /// Whether they could be seen.
    fn mappings(&mut self, dir: &str, scan: &mut Scan) -> bool {
        let text = match fs::read(self.root.real(&format!("{dir}/maps"))) {
            Ok(text) => text,
            // A process that is gone, or a thread of the kernel.
            Err(e) => return e.kind() != ErrorKind::PermissionDenied,
        };
        for line in text.split(|b| *b == b'\n') {
            let mut words = line.split(|b| *b == b' ').filter(|w| !w.is_empty());
            let (Some(range), Some(dev), Some(inode)) = (words.next(), words.nth(2), words.next())
            else {
                continue;
            };
            if inode == b"0" {
                continue;
            }
            let key = String::from_utf8_lossy(&[dev, b" ", inode].concat()).into_owned();
            let range = String::from_utf8_lossy(range);
            let (root, family) = (self.root, self.family);
            let thing = self.mapped.entry(key).or_insert_with(|| {
                // The maps name the node of a device, and on btrfs another device number than stat.
                let file = root.thing(&format!("{dir}/map_files/{range}"));
                file.ok().or_else(|| family.of_inode(inode))
            });
            if let Some(thing) = *thing
                && self.family.called(&thing).is_some()
            {
                scan.users.push((thing, format!("mapped by {}", self.name(dir))));
            }
        }
        true
    }

    fn mounts(&mut self, dir: &str, scan: &mut Scan) {
        let Ok(namespace) = fs::read_link(self.root.real(&format!("{dir}/ns/mnt"))) else { return };
        if !self.namespaces.insert(namespace) {
            return;
        }
        let text = self.root.get(&format!("{dir}/mountinfo")).unwrap_or_default();
        for mount in mountinfo::parse(&text) {
            if let Some(mut finding) = self.family.mount(&mount) {
                finding.what.push_str(&format!(", as {} sees it", self.name(dir)));
                scan.mounts.push(finding);
            }
        }
    }

    /// `smbd (process 17)`.
    fn name(&self, dir: &str) -> String {
        let pid = dir.trim_start_matches("/proc/").split('/').next().unwrap_or_default();
        let name = self.root.get(&format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{name} (process {pid})")
    }
}

impl Scan {
    /// What speaks against writing.
    pub(super) fn findings(mut self, family: &Family) -> Vec<Finding> {
        let mut found = std::mem::take(&mut self.mounts);
        for (thing, how) in &self.users {
            let what = family.called(thing).unwrap_or_default();
            found.push(Finding::always(format!("{what} is {how}")));
        }
        if self.nested {
            let what = "processes outside this container cannot be seen, nor what they have open";
            found.push(Finding::unknown(what));
        }
        for (who, what) in [
            (&mut self.unseen, "may not be looked into, and may have it open"),
            (&mut self.in_flight, "has open files on their way to it, which cannot be seen"),
        ] {
            who.sort();
            who.dedup();
            if let Some(first) = who.first() {
                let more = match who.len() - 1 {
                    0 => String::new(),
                    n => format!(" (and {n} more)"),
                };
                found.push(Finding::unknown(format!("{first}{more} {what}")));
            }
        }
        found
    }
}
