//! What scenarios set and look at inside a queue.

use iosched_schedulers::{Ctx, Scheduler};

use super::{Lane, Queue};
use crate::mq::Hctx;
use crate::timeline::Timeline;

impl Queue {
    /// Whether the queue keeps from running, so that a scenario can pile requests up.
    pub(crate) fn hold(&mut self, hold: bool) {
        self.core.manual = hold;
    }

    /// Lets the scheduler wish something.
    pub(crate) fn hook(
        &mut self,
        tl: &mut Timeline,
        f: impl FnOnce(&mut dyn Scheduler, &mut Ctx<'_>),
    ) {
        self.core.hook_mut(tl, f);
    }

    /// The first hardware context of a blk-mq queue.
    pub(crate) fn hctx(&mut self) -> &mut Hctx {
        match &mut self.lane {
            Lane::Mq(mq) => mq.first(),
            Lane::Legacy(_) => panic!("the legacy path has no hardware contexts"),
        }
    }

    /// Whether the writeback throttle is on.
    pub(crate) fn throttled(&self) -> bool {
        self.core.throttle.is_on()
    }
}
