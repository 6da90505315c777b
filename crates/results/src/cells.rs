//! Cells: records grouped by device, scheduler and workload, and each scheduler judged against a base.

mod family;
mod starved;

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::{BackendKind, DirStats, Record, Status, TrialId};
use serde::{Deserialize, Serialize};

use crate::measure::{Measure, latency_of, measures};
use crate::stats::{Better, Judged, Observation, Sample, Summary, VerdictOptions};
pub(crate) use family::with_parts;
pub use family::{MOST_PAIRS, heads, judge_cells, judge_each, throughput_of};
pub use starved::charge_starved;

/// Said of trials that are not usable for a reason that nobody wrote down.
pub const NO_REASON: &str = "no reason recorded";

/// Which cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CellKey {
    /// Device.
    pub device: String,
    /// Workload.
    pub workload: String,
    /// Scheduler with its label.
    pub scheduler: String,
}

impl CellKey {
    /// The cell of a trial.
    #[must_use]
    pub fn of(t: &TrialId) -> CellKey {
        CellKey {
            device: t.device.clone(),
            workload: t.workload.clone(),
            scheduler: t.scheduler.clone(),
        }
    }
}

/// One measure of one cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellSample {
    /// Unit.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// The values by round.
    pub sample: Sample,
    /// Rounds that had too few I/Os for this figure, and are charged with the longest wait ([`charge_starved`]).
    pub starved: usize,
    /// The largest round.
    highest: u32,
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The figures by measure; empty when no trial was usable.
    pub measures: BTreeMap<String, CellSample>,
    /// Why trials are unusable, one reason for each.
    pub unusable: Vec<String>,
    /// Its I/Os were counted: a tool's own figures do not say how few there were.
    pub counted: bool,
}

/// The cells of some records. Cells without any usable trial are there, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells(pub BTreeMap<CellKey, Cell>);

impl Cells {
    /// The cell of a trial, made when it is new.
    pub(crate) fn cell(&mut self, device: &str, workload: &str, scheduler: &str) -> &mut Cell {
        let key = CellKey {
            device: device.into(),
            workload: workload.into(),
            scheduler: scheduler.into(),
        };
        self.0.entry(key).or_default()
    }

    /// The cells of a workload on a device.
    pub(crate) fn at(
        &self,
        device: &str,
        workload: &str,
    ) -> impl Iterator<Item = (&CellKey, &Cell)> {
        // They stand together, and no name is before the empty one.
        let first =
            CellKey { device: device.into(), workload: workload.into(), scheduler: String::new() };
        let from = self.0.range(first.clone()..);
        from.take_while(move |(k, _)| k.device == first.device && k.workload == first.workload)
    }

    /// Adds one record. Records need not be in memory together.
    pub fn add(&mut self, r: &Record) {
        let cell = self.cell(&r.trial.device, &r.trial.workload, &r.trial.scheduler);
        if let Status::Failed(why) | Status::Invalid(why) = &r.status {
            let why = if why.trim().is_empty() { NO_REASON } else { why };
            cell.unusable.push(why.into());
            return;
        }
        // fio's JSON without bins has percentiles of however few.
        let counted = |d: &DirStats| d.ios == 0 || !d.latency().is_empty();
        cell.counted |= !r.jobs.is_empty()
            && r.jobs.iter().all(|j| [&j.read, &j.write, &j.trim].into_iter().all(counted));
        for m in measures(r) {
            cell.add(r.trial.repetition, m, Origin::of(r.backend));
        }
    }
}

/// What the origin of values says about them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    deterministic: bool,
    paired: bool,
}

impl Origin {
    /// Our own rounds are interleaved or share their seeds. Nothing is known about those of other tools.
    pub(crate) fn of(backend: BackendKind) -> Origin {
        Origin { deterministic: backend.traits().deterministic, paired: backend.traits().ours }
    }
}

impl Cell {
    /// Adds one figure. A round that occurs twice (two kernels, say) becomes the last, and is no longer used for pairs.
    pub(crate) fn add(&mut self, mut round: u32, m: Measure, origin: Origin) {
        let c = self.measures.entry(m.name).or_insert_with(|| CellSample {
            unit: m.unit,
            better: m.better,
            sample: Sample { deterministic: true, paired: true, ..Sample::default() },
            starved: 0,
            highest: 0,
        });
        // Rounds usually come in order. Only a round out of order needs a search.
        if round <= c.highest && c.sample.rounds.iter().any(|r| r.0 == round) {
            round = c.highest + 1;
            c.sample.paired = false;
        }
        c.highest = c.highest.max(round);
        c.sample.rounds.push((round, Observation { value: m.value, censored: m.censored }));
        c.sample.deterministic &= origin.deterministic;
        c.sample.paired &= origin.paired;
    }
}

