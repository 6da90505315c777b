//! The experiment file: devices × schedulers × kernels × workloads × runs.

use iosched_devices::DeviceState;
use iosched_types::{Diagnostic, cgroup};
use iosched_workloads::fio::DEFAULT_SEED;
use iosched_workloads::strace::Options;
use toml::de::DeTable;

use crate::host::HostSpec;
use crate::load::{self, ProgramRef, TraceRef};
use crate::place::{Place, Placed};
use crate::record::BackendKind;
use crate::source::{At, Read, Source};

use crate::startup::{self, Startup};
use crate::trial::Collect;
use crate::until::{self, Steady, Until};

/// Most repetitions.
pub const MAX_RUNS: u32 = 10_000;
/// Most CPUs of the simulated machine.
pub const MAX_CPUS: u16 = 4096;
/// Backends an experiment can name.
pub const BACKENDS: [(&str, BackendKind); 4] = [
    ("sim", BackendKind::Sim),
    ("emulated", BackendKind::Emulated),
    ("real", BackendKind::Real),
    ("mock", BackendKind::Mock),
];

/// A device: of the catalogue, of a file, or described in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceRef {
    /// A catalogue name, or the path of a device file (ends in `.toml` or has a slash).
    Named(String),
    /// A device file's content, written as a table in the experiment: (name, TOML).
    Inline(String, String),
}

/// A scheduler with its tunables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerRef {
    /// `family[@generation or kernel]`.
    pub name: String,
    /// Tunables by sysfs name, in the sysfs unit.
    pub tunables: Vec<Placed<(String, i64)>>,
    /// How tables call it; by default its name and the tunables that were set.
    pub label: Option<String>,
}

/// What the processes do.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadRef {
    /// How tables call it.
    pub name: String,
    /// Where the job comes from.
    pub job: JobSource,
}

/// Where a fio job comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum JobSource {
    /// A job file (path as the program sees it), or the name of a job that comes with the program.
    File(String),
    /// The text of a job file, written in the experiment.
    Text(String),
    /// No fio job: the start of a command under load.
    Startup(Box<Startup>),
    /// A program over system calls.
    Program(ProgramRef),
    /// A log of system calls.
    Trace(TraceRef),
}

/// An experiment as the file has it. Nothing is looked up yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Name: the file's stem unless it names itself.
    pub name: String,
    /// Devices.
    pub devices: Vec<Placed<DeviceRef>>,
    /// Schedulers; the first is the base of comparisons.
    pub schedulers: Vec<Placed<SchedulerRef>>,
    /// Kernel profiles by name, or files.
    pub kernels: Vec<Placed<String>>,
    /// Workloads.
    pub workloads: Vec<Placed<WorkloadRef>>,
    /// Repetitions.
    pub runs: u32,
    /// Seed of the first repetition.
    pub seed: u64,
    /// `queue/*` settings by sysfs name.
    pub queue: Vec<Placed<(String, i64)>>,
    /// Options set for every job, after its own.
    pub set: Vec<Placed<(String, String)>>,
    /// CPUs of the simulated machine.
    pub cpus: u16,
    /// The machine above the disk, for loads that make system calls.
    pub host: HostSpec,
    /// What of it was said, and where.
    pub host_place: Option<Place>,
    /// Weights by control group.
    pub cgroups: Vec<(String, u32)>,
    /// What the devices are like when a run begins.
    pub device_state: Option<Placed<DeviceState>>,
    /// The backend that runs it.
    pub backend: BackendKind,
    /// What to collect.
    pub collect: Collect,
    /// Repeat beyond `runs` until the figures are certain.
    pub until: Option<Until>,
    /// Bring a solid-state drive into its steady state first.
    pub steady: Option<Steady>,
}

impl Default for Experiment {
    fn default() -> Self {
        Experiment {
            name: "experiment".into(),
            devices: Vec::new(),
            schedulers: Vec::new(),
            kernels: Vec::new(),
            workloads: Vec::new(),
            runs: 1,
            seed: DEFAULT_SEED,
            queue: Vec::new(),
            set: Vec::new(),
            cpus: 4,
            host: HostSpec::default(),
            host_place: None,
            cgroups: Vec::new(),
            device_state: None,
            backend: BackendKind::Sim,
            collect: Collect::default(),
            until: None,
            steady: None,
        }
    }
}

const KEYS: &[&str] = &[
    "name",
    "devices",
    "schedulers",
    "kernel",
    "workloads",
    "runs",
    "seed",
    "queue",
    "set",
    "cpus",
    "memory",
    "filesystem",
    "sysctl",
    "cgroups",
    "device_state",
    "backend",
    "collect",
    "until_ci",
    "max_runs",
    "max_time",
    "steady_state",
];

