//! The request queue as the simulator sees it. It picks the path; everything else is below.

mod build;
#[cfg(test)]
mod peek;
mod pull;
mod switch;

use iosched_devices::Completion;
use iosched_schedulers::{BlockPath, QueueFacts, TaskInfo};
use iosched_types::{Bio, BioId, Bytes, DirectSync, IoPrio, Nanos, TaskId};

use crate::config::{Limits, SchedulerChoice};
use crate::core::Core;
use crate::legacy::Legacy;
use crate::mq::Mq;
use crate::outbox::{Outbox, Room, Submit};
use crate::profile::PlugKind;
use crate::state;
use crate::stats::QueueStats;
use crate::steps::{finish, plug, run};
use crate::timeline::{DiskId, QueueEvent, Timeline};

pub use switch::SwitchError;

/// The block layer of a queue, chosen when it is built.
enum Lane {
    Mq(Mq),
    Legacy(Legacy),
}

/// The same on either path, each with code of its own.
macro_rules! on_lane {
    ($queue:expr, $path:ident, $core:ident => $what:expr) => {{
        let $core = &mut $queue.core;
        match &mut $queue.lane {
            $crate::queue::Lane::Mq($path) => $what,
            $crate::queue::Lane::Legacy($path) => $what,
        }
    }};
}
use on_lane;

/// One request queue with its scheduler and device.
pub struct Queue {
    core: Core,
    lane: Lane,
    commands_at_once: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.core.sched.choice().descriptor.name;
        write!(f, "Queue({name}, {} in flight)", self.in_flight())
    }
}

/// What is known about it.
impl Queue {
    /// Facts of the queue.
    #[must_use]
    pub fn facts(&self) -> &QueueFacts {
        self.core.sched.facts()
    }

