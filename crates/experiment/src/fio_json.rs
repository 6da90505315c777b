//! fio's JSON and JSON+ output as [`JobRecord`]s. Our own runs and imported files share this converter.
//!
//! It reads files of fio 3.x as `--output-format=json` and `json+` write them. It skips notes that fio prints around
//! the JSON. Of several formats in one file (`--output-format=json,terse`) it takes the JSON part. Files of
//! `--status-interval` hold several documents; the last one counts.

use std::collections::BTreeMap;

use serde::Deserialize;

use iosched_syscalls::Errno;
use iosched_types::units::MS;
use iosched_types::{CpuTime, LatencyHistogram, Nanos};

use crate::record::{DirStats, JobRecord, Moments, Warning, place_in_time};

/// A file that is no fio output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FioJsonError {
    /// There is no JSON object in it.
    #[error("no JSON object in it: was fio run with --output-format=json+?")]
    NoJson,
    /// The JSON is broken or lacks a field that every fio file has.
    #[error("line {line}, column {column}: {message}")]
    Malformed {
        /// Line within the file, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the JSON reader says.
        message: String,
    },
}

/// One run of fio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioRun {
    /// `fio-3.33`.
    pub version: String,
    /// Start, ms since 1970.
    pub timestamp_ms: u64,
    /// One record per reported job or group.
    pub jobs: Vec<JobRecord>,
    /// CPU cost and errors by job, in the order of `jobs`.
    pub cpu: Vec<FioCpu>,
    /// What fio saw of the disks below.
    pub disks: Vec<FioDisk>,
    /// What readers of the figures should know.
    pub warnings: Vec<Warning>,
    /// What fio printed beside its JSON: its own summary (`--output-format=json+,normal`), notes.
    pub printed: String,
}

/// fio's own view of what a job cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FioCpu {
    /// User time in percent of the job's run time.
    pub user: f64,
    /// System time in percent.
    pub system: f64,
    /// Run time of all threads of the group, in ms.
    pub job_runtime_ms: u64,
    /// Context switches.
    pub switches: u64,
}

/// One entry of `disk_util`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct FioDisk {
    /// Kernel name.
    pub name: String,
    /// Reads completed.
    pub read_ios: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Utilisation in percent.
    pub util: f64,
}

/// Reads the output of fio.
///
/// # Errors
/// See [`FioJsonError`].
pub fn parse(text: &str) -> Result<FioRun, FioJsonError> {
    let mut found = None;
    let mut from = 0;
    let mut printed = String::new();
    while let Some(start) = next_object(text, from) {
        printed.push_str(&text[from..start]);
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<RawFile>();
        match stream.next() {
            Some(Ok(file)) => {
                found = Some(file);
                from = start + stream.byte_offset();
            }
            Some(Err(e)) if found.is_none() => {
                let before = text[..start].matches('\n').count();
                return Err(FioJsonError::Malformed {
                    line: before + e.line(),
                    column: e.column(),
                    message: e.to_string(),
                });
            }
            _ => break,
        }
    }
    printed.push_str(&text[from..]);
    let run = found.map(convert).ok_or(FioJsonError::NoJson)?;
    Ok(FioRun { printed: printed.trim().into(), ..run })
}

/// The next `{` that begins a line.
fn next_object(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    for line in text[from..].split_inclusive('\n') {
        if line.starts_with('{') {
            return Some(at);
        }
        at += line.len();
    }
    None
}

#[derive(Deserialize)]
struct RawFile {
    #[serde(rename = "fio version")]
    version: String,
    #[serde(default)]
    timestamp_ms: u64,
    #[serde(default, rename = "global options")]
    global: BTreeMap<String, String>,
    jobs: Vec<RawJob>,
    #[serde(default)]
    disk_util: Vec<FioDisk>,
}

