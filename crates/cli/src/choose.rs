//! From arguments to experiments: the quick form, and what it changes in experiment files.

mod often;
mod work;

use clap::Parser;
use iosched_backends::switch;
use iosched_block::KernelProfile;
use iosched_devices::DeviceState;
use iosched_experiment::file::{MAX_CPUS, MAX_RUNS, backend, is_path, name_apart, stem};
use iosched_experiment::{
    BackendKind, DeviceRef, Experiment, JobSource, OPTIONS_LINE, Place, Placed, ProgramKind,
    SchedulerRef, Sources, Steady, Trial, path_of,
};
use iosched_schedulers::pair;
use iosched_schedulers::registry::{self, Registry};
use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;

use crate::args::{Cli, Command, RunArgs};
use crate::fail::{Failure, Outcome};
use crate::{asked, files, jobs, live, replay, short, situations};
pub(crate) use often::planned;
use work::workload;
pub(crate) use work::{is_command, joined};

/// An experiment and how it was asked for.
pub(crate) struct Chosen {
    pub(crate) experiment: Experiment,
    /// An experiment file that stands alone, with the options that it was run with.
    pub(crate) definition: String,
}

/// One experiment per experiment file, and one for all job files together.
pub(crate) fn experiments(args: &RunArgs) -> Outcome<Vec<Chosen>> {
    let mut out = Vec::new();
    let mut quick: Option<Experiment> = None;
    for file in &args.files {
        let shipped = situations::find(file);
        if shipped.is_some() || file.ends_with(".toml") && !is_command(file) {
            let text = match shipped {
                Some(situation) => situation.text.into(),
                None => files::required(file)?,
            };
            let mut experiment = read(args, file, &text)?;
            apply(args, &mut experiment)?;
            replay::recorded_first(&mut experiment)?;
            let definition = asked::of_file(args, file, &text);
            out.push(Chosen { experiment, definition });
        } else {
            let e = quick.get_or_insert_with(|| Experiment {
                name: if is_command(file) { "fio".into() } else { stem(file).into() },
                ..Experiment::default()
            });
            e.workloads.push(workload(file));
        }
    }
    if let Some(mut e) = quick {
        name_apart(&mut e.workloads);
        apply(args, &mut e)?;
        if e.devices.is_empty() {
            let named = DeviceRef::Named("hdd-7200".into());
            e.devices.push(Placed::new(named, Place::file("--device")));
        }
        if e.schedulers.is_empty() {
            e.schedulers = all_of(&e);
        }
        replay::recorded_first(&mut e)?;
        let definition = asked::of_command(args, &e);
        out.insert(0, Chosen { experiment: e, definition });
    }
    if let (Some(name), 2..) = (&args.name, out.len()) {
        return Err(Failure::with_help(
            format!("--name {name} would name {} experiments alike", out.len()),
            "run them one after the other",
        ));
    }
    Ok(out)
}

/// The experiment of a stored definition, with the options on its first lines. `several`: it had more than one repetition.
pub(crate) fn again(name: &str, definition: &str, several: bool) -> Outcome<Experiment> {
    let options = definition.lines().find_map(|l| l.strip_prefix(OPTIONS_LINE));
    let file = format!("{}.toml", name.trim_end_matches(".toml"));
    let line = ["iosched", "run", &file].map(String::from).into_iter();
    let line = line.chain(asked::words(options.unwrap_or_default()));
    let Ok(Cli { command: Command::Run(mut args) }) = Cli::try_parse_from(line) else {
        let message = format!("the options of {name} are not those of this version");
        return Err(Failure::with_help(message, "run it again"));
    };
    args.quiet = true;
    if !several {
        args.runs = Some(1);
    }
    let mut e = read(&args, &file, definition)?;
    apply(&args, &mut e)?;
    replay::recorded_first(&mut e)?;
    Ok(e)
}

/// An experiment file, or everything that is wrong with it: what cannot be read, and the names in the rest.
fn read(args: &RunArgs, file: &str, text: &str) -> Outcome<Experiment> {
    let (experiment, errors) = Experiment::read(file, text);
    if errors.is_empty() {
        return Ok(experiment);
    }
    let mut all = Failure::from(errors);
    // Another backend knows other names.
    let simulated = args.backend.is_none() && experiment.backend.is_simulated();
    if let Some(more) = simulated.then(|| look_up(&experiment, None).err()).flatten() {
        all.messages.extend(more.messages);
    }
    Err(all)
}

