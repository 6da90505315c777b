//! The request queue: what both block layers share, and the interface to the simulator.

use iosched_devices::{Completion, Device};
use iosched_schedulers::{
    Actions, BlockPath, Cgroup, Ctx, Descriptor, Generation, Idling, Merging, QueueFacts,
    Scheduler, TaskInfo, TunableError, Why,
};
use iosched_types::{Bio, BioId, Nanos, Op, ReqId, Requests, Sector, TaskId};

use crate::bios::BioPool;
use crate::flush::FlushQueue;
use crate::legacy::Legacy;
use crate::merge::{Elevator, segments};
use crate::mq::Hctx;
use crate::plug::Plug;
use crate::profile::{KernelProfile, LegacyFlush, MergeScan, PlugKind};
use crate::switch::{self, Switches};
use crate::timeline::{Event, Timeline};
use crate::wbt::Wbt;

/// Bookkeeping bits in [`iosched_types::Request::state`].
pub(crate) mod state {
    /// In the back-merge hash.
    pub(crate) const HASHED: u16 = 1;
    /// The driver has seen it: no merging any more.
    pub(crate) const STARTED: u16 = 2;
    /// Never merge again (2.6.18: a limit was hit).
    pub(crate) const NOMERGE: u16 = 4;
    /// Went through the scheduler.
    pub(crate) const ELV: u16 = 8;
    /// Part of a flush sequence.
    pub(crate) const FLUSH_SEQ: u16 = 16;
    /// The flush command itself.
    pub(crate) const FLUSH_CMD: u16 = 32;
    /// Holds a driver tag.
    pub(crate) const DRIVER_TAG: u16 = 64;
    /// Counted by the writeback throttle.
    pub(crate) const WBT: u16 = 128;
    /// Background class of the throttle.
    pub(crate) const WBT_BACKGROUND: u16 = 256;
    /// Class bit of the legacy request pool.
    pub(crate) const POOL_CLASS1: u16 = 512;
    /// Shown by `explain` already.
    pub(crate) const TRACED: u16 = 1024;
}

/// Notes in one reason of `explain`.
const MOST_NOTES: usize = 16;

/// Which scheduler, with which tunables.
#[derive(Clone, Debug)]
pub struct SchedulerChoice {
    /// The family.
    pub descriptor: &'static Descriptor,
    /// The generation.
    pub generation: &'static Generation,
    /// Tunables by sysfs name, in the sysfs unit.
    pub tunables: Vec<(String, i64)>,
}

/// Limits on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sectors of a request (`max_sectors_kb` · 2).
    pub max_sectors: u32,
    /// Segments of a request.
    pub max_segments: u16,
    /// `nomerges`: 0, 1 (one-entry cache only) or 2 (off).
    pub nomerges: u8,
}

/// Everything a queue is built from.
pub struct QueueConfig {
    /// Kernel profile.
    pub profile: KernelProfile,
    /// Which block layer, where the profile has both.
    pub path: BlockPath,
    /// The scheduler.
    pub scheduler: SchedulerChoice,
    /// The device.
    pub device: Box<dyn Device>,
    /// Commands the device takes at once (driver tags), per hardware queue.
    pub queue_depth: u32,
    /// Hardware queues.
    pub hw_queues: u16,
    /// `queue/rotational`.
    pub rotational: bool,
    /// Volatile write cache.
    pub write_cache: bool,
    /// Native FUA.
    pub fua: bool,
    /// The device asks for a budget before a request is pulled (SATA, SCSI): nothing is staged.
    pub budget: bool,
    /// Hardware limit in KiB.
    pub max_hw_sectors_kb: u32,
    /// Sectors of a zone of a zoned device; 0 if it is not zoned.
    pub zone_sectors: Sector,
    /// `queue/*` settings by sysfs name.
    pub settings: Vec<(String, i64)>,
    /// Processes.
    pub tasks: Vec<TaskInfo>,
    /// Control groups, the root first.
    pub cgroups: Vec<Cgroup>,
    /// CPUs.
    pub cpus: u16,
}

