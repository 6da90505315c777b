//! Control groups: service trees, shares and the virtual disk time they compete by.

use crate::api::QueueFacts;
use crate::ewma::ThinkTime;
use crate::tree::PosTree;

use super::params::{Clock, Tick, mul_div};
use super::queue::Workload;
use super::{ASYNC_SLOTS, Class, NOQ, Qi};

/// Service trees of a group: three workload types of two classes, and the idle class.
pub(super) const TREES: usize = 7;
/// Bits below a key in jiffies. They make the keys of queues filed in the same jiffy different, so no queue has to be
/// searched for among its equals. Keys in ns differ anyway.
const SAME_JIFFY_BITS: u32 = 20;
/// One in the fixed point of shares.
const ONE_SHARE: i64 = 1 << 12;
/// A group that gets busy again goes this far behind the last group, as in the idle class.
const GROUP_DELAY_MS: i64 = 200;
/// The same where groups are charged for requests: a fifth of this many, HZ.
const GROUP_DELAY_PART: i64 = 5;

/// What groups are charged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charge {
    /// The time of their slices.
    Time,
    /// The requests they sent.
    Requests,
}

/// Index of the tree of a class and workload type.
pub(super) fn tree_index(class: Class, workload: Workload) -> usize {
    match class {
        Class::Idle => 6,
        _ => class as usize * 3 + workload as usize,
    }
}

/// Queues ordered by (key, order of insertion), and the think time of all processes on them.
#[derive(Debug, Default)]
pub(super) struct ServiceTree {
    queues: PosTree,
    pub(super) think: ThinkTime,
    shift: u32,
    filed: u64,
}

impl ServiceTree {
    pub(super) fn len(&self) -> usize {
        self.queues.len()
    }

    pub(super) fn first(&self) -> Option<Qi> {
        self.queues.first()
    }

    pub(super) fn last(&self) -> Option<Qi> {
        self.queues.last()
    }

    /// Files a queue. Returns the place that [`remove`](ServiceTree::remove) needs.
    pub(super) fn insert(&mut self, key: Tick, q: Qi) -> u64 {
        // Keys may be negative: the clock starts at 0 and keys reach into the past.
        let bias = (1i64 << 62) >> self.shift;
        let biased = (key.clamp(-bias, bias - 1) + bias) as u64;
        self.filed += 1;
        let slot = biased << self.shift | (self.filed & ((1 << self.shift) - 1));
        self.queues.insert(slot, q);
        slot
    }

    pub(super) fn remove(&mut self, slot: u64, q: Qi) {
        let was_there = self.queues.remove(slot, q);
        debug_assert!(was_there, "a queue is on the tree it says it is on");
    }
}

/// A control group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) trees: [ServiceTree; TREES],
    /// Queues on its trees.
    pub(super) nr: u32,
    /// Smoothed number of busy queues of the RT and BE classes.
    pub(super) busy_avg: [i64; 2],
    /// Requests with the driver.
    pub(super) dispatched: u32,
    pub(super) think: ThinkTime,
    /// The rest of the workload's time when the disk left the group, with class and type.
    pub(super) saved: Option<(Tick, Class, Workload)>,
    pub(super) async_queues: [Qi; ASYNC_SLOTS],
    parent: Option<u32>,
    weight: i64,
    /// Virtual disk time, and the key in the tree of groups while it is on it.
    vtime: u64,
    on_tree: bool,
    /// Weights of active children, and of its own queues while it has any.
    active_weight: i64,
}

impl Group {
    /// Busy queues of a class.
    pub(super) fn busy(&self, class: Class) -> usize {
        match class {
            Class::Idle => self.trees[6].len(),
            _ => self.trees[class as usize * 3..class as usize * 3 + 3]
                .iter()
                .map(ServiceTree::len)
                .sum(),
        }
    }

    /// Busy asynchronous queues of the RT and BE classes.
    pub(super) fn busy_async(&self) -> usize {
        self.trees[0].len() + self.trees[3].len()
    }
}

/// All groups and the tree in which they compete.
#[derive(Debug)]
pub(super) struct Groups {
    all: Vec<Group>,
    tree: PosTree,
    min_vtime: u64,
    /// How far behind the last group a group comes back. Depends on what groups are charged for.
    delays: [u64; 2],
}

