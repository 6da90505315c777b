//! `exec_prerun` and `exec_postrun`: a job file runs no commands here, but those that only write out and drop caches are
//! known, and done in the simulated machine.

use serde::{Deserialize, Serialize};

use super::value::{Parsed, ValueError};

/// What a command does to the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caches {
    /// Writes dirty pages out first.
    pub sync: bool,
    /// Drops clean pages.
    pub drop: bool,
}

impl Caches {
    /// Whether nothing is done.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Caches::default()
    }
}

/// Commands that are known, for help texts.
pub(crate) const ACCEPTED: &str = "`sync`, `echo 3 > /proc/sys/vm/drop_caches`, \
     `echo 3 | tee /proc/sys/vm/drop_caches`, `sysctl vm.drop_caches=3`, with or without `sudo`, joined by `;` or `&&`";

/// Reads a command.
pub(crate) fn read(text: &str) -> Parsed<Caches> {
    let mut caches = Caches::default();
    for command in unquoted(text).replace("&&", ";").split(';') {
        let spaced = command.replace('>', " > ").replace('|', " | ");
        let words: Vec<&str> = spaced
            .split_whitespace()
            .filter(|w| *w != "sudo")
            .map(|w| w.trim_matches(['"', '\'']))
            .collect();
        match words[..] {
            [] => {}
            ["sync" | "/bin/sync" | "/usr/bin/sync"] => caches.sync = true,
            ["echo", "1" | "3", ">", FILE]
            | ["echo", "1" | "3", "|", "tee", FILE]
            | ["echo", "1" | "3", "|", "tee", FILE, ">", "/dev/null"]
            | ["sysctl" | "/sbin/sysctl", "vm.drop_caches=1" | "vm.drop_caches=3"]
            | ["sysctl" | "/sbin/sysctl", "-w" | "-q", "vm.drop_caches=1" | "vm.drop_caches=3"] => {
                caches.drop = true;
            }
            _ => {
                let e = ValueError::new("a job file must not run commands");
                return Err(e.help(format!("accepted are those that drop caches: {ACCEPTED}")));
            }
        }
    }
    Ok(caches)
}

const FILE: &str = "/proc/sys/vm/drop_caches";

/// The command inside quotes and `sh -c`.
fn unquoted(text: &str) -> &str {
    let mut text = text.trim();
    loop {
        let shell = ["sudo ", "sh -c ", "bash -c ", "/bin/sh -c ", "/bin/bash -c "];
        let inner = shell.iter().find_map(|s| text.strip_prefix(s)).map(str::trim).or_else(|| {
            let quoted = |q: char| text.strip_prefix(q)?.strip_suffix(q).filter(|t| !t.contains(q));
            quoted('"').or_else(|| quoted('\''))
        });
        match inner {
            Some(inner) => text = inner,
            None => return text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_only_drop_caches_are_read() {
        let (sync, drop) = (Caches { sync: true, drop: false }, Caches { sync: false, drop: true });
        let both = Caches { sync: true, drop: true };
        for (text, means) in [
            ("sync", sync),
            ("echo 3 > /proc/sys/vm/drop_caches", drop),
            ("echo 1 >/proc/sys/vm/drop_caches", drop),
            ("sync; echo 3 > /proc/sys/vm/drop_caches", both),
            ("sync && sudo sysctl -w vm.drop_caches=3", both),
            ("sudo sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'", both),
            ("bash -c \"echo 3 > /proc/sys/vm/drop_caches\"", drop),
            ("echo 3 | sudo tee /proc/sys/vm/drop_caches > /dev/null", drop),
            ("\"sync\"", sync),
        ] {
            assert_eq!(read(text), Ok(means), "{text}");
        }
        for text in ["rm -rf /", "echo 3 > /tmp/x", "sync; reboot", "echo 3", "sync $(id)", "sh -c"]
        {
            let e = read(text).unwrap_err();
            assert!(
                e.message.contains("must not run commands") && e.help.contains("sync"),
                "{text}"
            );
        }
    }
}