/// A `queue/*` setting that can be set from an experiment file.
#[derive(Clone, Copy, Debug)]
pub struct QueueSetting {
    /// File name below `/sys/block/X/queue/`.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
    /// One sentence.
    pub help: &'static str,
}

const fn s(
    name: &'static str,
    unit: &'static str,
    min: i64,
    max: i64,
    help: &'static str,
) -> QueueSetting {
    QueueSetting { name, unit, min, max, help }
}

/// The `queue/*` settings, by sysfs name.
#[must_use]
pub fn queue_settings() -> &'static [QueueSetting] {
    static SETTINGS: &[QueueSetting] = &[
        s("nr_requests", "requests", 4, 1 << 21, "Requests that may be allocated."),
        s("max_sectors_kb", "KiB", 4, 65_536, "Largest request."),
        s("nomerges", "0/1/2", 0, 2, "1: only the one-entry merge cache; 2: no merging."),
        s("read_ahead_kb", "KiB", 0, 1 << 20, "Read-ahead window of buffered reads."),
        s("rotational", "0/1", 0, 1, "Whether the device has a head to move."),
        s(
            "wbt_lat_usec",
            "us",
            0,
            60_000_000,
            "Latency target of the writeback throttle; 0 is off.",
        ),
        s("rq_affinity", "0/1/2", 0, 2, "CPU that finishes a request; costs only."),
        s("iostats", "0/1", 0, 1, "Disk statistics; costs only."),
        s("add_random", "0/1", 0, 1, "Feeds the entropy pool; costs only."),
        s("io_timeout", "ms", 1, 1 << 31, "Request timeout; modelled devices never time out."),
        s("write_cache", "0/1", 0, 1, "1: volatile write cache on (\"write back\")."),
        s("fua", "0/1", 0, 1, "Whether the device takes FUA writes itself."),
    ];
    SETTINGS
}

/// Answer to a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submit {
    /// Taken: it will appear in [`Queue::done`].
    Taken,
    /// The task must sleep until it is named in [`Queue::woken`], then submit the same bio again with
    /// `resumed` set.
    Blocked,
}

/// A finished bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The submitter's cookie.
    pub bio: BioId,
    /// Completion time.
    pub at: Nanos,
}

/// A command handed to the device, as the dispatch picture and the dispatch log show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// When.
    pub t: Nanos,
    /// Operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Sectors.
    pub sectors: u32,
    /// Process.
    pub task: TaskId,
}

/// One line of `iosched explain`.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceEvent {
    /// A request left the scheduler.
    Dispatch {
        /// When and what.
        issue: Issue,
        /// Bios it carries.
        bios: Vec<BioId>,
        /// Why, in the scheduler's words.
        reason: String,
    },
    /// The scheduler holds the device idle.
    Idle {
        /// From.
        from: Nanos,
        /// Until something else happened.
        to: Nanos,
        /// For whom.
        task: Option<TaskId>,
        /// Why.
        reason: String,
    },
    /// Another scheduler took over.
    Switch {
        /// When it was asked for.
        since: Nanos,
        /// When it was in force.
        at: Nanos,
        /// The old one, with its generation.
        from: String,
        /// The new one.
        to: String,
    },
}

/// What `explain` collects.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Events in order.
    pub events: Vec<TraceEvent>,
    pub(crate) idle: Option<(Nanos, Option<TaskId>, String)>,
}

/// Counters of a queue.
#[derive(Clone, Debug, Default)]
pub struct QueueStats {
    /// Bios taken.
    pub submitted: u64,
    /// Bios finished.
    pub finished: u64,
    /// Commands issued to the device.
    pub issued: u64,
    /// Commands completed, by operation.
    pub completed: [u64; 4],
    /// Bytes completed, by operation.
    pub bytes: [u64; 4],
    /// Merges by operation of the bio.
    pub merges: [u64; 4],
    /// Commands not starting where the one before ended.
    pub seeks: u64,
    /// Distance between commands in sectors.
    pub travel: Sector,
    /// Largest number at the device.
    pub max_in_flight: u32,
    /// Time with commands at the device.
    pub busy: Nanos,
    /// Time requests spent from allocation to completion.
    pub weighted: Nanos,
    /// Time the device stood idle on the scheduler's wish.
    pub idled: Nanos,
    /// Number of such periods.
    pub idles: u64,
}

