//! All rules on one event of one device. A match that depends on something unknown is followed both ways.

use std::collections::BTreeMap;

use super::parse::{File, Line, Op, Token};
use crate::class::Class;
use crate::glob;
use crate::queue::Queue;

/// Most ways that are followed.
const MOST_BRANCHES: usize = 32;
/// The file of udev that sets `ID_…`. Rules in files before it find none of them.
pub(crate) const SETS_ID: &str = "60-persistent-storage.rules";
/// The file of mdadm that sets `MD_…`.
const SETS_MD: &str = "63-md-raid-arrays.rules";

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Add,
    Change,
}

/// The device of an event: a disk, or its first partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device<'a> {
    pub(crate) class: &'a Class,
    pub(crate) is_partition: bool,
}

/// One of the ways that rules can go.
#[derive(Clone, Debug)]
pub(crate) struct Branch<'a> {
    pub(crate) queue: Queue<'a>,
    /// What was assumed of unknown matches.
    pub(crate) assumed: BTreeMap<String, bool>,
    /// Whether closing the disk after writing makes a `change` event.
    pub(crate) is_watched: bool,
    /// More ways than are followed.
    pub(crate) is_cut: bool,
    env: BTreeMap<String, String>,
    run: Vec<(String, String)>,
    goto: Option<String>,
}

/// Lines, by file and number, with the devices for which they held or may hold.
pub(crate) type Hits = BTreeMap<(usize, usize), Vec<String>>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tri {
    Yes,
    No,
    /// It depends on this, or on this not being so.
    Unknown {
        on: String,
        negated: bool,
    },
}

impl From<bool> for Tri {
    fn from(b: bool) -> Tri {
        if b { Tri::Yes } else { Tri::No }
    }
}

impl<'a> Branch<'a> {
    pub(crate) fn new(queue: Queue<'a>) -> Self {
        Branch {
            queue,
            assumed: BTreeMap::new(),
            is_watched: true,
            is_cut: false,
            env: BTreeMap::new(),
            run: Vec::new(),
            goto: None,
        }
    }
}

/// The ways that rules go for an event, from one way that was gone before.
pub(crate) fn run<'a>(
    files: &[File],
    event: Event,
    device: Device<'a>,
    before: Branch<'a>,
    hits: &mut Hits,
) -> Vec<Branch<'a>> {
    let mut branches = vec![before];
    for b in &mut branches {
        (b.env, b.run) = (BTreeMap::new(), Vec::new());
    }
    for (i, file) in files.iter().enumerate() {
        for line in &file.lines {
            let mut next = Vec::new();
            while let Some(mut b) = branches.pop() {
                let ask = Ask { file, event, device, branch: &b };
                match ask.line(line) {
                    Tri::No => next.push(b),
                    Tri::Unknown { .. } if !has_effect(line) => next.push(b),
                    Tri::Unknown { on, .. } => {
                        hit(hits, (i, line.number), device);
                        if branches.len() + next.len() + 2 > MOST_BRANCHES {
                            b.is_cut = true;
                            next.push(b);
                            continue;
                        }
                        for holds in [true, false] {
                            let mut way = b.clone();
                            way.assumed.insert(on.clone(), holds);
                            branches.push(way);
                        }
                    }
                    Tri::Yes => {
                        if b.goto.is_none() {
                            hit(hits, (i, line.number), device);
                        }
                        act(file, line, device, &mut b);
                        next.push(b);
                    }
                }
            }
            next.reverse();
            branches = next;
        }
        branches.iter_mut().for_each(|b| b.goto = None);
    }
    for b in &mut branches {
        for (command, source) in std::mem::take(&mut b.run) {
            match echo(&command, device) {
                Some((value, path)) => b.queue.write(&path, &value, &source),
                None if sets_queue(&command) => {
                    let reason = format!("what {command} does is not known: it is not judged");
                    b.queue.refused.push(crate::queue::Refused { source, reason });
                }
                None => {}
            }
        }
    }
    branches
}

fn hit(hits: &mut Hits, at: (usize, usize), device: Device<'_>) {
    let name = device.class.name.clone();
    let all = hits.entry(at).or_default();
    if !all.contains(&name) {
        all.push(name);
    }
}

