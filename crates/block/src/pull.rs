//! A driver that asks by hand: one request per question, and nothing happens in between.

use iosched_schedulers::{BlockPath, Dispatch};

use crate::queue::Queue;
use crate::timeline::Timeline;
use crate::trace::Trace;

impl Queue {
    /// From now on the queue never runs by itself: only [`pull`](Self::pull) takes requests.
    pub fn pull_by_hand(&mut self) {
        self.manual = true;
    }

    /// The driver asks once, whatever it has in flight. Parked requests go first, then the scheduler is asked. `true`
    /// if a command went to the device.
    pub fn pull(&mut self, tl: &mut Timeline) -> bool {
        match self.path {
            BlockPath::Legacy => self.legacy_step(tl),
            BlockPath::Mq => self.mq_pull_one(tl),
        }
    }

    /// The driver has room and asks at the next deferred run, even if the block layer has no reason to run. (Otherwise
    /// a scheduler that kept its requests back is asked 3 ms later.)
    pub fn ask_again(&mut self) {
        self.run_pending = true;
    }

    fn mq_pull_one(&mut self, tl: &mut Timeline) -> bool {
        if let Some(id) = self.hctx[0].dispatch.pop_front() {
            self.issue(tl, id);
            return true;
        }
        if self.none {
            return self.issue_from_ctx(tl, 0);
        }
        if !self.scheduler.has_work() {
            return false;
        }
        match self.hook_mut(tl, |s, c| s.dispatch(c, 0)) {
            Dispatch::Request(id) => {
                self.left_scheduler(id);
                self.trace_dispatch(tl.now, id);
                self.issue(tl, id);
                true
            }
            Dispatch::Idle(idle) => {
                self.note_idle(tl.now, idle);
                false
            }
            Dispatch::Empty => false,
        }
    }

    /// The decisions collected since [`explain`](Self::explain); an idle period that still lasts ends
    /// now.
    pub fn take_trace(&mut self, tl: &Timeline) -> Trace {
        self.end_idle(tl.now);
        self.trace.take().unwrap_or_default()
    }
}
