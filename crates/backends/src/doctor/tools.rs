//! Programs that runs may need.

use std::process::{Command, Stdio};

use crate::parse::version;

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Name.
    pub name: &'static str,
    /// Debian package.
    pub package: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// Version found; `None` when it is missing, empty when it does not tell.
    pub version: Option<String>,
}

/// Name, package, option that prints the version, purpose.
pub const TOOLS: &[(&str, &str, &str, &str)] = &[
    ("fio", "fio", "--version", "load of live runs"),
    ("mkfs.ext4", "e2fsprogs", "-V", "files on emulated disks"),
    ("debugfs", "e2fsprogs", "-V", "files on emulated disks"),
    ("mkfs.xfs", "xfsprogs", "-V", "files on emulated disks, XFS"),
    ("sqlite3", "sqlite3", "--version", "workload sqlite"),
    ("fs_mark", "fsmark", "-V", "workload fs-mark"),
    ("postmark", "postmark", "-v", "workload postmark"),
    ("iozone", "not in Debian", "-v", "workload iozone"),
    ("ldd", "libc-bin", "--version", "start-up tests"),
    ("blktrace", "blktrace", "-V", "traces to replay"),
    ("bpftrace", "bpftrace", "--version", "looking deeper"),
    ("ioping", "ioping", "-v", "a quick look at latency"),
    ("nvme", "nvme-cli", "version", "wear of NVMe drives"),
    ("smartctl", "smartmontools", "--version", "health of drives"),
];

/// Looks for all of them.
#[must_use]
pub fn find_tools() -> Vec<Tool> {
    TOOLS
        .iter()
        .map(|(name, package, flag, purpose)| {
            let output = Command::new(name).arg(flag).stdin(Stdio::null()).output();
            let version = output.ok().map(|o| {
                let text = [o.stdout, o.stderr].concat();
                version::parse(&String::from_utf8_lossy(&text)).map_or_else(String::new, |v| v.0)
            });
            Tool { name, package, purpose, version }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_fit_their_column() {
        // Two spaces, a name of 10, a state of 36, and what is left of 80 columns.
        for (name, _, _, purpose) in TOOLS {
            assert!(name.len() <= 10 && purpose.len() <= 80 - 2 - 11 - 37, "{name}: {purpose}");
        }
    }
}
