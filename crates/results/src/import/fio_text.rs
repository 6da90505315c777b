//! fio's output for people.

use iosched_types::Diagnostic;

use super::iozone::scheduler_mark;
use super::lines;
use super::numbers::Commas;
use crate::fio::{Direction, DiskUtil, FioJob, FioOutput, LatencyStats};

/// fio prints no figure with three decimals.
pub(super) const COMMAS: Commas = Commas::Thousands;

/// A run of fio as its output tells it.
#[derive(Default)]
pub(super) struct Run {
    pub(super) output: FioOutput,
    /// The scheduler that a collecting script names.
    pub(super) scheduler: Option<String>,
    /// How often it was reported.
    pub(super) times: usize,
    /// Figures are those of all processes of a name, one line each, taken for runs.
    pub(super) alike: bool,
    pids: Vec<String>,
    /// All jobs were told.
    over: bool,
}

impl Run {
    pub(super) fn under(scheduler: Option<String>) -> Run {
        Run { scheduler, ..Run::default() }
    }
}

/// Whether a text is fio's output for people.
pub(super) fn is_normal(text: &str) -> bool {
    text.lines().any(|l| l.contains(": (groupid=") && l.contains("err="))
}

/// `fio-3.33`, `fio 1.38`.
fn is_version(line: &str) -> bool {
    line.starts_with("fio-") && !line.contains(' ')
        || line.strip_prefix("fio ").is_some_and(|v| {
            v.starts_with(|c: char| c.is_ascii_digit()) && !v.trim_end().contains(' ')
        })
}

/// Reads fio's output for people: of fio 1 and 2 (`io=`, `runt=`, KB of 1024 bytes) and fio 3.
///
/// # Errors
/// A diagnostic: a number that is none.
pub(super) fn normal(file: &str, text: &str) -> Result<Vec<Run>, Diagnostic> {
    let mut runs: Vec<Run> = vec![Run::default()];
    let mut state = State::default();
    for line in lines(file, text) {
        let (n, line) = line?;
        let trimmed = line.trim();
        if let Some(scheduler) = scheduler_mark(line) {
            runs.push(Run::under(Some(scheduler.into())));
        } else if is_version(trimmed) {
            let begun = runs.last().is_some_and(|r| !r.output.jobs.is_empty());
            if begun {
                let scheduler = runs.last().and_then(|r| r.scheduler.clone());
                runs.push(Run::under(scheduler));
            }
            if let Some(run) = runs.last_mut() {
                run.output.version = trimmed.into();
            }
        } else if let Some((name, rest)) = trimmed.split_once(": (groupid=") {
            header(&mut runs, name, rest);
            state = State::default();
        } else if let Some(run) = runs.last_mut() {
            body(run, &mut state, (file, n, line))?;
        }
    }
    without_sums(&mut runs);
    runs.retain(|r| !r.output.jobs.is_empty());
    for run in &mut runs {
        run.output.jobs.iter_mut().for_each(counted);
    }
    Ok(runs)
}

/// A client's sum of all its servers would count everything twice.
pub(super) fn without_sums(runs: &mut [Run]) {
    let sum = |j: &FioJob| j.jobname == "All clients";
    if runs.iter().flat_map(|r| &r.output.jobs).any(|j| !sum(j)) {
        runs.iter_mut().for_each(|r| r.output.jobs.retain(|j| !sum(j)));
    }
}

/// A job begins: of this run, of the same run once more (`--status-interval`), or of the next one.
fn header(runs: &mut Vec<Run>, name: &str, rest: &str) {
    let after = |key: &str| {
        let value = rest.split_once(key).map_or("", |(_, v)| v.trim_start());
        value.split([':', ' ', ',', '(', ')']).next().unwrap_or_default().to_string()
    };
    let pid = after("pid=");
    let groupid = rest.split([',', ')']).next().and_then(|g| g.trim().parse().ok()).unwrap_or(0);
    let job = FioJob {
        jobname: name.into(),
        groupid,
        error: after("err=").parse().unwrap_or(0),
        ..FioJob::default()
    };
    let Some(last) = runs.last_mut() else { return };
    let known =
        last.output.jobs.iter().zip(&last.pids).position(|(j, p)| j.jobname == name && *p == pid);
    if let Some(known) = known {
        // What it did up to now stands for what it had done before.
        last.times += usize::from(std::mem::take(&mut last.over));
        let pid = last.pids.remove(known);
        last.output.jobs.remove(known);
        last.output.jobs.push(job);
        last.pids.push(pid);
        return;
    }
    if last.over {
        let (version, scheduler) = (last.output.version.clone(), last.scheduler.clone());
        runs.push(Run::under(scheduler));
        if let Some(run) = runs.last_mut() {
            run.output.version = version;
        }
    }
    if let Some(run) = runs.last_mut() {
        run.output.jobs.push(job);
        run.pids.push(pid);
    }
}

