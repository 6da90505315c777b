//! A policy: all files that set schedulers, as they are read at a start.

use std::collections::BTreeMap;

use iosched_types::Diagnostic;

use crate::other::{self, BootWrite, Profile, Row, Tlp};
use crate::udev;

/// What a machine's files say about schedulers.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Files of rules in the order in which udev reads them.
    pub(crate) rules: Vec<udev::File>,
    /// Writes of tmpfiles and sysfsutils.
    pub(crate) writes: Vec<BootWrite>,
    pub(crate) tlp: Vec<Tlp>,
    /// Profiles of TuneD.
    pub(crate) profiles: Vec<Profile>,
    /// `class = scheduler`.
    pub(crate) table: Vec<Row>,
    /// What is ignored, and why.
    pub problems: Vec<Diagnostic>,
}

/// Folders of rules, the strongest first.
const FOLDERS: [&str; 4] = ["etc/udev/", "run/udev/", "usr/local/lib/udev/", "lib/udev/"];

fn rank(path: &str) -> usize {
    FOLDERS.iter().position(|f| path.contains(f)).unwrap_or(FOLDERS.len())
}

impl Policy {
    /// Reads files: path and text of each. Of files of rules with one name that in the stronger folder counts
    /// (`/etc`, `/run`, `/usr/local/lib`, `/usr/lib`, others in the order given).
    ///
    /// # Errors
    /// A file of no known form.
    pub fn read(files: &[(String, String)]) -> Result<Policy, Diagnostic> {
        let mut policy = Policy::default();
        let mut rules: BTreeMap<String, &(String, String)> = BTreeMap::new();
        for file in files {
            let (path, text) = file;
            let form = other::Form::of(path, text).ok_or_else(|| {
                Diagnostic::file(path, "this sets no scheduler that can be judged").with_help(
                    "known are rules of udev (NAME.rules), profiles of TuneD, TLP's settings, tmpfiles, sysfsutils and \
                     tables of class = scheduler",
                )
            })?;
            let problems = &mut policy.problems;
            match form {
                other::Form::Udev => {
                    if !path.ends_with(".rules") {
                        let why = "udev reads files whose names end in .rules: this one is judged as if its name did";
                        problems.push(Diagnostic::file(path, why));
                    }
                    let name = path.rsplit('/').next().unwrap_or(path).to_string();
                    let weaker = match rules.get(&name) {
                        Some(before) if rank(&before.0) <= rank(path) => Some(path.clone()),
                        Some(before) => Some(before.0.clone()),
                        None => None,
                    };
                    if weaker.as_ref() != Some(path) {
                        rules.insert(name, file);
                    }
                    if let Some(weaker) = weaker {
                        let why =
                            "a file of the same name in a stronger folder replaces this one whole";
                        problems.push(Diagnostic::file(weaker, why));
                    }
                }
                other::Form::Tuned => policy.profiles.extend(other::tuned(path, text, problems)),
                other::Form::Tlp => policy.tlp.extend(other::tlp(path, text, problems)),
                other::Form::Writes => policy.writes.extend(other::writes(path, text)),
                other::Form::Table => policy.table.extend(other::table(path, text, problems)),
            }
        }
        // Names are compared by bytes: 7-x.rules comes behind 60-x.rules.
        for (path, text) in rules.values() {
            policy.rules.push(udev::parse(path, text, &mut policy.problems));
        }
        Ok(policy)
    }
}