/// Whether a line changes anything that is judged, now or by what it lets later lines see.
fn has_effect(line: &Line) -> bool {
    line.tokens.iter().any(|t| match t.key.as_str() {
        "ATTR" | "ENV" | "SYSCTL" | "OPTIONS" => !t.is_match(),
        "GOTO" => true,
        "RUN" => sets_queue(&t.value),
        _ => false,
    })
}

/// Whether a command may set files of a queue.
fn sets_queue(command: &str) -> bool {
    command.contains("/sys/") || command.contains("scheduler")
}

/// What a matching line does, in the written order.
fn act(file: &File, line: &Line, device: Device<'_>, b: &mut Branch<'_>) {
    if let Some(label) = &b.goto {
        let is_it = |t: &Token| t.key == "LABEL" && t.value == *label;
        if line.tokens.iter().any(is_it) {
            b.goto = None;
        }
        return;
    }
    let source = format!("{}:{}", file.name, line.number);
    for t in line.tokens.iter().filter(|t| !t.is_match()) {
        match t.key.as_str() {
            "ATTR" => match path_of(&t.attribute, device) {
                Some(path) => b.queue.write(&path, &expanded(&t.value, device), &source),
                None => {
                    let reason = format!("a partition has no {}: the write fails", t.attribute);
                    b.queue.refused.push(crate::queue::Refused { source: source.clone(), reason });
                }
            },
            "SYSCTL" => {
                let value = (t.value.clone(), source.clone());
                b.queue.set.insert(format!("sysctl {}", t.attribute), value);
            }
            "ENV" if t.op == Op::Add => {
                let old = b.env.entry(t.attribute.clone()).or_default();
                if !old.is_empty() {
                    old.push(' ');
                }
                old.push_str(&t.value);
            }
            "ENV" => _ = b.env.insert(t.attribute.clone(), expanded(&t.value, device)),
            "OPTIONS" if t.value.split(',').any(|o| o.trim() == "nowatch") => b.is_watched = false,
            "OPTIONS" if t.value.split(',').any(|o| o.trim() == "watch") => b.is_watched = true,
            "RUN" => {
                if t.op == Op::Set {
                    b.run.clear();
                }
                b.run.push((t.value.clone(), source.clone()));
            }
            "GOTO" => {
                let label =
                    |l: &Line| l.tokens.iter().any(|l| l.key == "LABEL" && l.value == t.value);
                let later = file.lines.iter().any(|l| l.number > line.number && label(l));
                b.goto = later.then(|| t.value.clone());
            }
            _ => {}
        }
    }
}

fn name_of(device: Device<'_>) -> String {
    if device.is_partition { device.class.partition() } else { device.class.kernel.clone() }
}

fn expanded(value: &str, device: Device<'_>) -> String {
    let name = name_of(device);
    value.replace("%k", &name).replace("$kernel", &name).replace("$name", &name)
}

/// The file of the disk that a path of the device is; a partition has files of its own, which no rule changes.
fn path_of(path: &str, device: Device<'_>) -> Option<String> {
    match (device.is_partition, path.strip_prefix("../")) {
        (true, Some(of_disk)) => Some(of_disk.into()),
        (true, None) | (false, Some(_)) => None,
        (false, None) => Some(path.into()),
    }
}

/// `sh -c 'echo bfq > /sys/block/%k/queue/scheduler'`: the value and the file of this disk.
fn echo(command: &str, device: Device<'_>) -> Option<(String, String)> {
    let (_, rest) = command.split_once("echo ")?;
    let (value, rest) = match rest.split_once('>') {
        Some(parts) => parts,
        None => rest.split_once("| tee ").or_else(|| rest.split_once("|tee "))?,
    };
    let plain = |s: &str| s.trim().trim_matches(['\'', '"']).to_string();
    // `bfq 1> FILE`: a descriptor stands apart from the value and touches the sign.
    let value = value.strip_suffix(" 1").unwrap_or(value);
    let value = plain(value.trim().trim_start_matches("-n "));
    let path = plain(rest.trim_start_matches('>').trim().split([' ', ';', '&', '|']).next()?);
    let path = expanded(&path, device).replace("$sys", "/sys").replace("%S", "/sys");
    let own = format!("/sys/block/{}/", device.class.kernel);
    let class = format!("/sys/class/block/{}/", device.class.kernel);
    let by_path = path.strip_prefix("/sys%p/").or_else(|| path.strip_prefix("/sys$devpath/"));
    let file = path.strip_prefix(&own).or_else(|| path.strip_prefix(&class)).or(by_path)?;
    Some((value, file.to_string()))
}

