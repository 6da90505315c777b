//! Who set a scheduler: a udev rule, a tuned profile, or the kernel's default.

use crate::root::SysRoot;

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setter {
    /// A udev rule: file and line.
    Udev {
        /// File.
        file: String,
        /// Line, from 1.
        line: usize,
    },
    /// A tuned profile.
    Tuned {
        /// The name.
        profile: String,
    },
    /// The kernel's command line, which no kernel since 5.0 heeds.
    CommandLine,
}

/// A place that sets the scheduler of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where.
    pub setter: Setter,
    /// To what.
    pub scheduler: String,
    /// Whether all conditions of the rule were checked and fit. A rule with conditions that cannot be checked from
    /// outside udev may or may not match.
    pub certain: bool,
}

const RULES: &[&str] = &["/etc/udev/rules.d", "/run/udev/rules.d", "/usr/lib/udev/rules.d"];

/// Everything on this machine that sets the scheduler of `disk` (a kernel name), in the order in which udev reads it.
/// If nothing is found, the kernel's default holds or a person wrote it by hand.
#[must_use]
pub fn who_set_it(root: &SysRoot, disk: &str) -> Vec<Setting> {
    let mut files: Vec<(String, String)> = Vec::new();
    for dir in RULES {
        for name in root.list(dir) {
            // A file of the same name in a directory named earlier hides the later one.
            if name.ends_with(".rules") && !files.iter().any(|(n, _)| *n == name) {
                files.push((name.clone(), format!("{dir}/{name}")));
            }
        }
    }
    files.sort();
    let mut found = Vec::new();
    for (_, path) in files {
        let text = root.get(&path).unwrap_or_default();
        for (i, line) in logical_lines(&text) {
            if let Some((scheduler, certain)) = rule(root, disk, &line) {
                let setter = Setter::Udev { file: path.clone(), line: i };
                found.push(Setting { setter, scheduler, certain });
            }
        }
    }
    found.extend(tuned(root));
    let cmdline = root.get("/proc/cmdline").unwrap_or_default();
    if let Some(s) = cmdline.split_whitespace().find_map(|w| w.strip_prefix("elevator=")) {
        let scheduler = s.to_string();
        found.push(Setting { setter: Setter::CommandLine, scheduler, certain: false });
    }
    found
}

/// Lines with continuations joined, each with the number of its first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (i, line) in text.lines().enumerate() {
        let body = line.strip_suffix('\\');
        match out.last_mut().filter(|_| open) {
            Some((_, joined)) => joined.push_str(body.unwrap_or(line)),
            None => out.push((i + 1, body.unwrap_or(line).to_string())),
        }
        open = body.is_some();
    }
    out.retain(|(_, l)| !l.trim_start().starts_with('#'));
    out
}

/// What a rule sets for the disk, and whether all its conditions could be checked; `None` when it sets
/// nothing or does not match.
fn rule(root: &SysRoot, disk: &str, line: &str) -> Option<(String, bool)> {
    let mut scheduler = None;
    let mut certain = true;
    for (key, operator, value) in pairs(line) {
        match (key.as_str(), operator) {
            ("ATTR{queue/scheduler}", "=" | ":=") => scheduler = Some(value),
            ("KERNEL", "==") if !matches(&value, disk) => return None,
            ("KERNEL", "!=") if matches(&value, disk) => return None,
            ("SUBSYSTEM", "==") if !matches(&value, "block") => return None,
            ("ENV{DEVTYPE}", "==") if !matches(&value, "disk") => return None,
            ("ACTION" | "KERNEL" | "SUBSYSTEM" | "ENV{DEVTYPE}", _) => {}
            (k, "==" | "!=") if k.starts_with("ATTR{") => {
                let attribute = k.trim_start_matches("ATTR{").trim_end_matches('}');
                let sys = disk.replace('/', "!");
                let now = root.get(&format!("/sys/block/{sys}/{attribute}")).unwrap_or_default();
                if matches(&value, &now) == (operator == "!=") {
                    return None;
                }
            }
            (_, "==" | "!=") => certain = false,
            _ => {}
        }
    }
    scheduler.map(|s| (s, certain))
}

/// `KEY==\"value\"` pairs of a rule.
fn pairs(line: &str) -> Vec<(String, &str, String)> {
    let mut out = Vec::new();
    let mut rest = line;
    while let Some(quote) = rest.find('"') {
        let head = rest[..quote].trim_start_matches([',', ' ', '\t']);
        let Some(end) = rest[quote + 1..].find('"') else { break };
        let value = rest[quote + 1..quote + 1 + end].to_string();
        let operator =
            ["==", "!=", "+=", "-=", ":=", "="].into_iter().find(|o| head.trim_end().ends_with(o));
        if let Some(operator) = operator {
            let key = head.trim_end().trim_end_matches(operator).trim().to_string();
            out.push((key, operator, value));
        }
        rest = &rest[quote + end + 2..];
    }
    out
}

/// udev's patterns: alternatives by `|`, `*`, `?` and `[...]`.
fn matches(pattern: &str, text: &str) -> bool {
    pattern.split('|').any(|p| glob(p.as_bytes(), text.as_bytes()))
}