/// Every scheduler that the kernel has, those out of tree left out.
pub(crate) fn all_of(e: &Experiment) -> Vec<Placed<SchedulerRef>> {
    let kernel = match e.kernels.first() {
        Some(k) => KernelProfile::find(&k.value).ok(),
        None => KernelProfile::preferred().next(),
    };
    let Some(kernel) = kernel else {
        return vec![plain("none", Place::file("--scheduler"))];
    };
    let has = |d: &&&iosched_schedulers::Descriptor| {
        iosched_experiment::choose_scheduler(d.name, &[], &kernel, Registry::builtin()).is_ok_and(
            |c| kernel.has_path(path_of(&c)) && c.descriptor.origin(c.generation).is_none(),
        )
    };
    let families = registry::SCHEDULERS.iter().filter(has);
    families.map(|d| plain(d.name, Place::file("--scheduler"))).collect()
}

fn plain(name: &str, place: Place) -> Placed<SchedulerRef> {
    Placed::new(SchedulerRef { name: name.into(), ..SchedulerRef::default() }, place)
}

/// Parts of comma-separated, repeatable options with their places.
fn parts<'a>(option: &'a str, values: &'a [String]) -> impl Iterator<Item = (&'a str, Place)> {
    values.iter().flat_map(move |v| {
        v.split(',').map(str::trim).map(move |p| (p, Place::option(option, v, p)))
    })
}

/// `sda=hdd-7200,sdb=usb-stick` would be a machine with several disks.
fn of_several(args: &RunArgs, backend: BackendKind) -> Outcome {
    let assigned = |(name, _): &(&str, Place)| {
        name.split_once('=').is_some_and(|(disk, _)| !disk.contains(['/', '.']))
    };
    match parts("--device", &args.device).find(assigned).filter(|_| backend.has_model()) {
        Some((_, place)) => {
            let d = place.error("a trial has one disk: no device is named for a disk of the job");
            let help = "run the jobs of each disk alone, with --device of its own; devices in a list are compared";
            Err(d.with_help(help).into())
        }
        None => Ok(()),
    }
}

/// Names of real disks and files. A name that exists as written counts as one name, commas and blanks included.
fn real_devices(values: &[String]) -> impl Iterator<Item = (&str, Place)> {
    values.iter().flat_map(|v| {
        let whole = std::path::Path::new(v).symlink_metadata().is_ok();
        let names: Vec<&str> = if whole { vec![v.as_str()] } else { v.split(',').collect() };
        names.into_iter().map(move |n| (n, Place::option("--device", v, n)))
    })
}

/// File system, memory and sysctls of the simulated machine.
fn host(args: &RunArgs, e: &mut Experiment) -> Outcome {
    let (first, sysctls) = (&mut e.host_place, &mut e.sysctl_places);
    let mut said = |place: Place, done: Result<(), String>| {
        done.map_err(|m| place.error(m))?;
        first.get_or_insert(place);
        Ok::<(), Diagnostic>(())
    };
    if let Some(text) = &args.filesystem {
        said(Place::option("--filesystem", text, text), e.host.set_filesystem(text))?;
    }
    if let Some(text) = &args.fill {
        said(Place::option("--fill", text, text), e.host.set_fill(text))?;
    }
    if let Some(text) = &args.memory {
        said(Place::option("--memory", text, text), e.host.set_memory(text))?;
    }
    for text in &args.sysctl {
        let place = Place::option("--sysctl", text, text);
        let Some((name, value)) = text.split_once('=') else {
            return Err(place.error("--sysctl needs NAME=VALUE").into());
        };
        sysctls.push((name.replace('/', "."), place.clone()));
        said(place, e.host.set_sysctl(name, value))?;
    }
    Ok(())
}

