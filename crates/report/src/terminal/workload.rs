//! The tables of one workload on one device.

use std::collections::BTreeMap;

use iosched_experiment::JobRecord;
use iosched_results::answer::wrap;
use iosched_results::cells::NO_REASON;
use iosched_results::stats::{Judged, Test, Verdict, centre_of, summarize};
use iosched_types::hist::{BINS, value_of};
use iosched_types::units::{show_count, three_digits};

use super::cells::{Place, Row};
use super::figures::{Figures, RESOLVES_P99, RESOLVES_P999};
use super::measured::metrics;
use super::{Align, Cell, Grid};
use super::{Look, bar};

/// Columns of the bar.
const BAR: usize = 6;
/// Heads of what the disk moved, and of what the processes moved, where the page cache makes them differ.
pub(super) const DISK: &str = "disk MiB/s";
/// The same until all that was written is on the medium, and when it was.
pub(super) const DURABLE: &str = "durable MiB/s";
const AFTER: &str = "after s";
const CALLS: &str = "calls MiB/s";
const MIB: f64 = 1_048_576.0;
/// Before the longest wait, where too few I/Os resolve a percentile.
pub(super) const LONGEST: char = '^';
/// Heads of the column of syncs: of their 99th percentiles, and of their means where a run has too few.
pub(super) const SYNC: &str = "fsync";
pub(super) const SYNC_MEAN: &str = "fsync mean";
/// Most jobs that are shown one by one.
const JOBS: usize = 16;

/// A latency unit that suits all rows of a table.
fn latency_unit(rows: &[Row<'_>]) -> (f64, &'static str) {
    let usual = |r: &Row<'_>| r.mean(|f| f.p50).or_else(|| r.mean(|f| f.mean));
    let medians = rows.iter().filter_map(usual).filter(|v| *v > 0.0);
    if medians.fold(f64::INFINITY, f64::min) < 200_000.0 { (1e3, "µs") } else { (1e6, "ms") }
}

/// A number of at most five columns: three digits, from 1000 on all before the point, from 100 000 with a prefix.
fn number(v: f64) -> String {
    match v {
        v if v >= 99_999.5 => show_count(v),
        v => three_digits(v),
    }
}

/// Title and tables.
pub(super) fn tables(p: &Place<'_>, look: Look) -> String {
    let unit = latency_unit(&p.rows);
    let with_jobs = p.rows.iter().any(|r| r.runs.iter().any(|(x, _)| !x.jobs.is_empty()));
    let mut out = wrap("", 2, title(p, with_jobs.then_some(unit.1)).trim_end(), look.columns());
    if with_jobs {
        let mut main = Speed::new(p, unit);
        let mut side = Side::new(p, look.wide);
        let mut second = Speed { columns: side.columns() };
        second.columns.retain(|c| !c.cells.iter().all(|x| x.text.is_empty()));
        let fits = main.grid(p).width() + second.grid(p).width() <= look.columns();
        if look.wide || fits {
            main.join(second.columns);
            out.push_str(&main.grid(p).render(look.columns(), look.color));
        } else {
            out.push_str(&main.grid(p).render(look.columns(), look.color));
            out.push('\n');
            out.push_str(&second.grid(p).render(look.columns(), look.color));
        }
        out.push_str(&by_job(p, unit, look));
    }
    out.push_str(&metrics(p, look));
    let changing: Vec<&str> = p.rows.iter().filter(|r| r.changes()).map(|r| r.scheduler).collect();
    match changing.len() {
        0 => {}
        n if n == p.rows.len() && n > 1 => out.push_str("rate changes: under all\n"),
        _ => {
            let line = format!("rate changes: under {}", changing.join(", "));
            out.push_str(&wrap("", 2, &line, look.columns()));
        }
    }
    for row in &p.rows {
        let mut reasons: Vec<(&str, usize)> = Vec::new();
        for why in &row.unusable {
            let why = if why.trim().is_empty() { NO_REASON } else { why };
            match reasons.iter_mut().find(|r| r.0 == why) {
                Some(known) => known.1 += 1,
                None => reasons.push((why, 1)),
            }
        }
        for (why, n) in reasons {
            let words = if row.noisy { "invalid" } else { "not usable" };
            let times = if n > 1 { format!(" ({n} runs)") } else { String::new() };
            let line = format!("{}: {words}: {why}{times}", row.scheduler);
            out.push_str(&wrap("", 2, &line, look.columns()));
        }
    }
    out
}

fn title(p: &Place<'_>, unit: Option<&str>) -> String {
    let mut words = format!("{} on {}", p.workload, p.device);
    let kernels: Vec<&str> = p.kernels.iter().copied().filter(|k| !k.is_empty()).collect();
    if !kernels.is_empty() {
        words.push_str(&format!(", Linux {}", kernels.join(", ")));
    }
    if !p.backend.is_simulated() {
        words.push_str(&format!(", {}", p.backend.traits().words));
    }
    match p.runs() {
        (_, 0 | 1) => {}
        (least, most) if least < most => {
            words.push_str(&format!(", mean of {least} to {most} runs ± 95 %"));
        }
        (_, n) => words.push_str(&format!(", mean of {n} runs ± 95 %")),
    }
    if let Some(unit) = unit {
        let total = p.rows.iter().flat_map(|r| &r.runs).all(|(_, f)| f.total || f.rate() == 0.0);
        let what = if total { "latency" } else { "clat" };
        words.push_str(&format!(" ({what} in {unit})"));
    }
    Cell::new(words).text + "\n"
}

/// A column with its cells, one per scheduler.
pub(super) struct Column {
    head: String,
    align: Align,
    pub(super) cells: Vec<Cell>,
}

/// What a column prefers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Best {
    Most,
    Least,
    None,
}

