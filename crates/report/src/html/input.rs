//! What a page is made of, gathered record by record so that no record need stay in memory.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::{
    BackendKind, DispatchPoint, EVENT, JobRecord, Mark, MarkKind, OPERATION, Record, Status,
};
use iosched_results::cells::{CellKey, Cells, NO_REASON};
use iosched_results::model::PublishedSummary;
use iosched_results::replays::Ranks;
use iosched_results::stats::VerdictOptions;
use iosched_results::verdict::Facts;
use iosched_types::{LatencyHistogram, Nanos, Sector};

/// Most values kept of a fact that differs from trial to trial.
const VALUES: usize = 4;
/// Most points kept of a curve; a page shows fewer.
const CURVE: usize = 512;
/// Most commands kept of a dispatch picture.
const POINTS: usize = 2048;
/// Most processes told apart.
const PROCESSES: usize = 64;

/// How the page is to look.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Title of the page: a name.
    pub title: String,
    /// What was compared, in a sentence beside the title; may be empty.
    pub description: String,
    /// Scheduler the others are judged against; `none`, `noop` or the first when absent.
    pub base: Option<String>,
    /// Suites by workload, for limiting the page to one; made from the records where a workload has none here.
    pub suites: BTreeMap<String, Vec<String>>,
    /// What the foot of the page says: when and by what it was made. Empty for pages that are the same byte by byte.
    pub made: String,
    /// The command that runs the same comparison; empty where nobody knows it.
    pub again: String,
    /// Notes people took: (what it is about, words).
    pub annotations: Vec<(String, String)>,
    /// Schedulers that the page leaves out, because people hid them.
    pub hidden: Vec<String>,
    /// The stored experiment that `iosched results edit` changes; empty for pages of several or of none.
    pub stored: String,
    /// Links above the title: (text, address). Used by the server.
    pub links: Vec<(String, String)>,
    /// How far an experiment is that runs, said under the title; empty for one that is over.
    pub status: String,
    /// Trials stored and trials planned, for a bar beside `status`.
    pub done: Option<(u32, u32)>,
    /// Reload after so many seconds while an experiment runs.
    pub refresh: Option<u32>,
    /// Significance.
    pub verdict: VerdictOptions,
}

/// The records of a page, condensed.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// How the page is to look.
    pub options: Options,
    pub(crate) runs: Vec<RunFacts>,
    pub(crate) workloads: Vec<WorkloadFacts>,
    pub(crate) cells: Vec<(String, Cells)>,
    pub(crate) details: BTreeMap<(usize, usize), Detail>,
    /// The schedulers' own names by those that people gave them.
    pub(crate) own: BTreeMap<String, String>,
    /// What tools printed during one trial of each run and workload: (where, (name, text)).
    pub(crate) logs: Vec<(String, Vec<(String, String)>)>,
    /// Jobs with their asks, and the kernel's default schedulers.
    pub(crate) asks: Facts,
    /// What is to be said of replays of block traces.
    pub(crate) ranks: Ranks,
    /// Why some pictures are not there or show less than all trials; empty for most pages.
    pub(crate) note: String,
}

/// One column of a comparison: a scheduler on a device under a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFacts {
    pub(crate) device: String,
    pub(crate) scheduler: String,
    pub(crate) kernel: String,
    pub(crate) backend: BackendKind,
    pub(crate) facts: BTreeMap<String, BTreeSet<String>>,
    pub(crate) tunables: BTreeMap<String, BTreeSet<i64>>,
    /// (code, message, advice) and how often.
    pub(crate) warnings: BTreeMap<(String, String, String), u32>,
    pub(crate) elapsed: Nanos,
    pub(crate) trials: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct WorkloadFacts {
    pub(crate) title: String,
    pub(crate) arguments: String,
    pub(crate) suites: BTreeSet<String>,
    /// The options of its jobs, each set once; a few at most.
    pub(crate) jobs: Vec<BTreeMap<String, String>>,
}