/// Groups records. Trials that failed or are invalid give no values; their reasons are kept.
#[must_use]
pub fn group<'a>(records: impl IntoIterator<Item = &'a Record>) -> Cells {
    let mut out = Cells::default();
    records.into_iter().for_each(|r| out.add(r));
    out
}

/// Leaves one latency of each side of a workload: the total, or where a trial has none that of completion. Both
/// would be one thing counted twice. Says whether some trials have totals and others do not.
pub fn one_latency<'a>(cells: impl IntoIterator<Item = &'a mut Cells>) -> bool {
    let mut cells: Vec<&mut Cells> = cells.into_iter().collect();
    let rounds = |c: &Cell, name: &str| c.measures.get(name).map_or(0, |m| m.sample.rounds.len());
    let (mut lacking, mut known) = (BTreeSet::new(), false);
    for (key, cell) in cells.iter().flat_map(|c| &c.0) {
        for side in cell.measures.keys().filter_map(|m| m.strip_suffix(".clat.mean")) {
            let (clat, lat) = (format!("{side}.clat.mean"), format!("{side}.lat.mean"));
            known |= rounds(cell, &lat) > 0;
            if rounds(cell, &lat) < rounds(cell, &clat) {
                lacking.insert((key.workload.clone(), side.to_string()));
            }
        }
    }
    for (key, cell) in cells.iter_mut().flat_map(|c| &mut c.0) {
        let all: BTreeSet<String> = cell.measures.keys().cloned().collect();
        cell.measures.retain(|m, _| match latency_of(m) {
            Some((side, "lat")) => !lacking.contains(&(key.workload.clone(), side.to_string())),
            Some((side, _)) => {
                lacking.contains(&(key.workload.clone(), side.to_string()))
                    || !all.contains(&format!("{side}.lat.mean"))
            }
            None => true,
        });
    }
    known && !lacking.is_empty()
}

/// What to say where [`one_latency`] finds both.
pub const MIXED_LATENCIES: &str = "some results have no total latencies (lat): all are compared by completion \
    latency (clat), which leaves out waiting for a tag";

/// One line of an analysis: a scheduler in one cell, by one measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Which cell.
    pub key: CellKey,
    /// Measure.
    pub measure: String,
    /// Unit.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// Its own summary.
    pub summary: Summary,
    /// Against the base scheduler; `None` for the base itself and where the base has no figure.
    pub against_base: Option<Judged>,
    /// SD/mean above 6 %.
    pub noisy: bool,
    /// Rounds with an outlier.
    pub outliers: Vec<u32>,
    /// Trials of the cell that failed or are invalid.
    pub unusable: usize,
    /// Rounds that had too few I/Os for this figure: they count as at least the longest wait.
    #[serde(default)]
    pub starved: usize,
}

/// All cells of some records, judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The base scheduler.
    pub base: String,
    /// The lines, by device, workload, scheduler, measure.
    pub lines: Vec<Line>,
    /// Cells without any figure, and why: shown as incomplete.
    pub incomplete: Vec<(CellKey, String)>,
}

/// Judges every scheduler against `base`: [`judge_cells`] of the grouped records.
#[must_use]
pub fn analyse(records: &[Record], base: Option<&str>, options: VerdictOptions) -> Analysis {
    let mut cells = group(records);
    one_latency([&mut cells]);
    charge_starved([&mut cells]);
    judge_cells(&cells, base, options)
}

