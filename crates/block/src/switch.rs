//! Another scheduler in the middle of a run, as a write to `queue/scheduler` does it.
//!
//! **blk-mq** freezes the queue. No new bio enters. The old scheduler serves the tasks inside (with a request, or
//! asleep for a tag) by its own rules, idling included. When the queue is empty and a grace period is over, the new
//! scheduler is built with fresh tags, and the tasks outside go on.
//!
//! The **legacy** path does not stop. The old scheduler is drained into the dispatch queue, and new requests go around
//! it to the tail. The new scheduler takes over once no request is left that the old one has prepared.
//!
//! A switch resets tunables, and under blk-mq `nr_requests`; the other `queue/*` settings stay.

use std::collections::VecDeque;

use iosched_devices::Device;
use iosched_schedulers::{
    BlockPath, BuildArgs, Cgroup, Hooks, Merging, Position, QueueFacts, Scheduler, TunableError,
    TunableValues,
};
use iosched_types::{Bio, NO_REQ, Nanos, ReqId, TaskId, units::SEC};

use crate::config::{QueueConfig, SchedulerChoice, setting};
use crate::merge::{Elevator, MergeHash};
use crate::profile::{CpuModel, KernelProfile, ShallowDepth};
use crate::queue::Queue;
use crate::state;
use crate::timeline::{Event, QueueEvent, Timeline};
use crate::trace::TraceEvent;
use crate::wbt::Wbt;

/// Ticks that a freeze takes beyond the drain: an idle queue is switched in 14 to 30 ms at 250 ticks per
/// second, whatever the two schedulers are (`docs/fidelity.md`).
const GRACE_TICKS: u64 = 5;

/// Why a queue cannot have this scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// The scheduler lives on the other block layer.
    #[error(
        "{scheduler} runs on {}, this queue on {}, which is chosen when the machine starts",
        path_name(*wants),
        path_name(*has)
    )]
    Path {
        /// The scheduler.
        scheduler: &'static str,
        /// The block layer.
        wants: BlockPath,
        /// The queue's.
        has: BlockPath,
    },
    /// A tunable does not fit.
    #[error(transparent)]
    Tunable(#[from] TunableError),
}

fn path_name(path: BlockPath) -> &'static str {
    match path {
        BlockPath::Legacy => "the legacy single-queue path",
        BlockPath::Mq => "blk-mq",
    }
}

fn name_of(choice: &SchedulerChoice) -> String {
    let d = choice.descriptor;
    match d.generations.len() {
        0 | 1 => d.name.into(),
        _ => format!("{}@{}", d.name, choice.generation.name),
    }
}

/// A scheduler that is about to take over.
#[derive(Debug)]
struct Successor {
    choice: SchedulerChoice,
    tunables: TunableValues,
    facts: QueueFacts,
}

/// A switch under way.
#[derive(Debug)]
pub(crate) struct Switching {
    to: Successor,
    since: Nanos,
    /// The event that ends it is on its way.
    ending: bool,
    /// Tasks that wait for the queue to thaw.
    frozen: VecDeque<TaskId>,
}

/// Switches of one queue.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    pub(crate) now: Option<Box<Switching>>,
    /// Writers of `queue/scheduler` take turns.
    next: VecDeque<Successor>,
    /// Tasks asleep inside the block layer: a freeze waits for them.
    inside: u32,
    /// The throttle, while a scheduler runs that has it switched off.
    wbt: Option<Wbt>,
    wbt_target: Option<u64>,
}

/// The facts of a queue under its first scheduler.
pub(crate) fn first_facts(cfg: &mut QueueConfig, max_kb: u32, rotational: bool) -> QueueFacts {
    let none = cfg.scheduler.descriptor.facts.bypass;
    let depth = cfg.queue_depth.max(1);
    let default_nr = default_requests(&cfg.profile, cfg.path, none, depth);
    let nr = setting(&cfg.settings, "nr_requests").map_or(default_nr, |v| v as u32);
    let nr = if cfg.path == BlockPath::Mq && none { nr.min(depth) } else { nr };
    let cgroups = std::mem::take(&mut cfg.cgroups);
    let mut facts = QueueFacts {
        hz: cfg.profile.hz,
        rotational,
        queue_depth: depth,
        max_sectors: max_kb * 2,
        hw_queues: cfg.hw_queues.clamp(1, cfg.cpus.max(1)),
        cpus: cfg.cpus.max(1),
        capacity: Device::capacity(&*cfg.device) / 512,
        zone_sectors: cfg.zone_sectors,
        cpu_takes_no_time: cfg.profile.cpu.model != CpuModel::Cost,
        cgroups: if cgroups.is_empty() { vec![Cgroup::default()] } else { cgroups },
        ..QueueFacts::default()
    };
    set_requests(&mut facts, &cfg.profile, nr, default_nr);
    facts
}