impl std::ops::Index<u32> for Groups {
    type Output = Group;
    fn index(&self, g: u32) -> &Group {
        &self.all[g as usize]
    }
}

impl std::ops::IndexMut<u32> for Groups {
    fn index_mut(&mut self, g: u32) -> &mut Group {
        &mut self.all[g as usize]
    }
}

/// `blkio.weight` of a group that was given none.
const DEFAULT_WEIGHT: u32 = 500;

impl Groups {
    /// The groups of a queue; the root always exists.
    pub(super) fn new(facts: &QueueFacts, clock: Clock) -> Groups {
        let shift = if clock.in_ns() { 0 } else { SAME_JIFFY_BITS };
        let tree = || ServiceTree { shift, ..ServiceTree::default() };
        let group = |parent: Option<u32>, weight: u32| Group {
            trees: std::array::from_fn(|_| tree()),
            nr: 0,
            busy_avg: [0; 2],
            dispatched: 0,
            think: ThinkTime::default(),
            saved: None,
            async_queues: [NOQ; ASYNC_SLOTS],
            parent,
            weight: i64::from(weight.max(1)),
            vtime: 0,
            on_tree: false,
            active_weight: 0,
        };
        let mut all: Vec<Group> = facts
            .cgroups
            .iter()
            .enumerate()
            .map(|(n, c)| {
                // A parent is always created before its children; anything else hangs off the root.
                let parent = c.parent.filter(|p| (*p as usize) < n).or((n > 0).then_some(0));
                group(parent, c.weight.unwrap_or(DEFAULT_WEIGHT))
            })
            .collect();
        if all.is_empty() {
            all.push(group(None, DEFAULT_WEIGHT));
        }
        let time = clock.ms(GROUP_DELAY_MS).max(1);
        // In jiffies both are HZ / 5: generations before 4.12 have one delay for both.
        let requests = if clock.in_ns() { (clock.hz() / GROUP_DELAY_PART).max(1) } else { time };
        let delays = [time, requests].map(|d| d as u64 * ONE_SHARE as u64);
        Groups { all, tree: PosTree::new(), min_vtime: 0, delays }
    }

    /// The group with a request's number. An unknown number counts as the root.
    pub(super) fn known(&self, cgroup: u32) -> u32 {
        if (cgroup as usize) < self.all.len() { cgroup } else { 0 }
    }

    /// The busy group with the least virtual time.
    pub(super) fn first(&self) -> Option<u32> {
        self.tree.first()
    }

    /// Whether `g` is `of` or lies below it.
    pub(super) fn descends(&self, mut g: u32, of: u32) -> bool {
        while g != of {
            match self[g].parent {
                Some(p) => g = p,
                None => return false,
            }
        }
        true
    }

    /// A queue of the group became busy; the first one brings the group onto the tree, behind those
    /// that are there.
    pub(super) fn queue_added(&mut self, g: u32, charge: Charge) {
        self[g].nr += 1;
        if self[g].on_tree {
            return;
        }
        let vtime = match self.tree.last() {
            Some(last) => self[last].vtime.saturating_add(self.delays[charge as usize]),
            None => self.min_vtime,
        };
        let group = &mut self[g];
        group.vtime = vtime.max(group.vtime);
        group.on_tree = true;
        let vtime = group.vtime;
        self.tree.insert(vtime, g);
        self.activate(g);
    }

    /// A queue of the group left its tree; with the last one the group leaves as well.
    pub(super) fn queue_removed(&mut self, g: u32) {
        self[g].nr -= 1;
        if self[g].nr > 0 || !self[g].on_tree {
            return;
        }
        let vtime = self[g].vtime;
        self.tree.remove(vtime, g);
        self[g].on_tree = false;
        self[g].saved = None;
        self.deactivate(g);
    }

    fn activate(&mut self, g: u32) {
        // Its own queues compete with its children at its own weight.
        let mut weight = self[g].weight;
        let mut at = Some(g);
        while let Some(n) = at {
            let was_active = self[n].active_weight > 0;
            self[n].active_weight += weight;
            if was_active {
                return;
            }
            weight = self[n].weight;
            at = self[n].parent;
        }
    }