/// The default scheduler to compare others with: none, else noop, else the first.
#[must_use]
pub fn usual_base<'a>(schedulers: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let plain = |word: &str| {
        let family = |s: &&str| {
            let name = s.to_lowercase();
            name.split([' ', '@', '(']).next() == Some(word)
        };
        schedulers.clone().into_iter().find(family)
    };
    plain("none").or_else(|| plain("noop")).or_else(|| schedulers.clone().into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Verdict;
    use iosched_experiment::record::Metric;

    fn record(scheduler: &str, repetition: u32, value: f64, backend: BackendKind) -> Record {
        let trial = TrialId {
            device: "d".into(),
            workload: "w".into(),
            scheduler: scheduler.into(),
            repetition,
            ..TrialId::default()
        };
        let metric = Metric {
            name: "iops".into(),
            value,
            unit: "1/s".into(),
            higher_is_better: Some(true),
            censored: false,
        };
        Record { trial, backend, metrics: vec![metric], ..Record::default() }
    }

    #[test]
    fn the_simulator_is_exact_and_failed_cells_are_kept() {
        let mut records: Vec<Record> = (1..=3)
            .flat_map(|i| {
                [
                    record("none", i, 100.0, BackendKind::Sim),
                    record("bfq", i, 90.0, BackendKind::Sim),
                ]
            })
            .collect();
        let mut failed = record("kyber", 1, 0.0, BackendKind::Sim);
        failed.status = Status::Failed("no memory".into());
        records.push(failed);
        let a = analyse(&records, Some("none"), VerdictOptions::default());
        let j = a.lines[0].against_base.as_ref().unwrap();
        assert_eq!(j.words(), "worse (exact)");
        assert!(a.lines[1].against_base.is_none());
        assert_eq!(a.incomplete[0].1, "no memory");
    }

    /// Figures of many processes that nobody sees take no certainty from those that are shown.
    #[test]
    fn jobs_of_a_server_do_not_join_the_family() {
        let p = |jobs: u32| {
            let mut records = Vec::new();
            for (s, v) in [("none", 100.0), ("bfq", 104.0)] {
                for i in 1..=5 {
                    let mut r = record(s, i, v + f64::from(i), BackendKind::Imported);
                    for j in 0..jobs {
                        let value = 100.0 + f64::from((i * 7 + j * 3 + s.len() as u32) % 11);
                        let name = format!("job/{j}/read.bw");
                        r.metrics.push(Metric { name, value, ..r.metrics[0].clone() });
                    }
                    records.push(r);
                }
            }
            let a = analyse(&records, Some("none"), VerdictOptions::default());
            let line = a.lines.iter().find(|l| l.measure == "iops" && l.against_base.is_some());
            line.unwrap().against_base.as_ref().unwrap().p_corrected.unwrap()
        };
        assert_eq!(p(0), p(40));
    }

    /// What reads and writes in all is judged with the figures that are shown: tables of terminals show it.
    #[test]
    fn a_workload_that_does_both_has_a_total() {
        let with = |scheduler: &str, i: u32, write: f64| {
            let mut r = record(scheduler, i, 100.0, BackendKind::Real);
            let first = r.metrics[0].clone();
            let metric = |name: &str, value| Metric {
                name: name.into(),
                value,
                unit: "B/s".into(),
                ..first.clone()
            };
            r.metrics = vec![metric("read.bw", 1e6)];
            if write > 0.0 {
                r.metrics.push(metric("write.bw", write + f64::from(i)));
            }
            r
        };
        let both: Vec<Record> =
            (1..=3).flat_map(|i| [with("none", i, 1e6), with("bfq", i, 3e6)]).collect();
        let cells = group(&both);
        assert_eq!(throughput_of(&cells, "d", "w"), Some(crate::measure::TOTAL));
        let a = judge_cells(&cells, None, VerdictOptions::default());
        let total = a.lines.iter().find(|l| l.measure == "total.bw" && l.against_base.is_some());
        let ratio = total.unwrap().against_base.as_ref().unwrap().ratio.unwrap();
        assert!((ratio - 2.0).abs() < 1e-3, "{ratio}");
        let reads = group(&[with("none", 1, 0.0), with("bfq", 1, 0.0)]);
        assert_eq!(throughput_of(&reads, "d", "w"), Some("read.bw"));
        assert!(judge_cells(&reads, None, VerdictOptions::default()).lines.len() == 2);
    }

    /// A total lends no spread beside its parts, and its rounds are no further evidence: reads and writes are judged as if
    /// nobody had added them up.
    #[test]
    fn a_total_says_nothing_that_its_parts_have_not_said() {
        let mut rng = iosched_engine::stream(3, "parts");
        let mut records = Vec::new();
        for i in 1..=5 {
            for s in ["none", "bfq"] {
                let mut r = record(s, i, 1.0, BackendKind::Imported);
                let metric =
                    |name: &str, value| Metric { name: name.into(), value, ..r.metrics[0].clone() };
                let both = crate::measure::PARTS.map(|m| metric(m, 1e6 * (1.0 + 0.1 * rng.unit())));
                r.metrics = both.into();
                records.push(r);
            }
        }
        let cells = group(&records);
        let a = judge_cells(&cells, Some("none"), VerdictOptions::default());
        assert!(a.lines.iter().any(|l| l.measure == crate::measure::TOTAL));
        let sample = |s: &str, m: &str| {
            let of = cells.0.iter().find(|(k, _)| k.scheduler == s).unwrap();
            of.1.measures[m].sample.clone()
        };
        let groups = crate::measure::PARTS.map(|m| (sample("none", m), vec![sample("bfq", m)]));
        let alone = crate::stats::judge_all(&groups, Better::Higher, VerdictOptions::default());
        for (m, alone) in crate::measure::PARTS.iter().zip(alone) {
            let line = a.lines.iter().find(|l| l.measure == *m && l.against_base.is_some());
            let judged = line.unwrap().against_base.as_ref().unwrap();
            assert_eq!((judged.p, judged.ratio_ci), (alone[0].p, alone[0].ratio_ci), "{m}");
        }
    }

    #[test]
    fn a_figure_has_one_latency() {
        let with = |scheduler: &str, i: u32, total: bool| {
            let mut job = iosched_experiment::JobRecord::default();
            (0..200).for_each(|_| job.read.clat.record(1_000));
            job.read.ios = 200;
            if total {
                (0..200).for_each(|_| job.read.lat_hist.record(20_000));
            }
            Record {
                jobs: vec![job],
                metrics: vec![],
                ..record(scheduler, i, 1.0, BackendKind::Sim)
            }
        };
        let names = |records: &[Record]| {
            let mut cells = group(records);
            let mixed = one_latency([&mut cells]);
            let all = cells.0.values().flat_map(|c| c.measures.keys().cloned());
            (mixed, all.collect::<BTreeSet<String>>())
        };
        let lat = ["read.lat.mean", "read.lat.p50", "read.lat.p99"].map(String::from);
        let (mixed, all) = names(&[with("none", 1, true), with("bfq", 1, true)]);
        assert_eq!((mixed, all), (false, lat.into()));
        // One older result: all are compared by what it has.
        let clat: BTreeSet<String> =
            ["mean", "p50", "p99"].map(|p| format!("read.clat.{p}")).into();
        let mut some = vec![with("none", 1, true), with("bfq", 1, true), with("bfq", 2, false)];
        assert_eq!(names(&some), (true, clat.clone()));
        some.remove(0);
        some.remove(0);
        assert_eq!(names(&some), (false, clat));
    }

    #[test]
    fn a_real_disk_needs_repetitions() {
        let records: Vec<Record> = (1..=3)
            .flat_map(|i| {
                [
                    record("none", i, 100.0, BackendKind::Real),
                    record("bfq", i, 90.0, BackendKind::Real),
                ]
            })
            .collect();
        let a = analyse(&records, Some("none"), VerdictOptions::default());
        assert_eq!(a.lines[0].against_base.as_ref().unwrap().verdict, Verdict::NotEnoughData);
    }

    #[test]
    fn six_rounds_tell_two_losers() {
        let of = |s: &str, v: f64| {
            (1..=6).map(move |i| (s.to_string(), i, v + f64::from(i))).collect::<Vec<_>>()
        };
        let all = [of("none", 100.0), of("bfq", 80.0), of("kyber", 70.0)].concat();
        let records: Vec<Record> =
            all.iter().map(|(s, i, v)| record(s, *i, *v, BackendKind::Real)).collect();
        let a = analyse(&records, Some("none"), VerdictOptions::default());
        let judged: Vec<Verdict> =
            a.lines.iter().filter_map(|l| l.against_base.as_ref()).map(|j| j.verdict).collect();
        assert_eq!(judged, [Verdict::Worse; 2]);
    }

    #[test]
    fn the_usual_base_has_no_scheduler_at_all() {
        assert_eq!(usual_base(["bfq", "noop", "None@6.12"]), Some("None@6.12"));
        assert_eq!(usual_base(["bfq", "noop x=1"]), Some("noop x=1"));
        assert_eq!(usual_base(["nonesuch", "bfq"]), Some("nonesuch"));
        assert_eq!(usual_base([]), None);
    }

    #[test]
    fn outliers_are_named_by_round() {
        let values = [10.0, 10.1, 9.9, 10.0, 50.0, 10.05];
        let records: Vec<Record> =
            values.iter().zip(1..).map(|(v, i)| record("none", i, *v, BackendKind::Real)).collect();
        let a = analyse(&records, None, VerdictOptions::default());
        assert_eq!((a.lines[0].outliers.as_slice(), a.lines[0].noisy), (&[5][..], true));
    }
}
