//! Cooperators: processes that read next to each other (dump, interleaved readers) share a queue
//! until they drift apart.

use iosched_types::{NO_REQ, ReqId, Sector, TaskId};

use crate::api::Ctx;

use super::core::Cfq;
use super::enqueue::CLOSE;
use super::{Class, NOQ, Qi};

impl Cfq {
    /// Updates the queue's entry in the position tree of its level. Only queues that can cooperate have an entry:
    /// synchronous, with something waiting, not seeky, not of the idle class. The active queue has none, because no
    /// search needs it and its next request changes all the time.
    pub(super) fn update_position(&mut self, ctx: &Ctx<'_>, qi: Qi) {
        let q = &mut self.queues[qi as usize];
        let may =
            qi != self.active && q.sync && q.next != NO_REQ && q.class != Class::Idle && !q.seeky();
        let wanted: Option<(u8, Sector)> = may.then(|| (q.level, ctx.reqs[q.next].sector));
        if wanted == q.position {
            return;
        }
        let old = std::mem::replace(&mut q.position, wanted);
        if let Some((level, sector)) = old {
            self.positions[usize::from(level)].remove(sector, qi as ReqId);
        }
        if let Some((level, sector)) = wanted {
            self.positions[usize::from(level)].insert(sector, qi as ReqId);
        }
    }

    /// A queue with its next request close to the head. It goes on in the place of a dry queue.
    pub(super) fn close_cooperator(&self, ctx: &Ctx<'_>, qi: Qi) -> Option<Qi> {
        let q = &self.queues[qi as usize];
        if !q.sync || q.class == Class::Idle || q.seeky() || self.groups[q.group].nr == 1 {
            return None;
        }
        let at = self.last_position;
        let tree = &self.positions[usize::from(q.level)];
        let distance = |c: Qi| {
            let next = self.queues[c as usize].next;
            ctx.reqs[next].sector.abs_diff(at)
        };
        let (above, below) = (tree.first_at_or_after(at), tree.last_before(at));
        let nearest = match (above, below) {
            (Some(a), Some(b)) => Some(if distance(b) < distance(a) { b } else { a }),
            (a, b) => a.or(b),
        };
        let c = nearest.filter(|c| *c != qi && distance(*c) <= CLOSE)?;
        let other = &self.queues[c as usize];
        let same_kind = (other.class == Class::Rt) == (q.class == Class::Rt);
        (other.group == q.group && same_kind && other.place.is_some()).then_some(c)
    }

    /// The end of the chain of merges a queue is on.
    fn chain_end(&self, mut qi: Qi) -> Qi {
        while self.queues[qi as usize].merge_into != NOQ {
            qi = self.queues[qi as usize].merge_into;
        }
        qi
    }

    /// Plans to make two close queues one. The one with fewer processes goes into the other, as its processes ask for
    /// their next requests.
    pub(super) fn promise_merge(&mut self, ctx: &mut Ctx<'_>, qi: Qi, close: Qi) {
        if self.queues[qi as usize].merge_into != NOQ {
            return;
        }
        let close = self.chain_end(close);
        if close == qi {
            return;
        }
        let users = |c: Qi| self.queues[c as usize].tasks + self.queues[c as usize].promised;
        let (mine, theirs) = (users(qi), users(close));
        if mine == 0 || theirs == 0 {
            // One of them has lost its last process, so no process would ever move.
            return;
        }
        let (from, into) = if theirs >= mine { (qi, close) } else { (close, qi) };
        let moving = mine.min(theirs);
        self.q(from).merge_into = into;
        let target = self.q(into);
        target.links_in += 1;
        target.promised += moving;
        if ctx.out.why.is_some() {
            let (a, b) = (self.name_in(ctx, from), self.name_in(ctx, into));
            ctx.why(|_, _| format!("queue of {a} will merge into that of {b}: close"));
        }
    }

    /// The queue a process goes on with: its own again after a split, the common one after a merge.
    pub(super) fn regroup(
        &mut self,
        ctx: &mut Ctx<'_>,
        qi: Qi,
        task: TaskId,
        group: u32,
        prio: (Class, u8),
        now: u64,
    ) -> Qi {
        let mut qi = qi;
        if self.queues[qi as usize].coop && self.queues[qi as usize].split_coop {
            qi = self.split(ctx, qi, task, group, prio, now);
        }
        let into = self.queues[qi as usize].merge_into;
        if into == NOQ {
            return qi;
        }
        self.n.merges += 1;
        if ctx.out.why.is_some() {
            let b = self.name_in(ctx, into);
            ctx.why(|_, f| format!("queue of pid {} merged into that of {b}: close", f.pid(task)));
        }
        let target = self.q(into);
        (target.tasks, target.promised) = (target.tasks + 1, target.promised - 1);
        target.coop = true;
        self.tasks[task as usize].queue = into;
        self.q(qi).tasks -= 1;
        self.free_if_unused(qi);
        into
    }

    fn split(
        &mut self,
        ctx: &mut Ctx<'_>,
        qi: Qi,
        task: TaskId,
        group: u32,
        prio: (Class, u8),
        now: u64,
    ) -> Qi {
        let q = self.q(qi);
        if q.tasks + q.promised <= 1 {
            (q.coop, q.split_coop, q.owner) = (false, false, task);
            return qi;
        }
        self.n.splits += 1;
        ctx.why(|_, f| format!("pid {} leaves the shared queue: it turned seeky", f.pid(task)));
        self.leave(task, qi);
        self.sync_queue(task, group, prio, now)
    }
}
