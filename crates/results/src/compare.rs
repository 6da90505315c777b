//! `iosched compare BASE NEW`: what changed between two results, and whether it is a regression.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::{BackendKind, Record};
use iosched_types::nearest::did_you_mean;
use serde::{Deserialize, Serialize};

use crate::cells::{CellKey, CellSample, Cells, group, one_latency};
use crate::measure::kind;
use crate::stats::{
    Compared, Judged, Lent, Summary, Verdict, VerdictOptions, judge_together, summarize,
};

/// Provenance that differs between any two runs and says nothing about what was measured.
///
/// A field is left out when one of its parts (between dots and slashes) is one of these words. `target` is
/// among them because device nodes change their names from boot to boot; the device's identity counts.
pub const VOLATILE: [&str; 16] = [
    "timestamp",
    "time",
    "date",
    "started",
    "finished",
    "duration",
    "uptime",
    "load",
    "seed",
    "command",
    "file",
    "path",
    "run",
    "pid",
    "target",
    "emulation",
];

/// Provenance: a hash of what is in the device's file. Two files of one name are not one device.
pub const DEVICE_CONTENT: &str = "device.content";

/// Fields that results of earlier versions lack.
const LATE: [&str; 2] = [DEVICE_CONTENT, crate::answer::DEVICE_DEPTH];

/// Options of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareOptions {
    /// A significant loss beyond this share is a regression (0.05 = 5 %). It replaces the verdicts' margin.
    pub threshold: f64,
    /// Compare although the provenance differs.
    pub force: bool,
    /// Provenance that may differ, because it is what is being compared: `kernel`, `tool` …
    pub vary: Vec<String>,
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
            measures: Vec::new(),
            verdict: VerdictOptions::default(),
        }
    }
}

/// A provenance field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Field: `kernel`, `device.model`, …
    pub field: String,
    /// The base's values.
    pub base: String,
    /// The new side's values.
    pub new: String,
}

