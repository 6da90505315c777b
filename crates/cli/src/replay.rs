//! Block traces as loads of `iosched run`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use iosched_experiment::{
    Experiment, JobSource, Place, Placed, ReplayRef, SchedulerRef, TraceRef, Trial, WorkloadRef,
};
use iosched_schedulers::registry::SCHEDULERS;
use iosched_trace::formats::{self, Head};
use iosched_trace::unpack;
use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;
use iosched_workloads::replay::{Learner, Mode, Recording};

use crate::args::{RunArgs, SourceArgs};
use crate::choose::all_of;
use crate::fail::{Failure, Outcome};
use crate::files;
use crate::trace::source;

thread_local! {
    /// Traces that were read. One is planned several times, and read once.
    static READ: RefCell<Vec<(ReplayRef, Arc<Recording>)>> = const { RefCell::new(Vec::new()) };
}

/// Whether a file is a block trace, by its content.
pub(crate) fn is_trace(file: &str) -> bool {
    let ours = [".fio", ".toml"].iter().any(|end| file.ends_with(end)) || TraceRef::is_log(file);
    if ours {
        return false;
    }
    // A recording of blktrace is named by what its files have in common.
    let names = source::recording(&[file.to_string()]);
    names.iter().any(|name| {
        let plain = std::fs::metadata(name).is_ok_and(|m| m.is_file());
        plain && is_found(name)
    })
}

fn is_found(file: &str) -> bool {
    let Ok(from) = files::open(file) else { return false };
    let Ok(peeked) = unpack::unpack(from) else { return false };
    formats::find(file, &Head::new(&peeked.head)).is_ok()
}

/// What a workload is of, if it is a block trace.
fn as_trace(job: &JobSource) -> Option<ReplayRef> {
    match job {
        JobSource::Replay(trace) => Some(trace.clone()),
        JobSource::File(file) if is_trace(file) => Some(ReplayRef::of(file)),
        JobSource::Trace(log) if is_trace(&log.file) => Some(ReplayRef::of(&log.file)),
        _ => None,
    }
}

fn key(trace: &ReplayRef) -> ReplayRef {
    ReplayRef { mode: None, recorded_under: None, ..trace.clone() }
}

/// Reads the traces of an experiment.
pub(crate) fn read(e: &Experiment) -> Outcome {
    let own = |w: &WorkloadRef| [as_trace(&w.job), w.beside.clone()];
    for trace in e.workloads.iter().flat_map(|w| own(&w.value)).flatten() {
        if !is_trace(&trace.file) {
            continue;
        }
        if find(&trace).is_err() && !e.backend.is_live() {
            let recording = Arc::new(load(&trace)?);
            READ.with_borrow_mut(|all| all.push((key(&trace), recording)));
        }
    }
    Ok(())
}

/// A trace that was read.
pub(crate) fn find(trace: &ReplayRef) -> Result<Arc<Recording>, Diagnostic> {
    let key = key(trace);
    let found = READ.with_borrow(|all| all.iter().find(|(k, _)| *k == key).map(|f| f.1.clone()));
    found.ok_or_else(|| Diagnostic::file(&trace.file, "the trace was not read"))
}

fn load(trace: &ReplayRef) -> Outcome<Recording> {
    let args = SourceArgs {
        files: vec![trace.file.clone()],
        read_as: trace.read_as.clone(),
        disk: trace.disk.clone(),
    };
    let mut source = source::open(&args)?;
    let mut learner = Learner::default();
    source.each(&args, |io, tables| {
        learner.push(io, tables).map_err(|e| {
            Failure::with_help(
                format!("{}: {e}", trace.file),
                "take a part of it: iosched trace cut --from 0s --to 10m -o PART.csv",
            )
        })
    })?;
    Ok(learner.finish(&source.trace.tables))
}

/// `--beside`, `--replay`, `--disk`, `--recorded-scheduler`.
pub(crate) fn apply(args: &RunArgs, e: &mut Experiment) -> Outcome {
    for (w, file) in e.workloads.iter_mut().zip(args.beside.iter().cycle()) {
        w.value.beside = Some(ReplayRef::of(file));
    }
    let mode = match &args.replay {
        None => None,
        Some(text) => Some(Mode::parse(text).map_err(|x| {
            Place::option("--replay", text, text).error(x.message).with_help(x.help)
        })?),
    };
    let under = args.recorded_scheduler.as_deref().map(family).transpose()?;
    if under.is_none() {
        from_heads(e);
    }
    if mode.is_none() && args.disk.is_none() && under.is_none() {
        return Ok(());
    }
    let mut any = false;
    for w in &mut e.workloads {
        if let Some(trace) = &mut w.value.beside {
            trace.mode = mode.or(trace.mode);
            trace.disk = args.disk.clone().or(trace.disk.take());
            any = true;
        }
        let Some(mut trace) = as_trace(&w.value.job) else { continue };
        trace.mode = mode.or(trace.mode);
        trace.disk = args.disk.clone().or(trace.disk);
        trace.recorded_under = under.map(String::from).or(trace.recorded_under);
        w.value.job = JobSource::Replay(trace);
        any = true;
    }
    if any {
        return Ok(());
    }
    Err(Failure::with_help(
        "--replay, --disk and --recorded-scheduler are for block traces: there is none among the workloads",
        "name a recording of blktrace, perf script, biosnoop …: iosched trace --help lists the formats",
    ))
}

