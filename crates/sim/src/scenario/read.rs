//! Reading a scenario file.

use std::sync::Arc;

use iosched_block::{KernelProfile, SchedulerChoice};
use iosched_experiment::source::{At, Read, Source};
use iosched_experiment::{Placed, path_of};
use iosched_schedulers::registry::{self, NameError, Registry};
use iosched_schedulers::unknown_help;
use iosched_schedulers::{Descriptor, Generation, KernelVersion, TunableError};
use iosched_types::units::nanos_from_ms;
use iosched_types::{Diagnostic, IoPrio, Nanos, Op};
use toml::de::DeTable;

use super::{Completes, Driver, MOST_REQUESTS, Scenario, Wanted, calls};

const TOP: &[&str] = &[
    "scheduler",
    "kernel",
    "merges",
    "driver_depth",
    "service_ms",
    "device",
    "pull_at_ms",
    "completes",
    "hz",
    "zone_sectors",
    "tunables",
    "switch",
    "request",
    "call",
];
const REQUEST: &[&str] =
    &["t_ms", "after", "op", "sector", "sectors", "pid", "sync", "prio", "exits"];
const SWITCH: &[&str] = &["t_ms", "scheduler", "tunables"];
/// Longest time a file may name: 27 hours. The sum over all requests still fits the clock.
const MOST_MS: f64 = 1e8;
/// Times in `pull_at_ms`.
const MOST_PULLS: usize = 1 << 20;
/// The newest profile. It runs where a scenario names no kernel.
const NEWEST: &str = "7.1";

pub(super) fn scenario(file: &str, text: &str, other: Option<&str>) -> Read<Scenario> {
    let src = Source { file, text };
    let root = src.parse()?;
    let root = root.get_ref();
    let calls = root.get_key_value("call");
    known(&src, root, calls.is_some())?;
    let Some(at) = root.get("scheduler") else {
        let d = Diagnostic::file(file, "a scenario names its scheduler");
        return Err(d.with_help("begin with: scheduler = \"mq-deadline\""));
    };
    let own = src.string(at, "scheduler")?;
    let mut kernel = kernel(&src, root, other.unwrap_or(&own))?;
    if let Some(at) = root.get("hz") {
        kernel.hz = src.within(at, "hz", 1..=10_000)? as u32;
    }
    let mut warnings = Vec::new();
    let scheduler = match other {
        None => choice(&src, root, at, &kernel)?,
        Some(name) => instead(&src, root, name, &kernel, &mut warnings)?,
    };
    let merges = root.get("merges").map_or(Ok(true), |at| src.boolean(at, "merges"))?;
    let driver = driver(&src, root)?;
    let (requests, calls) = match calls {
        None => (requests(&src, root, &mut warnings)?, None),
        Some((_, at)) => (Vec::new(), Some(Arc::new(calls::calls(&src, root, at)?))),
    };
    let switches = match other {
        None => switches(&src, root, &kernel, &scheduler, &driver)?,
        Some(_) => Vec::new(),
    };
    let zone_sectors = zones(&src, root, &requests)?;
    Ok(Scenario {
        kernel,
        scheduler,
        merges,
        driver,
        zone_sectors,
        switches,
        requests,
        calls,
        warnings,
    })
}

/// Keys of a scenario of requests, or of one of calls.
fn known(src: &Source, root: &DeTable, calls: bool) -> Read<()> {
    const REQUESTS_ONLY: [&str; 5] =
        ["request", "pull_at_ms", "completes", "switch", "zone_sectors"];
    let all: Vec<&str> = TOP.iter().chain(calls::KEYS).copied().collect();
    src.known(root, "a scenario", &all)?;
    let (others, with, ours) = match calls {
        true => (REQUESTS_ONLY.as_slice(), "[[call]]", "[[request]]"),
        false => (calls::KEYS, "[[request]]", "[[call]]"),
    };
    let mut wrong: Vec<_> =
        root.keys().filter(|k| others.contains(&k.get_ref().as_ref())).collect();
    wrong.sort_by_key(|k| k.span().start);
    match wrong.first() {
        None => Ok(()),
        Some(key) => {
            let message = format!("\"{}\" does not go with {with}", key.get_ref());
            let help = format!("it belongs to a scenario with {ours}; a scenario has one of both");
            Err(src.place(key.span()).error(message).with_help(help))
        }
    }
}

