//! The work of a workload, looked up.

use iosched_types::Diagnostic;
use iosched_workloads::fio::{check_cpus, check_disks, check_files, parse, parse_live};

use super::{Many, Sources, Workload};
use crate::file::{Experiment, JobSource, WorkloadRef};
use crate::load::TraceRef;
use crate::place::Placed;
use crate::replay::{ReplayRef, TraceWork};
use crate::work::{FioWork, Work};

/// Looks a workload up and reads its job.
pub(super) fn workload(
    w: &Placed<WorkloadRef>,
    e: &Experiment,
    sources: &Sources<'_>,
) -> Many<Workload> {
    let work = match calls(w, e, sources) {
        Some(work) => work.map_err(|d| vec![d])?,
        None => jobs(w, e, sources)?,
    };
    let beside = w.value.beside.as_ref().map(|t| beside(t, &work, w, e, sources)).transpose();
    Ok(Workload { name: w.value.name.clone(), work, beside: beside.map_err(|d| vec![d])? })
}

/// The block trace beside a workload.
fn beside(
    trace: &ReplayRef,
    work: &Work,
    w: &Placed<WorkloadRef>,
    e: &Experiment,
    sources: &Sources<'_>,
) -> Result<TraceWork, Diagnostic> {
    match work {
        Work::Fio(_) | Work::Program(_) | Work::Calls(_) => {}
        Work::Trace(_) | Work::Startup(_) => {
            let what =
                format!("{}: a block trace goes beside fio jobs, a program or a log", w.value.name);
            let help = "two traces at once: iosched trace merge A B -o BOTH.csv";
            return Err(w.place.error(what).with_help(help));
        }
    }
    if !(sources.is_trace)(&trace.file) {
        let d = w.place.error(format!("{}: no block trace", trace.file));
        return Err(d.with_help("iosched trace info FILE says how a file is read"));
    }
    replay(trace, w, e, sources)
}

fn replay(
    t: &ReplayRef,
    w: &Placed<WorkloadRef>,
    e: &Experiment,
    sources: &Sources<'_>,
) -> Result<TraceWork, Diagnostic> {
    if e.backend.is_live() {
        let d = w.place.error(format!("{}: a block trace is replayed in the simulator", t.file));
        let help = "leave the backend out; fio replays a trace on a disk: iosched trace convert -o LOG, read_iolog=LOG";
        return Err(d.with_help(help));
    }
    t.resolve(&w.place, sources.trace)
}

/// fio jobs, or the start of a command.
fn jobs(w: &Placed<WorkloadRef>, e: &Experiment, sources: &Sources<'_>) -> Many<Work> {
    let (file, text) = match &w.value.job {
        JobSource::Startup(s) if e.backend.is_simulated() => {
            let d = w.place.error(format!(
                "\"{}\" is the start of a program, which the simulator does not run",
                s.title()
            ));
            return Err(vec![
                d.with_help("use backend = \"emulated\" (needs root), or --backend emulated"),
            ]);
        }
        JobSource::Startup(s) => {
            return Ok(Work::Startup((**s).clone()));
        }
        // Looked up above.
        JobSource::Program(_) | JobSource::Trace(_) | JobSource::Replay(_) => {
            (w.value.name.clone(), String::new())
        }
        JobSource::Text(text) => (w.value.name.clone(), text.clone()),
        JobSource::File(name) if !name.contains(['/', '.']) => {
            let text = (sources.job)(name).map_err(|help| {
                vec![w.place.error(format!("unknown workload \"{name}\"")).with_help(help)]
            })?;
            (format!("{name}.fio"), text.to_string())
        }
        JobSource::File(file) => {
            let text = (sources.read)(file).map_err(|x| {
                vec![w.place.error(format!("cannot read job file \"{file}\": {x}"))]
            })?;
            (file.clone(), text)
        }
    };
    let set: Vec<(String, String)> = e.set.iter().map(|s| s.value.clone()).collect();
    let parse = if e.backend.is_live() { parse_live } else { parse };
    let own =
        |errors: Vec<Diagnostic>| errors.into_iter().map(|d| replace(d, e)).collect::<Vec<_>>();
    let jobs = parse(&file, &text, sources.env, sources.read, &set).map_err(own)?;
    check_disks(&jobs).map_err(own)?;
    if e.backend.is_simulated() {
        check_files(&jobs)?;
        check_cpus(&jobs, e.cpus)?;
    }
    Ok(Work::Fio(FioWork::repeated(jobs)))
}

/// A program, a log of system calls, or a block trace; `None` for all else.
fn calls(
    w: &Placed<WorkloadRef>,
    e: &Experiment,
    sources: &Sources<'_>,
) -> Option<Result<Work, Diagnostic>> {
    let log = |t: &TraceRef| t.resolve(&w.place, sources.read).map(Work::Calls);
    let replay = |t: &ReplayRef| replay(t, w, e, sources).map(Work::Trace);
    match &w.value.job {
        JobSource::Program(p) => {
            Some(p.resolve(e.program, &w.place, sources.read).map(Work::Program))
        }
        JobSource::Trace(t) if (sources.is_trace)(&t.file) => Some(replay(&ReplayRef::of(&t.file))),
        JobSource::Trace(t) => Some(log(t)),
        JobSource::Replay(t) => Some(replay(t)),
        JobSource::File(file) if (sources.is_trace)(file) => Some(replay(&ReplayRef::of(file))),
        JobSource::File(file) if TraceRef::is_log_of(file, sources.read) => {
            let options = iosched_workloads::strace::Options::default();
            Some(log(&TraceRef { file: file.clone(), options }))
        }
        _ => None,
    }
}

/// An error in an override points at where the override was written.
fn replace(d: Diagnostic, e: &Experiment) -> Diagnostic {
    if d.file != "--set" {
        return d;
    }
    let key = d.text.split('=').next().unwrap_or_default();
    match e.set.iter().find(|s| s.value.0 == key) {
        Some(s) => s.place.error(d.message).with_help(d.help),
        None => d,
    }
}
