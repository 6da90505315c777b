//! Writes the simulator's jobs back as a job file for the real fio. We set the place of every job's data: the same
//! regions of the same size as in the simulator.

use std::fmt::Write as _;
use std::path::Path;

use iosched_experiment::Warning;
use iosched_types::{Bytes, Diagnostic, Op, PrioClass};
use iosched_workloads::fio::file_options::{FileOptions, Hint};
use iosched_workloads::fio::iolog::IoLog;
use iosched_workloads::fio::layout::{Extent, lay_out};
use iosched_workloads::fio::{Distribution, FileService, IoEngine, JobSet, JobSpec};

use crate::error::{Error, Result};

/// A job file, and what goes with it.
#[derive(Debug, Default)]
pub struct Rendered {
    /// The job file.
    pub text: String,
    /// Files beside it, by name: the logs that its jobs replay.
    pub files: Vec<(String, String)>,
    /// How the jobs differ from the user's file.
    pub warnings: Vec<Warning>,
}

/// A job file that does `set` on `target` (a device node or one large file) of `bytes`.
///
/// # Errors
/// [`Error::Input`] for regions beyond the target's end and for what only the simulator can do.
pub fn render(set: &JobSet, target: &Path, bytes: Bytes) -> Result<Rendered> {
    let from = |d: Diagnostic| Error::input(d.message.clone(), d.help.clone());
    let places = lay_out(set, bytes).map_err(from)?;
    let name = target
        .to_str()
        .ok_or_else(|| Error::input("the target's name is not UTF-8", "rename it"))?;
    let name = name.replace('\\', "\\\\").replace(':', "\\:");
    let mut rendered = Rendered { text: String::from("[global]\n"), ..Rendered::default() };
    let out = &mut rendered.text;
    line(out, "filename", &name);
    line(out, "allow_file_create", "0");
    // Without it fio keeps of total latencies only mean and extremes.
    line(out, "clat_percentiles", 1);
    line(out, "lat_percentiles", 1);
    for (job, files) in set.jobs.iter().zip(&places) {
        section(out, job)?;
        if let Some(log) = &job.replay {
            let file = format!("replay.{}.log", rendered.files.len());
            line(out, "read_iolog", &file);
            line(out, "replay_redirect", &name);
            rendered.files.push((file, replayed(job, log, files, &name, bytes)?));
            continue;
        }
        let Some(first) = files.first() else { continue };
        if files.len() > 1 {
            // Each name is a file of its own to fio, and all of them are the target.
            line(out, "filename", vec![name.as_str(); files.len()].join(":"));
            line(out, "file_service_type", service(&job.target.service));
            rendered.warnings.push(one_region(job, files.len()));
        }
        line(out, "offset", first.start);
        line(out, "size", files.iter().map(|f| f.len).sum::<u64>());
    }
    Ok(rendered)
}

fn one_region(job: &JobSpec, files: usize) -> Warning {
    Warning {
        code: "one-region".into(),
        message: format!(
            "the {files} files of job \"{}\" are the same part of the target",
            job.name
        ),
        advice: "fio has one offset for all files of a job; give jobs of their own their offsets"
            .into(),
    }
}

fn service(service: &FileService) -> String {
    match service {
        FileService::Unset => "roundrobin".into(),
        FileService::RoundRobin(n) => format!("roundrobin:{n}"),
        FileService::Random(n) => format!("random:{n}"),
        FileService::Sequential => "sequential".into(),
        FileService::Zipf(theta) => format!("zipf:{theta}"),
        FileService::Pareto(theta) => format!("pareto:{theta}"),
        FileService::Normal(deviation) => format!("gauss:{deviation}"),
    }
}

/// Writes a log anew. Every file in it becomes the target, at the place that the simulator would give the file.
fn replayed(
    job: &JobSpec,
    log: &IoLog,
    files: &[Extent],
    name: &str,
    bytes: Bytes,
) -> Result<String> {
    let mut text = format!("fio version 2 iolog\n{name} add\n{name} open\n");
    let mut now = 0;
    for e in &log.entries {
        let base = files.get(e.file as usize).or(files.first()).map_or(0, |f| f.origin);
        let at = base.saturating_add(e.offset);
        if at.saturating_add(e.len) > bytes {
            let message = format!(
                "the log of job \"{}\" has an I/O of {} bytes at {at}, beyond the target's end ({bytes} bytes)",
                job.name, e.len
            );
            return Err(Error::input(
                message,
                "replay_scale= brings it nearer, or name a larger target",
            ));
        }
        let wait = e.at.saturating_sub(now) / 1000;
        if wait > 0 {
            line_of(&mut text, format_args!("{name} wait {wait}"));
            now += wait * 1000;
        }
        match e.op {
            Op::Read => line_of(&mut text, format_args!("{name} read {at} {}", e.len)),
            Op::Write => line_of(&mut text, format_args!("{name} write {at} {}", e.len)),
            Op::Discard => line_of(&mut text, format_args!("{name} trim {at} {}", e.len)),
            Op::Flush => line_of(&mut text, format_args!("{name} sync 0 0")),
        }
    }
    line_of(&mut text, format_args!("{name} close"));
    Ok(text)
}

fn line_of(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}

fn line(out: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{key}={value}");
}

