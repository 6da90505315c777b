//! The other forms in which schedulers are set.

use iosched_schedulers::registry::family;
use iosched_types::Diagnostic;

use crate::class::Class;
use crate::glob;
use crate::queue::Queue;

/// A form of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Udev,
    Tuned,
    Tlp,
    Writes,
    Table,
}

impl Form {
    /// The form of a file, by its content; an empty file of rules masks others.
    pub(crate) fn of(path: &str, text: &str) -> Option<Form> {
        let lines =
            || text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with(['#', ';']));
        let section = |l: &str| l.starts_with('[') && l.ends_with(']');
        match () {
            () if path.ends_with(".rules") => Some(Form::Udev),
            () if lines().any(|l| l.contains("==\"") || l.contains("}=\"")) => Some(Form::Udev),
            () if lines()
                .any(|l| l.starts_with("DISK_IOSCHED") || l.starts_with("DISK_DEVICES")) =>
            {
                Some(Form::Tlp)
            }
            () if lines().any(section) => Some(Form::Tuned),
            () if lines().any(|l| written(l).is_some()) => Some(Form::Writes),
            () if lines().all(|l| l.contains('=')) && lines().any(names_scheduler) => {
                Some(Form::Table)
            }
            () => None,
        }
    }
}

/// Whether a row ends in the name of a scheduler.
fn names_scheduler(line: &str) -> bool {
    let value = line.split_once('=').map_or("", |(_, v)| v.trim().trim_matches('"'));
    value == "none" || family(value).is_ok()
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let plain = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim()));
    plain.filter(|(_, l)| !l.is_empty() && !l.starts_with(['#', ';']))
}

fn source(path: &str, line: usize) -> String {
    format!("{}:{line}", path.rsplit('/').next().unwrap_or(path))
}

fn problem(path: &str, number: usize, line: &str, message: String) -> Diagnostic {
    let mut d = Diagnostic::file(path, message);
    (d.line, d.column, d.width) = (number, 1, line.chars().count());
    d.text = line.into();
    d
}

/// A write at boot.
#[derive(Clone, Debug)]
pub(crate) struct BootWrite {
    pub(crate) disk: String,
    file: String,
    value: String,
    pub(crate) source: String,
}

impl BootWrite {
    pub(crate) fn is_of(&self, class: &Class) -> bool {
        glob::matches(&self.disk, &class.kernel)
    }

    pub(crate) fn apply(&self, class: &Class, queue: &mut Queue<'_>) {
        if self.is_of(class) {
            queue.write(&self.file, &self.value, &self.source);
        }
    }
}

/// `w /sys/block/sda/queue/scheduler - - - - bfq`, `block/sda/queue/scheduler = bfq`: disk, file, value.
fn written(line: &str) -> Option<(String, String, String)> {
    let (path, value) = match line.strip_prefix('w') {
        Some(rest) if rest.starts_with(['+', '!', '-', ' ', '\t', '=', '~', '^', '$']) => {
            let mut words =
                rest.trim_start_matches(['+', '!', '-', '=', '~', '^', '$']).split_whitespace();
            (words.next()?.to_string(), words.skip(4).collect::<Vec<_>>().join(" "))
        }
        _ => {
            let (path, value) = line.split_once('=')?;
            (path.trim().to_string(), value.trim().to_string())
        }
    };
    let rest = path.trim_start_matches('/').trim_start_matches("sys/");
    let rest = rest.strip_prefix("block/").or_else(|| rest.strip_prefix("class/block/"))?;
    let (disk, file) = rest.split_once('/')?;
    Some((disk.into(), file.into(), value))
}

pub(crate) fn writes(path: &str, text: &str) -> Vec<BootWrite> {
    let of = |(number, line)| {
        let (disk, file, value) = written(line)?;
        Some(BootWrite { disk, file, value, source: source(path, number) })
    };
    numbered(text).filter_map(of).collect()
}

/// A disk and the scheduler that TLP gives it.
#[derive(Clone, Debug)]
pub(crate) struct Tlp {
    pub(crate) disk: String,
    scheduler: String,
    pub(crate) source: String,
}

impl Tlp {
    pub(crate) fn is_of(&self, class: &Class) -> bool {
        self.disk == class.kernel
    }

    pub(crate) fn apply(&self, class: &Class, queue: &mut Queue<'_>) {
        if self.is_of(class) && self.scheduler != "keep" {
            queue.write("queue/scheduler", &self.scheduler, &self.source);
        }
    }
}

/// The disks of TLP's own settings.
const TLP_DISKS: &str = "nvme0n1 sda";

/// `DISK_DEVICES="nvme0n1 sda"` and `DISK_IOSCHED="none bfq"`, word by word.
pub(crate) fn tlp(path: &str, text: &str, problems: &mut Vec<Diagnostic>) -> Vec<Tlp> {
    let find = |key: &str| {
        let found = numbered(text)
            .filter_map(|(n, l)| Some((n, l.strip_prefix(key)?.trim_start().strip_prefix('=')?)));
        found.last().map(|(n, v)| (n, v.trim().trim_matches('"').to_string()))
    };
    let Some((number, schedulers)) = find("DISK_IOSCHED") else { return Vec::new() };
    let own = find("DISK_DEVICES").map_or_else(|| TLP_DISKS.to_string(), |(_, disks)| disks);
    let more = find("DISK_DEVICES+").map_or_else(String::new, |(_, disks)| format!(" {disks}"));
    let disks = own + &more;
    let by_id = |d: &&str| d.contains('-') && !d.starts_with("dm-");
    if let Some(id) = disks.split_whitespace().find(by_id) {
        let text =
            format!("{id}: disks named by id are of no class here; name them as in /sys/block");
        problems.push(problem(path, number, &disks, text));
    }
    let pairs = disks.split_whitespace().zip(schedulers.split_whitespace());
    let of = |(disk, scheduler): (&str, &str)| Tlp {
        disk: disk.into(),
        scheduler: scheduler.into(),
        source: source(path, number),
    };
    pairs.map(of).collect()
}