/// A recorded curve: unit, step in s, values.
pub(crate) type Sensor = (String, f64, Vec<f64>);

/// Curves that have pictures of their own.
const KNOWN: [&str; 5] = ["throughput", "iops", "queue_depth", "in_flight", "latency"];
/// Most other curves kept of a cell.
const SENSORS: usize = 8;
/// Most operations and events of a program.
const EVENTS: usize = 24;
/// Most phases, and most tries of a name.
const MARKS: usize = 256;

/// What one cell shows beside its numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detail {
    /// Completion latency by direction (read, write, trim, sync), all processes and repetitions. A histogram takes
    /// 15 kB whatever is in it, so there are only those that something was put into.
    pub(crate) latency: [Option<LatencyHistogram>; 4],
    /// Throughput in B/s: (step in s, values), of the first complete repetition that has it.
    pub(crate) throughput: Option<(f64, Vec<f64>)>,
    pub(crate) queue: Option<(f64, Vec<f64>)>,
    /// Which requests `queue` counts.
    pub(crate) queue_words: Option<&'static str>,
    pub(crate) dispatches: Vec<DispatchPoint>,
    /// Names of the processes of `dispatches`.
    pub(crate) pids: BTreeMap<u32, String>,
    /// Other curves, by name: temperatures, clocks, whatever was recorded.
    pub(crate) sensors: BTreeMap<String, Sensor>,
    /// Operations and events of a program over time, by name: those that move bytes in B/s, the others in 1/s.
    pub(crate) events: BTreeMap<String, Sensor>,
    /// Phases of a program and what went on beside, of the first complete repetition that has them.
    pub(crate) marks: Vec<Mark>,
    /// Tries, of all repetitions: how long in s, and whether it was given up.
    pub(crate) tries: BTreeMap<String, Vec<(f64, bool)>>,
    /// The halves of a run differ.
    pub(crate) unsteady: bool,
    /// Core time and bytes of all processes.
    pub(crate) cpu: Nanos,
    pub(crate) moved: u64,
    /// Bytes by process.
    pub(crate) shares: Vec<(String, u64)>,
    pub(crate) published: Option<PublishedSummary>,
    pub(crate) complete: u32,
    /// Complete records that `latency`, `shares`, `elapsed` and `device` sum up.
    pub(crate) summed: u32,
    pub(crate) elapsed: Nanos,
    /// Without warm-ups.
    pub(crate) measured: Nanos,
    pub(crate) device: DeviceSums,
    pub(crate) unusable: BTreeMap<String, u32>,
}

/// Sums over the complete repetitions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceSums {
    pub(crate) commands: u64,
    pub(crate) merges: u64,
    pub(crate) seeks: u64,
    pub(crate) travel: Sector,
    pub(crate) busy: Nanos,
    pub(crate) idled: Nanos,
    pub(crate) max_in_flight: u32,
    /// Each command was seen: seeks and travel are known.
    pub(crate) seen: bool,
    /// So is the time in which the scheduler held the disk idle.
    pub(crate) idling: bool,
}

/// Provenance that belongs to the workload or the trial rather than the run.
const PER_TRIAL: [&str; 6] = ["test", "title", "version", "arguments", "published-summary", "run"];