/// One request queue with its scheduler and device.
pub struct Queue {
    pub(crate) profile: KernelProfile,
    pub(crate) path: BlockPath,
    pub(crate) facts: QueueFacts,
    pub(crate) limits: Limits,
    pub(crate) merging: Merging,
    pub(crate) scheduler: Box<dyn Scheduler>,
    pub(crate) choice: SchedulerChoice,
    /// No scheduler at all: blk-mq's `none`, which this crate does itself.
    pub(crate) none: bool,
    pub(crate) out: Actions,
    pub(crate) reqs: Requests,
    pub(crate) bios: BioPool,
    pub(crate) elevator: Elevator,
    pub(crate) same_prio_merge: bool,
    pub(crate) limit_marks_nomerge: bool,
    pub(crate) plugs: Vec<Plug>,
    pub(crate) plug_scan: MergeScan,
    pub(crate) hctx: Vec<Hctx>,
    pub(crate) legacy: Legacy,
    pub(crate) flushes: Vec<FlushQueue>,
    pub(crate) wbt: Option<Wbt>,
    pub(crate) switches: Switches,
    pub(crate) write_cache: bool,
    pub(crate) fua: bool,
    pub(crate) budget: bool,
    pub(crate) device: Box<dyn Device>,
    pub(crate) device_next: Nanos,
    pub(crate) finished_commands: Vec<Completion>,
    pub(crate) scratch: Vec<ReqId>,
    pub(crate) in_flight: u32,
    pub(crate) busy_since: Nanos,
    pub(crate) head: Sector,
    /// Requests inside the scheduler.
    pub(crate) queued: u32,
    pub(crate) run_pending: bool,
    /// A hardware queue to run, where not all of them have to.
    run_one: Option<u16>,
    pub(crate) timer_gen: u32,
    pub(crate) idle_since: Option<Nanos>,
    /// The caller pulls requests itself; the queue never runs.
    pub(crate) manual: bool,
    /// Counters.
    pub stats: QueueStats,
    /// Finished bios; the caller drains it.
    pub done: Vec<Done>,
    /// Tasks that may try again; the caller drains it.
    pub woken: Vec<TaskId>,
    /// Every issued command, if the caller wants them.
    pub issues: Option<Vec<Issue>>,
    /// Decisions with reasons, if the caller wants them.
    pub trace: Option<Trace>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({}, {} in flight)", self.choice.descriptor.name, self.in_flight)
    }
}

pub(crate) fn setting(settings: &[(String, i64)], name: &str) -> Option<i64> {
    settings.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v)
}

