//! Programs that runs may need.

use std::path::Path;

use crate::benchmark::RECIPES;
use crate::load::child::Interrupt;
use crate::load::probe;
use crate::parse::version;

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Name.
    pub name: &'static str,
    /// Debian package; empty for a program that Debian does not have.
    pub package: &'static str,
    /// What it is for.
    pub purpose: String,
    /// Version found; `None` when it is missing, empty when it does not tell.
    pub version: Option<String>,
}

/// Programs for more than one workload: name, package, option that prints the version, purpose.
const GENERAL: &[(&str, &str, &str, &str)] = &[
    ("fio", "fio", "--version", "load of live runs"),
    ("mkfs.ext4", "e2fsprogs", "-V", "files on emulated disks"),
    ("debugfs", "e2fsprogs", "-V", "files on emulated disks"),
    ("mkfs.xfs", "xfsprogs", "-V", "emulated disks with XFS"),
    ("unshare", "util-linux", "--version", "servers of workloads"),
    ("setpriv", "util-linux", "--version", "servers of workloads"),
    ("ldd", "libc-bin", "--version", "start-up tests"),
    ("blktrace", "blktrace", "-V", "traces to replay"),
    ("bpftrace", "bpftrace", "--version", "looking deeper"),
    ("ioping", "ioping", "-v", "a quick look at latency"),
    ("nvme", "nvme-cli", "version", "wear of NVMe drives"),
    ("smartctl", "smartmontools", "--version", "health of drives"),
];

/// Stands for the version of one that does not tell it in time.
const SILENT: &str = "does not answer";

/// Looks for all of them: the general ones, then the real programs of workloads.
#[must_use]
pub fn find_tools() -> Vec<Tool> {
    // A signal ends this program by itself here.
    let unasked = Interrupt::default();
    let general = GENERAL.iter().map(|(name, package, flag, purpose)| {
        let said = probe::ask(Path::new(name), flag, &unasked);
        let version = match said {
            Ok(said) => said.map(|t| version::parse(&t).map_or_else(String::new, |v| v.0)),
            Err(_) => Some(SILENT.into()),
        };
        Tool { name, package, purpose: (*purpose).into(), version }
    });
    let mut tools: Vec<Tool> = general.collect();
    for (workload, tool) in RECIPES.iter().flat_map(|r| r.tools.iter().map(|t| (r.workload, t))) {
        match tools.iter_mut().find(|t| t.name == tool.name) {
            Some(known) => known.purpose += &format!(", {workload}"),
            None => tools.push(Tool {
                name: tool.name,
                package: tool.package,
                purpose: format!("workload {workload}"),
                version: tool.file(&[]).map(|file| {
                    tool.version_of(&file, &unasked).map_or_else(|_| SILENT.into(), |v| v.0)
                }),
            }),
        }
    }
    tools
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_fit_their_column_and_every_workload_has_its_tools() {
        let tools = find_tools();
        for t in &tools {
            // Two spaces, a name of 13, a state of 36, and what is left of 80 columns.
            let fits = t.name.len() <= 13 && t.purpose.len() <= 80 - 2 - 14 - 37;
            assert!(fits, "{}: {}", t.name, t.purpose);
        }
        for recipe in RECIPES {
            let told = |t: &&Tool| t.purpose.contains(recipe.workload);
            assert!(tools.iter().any(|t| told(&t)), "{}", recipe.workload);
        }
    }
}
