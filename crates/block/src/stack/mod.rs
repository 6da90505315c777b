//! What a host submits to: one disk, or several under md or the device mapper.
//!
//! A single disk is reached through this face at the price of one comparison a call. With several, a bio becomes bios
//! for the legs, each of which is a [`Queue`] with a scheduler, tags and plugs of its own. Merging happens only there.

mod array;
mod balance;
mod dirty;
mod inside;
mod ledger;
mod legs;
mod parts;
mod rounds;
mod route;
mod rules;
mod tape;

use iosched_schedulers::{QueueFacts, TaskInfo, TunableError};
use iosched_types::{Bio, DirectSync, IoPrio, Nanos, TaskId};

use crate::config::{ArrayConfig, Limits, QueueConfig};
use crate::core::trace::Trace;
use crate::outbox::{Outbox, Room, Submit};
use crate::queue::{Queue, SwitchError};
use crate::timeline::{ArrayEvent, DiskId, QueueEvent, Timeline};
use crate::{KernelProfile, SchedulerChoice};

use array::Array;
pub use balance::Why;
pub use ledger::{LegStats, Routed};
use legs::Legs;
use tape::Tape;
pub use tape::{Keep, Reel, Taped, Waits};

/// One disk, or several as one.
#[derive(Debug)]
pub struct Stack {
    /// The disk, or the first leg. Between calls its outbox is the one of the whole.
    first: Queue,
    others: Vec<Queue>,
    array: Option<Box<Array>>,
    tape: Option<Box<Tape>>,
}

impl From<Queue> for Stack {
    fn from(first: Queue) -> Stack {
        Stack { first, others: Vec::new(), array: None, tape: None }
    }
}

impl Stack {
    /// An array over legs. Their events name the disks 0, 1, …
    ///
    /// # Errors
    /// As [`Queue::new`].
    pub fn array(mut legs: Vec<QueueConfig>, array: &ArrayConfig) -> Result<Stack, TunableError> {
        let profile: Option<KernelProfile> = legs.first().map(|l| l.profile.clone());
        for (i, leg) in legs.iter_mut().enumerate() {
            leg.disk = DiskId(i as u16);
            let theirs = std::mem::take(&mut leg.tasks);
            leg.tasks = legs::threads().chain(theirs).collect();
        }
        let mut queues = legs.into_iter().map(Queue::new).collect::<Result<Vec<_>, _>>()?;
        let first = queues.remove(0);
        let mut stack = Stack { first, others: queues, array: None, tape: None };
        if let Some(profile) = profile {
            let array = Array::new(&profile, array, &mut stack.legs());
            stack.array = Some(Box::new(array));
        }
        Ok(stack)
    }

    fn legs(&mut self) -> Legs<'_> {
        Legs { first: &mut self.first, others: &mut self.others }
    }

    /// Work on an array: meanwhile the first leg's outbox is that leg's own.
    #[cold]
    #[inline(never)]
    fn on_array<R>(
        &mut self,
        tl: &mut Timeline,
        work: impl FnOnce(&mut Array, &mut Legs<'_>, &mut Timeline) -> R,
    ) -> Option<R> {
        let array = self.array.as_deref_mut()?;
        let mut legs = Legs { first: &mut self.first, others: &mut self.others };
        array.enter(&mut legs);
        let answer = work(array, &mut legs, tl);
        array.leave(&mut legs, tl);
        Some(answer)
    }

    fn is_array(&self) -> bool {
        self.array.is_some()
    }
}

/// What is known about it.
impl Stack {
    /// Facts of the disk, or of the first leg.
    #[must_use]
    pub fn facts(&self) -> &QueueFacts {
        self.first.facts()
    }

