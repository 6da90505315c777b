//! From an experiment to its trials.
//!
//! The order is device, workload, repetition, kernel, scheduler. So a real disk is prepared once, and the schedulers of
//! one repetition (a round) run one after the other, so drift hits all of them alike.
//!
//! Repetition r of a job that sets no `randseed` runs with `randseed = seed + r - 1`
//! ([`Trial::at_repetition`]). With more than one run `randrepeat=0` is set too, since fio's default
//! (`randrepeat=1`) draws the same offsets whatever the seed. The same repetition has the same seeds under
//! every scheduler: comparisons are paired.

mod workload;

use std::collections::BTreeSet;
use std::sync::Arc;

use iosched_block::KernelProfile;
use iosched_devices::{DeviceSpec, catalogue};
use iosched_schedulers::registry::Registry;
use iosched_types::Diagnostic;
use iosched_types::units::show_bytes;
use iosched_workloads::fio::layout::{Files, lay_out_beside};
use iosched_workloads::fio::on_files;
use iosched_workloads::fio::{DEFAULT_SEED, Lookup, NoLookup};
use iosched_workloads::replay::Recording;

use crate::FsType;
use crate::backend::BackendKind;
use crate::choice::{self, Choice};
use crate::file::{DeviceRef, Experiment, JobSource, WorkloadRef, is_path, stem};
use crate::load::{Load, TraceRef};
use crate::place::{Place, Placed};
use crate::record::TrialId;
use crate::replay::{ReplayRef, TraceWork};
use crate::startup::Startup;
use crate::trial::{Trial, check_setting, setting_in};
use crate::work::Work;
use workload::workload;

/// Most trials of one experiment.
pub const MAX_TRIALS: usize = 100_000;

/// Most memory of one simulated trial, in bytes.
pub const MAX_MEMORY: u64 = 4 << 30;
/// What a simulated process and an I/O that it may have in flight take, in bytes: measured by the peak of runs with 100
/// to 1000 processes of depths from 1000 to 10,000 (45 to 60 bytes an I/O).
const PROCESS_BYTES: u64 = 32 << 10;
const IO_BYTES: u64 = 64;

/// Planning needs this from outside. The caller decides how to find it.
pub struct Sources<'a> {
    /// The text of a file, or why there is none.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
    /// The text of a job that comes with the program, by name; or the names that are known.
    pub job: &'a dyn Fn(&str) -> Result<&'static str, String>,
    /// The names of schedulers that the running kernel offers, for live backends.
    pub offered: &'a dyn Fn() -> Vec<String>,
    /// The schedulers that can be named.
    pub registry: &'a Registry,
    /// A real disk or file as a device (its size and queue), for the backend `real`.
    pub disk: &'a dyn Fn(&str) -> Result<DeviceSpec, String>,
    /// Environment variables and keywords of job files.
    pub env: &'a dyn Lookup,
    /// Whether a file is a block trace.
    pub is_trace: &'a dyn Fn(&str) -> bool,
    /// A block trace, read.
    pub trace: &'a dyn Fn(&ReplayRef) -> Result<Arc<Recording>, Diagnostic>,
}

impl Default for Sources<'_> {
    /// Nothing beside the experiment itself and the built-in schedulers: no files, jobs, disks or environment.
    fn default() -> Self {
        Sources {
            read: &|_| Err("no files".into()),
            job: &|_| Err("no jobs".into()),
            offered: &Vec::new,
            registry: Registry::builtin(),
            disk: &|_| Err("no disks".into()),
            env: &NoLookup,
            is_trace: &|_| false,
            trace: &|t| Err(Diagnostic::file(&t.file, "no block traces")),
        }
    }
}

type Many<T> = Result<T, Vec<Diagnostic>>;

/// Looks everything up, checks it, and lists the trials.
///
/// # Errors
/// Everything that is wrong: unknown names (with the nearest), values out of bounds, a scheduler that the
/// kernel never had, jobs that do not parse, are not simulated or do not fit a device.
pub fn plan(e: &Experiment, sources: &Sources<'_>) -> Many<Vec<Trial>> {
    let mut errors = Vec::new();
    let parts = look_up(e, sources, &mut errors);
    if errors.is_empty() {
        check(e, &parts, &mut errors);
    }
    if errors.is_empty() { Ok(trials(e, &parts)) } else { Err(errors) }
}

