//! Programs that runs may need.

use std::path::{Path, PathBuf};

use iosched_lab::machine::Interrupt;

use crate::benchmark::{RECIPES, tree};
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

/// The longest purpose that has room beside name and state.
const PURPOSE: usize = 28;

/// Stands for the version of one that does not tell it in time.
const SILENT: &str = "does not answer";

/// Looks for all of them: the general ones, then the real programs of workloads. They are asked side by side: each may
/// take its time to say nothing.
#[must_use]
pub fn find_tools(interrupt: &Interrupt) -> Vec<Tool> {
    let mut wanted: Vec<Wanted> = GENERAL
        .iter()
        .map(|(name, package, flag, purpose)| {
            (*name, *package, Some(PathBuf::from(name)), *flag, (*purpose).to_string())
        })
        .collect();
    for (workload, tool) in RECIPES.iter().flat_map(|r| r.tools.iter().map(|t| (r.workload, t))) {
        match wanted.iter_mut().find(|t| t.0 == tool.name) {
            Some(known) => {
                let both = format!("{}, {workload}", known.4);
                // Two long names leave no room for the word.
                let short = both.strip_prefix("workload ").filter(|_| both.len() > PURPOSE);
                known.4 = short.unwrap_or(&both).to_string();
            }
            None => wanted.push((
                tool.name,
                tool.package,
                tool.file(&[]),
                tool.version.0,
                format!("workload {workload}"),
            )),
        }
    }
    let trees = RECIPES.iter().filter(|r| r.tree.is_some()).map(|r| r.workload);
    let sources = Tool {
        name: tree::PACKAGE,
        package: tree::PACKAGE,
        purpose: trees.collect::<Vec<_>>().join(", "),
        version: tree::find(&[]).ok().map(|(_, version)| version),
    };
    let mut tools = asked(wanted, interrupt);
    tools.push(sources);
    tools
}

/// What is looked for: name, package, file, option that prints the version, purpose.
type Wanted = (&'static str, &'static str, Option<PathBuf>, &'static str, String);

fn asked(wanted: Vec<Wanted>, interrupt: &Interrupt) -> Vec<Tool> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = wanted
            .into_iter()
            .map(|(name, package, file, flag, purpose)| {
                let asking = scope.spawn(move || version_of(&file?, flag, interrupt));
                (Tool { name, package, purpose, version: None }, asking)
            })
            .collect();
        asked
            .into_iter()
            .map(|(tool, asking)| Tool { version: asking.join().unwrap_or_default(), ..tool })
            .collect()
    })
}

/// What a program says of its version; `None` if it cannot be started.
fn version_of(file: &Path, flag: &str, interrupt: &Interrupt) -> Option<String> {
    if flag.is_empty() {
        return Some(String::new());
    }
    match probe::ask(file, flag, interrupt) {
        Ok(said) => said.map(|t| version::parse(&t).map_or_else(String::new, |v| v.0)),
        Err(_) => Some(SILENT.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_signal_ends_all_questions_at_once() {
        let interrupt = Interrupt::default();
        interrupt.raise(signal_hook::consts::SIGTERM);
        // `sleep` says nothing; it would be given up after ten seconds.
        let silent = |name: &'static str| {
            (name, "coreutils", Some(PathBuf::from("sleep")), "3600", name.into())
        };
        let began = Instant::now();
        let tools = asked(["one", "two", "three"].map(silent).into(), &interrupt);
        let versions: Vec<_> = tools.iter().map(|t| (t.name, t.version.as_deref())).collect();
        assert_eq!(versions, ["one", "two", "three"].map(|name| (name, Some(SILENT))));
        assert!(began.elapsed() < Duration::from_secs(10), "they were waited for");
    }

    #[test]
    fn purposes_fit_their_column_and_every_workload_has_its_tools() {
        let tools = find_tools(&Interrupt::default());
        for t in &tools {
            // Two spaces, a name of 13, a state of 35, and what is left of 80 columns.
            let fits = t.name.len() <= 13 && t.purpose.len() <= 80 - 2 - 14 - 36;
            assert!(fits, "{}: {}", t.name, t.purpose);
        }
        for recipe in RECIPES {
            let told = |t: &&Tool| t.purpose.contains(recipe.workload);
            assert!(tools.iter().any(|t| told(&t)), "{}", recipe.workload);
        }
    }
}
