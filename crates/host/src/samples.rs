//! Pictures of a run: samples of the queue over time, and evenly thinned out lists. A picture needs thousands of points,
//! not millions.

use iosched_types::Nanos;

use crate::events::HostEvent;
use crate::machine::Machine;

/// Points of the dispatch picture.
pub(crate) const MOST_DISPATCHES: usize = 4096;

/// Samples of the queue over time.
#[derive(Debug)]
pub struct Sampler {
    /// Time between two samples.
    pub step: Nanos,
    /// Requests at the device.
    pub in_flight: Vec<f64>,
    /// Requests in the queue, including those at the device.
    pub queued: Vec<f64>,
}

impl Sampler {
    pub(crate) fn every(step: Nanos) -> Sampler {
        Sampler { step, in_flight: Vec::new(), queued: Vec::new() }
    }

    /// Takes a sample. Halves the resolution instead of growing without bound.
    pub(crate) fn take(&mut self, in_flight: f64, queued: f64) {
        self.in_flight.push(in_flight);
        self.queued.push(queued);
        if self.in_flight.len() >= 2048 {
            for v in [&mut self.in_flight, &mut self.queued] {
                let mut i = 0;
                v.retain(|_| {
                    i += 1;
                    i % 2 == 0
                });
            }
            self.step *= 2;
        }
    }
}

impl Machine {
    /// Samples the queue's depth every `step` ns.
    pub fn collect_series(&mut self, step: Nanos) {
        self.sampler = Some(Sampler::every(step));
        self.tl.events.push(step, HostEvent::Sample.into());
    }

    pub(crate) fn sample(&mut self) {
        let pending = self.queue.pending() as f64;
        let in_flight = f64::from(self.queue.in_flight());
        let Some(s) = &mut self.sampler else { return };
        s.take(in_flight, pending);
        let step = s.step;
        self.tl.events.push(self.tl.now + step, HostEvent::Sample.into());
    }
}

/// Keeps every k-th item, doubling k whenever the list is full.
#[derive(Debug)]
pub(crate) struct Thin<T> {
    items: Vec<T>,
    stride: u64,
    seen: u64,
    most: usize,
}

impl<T: Copy> Thin<T> {
    pub(crate) fn new(most: usize) -> Self {
        Thin { items: Vec::new(), stride: 1, seen: 0, most }
    }

    pub(crate) fn push(&mut self, item: T) {
        if self.seen.is_multiple_of(self.stride) {
            if self.items.len() == self.most {
                let mut i = 0;
                self.items.retain(|_| {
                    i += 1;
                    i % 2 == 1
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.items.push(item);
            }
        }
        self.seen += 1;
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_evenly_spaced_items() {
        let mut t = Thin::new(8);
        (0..100u32).for_each(|i| t.push(i));
        let v = t.into_vec();
        assert!(v.len() <= 8 && v.len() > 4, "{v:?}");
        assert!(v.windows(2).all(|w| w[1] - w[0] == v[1] - v[0]), "{v:?}");
    }
}