#[derive(Deserialize)]
struct RawJob {
    jobname: String,
    #[serde(default)]
    groupid: u32,
    #[serde(default)]
    error: i64,
    #[serde(default, rename = "job options")]
    options: BTreeMap<String, String>,
    #[serde(default)]
    read: RawDir,
    #[serde(default)]
    write: RawDir,
    #[serde(default)]
    trim: RawDir,
    #[serde(default)]
    sync: RawDir,
    #[serde(default)]
    job_runtime: u64,
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
    #[serde(default)]
    ctx: u64,
    #[serde(default)]
    iodepth_level: BTreeMap<String, f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawDir {
    io_bytes: u64,
    runtime: u64,
    total_ios: u64,
    slat_ns: RawStat,
    clat_ns: RawStat,
    lat_ns: RawStat,
    bw_min: f64,
    bw_max: f64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: u64,
    iops_min: f64,
    iops_max: f64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStat {
    min: f64,
    max: f64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    n: u64,
    bins: BTreeMap<String, u64>,
    percentile: BTreeMap<String, u64>,
}

fn convert(file: RawFile) -> FioRun {
    let mut run = FioRun {
        version: file.version,
        timestamp_ms: file.timestamp_ms,
        disks: file.disk_util,
        ..FioRun::default()
    };
    let mut clones: BTreeMap<(u32, String), u32> = BTreeMap::new();
    let mut binless = false;
    for raw in file.jobs {
        let clone = clones.entry((raw.groupid, raw.jobname.clone())).or_insert(0);
        let subjob = *clone;
        *clone += 1;
        for dir in [&raw.read, &raw.write, &raw.trim] {
            // All I/Os of a failed job may have failed.
            binless |= raw.error == 0 && dir.total_ios > 0 && dir.clat_ns.bins.is_empty();
        }
        run.cpu.push(FioCpu {
            user: raw.usr_cpu,
            system: raw.sys_cpu,
            job_runtime_ms: raw.job_runtime,
            switches: raw.ctx,
        });
        run.jobs.push(job(raw, subjob, &file.global));
    }
    place_in_time(&mut run.jobs);
    if binless {
        run.warnings.push(Warning {
            code: "no-bins".into(),
            message: "the file has no latency bins; percentiles are those fio printed".into(),
            advice: "run fio with --output-format=json+".into(),
        });
    }
    run
}

fn job(raw: RawJob, subjob: u32, global: &BTreeMap<String, String>) -> JobRecord {
    let total = raw.read.total_ios + raw.write.total_ios + raw.trim.total_ios;
    let mut depths = [0; 7];
    for (slot, key) in depths.iter_mut().zip(["1", "2", "4", "8", "16", "32", ">=64"]) {
        let percent = raw.iodepth_level.get(key).copied().unwrap_or(0.0);
        *slot = (percent / 100.0 * total as f64).round().max(0.0) as u64;
    }
    let mut options = global.clone();
    options.extend(raw.options);
    let runtime =
        [&raw.read, &raw.write, &raw.trim].iter().map(|d| ms(d.runtime)).max().unwrap_or(0);
    let mut sync = direction(&raw.sync);
    // A sync has no completion latency of its own in fio's output; `lat_ns` is its latency.
    sync.clat = histogram(&raw.sync.lat_ns);
    sync.lat_hist = sync.clat.clone();
    JobRecord {
        name: raw.jobname,
        subjob,
        group: raw.groupid,
        pid: 0,
        options,
        read: direction(&raw.read),
        write: direction(&raw.write),
        trim: direction(&raw.trim),
        sync,
        runtime,
        run_times: if raw.job_runtime == runtime / MS { 0 } else { ms(raw.job_runtime) },
        began: 0,
        ended: runtime,
        depths,
        cpu: CpuTime {
            user: share(raw.usr_cpu, raw.job_runtime),
            system: share(raw.sys_cpu, raw.job_runtime),
            ..CpuTime::default()
        },
        error: (raw.error != 0).then(|| match u16::try_from(raw.error) {
            Ok(errno) => Errno(errno).to_string(),
            Err(_) => format!("fio reports error {}", raw.error),
        }),
        ask: None,
    }
}

/// A percentage of a time in ms, in ns.
fn share(percent: f64, of_ms: u64) -> Nanos {
    (percent / 100.0 * of_ms as f64 * 1e6).max(0.0) as Nanos
}

fn direction(raw: &RawDir) -> DirStats {
    DirStats {
        ios: raw.total_ios,
        bytes: raw.io_bytes,
        runtime: ms(raw.runtime),
        slat: moments(&raw.slat_ns, raw.slat_ns.n),
        clat: histogram(&raw.clat_ns),
        lat: moments(&raw.lat_ns, raw.lat_ns.n),
        lat_hist: totals(&raw.lat_ns),
        bw: sampled(raw.bw_samples, raw.bw_min, raw.bw_max, raw.bw_mean, raw.bw_dev),
        iops: sampled(raw.iops_samples, raw.iops_min, raw.iops_max, raw.iops_mean, raw.iops_stddev),
    }
}

fn ms(ms: u64) -> Nanos {
    ms.saturating_mul(MS)
}

fn moments(raw: &RawStat, n: u64) -> Moments {
    sampled(n, raw.min, raw.max, raw.mean, raw.stddev)
}

fn sampled(n: u64, min: f64, max: f64, mean: f64, stddev: f64) -> Moments {
    if n == 0 {
        return Moments::default();
    }
    Moments { n, min, max, mean, m2: stddev * stddev * n.saturating_sub(1) as f64 }
}

/// Total latencies, where fio was asked for them (`lat_percentiles=1`).
fn totals(raw: &RawStat) -> LatencyHistogram {
    let none = raw.bins.is_empty() && raw.percentile.is_empty();
    if none { LatencyHistogram::default() } else { histogram(raw) }
}

/// Bins of JSON+; without them (plain JSON) the printed percentiles become steps, so that at least
/// those percentiles read back as fio printed them.
fn histogram(raw: &RawStat) -> LatencyHistogram {
    let mut bins: Vec<(Nanos, u64)> =
        raw.bins.iter().filter_map(|(v, n)| Some((v.parse().ok()?, *n))).collect();
    if bins.is_empty() && raw.n > 0 {
        let mut steps: Vec<(f64, u64)> = raw
            .percentile
            .iter()
            .filter_map(|(p, v)| Some((p.parse::<f64>().ok()?, *v)))
            .filter(|(p, _)| (0.0..=100.0).contains(p))
            .collect();
        steps.push((100.0, raw.max.max(0.0) as u64));
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut counted = 0;
        for (p, value) in steps {
            let upto = (p / 100.0 * raw.n as f64).ceil() as u64;
            bins.push((value, upto.saturating_sub(counted)));
            counted = counted.max(upto);
        }
    }
    let range = (raw.min.max(0.0) as Nanos, raw.max.max(0.0) as Nanos);
    LatencyHistogram::from_bins(bins, range, raw.mean.max(0.0), raw.stddev.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLUS: &str = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{
  "fio version" : "fio-3.33", "timestamp_ms" : 5,
  "global options" : { "direct" : "1" },
  "jobs" : [ { "jobname" : "r", "groupid" : 0, "error" : 0, "job options" : { "rw" : "read" },
    "read" : { "io_bytes" : 16384, "runtime" : 2000, "total_ios" : 4,
      "clat_ns" : { "min" : 100, "max" : 300, "mean" : 200.0, "stddev" : 81.6, "N" : 4,
        "bins" : { "100" : 1, "201" : 2, "300" : 1 } } },
    "iodepth_level" : { "1" : 100.0 } } ],
  "disk_util" : [ { "name" : "loop3", "read_ios" : 4, "util" : 1.5 } ]
}
"#;

    #[test]
    fn reads_json_plus_between_notes() {
        let run = parse(PLUS).unwrap();
        let job = &run.jobs[0];
        assert_eq!((job.read.ios, job.read.bytes), (4, 16384));
        assert_eq!(job.read.iops(), 2.0);
        assert_eq!(job.read.clat.count(), 4);
        assert_eq!((job.read.clat.min(), job.read.clat.max()), (100, 300));
        assert_eq!(job.options["direct"], "1");
        assert_eq!(job.depths[0], 4);
        assert_eq!(run.disks[0].name, "loop3");
        assert!(run.printed.starts_with("note: both iodepth"), "{}", run.printed);
        let behind = parse(&format!("{PLUS}\nr: (groupid=0): err= 0\n")).unwrap().printed;
        assert!(behind.ends_with("err= 0"), "{behind}");
        assert!(run.warnings.is_empty());
    }

    #[test]
    fn total_latencies_are_read_where_fio_printed_them() {
        let without = parse(PLUS).unwrap();
        assert!(!without.jobs[0].read.has_total());
        let lat = r#""lat_ns" : { "min" : 900, "max" : 5000, "mean" : 2000.0, "stddev" : 1.0, "N" : 4,
            "bins" : { "900" : 3, "5000" : 1 } }, "clat_ns""#;
        let run = parse(&PLUS.replace("\"clat_ns\"", lat)).unwrap();
        let read = &run.jobs[0].read;
        assert_eq!((read.latency().count(), read.latency().max()), (4, 5000));
        assert_eq!(read.clat.max(), 300);
    }

    #[test]
    fn the_last_document_counts() {
        let twice = format!("{PLUS}{}", PLUS.replace("\"total_ios\" : 4", "\"total_ios\" : 9"));
        assert_eq!(parse(&twice).unwrap().jobs[0].read.ios, 9);
    }

    #[test]
    fn plain_json_keeps_the_printed_percentiles() {
        let plain = PLUS.replace(
            r#""bins" : { "100" : 1, "201" : 2, "300" : 1 }"#,
            r#""percentile" : { "50.000000" : 201, "99.000000" : 300 }"#,
        );
        let run = parse(&plain).unwrap();
        assert_eq!(run.jobs[0].read.clat.percentile(50.0), 201);
        assert_eq!(run.warnings[0].code, "no-bins");
    }

    #[test]
    fn says_where_it_is_broken() {
        assert_eq!(parse("fio: nothing\n"), Err(FioJsonError::NoJson));
        let e = parse("note\n{\n  \"jobs\" : [ x ]\n}\n").unwrap_err();
        assert!(matches!(e, FioJsonError::Malformed { line: 3, .. }), "{e:?}");
    }

    proptest! {
        #[test]
        fn never_panics(cut in 0usize..700, junk in ".{0,20}") {
            let end = (0..=cut.min(PLUS.len())).rev().find(|i| PLUS.is_char_boundary(*i)).unwrap_or(0);
            let _ = parse(&format!("{}{junk}", &PLUS[..end]));
        }
    }
}