    /// Limits in force.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.core.rules.limits()
    }

    /// The scheduler in force.
    #[must_use]
    pub fn scheduler_choice(&self) -> &SchedulerChoice {
        self.core.sched.choice()
    }

    /// Tunables in force.
    #[must_use]
    pub fn tunables(&self) -> Vec<(&'static str, i64)> {
        let (choice, scheduler) = (self.core.sched.choice(), self.core.sched.scheduler());
        let all = choice.descriptor.tunables_of(choice.generation.index);
        all.filter_map(|t| Some((t.name, scheduler.tunable(t.name)?))).collect()
    }

    /// The scheduler's counters.
    #[must_use]
    pub fn scheduler_counters(&self) -> Vec<(&'static str, u64)> {
        self.core.sched.scheduler().counters()
    }

    /// The device's caches that writes fill: name, bytes in them, bytes that they hold.
    #[must_use]
    pub fn device_caches(&self) -> Vec<(&'static str, Bytes, Bytes)> {
        self.core.drive.caches()
    }

    /// The device's counters.
    #[must_use]
    pub fn device_counters(&self) -> Vec<(&'static str, u64)> {
        self.core.drive.counters()
    }

    /// The queue's counters.
    #[must_use]
    pub fn stats(&self) -> &QueueStats {
        &self.core.stats
    }

    /// Time with commands at the device until now.
    #[must_use]
    pub fn busy(&self, now: Nanos) -> Nanos {
        self.core.drive.busy(now, &self.core.stats)
    }

    /// What happened to bios and their tasks.
    #[inline(always)]
    #[must_use]
    pub fn out(&self) -> &Outbox {
        &self.core.out
    }

    /// The same, to be drained.
    #[inline(always)]
    pub fn out_mut(&mut self) -> &mut Outbox {
        &mut self.core.out
    }

    /// What a task sleeps for whose bio was refused. Looks through all who sleep: for people.
    #[must_use]
    pub fn sleeps_for(&self, task: TaskId) -> Room {
        match &self.lane {
            _ if self.core.throttle.holds(task) => Room::Throttle,
            Lane::Mq(mq) if !mq.waits_for_tag(task) => Room::Switch,
            Lane::Mq(_) => Room::Tag,
            Lane::Legacy(_) => Room::Request,
        }
    }

    /// Commands at the device.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.core.drive.in_flight()
    }

    /// Requests waiting in the block layer (plugs and tag waiters not counted).
    #[must_use]
    pub fn pending(&self) -> usize {
        self.core.reqs.len() - self.in_flight() as usize
    }

    /// When the device next needs attention; `Nanos::MAX` when never.
    #[inline(always)]
    #[must_use]
    pub fn device_next(&self) -> Nanos {
        self.core.drive.next()
    }

    /// Whether requests come from tag maps, so that a bio can be refused for want of a tag.
    #[must_use]
    pub fn has_tags(&self) -> bool {
        matches!(self.lane, Lane::Mq(_))
    }

    /// Sectors up to which a direct I/O that is split has no plug of its own: its pieces go one by one.
    #[must_use]
    pub fn unplugged_sectors(&self) -> u32 {
        self.core.profile.plug.own_above_kb * 2
    }

    /// How a direct write with `O_SYNC` or `O_DSYNC` reaches the medium.
    #[must_use]
    pub fn direct_sync(&self) -> DirectSync {
        self.core.profile.direct_sync()
    }

    /// Whether several processes discard one after the other.
    #[must_use]
    pub fn trims_alone(&self) -> bool {
        self.core.profile.trims_alone()
    }

    /// The priority on the bios of a process with this one and this nice value. Where requests of different priorities
    /// do not merge, a process that has none is on a level with those that have the one of its nice value.
    #[must_use]
    pub fn prio_of_bios(&self, prio: IoPrio, nice: i8) -> IoPrio {
        if self.core.rules.same_prio() { prio.or_of_nice(nice) } else { prio }
    }

    /// Which disk its events name.
    #[must_use]
    pub fn disk(&self) -> DiskId {
        self.core.disk
    }

    /// Whether the device has said at a submission that commands are finished.
    #[inline]
    #[must_use]
    pub fn has_finished(&self) -> bool {
        !self.core.drive.finished().is_empty()
    }

    /// Whether a switch is under way.
    #[must_use]
    pub fn is_switching(&self) -> bool {
        self.core.switches.any()
    }

    /// Requests that are still inside: in the scheduler, parked or at the device.
    #[must_use]
    pub fn pending_bios(&self) -> Vec<BioId> {
        let live = self.core.reqs.iter_live();
        let mut ids: Vec<BioId> = live.flat_map(|r| self.core.bios.iter(r)).collect();
        ids.sort_unstable();
        ids
    }

    /// The pieces a bio is split into by `max_sectors_kb` and the segment limit.
    pub fn split(&self, bio: Bio) -> impl Iterator<Item = Bio> + use<> {
        let most = self.core.rules.longest(bio.op);
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

    /// Looks at the clock take a nanosecond: commands that the device has finished are all booked together, whoever
    /// submitted them, and the first request of a plug has a look.
    pub fn charge_looks(&mut self, on: bool) {
        self.commands_at_once = on;
        self.core.threads.charge_looks(on && !self.core.profile.has_path(BlockPath::Legacy));
    }
}

/// Tasks and their plugs.
impl Queue {
    /// Whether the queue is congested with reads or with writes: what could wait should. blk-mq never says so.
    #[must_use]
    pub fn congested(&self, writes: bool) -> bool {
        match &self.lane {
            Lane::Legacy(legacy) => legacy.congested(&self.core, writes),
            Lane::Mq(_) => false,
        }
    }

    /// Whether the device has no volatile cache, so that an empty flush is done before it comes here.
    #[must_use]
    pub fn drops_flushes(&self) -> bool {
        matches!(self.lane, Lane::Mq(_)) && !self.core.flushes.volatile()
    }

