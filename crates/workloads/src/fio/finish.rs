//! From a section's options to its jobs: defaults that depend on other options, and `numjobs`.

use iosched_types::{Bytes, Op};

use super::draft::{Draft, Replay};
use super::iolog::{self, IoLog};
use super::lexer::{Include, Line};
use super::spec::{FileService, IoEngine, JobSpec};
use super::table::SKIP;
use super::{Distribution, apply_place::split_names};

use iosched_types::Diagnostic;

/// fio's default limit of jobs (`--max-jobs`).
pub const MAX_JOBS: usize = 4096;
/// Most log entries in all jobs together.
const MAX_REPLAY: usize = 16 << 20;
/// fio's default block size.
const DEFAULT_BS: Bytes = 4096;

/// Numbers that run through all sections.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) threads: u32,
    pub(crate) group: u32,
    pub(crate) replayed: usize,
}

/// The section's jobs.
pub(crate) fn jobs(
    mut draft: Draft,
    section: &str,
    line: &Line,
    include: Include<'_>,
    counters: &mut Counters,
    warnings: &mut Vec<String>,
) -> Result<Vec<JobSpec>, Diagnostic> {
    let fail = |message: String| line.diagnostic(1, section.chars().count() + 2, message);
    let clones = draft.numjobs.max(1);
    if counters.threads as usize + clones as usize > MAX_JOBS {
        let total = counters.threads as usize + clones as usize;
        return Err(fail(format!("{total} jobs; fio's limit of {MAX_JOBS} applies")));
    }
    if counters.threads > 0 && (draft.new_group || draft.stonewall) {
        counters.group += 1;
    }
    sizes(&mut draft).map_err(fail)?;
    queue(&mut draft, section, line, warnings).map_err(fail)?;
    rest(&mut draft).map_err(fail)?;
    mapped(&draft).map_err(fail)?;
    if draft.read_iolog.is_none() && draft.spec.has_no_room() {
        let t = &draft.spec.target;
        let (n, size) = (t.nrfiles, t.size.unwrap_or(0) / u64::from(t.nrfiles.max(1)));
        warnings.push(format!(
            "{}: [{section}] does no I/O: no block fits into one of its {n} files of {size} bytes",
            line.place(),
        ));
    }
    draft.spec.exit_all = draft.exitall.then(|| draft.exit_what.unwrap_or_default());
    if draft.exit_what.is_some() && !draft.exitall {
        let place = line.place();
        warnings.push(format!("{place}: [{section}] exit_what has no effect without exitall"));
    }
    let logs = logs(&draft, include).map_err(|e| match e {
        LogError::Text(message) => fail(message),
        LogError::Diagnostic(d) => d,
    })?;
    let mut out = Vec::new();
    for subjob in 0..clones {
        let mut spec = draft.spec.clone();
        // fio renames the first clone only.
        spec.name = match &draft.name {
            Some(n) if subjob == 0 => n.clone(),
            _ => section.to_string(),
        };
        counters.threads += 1;
        spec.thread = counters.threads;
        // fio numbers the clones backwards: 0, n-1, … 1.
        spec.subjob = (clones - subjob) % clones;
        spec.group = counters.group;
        spec.wait.stonewall = draft.stonewall && subjob == 0;
        spec.place = line.place();
        if draft.split_cpus && !spec.cpus.is_empty() {
            spec.cpus = vec![spec.cpus[subjob as usize % spec.cpus.len()]];
        }
        if !logs.is_empty() {
            let log = &logs[subjob as usize % logs.len()];
            counters.replayed += log.entries.len();
            if counters.replayed > MAX_REPLAY {
                return Err(fail(format!("more than {MAX_REPLAY} I/Os to replay in all jobs")));
            }
            spec.replay = Some(log.clone());
        }
        out.push(spec);
    }
    Ok(out)
}

/// What fio's mmap engine refuses: a sync or the drop of a page after a part of it, and files that are to grow.
fn mapped(draft: &Draft) -> Result<(), String> {
    const PAGE: Bytes = 4096;
    let spec = &draft.spec;
    if spec.engine != IoEngine::Mmap {
        return Ok(());
    }
    if spec.file_options.append {
        return Err("file_append does not go with ioengine=mmap: a map does not grow".into());
    }
    let smallest = spec.bs.range.iter().map(|r| r.0).min().unwrap_or(PAGE);
    let named =
        [("direct", spec.direct), ("fsync", spec.fsync > 0), ("fdatasync", spec.fdatasync > 0)];
    match named.iter().find(|n| n.1) {
        Some((name, _)) if !smallest.is_multiple_of(PAGE) => Err(format!(
            "{name} with ioengine=mmap needs whole pages: a smallest block of {smallest} bytes is no multiple of {PAGE}"
        )),
        _ => Ok(()),
    }
}

