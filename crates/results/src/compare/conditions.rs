//! Under which conditions results were made, and whether they are the same.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::Record;
use serde::{Deserialize, Serialize};

use super::{CompareError, CompareOptions, near};
use crate::cells::CellKey;

/// Provenance that differs between any two runs and says nothing about what was measured.
///
/// A field is left out when one of its parts (between dots and slashes) is one of these words. `target` is
/// among them because device nodes change their names from boot to boot; the device's identity counts.
pub const VOLATILE: [&str; 19] = [
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
    "journal_commits",
    "goal",
    "default",
];

/// Whether a field of the provenance says nothing about what was measured: see [`VOLATILE`].
pub(crate) fn volatile(field: &str) -> bool {
    field.split(['.', '/']).any(|part| VOLATILE.contains(&part))
}

/// Provenance: a hash of what is in the device's file. Two files of one name are not one device.
pub const DEVICE_CONTENT: &str = "device.content";

/// In place of what a side does not say.
pub const UNRECORDED: &str = "not recorded";

/// Provenance: simulated, emulated, real, or from another tool's file.
const BACKEND: &str = "backend";

/// Fields that results of earlier versions lack.
const LATE: [&str; 2] = [DEVICE_CONTENT, crate::answer::DEVICE_DEPTH];

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

/// Fields that differ although `vary` does not allow it.
pub(super) fn conditions(
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
    // Files of other forms say little about their conditions. What they do not say is told, and is no difference.
    let foreign = [(base, &b), (new, &n)].map(|(all, fields)| (imported(all, common), fields));
    let unsaid = |d: &Difference| {
        let nobody = |f: &Fields| f[BACKEND].iter().all(|b| b == "imported");
        let lacks = |f: &Fields| match d.field.as_str() {
            BACKEND => nobody(f),
            field => !f.contains_key(field),
        };
        foreign.iter().any(|(foreign, fields)| *foreign && lacks(fields))
    };
    let forbidden: Vec<Difference> = differing
        .iter()
        .filter(|d| !options.vary.contains(&d.field) && !unsaid(d))
        .cloned()
        .collect();
    if !forbidden.is_empty() && !options.force {
        return Err(CompareError::Provenance(forbidden));
    }
    Ok(differing)
}

/// All results in common cells were read from files of another form than ours. A CSV says who ran a trial, and nothing of
/// its conditions.
fn imported(records: &[Record], common: &BTreeSet<CellKey>) -> bool {
    let mut here = records.iter().filter(|r| common.contains(&CellKey::of(&r.trial)));
    here.all(|r| !r.backend.traits().ours || r.provenance.is_empty())
}

type Fields = BTreeMap<String, BTreeSet<String>>;

/// The fields with different sets of values over the common cells.
fn provenance(b: &Fields, n: &Fields) -> Vec<Difference> {
    let names: BTreeSet<&String> = b.keys().chain(n.keys()).collect();
    let show = |f: &Fields, name: &str| {
        f.get(name).map_or(UNRECORDED.into(), |v| v.iter().cloned().collect::<Vec<_>>().join(", "))
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
        if !t.kernel.is_empty() {
            put("kernel", t.kernel.clone());
        }
        put(BACKEND, format!("{:?}", r.backend).to_lowercase());
        for (k, v) in &r.provenance {
            if !volatile(k) {
                put(k, v.clone());
            }
        }
    }
    out
}
