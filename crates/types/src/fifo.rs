//! A queue that seldom holds more than one entry.

use std::collections::VecDeque;

/// A double-ended queue that keeps its first element outside the ring buffer. Most of the simulator's queues hold at
/// most one element most of the time, and then nothing goes through the buffer.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    first: Option<T>,
    /// Empty when there is no first.
    rest: VecDeque<T>,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Fifo { first: None, rest: VecDeque::new() }
    }
}

impl<T> Fifo<T> {
    /// Whether it holds nothing.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// How many it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// The first.
    #[must_use]
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// Appends.
    #[inline]
    pub fn push_back(&mut self, item: T) {
        if self.first.is_none() {
            self.first = Some(item);
        } else {
            self.rest.push_back(item);
        }
    }

    /// Prepends.
    pub fn push_front(&mut self, item: T) {
        if let Some(first) = self.first.replace(item) {
            self.rest.push_front(first);
        }
    }

    /// Takes the first.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.first.take();
        if !self.rest.is_empty() {
            self.first = self.rest.pop_front();
        }
        first
    }

    /// Takes the one at `index`; `None` when there are not so many.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        match index {
            0 => self.pop_front(),
            n => self.rest.remove(n - 1),
        }
    }

    /// All, from the first on.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_double_ended_queue(ops in proptest::collection::vec(0u8..4, 0..60)) {
            let (mut fifo, mut oracle) = (Fifo::default(), VecDeque::new());
            for (i, op) in ops.into_iter().enumerate() {
                match op {
                    0 => {
                        fifo.push_back(i);
                        oracle.push_back(i);
                    }
                    1 => {
                        fifo.push_front(i);
                        oracle.push_front(i);
                    }
                    _ => prop_assert_eq!(fifo.pop_front(), oracle.pop_front()),
                }
                prop_assert_eq!(fifo.front(), oracle.front());
                prop_assert_eq!(fifo.is_empty(), oracle.is_empty());
                prop_assert_eq!(fifo.len(), oracle.len());
                prop_assert!(fifo.iter().eq(&oracle));
            }
        }
    }
}
