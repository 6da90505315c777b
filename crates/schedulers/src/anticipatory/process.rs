//! What the anticipatory scheduler knows of processes: of each one, and of new ones in general.

use iosched_types::Request;

use crate::ewma::{Ewma, Rounding, SeekMean};

/// One in the fixed point of the probabilities.
const CERTAIN: u64 = 256;

/// A probability in 1/256, which moves an eighth of the way with each event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probability(pub(super) u64);

impl Probability {
    /// It happened.
    pub(super) fn up(&mut self) {
        self.0 = (7 * self.0 + CERTAIN) / 8;
    }

    /// It did not happen.
    pub(super) fn down(&mut self) {
        self.0 = 7 * self.0 / 8;
    }

    /// For people.
    pub(super) fn percent(self) -> u64 {
        self.0 * 100 / CERTAIN
    }
}

/// An average over first samples of new processes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewMean {
    total: u64,
    pub(super) mean: u64,
}

impl NewMean {
    fn add(&mut self, x: u64) {
        self.total = self.total.saturating_mul(7).saturating_add(x.saturating_mul(256)) / 8;
        self.mean = self.total / 256;
    }
}

/// What to expect of a process of which nothing is known yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newcomers {
    /// That a process exits after its first request.
    pub(super) exit: Probability,
    /// That no other process reads close to where an exited one read.
    pub(super) exit_no_coop: Probability,
    /// First think times, in jiffies.
    pub(super) think: NewMean,
    /// First seek distances, in sectors.
    pub(super) seek: NewMean,
}

/// One process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// It has not exited.
    pub(super) alive: bool,
    /// Requests of it in the scheduler.
    pub(super) queued: u32,
    /// Requests that left the scheduler and that the driver has not fetched.
    pub(super) dispatched: u32,
    /// Think times, in jiffies.
    pub(super) think: Ewma,
    /// Seek distances.
    pub(super) seek: SeekMean,
    /// When its last sync request was freed, in jiffies.
    last_end: i64,
    /// It has issued a sync request.
    started: bool,
    /// A sync request of it has been completed.
    iorun: bool,
}

impl Default for Process {
    fn default() -> Self {
        Process {
            alive: true,
            queued: 0,
            dispatched: 0,
            think: Ewma::default(),
            seek: SeekMean::default(),
            last_end: 0,
            started: false,
            iorun: false,
        }
    }
}

impl Process {
    /// Learns from a request: of its own, before it is counted, or of another process close to its own.
    /// `max_think` is the longest think time recorded, in jiffies.
    pub(super) fn observe(&mut self, r: &Request, now: i64, max_think: i64, new: &mut Newcomers) {
        if !r.is_sync() {
            return;
        }
        if self.started || self.iorun {
            let quiet = self.iorun && self.queued + self.dispatched == 0;
            let think = if quiet { (now - self.last_end).clamp(0, max_think) as u64 } else { 0 };
            if self.think.samples == 0 {
                new.think.add(think);
                new.exit.down();
            }
            self.think.add(think, Rounding::Half);
            if self.seek.avg.samples == 0 {
                new.seek.add(r.sector.abs_diff(self.seek.last_end));
            }
            self.seek.arrival(r.sector, r.end());
        } else {
            // There is no place yet from which it could have sought.
            self.seek.last_end = r.end();
        }
        self.started = true;
    }

    /// A sync request of it was freed.
    pub(super) fn ended(&mut self, now: i64) {
        self.iorun = true;
        self.last_end = now;
    }

    /// Longest distance it is expected to seek.
    pub(super) fn usual_seek(&self, new: &Newcomers) -> u64 {
        if self.seek.avg.samples == 0 { new.seek.mean } else { self.seek.avg.mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_types::Op;

    #[test]
    fn probabilities_climb_as_documented() {
        let mut p = Probability::default();
        let steps: Vec<u64> = (0..6)
            .map(|_| {
                p.up();
                p.0
            })
            .collect();
        assert_eq!(steps, [32, 60, 84, 105, 123, 139]);
        p.down();
        assert_eq!(p.0, 121);
    }

    #[test]
    fn the_first_request_teaches_nothing_and_the_second_its_think_time_and_distance() {
        let (mut p, mut new) = (Process::default(), Newcomers::default());
        p.observe(&Request::new(Op::Read, 1_000_000, 8), 0, 19, &mut new);
        assert_eq!((p.think.samples, p.seek.avg.samples, p.seek.last_end), (0, 0, 1_000_008));
        p.ended(5);
        p.observe(&Request::new(Op::Read, 1_000_108, 8), 7, 19, &mut new);
        assert_eq!((p.think.samples, p.think.mean), (32, (2 * 32 + 128) / 32));
        assert_eq!((p.seek.avg.mean, new.seek.mean, new.think.mean), (100, 12, 0));
    }

    #[test]
    fn long_pauses_are_capped_and_overlapping_requests_count_as_no_pause() {
        let (mut p, mut new) = (Process::default(), Newcomers::default());
        let r = Request::new(Op::Read, 0, 8);
        p.observe(&r, 0, 19, &mut new);
        p.ended(0);
        p.observe(&r, 10_000, 19, &mut new);
        assert_eq!(p.think.total, 19 * 32);
        p.queued = 1;
        p.observe(&r, 20_000, 19, &mut new);
        assert_eq!(p.think.total, 7 * 19 * 32 / 8);
    }

    #[test]
    fn async_writes_are_not_observed() {
        let (mut p, mut new) = (Process::default(), Newcomers::default());
        p.observe(&Request::new(Op::Write, 0, 8), 0, 19, &mut new);
        assert!(!p.started);
    }
}
