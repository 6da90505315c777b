//! The queue of a disk as writes to its files change it.

use std::collections::BTreeMap;

use iosched_schedulers::registry::{SCHEDULERS, resolve};
use iosched_schedulers::{BlockPath, Descriptor, KernelVersion};

use crate::class::Class;

/// Most requests that a queue with a scheduler takes (16 times the tags of a scheduler).
const MOST_REQUESTS: i64 = 2048;
/// Kernels from here on have no files for queues that pass bios on.
const HIDES_FILES: KernelVersion = KernelVersion(6, 5, 0);
/// From here on a host-managed disk takes schedulers that keep the order of its writes only ...
const ZONES_IN_ORDER: KernelVersion = KernelVersion(5, 4, 0);
/// ... to here: blk-mq keeps it under any.
const ZONES_BY_BLK_MQ: KernelVersion = KernelVersion(6, 10, 0);
/// Loop devices ask for no scheduler from here on.
const LOOP_ASKS: KernelVersion = KernelVersion(5, 14, 0);
/// Kernels from here on have blk-mq only.
const ONLY_MQ: KernelVersion = KernelVersion(5, 0, 0);

/// The machine that rules are judged for.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its kernel.
    pub kernel: KernelVersion,
    /// The schedulers that its kernel can load; empty: all that mainline had then.
    pub schedulers: Vec<String>,
}

/// Where a value comes from: `60-x.rules:3`.
pub(crate) type Source = String;

/// A write that did not do what it says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Refused {
    pub(crate) source: Source,
    pub(crate) reason: String,
}

/// A change of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) source: Source,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// The files of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue<'a> {
    class: &'a Class,
    machine: &'a Machine,
    /// The scheduler; `None`: there is no such file.
    pub(crate) scheduler: Option<String>,
    /// The line that set it; `None`: the kernel.
    pub(crate) by: Option<Source>,
    /// Tunables of the scheduler, and other files, that were written.
    pub(crate) set: BTreeMap<String, (String, Source)>,
    pub(crate) refused: Vec<Refused>,
    pub(crate) changes: Vec<Change>,
    /// Tunables that a change of the scheduler put back: `(tunable, its line, the line that put it back)`.
    pub(crate) lost: Vec<(String, Source, Source)>,
}

impl Machine {
    /// Whether disks of a class have the single-queue path.
    fn is_legacy(&self, class: &Class) -> bool {
        // Those drivers were on blk-mq long before.
        let early = ["loop", "nvme", "vd", "nbd", "xvd"];
        let on_mq = early.iter().any(|name| class.kernel.starts_with(name));
        self.kernel < ONLY_MQ && !on_mq && !class.bio_based
    }

    /// The schedulers that a queue of the class can have, in the order in which its file lists them.
    pub(crate) fn offered(&self, class: &Class) -> Vec<&'static Descriptor> {
        let path = if self.is_legacy(class) { BlockPath::Legacy } else { BlockPath::Mq };
        let able = |d: &&&Descriptor| {
            let family = resolve(d.name, self.kernel).is_ok_and(|(_, g)| d.origin(g).is_none());
            let built = match self.schedulers.is_empty() {
                true => family,
                false => self.schedulers.iter().any(|s| s == d.name),
            };
            d.path == path && built
        };
        SCHEDULERS.iter().filter(able).copied().collect()
    }

    /// The scheduler that the kernel gives a new disk.
    fn default_of(&self, class: &Class) -> Option<String> {
        if class.bio_based {
            return (self.kernel < HIDES_FILES).then(|| "none".into());
        }
        let has = |name: &str| self.offered(class).iter().any(|d| d.name == name);
        let default = match () {
            () if class.kernel.starts_with("loop") && self.kernel >= LOOP_ASKS => "none",
            () if self.is_legacy(class) => {
                ["cfq", "deadline", "noop"].into_iter().find(|n| has(n)).unwrap_or("noop")
            }
            () if (class.hw_queues == 1 || class.shared_tags) && has("mq-deadline") => {
                "mq-deadline"
            }
            () => "none",
        };
        Some(default.into())
    }
}

