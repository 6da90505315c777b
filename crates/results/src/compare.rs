//! `iosched compare BASE NEW`: what changed between two results, and whether it is a regression.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::Record;
use serde::{Deserialize, Serialize};

use crate::cells::{CellKey, group};
use crate::stats::{Judged, Verdict, VerdictOptions, correct_family, judge};

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

/// Options of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareOptions {
    /// A significant loss beyond this share is a regression (0.05 = 5 %).
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
}

/// The outcome of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The changes, by device, workload, scheduler, measure.
    pub changes: Vec<Change>,
    /// Cells without figures on one side: `(cell, what is missing)`.
    pub incomplete: Vec<(CellKey, String)>,
    /// Provenance that differs, compared by force or by `vary`.
    pub differing: Vec<Difference>,
}

impl Comparison {
    /// Whether the caller should exit with 1.
    #[must_use]
    pub fn has_regression(&self) -> bool {
        self.changes.iter().any(|c| c.regression)
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
    let (b, n) = (group(base), group(new));
    let common: BTreeSet<&CellKey> = b.0.keys().filter(|k| n.0.contains_key(*k)).collect();
    if common.is_empty() {
        let first = |c: &crate::cells::Cells| {
            c.0.keys().next().map_or("none".into(), |k| {
                format!("{} / {} / {}", k.device, k.workload, k.scheduler)
            })
        };
        return Err(CompareError::NothingInCommon { base: first(&b), new: first(&n) });
    }
    let differing = provenance(base, new, &common);
    let forbidden: Vec<Difference> =
        differing.iter().filter(|d| !options.vary.contains(&d.field)).cloned().collect();
    if !forbidden.is_empty() && !options.force {
        return Err(CompareError::Provenance(forbidden));
    }
    let mut out = Comparison { differing, ..Comparison::default() };
    let wanted = |m: &str| {
        options.measures.is_empty() || options.measures.iter().any(|w| m.starts_with(w.as_str()))
    };
    let mut families = BTreeMap::<&str, usize>::new();
    for cell in n.0.iter().filter(|(k, _)| b.0.contains_key(k)).map(|(_, c)| c) {
        cell.measures.keys().for_each(|m| *families.entry(m).or_default() += 1);
    }
    for (key, cell) in &n.0 {
        let Some(other) = b.0.get(key) else { continue };
        for (measure, after) in cell.measures.iter().filter(|(m, _)| wanted(m)) {
            let Some(before) = other.measures.get(measure) else { continue };
            let family = families.get(measure.as_str()).copied().unwrap_or(1);
            let verdict = VerdictOptions { family, ..options.verdict };
            let judged = judge(&before.sample, &after.sample, after.better, verdict);
            let (key, measure, unit) = (key.clone(), measure.clone(), after.unit.clone());
            out.changes.push(Change { key, measure, unit, judged, regression: false });
        }
    }
    let names: BTreeSet<String> = out.changes.iter().map(|c| c.measure.clone()).collect();
    for name in names {
        let mut family: Vec<&mut Judged> =
            out.changes.iter_mut().filter(|c| c.measure == name).map(|c| &mut c.judged).collect();
        correct_family(&mut family, options.verdict);
    }
    for c in &mut out.changes {
        let loss = c.judged.loss();
        // Without a ratio (a value was censored) any significant loss counts.
        c.regression =
            c.judged.verdict == Verdict::Worse && loss.is_none_or(|l| l > options.threshold);
    }
    out.incomplete = incomplete(&b, &n);
    Ok(out)
}

fn incomplete(b: &crate::cells::Cells, n: &crate::cells::Cells) -> Vec<(CellKey, String)> {
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

/// The fields whose sets of values differ over the common cells.
fn provenance(base: &[Record], new: &[Record], common: &BTreeSet<&CellKey>) -> Vec<Difference> {
    let (b, n) = (fields(base, common), fields(new, common));
    let names: BTreeSet<&String> = b.keys().chain(n.keys()).collect();
    let show = |f: &Fields, name: &str| {
        f.get(name)
            .map_or("not recorded".into(), |v| v.iter().cloned().collect::<Vec<_>>().join(", "))
    };
    names
        .into_iter()
        .filter(|name| b.get(*name) != n.get(*name))
        .map(|name| Difference { field: name.clone(), base: show(&b, name), new: show(&n, name) })
        .collect()
}

fn fields(records: &[Record], common: &BTreeSet<&CellKey>) -> Fields {
    let mut out = Fields::new();
    for r in records {
        let t = &r.trial;
        let key = CellKey {
            device: t.device.clone(),
            workload: t.workload.clone(),
            scheduler: t.scheduler.clone(),
        };
        if !common.contains(&key) {
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
    use iosched_experiment::record::{BackendKind, Metric, TrialId};

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
