//! The parts of an experiment file: its lists, its single values, and what stands in them.

use iosched_block::CpuModel;
use iosched_devices::DeviceState;
use iosched_types::nearest::did_you_mean;
use iosched_types::{Diagnostic, cgroup};
use iosched_workloads::replay::{Mode, ModeError};
use iosched_workloads::strace::Options;
use toml::de::DeTable;

use super::{
    DeviceRef, Experiment, JobSource, MAX_CPUS, MAX_RUNS, SchedulerRef, WorkloadRef, is_path, stem,
};
use crate::backend::BackendKind;
use crate::load::{self, ProgramKind, ProgramRef, TraceRef};
use crate::place::{Place, Placed};
use crate::replay::ReplayRef;
use crate::source::{At, Read, Source};
use crate::startup;
use crate::trial::Collect;
use crate::until;
use crate::warm_up::{self, WarmUp};

fn in_order<'t, 'a>(
    root: &'t DeTable<'a>,
    key: &'static str,
    src: &Source<'a>,
) -> Vec<(&'static str, &'t At<'a>)> {
    root.get(key).map_or_else(Vec::new, |at| src.list(at).into_iter().map(|a| (key, a)).collect())
}

/// A path in a file counts from the file's folder.
pub(crate) fn beside(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) if !path.starts_with('/') => format!("{folder}/{path}"),
        _ => path.to_string(),
    }
}

pub(super) fn lists(
    src: &Source,
    root: &DeTable,
    e: &mut Experiment,
    errors: &mut Vec<Diagnostic>,
) {
    let mut keep = |r: Read<()>| errors.extend(r.err());
    for (i, (name, at)) in in_order(root, "devices", src).into_iter().enumerate() {
        keep(device(src, name, at, i).map(|d| e.devices.push(d)));
    }
    for (name, at) in in_order(root, "schedulers", src) {
        keep(scheduler(src, name, at).map(|s| e.schedulers.push(s)));
    }
    for (name, at) in in_order(root, "kernel", src) {
        keep(src.string(at, name).map(|mut kernel| {
            if is_path(&kernel) {
                kernel = beside(src.file, &kernel);
            }
            e.kernels.push(Placed::new(kernel, src.place(at.span())));
        }));
    }
    for (i, (name, at)) in in_order(root, "workloads", src).into_iter().enumerate() {
        keep(workload(src, name, at, i).map(|w| e.workloads.push(w)));
    }
}

pub(super) fn scalars(
    src: &Source,
    root: &DeTable,
    e: &mut Experiment,
    errors: &mut Vec<Diagnostic>,
) {
    let mut read = |key: &str, f: &mut dyn FnMut(&At) -> Read<()>| {
        errors.extend(root.get(key).and_then(|at| f(at).err()));
    };
    read("name", &mut |at| src.string(at, "name").map(|v| e.name = v));
    read("goal", &mut |at| {
        let goal = src.string(at, "goal")?;
        e.goal = Some(Placed::new(goal, src.place(at.span())));
        Ok(())
    });
    read("runs", &mut |at| {
        e.runs_said = true;
        src.within(at, "runs", 1..=i64::from(MAX_RUNS)).map(|v| e.runs = v as u32)
    });
    read("budget", &mut |at| {
        until::budget(src, root, at).map(|v| (e.budget, e.budget_said) = (Some(v), true))
    });
    read("warm_up", &mut |at| {
        let text = src.fio_value(at, "warm_up")?;
        let wrong = || src.error(at, format!("\"{text}\" is no warm-up")).with_help(warm_up::HELP);
        e.warm_up = Some(WarmUp::parse(&text).ok_or_else(wrong)?);
        Ok(())
    });
    read("seed", &mut |at| {
        src.within(at, "seed", 0..=i64::from(u32::MAX)).map(|v| e.seed = v as u64)
    });
    read("cpus", &mut |at| {
        if at.get_ref().is_table() {
            let d = src.error(at, "cpus is a number of cores, not a table");
            return Err(d.with_help("did you mean [cpu]?"));
        }
        src.within(at, "cpus", 1..=i64::from(MAX_CPUS)).map(|v| e.cpus = v as u16)
    });
    read("cpu", &mut |at| cpu(src, at, e));
    read("filesystem", &mut |at| {
        e.host_place = Some(src.place(at.span()));
        e.host.read_filesystem(src, at)
    });
    read("memory", &mut |at| {
        e.host_place.get_or_insert(src.place(at.span()));
        e.host.read_memory(src, at)
    });
    read("sysctl", &mut |at| {
        for (name, value, place) in pairs(src, at, "sysctl")? {
            let v = src.integer(value, &name)?.to_string();
            e.host.set_sysctl(&name, &v).map_err(|m| place.error(m))?;
            e.sysctl_places.push((name.replace('/', "."), place.clone()));
            e.host_place.get_or_insert(place);
        }
        Ok(())
    });
    read("program", &mut |at| {
        let word = src.string(at, "program")?;
        let names = ProgramKind::NAMES.map(|(n, _)| n);
        let unknown = || {
            let d = src.error(at, format!("program = \"{word}\": known are {}", names.join(", ")));
            match did_you_mean(&word, names) {
                near if near.is_empty() => d,
                near => d.with_help(near),
            }
        };
        ProgramKind::find(&word).map(|k| e.program = k).ok_or_else(unknown)
    });
    read("backend", &mut |at| {
        let word = src.string(at, "backend")?;
        backend(&word, &src.place(at.span())).map(|v| e.backend = v)
    });
    read("queue", &mut |at| {
        for (name, value, place) in pairs(src, at, "queue")? {
            let v = src.integer(value, &name)?;
            e.queue.push(Placed::new((name, v), place));
        }
        Ok(())
    });
    read("set", &mut |at| {
        for (name, value, place) in pairs(src, at, "set")? {
            let v = src.fio_value(value, &name)?;
            e.set.push(Placed::new((name, v), place));
        }
        Ok(())
    });
    read("cgroups", &mut |at| cgroups(src, at, e));
    read("device_state", &mut |at| device_state(src, at).map(|s| e.device_state = Some(s)));
    read("steady_state", &mut |at| until::steady(src, at).map(|s| e.steady = s));
    read("collect", &mut |at| collect(src, at, &mut e.collect));
    match until::read(src, root, e.runs) {
        Ok(until) => e.until = until,
        Err(d) => errors.push(d),
    }
    if e.until.is_some() {
        e.runs = e.runs.max(until::MIN_RUNS);
    }
}

