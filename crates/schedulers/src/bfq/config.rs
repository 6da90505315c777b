//! Tunables in the units the rules use.

use iosched_types::units::{MS, US};
use iosched_types::{Flags, Nanos};

use super::queue::Jiffies;
use super::version::Version;
use crate::choice::SeekRule;
use crate::descriptor::BuildArgs;
use crate::jiffies;

/// Default of `slice_idle_us`; any other value given at the start takes precedence over `slice_idle`.
const SLICE_IDLE_US: i64 = 8000;
/// `strict_guarantees` idles at least this long.
const STRICT_IDLE: Nanos = 8 * MS;

/// Tunables and constants, converted.
#[derive(Debug)]
pub(super) struct Config {
    hz: u32,
    legacy: bool,
    values: Vec<(&'static str, i64)>,
    /// By sync-ness.
    pub(super) fifo_expire: [Nanos; 2],
    pub(super) seek: SeekRule,
    pub(super) slice_idle: Nanos,
    /// 0 is automatic.
    pub(super) user_max_budget: u64,
    pub(super) max_async_rq: u32,
    /// Requests of one sync queue in flight while others wait.
    pub(super) quantum: u32,
    /// By sync-ness.
    pub(super) timeout: [Jiffies; 2],
    pub(super) strict: bool,
    pub(super) low_latency: bool,
    pub(super) wr_coeff: u64,
    /// 0 is automatic.
    pub(super) wr_max_time: Jiffies,
    pub(super) wr_rt_max_time: Jiffies,
    pub(super) wr_min_idle: Jiffies,
    pub(super) wr_min_inter_async: Jiffies,
    pub(super) max_softrt_rate: u64,
}

impl Config {
    pub(super) fn new(version: &Version, args: &BuildArgs<'_>) -> Config {
        let hz = args.queue.hz.max(1);
        let mut c = Config {
            hz,
            legacy: version.legacy,
            values: args.tunables.iter().collect(),
            fifo_expire: [0; 2],
            seek: SeekRule::from_sysfs(0, 1, Flags::META),
            slice_idle: 0,
            user_max_budget: 0,
            max_async_rq: 4,
            quantum: 4,
            timeout: [i64::from((hz / 8).max(1)); 2],
            strict: false,
            low_latency: true,
            wr_coeff: version.wr_coeff,
            wr_max_time: 0,
            wr_rt_max_time: jiffies::from_ms(300, hz),
            wr_min_idle: jiffies::from_ms(2000, hz),
            wr_min_inter_async: jiffies::from_ms(500, hz),
            max_softrt_rate: 7000,
        };
        for (name, value) in args.tunables.iter() {
            c.apply(name, value);
        }
        let us = args.tunables.get("slice_idle_us");
        if !version.legacy && us == SLICE_IDLE_US {
            c.apply("slice_idle", args.tunables.get("slice_idle"));
        }
        if c.strict {
            c.slice_idle = c.slice_idle.max(STRICT_IDLE);
        }
        c
    }

    /// Length of a jiffy.
    pub(super) fn jiffy(&self) -> Nanos {
        1_000_000_000 / u64::from(self.hz)
    }

    pub(super) fn ms_to_jiffies(&self, ms: i64) -> Jiffies {
        jiffies::from_ms(ms, self.hz)
    }

    pub(super) fn jiffies_to_ms(&self, j: Jiffies) -> i64 {
        jiffies::to_ms(j, self.hz)
    }

    /// A time in ms. Those of the legacy generation are whole jiffies: its defaults (HZ/125 …) rounded down, what is
    /// written rounded up.
    fn span(&self, ms: i64, default: i64) -> Nanos {
        if !self.legacy {
            return ms.unsigned_abs() * MS;
        }
        let j = if ms == default {
            ms * i64::from(self.hz) / 1000
        } else {
            self.ms_to_jiffies(ms)
        };
        j.unsigned_abs() * self.jiffy()
    }

    /// `slice_idle` in jiffies (legacy generation).
    pub(super) fn slice_idle_jiffies(&self) -> Jiffies {
        (self.slice_idle / self.jiffy()) as Jiffies
    }

    /// Takes a validated value, in its sysfs unit.
    pub(super) fn apply(&mut self, name: &str, value: i64) {
        let v = u64::try_from(value).unwrap_or(0);
        match name {
            "fifo_expire_sync" => self.fifo_expire[1] = self.span(value, 125),
            "fifo_expire_async" => self.fifo_expire[0] = self.span(value, 250),
            "back_seek_max" => self.seek.back_max = 2 * v,
            "back_seek_penalty" => self.seek.back_penalty = v,
            "slice_idle" => self.slice_idle = self.span(value, 8),
            "slice_idle_us" => self.slice_idle = v * US,
            "max_budget" => self.user_max_budget = v,
            "max_budget_async_rq" => self.max_async_rq = u32::try_from(v).unwrap_or(u32::MAX),
            "quantum" => self.quantum = u32::try_from(v).unwrap_or(u32::MAX),
            "timeout_sync" => {
                let j = self.timeout_jiffies(value, 8);
                self.timeout[1] = j;
                if !self.legacy {
                    self.timeout[0] = j;
                }
            }
            "timeout_async" => self.timeout[0] = self.timeout_jiffies(value, 25),
            "strict_guarantees" => {
                self.strict = v == 1;
                if self.strict {
                    self.slice_idle = self.slice_idle.max(STRICT_IDLE);
                }
            }
            "low_latency" => self.low_latency = v == 1,
            "wr_coeff" => self.wr_coeff = v,
            "wr_max_time" => self.wr_max_time = self.ms_to_jiffies(value),
            "wr_rt_max_time" => self.wr_rt_max_time = self.ms_to_jiffies(value),
            "wr_min_idle_time" => self.wr_min_idle = self.ms_to_jiffies(value),
            "wr_min_inter_arr_async" => self.wr_min_inter_async = self.ms_to_jiffies(value),
            "wr_max_softrt_rate" => self.max_softrt_rate = v,
            _ => {}
        }
        if let Some(slot) = self.values.iter_mut().find(|(n, _)| *n == name) {
            slot.1 = value;
        }
    }

    /// The default is HZ/x jiffies. A value that reads back as the default is the default.
    fn timeout_jiffies(&self, ms: i64, x: u32) -> Jiffies {
        let default = i64::from((self.hz / x).max(1));
        let j = if ms == self.jiffies_to_ms(default) { default } else { self.ms_to_jiffies(ms) };
        j.max(1)
    }

    /// What reading the file shows.
    pub(super) fn read(&self, name: &str) -> Option<i64> {
        let (_, raw) = *self.values.iter().find(|(n, _)| *n == name)?;
        Some(match name {
            "slice_idle" => (self.slice_idle / MS) as i64,
            "slice_idle_us" => (self.slice_idle / US) as i64,
            "timeout_sync" => self.jiffies_to_ms(self.timeout[1]),
            "timeout_async" => self.jiffies_to_ms(self.timeout[0]),
            _ => raw,
        })
    }
}