impl Column {
    pub(super) fn numbers(
        head: &str,
        values: &[Option<f64>],
        best: Best,
        show: impl Fn(f64) -> String,
    ) -> Column {
        let known = || values.iter().flatten().copied().filter(|v| v.is_finite());
        let top = match best {
            Best::Most => known().fold(f64::NEG_INFINITY, f64::max),
            Best::Least => known().fold(f64::INFINITY, f64::min),
            Best::None => f64::NAN,
        };
        // What looks the same is equally good; when all are, none is best.
        let shown: Vec<Option<String>> = values.iter().map(|v| v.map(&show)).collect();
        let top = if top.is_finite() { Some(show(top)) } else { None };
        let all = shown.iter().flatten().all(|s| Some(s) == top.as_ref());
        let cells = shown
            .into_iter()
            .map(|s| Cell {
                best: !all && s.is_some() && s == top,
                ..Cell::new(s.unwrap_or_else(|| "–".into()))
            })
            .collect();
        Column { head: head.into(), align: Align::Right, cells }
    }

    /// A percentile, of which some rows have too few I/Os: theirs is the longest wait, marked and never the best.
    fn percentile(
        head: &str,
        rows: &[(Option<f64>, bool)],
        show: impl Fn(f64) -> String,
    ) -> Column {
        let known: Vec<Option<f64>> =
            rows.iter().map(|(v, few)| if *few { None } else { *v }).collect();
        let mut out = Column::numbers(head, &known, Best::Least, &show);
        for (cell, (v, few)) in out.cells.iter_mut().zip(rows) {
            if let Some(v) = v.filter(|v| *few && v.is_finite()) {
                *cell = Cell::new(format!("{LONGEST}{}", show(v)));
            }
        }
        out
    }

    pub(super) fn words(head: &str, align: Align, words: impl Iterator<Item = String>) -> Column {
        Column { head: head.into(), align, cells: words.map(Cell::new).collect() }
    }
}

/// Throughput and latency.
pub(super) struct Speed {
    pub(super) columns: Vec<Column>,
}

