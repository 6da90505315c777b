//! A device that was reset at another time than the host's clock began.

use iosched_types::{Bytes, Nanos, Sector};

use crate::{Command, Completion, Device};

/// A device with a time of its own that starts `reset_at` ns into the host's.
///
/// The angle of a rotating disk counts from the device's reset. The kernel's ticks count from another moment. With this
/// both stand where they stood in a measurement.
pub struct Shifted {
    inner: Box<dyn Device>,
    reset_at: Nanos,
}

impl Shifted {
    /// `inner`, reset at `reset_at` by the host's clock.
    #[must_use]
    pub fn new(inner: Box<dyn Device>, reset_at: Nanos) -> Self {
        Shifted { inner, reset_at }
    }
}

impl Device for Shifted {
    fn capacity(&self) -> Bytes {
        self.inner.capacity()
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        self.inner.submit(now.saturating_sub(self.reset_at), command);
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        self.inner.next_wakeup().map(|t| t + self.reset_at)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let old = done.len();
        self.inner.advance(now.saturating_sub(self.reset_at), done);
        for c in &mut done[old..] {
            c.t_start += self.reset_at;
            c.t_done += self.reset_at;
        }
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn position(&self) -> Sector {
        self.inner.position()
    }

    fn caches(&self) -> Vec<(&'static str, Bytes, Bytes)> {
        self.inner.caches()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.inner.counters()
    }
}

#[cfg(test)]
mod tests {
    use iosched_types::Op;

    use super::*;
    use crate::catalogue;

    fn run(mut device: Box<dyn Device>, start: Nanos) -> Vec<Completion> {
        let mut done = Vec::new();
        for i in 0..20u32 {
            let now = start + u64::from(i) * 3_000_000;
            device.advance(now, &mut done);
            let offset = u64::from(i) * 7_919 * 4096 % (1 << 30);
            device.submit(now, Command { id: i, op: Op::Read, offset, len: 4096, fua: false });
        }
        while let Some(t) = device.next_wakeup() {
            device.advance(t, &mut done);
        }
        done
    }

    #[test]
    fn everything_happens_later_by_the_shift() {
        const SHIFT: Nanos = 450_000;
        let disk =
            || catalogue::find("hdd-7200").expect("in the catalogue").build().expect("builds");
        let plain = run(disk(), 0);
        let shifted = run(Box::new(Shifted::new(disk(), SHIFT)), SHIFT);
        assert_eq!(plain.len(), 20);
        for (a, b) in plain.iter().zip(&shifted) {
            assert_eq!((a.id, a.t_start + SHIFT, a.t_done + SHIFT), (b.id, b.t_start, b.t_done));
        }
    }
}