/// Where in a job's report a line stands.
#[derive(Default)]
struct State {
    side: Option<&'static str>,
    /// Of which latency the percentiles are, and their unit in ns.
    table: Option<(&'static str, f64)>,
    disks: bool,
}

pub(super) const SIDES: [&str; 4] = ["read", "write", "trim", "mixed"];

fn body(run: &mut Run, state: &mut State, place: (&str, usize, &str)) -> Result<(), Diagnostic> {
    let line = place.2.trim();
    if line.starts_with("Run status group") {
        run.over = true;
        *state = State::default();
        return Ok(());
    }
    if line.starts_with("Disk stats") {
        state.disks = true;
        return Ok(());
    }
    if let (true, Some((name, rest))) = (state.disks, line.split_once(": ios=")) {
        run.output.disk_util.retain(|d| d.name != name);
        run.output.disk_util.push(disk(name, rest, place));
        return Ok(());
    }
    let Some(job) = run.output.jobs.last_mut().filter(|_| !run.over) else { return Ok(()) };
    let (word, rest) = line.split_once(':').unwrap_or((line, ""));
    if let Some(side) = SIDES.into_iter().find(|s| *s == word.trim()) {
        (state.side, state.table) = (Some(side), None);
        return rates(side_of(job, side), rest, place);
    }
    if word.starts_with("fsync/") {
        (state.side, state.table) = (Some("sync"), None);
    } else if let Some(options) = line.strip_prefix("issued") {
        issued(job, options);
    } else if word == "cpu" || word.starts_with("cpu ") {
        for (key, slot) in [("usr=", &mut job.usr_cpu), ("sys=", &mut job.sys_cpu)] {
            let value = rest.split_once(key).and_then(|(_, v)| v.split('%').next());
            *slot = value.map_or(0.0, |v| share(place, v));
        }
    } else if word.starts_with("IO depths") {
        for (i, level) in rest.split(", ").enumerate().take(7) {
            let level = level.rsplit('=').next().unwrap_or_default();
            job.iodepth_level.0.push((i.to_string(), share(place, level.trim_end_matches('%'))));
        }
    } else if let Some((what, unit)) = latency_head(word) {
        let Some(side) = state.side else { return Ok(()) };
        if word.contains("percentiles") {
            state.table = Some((what, unit));
        } else if rest.contains("min=") {
            state.table = None;
            moments(table_of(job, side, what), rest, unit, place)?;
        }
    } else if let (Some(row), Some((what, unit)), Some(side)) =
        (line.strip_prefix('|'), state.table, state.side)
    {
        percentiles(table_of(job, side, what), row, unit, place)?;
    }
    Ok(())
}

/// A share in percent; one that is no number is none.
fn share(place: (&str, usize, &str), word: &str) -> f64 {
    COMMAS.number(place, word.trim()).unwrap_or(0.0)
}

fn disk(name: &str, rest: &str, place: (&str, usize, &str)) -> DiskUtil {
    let pair = |key: &str| -> [u64; 2] {
        let text = format!(" ios={rest}");
        let value = text.split_once(&format!(" {key}=")).map_or("", |(_, v)| v);
        let value = value.split([',', ' ']).next().unwrap_or_default();
        let mut n = value.split('/').map(|n| n.parse().unwrap_or(0));
        [n.next().unwrap_or(0), n.next().unwrap_or(0)]
    };
    let ([read_ios, write_ios], [read_merges, write_merges]) = (pair("ios"), pair("merge"));
    let in_queue = pair("in_queue")[0];
    let util = rest.split_once(" util=").and_then(|(_, u)| u.split('%').next());
    DiskUtil {
        name: name.into(),
        read_ios,
        write_ios,
        read_merges,
        write_merges,
        in_queue,
        util: util.map_or(0.0, |u| share(place, u)),
        ..DiskUtil::default()
    }
}

pub(super) fn side_of<'a>(job: &'a mut FioJob, side: &str) -> &'a mut Direction {
    match side {
        "read" => &mut job.read,
        "write" => &mut job.write,
        "trim" => &mut job.trim,
        _ => job.mixed.get_or_insert_default(),
    }
}