impl Speed {
    fn new(p: &Place<'_>, (unit, _): (f64, &str)) -> Speed {
        let values = |f: fn(&Figures) -> f64| -> Vec<Option<f64>> {
            p.rows.iter().map(|r| r.mean(f)).collect()
        };
        let bandwidth = values(|f| f.bandwidth);
        let rate = values(Figures::rate);
        let mib = |v: f64| number(v / MIB);
        let disk = values(|f| f.disk);
        let (durable, after) = (values(|f| f.durable.0), values(|f| f.durable.1));
        let lasting = durable.iter().any(Option::is_some);
        let cached = !lasting && disk.iter().any(Option::is_some);
        let bars_of = if cached { &disk } else { &rate };
        let most = bars_of.iter().flatten().copied().fold(0.0, f64::max);
        let bars = bars_of.iter().map(|v| v.map_or(String::new(), |v| bar(v / most, BAR)));
        let mut columns = vec![Column::words("", Align::Left, bars)];
        // The page cache takes data at the speed of memory: what the disk has done comes first.
        if lasting {
            columns.push(Column::numbers(DURABLE, &durable, Best::Most, mib));
            columns.push(Column::numbers(AFTER, &after, Best::None, three_digits));
            columns.push(Column::numbers(CALLS, &bandwidth, Best::None, mib));
        } else if cached {
            columns.push(Column::numbers(DISK, &disk, Best::Most, mib));
            columns.push(Column::numbers(CALLS, &bandwidth, Best::None, mib));
        } else {
            columns.push(Column::numbers("MiB/s", &bandwidth, Best::Most, mib));
        }
        if p.runs().1 > 1 {
            columns.push(Column::words("±%", Align::Right, p.rows.iter().map(spread)));
        }
        columns.push(Column::numbers("IOPS", &values(|f| f.iops), Best::Most, number));
        let trims = values(|f| f.trims);
        if trims.iter().flatten().any(|v| *v > 0.0) {
            columns.push(Column::numbers("trims/s", &trims, Best::Most, number));
        }
        type Get = fn(&Figures) -> f64;
        let latencies: [(&str, Get, u64); 4] = [
            ("mean", |f| f.mean, 1),
            ("p50", |f| f.p50, 1),
            ("p99", |f| f.p99, RESOLVES_P99),
            ("p99.9", |f| f.p999, RESOLVES_P999),
        ];
        for (head, get, least) in latencies {
            let of = |r: &Row<'_>| (r.mean(get), r.runs.iter().any(|(_, f)| f.few(least)));
            let rows: Vec<_> = p.rows.iter().map(of).collect();
            // Only a mean knows of more than the bins do.
            let beyond = |v: f64| head != "mean" && v >= value_of(BINS - 1) as f64;
            let show =
                |v: f64| format!("{}{}", if beyond(v) { ">=" } else { "" }, number(v / unit));
            columns.push(Column::percentile(head, &rows, show));
        }
        // What a log writer waits for: its writes return at once, its fsync does not.
        let sync = values(|f| f.sync.0);
        if sync.iter().flatten().any(|v| *v > 0.0) {
            // One figure for the whole column: a mean beside a percentile compares nothing.
            let few = p
                .rows
                .iter()
                .flat_map(|r| &r.runs)
                .any(|(_, f)| f.sync.0.is_finite() && f.sync.1.is_nan());
            let (head, sync) = if few { (SYNC_MEAN, sync) } else { (SYNC, values(|f| f.sync.1)) };
            columns.push(Column::numbers(head, &sync, Best::Least, |v| number(v / unit)));
        }
        Speed { columns }
    }

    fn join(&mut self, more: Vec<Column>) {
        self.columns.extend(more);
    }

    pub(super) fn grid(&self, p: &Place<'_>) -> Grid {
        let grid = Grid::new().column("scheduler", Align::Left);
        let mut grid = self.columns.iter().fold(grid, |g, c| g.column(&c.head, c.align));
        // Beside two other marks that of the best is one too many.
        let marked =
            |of: &str| self.columns.iter().flat_map(|c| &c.cells).any(|c| c.text.starts_with(of));
        let noise = p.rows.iter().any(|r| r.noisy);
        let busy = marked(&LONGEST.to_string()) && marked(">");
        for (i, row) in p.rows.iter().enumerate() {
            let mut cells = vec![Cell::new(row.scheduler)];
            cells.extend(self.columns.iter().filter_map(|c| c.cells.get(i).cloned()));
            for cell in cells.iter_mut().filter(|_| noise || busy) {
                // The best of figures of which some are noise is nobody.
                cell.best = false;
                cell.grey = row.noisy;
            }
            grid.row(cells);
        }
        grid
    }
}

