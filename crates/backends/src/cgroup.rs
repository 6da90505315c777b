//! Control groups: limits of the one that a load runs in (v2), and whether jobs can have some of their own.

use crate::error::{Error, Result};
use crate::parse::{mountinfo, version};
use crate::root::SysRoot;

/// Where control groups are.
const MOUNT: &str = "/sys/fs/cgroup";

/// The limits on CPU time and I/O that hold for this process, from its own group up, in words.
#[must_use]
pub(crate) fn limits(root: &SysRoot) -> Vec<String> {
    let own = root.get("/proc/self/cgroup").unwrap_or_default();
    let Some(path) = own.lines().find_map(|l| l.strip_prefix("0::")) else { return Vec::new() };
    let mut found = Vec::new();
    let mut group = path.trim_end_matches('/');
    loop {
        let of = |name: &str| root.get(&format!("{MOUNT}{group}/{name}")).unwrap_or_default();
        let shown = if group.is_empty() { "/" } else { group };
        let cpu = of("cpu.max");
        if !cpu.is_empty() && !cpu.starts_with("max") {
            found.push(format!("cpu.max of {shown} is \"{}\"", cpu.trim()));
        }
        for line in of("io.max").lines().filter(|l| !l.trim().is_empty()) {
            found.push(format!("io.max of {shown} is \"{}\"", line.trim()));
        }
        let Some((above, _)) = group.rsplit_once('/') else { return found };
        group = above;
    }
}

/// fio up to this one sets no weights in v2, and goes on as if it had.
const WEIGHTLESS: &[u32] = &[3, 33];

/// Whether fio can put jobs into control groups of their own, with weights; what it will use. It takes the first hierarchy
/// that is mounted and has to do with I/O. `fio` is its version.
///
/// # Errors
/// [`Error::Unavailable`] with what is missing.
pub(crate) fn for_jobs(root: &SysRoot, weighted: bool, fio: &str) -> Result<String> {
    let mounts = mountinfo::parse(&root.get("/proc/self/mountinfo").unwrap_or_default());
    let first = mounts.iter().find(|m| {
        m.fstype == "cgroup2" || m.fstype == "cgroup" && m.options.split(',').any(|o| o == "blkio")
    });
    let Some(mount) = first else {
        return Err(missing("none are mounted that have to do with I/O"));
    };
    let (point, v2) = (&mount.point, mount.fstype == "cgroup2");
    if !weighted {
        return Ok(point.clone());
    }
    if !v2 {
        return match root.exists(&format!("{point}/blkio.weight")) {
            true => Ok(point.clone()),
            false => {
                Err(missing(&format!("{point} is of version 1 and has no weights (blkio.weight)")))
            }
        };
    }
    let has = |file: &str| {
        let list = root.get(&format!("{point}/{file}")).unwrap_or_default();
        list.split_whitespace().any(|c| c == "io")
    };
    if !has("cgroup.controllers") {
        return Err(missing(&format!("{point} is of version 2 and has no io controller")));
    }
    if !has("cgroup.subtree_control") {
        return Err(missing(&format!(
            "{point} does not give its io controller to groups below (echo +io > cgroup.subtree_control)"
        )));
    }
    match version::parse(fio) {
        Some((said, parts)) if parts.as_slice() <= WEIGHTLESS => {
            Err(missing(&format!("fio {said} sets no weights in groups of version 2")))
        }
        _ => Ok(point.clone()),
    }
}

fn missing(why: &str) -> Error {
    Error::Unavailable {
        what: "a weight of control groups (jobs with cgroup_weight)".into(),
        why: why.into(),
        help: "it needs control groups v2 with the io controller and a fio that sets weights there; --backend sim \
               simulates them"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    #[test]
    fn limits_of_all_groups_above_count() {
        let dir = tempfile::tempdir().unwrap();
        let at = |p: &str, text: &str| {
            let path = dir.path().join(p);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        at("proc/self/cgroup", "0::/a/b\n");
        at("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
        at("sys/fs/cgroup/a/cpu.max", "20000 100000\n");
        at("sys/fs/cgroup/a/b/io.max", "8:0 rbps=max wbps=max riops=300 wiops=max\n");
        let root = SysRoot::fixture(dir.path(), BTreeMap::new());
        let found = limits(&root);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("riops=300") && found[1].contains("/a is \"20000"), "{found:?}");
        fs::write(dir.path().join("proc/self/cgroup"), "12:cpu:/x\n").unwrap();
        assert!(limits(&root).is_empty());
    }

    #[test]
    fn what_a_weight_needs_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let at = |p: &str, text: &str| {
            let path = dir.path().join(p);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let root = SysRoot::fixture(dir.path(), BTreeMap::new());
        let why = |weighted: bool, fio: &str| match for_jobs(&root, weighted, fio) {
            Ok(point) => point,
            Err(e) => e.to_string(),
        };
        let mounts = "proc/self/mountinfo";
        at(mounts, "24 1 0:22 / /proc rw - proc proc rw\n");
        assert!(why(false, "fio-3.40").contains("none are mounted"));
        // As systemd mounts both, with I/O in the first.
        let v1 = "31 1 0:28 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n";
        let v2 = "32 1 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        at(mounts, &format!("{v1}{v2}"));
        assert_eq!(why(false, "fio-3.33"), "/sys/fs/cgroup/blkio");
        assert!(why(true, "fio-3.33").contains("version 1 and has no weights (blkio.weight)"));
        at("sys/fs/cgroup/blkio/blkio.weight", "500\n");
        assert_eq!(why(true, "fio-3.33"), "/sys/fs/cgroup/blkio");
        at(mounts, v2);
        at("sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n");
        assert!(why(true, "fio-3.40").contains("no io controller"));
        at("sys/fs/cgroup/unified/cgroup.controllers", "cpu io memory\n");
        assert!(why(true, "fio-3.40").contains("does not give its io controller"));
        at("sys/fs/cgroup/unified/cgroup.subtree_control", "io\n");
        assert!(why(true, "fio-3.33").contains("3.33 sets no weights"));
        assert_eq!(why(true, "fio-3.40"), "/sys/fs/cgroup/unified");
        let e = for_jobs(&root, true, "fio-3.33").unwrap_err();
        assert!(e.help().contains("control groups v2 with the io controller"), "{}", e.help());
    }
}