    /// The queues with schedulers, in the order of the legs.
    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Limits in force: the narrowest of all legs.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let mut all = self.first.limits();
        for leg in &self.others {
            let l = leg.limits();
            all.max_sectors = all.max_sectors.min(l.max_sectors);
            all.max_segments = all.max_segments.min(l.max_segments);
        }
        all
    }

    /// What an array did to its legs; empty of a disk.
    #[must_use]
    pub fn leg_stats(&self) -> Vec<LegStats> {
        self.array.as_ref().map_or_else(Vec::new, |a| a.routes.books.legs().to_vec())
    }

    /// Superblocks and pages of the bitmap that an array wrote to each leg, and rounds of flushes.
    #[must_use]
    pub fn array_counters(&self) -> Vec<(&'static str, u64)> {
        self.array.as_ref().map_or_else(Vec::new, |a| a.counters())
    }

    /// What happened to bios and their tasks.
    #[inline(always)]
    #[must_use]
    pub fn out(&self) -> &Outbox {
        self.first.out()
    }

    /// The same, to be drained.
    #[inline(always)]
    pub fn out_mut(&mut self) -> &mut Outbox {
        self.first.out_mut()
    }

    /// As [`Queue::sleeps_for`]; of an array for the leg that refused it, or for a mark.
    #[must_use]
    pub fn sleeps_for(&self, task: TaskId) -> Room {
        let Some(array) = &self.array else { return self.first.sleeps_for(task) };
        let below = legs::below(task);
        match array.inside.refused_by(below) {
            Some(leg) => self.queues().nth(leg).unwrap_or(&self.first).sleeps_for(below),
            None => Room::Mark,
        }
    }

    /// Commands at the devices.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.queues().map(Queue::in_flight).sum()
    }

    /// Requests waiting in the block layer.
    #[must_use]
    pub fn pending(&self) -> usize {
        let held = self.array.as_ref().map_or(0, |a| a.held());
        self.queues().map(Queue::pending).sum::<usize>() + held
    }

    /// When a device next needs attention; `Nanos::MAX` when never.
    #[inline(always)]
    #[must_use]
    pub fn device_next(&self) -> Nanos {
        let first = self.first.device_next();
        if self.others.is_empty() { first } else { self.next_of_legs(first) }
    }

    #[cold]
    #[inline(never)]
    fn next_of_legs(&self, first: Nanos) -> Nanos {
        self.others.iter().map(Queue::device_next).fold(first, Nanos::min)
    }

    /// As [`Queue::congested`]; of an array when one of its legs is.
    #[must_use]
    pub fn congested(&self, writes: bool) -> bool {
        self.queues().any(|leg| leg.congested(writes))
    }

    /// As [`Queue::drops_flushes`]; never of an array.
    #[must_use]
    pub fn drops_flushes(&self) -> bool {
        self.array.is_none() && self.first.drops_flushes()
    }

    /// Whether requests come from tag maps.
    #[must_use]
    pub fn has_tags(&self) -> bool {
        self.first.has_tags()
    }

    /// As [`Queue::unplugged_sectors`].
    #[must_use]
    pub fn unplugged_sectors(&self) -> u32 {
        self.first.unplugged_sectors()
    }

    /// As [`Queue::direct_sync`].
    #[must_use]
    pub fn direct_sync(&self) -> DirectSync {
        self.first.direct_sync()
    }

    /// As [`Queue::trims_alone`].
    #[must_use]
    pub fn trims_alone(&self) -> bool {
        self.first.trims_alone()
    }

    /// As [`Queue::prio_of_bios`].
    #[must_use]
    pub fn prio_of_bios(&self, prio: IoPrio, nice: i8) -> IoPrio {
        self.first.prio_of_bios(prio, nice)
    }

    /// Whether a device has said at a submission that commands are finished.
    #[inline]
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.queues().any(Queue::has_finished)
    }

    /// The pieces a bio is split into by the limits.
    pub fn split(&self, bio: Bio) -> impl Iterator<Item = Bio> + use<> {
        let narrowest = self.queues().min_by_key(|q| q.limits().max_sectors);
        narrowest.unwrap_or(&self.first).split(bio)
    }

    /// As [`Queue::charge_looks`].
    pub fn charge_looks(&mut self, on: bool) {
        self.legs().each(|leg| leg.charge_looks(on));
    }
}

/// Tasks and their plugs.
impl Stack {
    /// The number that a thread has on the legs.
    fn below(&self, thread: TaskId) -> TaskId {
        if self.is_array() { legs::below(thread) } else { thread }
    }

    fn above(&self, thread: TaskId) -> TaskId {
        if self.is_array() { legs::above(thread) } else { thread }
    }

    /// As [`Queue::task_started`].
    pub fn task_started(&mut self, info: TaskInfo) -> TaskId {
        for leg in &mut self.others {
            leg.task_started(info.clone());
        }
        let number = self.first.task_started(info);
        self.above(number)
    }

    /// As [`Queue::reserve_tasks`].
    pub fn reserve_tasks(&mut self, tasks: usize) -> TaskId {
        let below = self.below(tasks as TaskId) as usize;
        for leg in &mut self.others {
            leg.reserve_tasks(below);
        }
        let first = self.first.reserve_tasks(below);
        self.above(first)
    }

