//! How fast the device is, and whether it queues.

use iosched_types::units::{MS, SEC};
use iosched_types::{Nanos, Request};

use super::Bfq;
use super::queue::{Jiffies, QueueId};
use super::version::Version;

/// Rates are sectors per µs with this many fractional bits.
const SHIFT: u32 = 16;
/// Dispatches that make an interval worth looking at.
const MIN_SAMPLES: u64 = 32;
const MIN_INTERVAL: Nanos = 300 * MS;
const REFERENCE_INTERVAL: Nanos = SEC;
/// Without a dispatch for this long the interval ends at the last completion.
const GAP: Nanos = 100 * MS;
/// Two requests closer than this belong to one stream.
const STREAM_GAP: Nanos = 2 * MS;
/// Nothing moves 20 sectors per µs.
const ABSURD: u64 = 20 << SHIFT;
const HW_SAMPLES: u32 = 32;
const HW_THRESHOLD: u32 = 3;
/// v7: slots that do not last longer than this, in µs, say nothing about the peak rate.
const V7_MIN_SLOT: u64 = 20_000;
/// v7: shorter ones, in µs, nothing at all.
const V7_MIN_RATED: u64 = 100;

/// The device's measured peak rate.
#[derive(Debug)]
pub(super) struct PeakRate {
    /// Sectors per µs with 16 fractional bits.
    pub(super) peak: u64,
    fast: u64,
    fast_ms: i64,
    slow: Option<(u64, i64)>,
    slow_below: u64,
    /// v7: the class found when the largest budget last changed.
    is_slow: bool,
    keeps_class: bool,
    bounds_ms: (i64, i64),
    samples: u64,
    sequential: u64,
    sectors: u64,
    largest: u64,
    first_dispatch: Nanos,
    last_dispatch: Nanos,
    span: Nanos,
}

impl PeakRate {
    pub(super) fn new(v: &Version, rotational: bool) -> PeakRate {
        let fast = v.fast_rate.of(rotational);
        let slow = v.slow.map(|(rate, time)| (rate.of(rotational), time.of(rotational) as i64));
        PeakRate {
            peak: if v.legacy { fast } else { fast * 2 / 3 },
            fast,
            fast_ms: v.fast_ms.of(rotational) as i64,
            slow,
            slow_below: match slow {
                Some((rate, _)) if v.legacy => rate.midpoint(fast),
                Some((rate, _)) => rate * 4 / 3,
                None => 0,
            },
            is_slow: false,
            keeps_class: v.legacy,
            bounds_ms: v.wr_bounds_ms,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
            first_dispatch: 0,
            last_dispatch: 0,
            span: 0,
        }
    }

    /// How long an interactive raise lasts: the time in which this device starts a large application.
    pub(super) fn raise_jiffies(&self, to_jiffies: impl Fn(i64) -> Jiffies) -> Jiffies {
        let (rate, time) = match self.slow {
            Some(slow) if self.counts_as_slow() => slow,
            _ => (self.fast, self.fast_ms),
        };
        let product = rate.saturating_mul(to_jiffies(time).unsigned_abs());
        let raw = i64::try_from(product / self.peak.max(1)).unwrap_or(i64::MAX);
        raw.clamp(to_jiffies(self.bounds_ms.0), to_jiffies(self.bounds_ms.1))
    }

    fn counts_as_slow(&self) -> bool {
        if self.keeps_class { self.is_slow } else { self.peak < self.slow_below }
    }

    fn restart(&mut self, now: Nanos, sectors: u64) {
        self.first_dispatch = now;
        self.last_dispatch = now;
        self.samples = 1;
        self.sequential = 0;
        self.sectors = sectors;
        self.largest = sectors;
        self.span = 0;
    }

    /// Ends an interval; whether it gave a new peak rate.
    fn close(&mut self, last_completion: Nanos) -> bool {
        if self.samples < MIN_SAMPLES || self.span < MIN_INTERVAL {
            return false;
        }
        let span = self.span.max(last_completion.saturating_sub(self.first_dispatch));
        let rate = (self.sectors << SHIFT) / (span / 1000).max(1);
        let few_sequential = self.sequential < self.samples * 3 / 4;
        if (few_sequential && rate <= self.peak) || rate > ABSURD {
            return false;
        }
        // The more sequential and the longer the interval, the more it counts: up to one half.
        let weight = 9 * self.sequential / self.samples;
        let weight = (weight * span / REFERENCE_INTERVAL).min(8);
        let divisor = 10 - weight;
        self.peak = (self.peak * (divisor - 1) / divisor + rate / divisor).max(1);
        true
    }
}

/// BFQ's guess whether the device takes several commands at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HwTag {
    /// None: not known yet.
    tag: Option<bool>,
    samples: u32,
    most: u32,
}

impl HwTag {
    /// It queues, or that is not known yet.
    pub(super) fn queueing(self) -> bool {
        self.tag != Some(false)
    }

