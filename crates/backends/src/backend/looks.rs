//! Looks at everything that must stay as it is while a load runs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::cgroup;
use crate::discover::QueueState;
use crate::load::meter;
use crate::parse::proc_stat::parse_process;
use crate::root::SysRoot;
use crate::switch::Disks;

/// How it was when the load began.
pub(super) struct Looks<'a> {
    root: SysRoot,
    disks: &'a Disks,
    /// The queues that were switched.
    pub(super) applied: Vec<QueueState>,
    below: BTreeMap<String, QueueState>,
    /// The control groups of this process; `None` when jobs have groups of their own.
    groups: Option<String>,
    limits: Vec<String>,
    /// The first thing that was seen to be otherwise.
    pub(super) disturbed: Option<String>,
    began: Instant,
    /// When, from the start, how many I/Os the disks had done.
    pub(super) counts: Vec<(Duration, u64)>,
}

impl<'a> Looks<'a> {
    pub(super) fn new(disks: &'a Disks, own_groups: bool) -> Looks<'a> {
        let root = SysRoot::default();
        let groups = if own_groups { None } else { root.get("/proc/self/cgroup") };
        let limits = cgroup::limits(&root);
        let (applied, below) = (disks.states(), disks.below());
        let (began, counts) = (Instant::now(), Vec::new());
        Looks { root, disks, applied, below, groups, limits, disturbed: None, began, counts }
    }

    /// Looks once more.
    pub(super) fn look(&mut self) {
        let done = meter::disks(&self.root, &self.disks.names()).done();
        self.counts.push((self.began.elapsed(), done));
        if self.disturbed.is_none() {
            self.disturbed = self.otherwise();
        }
    }

    /// Looks a last time, after the load: the queues that were switched are compared where the record is judged.
    pub(super) fn look_around(&mut self) {
        if self.disturbed.is_none() {
            self.disturbed = self.around();
        }
    }

    fn otherwise(&self) -> Option<String> {
        if self.disks.states() != self.applied {
            let why = "the scheduler or a setting was changed during the run and changed back";
            return Some(why.into());
        }
        self.around().or_else(|| {
            let load = descendants(&self.root, std::process::id());
            load.iter().find_map(|pid| self.process(*pid))
        })
    }

    fn around(&self) -> Option<String> {
        let below = self.disks.below();
        if let Some((name, now)) = below.iter().find(|(n, q)| self.below.get(*n) != Some(q)) {
            let scheduler = now.scheduler.as_deref().unwrap_or("-");
            return Some(format!(
                "a setting of {name}, which lies below, was changed during the run (its scheduler is {scheduler} now)"
            ));
        }
        if cgroup::limits(&self.root) != self.limits {
            return Some("a limit of the load's control group was changed during the run".into());
        }
        None
    }

    /// What keeps a process of the load from its work.
    fn process(&self, pid: u32) -> Option<String> {
        let stat = parse_process(&self.root.get(&format!("/proc/{pid}/stat"))?)?;
        if stat.state == 'T' {
            return Some(format!(
                "a process of the load ({}) was stopped during the run",
                stat.comm
            ));
        }
        if !self.moved(pid)? {
            return None;
        }
        // One that ends leaves its groups a moment before it is gone.
        std::thread::sleep(ENDING);
        let name = stat.comm;
        let moved = self.moved(pid)?;
        moved.then(|| format!("a process of the load ({name}) was moved to another control group"))
    }

    /// Whether a process that lives is in other groups than this one.
    fn moved(&self, pid: u32) -> Option<bool> {
        let Some(own) = &self.groups else { return Some(false) };
        let groups = self.root.get(&format!("/proc/{pid}/cgroup"))?;
        let stat = parse_process(&self.root.get(&format!("/proc/{pid}/stat"))?)?;
        Some(groups != *own && !groups.is_empty() && !matches!(stat.state, 'Z' | 'X'))
    }
}

/// How long the end of a process may take after it has left its groups.
const ENDING: Duration = Duration::from_millis(50);

/// Everything that descends from a process, by the lists that the kernel keeps of children. They cost less than a look at
/// all processes; a kernel without them (`CONFIG_PROC_CHILDREN`) shows none.
fn descendants(root: &SysRoot, of: u32) -> Vec<u32> {
    let mut family = vec![of];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        let tasks = format!("/proc/{parent}/task");
        for task in root.list(&tasks) {
            let children = root.get(&format!("{tasks}/{task}/children")).unwrap_or_default();
            family.extend(children.split_whitespace().filter_map(|p| p.parse::<u32>().ok()));
        }
        next += 1;
    }
    family.split_off(1)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn children_of_all_threads_are_found_and_theirs() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("7/task/7/children", "8 9 "),
            ("7/task/10/children", "11 "),
            ("9/task/9/children", "12 "),
            ("12/task/12/children", ""),
        ] {
            let path = dir.path().join("proc").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = SysRoot::fixture(dir.path(), BTreeMap::new());
        let mut found = descendants(&root, 7);
        found.sort_unstable();
        assert_eq!(found, [8, 9, 11, 12]);
    }
}
