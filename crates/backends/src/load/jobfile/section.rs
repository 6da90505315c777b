//! A job's section: its options as fio names them.

use std::fmt::Write as _;

use iosched_types::PrioClass;
use iosched_workloads::fio::file_options::{Allocate, FileOptions, Hint};
use iosched_workloads::fio::{Distribution, IoEngine, JobSpec};

use super::line;
use crate::error::{Error, Result};

pub(super) fn section(out: &mut String, job: &JobSpec) -> Result<()> {
    let drops = [job.caches_before, job.caches_after].iter().any(|c| !c.is_none());
    if !job.direct && drops {
        let message = format!("job \"{}\" drops caches by a command", job.name);
        let help = "a live run runs no commands of a job file; leave exec_prerun and exec_postrun out: fio drops what is cached of a job's files when it starts (invalidate=1)";
        return Err(Error::input(message, help));
    }
    if job.write_iolog.is_some() {
        // Each run of fio adds to its log, so the trials of an experiment would be one mixture.
        let message = format!("job \"{}\" writes an I/O log", job.name);
        let help = "fio would add every trial to one log; a live run writes one for each with --trace and `iosched results trace --format iolog`";
        return Err(Error::input(message, help));
    }
    let _ = writeln!(out, "\n[{}]", job.name);
    if job.group_reporting {
        line(out, "group_reporting", 1);
    }
    if job.wait.stonewall {
        line(out, "stonewall", 1);
    }
    if let Some(what) = job.exit_all {
        line(out, "exitall", 1);
        line(out, "exit_what", what.word());
    }
    if job.wait.delay_max > job.wait.delay {
        let (low, high) = (job.wait.delay / 1000, job.wait.delay_max / 1000);
        line(out, "startdelay", format_args!("{low}us-{high}us"));
    } else if job.wait.delay > 0 {
        line(out, "startdelay", format_args!("{}us", job.wait.delay / 1000));
    }
    pattern(out, job);
    blocks(out, job);
    line(out, "ioengine", engine(job.engine));
    if !job.engine.is_sync() {
        line(out, "iodepth", job.iodepth);
        line(out, "iodepth_batch_submit", job.batch_submit);
        line(out, "iodepth_batch_complete_min", job.batch_complete_min);
        if job.batch_complete_max > 0 {
            line(out, "iodepth_batch_complete_max", job.batch_complete_max);
        }
        line(out, "iodepth_low", job.iodepth_low);
    }
    length(out, job);
    syncing(out, job);
    line(out, "randrepeat", u8::from(job.randrepeat));
    if let Some(seed) = job.randseed {
        line(out, "randseed", seed);
    }
    pacing(out, job);
    who(out, job);
    // These come last, because fio takes the second of two equal options. They are options that the simulator does not
    // have.
    for (key, value) in &job.live_only {
        line(out, key, value);
    }
    if job.live_only.iter().any(|(key, _)| key == "verify") {
        line(out, "verify_state_save", 0);
    }
    Ok(())
}

fn engine(e: IoEngine) -> &'static str {
    match e {
        IoEngine::Sync => "sync",
        IoEngine::Psync => "psync",
        IoEngine::Vsync => "vsync",
        IoEngine::Pvsync => "pvsync",
        IoEngine::Pvsync2 => "pvsync2",
        IoEngine::Libaio => "libaio",
        IoEngine::IoUring => "io_uring",
        IoEngine::Posixaio => "posixaio",
        IoEngine::Mmap => "mmap",
        IoEngine::FileCreate => "filecreate",
        IoEngine::FileStat => "filestat",
        IoEngine::FileDelete => "filedelete",
    }
}