/// Everything an experiment names.
struct Parts<'e> {
    devices: Vec<(DeviceSpec, &'e Place)>,
    workloads: Vec<(Workload, &'e Place)>,
    schedulers: Vec<Choice<'e>>,
}

/// A workload, looked up.
struct Workload {
    name: String,
    work: Work,
    beside: Option<TraceWork>,
}

fn look_up<'e>(
    e: &'e Experiment,
    sources: &Sources<'_>,
    errors: &mut Vec<Diagnostic>,
) -> Parts<'e> {
    let mut devices = collect(&e.devices, errors, |d| one(device(d, e.backend, sources)));
    if let Some(state) = &e.device_state {
        if !e.backend.has_model() {
            let d = state.place.error("a real disk is in the state it is in");
            errors
                .push(d.with_help("leave device_state out; steady_state = true prepares a drive"));
        }
        devices.iter_mut().for_each(|(d, _)| d.state = state.value);
        // A state that fits one of several devices is fine; the others' records have a warning.
        let all = devices
            .iter()
            .map(|(d, _)| d.lacking())
            .reduce(|a, b| a.into_iter().filter(|key| b.contains(key)).collect());
        for key in all.into_iter().flatten() {
            let names: Vec<&str> = devices.iter().map(|(d, _)| d.name.as_str()).collect();
            let message = format!("{key}=full: {} has no such cache", names.join(", "));
            let help = format!(
                "leave {key} out, or name a device that has one (iosched show device NAME)"
            );
            errors.push(state.place.error(message).with_help(help));
        }
    }
    let fio = |w: &Placed<WorkloadRef>| {
        let file = |f: &str| !TraceRef::is_log_of(f, sources.read) && !(sources.is_trace)(f);
        match &w.value.job {
            JobSource::Program(_) | JobSource::Trace(_) | JobSource::Replay(_) => false,
            JobSource::File(f) => file(f),
            JobSource::Text(_) | JobSource::Startup(_) => true,
        }
    };
    if let (false, Some(set)) = (e.workloads.iter().any(fio), e.set.first()) {
        let d = set.place.error("set is for fio jobs, and there is none among the workloads");
        errors.push(d.with_help("programs have parameters: --param NAME=VALUE, or params = { … }"));
    }
    let kernels = kernels(e, sources, errors);
    let workloads = collect(&e.workloads, errors, |w| workload(w, e, sources));
    let of_schedulers = e.schedulers.iter().flat_map(|s| &s.value.queue);
    for s in e.queue.iter().chain(of_schedulers) {
        let has = || {
            if e.backend.is_simulated() { setting_in(&s.value.0, &kernels) } else { Ok(()) }
        };
        if let Err(x) = check_setting(&s.value.0, s.value.1).and_then(|()| has()) {
            let d = s.place.error(x.to_string());
            if !errors.contains(&d) {
                errors.push(d);
            }
        }
    }
    let mut schedulers = Vec::new();
    // There is one running kernel, whatever profiles the experiment names.
    let running = e.backend.is_live();
    for kernel in kernels.iter().take(if running { 1 } else { kernels.len() }) {
        for s in &e.schedulers {
            let choice = if running {
                choice::live(s, kernel, sources.offered, sources.registry)
            } else {
                choice::simulated(s, kernel, kernels.len() > 1, sources.registry)
            };
            match choice {
                Ok(c) => schedulers.push(c),
                Err(d) if errors.contains(&d) => {}
                Err(d) => errors.push(d),
            }
        }
    }
    Parts { devices, workloads, schedulers }
}

