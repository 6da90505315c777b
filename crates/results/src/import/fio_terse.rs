//! fio's terse output, of versions 2 to 5.

use iosched_types::Diagnostic;

use super::fio_text::{COMMAS, Run, SIDES, counted, side_of, without_sums};
use super::iozone::scheduler_mark;
use super::{at, lines};
use crate::fio::{Direction, DiskUtil, FioJob, LatencyStats};

/// Whether a line has terse output.
pub(super) fn is_terse(line: &str) -> bool {
    report(line).is_some()
}

/// The terse report in a line. Behind the status of a client's jobs it does not begin a line of its own:
/// `Jobs: 2 (f=2)3;fio-3.33;a;…`.
fn report(line: &str) -> Option<&str> {
    let (head, rest) = line.split_once(';')?;
    let version = head.chars().last().filter(|v| ('2'..='5').contains(v))?;
    let before = &head[..head.len() - 1];
    let begins = before.is_empty() || before.ends_with([')', ']', '\r', ' ']);
    let named = version == '2' || rest.starts_with("fio-");
    (begins && named && rest.matches(';').count() >= 39).then(|| &line[before.len()..])
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
        // A client prints the disks of a server on a line of its own, behind its jobs.
        if let (Some(disks), Some(last)) = (line.strip_prefix(';'), reports.last_mut()) {
            last.server_disks.get_or_insert_with(|| disks.to_string());
        }
        let Some(line) = report(line) else { continue };
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
                reports.push(Report {
                    version,
                    scheduler,
                    marked,
                    disk,
                    jobs: vec![(job, ctx)],
                    server_disks: None,
                });
            }
        }
        marked = false;
    }
    let mut runs = runs_of(reports);
    without_sums(&mut runs);
    Ok(runs)
}

/// What fio printed at once: a line for each job, all with the same figures of the disks.
struct Report {
    version: String,
    scheduler: Option<String>,
    /// A mark of a scheduler stands before it.
    marked: bool,
    disk: String,
    server_disks: Option<String>,
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
                let mut run = Run::under(report.scheduler.clone());
                run.output.version.clone_from(&report.version);
                run.output.jobs = jobs;
                runs.push(run);
            }
        }
        if let Some(run) = runs.last_mut() {
            let disks = report.server_disks.as_deref().unwrap_or(&report.disk);
            run.output.disk_util = disk(disks).into_iter().collect();
        }
        before = Some(report);
    }
    runs
}

/// The first of the disks: name, reads, writes, merges of both, their times, time in the queue, share of the time.
fn disk(text: &str) -> Option<DiskUtil> {
    let fields: Vec<&str> = text.split(';').collect();
    let [name, counts @ .., util] = fields.get(..9)? else { return None };
    let util = util.strip_suffix('%')?.parse().ok()?;
    let counts: Vec<u64> = counts.iter().map_while(|c| c.parse().ok()).collect();
    let [read_ios, write_ios, read_merges, write_merges, _, _, in_queue] = counts[..] else {
        return None;
    };
    let name = (*name).to_string();
    Some(DiskUtil {
        name,
        read_ios,
        write_ios,
        read_merges,
        write_merges,
        in_queue,
        util,
        ..DiskUtil::default()
    })
}

/// Bytes and time of each side.
fn done(j: &FioJob) -> Vec<(u64, u64)> {
    j.sides().map(|d| (d.io_bytes, d.runtime)).collect()
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
    // Versions differ in whether they have trims. `unified_rw_reporting=1` gives all as one, `=2` that behind the others.
    let mut sides = Vec::new();
    while sides.len() < SIDES.len() && !fields.peek().is_some_and(|f| f.ends_with('%')) {
        sides.push(side_from(&mut fields, format == "5", place)?);
    }
    // Version 3 has no trims, so a third side is that of all.
    let names = match (sides.len(), format) {
        (1, _) => ["mixed"; 4],
        (3, "3") => ["read", "write", "mixed", ""],
        _ => SIDES,
    };
    for (side, name) in sides.into_iter().zip(names) {
        *side_of(&mut j, name) = side;
    }
    let mut share = || -> Result<f64, Diagnostic> {
        let word = fields.next().ok_or_else(cut)?;
        COMMAS.number((file, n, line), word.trim_end_matches('%'))
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
        COMMAS.number((file, n, line), word.trim_end_matches('%'))
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
        let v = COMMAS.number((file, n, line), v)?;
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