/// Why two results cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The provenance differs.
    #[error("the results were not made under the same conditions: {}; use --force to compare all the same, or --vary FIELD when the field is what you compare", differences(.0))]
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
    /// Some results have total latencies and others do not, so all are compared by completion latency.
    #[serde(default)]
    pub mixed_latencies: bool,
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
        } else if self.changes.iter().any(|c| c.open) || self.lacking > 0 {
            Answer::CannotTell
        } else {
            Answer::NoRegression
        }
    }
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
    let (mut b, mut n) = (group(base), group(new));
    // Who asks for completion latency gets it.
    let asked = options.measures.iter().any(|m| m.contains("clat"));
    let mixed_latencies = !asked && one_latency([&mut b, &mut n]);
    let common: BTreeSet<CellKey> = b.0.keys().filter(|k| n.0.contains_key(*k)).cloned().collect();
    if common.is_empty() {
        let first = |c: &Cells| {
            c.0.keys().next().map_or("none".into(), |k| {
                format!("{} / {} / {}", k.device, k.workload, k.scheduler)
            })
        };
        return Err(CompareError::NothingInCommon { base: first(&b), new: first(&n) });
    }
    let differing = conditions(base, new, &common, options)?;
    let seeds = (seeds(base), seeds(new));
    for side in [&mut b, &mut n] {
        for (key, cell) in &mut side.0 {
            // Rounds of two experiments are pairs only where the same seed drew both.
            let same = seeds.0.contains_key(key) && seeds.0.get(key) == seeds.1.get(key);
            cell.measures.values_mut().for_each(|m| m.sample.paired &= same);
        }
    }
    let figures = figures(&b, &n);
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
    let has = |c: &Cells, k: &CellKey| c.0.get(k).is_some_and(|cell| !cell.measures.is_empty());
    Ok(Comparison {
        differing,
        mixed_latencies,
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
}

fn figures<'a>(b: &'a Cells, n: &'a Cells) -> Vec<Figure<'a>> {
    let mut out = Vec::new();
    for (key, cell) in &n.0 {
        let Some(other) = b.0.get(key) else { continue };
        for (measure, new) in &cell.measures {
            if let Some(base) = other.measures.get(measure) {
                out.push(Figure { key, measure, base, new });
            }
        }
    }
    out
}

fn changes(mut figures: Vec<Figure<'_>>, options: &CompareOptions) -> Vec<Change> {
    // Figures that are left out of the comparison still show how much such figures scatter.
    let sides = figures.iter().flat_map(|f| [f.base, f.new].map(|s| (kind(f.measure), &s.sample)));
    let lent = Lent::of(sides);
    let wanted = |m: &str| {
        options.measures.is_empty() || options.measures.iter().any(|w| m.starts_with(w.as_str()))
    };
    figures.retain(|f| wanted(f.measure));
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
    Change { key, measure, unit, judged, regression, open }
}

/// Seeds by round.
fn seeds(records: &[Record]) -> BTreeMap<CellKey, BTreeSet<(u32, u64)>> {
    let mut out = BTreeMap::<CellKey, BTreeSet<(u32, u64)>>::new();
    for r in records.iter().filter(|r| r.backend == BackendKind::Sim) {
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
    let some: Vec<&str> = names.into_iter().take(12).collect();
    format!("there are {}", some.join(", "))
}

/// Fields that differ although `vary` does not allow it.
fn conditions(
    base: &[Record],
    new: &[Record],
    common: &BTreeSet<CellKey>,
    options: &CompareOptions,
) -> Result<Vec<Difference>, CompareError> {
    let (b, n) = (fields(base, common), fields(new, common));
    let names: BTreeSet<&str> = b.keys().chain(n.keys()).map(String::as_str).collect();
    if let Some(wanted) = options.vary.iter().find(|v| !names.contains(v.as_str())) {
        return Err(CompareError::Vary { wanted: wanted.clone(), help: near(wanted, names) });
    }
    let differing = provenance(&b, &n);
    let forbidden: Vec<Difference> =
        differing.iter().filter(|d| !options.vary.contains(&d.field)).cloned().collect();
    if !forbidden.is_empty() && !options.force {
        return Err(CompareError::Provenance(forbidden));
    }
    Ok(differing)
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

type Fields = BTreeMap<String, BTreeSet<String>>;

/// The fields with different sets of values over the common cells.
fn provenance(b: &Fields, n: &Fields) -> Vec<Difference> {
    let names: BTreeSet<&String> = b.keys().chain(n.keys()).collect();
    let show = |f: &Fields, name: &str| {
        f.get(name)
            .map_or("not recorded".into(), |v| v.iter().cloned().collect::<Vec<_>>().join(", "))
    };
    names
        .into_iter()
        .filter(|name| b.get(*name) != n.get(*name))
        // Results of earlier versions have none of these.
        .filter(|name| {
            !LATE.contains(&name.as_str()) || b.contains_key(*name) && n.contains_key(*name)
        })
        .map(|name| Difference { field: name.clone(), base: show(b, name), new: show(n, name) })
        .collect()
}

fn fields(records: &[Record], common: &BTreeSet<CellKey>) -> Fields {
    let mut out = Fields::new();
    for r in records {
        let t = &r.trial;
        if !common.contains(&CellKey::of(t)) {
            continue;
        }
        let mut put = |k: &str, v: String| {
            out.entry(k.to_string()).or_default().insert(v);
        };
        put("kernel", t.kernel.clone());
        put("backend", format!("{:?}", r.backend).to_lowercase());
        for (k, v) in &r.provenance {
            if !k.split(['.', '/']).any(|part| VOLATILE.contains(&part)) {
                put(k, v.clone());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_experiment::record::{Metric, Status, TrialId};

    fn records(kernel: &str, values: &[f64]) -> Vec<Record> {
        let of = |(v, i): (&f64, u32)| Record {
            trial: TrialId {
                device: "d".into(),
                workload: "w".into(),
                scheduler: "bfq".into(),
                kernel: kernel.into(),
                repetition: i,
                ..TrialId::default()
            },
            backend: BackendKind::Real,
            metrics: vec![Metric {
                name: "iops".into(),
                value: *v,
                unit: "1/s".into(),
                higher_is_better: true,
                censored: false,
            }],
            provenance: [
                ("device.model".to_string(), "x".to_string()),
                ("timestamp".into(), i.to_string()),
            ]
            .into(),
            ..Record::default()
        };
        values.iter().zip(1..).map(of).collect()
    }

    const FAST: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];

    fn scaled(by: f64) -> Vec<f64> {
        FAST.iter().zip([1.0, 1.001, 0.999, 1.0005, 0.9995, 1.0]).map(|(v, j)| v * by * j).collect()
    }

    #[test]
    fn only_a_significant_loss_beyond_the_threshold_is_a_regression() {
        let o = CompareOptions::default();
        let run = |by| compare(&records("6.1", &FAST), &records("6.1", &scaled(by)), &o).unwrap();
        assert!(run(0.9).has_regression());
        assert!(!run(0.97).has_regression());
        assert_eq!(run(0.97).changes[0].judged.verdict, Verdict::Worse);
        assert!(!run(1.1).has_regression());
        let noisy = [60.0, 140.0, 99.0, 80.0, 120.0, 70.0];
        assert!(
            !compare(&records("6.1", &FAST), &records("6.1", &noisy), &o).unwrap().has_regression()
        );
    }

    #[test]
    fn a_guard_is_told_when_nobody_can_tell() {
        let o = CompareOptions::default();
        let run =
            |a: &[f64], b: &[f64]| compare(&records("6.1", a), &records("6.1", b), &o).unwrap();
        assert_eq!(run(&FAST, &scaled(0.4)).answer(), Answer::Regression);
        assert_eq!(run(&FAST, &FAST).answer(), Answer::NoRegression);
        assert_eq!(run(&FAST, &scaled(0.97)).answer(), Answer::NoRegression);
        // Two and a half times slower in the only run there is.
        assert_eq!(run(&[100.0], &[40.0]).answer(), Answer::CannotTell);
        let noisy = [60.0, 140.0, 99.0, 80.0, 120.0, 70.0];
        assert_eq!(run(&FAST, &noisy).answer(), Answer::CannotTell);
        // Uncertain, but surely not much slower.
        assert_eq!(
            run(&[100.0, 120.0, 90.0], &[150.0, 260.0, 180.0]).answer(),
            Answer::NoRegression
        );
        let mut failed = records("6.1", &FAST);
        failed.iter_mut().for_each(|r| r.status = Status::Failed("no memory".into()));
        let mut base = records("6.1", &FAST);
        for r in &mut base {
            r.trial.scheduler = "kyber".into();
        }
        let (both, half) =
            ([base.clone(), records("6.1", &FAST)].concat(), [base, failed].concat());
        assert_eq!(compare(&both, &half, &o).unwrap().answer(), Answer::CannotTell);
        assert_eq!(compare(&half, &both, &o).unwrap().answer(), Answer::NoRegression);
    }

    #[test]
    fn names_that_nothing_has_are_errors() {
        let a = records("6.1", &FAST);
        let of = |measure: &str, vary: &str| {
            let list = |s: &str| if s.is_empty() { vec![] } else { vec![s.to_string()] };
            let (measures, vary) = (list(measure), list(vary));
            let o = CompareOptions { measures, vary, ..CompareOptions::default() };
            compare(&a, &a, &o).map(|c| c.changes.len()).map_err(|e| e.to_string())
        };
        assert_eq!(of("io", "kernel"), Ok(1));
        assert!(of("iosp", "").unwrap_err().contains("did you mean \"iops\""));
        assert!(of(" ", "").unwrap_err().contains("no measure begins with"));
        assert!(of("", "kernal").unwrap_err().contains("did you mean \"kernel\""));
    }

    #[test]
    fn a_device_of_the_same_name_may_be_another() {
        let with = |hash: &str| {
            let mut all = records("6.1", &FAST);
            for r in all.iter_mut().filter(|_| !hash.is_empty()) {
                r.provenance.insert(DEVICE_CONTENT.into(), hash.into());
            }
            all
        };
        let run = |a, b| compare(&with(a), &with(b), &CompareOptions::default());
        assert!(run("1", "2").unwrap_err().to_string().contains("device.content"));
        assert!(run("1", "1").is_ok());
        assert!(run("", "1").is_ok(), "earlier versions did not record it");
    }

    #[test]
    fn unequal_conditions_are_refused_by_name() {
        let (a, b) = (records("6.1", &FAST), records("6.2", &FAST));
        let e = compare(&a, &b, &CompareOptions::default()).unwrap_err().to_string();
        assert!(e.contains("kernel is 6.1 in base, 6.2 in new") && !e.contains("timestamp"), "{e}");
        let vary = CompareOptions { vary: vec!["kernel".into()], ..CompareOptions::default() };
        assert_eq!(compare(&a, &b, &vary).unwrap().differing.len(), 1);
        let mut c = records("6.1", &FAST);
        c.iter_mut().for_each(|r| drop(r.provenance.remove("device.model")));
        let e = compare(&a, &c, &vary).unwrap_err().to_string();
        assert!(e.contains("device.model is x in base, not recorded in new"), "{e}");
        assert!(compare(&a, &c, &CompareOptions { force: true, ..vary }).is_ok());
    }

    #[test]
    fn cells_on_one_side_only_are_listed() {
        let (a, mut b) = (records("6.1", &FAST), records("6.1", &FAST));
        let mut extra = b[0].clone();
        extra.trial.scheduler = "kyber".into();
        b.push(extra);
        let c = compare(&a, &b, &CompareOptions::default()).unwrap();
        assert_eq!(c.incomplete[0].1, "not in base");
        b.drain(..6);
        assert!(matches!(
            compare(&a, &b, &CompareOptions::default()),
            Err(CompareError::NothingInCommon { .. })
        ));
        let bad = CompareOptions { threshold: f64::NAN, ..CompareOptions::default() };
        assert!(matches!(compare(&a, &a, &bad), Err(CompareError::Threshold(_))));
    }
}
