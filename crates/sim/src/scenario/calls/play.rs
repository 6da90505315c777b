//! Playing a scenario of calls on a simulated machine.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use iosched_block::{Room, TraceEvent};
use iosched_devices::DeviceSpec;
use iosched_devices::params::FixedParams;
use iosched_devices::spec::Model;
use iosched_experiment::Trial;
use iosched_host::HostError;
use iosched_host::programs::{Cause, Identity, NotedBio, Programs, Seen, WaitsFor, What, Who};
use iosched_schedulers::TaskInfo;
use iosched_types::{Bytes, Flags, Nanos, Op};
use iosched_vfs::kernel::{Done, Event};
use iosched_workloads::fio::JobSet;

use super::super::run::ScenarioError;
use super::super::{Driver, Explanation, Scenario};
use super::program::{measured, preparation};
use super::shown::{CallShown, CallsShown, FoundShown, ShownBio, Step, StepKind, length, range};
use super::{Calls, Wanted, WantedCall};
use crate::mount;
use crate::stack::stack;

/// A device that is nothing but a service time.
const CAPACITY: Bytes = 1 << 40;
/// Commands that it takes at once, unless the scenario says so.
const DEPTH: u32 = 32;
/// A page.
const PAGE: Bytes = 4096;

/// Plays a scenario of calls.
pub(in super::super) fn play(
    scenario: &Scenario,
    calls: &Arc<Calls>,
    lookup: &dyn Fn(&str) -> Result<DeviceSpec, String>,
) -> Result<Explanation, ScenarioError> {
    let mut host = machine(scenario, calls, lookup)?;
    let go_on = &mut |_| ControlFlow::Continue(());
    if !calls.files.is_empty() {
        host.prepare(preparation(calls), go_on).map_err(|e| prepared(calls, e))?;
        if calls.cold { host.mount_cold() } else { host.mount_anew() }
    }
    host.explain();
    host.run(measured(calls), go_on)?;
    host.until_all_end(go_on)?;
    let scheduler = scenario.scheduler.descriptor.name;
    let story = Story::new(&host, calls);
    let shown = story.tell(host.take_seen(), trace(&mut host), scheduler);
    Ok(Explanation { calls: Some(shown), ..Explanation::default() })
}

/// The files did not fit, most likely.
fn prepared(calls: &Calls, e: HostError) -> ScenarioError {
    match e {
        HostError::Program { errno, .. } => {
            calls.place.error(format!("the files of [[file]] cannot be made: {errno}")).into()
        }
        other => other.into(),
    }
}

fn machine(
    scenario: &Scenario,
    calls: &Calls,
    lookup: &dyn Fn(&str) -> Result<DeviceSpec, String>,
) -> Result<Programs, ScenarioError> {
    let device = match &scenario.driver {
        Driver::Device { name, depth } => {
            let mut spec = lookup(&name.value).map_err(|e| name.place.error(e))?;
            spec.queue_depth = depth.unwrap_or(spec.queue_depth);
            spec
        }
        Driver::Service { time, depth } => constant(*time, depth.unwrap_or(DEPTH)),
        Driver::Pull { .. } => {
            let d = calls.place.error("a driver that asks by hand serves no system calls");
            return Err(d.with_help("give service_ms or device").into());
        }
    };
    let capacity = device.capacity();
    let jobs = JobSet::default();
    let mut trial = Trial::new(device, scenario.scheduler.clone(), scenario.kernel.clone(), jobs);
    trial.host = calls.host.clone();
    trial.settings = calls.settings.clone();
    if !scenario.merges {
        trial.settings.push(("nomerges".into(), 2));
    }
    if let Some(misfit) = trial.host.misfit(capacity, trial.kernel.kernel_version()) {
        return Err(calls.place.error(misfit.message).with_help(misfit.help).into());
    }
    let root = [iosched_schedulers::Cgroup::default()];
    let queue = stack(&trial, &[], &root);
    let queue = queue.map_err(|e| calls.place.error(e.to_string()))?;
    let files = match calls.on_device() {
        true => mount::device_file(&trial, capacity, &queue),
        false => mount::files(&trial, capacity, &queue).0,
    };
    let mut host = Programs::new(queue, files, None);
    if host.mount().is_none() {
        let d = calls.place.error(format!(
            "on Linux {} files have no page cache here, so there is nothing to show",
            scenario.kernel.version
        ));
        return Err(d.with_help("choose another kernel, or another file system").into());
    }
    let named = calls.tasks.iter().map(|c| Identity {
        info: TaskInfo { name: c.name.clone(), nice: c.nice, prio: c.prio, ..TaskInfo::default() },
        ..Identity::default()
    });
    host.identify(std::iter::once(Identity::default()).chain(named).collect());
    Ok(host)
}