    pub(super) fn most_in_driver(self) -> u32 {
        self.most
    }
}

impl Bfq {
    /// The budget that a queue can use up within its time at the peak rate.
    pub(super) fn measured_budget(&self) -> u64 {
        let ms = self.c.jiffies_to_ms(self.c.timeout[1]).unsigned_abs();
        ((self.rate.peak * 1000 * ms) >> SHIFT).max(1)
    }

    fn rate_changed(&mut self) {
        if self.c.user_max_budget == 0 {
            self.max_budget = self.measured_budget();
        }
    }

    /// A request goes out: one more sample of the peak rate.
    pub(super) fn sample_rate(&mut self, r: &Request, from_in_service: bool) {
        if self.v.legacy {
            return;
        }
        let (now, sectors) = (self.now, u64::from(r.sectors));
        if self.rate.samples == 0 {
            self.rate.restart(now, sectors);
        } else if self.in_driver == 0 && now - self.rate.last_dispatch > GAP {
            let last = self.last_completion.unwrap_or(0);
            self.rate.span = last.saturating_sub(self.rate.first_dispatch);
            self.close_interval(Some(sectors));
        } else {
            let streaming = self.in_driver > 0 || self.since_completion() < STREAM_GAP;
            let sequential = streaming && !self.is_seek(self.last_position, r);
            let p = &mut self.rate;
            p.samples += 1;
            p.sequential += u64::from(sequential);
            p.sectors += sectors;
            p.largest = if p.samples.is_multiple_of(32) { sectors } else { p.largest.max(sectors) };
            p.span = now - p.first_dispatch;
            if p.span >= REFERENCE_INTERVAL {
                self.close_interval(Some(sectors));
            }
        }
        self.last_position = r.end();
        if from_in_service {
            self.in_serv_last_pos = r.end();
        }
        self.rate.last_dispatch = now;
    }

    fn close_interval(&mut self, next: Option<u64>) {
        if self.rate.close(self.last_completion.unwrap_or(0)) {
            self.rate_changed();
        }
        match next {
            Some(sectors) => self.rate.restart(self.now, sectors),
            None => self.rate.samples = 0,
        }
    }

    /// On a device this slow, a completion long after the one before ends the interval, because the time between was
    /// not spent at the peak. The very first completion always does. So the requests that went out before it are no
    /// samples.
    pub(super) fn late_completion(&mut self) {
        let us = self.since_completion() / 1000;
        if us > 2000 && (self.rate.largest << SHIFT) / us < 1 << (SHIFT - 10) {
            self.close_interval(None);
        }
    }

    /// v7 measures each slot of `us` of a sync queue: an async one is charged more than it moves. Returns the rate of this one, by which its pace is judged. A rate that changed the
    /// peak was divided for it, and is judged as what is left.
    pub(super) fn v7_rate(&mut self, q: QueueId, us: u64, timed_out: bool) -> Option<u64> {
        if us < V7_MIN_RATED || !self.q(q).sync {
            return None;
        }
        let rate = (self.engine.service(self.q(q).entity) << SHIFT) / us;
        if us <= V7_MIN_SLOT {
            return Some(rate);
        }
        let changes = rate > self.rate.peak || (timed_out && !self.seeky(q));
        let part = rate / 8;
        if changes {
            self.rate.peak = self.rate.peak * 7 / 8 + part;
        }
        // The last sample that is needed counts even if it changed nothing: others before it may have.
        let enough = self.rate.samples + 1 == MIN_SAMPLES;
        self.rate.samples = (self.rate.samples + 1).min(MIN_SAMPLES);
        if enough || (changes && self.rate.samples == MIN_SAMPLES) {
            self.rate.is_slow = self.rate.peak < self.rate.slow_below;
            self.rate_changed();
        }
        Some(if changes { part } else { rate })
    }

    /// Brings the guess about command queueing up to date; `in_driver` still counts what completes.
    pub(super) fn update_hw_tag(&mut self) {
        self.hw.most = self.hw.most.max(self.in_driver);
        if self.hw.tag == Some(true) || self.in_driver + self.queued <= HW_THRESHOLD {
            return;
        }
        if self.v.hw_protects_idling && self.in_service != super::NIL {
            let q = self.q(self.in_service);
            let own = q.dispatched + q.tree.len() as u32;
            if q.short_think && own < HW_THRESHOLD && self.in_driver < HW_THRESHOLD {
                return;
            }
        }
        self.hw.samples += 1;
        if self.hw.samples <= HW_SAMPLES {
            return;
        }
        self.hw = HwTag { tag: Some(self.hw.most > self.v.hw_above), samples: 0, most: 0 };
    }

    /// Command queueing is a fact, not a guess.
    pub(super) fn hw_known_absent(&self) -> bool {
        !self.hw.queueing()
    }
}
