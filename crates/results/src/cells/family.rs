//! Which figures are read together, and what is said of them: each scheduler judged against a base.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rayon::iter::{
    IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator,
};

use iosched_experiment::DURABLE_BW;

use super::{Analysis, Cell, CellKey, CellSample, Cells, Line, usual_base};
use crate::measure::{PARTS, TOTAL, is_head, kind};
use crate::stats::{
    Better, Compared, Judged, Lent, Observation, Sample, Summary, VerdictOptions, judge_together,
    outliers, summarize,
};

/// Every pair of schedulers is judged up to this many judgements; beyond, only against the usual base.
pub const MOST_PAIRS: usize = 20_000;

/// Judges every scheduler against `base` ([`usual_base`] when `None` or absent), cell by cell. What a reader sees from the
/// start ([`heads`]) is read together, so the correction for many comparisons runs over it. All further figures are
/// another family: nobody sees them before asking for every measure, and they take no certainty from the first.
#[must_use]
pub fn judge_cells(cells: &Cells, base: Option<&str>, options: VerdictOptions) -> Analysis {
    let schedulers: BTreeSet<&str> = cells.0.keys().map(|k| k.scheduler.as_str()).collect();
    let base = base.filter(|b| schedulers.contains(b)).or_else(|| usual_base(schedulers));
    let base = base.unwrap_or("");
    let [seen, further] = Family::both(cells, options);
    let mut out = seen.judge(base, options);
    out.lines.extend(further.judge(base, options).lines);
    out.lines.sort_by(|a, b| (&a.key, &a.measure).cmp(&(&b.key, &b.measure)));
    for (key, cell) in cells.0.iter().filter(|(_, c)| c.measures.is_empty()) {
        let why = cell.unusable.first().cloned().unwrap_or_else(|| "no figures".into());
        out.incomplete.push((key.clone(), why));
    }
    out
}

/// As [`judge_cells`] against each of several bases, of what a reader sees from the start only. The cells are summarised
/// once. Beyond [`MOST_PAIRS`] judgements only the usual base is judged, where it is one of the bases.
pub fn judge_each<'a>(
    cells: &'a Cells,
    bases: &'a [&str],
    options: VerdictOptions,
) -> impl Iterator<Item = Analysis> + 'a {
    let [seen, _] = Family::both(cells, options);
    let schedulers: BTreeSet<&str> = cells.0.keys().map(|k| k.scheduler.as_str()).collect();
    let many = seen.figures.len() * schedulers.len() > MOST_PAIRS;
    let usual = usual_base(schedulers);
    let judged = bases.iter().filter(move |b| !many || usual == Some(**b));
    judged.map(move |base| seen.judge(base, options))
}

/// The figures that a reader sees from the start, as (workload, measure): [`is_head`] on one of the devices, of what
/// enough I/Os resolve there, and the total of what reads and writes.
#[must_use]
pub fn heads(cells: &Cells) -> BTreeSet<(&str, &str)> {
    type Known<'a> = [BTreeSet<&'a str>; 2];
    let mut places: BTreeMap<(&str, &str), Known<'_>> = BTreeMap::new();
    for (key, cell) in &cells.0 {
        let [all, few] = places.entry((&key.device, &key.workload)).or_default();
        all.extend(cell.measures.keys().map(String::as_str));
        few.extend(cell.measures.iter().filter(|(_, c)| c.starved > 0).map(|(m, _)| m.as_str()));
    }
    let mut out = BTreeSet::new();
    for ((device, workload), [all, few]) in places {
        // It may be made of the two rates.
        if throughput_of(cells, device, workload) == Some(TOTAL) {
            out.insert((workload, TOTAL));
        }
        let resolved = all.difference(&few).copied().collect();
        out.extend(all.iter().filter(|m| is_head(m, &resolved)).map(|m| (workload, *m)));
    }
    out
}

/// A workload's throughput by the name of the figure that tables judge: the rate until all is durable where that is known;
/// reads or writes where it does nothing else, both added up, or trims. `None` where it moves nothing.
#[must_use]
pub fn throughput_of(cells: &Cells, device: &str, workload: &str) -> Option<&'static str> {
    let here = || cells.at(device, workload);
    let has = |m: &str| here().any(|(_, c)| c.measures.contains_key(m));
    // What the page cache took is not yet written.
    if has(DURABLE_BW) {
        return Some(DURABLE_BW);
    }
    if has(TOTAL) {
        return Some(TOTAL);
    }
    let sides = PARTS.map(|m| Some(m).filter(|m| has(m)));
    let whole = |m: &str| {
        let of = |c: &Cell| c.measures.get(m).map_or(0, |s| s.sample.rounds.len());
        here().all(|(_, c)| of(c) == c.rounds().len())
    };
    match sides {
        [Some(_), Some(_)] => Some(TOTAL),
        // A round without any I/O has no rate, yet it moved nothing.
        [one, other] => match one.or(other) {
            Some(m) if whole(m) => Some(m),
            Some(_) => Some(TOTAL),
            None => has("trim.iops").then_some("trim.iops"),
        },
    }
}

