//! Playing a scenario on a real request queue.

use std::collections::{BTreeMap, VecDeque};

use iosched_block::profile::{PlugKind, SchedulerTags};
use iosched_block::{
    DiskId, Event, Issue, Queue, QueueConfig, SchedulerChoice, Stack, Submit, SwitchError,
    Timeline, TraceEvent,
};
use iosched_devices::DeviceSpec;
use iosched_engine::World;
use iosched_experiment::path_of;
use iosched_host::HostError;
use iosched_schedulers::{TaskInfo, TunableError};
use iosched_types::{Bio, BioId, Diagnostic, Flags, Nanos, Op, TaskId};

use super::explanation::{Dispatched, Explanation, Idle, Life, Switched};
use super::target::{Target, targets};
use super::{Driver, Scenario, Wanted, calls};

/// After this many events without progress the remaining requests count as pending: a scheduler that holds requests
/// back for ever keeps re-arming its timers.
const PATIENCE: u32 = 100_000;

/// Why a scenario could not be played.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Something the file says does not fit the device.
    #[error("{0}")]
    Text(Box<Diagnostic>),
    /// A tunable does not fit the queue.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// The calls did not come to their end.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl From<SwitchError> for ScenarioError {
    fn from(e: SwitchError) -> Self {
        match e {
            SwitchError::Tunable(e) => ScenarioError::Tunable(e),
            SwitchError::Path { .. } => Diagnostic::file("the scenario", e.to_string()).into(),
        }
    }
}

impl From<Diagnostic> for ScenarioError {
    fn from(d: Diagnostic) -> Self {
        ScenarioError::Text(Box::new(d))
    }
}

/// Plays a scenario. `lookup` finds a device by name or file; its error is shown at the name.
///
/// # Errors
/// See [`ScenarioError`].
pub fn run(
    scenario: &Scenario,
    lookup: &dyn Fn(&str) -> Result<DeviceSpec, String>,
) -> Result<Explanation, ScenarioError> {
    if let Some(calls) = &scenario.calls {
        return calls::play(scenario, calls, lookup);
    }
    let pids = pids(scenario);
    let mut queue = queue(scenario, &pids, lookup)?;
    queue.explain();
    if matches!(scenario.driver, Driver::Pull { .. }) {
        queue.pull_by_hand();
    }
    let mut play = Play::new(scenario, queue, &pids);
    play.run();
    match play.refused.take() {
        Some(e) => Err(e.into()),
        None => Ok(play.explanation(&pids)),
    }
}

/// Processes in the order in which the file names them.
fn pids(scenario: &Scenario) -> Vec<u32> {
    let mut seen = BTreeMap::new();
    let mut all = Vec::new();
    for w in &scenario.requests {
        seen.entry(w.pid).or_insert_with(|| all.push(w.pid));
    }
    all
}

fn queue(
    scenario: &Scenario,
    pids: &[u32],
    lookup: &dyn Fn(&str) -> Result<DeviceSpec, String>,
) -> Result<Stack, ScenarioError> {
    let (targets, array) = targets(scenario, lookup)?;
    let mut profile = scenario.kernel.clone();
    // Each request goes straight to the scheduler. None waits for room, and no process is throttled. The room is large
    // enough for limits that are a share of it (an eighth for BFQ's asynchronous ones).
    let room = 1024 + 16 * scenario.requests.len() as u32;
    profile.plug.kind = PlugKind::Task;
    // The driver asks only while it has room: the order is the scheduler's alone.
    profile.legacy.look_ahead = false;
    profile.nr_requests = room;
    profile.mq.scheduler_tags = SchedulerTags::Exactly(room);
    profile.mq.wbt = false;
    let task = |pid: &u32| {
        let first = scenario.requests.iter().find(|w| w.pid == *pid);
        let prio = first.map_or_else(Default::default, |w| w.prio);
        TaskInfo { pid: *pid, name: format!("pid {pid}"), prio, ..TaskInfo::default() }
    };
    let settings = if scenario.merges { Vec::new() } else { vec![("nomerges".into(), 2)] };
    let config = |target: Target| QueueConfig {
        disk: DiskId::default(),
        profile: profile.clone(),
        path: path_of(&scenario.scheduler),
        scheduler: scenario.scheduler.clone(),
        device: target.device,
        queue_depth: target.depth,
        at_once: target.at_once,
        hw_queues: 1,
        rotational: target.rotational,
        write_cache: target.write_cache,
        fua: target.fua,
        budget: target.budget,
        max_hw_sectors_kb: target.max_hw_sectors_kb,
        zone_sectors: scenario.zone_sectors,
        settings: settings.clone(),
        tasks: pids.iter().map(task).collect(),
        cgroups: Vec::new(),
        cpus: 1,
        tag_start: 0,
    };
    let mut legs: Vec<QueueConfig> = targets.into_iter().map(config).collect();
    Ok(match array {
        Some(array) => Stack::array(legs, &array)?,
        None => Queue::new(legs.swap_remove(0))?.into(),
    })
}