fn constant(time: Nanos, depth: u32) -> DeviceSpec {
    let model = Model::Fixed(FixedParams {
        cap: CAPACITY,
        depth: 0,
        flush_ns: time,
        lat_ns: time,
        par: depth.into(),
    });
    DeviceSpec {
        queue_depth: depth,
        write_cache: true,
        max_hw_sectors_kb: 1 << 15,
        ..DeviceSpec::new("constant", model)
    }
}

fn trace(host: &mut Programs) -> Vec<Dispatch> {
    let traces = host.queue.take_traces(&host.tl);
    let array = traces.len() > 1;
    let mut all = Vec::new();
    for (leg, event) in
        traces.into_iter().enumerate().flat_map(|(i, t)| t.events.into_iter().map(move |e| (i, e)))
    {
        let TraceEvent::Dispatch { issue, bios, reason } = event else { continue };
        let leg = if array { format!("leg {leg} ") } else { String::new() };
        let bios = match array {
            true => bios.iter().filter_map(|b| Some(host.queue.routed(*b)?.bio)).collect(),
            false => bios,
        };
        let request = match issue.op {
            Op::Flush => format!("{leg}flush"),
            op => format!("{leg}{}{}+{}", op.letter(), issue.sector, issue.sectors),
        };
        all.push(Dispatch { at: issue.t, request, bios, reason });
    }
    // Each leg in its order; of one disk they are in order.
    all.sort_by_key(|d| d.at);
    all
}

/// A request that left the scheduler.
struct Dispatch {
    at: Nanos,
    request: String,
    /// As the block layer knew them.
    bios: Vec<u32>,
    reason: String,
}

impl Calls {
    /// Whether the calls are on the device itself.
    fn on_device(&self) -> bool {
        let on = |path: &String| path.starts_with("/dev/");
        self.calls.iter().any(|c| matches!(&c.what, Wanted::Open { path, .. } if on(path)))
    }
}

/// The calls of a task and their repetitions that are to come, and the one under way.
type Turns = (std::vec::IntoIter<(usize, u64)>, Option<usize>);

/// From what the machine noted to what people read.
struct Story<'a> {
    calls: &'a Calls,
    threads: [&'static str; 6],
    files: BTreeMap<u32, String>,
    bios: Vec<ShownBio>,
    noted: Vec<NotedBio>,
    shown: Vec<CallShown>,
    /// Of each task: which call is next, and its repetition; the one under way.
    next: Vec<Turns>,
}