fn default_requests(profile: &KernelProfile, path: BlockPath, none: bool, depth: u32) -> u32 {
    match (path, none) {
        (BlockPath::Mq, true) => depth,
        (BlockPath::Mq, false) => profile.mq.scheduler_tags.of(depth),
        (BlockPath::Legacy, _) => profile.nr_requests,
    }
}

fn set_requests(facts: &mut QueueFacts, profile: &KernelProfile, nr: u32, default_nr: u32) {
    facts.nr_requests = nr;
    facts.limit_base = default_nr;
    facts.limit_unit = match profile.mq.shallow_depth {
        ShallowDepth::Word => QueueFacts::tag_word(nr),
        ShallowDepth::Map => default_nr,
    };
}

/// Builds the scheduler and says which part looks for merges under it.
pub(crate) fn build(
    choice: &SchedulerChoice,
    tunables: &TunableValues,
    facts: &QueueFacts,
    profile: &KernelProfile,
    now: Nanos,
) -> (Box<dyn Scheduler>, Merging) {
    let generation = choice.generation.index;
    let args = BuildArgs { generation, tunables, queue: facts, now };
    let scheduler = (choice.descriptor.build)(&args);
    let mut merging = scheduler.merging();
    if let Merging::Elevator { hash } = &mut merging
        && choice.descriptor.facts.without_merge_hash.contains(&generation)
    {
        // 2.6.18 keeps the hash inside each scheduler.
        *hash = *hash && profile.legacy.merge_hash;
    }
    (scheduler, merging)
}

/// The hooks that are called for every request. `none` belongs to the block layer and gets none of them.
pub(crate) fn hooks(scheduler: &dyn Scheduler, choice: &SchedulerChoice) -> Hooks {
    if choice.descriptor.facts.bypass { Hooks::NONE } else { scheduler.hooks() }
}

/// The merge search state of an empty queue.
pub(crate) fn fresh_elevator(nr: u32) -> Elevator {
    Elevator { last_merge: NO_REQ, hash: MergeHash::new(nr.saturating_mul(2)) }
}

impl Queue {
    /// Switches the queue's writeback throttle on or off. BFQ switches it off, unless the target was set by hand.
    pub(crate) fn set_throttle(&mut self, target: Option<u64>) {
        let wanted = self.path == BlockPath::Mq
            && self.profile.mq.wbt
            && target != Some(0)
            && (!self.choice.descriptor.facts.throttle_off || target.is_some());
        self.switches.wbt_target = target;
        if !wanted {
            self.switches.wbt = self.wbt.take().or(self.switches.wbt.take());
        } else if self.wbt.is_none() {
            let facts = &self.facts;
            self.wbt = Some(self.switches.wbt.take().unwrap_or_else(|| {
                Wbt::new(target, facts.rotational, facts.queue_depth, self.write_cache)
            }));
        }
    }

    /// Switches to another scheduler, as a write to `queue/scheduler` does; the one in force changes
    /// nothing. Requests under way are served first (see the head of `switch.rs`), so the new one is in
    /// force some time later. A second switch waits for the first.
    ///
    /// # Errors
    /// See [`SwitchError`].
    pub fn switch(&mut self, tl: &mut Timeline, to: SchedulerChoice) -> Result<(), SwitchError> {
        let wants = to.descriptor.path_of(to.generation);
        if wants != self.path {
            let scheduler = to.descriptor.name;
            return Err(SwitchError::Path { scheduler, wants, has: self.path });
        }
        let mut facts = self.facts.clone();
        if self.path == BlockPath::Mq {
            let none = to.descriptor.facts.bypass;
            let nr = default_requests(&self.profile, self.path, none, facts.queue_depth);
            set_requests(&mut facts, &self.profile, nr, nr);
        }
        let tunables = to.descriptor.resolve_tunables(to.generation.index, &facts, &to.tunables)?;
        self.switches.next.push_back(Successor { choice: to, tunables, facts });
        if self.switches.now.is_none() {
            self.begin_switch(tl);
        }
        self.run_deferred(tl);
        Ok(())
    }

    /// Whether a switch is under way.
    #[must_use]
    pub fn is_switching(&self) -> bool {
        self.switches.now.is_some()
    }

    fn begin_switch(&mut self, tl: &mut Timeline) {
        while let Some(to) = self.switches.next.pop_front() {
            let same = std::ptr::eq(to.choice.descriptor, self.choice.descriptor)
                && to.choice.generation.index == self.choice.generation.index;
            if same {
                continue;
            }
            let since = tl.now;
            let frozen = VecDeque::new();
            self.switches.now = Some(Box::new(Switching { to, since, ending: false, frozen }));
            if self.path == BlockPath::Legacy {
                self.drain_scheduler(tl);
                self.unplug(tl);
            }
            self.run_pending = true;
            return;
        }
    }

