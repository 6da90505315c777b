//! Forms of fio's JSON besides that of one fio 3.x process: of fio 2, of a client, with numbers that are none.

use std::borrow::Cow;
use std::collections::BTreeSet;

use iosched_experiment::record::{IMPORT, Warning};

use super::types::{Direction, FioJob, FioOutput, LatencyStats};

/// Members without a figure.
const PLAIN: [&str; 4] = ["desc", "description", "job_start", "port"];

/// Brings an output to the form of one fio 3.x process. Says what of it is not used.
pub fn settle(output: &mut FioOutput) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |message: String, advice: &str| {
        warnings.push(Warning { code: IMPORT.into(), message, advice: advice.into() });
    };
    clients(output);
    let mut unread: BTreeSet<&str> = output.other.keys().map(String::as_str).collect();
    for j in &output.jobs {
        unread.extend(j.other.keys().map(String::as_str));
        unread.extend(j.sides().flat_map(|d| d.other.keys()).map(String::as_str));
    }
    unread.retain(|name| !PLAIN.contains(name));
    if !unread.is_empty() {
        let names: Vec<&str> = unread.into_iter().collect();
        warn(format!("not used of fio's output: {}", names.join(", ")), "");
    }
    if let Some([first, rest @ ..]) = output.disk_util.get(..).filter(|d| d.len() > 1) {
        let rest: Vec<&str> = rest.iter().map(|d| d.name.as_str()).collect();
        let message = format!("of the disks {} is kept, not {}", first.name, rest.join(", "));
        warn(message, "");
    }
    let mut bins = false;
    for j in &mut output.jobs {
        if j.mixed.as_ref().is_some_and(|m| m.total_ios > 0) {
            match [&j.read, &j.write, &j.trim].iter().any(|d| d.total_ios > 0) {
                true => warn(
                    format!(
                        "job {}: \"mixed\" is the sum of what stands beside it, and not used",
                        j.jobname
                    ),
                    "",
                ),
                false => warn(
                    format!(
                        "job {}: fio reported reads and writes as one: their figures are called mixed",
                        j.jobname
                    ),
                    "without unified_rw_reporting fio tells them apart",
                ),
            }
        }
        let lost = |d: &Direction| d.drop_ios.saturating_add(d.short_ios);
        let apart: u64 = [&j.read, &j.write, &j.trim].into_iter().map(lost).sum();
        let lost = apart.max(j.mixed.as_deref().map_or(0, lost));
        if lost > 0 {
            warn(format!("job {}: {lost} I/Os were short or dropped", j.jobname), "");
        }
        let mixed = j.mixed.as_deref_mut();
        for d in [&mut j.read, &mut j.write, &mut j.trim].into_iter().chain(mixed) {
            bins |= old_units(d);
        }
    }
    if bins {
        warn("the bins of fio 2 are not used, its percentiles are".into(), "");
    }
    warnings
}

/// What clients measured, each for itself. fio adds their sum as another job, which is not counted again.
fn clients(output: &mut FioOutput) {
    let mut stats = std::mem::take(&mut output.client_stats);
    if stats.iter().any(|j| !is_sum(j)) {
        stats.retain(|j| !is_sum(j));
    }
    output.jobs.extend(stats);
}

fn is_sum(j: &FioJob) -> bool {
    j.jobname == "All clients"
}

/// fio 2 has latencies in microseconds without their number, and bytes in KiB up to some version: its own rate, which is
/// in KiB/s, tells. Whether there were bins.
fn old_units(d: &mut Direction) -> bool {
    let (slat, clat, lat) = (d.slat.take(), d.clat.take(), d.lat.take());
    if slat.is_none() && clat.is_none() && lat.is_none() {
        return false;
    }
    let ios = d.total_ios;
    let bins = [&slat, &clat, &lat].iter().any(|s| s.as_ref().is_some_and(|s| !s.bins.is_empty()));
    for (new, old) in [(&mut d.slat_ns, slat), (&mut d.clat_ns, clat), (&mut d.lat_ns, lat)] {
        if let Some(old) = old {
            *new = nanoseconds(old, ios);
        }
    }
    let kib = d.bw as f64 * d.runtime as f64 / 1000.0;
    // Between a KiB for a KiB and 1024 bytes for one lies their geometric mean.
    let in_kib = if kib > 0.0 { (d.io_bytes as f64) < kib * 32.0 } else { d.io_bytes / 512 < ios };
    if in_kib {
        (d.io_kbytes, d.io_bytes) = (d.io_bytes, d.io_bytes.saturating_mul(1024));
    }
    bins
}

