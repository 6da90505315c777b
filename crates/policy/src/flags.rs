//! Remarks on a policy: rules that never hold, exemptions without effect, refused values, classes caught or missed.

use std::collections::{BTreeMap, BTreeSet};

use iosched_types::nearest::did_you_mean;
use serde::Serialize;

use crate::class::Class;
use crate::judge::Verdict;
use crate::policy::Policy;
use crate::queue::{Machine, Queue};
use crate::udev::{File, Hits, Line, Op, SETS_ID, Token};

/// A kind of remark, the weightiest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A line that holds for no class.
    Never,
    /// A match that exempts nothing.
    Exemption,
    /// A value that the kernel refuses.
    Refused,
    /// A tunable that a later change of the scheduler puts back.
    Lost,
    /// Classes that a match of rotating disks takes with it.
    Accident,
    /// A class that goes without while its sibling has a rule.
    Missed,
    /// A file's choice that another file replaces.
    Overridden,
    /// Boot and a later `change` end differently.
    Change,
    /// What else comes with the scheduler.
    Effect,
}

/// A remark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flag {
    /// Its kind.
    pub kind: Kind,
    /// `60-x.rules:3`.
    pub place: String,
    /// A sentence.
    pub text: String,
    /// The classes that it is about.
    pub classes: Vec<String>,
}

/// What was seen of writes while classes were judged: remark → classes.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    refused: BTreeMap<(String, String), BTreeSet<String>>,
    lost: BTreeMap<(String, String), BTreeSet<String>>,
    replaced: BTreeMap<(String, String), BTreeSet<String>>,
    /// More ways than were followed.
    pub(crate) is_cut: bool,
}

impl Seen {
    pub(crate) fn note(&mut self, class: &Class, queue: &Queue<'_>, is_boot: bool) {
        let name = || class.name.clone();
        for r in &queue.refused {
            self.refused.entry((r.source.clone(), r.reason.clone())).or_default().insert(name());
        }
        for (file, line, by) in &queue.lost {
            let own = file.trim_start_matches("queue/").trim_start_matches("iosched/");
            let text = format!(
                "{own} is put back to its default by the scheduler's change in {by}: set the scheduler first"
            );
            self.lost.entry((line.clone(), text)).or_default().insert(name());
        }
        for pair in queue.changes.windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            let file = |s: &str| s.rsplit_once(':').map_or(s.to_string(), |(f, _)| f.to_string());
            if is_boot && file(&a.source) != file(&b.source) && a.to != b.to {
                let text = format!("{} is replaced by {} of {}", a.to, b.to, b.source);
                self.replaced.entry((a.source.clone(), text)).or_default().insert(name());
            }
        }
    }
}

pub(crate) fn all(
    policy: &Policy,
    machine: &Machine,
    classes: &[Class],
    verdicts: &[Verdict],
    hits: &Hits,
    seen: &Seen,
) -> Vec<Flag> {
    let mut out = Vec::new();
    for (i, file) in policy.rules.iter().enumerate() {
        for line in &file.lines {
            if !hits.contains(&(i, line.number)) && sets(line) {
                out.push(never(file, line, classes));
            }
            out.extend(exemption(file, line));
            out.extend(brackets(file, line));
        }
    }
    out.extend(nobody(policy, classes));
    let noted = [
        (Kind::Refused, &seen.refused),
        (Kind::Lost, &seen.lost),
        (Kind::Overridden, &seen.replaced),
    ];
    for (kind, map) in noted {
        for ((place, text), classes) in map {
            let classes = classes.iter().cloned().collect();
            out.push(Flag { kind, place: place.clone(), text: text.clone(), classes });
        }
    }
    out.extend(accidents(policy, classes, verdicts));
    out.extend(missed(classes, verdicts));
    out.extend(changed(verdicts));
    out.extend(effects(machine, classes, verdicts));
    if seen.is_cut {
        let text = "more ways than 32 follow from unknown matches: the rest counts as if they did not hold";
        out.push(Flag {
            kind: Kind::Effect,
            place: String::new(),
            text: text.into(),
            classes: Vec::new(),
        });
    }
    out.sort_by(|a, b| (a.kind, &a.place).cmp(&(b.kind, &b.place)));
    out
}