fn pattern(out: &mut String, job: &JobSpec) {
    let p = job.pattern;
    let word = match (p.read, p.write, p.trim) {
        (true, true, _) => "rw",
        (_, true, true) if p.trim_then_write => "trimwrite",
        (true, false, _) => "read",
        (false, true, _) => "write",
        _ => "trim",
    };
    let mut rw = if p.random { format!("rand{word}") } else { word.to_string() };
    if p.stride != 0 {
        let _ = write!(rw, ":{}", p.stride);
    } else if p.random && p.ddir_seq_nr > 1 {
        let _ = write!(rw, ":{}", p.ddir_seq_nr);
    }
    line(out, "rw", rw);
    if p.identical {
        line(out, "rw_sequencer", "identical");
    }
    line(out, "rwmixread", job.rwmixread);
    let [r, w, t] = job.percentage_random;
    line(out, "percentage_random", format_args!("{r},{w},{t}"));
    if job.norandommap {
        line(out, "norandommap", 1);
    }
    let [first, ..] = &job.distribution;
    match first {
        Distribution::Random => {}
        // Zones are given per direction, the others hold for all of them.
        Distribution::Zoned(_) | Distribution::ZonedAbs(_) => {
            let words: Vec<String> = job.distribution.iter().map(zones).collect();
            let kind = if matches!(first, Distribution::Zoned(_)) { "zoned" } else { "zoned_abs" };
            line(out, "random_distribution", format_args!("{kind}:{}", words.join(",")));
        }
        Distribution::Zipf(t, c) => curve(out, "zipf", *t, *c),
        Distribution::Pareto(t, c) => curve(out, "pareto", *t, *c),
        Distribution::Normal(t, c) => curve(out, "normal", *t, *c),
    }
}

fn curve(out: &mut String, name: &str, theta: f64, center: Option<f64>) {
    let center = center.map_or_else(String::new, |c| format!(":{c}"));
    line(out, "random_distribution", format_args!("{name}:{theta}{center}"));
}

fn zones(d: &Distribution) -> String {
    let words: Vec<String> = match d {
        Distribution::Zoned(zones) => zones.iter().map(|(a, s)| format!("{a}/{s}")).collect(),
        Distribution::ZonedAbs(zones) => zones.iter().map(|(a, s)| format!("{a}/{s}")).collect(),
        _ => Vec::new(),
    };
    words.join(":")
}

fn blocks(out: &mut String, job: &JobSpec) {
    let bs = &job.bs;
    if bs.split.iter().any(|s| !s.is_empty()) {
        let one = |i: usize| {
            let entries = &bs.split[i];
            if entries.is_empty() {
                return format!("{}/100", bs.range[i].0);
            }
            entries.iter().map(|e| format!("{}/{}", e.bs, e.percent)).collect::<Vec<_>>().join(":")
        };
        line(out, "bssplit", format_args!("{},{},{}", one(0), one(1), one(2)));
    } else {
        let range = |i: usize| format!("{}-{}", bs.range[i].0, bs.range[i].1);
        line(out, "bsrange", format_args!("{},{},{}", range(0), range(1), range(2)));
    }
    if bs.unaligned {
        line(out, "bs_unaligned", 1);
    }
    if bs.seq_rand {
        line(out, "bs_is_seq_rand", 1);
    }
    if bs.align.iter().any(|a| *a > 0) {
        line(out, "blockalign", format_args!("{},{},{}", bs.align[0], bs.align[1], bs.align[2]));
    }
}

fn length(out: &mut String, job: &JobSpec) {
    if let Some(p) = job.target.io_size_percent {
        line(out, "io_size", format_args!("{p}%"));
    }
    if let Some(n) = job.io_size {
        line(out, "io_size", n);
    }
    if let Some(n) = job.number_ios {
        line(out, "number_ios", n);
    }
    if job.loops > 1 {
        line(out, "loops", job.loops);
    }
    if let Some(t) = job.runtime {
        line(out, "runtime", format_args!("{}us", t / 1000));
    }
    if job.time_based {
        line(out, "time_based", 1);
    }
    if job.ramp_time > 0 {
        line(out, "ramp_time", format_args!("{}us", job.ramp_time / 1000));
    }
}

fn syncing(out: &mut String, job: &JobSpec) {
    line(out, "direct", u8::from(job.direct));
    match job.sync {
        1 => line(out, "sync", 1),
        2 => line(out, "sync", "dsync"),
        _ => {}
    }
    for (key, value) in [("fsync", job.fsync), ("fdatasync", job.fdatasync)] {
        if value > 0 {
            line(out, key, value);
        }
    }
    if job.end_fsync {
        line(out, "end_fsync", 1);
    }
    caching(out, &job.file_options);
}