fn nanoseconds(us: LatencyStats, ios: u64) -> LatencyStats {
    let seen = us.max > 0 || us.mean > 0.0;
    let mut ns = LatencyStats {
        min: us.min.saturating_mul(1000),
        max: us.max.saturating_mul(1000),
        mean: us.mean * 1000.0,
        stddev: us.stddev * 1000.0,
        n: if seen { ios } else { 0 },
        ..LatencyStats::default()
    };
    let named =
        us.percentile.0.into_iter().filter(|(p, _)| p.parse::<f64>().is_ok_and(|p| p > 0.0));
    ns.percentile.0 = named.map(|(p, v)| (p, v.saturating_mul(1000))).collect();
    ns
}

/// The JSON object at the beginning of a text without members that are no numbers (`-nan`, `inf`: fio divides by zero), and
/// their names. All else keeps its place, so that errors have theirs.
#[must_use]
pub fn without_nan(text: &str) -> (Cow<'_, str>, BTreeSet<String>) {
    let bytes = text.as_bytes();
    let mut out: Option<Vec<u8>> = None;
    let mut names = BTreeSet::new();
    // Where the last string began and ended, and whether it names what comes.
    let (mut key, mut named) = (0..0, false);
    let (mut depth, mut i) = (0usize, 0);
    while let Some(&b) = bytes.get(i) {
        match b {
            b'"' => {
                let end = string_end(bytes, i);
                (key, named) = (i..end, false);
                i = end;
                continue;
            }
            b':' => named = true,
            b',' => named = false,
            b'{' | b'[' => (depth, named) = (depth + 1, false),
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            b if !b.is_ascii_whitespace() => {
                let ends = |b: &u8| b.is_ascii_whitespace() || b",:{}[]\"".contains(b);
                let end = i + bytes[i..].iter().position(ends).unwrap_or(bytes.len() - i);
                let word = text.get(i..end).unwrap_or("").trim_start_matches(['-', '+']);
                if ["nan", "inf"]
                    .iter()
                    .any(|w| word.get(..3).is_some_and(|s| s.eq_ignore_ascii_case(w)))
                {
                    if named {
                        names
                            .insert(text.get(key.start + 1..key.end - 1).unwrap_or("").to_string());
                    }
                    let out = out.get_or_insert_with(|| bytes.to_vec());
                    blank(out, if named { key.start } else { i }, end);
                }
                i = end;
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    match out.and_then(|b| String::from_utf8(b).ok()) {
        Some(text) => (Cow::Owned(text), names),
        None => (Cow::Borrowed(text), names),
    }
}

/// Behind the string that begins at a place.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while let Some(&b) = bytes.get(i) {
        match b {
            b'\\' => i += 1,
            b'"' => return i + 1,
            _ => {}
        }
        i += 1;
    }
    bytes.len()
}

/// Takes a member out, with one comma beside it.
fn blank(out: &mut [u8], start: usize, end: usize) {
    out[start..end].fill(b' ');
    let space = |b: &&u8| b.is_ascii_whitespace();
    let after = end + out[end..].iter().take_while(space).count();
    if out.get(after) == Some(&b',') {
        out[after] = b' ';
        return;
    }
    let before = start - out[..start].iter().rev().take_while(space).count();
    if before > 0 && out[before - 1] == b',' {
        out[before - 1] = b' ';
    }
}
