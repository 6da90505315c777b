//! The descriptor: generations and tunables.

use crate::descriptor::{
    BlockPath, DefaultFacts, Descriptor, Facts, Generation, KernelVersion, Tunable,
};
use crate::jiffies;

use super::version::{CURRENT, V4_12, V7, V7_1};

const ALL: &[u8] = &[V7, V4_12, CURRENT, V7_1];
const MAINLINE: &[u8] = &[V4_12, CURRENT, V7_1];
const OLD: &[u8] = &[V7];
const INT: i64 = i32::MAX as i64;

fn timeout(facts: &DefaultFacts<'_>) -> i64 {
    let hz = facts.queue.hz.max(1);
    jiffies::to_ms(i64::from((hz / 8).max(1)), hz)
}

fn timeout_async(facts: &DefaultFacts<'_>) -> i64 {
    let hz = facts.queue.hz.max(1);
    jiffies::to_ms(i64::from((hz / 25).max(1)), hz)
}

macro_rules! tunable {
    ($name:literal, $unit:literal, $default:literal, $min:expr, $max:expr, $gens:expr, $help:literal) => {
        Tunable {
            name: $name,
            unit: $unit,
            default_text: stringify!($default),
            default: |_| $default,
            min: $min,
            max: $max,
            generations: $gens,
            help: $help,
        }
    };
}

/// Descriptor of BFQ.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "bfq",
    aliases: &["bfq-sq", "bfq-mq"],
    summary: "A queue per process, served in budgets by weight (B-WF2Q+); raises the weight of what \
              starts or plays, and idles where that keeps a guarantee.",
    path: BlockPath::Mq,
    facts: Facts {
        throttle_off: true,
        first_tags: true,
        async_percent: 75,
        async_lags: true,
        out_of_tree: &[(V7, "patches for Linux 3.14")],
        ..Facts::USUAL
    },
    generations: &[
        Generation {
            index: V7,
            name: "v7r3",
            first: KernelVersion(3, 14, 0),
            last: Some(KernelVersion(3, 14, 0)),
            summary: "Single-queue path: raising by 20, no preemption, no cached next \
                      queue, times in jiffies, budget timeout from the first completion, at most 4 \
                      requests of a queue in flight.",
        },
        Generation {
            index: V4_12,
            name: "4.12",
            first: KernelVersion(4, 12, 0),
            last: Some(KernelVersion(4, 20, 0)),
            summary: "As first merged: raising by 30 and 3000, bursts, measured peak rate; a queue of \
                      equal weight-raising factor never preempts, nothing is injected while a queue \
                      idles.",
        },
        Generation {
            index: CURRENT,
            name: "6.12",
            first: KernelVersion(5, 0, 0),
            last: Some(KernelVersion(7, 0, 0)),
            summary: "Injection with a measured limit, wakers, stable merges, tag limits for writes, \
                      preemption of queues not worth idling for, stricter soft real-time detection.",
        },
        Generation {
            index: V7_1,
            name: "7.1",
            first: KernelVersion(7, 1, 0),
            last: None,
            summary: "Tag limits are shares of `queue/async_depth`; until it or nr_requests is written, of the \
                      one that the scheduler before BFQ left.",
        },
    ],
    tunables: &[
        tunable!(
            "fifo_expire_sync",
            "ms",
            125,
            0,
            INT,
            ALL,
            "Age at which the oldest sync request of the queue in service goes first, once a slot."
        ),
        tunable!("fifo_expire_async", "ms", 250, 0, INT, ALL, "The same for async requests."),
        tunable!(
            "back_seek_max",
            "KiB",
            16384,
            0,
            INT,
            ALL,
            "Longest way back that still competes with requests ahead of the head."
        ),
        tunable!(
            "back_seek_penalty",
            "factor",
            2,
            1,
            INT,
            ALL,
            "Cost of a way back against the same way forward."
        ),
        tunable!(
            "slice_idle",
            "ms",
            8,
            0,
            INT,
            ALL,
            "How long the device waits for the next request of an emptied queue; 0 never waits."
        ),
        tunable!(
            "slice_idle_us",
            "us",
            8000,
            0,
            INT,
            MAINLINE,
            "slice_idle in microseconds; the one written last counts (of two given at the start, this \
             one unless it is the default)."
        ),
        tunable!(
            "max_budget",
            "sectors",
            0,
            0,
            INT,
            ALL,
            "Largest budget of a queue; 0 measures the device and takes what it reads in timeout_sync."
        ),
        tunable!(
            "max_budget_async_rq",
            "requests",
            4,
            1,
            INT,
            OLD,
            "Most requests in flight of an async queue."
        ),
        tunable!(
            "quantum",
            "requests",
            4,
            1,
            INT,
            OLD,
            "Most requests in flight of one sync queue while others wait; alone it has four times as many."
        ),
        Tunable {
            name: "timeout_sync",
            unit: "ms",
            default_text: "125 (124 at HZ 250)",
            default: timeout,
            min: 1,
            max: INT,
            generations: ALL,
            help: "How long a queue may hold the device; times its raised share when weight-raised.",
        },
        Tunable {
            name: "timeout_async",
            unit: "ms",
            default_text: "40",
            default: timeout_async,
            min: 1,
            max: INT,
            generations: OLD,
            help: "The same for async queues.",
        },
        tunable!(
            "strict_guarantees",
            "0/1",
            0,
            0,
            1,
            MAINLINE,
            "1: one request at a time and always idle (raises slice_idle to 8 ms at least)."
        ),
        tunable!(
            "low_latency",
            "0/1",
            1,
            0,
            1,
            ALL,
            "1: raise the weight of interactive and soft real-time queues; 0 ends every raise."
        ),
        tunable!("wr_coeff", "factor", 20, 1, INT, OLD, "By what a raised weight is multiplied."),
        tunable!(
            "wr_max_time",
            "ms",
            0,
            0,
            INT,
            OLD,
            "How long an interactive queue stays raised; 0 derives it from the measured rate."
        ),
        tunable!(
            "wr_rt_max_time",
            "ms",
            300,
            0,
            INT,
            OLD,
            "How long a soft real-time queue stays raised."
        ),
        tunable!(
            "wr_min_idle_time",
            "ms",
            2000,
            0,
            INT,
            OLD,
            "Idle time after which a queue counts as interactive again."
        ),
        tunable!(
            "wr_min_inter_arr_async",
            "ms",
            500,
            0,
            INT,
            OLD,
            "Least time between two raises of an async queue."
        ),
        tunable!(
            "wr_max_softrt_rate",
            "sectors/s",
            7000,
            0,
            INT,
            OLD,
            "Fastest rate of a soft real-time queue; 0 detects none."
        ),
    ],
    build: &super::build,
};
