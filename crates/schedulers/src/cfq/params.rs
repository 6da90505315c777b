//! What a CFQ instance is set to: the clock of its generation, the differences between generations as
//! data, and the tunables in that clock.

use iosched_types::{Flags, Nanos};

use crate::api::QueueFacts;
use crate::choice::SeekRule;
use crate::descriptor::{BuildArgs, DefaultFacts};

use super::DESCRIPTOR;

/// A time in the scheduler's clock: jiffies before 4.8, ns from then on. Signed, as sort keys may lie
/// before the start.
pub(super) type Tick = i64;

/// `a * b / c` without overflow in between, saturating at the ends.
pub(super) fn mul_div(a: i64, b: i64, c: i64) -> i64 {
    let c = c.max(1);
    if let Some(ab) = a.checked_mul(b) {
        return ab / c;
    }
    let wide = i128::from(a) * i128::from(b) / i128::from(c);
    i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX })
}

/// The scheduler's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Ticks are ns, not jiffies.
    ns: bool,
    hz: i64,
    /// ns per jiffy, 0 when it is not a whole number.
    jiffy_ns: u64,
}

impl Clock {
    pub(super) fn new(ns: bool, hz: u32) -> Clock {
        let hz = hz.max(1);
        let jiffy_ns = if 1_000_000_000 % hz == 0 { u64::from(1_000_000_000 / hz) } else { 0 };
        Clock { ns, hz: i64::from(hz), jiffy_ns }
    }

    /// A time of the simulation in ticks, rounded down.
    pub(super) fn tick(&self, now: Nanos) -> Tick {
        if self.ns {
            return now as Tick;
        }
        match now.checked_div(self.jiffy_ns) {
            Some(jiffies) => jiffies as Tick,
            None => (u128::from(now) * self.hz as u128 / 1_000_000_000) as Tick,
        }
    }

    /// The first moment at which the clock shows `tick`: a jiffy timer fires there.
    pub(super) fn nanos(&self, tick: Tick) -> Nanos {
        let tick = tick.max(0);
        if self.ns {
            tick as Nanos
        } else if self.jiffy_ns > 0 {
            (tick as Nanos).saturating_mul(self.jiffy_ns)
        } else {
            let ns = (tick as u128 * 1_000_000_000).div_ceil(self.hz as u128);
            Nanos::try_from(ns).unwrap_or(Nanos::MAX)
        }
    }

    /// Jiffies per second.
    pub(super) fn hz(self) -> i64 {
        self.hz
    }

    /// Whether ticks are ns.
    pub(super) fn in_ns(self) -> bool {
        self.ns
    }

    /// One jiffy in ticks.
    pub(super) fn jiffy(&self) -> Tick {
        if self.ns { 1_000_000_000 / self.hz } else { 1 }
    }

    /// Milliseconds in ticks; whole jiffies, rounded up, as sysfs writes are.
    pub(super) fn ms(self, ms: i64) -> Tick {
        if self.ns { ms * 1_000_000 } else { (ms * self.hz + 999) / 1000 }
    }

    /// Ticks in milliseconds, rounded down, as sysfs shows them.
    pub(super) fn to_ms(self, tick: Tick) -> i64 {
        if self.ns { tick / 1_000_000 } else { tick * 1000 / self.hz }
    }

    /// A span for people: `8 ms`, `1.2 ms`.
    pub(super) fn show(&self, span: Tick) -> String {
        let ms = if self.ns { span as f64 / 1e6 } else { span as f64 * 1e3 / self.hz as f64 };
        let rounded = (ms * 10.0).round() / 10.0;
        if rounded.fract() == 0.0 { format!("{rounded:.0} ms") } else { format!("{rounded:.1} ms") }
    }
}

/// What differs between the generations that share [`super::core`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    /// Times in ns (4.8).
    pub(super) ns: bool,
    /// Asynchronous queues belong to groups (4.3), not to the device.
    pub(super) async_per_group: bool,
    /// The FIFO is looked at before the dispatch limits, and an expired request ignores them.
    pub(super) fifo_first: bool,
    /// A queue that must dispatch ignores the limits and is not preempted by sync over async.
    pub(super) must_dispatch_wins: bool,
    /// A sync-noidle queue preempts a dry one only when the two are alone on their tree.
    pub(super) noidle_pair_only: bool,
    /// Preemption reaches into groups below the active one; before, it stopped at the group.
    pub(super) preempt_descendants: bool,
    /// Group idling is armed only while the service tree's think time allows.
    pub(super) group_idle_checks_tree: bool,
    /// An asynchronous queue without synchronous company is charged its whole slice.
    pub(super) async_charged_whole: bool,
}

