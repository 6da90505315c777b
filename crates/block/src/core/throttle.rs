//! Whether the writeback throttle is on.

use iosched_schedulers::QueueFacts;
use iosched_types::TaskId;

use super::wbt::Wbt;

/// The throttle of a queue, on or off.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    on: Option<Wbt>,
    /// The throttle, while a scheduler runs that has it switched off.
    off: Option<Wbt>,
    target_us: Option<u64>,
    /// The device has told how many commands it takes, as SCSI disks do. Otherwise the depth is that of the queue's requests.
    tells_depth: bool,
}

impl Throttle {
    /// `target_us` as set by hand, if it was.
    pub(crate) fn new(target_us: Option<u64>, tells_depth: bool) -> Self {
        Throttle { on: None, off: None, target_us, tells_depth }
    }

    /// Switches it on or off for a scheduler. BFQ (`unwanted`) switches it off, unless the target was set by hand.
    pub(crate) fn set(&mut self, unwanted: bool, facts: &QueueFacts, write_cache: bool) {
        let target = self.target_us;
        if target == Some(0) || (unwanted && target.is_none()) {
            self.off = self.on.take().or(self.off.take());
        } else if self.on.is_none() {
            let depth = if self.tells_depth { facts.queue_depth } else { facts.nr_requests };
            let fresh = || Wbt::new(target, facts.rotational, depth, write_cache);
            self.on = Some(self.off.take().unwrap_or_else(fresh));
        }
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// Whether a task sleeps in it.
    pub(crate) fn holds(&self, task: TaskId) -> bool {
        self.on.iter().chain(&self.off).any(|w| w.holds(task))
    }

    #[inline(always)]
    pub(crate) fn get(&mut self) -> Option<&mut Wbt> {
        self.on.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Series of 6.12 on an SSD of depth 128 with 256 requests: up to 24,576 pages are on their way in requests of 128, three
    /// quarters of the requests. A SCSI disk has the depth that it told.
    #[test]
    fn the_throttle_goes_by_requests_where_no_depth_is_told() {
        let facts = QueueFacts { queue_depth: 128, nr_requests: 256, ..QueueFacts::default() };
        for (told, cap) in [(false, 192), (true, 96)] {
            let mut throttle = Throttle::new(Some(2000), told);
            throttle.set(false, &facts, true);
            assert_eq!(throttle.get().map(|w| w.most()), Some(cap));
        }
    }
}
