//! The loop: who runs, and what happens next.

use iosched_block::{Event, Timeline};
use iosched_engine::World;
use iosched_syscalls::Birth;
use iosched_types::Nanos;

use crate::cpu::{Ended, Piece};
use crate::error::HostError;
use crate::events::HostEvent;

use super::paths;
use super::task::{State, Tid};
use super::{GoOn, LOOK, Programs};

impl World for Programs {
    type Event = Event;

    #[inline(always)]
    fn timeline(&mut self) -> &mut Timeline {
        &mut self.tl
    }

    #[inline(always)]
    fn device_next(&self) -> Nanos {
        self.queue.device_next()
    }

    fn device_event(&mut self) {
        self.queue.device_event(&mut self.tl);
        self.queue.run_deferred(&mut self.tl);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Queue(disk, event) => self.queue.event(&mut self.tl, disk, event),
            Event::Array(event) => self.queue.array_event(&mut self.tl, event),
            Event::Host(number) => match HostEvent::of(number) {
                HostEvent::Wake(t, nap) => self.alarm_fired(t, nap),
                HostEvent::Core(core) => self.core_ended = Some(core),
                HostEvent::Chain(chain) => self.beside.wake(chain),
                HostEvent::Sample | HostEvent::Look | HostEvent::Started => {}
            },
        }
    }
}

impl Programs {
    /// Runs until every task has ended, and its asynchronous I/O too: the kernel lets no process go before that. What
    /// the kernel's threads write in the background is not waited for.
    pub(super) fn until_tasks_end(&mut self, go_on: GoOn<'_>) -> Result<(), HostError> {
        self.go_on_until(|host| host.alive == 0 && host.asyncs_begun == 0, go_on)
    }

    /// Runs until every task has ended and nothing is under way.
    ///
    /// # Errors
    /// As [`Programs::run`].
    pub fn until_all_end(&mut self, go_on: GoOn<'_>) -> Result<(), HostError> {
        let idle = |host: &Programs| host.owners.len() == host.free_owners.len();
        self.go_on_until(|host| host.alive == 0 && idle(host), go_on)
    }

    /// Runs until a recording that is played beside the tasks has ended, too.
    ///
    /// # Errors
    /// As [`Programs::run`].
    pub fn until_beside_ends(&mut self, go_on: GoOn<'_>) -> Result<(), HostError> {
        self.go_on_until(|host| host.beside.alive() == 0, go_on)
    }

    fn go_on_until(
        &mut self,
        over: impl Fn(&Programs) -> bool,
        go_on: GoOn<'_>,
    ) -> Result<(), HostError> {
        let mut turns = 0u64;
        loop {
            self.run_ready(go_on)?;
            self.schedule_cores();
            if over(self) {
                return Ok(());
            }
            let Some(at) = self.next() else {
                let at_ms = self.tl.now as f64 / 1e6;
                let (waiting, who) = (self.alive, self.waiting());
                return Err(HostError::Deadlock { at_ms, waiting, who });
            };
            self.next_turn(at, go_on)?;
            turns += 1;
            if turns.is_multiple_of(LOOK) && go_on(self.tl.now).is_break() {
                return Err(HostError::Stopped);
            }
        }
    }

    /// Lets the kernel's threads go on for so long after the run.
    ///
    /// # Errors
    /// When it was stopped.
    pub fn rest(&mut self, time: Nanos, go_on: GoOn<'_>) -> Result<(), HostError> {
        let end = self.tl.now + time;
        loop {
            self.run_ready(go_on)?;
            self.schedule_cores();
            match self.next() {
                Some(at) if at <= end => self.next_turn(at, go_on)?,
                _ => return Ok(()),
            }
        }
    }

    /// Lets one more task run after the run, on the machine as the run left it, until it has ended.
    ///
    /// # Errors
    /// As [`Programs::run`].
    pub fn run_after(&mut self, birth: Birth, go_on: GoOn<'_>) -> Result<(), HostError> {
        self.born(birth, None, 0);
        self.until_tasks_end(go_on)
    }

    fn next_turn(&mut self, at: Nanos, go_on: GoOn<'_>) -> Result<(), HostError> {
        self.turn(at);
        if let Some(core) = self.core_ended.take() {
            self.core_event(core, go_on)?;
        }
        self.collect();
        Ok(())
    }

    fn run_ready(&mut self, go_on: GoOn<'_>) -> Result<(), HostError> {
        loop {
            if let Some(t) = self.ready.pop_front() {
                self.on_its_turn(t, go_on)?;
                self.queue.next_call();
            } else if !self.beside.run_one(&mut self.queue, &mut self.tl) {
                return Ok(());
            }
            if !self.queue.out().done.is_empty() || !self.queue.out().woken.is_empty() {
                self.collect();
            }
        }
    }

    /// A task that is on a core: first what its call still has to do.
    fn on_its_turn(&mut self, t: Tid, go_on: GoOn<'_>) -> Result<(), HostError> {
        if paths::is_thread(t) {
            self.drive(t);
            return Ok(());
        }
        if self.on_path(t) {
            let Some(answer) = self.drive(t) else { return Ok(()) };
            self.path_ends(t, answer);
            self.take_async_results();
        }
        let Some(task) = self.tasks.get_mut(t as usize) else { return Ok(()) };
        if task.state == State::Ended || task.work.busy && !self.go_on(t) {
            return Ok(());
        }
        let task = &mut self.tasks[t as usize];
        if task.compute > 0 && !self.compute(t) {
            return Ok(());
        }
        self.resume(t, go_on)
    }

    fn schedule_cores(&mut self) {
        if let Some(cores) = &mut self.cores {
            for (at, core) in cores.due.drain(..) {
                self.tl.events.push(at, HostEvent::Core(core).into());
            }
        }
    }

    fn core_event(&mut self, core: u16, go_on: GoOn<'_>) -> Result<(), HostError> {
        let Some(cores) = &mut self.cores else { return Ok(()) };
        let Ended::Piece(seat, piece) = cores.event(self.tl.now, core) else { return Ok(()) };
        if piece == Piece::Bio && cores.lock(self.tl.now, seat) {
            return Ok(());
        }
        let t = paths::seated(seat);
        if paths::is_thread(t) {
            self.actors[seat as usize].paid = matches!(piece, Piece::Bio | Piece::Locked);
            self.drive(t);
            return Ok(());
        }
        if matches!(piece, Piece::Bio | Piece::Locked) {
            self.tasks[t as usize].work.paid = true;
        }
        // It stood behind others before its piece began.
        if piece == Piece::SwitchIn
            && let Some((user, system)) = self.tasks[t as usize].put_off.take()
        {
            self.occupy(t, user, system);
            return Ok(());
        }
        if let Some(call) = self.tasks[t as usize].call.take()
            && !self.execute(t, call)
        {
            return Ok(());
        }
        self.on_its_turn(t, go_on)
    }

    /// A piece of work of a task on its core.
    pub(super) fn occupy(&mut self, t: Tid, user: Nanos, system: Nanos) {
        let Some(cores) = &mut self.cores else { return };
        if !cores.begin_call(self.tl.now, paths::seat_of(t), user, system) {
            self.tasks[t as usize].put_off = Some((user, system));
        }
    }
}