impl Input {
    /// A page of these records.
    #[must_use]
    pub fn from_records<'a>(
        options: Options,
        records: impl IntoIterator<Item = &'a Record>,
    ) -> Input {
        let mut out = Input { options, ..Input::default() };
        records.into_iter().for_each(|r| out.add(r));
        out
    }

    pub(crate) fn place(
        &mut self,
        device: &str,
        sched: &str,
        kernel: &str,
        w: &str,
    ) -> (usize, usize) {
        let same = |r: &RunFacts| r.device == device && r.scheduler == sched && r.kernel == kernel;
        let run = self.runs.iter().position(same).unwrap_or_else(|| {
            self.runs.push(RunFacts {
                device: device.into(),
                scheduler: sched.into(),
                kernel: kernel.into(),
                ..RunFacts::default()
            });
            self.runs.len() - 1
        });
        let workload = self.workloads.iter().position(|x| x.title == w).unwrap_or_else(|| {
            self.workloads.push(WorkloadFacts { title: w.into(), ..WorkloadFacts::default() });
            self.workloads.len() - 1
        });
        (run, workload)
    }

    /// A scheduler's own name.
    pub(crate) fn own<'a>(&'a self, name: &'a str) -> &'a str {
        self.own.get(name).map_or(name, String::as_str)
    }

    /// The schedulers, in the order in which they occur.
    #[must_use]
    pub fn schedulers(&self) -> Vec<&str> {
        let mut out: Vec<&str> = Vec::new();
        for r in &self.runs {
            if !out.contains(&r.scheduler.as_str()) {
                out.push(&r.scheduler);
            }
        }
        out
    }

    /// Takes one record.
    pub fn add(&mut self, r: &Record) {
        let t = &r.trial;
        let (run, workload) = self.place(&t.device, &t.scheduler, &t.kernel, &t.workload);
        let at = self.cells.iter().position(|(k, _)| *k == t.kernel).unwrap_or_else(|| {
            self.cells.push((t.kernel.clone(), Cells::default()));
            self.cells.len() - 1
        });
        self.cells[at].1.add(r);
        self.runs[run].add(r);
        self.asks.add(r);
        self.ranks.add(r);
        let named = self.options.suites.get(&t.workload);
        self.workloads[workload].add(r, named);
        self.details.entry((run, workload)).or_default().add(r);
    }
}

impl RunFacts {
    fn add(&mut self, r: &Record) {
        self.trials += 1;
        self.elapsed = self.elapsed.saturating_add(r.elapsed);
        self.add_facts(r);
    }

    /// What a record says about its run beside the figures.
    pub(crate) fn add_facts(&mut self, r: &Record) {
        self.backend = r.backend;
        for (k, v) in r.provenance.iter().filter(|(k, _)| !PER_TRIAL.contains(&k.as_str())) {
            let values = self.facts.entry(k.clone()).or_default();
            if values.len() < VALUES {
                values.insert(v.clone());
            }
        }
        for (k, v) in &r.scheduler.tunables {
            let values = self.tunables.entry(k.clone()).or_default();
            if values.len() < VALUES {
                values.insert(*v);
            }
        }
        for w in &r.warnings {
            let key = (w.code.clone(), w.message.clone(), w.advice.clone());
            if self.warnings.len() < 50 || self.warnings.contains_key(&key) {
                *self.warnings.entry(key).or_default() += 1;
            }
        }
    }

    /// Cores of the machine, where they were recorded.
    pub(crate) fn cores(&self) -> Option<f64> {
        let plain = ["cores", "cpus", "cpu.cores"]
            .iter()
            .find_map(|k| self.facts.get(*k)?.first()?.parse().ok());
        plain.or_else(|| self.words_before(&["cores", "core", "Cores", "Core"]))
    }

    /// Clock of the cores in GHz, where it was recorded.
    pub(crate) fn clock(&self) -> Option<f64> {
        self.words_before(&["GHz"])
    }

    /// The number before one of these words in any fact: `4 cores`, `@ 3.40GHz`.
    fn words_before(&self, words: &[&str]) -> Option<f64> {
        let facts = self.facts.iter().filter(|(k, _)| {
            ["hardware", "cpu", "processor", "system"].iter().any(|w| k.to_lowercase().contains(w))
        });
        let text: Vec<&str> = facts.flat_map(|(_, v)| v).map(String::as_str).collect();
        let found = |t: &&str| {
            words.iter().find_map(|w| {
                let before = t[..t.find(w)?].trim_end();
                let start =
                    before.rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |i| i + 1);
                before.get(start..)?.parse::<f64>().ok().filter(|x| *x > 0.0)
            })
        };
        text.iter().find_map(found)
    }

    /// When it ran, as the provenance says.
    pub(crate) fn date(&self) -> &str {
        ["started", "timestamp", "date"]
            .iter()
            .find_map(|k| self.facts.get(*k)?.first())
            .map_or("", String::as_str)
    }
}

