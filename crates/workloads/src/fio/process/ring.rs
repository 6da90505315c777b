//! What the kernel has finished and the process has not seen.

/// Finished I/Os a process has not reaped yet, in the order in which they finished.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    /// A power of two of them.
    units: Box<[u32]>,
    /// Number of the next to be taken, and of the next to come.
    taken: usize,
    pushed: usize,
}

impl Ring {
    /// A ring with room for so many I/Os.
    #[must_use]
    pub fn with_capacity(n: usize) -> Self {
        Ring { units: vec![0; n.max(1).next_power_of_two()].into(), taken: 0, pushed: 0 }
    }

    /// An I/O finished.
    #[inline]
    pub fn push(&mut self, unit: u32) {
        if self.len() == self.units.len() {
            self.grow();
        }
        let at = self.pushed & (self.units.len() - 1);
        self.units[at] = unit;
        self.pushed += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Ring::with_capacity(2 * self.units.len());
        while let Some(unit) = self.pop() {
            larger.push(unit);
        }
        *self = larger;
    }

    /// I/Os not taken yet.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.pushed - self.taken
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pushed == self.taken
    }

    /// Takes the one that finished first.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let unit = self.units[self.taken & (self.units.len() - 1)];
        self.taken += 1;
        Some(unit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_is_a_queue(n in 0usize..9, ops in proptest::collection::vec(any::<Option<u32>>(), 0..200)) {
            let (mut ring, mut queue) = (Ring::with_capacity(n), VecDeque::new());
            for op in ops {
                match op {
                    Some(unit) => {
                        ring.push(unit);
                        queue.push_back(unit);
                    }
                    None => prop_assert_eq!(ring.pop(), queue.pop_front()),
                }
                prop_assert_eq!((ring.len(), ring.is_empty()), (queue.len(), queue.is_empty()));
            }
        }
    }
}
