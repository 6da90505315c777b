//! The asks of a device's workloads, each with its figure under each scheduler.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iosched_experiment::record::Ask;

use super::facts::{Device, Job};
use super::{Kind, names};
use crate::answer::Candidate;
use crate::cells::{Cell, CellKey, CellSample, Cells, throughput_of};
use crate::measure::{TOTAL, derived, kind};
use crate::stats::{Compared, Judged, Lent, Summary, VerdictOptions, judge_together, summarize};

/// Jobs beyond so many are not told apart: the workload is asked as a whole.
const JOBS: usize = 8;
/// ... but where each has a share that is due.
const SHARING: usize = 64;
/// So many times as much is another service.
const TWICE: f64 = 2.0;
/// Figures of its own that a program's workload is asked by.
const OWN: usize = 4;

/// One ask of a workload.
pub(super) struct Asked<'a> {
    pub(super) workload: &'a str,
    /// As it is shown.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) measure: String,
    /// It runs beside jobs that ask for something: its throughput is a price, no goal.
    pub(super) background: bool,
    /// It runs beside a job that is to go before it: more of it is no gain.
    pub(super) behind: bool,
    /// What was moved in these waits, where that is twice as much under one scheduler as under the base.
    pub(super) moved: Option<Box<Asked<'a>>>,
    /// By scheduler, in the order of the candidates.
    pub(super) each: Vec<Option<(Cow<'a, CellSample>, Summary)>>,
    /// Each scheduler against the base; `None` of the base itself and where a side has nothing.
    pub(super) judged: Vec<Option<Judged>>,
}

impl Asked<'_> {
    pub(super) fn unit(&self) -> &str {
        self.each.iter().flatten().next().map_or("", |(s, _)| s.unit.as_str())
    }

    /// The mean of the runs, or the limit that they reached.
    pub(super) fn value(&self, i: usize) -> Option<f64> {
        self.each[i].as_ref().and_then(|(_, s)| s.centre())
    }

    /// Runs of a scheduler that have the figure, and how many of them gave up.
    pub(super) fn runs(&self, i: usize) -> (usize, usize) {
        let of = |s: &CellSample| {
            let rounds = &s.sample.rounds;
            (rounds.len(), rounds.iter().filter(|(_, o)| o.censored).count())
        };
        self.each[i].as_ref().map_or((0, 0), |(s, _)| of(s))
    }

    /// One gave up in every run, the other in none: whether the first stands ahead of the second by that.
    pub(super) fn parted(&self, i: usize, base: usize) -> Option<bool> {
        match (self.runs(i), self.runs(base)) {
            ((n, 0), (m, gave_up)) if n > 1 && m > 1 && gave_up == m => Some(true),
            ((n, gave_up), (m, 0)) if n > 1 && m > 1 && gave_up == n => Some(false),
            _ => None,
        }
    }

    /// How many runs of one are better than the same run of another, and how many both have.
    pub(super) fn agree(&self, i: usize, base: usize) -> (usize, usize) {
        let (Some((x, _)), Some((y, _))) = (&self.each[i], &self.each[base]) else {
            return (0, 0);
        };
        let of: BTreeMap<u32, f64> = y.sample.rounds.iter().map(|(r, o)| (*r, o.value)).collect();
        let pairs = x.sample.rounds.iter().filter_map(|(r, o)| Some((o.value, *of.get(r)?)));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let better =
            pairs.iter().filter(|(a, b)| super::times(*a, *b, x.better).is_some_and(|t| t > 1.0));
        (better.count(), pairs.len())
    }
}