impl WorkloadFacts {
    pub(crate) fn add(&mut self, r: &Record, named: Option<&Vec<String>>) {
        if self.arguments.is_empty() {
            self.arguments = arguments(r);
        }
        for j in &r.jobs {
            if self.jobs.len() < 4 && !self.jobs.contains(&j.options) {
                self.jobs.push(j.options.clone());
            }
        }
        if let Some(named) = named {
            self.suites.extend(named.iter().cloned());
        } else if let Some(test) = r.provenance.get("test") {
            // `pts/fs-mark-1.0.0`: the program without its version.
            let end = test.rfind('-').filter(|i| test[i + 1..].starts_with(char::is_numeric));
            self.suites.insert(test[..end.unwrap_or(test.len())].to_string());
        } else if r.status == Status::Complete {
            self.suites.insert(kind(&r.jobs).into());
        }
    }
}

fn arguments(r: &Record) -> String {
    if let Some(a) = r.provenance.get("arguments") {
        return a.clone();
    }
    let mut lines: Vec<String> = Vec::new();
    for j in &r.jobs {
        let o: Vec<String> = j.options.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let line = format!("[{}] {}", j.name, o.join(" "));
        if !lines.contains(&line) && lines.len() < 12 {
            lines.push(line);
        }
    }
    lines.join("; ")
}

/// What the processes do, when nothing else names a suite.
fn kind(jobs: &[JobRecord]) -> &'static str {
    let reads = jobs.iter().any(|j| j.read.ios > 0);
    let writes = jobs.iter().any(|j| j.write.ios > 0);
    let trims = jobs.iter().any(|j| j.trim.ios > 0);
    match (reads, writes) {
        (true, true) => "reads and writes",
        (true, false) => "reads",
        (false, true) => "writes",
        (false, false) if trims => "trims",
        (false, false) => "other",
    }
}

impl Detail {
    pub(crate) fn add(&mut self, r: &Record) {
        if let Status::Failed(why) | Status::Invalid(why) = &r.status {
            let why = if why.trim().is_empty() { NO_REASON } else { why };
            *self.unusable.entry(why.into()).or_default() += 1;
            return;
        }
        self.complete += 1;
        self.summed += 1;
        self.elapsed = self.elapsed.saturating_add(r.elapsed);
        self.measured = self.measured.saturating_add(r.measured());
        for j in &r.jobs {
            for (into, side) in self.latency.iter_mut().zip([&j.read, &j.write, &j.trim, &j.sync]) {
                if !side.latency().is_empty() {
                    into.get_or_insert_default().merge(side.latency());
                }
            }
        }
        self.unsteady |= r.halves_differ();
        self.add_shares(&r.jobs);
        self.device.add(r);
        let curve = |name: &str| {
            let s = r.series.iter().find(|s| s.name == name && s.values.len() > 1)?;
            let finite = s.values.iter().all(|v| v.is_finite());
            (finite && s.step > 0).then(|| means(s.step as f64 / 1e9, &s.values, CURVE))
        };
        self.throughput = self.throughput.take().or_else(|| curve("throughput"));
        if self.queue.is_none() {
            let (queue, words) = requests(curve("queue_depth"), curve("in_flight"));
            self.queue_words = queue.as_ref().map(|_| words);
            self.queue = queue;
        }
        if self.dispatches.is_empty() {
            let every = r.dispatches.len().div_ceil(POINTS).max(1);
            self.dispatches = r.dispatches.iter().step_by(every).copied().collect();
            self.pids = processes(&r.jobs);
        }
        self.add_sensors(r);
        self.add_parts(r);
        self.cpu = self.cpu.saturating_add(r.cpu().total());
        let bytes = r.jobs.iter().map(|j| j.read.bytes.saturating_add(j.write.bytes));
        self.moved = bytes.fold(self.moved, u64::saturating_add);
        if self.published.is_none() {
            self.published = r.provenance.get("published-summary").and_then(|s| published(s));
        }
    }

