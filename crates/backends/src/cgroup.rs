//! Limits of the control group that a load runs in (cgroup v2).

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
}