/// A scenario being played.
struct Play<'a> {
    wanted: &'a [Wanted],
    /// Events numbered behind the requests.
    switches: &'a [(Nanos, SchedulerChoice)],
    task: Vec<TaskId>,
    queue: Stack,
    tl: Timeline,
    /// An ideal driver, which asks at every completion.
    asks: bool,
    /// Requests that wait for each request's completion.
    followers: Vec<Vec<usize>>,
    /// Pieces of each request that are not complete.
    pieces: Vec<u32>,
    /// Whether the process of a request with `exits` has ended.
    exited: Vec<bool>,
    /// Bios each process has to submit, the first of which may be blocked.
    blocked: Vec<VecDeque<Bio>>,
    pulls: VecDeque<Nanos>,
    /// When each request came, and when it was done.
    came: Vec<Option<Nanos>>,
    finished: Vec<Option<Nanos>>,
    unfinished: usize,
    /// Insertions with a known time that has not come.
    to_come: usize,
    idle_events: u32,
    /// The first switch that cannot be.
    refused: Option<SwitchError>,
}

impl<'a> Play<'a> {
    fn new(scenario: &'a Scenario, queue: Stack, pids: &[u32]) -> Self {
        let wanted = &scenario.requests;
        let by_pid: BTreeMap<u32, TaskId> =
            pids.iter().enumerate().map(|(i, p)| (*p, i as TaskId)).collect();
        let mut tl = Timeline::default();
        let mut followers = vec![Vec::new(); wanted.len()];
        for (i, w) in wanted.iter().enumerate() {
            match w.after {
                Some(first) => followers[first].push(i),
                None => tl.events.push(w.at, Event::Host(i as u64)),
            }
        }
        for (n, (at, _)) in scenario.switches.iter().enumerate() {
            tl.events.push(*at, Event::Host((wanted.len() + n) as u64));
        }
        let to_come = tl.events.len();
        let pulls = match &scenario.driver {
            Driver::Pull { at, .. } => at.iter().copied().collect(),
            Driver::Service { .. } | Driver::Device { .. } => VecDeque::new(),
        };
        Play {
            task: wanted.iter().map(|w| by_pid[&w.pid]).collect(),
            queue,
            tl,
            asks: matches!(scenario.driver, Driver::Service { .. }),
            followers,
            pieces: vec![0; wanted.len()],
            exited: vec![false; wanted.len()],
            blocked: vec![VecDeque::new(); pids.len()],
            pulls,
            came: vec![None; wanted.len()],
            finished: vec![None; wanted.len()],
            unfinished: wanted.len(),
            to_come,
            idle_events: 0,
            refused: None,
            switches: &scenario.switches,
            wanted,
        }
    }

    fn run(&mut self) {
        let by_hand = !self.pulls.is_empty();
        while self.unfinished > 0 && (self.to_come > 0 || self.idle_events < PATIENCE) {
            let pull = self.pulls.front().copied();
            if by_hand && pull.is_none() && self.device_next() > self.tl.now {
                return;
            }
            match (self.next(), pull) {
                (Some(at), pull) if pull.is_none_or(|p| at <= p) => self.turn(at),
                (_, Some(at)) => {
                    self.tl.now = at;
                    self.pulls.pop_front();
                    self.queue.pull(&mut self.tl);
                }
                (_, None) => return,
            }
            self.exits();
            self.collect();
        }
    }