/// Whether the parts go together.
fn check(e: &Experiment, parts: &Parts<'_>, errors: &mut Vec<Diagnostic>) {
    unique("device", parts.devices.iter().map(|(d, p)| (d.name.as_str(), *p)), errors);
    unique("workload", parts.workloads.iter().map(|(w, p)| (w.name.as_str(), *p)), errors);
    same_scheduler(parts, errors);
    let cells = parts.devices.len() * parts.workloads.len() * parts.schedulers.len();
    let runs = e.until.map_or(e.runs, |u| u.max_runs.max(e.runs));
    let n = cells.saturating_mul(runs as usize);
    if n > MAX_TRIALS {
        errors.push(Diagnostic::file(&*e.name, format!("{n} trials; {MAX_TRIALS} are the limit")));
    }
    misfits(e, parts, errors);
    if e.backend.is_simulated() {
        errors.extend(parts.workloads.iter().filter_map(|(w, place)| memory(w, place)));
    }
    for (device, _) in &parts.devices {
        for (w, place) in &parts.workloads {
            if let Some(d) = w.work.startup().and_then(|s| room(s, device, place)) {
                errors.push(d);
            }
            // A live run looks at the room that there really is.
            let model = e.backend.has_model();
            if let Some(load) = w.work.load().filter(|_| model) {
                errors.extend(files(load, room_of(e, device), device, place));
            }
            // Where files lie does not depend on the size of the file system.
            let set = w.work.jobs();
            let on_files = on_files::needed(set) && !set.jobs.iter().any(on_files::on_device);
            let room = if on_files { on_files::ROOM } else { device.capacity() };
            let existing = e.host.files.iter().cloned().collect();
            match lay_out_beside(set, room, &existing) {
                Ok(layouts) if on_files && model => {
                    errors.extend(too_large(e, parts, w, &layouts, device, place));
                }
                Ok(_) => {}
                Err(d) => {
                    let message = format!("device {}: {}", device.name, d.message);
                    errors.push(Diagnostic { message, ..d });
                }
            }
        }
    }
}

/// Files of fio jobs that are there before the jobs run, and for which the file system has no room.
fn too_large(
    e: &Experiment,
    parts: &Parts<'_>,
    w: &Workload,
    layouts: &[Files],
    device: &DeviceSpec,
    place: &Place,
) -> Option<Diagnostic> {
    let ext3 = |c: &Choice<'_>| e.host.filesystem_of(c.kernel.kernel_version()) == FsType::Ext3;
    let can_set_aside = !parts.schedulers.iter().any(ext3);
    let need = on_files::bytes_before(w.work.jobs(), layouts, can_set_aside);
    let has = room_of(e, device);
    (need > has).then(|| {
        let message = format!(
            "device {}: the files of {} take {} before its jobs run, the file system has {}",
            device.name,
            w.name,
            show_bytes(need as f64),
            show_bytes(has as f64)
        );
        place.error(message).with_help(
            "use a smaller size=, a larger device, or fallocate=none for files that fill as they are written",
        )
    })
}

/// The file system of loads that make system calls must fit each device; other loads have none.
fn misfits(e: &Experiment, parts: &Parts<'_>, errors: &mut Vec<Diagnostic>) {
    let needs = |w: &Workload| w.work.load().is_some() || on_files::needed(w.work.jobs());
    let Some((w, place)) = parts.workloads.iter().find(|(w, _)| needs(w)) else {
        if let Some(place) = &e.host_place {
            let d = place.error(
                "file system, memory and sysctls are for programs, logs, and fio jobs on files",
            );
            errors.push(
                d.with_help("run a program (iosched list workloads) or a job with direct=0 or directory=, or a path that it syncs, or leave it out"),
            );
        }
        return;
    };
    let raw = w.work.jobs().jobs.iter().any(on_files::on_device);
    if !e.backend.is_simulated() || raw {
        return;
    }
    let mut kernels: Vec<_> = parts.schedulers.iter().map(|c| &c.kernel).collect();
    kernels.dedup_by_key(|k| k.version.clone());
    for (device, _) in &parts.devices {
        let capacity = device.capacity();
        let misfit = |k: &KernelProfile| e.host.misfit(capacity, k.kernel_version());
        let found = kernels.iter().find_map(|k| misfit(k).map(|m| (&k.version, m)));
        if let Some((version, misfit)) = found {
            let said = |name| e.sysctl_places.iter().rfind(|(n, _)| n == name).map(|(_, p)| p);
            let place = misfit.sysctl.and_then(said).or(e.host_place.as_ref()).unwrap_or(place);
            let what = match misfit.sysctl {
                Some(_) => format!("Linux {version}: {}", misfit.message),
                None => format!("{}: Linux {version}: {}", device.name, misfit.message),
            };
            errors.push(place.error(what).with_help(misfit.help));
        }
    }
}

