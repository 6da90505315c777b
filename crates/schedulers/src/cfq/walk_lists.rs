//! The lists of the CFQ of 2.6.18 and the walk over its priorities.

use crate::tree::PosTree;

use super::walk_queue::{Home, Queue};
use super::{Class, NOQ, Qi};

/// A doubly linked list of queues.
#[derive(Clone, Copy, Debug)]
struct QList {
    head: Qi,
    tail: Qi,
}

impl QList {
    const EMPTY: QList = QList { head: NOQ, tail: NOQ };

    fn push_back(&mut self, queues: &mut [Queue], qi: Qi) {
        let tail = std::mem::replace(&mut self.tail, qi);
        (queues[qi as usize].prev, queues[qi as usize].follow) = (tail, NOQ);
        match queues.get_mut(tail as usize) {
            Some(t) => t.follow = qi,
            None => self.head = qi,
        }
    }

    fn remove(&mut self, queues: &mut [Queue], qi: Qi) {
        let (prev, follow) = (queues[qi as usize].prev, queues[qi as usize].follow);
        match queues.get_mut(prev as usize) {
            Some(p) => p.follow = follow,
            None => self.head = follow,
        }
        match queues.get_mut(follow as usize) {
            Some(f) => f.prev = prev,
            None => self.tail = prev,
        }
    }

    fn first(self) -> Option<Qi> {
        (self.head != NOQ).then_some(self.head)
    }
}

/// Where queues wait for the disk.
///
/// The kernel keeps sorted linked lists and moves a whole list into the round. Here the lists are trees by the time of
/// last service (0, "never", first; equal times in order of filing). The round is swapped with the empty tree, so
/// nothing walks over queues.
#[derive(Debug)]
pub(super) struct Lists {
    levels: [PosTree; 8],
    round: PosTree,
    busy: QList,
    idle: PosTree,
    cur_prio: usize,
    cur_end_prio: usize,
    /// Queues filed so far: tells those with the same time of last service apart.
    filed: u32,
}

impl Default for Lists {
    fn default() -> Self {
        Lists {
            levels: Default::default(),
            round: PosTree::new(),
            busy: QList::EMPTY,
            idle: PosTree::new(),
            cur_prio: 0,
            cur_end_prio: 0,
            filed: 0,
        }
    }
}

impl Lists {
    /// Files a queue where it belongs, taking it from where it is.
    pub(super) fn place(&mut self, queues: &mut [Queue], qi: Qi) {
        self.remove(queues, qi);
        let key = self.key(queues[qi as usize].service_last);
        let q = &mut queues[qi as usize];
        let level = q.level;
        q.home = match q.class {
            Class::Idle => Home::Idle(key),
            Class::Be if q.dispatched > 0 => Home::Busy,
            Class::Rt | Class::Be => Home::Level(level, key),
        };
        match (q.home, q.class) {
            (Home::Idle(_), _) => self.idle.insert(key, qi),
            (Home::Busy, _) => self.busy.push_back(queues, qi),
            (_, Class::Rt) => self.round.insert(key, qi),
            _ => self.levels[usize::from(level)].insert(key, qi),
        }
    }

    /// A key of its own for a queue last served at that time, behind the others of that time.
    fn key(&mut self, service_last: u64) -> u64 {
        self.filed = self.filed.wrapping_add(1);
        service_last.min(u64::from(u32::MAX)) << 32 | u64::from(self.filed)
    }

    fn file_by_level(&mut self, queues: &mut [Queue], qi: Qi) {
        let key = self.key(queues[qi as usize].service_last);
        let q = &mut queues[qi as usize];
        q.home = Home::Level(q.level, key);
        self.levels[usize::from(q.level)].insert(key, qi);
    }

    /// Takes a queue off the list that it is on.
    pub(super) fn remove(&mut self, queues: &mut [Queue], qi: Qi) {
        match std::mem::take(&mut queues[qi as usize].home) {
            Home::Nowhere => {}
            Home::Busy => self.busy.remove(queues, qi),
            Home::Idle(key) => {
                self.idle.remove(key, qi);
            }
            Home::Level(level, key) => {
                // The whole list of its level may have become the round since.
                if !self.levels[usize::from(level)].remove(key, qi) {
                    self.round.remove(key, qi);
                }
            }
        }
    }