fn collect(src: &Source, at: &At, collect: &mut Collect) -> Read<()> {
    let table = src.table(at, "collect")?;
    src.known(table, "[collect]", &["series", "dispatches"])?;
    if let Some(at) = table.get("series") {
        collect.series = src.boolean(at, "series")?;
    }
    if let Some(at) = table.get("dispatches") {
        collect.dispatches = src.boolean(at, "dispatches")?;
    }
    Ok(())
}

fn cgroups(src: &Source, at: &At, e: &mut Experiment) -> Read<()> {
    for (name, value, place) in pairs(src, at, "cgroups")? {
        let help = "a path below the root, such as \"backup\" or \"users/anna\"";
        let path = cgroup::path(&name).map_err(|m| place.error(m).with_help(help))?;
        if e.cgroups.iter().any(|(p, _)| *p == path) {
            return Err(place.error(format!("control group \"{path}\" has two weights")));
        }
        e.cgroups.push((path, src.within(value, &name, 1..=1000)? as u32));
    }
    Ok(())
}

fn device_state(src: &Source, at: &At) -> Read<Placed<DeviceState>> {
    let mut state = DeviceState::default();
    for (name, value, place) in pairs(src, at, "device_state")? {
        state.set(&name, &src.string(value, &name)?).map_err(|m| place.error(m))?;
    }
    Ok(Placed::new(state, src.place(at.span())))
}

/// The backend of a name.
///
/// # Errors
/// The names there are.
pub fn backend(word: &str, place: &Place) -> Result<BackendKind, Diagnostic> {
    BackendKind::nameable().find(|k| k.traits().name == word).ok_or_else(|| {
        let names: Vec<&str> = BackendKind::nameable().map(|k| k.traits().name).collect();
        let names = names.join(", ");
        place.error(format!("unknown backend \"{word}\"")).with_help(format!("one of: {names}"))
    })
}

/// `[cpu] model = "cost"`, or `"zero"`, which takes no core time, and `percent`, how long each piece of work takes.
fn cpu(src: &Source, at: &At, e: &mut Experiment) -> Read<()> {
    const MODELS: [(&str, CpuModel); 2] = [("cost", CpuModel::Cost), ("zero", CpuModel::Zero)];
    let table = src.table(at, "cpu")?;
    let known = ["model", "percent"];
    if let Some(unknown) = src.unknown(table, "[cpu] of an experiment", &known).into_iter().next() {
        // A word that is nearly right was meant.
        return Err(match &*unknown.help {
            near if near.starts_with("did you mean") => unknown,
            _ => unknown.with_help(
                "what work costs is said in a kernel profile, and cpus = N outside of [cpu]",
            ),
        });
    }
    if table.is_empty() {
        return Err(src.error(at, "[cpu] needs model = \"cost\" or \"zero\", or percent"));
    }
    if let Some(at) = table.get("percent") {
        e.cpu_percent = src.within(at, "percent", 1..=10_000)? as u64;
    }
    let Some(at) = table.get("model") else { return Ok(()) };
    let word = src.string(at, "model")?;
    let found = MODELS.into_iter().find(|(name, _)| *name == word).map(|(_, m)| m);
    e.cpu_model = Some(found.ok_or_else(|| {
        let d = src.error(at, format!("model = \"{word}\": known are cost, zero"));
        match did_you_mean(&word, MODELS.map(|(n, _)| n)) {
            near if near.is_empty() => d,
            near => d.with_help(near),
        }
    })?);
    Ok(())
}