impl Experiment {
    /// Reads an experiment file. Paths in it count from the file's own folder.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place. [`Experiment::read`] tells all.
    pub fn from_toml(file: &str, text: &str) -> Result<Experiment, Diagnostic> {
        let (experiment, errors) = Experiment::read(file, text);
        errors.into_iter().next().map_or(Ok(experiment), Err)
    }

    /// Reads as much of an experiment file as can be read, and tells everything that is wrong with the rest, in the
    /// order of the file.
    #[must_use]
    pub fn read(file: &str, text: &str) -> (Experiment, Vec<Diagnostic>) {
        let src = Source { file, text };
        let mut e = Experiment { name: stem(file).into(), ..Experiment::default() };
        let root = match src.parse() {
            Ok(root) => root,
            Err(d) => return (e, vec![d]),
        };
        let root = root.get_ref();
        let mut errors = src.unknown(root, "the experiment", KEYS);
        scalars(&src, root, &mut e, &mut errors);
        lists(&src, root, &mut e, &mut errors);
        for key in ["devices", "schedulers", "workloads"] {
            let named = root.get(key).is_some_and(|at| !src.list(at).is_empty());
            if !named {
                let d = Diagnostic::file(file, format!("the experiment names no {key}"));
                errors.push(d.with_help(example(key)));
            }
        }
        errors.sort_by_key(|d| (d.line, d.column));
        (e, errors)
    }
}

fn example(key: &str) -> &'static str {
    match key {
        "devices" => "add a line such as devices = [\"hdd-7200\", \"ssd-sata\"]",
        "schedulers" => "add a line such as schedulers = [\"none\", \"mq-deadline\", \"bfq\"]",
        _ => "add a line such as workloads = [\"job.fio\"]",
    }
}

fn in_order<'t, 'a>(
    root: &'t DeTable<'a>,
    key: &'static str,
    src: &Source<'a>,
) -> Vec<(&'static str, &'t At<'a>)> {
    root.get(key).map_or_else(Vec::new, |at| src.list(at).into_iter().map(|a| (key, a)).collect())
}

/// `a/b/desktop.toml` is `desktop`.
#[must_use]
pub fn stem(file: &str) -> &str {
    let base = file.rsplit('/').next().unwrap_or(file);
    match base.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => base,
    }
}

/// Whether a device or kernel is named by a path rather than by a name of the catalogue.
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// A path in a file counts from the file's folder.
fn beside(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) if !path.starts_with('/') => format!("{folder}/{path}"),
        _ => path.to_string(),
    }
}

fn lists(src: &Source, root: &DeTable, e: &mut Experiment, errors: &mut Vec<Diagnostic>) {
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

fn scalars(src: &Source, root: &DeTable, e: &mut Experiment, errors: &mut Vec<Diagnostic>) {
    let mut read = |key: &str, f: &mut dyn FnMut(&At) -> Read<()>| {
        errors.extend(root.get(key).and_then(|at| f(at).err()));
    };
    read("name", &mut |at| src.string(at, "name").map(|v| e.name = v));
    read("runs", &mut |at| {
        src.within(at, "runs", 1..=i64::from(MAX_RUNS)).map(|v| e.runs = v as u32)
    });
    read("seed", &mut |at| {
        src.within(at, "seed", 0..=i64::from(u32::MAX)).map(|v| e.seed = v as u64)
    });
    read("cpus", &mut |at| {
        src.within(at, "cpus", 1..=i64::from(MAX_CPUS)).map(|v| e.cpus = v as u16)
    });
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
            e.host_place.get_or_insert(place);
        }
        Ok(())
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
    BACKENDS.iter().find(|(n, _)| *n == word).map(|(_, k)| *k).ok_or_else(|| {
        let names = BACKENDS.map(|(n, _)| n).join(", ");
        place.error(format!("unknown backend \"{word}\"")).with_help(format!("one of: {names}"))
    })
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
        return Ok(Placed::new(SchedulerRef { name, tunables: Vec::new(), label: None }, place));
    };
    src.known(table, "a scheduler", &["name", "tunables", "label"])?;
    let name = table.get("name").ok_or_else(|| place.error("a scheduler needs a name"))?;
    let mut out =
        SchedulerRef { name: src.string(name, "name")?, tunables: Vec::new(), label: None };
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
            return Ok(Placed::new(WorkloadRef { name: file, job }, place));
        }
        let name = stem(&file).to_string();
        return Ok(Placed::new(WorkloadRef { name, job: job_file(src, &file) }, place));
    };
    const KEYS: &[&str] =
        &["name", "file", "job", "startup", "program", "params", "trace", "unknown", "think"];
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
    };
    Ok(Placed::new(WorkloadRef { name, job }, place))
}

