//! Which scheduler each class gets, at boot and after a later `change` event.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::class::Class;
use crate::flags::{self, Flag, Seen};
use crate::policy::Policy;
use crate::queue::{Machine, Queue};
use crate::udev::{self, Branch, Device, Event, Hits};

/// A scheduler that a class can end with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The scheduler; `None`: it has none.
    pub scheduler: Option<String>,
    /// The line that decided (`60-x.rules:3`); `None`: the kernel's default.
    pub by: Option<String>,
    /// Matches that must hold for it, as far as they are not known.
    pub when: Vec<String>,
    /// Requests that the queue takes then.
    pub nr_requests: i64,
    /// Other files that lines set: file, value, line.
    pub set: Vec<(String, String, String)>,
}

/// What a class gets.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The class.
    pub class: String,
    /// A few words for people.
    pub title: String,
    /// Name of the kernel.
    pub kernel: String,
    /// The device of the catalogue that stands for it.
    pub device: Option<String>,
    /// The kernel's default.
    pub default: Option<String>,
    /// At the end of a boot. More than one: it depends.
    pub boot: Vec<Outcome>,
    /// After the first `change` event: the disk was closed after writing.
    pub later: Vec<Outcome>,
}

/// A judged policy.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// Class by class.
    pub classes: Vec<Verdict>,
    /// What an author would want to know, the weightiest first.
    pub flags: Vec<Flag>,
}

/// Applies a policy to classes of devices.
#[must_use]
pub fn judge(policy: &Policy, machine: &Machine, classes: &[Class]) -> Judgement {
    let (mut hits, mut seen) = (Hits::new(), Seen::default());
    let of = |class: &Class| one(policy, machine, class, &mut hits, &mut seen);
    let verdicts: Vec<Verdict> = classes.iter().map(of).collect();
    let flags = flags::all(policy, machine, classes, &verdicts, &hits, &seen);
    Judgement { classes: verdicts, flags }
}

fn one(
    policy: &Policy,
    machine: &Machine,
    class: &Class,
    hits: &mut Hits,
    seen: &mut Seen,
) -> Verdict {
    let new = Queue::new(class, machine);
    let default = new.scheduler.clone();
    let mut branches = vec![Branch::new(new)];
    // A disk of dm has its table at `change` only. Hidden disks have no events.
    let first = if class.late { Event::Change } else { Event::Add };
    branches = events(policy, class, first, branches, hits, seen);
    for b in &mut branches {
        for w in &policy.table {
            w.apply(class, &mut b.queue);
        }
        for w in &policy.writes {
            w.apply(class, &mut b.queue);
        }
        for w in &policy.tlp {
            w.apply(class, &mut b.queue);
        }
        // A disk has one instance: the first section that takes it.
        if let Some(profile) = policy.profiles.iter().find(|p| p.takes(class)) {
            profile.apply(&mut b.queue);
        }
        seen.note(class, &b.queue, true);
    }
    let boot = outcomes(&branches);
    let (watched, still): (Vec<_>, Vec<_>) = branches.into_iter().partition(|b| b.is_watched);
    let mut later = events(policy, class, Event::Change, watched, hits, seen);
    for b in &later {
        seen.note(class, &b.queue, false);
    }
    later.extend(still);
    Verdict {
        class: class.name.clone(),
        title: class.title.clone(),
        kernel: class.kernel.clone(),
        device: class.device.clone(),
        default,
        boot,
        later: outcomes(&later),
    }
}

/// An event of the disk, then of its first partition.
fn events<'a>(
    policy: &Policy,
    class: &'a Class,
    event: Event,
    branches: Vec<Branch<'a>>,
    hits: &mut Hits,
    seen: &mut Seen,
) -> Vec<Branch<'a>> {
    if class.hidden {
        return branches;
    }
    let mut now = branches;
    // Partitions of dm are disks of dm.
    let devices = if class.late { &[false][..] } else { &[false, true] };
    for is_partition in devices.iter().copied() {
        let device = Device { class, is_partition };
        let mut next = Vec::new();
        for mut b in now {
            if !is_partition {
                b.queue.next_event();
            }
            next.extend(udev::run(&policy.rules, event, device, b, hits));
        }
        now = next;
    }
    for b in &now {
        seen.is_cut |= b.is_cut;
    }
    now
}

/// The different ends. That with the fewest assumptions comes first.
fn outcomes(branches: &[Branch<'_>]) -> Vec<Outcome> {
    let mut out: Vec<Outcome> = Vec::new();
    let assumed = |b: &Branch<'_>| {
        b.assumed.iter().filter(|(_, h)| **h).map(|(a, _)| a.clone()).collect::<Vec<_>>()
    };
    let mut sorted: Vec<&Branch<'_>> = branches.iter().collect();
    sorted.sort_by_key(|b| assumed(b).len());
    let mut ends = BTreeSet::new();
    for b in sorted {
        let q = &b.queue;
        if !ends.insert((q.scheduler.clone(), q.by.clone())) {
            continue;
        }
        let set = q.set.iter().map(|(file, (value, by))| (file.clone(), value.clone(), by.clone()));
        out.push(Outcome {
            scheduler: q.scheduler.clone(),
            by: q.by.clone(),
            when: assumed(b),
            nr_requests: q.nr_requests(),
            set: set.collect(),
        });
    }
    out
}
