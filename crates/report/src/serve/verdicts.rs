//! The verdicts of the list: read once for an experiment, again when it has more trials or other names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use iosched_results::store::{ExperimentRow, Store, StoreError};
use iosched_results::verdict::Verdict;
use serde::Serialize;

use crate::html::Input;

/// An experiment of more trials is not read for a line of the list …
const MOST_TRIALS: u32 = 2_000;
/// … and for one view of it no more than so many in all. The next view goes on.
const MOST_NEW: u32 = 6_000;
/// Cells of a thumbnail, across and down.
const THUMBNAIL: (usize, usize) = (12, 8);

/// A verdict in a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Line {
    device: String,
    said: String,
    firm: String,
    /// The matrix in small, as SVG.
    thumbnail: String,
}

type Key = (PathBuf, String);
/// Trials, complete ones and edits when they were read, and the verdicts. A trial may be run again.
type Known = (u32, u32, String, Vec<Line>);

static KNOWN: LazyLock<Mutex<BTreeMap<Key, Known>>> = LazyLock::new(Mutex::default);

/// The verdicts of some experiments, by their number.
pub(super) fn lines(
    store: &Store,
    path: &Path,
    rows: &[&ExperimentRow],
) -> Result<BTreeMap<i64, Vec<Line>>, StoreError> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut out, mut read) = (BTreeMap::new(), 0);
    for row in rows.iter().filter(|r| r.complete > 1 && r.trials <= MOST_TRIALS) {
        let edits = format!("{:?}", store.edits(row.id)?);
        let key = (path.to_path_buf(), row.uid.clone());
        let fresh = known.get(&key);
        let fresh = fresh.is_some_and(|k| (k.0, k.1, &k.2) == (row.trials, row.complete, &edits));
        if !fresh {
            if read + row.trials > MOST_NEW {
                continue;
            }
            read += row.trials;
            let lines = Input::verdicts(store, row.id)?.iter().map(line).collect();
            known.insert(key.clone(), (row.trials, row.complete, edits, lines));
        }
        out.insert(row.id, known[&key].3.clone());
    }
    Ok(out)
}

fn line(v: &Verdict) -> Line {
    Line { device: v.device.clone(), said: v.sentence(), firm: v.firmly(), thumbnail: thumbnail(v) }
}

/// A square for each scheduler and ask: blue is better than the base, orange worse, grey level.
fn thumbnail(v: &Verdict) -> String {
    let rows = || v.matrix.iter().take(THUMBNAIL.1);
    let across = v.asks.len().min(THUMBNAIL.0);
    if across == 0 || rows().count() == 0 {
        return String::new();
    }
    let (wide, high) = (across * 8, rows().count() * 8);
    let mut out = format!(
        "<svg class=\"thumb\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {wide} {high}\" aria-hidden=\"true\">"
    );
    for (y, row) in rows().enumerate() {
        for (x, ratio) in row.ratios.iter().take(across).enumerate() {
            let ink = match ratio {
                Some(r) if *r >= 2.0 => "--b4",
                Some(r) if *r > 1.0 => "--b3",
                Some(r) if *r <= 0.5 => "--o4",
                Some(r) if *r < 1.0 => "--o3",
                _ => "--hair",
            };
            let _ = write!(out, "<path d=\"M{} {}h7v7h-7z\" fill=\"var({ink})\"/>", x * 8, y * 8);
        }
    }
    out + "</svg>"
}