    /// A process by name, `other` for threads of nobody's.
    pub(crate) fn process(&self, pid: u32) -> String {
        self.pids.get(&pid).cloned().unwrap_or_else(|| "other".into())
    }

    fn add_sensors(&mut self, r: &Record) {
        let other = r.series.iter().filter(|s| {
            let own = ["job/", OPERATION, EVENT].iter().any(|p| s.name.starts_with(p));
            !KNOWN.contains(&s.name.as_str()) && !own && s.values.len() > 1
        });
        for s in other.filter(|s| s.step > 0 && s.values.iter().all(|v| v.is_finite())) {
            if self.sensors.len() < SENSORS && !self.sensors.contains_key(&s.name) {
                let (step, values) = means(s.step as f64 / 1e9, &s.values, CURVE);
                self.sensors.insert(s.name.clone(), (s.unit.clone(), step, values));
            }
        }
    }

    /// What a program says of its course.
    fn add_parts(&mut self, r: &Record) {
        let is_try = |m: &&Mark| matches!(m.kind, MarkKind::Try | MarkKind::GivenUp);
        for m in r.marks.iter().filter(is_try) {
            let all = self.tries.entry(m.name.clone()).or_default();
            if all.len() < MARKS {
                let time = m.ended.saturating_sub(m.began) as f64 / 1e9;
                all.push((time, m.kind == MarkKind::GivenUp));
            }
        }
        if self.marks.is_empty() {
            let parts = r.marks.iter().filter(|m| !is_try(m) && m.began <= m.ended);
            self.marks = parts.take(MARKS).cloned().collect();
        }
        if !self.events.is_empty() {
            return;
        }
        let usable = |s: &&iosched_experiment::record::Series| {
            s.step > 0 && s.values.len() > 1 && s.values.iter().all(|v| v.is_finite() && *v >= 0.0)
        };
        for s in r.series.iter().filter(usable) {
            let name = s.name.strip_prefix(OPERATION).or_else(|| s.name.strip_prefix(EVENT));
            let Some(name) = name else { continue };
            let plain = name.strip_suffix("/throughput");
            let name = plain.unwrap_or(name).to_string();
            if self.events.len() >= EVENTS && !self.events.contains_key(&name) {
                continue;
            }
            let (step, values) = means(s.step as f64 / 1e9, &s.values, CURVE);
            if plain.is_some() || !self.events.contains_key(&name) {
                self.events.insert(name, (s.unit.clone(), step, values));
            }
        }
    }

    fn add_shares(&mut self, jobs: &[JobRecord]) {
        if jobs.len() < 2 {
            return;
        }
        for j in jobs {
            let name = process(j, jobs);
            // Trims move no data: who does nothing else takes no share.
            let bytes = j.read.bytes + j.write.bytes;
            if bytes == 0 && j.trim.ios > 0 {
                continue;
            }
            let known = self.shares.iter().position(|s| s.0 == name);
            match known {
                Some(i) => self.shares[i].1 = self.shares[i].1.saturating_add(bytes),
                None if self.shares.len() < PROCESSES => self.shares.push((name, bytes)),
                None => {
                    let last = PROCESSES - 1;
                    self.shares[last].0 = "others".into();
                    self.shares[last].1 = self.shares[last].1.saturating_add(bytes);
                }
            }
        }
    }
}

type Line = Option<(f64, Vec<f64>)>;

/// Requests that wait and those at the device, together where both were recorded. Schedulers differ in how many they
/// hand on: one of the two alone says nothing of the length of the queue.
fn requests(waiting: Line, at_device: Line) -> (Line, &'static str) {
    match (waiting, at_device) {
        (Some((step, w)), Some((other, d))) if (step - other).abs() <= step * 1e-9 => {
            let both = w.iter().zip(&d).map(|(w, d)| w + d).collect();
            (Some((step, both)), "waiting or at the device")
        }
        (_, Some(d)) => (Some(d), "at the device"),
        (w, None) => (w, "waiting"),
    }
}

