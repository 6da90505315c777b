//! Descriptor of the anticipatory scheduler, and what differs between its generations.

use super::build;
use crate::descriptor::{
    BlockPath, DefaultFacts, Descriptor, Facts, Generation, KernelVersion, Tunable,
};
use crate::jiffies;

/// Descriptor of the anticipatory scheduler.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "anticipatory",
    aliases: &["as"],
    summary: "Waits a few milliseconds after a synchronous request for the next one of the same process, \
              and alternates timed batches of sync and async requests; for a disk with one arm.",
    path: BlockPath::Legacy,
    facts: Facts::USUAL,
    generations: &[
        Generation {
            index: 0,
            name: "2.6.18",
            first: KernelVersion(2, 6, 16),
            last: Some(KernelVersion(2, 6, 23)),
            summary: "Async batches begin with the best position; the close distance doubles per ms waited.",
        },
        Generation {
            index: 1,
            name: "2.6.32",
            first: KernelVersion(2, 6, 24),
            last: Some(KernelVersion(2, 6, 32)),
            summary: "Async batches begin with the oldest request; a batch that waited for the old class to \
                      drain gets its own length; the close distance doubles per jiffy waited.",
        },
    ],
    tunables: &[
        tunable(
            "read_expire",
            "HZ/8 (125)",
            |f| in_ms(f, read_expire(f.queue.hz)),
            "Deadline of sync requests in the FIFO, looked at once per this interval.",
        ),
        tunable(
            "write_expire",
            "HZ/4 (250)",
            |f| in_ms(f, write_expire(f.queue.hz)),
            "Deadline of async requests in the FIFO, looked at once per this interval.",
        ),
        tunable(
            "antic_expire",
            "HZ/150 (6)",
            |f| in_ms(f, antic_expire(f.queue.hz)),
            "Longest wait for the next request of a process; 0 switches anticipation off.",
        ),
        tunable(
            "read_batch_expire",
            "HZ/2 (500)",
            |f| in_ms(f, read_batch_expire(f.queue.hz)),
            "Length of a batch of sync requests.",
        ),
        tunable(
            "write_batch_expire",
            "HZ/8 (125)",
            |f| in_ms(f, write_batch_expire(f.queue.hz)),
            "Length of a batch of async requests.",
        ),
    ],
    build: &build,
};

const fn tunable(
    name: &'static str,
    default_text: &'static str,
    default: fn(&DefaultFacts<'_>) -> i64,
    help: &'static str,
) -> Tunable {
    Tunable {
        name,
        unit: "ms",
        default_text,
        default,
        min: 0,
        max: i32::MAX as i64,
        generations: &[0, 1],
        help,
    }
}

fn in_ms(f: &DefaultFacts<'_>, j: i64) -> i64 {
    jiffies::to_ms(j, f.queue.hz)
}

fn read_expire(hz: u32) -> i64 {
    i64::from(hz / 8)
}

fn write_expire(hz: u32) -> i64 {
    i64::from(hz / 4)
}

fn antic_expire(hz: u32) -> i64 {
    i64::from((hz / 150).max(1))
}

/// In jiffies; the first batch ends this long after the start.
pub(super) fn read_batch_expire(hz: u32) -> i64 {
    i64::from(hz / 2)
}

/// In jiffies; the first number of writes per batch follows from it too.
pub(super) fn write_batch_expire(hz: u32) -> i64 {
    i64::from(hz / 8)
}

/// What a generation does differently.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// An async batch begins with the FIFO head, not with the best position.
    pub(super) async_from_fifo: bool,
    /// A batch that begins when the old class has drained gets its own end.
    pub(super) drained_batch_is_timed: bool,
    /// The close distance doubles per millisecond, not per jiffy.
    pub(super) close_in_ms: bool,
    /// A request that takes over the place of the one it absorbs takes over its owner too.
    pub(super) swap_owners: bool,
}

/// The rules of a generation.
pub(super) fn rules(generation: u8) -> Rules {
    let old = generation == 0;
    Rules {
        async_from_fifo: !old,
        drained_batch_is_timed: !old,
        close_in_ms: old,
        swap_owners: old,
    }
}