fn apply(args: &RunArgs, e: &mut Experiment) -> Outcome {
    if let Some(word) = &args.backend {
        e.backend = backend(word, &Place::option("--backend", word, word))?;
    }
    if !args.device.is_empty() {
        let named = |(n, p): (&str, _)| Placed::new(DeviceRef::Named(n.into()), p);
        of_several(args, e.backend)?;
        e.devices = match e.backend.has_model() {
            true => parts("--device", &args.device).map(named).collect(),
            false => real_devices(&args.device).map(named).collect(),
        };
    }
    if !args.scheduler.is_empty() {
        e.schedulers = parts("--scheduler", &args.scheduler).map(|(n, p)| plain(n, p)).collect();
    }
    if !args.kernel.is_empty() {
        e.kernels =
            parts("--kernel", &args.kernel).map(|(n, p)| Placed::new(n.to_string(), p)).collect();
    }
    if let Some(runs) = args.runs {
        e.runs = within("--runs", runs, 1, MAX_RUNS)?;
    }
    if let Some(seed) = args.seed {
        e.seed = u64::from(within("--seed", seed, 0, u32::MAX)?);
    }
    if let Some(cpus) = args.cpus {
        e.cpus = within("--cpus", cpus, 1, MAX_CPUS)?;
    }
    if let Some(kind) = args.program.as_deref().and_then(ProgramKind::find) {
        e.program = kind;
    }
    host(args, e)?;
    options(args, e)?;
    replay::apply(args, e)?;
    // Tunables are of the schedulers that run, also where nobody named them. A file says its own.
    let no_file = args.files.iter().all(|f| !f.ends_with(".toml") && situations::find(f).is_none());
    if e.schedulers.is_empty() && !args.tunable.is_empty() && no_file {
        e.schedulers = all_of(e);
    }
    tunables(&args.tunable, e)?;
    often::until(args, e)?;
    often::measuring(args, e)?;
    if args.steady_state {
        e.steady = e.steady.or(Some(Steady::default()));
    }
    check_backend(e)
}

/// An option of fio may have other names.
fn full_name(option: &str) -> &str {
    iosched_workloads::fio::find_option(option).map_or(option, |o| o.name)
}

/// Options of device, jobs, programs and queue, and the name.
fn options(args: &RunArgs, e: &mut Experiment) -> Outcome {
    if let Some(text) = &args.device_state {
        let place = Place::option("--device-state", text, text);
        let state = DeviceState::parse(text).map_err(|m| place.error(m))?;
        e.device_state = Some(Placed::new(state, place));
    }
    for (i, text) in args.set.iter().enumerate() {
        // As in a job file, an option without a value is a flag.
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let place = Place::option("--set", text, key);
        if key.is_empty() {
            return Err(place.error("--set needs OPTION=VALUE").into());
        }
        let of = |t: &&String| full_name(t.split('=').next().unwrap_or_default()) == full_name(key);
        if let Some(first) = args.set[..i].iter().find(of) {
            let d = place.error(format!("{key} is set twice: {first} and {text}"));
            return Err(d.with_help("leave one out; two values are two experiments").into());
        }
        e.set.push(Placed::new((key.into(), value.into()), place));
    }
    for (i, text) in args.param.iter().enumerate() {
        let key = |text: &String| text.split_once('=').map(|(key, _)| key.to_string());
        let again =
            key(text).filter(|k| args.param[..i].iter().any(|t| key(t).as_ref() == Some(k)));
        if let Some(key) = again {
            let place = Place::option("--param", text, &key);
            return Err(place.error(format!("{key} is set twice")).into());
        }
        param(text, e)?;
    }
    if args.quick {
        short::quick(e, args.quiet)?;
    }
    queue(&args.queue, e)?;
    if let Some(name) = &args.name {
        if name.trim().is_empty() {
            return Err(Place::option("--name", name, name).error("a name has letters").into());
        }
        e.name.clone_from(name);
    }
    Ok(())
}

/// `--param`: for every program among the workloads.
fn param(text: &str, e: &mut Experiment) -> Outcome {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let place = Place::option("--param", text, key);
    if key.is_empty() || value.is_empty() {
        return Err(place.error("--param needs NAME=VALUE").into());
    }
    let mut found = false;
    for w in &mut e.workloads {
        if let JobSource::Program(p) = &mut w.value.job {
            found = true;
            p.params.retain(|o| o.value.0 != key);
            p.params.push(Placed::new((key.into(), value.into()), place.clone()));
        } else if let JobSource::Trace(log) = &mut w.value.job
            && let Some(set) = log.set(key, value)
        {
            set.map_err(|m| Place::option("--param", text, value).error(m))?;
            found = true;
        }
    }
    if found {
        return Ok(());
    }
    if mistyped(e) {
        return Ok(());
    }
    let what = "--param is for programs, and for unknown and think of logs: there is none among the workloads";
    let d = place.error(what);
    Err(d.with_help("see `iosched list workloads`; --set is for options of fio jobs").into())
}

/// Whether a workload is none that there is: it may have been meant for a program. Its own error comes when it is looked
/// up, with the nearest name.
pub(crate) fn mistyped(e: &Experiment) -> bool {
    e.workloads.iter().any(|w| match &w.value.job {
        JobSource::File(name) => !name.contains(['/', '.']) && jobs::find(name).is_err(),
        _ => false,
    })
}