/// Block sizes, alignment, and what they exclude.
fn sizes(draft: &mut Draft) -> Result<(), String> {
    let spec = &mut draft.spec;
    for i in 0..3 {
        let bs = draft.bs[i].unwrap_or(DEFAULT_BS);
        let split = &spec.bs.split[i];
        let all = || split.iter().map(|e| e.bs);
        spec.bs.range[i] = match (all().min(), all().max(), draft.bsrange[i]) {
            (Some(lo), Some(hi), _) => (lo, hi),
            (_, _, Some(range)) => range,
            _ => (bs, bs),
        };
        spec.bs.align[i] = draft.ba[i].unwrap_or(spec.bs.range[i].0);
    }
    let uneven = spec.distribution.iter().any(|d| *d != Distribution::Random);
    if uneven || draft.ba.iter().any(Option::is_some) {
        spec.norandommap = true;
    }
    let used = [spec.pattern.read, spec.pattern.write, spec.pattern.trim];
    let smallest = (0..3).filter(|i| used[*i]).map(|i| spec.bs.range[i].0).min();
    if let (Some(size), Some(bs), None) = (spec.target.size, smallest, &draft.read_iolog)
        && size < bs
    {
        return Err(format!("size={size} is smaller than the smallest block size, {bs}"));
    }
    Ok(())
}

/// Depth and batches, capped as fio caps them.
fn queue(
    draft: &mut Draft,
    section: &str,
    line: &Line,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    let wanted = draft.iodepth.unwrap_or(1);
    let spec = &mut draft.spec;
    spec.iodepth = if spec.engine.is_sync() { 1 } else { wanted };
    if spec.engine.is_sync() && wanted > 1 {
        if spec.engine == IoEngine::Vsync {
            return Err("ioengine=vsync with iodepth above 1 joins neighbouring I/Os into one \
                        call, which is not simulated"
                .into());
        }
        warnings.push(format!(
            "{}: [{section}] iodepth={wanted} has no effect: ioengine={} waits for each I/O",
            line.place(),
            if draft.engine.is_empty() { "psync" } else { &draft.engine },
        ));
    }
    let depth = spec.iodepth;
    spec.batch_submit = match draft.batch.unwrap_or(1) {
        0 => depth,
        n => n.min(depth),
    };
    spec.batch_complete_min = draft.complete_min.unwrap_or(1).min(depth);
    spec.batch_complete_max =
        draft.complete_max.unwrap_or(0).max(spec.batch_complete_min).min(depth);
    spec.iodepth_low = match draft.low.unwrap_or(0) {
        0 => depth,
        n => n.min(depth),
    };
    Ok(())
}

/// Everything else that depends on more than one option.
fn rest(draft: &mut Draft) -> Result<(), String> {
    let prio = draft.ioprio();
    let spec = &mut draft.spec;
    spec.prio = prio;
    spec.cgroup = match (draft.cgroup.take(), draft.cgroup_weight) {
        (Some(path), weight) => Some((path, weight)),
        (None, Some(_)) => return Err("cgroup_weight without cgroup".into()),
        (None, None) => None,
    };
    if spec.time_based && spec.runtime.is_none() {
        return Err("time_based needs a runtime".into());
    }
    spec.think.blocks = match (draft.think_blocks, spec.think.iotime) {
        (Some(n), _) => n,
        (None, 0) => 1,
        // The time alone says when to think.
        (None, _) => u64::MAX,
    };
    if spec.think.spin > spec.think.time {
        return Err("thinktime_spin is longer than thinktime, of which it is a part".into());
    }
    if spec.target.service == FileService::Unset {
        spec.target.service = FileService::RoundRobin(1);
    }
    if !spec.target.files.is_empty() {
        spec.target.nrfiles = u32::try_from(spec.target.files.len()).unwrap_or(u32::MAX);
    }
    if draft.read_iolog.is_some() {
        // "read iolog overrides write_iolog", says fio.
        spec.write_iolog = None;
    }
    Ok(())
}

enum LogError {
    Text(String),
    Diagnostic(Diagnostic),
}

fn logs(draft: &Draft, include: Include<'_>) -> Result<Vec<IoLog>, LogError> {
    let Some(names) = &draft.read_iolog else { return Ok(Vec::new()) };
    let names = split_names(names).map_err(|e| LogError::Text(e.message))?;
    let clones = draft.numjobs.max(1) as usize;
    let mut logs = Vec::new();
    for name in names.iter().take(clones) {
        let text = include(name)
            .map_err(|e| LogError::Text(format!("cannot read the I/O log \"{name}\": {e}")))?;
        let mut log = iolog::parse(name, &text).map_err(LogError::Diagnostic)?;
        change(&mut log, &draft.replay);
        if log.entries.is_empty() {
            return Err(LogError::Text(format!("the I/O log \"{name}\" holds no I/O")));
        }
        logs.push(log);
    }
    Ok(logs)
}

/// Applies the `replay_*` options to a log.
fn change(log: &mut IoLog, replay: &Replay) {
    log.entries.retain(|e| {
        let skip = match e.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "trim",
            Op::Flush => "sync",
        };
        !SKIP.iter().zip(replay.skip).any(|(name, on)| on && *name == skip)
    });
    let scale = replay.scale.max(1);
    let align = replay.align.max(1);
    let percent = if replay.time_scale == 0 { 100 } else { u128::from(replay.time_scale) };
    for e in &mut log.entries {
        e.offset = e.offset / scale / align * align;
        e.at = match replay.no_stall {
            true => 0,
            false => (u128::from(e.at) * 100 / percent) as u64,
        };
    }
    if let Some(device) = &replay.redirect {
        log.files = vec![device.clone()];
        log.entries.iter_mut().for_each(|e| e.file = 0);
    }
}
