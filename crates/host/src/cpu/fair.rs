//! The fair order of the tasks that are ready on a core: before Linux 6.6 by virtual runtime, since then by lag and deadline
//! ([`Lags`]).
//!
//! Before, each task has a virtual runtime: the core time it has had, divided by its weight. The ready task with the least
//! goes first. So tasks that are always ready share a core in proportion to their weights, and none starves: the
//! virtual runtime of the others grows past its own.
//!
//! A task that slept would have fallen far behind and then keep its core for as long as it slept. So it is placed at
//! most one [`credit`](Fair::credit) behind the core's least virtual runtime.

use iosched_engine::EventQueue;
use iosched_types::{Nanos, TaskId};

use super::lag::Lags;

/// Weight at nice 0.
const NORMAL: u64 = 1024;

/// The weight at a nice value of -20 to 19: each step changes it by the factor 1.25 (sched(7)).
pub(crate) fn weight(nice: i8) -> u64 {
    let steps = u32::from(nice.unsigned_abs()).min(20);
    let (up, down) = (5u64.pow(steps), 4u64.pow(steps));
    let (more, less) = if nice < 0 { (up, down) } else { (down, up) };
    ((NORMAL * more + less / 2) / less).max(1)
}

/// What a scheduler of cores does, in core time.
///
/// Linux has one base slice and derives the rest of it. Its defaults before 6.6, in multiples of the slice of 0.75 ms
/// (`sched_min_granularity_ns`): a wake-up pre-empts who is ahead by 1 ms (`sched_wakeup_granularity_ns`), and a
/// sleeper gets half a latency of 6 ms (`sched_latency_ns`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fair {
    /// How long a task keeps its core while others that had less are ready.
    pub(crate) slice: Nanos,
    /// By lag and deadline, as since 6.6.
    pub(crate) lag: bool,
}

impl Fair {
    /// By how much a task must be ahead for one that wakes up to pre-empt it.
    pub(crate) fn granularity(self) -> Nanos {
        self.slice * 4 / 3
    }

    /// How far behind the least virtual runtime a task is placed that slept.
    pub(crate) fn credit(self) -> Nanos {
        self.slice * 4
    }
}

/// The share of one task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(super) weight: u64,
    /// Virtual runtime, comparable within one core.
    pub(crate) runtime: Nanos,
    /// By lag: up to which virtual runtime its slice goes, what it was owed when it went to sleep, and that it never ran.
    pub(super) deadline: Nanos,
    pub(super) lag: i64,
    pub(super) new: bool,
}

impl Share {
    pub(crate) fn new(nice: i8) -> Share {
        Share { weight: weight(nice), runtime: 0, deadline: 0, lag: 0, new: true }
    }

    /// It leaves its queue, whose virtual time is `mean`: what it is owed, within two slices.
    pub(super) fn note_lag(&mut self, mean: Nanos, slice: Nanos) {
        let most = i64::try_from(self.scaled(2 * slice)).unwrap_or(i64::MAX);
        let lag = i128::from(mean) - i128::from(self.runtime);
        self.lag = i64::try_from(lag).unwrap_or(0).clamp(-most, most);
    }

    /// So much core time in virtual time.
    pub(crate) fn scaled(&self, ns: Nanos) -> Nanos {
        ns.saturating_mul(NORMAL) / self.weight
    }
}

/// The tasks that are ready on one core, by their virtual runtimes.
#[derive(Debug, Default)]
pub(crate) struct Runtimes {
    ready: EventQueue<TaskId>,
    /// Never falls; no task here is placed further behind than the credit allows.
    least: Nanos,
}

impl Runtimes {
    pub(crate) fn len(&self) -> usize {
        self.ready.len()
    }

