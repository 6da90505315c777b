//! A device that a timer of the host tells of.

use iosched_types::{Bytes, Nanos, Sector};

use crate::{Command, Completion, Device};

/// A device whose events the host learns of by a one-shot timer, as a disk that a driver plays: the timer is set anew at each
/// event and at each command, for no shorter time than it can be set for. So of two events close to each other the second is
/// seen late. A command finds what has ended by then. The look at the clock that an event begins with takes time.
pub struct ByTimer {
    inner: Box<dyn Device>,
    shortest: Nanos,
    look: Nanos,
    set_at: Nanos,
    /// Commands that have ended, found by another.
    found: Vec<Completion>,
}

impl ByTimer {
    /// `inner` behind a timer that takes no times below `shortest`.
    #[must_use]
    pub fn new(inner: Box<dyn Device>, shortest: Nanos, look: Nanos) -> Self {
        ByTimer { inner, shortest, look, set_at: 0, found: Vec::new() }
    }
}

impl Device for ByTimer {
    fn capacity(&self) -> Bytes {
        self.inner.capacity()
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        self.inner.advance(now, &mut self.found);
        self.inner.submit(now, command);
        self.set_at = now;
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        if !self.found.is_empty() {
            return Some(self.set_at);
        }
        let next = self.inner.next_wakeup()?;
        Some(next.max(self.set_at + self.shortest) + self.look)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        done.append(&mut self.found);
        self.inner.advance(now, done);
        self.set_at = now;
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.found.len()
    }

    fn position(&self) -> Sector {
        self.inner.position()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.inner.counters()
    }
}

#[cfg(test)]
mod tests {
    use iosched_types::Op;

    use super::*;
    use crate::models::fixed::Fixed;
    use crate::params::FixedParams;

    /// Event log of a disk of 100 µs that a kernel plays with a timer of 500 ns: four reads arrive 3 ns after one another. The
    /// first end is seen on time, the next two 501 ns later together; the fourth is found by the command that follows.
    #[test]
    fn ends_are_seen_as_the_timer_can_tell() {
        let disk = Fixed::new(FixedParams {
            cap: 1 << 30,
            depth: 0,
            flush_ns: 0,
            lat_ns: 100_000,
            par: 8,
        });
        let mut device = ByTimer::new(Box::new(disk), 500, 1);
        let read = |id| Command { id, op: Op::Read, offset: 0, len: 512, fua: false };
        for (id, at) in [(0, 15_555), (1, 15_558), (2, 15_561), (3, 16_060)] {
            device.submit(at, read(id));
        }
        let mut seen = Vec::new();
        let mut next = |device: &mut ByTimer| {
            let at = device.next_wakeup().unwrap();
            let mut done = Vec::new();
            device.advance(at, &mut done);
            seen.extend(done.iter().map(|c| (c.id, c.t_done, at)));
        };
        next(&mut device);
        next(&mut device);
        device.submit(116_060, read(4));
        next(&mut device);
        assert_eq!(
            seen,
            [
                (0, 115_555, 115_556),
                (1, 115_558, 116_057),
                (2, 115_561, 116_057),
                (3, 116_060, 116_060)
            ]
        );
    }
}