    /// Moves everything from the scheduler to the dispatch queue, whatever the scheduler waits for (legacy).
    pub(crate) fn drain_scheduler(&mut self, tl: &mut Timeline) {
        while let Some(id) = self.hook_mut(tl, |s, c| s.force_dispatch(c)) {
            self.left_scheduler(id);
            self.dispatch_sort(id);
        }
        // Reasons noted during the drain belong to no decision.
        self.take_reason();
    }

    /// Whether a task that has slept is still inside. If not, it enters anew.
    pub(crate) fn slept_inside(&self, task: TaskId) -> bool {
        self.plugs.get(task as usize).is_none_or(|p| p.inside)
    }

    /// A task that slept inside got what it slept for.
    pub(crate) fn woke_inside(&mut self, task: TaskId) {
        if let Some(plug) = self.plugs.get_mut(task as usize) {
            plug.inside = false;
            self.switches.inside -= 1;
        }
    }

    /// A task fell asleep for a tag, a request or in the throttle.
    pub(crate) fn sleeps_inside(&mut self, task: TaskId) {
        if let Some(plug) = self.plugs.get_mut(task as usize) {
            plug.inside = true;
            self.switches.inside += 1;
        }
    }

    /// Whether a bio has to wait until the queue thaws.
    #[cold]
    pub(crate) fn held_by_switch(&mut self, tl: &mut Timeline, bio: &Bio) -> bool {
        if self.path == BlockPath::Legacy {
            return false;
        }
        self.task_sleeps(tl, bio.thread);
        self.run_deferred(tl);
        let Some(s) = &mut self.switches.now else { return false };
        s.frozen.push_back(bio.thread);
        true
    }

    /// A request that the old scheduler does not know is handed over while it is drained, or after.
    pub(crate) fn legacy_around(&mut self, id: ReqId) {
        self.legacy_dispatch_tail(id);
        self.run_pending = true;
    }

    /// Ends the switch once the old scheduler has nothing left to do.
    #[cold]
    pub(crate) fn try_end_switch(&mut self, tl: &mut Timeline) {
        let drained = match self.path {
            BlockPath::Mq => self.reqs.is_empty() && self.switches.inside == 0,
            BlockPath::Legacy => self.reqs.iter_live().all(|r| r.state & state::ELV == 0),
        };
        let grace = match self.path {
            BlockPath::Mq => GRACE_TICKS * SEC / u64::from(self.facts.hz.max(1)),
            BlockPath::Legacy => 0,
        };
        if let Some(s) = self.switches.now.as_mut().filter(|s| drained && !s.ending) {
            s.ending = true;
            tl.events.push(tl.now + grace, Event::Queue(self.disk, QueueEvent::Switch));
        }
    }

    /// The new scheduler takes over.
    pub(crate) fn end_switch(&mut self, tl: &mut Timeline) {
        let Some(s) = self.switches.now.take() else { return };
        let Switching { to, since, frozen, .. } = *s;
        self.end_idle(tl.now);
        self.take_reason();
        let from = name_of(&self.choice);
        // Tasks may have come since the switch was asked for.
        let tasks = std::mem::take(&mut self.facts.tasks);
        self.facts = QueueFacts { tasks, ..to.facts };
        self.choice = to.choice;
        (self.scheduler, self.merging) =
            build(&self.choice, &to.tunables, &self.facts, &self.profile, tl.now);
        self.hooks = hooks(&*self.scheduler, &self.choice);
        self.none = self.path == BlockPath::Mq && self.choice.descriptor.facts.bypass;
        self.elevator = fresh_elevator(self.facts.nr_requests);
        // The old scheduler's wishes and its timer no longer count.
        self.timer_gen = self.timer_gen.wrapping_add(1);
        (self.out.timer, self.out.run_queue) = (None, false);
        self.out.run_hctxs.clear();
        if self.path == BlockPath::Mq {
            self.fresh_scheduler_tags();
        }
        self.set_throttle(self.switches.wbt_target);
        if let Some(trace) = &mut self.trace {
            let (to, at) = (name_of(&self.choice), tl.now);
            trace.events.push(TraceEvent::Switch { since, at, from, to });
        }
        self.woken.extend(frozen);
        self.begin_switch(tl);
        self.run_pending = true;
    }

    /// Inserts the requests of a task's plug in the legacy path.
    pub(crate) fn legacy_insert_merge(&mut self, tl: &mut Timeline, id: ReqId) {
        if self.reqs[id].state & state::ELV == 0 {
            self.legacy_around(id);
            return;
        }
        if !self.insert_merge(tl, id) {
            self.insert_into_scheduler(tl, id, Position::Sort);
        }
        if self.is_switching() {
            self.drain_scheduler(tl);
        }
    }
}
