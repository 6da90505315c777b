//! The event queue: a 4-ary heap ordered by (time, order of pushing).

use iosched_types::Nanos;

/// Events ordered by time; equal times leave in the order in which they were pushed.
///
/// A 4-ary heap over one `u128` key (`time << 64 | sequence`): half the levels of a binary heap, one
/// comparison for both parts, and the sequence number makes ties first in, first out.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: Vec<(u128, E)>,
    seq: u64,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        EventQueue { heap: Vec::new(), seq: 0 }
    }

    /// Schedules `event` at `time`.
    pub fn push(&mut self, time: Nanos, event: E) {
        let key = (u128::from(time) << 64) | u128::from(self.seq);
        self.seq += 1;
        self.heap.push((key, event));
        self.sift_up(self.heap.len() - 1);
    }

    /// The earliest event.
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        let last = self.heap.pop()?;
        let top = if self.heap.is_empty() {
            last
        } else {
            let top = std::mem::replace(&mut self.heap[0], last);
            self.sift_down(0);
            top
        };
        Some(((top.0 >> 64) as Nanos, top.1))
    }

    /// When the earliest event happens.
    #[must_use]
    pub fn peek_time(&self) -> Option<Nanos> {
        self.heap.first().map(|(k, _)| (k >> 64) as Nanos)
    }

    /// The earliest event and its time, which stays.
    #[must_use]
    pub fn peek(&self) -> Option<(Nanos, E)> {
        self.heap.first().map(|(k, e)| ((k >> 64) as Nanos, *e))
    }

    /// Every event and its time. The earliest comes first, the others in no order of meaning.
    pub fn iter(&self) -> impl Iterator<Item = (Nanos, E)> + '_ {
        self.heap.iter().map(|(k, e)| ((k >> 64) as Nanos, *e))
    }

    /// Takes out one event of which this is true. The others keep their order. Looks at them one after the other.
    pub fn remove(&mut self, f: impl Fn(&E) -> bool) -> Option<(Nanos, E)> {
        let i = self.heap.iter().position(|(_, e)| f(e))?;
        let (key, event) = self.heap.swap_remove(i);
        if i < self.heap.len() {
            self.sift_up(i);
            self.sift_down(i);
        }
        Some(((key >> 64) as Nanos, event))
    }

    /// Events waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is scheduled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Forgets every event; the sequence goes on.
    pub fn clear(&mut self) {
        self.heap.clear();
    }

    fn sift_up(&mut self, mut i: usize) {
        let item = self.heap[i];
        while i > 0 {
            let parent = (i - 1) / 4;
            if self.heap[parent].0 <= item.0 {
                break;
            }
            self.heap[i] = self.heap[parent];
            i = parent;
        }
        self.heap[i] = item;
    }

    fn sift_down(&mut self, mut i: usize) {
        let item = self.heap[i];
        let len = self.heap.len();
        loop {
            let first = 4 * i + 1;
            if first >= len {
                break;
            }
            let mut child = first;
            for c in first + 1..(first + 4).min(len) {
                if self.heap[c].0 < self.heap[child].0 {
                    child = c;
                }
            }
            if self.heap[child].0 >= item.0 {
                break;
            }
            self.heap[i] = self.heap[child];
            i = child;
        }
        self.heap[i] = item;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_others_keep_their_order_when_one_is_taken_out(
            times in proptest::collection::vec(0u64..20, 1..100),
            which in any::<prop::sample::Index>(),
        ) {
            let mut q = EventQueue::new();
            times.iter().enumerate().for_each(|(n, t)| q.push(*t, n));
            let out = which.index(times.len());
            prop_assert_eq!(q.remove(|e| *e == out), Some((times[out], out)));
            prop_assert_eq!(q.remove(|e| *e == out), None);
            let mut slow: Vec<(u64, usize)> = times.into_iter().zip(0..).collect();
            slow.remove(out);
            slow.sort_by_key(|(t, _)| *t);
            let left: Vec<(u64, usize)> = std::iter::from_fn(|| q.pop()).collect();
            prop_assert_eq!(left, slow);
        }

        /// Against the slow, obvious oracle: a list sorted by time with a stable sort.
        #[test]
        fn pops_like_a_stable_sort(ops in proptest::collection::vec((0u64..20, any::<bool>()), 0..200)) {
            let mut q = EventQueue::new();
            let mut oracle: Vec<(u64, usize)> = Vec::new();
            for (i, (t, pop)) in ops.into_iter().enumerate() {
                if pop {
                    oracle.sort_by_key(|e| e.0);
                    let want = (!oracle.is_empty()).then(|| oracle.remove(0));
                    prop_assert_eq!(q.pop(), want);
                } else {
                    q.push(t, i);
                    oracle.push((t, i));
                }
                prop_assert_eq!(q.len(), oracle.len());
            }
            oracle.sort_by_key(|e| e.0);
            for want in oracle {
                prop_assert_eq!(q.pop(), Some(want));
            }
            prop_assert!(q.is_empty());
        }
    }
}