/// Rows of other forms that name no class.
fn nobody(policy: &Policy, classes: &[Class]) -> Vec<Flag> {
    let any = |is: &dyn Fn(&Class) -> bool| classes.iter().any(is);
    let table = policy.table.iter().map(|r| (any(&|c| r.is_of(c)), &r.class, &r.source));
    let writes = policy.writes.iter().map(|w| (any(&|c| w.is_of(c)), &w.disk, &w.source));
    let tlp = policy.tlp.iter().map(|t| (any(&|c| t.is_of(c)), &t.disk, &t.source));
    let names = || classes.iter().map(|c| c.name.as_str());
    let flag = |(found, name, place): (bool, &String, &String)| {
        let near = did_you_mean(name, names());
        let help = if near.is_empty() { String::new() } else { format!("; {near}") };
        let text =
            format!("\"{name}\" is none of the {} classes that are judged{help}", classes.len());
        (!found).then(|| Flag {
            kind: Kind::Never,
            place: place.clone(),
            text,
            classes: Vec::new(),
        })
    };
    table.chain(writes).chain(tlp).filter_map(flag).collect()
}

/// Whether a line writes a file of the queue.
fn sets(line: &Line) -> bool {
    line.tokens.iter().any(|t| t.key == "ATTR" && !t.is_match())
}

fn place(file: &File, line: &Line) -> String {
    format!("{}:{}", file.name, line.number)
}

/// A line that holds for no class, and why, where that can be said.
fn never(file: &File, line: &Line, classes: &[Class]) -> Flag {
    let matches = || line.tokens.iter().filter(|t| t.is_match());
    let early = |t: &&Token| {
        t.key == "ENV" && t.attribute.starts_with("ID_") && file.name.as_str() <= SETS_ID
    };
    let up: Vec<&Token> = matches()
        .filter(|t| ["KERNELS", "SUBSYSTEMS", "DRIVERS", "ATTRS"].contains(&t.key.as_str()))
        .collect();
    let queue_above =
        up.len() > 1 && up.iter().any(|t| t.key == "ATTRS" && t.attribute.starts_with("queue/"));
    let kernel = matches().find(|t| t.key == "KERNEL" && t.op == Op::Is);
    let partitions = kernel.is_some_and(|k| {
        let is = |name: &str| crate::glob::matches(&k.value, name);
        classes.iter().any(|c| is(&c.partition())) && !classes.iter().any(|c| is(&c.kernel))
    });
    let why = if let Some(t) = matches().find(early) {
        format!(
            "{} is set by {SETS_ID}, which is read after this file: name the file 61- or later",
            t.attribute
        )
    } else if queue_above {
        "all matches with a plural key must hold on one device, and no device has both".into()
    } else if partitions {
        "its KERNEL matches partitions only, which have no queue".into()
    } else {
        let text =
            format!("the line holds for none of the {} classes that are judged", classes.len());
        return Flag { kind: Kind::Never, place: place(file, line), text, classes: Vec::new() };
    };
    Flag {
        kind: Kind::Never,
        place: place(file, line),
        text: format!("the line never holds: {why}"),
        classes: Vec::new(),
    }
}

/// `[none]*` asks whether the file begins with one of four letters.
fn brackets(file: &File, line: &Line) -> Option<Flag> {
    let word = |p: &str| {
        p.strip_prefix('[')?.split_once(']').map(|(w, _)| w.to_string()).filter(|w| w.len() > 1)
    };
    let of = |t: &&Token| {
        t.is_match() && t.key.starts_with("ATTR") && t.attribute.ends_with("queue/scheduler")
    };
    let name = line.tokens.iter().filter(of).find_map(|t| t.value.split('|').find_map(word))?;
    let text = format!(
        "brackets in a pattern are a set of characters, so this is not met where {name} is in use: write [[]{name}]*"
    );
    Some(Flag { kind: Kind::Never, place: place(file, line), text, classes: Vec::new() })
}

/// `SUBSYSTEMS!="usb"` holds on the disk itself, whatever is above it.
fn exemption(file: &File, line: &Line) -> Option<Flag> {
    let plural = |t: &&Token| {
        let own = match t.key.as_str() {
            "SUBSYSTEMS" => "block",
            "DRIVERS" => "",
            _ => return false,
        };
        t.op == Op::IsNot && !crate::glob::matches(&t.value, own)
    };
    let alone = line
        .tokens
        .iter()
        .filter(|t| t.is_match() && t.key.ends_with('S') && t.key != "SYMLINKS")
        .count()
        == 1;
    let t = line.tokens.iter().find(plural).filter(|_| alone)?;
    let text = format!(
        "{} exempts nothing: the disk itself is of the chain and meets it; write {}==\"{}\", GOTO=\"…\" before",
        t.text, t.key, t.value
    );
    Some(Flag { kind: Kind::Exemption, place: place(file, line), text, classes: Vec::new() })
}