/// Half the confidence interval of the throughput in percent of its mean.
fn spread(row: &Row<'_>) -> String {
    let s = summarize(&row.sample(Figures::rate).observations(), 1);
    match (s.ci, s.mean) {
        (Some(ci), Some(m)) if m > 0.0 => format!("{:.1}", (ci.high - ci.low) / 2.0 / m * 100.0),
        _ => "–".into(),
    }
}

/// The device's side, fairness, and the verdict.
struct Side {
    columns: Vec<Column>,
}

impl Side {
    fn new(p: &Place<'_>, wide: bool) -> Side {
        let values = |f: fn(&Figures) -> f64| -> Vec<Option<f64>> {
            p.rows.iter().map(|r| r.mean(f)).collect()
        };
        let percent = |v: f64| format!("{:.1}", v * 100.0);
        let count = |v: f64| show_count(v.round());
        let mut columns = Vec::new();
        let mut known = |head, get: fn(&Figures) -> f64, show: &dyn Fn(f64) -> String| {
            let of = values(get);
            if of.iter().any(Option::is_some) {
                columns.push(Column::numbers(head, &of, Best::None, show));
            }
        };
        known("busy %", |f| f.busy, &percent);
        known("merges", |f| f.merges, &count);
        known("seeks", |f| f.seeks, &count);
        known("idle %", |f| f.idled, &percent);
        let (cores, per_io) = (values(|f| f.core_time.0), values(|f| f.core_time.1));
        if wide && cores.iter().any(Option::is_some) {
            columns.push(Column::numbers("cpu %", &cores, Best::None, percent));
            let us = |v: f64| three_digits(v / 1e3);
            columns.push(Column::numbers("cpu/IO", &per_io, Best::Least, us));
        }
        let fairness = values(|f| f.fairness);
        if fairness.iter().any(Option::is_some) {
            columns.push(Column::numbers("fair", &fairness, Best::Most, |v| format!("{v:.3}")));
        }
        if let (Some(base), true) = (p.rows.get(p.base), p.rows.len() > 1) {
            let judged = &p.judged;
            // The line without a change is the base. Its full name may be wider than all changes.
            let long = base.scheduler.chars().count() > 20;
            let head = if long { "vs base".into() } else { format!("vs {}", base.scheduler) };
            let mut column = Column::words(
                &head,
                Align::Left,
                judged.iter().map(|j| change(j.as_ref(), p.runs().1)),
            );
            for (cell, j) in column.cells.iter_mut().zip(judged) {
                cell.bad = j.as_ref().is_some_and(|j| j.verdict == Verdict::Worse);
            }
            columns.push(column);
        }
        Side { columns }
    }

    fn columns(&mut self) -> Vec<Column> {
        std::mem::take(&mut self.columns)
    }
}

/// `1.12× better`: on the scale of all tables and pages. A verdict needs repetitions.
fn change(j: Option<&Judged>, runs: usize) -> String {
    let Some(j) = j else { return String::new() };
    // Something is infinitely more than nothing.
    let more = j.base.mean == Some(0.0) && j.new.mean.is_some_and(|m| m > 0.0);
    let times = match j.ratio.filter(|r| r.is_finite()) {
        Some(ratio) if ratio >= 9.95 => format!("{}×", three_digits(ratio)),
        Some(ratio) => format!("{ratio:.2}×"),
        None if more => "∞×".into(),
        None => return "–".into(),
    };
    let words = match (j.verdict, j.needs) {
        // Runs that are all the same are one: the answer calls them so, too.
        (Verdict::Better | Verdict::Worse, _) if j.test == Test::Exact => "one draw".into(),
        (Verdict::Better, _) => "better".into(),
        (Verdict::Worse, _) => "worse".into(),
        (Verdict::NoMeasurableDifference, _) if j.negligible && j.delta != 0.0 => {
            "negligible".into()
        }
        (Verdict::NoMeasurableDifference, _) => "same".into(),
        (Verdict::NotEnoughData, Some(n)) if n < 1_000 => format!("needs {n} runs"),
        (Verdict::NotEnoughData, _) => "too few runs".into(),
        (Verdict::Invalid, _) => "invalid".to_string(),
    };
    if runs > 1 { format!("{times} {words}") } else { times }
}

