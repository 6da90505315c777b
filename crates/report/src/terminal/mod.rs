//! Tables for people: one per workload and device, and a summary over all of them.
//!
//! Pure: records in, text out. Without `wide` no table is wider than the terminal, or than 80 columns
//! where there is none, as long as no name is longer than a line.

mod brief;
mod cells;
mod figures;
mod measured;
mod summary;
mod workload;

use std::collections::BTreeMap;

use iosched_experiment::record::{Status, total};
use iosched_experiment::{JobRecord, Record};
use iosched_results::answer::{
    Candidate, answers, candidates_called, short_names, text, unmeasured, without_hidden, wrap,
};
use iosched_results::cells::{Cells, MIXED_LATENCIES, charge_starved, group, one_latency};

pub use figures::Figures;
pub use iosched_results::grid::{Align, Cell, Grid};
use iosched_results::replays::Ranks;
use iosched_results::store::Edits;
use iosched_results::verdict::{self, Facts, Verdict, verdicts};

use cells::places;

/// Columns of a narrow table.
pub(crate) const COLUMNS: usize = 80;

/// Sentences are read in lines no longer than this.
const SENTENCE: usize = 120;
/// Narrower terminals get lines that wrap …
const NARROWEST: usize = 40;
/// … and wider ones space at the right.
const WIDEST: usize = 200;

/// How tables look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// All tables, not only the verdicts.
    pub tables: bool,
    /// One wide table per workload instead of several narrow ones.
    pub wide: bool,
    /// ANSI colours.
    pub color: bool,
    /// Figures of invalid trials are shown, grey and marked, where a scheduler has no others.
    pub noise: bool,
    /// Columns of the terminal, used from 40 to 200; 0 where there is none, which is 80.
    pub columns: usize,
}

impl Look {
    pub(crate) fn columns(self) -> usize {
        match self.columns {
            _ if self.wide => usize::MAX,
            0 => COLUMNS,
            n => n.clamp(NARROWEST, WIDEST),
        }
    }

    /// How wide sentences are.
    pub(crate) fn prose(self) -> usize {
        self.columns().min(SENTENCE)
    }
}

/// The report of some records, and the verdicts in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// All of it.
    pub text: String,
    /// What it begins with.
    pub verdicts: Vec<Verdict>,
}

/// The whole report of some records, with names as they were edited and without what is hidden.
#[must_use]
pub fn edited(records: &[Record], edits: &Edits, look: Look) -> Report {
    if edits.schedulers.is_empty() {
        return report(records, look);
    }
    let shown = records.iter().filter(|r| !edits.hides(&r.trial.scheduler)).cloned();
    let mut own = BTreeMap::new();
    let renamed = shown.map(|mut r| {
        let name = edits.name(&r.trial.scheduler).to_string();
        let was = std::mem::replace(&mut r.trial.scheduler, name.clone());
        own.insert(name, was);
        r
    });
    let renamed: Vec<Record> = renamed.collect();
    let hidden: Vec<String> =
        edits.hidden().into_iter().map(|s| edits.name(s).to_string()).collect();
    reported(&renamed, &own, &hidden, look)
}

/// The whole report of some records.
#[must_use]
pub fn report(records: &[Record], look: Look) -> Report {
    reported(records, &BTreeMap::new(), &[], look)
}

