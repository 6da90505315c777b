//! The descriptor: generations and tunables, and the values in force.

use crate::descriptor::{
    BlockPath, DefaultFacts, Descriptor, Facts, Generation, KernelVersion, Tunable, TunableValues,
};
use crate::pair;

use super::Shrink;

/// Index of 3.1.9.
pub(super) const V3_1: u8 = 0;
/// Index of 3.2.0.
pub(super) const V3_2: u8 = 1;

const BOTH: &[u8] = &[V3_1, V3_2];
const CACHYOS: &str = "shipped by CachyOS";

fn window(facts: &DefaultFacts<'_>) -> i64 {
    if facts.queue.rotational { 22_000_000 } else { 16_000_000 }
}

macro_rules! tunable {
    ($name:literal, $unit:literal, $default:literal, $min:expr, $max:expr, $help:literal) => {
        Tunable {
            name: $name,
            unit: $unit,
            default_text: stringify!($default),
            default: |_| $default,
            min: $min,
            max: $max,
            generations: BOTH,
            help: $help,
        }
    };
}

macro_rules! model {
    ($name:literal, $what:literal) => {
        Tunable {
            name: $name,
            unit: pair::UNIT,
            default_text: "0 0",
            default: |_| 0,
            min: 0,
            max: pair::MAX,
            generations: BOTH,
            help: concat!(
                "Expected latency of ",
                $what,
                ": of up to 4 KiB, and more for each further KiB; 0 0 learns it anew."
            ),
        }
    };
}

/// Descriptor of ADIOS.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "adios",
    aliases: &[],
    summary: "Adaptive deadlines: learns what requests take, and hands them out in batches, reads first, \
              whose expected latency fits a window.",
    path: BlockPath::Mq,
    facts: Facts { out_of_tree: &[(V3_1, CACHYOS), (V3_2, CACHYOS)], ..Facts::USUAL },
    generations: &[
        Generation {
            index: V3_1,
            name: "3.1.9",
            first: KernelVersion(6, 12, 0),
            last: None,
            summary: "A plain FIFO until reads and writes of up to 4 KiB have both been seen. A discard is a \
                      barrier: what comes after it waits until all that came before was handed out.",
        },
        Generation {
            index: V3_2,
            name: "3.2.0",
            first: KernelVersion(6, 12, 0),
            last: None,
            summary: "Testing. A discard is no barrier; an expected latency is at most \
                      lat_model_latency_limit; samples far above it no longer count as small.",
        },
    ],
    tunables: TUNABLES,
    build: &super::build,
};

const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "global_latency_window",
        unit: "ns",
        default_text: "22000000 (not rotational: 16000000)",
        default: window,
        min: 0,
        max: i64::MAX,
        generations: BOTH,
        help: "Expected latency of all requests that may be committed to one order ahead of the device.",
    },
    tunable!("bq_refill_below_ratio", "percent", 20, 0, 100,
        "The next batch is filled when less than this share of the window is committed."),
    tunable!("lat_model_latency_limit", "ns", 500_000_000, 0, 2_000_000_000,
        "Samples above it teach the models nothing."),
    tunable!("batch_order", "order", 0, 0, 1,
        "0: a batch gives reads, writes, discards; 1 (rotational devices only): writes that a process waits for, then \
         the rest in one sweep."),
    tunable!("compliance_flags", "bit mask", 0, 0, i64::MAX,
        "Bit 0: deadlines of requests without the sync flag leave out the expected latency."),
    tunable!("batch_limit_read", "requests", 36, 1, i64::MAX, "Most reads of a batch."),
    tunable!("batch_limit_write", "requests", 72, 1, i64::MAX, "Most writes of a batch."),
    tunable!("batch_limit_discard", "requests", 1, 1, i64::MAX, "Most discards of a batch."),
    tunable!("lat_target_read", "ns", 2_000_000, 0, i64::MAX,
        "Deadline of reads, beside the expected latency. Writing it forgets the model of reads."),
    tunable!("lat_target_write", "ns", 2_000_000_000, 0, i64::MAX,
        "The same of writes without the sync flag (write-back)."),
    tunable!("lat_target_discard", "ns", 8_000_000_000, 0, i64::MAX,
        "The same of discards without the sync flag."),
    model!("lat_model_read", "reads"),
    model!("lat_model_write", "writes"),
    model!("lat_model_discard", "discards"),
    tunable!("read_priority", "nice", 8, -20, 19,
        "A read that overtakes an older write counts as much as a task of this nice value."),
    tunable!("shrink_at_kreqs", "1000 samples", 5000, 1, 100_000,
        "A model with this many small samples forgets a part of them."),
    tunable!("shrink_at_gbytes", "GiB", 50, 1, 1000,
        "A model with large samples of this many bytes forgets a part of them."),
    tunable!("shrink_resist", "shift", 2, 1, 3, "The part that is forgotten: 1/2, 1/4 or 1/8."),
    tunable!("reset_bq_stats", "0/1", 0, 0, 1, "Writing 1 clears the largest batches seen."),
    tunable!("reset_lat_model", "0/1", 0, 0, 1, "Writing 1 forgets all models."),
];