/// The names of processes by the numbers that dispatches have. The clones of a job that reports as one have the numbers
/// behind the first's.
fn processes(jobs: &[JobRecord]) -> BTreeMap<u32, String> {
    let mut out: BTreeMap<u32, String> = jobs.iter().map(|j| (j.pid, process(j, jobs))).collect();
    for j in jobs.iter().filter(|j| jobs.iter().filter(|o| o.name == j.name).count() == 1) {
        let clones = j.options.get("numjobs").and_then(|n| n.parse().ok()).unwrap_or(1u32);
        if clones > 1 {
            let name = format!("{}, {clones} processes", j.name);
            out.insert(j.pid, name.clone());
            for n in 1..clones.min(POINTS as u32) {
                out.entry(j.pid.saturating_add(n)).or_insert_with(|| name.clone());
            }
        }
    }
    out
}

/// The name of a process: with its number where a job has several.
fn process(j: &JobRecord, jobs: &[JobRecord]) -> String {
    let clones = jobs.iter().filter(|o| o.name == j.name).count() > 1;
    if clones { format!("{} #{}", j.name, j.subjob) } else { j.name.clone() }
}

impl DeviceSums {
    fn add(&mut self, r: &Record) {
        let d = &r.device;
        self.commands += r.measured_share(d.commands.iter().sum());
        self.merges += r.measured_share(d.merges.iter().sum());
        self.seeks += r.measured_share(d.seeks);
        self.travel = self.travel.saturating_add(r.measured_share(d.travel));
        self.busy = self.busy.saturating_add(d.busy);
        self.idled = self.idled.saturating_add(r.scheduler.idled);
        self.max_in_flight = self.max_in_flight.max(d.max_in_flight);
        self.seen |= r.sees_commands();
        self.idling |= r.sees_idling();
    }
}

/// A curve with at most `most` points: means of neighbours, so that the area stays.
pub(crate) fn means(step: f64, values: &[f64], most: usize) -> (f64, Vec<f64>) {
    let every = values.len().div_ceil(most.max(1)).max(1);
    let mean = |c: &[f64]| c.iter().sum::<f64>() / c.len() as f64;
    (step * every as f64, values.chunks(every).map(mean).collect())
}

/// `n=6 mean=15.4 se=0.32 min=13.8 max=15.8`, as imported comparisons carry it.
fn published(text: &str) -> Option<PublishedSummary> {
    let of = |key: &str| {
        let word = text.split(' ').find_map(|w| w.strip_prefix(key)?.strip_prefix('='))?;
        word.parse::<f64>().ok().filter(|x| x.is_finite())
    };
    Some(PublishedSummary {
        n: of("n")? as usize,
        mean: of("mean")?,
        se: of("se")?,
        min: of("min")?,
        max: of("max")?,
    })
}

/// Key of a cell in the joined cells.
pub(crate) fn key(device: &str, workload: &str, label: &str) -> CellKey {
    CellKey { device: device.into(), workload: workload.into(), scheduler: label.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_area() {
        let v: Vec<f64> = (0..1000).map(f64::from).collect();
        let (step, m) = means(0.5, &v, 100);
        assert_eq!((step, m.len()), (5.0, 100));
        let area = |s: f64, v: &[f64]| s * v.iter().sum::<f64>();
        assert!((area(step, &m) - area(0.5, &v)).abs() < 1e-6);
        assert_eq!(means(1.0, &[], 10).1.len(), 0);
    }

    #[test]
    fn published_summaries_are_read_back() {
        let p = published("n=6 mean=15.4 se=0.32 min=13.8 max=15.8").unwrap();
        assert_eq!((p.n, p.mean, p.max), (6, 15.4, 15.8));
        assert!(published("n=6 mean=inf se=0 min=0 max=0").is_none());
        assert!(published("hello").is_none());
    }
}