    fn deactivate(&mut self, g: u32) {
        let mut weight = self[g].weight;
        let mut at = Some(g);
        while let Some(n) = at {
            self[n].active_weight -= weight;
            if self[n].active_weight > 0 {
                return;
            }
            weight = self[n].weight;
            at = self[n].parent;
        }
    }

    /// The group's share of the disk among the active ones, in 1/4096.
    fn share(&self, g: u32) -> i64 {
        let mut weight = self[g].weight;
        let mut share = ONE_SHARE;
        let mut at = Some(g);
        while let Some(n) = at {
            share = share * weight / self[n].active_weight.max(weight);
            weight = self[n].weight;
            at = self[n].parent;
        }
        share.max(1)
    }

    /// The part of `latency` that belongs to the group.
    pub(super) fn slice(&self, g: u32, latency: Tick) -> Tick {
        if self.all.len() == 1 {
            return latency;
        }
        mul_div(latency, self.share(g), ONE_SHARE)
    }

    /// Charges the group for a slice that ended and puts it where it belongs now.
    pub(super) fn charge(&mut self, g: u32, ticks: Tick) {
        let cost = mul_div(ticks.max(0), ONE_SHARE * ONE_SHARE, self.share(g)) as u64;
        let on_tree = self[g].on_tree;
        let old = self[g].vtime;
        let new = old.saturating_add(cost);
        self[g].vtime = new;
        if on_tree && self.all.len() > 1 {
            self.tree.remove(old, g);
            self.tree.insert(new, g);
        } else if on_tree {
            // No other group: keep the key that this one is filed under.
            self[g].vtime = old;
        }
        if let Some(first) = self.tree.first() {
            self.min_vtime = self.min_vtime.max(self[first].vtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Cgroup;

    fn groups(weights: &[(Option<u32>, u32)]) -> Groups {
        let cgroups = weights
            .iter()
            .map(|(parent, weight)| Cgroup {
                parent: *parent,
                weight: Some(*weight),
                ..Cgroup::default()
            })
            .collect();
        Groups::new(&QueueFacts { cgroups, ..QueueFacts::default() }, Clock::new(false, 1000))
    }

    #[test]
    fn shares_follow_weights_at_each_level_among_the_active() {
        let mut g = groups(&[(None, 100), (Some(0), 300), (Some(0), 100), (Some(1), 100)]);
        g.queue_added(1, Charge::Time);
        assert_eq!(g.slice(1, 300), 300, "alone");
        g.queue_added(2, Charge::Time);
        assert_eq!((g.slice(1, 400), g.slice(2, 400)), (300, 100));
        g.queue_added(0, Charge::Time);
        assert_eq!((g.slice(1, 500), g.slice(2, 500), g.slice(0, 500)), (299, 99, 99));
        g.queue_added(3, Charge::Time);
        assert_eq!((g.slice(1, 4096), g.slice(3, 4096)), (1843, 614), "3/5 split 3 to 1");
        for n in [3, 0, 2, 1] {
            g.queue_removed(n);
        }
        assert!(g.first().is_none() && g.all.iter().all(|g| g.active_weight == 0));
    }

    #[test]
    fn the_group_with_less_virtual_time_goes_first() {
        let mut g = groups(&[(None, 100), (Some(0), 300), (Some(0), 100)]);
        g.queue_added(1, Charge::Time);
        g.queue_added(2, Charge::Time);
        let mut served = [0; 3];
        for _ in 0..4000 {
            let first = g.first().unwrap();
            served[first as usize] += 1;
            g.charge(first, 40);
        }
        let ratio = f64::from(served[1]) / f64::from(served[2]);
        assert!((2.9..3.1).contains(&ratio), "{served:?}");
    }

    #[test]
    fn descent_is_found_through_parents() {
        let g = groups(&[(None, 1), (Some(0), 1), (Some(1), 1), (Some(0), 1)]);
        assert!(g.descends(2, 1) && g.descends(2, 0) && g.descends(1, 1) && !g.descends(3, 1));
    }
}
