//! `iosched compare BASE NEW`: what changed between two results, and whether it is a regression.

mod conditions;
mod matching;

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::Record;
use iosched_types::nearest::did_you_mean;
use serde::{Deserialize, Serialize};

use crate::cells::{CellKey, CellSample, Cells, charge_starved, group, one_latency, with_parts};
use crate::measure::{Sharing, TOTAL, kind, latency_of};
use crate::stats::{
    Better, Compared, Judged, Lent, Summary, Verdict, VerdictOptions, judge_together, summarize,
};
use conditions::conditions;
pub(crate) use conditions::volatile;
pub use conditions::{DEVICE_CONTENT, Difference, UNRECORDED, VOLATILE};

/// Options of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareOptions {
    /// A significant loss beyond this share is a regression (0.05 = 5 %). It replaces the verdicts' margin.
    pub threshold: f64,
    /// Compare although the provenance differs.
    pub force: bool,
    /// Provenance that may differ, because it is what is being compared: `kernel`, `tool` …
    pub vary: Vec<String>,
    /// Schedulers of one family are the same, whatever kernel, generation and tunables they have on either side.
    pub families: bool,
    /// Only measures that start with one of these; all when empty.
    pub measures: Vec<String>,
    /// Significance.
    pub verdict: VerdictOptions,
}

impl Default for CompareOptions {
    fn default() -> Self {
        CompareOptions {
            threshold: 0.05,
            force: false,
            vary: Vec::new(),
            families: false,
            measures: Vec::new(),
            verdict: VerdictOptions::default(),
        }
    }
}

/// Why two results cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The provenance differs.
    #[error("the results were not made under the same conditions: {}; {}", differences(.0), way_out(.0))]
    Provenance(Vec<Difference>),
    /// No cell in common.
    #[error(
        "the results have no cell (device, workload, scheduler) in common: base has {base}, new has {new}"
    )]
    NothingInCommon {
        /// A cell of the base.
        base: String,
        /// A cell of the new side.
        new: String,
    },
    /// No family that each side has once.
    #[error(
        "there is no family of which each side has one scheduler with the same device and workload: base has {base}, new has {new}"
    )]
    NoFamily {
        /// Schedulers of the base.
        base: String,
        /// Schedulers of the new side.
        new: String,
    },
    /// No figure has such a name.
    #[error("no measure begins with \"{wanted}\"; {help}")]
    Measure {
        /// As asked for.
        wanted: String,
        /// The nearest, or what there is.
        help: String,
    },
    /// No record has such a field.
    #[error("nothing records \"{wanted}\", so it cannot vary; {help}")]
    Vary {
        /// As asked for.
        wanted: String,
        /// The nearest, or what there is.
        help: String,
    },
    /// The threshold is no share.
    #[error("the threshold must be a number from 0 up, not {0}")]
    Threshold(f64),
}

fn way_out(d: &[Difference]) -> String {
    let force =
        "use --force to compare all the same, or --vary FIELD when the field is what you compare";
    match d.iter().any(|d| OF_KERNEL.contains(&d.field.as_str())) {
        true => format!("to compare two kernels use --match family; {force}"),
        false => force.into(),
    }
}

fn differences(d: &[Difference]) -> String {
    let list: Vec<String> = d
        .iter()
        .take(5)
        .map(|d| format!("{} is {} in base, {} in new", d.field, d.base, d.new))
        .collect();
    let more = d.len().saturating_sub(5);
    if more > 0 { format!("{} and {more} more", list.join("; ")) } else { list.join("; ") }
}

/// One measure of one cell, before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Which cell.
    pub key: CellKey,
    /// Measure.
    pub measure: String,
    /// Unit.
    pub unit: String,
    /// Both sides, ratio, tests, verdict.
    pub judged: Judged,
    /// Significantly worse by more than the threshold.
    pub regression: bool,
    /// The data leave room for a loss beyond the threshold and do not show one.
    pub open: bool,
    /// Runs of each side that would leave no room for it, or show it; `None` where that cannot be said.
    #[serde(default)]
    pub needs: Option<usize>,
}

/// What a guard wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Something is worse by more than the threshold.
    Regression,
    /// Nothing is, and the data would have shown it.
    NoRegression,
    /// A figure is missing or too uncertain.
    CannotTell,
}

