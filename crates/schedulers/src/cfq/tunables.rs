//! The tunables of CFQ by sysfs name.

use crate::descriptor::{DefaultFacts, Tunable};

const ALL: &[u8] = &[0, 1, 2];
const OLD: &[u8] = &[0];
const NEW: &[u8] = &[1, 2];
const NS: &[u8] = &[2];
const MAX: i64 = u32::MAX as i64;

/// `HZ * num / den` jiffies (whole ones) before 4.8, exact from then on; in ms either way.
fn fraction(f: &DefaultFacts<'_>, num: i64, den: i64) -> i64 {
    if f.generation == 2 {
        return 1000 * num / den;
    }
    let hz = i64::from(f.queue.hz.max(1));
    hz * num / den * 1000 / hz
}

fn slice_idle(f: &DefaultFacts<'_>) -> i64 {
    match f.generation {
        0 => fraction(f, 1, 125).max(1000 / i64::from(f.queue.hz.max(1))),
        2 if !f.queue.rotational => 0,
        _ => fraction(f, 1, 125),
    }
}

macro_rules! tunable {
    ($name:literal, $unit:literal, $text:literal, $default:expr, $min:expr, $max:expr, $gens:expr, $help:literal) => {
        Tunable {
            name: $name,
            unit: $unit,
            default_text: $text,
            default: $default,
            min: $min,
            max: $max,
            generations: $gens,
            help: $help,
        }
    };
}

/// The bounds are the kernel's. The kernel clamps a value beyond them; iosched refuses it.
#[rustfmt::skip]
pub(super) static TUNABLES: &[Tunable] = &[
    tunable!("quantum", "requests", "4 (2.6.18), 8", |f| if f.generation == 0 { 4 } else { 8 }, 1, MAX, ALL,
        "Requests of one queue in flight; half of it while its slice is about to end (2.6.18: per dispatch round)."),
    tunable!("queued", "requests", "8", |_| 8, 1, MAX, OLD,
        "Present in sysfs and without any effect."),
    tunable!("fifo_expire_sync", "ms", "125 (124 at HZ=250 before 4.8)", |f| fraction(f, 1, 8), 1, MAX, ALL,
        "Age beyond which the oldest synchronous request of the queue being served goes first, once per slice."),
    tunable!("fifo_expire_async", "ms", "250 (248 at HZ=250 before 4.8)", |f| fraction(f, 1, 4), 1, MAX, ALL,
        "The same for asynchronous requests."),
    tunable!("back_seek_max", "KiB", "16384", |_| 16384, 0, MAX, ALL,
        "Longest way back the head takes within a sweep."),
    tunable!("back_seek_penalty", "factor", "2", |_| 2, 1, MAX, ALL,
        "Cost of a way back against the same way forward."),
    tunable!("slice_sync", "ms", "100", |f| fraction(f, 1, 10), 1, MAX, ALL,
        "Slice of a synchronous queue at level 4; each level more or less is a fifth of it."),
    tunable!("slice_async", "ms", "40", |f| fraction(f, 1, 25), 1, MAX, ALL,
        "Slice of an asynchronous queue at level 4."),
    tunable!("slice_async_rq", "requests", "2", |_| 2, 1, MAX, ALL,
        "Asynchronous requests per slice: twice this for each level above 7."),
    tunable!("slice_idle", "ms", "8 (4.12 on SSDs: 0)", slice_idle, 0, MAX, ALL,
        "How long the disk is held for the next request of the same process; 0 never waits."),
    tunable!("group_idle", "ms", "8", |f| fraction(f, 1, 125), 0, MAX, NEW,
        "How long the disk is held for a group whose only queue ran dry; 0 never waits."),
    tunable!("low_latency", "0/1", "1", |_| 1, 0, 1, NEW,
        "Shorten slices so that every queue is served within target_latency, and ramp up asynchronous depth."),
    tunable!("target_latency", "ms", "300", |f| fraction(f, 3, 10), 1, MAX, NEW,
        "Time in which every busy queue should get its turn."),
    tunable!("slice_sync_us", "us", "100000", |_| 100_000, 1, MAX, NS, "slice_sync in microseconds."),
    tunable!("slice_async_us", "us", "40000", |_| 40_000, 1, MAX, NS, "slice_async in microseconds."),
    tunable!("slice_idle_us", "us", "8000 (SSDs: 0)", |f| 1000 * slice_idle(f), 0, MAX, NS,
        "slice_idle in microseconds."),
    tunable!("group_idle_us", "us", "8000", |_| 8000, 0, MAX, NS, "group_idle in microseconds."),
    tunable!("target_latency_us", "us", "300000", |_| 300_000, 1, MAX, NS, "target_latency in microseconds."),
];