/// A program, or a log of system calls.
fn calls(src: &Source, table: &DeTable, place: &Place) -> Read<Placed<WorkloadRef>> {
    let alone: &[&str] = match table.contains_key("program") {
        true => &["name", "program", "params"],
        false => &["name", "trace", "unknown", "think"],
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
        JobSource::Trace(TraceRef { file: beside(src.file, &file), options })
    };
    let name = match (table.get("name"), &job) {
        (Some(at), _) => src.string(at, "name")?,
        (None, JobSource::Trace(t)) => stem(&t.file).to_string(),
        (None, JobSource::Program(p)) => p.line.clone(),
        (None, _) => String::new(),
    };
    Ok(Placed::new(WorkloadRef { name, job }, place.clone()))
}

/// A job that comes with the program is named without path and suffix.
fn job_file(src: &Source, file: &str) -> JobSource {
    let named = !file.contains('/') && !file.contains('.');
    JobSource::File(if named { file.to_string() } else { beside(src.file, file) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = "name = \"n\"\ndevices = [\"hdd-7200\", \"mine.toml\"]\n\
        schedulers = [\"none\", { name = \"bfq\", tunables = { low_latency = false }, label = \"l\" }]\n\
        workloads = [\"desktop\", \"jobs/a.fio\", { name = \"w\", job = \"[r]\" }]\nruns = 3\nseed = 9\n\
        [queue]\nnr_requests = 64\n[set]\nruntime = 1.5\n";

    #[test]
    fn everything_is_read_and_paths_count_from_the_file() {
        let e = Experiment::from_toml("dir/e.toml", GOOD).unwrap();
        assert_eq!((e.name.as_str(), e.runs, e.seed), ("n", 3, 9));
        assert_eq!(e.devices[1].value, DeviceRef::Named("dir/mine.toml".into()));
        assert_eq!(e.schedulers[1].value.tunables[0].value, ("low_latency".into(), 0));
        assert_eq!(e.workloads[0].value.job, JobSource::File("desktop".into()));
        assert_eq!(e.workloads[1].value.job, JobSource::File("dir/jobs/a.fio".into()));
        assert_eq!(e.set[0].value, ("runtime".into(), "1.5".into()));
    }

    #[test]
    fn a_device_state_is_read_and_its_words_are_checked() {
        let with = |state: &str| {
            Experiment::from_toml("e.toml", &format!("{GOOD}[device_state]\n{state}\n"))
        };
        let e = with("write_cache = \"full\"").unwrap();
        assert_eq!(e.device_state.unwrap().value.text(), "write_cache=full");
        let d = with("wcache = \"full\"").unwrap_err();
        assert!(d.line == 12 && d.message.contains("write_cache, slc"), "{d}");
        let d = with("slc = \"half\"").unwrap_err();
        assert!(d.line == 12 && d.message.contains("empty, full"), "{d}");
    }

    #[test]
    fn everything_wrong_is_told_at_once_in_its_order() {
        let text = "devices = [\"hdd-7200\", 7]\nschedulers = [\"none\", { nme = \"bfq\" }]\nruns = 0\ntypo = 1\n\
            seed = \"x\"\n[set]\nruntime = [1]\n[collect]\nserie = true\n";
        let (e, errors) = Experiment::read("e.toml", text);
        let lines: Vec<usize> = errors.iter().map(|d| d.line).collect();
        assert_eq!(lines, [0, 1, 2, 3, 4, 5, 7, 9], "{errors:?}");
        assert!(errors[0].message.contains("names no workloads"));
        assert_eq!((e.devices.len(), e.schedulers.len()), (1, 1), "what can be read is read");
    }

    #[test]
    fn stems_are_names() {
        assert_eq!((stem("a/b.c.toml"), stem("x"), stem(".hidden")), ("b.c", "x", ".hidden"));
    }

    proptest! {
        #[test]
        fn never_panics(at in 0usize..400, len in 0usize..40, junk in ".{0,20}") {
            let cut = |i: usize| (0..=i.min(GOOD.len())).rev().find(|i| GOOD.is_char_boundary(*i)).unwrap_or(0);
            let text = format!("{}{junk}{}", &GOOD[..cut(at)], &GOOD[cut(at + len)..]);
            let _ = Experiment::from_toml("e.toml", &text);
        }
    }
}