/// The outcome of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The changes, by device, workload, scheduler, measure.
    pub changes: Vec<Change>,
    /// Cells without figures on one side: `(cell, what is missing)`.
    pub incomplete: Vec<(CellKey, String)>,
    /// Cells with figures in the base and none in the new side.
    pub lacking: usize,
    /// Provenance that differs, compared by force or by `vary`.
    pub differing: Vec<Difference>,
    /// Figures of single jobs that were left out: those of more than eight jobs, unless they are asked for.
    #[serde(default)]
    pub left_out: usize,
    /// Percentiles that were left out, since some runs have too few I/Os for them.
    #[serde(default)]
    pub unresolved: usize,
    /// Some results have total latencies and others do not, so all are compared by completion latency.
    #[serde(default)]
    pub mixed_latencies: bool,
    /// Schedulers of one family that stand for each other, in base and in new, since no cell is in both.
    #[serde(default)]
    pub matched: Vec<(String, String)>,
}

impl Comparison {
    /// Whether something is worse by more than the threshold.
    #[must_use]
    pub fn has_regression(&self) -> bool {
        self.changes.iter().any(|c| c.regression)
    }

    /// The answer to a guard's question. A cell that the new side lacks may be worse.
    #[must_use]
    pub fn answer(&self) -> Answer {
        if self.has_regression() {
            Answer::Regression
        } else if self.changes.is_empty() || self.changes.iter().any(|c| c.open) || self.lacking > 0
        {
            Answer::CannotTell
        } else {
            Answer::NoRegression
        }
    }
}

/// What differs because another kernel has the family.
const OF_KERNEL: [&str; 2] = ["kernel", "kernel_profile"];

/// The fields that tell the kernel, of those that are recorded.
fn of_kernel<'a>(base: &'a [Record], new: &'a [Record]) -> impl Iterator<Item = String> + 'a {
    let has = |f: &str, r: &Record| match f {
        "kernel" => !r.trial.kernel.is_empty(),
        _ => r.provenance.contains_key(f),
    };
    let recorded = move |f: &&str| base.iter().chain(new).any(|r| has(f, r));
    OF_KERNEL.into_iter().filter(recorded).map(str::to_string)
}

/// Compares schedulers by their families.
fn families(
    base: &[Record],
    new: &[Record],
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    let found = matching::by_family(base, new).ok_or_else(|| {
        let of = |all: &[Record]| {
            let names: BTreeSet<&str> = all.iter().map(|r| r.trial.scheduler.as_str()).collect();
            names.into_iter().collect::<Vec<_>>().join(", ")
        };
        CompareError::NoFamily { base: of(base), new: of(new) }
    })?;
    let vary = options.vary.iter().cloned().chain(of_kernel(&found.base, &found.new)).collect();
    let options = CompareOptions { families: false, vary, ..options.clone() };
    let comparison = compare(&found.base, &found.new, &options)?;
    Ok(Comparison { matched: found.names, ..comparison })
}

/// Compares two sets of records cell by cell.
///
/// # Errors
/// [`CompareError`]: unequal provenance, nothing in common, a bad threshold.
pub fn compare(
    base: &[Record],
    new: &[Record],
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    if !(options.threshold >= 0.0 && options.threshold.is_finite()) {
        return Err(CompareError::Threshold(options.threshold));
    }
    if options.families {
        return families(base, new, options);
    }
    let (mut b, mut n) = (group(base), group(new));
    // Who asks for completion latency gets it.
    let asked = options.measures.iter().any(|m| m.contains("clat"));
    let mixed_latencies = !asked && one_latency([&mut b, &mut n]);
    charge_starved([&mut b, &mut n]);
    let common: BTreeSet<CellKey> = b.0.keys().filter(|k| n.0.contains_key(*k)).cloned().collect();
    if common.is_empty() {
        if let Some(found) = matching::by_family(base, new) {
            let comparison = compare(&found.base, &found.new, options)?;
            return Ok(Comparison { matched: found.names, ..comparison });
        }
        let first = |c: &Cells| {
            c.0.keys().next().map_or("none".into(), |k| {
                format!("{} / {} / {}", k.device, k.workload, k.scheduler)
            })
        };
        return Err(CompareError::NothingInCommon { base: first(&b), new: first(&n) });
    }
    // The fields of a kernel vary together.
    let mut options = options.clone();
    if options.vary.iter().any(|f| OF_KERNEL.contains(&f.as_str())) {
        options.vary.extend(of_kernel(base, new));
    }
    let options = &options;
    let differing = conditions(base, new, &common, options)?;
    let seeds = (seeds(base), seeds(new));
    for side in [&mut b, &mut n] {
        for (key, cell) in &mut side.0 {
            // Rounds of two experiments are pairs only where the same seed drew both.
            let same = seeds.0.contains_key(key) && seeds.0.get(key) == seeds.1.get(key);
            cell.measures.values_mut().for_each(|m| m.sample.paired &= same);
        }
    }
    let mut figures = figures(&b, &n, options);
    for wanted in &options.measures {
        // Everything begins with nothing: an empty name is a script's mistake.
        let known = figures.iter().any(|f| f.measure.starts_with(wanted.as_str()));
        if wanted.trim().is_empty() || !known {
            let names: BTreeSet<&str> = figures.iter().map(|f| f.measure).collect();
            return Err(CompareError::Measure {
                wanted: wanted.clone(),
                help: near(wanted, names),
            });
        }
    }
    // The figure of a single job is that of the workload. Nothing is left out with it.
    let left_out = figures.iter().filter(|f| !seen(f, options) && f.jobs > 1).count();
    figures.retain(|f| seen(f, options));
    let unresolved = figures.iter().filter(|f| f.unresolved).count();
    figures.retain(|f| !f.unresolved);
    let has = |c: &Cells, k: &CellKey| c.0.get(k).is_some_and(|cell| !cell.measures.is_empty());
    Ok(Comparison {
        differing,
        left_out,
        unresolved,
        mixed_latencies,
        matched: Vec::new(),
        incomplete: incomplete(&b, &n),
        lacking: b.0.keys().filter(|k| has(&b, k) && !has(&n, k)).count(),
        changes: changes(figures, options),
    })
}

