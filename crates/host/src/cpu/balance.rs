//! A core that goes idle takes a process that waits for another core.
//!
//! The caches of the core on which a process ran just now are still warm for it, so for [`HOT`] it stays there. The idle
//! core looks again when that is over.

use iosched_types::{Nanos, TaskId};

use super::{Cores, Piece};

/// How long a process is not moved after it ran: Linux's default of `sched_migration_cost_ns`.
const HOT: Nanos = 500_000;
/// How many waiting processes of a core are looked at: Linux's default of `sched_nr_migrate`.
const DEEP: usize = 32;
/// In the number of an event: the core of this number looks for a process.
pub(super) const LOOK: u16 = 1 << 15;

/// What a core that has nothing to do finds.
enum Found {
    /// A process, and the core for which it waits.
    Task(TaskId, u16),
    /// One that may come at this time.
    Later(Nanos),
    Nothing,
}

impl Cores {
    /// The core `i` has nothing to do.
    pub(super) fn take_over(&mut self, now: Nanos, i: u16) {
        if self.waiting == 0 {
            return;
        }
        match self.find(now, i) {
            Found::Task(task, from) => {
                self.cores[usize::from(from)].ready.remove(task, &mut self.shares, self.fair);
                self.waiting -= 1;
                self.move_to(task, i);
                let core = &mut self.cores[usize::from(i)];
                core.ready.take_core(task, &mut self.shares[task as usize], self.fair);
                (core.since, core.charged) = (now, now);
                self.begin(now, task, Piece::SwitchIn, 0);
            }
            Found::Later(at) => {
                let core = &mut self.cores[usize::from(i)];
                if core.looks_at.is_none_or(|known| at < known) {
                    core.looks_at = Some(at);
                    self.due.push((at, i | LOOK));
                }
            }
            Found::Nothing => {}
        }
    }

    /// A core that was idle looks again, if it still is.
    pub(super) fn look_again(&mut self, now: Nanos, i: u16) {
        let core = &mut self.cores[usize::from(i)];
        if core.looks_at != Some(now) {
            return;
        }
        core.looks_at = None;
        if core.current.is_none() && !core.waking {
            self.take_over(now, i);
        }
    }

    /// The process that has waited longest in fair order on the core where most wait, and that may run on `i`.
    fn find(&self, now: Nanos, i: u16) -> Found {
        let mut later = None;
        let mut best: Option<(usize, TaskId, u16)> = None;
        for (n, core) in (0u16..).zip(&self.cores) {
            let waiting = core.ready.len();
            // A core that wakes up serves its own process in a moment.
            let spare = waiting - usize::from(core.current.is_none()).min(waiting);
            if n == i || spare == 0 || best.is_some_and(|(most, ..)| spare <= most) {
                continue;
            }
            let found = core.ready.find(DEEP, |task| {
                let cold = self.ran[*task as usize] + HOT;
                if !self.may_run(*task, i) {
                    return false;
                }
                if cold > now {
                    later = Some(later.map_or(cold, |l: Nanos| l.min(cold)));
                }
                cold <= now
            });
            best = found.map(|task| (spare, task, n)).or(best);
        }
        match (best, later) {
            (Some((_, task, from)), _) => Found::Task(task, from),
            (None, Some(at)) => Found::Later(at),
            (None, None) => Found::Nothing,
        }
    }

    fn may_run(&self, task: TaskId, i: u16) -> bool {
        let allowed = &self.allowed[task as usize];
        allowed.is_empty() || allowed.contains(&i)
    }
}