/// Keys and values of a table in the order in which they stand there.
fn pairs<'t, 'a>(
    src: &Source<'a>,
    at: &'t At<'a>,
    key: &str,
) -> Read<Vec<(String, &'t At<'a>, Place)>> {
    let mut entries: Vec<_> = src.table(at, key)?.iter().collect();
    entries.sort_by_key(|(k, _)| k.span().start);
    let place = |k: &toml::Spanned<_>, v: &At| src.place(k.span().start..v.span().end);
    Ok(entries.into_iter().map(|(k, v)| (k.get_ref().to_string(), v, place(k, v))).collect())
}

fn device(src: &Source, key: &str, at: &At, index: usize) -> Read<Placed<DeviceRef>> {
    let place = src.place(at.span());
    let Some(table) = at.get_ref().as_table() else {
        let name = src.string(at, key)?;
        let name = if is_path(&name) && !name.starts_with("/dev/") {
            beside(src.file, &name)
        } else {
            name
        };
        return Ok(Placed::new(DeviceRef::Named(name), place));
    };
    let name = match table.get("name") {
        Some(at) => src.string(at, "name")?,
        None => return Err(place.error("a device described in place needs a name")),
    };
    // The same table without its name is a device file.
    let whole: toml::Table = toml::from_str(src.text).map_err(|e| place.error(e.message()))?;
    let list = whole.get(key);
    let value = list.and_then(|v| v.as_array()).and_then(|a| a.get(index)).or(list);
    let mut table = value.and_then(|v| v.as_table()).cloned().unwrap_or_default();
    table.remove("name");
    Ok(Placed::new(DeviceRef::Inline(name, table.to_string()), place))
}

fn scheduler(src: &Source, key: &str, at: &At) -> Read<Placed<SchedulerRef>> {
    let place = src.place(at.span());
    let Some(table) = at.get_ref().as_table() else {
        let name = src.string(at, key)?;
        return Ok(Placed::new(SchedulerRef { name, ..SchedulerRef::default() }, place));
    };
    src.known(table, "a scheduler", &["name", "tunables", "label"])?;
    let name = table.get("name").ok_or_else(|| place.error("a scheduler needs a name"))?;
    let mut out = SchedulerRef { name: src.string(name, "name")?, ..SchedulerRef::default() };
    if let Some(at) = table.get("tunables") {
        for (name, value, place) in pairs(src, at, "tunables")? {
            let v = src.integer(value, &name)?;
            out.tunables.push(Placed::new((name, v), place));
        }
    }
    if let Some(at) = table.get("label") {
        out.label = Some(src.string(at, "label")?);
    }
    Ok(Placed::new(out, place))
}

fn workload(src: &Source, key: &str, at: &At, index: usize) -> Read<Placed<WorkloadRef>> {
    let place = src.place(at.span());
    let Some(table) = at.get_ref().as_table() else {
        let file = src.string(at, key)?;
        if let Some(program) = ProgramRef::of_line(&file) {
            let job = JobSource::Program(program);
            return Ok(Placed::new(WorkloadRef::new(file, job), place));
        }
        let name = stem(&file).to_string();
        return Ok(Placed::new(WorkloadRef::new(name, job_file(src, &file)), place));
    };
    const KEYS: &[&str] = &[
        "name",
        "file",
        "job",
        "startup",
        "program",
        "params",
        "trace",
        "unknown",
        "think",
        "replay",
        "disk",
        "as",
        "recorded_scheduler",
        "beside",
    ];
    src.known(table, "a workload", KEYS)?;
    if table.contains_key("program") || table.contains_key("trace") {
        return calls(src, table, &place);
    }
    let job = match (table.get("file"), table.get("job"), table.get("startup")) {
        (Some(f), None, None) => job_file(src, &src.string(f, "file")?),
        (None, Some(j), None) => JobSource::Text(src.string(j, "job")?),
        (None, None, Some(s)) => JobSource::Startup(Box::new(startup::read(src, s)?)),
        _ => {
            let d =
                place.error("a workload needs one of file, job (the text of a fio job), startup, program, trace");
            return Err(d);
        }
    };
    let name = match (table.get("name"), &job) {
        (Some(at), _) => src.string(at, "name")?,
        (None, JobSource::File(f)) => stem(f).to_string(),
        (None, JobSource::Text(_)) => format!("job-{}", index + 1),
        (None, JobSource::Startup(s)) => s.title(),
        (None, JobSource::Program(p)) => p.line.clone(),
        (None, JobSource::Trace(t)) => stem(&t.file).to_string(),
        (None, JobSource::Replay(t)) => stem(&t.file).to_string(),
    };
    let beside = beside_it(src, table)?;
    Ok(Placed::new(WorkloadRef { name, job, beside }, place))
}

