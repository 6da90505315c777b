//! Bursts: many queues created at nearly the same time are the parts of one job (a boot, a `make -j`), not applications
//! that a person waits for. So none of them is raised.

use super::Bfq;
use super::queue::{Burst, Jiffies, QueueId};
use crate::api::Ctx;

/// A queue split off within this time does not count as new.
const SPLIT_MS: i64 = 10;

/// The burst in progress.
#[derive(Debug)]
pub(super) struct Bursts {
    list: Vec<QueueId>,
    size: usize,
    large: bool,
    last: Jiffies,
    group: u32,
}

impl Bursts {
    pub(super) fn new(long_ago: Jiffies) -> Bursts {
        Bursts { list: Vec::with_capacity(16), size: 0, large: false, last: long_ago, group: 0 }
    }

    /// Where a queue stands that has just been split off, by where it stood when it merged: of a burst that has become large
    /// since, it is a part. In the list of another it was counted then.
    pub(super) fn after_split(&mut self, q: QueueId, was: Burst) -> Burst {
        match was {
            Burst::Listed if self.large => Burst::Large,
            Burst::Listed => {
                self.remove(q);
                self.list.push(q);
                Burst::Listed
            }
            was => was,
        }
    }

    pub(super) fn remove(&mut self, q: QueueId) {
        self.list.retain(|x| *x != q);
    }
}

impl Bfq {
    /// A new queue sends its first request.
    pub(super) fn watch_burst(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        let Some(rule) = self.v.burst else { return };
        let busy = self.total_busy() > 0;
        if rule.only_when_quiet && self.bursts.size == 0 && busy {
            return;
        }
        let queue = self.q(q);
        let recent = self.j < queue.split_time + self.c.ms_to_jiffies(SPLIT_MS);
        if queue.burst != Burst::No || recent {
            return;
        }
        let group = queue.group;
        let late = self.j > self.bursts.last + self.c.ms_to_jiffies(rule.interval_ms);
        if late || group != self.bursts.group {
            self.restart_burst(q, rule.only_when_quiet && busy);
        } else if self.bursts.large {
            self.qm(q).burst = Burst::Large;
        } else {
            self.join_burst(ctx, q, rule.threshold);
        }
        (self.bursts.last, self.bursts.group) = (self.j, group);
    }

    fn restart_burst(&mut self, q: QueueId, without: bool) {
        while let Some(old) = self.bursts.list.pop() {
            if self.q(old).burst == Burst::Listed {
                self.qm(old).burst = Burst::No;
            }
        }
        self.bursts.large = false;
        self.bursts.size = 0;
        if !without {
            self.bursts.list.push(q);
            self.bursts.size = 1;
            self.qm(q).burst = Burst::Listed;
        }
    }

    fn join_burst(&mut self, ctx: &mut Ctx<'_>, q: QueueId, threshold: usize) {
        self.bursts.size += 1;
        if self.bursts.size < threshold {
            self.bursts.list.push(q);
            self.qm(q).burst = Burst::Listed;
            return;
        }
        self.bursts.large = true;
        self.qm(q).burst = Burst::Large;
        while let Some(old) = self.bursts.list.pop() {
            self.qm(old).burst = Burst::Large;
        }
        ctx.why(|_, _| {
            format!("{threshold} new queues in a burst: none of them counts as interactive")
        });
    }

    /// A queue that has been idle for ten seconds starts afresh.
    pub(super) fn leave_burst(&mut self, q: QueueId) {
        self.qm(q).burst = Burst::No;
        self.bursts.remove(q);
    }

    /// A queue goes away.
    pub(super) fn burst_lost(&mut self, q: QueueId, merged: bool) {
        if self.q(q).burst == Burst::Listed {
            self.bursts.remove(q);
            if !merged {
                self.bursts.size = self.bursts.size.saturating_sub(1);
            }
        }
    }

    /// Whether an activation after this long clears the mark of a large burst.
    pub(super) fn outlived_burst(&self, q: QueueId) -> bool {
        let queue = self.q(q);
        self.v.modern
            && !queue.just_created
            && queue.dispatched == 0
            && self.j > queue.budget_timeout + self.c.ms_to_jiffies(10_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thirty processes begin at once, and some queues merge and split meanwhile.
    #[test]
    fn a_queue_that_was_listed_belongs_to_the_burst_that_became_large() {
        let mut bursts = Bursts::new(0);
        assert_eq!(bursts.after_split(3, Burst::No), Burst::No);
        assert_eq!((bursts.after_split(4, Burst::Listed), &bursts.list[..]), (Burst::Listed, &[4][..]));
        bursts.large = true;
        assert_eq!(bursts.after_split(5, Burst::Listed), Burst::Large);
        assert_eq!(bursts.after_split(6, Burst::No), Burst::No);
    }
}