/// One figure that both sides have.
struct Figure<'a> {
    key: &'a CellKey,
    measure: &'a str,
    base: &'a CellSample,
    new: &'a CellSample,
    /// The jobs with this figure are few enough to be told apart.
    told_apart: bool,
    /// How many jobs have this figure.
    jobs: usize,
    /// A percentile of which a side tells only what the runs with the most I/Os had.
    unresolved: bool,
}

/// Of a hundred jobs one is always the unluckiest, and nobody reads their figures: they would only take certainty from
/// those that people read. Who asks for the figures of jobs gets them.
fn seen(f: &Figure<'_>, options: &CompareOptions) -> bool {
    f.told_apart || options.measures.iter().any(|m| m.starts_with("job/"))
}

/// A percentile of latencies that not every run of a cell has: of which only the runs with the most I/Os tell. Of the
/// 99th that counts only where both sides lack it in the same runs: elsewhere one of them may starve a process.
fn unresolved(measure: &str, sides: [&CellSample; 2], runs: [usize; 2]) -> bool {
    let rounds = sides.map(|s| s.sample.rounds.iter().map(|r| r.0).collect::<BTreeSet<u32>>());
    let all = rounds.iter().zip(runs).all(|(r, n)| r.len() == n);
    !all && percentile(measure) && (beyond_p99(measure) || rounds[0] == rounds[1])
}

fn percentile(measure: &str) -> bool {
    latency_of(measure).is_some() && [".p50", ".p99"].iter().any(|p| measure.contains(p))
}

fn beyond_p99(measure: &str) -> bool {
    percentile(measure) && measure.contains(".p99.")
}

fn figures<'a>(b: &'a Cells, n: &'a Cells, options: &CompareOptions) -> Vec<Figure<'a>> {
    let mut out = Vec::new();
    // Who asks for a percentile gets it.
    let asked = options.measures.iter().any(|m| percentile(m));
    for (key, cell) in &n.0 {
        let Some(other) = b.0.get(key) else { continue };
        let runs = [other, cell].map(|c| c.rounds().len());
        let sharing = Sharing::of(cell.measures.keys().map(String::as_str));
        for (measure, new) in &cell.measures {
            if let Some(base) = other.measures.get(measure) {
                let (told_apart, jobs) = (sharing.told_apart(measure), sharing.jobs(measure));
                let unresolved = !asked && unresolved(measure, [base, new], runs);
                out.push(Figure { key, measure, base, new, told_apart, jobs, unresolved });
            }
        }
    }
    out
}

/// Cells with reads or writes.
fn whole<'a>(figures: &[Figure<'a>]) -> BTreeSet<&'a CellKey> {
    with_parts(figures.iter().map(|f| (f.key, f.measure)))
}

impl Figure<'_> {
    /// A total beside its parts.
    fn sum(&self, whole: &BTreeSet<&CellKey>) -> bool {
        self.measure == TOTAL && whole.contains(self.key)
    }
}