/// By generation index minus one.
pub(super) static VERSIONS: [Version; 2] = [
    Version {
        ns: false,
        async_per_group: false,
        fifo_first: false,
        must_dispatch_wins: false,
        noidle_pair_only: true,
        preempt_descendants: false,
        group_idle_checks_tree: false,
        async_charged_whole: true,
    },
    Version {
        ns: true,
        async_per_group: true,
        fifo_first: true,
        must_dispatch_wins: true,
        noidle_pair_only: false,
        preempt_descendants: true,
        group_idle_checks_tree: true,
        async_charged_whole: false,
    },
];

/// Tunables, times in ticks.
#[derive(Clone, Debug)]
pub(super) struct Params {
    pub(super) clock: Clock,
    generation: u8,
    pub(super) quantum: u32,
    queued: i64,
    /// By sync: asynchronous, synchronous.
    pub(super) fifo_expire: [Tick; 2],
    back_seek_max: i64,
    back_seek_penalty: i64,
    pub(super) seek: SeekRule,
    /// Base slice by sync.
    pub(super) slice: [Tick; 2],
    pub(super) slice_async_rq: i64,
    pub(super) slice_idle: Tick,
    pub(super) group_idle: Tick,
    pub(super) low_latency: bool,
    pub(super) target_latency: Tick,
}

impl Params {
    pub(super) fn new(args: &BuildArgs<'_>) -> Params {
        let ns = args.generation == 2;
        let clock = Clock::new(ns, args.queue.hz);
        let urgent = if args.generation == 0 { Flags::NONE } else { Flags::PRIO };
        let mut p = Params {
            clock,
            generation: args.generation,
            quantum: 0,
            queued: 0,
            fifo_expire: [0; 2],
            back_seek_max: 0,
            back_seek_penalty: 1,
            seek: SeekRule::from_sysfs(0, 1, urgent),
            slice: [0; 2],
            slice_async_rq: 0,
            slice_idle: 0,
            group_idle: 0,
            low_latency: false,
            target_latency: 0,
        };
        for (name, value) in args.tunables.iter().filter(|(n, _)| !n.ends_with("_us")) {
            p.set(name, value);
        }
        // A tunable and its `_us` twin are one value. The twin that differs from its default counts.
        for (name, value) in args.tunables.iter().filter(|(n, _)| n.ends_with("_us")) {
            if value != default_of(name, args.generation, args.queue) {
                p.set(name, value);
            }
        }
        p
    }

    /// Sets a tunable, in its sysfs unit.
    pub(super) fn set(&mut self, name: &str, value: i64) {
        let ms = self.clock.ms(value);
        match name {
            "quantum" => self.quantum = u32::try_from(value).unwrap_or(u32::MAX),
            "queued" => self.queued = value,
            "back_seek_max" => self.back_seek_max = value,
            "back_seek_penalty" => self.back_seek_penalty = value,
            "slice_async_rq" => self.slice_async_rq = value,
            "low_latency" => self.low_latency = value != 0,
            "fifo_expire_sync" => self.fifo_expire[1] = ms.max(1),
            "fifo_expire_async" => self.fifo_expire[0] = ms.max(1),
            _ => self.set_time(name, value, ms),
        }
        let urgent = self.seek.urgent;
        self.seek = SeekRule::from_sysfs(self.back_seek_max, self.back_seek_penalty, urgent);
    }

    fn set_time(&mut self, name: &str, value: i64, ms: Tick) {
        let (name, ticks) = match name.strip_suffix("_us") {
            Some(base) => (base, value * 1000),
            None => (name, ms),
        };
        match name {
            "slice_sync" => self.slice[1] = ticks.max(1),
            "slice_async" => self.slice[0] = ticks.max(1),
            "slice_idle" => self.slice_idle = ticks,
            "group_idle" => self.group_idle = ticks,
            "target_latency" => self.target_latency = ticks.max(1),
            _ => {}
        }
    }