impl<'a> Queue<'a> {
    /// A new disk.
    pub(crate) fn new(class: &'a Class, machine: &'a Machine) -> Self {
        Queue {
            class,
            machine,
            scheduler: machine.default_of(class),
            by: None,
            set: BTreeMap::new(),
            refused: Vec::new(),
            changes: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// A new event of the same disk: the values stay, what is said of writes begins anew.
    pub(crate) fn next_event(&mut self) {
        self.refused.clear();
        self.changes.clear();
        self.lost.clear();
    }

    /// Requests that the queue takes.
    pub(crate) fn nr_requests(&self) -> i64 {
        let depth = i64::from(self.class.depth);
        match (self.set.get("queue/nr_requests"), self.scheduler.as_deref()) {
            (Some((n, _)), _) => n.parse().unwrap_or(depth),
            (None, _) if self.machine.is_legacy(self.class) => 128,
            (None, None | Some("none")) => depth,
            (None, Some(_)) => 2 * depth.min(128),
        }
    }

    /// The text of a file; `None`: there is none. `Some(None)`: it differs from drive to drive.
    pub(crate) fn read(&self, path: &str) -> Option<Option<String>> {
        let known = |text: &str| Some(Some(text.to_string()));
        let bit = |b: bool| known(if b { "1" } else { "0" });
        if let Some((value, _)) = self.set.get(path) {
            return known(value);
        }
        match path {
            "queue/scheduler" => self.list().map(Some),
            "queue/rotational" => bit(self.class.rotational),
            "queue/zoned" => known(&self.class.zoned),
            "queue/nr_requests" => known(&self.nr_requests().to_string()),
            "removable" => bit(self.class.removable),
            "mq/0" if !self.class.bio_based => Some(None),
            "queue/read_ahead_kb" | "bdi/read_ahead_kb" => known("128"),
            "ro" | "hidden" | "ext_range" | "range" | "size" | "dev" | "uevent" | "stat" => {
                Some(None)
            }
            _ => self.read_more(path),
        }
    }

    fn read_more(&self, path: &str) -> Option<Option<String>> {
        if let Some(value) = self.class.attrs.get(path) {
            return Some((value != "?").then(|| value.clone()));
        }
        if let Some(n) =
            path.strip_prefix("mq/").and_then(|n| n.split('/').next()?.parse::<u16>().ok())
        {
            return (!self.class.bio_based && n < self.class.hw_queues).then_some(None);
        }
        if let Some(name) = path.strip_prefix("queue/iosched/") {
            let tunables = self.descriptor()?.tunables;
            return tunables.iter().any(|t| t.name == name).then_some(None);
        }
        if let Some(rest) = path.strip_prefix("device/") {
            let parent = self.class.parents.first()?;
            let value = parent.attrs.get(rest)?;
            return Some((value != "?").then(|| value.clone()));
        }
        // Other files of a queue exist; their values are not known.
        let of_requests =
            ["queue/rq_affinity", "queue/io_timeout", "queue/wbt_lat_usec", "queue/nomerges"];
        if of_requests.contains(&path) {
            return (!self.class.bio_based || self.machine.kernel < HIDES_FILES).then_some(None);
        }
        (path.starts_with("queue/") && !path.starts_with("queue/iosched")).then_some(None)
    }

    /// `[none] mq-deadline kyber bfq`.
    fn list(&self) -> Option<String> {
        let now = self.scheduler.as_deref()?;
        if self.class.bio_based {
            return Some(now.into());
        }
        let mut names: Vec<&str> =
            self.machine.offered(self.class).iter().map(|d| d.name).collect();
        if !names.contains(&"none") && !self.machine.is_legacy(self.class) {
            names.insert(0, "none");
        }
        let mark = |n: &&str| if *n == now { format!("[{n}]") } else { (*n).to_string() };
        Some(names.iter().map(mark).collect::<Vec<_>>().join(" "))
    }

    fn descriptor(&self) -> Option<&'static Descriptor> {
        let now = self.scheduler.as_deref()?;
        self.machine.offered(self.class).into_iter().find(|d| d.name == now)
    }

    /// A write to a file of the disk. Whatever it does not do is noted.
    pub(crate) fn write(&mut self, path: &str, value: &str, source: &str) {
        let value = value.trim();
        let result = match path {
            "queue/scheduler" => self.switch(value, source),
            "queue/nr_requests" => self.limit(value),
            "queue/rotational" | "removable" => Ok(()),
            _ if self.read(path).is_none() => Err(self.no_file(path)),
            _ => Ok(()),
        };
        match result {
            Ok(()) if path == "queue/scheduler" => {}
            Ok(()) => _ = self.set.insert(path.into(), (value.into(), source.into())),
            Err(reason) => self.refused.push(Refused { source: source.into(), reason }),
        }
    }

    fn no_file(&self, path: &str) -> String {
        match path.strip_prefix("queue/iosched/") {
            Some(name) => {
                let now = self.scheduler.as_deref().unwrap_or("no scheduler");
                format!("{now} has no tunable {name}: the write fails")
            }
            None => format!("there is no {path}: the write fails"),
        }
    }

    fn switch(&mut self, wanted: &str, source: &str) -> Result<(), String> {
        let Some(now) = self.scheduler.clone() else {
            return Err("it passes its I/O on and has no scheduler: the write fails".into());
        };
        if self.class.bio_based {
            return Err("it passes its I/O on: the write is accepted and has no effect".into());
        }
        let wanted = match wanted {
            "deadline" if !self.machine.is_legacy(self.class) => "mq-deadline",
            other => other,
        };
        let offered = self.machine.offered(self.class).iter().any(|d| d.name == wanted);
        let none = wanted == "none" && !self.machine.is_legacy(self.class);
        if !offered && !none {
            return Err(format!(
                "Linux {} has no scheduler \"{wanted}\" for it (EINVAL): {now} stays",
                self.machine.kernel
            ));
        }
        // Zones had to be written in order, which only mq-deadline kept, until blk-mq did it for all.
        let in_order = (ZONES_IN_ORDER..ZONES_BY_BLK_MQ).contains(&self.machine.kernel);
        if self.class.zoned == "host-managed"
            && in_order
            && !["mq-deadline", "none"].contains(&wanted)
        {
            return Err(format!(
                "Linux {} takes only mq-deadline and none for a host-managed disk (EINVAL): {now} stays",
                self.machine.kernel
            ));
        }
        if wanted == now {
            self.by = Some(source.into());
            return Ok(());
        }
        // A new instance has all its own values at their defaults.
        let own = |path: &str| path.starts_with("queue/iosched/") || path == "queue/nr_requests";
        let lost: Vec<String> = self.set.keys().filter(|p| own(p)).cloned().collect();
        for path in lost {
            if let Some((_, line)) = self.set.remove(&path) {
                self.lost.push((path, line, source.into()));
            }
        }
        self.changes.push(Change { source: source.into(), from: now, to: wanted.into() });
        self.scheduler = Some(wanted.into());
        self.by = Some(source.into());
        Ok(())
    }

    fn limit(&mut self, value: &str) -> Result<(), String> {
        if self.scheduler.is_none() || self.class.bio_based {
            return Err("it has no queue of requests: the write has no effect".into());
        }
        let most = match self.scheduler.as_deref() {
            _ if self.machine.is_legacy(self.class) => i64::MAX,
            Some("none") => i64::from(self.class.depth),
            _ => MOST_REQUESTS,
        };
        match value.parse::<u32>().map(i64::from) {
            Ok(n) if n <= most => Ok(()),
            Ok(_) => Err(format!("nr_requests {value} is over its limit of {most} (EINVAL)")),
            Err(_) => Err(format!("nr_requests \"{value}\" is no number (EINVAL)")),
        }
    }
}