/// Cells of which these figures have reads or writes: their total is no figure of its own. It takes the spread of its kind,
/// but its rounds would be counted twice.
pub(crate) fn with_parts<'a>(
    figures: impl Iterator<Item = (&'a CellKey, &'a str)>,
) -> BTreeSet<&'a CellKey> {
    figures.filter(|(_, m)| PARTS.contains(m)).map(|(k, _)| k).collect()
}

/// What each cell read and wrote in all.
fn totals(cells: &Cells) -> Vec<(&CellKey, CellSample, usize)> {
    let places: BTreeSet<(&str, &str)> =
        cells.0.keys().map(|k| (k.device.as_str(), k.workload.as_str())).collect();
    let wanted: BTreeSet<(&str, &str)> =
        places.into_iter().filter(|(d, w)| throughput_of(cells, d, w) == Some(TOTAL)).collect();
    let here = cells.0.iter().filter(|(k, c)| {
        !c.measures.is_empty()
            && !c.unsaid()
            && wanted.contains(&(k.device.as_str(), k.workload.as_str()))
    });
    here.map(|(k, c)| (k, c.total(), c.unusable.len())).collect()
}

impl CellSample {
    /// More is better.
    fn of(unit: &str, sample: Sample, rounds: Vec<(u32, Observation)>) -> CellSample {
        let highest = rounds.last().map_or(0, |r| r.0);
        let sample = Sample { rounds, ..sample };
        CellSample { unit: unit.into(), better: Better::Higher, sample, starved: 0, highest }
    }
}

impl Cell {
    /// Every round in which it has any figure.
    pub(crate) fn rounds(&self) -> BTreeSet<u32> {
        self.measures.values().flat_map(|m| m.sample.rounds.iter().map(|r| r.0)).collect()
    }

    /// Nobody said what it moved, nor counted its I/Os: that is not known to be nothing.
    pub(crate) fn unsaid(&self) -> bool {
        let rates = ["read.bw", "write.bw", TOTAL, "trim.iops"];
        !self.counted && !rates.iter().any(|m| self.measures.contains_key(*m))
    }

    /// Bytes read and written a second, by round: its total, or what it moved in the only direction that it has.
    #[must_use]
    pub fn total(&self) -> CellSample {
        let mut sums: BTreeMap<u32, f64> = self.rounds().into_iter().map(|r| (r, 0.0)).collect();
        let mut sample = Sample { deterministic: true, paired: true, ..Sample::default() };
        for side in PARTS.iter().filter_map(|m| self.measures.get(*m)) {
            sample.deterministic &= side.sample.deterministic;
            sample.paired &= side.sample.paired;
            for (round, o) in &side.sample.rounds {
                *sums.entry(*round).or_default() += o.value;
            }
        }
        if let Some(own) = self.measures.get(TOTAL) {
            sample.deterministic &= own.sample.deterministic;
            sample.paired &= own.sample.paired;
            sums.extend(own.sample.rounds.iter().map(|(round, o)| (*round, o.value)));
        }
        let rounds = sums.into_iter().map(|(r, v)| (r, Observation::from(v))).collect();
        CellSample::of("B/s", sample, rounds)
    }

    /// What some jobs move together.
    #[must_use]
    pub fn together(&self, all: &[&str]) -> CellSample {
        let (sample, sums) = self.moved("", all);
        let of = |(r, [_, whole]): (u32, [f64; 2])| (r, Observation::from(whole));
        CellSample::of("B/s", sample, sums.into_iter().map(of).collect())
    }

    /// A job's part of what some jobs move together, in percent.
    #[must_use]
    pub fn share(&self, job: &str, all: &[&str]) -> CellSample {
        let (sample, sums) = self.moved(job, all);
        let rounds = sums.into_iter().filter(|(_, [_, whole])| *whole > 0.0);
        let percent = |own: f64, whole: f64| Observation::from(own / whole * 100.0);
        let rounds = rounds.map(|(r, [own, whole])| (r, percent(own, whole))).collect();
        CellSample::of("%", sample, rounds)
    }

    /// By round, what a job moves and what some jobs move together.
    fn moved(&self, job: &str, all: &[&str]) -> (Sample, BTreeMap<u32, [f64; 2]>) {
        let mut sums: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
        let mut sample = Sample { deterministic: true, paired: true, ..Sample::default() };
        for (name, side) in all.iter().flat_map(|j| ["read.bw", "write.bw"].map(|s| (*j, s))) {
            let Some(moved) = self.measures.get(&format!("job/{name}/{side}")) else { continue };
            sample.deterministic &= moved.sample.deterministic;
            sample.paired &= moved.sample.paired;
            for (round, o) in &moved.sample.rounds {
                let [own, whole] = sums.entry(*round).or_default();
                *own += if name == job { o.value } else { 0.0 };
                *whole += o.value;
            }
        }
        (sample, sums)
    }
}

