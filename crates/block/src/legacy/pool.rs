//! The legacy request pool: two classes, congestion marks, batching, exclusive wake-ups.

use std::collections::VecDeque;

use iosched_types::{Nanos, TaskId, units::SEC};

/// Allocations a batcher may make once the pool is full.
const BATCH_CREDIT: u32 = 32;
/// How long a started batch stays valid: this part of a second, counted in whole ticks.
const BATCH_PART: u64 = 50;

/// Answer to an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alloc {
    /// Here is one.
    Granted,
    /// Sleep until woken.
    Sleep,
}

#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    credit: u32,
    /// The tick in which it began.
    since: u64,
}

#[derive(Debug, Default)]
struct Class {
    count: u32,
    full: bool,
    congested: bool,
    waiting: VecDeque<TaskId>,
}

/// The pool of one queue.
#[derive(Debug)]
pub(crate) struct Pool {
    nr: u32,
    hz: u64,
    /// A batch's credit is for every request (since some release after 2.6.18), not only for those beyond `nr`.
    pays_always: bool,
    classes: [Class; 2],
    batches: Vec<Batch>,
}

impl Pool {
    pub(crate) fn new(nr: u32, hz: u32, pays_always: bool) -> Self {
        let batches = vec![Batch::default()];
        Pool { nr, hz: u64::from(hz), pays_always, classes: Default::default(), batches }
    }

    fn tick(&self, now: Nanos) -> u64 {
        (u128::from(now) * u128::from(self.hz) / u128::from(SEC)) as u64
    }

    /// Makes room for what is remembered of a task.
    pub(crate) fn room_for(&mut self, task: TaskId) {
        let tasks = self.batches.len().max(task as usize + 1);
        self.batches.resize(tasks, Batch::default());
    }

    fn congestion_on(&self) -> u32 {
        self.nr - self.nr / 8 + 1
    }

    fn congestion_off(&self) -> u32 {
        (self.nr - self.nr / 8).saturating_sub(self.nr / 16 + 1)
    }

    /// Requests allocated in both classes.
    pub(crate) fn allocated(&self) -> u32 {
        self.classes[0].count + self.classes[1].count
    }

    /// Whether writeback should hold back in this class.
    pub(crate) fn congested(&self, class: usize) -> bool {
        self.classes[class].congested
    }

    fn is_batcher(&self, task: TaskId, now: Nanos) -> bool {
        let b = self.batches[task as usize % self.batches.len()];
        let valid = || self.tick(now) < b.since + self.hz / BATCH_PART;
        b.credit == BATCH_CREDIT || (b.credit > 0 && valid())
    }

    fn make_batcher(&mut self, task: TaskId, now: Nanos) {
        if !self.is_batcher(task, now) {
            let (n, since) = (self.batches.len(), self.tick(now));
            self.batches[task as usize % n] = Batch { credit: BATCH_CREDIT, since };
        }
    }

    /// Allocates for `task`. With `must` the scheduler lets this task exceed the limit.
    pub(crate) fn get(&mut self, class: usize, task: TaskId, must: bool, now: Nanos) -> Alloc {
        let k = self.classes[class].count + 1;
        if k >= self.congestion_on() {
            self.classes[class].congested = true;
        }
        if k >= self.nr {
            if !self.classes[class].full {
                self.classes[class].full = true;
                self.make_batcher(task, now);
            } else if !must && !self.is_batcher(task, now) {
                return Alloc::Sleep;
            }
        }
        if self.classes[class].count >= 3 * self.nr / 2 {
            return Alloc::Sleep;
        }
        self.classes[class].count += 1;
        if (self.pays_always || k >= self.nr) && self.is_batcher(task, now) {
            let n = self.batches.len();
            self.batches[task as usize % n].credit -= 1;
        }
        Alloc::Granted
    }

    /// The task sleeps for a request; woken, it will be a batcher.
    pub(crate) fn sleep(&mut self, class: usize, task: TaskId) {
        self.classes[class].waiting.push_back(task);
    }