fn table_of<'a>(job: &'a mut FioJob, side: &str, what: &str) -> &'a mut LatencyStats {
    if side == "sync" {
        return &mut job.sync.lat_ns;
    }
    let side = side_of(job, side);
    match what {
        "slat" => &mut side.slat_ns,
        "clat" => &mut side.clat_ns,
        _ => &mut side.lat_ns,
    }
}

/// `clat (usec)`, `clat percentiles (nsec)`: which latency, and its unit in ns.
fn latency_head(word: &str) -> Option<(&'static str, f64)> {
    let (name, unit) = word.trim().split_once('(')?;
    let name = name.trim();
    let name = name.strip_suffix("percentiles").unwrap_or(name).trim();
    let what = ["slat", "clat", "lat", "sync"].into_iter().find(|w| *w == name)?;
    let unit = match unit.trim_end_matches(')') {
        "nsec" => 1.0,
        "usec" => 1e3,
        "msec" => 1e6,
        "sec" => 1e9,
        _ => return None,
    };
    Some((what, unit))
}

/// `key=   value` in a line, up to a blank, a parenthesis, or a comma that does not part thousands (`bw=57,345KiB/s`).
fn value<'a>(rest: &'a str, key: &str) -> Option<&'a str> {
    let (_, v) = rest.split_once(key)?;
    let v = v.trim_start();
    let v = v.split([' ', ')', '(', '/', ';']).next().unwrap_or(v);
    let inside = |at: usize| v[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let end = v.match_indices(',').find(|(at, _)| !inside(*at));
    Some(end.map_or(v, |(at, _)| &v[..at]))
}

/// `11067k`, `73.7k`, `1.2M`: thousands.
fn shortened(place: (&str, usize, &str), word: &str) -> Result<f64, Diagnostic> {
    let (digits, scale) = match word.chars().last() {
        Some('k' | 'K') => (&word[..word.len() - 1], 1e3),
        Some('M' | 'm') => (&word[..word.len() - 1], 1e6),
        Some('G' | 'g') => (&word[..word.len() - 1], 1e9),
        _ => (word, 1.0),
    };
    Ok(COMMAS.number(place, digits)? * scale)
}

/// `1984KiB`, `14.2MB`, `180Mibit`: bytes. A unit without an i has `thousand` of the next smaller one: fio 2 says KB for
/// 1024 bytes, fio 3 kB for 1000, which are its first figures with `kb_base=1000`.
fn bytes(place: (&str, usize, &str), word: &str, thousand: f64) -> Result<f64, Diagnostic> {
    let at = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
    let (digits, unit) = word.split_at(at);
    let letter = unit.chars().next().map_or(' ', |c| c.to_ascii_uppercase());
    let power = "KMGTP".find(letter).map_or(0, |at| at + 1);
    let rest = &unit[power.min(1)..];
    let (thousand, rest) = match rest.strip_prefix('i').filter(|_| power > 0) {
        Some(rest) => (1024.0, rest),
        None => (thousand, rest),
    };
    let bits = match rest {
        "" | "B" => 1.0,
        "b" | "bit" => 8.0,
        _ => return COMMAS.number(place, word),
    };
    Ok(COMMAS.number(place, digits)? * f64::powi(thousand, power as i32) / bits)
}

/// `143msec`, `36.5sec`: milliseconds.
fn milliseconds(place: (&str, usize, &str), word: &str) -> Result<f64, Diagnostic> {
    match word.strip_suffix("msec") {
        Some(ms) => COMMAS.number(place, ms),
        None => match word.strip_suffix("sec").or_else(|| word.strip_suffix('s')) {
            Some(s) => Ok(COMMAS.number(place, s)? * 1000.0),
            None => COMMAS.number(place, word),
        },
    }
}

