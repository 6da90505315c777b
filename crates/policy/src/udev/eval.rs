//! All rules on one event of one device. A match that depends on something unknown is followed both ways.

use std::collections::{BTreeMap, BTreeSet};

use super::command::{sets_queue, writes};
use super::parse::{File, Line, Op, Token};
use crate::class::Class;
use crate::glob;
use crate::queue::{Queue, Refused};

/// Most ways that are followed.
const MOST_BRANCHES: usize = 32;
/// The file of udev that sets `ID_…`. Rules in files before it find none of them.
pub(crate) const SETS_ID: &str = "60-persistent-storage.rules";
/// The file of mdadm that sets `MD_…`.
const SETS_MD: &str = "63-md-raid-arrays.rules";

/// Attributes that devices above a disk have, as a rule: their values are not among the facts.
const USUAL: &[&str] = &[
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "class",
    "product",
    "manufacturer",
    "serial",
    "idVendor",
    "idProduct",
    "bcdDevice",
    "wwid",
    "rev",
    "model",
    "firmware_rev",
    "numa_node",
];

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
    /// `:=` has set them.
    run_is_final: bool,
    goto: Option<String>,
}

/// Lines, by file and number, that held or may hold for some device.
pub(crate) type Hits = BTreeSet<(usize, usize)>;

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
            run_is_final: false,
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
        (b.env, b.run, b.run_is_final) = (BTreeMap::new(), Vec::new(), false);
    }
    for (i, file) in files.iter().enumerate() {
        for line in &file.lines {
            let mut next = Vec::new();
            while let Some(mut b) = branches.pop() {
                // The line of the label runs, too.
                b.goto.take_if(|label| line.has("LABEL", label));
                if b.goto.is_some() {
                    next.push(b);
                    continue;
                }
                let ask = Ask { file, event, device, branch: &b };
                match ask.line(line) {
                    Tri::No => next.push(b),
                    Tri::Unknown { .. } if !has_effect(line) => next.push(b),
                    Tri::Unknown { on, .. } => {
                        hits.insert((i, line.number));
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
                        hits.insert((i, line.number));
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
            let all = writes(&command, &device.class.kernel);
            for (path, value) in all.iter().flatten() {
                b.queue.write(path, value, &source);
            }
            if all.is_none() {
                let reason = format!("what {command} does is not known: it is not judged");
                b.queue.refused.push(Refused { source, reason });
            }
        }
    }
    branches
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

/// What a matching line does, in the written order.
fn act(file: &File, line: &Line, device: Device<'_>, b: &mut Branch<'_>) {
    let source = format!("{}:{}", file.name, line.number);
    for t in line.tokens.iter().filter(|t| !t.is_match()) {
        match t.key.as_str() {
            "ATTR" => match path_of(&t.attribute, device) {
                Some(path) => b.queue.write(&path, &expanded(&t.value, device, &b.env), &source),
                None => {
                    let reason = format!("a partition has no {}: the write fails", t.attribute);
                    b.queue.refused.push(Refused { source: source.clone(), reason });
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
            "ENV" => {
                let value = expanded(&t.value, device, &b.env);
                b.env.insert(t.attribute.clone(), value);
            }
            "OPTIONS" if device.is_partition => {}
            "OPTIONS" if t.value.split(',').any(|o| o.trim() == "nowatch") => b.is_watched = false,
            "OPTIONS" if t.value.split(',').any(|o| o.trim() == "watch") => b.is_watched = true,
            "RUN" if b.run_is_final => {}
            "RUN" => {
                if t.op != Op::Add {
                    b.run.clear();
                }
                b.run_is_final = t.op == Op::Final;
                b.run.push((expanded(&t.value, device, &b.env), source.clone()));
            }
            "GOTO" => {
                let later = file.label(&t.value).is_some_and(|l| l > line.number);
                b.goto = later.then(|| t.value.clone());
            }
            _ => {}
        }
    }
}

fn name_of(device: Device<'_>) -> String {
    if device.is_partition { device.class.partition() } else { device.class.kernel.clone() }
}

/// `%k`, `$kernel` and `$env{KEY}` by their values.
fn expanded(value: &str, device: Device<'_>, env: &BTreeMap<String, String>) -> String {
    let name = name_of(device);
    let mut out = value.replace("%k", &name).replace("$kernel", &name).replace("$name", &name);
    for (key, value) in env {
        out = out.replace(&format!("$env{{{key}}}"), value).replace(&format!("%E{{{key}}}"), value);
    }
    out
}

/// The file of the disk that a path of the device is; a partition has files of its own, which no rule changes.
fn path_of(path: &str, device: Device<'_>) -> Option<String> {
    match (device.is_partition, path.strip_prefix("../")) {
        (true, Some(of_disk)) => Some(of_disk.into()),
        (true, None) | (false, Some(_)) => None,
        (false, None) => Some(path.into()),
    }
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
                "builtin" if t.value.starts_with("usb_id") => {
                    class.parents.iter().any(|p| p.subsystem == "usb").into()
                }
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
                let value = parent.attrs.get(&t.attribute).map(|v| (v != "?").then(|| v.clone()));
                let usual = USUAL.contains(&t.attribute.as_str()) && !parent.subsystem.is_empty();
                self.value(t, value.or_else(|| usual.then_some(None)))
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
            None if there && self.may_have(key) => any_value(t),
            None => compare(t, ""),
        }
    }

    /// Whether some devices of the class have a property that is not among its facts.
    fn may_have(&self, key: &str) -> bool {
        let all = ["MAJOR", "MINOR", "DISKSEQ", "ID_FS_", "ID_PART_TABLE_"];
        let of_drives = ["ID_SERIAL", "ID_WWN", "ID_REVISION", "ID_USB_", "ID_ATA_", "ID_PATH"];
        let is = |of: &[&str]| of.iter().any(|k| key.starts_with(k));
        is(&all) || is(&of_drives) && self.device.class.env.contains_key("ID_SERIAL")
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
    let attribute =
        if t.attribute.is_empty() { String::new() } else { format!("{{{}}}", t.attribute) };
    let on = format!("{}{attribute}==\"{}\"", t.key, t.value);
    Tri::Unknown { on, negated: t.op == Op::IsNot }
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
    let found = match t.any_case {
        true => glob::matches(&t.value.to_lowercase(), &text.to_lowercase()),
        false => glob::matches(&t.value, text),
    };
    (found == (t.op != Op::IsNot)).into()
}