/// The scheduler named at `at` with the tunables of `table`.
fn choice(src: &Source, table: &DeTable, at: &At, kernel: &KernelProfile) -> Read<SchedulerChoice> {
    let name = src.string(at, "scheduler")?;
    let (descriptor, generation) =
        registry::resolve(&name, kernel.kernel_version()).map_err(|e| name_error(src, at, &e))?;
    let tunables = tunables(src, table, descriptor, generation)?;
    Ok(SchedulerChoice { descriptor, generation, tunables })
}

/// A scheduler that takes the place of the file's.
fn instead(
    src: &Source,
    root: &DeTable,
    name: &str,
    kernel: &KernelProfile,
    warnings: &mut Vec<Diagnostic>,
) -> Read<SchedulerChoice> {
    let place = "the command line";
    let (descriptor, generation) = registry::resolve(name, kernel.kernel_version())
        .map_err(|e| name_words(&e))
        .map_err(|(message, help)| Diagnostic::file(place, message).with_help(help))?;
    let own = root.get("scheduler").map(|at| src.string(at, "scheduler")).transpose()?;
    let family = |n: &str| n.split('@').next().unwrap_or_default().to_lowercase();
    let same = own.is_some_and(|o| family(&o) == family(name));
    let mut idle = |key: &str, why: &str| {
        if let Some((key, _)) = root.get_key_value(key) {
            let message = format!("[{}] has no effect under {name}: {why}", key.get_ref());
            warnings.push(src.place(key.span()).error(message));
        }
    };
    idle("switch", "the scheduler stays the same");
    if !same {
        idle("tunables", "they are those of another scheduler");
    }
    let tunables = if same { tunables(src, root, descriptor, generation)? } else { Vec::new() };
    Ok(SchedulerChoice { descriptor, generation, tunables })
}

fn switches(
    src: &Source,
    root: &DeTable,
    kernel: &KernelProfile,
    first: &SchedulerChoice,
    driver: &Driver,
) -> Read<Vec<(Nanos, SchedulerChoice)>> {
    let Some((key, at)) = root.get_key_value("switch") else { return Ok(Vec::new()) };
    if matches!(driver, Driver::Pull { .. }) {
        let message = "a driver that asks by hand cannot wait for a switch";
        return Err(src.place(key.span()).error(message).with_help("give service_ms or device"));
    }
    let Some(list) = at.get_ref().as_array() else {
        return Err(src.error(at, "switches are written as [[switch]] tables"));
    };
    let mut all = Vec::with_capacity(list.len());
    for at in list.iter() {
        let t = src.table(at, "switch")?;
        src.known(t, "[[switch]]", SWITCH)?;
        let Some(name) = t.get("scheduler") else {
            return Err(src.error(at, "a switch names its scheduler"));
        };
        let to = choice(src, t, name, kernel)?;
        if path_of(&to) != path_of(first) {
            let message = format!(
                "{} and {} live on different block layers",
                to.descriptor.name, first.descriptor.name
            );
            let help = "legacy or blk-mq is chosen when the machine starts, not by a switch";
            return Err(src.error(name, message).with_help(help));
        }
        all.push((t.get("t_ms").map_or(Ok(0), |at| ms(src, at, "t_ms"))?, to));
    }
    Ok(all)
}

