//! fio's output for people, and its terse form.

use iosched_types::Diagnostic;

use super::iozone::scheduler_mark;
use super::{at, lines, number};
use crate::fio::{Direction, DiskUtil, FioJob, FioOutput, LatencyStats};

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

/// Whether a text is fio's output for people.
pub(super) fn is_normal(text: &str) -> bool {
    text.lines().any(|l| l.contains(": (groupid=") && l.contains("err="))
}

/// Whether a line is one of fio's terse output.
pub(super) fn is_terse(line: &str) -> bool {
    let version = line.split(';').next().unwrap_or_default();
    matches!(version, "2" | "3" | "4" | "5") && line.matches(';').count() >= 40
}

/// Reads fio's output for people: of fio 2 (`io=`, `runt=`, KB of 1024 bytes) and fio 3.
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
            runs.push(Run { scheduler: Some(scheduler.into()), ..Run::default() });
        } else if trimmed.starts_with("fio-") && !trimmed.contains(' ') {
            let begun = runs.last().is_some_and(|r| !r.output.jobs.is_empty());
            if begun {
                let scheduler = runs.last().and_then(|r| r.scheduler.clone());
                runs.push(Run { scheduler, ..Run::default() });
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
    // A client's sum of all its servers would count everything twice.
    let sum = |j: &FioJob| j.jobname == "All clients";
    if runs.iter().flat_map(|r| &r.output.jobs).any(|j| !sum(j)) {
        runs.iter_mut().for_each(|r| r.output.jobs.retain(|j| !sum(j)));
    }
    runs.retain(|r| !r.output.jobs.is_empty());
    for run in &mut runs {
        run.output.jobs.iter_mut().for_each(counted);
    }
    Ok(runs)
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
        runs.push(Run { scheduler, ..Run::default() });
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

const SIDES: [&str; 4] = ["read", "write", "trim", "mixed"];

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
        run.output.disk_util.push(disk(name, rest));
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
            *slot = value.and_then(|v| v.trim().parse().ok()).unwrap_or(0.0);
        }
    } else if word.starts_with("IO depths") {
        for (i, share) in rest.split(',').enumerate().take(7) {
            let share =
                share.rsplit('=').next().and_then(|v| v.trim_end_matches('%').trim().parse().ok());
            job.iodepth_level.0.push((i.to_string(), share.unwrap_or(0.0)));
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

fn disk(name: &str, rest: &str) -> DiskUtil {
    let pair = |key: &str| -> [u64; 2] {
        let text = format!(" ios={rest}");
        let value = text.split_once(&format!(" {key}=")).map_or("", |(_, v)| v);
        let value = value.split([',', ' ']).next().unwrap_or_default();
        let mut n = value.split('/').map(|n| n.parse().unwrap_or(0));
        [n.next().unwrap_or(0), n.next().unwrap_or(0)]
    };
    let ([read_ios, write_ios], [read_merges, write_merges]) = (pair("ios"), pair("merge"));
    let in_queue = pair("in_queue")[0];
    DiskUtil {
        name: name.into(),
        read_ios,
        write_ios,
        read_merges,
        write_merges,
        in_queue,
        ..DiskUtil::default()
    }
}

fn side_of<'a>(job: &'a mut FioJob, side: &str) -> &'a mut Direction {
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

/// `key=   value` in a line, up to a comma, a blank or a parenthesis.
fn value<'a>(rest: &'a str, key: &str) -> Option<&'a str> {
    let (_, v) = rest.split_once(key)?;
    let v = v.trim_start();
    Some(v.split([',', ' ', ')', '(', '/', ';']).next().unwrap_or(v))
}

/// `11067k`, `73.7k`, `1.2M`: thousands.
fn shortened((file, n, line): (&str, usize, &str), word: &str) -> Result<f64, Diagnostic> {
    let (digits, scale) = match word.chars().last() {
        Some('k' | 'K') => (&word[..word.len() - 1], 1e3),
        Some('M' | 'm') => (&word[..word.len() - 1], 1e6),
        Some('G' | 'g') => (&word[..word.len() - 1], 1e9),
        _ => (word, 1.0),
    };
    Ok(number(file, n, line, digits)? * scale)
}