fn section(out: &mut String, job: &JobSpec) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::guard;
    use iosched_workloads::fio::{NoLookup, parse, parse_live};

    fn read(text: &str) -> JobSet {
        let none = |_: &str| Err("no includes here".to_string());
        parse("t", text, &NoLookup, &none, &[]).unwrap_or_else(|e| panic!("{text}\n{e:?}"))
    }

    const MIXED: &str = "[global]\nfilename=/dev/disk\ndirect=1\nruntime=3\ntime_based\n\
        [a]\nrw=randrw:4\nbssplit=4k/60:8k/40\nioengine=libaio\niodepth=8\nnumjobs=2\n\
        offset_increment=10m\nrwmixread=70\nrandom_distribution=zipf:1.1\nsize=64m\n\
        [b]\nstonewall\nrw=write\nbs=64k\nfdatasync=2\nthinktime=500\nrate=1m,2m\nprioclass=2\nprio=3\n";

    #[test]
    fn what_is_written_reads_back_as_the_same_jobs() {
        let set = read(MIXED);
        let text = render(&set, Path::new("/dev/loop9"), 1 << 30).unwrap().text;
        let again = read(&text);
        assert_eq!(again.jobs.len(), set.jobs.len(), "{text}");
        let places = lay_out(&set, 1 << 30).unwrap();
        assert_eq!(lay_out(&again, 1 << 30).unwrap(), places, "{text}");
        for (a, b) in set.jobs.iter().zip(&again.jobs) {
            assert_eq!((&a.name, a.thread, a.pattern), (&b.name, b.thread, b.pattern));
            assert_eq!((&a.bs.split, a.bs.range), (&b.bs.split, b.bs.range), "{text}");
            assert_eq!((a.engine, a.iodepth, a.runtime), (b.engine, b.iodepth, b.runtime));
            assert_eq!(
                (a.wait.stonewall, a.fdatasync, a.prio),
                (b.wait.stonewall, b.fdatasync, b.prio)
            );
            assert_eq!((a.think.time, a.rwmixread), (b.think.time, b.rwmixread));
            assert_eq!(a.rate.map(|r| r.bytes), b.rate.map(|r| r.bytes));
            assert_eq!(a.distribution, b.distribution, "{text}");
        }
    }

    #[test]
    fn several_files_are_the_target_several_times() {
        let set =
            read("[a]\nrw=read\ndirect=1\nsize=8m\nnrfiles=2\nfile_service_type=sequential\n");
        let done = render(&set, Path::new("/t"), 1 << 30).unwrap();
        for line in ["filename=/t:/t", "size=8388608", "file_service_type=sequential"] {
            assert!(done.text.lines().any(|l| l == line), "{line}: {}", done.text);
        }
        assert_eq!(done.warnings[0].code, "one-region");
        guard::check(&done.text, &["/t".into()]).unwrap();
    }

    #[test]
    fn a_log_is_replayed_on_the_target_and_nowhere_else() {
        let log = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda wait 2000\n\
                   /dev/sda write 4096 512\n/dev/sda datasync 0 0\n/dev/sda close\n";
        let none = |_: &str| Ok(log.to_string());
        let text = "[a]\nread_iolog=log\ndirect=1\nioengine=psync\n";
        let set = parse("t", text, &NoLookup, &none, &[]).unwrap();
        let done = render(&set, Path::new("/t"), 1 << 20).unwrap();
        guard::check(&done.text, &["/t".into()]).unwrap();
        let (name, log) = &done.files[0];
        assert!(done.text.contains(&format!("read_iolog={name}\nreplay_redirect=/t\n")));
        assert_eq!(
            log,
            "fio version 2 iolog\n/t add\n/t open\n/t wait 2000\n/t write 4096 512\n/t sync 0 0\n/t close\n"
        );
        assert!(render(&set, Path::new("/t"), 4096).is_err(), "beyond the end");
    }

    #[test]
    fn what_only_fio_can_do_is_handed_over() {
        let none = |_: &str| Err("no includes here".to_string());
        let live = |text: &str| parse_live("t", text, &NoLookup, &none, &[]);
        let text = "[global]\nfilename=/dev/disk\nsize=8m\nrw=write\nverify=crc32c\n[a]\nioengine=mmap\n\
                    [b]\nioengine=libaio\nlatency_target=5ms\nlatency_window=1s\niodepth=16\n";
        let done = render(&live(text).unwrap(), Path::new("/t"), 1 << 30).unwrap().text;
        guard::check(&done, &["/t".into()]).unwrap();
        let (a, b) = done.split_once("[b]").unwrap();
        assert!(a.contains("ioengine=mmap\n"), "{a}");
        assert!(a.contains("verify=crc32c\n") && a.contains("verify_state_save=0\n"), "{a}");
        assert!(!b.contains("mmap") && b.contains("latency_target=5ms\n"), "{b}");
        // The simulator refuses it by name, and says which backends accept it.
        let refused = parse("t", text, &NoLookup, &none, &[]).unwrap_err();
        let words: String = refused.iter().map(|d| d.message.clone()).collect();
        assert!(
            words.contains("verify is not supported") && words.contains("live only"),
            "{words}"
        );
        for bad in [
            "verify_pattern='/etc/passwd'",
            "exec_prerun=rm x",
            "ioengine=external:/x.so",
            "verify=crc32c x",
        ] {
            let text = format!("[a]\nfilename=/dev/disk\nrw=write\ndirect=1\nsize=1m\n{bad}\n");
            assert!(live(&text).is_err(), "{bad}");
        }
    }

    #[test]
    fn regions_beyond_the_end_are_refused() {
        let set = read("[a]\nfilename=/dev/disk\nrw=read\ndirect=1\nsize=8g\n");
        assert!(render(&set, Path::new("/dev/loop9"), 1 << 30).is_err());
    }
}