/// Names of jobs that did I/O, in the order of the file, and how many there are: of more than [`JOBS`] only those
/// that moved the least and the most.
fn shown_jobs<'a>(p: &Place<'a>, look: Look) -> (Vec<&'a str>, usize) {
    let mut all: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    // A process that did no I/O in any run, as a parent that waits for its children, has nothing to show.
    let ios = |j: &JobRecord| j.read.ios + j.write.ios + j.trim.ios + j.sync.ios;
    for j in p.rows.iter().flat_map(|r| &r.runs).flat_map(|(r, _)| &r.jobs).filter(|j| ios(j) > 0) {
        let next = all.len();
        all.entry(&j.name).or_insert((next, 0)).1 += ios(j);
    }
    let mut names: Vec<(&str, (usize, u64))> = all.into_iter().collect();
    let count = names.len();
    if count > JOBS && !look.wide {
        names.sort_by_key(|(_, (place, ios))| (*ios, *place));
        names.drain(JOBS / 2..count - JOBS / 2);
    }
    names.sort_by_key(|(_, (place, _))| *place);
    (names.into_iter().map(|(n, _)| n).collect(), count)
}

/// Throughput and tail latency of the jobs of each name.
fn by_job(p: &Place<'_>, (unit, _): (f64, &str), look: Look) -> String {
    let (names, all) = shown_jobs(p, look);
    if names.len() < 2 {
        return String::new();
    }
    let all_of = |row: &Row<'_>, name: &str| -> Vec<Figures> {
        // A job that did not take part, as one that a program never came to start, has no figures.
        let of = |r: &iosched_experiment::Record| {
            let mut own = r.jobs.iter().filter(|j| j.name == name).peekable();
            own.peek().is_some().then(|| Figures::of_jobs(own))
        };
        row.runs.iter().filter_map(|(r, _)| of(r)).collect()
    };
    let mut out = String::new();
    // As many jobs side by side as fit: a name and two numbers each.
    let longest = p.rows.iter().map(|r| r.scheduler.chars().count()).max().unwrap_or(0).min(24);
    let each = if look.wide { names.len() } else { ((look.columns() - longest) / 16).max(1) };
    for names in names.chunks(each) {
        let mut table = Speed { columns: Vec::new() };
        let mut trimmed = false;
        for name in names {
            let each: Vec<Vec<Figures>> = p.rows.iter().map(|r| all_of(r, name)).collect();
            let values = |f: fn(&Figures) -> f64| -> Vec<Option<f64>> {
                each.iter().map(|e| centre_of(&e.iter().map(f).collect::<Vec<_>>())).collect()
            };
            let short: String = name.chars().take(13).collect();
            let few = each.iter().map(|e| e.iter().any(|f| f.few(RESOLVES_P99)));
            // Who only syncs has waited for no I/O: a percentile of 0 would be the best of all.
            let p99 = each.iter().map(|e| {
                let known = e.iter().filter(|f| f.count > 0).map(|f| f.p99);
                centre_of(&known.collect::<Vec<_>>())
            });
            let p99: Vec<_> = p99.zip(few).collect();
            // A job that only trims moves no data.
            let (rate, trims) = (values(Figures::rate), values(|f| f.trims));
            let only = values(|f| f.iops).iter().flatten().all(|v| *v == 0.0);
            let trimming = only && trims.iter().flatten().any(|v| *v > 0.0);
            let show = |v: f64| match trimming {
                true => format!("{}/s", number(v)),
                false => number(v / MIB),
            };
            table.columns.push(Column::numbers(&short, &rate, Best::Most, show));
            trimmed |= trimming;
            table.columns.push(Column::percentile("p99", &p99, |v| number(v / unit)));
        }
        let trims = if trimmed { " (of trims, their number /s)" } else { "" };
        out.push_str(&format!("\nby job: MiB/s{trims} and p99\n"));
        out.push_str(&table.grid(p).render(look.columns(), look.color));
    }
    let left = all - names.len();
    if left > 0 {
        let half = JOBS / 2;
        let text = format!(
            "{left} more jobs: shown are the {half} with the fewest I/Os and the {half} with the most (--wide shows all)"
        );
        out.push_str(&wrap("", 2, &text, look.columns()));
    }
    out
}