    /// The queue at the head of the round (refilled by the walk when empty), else the one busy longest.
    pub(super) fn next(&mut self) -> Option<Qi> {
        if self.round.is_empty() {
            self.refill();
        }
        self.round.first().or_else(|| self.busy.first())
    }

    /// The queue of the idle class that waits longest.
    pub(super) fn next_idle(&self) -> Option<Qi> {
        self.idle.first()
    }

    /// The walk: levels 0 | 0,1 | 0,1,2 | … | 0..7 and again; the first that has queues becomes the round.
    fn refill(&mut self) {
        let Some(level) = self.pick_level() else { return };
        std::mem::swap(&mut self.round, &mut self.levels[level]);
        self.cur_prio = level + 1;
        if self.cur_prio > self.cur_end_prio {
            self.cur_end_prio += 1;
            self.cur_prio = 0;
        }
        if self.cur_end_prio > 7 {
            (self.cur_prio, self.cur_end_prio) = (0, 0);
        }
    }

    fn pick_level(&mut self) -> Option<usize> {
        if self.levels.iter().all(PosTree::is_empty) {
            return None;
        }
        loop {
            let range = self.cur_prio..=self.cur_end_prio;
            if let Some(level) = range.into_iter().find(|l| !self.levels[*l].is_empty()) {
                return Some(level);
            }
            self.cur_prio = 0;
            self.cur_end_prio = if self.cur_end_prio >= 7 { 0 } else { self.cur_end_prio + 1 };
        }
    }

    /// Sends every queue of the round back to its level, after a preemption.
    pub(super) fn dissolve_round(&mut self, queues: &mut [Queue]) {
        while let Some(qi) = self.round.first() {
            let Home::Level(_, key) = queues[qi as usize].home else { return };
            self.round.remove(key, qi);
            self.file_by_level(queues, qi);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(level: u8, service_last: u64) -> Queue {
        Queue { level, service_last, ..Queue::default() }
    }

    #[test]
    fn the_walk_gives_low_numbers_more_turns() {
        let mut queues: Vec<Queue> = [0, 1, 2].iter().map(|l| queue(*l, 0)).collect();
        let mut lists = Lists::default();
        for qi in 0..3 {
            lists.place(&mut queues, qi);
        }
        let mut order = Vec::new();
        for now in 1..=12 {
            let qi = lists.next().unwrap();
            order.push(qi);
            queues[qi as usize].service_last = now;
            lists.place(&mut queues, qi);
        }
        // 0 | 0,1 | 0,1,2 | 0,1,2,(3 empty) | …
        assert_eq!(order, [0, 0, 1, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn the_round_is_served_by_the_time_of_last_service_and_the_never_served_first() {
        let mut queues = vec![queue(4, 30), queue(4, 0), queue(4, 20), queue(4, 0), queue(4, 20)];
        let mut lists = Lists::default();
        for qi in 0..5 {
            lists.place(&mut queues, qi);
        }
        let mut order = Vec::new();
        while let Some(qi) = lists.next() {
            lists.remove(&mut queues, qi);
            order.push(qi);
        }
        assert_eq!(order, [1, 3, 2, 4, 0]);
    }

    #[test]
    fn real_time_goes_ahead_of_the_round_and_queues_in_flight_behind_it() {
        let mut queues = vec![queue(4, 0), queue(4, 0), queue(7, 0)];
        queues[1].dispatched = 1;
        queues[2].class = Class::Rt;
        let mut lists = Lists::default();
        for qi in 0..3 {
            lists.place(&mut queues, qi);
        }
        let mut order = Vec::new();
        while let Some(qi) = lists.next() {
            lists.remove(&mut queues, qi);
            order.push(qi);
        }
        assert_eq!(order, [2, 0, 1]);
    }
}