/// Queues that are too deep for the memory of a simulation.
fn memory(w: &Workload, place: &Place) -> Option<Diagnostic> {
    let jobs = &w.work.jobs().jobs;
    let ios: u64 = jobs.iter().map(|j| u64::from(j.iodepth)).sum();
    let processes = jobs.len() as u64;
    let need = ios.saturating_mul(IO_BYTES).saturating_add(processes * PROCESS_BYTES);
    (need > MAX_MEMORY).then(|| {
        let message = format!(
            "workload {}: {processes} processes with {ios} I/Os in flight would take about {}; {} is the limit",
            w.name,
            show_bytes(need as f64),
            show_bytes(MAX_MEMORY as f64)
        );
        place.error(message).with_help("use a smaller iodepth or fewer jobs")
    })
}

/// The load's files and a file system need room on the device.
fn room(s: &Startup, device: &DeviceSpec, place: &Place) -> Option<Diagnostic> {
    let (need, has) = (s.load_bytes() + s.load_bytes() / 16 + (64 << 20), device.capacity());
    (need > has).then(|| {
        let mib = |b: u64| b >> 20;
        let message = format!(
            "device {}: the load needs {} MiB, there are {} MiB",
            device.name,
            mib(need),
            mib(has)
        );
        place.error(message).with_help("give the load a smaller file_size")
    })
}

/// Bytes of the file system on a device.
fn room_of(e: &Experiment, device: &DeviceSpec) -> u64 {
    e.host.size.unwrap_or(u64::MAX).min(device.capacity())
}

/// The files of a program need room on the file system, and those that were there before a log.
fn files(load: &dyn Load, has: u64, device: &DeviceSpec, place: &Place) -> Option<Diagnostic> {
    let need = load.room();
    (need > has).then(|| {
        let (words, help) = load.too_large();
        let (title, need) = (load.title(), show_bytes(need as f64));
        let has = show_bytes(has as f64);
        let message = format!(
            "device {}: {title} needs at least {need} {words}, there are {has}",
            device.name
        );
        place.error(message).with_help(help)
    })
}

fn trials(e: &Experiment, parts: &Parts<'_>) -> Vec<Trial> {
    let several = e.runs > 1 || e.until.is_some();
    let mut trials = Vec::new();
    for (device, _) in &parts.devices {
        for (w, _) in &parts.workloads {
            let cells: Vec<Trial> =
                parts.schedulers.iter().map(|c| cell(e, device, w, c)).collect();
            for repetition in 1..=e.runs {
                trials.extend(cells.iter().map(|c| c.at_repetition(repetition, e.seed, several)));
            }
        }
    }
    trials
}

fn cell(e: &Experiment, device: &DeviceSpec, w: &Workload, c: &Choice<'_>) -> Trial {
    Trial {
        id: TrialId {
            experiment: e.name.clone(),
            device: device.name.clone(),
            scheduler: c.label.clone(),
            kernel: c.kernel.version.clone(),
            workload: w.name.clone(),
            repetition: 1,
            // What a program's parameters stand for as they are; repetitions count from here.
            seed: DEFAULT_SEED,
        },
        settings: e.queue.iter().map(|s| s.value.clone()).chain(c.settings.clone()).collect(),
        remarks: c.remark.iter().cloned().collect(),
        foreign: c.foreign.clone(),
        host: e.host.clone(),
        cpus: e.cpus,
        cgroups: e.cgroups.clone(),
        beside: w.beside.clone(),
        collect: e.collect,
        ..Trial::new(device.clone(), c.scheduler.clone(), c.kernel.clone(), w.work.clone())
    }
}

fn one<T>(r: Result<T, Diagnostic>) -> Many<T> {
    r.map_err(|d| vec![d])
}

fn collect<'e, T, U>(
    list: &'e [Placed<T>],
    errors: &mut Vec<Diagnostic>,
    mut f: impl FnMut(&'e Placed<T>) -> Many<U>,
) -> Vec<(U, &'e Place)> {
    let mut out = Vec::new();
    for item in list {
        match f(item) {
            Ok(u) => out.push((u, &item.place)),
            Err(e) => errors.extend(e),
        }
    }
    out
}

