//! A driver that asks by hand, one request per question with nothing in between, and the answers to `explain`.

use super::{Queue, on_lane};
use crate::core::trace::Trace;
use crate::timeline::Timeline;

impl Queue {
    /// From now on the queue never runs by itself: only [`pull`](Self::pull) takes requests.
    pub fn pull_by_hand(&mut self) {
        self.core.manual = true;
    }

    /// The driver asks once, whatever it has in flight. Parked requests go first, then the scheduler is asked. `true`
    /// if a command went to the device.
    pub fn pull(&mut self, tl: &mut Timeline) -> bool {
        on_lane!(self, path, core => path.step(core, tl))
    }

    /// The driver has room and asks at the next deferred run, even if the block layer has no reason to run. (Otherwise
    /// a scheduler that kept its requests back is asked 3 ms later.)
    pub fn ask_again(&mut self) {
        self.core.runs.ask();
    }

    /// Turns on the collection of decisions with reasons.
    pub fn explain(&mut self) {
        self.explain_at_most(usize::MAX);
    }

    /// As [`explain`](Self::explain), but only the first so many decisions.
    pub fn explain_at_most(&mut self, most: usize) {
        self.core.explain.start(most);
        self.core.sched.explain();
    }

    /// The decisions collected since [`explain`](Self::explain); an idle period that still lasts ends
    /// now.
    pub fn take_trace(&mut self, tl: &Timeline) -> Trace {
        self.core.end_idle(tl.now);
        self.core.explain.take()
    }
}