    /// A request comes, or another scheduler.
    fn user_event(&mut self, n: usize) {
        self.to_come -= 1;
        let Some(n) = n.checked_sub(self.wanted.len()) else { return self.insert(n) };
        if let Err(e) = self.queue.switch(&mut self.tl, &self.switches[n].1) {
            self.refused = self.refused.take().or(Some(e));
        }
    }

    fn insert(&mut self, i: usize) {
        self.came[i] = Some(self.tl.now);
        let w = &self.wanted[i];
        let flags = match (w.op, w.sync) {
            (Op::Flush, _) => Flags(Flags::SYNC.0 | Flags::PREFLUSH.0),
            // What direct writes and fsync carry.
            (Op::Write, true) => Flags(Flags::SYNC.0 | Flags::IDLE.0),
            (Op::Discard, true) => Flags::SYNC,
            _ => Flags::NONE,
        };
        let bio = Bio {
            id: i as u32,
            op: w.op,
            flags,
            sector: w.sector,
            sectors: w.sectors,
            task: self.task[i],
            thread: self.task[i],
            prio: w.prio,
            cgroup: 0,
            cpu: 0,
        };
        let waits = !self.blocked[bio.task as usize].is_empty();
        for piece in self.queue.split(bio) {
            self.pieces[i] += 1;
            self.blocked[bio.task as usize].push_back(piece);
        }
        if !waits {
            self.submit(bio.task, false);
        }
    }

    /// Submits what a process has to submit, until it blocks.
    fn submit(&mut self, task: TaskId, mut resumed: bool) {
        while let Some(bio) = self.blocked[task as usize].front().copied() {
            if self.queue.submit(&mut self.tl, &bio, resumed) == Submit::Blocked {
                return;
            }
            resumed = false;
            self.blocked[task as usize].pop_front();
        }
    }

    /// Ends processes after the completion of their last request, before the driver asks again. A scheduler that waits
    /// for the next request of a process must know that there will be none.
    fn exits(&mut self) {
        for n in 0..self.queue.out().done.len() {
            let i = self.queue.out().done[n].bio as usize;
            let pieces = self.queue.out().done[..=n].iter().filter(|d| d.bio as usize == i).count();
            let last = self.wanted[i].exits && pieces == self.pieces[i] as usize;
            if last && !std::mem::replace(&mut self.exited[i], true) {
                self.queue.task_exited(&mut self.tl, self.task[i]);
            }
        }
    }

    /// Books completions, inserts what waits for them, lets blocked processes go on.
    fn collect(&mut self) {
        let done = std::mem::take(&mut self.queue.out_mut().done);
        for d in done {
            let i = d.bio as usize;
            self.idle_events = 0;
            self.pieces[i] -= 1;
            if self.pieces[i] > 0 {
                continue;
            }
            self.finished[i] = Some(self.tl.now);
            self.unfinished -= 1;
            for f in std::mem::take(&mut self.followers[i]) {
                let at = self.tl.now.saturating_add(self.wanted[f].at);
                self.tl.events.push(at, Event::Host(f as u64));
                self.to_come += 1;
            }
        }
        let woken = std::mem::take(&mut self.queue.out_mut().woken);
        let any = !woken.is_empty();
        for task in woken {
            self.submit(task, true);
        }
        if any {
            self.queue.run_deferred(&mut self.tl);
        }
    }

    /// The process of a task; `None` of a thread of the array's own.
    fn pid(&self, pids: &[u32], task: TaskId) -> Option<u32> {
        self.queue.task_above(task).map(|t| pids[t as usize])
    }