    /// Reads a tunable back, in its sysfs unit; `None` if this generation has none of that name.
    pub(super) fn get(&self, name: &str) -> Option<i64> {
        DESCRIPTOR.tunables_of(self.generation).find(|t| t.name == name)?;
        let (base, us) = name.strip_suffix("_us").map_or((name, false), |b| (b, true));
        let time = |t: Tick| Some(if us { t / 1000 } else { self.clock.to_ms(t) });
        match base {
            "quantum" => Some(i64::from(self.quantum)),
            "queued" => Some(self.queued),
            "back_seek_max" => Some(self.back_seek_max),
            "back_seek_penalty" => Some(self.back_seek_penalty),
            "slice_async_rq" => Some(self.slice_async_rq),
            "low_latency" => Some(i64::from(self.low_latency)),
            "fifo_expire_sync" => time(self.fifo_expire[1]),
            "fifo_expire_async" => time(self.fifo_expire[0]),
            "slice_sync" => time(self.slice[1]),
            "slice_async" => time(self.slice[0]),
            "slice_idle" => time(self.slice_idle),
            "group_idle" => time(self.group_idle),
            "target_latency" => time(self.target_latency),
            _ => None,
        }
    }

    /// Slice of a queue by its level, before any scaling: a fifth of the base per level around 4.
    pub(super) fn prio_slice(&self, sync: bool, level: u8) -> Tick {
        let base = self.slice[usize::from(sync)];
        base + base / 5 * (4 - i64::from(level))
    }

    /// Asynchronous requests per slice at a level.
    pub(super) fn max_async(&self, level: u8) -> u64 {
        2 * (self.slice_async_rq * (8 - i64::from(level))) as u64
    }
}

fn default_of(name: &str, generation: u8, queue: &QueueFacts) -> i64 {
    let facts = DefaultFacts { generation, queue };
    DESCRIPTOR.tunables_of(generation).find(|t| t.name == name).map_or(0, |t| (t.default)(&facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(generation: u8, hz: u32, set: &[(&str, i64)]) -> Params {
        let queue = QueueFacts { hz, ..QueueFacts::default() };
        let set: Vec<(String, i64)> = set.iter().map(|(n, v)| ((*n).into(), *v)).collect();
        let tunables = DESCRIPTOR.resolve_tunables(generation, &queue, &set).unwrap();
        Params::new(&BuildArgs { generation, tunables: &tunables, queue: &queue, now: 0 })
    }

    #[test]
    fn jiffy_truncation_shows_in_sysfs() {
        let p = params(1, 250, &[]);
        assert_eq!(p.get("fifo_expire_sync"), Some(124));
        assert_eq!(p.get("fifo_expire_async"), Some(248));
        assert_eq!(p.get("slice_idle"), Some(8));
        assert_eq!(params(1, 100, &[]).get("slice_idle"), Some(0));
        assert_eq!(
            params(0, 100, &[]).get("slice_idle"),
            Some(10),
            "2.6.18 waits at least a jiffy"
        );
        assert_eq!(params(2, 250, &[]).get("fifo_expire_sync"), Some(125));
    }

    #[test]
    fn slices_by_level() {
        let p = params(0, 1000, &[]);
        let sync: Vec<i64> = (0..8).map(|l| p.prio_slice(true, l)).collect();
        assert_eq!(sync, [180, 160, 140, 120, 100, 80, 60, 40]);
        let asynchronous: Vec<i64> = (0..8).map(|l| p.prio_slice(false, l)).collect();
        assert_eq!(asynchronous, [72, 64, 56, 48, 40, 32, 24, 16]);
        assert_eq!([p.max_async(0), p.max_async(4), p.max_async(7)], [32, 16, 4]);
    }

    #[test]
    fn a_tunable_and_its_us_twin_are_one_value() {
        assert_eq!(params(2, 250, &[("slice_idle", 0)]).get("slice_idle_us"), Some(0));
        assert_eq!(params(2, 250, &[("slice_idle_us", 1500)]).get("slice_idle"), Some(1));
        assert_eq!(params(2, 250, &[("slice_sync_us", 50)]).slice[1], 50_000);
        assert_eq!(params(1, 250, &[]).get("slice_idle_us"), None);
    }

    #[test]
    fn every_tunable_of_every_generation_reads_back_what_was_set() {
        for generation in 0..3 {
            for t in DESCRIPTOR.tunables_of(generation) {
                for value in [t.min, t.max, (t.min + 3).min(t.max)] {
                    let p = params(generation, 1000, &[(t.name, value)]);
                    assert_eq!(p.get(t.name), Some(value), "{} @{generation}", t.name);
                }
            }
        }
    }

    #[test]
    fn a_jiffy_timer_fires_at_the_edge_of_its_jiffy() {
        let c = Clock::new(false, 300);
        assert_eq!(c.tick(c.nanos(7)), 7);
        assert_eq!(c.tick(c.nanos(7) - 1), 6);
        assert_eq!(Clock::new(false, 250).show(2), "8 ms");
        assert_eq!(Clock::new(true, 250).show(1_200_000), "1.2 ms");
    }
}