impl Queue {
    /// Builds a queue.
    ///
    /// # Errors
    /// A tunable the scheduler does not have or does not accept. `queue/*` settings are checked by the
    /// caller against [`queue_settings`].
    pub fn new(cfg: QueueConfig) -> Result<Queue, TunableError> {
        let mut cfg = cfg;
        let settings = std::mem::take(&mut cfg.settings);
        let get = |name| setting(&settings, name);
        let mq = cfg.path == BlockPath::Mq;
        let max_kb = get("max_sectors_kb").map_or(cfg.profile.max_sectors_kb, |v| v as u32);
        let max_kb = max_kb.min(cfg.max_hw_sectors_kb.max(4));
        let rotational = get("rotational").map_or(cfg.rotational, |v| v != 0);
        cfg.settings = settings.clone();
        let facts = switch::first_facts(&mut cfg, max_kb, rotational);
        let (nr, depth) = (facts.nr_requests, facts.queue_depth);
        let to = &cfg.scheduler;
        let tunables = to.descriptor.resolve_tunables(to.generation.index, &facts, &to.tunables)?;
        let (scheduler, merging) = switch::build(to, &tunables, &facts, &cfg.profile, 0);
        let write_cache = get("write_cache").map_or(cfg.write_cache, |v| v != 0);
        let target = get("wbt_lat_usec").map(|v| v as u64);
        let (tasks, hw_queues) = (facts.tasks.len(), facts.hw_queues);
        let device_plug = cfg.profile.plug.kind == PlugKind::Device;
        let mut q = Queue {
            limits: Limits {
                max_sectors: max_kb * 2,
                max_segments: cfg.profile.max_segments,
                nomerges: get("nomerges").map_or(0, |v| v as u8),
            },
            same_prio_merge: mq && cfg.profile.mq.same_prio_merge,
            limit_marks_nomerge: !mq && cfg.profile.legacy.flush == LegacyFlush::Barrier,
            plug_scan: cfg.profile.plug.merge_scan,
            path: cfg.path,
            merging,
            scheduler,
            none: mq && cfg.scheduler.descriptor.name == "none",
            choice: cfg.scheduler,
            out: Actions::default(),
            reqs: Requests::with_capacity(nr.min(4096) as usize + 8),
            bios: BioPool::default(),
            elevator: switch::fresh_elevator(nr),
            plugs: (0..tasks).map(|_| Plug::default()).collect(),
            hctx: Vec::new(),
            legacy: Legacy::new(nr, device_plug, tasks),
            flushes: (0..hw_queues.max(1)).map(|_| FlushQueue::default()).collect(),
            wbt: None,
            switches: Switches::default(),
            write_cache,
            fua: get("fua").map_or(cfg.fua, |v| v != 0),
            budget: cfg.budget,
            device: cfg.device,
            device_next: Nanos::MAX,
            finished_commands: Vec::new(),
            scratch: Vec::new(),
            in_flight: 0,
            busy_since: 0,
            head: 0,
            queued: 0,
            run_pending: false,
            run_one: None,
            timer_gen: 0,
            idle_since: None,
            manual: false,
            stats: QueueStats::default(),
            done: Vec::new(),
            woken: Vec::new(),
            issues: None,
            trace: None,
            profile: cfg.profile,
            facts,
        };
        if mq {
            q.build_hctxs(nr, depth);
        }
        q.set_throttle(target);
        Ok(q)
    }

    /// Facts of the queue.
    #[must_use]
    pub fn facts(&self) -> &QueueFacts {
        &self.facts
    }

    /// Limits in force.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The scheduler in force.
    #[must_use]
    pub fn scheduler_choice(&self) -> &SchedulerChoice {
        &self.choice
    }

    /// Tunables in force.
    #[must_use]
    pub fn tunables(&self) -> Vec<(&'static str, i64)> {
        self.choice
            .descriptor
            .tunables_of(self.choice.generation.index)
            .filter_map(|t| Some((t.name, self.scheduler.tunable(t.name)?)))
            .collect()
    }

    /// The scheduler's counters.
    #[must_use]
    pub fn scheduler_counters(&self) -> Vec<(&'static str, u64)> {
        self.scheduler.counters()
    }

    /// The device's counters.
    #[must_use]
    pub fn device_counters(&self) -> Vec<(&'static str, u64)> {
        self.device.counters()
    }

    /// Turns on the collection of decisions with reasons.
    pub fn explain(&mut self) {
        self.trace = Some(Trace::default());
        self.out.why = Some(Why::default());
    }

    /// Commands at the device.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Requests waiting in the block layer (plugs and tag waiters not counted).
    #[must_use]
    pub fn pending(&self) -> usize {
        self.reqs.len() - self.in_flight as usize
    }

    /// When the device next needs attention; `Nanos::MAX` when never.
    #[must_use]
    pub fn device_next(&self) -> Nanos {
        self.device_next
    }

    /// The pieces a bio is split into by `max_sectors_kb` and the segment limit.
    pub fn split(&self, bio: Bio) -> impl Iterator<Item = Bio> + use<> {
        let most = self.limits.max_sectors.min(u32::from(self.limits.max_segments) * 8).max(1);
        let most = if bio.op == Op::Discard { u32::MAX } else { most };
        let (mut left, mut at, mut first) = (bio.sectors, bio.sector, true);
        std::iter::from_fn(move || {
            if left == 0 && !first {
                return None;
            }
            first = false;
            let n = left.min(most);
            let piece = Bio { sector: at, sectors: n, ..bio };
            at += u64::from(n);
            left -= n;
            Some(piece)
        })
    }