/// The size of a zone, which no write may cross: a zoned device would refuse it.
fn zones(src: &Source, root: &DeTable, requests: &[Wanted]) -> Read<u64> {
    let Some(at) = root.get("zone_sectors") else { return Ok(0) };
    let size = src.within(at, "zone_sectors", 1..=1 << 40)? as u64;
    let crosses = |w: &&Wanted| {
        w.op == Op::Write && (w.sector + u64::from(w.sectors) - 1) / size != w.sector / size
    };
    match requests.iter().find(crosses) {
        Some(w) => {
            let d = w.place.error(format!("the write crosses the end of a zone of {size} sectors"));
            Err(d.with_help("split it, or choose another zone_sectors"))
        }
        None => Ok(size),
    }
}

/// Makes an error of a text. Advice after a semicolon becomes the help.
fn name_error(src: &Source, at: &At, e: &NameError) -> Diagnostic {
    let (message, help) = name_words(e);
    src.error(at, message).with_help(help)
}

fn name_words(e: &NameError) -> (String, String) {
    match e {
        NameError::Family { name, help } => (format!("unknown scheduler \"{name}\""), help.clone()),
        NameError::Generation { family, generation, known } => {
            (format!("{family} has no generation \"{generation}\""), format!("it has {known}"))
        }
        NameError::NotInKernel { family, kernel, known, hint } => {
            (format!("{family} does not exist in Linux {kernel}"), format!("{known}{hint}"))
        }
    }
}

/// The profile of the file; without one that of the generation named, else the newest that was measured.
fn kernel(src: &Source, root: &DeTable, scheduler: &str) -> Read<KernelProfile> {
    if let Some(at) = root.get("kernel") {
        let name = src.string(at, "kernel")?;
        return KernelProfile::find(&name).map_err(|e| {
            src.error(at, format!("unknown kernel \"{}\"", e.name)).with_help(e.help)
        });
    }
    let named =
        scheduler.contains('@').then(|| registry::resolve(scheduler, KernelVersion(6, 12, 0)));
    if let Some(Ok((_, generation))) = named {
        let last = generation.last.unwrap_or(KernelVersion(u16::MAX, 0, 0));
        let covers = |p: &KernelProfile| generation.covers(p.kernel_version());
        let covered = KernelProfile::preferred().find(covers);
        let before = || KernelProfile::preferred().find(|p| p.kernel_version() <= last);
        if let Some(p) = covered.or_else(before) {
            return Ok(p);
        }
    }
    KernelProfile::find(NEWEST).map_err(|e| Diagnostic::file(src.file, e.to_string()))
}

fn tunables(
    src: &Source,
    root: &DeTable,
    descriptor: &Descriptor,
    generation: &Generation,
) -> Read<Vec<(String, i64)>> {
    let Some(at) = root.get("tunables") else { return Ok(Vec::new()) };
    let table = src.table(at, "tunables")?;
    let mut in_order: Vec<_> = table.iter().collect();
    in_order.sort_by_key(|(key, _)| key.span().start);
    let mut all = Vec::new();
    for (key, at) in in_order {
        let name = key.get_ref();
        let known = descriptor.tunables_of(generation.index).any(|t| t.name == name.as_ref());
        let value = if known { src.integer(at, name)? } else { 0 };
        match Registry::builtin().check_tunable(descriptor, generation.index, name, value) {
            Ok(()) => all.push((name.to_string(), value)),
            Err(TunableError::Unknown { scheduler, name, near, owners, known }) => {
                let message = format!("{scheduler} has no tunable \"{name}\"");
                let help = unknown_help(&near, &owners, &known);
                return Err(src.place(key.span()).error(message).with_help(help));
            }
            Err(e) => return Err(src.error(at, e.to_string())),
        }
    }
    Ok(all)
}

pub(super) fn ms(src: &Source, at: &At, key: &str) -> Read<Nanos> {
    let v = src.number(at, key)?;
    match nanos_from_ms(v).filter(|_| v <= MOST_MS) {
        Some(ns) => Ok(ns),
        None if v < 0.0 => Err(src.error(at, format!("{key} = {v} is negative"))),
        None => Err(src.error(at, format!("{key} = {v} is too long: at most {MOST_MS} ms"))),
    }
}

