//! The fair order since Linux 6.6: earliest eligible virtual deadline first (Stoica and Abdel-Wahab, 1995).
//!
//! Virtual time is the mean of the virtual runtimes of all that are in the queue, by their weights. What a task's runtime is
//! short of that is its lag: core time that it is owed. A task is eligible while nothing of its share is overdrawn; of
//! these the one with the earliest deadline goes first, a slice after the runtime at which it came. A task keeps its lag
//! while it sleeps. One that has overdrawn stays in the queue until it is not any longer, and then sleeps with no lag.

use std::collections::VecDeque;

use iosched_types::{Nanos, TaskId};

use super::fair::Share;

/// A task that is ready, or that sleeps and has overdrawn its share.
#[derive(Clone, Copy, Debug)]
struct Entry {
    task: TaskId,
    runtime: Nanos,
    deadline: Nanos,
    weight: u64,
    asleep: bool,
}

/// Virtual time at the start. A task of little weight may be owed hours of it by one of much, and its runtime lies that
/// far back.
const START: Nanos = 1 << 60;

/// The tasks of one core.
#[derive(Debug)]
pub(crate) struct Lags {
    /// By deadline; equal ones in the order in which they came.
    entries: VecDeque<Entry>,
    /// Those of them that are awake.
    awake: usize,
    current: Option<TaskId>,
    /// Weights, and runtimes by their weights, of the entries.
    weight: u64,
    weighted: i128,
    /// Virtual time when the queue was last empty.
    least: Nanos,
}

impl Default for Lags {
    fn default() -> Lags {
        Lags {
            entries: VecDeque::new(),
            awake: 0,
            current: None,
            weight: 0,
            weighted: 0,
            least: START,
        }
    }
}

/// The queue's weights and weighted runtimes, with the task on the core.
#[derive(Clone, Copy, Debug)]
struct Sum {
    weight: u64,
    weighted: i128,
}

impl Sum {
    fn is_eligible(self, runtime: Nanos) -> bool {
        i128::from(runtime) * i128::from(self.weight) <= self.weighted
    }

    fn mean(self) -> Nanos {
        let mean = self.weighted.checked_div(i128::from(self.weight)).unwrap_or(0);
        Nanos::try_from(mean).unwrap_or(0)
    }
}

impl Lags {
    pub(crate) fn len(&self) -> usize {
        self.awake
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.entries.iter().filter(|e| !e.asleep).map(|e| e.task)
    }

    /// With the task on the core, whose runtime and weight are these.
    fn sum(&self, current: Option<&Share>) -> Sum {
        let (weight, runtime) = current.map_or((0, 0), |s| (s.weight, s.runtime));
        Sum {
            weight: self.weight + weight,
            weighted: self.weighted + i128::from(weight) * i128::from(runtime),
        }
    }