/// What the backend cannot do at all.
fn check_backend(e: &Experiment) -> Outcome {
    if e.steady.is_some() && e.backend.is_simulated() {
        return Err(Failure::with_help(
            "a simulated drive starts every trial as after power-on: it has no steady state",
            "leave steady_state out, or use --backend emulated or real",
        ));
    }
    Ok(())
}

fn within<T>(option: &str, value: i64, min: T, max: T) -> Outcome<T>
where
    T: Copy + Ord + TryFrom<i64> + std::fmt::Display,
{
    T::try_from(value).ok().filter(|v| (min..=max).contains(v)).ok_or_else(|| {
        let text = value.to_string();
        let place = Place::option(option, &text, &text);
        place.error(format!("{option} is out of range: {min} to {max}")).into()
    })
}

fn number<'a>(option: &str, text: &'a str) -> Outcome<(&'a str, i64, Place)> {
    let Some((key, value)) = text.split_once('=') else {
        let d = Place::option(option, text, text).error(format!("{option} needs NAME=VALUE"));
        return Err(d.into());
    };
    let value = value.trim();
    if unit_of(key.trim()) == Some(pair::UNIT) {
        return model(option, text, key.trim(), value);
    }
    let n = value.parse().map_err(|_| {
        let place = Place::option(option, text, value);
        let d = place.error(format!("{key} takes a whole number, not \"{value}\""));
        d.with_help(in_its_unit(key.trim(), value).unwrap_or_default())
    })?;
    Ok((key.trim(), n, Place::option(option, text, key)))
}

/// A model of ADIOS: two numbers, `9000000:7000` or, as in sysfs, `9000000 7000`.
fn model<'a>(
    option: &str,
    text: &'a str,
    key: &'a str,
    value: &str,
) -> Outcome<(&'a str, i64, Place)> {
    let n = pair::parse(&value.replacen(':', " ", 1)).ok_or_else(|| {
        let place = Place::option(option, text, value);
        place.error(format!("{key} takes BASE:SLOPE, not \"{value}\"")).with_help(format!(
            "BASE in ns, up to 90000000000, and SLOPE in ns for each KiB, below 100000000: {key}=9000000:7000"
        ))
    })?;
    Ok((key, n, Place::option(option, text, key)))
}

/// The unit of a tunable of the form `scheduler.name`.
fn unit_of(key: &str) -> Option<&'static str> {
    let (scheduler, name) = key.split_once('.')?;
    let family = registry::family(scheduler.split('@').next()?).ok()?;
    Some(family.tunables.iter().find(|t| t.name == name)?.unit)
}

/// How to write a value with a unit: a tunable has its own, as in sysfs.
fn in_its_unit(key: &str, value: &str) -> Option<String> {
    const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let time = |unit: &str| TIMES.iter().find(|t| t.0 == unit).map(|t| t.1);
    let (_, name) = key.split_once('.')?;
    let unit = unit_of(key)?;
    let (number, given) = value.split_at(value.find(|c: char| c.is_ascii_alphabetic())?);
    let number: f64 = number.trim().parse().ok()?;
    let same = time(given).zip(time(unit)).map(|(given, own)| number * given / own);
    Some(match same.filter(|n| n.fract() == 0.0) {
        Some(n) => format!("{name} is in {unit}: {key}={n}"),
        None => format!("{name} is in {unit}"),
    })
}

/// Settings of the queue. As with tunables, several values of one are compared.
fn queue(texts: &[String], e: &mut Experiment) -> Outcome {
    type Values = Vec<Placed<(String, i64)>>;
    let mut settings: Vec<(String, Values)> = Vec::new();
    for text in texts {
        let (key, value, place) = number("--queue", text)?;
        let setting = Placed::new((key.to_string(), value), place);
        match settings.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) if values.iter().any(|v| v.value.1 == value) => {}
            Some((_, values)) => values.push(setting),
            None => settings.push((key.into(), vec![setting])),
        }
    }
    for (_, values) in settings {
        if values.len() == 1 {
            e.queue.extend(values);
            continue;
        }
        if e.schedulers.is_empty() {
            e.schedulers = all_of(e);
        }
        let with = |s: &Placed<SchedulerRef>, value: &Placed<(String, i64)>| {
            let mut s = s.clone();
            s.value.queue.push(value.clone());
            s
        };
        let before = std::mem::take(&mut e.schedulers);
        e.schedulers = before.iter().flat_map(|s| values.iter().map(move |v| with(s, v))).collect();
    }
    Ok(())
}