/// As [`report`]; `own` has the schedulers' own names by those they go by, `hidden` are others that people hid.
fn reported(
    records: &[Record],
    own: &BTreeMap<String, String>,
    hidden: &[String],
    look: Look,
) -> Report {
    let mut cells = group(records);
    let mixed = one_latency([&mut cells]);
    let mut candidates = candidates_called(records, own);
    // Before the longest waits are charged: a job that never completed has nothing, which is behind any figure.
    let facts = Facts::new(records);
    let verdicts = verdicts(&facts, &cells, &candidates);
    let mut out: String = Ranks::of(records)
        .sentences()
        .iter()
        .map(|s| wrap("", 2, &format!("note: {s}"), look.prose()))
        .collect();
    out += &match verdicts[..] {
        [] => String::new(),
        _ => {
            brief::head(records, facts.measuring(), look.prose())
                + &verdict::text(&verdicts, look.prose())
        }
    };
    charge_starved([&mut cells]);
    let names = short_names(records.iter().map(|r| r.trial.scheduler.as_str()));
    rename(&mut cells, &mut candidates, &names);
    let mut places = places(records, &cells, &names, look.noise);
    if !look.tables && !verdicts.is_empty() {
        // Where one scheduler was run there is nothing to say but its figures.
        places.retain(|p| !verdicts.iter().any(|v| v.device == p.device));
        out.extend(places.iter().map(|p| workload::tables(p, look) + "\n"));
        return Report { text: out, verdicts };
    }
    out.extend(places.iter().map(|p| workload::tables(p, look) + "\n"));
    let mut answers = answers(&cells, &candidates);
    without_hidden(&mut answers, hidden);
    out.push_str(&summary::summary(&places, &answers, look));
    out.push_str(&legend(&out, records, look.prose()));
    if mixed {
        out.push_str(&wrap("", 2, &format!("note: {MIXED_LATENCIES}"), look.prose()));
    }
    if let Some(words) = unmeasured(&cells, &candidates, &answers) {
        out.push_str(&wrap("", 2, &format!("note: {words}"), look.prose()));
    }
    if !answers.is_empty() {
        out.push('\n');
        out.push_str(&text(&answers, look.prose()));
    }
    if let Some(words) = no_verdict(records).filter(|_| verdicts.is_empty()) {
        out.push_str(&wrap("\n", 0, words, look.prose()));
    }
    if out.is_empty() {
        out.push_str("There are no results.\n");
    }
    Report { text: out, verdicts }
}

/// Calls schedulers by short names from here on.
fn rename(cells: &mut Cells, candidates: &mut [Candidate], names: &BTreeMap<&str, String>) {
    let short = |name: &mut String| {
        if let Some(short) = names.get(name.as_str()) {
            name.clone_from(short);
        }
    };
    candidates.iter_mut().for_each(|c| short(&mut c.scheduler));
    let all = std::mem::take(&mut cells.0).into_iter().map(|(mut key, cell)| {
        short(&mut key.scheduler);
        (key, cell)
    });
    cells.0 = all.collect();
}

/// Why imported results have no verdict.
fn no_verdict(records: &[Record]) -> Option<&'static str> {
    let first = &records.first()?.trial.scheduler;
    let imported = records.iter().all(|r| !r.backend.traits().ours);
    let one = records.iter().all(|r| r.trial.scheduler == *first);
    (imported && one).then_some(
        "No verdict: this is one scheduler. `iosched compare` lays two results side by side; a CSV file names the scheduler of each figure.",
    )
}

/// Whether jobs of a record ran at different times, so that their rates add up to visibly more than the total: those of
/// one name moved data for less than 95 % of the time in which any did.
fn apart(r: &Record) -> bool {
    let whole = total(r.jobs.iter(), figures::sides).span;
    let mut names: BTreeMap<&str, Vec<&JobRecord>> = BTreeMap::new();
    r.jobs.iter().for_each(|j| names.entry(&j.name).or_default().push(j));
    let spans = names.into_values().map(|jobs| total(jobs.into_iter(), figures::sides).span);
    spans.filter(|s| *s > 0).min().is_some_and(|least| least < whole - whole / 20)
}

/// What the signs and heads mean, of those that were used.
fn legend(tables: &str, records: &[Record], columns: usize) -> String {
    let all = [signs(tables, records), heads(tables, records)].concat();
    all.iter().map(|w| wrap("", 2, w, columns)).collect()
}

/// A word without the colours around it.
fn plain(word: &str) -> String {
    let code = |p: &str| p.split_once('m').is_some_and(|(c, _)| c.starts_with('['));
    let of = |p: &'_ str| match code(p) {
        true => p.split_once('m').map_or("", |(_, t)| t).to_string(),
        false => p.to_string(),
    };
    word.split('\u{1b}').map(of).collect()
}