fn glob(p: &[u8], t: &[u8]) -> bool {
    // Dynamic programming over text positions: linear in both lengths, for any number of stars.
    let mut states = vec![false; t.len() + 1];
    states[0] = true;
    let mut i = 0;
    while i < p.len() {
        let mut next = vec![false; t.len() + 1];
        match p[i] {
            b'*' => {
                let mut any = false;
                for (j, slot) in next.iter_mut().enumerate() {
                    any |= states[j];
                    *slot = any;
                }
            }
            b'[' if p[i..].contains(&b']') => {
                let end = i + p[i..].iter().position(|c| *c == b']').unwrap_or(0);
                let (negated, set) = match p.get(i + 1) {
                    Some(b'!') => (true, &p[i + 2..end]),
                    _ => (false, &p[i + 1..end]),
                };
                for j in 0..t.len() {
                    next[j + 1] = states[j] && in_set(set, t[j]) != negated;
                }
                i = end;
            }
            c => {
                for j in 0..t.len() {
                    next[j + 1] = states[j] && (c == b'?' || c == t[j]);
                }
            }
        }
        states = next;
        i += 1;
    }
    states[t.len()]
}

fn in_set(set: &[u8], c: u8) -> bool {
    let mut i = 0;
    while i < set.len() {
        if set.get(i + 1) == Some(&b'-') && i + 2 < set.len() {
            if (set[i]..=set[i + 2]).contains(&c) {
                return true;
            }
            i += 3;
        } else if set[i] == c {
            return true;
        } else {
            i += 1;
        }
    }
    false
}

fn tuned(root: &SysRoot) -> Vec<Setting> {
    let profiles = root.get("/etc/tuned/active_profile").unwrap_or_default();
    let mut found = Vec::new();
    for profile in profiles.split_whitespace() {
        for dir in
            ["/etc/tuned", "/etc/tuned/profiles", "/usr/lib/tuned", "/usr/lib/tuned/profiles"]
        {
            let Some(text) = root.get(&format!("{dir}/{profile}/tuned.conf")) else { continue };
            let elevator = text
                .lines()
                .filter_map(|l| l.split_once('='))
                .find(|(k, _)| k.trim() == "elevator")
                .map(|(_, v)| v.trim().to_string());
            if let Some(scheduler) = elevator {
                let setter = Setter::Tuned { profile: profile.into() };
                found.push(Setting { setter, scheduler, certain: true });
            }
            break;
        }
    }
    found
}

impl Setting {
    /// One line for people.
    #[must_use]
    pub fn render(&self) -> String {
        let who = match &self.setter {
            Setter::Udev { file, line } => format!("udev rule {file}:{line}"),
            Setter::Tuned { profile } => format!("tuned profile {profile}"),
            Setter::CommandLine => {
                "elevator= on the command line (without effect since 5.0)".into()
            }
        };
        let doubt = if self.certain { "" } else { " (may match)" };
        format!("{} by {who}{doubt}", self.scheduler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::fs;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, SysRoot) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let p = dir.path().join(path);
            fs::create_dir_all(p.parent().unwrap()).unwrap();
            fs::write(p, text).unwrap();
        }
        let root = SysRoot::fixture(dir.path(), BTreeMap::new());
        (dir, root)
    }

    #[test]
    fn rules_and_profiles_that_fit_are_found_in_order() {
        let (_dir, root) = machine(&[
            ("sys/block/sda/queue/rotational", "1\n"),
            (
                "etc/udev/rules.d/60-io.rules",
                "# comment\nACTION==\"add|change\", KERNEL==\"sd[a-z]*\", \\\n  \
                 ATTR{queue/rotational}==\"1\", ATTR{queue/scheduler}=\"bfq\"\n\
                 KERNEL==\"nvme*\", ATTR{queue/scheduler}=\"none\"\n\
                 KERNEL==\"sda\", ATTR{queue/rotational}==\"0\", ATTR{queue/scheduler}=\"none\"\n",
            ),
            (
                "usr/lib/udev/rules.d/60-io.rules",
                "KERNEL==\"*\", ATTR{queue/scheduler}=\"kyber\"\n",
            ),
            (
                "usr/lib/udev/rules.d/64-zoned.rules",
                "KERNEL==\"sd*\", ENV{ID_FS_TYPE}==\"btrfs\", ATTR{queue/scheduler}=\"mq-deadline\"\n",
            ),
            ("etc/tuned/active_profile", "mine\n"),
            ("etc/tuned/mine/tuned.conf", "[disk]\nelevator = mq-deadline\n"),
            ("proc/cmdline", "quiet elevator=noop\n"),
        ]);
        let lines: Vec<String> = who_set_it(&root, "sda").iter().map(Setting::render).collect();
        assert_eq!(
            lines,
            [
                "bfq by udev rule /etc/udev/rules.d/60-io.rules:2",
                "mq-deadline by udev rule /usr/lib/udev/rules.d/64-zoned.rules:1 (may match)",
                "mq-deadline by tuned profile mine",
                "noop by elevator= on the command line (without effect since 5.0) (may match)",
            ]
        );
    }

    #[test]
    fn patterns_are_udevs() {
        for (p, t, want) in [
            ("sd*", "sda", true),
            ("sd[a-c]", "sdd", false),
            ("sd[!a-c]", "sdd", true),
            ("vd?|nvme*", "nvme0n1", true),
            ("*n*", "nvme0n1", true),
            ("", "sda", false),
        ] {
            assert_eq!(matches(p, t), want, "{p} {t}");
        }
    }

    proptest! {
        #[test]
        fn any_rule_is_survived(line in "[A-Za-z{}=!\", *\\[\\]|?/-]{0,80}") {
            let (_dir, root) = machine(&[]);
            let _ = rule(&root, "sda", &line);
        }
    }
}