    /// A woken task becomes a batcher before it tries again.
    pub(crate) fn resume(&mut self, task: TaskId, now: Nanos) {
        self.make_batcher(task, now);
    }

    /// Frees a request, waking one sleeper when there is room.
    pub(crate) fn put(&mut self, class: usize, woken: &mut Vec<TaskId>) {
        let off = self.congestion_off();
        let c = &mut self.classes[class];
        c.count -= 1;
        if c.count < off {
            c.congested = false;
        }
        if c.count < self.nr {
            // Whoever comes first takes what is free, and starts a batch: one who slept, or another.
            woken.extend(c.waiting.pop_front());
            c.full = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use iosched_types::units::MS;

    use super::*;

    fn pool(nr: u32, tasks: u32) -> Pool {
        let mut pool = Pool::new(nr, 1000, false);
        (0..tasks).for_each(|t| pool.room_for(t));
        pool
    }

    /// Spec scenario BL-4: congestion at 113, batching from 128, the batcher stops after its credit,
    /// others stop at once, and nobody is woken above 127.
    #[test]
    fn congestion_and_batching() {
        let mut p = pool(128, 3);
        for k in 1..=159 {
            assert_eq!(p.get(1, 1, false, 0), Alloc::Granted, "request {k}");
            assert_eq!(p.congested(1), k >= 113, "request {k}");
            if k == 128 {
                assert_eq!(p.get(1, 2, false, 0), Alloc::Sleep, "another task at the full pool");
            }
        }
        assert_eq!(p.get(1, 1, false, 0), Alloc::Sleep, "credit used up");
        p.sleep(1, 1);
        let mut woken = Vec::new();
        for _ in 0..31 {
            p.put(1, &mut woken);
        }
        assert!(woken.is_empty(), "128 left");
        p.put(1, &mut woken);
        assert_eq!(woken, [1]);
        p.resume(1, MS);
        let again = (0..).take_while(|_| p.get(1, 1, false, MS) == Alloc::Granted).count();
        assert_eq!(again, 32, "from 127 up to 159 again");
    }

    /// A request that is given back wakes one who sleeps and opens the pool: another who comes before he runs takes it, and begins
    /// a batch; so does he when he runs.
    #[test]
    fn who_comes_first_begins_a_batch() {
        let mut p = pool(128, 3);
        (0..159).for_each(|_| assert_eq!(p.get(1, 1, false, 0), Alloc::Granted));
        p.sleep(1, 1);
        p.sleep(1, 2);
        let mut woken = Vec::new();
        (0..32).for_each(|_| p.put(1, &mut woken));
        assert_eq!(woken, [1]);
        assert_eq!(p.get(1, 0, false, MS), Alloc::Granted, "the 128th");
        p.resume(1, MS);
        let count = |p: &mut Pool, task| {
            (0..).take_while(|_| p.get(1, task, false, MS) == Alloc::Granted).count()
        };
        assert_eq!([count(&mut p, 1), count(&mut p, 0)], [32, 31]);
    }

    #[test]
    fn congestion_ends_below_the_lower_mark() {
        let mut p = pool(128, 1);
        (0..113).for_each(|_| assert_eq!(p.get(0, 0, false, 0), Alloc::Granted));
        let mut woken = Vec::new();
        (0..10).for_each(|_| p.put(0, &mut woken));
        assert!(p.congested(0), "103 allocated");
        p.put(0, &mut woken);
        assert!(!p.congested(0), "102 allocated");
    }

    #[test]
    fn a_stale_batch_gives_no_right() {
        let mut p = pool(4, 2);
        (0..4).for_each(|_| assert_eq!(p.get(0, 0, false, 0), Alloc::Granted));
        assert_eq!(p.get(0, 0, false, 21 * MS), Alloc::Sleep);
        assert_eq!(p.get(0, 0, true, 21 * MS), Alloc::Granted, "MUST goes through");
    }
}