    fn dispatched(
        &self,
        pids: &[u32],
        leg: Option<usize>,
        issue: Issue,
        bios: &[BioId],
        reason: String,
    ) -> Dispatched {
        let mut requests: Vec<usize> = Vec::with_capacity(bios.len());
        let mut reason = reason;
        for bio in bios {
            match (leg, self.queue.routed(*bio)) {
                (None, _) => requests.push(*bio as usize),
                (Some(_), Some(routed)) => {
                    if requests.is_empty() {
                        reason = format!("{}; {reason}", routed.why.words());
                    }
                    requests.push(routed.bio as usize);
                }
                (Some(_), None) => reason = format!("the array's own: {reason}"),
            }
        }
        requests.dedup();
        Dispatched {
            t_ns: issue.t,
            op: issue.op,
            sector: issue.sector,
            sectors: issue.sectors,
            pid: self.pid(pids, issue.task).unwrap_or(0),
            requests,
            leg,
            reason: reason.trim_end_matches("; ").into(),
        }
    }

    fn explanation(mut self, pids: &[u32]) -> Explanation {
        let traces = self.queue.take_traces(&self.tl);
        let array = traces.len() > 1;
        let mut e = Explanation::default();
        // A device without a cache needs no flush, so the flush is finished without a command.
        let mut left: Vec<bool> = self.finished.iter().map(Option::is_none).collect();
        for (leg, trace) in traces.into_iter().enumerate() {
            let leg = array.then_some(leg);
            for event in trace.events {
                match event {
                    TraceEvent::Dispatch { issue, bios, reason } => {
                        let d = self.dispatched(pids, leg, issue, &bios, reason);
                        d.requests.iter().for_each(|i| left[*i] = false);
                        e.dispatched.push(d);
                    }
                    // A request of the same instant ended the wait before it began.
                    TraceEvent::Idle { from, to, .. } if from == to => {}
                    TraceEvent::Idle { from, to, task, reason } => {
                        let for_pid = task.and_then(|t| self.pid(pids, t));
                        let reason = waits(for_pid, reason);
                        let reason = match leg {
                            Some(leg) => format!("leg {leg}: {reason}"),
                            None => reason,
                        };
                        e.idle.push(Idle { from_ns: from, to_ns: to, for_pid, reason });
                    }
                    TraceEvent::Switch { since, at, from, to } => {
                        e.switches.push(Switched { since_ns: since, at_ns: at, from, to });
                    }
                }
            }
        }
        if array {
            e.dispatched.sort_by_key(|d| d.t_ns);
        }
        let life = |(i, w): (usize, &Wanted)| Life {
            op: w.op,
            sector: w.sector,
            sectors: w.sectors,
            pid: w.pid,
            came_ns: self.came[i],
            done_ns: self.finished[i],
        };
        e.requests = self.wanted.iter().enumerate().map(life).collect();
        e.pending = (0..left.len()).filter(|i| left[*i]).collect();
        e
    }
}

impl World for Play<'_> {
    type Event = Event;

    fn timeline(&mut self) -> &mut Timeline {
        &mut self.tl
    }

    fn device_next(&self) -> Nanos {
        self.queue.device_next()
    }

    fn device_event(&mut self) {
        self.queue.device_event(&mut self.tl);
        self.exits();
        if self.asks {
            self.queue.ask_again();
        }
        self.queue.run_deferred(&mut self.tl);
    }

    /// A timer of the queue's, or all requests of this instant.
    fn event(&mut self, event: Event) {
        let first = match event {
            Event::Host(first) => first,
            Event::Queue(disk, event) => {
                self.idle_events += 1;
                self.queue.event(&mut self.tl, disk, event);
                return;
            }
            Event::Array(event) => {
                self.idle_events += 1;
                self.queue.array_event(&mut self.tl, event);
                return;
            }
        };
        self.idle_events = 0;
        self.user_event(first as usize);
        while let Some((at, Event::Host(next))) = self.tl.events.peek()
            && at == self.tl.now
        {
            self.tl.events.pop();
            self.user_event(next as usize);
        }
        self.queue.run_deferred(&mut self.tl);
    }
}

/// Why the device idles. If another process was served during a wait, the wait goes on with its first reason.
fn waits(for_pid: Option<u32>, reason: String) -> String {
    match for_pid {
        Some(pid) if reason.is_empty() => format!("still waits for pid {pid}"),
        _ => reason,
    }
}