/// Two names of one scheduler: a version stands for the generation that it had.
fn same_scheduler(parts: &Parts<'_>, errors: &mut Vec<Diagnostic>) {
    for (i, c) in parts.schedulers.iter().enumerate() {
        let Some(first) = parts.schedulers[..i].iter().find(|o| o.label == c.label) else {
            continue;
        };
        let d = c.place.error(format!("scheduler \"{}\" is there twice", c.label));
        let generation = c.scheduler.generation;
        let help = match first.named == c.named {
            true => "name one of them differently, or leave it out".into(),
            false => format!(
                "{} and {} are both {}, the generation of Linux {}: leave one out",
                first.named,
                c.named,
                c.label,
                generation.range()
            ),
        };
        errors.push(d.with_help(help));
    }
}

fn unique<'a>(
    what: &str,
    names: impl Iterator<Item = (&'a str, &'a Place)>,
    errors: &mut Vec<Diagnostic>,
) {
    let mut seen = BTreeSet::new();
    for (name, place) in names {
        if !seen.insert(name) {
            let d = place.error(format!("{what} \"{name}\" is there twice"));
            errors.push(d.with_help("name one of them differently, or leave it out"));
        }
    }
}

/// What to say to who names a disk or a place on one where the simulator wants the file of a model.
fn real_one(name: &str) -> String {
    let model = "the simulator takes a name of `iosched list devices` or a device file (.toml)";
    if name.starts_with("/dev/") {
        format!("{model}; to measure a real disk: --backend real")
    } else if name.ends_with(".toml") {
        String::new()
    } else {
        format!(
            "{model}; to measure the disk below a file: --backend real, with --size to have it made"
        )
    }
}

fn device(
    d: &Placed<DeviceRef>,
    backend: BackendKind,
    sources: &Sources<'_>,
) -> Result<DeviceSpec, Diagnostic> {
    match &d.value {
        DeviceRef::Named(name) if !backend.has_model() => {
            (sources.disk)(name).map_err(|e| d.place.error(e))
        }
        DeviceRef::Named(name) if is_path(name) => {
            let text = (sources.read)(name).map_err(|e| {
                let e = d.place.error(format!("cannot read device file \"{name}\": {e}"));
                e.with_help(real_one(name))
            })?;
            let mut spec = DeviceSpec::from_toml(name, &text)?;
            spec.name = stem(name).into();
            Ok(spec)
        }
        DeviceRef::Named(name) => catalogue::find(name).map_err(|e| {
            let help = if e.help.starts_with("the catalogue") {
                format!("{}; a device file of your own is named by its path", e.help)
            } else {
                e.help
            };
            d.place.error(format!("unknown device \"{name}\"")).with_help(help)
        }),
        DeviceRef::Inline(name, text) => {
            let mut spec = DeviceSpec::from_toml(name, text).map_err(|e| {
                d.place.error(format!("device \"{name}\": {}", e.message)).with_help(e.help)
            })?;
            spec.name.clone_from(name);
            Ok(spec)
        }
    }
}

fn profiles(
    e: &Experiment,
    sources: &Sources<'_>,
    errors: &mut Vec<Diagnostic>,
) -> Vec<KernelProfile> {
    if e.kernels.is_empty() {
        return KernelProfile::preferred().take(1).collect();
    }
    let found = collect(&e.kernels, errors, |k| {
        one(if is_path(&k.value) {
            (sources.read)(&k.value)
                .map_err(|e| k.place.error(format!("cannot read kernel profile: {e}")))
                .and_then(|text| KernelProfile::from_toml(&k.value, &text))
        } else {
            KernelProfile::find(&k.value).map_err(|e| {
                k.place.error(format!("unknown kernel \"{}\"", e.name)).with_help(e.help)
            })
        })
    });
    found.into_iter().map(|(k, _)| k).collect()
}

/// The kernels of an experiment, with its word on core time.
fn kernels(
    e: &Experiment,
    sources: &Sources<'_>,
    errors: &mut Vec<Diagnostic>,
) -> Vec<KernelProfile> {
    let mut kernels = profiles(e, sources, errors);
    if let Some(model) = e.cpu_model {
        kernels.iter_mut().for_each(|k| k.cpu.model = model);
    }
    kernels.iter_mut().for_each(|k| k.cpu.take(e.cpu_percent));
    kernels
}