struct Ask<'x, 'a> {
    file: &'x File,
    event: Event,
    device: Device<'a>,
    branch: &'x Branch<'a>,
}

impl Ask<'_, '_> {
    /// Whether all matches of a line hold.
    fn line(&self, line: &Line) -> Tri {
        if self.branch.goto.is_some() {
            let label = |t: &Token| t.key == "LABEL" && Some(&t.value) == self.branch.goto.as_ref();
            return line.tokens.iter().any(label).into();
        }
        let mut unknown = None;
        let upward = |t: &&Token| {
            ["KERNELS", "SUBSYSTEMS", "DRIVERS", "ATTRS", "TAGS"].contains(&t.key.as_str())
        };
        let matches = line.tokens.iter().filter(|t| t.is_match());
        let (up, own): (Vec<&Token>, Vec<&Token>) = matches.partition(upward);
        let own = own.into_iter().map(|t| self.assume(self.token(t)));
        let up = (!up.is_empty()).then(|| self.assume(self.chain(&up)));
        for tri in own.chain(up) {
            match tri {
                Tri::Yes => {}
                Tri::No => return Tri::No,
                Tri::Unknown { .. } => _ = unknown.get_or_insert(tri),
            }
        }
        unknown.unwrap_or(Tri::Yes)
    }

    fn assume(&self, tri: Tri) -> Tri {
        match tri {
            Tri::Unknown { on, negated } => match self.branch.assumed.get(&on) {
                Some(holds) => (*holds != negated).into(),
                None => Tri::Unknown { on, negated },
            },
            known => known,
        }
    }

    fn token(&self, t: &Token) -> Tri {
        let class = self.device.class;
        match t.key.as_str() {
            "ACTION" => compare(t, if self.event == Event::Add { "add" } else { "change" }),
            "KERNEL" | "NAME" => compare(t, &name_of(self.device)),
            "SUBSYSTEM" => compare(t, "block"),
            "DRIVER" => compare(t, ""),
            "DEVPATH" if class.parents.is_empty() => {
                compare(t, &format!("/devices/virtual/block/{}", name_of(self.device)))
            }
            "DEVPATH" if t.value.starts_with("/devices/virtual") => (t.op == Op::IsNot).into(),
            "ENV" => self.env(t),
            "ATTR" => self.value(t, self.attr(&t.attribute)),
            "CONST" if t.attribute == "virt" => compare(t, &class.virt),
            "CONST" if t.attribute == "arch" => compare(t, "x86-64"),
            "TEST" => self.test(t),
            "IMPORT" => match t.attribute.as_str() {
                "builtin" | "parent" => Tri::Yes,
                // Nothing is on the command line, and the first event has no earlier one.
                "cmdline" => Tri::No,
                "db" if self.event == Event::Add => Tri::No,
                _ => unknown(t),
            },
            _ => unknown(t),
        }
    }

    /// Matches on the device and those above it: all must hold on one of them.
    fn chain(&self, tokens: &[&Token]) -> Tri {
        let mut result = Tri::No;
        let whole = tokens.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join(", ");
        for level in 0..=self.device.class.parents.len() {
            let mut all = Tri::Yes;
            for t in tokens {
                match self.above(t, level) {
                    Tri::Yes => {}
                    Tri::No => {
                        all = Tri::No;
                        break;
                    }
                    Tri::Unknown { .. } => all = Tri::Unknown { on: whole.clone(), negated: false },
                }
            }
            match all {
                Tri::Yes => return Tri::Yes,
                Tri::Unknown { .. } => result = all,
                Tri::No => {}
            }
        }
        result
    }