/// `1984KiB`, of fio 2 `1984.0KB`, `14.2MB`: bytes. fio 2 says KB for 1024 bytes; fio 3 prints these as KiB, and kB beside it.
fn bytes((file, n, line): (&str, usize, &str), word: &str) -> Result<f64, Diagnostic> {
    let at = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
    let (digits, unit) = word.split_at(at);
    let power = match unit.chars().next().map(|c| c.to_ascii_uppercase()) {
        Some('K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        Some('P') => 5,
        _ => 0,
    };
    Ok(number(file, n, line, digits)? * 1024f64.powi(power))
}

/// The line of a direction.
fn rates(d: &mut Direction, rest: &str, place: (&str, usize, &str)) -> Result<(), Diagnostic> {
    if let Some(iops) = value(rest, "IOPS=").or_else(|| value(rest, "iops=")) {
        d.iops = shortened(place, iops)?;
    }
    // fio 3: BW=13.5MiB/s (14.2MB/s)(1984KiB/143msec); fio 2: io=1984.0KB, bw=…, iops=…, runt=   143msec
    let total = rest.rsplit_once(")(").map(|(_, t)| t.split(')').next().unwrap_or(t));
    let (io, run) = match total.and_then(|t| t.split_once('/')) {
        Some((io, run)) => (Some(io), Some(run)),
        None => (value(rest, "io="), value(rest, "runt=")),
    };
    if let Some(io) = io {
        d.io_bytes = bytes(place, io)? as u64;
    }
    if let Some(run) = run {
        let ms = run.trim_end_matches("msec");
        d.runtime = match run.strip_suffix("sec").filter(|_| ms == run) {
            Some(s) => number(place.0, place.1, place.2, s)? * 1000.0,
            None => number(place.0, place.1, place.2, ms)?,
        } as u64;
    }
    Ok(())
}

/// `issued rwts: total=496,528,0,0 short=…`, of fio 2 `issued    : total=r=496/w=528/d=0, short=…`.
fn issued(job: &mut FioJob, rest: &str) {
    let Some((_, totals)) = rest.split_once("total=") else { return };
    let totals = totals.split([' ', ';']).next().unwrap_or_default();
    let numbers: Vec<u64> =
        totals.split([',', '/']).filter_map(|t| t.rsplit('=').next()?.parse().ok()).collect();
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
    if !totals.contains('=') {
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
        t.percentile.0.retain(|(known, _)| known != p.trim());
        t.percentile.0.push((p.trim().to_string(), v as u64));
    }
    Ok(())
}

/// Latencies have the number of the I/Os. Without a number of I/Os there is that of the rate.
fn counted(j: &mut FioJob) {
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
    let longest = [&j.read, &j.write, &j.trim].iter().map(|d| d.runtime).max().unwrap_or(0);
    j.job_runtime = longest;
    j.elapsed = longest.div_ceil(1000);
}

/// Reads terse lines of versions 2 to 5: a job a line. Lines of one run have the same figures of the disk.
///
/// # Errors
/// A diagnostic: a line that is cut off, a number that is none.
pub(super) fn terse(file: &str, text: &str) -> Result<Vec<Run>, Diagnostic> {
    let mut reports: Vec<Report> = Vec::new();
    let (mut scheduler, mut marked) = (None, false);
    for line in lines(file, text) {
        let (n, line) = line?;
        if let Some(s) = scheduler_mark(line) {
            (scheduler, marked) = (Some(s.to_string()), true);
        }
        if !is_terse(line) {
            continue;
        }
        let (version, job, ctx, disk) = job_of((file, n, line))?;
        let goes_on = |r: &&mut Report| {
            let first = r.jobs.first().is_some_and(|(j, _)| is_of(j, &job));
            let last = r.jobs.last().is_some_and(|(j, _)| is_of(j, &job));
            let told = r.jobs.iter().any(|(j, _)| is_of(j, &job));
            // Processes of one name follow each other; the first job once more begins another report.
            r.disk == disk && !(disk.is_empty() && told) && (last || !first)
        };
        match reports.last_mut().filter(|_| !marked).filter(goes_on) {
            Some(report) => report.jobs.push((job, ctx)),
            None => {
                let scheduler = scheduler.clone();
                reports.push(Report { version, scheduler, marked, disk, jobs: vec![(job, ctx)] });
            }
        }
        marked = false;
    }
    Ok(runs_of(reports))
}

/// What fio printed at once: a line for each job, all with the same figures of the disks.
struct Report {
    version: String,
    scheduler: Option<String>,
    /// A mark of a scheduler stands before it.
    marked: bool,
    disk: String,
    /// Jobs with their context switches.
    jobs: Vec<(FioJob, u64)>,
}

impl Report {
    /// Whether it tells of the run of another one, later. In a series of reports the last may come at once after the one
    /// before.
    fn follows(&self, before: &Report, series: bool) -> bool {
        let pairs = || before.jobs.iter().zip(&self.jobs);
        !self.marked
            && (series || before.disk != self.disk)
            && before.jobs.len() == self.jobs.len()
            && pairs().all(|((a, x), (b, y))| is_of(a, b) && x <= y)
            && pairs().all(|((a, _), (b, _))| grows(a, b))
            && (series || pairs().any(|((a, _), (b, _))| goes_on(a, b)))
    }
}

/// Whether a job has done as much as before, or more.
fn grows(before: &FioJob, now: &FioJob) -> bool {
    done(before).iter().zip(done(now)).all(|(a, b)| a.0 <= b.0 && a.1 <= b.1)
}

fn is_of(a: &FioJob, b: &FioJob) -> bool {
    (&a.jobname, a.groupid) == (&b.jobname, b.groupid)
}

fn runs_of(reports: Vec<Report>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut before: Option<Report> = None;
    for report in reports {
        let jobs = report.jobs.iter().map(|(j, _)| j.clone()).collect();
        match runs.last_mut().zip(before.as_ref()) {
            Some((run, old)) if report.follows(old, run.times > 0) => {
                run.times += 1;
                run.output.jobs = jobs;
            }
            last => {
                if let Some((run, _)) = last.filter(|_| report.disk.is_empty() && !report.marked) {
                    run.alike = true;
                }
                let mut run = Run { scheduler: report.scheduler.clone(), ..Run::default() };
                run.output.version.clone_from(&report.version);
                if let Some((name, _)) = report.disk.split_once(';') {
                    let disk = DiskUtil { name: name.into(), ..DiskUtil::default() };
                    run.output.disk_util.push(disk);
                }
                run.output.jobs = jobs;
                runs.push(run);
            }
        }
        before = Some(report);
    }
    runs
}

/// Bytes and time of each side.
fn done(j: &FioJob) -> [(u64, u64); 3] {
    [&j.read, &j.write, &j.trim].map(|d| (d.io_bytes, d.runtime))
}

/// Whether a line tells of the job of another one later. Runs of the same length differ by some milliseconds.
fn goes_on(before: &FioJob, now: &FioJob) -> bool {
    let longest = |j: &FioJob| done(j).iter().map(|s| s.1).max().unwrap_or(0);
    grows(before, now)
        && longest(now) >= longest(before) + 100
        && done(before).iter().zip(done(now)).any(|(a, b)| a.0 < b.0)
}

/// A line: version, job, context switches, and what stands behind the latencies: the disks.
fn job_of(
    (file, n, line): (&str, usize, &str),
) -> Result<(String, FioJob, u64, String), Diagnostic> {
    let place = (file, n, line);
    let mut fields = line.trim().split(';').peekable();
    let cut = || at(file, n, line, "", "the line is cut off".into());
    let format = fields.next().unwrap_or_default();
    let version =
        if format == "2" { "fio".into() } else { fields.next().ok_or_else(cut)?.to_string() };
    let mut j = FioJob { jobname: fields.next().ok_or_else(cut)?.into(), ..FioJob::default() };
    let mut next = || fields.next().ok_or_else(cut);
    j.groupid = next()?.parse().unwrap_or(0);
    j.error = next()?.parse().unwrap_or(0);
    let _ = next;
    for side in ["read", "write", "trim"] {
        // Versions differ in whether they have trims.
        if fields.peek().is_some_and(|f| f.ends_with('%')) {
            break;
        }
        *side_of(&mut j, side) = side_from(&mut fields, format == "5", place)?;
    }
    let mut share = || -> Result<f64, Diagnostic> {
        let word = fields.next().ok_or_else(cut)?;
        number(file, n, line, word.trim_end_matches('%'))
    };
    (j.usr_cpu, j.sys_cpu) = (share()?, share()?);
    let ctx = share()? as u64;
    counted(&mut j);
    let rest: Vec<&str> = fields.collect();
    // Two counts of faults, depths, and the latencies' shares all end with %, then the disks.
    let disks = rest.iter().skip(2).position(|f| !f.ends_with('%')).map_or(rest.len(), |i| i + 2);
    Ok((version, j, ctx, rest[disks..].join(";")))
}

fn side_from<'a>(
    fields: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    samples: bool,
    (file, n, line): (&str, usize, &str),
) -> Result<Direction, Diagnostic> {
    let cut = || at(file, n, line, "", "the line is cut off".into());
    let plain = |fields: &mut std::iter::Peekable<_>| -> Result<f64, Diagnostic> {
        let word: &str = Iterator::next(fields).ok_or_else(cut)?;
        number(file, n, line, word.trim_end_matches('%'))
    };
    let kib = plain(fields)?;
    let mut d = Direction { io_bytes: (kib * 1024.0) as u64, ..Direction::default() };
    d.bw = plain(fields)? as u64;
    (d.iops, d.runtime) = (plain(fields)?, plain(fields)? as u64);
    let us = |fields: &mut std::iter::Peekable<_>| -> Result<LatencyStats, Diagnostic> {
        let (min, max) = (plain(fields)? * 1e3, plain(fields)? * 1e3);
        let (mean, stddev) = (plain(fields)? * 1e3, plain(fields)? * 1e3);
        Ok(LatencyStats {
            min: min as u64,
            max: max as u64,
            mean,
            stddev,
            ..LatencyStats::default()
        })
    };
    d.slat_ns = us(fields)?;
    d.clat_ns = us(fields)?;
    while let Some((p, v)) = fields.peek().and_then(|f| f.split_once("%=")) {
        let v = number(file, n, line, v)?;
        // Places without a percentile are filled with 0%=0.
        if p.parse::<f64>().is_ok_and(|p| p > 0.0) {
            d.clat_ns.percentile.0.push((p.into(), (v * 1e3) as u64));
        }
        fields.next();
    }
    d.lat_ns = us(fields)?;
    for _ in 0..if samples { 11 } else { 5 } {
        fields.next().ok_or_else(cut)?;
    }
    Ok(d)
}
