//! `flow`: jobs that share a `flow_id` go in proportion to their weights.

use std::cell::Cell;
use std::rc::Rc;

use iosched_types::Nanos;

use super::pace::Pause;
use super::{Process, State, TIMER_SLACK};

/// A job that is held back without `flow_sleep` looks again after this long; the real one spins.
const LOOK_AGAIN: Nanos = 10_000;

/// What the running jobs of one `flow_id` share.
#[derive(Debug, Default)]
pub struct FlowGroup {
    /// I/Os issued by all since somebody came or went.
    issued: Cell<u64>,
    /// Sum of their weights.
    weights: Cell<u64>,
    /// How often somebody came or went.
    changes: Cell<u64>,
}

impl FlowGroup {
    fn change(&self, weights: u64) {
        self.weights.set(weights);
        self.issued.set(0);
        self.changes.set(self.changes.get() + 1);
    }
}

/// A job's part in a [`FlowGroup`].
#[derive(Debug)]
pub struct Flow {
    group: Rc<FlowGroup>,
    weight: u64,
    /// I/Os issued since `changes`.
    issued: Cell<u64>,
    changes: Cell<u64>,
}

impl Flow {
    /// A part in a group; it counts from [`Flow::enter`] to [`Flow::leave`].
    #[must_use]
    pub fn new(group: &Rc<FlowGroup>, weight: u64) -> Self {
        let (issued, changes) = (Cell::new(0), Cell::new(0));
        Flow { group: Rc::clone(group), weight: weight.max(1), issued, changes }
    }

    /// The job starts.
    pub(super) fn enter(&self) {
        self.group.change(self.group.weights.get() + self.weight);
    }

    /// The job ends: the others share without it.
    pub(super) fn leave(&self) {
        self.group.change(self.group.weights.get() - self.weight);
    }

    /// I/Os issued since the group last changed.
    fn own(&self) -> u64 {
        if self.changes.replace(self.group.changes.get()) != self.group.changes.get() {
            self.issued.set(0);
        }
        self.issued.get()
    }

    /// Whether the job has had no more than its share, to the I/O.
    pub(super) fn may_go(&self) -> bool {
        let own = u128::from(self.own()) * u128::from(self.group.weights.get());
        own <= u128::from(self.group.issued.get()) * u128::from(self.weight)
    }

    pub(super) fn count(&self) {
        self.issued.set(self.own() + 1);
        self.group.issued.set(self.group.issued.get() + 1);
    }
}

impl Process {
    /// Lets the others catch up, with nothing of its own under way.
    pub(super) fn hold_back(&mut self) {
        let sleep = match self.job.flow_sleep {
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

    #[test]
    fn shares_follow_the_weights_and_those_who_stay_share_anew() {
        let group = Rc::new(FlowGroup::default());
        let flows = [3, 2, 1].map(|w| Flow::new(&group, w));
        flows.iter().for_each(Flow::enter);
        let run = |flows: &[Flow]| {
            for _ in 0..600 {
                for f in flows.iter().filter(|f| f.may_go()) {
                    f.count();
                }
            }
            flows.iter().map(|f| f.issued.get()).collect::<Vec<_>>()
        };
        let got = run(&flows);
        let total: u64 = got.iter().sum();
        for (n, weight) in got.iter().zip([3, 2, 1]) {
            assert!((n * 6).abs_diff(total * weight) <= 12, "{got:?}");
        }
        flows[0].leave();
        let got = run(&flows[1..]);
        assert!(
            got[0] > 0 && got[0].abs_diff(2 * got[1]) <= 2,
            "nobody waits for one that has ended"
        );
    }
}