/// The line of a direction.
fn rates(d: &mut Direction, rest: &str, place: (&str, usize, &str)) -> Result<(), Diagnostic> {
    if let Some(iops) = value(rest, "IOPS=").or_else(|| value(rest, "iops=")) {
        d.iops = shortened(place, iops)?;
    }
    // fio 3: BW=13.5MiB/s (14.2MB/s)(1984KiB/143msec)
    // fio 2: io=1984.0KB, bw=13874KB/s, iops=3468, runt=   143msec, of some versions runtime=143msec
    let total = rest.rsplit_once(")(").map(|(_, t)| t.split(')').next().unwrap_or(t));
    let (io, run) = match total.and_then(|t| t.split_once('/')) {
        Some((io, run)) => (Some(io), Some(run)),
        None => (value(rest, "io="), value(rest, "runt=").or_else(|| value(rest, "runtime="))),
    };
    let thousand = if rest.contains("BW=") { 1000.0 } else { 1024.0 };
    if let Some(io) = io {
        d.io_bytes = bytes(place, io, thousand)? as u64;
    }
    let rate = value(rest, "bw=").map(|bw| bytes(place, bw, thousand)).transpose()?;
    if let Some(run) = run {
        d.runtime = milliseconds(place, run)? as u64;
    } else if let Some(rate) = rate.filter(|r| *r > 0.0) {
        d.runtime = (d.io_bytes as f64 / rate * 1000.0).round() as u64;
    }
    Ok(())
}

/// `issued rwts: total=496,528,0,0 short=…`, of fio 2 `issued    : total=r=496/w=528/d=0, short=…`, of fio 1
/// `issued r/w: total=496/528, short=…`.
fn issued(job: &mut FioJob, rest: &str) {
    let Some((_, totals)) = rest.split_once("total=") else { return };
    let totals = totals.split([' ', ';']).next().unwrap_or_default();
    // Slashes part the directions of fio 1 and 2, whose commas part thousands.
    let old = totals.contains('/');
    let count = |t: &str| t.rsplit('=').next()?.replace(',', "").parse().ok();
    let numbers: Vec<u64> = totals.split(if old { '/' } else { ',' }).filter_map(count).collect();
    let n = |i: usize| numbers.get(i).copied().unwrap_or(0);
    match &mut job.mixed {
        Some(mixed) if job.read.iops == 0.0 && job.write.iops == 0.0 => {
            mixed.total_ios = n(0) + n(1) + n(2)
        }
        _ => {
            job.read.total_ios = n(0);
            job.write.total_ios = n(1);
            job.trim.total_ios = n(2);
        }
    }
    if !old {
        job.sync.total_ios = n(3);
    }
}

fn moments(
    t: &mut LatencyStats,
    rest: &str,
    unit: f64,
    place: (&str, usize, &str),
) -> Result<(), Diagnostic> {
    let get =
        |key: &str| value(rest, key).map_or(Ok(0.0), |v| shortened(place, v)).map(|v| v * unit);
    (t.min, t.max) = (get("min=")? as u64, get("max=")? as u64);
    (t.mean, t.stddev) = (get("avg=")?, get("stdev=")?);
    Ok(())
}

fn percentiles(
    t: &mut LatencyStats,
    row: &str,
    unit: f64,
    place: (&str, usize, &str),
) -> Result<(), Diagnostic> {
    for cell in row.split("],") {
        let Some((p, v)) = cell.split_once("th=[") else { continue };
        let v = v.trim().trim_end_matches(']').trim_start_matches(">=").trim();
        let v = shortened(place, v)? * unit;
        let p = p.trim().replace(',', ".");
        t.percentile.0.retain(|(known, _)| *known != p);
        t.percentile.0.push((p, v as u64));
    }
    Ok(())
}

/// Latencies have the number of the I/Os. Without a number of I/Os there is that of the rate.
pub(super) fn counted(j: &mut FioJob) {
    let mixed = j.mixed.as_deref_mut();
    for d in [&mut j.read, &mut j.write, &mut j.trim].into_iter().chain(mixed) {
        if d.total_ios == 0 {
            d.total_ios = (d.iops * d.runtime as f64 / 1000.0).round() as u64;
        }
        for t in [&mut d.slat_ns, &mut d.clat_ns, &mut d.lat_ns] {
            t.n = if t.max > 0 || t.mean > 0.0 { d.total_ios } else { 0 };
        }
    }
    j.sync.lat_ns.n = if j.sync.lat_ns.max > 0 { j.sync.total_ios.max(1) } else { 0 };
    let longest = j.sides().map(|d| d.runtime).max().unwrap_or(0);
    j.job_runtime = longest;
    j.elapsed = longest.div_ceil(1000);
}