    /// Adds a task that will submit bios ([`Bio::task`]) and returns its number. Tasks and threads are numbered as they
    /// come.
    pub fn task_started(&mut self, info: TaskInfo) -> TaskId {
        let task = self.add_thread();
        self.core.sched.add_task(task, info);
        if let Lane::Legacy(legacy) = &mut self.lane {
            legacy.task_started(task);
        }
        task
    }

    /// Numbers of threads begin behind those of `tasks` processes. Returns the first of them.
    pub fn reserve_tasks(&mut self, tasks: usize) -> TaskId {
        self.core.threads.begin_at(tasks)
    }

    /// The number of another thread that will submit bios ([`Bio::thread`]).
    pub fn add_thread(&mut self) -> TaskId {
        self.core.threads.add()
    }

    /// A process ends.
    pub fn task_exited(&mut self, tl: &mut Timeline, task: TaskId) {
        self.core.hook_mut(tl, |s, c| s.task_exited(c, task));
        self.run_deferred(tl);
    }

    /// `blk_start_plug`: the task will submit several bios. Kernels with a device plug ignore it.
    pub fn start_plug(&mut self, task: TaskId) {
        if self.core.profile.plug.kind == PlugKind::Task {
            self.core.threads.plug(task, true);
        }
    }

    /// Whether the thread has a plug now.
    #[must_use]
    pub fn has_plug(&self, thread: TaskId) -> bool {
        self.core.threads.plugged(thread)
    }

    /// `blk_finish_plug`: hands over what is plugged.
    pub fn finish_plug(&mut self, tl: &mut Timeline, task: TaskId) {
        self.core.threads.plug(task, false);
        self.task_sleeps(tl, task);
    }

    /// Whether the plug is the device's.
    #[inline(always)]
    #[must_use]
    pub fn plugs_device(&self) -> bool {
        self.core.profile.plug.kind == PlugKind::Device
    }

    /// A task sleeps until a page or an I/O is done: a device's plug is pulled.
    pub fn awaited(&mut self, tl: &mut Timeline) {
        self.unplug_device(tl);
        self.run_deferred(tl);
    }

    /// The plug of the device, if it has one, is taken off, and the driver is called.
    pub fn unplug_device(&mut self, tl: &mut Timeline) {
        if let Lane::Legacy(legacy) = &mut self.lane {
            legacy.unplug_device(&mut self.core, tl);
        }
    }

    /// The task goes to sleep: its plug is emptied, the plug itself stays.
    pub fn task_sleeps(&mut self, tl: &mut Timeline, task: TaskId) {
        if self.core.threads.any_plugged(task) {
            on_lane!(self, path, core => plug::flush(core, path, tl, task));
        }
    }
}

/// What happens to it.
impl Queue {
    /// A task sleeps at `now` because too much memory is dirty with pages of this disk.
    pub fn writer_sleeps(&mut self, now: Nanos) {
        if let Some(wbt) = self.core.throttle.get() {
            wbt.writer_sleeps(now);
        }
    }

    /// Submits one bio (already [`split`](Self::split)).
    ///
    /// `resumed` says that the task was blocked on this bio and has been woken.
    #[inline(always)]
    pub fn submit(&mut self, tl: &mut Timeline, bio: &Bio, resumed: bool) -> Submit {
        let resumed = resumed && self.core.threads.slept_inside(bio.thread);
        if self.core.switches.any() && !resumed && self.held_by_switch(tl, bio) {
            return Submit::Blocked;
        }
        let answer = on_lane!(self, path, core => path.submit(core, tl, bio, resumed));
        match answer {
            Submit::Taken => self.core.stats.submitted += 1,
            Submit::Blocked if !resumed => self.core.threads.sleeps(bio.thread, true),
            Submit::Blocked | Submit::WouldBlock => {}
        }
        if resumed && answer != Submit::Blocked {
            self.core.threads.sleeps(bio.thread, false);
        }
        answer
    }

    /// Commands issued from now on belong to another system call.
    #[inline(always)]
    pub fn next_call(&mut self) {
        self.core.drive.next_call();
    }