/// Whether some word of the tables is so.
fn some(tables: &str, is: impl Fn(&str) -> bool) -> bool {
    tables.lines().any(|l| l.split_whitespace().any(|w| is(&plain(w))))
}

/// What stands before or behind numbers and names.
fn signs(tables: &str, records: &[Record]) -> Vec<&'static str> {
    let before = |w: &str, sign: &str| {
        w.strip_prefix(sign).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
    };
    let longest = workload::LONGEST.to_string();
    let all = [
        (some(tables, |w| w.len() > 1 && w.ends_with('*')), "* the best of its column"),
        (
            records.iter().any(|r| r.status == Status::Complete && r.halves_differ()),
            "rate changes: by over 10 %, or it will when a cache of its device is full: a longer run has other figures",
        ),
        (
            some(tables, |w| before(w, ">")),
            "> at least: a run stopped at its limit, and counts as the limit",
        ),
        (some(tables, |w| w.starts_with(">=")), ">= at least: the bins of latencies end there"),
        (
            some(tables, |w| before(w, &longest)),
            "^ the longest wait: fewer than 100 I/Os have no 99th percentile (1000 no 99.9th)",
        ),
        (
            some(tables, |w| w.contains('@') && !w.contains('/')),
            "@X: that generation of the scheduler (`iosched show scheduler`)",
        ),
    ];
    all.into_iter().filter(|w| w.0).map(|w| w.1).collect()
}

/// Whether the head of a table has a column of what the disk did.
fn side(tables: &str, column: &str) -> bool {
    tables.lines().any(|l| l.contains(" merges") && l.contains(column))
}

/// What columns are about.
fn heads(tables: &str, records: &[Record]) -> Vec<&'static str> {
    let has = |word: &str| some(tables, |w| w == word);
    let mean = tables.contains(workload::SYNC_MEAN);
    let by_job = tables.lines().any(|l| l.starts_with("by job: "));
    let all = [
        (
            has("cpu/IO"),
            "cpu %: share of all CPUs; cpu/IO: core time of an I/O in µs, kernel threads included",
        ),
        (tables.contains(" (latency in "), "latency: from submission to completion, fio's lat"),
        (
            tables.contains(" (clat in "),
            "clat: completion latency; not all runs have percentiles of total latency (lat)",
        ),
        (
            tables.contains(workload::DISK),
            "disk MiB/s: what the disk moved while the processes ran; calls MiB/s: what they moved, through the page cache",
        ),
        (
            tables.contains(workload::DURABLE),
            "durable MiB/s: until all that was written is on the medium, which it is `after s` from the start; calls MiB/s: what the processes moved, through the page cache",
        ),
        (mean, "fsync mean: a run has fewer than 100, too few for their 99th percentile"),
        (!mean && has(workload::SYNC), "fsync: its 99th percentile"),
        (side(tables, " seeks"), "seeks: commands that do not begin where the last one ended"),
        (
            side(tables, " idle %"),
            "idle %: of the time, with nothing at the disk because the scheduler held requests back for a next one",
        ),
        (has("fair"), "fair: Jain's index of the processes' throughput, 1 is even"),
        (
            by_job && records.iter().any(apart),
            "by job: over the time in which that job ran; not all ran all the time, so the sum is no total",
        ),
        (
            tables.contains("how many times better than"),
            "times better: the geometric mean of the workloads; * is measurably ahead of every other that this kernel has",
        ),
        (
            tables.contains("better in"),
            "better in, worse in: workloads with measurably more or less throughput",
        ),
    ];
    all.into_iter().filter(|w| w.0).map(|w| w.1).collect()
}

/// Unicode bar of a share from 0 to 1, `width` columns wide at 1.
#[must_use]
pub fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if !share.is_finite() {
        return String::new();
    }
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    // Something that is there shows.
    let eighths = if share > 0.0 { eighths.max(1) } else { eighths };
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

#[cfg(test)]
mod tests;