    /// As [`Queue::add_thread`].
    pub fn add_thread(&mut self) -> TaskId {
        for leg in &mut self.others {
            leg.add_thread();
        }
        let number = self.first.add_thread();
        self.above(number)
    }

    /// A process ends.
    pub fn task_exited(&mut self, tl: &mut Timeline, task: TaskId) {
        if !self.is_array() {
            return self.first.task_exited(tl, task);
        }
        let below = legs::below(task);
        self.on_array(tl, |_, legs, tl| legs.each(|leg| leg.task_exited(tl, below)));
    }

    /// As [`Queue::start_plug`].
    pub fn start_plug(&mut self, task: TaskId) {
        let below = self.below(task);
        self.legs().each(|leg| leg.start_plug(below));
    }

    /// Whether the thread has a plug now.
    #[must_use]
    pub fn has_plug(&self, thread: TaskId) -> bool {
        self.first.has_plug(self.below(thread))
    }

    /// As [`Queue::finish_plug`].
    #[inline]
    pub fn finish_plug(&mut self, tl: &mut Timeline, task: TaskId) {
        if !self.is_array() {
            return self.first.finish_plug(tl, task);
        }
        let below = legs::below(task);
        self.on_array(tl, |_, legs, tl| legs.each(|leg| leg.finish_plug(tl, below)));
    }

    /// As [`Queue::plugs_device`], of each leg.
    #[inline(always)]
    #[must_use]
    pub fn plugs_device(&self) -> bool {
        self.first.plugs_device()
    }

    /// As [`Queue::unplug_device`].
    pub fn unplug_device(&mut self, tl: &mut Timeline) {
        if !self.is_array() {
            return self.first.unplug_device(tl);
        }
        self.on_array(tl, |_, legs, tl| legs.each(|leg| leg.unplug_device(tl)));
    }

    /// As [`Queue::awaited`].
    pub fn awaited(&mut self, tl: &mut Timeline) {
        if !self.is_array() {
            return self.first.awaited(tl);
        }
        self.on_array(tl, |_, legs, tl| legs.each(|leg| leg.awaited(tl)));
    }

    /// As [`Queue::task_sleeps`].
    #[inline]
    pub fn task_sleeps(&mut self, tl: &mut Timeline, task: TaskId) {
        if !self.is_array() {
            return self.first.task_sleeps(tl, task);
        }
        let below = legs::below(task);
        self.on_array(tl, |_, legs, tl| legs.each(|leg| leg.task_sleeps(tl, below)));
    }
}

/// What happens to it.
impl Stack {
    /// As [`Queue::submit`]. An array never answers [`Submit::WouldBlock`].
    #[inline(always)]
    pub fn submit(&mut self, tl: &mut Timeline, bio: &Bio, resumed: bool) -> Submit {
        if self.tape.is_some() {
            self.note(tl.now, bio, resumed);
        }
        if !self.is_array() {
            return self.first.submit(tl, bio, resumed);
        }
        let answer = self.on_array(tl, |array, legs, tl| array.submit(legs, tl, bio, resumed));
        answer.unwrap_or(Submit::Taken)
    }

    /// Commands issued from now on belong to another system call.
    #[inline(always)]
    pub fn next_call(&mut self) {
        self.first.next_call();
        for leg in &mut self.others {
            leg.next_call();
        }
    }

    /// As [`Queue::run_deferred`].
    #[inline(always)]
    pub fn run_deferred(&mut self, tl: &mut Timeline) {
        if !self.is_array() {
            return self.first.run_deferred(tl);
        }
        self.on_array(tl, |_, legs, tl| legs.each(|leg| leg.run_deferred(tl)));
    }

    /// Whether the first disk's queue is blk-mq.
    #[must_use]
    pub fn is_multi_queue(&self) -> bool {
        self.first.is_multi_queue()
    }

    /// As [`Queue::hold_runs`]; an array's runs are not held.
    pub fn hold_runs(&mut self) {
        if !self.is_array() {
            self.first.hold_runs();
        }
    }

    /// As [`Queue::run_held`].
    pub fn run_held(&mut self, tl: &mut Timeline) -> bool {
        !self.is_array() && self.first.run_held(tl)
    }

