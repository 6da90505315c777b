//! Discards of a device: one process at a time.
//!
//! The call that discards holds a lock of the device until the discard is done. Rules from logs of 6.12 and 7.1 (`fio` with
//! `rw=randtrim` and two to four processes; random job `hdd7k_q1.g71`):
//!
//! * Giving the lock back wakes the process that waits the longest. The one that gave it back runs on: its next discard finds the
//!   lock free and takes it again, and the woken one sleeps again.
//! * A woken process that has waited for more than a whole tick asks for the lock. The next time no other may take it.

use std::collections::VecDeque;

use iosched_types::{Bio, BioId, TaskId};

use crate::machine::Machine;
use crate::tasks::State;

/// Ticks after which a process asks for the lock: one begins before it waits, so it has waited for one at least.
const PATIENCE: u64 = 2;

#[derive(Debug)]
struct Waiter {
    task: TaskId,
    /// The tick in which it came.
    since: u64,
    /// It is woken and has not run.
    woken: bool,
}

/// The lock.
#[derive(Debug, Default)]
pub(crate) struct Trims {
    holder: Option<TaskId>,
    /// The holder's discard, while it is under way.
    discard: Option<BioId>,
    waiting: VecDeque<Waiter>,
    /// The first of the waiting is next.
    promised: bool,
}

impl Trims {
    /// Whether a process gets the lock, in this tick. Otherwise it waits.
    fn take(&mut self, task: TaskId, tick: u64) -> bool {
        let place = self.waiting.iter().position(|w| w.task == task);
        let is_free = self.holder.is_none();
        if is_free && (!self.promised || place == Some(0)) {
            if let Some(i) = place {
                self.waiting.remove(i);
                self.promised = false;
            }
            self.holder = Some(task);
            return true;
        }
        match place {
            None => self.waiting.push_back(Waiter { task, since: tick, woken: false }),
            Some(i) => {
                let waiter = &mut self.waiting[i];
                waiter.woken = false;
                self.promised |= i == 0 && tick >= waiter.since + PATIENCE;
            }
        }
        false
    }

    /// Gives the lock back. The process to wake, if one waits and is not awake yet.
    fn give_back(&mut self) -> Option<TaskId> {
        self.holder = None;
        let first = self.waiting.front_mut()?;
        (!std::mem::replace(&mut first.woken, true)).then_some(first.task)
    }
}

impl Machine {
    /// Whether a process may send this discard now. Otherwise it sleeps in the call.
    #[cold]
    pub(crate) fn may_trim(&mut self, t: TaskId, discard: BioId) -> bool {
        if !self.trims_alone {
            return true;
        }
        self.tasks[t as usize].trims = true;
        let tick = self.queue.facts().jiffies(self.tl.now);
        let may = self.trims.take(t, tick);
        if may {
            self.trims.discard = Some(discard);
        }
        may
    }

    /// A process runs that was in a discarding call. If the discard is done, the call returns.
    #[cold]
    pub(crate) fn trimmed(&mut self, t: TaskId) {
        if self.trims.holder != Some(t) || self.trims.discard.is_some() {
            return;
        }
        self.tasks[t as usize].trims = false;
        if let Some(next) = self.trims.give_back() {
            match &mut self.cores {
                Some(cores) => cores.wake(self.tl.now, next),
                None => self.ready.push_back(next),
            }
        }
    }

    /// A process that waited for the lock runs. The discard that it may send now, if it may.
    #[cold]
    pub(crate) fn resume_trim(&mut self, t: TaskId) -> Option<Bio> {
        let bio = self.tasks[t as usize].left?;
        if !self.may_trim(t, bio.id) {
            return None;
        }
        let task = &mut self.tasks[t as usize];
        task.state = State::Ready;
        task.left.take()
    }

    /// An I/O of a process in a discarding call is done.
    #[cold]
    pub(crate) fn trim_done(&mut self, io: BioId) {
        if self.trims.discard == Some(io) {
            self.trims.discard = None;
        }
    }

    /// Whether a process waits for the lock.
    pub(crate) fn waits_to_trim(&self, t: TaskId) -> bool {
        self.tasks[t as usize].trims && self.trims.holder != Some(t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_goes_on_once_somebody_has_waited_for_a_tick() {
        let mut trims = Trims::default();
        assert!(trims.take(0, 10));
        assert!(!trims.take(1, 10) && !trims.take(2, 10));
        for tick in [10, 11] {
            assert_eq!(trims.give_back(), Some(1));
            assert!(trims.take(0, tick), "whoever gives it back takes it again");
            assert!(!trims.take(1, tick));
        }
        assert_eq!(trims.give_back(), Some(1));
        assert!(trims.take(0, 12));
        assert!(!trims.take(1, 12), "it has waited for a tick, and asks");
        assert_eq!(trims.give_back(), Some(1));
        assert!(!trims.take(0, 12));
        assert!(trims.take(1, 12));
        assert_eq!(trims.give_back(), Some(2));
        assert!(trims.take(1, 12), "the next has not asked yet");
        assert!(!trims.take(2, 12));
        assert_eq!(trims.give_back(), Some(2));
        assert!(!trims.take(1, 12) && trims.take(2, 12));
    }
}