    fn current<'a>(&self, shares: &'a [Share]) -> Option<&'a Share> {
        self.current.map(|t| &shares[t as usize])
    }

    fn insert(&mut self, task: TaskId, share: &Share, asleep: bool) {
        let entry = Entry {
            task,
            runtime: share.runtime,
            deadline: share.deadline,
            weight: share.weight,
            asleep,
        };
        let at = self.entries.partition_point(|e| e.deadline <= entry.deadline);
        self.entries.insert(at, entry);
        self.awake += usize::from(!asleep);
        self.weight += entry.weight;
        self.weighted += i128::from(entry.weight) * i128::from(entry.runtime);
    }

    fn take(&mut self, at: usize) -> Option<Entry> {
        let entry = self.entries.remove(at)?;
        self.awake -= usize::from(!entry.asleep);
        self.weight -= entry.weight;
        self.weighted -= i128::from(entry.weight) * i128::from(entry.runtime);
        if self.entries.is_empty() && self.current.is_none() {
            self.least = self.least.max(entry.runtime);
        }
        Some(entry)
    }

    /// A task is not to run here after all: what it is owed goes with it.
    pub(crate) fn remove(&mut self, task: TaskId, shares: &mut [Share], slice: Nanos) {
        let Some(at) = self.entries.iter().position(|e| e.task == task) else { return };
        let mean = self.sum(self.current(shares)).mean();
        self.take(at);
        shares[task as usize].note_lag(mean, slice);
    }

    /// A task that was ready elsewhere has this core, on which nobody is.
    pub(crate) fn take_core(&mut self, task: TaskId, share: &mut Share, slice: Nanos) {
        share.lag = 0;
        self.place(share, slice, Sum { weight: 0, weighted: 0 });
        self.current = Some(task);
    }

    fn place(&self, share: &mut Share, slice: Nanos, sum: Sum) {
        let mut lag = 0;
        if sum.weight == 0 {
            share.runtime = self.least;
        } else {
            // Its coming moves the mean. It is to have its lag afterwards.
            let both = i128::from(sum.weight + share.weight);
            lag = i128::from(share.lag) * both / i128::from(sum.weight);
            share.runtime = sum.mean();
        }
        let runtime = (i128::from(share.runtime) - lag).max(0);
        share.runtime = Nanos::try_from(runtime).unwrap_or(0);
        // A new task joins in the middle of a slice.
        let part = if std::mem::replace(&mut share.new, false) { slice / 2 } else { slice };
        share.deadline = share.runtime + share.scaled(part);
    }

    /// A task that slept is ready. Whether it takes the core from the one on it.
    pub(crate) fn wake(&mut self, task: TaskId, shares: &mut [Share], slice: Nanos) -> bool {
        let sum = self.sum(self.current(shares));
        let known = self.entries.iter().position(|e| e.task == task);
        let owed = known.is_none_or(|at| sum.mean() > self.entries[at].runtime);
        match known {
            // It has not paid back yet, and keeps its place.
            Some(at) if !owed => {
                self.entries[at].asleep = false;
                self.awake += 1;
            }
            _ => {
                if let Some(at) = known {
                    self.take(at);
                    shares[task as usize].lag = 0;
                }
                let sum = self.sum(self.current(shares));
                self.place(&mut shares[task as usize], slice, sum);
                self.insert(task, &shares[task as usize], false);
            }
        }
        let sum = self.sum(self.current(shares));
        match self.current(shares) {
            // Who is on the core keeps it for its slice while it is eligible.
            Some(current) if sum.is_eligible(current.runtime) => false,
            Some(_) => self.first(sum).is_some_and(|at| self.entries[at].task == task),
            None => false,
        }
    }

    /// The eligible entry with the earliest deadline.
    fn first(&self, sum: Sum) -> Option<usize> {
        self.entries.iter().position(|e| sum.is_eligible(e.runtime))
    }

    /// Takes the task that is to run next. Sleepers that are due leave.
    pub(crate) fn pop(&mut self, shares: &mut [Share]) -> Option<TaskId> {
        self.current = None;
        loop {
            let at = self.first(self.sum(None))?;
            let entry = self.take(at)?;
            if entry.asleep {
                shares[entry.task as usize].lag = 0;
                continue;
            }
            self.current = Some(entry.task);
            return Some(entry.task);
        }
    }

    /// The task on the core sleeps.
    pub(crate) fn sleep(&mut self, task: TaskId, shares: &mut [Share], slice: Nanos) {
        let sum = self.sum(Some(&shares[task as usize]));
        let share = &mut shares[task as usize];
        self.current = None;
        if sum.is_eligible(share.runtime) {
            share.note_lag(sum.mean(), slice);
            if self.entries.is_empty() {
                self.least = self.least.max(share.runtime);
            }
        } else {
            self.insert(task, &shares[task as usize], true);
        }
    }

    /// Whether the task on the core goes behind another: its slice is over, or somebody who woke up comes before it
    /// (`asked`). Then it stands in the queue again.
    pub(crate) fn gives_way(
        &mut self,
        task: TaskId,
        shares: &mut [Share],
        slice: Nanos,
        asked: bool,
    ) -> bool {
        let share = &mut shares[task as usize];
        let over = share.runtime >= share.deadline;
        if over {
            share.deadline = share.runtime + share.scaled(slice);
        }
        if !(over || asked) {
            return false;
        }
        let share = *share;
        let sum = self.sum(Some(&share));
        let stays = match self.first(sum) {
            None => true,
            Some(at) => {
                sum.is_eligible(share.runtime) && share.deadline <= self.entries[at].deadline
            }
        };
        if !stays {
            self.current = None;
            self.insert(task, &share, false);
        }
        !stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Nanos = 3_000_000;

    fn shares(n: usize) -> Vec<Share> {
        vec![Share::new(0); n]
    }

    /// Three tasks wake while nobody is on the core; each comes at the same virtual time.
    #[test]
    fn who_wakes_first_goes_first() {
        let (mut queue, mut all) = (Lags::default(), shares(3));
        all.iter_mut().for_each(|s| s.new = false);
        (0..3).for_each(|t| _ = queue.wake(t, &mut all, SLICE));
        let mut order = Vec::new();
        while let Some(t) = queue.pop(&mut all) {
            order.push(t);
            queue.sleep(t, &mut all, SLICE);
        }
        assert_eq!(order, [0, 1, 2]);
    }

    /// One that waits while another runs is owed time. A third that wakes then comes behind it, though it never ran.
    #[test]
    fn who_waits_comes_before_who_wakes_later() {
        let (mut queue, mut all) = (Lags::default(), shares(3));
        all.iter_mut().for_each(|s| s.new = false);
        queue.wake(0, &mut all, SLICE);
        assert_eq!(queue.pop(&mut all), Some(0));
        queue.wake(1, &mut all, SLICE);
        all[0].runtime += 12_000;
        // The one on the core has overdrawn. Whoever wakes takes it only if he comes first.
        assert!(!queue.wake(2, &mut all, SLICE));
        queue.sleep(0, &mut all, SLICE);
        assert_eq!(queue.pop(&mut all), Some(1));
    }

    /// A sleeper that is owed time comes before those who came at the mean; one that has overdrawn comes behind.
    #[test]
    fn lag_is_kept_in_sleep() {
        let (mut queue, mut all) = (Lags::default(), shares(4));
        all.iter_mut().for_each(|s| s.new = false);
        (0..2).for_each(|t| _ = queue.wake(t, &mut all, SLICE));
        queue.pop(&mut all);
        all[0].runtime += 10_000;
        queue.sleep(0, &mut all, SLICE);
        assert_eq!(queue.pop(&mut all), Some(1));
        queue.sleep(1, &mut all, SLICE);
        assert_eq!(queue.pop(&mut all), None);
        assert_eq!((all[0].lag, all[1].lag), (0, 5_000));
        (2..4).for_each(|t| _ = queue.wake(t, &mut all, SLICE));
        queue.wake(1, &mut all, SLICE);
        assert_eq!(queue.pop(&mut all), Some(1));
    }

    #[test]
    fn time_follows_the_weights() {
        let mut queue = Lags::default();
        let mut all = vec![Share::new(0), Share::new(5), Share::new(-3)];
        (0..3).for_each(|t| _ = queue.wake(t, &mut all, SLICE));
        let mut had = [0u64; 3];
        let mut on = queue.pop(&mut all).unwrap();
        for _ in 0..60_000 {
            let share = &mut all[on as usize];
            share.runtime += share.scaled(100_000);
            had[on as usize] += 100_000;
            if queue.gives_way(on, &mut all, SLICE, false) {
                on = queue.pop(&mut all).unwrap();
            }
        }
        let weights: u64 = all.iter().map(|s| s.weight).sum();
        for (had, share) in had.iter().zip(&all) {
            let fair = 6e9 * share.weight as f64 / weights as f64;
            assert!((*had as f64 - fair).abs() < 2.0 * SLICE as f64, "{had} for {fair}");
        }
    }
}