    /// The tasks that are ready; the one that is to run next comes first, the others in no order of meaning.
    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.ready.iter().map(|(_, task)| task)
    }

    /// A task is not to run here after all. The others keep their order.
    pub(crate) fn remove(&mut self, task: TaskId) {
        self.ready.remove(|t| *t == task);
    }

    /// The least virtual runtime among those that are ready.
    pub(crate) fn first(&self) -> Option<Nanos> {
        self.ready.peek_time()
    }

    /// A task is ready with the virtual runtime it has. Equal ones keep their order.
    pub(crate) fn push(&mut self, task: TaskId, share: &Share) {
        self.ready.push(share.runtime, task);
    }

    /// Takes the task that is to run next.
    pub(crate) fn pop(&mut self) -> Option<TaskId> {
        let (runtime, task) = self.ready.pop()?;
        self.least = self.least.max(runtime);
        Some(task)
    }

    /// The task on the core had so much of it.
    pub(crate) fn charge(&mut self, share: &mut Share, ns: Nanos) {
        share.runtime += share.scaled(ns);
        let least = self.first().map_or(share.runtime, |f| f.min(share.runtime));
        self.least = self.least.max(least);
    }

    /// A task that slept will be ready here.
    pub(crate) fn place(&self, share: &mut Share, fair: Fair) {
        share.runtime = share.runtime.max(self.least.saturating_sub(fair.credit()));
    }

    /// A task of the core `from` will be ready here: as far ahead or behind as it was there.
    pub(crate) fn move_here(&self, share: &mut Share, from: &Runtimes) {
        share.runtime = (share.runtime + self.least).saturating_sub(from.least);
    }

    /// Whether a task that woke up takes the core from the one on it.
    pub(crate) fn preempts(woken: &Share, current: &Share, fair: Fair) -> bool {
        woken.runtime + woken.scaled(fair.granularity()) < current.runtime
    }
}

/// The tasks that are ready on one core, in the order of its kernel.
#[derive(Debug)]
pub(crate) enum RunQueue {
    /// By virtual runtime.
    Runtime(Runtimes),
    /// By lag and deadline.
    Lag(Lags),
}

impl RunQueue {
    pub(crate) fn new(fair: Fair) -> RunQueue {
        if fair.lag {
            RunQueue::Lag(Lags::default())
        } else {
            RunQueue::Runtime(Runtimes::default())
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            RunQueue::Runtime(q) => q.len(),
            RunQueue::Lag(q) => q.len(),
        }
    }

    /// The first of the tasks that are ready, at most so many, that `chosen` names.
    pub(crate) fn find(&self, most: usize, chosen: impl FnMut(&TaskId) -> bool) -> Option<TaskId> {
        match self {
            RunQueue::Runtime(q) => q.iter().take(most).find(chosen),
            RunQueue::Lag(q) => q.iter().take(most).find(chosen),
        }
    }

    /// A task is not to run here after all. The others keep their order.
    pub(crate) fn remove(&mut self, task: TaskId, shares: &mut [Share], fair: Fair) {
        match self {
            RunQueue::Runtime(q) => q.remove(task),
            RunQueue::Lag(q) => q.remove(task, shares, fair.slice),
        }
    }

    /// Takes the task that is to run next.
    pub(crate) fn pop(&mut self, shares: &mut [Share]) -> Option<TaskId> {
        match self {
            RunQueue::Runtime(q) => q.pop(),
            RunQueue::Lag(q) => q.pop(shares),
        }
    }

    /// The task on the core had so much of it.
    pub(crate) fn charge(&mut self, share: &mut Share, ns: Nanos) {
        match self {
            RunQueue::Runtime(q) => q.charge(share, ns),
            RunQueue::Lag(_) => share.runtime += share.scaled(ns),
        }
    }

    /// The task on the core sleeps.
    pub(crate) fn sleep(&mut self, task: TaskId, shares: &mut [Share], fair: Fair) {
        if let RunQueue::Lag(q) = self {
            q.sleep(task, shares, fair.slice);
        }
    }

    /// A task that slept is ready. Whether it takes the core from the one on it.
    pub(crate) fn wake(
        &mut self,
        task: TaskId,
        current: Option<TaskId>,
        shares: &mut [Share],
        fair: Fair,
    ) -> bool {
        match self {
            RunQueue::Runtime(q) => {
                let share = &mut shares[task as usize];
                q.place(share, fair);
                q.push(task, share);
                let share = &shares[task as usize];
                current.is_some_and(|c| Runtimes::preempts(share, &shares[c as usize], fair))
            }
            RunQueue::Lag(q) => q.wake(task, shares, fair.slice),
        }
    }