    /// As [`Queue::is_settled`]; an array is looked at each time.
    #[inline(always)]
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.is_array() && self.first.is_settled()
    }

    /// As [`Queue::writer_sleeps`], on every leg.
    pub fn writer_sleeps(&mut self, now: Nanos) {
        self.legs().each(|leg| leg.writer_sleeps(now));
    }

    /// Handles an event that names a disk.
    #[inline]
    pub fn event(&mut self, tl: &mut Timeline, disk: DiskId, event: QueueEvent) {
        if !self.is_array() {
            debug_assert_eq!(disk, self.first.disk(), "an event of another disk");
            return self.first.event(tl, event);
        }
        self.on_array(tl, |_, legs, tl| legs.get(usize::from(disk.0)).event(tl, event));
    }

    /// Handles an event of the array itself.
    pub fn array_event(&mut self, tl: &mut Timeline, event: ArrayEvent) {
        self.on_array(tl, |array, _, _| array.event(event));
    }

    /// A device reached an event time. The caller lets deferred work run next.
    #[inline(always)]
    pub fn device_event(&mut self, tl: &mut Timeline) {
        if !self.is_array() {
            return self.first.device_event(tl);
        }
        self.on_array(tl, |_, legs, tl| {
            let now = tl.now;
            legs.each(|leg| {
                if leg.device_next() <= now {
                    leg.device_event(tl);
                }
            });
        });
    }
}

/// A recording of bios.
impl Stack {
    /// Notes bios from now on.
    pub fn record(&mut self, keep: Keep) {
        self.out_mut().issues.get_or_insert_default();
        self.tape = Some(Box::new(Tape::new(keep)));
    }

    #[cold]
    fn note(&mut self, now: Nanos, bio: &Bio, resumed: bool) {
        let Some(tape) = self.tape.as_mut() else { return };
        if !resumed {
            tape.submit(now, bio);
        }
        if let Some(most) = tape.opens(now) {
            self.legs().each(|leg| leg.explain_at_most(most));
        }
    }

    /// Takes down what was issued and done, before the caller drains it. `kept` says that the caller drains the list of
    /// issued commands itself.
    #[inline(always)]
    pub fn roll_tape(&mut self, kept: bool) {
        if self.tape.is_some() {
            self.roll(kept);
        }
    }

    #[cold]
    fn roll(&mut self, kept: bool) {
        let Some(mut tape) = self.tape.take() else { return };
        let out = self.out_mut();
        tape.roll(out.issues.as_deref().unwrap_or_default(), &out.done);
        if let Some(issues) = out.issues.as_mut().filter(|_| !kept) {
            issues.clear();
        }
        self.tape = Some(tape);
    }

    /// What was noted.
    #[must_use]
    pub fn take_tape(&mut self) -> Reel {
        self.tape.take().map_or_else(Reel::default, |t| t.into_reel())
    }
}

/// For `iosched explain`, and a driver that asks by hand.
impl Stack {
    /// Turns on the collection of decisions with reasons.
    pub fn explain(&mut self) {
        self.legs().each(Queue::explain);
        if let Some(array) = &mut self.array {
            array.routes.books.explain();
        }
    }

    /// The decisions of each leg since then.
    pub fn take_traces(&mut self, tl: &Timeline) -> Vec<Trace> {
        let mut all = vec![self.first.take_trace(tl)];
        all.extend(self.others.iter_mut().map(|leg| leg.take_trace(tl)));
        all
    }

    /// Where an array sent a bio of a leg's trace: the bio it was made of, and why that leg. `None` of a disk, and of
    /// what the array writes for itself.
    #[must_use]
    pub fn routed(&self, below: u32) -> Option<Routed> {
        self.array.as_ref()?.routes.books.routed(below)
    }

    /// The task of a leg's trace as the host numbers it; `None` of an array's own thread.
    #[must_use]
    pub fn task_above(&self, below: TaskId) -> Option<TaskId> {
        if self.is_array() { legs::above_checked(below) } else { Some(below) }
    }

    /// As [`Queue::pull_by_hand`], on all legs.
    pub fn pull_by_hand(&mut self) {
        self.legs().each(Queue::pull_by_hand);
    }

    /// As [`Queue::pull`], on the first leg.
    pub fn pull(&mut self, tl: &mut Timeline) -> bool {
        self.first.pull(tl)
    }

    /// As [`Queue::ask_again`].
    pub fn ask_again(&mut self) {
        self.legs().each(Queue::ask_again);
    }

    /// Another scheduler takes over, on every leg.
    ///
    /// # Errors
    /// As [`Queue::switch`].
    pub fn switch(&mut self, tl: &mut Timeline, to: &SchedulerChoice) -> Result<(), SwitchError> {
        for leg in std::iter::once(&mut self.first).chain(&mut self.others) {
            leg.switch(tl, to.clone())?;
        }
        Ok(())
    }
}