/// One figure of one cell.
struct Figure<'a> {
    key: &'a CellKey,
    measure: &'a str,
    of: Cow<'a, CellSample>,
    unusable: usize,
    summary: Summary,
    sum: bool,
}

/// Figures that are read together, summed up: what is the same against every base.
struct Family<'a> {
    figures: Vec<Figure<'a>>,
    places: BTreeMap<(&'a CellKey, &'a str), usize>,
    lent: Lent,
}

type Unsummed<'a> = (&'a CellKey, &'a str, Cow<'a, CellSample>, usize);

impl<'a> Family<'a> {
    /// What a reader sees from the start, and everything else.
    fn both(cells: &'a Cells, options: VerdictOptions) -> [Family<'a>; 2] {
        let heads = heads(cells);
        let each = cells.0.iter().flat_map(|(k, cell)| {
            let of = move |(m, c): (&'a String, &'a CellSample)| {
                (k, m.as_str(), Cow::Borrowed(c), cell.unusable.len())
            };
            cell.measures.iter().filter(|(m, _)| *m != TOTAL).map(of)
        });
        let (mut seen, further): (Vec<Unsummed<'a>>, Vec<Unsummed<'a>>) =
            each.partition(|(k, m, ..)| heads.contains(&(k.workload.as_str(), *m)));
        let total = |(k, c, unusable)| (k, TOTAL, Cow::Owned(c), unusable);
        seen.extend(totals(cells).into_iter().map(total));
        [seen, further].map(|figures| Family::of(figures, options))
    }

    fn of(figures: Vec<Unsummed<'a>>, options: VerdictOptions) -> Family<'a> {
        let whole = with_parts(figures.iter().map(|(k, m, ..)| (*k, *m)));
        let sum = |key: &CellKey, measure: &str| measure == TOTAL && whole.contains(key);
        let lends = figures.iter().filter(|(k, m, ..)| !sum(k, m));
        let lent = Lent::of(lends.map(|(_, m, c, _)| (kind(m), &c.sample)));
        let summed = |(key, measure, of, unusable): Unsummed<'a>| {
            let summary = summarize(&of.sample.observations(), options.seed);
            Figure { key, measure, of, unusable, summary, sum: sum(key, measure) }
        };
        let figures: Vec<Figure<'a>> = figures.into_par_iter().map(summed).collect();
        let places = figures.iter().enumerate().map(|(i, f)| ((f.key, f.measure), i)).collect();
        Family { figures, places, lent }
    }

    fn judge(&self, base: &str, options: VerdictOptions) -> Analysis {
        let (mut pairs, mut places) = (Vec::new(), Vec::new());
        for (i, f) in self.figures.iter().enumerate().filter(|(_, f)| f.key.scheduler != base) {
            let base = CellKey { scheduler: base.into(), ..f.key.clone() };
            let Some(b) = self.places.get(&(&base, f.measure)).map(|at| &self.figures[*at]) else {
                continue;
            };
            places.push(i);
            pairs.push(Compared {
                base: (&b.of.sample, &b.summary),
                new: (&f.of.sample, &f.summary),
                better: f.of.better,
                kind: kind(f.measure),
                sum: f.sum,
            });
        }
        let mut judged: Vec<Option<Judged>> = vec![None; self.figures.len()];
        for (place, j) in places.into_iter().zip(judge_together(&pairs, &self.lent, options)) {
            judged[place] = Some(j);
        }
        let of = |(f, judged): (&Figure<'_>, _)| Line {
            unusable: f.unusable,
            ..line(f.key, f.measure, &f.of, f.summary.clone(), judged)
        };
        let lines = self.figures.par_iter().zip(judged).map(of).collect();
        Analysis { base: base.into(), lines, incomplete: Vec::new() }
    }
}

fn line(
    key: &CellKey,
    measure: &str,
    cell: &CellSample,
    summary: Summary,
    judged: Option<Judged>,
) -> Line {
    let observations = cell.sample.observations();
    let values: Vec<f64> = observations.iter().map(|o| o.value).collect();
    let censored = observations.iter().any(|o| o.censored);
    Line {
        key: key.clone(),
        measure: measure.into(),
        unit: cell.unit.clone(),
        better: cell.better,
        summary,
        against_base: judged,
        noisy: !censored && crate::stats::is_noisy(&values),
        outliers: if censored {
            Vec::new()
        } else {
            outliers(&values).into_iter().map(|i| cell.sample.rounds[i].0).collect()
        },
        unusable: 0,
        starved: cell.starved,
    }
}