fn changes(mut figures: Vec<Figure<'_>>, options: &CompareOptions) -> Vec<Change> {
    // Figures that are left out of the comparison still show how much such figures scatter.
    let all = whole(&figures);
    let lends = figures.iter().filter(|f| !f.sum(&all));
    let lent = Lent::of(lends.flat_map(|f| [f.base, f.new].map(|s| (kind(f.measure), &s.sample))));
    let wanted = |m: &str| {
        options.measures.is_empty() || options.measures.iter().any(|w| m.starts_with(w.as_str()))
    };
    figures.retain(|f| wanted(f.measure));
    let all = whole(&figures);
    let verdict = VerdictOptions { margin: options.threshold, ..options.verdict };
    let of = |s: &CellSample| summarize(&s.sample.observations(), verdict.seed);
    let summaries: Vec<(Summary, Summary)> =
        figures.iter().map(|f| (of(f.base), of(f.new))).collect();
    let mut pairs = Vec::with_capacity(figures.len());
    for (f, (b, n)) in figures.iter().zip(&summaries) {
        pairs.push(Compared {
            base: (&f.base.sample, b),
            new: (&f.new.sample, n),
            better: f.new.better,
            kind: kind(f.measure),
            sum: f.sum(&all),
        });
    }
    let judged = judge_together(&pairs, &lent, verdict);
    figures.iter().zip(judged).map(|(f, j)| change(f, j, options.threshold)).collect()
}

fn change(f: &Figure<'_>, judged: Judged, threshold: f64) -> Change {
    // Without a ratio (a value was censored) any significant loss counts.
    let regression =
        judged.verdict == Verdict::Worse && judged.loss().is_none_or(|l| l > threshold);
    let unsure = matches!(judged.verdict, Verdict::NotEnoughData | Verdict::Invalid);
    let open = unsure && judged.worst_loss().is_none_or(|l| l > threshold);
    let (key, measure, unit) = (f.key.clone(), f.measure.into(), f.new.unit.clone());
    let needs = if open { runs(&judged, threshold) } else { None };
    Change { key, measure, unit, judged, regression, open, needs }
}

/// How many runs would leave no room for a loss beyond the threshold. A figure that looks better needs fewer of them
/// than it takes to show that it is.
fn runs(judged: &Judged, threshold: f64) -> Option<usize> {
    let ends = judged.ratio_ci.filter(|(low, _)| *low > 0.0);
    let Some((low, high)) = ends.map(|(low, high)| (low.ln(), high.ln())) else {
        return judged.needs;
    };
    let middle = f64::midpoint(low, high);
    let (loss, limit) = match judged.better {
        Better::Higher => (-middle, -(1.0 - threshold).max(f64::MIN_POSITIVE).ln()),
        Better::Lower => (middle, threshold.ln_1p()),
    };
    let n = judged.base.n.min(judged.new.n);
    if loss >= limit {
        return judged.needs;
    }
    // The interval shrinks with the root of the runs.
    let times = ((high - low) / 2.0 / (limit - loss)).powi(2);
    let runs = ((n as f64 * times).ceil() as usize).max(n + 1);
    Some(judged.needs.map_or(runs, |needs| needs.min(runs)))
}

/// Seeds by round.
fn seeds(records: &[Record]) -> BTreeMap<CellKey, BTreeSet<(u32, u64)>> {
    let mut out = BTreeMap::<CellKey, BTreeSet<(u32, u64)>>::new();
    for r in records.iter().filter(|r| r.backend.traits().deterministic) {
        let t = &r.trial;
        out.entry(CellKey::of(t)).or_default().insert((t.repetition, t.seed));
    }
    out
}

/// The nearest of some names, or the first of them.
fn near<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let found = did_you_mean(wanted, names.clone());
    if !found.is_empty() {
        return found;
    }
    let all = names.clone().into_iter().count();
    if all == 0 {
        return "nothing was measured on both sides".into();
    }
    let some: Vec<&str> = names.into_iter().take(12).collect();
    let more = if all > 12 { format!(", … ({} more)", all - 12) } else { String::new() };
    format!("there are {}{more}", some.join(", "))
}

fn incomplete(b: &Cells, n: &Cells) -> Vec<(CellKey, String)> {
    let all: BTreeSet<&CellKey> = b.0.keys().chain(n.0.keys()).collect();
    let mut out = Vec::new();
    for k in all {
        for (side, name) in [(b, "base"), (n, "new")] {
            match side.0.get(k) {
                None => out.push((k.clone(), format!("not in {name}"))),
                Some(cell) if cell.measures.is_empty() => {
                    let why = cell.unusable.first().map_or("no figures", String::as_str);
                    out.push((k.clone(), format!("no usable trial in {name}: {why}")));
                }
                Some(_) => {}
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
