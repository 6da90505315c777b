//! Descriptor of Kyber, and what differs between its generations.

use iosched_types::{Nanos, Op};

use super::build;
use super::tokens::WakeUp;
use crate::descriptor::{BlockPath, Descriptor, Facts, Generation, KernelVersion, Tunable};

/// Descriptor of Kyber.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "kyber",
    aliases: &[],
    summary: "Limits how many reads, writes and discards are in the device at once, so that each kind \
              meets its latency target; for fast devices with several hardware queues.",
    path: BlockPath::Mq,
    facts: Facts { async_percent: 75, ..Facts::USUAL },
    generations: &[
        Generation {
            index: 0,
            name: "4.12",
            first: KernelVersion(4, 12, 0),
            last: Some(KernelVersion(4, 19, 0)),
            summary: "Domains read, synchronous write, other; depths follow mean latencies over windows of \
                      10 and 100 ms.",
        },
        Generation {
            index: 1,
            name: "4.20",
            first: KernelVersion(4, 20, 0),
            last: Some(KernelVersion(4, 20, 0)),
            summary: "Domains read, write, discard, other; depths follow p90 and p99 from latency histograms.",
        },
        Generation {
            index: 2,
            name: "5.0",
            first: KernelVersion(5, 0, 0),
            last: Some(KernelVersion(6, 16, 0)),
            summary: "Software queues keep their domains apart; requests without a token stay there and can \
                      still merge.",
        },
        Generation {
            index: 3,
            name: "6.17",
            first: KernelVersion(6, 17, 0),
            last: Some(KernelVersion(7, 0, 0)),
            summary: "The limit of asynchronous operations counts over the whole tag map, not per word of it.",
        },
        Generation {
            index: 4,
            name: "7.1",
            first: KernelVersion(7, 1, 0),
            last: None,
            summary: "The limit is `queue/async_depth`; it holds for synchronous writes, too.",
        },
    ],
    tunables: &[
        Tunable {
            name: "read_lat_nsec",
            unit: "ns",
            default_text: "2000000",
            default: |_| 2_000_000,
            min: 0,
            max: i64::MAX,
            generations: &[0, 1, 2, 3, 4],
            help: "Target latency of reads.",
        },
        Tunable {
            name: "write_lat_nsec",
            unit: "ns",
            default_text: "10000000",
            default: |_| 10_000_000,
            min: 0,
            max: i64::MAX,
            generations: &[0, 1, 2, 3, 4],
            help: "Target latency of writes (of synchronous writes until 4.19).",
        },
    ],
    build: &build,
};

/// One domain.
pub(super) struct DomainRule {
    /// For people.
    pub(super) name: &'static str,
    /// Tokens at the start. There can never be more.
    pub(super) tokens: u32,
    /// Requests in a row before the next domain has its turn.
    pub(super) batch: u32,
    /// What latency is held against.
    pub(super) target: Target,
    /// Names of the counters: tokens there are, tokens in use, most ever in use.
    pub(super) counters: [&'static str; 3],
}

/// Where the target of a domain comes from.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// `read_lat_nsec`.
    Read,
    /// `write_lat_nsec`.
    Write,
    /// Built in.
    Fixed(Nanos),
    /// The domain is not measured against anything.
    None,
}

impl Target {
    /// In ns; `tunables` are the targets of reads and writes.
    pub(super) fn get(self, tunables: [Nanos; 2]) -> Option<Nanos> {
        match self {
            Target::Read => Some(tunables[0]),
            Target::Write => Some(tunables[1]),
            Target::Fixed(ns) => Some(ns),
            Target::None => None,
        }
    }
}

/// How latency is measured and judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Latency {
    /// Means over windows.
    Means,
    /// Histograms.
    Histograms,
}

/// Over what the limit of asynchronous operations counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AsyncLimit {
    /// Over each word of the tag map.
    PerWord,
    /// Over all of it.
    WholeMap,
    /// Over all of it, `queue/async_depth`, and for synchronous writes, too.
    OfTheQueue,
}

/// What a generation does differently.
pub(super) struct Rules {
    pub(super) domains: &'static [DomainRule],
    /// Domain of an operation. The flag says whether a process waits for it.
    pub(super) domain_of: fn(Op, bool) -> usize,
    /// Software queues have one list per domain, from which a request is pulled only with a token.
    pub(super) domain_lists: bool,
    pub(super) latency: Latency,
    pub(super) async_limit: AsyncLimit,
    pub(super) wake_up: WakeUp,
}

static BY_SYNC: [DomainRule; 3] = [
    DomainRule {
        name: "READ",
        tokens: 256,
        batch: 16,
        target: Target::Read,
        counters: ["read_depth", "read_tokens_in_use", "read_tokens_peak"],
    },
    DomainRule {
        name: "SYNC_WRITE",
        tokens: 128,
        batch: 8,
        target: Target::Write,
        counters: ["sync_write_depth", "sync_write_tokens_in_use", "sync_write_tokens_peak"],
    },
    DomainRule {
        name: "OTHER",
        tokens: 64,
        batch: 8,
        target: Target::None,
        counters: ["other_depth", "other_tokens_in_use", "other_tokens_peak"],
    },
];

static BY_OP: [DomainRule; 4] = [
    DomainRule {
        name: "READ",
        tokens: 256,
        batch: 16,
        target: Target::Read,
        counters: ["read_depth", "read_tokens_in_use", "read_tokens_peak"],
    },
    DomainRule {
        name: "WRITE",
        tokens: 128,
        batch: 8,
        target: Target::Write,
        counters: ["write_depth", "write_tokens_in_use", "write_tokens_peak"],
    },
    DomainRule {
        name: "DISCARD",
        tokens: 64,
        batch: 1,
        target: Target::Fixed(5_000_000_000),
        counters: ["discard_depth", "discard_tokens_in_use", "discard_tokens_peak"],
    },
    DomainRule {
        name: "OTHER",
        tokens: 16,
        batch: 1,
        target: Target::None,
        counters: ["other_depth", "other_tokens_in_use", "other_tokens_peak"],
    },
];

fn by_sync(op: Op, sync: bool) -> usize {
    match op {
        Op::Read => 0,
        Op::Write if sync => 1,
        _ => 2,
    }
}

fn by_op(op: Op, _sync: bool) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}

static RULES: [Rules; 5] = [
    Rules {
        domains: &BY_SYNC,
        domain_of: by_sync,
        domain_lists: false,
        latency: Latency::Means,
        async_limit: AsyncLimit::PerWord,
        wake_up: WakeUp::One,
    },
    Rules {
        domains: &BY_OP,
        domain_of: by_op,
        domain_lists: false,
        latency: Latency::Histograms,
        async_limit: AsyncLimit::PerWord,
        wake_up: WakeUp::One,
    },
    Rules {
        domains: &BY_OP,
        domain_of: by_op,
        domain_lists: true,
        latency: Latency::Histograms,
        async_limit: AsyncLimit::PerWord,
        wake_up: WakeUp::Batch,
    },
    Rules {
        domains: &BY_OP,
        domain_of: by_op,
        domain_lists: true,
        latency: Latency::Histograms,
        async_limit: AsyncLimit::WholeMap,
        wake_up: WakeUp::Batch,
    },
    Rules {
        domains: &BY_OP,
        domain_of: by_op,
        domain_lists: true,
        latency: Latency::Histograms,
        async_limit: AsyncLimit::OfTheQueue,
        wake_up: WakeUp::Batch,
    },
];

/// The rules of a generation.
pub(super) fn rules(generation: u8) -> &'static Rules {
    &RULES[usize::from(generation).min(RULES.len() - 1)]
}
