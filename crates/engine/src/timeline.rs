//! One clock and what happens on it.

use crate::queue::EventQueue;
use iosched_types::Nanos;

/// Virtual time.
#[derive(Debug)]
pub struct Timeline<E> {
    /// Now.
    pub now: Nanos,
    /// What happens when.
    pub events: EventQueue<E>,
}

impl<E: Copy> Default for Timeline<E> {
    fn default() -> Self {
        Timeline { now: 0, events: EventQueue::new() }
    }
}

/// What lives on a clock: devices, which know themselves when they next have something to say, and events.
///
/// Every simulation has the same event loop: `while let Some(at) = world.next() { world.turn(at) }`. A caller may do work
/// of its own between two turns.
pub trait World {
    /// The events on its clock.
    type Event: Copy;

    /// Its clock.
    fn timeline(&mut self) -> &mut Timeline<Self::Event>;

    /// When a device next has something to say; `Nanos::MAX` when never.
    fn device_next(&self) -> Nanos;

    /// That time has come.
    fn device_event(&mut self);

    /// The time of an event has come.
    fn event(&mut self, event: Self::Event);

    /// When something next happens, if ever.
    #[inline(always)]
    fn next(&mut self) -> Option<Nanos> {
        let timer = self.timeline().events.peek_time().unwrap_or(Nanos::MAX);
        let next = self.device_next().min(timer);
        (next != Nanos::MAX).then_some(next)
    }

    /// The clock moves to `at`, which is [`next`](Self::next), and what happens first then happens: a device's own event
    /// goes ahead of others at the same instant. Where a caller has moved the clock on meanwhile, it stays, and what is
    /// due happens late.
    #[inline(always)]
    fn turn(&mut self, at: Nanos) {
        let clock = self.timeline();
        clock.now = clock.now.max(at);
        if self.device_next() == at {
            self.device_event();
        } else if let Some((_, event)) = self.timeline().events.pop() {
            self.event(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device with events at fixed times; each appends to the log, and may add an event of this instant.
    struct Two {
        clock: Timeline<u32>,
        device: Vec<Nanos>,
        log: Vec<(Nanos, u32)>,
    }

    impl World for Two {
        type Event = u32;

        fn timeline(&mut self) -> &mut Timeline<u32> {
            &mut self.clock
        }

        fn device_next(&self) -> Nanos {
            self.device.first().copied().unwrap_or(Nanos::MAX)
        }

        fn device_event(&mut self) {
            self.device.remove(0);
            self.log.push((self.clock.now, 0));
            self.clock.events.push(self.clock.now, 9);
        }

        fn event(&mut self, event: u32) {
            self.log.push((self.clock.now, event));
        }
    }

    #[test]
    fn a_device_goes_ahead_and_ties_keep_their_order() {
        let mut two = Two { clock: Timeline::default(), device: vec![5, 7], log: Vec::new() };
        for (at, event) in [(7, 1), (5, 2), (5, 3)] {
            two.clock.events.push(at, event);
        }
        while let Some(at) = two.next() {
            two.turn(at);
        }
        assert_eq!(two.log, [(5, 0), (5, 2), (5, 3), (5, 9), (7, 0), (7, 1), (7, 9)]);
    }
}
