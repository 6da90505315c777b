//! What differs between the generations, as data: one implementation reads it.

use super::wf2q::Rules;

/// Index of the generation BFQ v7r3 (out of tree, for 3.14).
pub(super) const V7: u8 = 0;
/// Index of the first mainline generation.
pub(super) const V4_12: u8 = 1;
/// Index of the first generation of the current algorithm.
pub(super) const CURRENT: u8 = 2;
/// Index of the generation whose tag limits are the queue's.
pub(super) const V7_1: u8 = 3;

/// A pair of values for rotational and other devices.
#[derive(Clone, Copy, Debug)]
pub(super) struct PerKind {
    pub(super) rotational: u64,
    pub(super) flash: u64,
}

impl PerKind {
    const fn new(rotational: u64, flash: u64) -> PerKind {
        PerKind { rotational, flash }
    }

    pub(super) fn of(self, rotational: bool) -> u64 {
        if rotational { self.rotational } else { self.flash }
    }
}

/// Burst detection: this many queues created within `interval_ms` of one another start no applications.
#[derive(Clone, Copy, Debug)]
pub(super) struct BurstRule {
    pub(super) threshold: usize,
    pub(super) interval_ms: i64,
    /// Only queues created while nothing is busy (or during a burst) are looked at.
    pub(super) only_when_quiet: bool,
}

/// One generation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    /// Whose algorithm it has: [`V7`], [`V4_12`] or [`CURRENT`].
    pub(super) index: u8,
    pub(super) engine: Rules,
    /// Plugs into the single-queue path and keeps its times in jiffies.
    pub(super) legacy: bool,
    /// A queue that returns in time has the rest of its budget; otherwise it always starts with a fresh one.
    pub(super) resumes: bool,
    /// A raised queue gets two least budgets; otherwise it keeps its own.
    pub(super) raised_least_budgets: bool,
    /// A raise that ends at a dispatch changes the weight at once, not when the queue is next put on its tree.
    pub(super) reweighs_at_dispatch: bool,
    /// A process that exits ends the slot of its queue.
    pub(super) exit_ends_slot: bool,
    /// The soft real-time time is unknown while requests are in flight at the end of a slot.
    pub(super) softrt_never_in_flight: bool,
    /// How often an async request is charged, and the same while a weight-raised queue is busy.
    pub(super) async_charge: u64,
    pub(super) async_charge_raised: u64,
    /// The async charge applies only where no guarantee is at stake.
    pub(super) async_charge_symmetric: bool,
    /// More than this many seeks among the last 32 requests make a queue seeky.
    pub(super) seeky_above: u32,
    /// Commands in flight above which a device is taken to queue.
    pub(super) hw_above: u32,
    /// Idling queues do not lead the queueing detection astray.
    pub(super) hw_protects_idling: bool,
    pub(super) wr_coeff: u64,
    /// Soft real-time queues are raised by `wr_coeff` times this.
    pub(super) softrt_factor: u64,
    /// Reference rates in sectors/µs with 16 fractional bits, and how long an application takes to start.
    pub(super) fast_rate: PerKind,
    pub(super) fast_ms: PerKind,
    /// The same for slow devices, where the generation tells them apart.
    pub(super) slow: Option<(PerKind, PerKind)>,
    pub(super) wr_bounds_ms: (i64, i64),
    /// An interactive raise ends after this much service.
    pub(super) wr_service_cap: u64,
    pub(super) burst: Option<BurstRule>,
    /// Soft real-time asks for an idle, not totally seeky queue of default weight.
    pub(super) strict_softrt: bool,
    /// Injection, wakers, stable merges, tag limits and the preemption rules that came with them.
    pub(super) modern: bool,
    /// Tag limits follow `queue/async_depth` and reach every operation but reads.
    pub(super) queue_limits: bool,
}

impl Version {
    pub(super) fn of(index: u8) -> &'static Version {
        VERSIONS.get(usize::from(index)).unwrap_or(&VERSIONS[usize::from(CURRENT)])
    }
}

const MODERN: Version = Version {
    index: CURRENT,
    engine: Rules {
        cached_next: true,
        lookup_when_beaten: true,
        raise_on_expiry: true,
        quick_on_expiry: true,
        leaves_as_served: true,
        forgets_when_raised: false,
        idle_turn_when_found: false,
    },
    legacy: false,
    resumes: true,
    raised_least_budgets: true,
    reweighs_at_dispatch: true,
    exit_ends_slot: true,
    softrt_never_in_flight: false,
    async_charge: 3,
    async_charge_raised: 3,
    async_charge_symmetric: true,
    seeky_above: 19,
    hw_above: 3,
    hw_protects_idling: true,
    wr_coeff: 30,
    softrt_factor: 100,
    fast_rate: PerKind::new(14_000, 33_000),
    fast_ms: PerKind::new(7000, 2500),
    slow: None,
    wr_bounds_ms: (3000, 25_000),
    wr_service_cap: 120_000,
    burst: Some(BurstRule { threshold: 8, interval_ms: 180, only_when_quiet: true }),
    strict_softrt: true,
    modern: true,
    queue_limits: false,
};

static VERSIONS: [Version; 4] = [
    Version {
        index: V7,
        engine: Rules {
            cached_next: false,
            lookup_when_beaten: true,
            raise_on_expiry: false,
            quick_on_expiry: false,
            leaves_as_served: false,
            forgets_when_raised: true,
            idle_turn_when_found: true,
        },
        legacy: true,
        resumes: false,
        raised_least_budgets: false,
        reweighs_at_dispatch: true,
        exit_ends_slot: true,
        softrt_never_in_flight: true,
        async_charge: 11,
        async_charge_raised: 11,
        async_charge_symmetric: false,
        seeky_above: 4,
        hw_above: 4,
        hw_protects_idling: false,
        wr_coeff: 20,
        softrt_factor: 1,
        fast_rate: PerKind::new(17_415, 34_791),
        fast_ms: PerKind::new(5500, 2000),
        slow: Some((PerKind::new(1536, 10_752), PerKind::new(2600, 1000))),
        wr_bounds_ms: (0, i64::MAX / 1_000_000),
        wr_service_cap: u64::MAX,
        burst: None,
        strict_softrt: false,
        modern: false,
        queue_limits: false,
    },
    Version {
        index: V4_12,
        engine: Rules {
            cached_next: true,
            lookup_when_beaten: false,
            raise_on_expiry: false,
            quick_on_expiry: false,
            leaves_as_served: false,
            forgets_when_raised: false,
            idle_turn_when_found: false,
        },
        legacy: false,
        resumes: true,
        raised_least_budgets: true,
        reweighs_at_dispatch: false,
        exit_ends_slot: false,
        softrt_never_in_flight: true,
        async_charge: 10,
        async_charge_raised: 20,
        async_charge_symmetric: false,
        seeky_above: 4,
        hw_above: 4,
        hw_protects_idling: false,
        wr_coeff: 30,
        softrt_factor: 100,
        fast_rate: PerKind::new(14_000, 33_000),
        fast_ms: PerKind::new(7000, 2500),
        slow: Some((PerKind::new(1000, 10_700), PerKind::new(3500, 6000))),
        wr_bounds_ms: (3000, 13_000),
        wr_service_cap: u64::MAX,
        burst: Some(BurstRule { threshold: 8, interval_ms: 180, only_when_quiet: false }),
        strict_softrt: false,
        modern: false,
        queue_limits: false,
    },
    MODERN,
    Version { queue_limits: true, ..MODERN },
];