/// Names of the kinds in tunables.
pub(super) const KINDS: [&str; 3] = ["read", "write", "discard"];

/// The values in force.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    pub(super) hz: u32,
    pub(super) window: u64,
    pub(super) refill_percent: u64,
    pub(super) sample_limit: u64,
    pub(super) order: u8,
    pub(super) compliance: i64,
    /// By kind; that of the last is fixed.
    pub(super) batch: [u64; 4],
    /// By kind.
    pub(super) target: [u64; 4],
    pub(super) read_priority: i64,
    pub(super) shrink: Shrink,
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

impl Tuning {
    pub(super) fn new(values: &TunableValues, hz: u32, rotational: bool) -> Tuning {
        let mut tuning = Tuning {
            hz,
            window: 0,
            refill_percent: 0,
            sample_limit: 0,
            order: 0,
            compliance: 0,
            batch: [1; 4],
            target: [0; 4],
            read_priority: 0,
            shrink: Shrink { small_samples: 0, large_bytes: 0, shift: 2 },
        };
        values.iter().for_each(|(name, value)| tuning.set(name, value, rotational));
        tuning
    }

    pub(super) fn set(&mut self, name: &str, value: i64, rotational: bool) {
        let kind = |prefix: &str| {
            let kind = name.strip_prefix(prefix)?;
            KINDS.iter().position(|k| *k == kind)
        };
        if let Some(k) = kind("batch_limit_") {
            self.batch[k] = unsigned(value);
        } else if let Some(k) = kind("lat_target_") {
            self.target[k] = unsigned(value);
        }
        match name {
            "global_latency_window" => self.window = unsigned(value),
            "bq_refill_below_ratio" => self.refill_percent = unsigned(value),
            "lat_model_latency_limit" => self.sample_limit = unsigned(value),
            // The kernel takes 0 only on other devices.
            "batch_order" => self.order = u8::from(rotational && value == 1),
            "compliance_flags" => self.compliance = value,
            "read_priority" => self.read_priority = value,
            "shrink_at_kreqs" => self.shrink.small_samples = unsigned(value) * 1000,
            "shrink_at_gbytes" => self.shrink.large_bytes = unsigned(value) << 30,
            "shrink_resist" => self.shrink.shift = value as u32,
            _ => {}
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<i64> {
        let of = |prefix: &str, values: &[u64; 4]| {
            let kind = name.strip_prefix(prefix)?;
            KINDS.iter().position(|k| *k == kind).map(|k| values[k])
        };
        let limits = of("batch_limit_", &self.batch).or_else(|| of("lat_target_", &self.target));
        let value = match name {
            _ if limits.is_some() => limits?,
            "global_latency_window" => self.window,
            "bq_refill_below_ratio" => self.refill_percent,
            "lat_model_latency_limit" => self.sample_limit,
            "batch_order" => self.order.into(),
            "compliance_flags" => return Some(self.compliance),
            "read_priority" => return Some(self.read_priority),
            "shrink_at_kreqs" => self.shrink.small_samples / 1000,
            "shrink_at_gbytes" => self.shrink.large_bytes >> 30,
            "shrink_resist" => self.shrink.shift.into(),
            "reset_bq_stats" | "reset_lat_model" => 0,
            _ => return None,
        };
        Some(i64::try_from(value).unwrap_or(i64::MAX))
    }
}