impl<'a> Story<'a> {
    fn new(host: &Programs, calls: &'a Calls) -> Story<'a> {
        let journal = host.mount().map_or("journal", |m| m.volume().journal_name());
        let all = calls.calls.iter().enumerate();
        let of = |task: usize| -> Vec<(usize, u64)> {
            let own = all.clone().filter(|(_, c)| c.task == task);
            own.flat_map(|(i, c)| (0..c.times).map(move |n| (i, n))).collect()
        };
        let next = (0..calls.tasks.len()).map(|t| (of(t).into_iter(), None)).collect();
        Story {
            calls,
            threads: ["flusher", journal, "evict", "kworker", "end-io", "end-log"],
            files: BTreeMap::new(),
            bios: Vec::new(),
            noted: Vec::new(),
            shown: Vec::new(),
            next,
        }
    }

    fn tell(mut self, seen: Seen, dispatches: Vec<Dispatch>, scheduler: &str) -> CallsShown {
        self.files = seen.names;
        self.bios = seen.bios.iter().map(|b| self.bio(b)).collect();
        self.noted = seen.bios;
        let mut steps = Vec::new();
        for h in &seen.happenings {
            let task = match h.who {
                Who::Task(0) => continue,
                Who::Task(t) => Some(t as usize - 1),
                Who::Thread(_) => None,
            };
            let Some((call, kind)) = self.step(h.at, task, h.who, &h.what) else { continue };
            steps.push(Step { t_ns: h.at, who: self.name(h.who), call, kind });
        }
        let known = &seen.known_as;
        let of = |id: &u32, at: Nanos| {
            let before = known.iter().rev().find(|(t, k, _)| k == id && *t <= at);
            before.map(|(_, _, number)| *number as usize)
        };
        steps.extend(dispatches.into_iter().map(|d| {
            let mut bios: Vec<usize> = d.bios.iter().filter_map(|id| of(id, d.at)).collect();
            bios.dedup();
            let kind = StepKind::Dispatches { request: d.request, bios, reason: d.reason };
            Step { t_ns: d.at, who: scheduler.into(), call: None, kind }
        }));
        steps.sort_by_key(|s| s.t_ns);
        CallsShown { calls: self.shown, bios: self.bios, steps, cut: seen.cut }
    }

    fn name(&self, who: Who) -> String {
        match who {
            Who::Thread(n) => self.threads[n as usize % 6].into(),
            Who::Task(0) => "init".into(),
            Who::Task(t) => self
                .calls
                .tasks
                .get(t as usize - 1)
                .map_or_else(|| format!("task {t}"), |c| c.name.clone()),
        }
    }

    fn file(&self, file: u32) -> String {
        self.files.get(&file).cloned().unwrap_or_else(|| format!("file {file}"))
    }

    fn bio(&self, b: &NotedBio) -> ShownBio {
        let pages = match b.purpose {
            Done::Read { file, from, to } | Done::Written { file, from, to } => {
                Some((self.file(file), from * PAGE, (to - from) * PAGE))
            }
            Done::Metadata { .. } | Done::Copied { .. } | Done::Logged | Done::Other => None,
        };
        let class = (b.class != "-").then(|| b.class.to_string());
        let (sector, sectors, flags) = (b.sector, b.sectors, letters(b.op, b.flags));
        ShownBio { by: self.name(b.by), flags, sector, sectors, pages, class }
    }

    /// A happening as a step; `None` for a sleep between two calls.
    fn step(
        &mut self,
        at: Nanos,
        task: Option<usize>,
        who: Who,
        what: &What,
    ) -> Option<(Option<usize>, StepKind)> {
        let under_way = task.and_then(|t| self.next.get(t)).and_then(|n| n.1);
        let kind = match what {
            What::Calls("sleep") => return None,
            What::Calls(_) => {
                let (queue, now) = self.next.get_mut(task?)?;
                let (call, n) = queue.next()?;
                *now = Some(self.shown.len());
                let wanted = &self.calls.calls[call];
                self.shown.push(CallShown {
                    task: self.calls.tasks[wanted.task].name.clone(),
                    call: words(wanted, n),
                    t_ns: at,
                    to_ns: None,
                    answer: None,
                    error: None,
                });
                return Some((Some(self.shown.len() - 1), StepKind::Calls));
            }
            What::Returns(answer) => {
                let i = self.next.get_mut(task?)?.1.take()?;
                let call = &mut self.shown[i];
                call.to_ns = Some(at);
                match answer {
                    Ok(n) => call.answer = Some(*n),
                    Err(e) => call.error = Some(e.to_string()),
                }
                return Some((Some(i), StepKind::Returns));
            }
            What::Finds(_, found) => StepKind::Finds(FoundShown {
                pages: found.pages,
                absent: found.absent(),
                cached: found.cached,
                being_read: found.being_read,
                dirty: found.dirty,
                writeback: found.writeback,
                mark: found.mark,
            }),
            What::Submits(n) => StepKind::Submits { bio: *n as usize },
            What::Waits(what) => StepKind::Sleeps {
                until: self.waits(at, what),
                idle: task.is_none() && is_idle(what),
            },
            What::Woken(cause) => StepKind::Woken { by: self.cause(who, *cause) },
        };
        Some((under_way, kind))
    }

    fn bios_in_words(&self, list: &[u32]) -> String {
        match list {
            [one] => format!("its bio {}", self.bios[*one as usize].name()),
            more => format!("its {} bios", more.len()),
        }
    }

    fn waits(&self, at: Nanos, what: &WaitsFor) -> String {
        match what {
            WaitsFor::Page { file, page } => {
                let covers = |b: &&NotedBio| match b.purpose {
                    Done::Read { file: f, from, to } | Done::Written { file: f, from, to } => {
                        f == *file && (from..to).contains(page)
                    }
                    Done::Metadata { .. } | Done::Copied { .. } | Done::Logged | Done::Other => {
                        false
                    }
                };
                let by = self.noted.iter().rev().find(covers).map_or("", |b| match b.purpose {
                    Done::Read { .. } => ", locked while it is read",
                    _ => ", locked while it is written",
                });
                format!("page {page} of {}{by}", self.file(*file))
            }
            WaitsFor::Bios(list) => self.bios_in_words(list),
            WaitsFor::Pause(until) => {
                let pause = super::super::explanation::ms(until.saturating_sub(at));
                format!(
                    "throttled for {pause} ms, as it dirties memory faster than the disk writes"
                )
            }
            WaitsFor::Others(until) => {
                let pause = super::super::explanation::ms(until.saturating_sub(at));
                format!("others may join its commit for {pause} ms")
            }
            WaitsFor::Room(room) => room_in_words(*room).into(),
            WaitsFor::Event(event, until) => {
                let what = self.event(*event);
                match until {
                    Some(t) => format!("{what}, or {} ms", super::super::explanation::ms(*t)),
                    None => what,
                }
            }
        }
    }

    fn event(&self, event: Event) -> String {
        match event {
            Event::Committed(n) => format!("the commit of transaction {n}"),
            Event::CommitEnded => "the end of a commit".into(),
            Event::Flusher
            | Event::Journal
            | Event::Orphans
            | Event::Ended
            | Event::Push
            | Event::Logged => "something to do".into(),
            Event::Pushed => "a checkpoint that is made up".into(),
            Event::Turn(_) => "its turn to have a lock".into(),
            Event::Synced(_) => "the flusher, which writes all that is dirty".into(),
            Event::Room => "room in the journal, or the end of changes under way".into(),
            Event::Uncongested => "a request of a disk that is not congested".into(),
            Event::Buffer(_) => "a block of metadata that is being read or written".into(),
            Event::Home(_) => "a block of metadata that is being written to its own place".into(),
        }
    }

    fn cause(&self, who: Who, cause: Cause) -> String {
        match cause {
            Cause::Bio(n) => {
                let owner = match self.noted[n as usize].by {
                    by if by == who => String::new(),
                    by => format!("{}'s ", self.name(by)),
                };
                format!("{owner}{} is done", self.bios[n as usize].name())
            }
            Cause::Time => "its time has come".into(),
            Cause::Room => "there is room in the queue".into(),
            Cause::Who(other) if other == who => "of its own".into(),
            Cause::Who(other) => format!("woken by {}", self.name(other)),
        }
    }
}

fn room_in_words(room: Room) -> &'static str {
    match room {
        Room::Tag => "a tag",
        Room::Mark => "the array, which is being marked dirty",
        Room::Request => "a request of the queue",
        Room::Throttle => "the writeback throttle (wbt): too many writes are under way",
        Room::Switch => "another scheduler, which takes over",
    }
}

