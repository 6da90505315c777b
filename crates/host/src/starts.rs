//! When jobs start: fio's main thread checks again and again which jobs may start.
//!
//! Measured with jobs of various delays: each look comes a sleep after the one before. Jobs found at a look start
//! together, another sleep later, and the next look comes a sleep after that. Only then does fio see jobs that have
//! ended meanwhile. So a `stonewall` takes a few sleeps, too (`docs/fidelity-fio.md`).

use iosched_types::{Nanos, TaskId};
use iosched_workloads::fio::{JobSet, exits};

use crate::events::HostEvent;
use crate::machine::Machine;
use crate::tasks::{State, Task};

/// The sleep of fio's main thread, with the timer slack of Linux.
const SLEEP: Nanos = 100_050_000;

/// In a run with a job that starts at once: how long after the start of the run the first such job starts.
#[must_use]
pub fn first_start(jobs: &JobSet) -> Nanos {
    let looks = |delay: Nanos| delay.div_ceil(SLEEP) * SLEEP;
    jobs.jobs.iter().map(|j| looks(j.start_delay())).min().unwrap_or(0)
}

/// What fio's main thread knows.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// When a job without a delay starts: a sleep after the first look.
    origin: Nanos,
    /// Jobs that were running at the last look for ended ones.
    running: usize,
    /// The jobs in the order in which they begin where several may.
    order: Vec<TaskId>,
    /// They keep this order whenever several are ready.
    pub(crate) keeps_order: bool,
}

impl Starts {
    /// A process's place in the order that processes keep; without one, all have the same.
    pub(crate) fn place(&self, t: TaskId) -> usize {
        if !self.keeps_order {
            return 0;
        }
        self.order.iter().position(|o| *o == t).unwrap_or(usize::MAX)
    }
}

impl Machine {
    /// Processes that may start at the same time begin in this order of their jobs. Jobs that it does not name begin
    /// after them.
    pub fn start_in_order(&mut self, order: &[TaskId]) {
        let tasks = 0..self.tasks.len() as TaskId;
        let named = order.iter().copied().filter(|t| tasks.contains(t));
        self.starts.keeps_order = !order.is_empty();
        let waits = |t: &Task| t.job.spec().engine.is_sync();
        self.worker_last =
            !order.is_empty() && self.queue.is_multi_queue() && !self.tasks.iter().all(waits);
        self.starts.order = named.chain(tasks.clone().filter(|t| !order.contains(t))).collect();
    }

    /// The first look. The jobs it finds start at once.
    pub(crate) fn start_first_jobs(&mut self) {
        self.starts.origin = self.tl.now;
        if self.start_due_jobs(0, self.tl.now) > 0 {
            self.jobs_started();
        } else {
            self.look_for_jobs();
        }
    }

    /// Another look.
    pub(crate) fn look_for_jobs(&mut self) {
        let now = self.tl.now;
        let since = now - self.starts.origin + SLEEP;
        if self.start_due_jobs(since, now + SLEEP) > 0 {
            self.tl.events.push(now + SLEEP, HostEvent::Started.into());
        } else {
            self.jobs_started();
        }
    }

    /// Looks for jobs that have ended, then sleeps until the next look.
    pub(crate) fn jobs_started(&mut self) {
        let over = |s: &State| matches!(s, State::Exited);
        let unstarted = |t: &&Task| t.sleep == 0 && matches!(t.state, State::Waiting);
        let tasks = &self.tasks;
        let gone = tasks.iter().filter(|t| over(&t.state) || unstarted(t)).count();
        self.starts.running = tasks.len() - gone;
        if self.unstarted > 0 {
            self.tl.events.push(self.tl.now + SLEEP, HostEvent::Look.into());
        }
    }

    /// `exitall` of a job that has ended: others end too, and those that have not begun never do.
    #[inline(never)]
    pub(crate) fn end_others(&mut self, ended: TaskId) {
        if self.tasks[ended as usize].job.spec().exit_all.is_none() {
            return;
        }
        let jobs: Vec<_> = self.tasks.iter().map(|t| t.job.spec()).collect();
        for other in exits::ended_by(&jobs, ended as usize) {
            let task = &mut self.tasks[other];
            if task.sleep == 0 && matches!(task.state, State::Waiting) {
                task.state = State::Exited;
                self.alive -= 1;
                self.unstarted -= 1;
            } else if !matches!(task.state, State::Exited) {
                task.job.terminate();
            }
        }
    }

    /// Starts every job with its delay over, up to a `stonewall` while others run. Returns how many.
    fn start_due_jobs(&mut self, since: Nanos, at: Nanos) -> usize {
        let mut started = 0;
        for place in 0..self.tasks.len() {
            let i = self.starts.order.get(place).map_or(place, |t| *t as usize);
            let task = &mut self.tasks[i];
            let job = task.job.spec();
            let waiting = task.sleep == 0 && matches!(task.state, State::Waiting);
            if !waiting || job.start_delay() > since {
                continue;
            }
            if job.wait.stonewall && started + self.starts.running > 0 {
                break;
            }
            task.sleep = 1;
            started += 1;
            self.tl.events.push(at, HostEvent::wake(i as TaskId, 1).into());
        }
        self.unstarted -= started;
        started
    }
}