/// The asks of a device. `here` are its candidates, `base` the position of the base among them.
pub(super) fn asked<'a>(
    device: &str,
    here: &[&Candidate],
    base: usize,
    facts: &'a Device,
    cells: &'a Cells,
) -> Vec<Asked<'a>> {
    let mut out: Vec<Asked<'a>> = Vec::new();
    for (workload, jobs) in &facts.workloads {
        let all: Vec<(&CellKey, &Cell)> = cells.at(device, workload).collect();
        let of: Vec<Option<&'a Cell>> = here
            .iter()
            .map(|c| all.iter().find(|(k, _)| k.scheduler == c.scheduler).map(|(_, cell)| *cell))
            .collect();
        let place = Place { device, workload, of, cells };
        let own = place.own();
        let first = |job: &str| jobs.iter().any(|j| j.0 == job && j.1 == Some(Ask::Share));
        let dues = jobs.iter().filter(|j| matches!(j.1, Some(Ask::Due(_)))).map(|j| j.0.as_str());
        let (dues, from) = (dues.collect::<Vec<&str>>(), out.len());
        match &jobs[..] {
            _ if !own.is_empty() => out.extend(own),
            [(_, ask)] => out.extend(place.ask("", workload, *ask)),
            several if several.len() <= if dues.is_empty() { JOBS } else { SHARING } => {
                let of = |(job, ask): &Job| match ask {
                    Some(Ask::Due(part)) => Some(place.share(job, &dues, *part)),
                    _ => place.ask(&format!("job/{job}/"), job, *ask),
                };
                let numbered = numbered(several);
                for (name, all) in &numbered {
                    out.extend(place.together(name, all));
                }
                let alone = |job: &str| !numbered.iter().any(|(_, all)| all.contains(&job));
                out.extend(several.iter().filter(|(job, _)| alone(job)).filter_map(of));
                if !dues.is_empty() {
                    out.extend(place.ask("", "all together", None));
                }
            }
            _ => out.extend(place.ask("", workload, None)),
        }
        // Alone, and in a workload that is asked as a whole, no job is behind another.
        let ranked =
            (2..=JOBS).contains(&jobs.len()) && jobs.iter().any(|j| j.1 == Some(Ask::Share));
        for a in &mut out[from..] {
            a.behind = ranked && a.kind == Kind::Most && !first(&a.name);
            // What the idle class moves is what others leave: how long a backup takes is no goal, but a price.
            let idle = jobs.iter().any(|j| j.0 == a.name && j.1 == Some(Ask::Idle));
            a.behind |= idle && jobs.len() > 1;
        }
    }
    names::name(&mut out);
    let busy: Vec<&str> = out.iter().filter(|a| a.kind != Kind::Most).map(|a| a.workload).collect();
    for a in &mut out {
        a.background = a.kind == Kind::Most && busy.contains(&a.workload);
    }
    for a in &mut out {
        let doubled = |m: &Asked<'_>| (0..m.each.len()).any(|i| twice(m, i, base));
        a.moved = a.moved.take().filter(|m| doubled(m));
        if let Some(moved) = &mut a.moved {
            moved.name.clone_from(&a.name);
        }
    }
    judge(&mut out, base);
    out
}

/// Jobs that are run for throughput and whose names differ in a number at the end: each stands for the same. `reader1` and `reader2`
/// are the `readers`.
fn numbered(jobs: &[Job]) -> Vec<(String, Vec<&str>)> {
    let mut out: Vec<(String, Vec<&str>)> = Vec::new();
    for (job, _) in jobs.iter().filter(|(_, ask)| ask.is_none()) {
        let stem = job.trim_end_matches(|c: char| c.is_ascii_digit());
        let stem = stem.trim_end_matches(['-', '_', ' ', '.']);
        if stem.is_empty() || stem.len() == job.len() {
            continue;
        }
        let name = if stem.ends_with('s') { stem.to_string() } else { format!("{stem}s") };
        match out.iter_mut().find(|(n, _)| *n == name) {
            Some((_, all)) => all.push(job),
            None => out.push((name, vec![job])),
        }
    }
    out.retain(|(name, all)| all.len() > 1 && !jobs.iter().any(|(job, _)| job == name));
    out
}

/// Twice as much is moved under one scheduler as under another.
pub(super) fn twice(moved: &Asked<'_>, i: usize, base: usize) -> bool {
    let both = moved.value(i).zip(moved.value(base));
    both.is_some_and(|(a, b)| a.max(b) >= TWICE * a.min(b))
}

/// One scheduler serves less than half of another's I/O in waits that are no longer.
fn contradicts(waits: &Asked<'_>, moved: &Asked<'_>) -> bool {
    let all: Vec<(f64, f64)> =
        (0..waits.each.len()).filter_map(|i| Some((waits.value(i)?, moved.value(i)?))).collect();
    let against = |a: &(f64, f64), b: &(f64, f64)| a.1 * TWICE < b.1 && a.0 < b.0 * 1.25;
    all.iter().any(|a| all.iter().any(|b| against(a, b)))
}

/// A workload on a device.
struct Place<'a, 'b> {
    device: &'b str,
    workload: &'a str,
    of: Vec<Option<&'a Cell>>,
    cells: &'a Cells,
}