/// Whether a kernel thread that waits for this has nothing to do.
fn is_idle(what: &WaitsFor) -> bool {
    use Event::{Flusher, Journal, Orphans, Push};
    matches!(what, WaitsFor::Event(Flusher | Journal | Orphans | Push, _))
}

/// As the block trace prints it.
fn letters(op: Op, flags: Flags) -> String {
    let mut text = String::new();
    if flags.has(Flags::PREFLUSH) {
        text.push('F');
    }
    text.push(if op == Op::Flush { 'W' } else { op.letter() });
    for (flag, letter) in
        [(Flags::FUA, 'F'), (Flags::RAHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::META, 'M')]
    {
        if flags.has(flag) {
            text.push(letter);
        }
    }
    text
}

/// The nth repetition of a call, in words.
fn words(call: &WantedCall, n: u64) -> String {
    let whole = |len: &Bytes| if *len == 0 { String::new() } else { length(*len) };
    let place = match &call.what {
        Wanted::Pread { at, len, .. }
        | Wanted::Pwrite { at, len, .. }
        | Wanted::Fallocate { at, len, .. } => range(call.moved(*at, n), *len),
        Wanted::Advise { at: 0, len: 0, .. } | Wanted::SyncRange { at: 0, len: 0, .. } => {
            String::new()
        }
        Wanted::Advise { at, len, .. } => range(*at, *len),
        Wanted::SyncRange { at, len, .. } => range(call.moved(*at, n), *len),
        Wanted::Load { at, .. } | Wanted::Store { at, .. } => {
            format!("at {}", length(call.moved(*at, n)))
        }
        Wanted::Truncate { len, .. } => length(*len),
        Wanted::Read { len, .. }
        | Wanted::Write { len, .. }
        | Wanted::Copy { len, .. }
        | Wanted::Map { len, .. } => whole(len),
        _ => String::new(),
    };
    format!("{} {place}", call.label).trim_end().to_string()
}