    /// Whether the task on the core gives it up: its time is over, or somebody who woke up is to have it (`asked`). Then it
    /// stands in the queue again.
    pub(crate) fn gives_way(
        &mut self,
        task: TaskId,
        shares: &mut [Share],
        fair: Fair,
        (over, asked): (bool, bool),
    ) -> bool {
        match self {
            RunQueue::Runtime(q) => {
                let share = &shares[task as usize];
                let behind = q.first().is_some_and(|first| first <= share.runtime);
                let gives = behind && (over || asked);
                if gives {
                    q.push(task, share);
                }
                gives
            }
            RunQueue::Lag(q) => q.gives_way(task, shares, fair.slice, asked),
        }
    }

    /// A task of the core `from` will be ready here: as far ahead or behind as it was there.
    pub(crate) fn move_here(&self, share: &mut Share, from: &RunQueue) {
        if let (RunQueue::Runtime(here), RunQueue::Runtime(from)) = (self, from) {
            here.move_here(share, from);
        }
    }

    /// A task that was ready elsewhere has this core, on which nobody is.
    pub(crate) fn take_core(&mut self, task: TaskId, share: &mut Share, fair: Fair) {
        if let RunQueue::Lag(q) = self {
            q.take_core(task, share, fair.slice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn weights_change_by_a_quarter_a_step() {
        assert_eq!([-20, -1, 0, 1, 5, 19].map(weight), [88_818, 1280, 1024, 819, 336, 15]);
        for nice in -20..19 {
            let ratio = weight(nice) as f64 / weight(nice + 1) as f64;
            assert!((1.19..1.31).contains(&ratio), "{nice}: {ratio}");
        }
    }

    /// Always ready tasks on one core; each turn takes the piece given for it.
    struct Busy {
        queue: Runtimes,
        shares: Vec<Share>,
        had: Vec<Nanos>,
        waited: Vec<u32>,
    }

    impl Busy {
        fn new(nices: &[i8]) -> Busy {
            let shares: Vec<Share> = nices.iter().map(|n| Share::new(*n)).collect();
            let mut queue = Runtimes::default();
            shares.iter().enumerate().for_each(|(t, s)| queue.push(t as TaskId, s));
            let n = nices.len();
            Busy { queue, shares, had: vec![0; n], waited: vec![0; n] }
        }

        fn turn(&mut self, ns: Nanos) -> TaskId {
            let t = self.queue.pop().unwrap();
            let share = &mut self.shares[t as usize];
            self.queue.charge(share, ns);
            self.queue.push(t, share);
            self.had[t as usize] += ns;
            self.waited.iter_mut().for_each(|w| *w += 1);
            self.waited[t as usize] = 0;
            t
        }
    }

    /// The same by the definition: exact fractions, a list, and the one that stands longest among equals.
    fn slow(nices: &[i8], pieces: &[Nanos]) -> Vec<TaskId> {
        let mut tasks: Vec<(u64, usize, TaskId)> =
            (0..nices.len()).map(|t| (0, t, t as TaskId)).collect();
        let mut order = Vec::new();
        for (pushed, ns) in (nices.len()..).zip(pieces) {
            let least =
                tasks.iter().min_by_key(|(runtime, since, _)| (*runtime, *since)).unwrap().2;
            let task = tasks.iter_mut().find(|t| t.2 == least).unwrap();
            task.0 += ns * 1024 / weight(nices[least as usize]);
            task.1 = pushed;
            order.push(least);
        }
        order
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_a_slow_search(
            nices in prop::collection::vec(-20i8..20, 1..12),
            pieces in prop::collection::vec(1u64..3_000_000, 1..400),
        ) {
            let mut busy = Busy::new(&nices);
            let order: Vec<TaskId> = pieces.iter().map(|ns| busy.turn(*ns)).collect();
            prop_assert_eq!(order, slow(&nices, &pieces));
        }

        /// Nobody gets more than his weight says, or less, by more than one piece of the longest kind.
        #[test]
        fn core_time_follows_the_weights(
            nices in prop::collection::vec(-10i8..11, 2..10),
            longest in 1_000u64..3_000_000,
        ) {
            let mut busy = Busy::new(&nices);
            for n in 0..20_000u64 {
                busy.turn(1 + n.wrapping_mul(2_654_435_761) % longest);
            }
            let all: u64 = busy.had.iter().sum();
            let weights: u64 = nices.iter().map(|n| weight(*n)).sum();
            for (had, nice) in busy.had.iter().zip(&nices) {
                let fair = all as f64 * weight(*nice) as f64 / weights as f64;
                // All virtual runtimes lie within one piece of the lightest task; a rounding of 1 ns a turn comes on top.
                let lightest = nices.iter().map(|n| weight(*n)).min().unwrap();
                let piece = longest as f64 * weight(*nice) as f64 / lightest as f64;
                prop_assert!((*had as f64 - fair).abs() <= piece + longest as f64 + 20_000.0, "{nice}: {had} for {fair}");
            }
        }

        /// A task waits for no more turns than its virtual runtime lies ahead, whatever comes and wakes meanwhile.
        #[test]
        fn nobody_starves_beside_sleepers_that_wake_all_the_time(
            nice in -20i8..20,
            others in prop::collection::vec(-20i8..20, 1..6),
            piece in 10_000u64..1_000_000,
        ) {
            let fair = Fair { slice: 3_000_000, lag: false };
            let mut queue = Runtimes::default();
            let mut hog = Share::new(nice);
            queue.push(0, &hog);
            let mut shares: Vec<Share> = others.iter().map(|n| Share::new(*n)).collect();
            let mut had = 0;
            let mut all = 0;
            // All others wake before each turn, each with the full credit of a sleeper.
            let mut asleep: Vec<usize> = (0..others.len()).collect();
            for _ in 0..40_000 {
                for i in asleep.drain(..) {
                    queue.place(&mut shares[i], fair);
                    queue.push(i as TaskId + 1, &shares[i]);
                }
                let t = queue.pop().unwrap() as usize;
                all += piece;
                if t == 0 {
                    queue.charge(&mut hog, piece);
                    queue.push(0, &hog);
                    had += piece;
                } else {
                    queue.charge(&mut shares[t - 1], piece);
                    asleep.push(t - 1);
                }
            }
            let weights: u64 = others.iter().map(|n| weight(*n)).sum::<u64>() + weight(nice);
            let share = all as f64 * weight(nice) as f64 / weights as f64;
            // It falls behind by the sleepers' credit once, and by one piece of the lightest.
            let lightest = others.iter().map(|n| weight(*n)).min().unwrap().min(weight(nice));
            let late = (fair.credit() as f64 + piece as f64 * 1024.0 / lightest as f64) * weight(nice) as f64 / 1024.0;
            prop_assert!(had as f64 + late + piece as f64 >= share * 0.999, "{had} of {share}, {late} late");
        }
    }

    #[test]
    fn a_hundred_thousand_tasks_take_turns() {
        let nices: Vec<i8> = (0..100_000).map(|n| [0, 5][n % 2]).collect();
        let mut busy = Busy::new(&nices);
        busy.waited.clear();
        busy.waited.resize(nices.len(), 0);
        let mut turns = vec![0u32; nices.len()];
        for _ in 0..400_000 {
            let t = busy.queue.pop().unwrap();
            let share = &mut busy.shares[t as usize];
            busy.queue.charge(share, 10_000);
            busy.queue.push(t, share);
            turns[t as usize] += 1;
        }
        // 1024 and 336 of weight: 6 turns and 2 of the first 400,000.
        assert!(turns.iter().step_by(2).all(|n| (5..=7).contains(n)));
        assert!(turns.iter().skip(1).step_by(2).all(|n| (1..=3).contains(n)));
    }

    #[test]
    fn a_sleeper_is_placed_no_further_behind_than_its_credit() {
        let fair = Fair { slice: 3_000_000, lag: false };
        let mut queue = Runtimes::default();
        let (mut hog, mut sleeper) = (Share::new(0), Share::new(0));
        queue.charge(&mut hog, 1_000_000_000);
        queue.place(&mut sleeper, fair);
        assert_eq!(sleeper.runtime, 1_000_000_000 - 12_000_000);
        assert!(Runtimes::preempts(&sleeper, &hog, fair));
        let mut near = Share { runtime: hog.runtime - 3_999_999, ..sleeper };
        assert!(!Runtimes::preempts(&near, &hog, fair));
        near.runtime -= 2;
        assert!(Runtimes::preempts(&near, &hog, fair));
        // On an other core it is as far behind as here.
        let other = Runtimes::default();
        let mut moved = Share { runtime: queue.least + 5, ..sleeper };
        other.move_here(&mut moved, &queue);
        assert_eq!(moved.runtime, 5);
    }
}
