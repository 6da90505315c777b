//! The internal events of a device, ordered by (time, order of creation), without a heap.

use std::collections::VecDeque;

use iosched_types::Nanos;

/// Events in a few lanes, each of which is filled in the order of time.
///
/// Each kind of event of a model happens a constant time after the moment that creates it, and moments pass in order.
/// So each kind is a first-in-first-out queue already, and the next event of all is the smallest of a handful of heads.
/// Equal times leave in the order of creation.
#[derive(Debug)]
pub(crate) struct Lanes<E, const N: usize> {
    heads: [u128; N],
    queues: [VecDeque<(u128, E)>; N],
    /// The earliest head and its lane. It is asked for three times as often as an event leaves.
    first: (usize, u128),
    created: u64,
}

const EMPTY: u128 = u128::MAX;

impl<E: Copy, const N: usize> Lanes<E, N> {
    /// No events.
    pub(crate) fn new() -> Self {
        let queues = std::array::from_fn(|_| VecDeque::new());
        Lanes { heads: [EMPTY; N], queues, first: (0, EMPTY), created: 0 }
    }

    /// Schedules `event` at `time`, which is not before the last event of the same lane.
    #[inline]
    pub(crate) fn push(&mut self, lane: usize, time: Nanos, event: E) {
        let key = (u128::from(time) << 64) | u128::from(self.created);
        self.created += 1;
        debug_assert!(self.queues[lane].back().is_none_or(|(last, _)| *last < key));
        if self.queues[lane].is_empty() {
            self.heads[lane] = key;
            if key < self.first.1 {
                self.first = (lane, key);
            }
        }
        self.queues[lane].push_back((key, event));
    }

    /// The earliest event, if its time is not after `now`: time, lane, event.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, usize, E)> {
        let (lane, head) = self.first;
        let time = (head >> 64) as Nanos;
        if head == EMPTY || time > now {
            return None;
        }
        let (_, event) = self.queues[lane].pop_front()?;
        self.heads[lane] = self.queues[lane].front().map_or(EMPTY, |(key, _)| *key);
        self.first = self.earliest();
        Some((time, lane, event))
    }

    /// When the earliest event happens.
    #[inline]
    pub(crate) fn next_time(&self) -> Option<Nanos> {
        let (_, head) = self.first;
        (head != EMPTY).then_some((head >> 64) as Nanos)
    }

    #[inline]
    fn earliest(&self) -> (usize, u128) {
        let mut best = (0, self.heads[0]);
        for (lane, key) in self.heads.iter().enumerate().skip(1) {
            if *key < best.1 {
                best = (lane, *key);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_engine::EventQueue;
    use proptest::prelude::*;

    proptest! {
        /// Against the engine's event queue, with a delay per lane.
        #[test]
        fn pops_like_the_event_queue(ops in proptest::collection::vec((0usize..3, 0u64..4), 0..100)) {
            let delays = [0, 3, 5];
            let mut lanes: Lanes<usize, 3> = Lanes::new();
            let mut oracle = EventQueue::new();
            let mut now = 0;
            for (i, (lane, step)) in ops.into_iter().enumerate() {
                now += step;
                while oracle.peek_time().is_some_and(|t| t <= now) {
                    let (t, e) = oracle.pop().unwrap();
                    prop_assert_eq!(lanes.next_time(), Some(t));
                    prop_assert_eq!(lanes.pop_due(now).map(|(t, _, e)| (t, e)), Some((t, e)));
                }
                prop_assert!(lanes.pop_due(now).is_none());
                lanes.push(lane, now + delays[lane], i);
                oracle.push(now + delays[lane], i);
            }
        }
    }
}