fn depth(src: &Source, root: &DeTable) -> Read<Option<u32>> {
    let Some(at) = root.get("driver_depth") else { return Ok(None) };
    Ok(Some(src.within(at, "driver_depth", 1..=65_536)? as u32))
}

fn driver(src: &Source, root: &DeTable) -> Read<Driver> {
    const WAYS: [&str; 3] = ["service_ms", "device", "pull_at_ms"];
    let mut given: Vec<_> = WAYS.iter().filter_map(|k| root.get_key_value(*k)).collect();
    given.sort_by_key(|(key, _)| key.span().start);
    let &[(key, at), ref more @ ..] = given.as_slice() else {
        let d = Diagnostic::file(src.file, "nothing says when the driver takes a request");
        return Err(d.with_help("give one of service_ms, device, pull_at_ms"));
    };
    if let Some((second, _)) = more.first() {
        let message =
            format!("\"{}\" and \"{}\" exclude one another", key.get_ref(), second.get_ref());
        return Err(src.place(second.span()).error(message).with_help("give one of them"));
    }
    let pulls = key.get_ref() == "pull_at_ms";
    if let Some((other, _)) = root.get_key_value("completes").filter(|_| !pulls) {
        let message = "\"completes\" belongs to \"pull_at_ms\"";
        return Err(src.place(other.span()).error(message));
    }
    let depth = depth(src, root)?;
    match key.get_ref().as_ref() {
        "service_ms" => {
            let time = ms(src, at, "service_ms")?;
            if time == 0 {
                let help =
                    "for commands that take no time: pull_at_ms with completes = \"at-once\"";
                return Err(src.error(at, "service_ms must be above 0").with_help(help));
            }
            Ok(Driver::Service { time, depth })
        }
        "device" => {
            let name = Placed::new(src.string(at, "device")?, src.place(at.span()));
            Ok(Driver::Device { name, depth })
        }
        _ => pull(src, root, at, depth.unwrap_or(1)),
    }
}

fn pull(src: &Source, root: &DeTable, at: &At, depth: u32) -> Read<Driver> {
    let list = src.list(at);
    if list.is_empty() || list.len() > MOST_PULLS {
        let message = format!("pull_at_ms names 1 to {MOST_PULLS} times, not {}", list.len());
        return Err(src.error(at, message));
    }
    let mut times = Vec::with_capacity(list.len());
    for at in list {
        times.push(ms(src, at, "pull_at_ms")?);
    }
    times.sort_unstable();
    let completes = match root.get("completes") {
        None => Completes::AtOnce,
        Some(at) => match src.string(at, "completes")?.as_str() {
            "at-once" => Completes::AtOnce,
            "never" => Completes::Never,
            other => {
                let message = format!("completes = \"{other}\" means nothing");
                return Err(src.error(at, message).with_help("\"at-once\" or \"never\""));
            }
        },
    };
    Ok(Driver::Pull { at: times, completes, depth })
}

fn requests(src: &Source, root: &DeTable, warnings: &mut Vec<Diagnostic>) -> Read<Vec<Wanted>> {
    let Some(at) = root.get("request") else {
        let d = Diagnostic::file(src.file, "a scenario without requests");
        return Err(d.with_help("add [[request]] or [[call]] tables"));
    };
    let Some(list) = at.get_ref().as_array() else {
        return Err(src.error(at, "requests are written as [[request]] tables"));
    };
    if list.is_empty() || list.len() > MOST_REQUESTS {
        let message = format!("a scenario has 1 to {MOST_REQUESTS} requests, not {}", list.len());
        return Err(src.error(at, message));
    }
    let mut all = Vec::with_capacity(list.len());
    for at in list.iter() {
        all.push(request(src, at, all.len(), warnings)?);
    }
    Ok(all)
}

