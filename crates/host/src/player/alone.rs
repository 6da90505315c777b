//! A world of chains alone.
//!
//! The order within one instant is that of the machine: the device's own events, deferred queue runs, then chains in the
//! order in which they were woken.

use std::ops::ControlFlow;

use iosched_block::{Event, Issue, Stack, Timeline};
use iosched_engine::World;
use iosched_types::Nanos;

use super::{Chains, On, Played, Score};
use crate::error::HostError;
use crate::events::HostEvent;
use crate::samples::{MOST_DISPATCHES, Sampler, Thin};

/// Events at one instant after which the simulation counts as stuck.
const MOST_AT_ONCE: u64 = 50_000_000;

/// Plays a recording on a queue.
pub struct Player {
    /// What it submits to.
    pub queue: Stack,
    /// The clock.
    pub tl: Timeline,
    chains: Chains,
    completed_once: bool,
    dispatches: Option<Thin<Issue>>,
    /// Samples of the queue, if they are collected.
    pub sampler: Option<Sampler>,
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Player({} chains, t={})", self.chains.alive(), self.tl.now)
    }
}

impl Player {
    /// Puts a recording on a queue whose tasks are those of the recording.
    #[must_use]
    pub fn new(mut queue: Stack, score: Score, start: Nanos) -> Player {
        let mut chains = Chains::alone(&mut queue, score);
        chains.begin(start);
        Player {
            queue,
            tl: Timeline { now: start, ..Timeline::default() },
            chains,
            completed_once: true,
            dispatches: None,
            sampler: None,
        }
    }

    /// What was measured.
    #[must_use]
    pub fn played(&self) -> &Played {
        &self.chains.played
    }

    /// The kernel's worker that runs queues at completions has not run yet.
    pub fn first_run_late(&mut self) {
        self.completed_once = false;
    }

    /// Collects the way of the head.
    pub fn collect_dispatches(&mut self) {
        self.queue.out_mut().issues = Some(Vec::new());
        self.dispatches = Some(Thin::new(MOST_DISPATCHES));
    }

    /// What was collected of it.
    #[must_use]
    pub fn take_dispatches(&mut self) -> Vec<Issue> {
        self.dispatches.take().map_or_else(Vec::new, Thin::into_vec)
    }

    /// Samples the queue's depth every `step` ns.
    pub fn collect_series(&mut self, step: Nanos) {
        self.sampler = Some(Sampler::every(step));
        self.tl.events.push(self.tl.now + step, HostEvent::Sample.into());
    }

    /// Plays it to its end. `progress` is called now and then with the virtual time, and says whether to go on.
    ///
    /// # Errors
    /// As those of [`Machine::run`](crate::Machine::run).
    pub fn run(
        &mut self,
        progress: &mut dyn FnMut(Nanos) -> ControlFlow<()>,
    ) -> Result<(), HostError> {
        let (mut at_once, mut turns) = (0u64, 0u64);
        loop {
            self.run_ready();
            let alive = self.chains.alive();
            if alive == 0 {
                return Ok(());
            }
            let at_ms = self.tl.now as f64 / 1e6;
            let Some(at) = self.next().filter(|_| !self.only_samples()) else {
                let pending = self.queue.pending().max(self.chains.under_way());
                return Err(HostError::Stuck { at_ms, waiting: alive, pending });
            };
            at_once = if at > self.tl.now { 0 } else { at_once + 1 };
            if at_once > MOST_AT_ONCE {
                return Err(HostError::NoProgress { at_ms, events: at_once });
            }
            self.turn(at);
            self.collect();
            turns += 1;
            if turns.is_multiple_of(1 << 16) && progress(self.tl.now).is_break() {
                return Err(HostError::Stopped);
            }
        }
    }

    /// Nothing but samples of the queue is to come.
    fn only_samples(&self) -> bool {
        self.sampler.is_some() && self.tl.events.len() == 1 && self.device_next() == Nanos::MAX
    }

    fn run_ready(&mut self) {
        while self.chains.run_one(&mut On { queue: &mut self.queue, tl: &mut self.tl }) {
            let out = self.queue.out();
            if !out.done.is_empty() || !out.woken.is_empty() {
                self.collect();
            }
        }
    }

    /// Books finished bios and wakes chains.
    fn collect(&mut self) {
        self.queue.roll_tape(self.dispatches.is_some());
        if self.dispatches.is_some() {
            self.collect_issues();
        }
        let parallel = self.queue.facts().cpus > 1;
        if parallel {
            self.wake_sleepers(usize::MAX);
        }
        for i in 0..self.queue.out().done.len() {
            if !parallel && !self.queue.out().woken.is_empty() {
                let behind = &self.queue.out().woken_behind;
                self.wake_sleepers(behind.iter().take_while(|b| **b as usize <= i).count());
            }
            let id = self.queue.out().done[i].bio;
            self.chains.bio_done(id, self.tl.now);
            self.completed_once = true;
        }
        self.queue.out_mut().done.clear();
        if !parallel {
            self.wake_sleepers(usize::MAX);
        }
    }

    #[cold]
    fn collect_issues(&mut self) {
        if let (Some(list), Some(thin)) = (&mut self.queue.out_mut().issues, &mut self.dispatches) {
            list.drain(..).for_each(|i| thin.push(i));
        }
    }

    fn sample(&mut self) {
        let (in_flight, pending) = (self.queue.in_flight(), self.queue.pending());
        if let Some(s) = &mut self.sampler {
            s.take(f64::from(in_flight), pending as f64);
            let next = self.tl.now + s.step;
            self.tl.events.push(next, HostEvent::Sample.into());
        }
    }

    /// The first of those that slept for room may try again.
    fn wake_sleepers(&mut self, most: usize) {
        let out = self.queue.out_mut();
        let count = out.woken.len().min(most);
        out.woken_behind.drain(..count.min(out.woken_behind.len()));
        for thread in out.woken.drain(..count) {
            self.chains.has_room(thread);
        }
    }
}

impl World for Player {
    type Event = Event;

    #[inline(always)]
    fn timeline(&mut self) -> &mut Timeline {
        &mut self.tl
    }

    #[inline(always)]
    fn device_next(&self) -> Nanos {
        self.queue.device_next()
    }

    #[inline(always)]
    fn device_event(&mut self) {
        self.queue.device_event(&mut self.tl);
        if !self.completed_once && !self.queue.out().done.is_empty() {
            self.collect();
            self.run_ready();
        }
        self.queue.run_deferred(&mut self.tl);
    }

    #[inline]
    fn event(&mut self, event: Event) {
        match event {
            Event::Queue(disk, event) => self.queue.event(&mut self.tl, disk, event),
            Event::Array(event) => self.queue.array_event(&mut self.tl, event),
            Event::Host(number) => match HostEvent::of(number) {
                HostEvent::Chain(lane) => self.chains.wake(lane),
                HostEvent::Sample => self.sample(),
                HostEvent::Wake(..) | HostEvent::Look | HostEvent::Started | HostEvent::Core(_) => {
                }
            },
        }
    }
}