/// A recording of `iosched record` names its scheduler, which is taken where the kernel has it.
fn from_heads(e: &mut Experiment) {
    let of_kernel = all_of(e);
    for w in &mut e.workloads {
        let Some(mut trace) = as_trace(&w.value.job).filter(|t| t.recorded_under.is_none()) else {
            continue;
        };
        let named = headed(&trace.file);
        if let Some(name) = named.filter(|n| of_kernel.iter().any(|s| s.value.name == *n)) {
            trace.recorded_under = Some(name.into());
            w.value.job = JobSource::Replay(trace);
        }
    }
}

/// The scheduler that the comments at the head of a trace name.
fn headed(file: &str) -> Option<&'static str> {
    let peeked = unpack::unpack(files::open(file).ok()?).ok()?;
    let head = String::from_utf8_lossy(&peeked.head);
    let mut lines = head.lines().take_while(|l| l.starts_with('#'));
    let name = lines.find_map(|l| l.strip_prefix("# scheduler: "))?.trim();
    SCHEDULERS.iter().map(|d| d.name).find(|n| *n == name)
}

/// A scheduler's family.
fn family(name: &str) -> Outcome<&'static str> {
    let word = name.split('@').next().unwrap_or_default();
    let found = SCHEDULERS.iter().find(|d| d.name == word).map(|d| d.name);
    found.ok_or_else(|| {
        let near = did_you_mean(word, SCHEDULERS.iter().map(|d| d.name));
        let place = Place::option("--recorded-scheduler", name, name);
        place.error(format!("unknown scheduler \"{word}\"")).with_help(near).into()
    })
}

/// The scheduler of a recording runs, and first: the others are compared with what there was.
pub(crate) fn recorded_first(e: &mut Experiment) -> Outcome {
    let traces: Vec<ReplayRef> =
        e.workloads.iter().filter_map(|w| as_trace(&w.value.job)).collect();
    for name in traces.iter().filter_map(|t| t.recorded_under.as_deref()) {
        let name = family(name)?;
        let own = |s: &Placed<SchedulerRef>| s.value.name.split('@').next() == Some(name);
        let first = match e.schedulers.iter().position(own) {
            Some(at) => e.schedulers.remove(at),
            None => {
                let named = SchedulerRef { name: name.into(), ..SchedulerRef::default() };
                Placed::new(named, Place::file("--recorded-scheduler"))
            }
        };
        e.schedulers.insert(0, first);
    }
    Ok(())
}

/// How each trace is replayed, and what that means.
pub(crate) fn modes(trials: &[Trial]) -> Vec<String> {
    let of = |t: &Trial| {
        let trace = t.work.trace().or(t.beside.as_ref())?;
        let why = match (trace.usual, trace.mode) {
            (false, _) => "",
            (true, Mode::Dependent) => " (tasks and completions are known)",
            (true, _) if trace.recording.knows_tasks() => " (no completions are known)",
            (true, _) => " (no tasks are known)",
        };
        let (ios, tasks) = (trace.recording.steps.len(), trace.recording.tasks.len());
        let plural = if tasks == 1 { "" } else { "s" };
        let tasks = if trace.recording.knows_tasks() {
            format!(" of {tasks} task{plural}")
        } else {
            String::new()
        };
        let (name, mode) = (&t.id.workload, trace.mode);
        let name = if t.beside.is_some() { format!("{name}, beside it") } else { name.clone() };
        Some(format!("{name}: {ios} I/Os{tasks}, replay {mode}{why}: {}", mode.meaning()))
    };
    let all: BTreeSet<String> = trials.iter().filter_map(of).collect();
    all.into_iter().collect()
}

/// The text of a file that goes into an experiment; a trace stays a file.
pub(crate) fn text_but_of_traces(file: &str) -> Result<String, String> {
    let trace = Path::new(file).is_file() && is_trace(file);
    if trace { Err("a block trace".into()) } else { files::text(file) }
}
