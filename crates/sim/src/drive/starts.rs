//! When jobs start: fio's main thread looks again and again which of them may.
//!
//! Measured with jobs of various delays: a look comes a sleep after the one before; jobs found at a look start together,
//! another sleep later, and the next look comes a sleep after that. Only then are jobs seen that have ended meanwhile, so
//! a `stonewall` takes a few sleeps, too (`docs/fidelity-fio.md`).

use iosched_block::Event;
use iosched_types::{Nanos, TaskId};
use iosched_workloads::fio::JobSet;

use super::{Drive, State};

/// The sleep of fio's main thread, with the timer slack of Linux.
const SLEEP: Nanos = 100_050_000;
/// Numbers of the events.
pub(super) const LOOK: u32 = 1;
pub(super) const STARTED: u32 = 2;

/// How long after the start of a run in which a job starts at once the first of these jobs starts.
pub(crate) fn first_start(jobs: &JobSet) -> Nanos {
    let looks = |delay: Nanos| delay.div_ceil(SLEEP) * SLEEP;
    jobs.jobs.iter().map(|j| looks(j.start_delay())).min().unwrap_or(0)
}

/// What fio's main thread knows.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// When a job without a delay starts: a sleep after the first look.
    origin: Nanos,
    /// Jobs that were running when it last looked for those that had ended.
    running: usize,
}

impl Drive {
    /// The first look. The jobs it finds start at once.
    pub(super) fn start_first_jobs(&mut self) {
        self.starts.origin = self.tl.now;
        if self.start_due_jobs(0, self.tl.now) > 0 {
            self.jobs_started();
        } else {
            self.look_for_jobs();
        }
    }

    /// Another look.
    pub(super) fn look_for_jobs(&mut self) {
        let now = self.tl.now;
        let since = now - self.starts.origin + SLEEP;
        if self.start_due_jobs(since, now + SLEEP) > 0 {
            self.tl.events.push(now + SLEEP, Event::User(STARTED));
        } else {
            self.jobs_started();
        }
    }

    /// Looks for jobs that have ended, then sleeps until the next look.
    pub(super) fn jobs_started(&mut self) {
        let over = |s: &State| matches!(s, State::Exited);
        let unstarted = |t: &&super::TaskRun| t.sleep == 0 && matches!(t.state, State::Waiting);
        let tasks = &self.tasks;
        let gone = tasks.iter().filter(|t| over(&t.state) || unstarted(t)).count();
        self.starts.running = tasks.len() - gone;
        if self.unstarted > 0 {
            self.tl.events.push(self.tl.now + SLEEP, Event::User(LOOK));
        }
    }

    /// Starts every job whose delay is over, up to a `stonewall` while others run; how many.
    fn start_due_jobs(&mut self, since: Nanos, at: Nanos) -> usize {
        let mut started = 0;
        for (i, task) in self.tasks.iter_mut().enumerate() {
            let job = task.process.job();
            let waiting = task.sleep == 0 && matches!(task.state, State::Waiting);
            if !waiting || job.start_delay() > since {
                continue;
            }
            if job.wait.stonewall && started + self.starts.running > 0 {
                break;
            }
            task.sleep = 1;
            started += 1;
            self.tl.events.push(at, Event::Task(i as TaskId, 1));
        }
        self.unstarted -= started;
        started
    }
}