impl<'a> Place<'a, '_> {
    /// The first of some measures that any scheduler has.
    fn first(&self, of: &[String]) -> Option<String> {
        let has = |m: &&String| self.of.iter().flatten().any(|c| c.measures.contains_key(*m));
        of.iter().find(has).cloned()
    }

    fn ask(&self, prefix: &str, name: &str, ask: Option<Ask>) -> Option<Asked<'a>> {
        let named =
            |all: &[&str]| -> Vec<String> { all.iter().map(|m| format!("{prefix}{m}")).collect() };
        let rates = named(&["read.bw", "write.bw", "trim.iops"]);
        let (kind, measure) = match ask {
            Some(Ask::Rate(n)) => (Kind::Rate(n as f64), self.first(&rates)),
            Some(Ask::Sync) => {
                // One figure for all that synced: a mean beside a percentile compares nothing.
                let synced = |c: &&Cell| {
                    let of = |m| c.measures.contains_key(&format!("{prefix}sync.{m}.mean"));
                    of("lat") || of("clat")
                };
                let resolved = |m: &&&str| {
                    let m = format!("{prefix}{m}");
                    let cells = self.of.iter().flatten().copied();
                    cells.filter(synced).all(|c| c.measures.contains_key(&m))
                };
                let all = ["sync.lat.p99", "sync.clat.p99", "sync.lat.mean", "sync.clat.mean"];
                let found = all.iter().find(resolved).map(|m| format!("{prefix}{m}"));
                (Kind::Wait, found.or_else(|| self.first(&named(&all[2..]))))
            }
            Some(Ask::Wait) => {
                let all = ["read.lat.mean", "read.clat.mean", "write.lat.mean", "write.clat.mean"];
                (Kind::Wait, self.first(&named(&all)))
            }
            Some(Ask::Idle | Ask::Share | Ask::Due(_)) | None if prefix.is_empty() => {
                let total = throughput_of(self.cells, self.device, self.workload);
                (Kind::Most, total.map(String::from))
            }
            Some(Ask::Idle | Ask::Share | Ask::Due(_)) | None => (Kind::Most, self.first(&rates)),
        };
        let moves = |kind: Kind, first: String| match prefix.split('/').nth(1) {
            // A job that reads and writes is not told by half of it.
            Some(job)
                if rates[..2].iter().all(|r| self.first(std::slice::from_ref(r)).is_some()) =>
            {
                self.together(name, &[job]).map(|a| Asked { kind, ..a })
            }
            _ => Some(self.filled(name.into(), kind, first)),
        };
        if kind != Kind::Wait && !prefix.is_empty() {
            return moves(kind, measure?);
        }
        let asked = self.filled(name.into(), kind, measure?);
        let moved = (kind == Kind::Wait).then(|| self.first(&rates)).flatten();
        let moved = moved.and_then(|m| moves(Kind::Most, m));
        Some(match moved {
            // Waits of the little that was served say nothing of the rest.
            Some(moved) if contradicts(&asked, &moved) => moved,
            moved => Asked { moved: moved.map(Box::new), ..asked },
        })
    }

    /// What jobs move that stand for the same.
    fn together(&self, name: &str, all: &[&str]) -> Option<Asked<'a>> {
        let of = |cell: &Option<&'a Cell>| {
            let sample = cell.map(|c| c.together(all))?;
            (!sample.sample.rounds.is_empty()).then_some(Cow::Owned(sample))
        };
        let each: Vec<_> = self.of.iter().map(of).collect();
        let any = each.iter().any(Option::is_some);
        any.then(|| self.with(name.into(), Kind::Most, format!("job/{name}/bw"), each))
    }

    /// The share of a job to which so many thousandths are due.
    fn share(&self, job: &str, all: &[&str], due: u32) -> Asked<'a> {
        let of = |cell: &Option<&'a Cell>| {
            let sample = cell.map(|c| c.share(job, all))?;
            (!sample.sample.rounds.is_empty()).then_some(Cow::Owned(sample))
        };
        let kind = Kind::Share(f64::from(due) / 10.0);
        self.with(job.into(), kind, format!("job/{job}/share"), self.of.iter().map(of).collect())
    }

    /// Figures that a program measures itself: those of the program, then one of each kind of its operations.
    fn own(&self) -> Vec<Asked<'a>> {
        let mut names: Vec<&String> = Vec::new();
        for m in self.of.iter().flatten().flat_map(|c| c.measures.keys()) {
            if !derived(m) && !m.starts_with("cpu_") && !names.contains(&m) {
                names.push(m);
            }
        }
        let operation = |m: &str| {
            let stem = m.strip_suffix(" latency").and_then(|m| m.rsplit_once(' ')).map(|(o, _)| o);
            let of = stem.or_else(|| m.strip_suffix(" rate"))?;
            names
                .iter()
                .any(|n| n.strip_suffix(" mean latency") == Some(of))
                .then(|| of.to_string())
        };
        let speaks = |m: &str| {
            let cells = || self.of.iter().flatten().filter(|c| !c.measures.is_empty());
            let of = operation(m).unwrap_or_default();
            let complete = |n: &String| cells().all(|c| c.measures.contains_key(n));
            let first = ["p99", "p95", "mean"].map(|l| format!("{of} {l} latency"));
            first.into_iter().find(complete).is_some_and(|n| n == m)
        };
        let (mut own, operations): (Vec<&String>, Vec<&String>) =
            names.iter().copied().partition(|m| operation(m).is_none());
        own.extend(operations.into_iter().filter(|m| speaks(m)));
        let of = |m: &&String| {
            let first = self.of.iter().flatten().find_map(|c| c.measures.get(*m));
            let time = first.is_some_and(|s| ["s", "ms", "us", "ns"].contains(&s.unit.as_str()));
            let kind = if time { Kind::Wait } else { Kind::Most };
            self.filled((*m).replace('_', " "), kind, (*m).clone())
        };
        own.iter().take(OWN).map(of).collect()
    }

    fn filled(&self, name: String, kind: Kind, measure: String) -> Asked<'a> {
        let of = |cell: &Option<&'a Cell>| {
            let cell = (*cell)?;
            match cell.measures.get(&measure) {
                Some(s) => Some(Cow::Borrowed(s)),
                None if measure == TOTAL && !cell.rounds().is_empty() => {
                    Some(Cow::Owned(cell.total()))
                }
                None => None,
            }
        };
        let each = self.of.iter().map(of).collect();
        self.with(name, kind, measure, each)
    }

    fn with(
        &self,
        name: String,
        kind: Kind,
        measure: String,
        each: Vec<Option<Cow<'a, CellSample>>>,
    ) -> Asked<'a> {
        let seed = VerdictOptions::default().seed;
        let of = |sample: Cow<'a, CellSample>| {
            let summary = summarize(&sample.sample.observations(), seed);
            (sample, summary)
        };
        let each: Vec<_> = each.into_iter().map(|s| s.map(of)).collect();
        let judged = each.iter().map(|_| None).collect();
        Asked {
            workload: self.workload,
            name,
            kind,
            measure,
            background: false,
            behind: false,
            moved: None,
            each,
            judged,
        }
    }
}