fn request(src: &Source, at: &At, index: usize, warnings: &mut Vec<Diagnostic>) -> Read<Wanted> {
    let t = src.table(at, "request")?;
    src.known(t, "[[request]]", REQUEST)?;
    let op_at = t.get("op").ok_or_else(|| {
        src.error(at, format!("request {index} has no \"op\"")).with_help("R, W, D or F")
    })?;
    let op = op(src, op_at)?;
    let (sector, sectors) = extent(src, t, at, op, index)?;
    let sync = match t.get("sync") {
        None => matches!(op, Op::Read | Op::Flush),
        Some(at) => {
            let sync = src.boolean(at, "sync")?;
            if !sync && matches!(op, Op::Read | Op::Flush) {
                let d = src.error(at, "sync = false has no effect here");
                warnings.push(
                    d.with_help("the block layer takes every read and flush for synchronous"),
                );
            }
            sync
        }
    };
    let prio = match t.get("prio") {
        None => IoPrio::default(),
        Some(at) => {
            let word = src.string(at, "prio")?;
            IoPrio::parse(&word).ok_or_else(|| {
                let d = src.error(at, format!("unknown priority \"{word}\""));
                d.with_help("rt/0 to rt/7, be/0 to be/7, idle")
            })?
        }
    };
    let pid = |at| src.within(at, "pid", 0..=i64::from(u32::MAX));
    Ok(Wanted {
        at: t.get("t_ms").map_or(Ok(0), |at| ms(src, at, "t_ms"))?,
        after: t.get("after").map(|at| after(src, at, index)).transpose()?,
        op,
        sector,
        sectors,
        pid: t.get("pid").map_or(Ok(1), pid)? as u32,
        sync,
        prio,
        exits: t.get("exits").map_or(Ok(false), |at| src.boolean(at, "exits"))?,
        place: src.place(t.get("sector").unwrap_or(op_at).span()),
    })
}

fn op(src: &Source, at: &At) -> Read<Op> {
    let word = src.string(at, "op")?;
    let mut letters = word.chars();
    match (letters.next().and_then(Op::from_letter), letters.next()) {
        (Some(op), None) => Ok(op),
        _ => Err(src
            .error(at, format!("unknown operation \"{word}\""))
            .with_help("R (read), W (write), D (discard) or F (flush)")),
    }
}

fn after(src: &Source, at: &At, index: usize) -> Read<usize> {
    let earlier = src.integer(at, "after")?;
    usize::try_from(earlier).ok().filter(|e| *e < index).ok_or_else(|| {
        let d = src.error(at, format!("after = {earlier} is no request before this one"));
        d.with_help(match index {
            0 => "this is the first request; requests count from 0".into(),
            _ => format!("requests count from 0, so 0 to {} are possible", index - 1),
        })
    })
}

/// Place and length; a flush has neither.
fn extent(src: &Source, t: &DeTable, at: &At, op: Op, index: usize) -> Read<(u64, u32)> {
    const MOST_SECTOR: i64 = (1 << 54) - 1;
    let number = |key, default: Option<i64>, range| match (t.get(key), default) {
        (Some(at), _) => src.within(at, key, range),
        (None, Some(default)) => Ok(default),
        (None, None) => Err(src.error(at, format!("request {index} has no \"{key}\""))),
    };
    if op == Op::Flush {
        let sector = number("sector", Some(0), 0..=MOST_SECTOR)?;
        if let Some(at) = t.get("sectors")
            && src.integer(at, "sectors")? != 0
        {
            let d = src.error(at, "a flush carries no sectors");
            return Err(d.with_help("leave \"sectors\" out"));
        }
        return Ok((sector as u64, 0));
    }
    let sector = number("sector", None, 0..=MOST_SECTOR)?;
    let sectors = number("sectors", Some(8), 1..=i64::from(u32::MAX) / 512)?;
    Ok((sector as u64, sectors as u32))
}
