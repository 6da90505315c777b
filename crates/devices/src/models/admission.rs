//! How many commands a device has inside it, and those that wait for one of them to finish.

use std::collections::VecDeque;

/// The queue in front of a device's own.
#[derive(Debug)]
pub(crate) struct Admission<T> {
    depth: u64,
    inside: u64,
    waiting: VecDeque<T>,
}

impl<T> Admission<T> {
    /// A device that holds `depth` commands; 0 is no limit.
    pub(crate) fn new(depth: u64) -> Self {
        Admission { depth, inside: 0, waiting: VecDeque::new() }
    }

    /// The command if the device takes it now; else it waits.
    #[inline(always)]
    pub(crate) fn enter(&mut self, command: T) -> Option<T> {
        if self.depth != 0 && self.inside >= self.depth {
            self.waiting.push_back(command);
            return None;
        }
        self.inside += 1;
        Some(command)
    }

    /// A command is done: the one that takes its place, if one waits.
    #[inline(always)]
    pub(crate) fn leave(&mut self) -> Option<T> {
        if self.waiting.is_empty() {
            self.inside -= 1;
            return None;
        }
        self.waiting.pop_front()
    }

    /// Commands inside and waiting.
    pub(crate) fn in_flight(&self) -> usize {
        self.inside as usize + self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_device_takes_the_next_when_one_leaves() {
        let mut a = Admission::new(2);
        assert_eq!([1, 2, 3, 4].map(|c| a.enter(c)), [Some(1), Some(2), None, None]);
        assert_eq!((a.in_flight(), a.leave(), a.leave()), (4, Some(3), Some(4)));
        assert_eq!((a.leave(), a.in_flight(), a.enter(5)), (None, 1, Some(5)));
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let mut a = Admission::new(0);
        assert!((0..100).all(|c| a.enter(c).is_some()));
        assert_eq!(a.in_flight(), 100);
    }
}
