//! Processes that got too few I/Os for a 99th percentile.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cell, CellKey, CellSample, Cells};
use crate::measure::{COUNT, LONGEST, latency_of, of_job};
use crate::stats::Observation;

/// A workload on a device.
type Place = (String, String);

/// The 99th percentiles of a workload by name.
type Percentiles = BTreeMap<(Place, String), Known>;

/// What is known of a percentile under all schedulers.
struct Known {
    /// The largest.
    longest: f64,
    /// I/Os of the median run under the scheduler that serves it best; infinite where they were too many to be counted.
    most: f64,
    /// What a new sample looks like.
    new: CellSample,
}

/// A process is starved in a run with less than this part of the I/Os that it usually has under its best scheduler.
const STARVED: f64 = 0.5;

/// Charges starvation to its scheduler. A round in which a process has too few I/Os for a 99th percentile that other
/// schedulers have would be left out, and a mean of the other rounds would praise who starves most.
///
/// With fewer than 100 I/Os the 99th percentile is by rank the longest of them, so that stands in. Where the process
/// also had less than half of the I/Os of its median run under the scheduler that serves it best, it was starved: who gets
/// to few I/Os may have waited elsewhere. Such a round counts as *beyond* the longest wait that is known: the largest
/// percentile of all schedulers, or the longest of its own waits if that is more. Longest waits and counts have no other
/// use, so they are taken out.
///
/// Who had at least half of an equal share among all jobs of the run was not starved, however much another scheduler
/// prefers it: a hundred I/Os of ten equal jobs are ten each, and their waits are all known.
///
/// The figure of a whole workload pools its jobs, and a job with next to no I/Os vanishes in it. So rounds in which a
/// job is starved are charged in the whole workload's figure, too.
///
/// Sides that are compared with each other are charged together. Of a side whose I/Os nobody counted (samples saved as
/// CSV, a saved page) it is not known who starved: its figures stand as they are, and those of the same cell of the other
/// side are charged only where it was charged, too.
pub fn charge_starved<'a>(sides: impl IntoIterator<Item = &'a mut Cells>) {
    let mut sides: Vec<&mut Cells> = sides.into_iter().collect();
    let mut known = Percentiles::new();
    let alone = sides.len() < 2;
    let before = beside_unknown(&sides);
    for (key, cell) in sides.iter().flat_map(|c| &c.0).filter(|(_, c)| alone || c.counted) {
        for (name, of) in cell.measures.iter().filter(|(name, _)| is_p99(name)) {
            let place = (key.device.clone(), key.workload.clone());
            let new = || Known {
                longest: 0.0,
                most: 0.0,
                new: CellSample { sample: Default::default(), highest: 0, ..of.clone() },
            };
            let entry = known.entry((place, name.clone())).or_insert_with(new);
            let counts = cell.values(name, COUNT);
            for (_, o) in of.sample.rounds.iter().filter(|r| !r.1.censored) {
                entry.longest = entry.longest.max(o.value);
            }
            entry.most = entry.most.max(usual(&of.sample.rounds, counts));
        }
    }
    let charged = sides.iter_mut().flat_map(|c| &mut c.0).filter(|(_, c)| alone || c.counted);
    for (key, cell) in charged {
        let place = (key.device.clone(), key.workload.clone());
        let here = || known.range((place.clone(), String::new())..);
        let rounds = cell.rounds();
        for ((_, name), of) in here().take_while(|((p, _), _)| *p == place) {
            cell.charge(name, of, &rounds);
        }
        for ((_, name), _) in here().take_while(|((p, _), _)| *p == place) {
            if let Some(pooled) = of_job(name) {
                let longest =
                    known.get(&(place.clone(), pooled.1.into())).map_or(0.0, |k| k.longest);
                cell.charge_pool(name, pooled.1, longest);
            }
        }
    }
    for cell in sides.iter_mut().flat_map(|c| c.0.values_mut()) {
        let spent = |name: &str| {
            let last = name.rsplit('.').next().unwrap_or_default();
            latency_of(name).is_some() && [LONGEST, COUNT].contains(&last)
        };
        cell.measures.retain(|name, _| !spent(name));
    }
    for (side, key, own, other) in before {
        if let Some(cell) = sides[side].0.get_mut(&key) {
            cell.like(&own, &other);
        }
    }
}