/// Options of files that matter on a file or device that is there. How files are made does not: the target is.
fn caching(out: &mut String, o: &FileOptions) {
    let default = FileOptions::default();
    if o.invalidate != default.invalidate {
        line(out, "invalidate", u8::from(o.invalidate));
    }
    match o.hint {
        Hint::Pattern => {}
        Hint::None => line(out, "fadvise_hint", 0),
        Hint::Random => line(out, "fadvise_hint", "random"),
        Hint::Sequential => line(out, "fadvise_hint", "sequential"),
    }
    if o.sync_range.every > 0 {
        let modes = if o.sync_range.wait { "write,wait_after" } else { "write" };
        line(out, "sync_file_range", format_args!("{modes}:{}", o.sync_range.every));
    }
    for (key, set) in [("pre_read", o.pre_read), ("fsync_on_close", o.fsync_on_close)] {
        if set {
            line(out, key, 1);
        }
    }
}

/// How files are made, and whether they stay.
pub(super) fn making(out: &mut String, o: &FileOptions) {
    let how = match o.allocate {
        Allocate::Whole => None,
        Allocate::Posix => Some("posix"),
        Allocate::None => Some("none"),
        Allocate::Keep => Some("keep"),
        Allocate::Truncate => Some("truncate"),
    };
    if let Some(how) = how {
        line(out, "fallocate", how);
    }
    if o.lstat {
        line(out, "stat_type", "lstat");
    }
    let flags =
        [("overwrite", o.overwrite), ("create_on_open", o.create_on_open), ("unlink", o.unlink)];
    for (key, set) in flags {
        if set {
            line(out, key, 1);
        }
    }
}

fn pacing(out: &mut String, job: &JobSpec) {
    if job.think.time > 0 {
        line(out, "thinktime", format_args!("{}us", job.think.time / 1000));
        // Without a number, `thinktime_iotime` alone says when to think.
        if job.think.blocks < u64::MAX {
            line(out, "thinktime_blocks", job.think.blocks.max(1));
        }
        if job.think.spin > 0 {
            line(out, "thinktime_spin", format_args!("{}us", job.think.spin / 1000));
        }
        if job.think.issue {
            line(out, "thinktime_blocks_type", "issue");
        }
        if job.think.iotime > 0 {
            line(out, "thinktime_iotime", format_args!("{}us", job.think.iotime / 1000));
        }
    }
    let three = |f: &dyn Fn(usize) -> u64| format!("{},{},{}", f(0), f(1), f(2));
    for (key, f) in [
        ("rate", &(|i: usize| job.rate[i].bytes) as &dyn Fn(usize) -> u64),
        ("rate_iops", &|i| u64::from(job.rate[i].iops)),
        ("rate_min", &|i| job.rate[i].min_bytes),
        ("rate_iops_min", &|i| u64::from(job.rate[i].min_iops)),
    ] {
        if (0..3).any(|i| f(i) > 0) {
            line(out, key, three(f));
        }
    }
    if job.rate.iter().any(|r| r.poisson) {
        line(out, "rate_process", "poisson");
    }
}

fn who(out: &mut String, job: &JobSpec) {
    if job.prio.class != PrioClass::None {
        line(out, "prioclass", job.prio.class as u8);
        line(out, "prio", job.prio.level);
    }
    if job.nice != 0 {
        line(out, "nice", job.nice);
    }
    if job.flow != 0 {
        line(out, "flow", job.flow);
        line(out, "flow_id", job.flow_id);
        if job.flow_watermark > 0 {
            line(out, "flow_watermark", job.flow_watermark);
        }
        if job.flow_sleep > 0 {
            line(out, "flow_sleep", job.flow_sleep / 1000);
        }
    }
    if let Some((path, weight)) = &job.cgroup {
        line(out, "cgroup", path);
        if let Some(w) = weight {
            line(out, "cgroup_weight", w);
        }
    }
    if !job.cpus.is_empty() {
        let cpus: Vec<String> = job.cpus.iter().map(u16::to_string).collect();
        line(out, "cpus_allowed", cpus.join(","));
    }
}
