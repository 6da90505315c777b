//! `flow`: jobs that share a `flow_id` go in proportion to their weights.

use std::cell::Cell;
use std::rc::Rc;

use iosched_types::Nanos;

use super::pace::Pause;
use super::{Job, State, TIMER_SLACK};

/// A job that is held back without `flow_sleep` looks again after this long; the real one spins.
const LOOK_AGAIN: Nanos = 10_000;

/// What the jobs of one `flow_id` share.
#[derive(Debug, Default)]
pub struct FlowGroup {
    /// I/Os issued by all that have not ended.
    issued: Cell<u64>,
    /// Sum of their weights.
    weights: Cell<u64>,
}

/// A job's part in a [`FlowGroup`].
#[derive(Debug)]
pub struct Flow {
    group: Rc<FlowGroup>,
    weight: u64,
    /// Whether it counts.
    within: Cell<bool>,
    issued: Cell<u64>,
}

impl Flow {
    /// A part in a group, which counts until [`Flow::leave`]. It counts from now on, as in fio: the others wait for a
    /// job during its `startdelay`. With `later` it counts from its start. That is for jobs behind a `stonewall`: in
    /// fio they and the jobs that they wait for would wait for each other for ever.
    #[must_use]
    pub fn new(group: &Rc<FlowGroup>, weight: i64, later: bool) -> Self {
        let (within, issued) = (Cell::new(false), Cell::new(0));
        // fio 3.33 takes weights below zero and compares without a sign: that job is free, and it lessens the sum for the others.
        let weight = weight.cast_unsigned();
        let flow = Flow { group: Rc::clone(group), weight, within, issued };
        if !later {
            flow.enter();
        }
        flow
    }

    /// The job starts.
    pub(super) fn enter(&self) {
        if !self.within.replace(true) {
            self.group.weights.set(self.group.weights.get().wrapping_add(self.weight));
        }
    }

    /// The job ends: the others share without it.
    pub(super) fn leave(&self) {
        self.group.weights.set(self.group.weights.get().wrapping_sub(self.weight));
        self.group.issued.set(self.group.issued.get() - self.issued.get());
    }

    /// Whether the job has had no more than its share of the issued I/Os plus the next one.
    pub(super) fn may_go(&self) -> bool {
        let own = u128::from(self.issued.get()) * u128::from(self.group.weights.get());
        own <= u128::from(self.group.issued.get() + 1) * u128::from(self.weight)
    }

    pub(super) fn count(&self) {
        self.issued.set(self.issued.get() + 1);
        self.group.issued.set(self.group.issued.get() + 1);
    }
}

impl Job {
    /// Lets the others catch up. The job has no I/O under way.
    pub(super) fn hold_back(&mut self) {
        let sleep = match self.spec.flow_sleep {
            0 => LOOK_AGAIN,
            sleep => sleep + TIMER_SLACK,
        };
        self.pause = Pause::Flow(sleep);
        self.state = State::Quiesce;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows<const N: usize>(weights: [i64; N]) -> [Flow; N] {
        let group = Rc::new(FlowGroup::default());
        weights.map(|w| Flow::new(&group, w, false))
    }

    /// How many of at most `most` it may issue at once.
    fn burst(flow: &Flow, most: usize) -> usize {
        (0..most).take_while(|_| flow.may_go()).map(|_| flow.count()).count()
    }

    #[test]
    fn shares_follow_the_weights_and_those_who_stay_share_on() {
        let flows = flows([3, 2, 1]);
        let run = |flows: &[Flow]| {
            for _ in 0..600 {
                flows.iter().for_each(|f| assert!(burst(f, 1) <= 1));
            }
            flows.iter().map(|f| f.issued.get()).collect::<Vec<_>>()
        };
        let got = run(&flows);
        let total: u64 = got.iter().sum();
        for (n, weight) in got.iter().zip([3, 2, 1]) {
            assert!((n * 6).abs_diff(total * weight) <= 12, "{got:?}");
        }
        flows[0].leave();
        let then = run(&flows[1..]);
        assert!(then[1] > got[2] + 100, "nobody waits for one that has ended: {got:?}, {then:?}");
        assert!(then[0].abs_diff(2 * then[1]) <= 2, "{then:?}");
    }

    /// A job as fast as memory beside two that think 1 ms between I/Os, for a second, under fio 3.33: 166 of 1324 I/Os (an
    /// eighth), 1 of 537, 1028 of 2055 (a half), and free of any share.
    #[test]
    fn weights_below_zero_are_fios() {
        for (weights, most) in
            [([1, 8, -1], 167), ([1, 8, -100], 1), ([1, -8, 9], 1028), ([8, 2, -1], 4000)]
        {
            let flows = flows(weights);
            for _ in 0..550 {
                burst(&flows[0], 10);
                flows[1..].iter().for_each(|f| {
                    burst(f, 1);
                });
            }
            let fast = flows[0].issued.get();
            assert!(
                fast.abs_diff(most) <= most / 8 || most == 4000 && fast > 3000,
                "{weights:?}: {fast}"
            );
        }
    }

    /// Bursts of fio 3.33 under the kernel in virtual time: a fast job beside one that issues one I/O every 4 ms.
    #[test]
    fn bursts_are_those_of_fio() {
        for (weights, most, bursts) in [([1, 1], 4, [2, 2, 1, 1, 2]), ([3, 1], 16, [4, 6, 3, 3, 6])]
        {
            let [a, b] = flows(weights);
            // The slow one's I/Os before each attempt of the fast one.
            let got = [0, 2, 1, 1, 2].map(|n| {
                assert_eq!(burst(&b, n), n, "{weights:?}");
                burst(&a, most)
            });
            assert_eq!(got, bursts, "{weights:?}");
        }
    }

    #[test]
    fn a_job_that_has_not_started_is_waited_for_unless_it_comes_behind_a_stonewall() {
        let group = Rc::new(FlowGroup::default());
        let (a, _late) = (Flow::new(&group, 1, false), Flow::new(&group, 1, false));
        assert_eq!(burst(&a, 10), 2);
        let group = Rc::new(FlowGroup::default());
        let (a, walled) = (Flow::new(&group, 1, false), Flow::new(&group, 1, true));
        assert_eq!(burst(&a, 10), 10);
        walled.enter();
        assert_eq!(burst(&a, 10), 0);
        assert_eq!(burst(&walled, 20), 12, "it catches up");
    }
}