/// Judges all figures of a device together, each against the base's.
fn judge(asked: &mut [Asked<'_>], base: usize) {
    let options = VerdictOptions::default();
    let all = || asked.iter().flat_map(|a| [Some(a), a.moved.as_deref()]).flatten();
    let samples =
        all().flat_map(|a| a.each.iter().flatten().map(|(s, _)| (kind(&a.measure), &s.sample)));
    let lent = Lent::of(samples);
    let mut pairs: Vec<Compared<'_>> = Vec::new();
    for a in all() {
        let Some(old) = &a.each[base] else { continue };
        let others = a.each.iter().enumerate().filter(|(i, _)| *i != base);
        pairs.extend(others.filter_map(|(_, new)| new.as_ref()).map(|new| Compared {
            base: (&old.0.sample, &old.1),
            new: (&new.0.sample, &new.1),
            better: new.0.better,
            kind: kind(&a.measure),
            sum: false,
        }));
    }
    let mut judged = judge_together(&pairs, &lent, options).into_iter();
    drop(pairs);
    let all = asked.iter_mut().flat_map(|a| {
        let Asked { each, judged, moved, .. } = a;
        let moved = moved.as_deref_mut().map(|m| (&m.each, &mut m.judged));
        [Some((&*each, judged)), moved]
    });
    for (each, into) in all.flatten().filter(|(each, _)| each[base].is_some()) {
        for (i, _) in each.iter().enumerate().filter(|(i, e)| *i != base && e.is_some()) {
            into[i] = judged.next();
        }
    }
}