    /// Calls a scheduler hook that wishes nothing.
    pub(crate) fn hook<T>(
        &mut self,
        tl: &Timeline,
        f: impl FnOnce(&mut dyn Scheduler, &mut Ctx<'_>) -> T,
    ) -> T {
        let mut ctx =
            Ctx { now: tl.now, reqs: &mut self.reqs, queue: &self.facts, out: &mut self.out };
        f(self.scheduler.as_mut(), &mut ctx)
    }

    /// Calls a scheduler hook and carries out what it wishes.
    pub(crate) fn hook_mut<T>(
        &mut self,
        tl: &mut Timeline,
        f: impl FnOnce(&mut dyn Scheduler, &mut Ctx<'_>) -> T,
    ) -> T {
        let answer = self.hook(tl, f);
        self.carry_out(tl);
        answer
    }

    #[inline]
    fn carry_out(&mut self, tl: &mut Timeline) {
        let out = &self.out;
        if out.timer.is_some() || out.run_queue || !out.ejected.is_empty() {
            self.carry_out_wishes(tl);
        }
    }

    #[cold]
    fn carry_out_wishes(&mut self, tl: &mut Timeline) {
        if let Some(timer) = self.out.timer.take() {
            self.timer_gen = self.timer_gen.wrapping_add(1);
            if let Some(at) = timer {
                tl.events.push(at.max(tl.now), Event::SchedulerTimer(self.timer_gen));
            }
        }
        if std::mem::take(&mut self.out.run_queue) {
            let h = self.out.run_hctx.take();
            self.ask_hctx(h);
        }
        while !self.out.ejected.is_empty() {
            let id = self.out.ejected.remove(0);
            self.left_scheduler(tl.now, id);
            self.trace_dispatch(tl.now, id);
            self.legacy_dispatch_tail(id);
            self.run_pending = true;
        }
    }

    /// One hardware queue, or all of them, shall run soon.
    pub(crate) fn ask_hctx(&mut self, h: Option<u16>) {
        match h {
            Some(h) if self.run_one.is_none_or(|one| one == h) => self.run_one = Some(h),
            _ => self.run_pending = true,
        }
    }

    /// A fresh request for a bio.
    pub(crate) fn new_request(&mut self, now: Nanos, bio: &Bio) -> ReqId {
        let id = self.reqs.add_new(bio.op, bio.sector, bio.sectors);
        let r = &mut self.reqs[id];
        r.flags = bio.flags;
        r.task = bio.task;
        r.prio = bio.prio;
        r.cgroup = bio.cgroup;
        r.cpu = bio.cpu;
        r.segments = segments(bio.sectors);
        r.t_start = now;
        self.bios.start(r, bio.id);
        id
    }

    /// Submits one bio (already [`split`](Self::split)).
    ///
    /// `resumed` says that the task was blocked on this very bio and has been woken.
    pub fn submit(&mut self, tl: &mut Timeline, bio: &Bio, resumed: bool) -> Submit {
        let resumed = resumed && self.slept_inside(bio.task);
        if self.switches.now.is_some() && !resumed && self.held_by_switch(tl, bio) {
            return Submit::Blocked;
        }
        let answer = match self.path {
            BlockPath::Mq => self.mq_submit(tl, bio, resumed),
            BlockPath::Legacy => self.legacy_submit(tl, bio, resumed),
        };
        match answer {
            Submit::Taken => self.stats.submitted += 1,
            Submit::Blocked if !resumed => self.sleeps_inside(bio.task),
            Submit::Blocked => {}
        }
        if resumed && answer == Submit::Taken {
            self.woke_inside(bio.task);
        }
        answer
    }

    /// The kernel's deferred work: runs the queue if somebody asked for it. The simulator calls it
    /// at the end of each system call and after each event.
    #[inline]
    pub fn run_deferred(&mut self, tl: &mut Timeline) {
        loop {
            if std::mem::take(&mut self.run_pending) {
                self.run_one = None;
                self.run(tl);
            } else if let Some(h) = self.run_one.take() {
                self.run_hctx(tl, h);
            } else {
                break;
            }
        }
        if self.switches.now.is_some() {
            self.try_end_switch(tl);
        }
    }

    /// Runs the one hardware queue that has a reason to.
    fn run_hctx(&mut self, tl: &mut Timeline, h: u16) {
        match self.path {
            BlockPath::Mq if !self.manual => self.mq_run(tl, usize::from(h)),
            BlockPath::Mq => {}
            BlockPath::Legacy => self.run(tl),
        }
    }

    pub(crate) fn run(&mut self, tl: &mut Timeline) {
        if self.manual {
            return;
        }
        match self.path {
            BlockPath::Mq => self.mq_run_all(tl),
            BlockPath::Legacy => self.legacy_run(tl),
        }
    }

    /// Handles an event of the timeline that belongs to the queue; `false` if it is not the queue's.
    pub fn event(&mut self, tl: &mut Timeline, event: Event) -> bool {
        match event {
            Event::SchedulerTimer(n) if n == self.timer_gen => {
                self.hook_mut(tl, |s, c| s.timer(c));
            }
            Event::SchedulerTimer(_) => {}
            Event::Unplug(n) => self.legacy_unplug_timer(tl, n),
            Event::Wbt(n) => self.wbt_window(tl, n),
            Event::Run(h) => self.rerun_fired(h),
            Event::Switch => self.end_switch(tl),
            Event::Task(..) | Event::User(_) => return false,
        }
        self.run_deferred(tl);
        true
    }

    /// The device reached an event time: completions are booked into [`Queue::done`]. The caller lets
    /// deferred work run next ([`run_deferred`](Self::run_deferred)).
    pub fn device_event(&mut self, tl: &mut Timeline) {
        let mut finished = std::mem::take(&mut self.finished_commands);
        self.device.advance(tl.now, &mut finished);
        self.device_next = self.device.next_wakeup().unwrap_or(Nanos::MAX);
        for c in &finished {
            self.complete(tl, c);
        }
        finished.clear();
        if self.finished_commands.is_empty() {
            self.finished_commands = finished;
        }
    }

    /// A process ends.
    pub fn task_exited(&mut self, tl: &mut Timeline, task: TaskId) {
        self.hook_mut(tl, |s, c| s.task_exited(c, task));
        self.run_deferred(tl);
    }

    /// Books an idle decision of the scheduler.
    pub(crate) fn note_idle(&mut self, now: Nanos, idle: Idling) {
        if self.in_flight == 0 && self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        let reason = self.take_reason();
        if let Some(trace) = &mut self.trace
            && trace.idle.is_none()
        {
            trace.idle = Some((now, idle.for_task, reason));
        }
    }

    /// The idle period, if any, ends now.
    pub(crate) fn end_idle(&mut self, now: Nanos) {
        if let Some(from) = self.idle_since.take() {
            self.stats.idled += now - from;
            self.stats.idles += 1;
        }
        if let Some(trace) = &mut self.trace
            && let Some((from, task, reason)) = trace.idle.take()
        {
            trace.events.push(TraceEvent::Idle { from, to: now, task, reason });
        }
    }

    /// The reasons noted since the last decision, as one sentence.
    pub(crate) fn take_reason(&mut self) -> String {
        let Some(why) = &mut self.out.why else { return String::new() };
        let mut notes: Vec<String> = Vec::new();
        for (_, note) in why.notes.drain(..) {
            // A scheduler that is asked again and again gives the same answer.
            if notes.len() < MOST_NOTES && !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes.join("; ")
    }

    pub(crate) fn trace_merge(&mut self, id: ReqId, _bio: BioId) {
        if self.out.why.is_some() {
            let name = format!("{}{}", self.reqs[id].op.letter(), self.reqs[id].sector);
            if let Some(why) = &mut self.out.why {
                why.notes.push((0, format!("merged into {name}")));
            }
        }
    }

    /// What is still inside: requests in the scheduler, parked or at the device.
    #[must_use]
    pub fn pending_bios(&self) -> Vec<BioId> {
        let mut ids = self.in_queue_bios();
        ids.sort_unstable();
        ids
    }

    fn in_queue_bios(&self) -> Vec<BioId> {
        self.reqs.iter_live().flat_map(|r| self.bios.iter(r)).collect()
    }
}