/// Keys of workloads that are block traces.
const OF_REPLAYS: [&str; 4] = ["replay", "disk", "as", "recorded_scheduler"];

/// A block trace of which more than the file is said.
fn replay(src: &Source, table: &DeTable, file: String) -> Read<ReplayRef> {
    let word = |key| table.get(key).map(|at| src.string(at, key)).transpose();
    let mode = match (word("replay")?, table.get("replay")) {
        (Some(text), Some(at)) => {
            let e = |e: ModeError| src.place(at.span()).error(e.message).with_help(e.help);
            Some(Mode::parse(&text).map_err(e)?)
        }
        _ => None,
    };
    let (read_as, disk) = (word("as")?, word("disk")?);
    Ok(ReplayRef { file, read_as, disk, mode, recorded_under: word("recorded_scheduler")? })
}

/// A block trace beside a workload: a file, or a table with the keys of a workload that is one.
fn beside_it(src: &Source, table: &DeTable) -> Read<Option<ReplayRef>> {
    let Some(at) = table.get("beside") else { return Ok(None) };
    let Some(table) = at.get_ref().as_table() else {
        return Ok(Some(ReplayRef::of(&beside(src.file, &src.string(at, "beside")?))));
    };
    src.known(table, "beside", &["trace", "replay", "disk", "as"])?;
    let Some(file) = table.get("trace") else {
        return Err(src.place(at.span()).error("beside needs trace = \"FILE\", a block trace"));
    };
    let file = beside(src.file, &src.string(file, "trace")?);
    replay(src, table, file).map(Some)
}

/// A program, a log of system calls, or a block trace.
fn calls(src: &Source, table: &DeTable, place: &Place) -> Read<Placed<WorkloadRef>> {
    let alone: &[&str] = match table.contains_key("program") {
        true => &["name", "program", "params", "beside"],
        false if OF_REPLAYS.iter().any(|k| table.contains_key(*k)) => {
            &["name", "trace", "replay", "disk", "as", "recorded_scheduler"]
        }
        false => &["name", "trace", "unknown", "think", "beside"],
    };
    src.known(table, "this workload", alone)?;
    let job = if let Some(at) = table.get("program") {
        let line = src.string(at, "program")?;
        let params = match table.get("params") {
            Some(at) => load::params(src, pairs(src, at, "params")?)?,
            None => Vec::new(),
        };
        JobSource::Program(ProgramRef { line, params })
    } else {
        let mut options = Options::default();
        if let Some(at) = table.get("unknown") {
            options.refuse_unknown = match src.string(at, "unknown")?.as_str() {
                "refuse" => true,
                "skip" => false,
                _ => return Err(src.place(at.span()).error("unknown is \"skip\" or \"refuse\"")),
            };
        }
        if let Some(at) = table.get("think") {
            options.think = src.boolean(at, "think")?;
        }
        let file = match table.get("trace") {
            Some(at) => src.string(at, "trace")?,
            None => String::new(),
        };
        let file = beside(src.file, &file);
        match OF_REPLAYS.iter().any(|k| table.contains_key(*k)) {
            true => JobSource::Replay(replay(src, table, file)?),
            false => JobSource::Trace(TraceRef { file, options }),
        }
    };
    let name = match (table.get("name"), &job) {
        (Some(at), _) => src.string(at, "name")?,
        (None, JobSource::Trace(t)) => stem(&t.file).to_string(),
        (None, JobSource::Replay(t)) => stem(&t.file).to_string(),
        (None, JobSource::Program(p)) => p.line.clone(),
        (None, _) => String::new(),
    };
    let beside = beside_it(src, table)?;
    Ok(Placed::new(WorkloadRef { name, job, beside }, place.clone()))
}

/// A job that comes with the program is named without path and suffix.
fn job_file(src: &Source, file: &str) -> JobSource {
    let named = !file.contains('/') && !file.contains('.');
    JobSource::File(if named { file.to_string() } else { beside(src.file, file) })
}