/// `SCHEDULER.NAME=VALUE`, each: several values of one tunable are several schedulers to compare.
fn tunables(texts: &[String], e: &mut Experiment) -> Outcome {
    let mut keys: Vec<&str> = Vec::new();
    for text in texts {
        let key = number("--tunable", text)?.0;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    for key in keys {
        let same = |t: &&String| t.split_once('=').is_some_and(|(k, _)| k.trim() == key);
        let values: Vec<&String> = texts.iter().filter(same).collect();
        let before = std::mem::take(&mut e.schedulers);
        let mut variants = Vec::new();
        for text in &values {
            e.schedulers.clone_from(&before);
            tunable(text, e)?;
            variants.push(std::mem::take(&mut e.schedulers));
        }
        for (i, old) in before.iter().enumerate() {
            for (nth, variant) in variants.iter().enumerate() {
                // A scheduler without that tunable is listed once.
                if nth == 0
                    || variant[i].value != old.value && variant[i].value != variants[0][i].value
                {
                    e.schedulers.push(variant[i].clone());
                }
            }
        }
    }
    Ok(())
}

/// `SCHEDULER.NAME=VALUE`: for every chosen scheduler of that name or family.
fn tunable(text: &str, e: &mut Experiment) -> Outcome {
    let (key, value, place) = number("--tunable", text)?;
    let Some((scheduler, name)) = key.rsplit_once('.') else {
        let d = place.error("--tunable needs SCHEDULER.NAME=VALUE");
        return Err(d.with_help("such as mq-deadline.fifo_batch=2").into());
    };
    let mut found = false;
    for s in &mut e.schedulers {
        let family = s.value.name.split('@').next().unwrap_or_default();
        if s.value.name == scheduler || family == scheduler {
            s.value.tunables.push(Placed::new((name.into(), value), place.clone()));
            found = true;
        }
    }
    if found {
        return Ok(());
    }
    let names = || e.schedulers.iter().map(|s| s.value.name.as_str());
    let mut help = did_you_mean(scheduler, names());
    if e.schedulers.is_empty() {
        help = format!("choose it with --scheduler {scheduler}");
    } else if help.is_empty() {
        help = format!("chosen are {}", names().collect::<Vec<_>>().join(", "));
    }
    let message = format!("no scheduler \"{scheduler}\" is chosen");
    Err(Place::option("--tunable", text, scheduler).error(message).with_help(help).into())
}

/// The trials of an experiment.
pub(crate) fn plan(e: &Experiment) -> Outcome<Vec<Trial>> {
    plan_with(e, None)
}

/// The trials of an experiment; `size` is that of a file to be made.
pub(crate) fn plan_with(e: &Experiment, size: Option<u64>) -> Outcome<Vec<Trial>> {
    let trials = look_up(e, size)?;
    if trials.is_empty() {
        return Err(Diagnostic::file(&*e.name, "the experiment has no trial").into());
    }
    if let Some(goal) = &e.goal {
        let unknown = |help| {
            let d = goal.place.error(format!("goal = \"{}\": nothing measures it", goal.value));
            d.with_help(help)
        };
        iosched_results::answer::known(&goal.value, &trials).map_err(unknown)?;
    }
    Ok(trials)
}

fn look_up(e: &Experiment, size: Option<u64>) -> Outcome<Vec<Trial>> {
    // fio's $mb_memory is the memory of the machine that runs the job: the simulated one's, where there is one.
    let memory = e.backend.is_simulated().then_some(e.host.memory);
    let environment = files::Environment { cpus: e.cpus, memory };
    let sources = Sources {
        read: &files::text,
        job: &jobs::find,
        offered: &switch::offered,
        registry: Registry::builtin(),
        disk: &|name: &str| live::disk(name, size),
        env: &environment,
        is_trace: &replay::is_trace,
        trace: &replay::find,
    };
    replay::read(e)?;
    let kernel = e.backend.is_live();
    if kernel {
        for s in &e.schedulers {
            // Reported before anything runs, as something that the machine lacks.
            if let Some(gone) = switch::removed(s.value.name.split('@').next().unwrap_or_default())
            {
                return Err(gone.into());
            }
        }
    }
    let mut trials = iosched_experiment::plan(e, &sources)?;
    if kernel {
        let release = switch::running_kernel();
        trials.iter_mut().for_each(|t| t.id.kernel.clone_from(&release));
    }
    Ok(trials)
}

/// A device by name or file.
pub(crate) fn device(name: &str) -> Outcome<iosched_devices::DeviceSpec> {
    if is_path(name) {
        let mut spec = iosched_devices::DeviceSpec::from_toml(name, &files::required(name)?)?;
        spec.name = stem(name).into();
        return Ok(spec);
    }
    iosched_devices::catalogue::find(name).map_err(crate::fail::Failure::input)
}
