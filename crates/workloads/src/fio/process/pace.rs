//! Pauses: rates, think times and flows. fio lets all I/O in flight finish before any of them.

use iosched_types::{Bytes, Nanos};

use super::{Job, Ring, State, Step};
use crate::fio::generator::DirIndex;
use crate::fio::spec::JobSpec;
use crate::fio::taus::{StreamId, Taus88};

/// fio reckons the times of rates in whole microseconds.
const US: Nanos = 1000;

/// Why a process is about to sleep with nothing under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// It is not.
    None,
    /// `thinktime`.
    Think,
    /// `rate`: for this long.
    Rate(Nanos),
    /// `flow`: for this long.
    Flow(Nanos),
}

/// When the rates allow the next I/O of each direction, counted from the start of the job or the end of its ramp.
#[derive(Debug)]
pub(super) struct Pace {
    limited: bool,
    /// Bytes a second, 0 without a limit.
    per_second: [u64; 3],
    next: [Nanos; 3],
    bytes: [Bytes; 3],
    /// Each direction arrives by its own numbers.
    poisson: [Taus88; 3],
    /// The pause that it had to wait for is over.
    waited: bool,
}

impl Pace {
    pub(super) fn of(job: &JobSpec) -> Self {
        // I/Os a second are bytes a second at the smallest block size.
        let per_second = std::array::from_fn(|d| match job.rate[d] {
            r if r.bytes > 0 => r.bytes,
            r => u64::from(r.iops) * job.bs.range[d].0.max(1),
        });
        Pace {
            limited: per_second.iter().any(|r| *r > 0),
            per_second,
            next: [0; 3],
            bytes: [0; 3],
            poisson: [StreamId::PoissonRead, StreamId::PoissonWrite, StreamId::PoissonTrim]
                .map(|id| Taus88::of_job(id, job)),
            waited: false,
        }
    }

    /// The pause of a rate has just ended.
    #[inline]
    pub(super) fn waited(&self) -> bool {
        self.waited
    }

    /// The ramp is over: the times count from now.
    pub(super) fn begin_anew(&mut self) {
        self.next = [0; 3];
        self.bytes = [0; 3];
    }

    /// An I/O was issued.
    #[inline]
    pub(super) fn issued(&mut self, job: &JobSpec, dir: DirIndex, len: Bytes) {
        if self.limited {
            self.reckon(job, dir, len);
        }
    }

    fn reckon(&mut self, job: &JobSpec, dir: DirIndex, len: Bytes) {
        let rate = self.per_second[dir];
        self.bytes[dir] += len;
        if rate == 0 {
            return;
        }
        if job.rate[dir].poisson {
            let iops = (rate / job.bs.range[dir].0.max(1)).max(1);
            let u = (f64::from(self.poisson[dir].next_u32()) + 1.0) / 4_294_967_296.0;
            self.next[dir] += ((1_000_000 / iops) as f64 * -u.ln()) as u64 * US;
        } else {
            let us = u128::from(self.bytes[dir]) * 1_000_000 / u128::from(rate);
            self.next[dir] = us as u64 * US;
        }
    }
}

impl Job {
    /// Decides the direction of the next I/O by the rates; `true` when a pause comes first.
    pub(super) fn paused_by_rate(&mut self, now: Nanos) -> bool {
        if !self.pace.limited || self.replay.is_some() {
            return false;
        }
        if std::mem::take(&mut self.pace.waited) {
            return false;
        }
        let dir = self.generator.decide();
        let since = (now - self.stats.measured_from.min(now)) / US * US;
        let next = self.pace.next;
        if next[dir] <= since {
            return false;
        }
        // The direction that may go first goes, if one may go now, and else after a pause.
        let first = match self.generator.other(dir) {
            Some(other) if next[other] <= since || next[other] < next[dir] => other,
            _ => dir,
        };
        self.generator.insist(first);
        if next[first] <= since {
            return false;
        }
        let began = self.stats.measured_from;
        let (time, left) = (next[first] - since, self.deadline.saturating_sub(began + since));
        // The end of the run time cuts the pause, not the I/O behind it: the clock has to be past that end.
        self.pace.waited = true;
        self.pause = Pause::Rate(time.min(left));
        self.state = State::Quiesce;
        true
    }

    /// Whether the run time has not ended, or in this microsecond.
    pub(super) fn just_over(&self, now: Nanos) -> bool {
        let began = self.stats.measured_from;
        (now - began.min(now)) / US <= (self.deadline - began.min(self.deadline)) / US
    }

    fn thought_due(&self, now: Nanos, blocks: u64) -> bool {
        let t = &self.spec.think;
        if t.iotime > 0 && now >= self.think_since.saturating_add(t.iotime) {
            return true;
        }
        blocks >= self.thought_at.saturating_add(t.blocks.max(1))
    }

    /// `thinktime`: all outstanding I/O first, then spin and sleep. What is reaped meanwhile counts towards the next time.
    pub(super) fn think(&mut self, now: Nanos) -> Option<Step> {
        self.state = State::Loop;
        self.end_ramp(now);
        // fio does not look for it after a sync.
        if self.spec.think.time == 0 || self.syncing {
            return None;
        }
        let blocks = if self.spec.think.issue { self.ios_issued } else { self.reaped_total };
        if self.thought_due(now, blocks) {
            self.thought_at = blocks;
            self.pause = Pause::Think;
            self.state = State::Quiesce;
        }
        None
    }

    /// Lets everything finish, then sleeps.
    pub(super) fn quiesce(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        if !self.queued.is_empty() {
            self.submit_queued(State::Quiesce);
            return None;
        }
        self.batched = 0;
        if self.depth > 0 {
            self.look_unit_by_unit(ring);
            if ring.is_empty() {
                return Some(Step::Wait(1));
            }
            self.reap(now, ring);
            return None;
        }
        self.state = State::Loop;
        let until = match std::mem::replace(&mut self.pause, Pause::None) {
            Pause::None => return None,
            Pause::Think => {
                // The end of the run time does not cut it.
                self.think_since = now.saturating_add(self.spec.think.time);
                self.think_since
            }
            Pause::Rate(time) | Pause::Flow(time) => now.saturating_add(time),
        };
        Some(Step::Sleep(until))
    }
}