    /// A match on the device itself (0) or one above it.
    fn above(&self, t: &Token, level: usize) -> Tri {
        let Some(parent) = level.checked_sub(1).map(|i| &self.device.class.parents[i]) else {
            return match t.key.as_str() {
                "KERNELS" => compare(t, &name_of(self.device)),
                "SUBSYSTEMS" => compare(t, "block"),
                "DRIVERS" => compare(t, ""),
                "ATTRS" => self.value(t, self.attr(&t.attribute)),
                _ => unknown(t),
            };
        };
        match t.key.as_str() {
            "KERNELS" if parent.kernel.is_empty() => unknown(t),
            "KERNELS" => compare(t, &parent.kernel),
            "SUBSYSTEMS" => compare(t, &parent.subsystem),
            "DRIVERS" => compare(t, &parent.driver),
            "ATTRS" => {
                let value = parent.attrs.get(&t.attribute);
                self.value(t, value.map(|v| (v != "?").then(|| v.clone())))
            }
            _ => unknown(t),
        }
    }

    fn attr(&self, path: &str) -> Option<Option<String>> {
        if path.starts_with('[') {
            return Some(None);
        }
        match (self.device.is_partition, path_of(path, self.device)) {
            (_, Some(path)) => self.branch.queue.read(&path),
            (true, None) if path == "partition" => Some(Some("1".into())),
            (true, None) => {
                ["size", "start", "ro", "dev", "uevent"].contains(&path).then_some(None)
            }
            (false, None) => None,
        }
    }

    /// A file: without it neither `==` nor `!=` holds.
    fn value(&self, t: &Token, value: Option<Option<String>>) -> Tri {
        match value {
            None => Tri::No,
            Some(Some(text)) => compare(t, text.trim_end()),
            Some(None) => any_value(t),
        }
    }

    /// A property: without it, it is empty.
    fn env(&self, t: &Token) -> Tri {
        let (key, class) = (t.attribute.as_str(), self.device.class);
        if let Some(value) = self.branch.env.get(key) {
            return compare(t, value);
        }
        match key {
            "DEVTYPE" => {
                return compare(t, if self.device.is_partition { "partition" } else { "disk" });
            }
            "DEVNAME" => return compare(t, &format!("/dev/{}", name_of(self.device))),
            "SUBSYSTEM" => return compare(t, "block"),
            "ID_FS_TYPE" | "ID_FS_LABEL" | "ID_FS_UUID" | "ID_FS_USAGE"
                if self.device.is_partition =>
            {
                return if self.is_late(SETS_ID) { any_value(t) } else { compare(t, "") };
            }
            _ => {}
        }
        let there = match key {
            _ if key.starts_with("MD_") => self.is_late(SETS_MD),
            _ if key.starts_with("ID_") => self.is_late(SETS_ID),
            _ => true,
        };
        match class.env.get(key).filter(|_| there).map(String::as_str) {
            Some("?") => any_value(t),
            Some(value) => compare(t, value),
            None => compare(t, ""),
        }
    }

    fn is_late(&self, file: &str) -> bool {
        self.file.name.as_str() > file
    }

    fn test(&self, t: &Token) -> Tri {
        let prefixes = ["%S%p/", "$sys$devpath/", "/sys%p/", "/sys$devpath/", "$sys/$devpath/"];
        let inside = prefixes.iter().find_map(|p| t.value.strip_prefix(p));
        let path = match inside {
            Some(path) => path,
            None if t.value.starts_with('/') || t.value.contains(['%', '$']) => return unknown(t),
            None => t.value.as_str(),
        };
        let exists = match path {
            "queue" => !self.device.is_partition,
            _ => self.attr(path).is_some(),
        };
        (exists == (t.op != Op::IsNot)).into()
    }
}

fn unknown(t: &Token) -> Tri {
    Tri::Unknown { on: t.text.replacen("!=", "==", 1), negated: t.op == Op::IsNot }
}

/// A value that differs from drive to drive.
fn any_value(t: &Token) -> Tri {
    let all = t.value.split('|').any(|p| p == "*" || p == "?*");
    match (all, t.op == Op::IsNot) {
        (true, negated) => (!negated).into(),
        (false, _) => unknown(t),
    }
}

fn compare(t: &Token, text: &str) -> Tri {
    (glob::matches(&t.value, text) == (t.op != Op::IsNot)).into()
}