/// Counted cells that stand beside one of another side that nobody counted: which side, the cell as it was, the other.
fn beside_unknown(sides: &[&mut Cells]) -> Vec<(usize, CellKey, Cell, Cell)> {
    let mut out = Vec::new();
    for (i, side) in sides.iter().enumerate() {
        for (key, cell) in side.0.iter().filter(|(_, c)| c.counted) {
            let others = sides.iter().enumerate().filter(|(j, _)| *j != i);
            let other = others.filter_map(|(_, s)| s.0.get(key)).find(|c| !c.counted);
            out.extend(other.map(|o| (i, key.clone(), cell.clone(), o.clone())));
        }
    }
    out
}

/// I/Os of the median run. Runs with a percentile and without a count had too many to be counted. The most that any run
/// had would grow with the number of runs.
fn usual(rounds: &[(u32, Observation)], mut counts: BTreeMap<u32, f64>) -> f64 {
    for (round, _) in rounds {
        counts.entry(*round).or_insert(f64::INFINITY);
    }
    let mut all: Vec<f64> = counts.into_values().collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

fn is_p99(name: &str) -> bool {
    latency_of(name).is_some() && name.ends_with(".p99")
}

impl Cell {
    /// Charges those of a cell's rounds that lack a percentile.
    fn charge(&mut self, name: &str, known: &Known, rounds: &BTreeSet<u32>) {
        let own = self.measures.get(name).into_iter().flat_map(|c| &c.sample.rounds);
        let has: BTreeSet<u32> = own.map(|r| r.0).collect();
        let lacking: Vec<u32> = rounds.difference(&has).copied().collect();
        if lacking.is_empty() {
            return;
        }
        let (waits, shared) = (self.own_waits(name), self.shared(name));
        let (counts, longest) = (self.values(name, COUNT), self.values(name, LONGEST));
        let of = |round: &u32| {
            let enough = shared.contains(round)
                || counts.get(round).is_some_and(|n| *n >= STARVED * known.most);
            if let Some(rank) = longest.get(round).filter(|_| enough) {
                return (*round, Observation::from(*rank));
            }
            let value = waits.get(round).copied().unwrap_or(0.0).max(known.longest);
            (*round, Observation { value, censored: true })
        };
        let charged: Vec<(u32, Observation)> = lacking.iter().map(of).collect();
        let like = self.measures.values().next().map(|c| (c.sample.deterministic, c.sample.paired));
        let into = self.measures.entry(name.into()).or_insert_with(|| {
            let mut c = known.new.clone();
            (c.sample.deterministic, c.sample.paired) = like.unwrap_or_default();
            c
        });
        into.starved += charged.iter().filter(|c| c.1.censored).count();
        into.highest = into.highest.max(lacking.iter().copied().max().unwrap_or(0));
        into.sample.rounds.extend(charged);
        into.sample.rounds.sort_by_key(|r| r.0);
    }
}

impl Cell {
    /// What else is known of the I/Os of a percentile, by round.
    fn values(&self, percentile: &str, last: &str) -> BTreeMap<u32, f64> {
        let name = percentile.strip_suffix("p99").map(|stem| format!("{stem}{last}"));
        let sample = name.and_then(|n| self.measures.get(&n));
        sample.iter().flat_map(|c| &c.sample.rounds).map(|r| (r.0, r.1.value)).collect()
    }

    /// Rounds in which the job of a percentile had at least half of an equal share of all jobs' I/Os in a second.
    fn shared(&self, percentile: &str) -> BTreeSet<u32> {
        let mut shares: BTreeMap<u32, BTreeMap<&str, f64>> = BTreeMap::new();
        for (name, m) in &self.measures {
            let Some((job, _)) = of_job(name).filter(|(_, own)| own.ends_with(".iops")) else {
                continue;
            };
            for (round, o) in &m.sample.rounds {
                *shares.entry(*round).or_default().entry(job).or_insert(0.0) += o.value;
            }
        }
        let Some((own, _)) = of_job(percentile) else { return BTreeSet::new() };
        let has = |all: &BTreeMap<&str, f64>| {
            let equal = all.values().sum::<f64>() / all.len() as f64;
            all.get(own).is_some_and(|rate| *rate >= STARVED * equal)
        };
        shares.into_iter().filter(|(_, all)| has(all)).map(|(round, _)| round).collect()
    }

    /// The longest waits that are known of the process of a percentile, by round: also of its other I/Os, for who hardly
    /// gets to a flush may have waited for its writes. Where the longest wait is not known, the mean is the least that it
    /// was.
    fn own_waits(&self, name: &str) -> BTreeMap<u32, f64> {
        let (process, side) =
            name.rsplit_once('/').map_or(("", name), |(p, s)| (&name[..=p.len()], s));
        let which = latency_of(name).map_or("", |(_, which)| which);
        // With several processes, those of the whole workload are not known to be those that starve.
        let alone = process.is_empty() && !self.measures.keys().any(|m| m.starts_with("job/"));
        let sides = ["read", "write", "trim", "sync"];
        let sides =
            sides.into_iter().filter(|s| alone || !process.is_empty() || side.starts_with(s));
        let mut out = BTreeMap::new();
        for last in sides
            .flat_map(|s| [LONGEST, "p99", "mean"].map(|l| format!("{process}{s}.{which}.{l}")))
        {
            for (round, o) in self.measures.get(&last).iter().flat_map(|c| &c.sample.rounds) {
                let longest = out.entry(*round).or_insert(0.0);
                *longest = f64::max(*longest, o.value);
            }
        }
        out
    }

    /// Takes back what a cell, which was `own`, is charged with and the `other` is not.
    fn like(&mut self, own: &Cell, other: &Cell) {
        let all = |c: &Cell, name: &str| -> BTreeMap<u32, Observation> {
            c.measures.get(name).into_iter().flat_map(|m| &m.sample.rounds).copied().collect()
        };
        for (name, m) in self.measures.iter_mut().filter(|(name, _)| is_p99(name)) {
            let (own, other) = (all(own, name), all(other, name));
            let charged = std::mem::take(&mut m.sample.rounds);
            for (round, o) in charged {
                let kept = match (own.get(&round), other.get(&round)) {
                    (None, theirs) => theirs.map(|_| o),
                    (Some(_), Some(theirs)) if theirs.censored => Some(o),
                    (Some(was), _) => Some(*was),
                };
                m.sample.rounds.extend(kept.map(|o| (round, o)));
            }
            let beyond = |(r, o): &&(u32, Observation)| {
                o.censored && own.get(r).is_none_or(|was| !was.censored)
            };
            m.starved = m.sample.rounds.iter().filter(beyond).count();
        }
        self.measures.retain(|_, m| !m.sample.rounds.is_empty());
    }

    /// Charges a workload's figure with what one of its jobs was charged with.
    fn charge_pool(&mut self, of_job: &str, pooled: &str, longest: f64) {
        let Some(job) = self.measures.get(of_job).filter(|j| j.starved > 0) else { return };
        let starved = job.sample.rounds.iter().filter(|r| r.1.censored);
        let starved: BTreeMap<u32, f64> = starved.map(|r| (r.0, r.1.value)).collect();
        let Some(pool) = self.measures.get_mut(pooled) else { return };
        for (_, o) in pool.sample.rounds.iter_mut().filter(|(r, _)| starved.contains_key(r)) {
            pool.starved += usize::from(!o.censored);
            o.censored = true;
        }
        for (r, o) in &mut pool.sample.rounds {
            let charged = starved.get(r).copied().unwrap_or(0.0);
            o.value = if charged > 0.0 { o.value.max(charged).max(longest) } else { o.value };
        }
    }
}

#[cfg(test)]
mod tests {
    use iosched_experiment::record::{BackendKind, DirStats, JobRecord, Metric, Record, TrialId};

    use super::*;
    use crate::cells::{analyse, group};
    use crate::stats::{Verdict, VerdictOptions};

    fn trial(scheduler: &str, repetition: u32, reads: u64, ms: u64) -> Record {
        let mut read = DirStats { ios: reads, bytes: reads * 4096, ..DirStats::default() };
        read.runtime = 1_000_000_000;
        (1..=reads).for_each(|i| read.clat.record((ms * 1_000_000).saturating_sub(i)));
        let trial = TrialId {
            device: "d".into(),
            workload: "w".into(),
            scheduler: scheduler.into(),
            repetition,
            ..TrialId::default()
        };
        let jobs = vec![JobRecord { name: "a".into(), read, ..JobRecord::default() }];
        Record { trial, jobs, backend: BackendKind::Real, ..Record::default() }
    }

    /// The same runs, of which another program knows the named figures only.
    fn told(records: &[Record], cells: &Cells, kinds: &[&str]) -> Vec<Record> {
        let metrics = |r: &Record| {
            let cell = &cells.0[&CellKey::of(&r.trial)];
            let of = |(name, m): (&String, &CellSample)| {
                let o = m.sample.rounds.iter().find(|x| x.0 == r.trial.repetition)?.1;
                kinds.iter().any(|k| name.ends_with(k)).then(|| Metric {
                    name: name.clone(),
                    value: o.value,
                    unit: m.unit.clone(),
                    higher_is_better: Some(m.better == crate::stats::Better::Higher),
                    censored: o.censored,
                })
            };
            cell.measures.iter().filter_map(of).collect()
        };
        let of = |r: &Record| Record {
            trial: r.trial.clone(),
            backend: BackendKind::Imported,
            metrics: metrics(r),
            ..Record::default()
        };
        records.iter().map(of).collect()
    }

    /// Whoever does not say how many I/Os there were has not starved anybody: the same runs are no regression.
    #[test]
    fn an_unknown_number_of_ios_is_not_none() {
        use crate::compare::{Answer, CompareOptions, compare};
        let mut own = records();
        // A starved job raises the figure of all.
        for r in &mut own {
            add_job(r, "b", if r.trial.scheduler == "bfq" { 9 } else { 400 }, 12);
        }
        let plain = group(&own);
        let mut charged = plain.clone();
        charge_starved([&mut charged]);
        let options = CompareOptions { force: true, ..CompareOptions::default() };
        let csv = told(&own, &plain, &["bw", ".p99"]);
        let page = told(&own, &charged, &["bw", ".p99"]);
        for other in [csv, page] {
            for (base, new) in [(&own, &other), (&other, &own)] {
                let c = compare(base, new, &options).unwrap();
                assert_eq!(c.answer(), Answer::NoRegression, "{c:#?}");
                assert!(c.changes.iter().any(|x| x.measure == "read.clat.p99"));
            }
        }
    }

    /// Two of five runs in which bfq lets next to no read through: the other three are no answer.
    fn records() -> Vec<Record> {
        let mut out = Vec::new();
        for i in 1..=5 {
            out.push(trial("none", i, 200, 70 + u64::from(i)));
            out.push(if i < 4 { trial("bfq", i, 200, 48) } else { trial("bfq", i, 20, 8_000) });
        }
        out
    }

    #[test]
    fn a_starved_round_counts_as_the_longest_wait_or_more() {
        let a = analyse(&records(), Some("none"), VerdictOptions::default());
        let line =
            a.lines.iter().find(|l| l.key.scheduler == "bfq" && l.measure == "read.clat.p99");
        let line = line.unwrap();
        assert_eq!((line.summary.n, line.summary.censored, line.starved), (5, 2, 2));
        let bound = line.summary.centre().unwrap() / 1e9;
        assert!((3.1..3.4).contains(&bound), "{bound} s: three of 48 ms, two of 8 s");
        let judged = line.against_base.as_ref().unwrap();
        assert_eq!(judged.verdict, Verdict::NotEnoughData, "{judged:?}");
        assert!(judged.about() && judged.ratio_ci.is_none());
        assert!(a.lines.iter().all(|l| !l.measure.ends_with(".max")));
    }

    fn add_job(r: &mut Record, name: &str, reads: u64, ms: u64) {
        let mut read = DirStats { ios: reads, bytes: reads * 4096, ..DirStats::default() };
        read.runtime = 1_000_000_000;
        (0..reads).for_each(|_| read.clat.record(ms * 1_000_000));
        r.jobs.push(JobRecord { name: name.into(), read, ..JobRecord::default() });
    }

    /// One of two readers gets 8 I/Os: among the thousands of the other one they are nothing.
    #[test]
    fn a_starved_job_counts_in_the_figure_of_all() {
        let mut records = Vec::new();
        for i in 1..=5 {
            let (mut fair, mut unfair) = (trial("none", i, 1000, 10), trial("bfq", i, 2000, 5));
            add_job(&mut fair, "b", 500, 12);
            add_job(&mut unfair, "b", 8, 700);
            records.extend([fair, unfair]);
        }
        let mut cells = group(&records);
        charge_starved([&mut cells]);
        let charged = cells.clone();
        charge_starved([&mut cells]);
        assert_eq!(charged, cells, "once");
        let of = |s: &str| {
            let cell = cells.0.iter().find(|(k, _)| k.scheduler == s).unwrap().1;
            cell.measures["read.clat.p99"].clone()
        };
        let (none, bfq) = (of("none"), of("bfq"));
        assert_eq!((none.starved, bfq.starved), (0, 5));
        assert!(bfq.sample.rounds.iter().all(|r| r.1.censored && r.1.value >= 7e8), "{bfq:?}");
        assert!(none.sample.rounds.iter().all(|r| !r.1.censored && r.1.value < 2e7), "{none:?}");
    }

    /// A log writer that waits seconds for its writes gets to few flushes, and those cost nothing.
    #[test]
    fn a_starved_flush_is_charged_with_the_waits_for_writes() {
        let mut records = Vec::new();
        for (s, n, ms) in [("none", 200, 1), ("bfq", 9, 900)] {
            for i in 1..=3 {
                let mut r = trial(s, i, 200, 2);
                add_job(&mut r, "log", n, ms);
                let log = r.jobs.last_mut().unwrap();
                log.write = std::mem::take(&mut log.read);
                (0..n).for_each(|_| log.sync.clat.record(7_000));
                log.sync.ios = n;
                records.push(r);
            }
        }
        let mut cells = group(&records);
        charge_starved([&mut cells]);
        let bfq = cells.0.iter().find(|(k, _)| k.scheduler == "bfq").unwrap().1;
        for name in ["job/log/sync.clat.p99", "sync.clat.p99"] {
            let sync = &bfq.measures[name].sample;
            assert!(sync.rounds.iter().all(|r| r.1.censored && r.1.value >= 9e8), "{sync:?}");
        }
    }

    /// bfq lets one of ten readers have most of the disk: none, which treats all alike, starves nobody. What it takes from
    /// the others stays theirs.
    #[test]
    fn who_has_an_equal_share_is_not_starved() {
        let mut all = Vec::new();
        for i in 1..=3 {
            let (mut none, mut bfq) = (trial("none", i, 36, 450), trial("bfq", i, 250, 60));
            for other in 0..9 {
                add_job(&mut none, &format!("o{other}"), 35, 450);
                add_job(&mut bfq, &format!("o{other}"), if other == 0 { 4 } else { 12 }, 2_500);
            }
            all.extend([none, bfq]);
        }
        let mut cells = group(&all);
        charge_starved([&mut cells]);
        let of = |s: &str, name: &str| {
            let cell = cells.0.iter().find(|(k, _)| k.scheduler == s).unwrap().1;
            (cell.measures[name].starved, cell.measures[name].sample.rounds[0].1)
        };
        for name in ["job/a/read.clat.p99", "read.clat.p99"] {
            let (starved, o) = of("none", name);
            assert_eq!((starved, o.censored), (0, false), "{name}");
            assert!((4.4e8..4.6e8).contains(&o.value), "{name}: {o:?}");
        }
        assert!(of("bfq", "read.clat.p99").1.value > 2.4e9);
    }

    /// One lucky run of seven says nothing of what a process can do.
    #[test]
    fn the_median_run_is_the_measure() {
        let p99 = |round| (round, Observation::from(1.0));
        let counts = |all: &[f64]| (1..).zip(all.iter().copied()).collect::<BTreeMap<u32, f64>>();
        assert_eq!(usual(&[], counts(&[80.0, 82.0, 91.0])), 82.0);
        assert_eq!(usual(&[p99(4)], counts(&[80.0, 82.0, 91.0])), 82.0);
        assert_eq!(usual(&[p99(4), p99(5), p99(6)], counts(&[80.0, 82.0])), f64::INFINITY);
    }

    /// 99 I/Os are no more starved than 101: it is the share of what the process can do that tells.
    #[test]
    fn few_ios_alone_are_no_starvation() {
        let charged = |none: u64, bfq: u64| {
            let mut records = Vec::new();
            for i in 1..=3 {
                records.extend([trial("none", i, none, 10), trial("bfq", i, bfq, 20)]);
            }
            let mut cells = group(&records);
            charge_starved([&mut cells]);
            let cell = cells.0.iter().find(|(k, _)| k.scheduler == "bfq").unwrap().1;
            let p99 = &cell.measures["read.clat.p99"];
            assert!(p99.sample.rounds.iter().all(|r| r.1.value >= 19e6), "{p99:?}");
            assert!(cell.measures.keys().all(|m| !m.ends_with("count")), "{cell:?}");
            p99.starved
        };
        assert_eq!([charged(101, 101), charged(101, 99), charged(190, 95)], [0, 0, 0]);
        assert_eq!([charged(192, 95), charged(101, 50), charged(5_000, 99)], [3, 3, 3]);
    }

    #[test]
    fn a_scheduler_without_any_percentile_is_charged_with_that_of_others() {
        let mut records = records();
        records.retain(|r| r.trial.scheduler == "none");
        records.extend((1..=5).map(|i| trial("kyber", i, 2, 5)));
        let mut cells = group(&records);
        charge_starved([&mut cells]);
        let charged = cells.clone();
        charge_starved([&mut cells]);
        assert_eq!(charged, cells, "once");
        let of = |s: &str| cells.0.iter().find(|(k, _)| k.scheduler == s).unwrap().1;
        let kyber = &of("kyber").measures["read.clat.p99"];
        let none = &of("none").measures["read.clat.p99"].sample;
        let most = none.rounds.iter().map(|r| r.1.value).fold(0.0, f64::max);
        assert!(kyber.sample.rounds.iter().all(|r| r.1.censored && r.1.value == most), "{kyber:?}");
        assert_eq!(kyber.starved, 5);
    }
}
