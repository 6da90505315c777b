//! Locks that tasks sleep for, in the order of coming; those who share one get it together.
//!
//! Scheduler and lock events of Linux 6.12: who wants it alone is woken, and takes it when it is his turn on a core.

use std::collections::VecDeque;

use iosched_types::TaskId;

use super::{Event, Kernel, Wait};

/// What can be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    /// The names in a directory.
    Names(u32),
    /// What the inode of a file says.
    Inode(u32),
}

/// Who has a lock and who waits for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// How many share it.
    shared: u32,
    /// One has it alone.
    alone: bool,
    /// Tasks, and whether they want it alone.
    waiting: VecDeque<(TaskId, bool)>,
}

impl Held {
    fn is_free(&self) -> bool {
        !self.alone && self.shared == 0
    }

    fn give(&mut self, alone: bool) {
        self.alone = alone;
        self.shared += u32::from(!alone);
    }

    /// Takes it, or waits in line. Who wants to share it takes a free one ahead of those who wait, but joins others only if nobody
    /// waits.
    fn take(&mut self, task: TaskId, alone: bool) -> bool {
        let first = self.waiting.is_empty();
        let taken =
            if alone { first && self.is_free() } else { self.is_free() || first && !self.alone };
        match taken {
            true => self.give(alone),
            false => self.waiting.push_back((task, alone)),
        }
        taken
    }

    /// Who waited to have it alone, and was woken, takes it if it is still free.
    fn take_woken(&mut self, task: TaskId) -> bool {
        let taken = self.is_free() && self.waiting.front() == Some(&(task, true));
        if taken {
            self.waiting.pop_front();
            self.give(true);
        }
        taken
    }

    /// It is given back. → whom to wake: those who share it have it then
    fn give_back(&mut self) -> Vec<TaskId> {
        match self.alone {
            true => self.alone = false,
            false => self.shared -= 1,
        }
        let mut woken = Vec::new();
        while let Some((task, alone)) = self.waiting.front().copied().filter(|_| !self.alone) {
            if alone {
                woken.extend(Some(task).filter(|_| self.is_free()));
                break;
            }
            self.waiting.pop_front();
            self.give(false);
            woken.push(task);
        }
        woken
    }
}

impl Kernel {
    /// Takes a lock alone, or together with others who do the same.
    pub async fn lock(&self, lock: Lock, alone: bool) {
        let me = self.task();
        if self.with(|w| w.locks.entry(lock).or_default().take(me, alone)) {
            return;
        }
        self.wait(Wait::Event(Event::Turn(me))).await;
        while alone && !self.with(|w| w.locks.entry(lock).or_default().take_woken(me)) {
            self.wait(Wait::Event(Event::Turn(me))).await;
        }
    }

    /// Gives it back.
    pub fn unlock(&self, lock: Lock) {
        self.with(|w| {
            let Some(held) = w.locks.get_mut(&lock) else { return };
            let woken = held.give_back();
            if held.is_free() && held.waiting.is_empty() {
                w.locks.remove(&lock);
            }
            woken.into_iter().for_each(|task| w.signal(Event::Turn(task)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_goes_from_one_to_the_next() {
        let mut held = Held::default();
        assert!(held.take(1, true));
        assert!(!held.take(2, false) && !held.take(3, false) && !held.take(4, true));
        assert_eq!(held.give_back(), [2, 3]);
        // Who wants to share it does not overtake who wants it alone, unless it is free.
        assert!(!held.take(5, false));
        assert_eq!(held.give_back(), []);
        assert_eq!(held.give_back(), [4]);
        assert!(held.take(6, false) && !held.take_woken(4));
        assert_eq!(held.give_back(), [4]);
        assert!(held.take_woken(4) && !held.take(7, true));
        assert_eq!(held.give_back(), [5]);
    }
}