fn accidents(policy: &Policy, classes: &[Class], verdicts: &[Verdict]) -> Vec<Flag> {
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let rotating = |by: &str| {
        let found = policy.rules.iter().flat_map(|f| f.lines.iter().map(move |l| (f, l)));
        let mut at = found.filter(|(f, l)| place(f, l) == by);
        at.any(|(_, l)| {
            l.tokens.iter().any(|t| t.is_match() && t.attribute.ends_with("queue/rotational"))
        })
    };
    for (_, v) in classes.iter().zip(verdicts).filter(|(c, _)| c.rotational && !c.spins()) {
        if let Some(by) = v.boot.first().and_then(|o| o.by.clone()).filter(|by| rotating(by)) {
            out.entry(by).or_default().push(v.class.clone());
        }
    }
    let text =
        "its match of rotating disks takes these, too, which say that they rotate and do not";
    let flag = |(place, classes)| Flag { kind: Kind::Accident, place, text: text.into(), classes };
    out.into_iter().map(flag).collect()
}

fn missed(classes: &[Class], verdicts: &[Verdict]) -> Vec<Flag> {
    let find = |name: &str| verdicts.iter().find(|v| v.class == name);
    let mut out = Vec::new();
    for (c, b) in classes.iter().zip(verdicts) {
        let Some(a) = c.sibling.as_deref().and_then(find) else { continue };
        let by = |v: &Verdict| v.boot.first().and_then(|o| o.by.clone());
        if let (Some(place), None) = (by(a), by(b)) {
            let text = format!(
                "the pattern takes {} and not {}: use sd*[!0-9] or nvme*n*",
                a.kernel, b.kernel
            );
            out.push(Flag { kind: Kind::Missed, place, text, classes: vec![b.class.clone()] });
        }
    }
    let hidden = classes.iter().find(|c| c.hidden);
    let sibling = hidden.and_then(|c| find(c.beside.as_deref()?));
    if let Some((nvme, head)) = sibling.zip(hidden)
        && let Some(place) = nvme.boot.first().and_then(|o| o.by.clone())
    {
        let text = "drives with native multipath are not reached: their head has no scheduler, their paths send no events";
        out.push(Flag {
            kind: Kind::Missed,
            place,
            text: text.into(),
            classes: vec![head.name.clone()],
        });
    }
    out
}

fn changed(verdicts: &[Verdict]) -> Vec<Flag> {
    let mut out: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for v in verdicts {
        let Some((a, b)) = v.boot.first().zip(v.later.first()) else { continue };
        let name = |s: &Option<String>| s.clone().unwrap_or_else(|| "none".into());
        let text = match a.scheduler == b.scheduler {
            false => format!(
                "{} at boot, {} after the first change event",
                name(&a.scheduler),
                name(&b.scheduler)
            ),
            true => {
                let differ = |f: &&(String, String, String)| {
                    !a.set.iter().any(|g| (&g.0, &g.1) == (&f.0, &f.1))
                };
                let Some((file, value, _)) = b.set.iter().find(differ) else { continue };
                format!("{file} is {value} only after the first change event")
            }
        };
        let place = b.by.clone().unwrap_or_default();
        out.entry((place, text)).or_default().push(v.class.clone());
    }
    let flag = |((place, text), classes)| Flag { kind: Kind::Change, place, text, classes };
    out.into_iter().map(flag).collect()
}

/// What comes with bfq and with fewer requests.
fn effects(machine: &Machine, classes: &[Class], verdicts: &[Verdict]) -> Vec<Flag> {
    let mut out: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (c, v) in classes.iter().zip(verdicts) {
        let Some(o) = v.boot.first() else { continue };
        let (Some(by), Some(now)) = (o.by.clone(), o.scheduler.as_deref()) else { continue };
        if v.default.as_deref() == Some(now) {
            continue;
        }
        if now == "bfq" {
            let text = "under bfq the writeback throttle (wbt_lat_usec) is off";
            out.entry((by.clone(), text.into())).or_default().push(c.name.clone());
        }
        let before = Queue::new(c, machine).nr_requests();
        if o.nr_requests < before && !o.set.iter().any(|s| s.0 == "queue/nr_requests") {
            let text = format!("nr_requests falls from {before} to {}", o.nr_requests);
            out.entry((by, text)).or_default().push(c.name.clone());
        }
    }
    let flag = |((place, text), classes)| Flag { kind: Kind::Effect, place, text, classes };
    out.into_iter().map(flag).collect()
}
