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
    /// The process sleeps for I/Os of units from this one on: 0 for all, [`STIRRED`] when one of them has finished.
    watched: u32,
}

/// A watched I/O has finished.
const STIRRED: u32 = u32::MAX;

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
        if self.watched > 0 && unit >= self.watched {
            self.watched = STIRRED;
        }
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

    /// The process will sleep only for units from this one on, whatever else finishes. 0: for every unit.
    pub(super) fn watch(&mut self, from: u32) {
        self.watched = from;
    }

    /// Whether a process that sleeps for this many I/Os is woken by what has finished.
    #[must_use]
    #[inline]
    pub fn wakes(&self, min: u32) -> bool {
        match self.watched {
            0 => self.len() >= min as usize,
            watched => watched == STIRRED,
        }
    }

    /// Whether a process that looks for this many I/Os now has to sleep.
    #[must_use]
    #[inline]
    pub fn lacks(&self, min: u32) -> bool {
        self.len() < min as usize && self.watched != STIRRED
    }

    /// The process looks unit by unit, the highest first. What its last looks found, the first `found`, stays in front.
    /// Returns how many it has found now.
    pub(super) fn look_through(&mut self, found: usize, units: &mut Vec<u32>) -> usize {
        let seen = match self.woken_by {
            0 => self.len(),
            n => self.len().min(n as usize),
        };
        let first = self.taken;
        let numbers = move || (found..seen).map(move |i| first.wrapping_add(i as u32));
        units.clear();
        for number in numbers() {
            let unit = *self.slot(number);
            units.push(unit);
        }
        units.sort_unstable_by(|a, b| b.cmp(a));
        for (number, unit) in numbers().zip(units.iter()) {
            *self.slot(number) = *unit;
        }
        seen.max(found)
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