    /// The kernel's deferred work: runs the queue if a run was requested. The simulator calls it at the end of each
    /// system call and after each event.
    #[inline(always)]
    pub fn run_deferred(&mut self, tl: &mut Timeline) {
        // Looked at before the path: most of the time there is nothing to do.
        if run::wanted(&self.core) {
            on_lane!(self, path, core => run::now(core, path, tl));
        }
    }

    /// Whether it is blk-mq.
    #[must_use]
    pub fn is_multi_queue(&self) -> bool {
        matches!(self.lane, Lane::Mq(_))
    }

    /// Leaves the runs that were requested to the kernel's worker, which runs when [`run_held`](Self::run_held) is called.
    pub fn hold_runs(&mut self) {
        self.core.runs.hold();
    }

    /// The worker's turn comes. `false` if it has nothing to do.
    pub fn run_held(&mut self, tl: &mut Timeline) -> bool {
        let held = self.core.runs.release();
        if held {
            self.run_deferred(tl);
        }
        held
    }

    /// Whether no deferred work waits, and nothing was handed out that its host has not taken.
    #[inline(always)]
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !run::wanted(&self.core) && self.core.out.done.is_empty() && self.core.out.woken.is_empty()
    }

    /// Handles an event of the timeline that names this queue's disk.
    pub fn event(&mut self, tl: &mut Timeline, event: QueueEvent) {
        self.next_call();
        let core = &mut self.core;
        match (event, &mut self.lane) {
            (QueueEvent::SchedulerTimer(n), _) => {
                if core.sched.timer_is(n) {
                    core.hook_mut(tl, |s, c| s.timer(c));
                }
            }
            (QueueEvent::Wbt(n), _) => core.throttle_window(tl, n),
            (QueueEvent::Unplug(n), Lane::Legacy(legacy)) => legacy.unplug_timer(core, n),
            (QueueEvent::Run(h), Lane::Mq(mq)) => mq.rerun_fired(core, tl.now, h),
            (QueueEvent::Run(_), Lane::Legacy(_)) => core.runs.ask(),
            (QueueEvent::Unplug(_), Lane::Mq(_)) => {}
            (QueueEvent::Switch, _) => self.end_switch(tl),
        }
        self.run_deferred(tl);
    }

    /// The device reached an event time: completions are booked into [`Outbox::done`]. The caller lets
    /// deferred work run next ([`run_deferred`](Self::run_deferred)).
    #[inline(always)]
    pub fn device_event(&mut self, tl: &mut Timeline) {
        self.core.drive.advance(tl.now);
        self.next_call();
        let finished = self.core.drive.finished().len();
        let (mut booked, mut call) = (finished, 0);
        for i in 0..finished {
            let c = self.core.drive.finished()[i];
            let of = self.core.reqs[c.id].call;
            // Commands of several calls are a moment apart. A task that the one wakes for a tag takes it before the
            // other is done.
            let other = of != std::mem::replace(&mut call, of);
            if other && i > 0 && !self.core.out.woken.is_empty() && !self.commands_at_once {
                booked = i;
                self.core.drive.come_again(tl.now);
                break;
            }
            self.complete(tl, &c);
            let out = &mut self.core.out;
            if !out.woken.is_empty() {
                out.woken_behind.resize(out.woken.len(), out.done.len() as u32);
            }
        }
        // Commands that a completion issued may finish at this same instant. These wait for the next event.
        self.core.drive.booked(booked);
    }

    /// A command came back.
    #[inline(always)]
    fn complete(&mut self, tl: &mut Timeline, c: &Completion) {
        let core = &mut self.core;
        let r = &core.reqs[c.id];
        core.drive.came_back(tl.now, &mut core.stats);
        if r.state & (state::FLUSH_CMD | state::FLUSH_SEQ) != 0 {
            on_lane!(self, path, core => path.flush_came_back(core, tl, c.id));
        } else {
            on_lane!(self, path, core => finish::request(core, path, tl, c.id));
        }
    }
}
