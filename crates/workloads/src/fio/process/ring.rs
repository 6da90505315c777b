//! I/Os that the kernel has finished and the process has not seen.

/// This many are kept beside the process.
const FEW: usize = 8;

/// Finished I/Os a process has not reaped yet, in the order in which they finished.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    few: [u32; FEW],
    /// A power of two of them, where `few` are not enough; else none.
    many: Box<[u32]>,
    /// Numbers of the next to be taken, and of the next to come; they wrap.
    taken: u32,
    pushed: u32,
    /// How many I/Os there were when the process was woken, if it looks before the others come; otherwise 0.
    woken_by: u32,
}

impl Ring {
    /// A ring with room for this many I/Os.
    #[must_use]
    pub fn with_capacity(n: usize) -> Self {
        let many = if n > FEW { vec![0; n.next_power_of_two()] } else { Vec::new() };
        Ring { many: many.into(), ..Ring::default() }
    }

    fn capacity(&self) -> usize {
        self.many.len().max(FEW)
    }

    /// Where the I/O with this number is.
    #[inline]
    fn slot(&mut self, number: u32) -> &mut u32 {
        match self.many.len() {
            0 => &mut self.few[number as usize % FEW],
            n => &mut self.many[number as usize & (n - 1)],
        }
    }

    /// An I/O finished.
    #[inline]
    pub fn push(&mut self, unit: u32) {
        if self.len() == self.capacity() {
            self.grow();
        }
        *self.slot(self.pushed) = unit;
        self.pushed = self.pushed.wrapping_add(1);
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Ring::with_capacity(2 * self.capacity());
        while let Some(unit) = self.pop() {
            larger.push(unit);
        }
        *self = larger;
    }

    /// I/Os not taken yet.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.pushed.wrapping_sub(self.taken) as usize
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pushed == self.taken
    }

    /// The process was woken by the last one that came, ahead of those that finish in the same instant.
    #[inline]
    pub fn woken_early(&mut self) {
        self.woken_by = self.len() as u32;
    }

    /// I/Os that the process sees when it looks now.
    #[inline]
    pub fn seen(&mut self) -> usize {
        match std::mem::take(&mut self.woken_by) {
            0 => self.len(),
            n => self.len().min(n as usize),
        }
    }

    /// Takes the one that finished first.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let unit = *self.slot(self.taken);
        self.taken = self.taken.wrapping_add(1);
        Some(unit)
    }

    /// Takes this one; `false` when it is not there.
    pub fn take(&mut self, unit: u32) -> bool {
        let mut found = false;
        for _ in 0..self.len() {
            let Some(one) = self.pop() else { break };
            if one == unit {
                found = true;
            } else {
                self.push(one);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_is_a_queue(n in 0usize..19, ops in proptest::collection::vec(any::<Option<u32>>(), 0..200)) {
            let (mut ring, mut queue) = (Ring::with_capacity(n), VecDeque::new());
            (ring.taken, ring.pushed) = (u32::MAX - 20, u32::MAX - 20);
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