/// A `[disk]` section of a profile of TuneD.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    devices: Option<String>,
    /// Files, values and the lines that set them.
    writes: Vec<(String, String, String)>,
}

impl Profile {
    /// TuneD takes disks that are not removable, of the usual buses or virtual; `devices=` narrows them.
    pub(crate) fn takes(&self, class: &Class) -> bool {
        let buses = ["scsi", "virtio", "xen", "nvme", "mmc"];
        let bus = class.parents.first().is_none_or(|p| buses.contains(&p.subsystem.as_str()));
        let named = self.devices.as_ref().is_none_or(|all| {
            let words: Vec<&str> = all.split([',', ' ']).filter(|w| !w.is_empty()).collect();
            let (no, yes): (Vec<&str>, Vec<&str>) = words.iter().partition(|w| w.starts_with('!'));
            let is = |w: &&str| glob::matches(w.trim_start_matches('!'), &class.kernel);
            (yes.is_empty() || yes.iter().any(is)) && !no.iter().any(is)
        });
        !class.removable && bus && named && !class.hidden
    }

    pub(crate) fn apply(&self, queue: &mut Queue<'_>) {
        for (file, value, source) in &self.writes {
            queue.write(file, value, source);
        }
    }
}

/// The `[disk]` sections of a profile. Of one option in two sections that reach a disk, the first section has it.
pub(crate) fn tuned(path: &str, text: &str, problems: &mut Vec<Diagnostic>) -> Vec<Profile> {
    let mut out = Vec::new();
    let (mut section, mut is_disk, mut profile) = (String::new(), false, Profile::default());
    let done = |section: &str, is_disk: bool, profile: Profile, out: &mut Vec<Profile>| {
        if (is_disk || section == "disk") && !profile.writes.is_empty() {
            out.push(profile);
        }
    };
    for (number, line) in numbered(text) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            done(&section, is_disk, std::mem::take(&mut profile), &mut out);
            (section, is_disk) = (name.into(), false);
            continue;
        }
        let Some((key, value)) = line.split_once('=').map(|(k, v)| (k.trim(), v.trim())) else {
            problems.push(problem(path, number, line, "a line without \"=\" is ignored".into()));
            continue;
        };
        let from = source(path, number);
        match (section.as_str(), key) {
            (_, "type") => is_disk |= value == "disk",
            (_, "enabled") if ["0", "false", "no"].contains(&value) => {
                profile.devices = Some("!*".into())
            }
            (_, "elevator" | "readahead") if value.contains("${") => {
                let text = "variables are not known here: this line is not judged";
                problems.push(problem(path, number, line, text.into()));
            }
            ("main", "include") => {
                let text = format!(
                    "include={value}: give the file of that profile, too, if it has a [disk]"
                );
                problems.push(problem(path, number, line, text));
            }
            (_, "devices") => profile.devices = Some(value.into()),
            (_, "devices_udev_regex") => {
                let text = "devices_udev_regex is not judged: the section counts for no disk";
                problems.push(problem(path, number, line, text.into()));
                profile.devices = Some("!*".into());
            }
            (_, "elevator") => profile.writes.push(("queue/scheduler".into(), value.into(), from)),
            (_, "readahead") => {
                let kb = value.trim_start_matches(['=', '>', '<']);
                let kb = match kb.strip_suffix('s').and_then(|s| s.trim().parse::<u64>().ok()) {
                    Some(sectors) => (sectors / 2).to_string(),
                    None => kb.into(),
                };
                profile.writes.push(("queue/read_ahead_kb".into(), kb, from));
            }
            (_, "scheduler_quantum") => {
                let text = "scheduler_quantum was of cfq, which is gone since Linux 5.0";
                problems.push(problem(path, number, line, text.into()));
            }
            ("bootloader", "cmdline") if value.contains("elevator=") => {
                let text = "elevator= on the command line is ignored since Linux 5.0";
                problems.push(problem(path, number, line, text.into()));
            }
            _ => {}
        }
    }
    done(&section, is_disk, profile, &mut out);
    out
}

/// `class = scheduler`.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) class: String,
    scheduler: String,
    pub(crate) source: String,
}

impl Row {
    pub(crate) fn is_of(&self, class: &Class) -> bool {
        glob::matches(&self.class, &class.name) || glob::matches(&self.class, &class.kernel)
    }

    pub(crate) fn apply(&self, class: &Class, queue: &mut Queue<'_>) {
        if self.is_of(class) {
            queue.write("queue/scheduler", &self.scheduler, &self.source);
        }
    }
}

pub(crate) fn table(path: &str, text: &str, problems: &mut Vec<Diagnostic>) -> Vec<Row> {
    let mut out = Vec::new();
    for (number, line) in numbered(text) {
        let Some((class, scheduler)) = line.split_once('=') else { continue };
        let plain = |s: &str| s.trim().trim_matches('"').to_string();
        let (class, scheduler) = (plain(class), plain(scheduler));
        if scheduler.is_empty() || class.is_empty() {
            problems.push(problem(path, number, line, "a row is class = scheduler".into()));
            continue;
        }
        out.push(Row { class, scheduler, source: source(path, number) });
    }
    out
}
