//! CFQ, "completely fair queueing" (2.6.13 to 4.20): every process has a queue of its own and gets the disk for a slice
//! of time. CFQ keeps the disk idle for a moment when a process is likely to ask for the next neighbour.
//!
//! Two algorithms bear the name here. [`walk`] is the one of 2.6.13 to 2.6.21: lists by priority that are
//! walked in rising rounds. [`core`] and its neighbours are the one of 2.6.33 to 4.20: service trees by
//! workload type, slices that start with the first completion, cooperating queues, control groups.
//! What differs between 3.x and 4.8+ is a table, [`params::Version`].

mod complete;
mod coop;
mod core;
mod enqueue;
mod expire;
mod explain;
mod group;
mod params;
mod pool;
mod queue;
mod select;
mod tunables;
mod walk;
mod walk_enqueue;
mod walk_lists;
mod walk_queue;
mod walk_rounds;
mod walk_turns;

use iosched_types::{IoPrio, PrioClass};

use crate::api::{QueueFacts, Scheduler};
use crate::descriptor::{BlockPath, BuildArgs, Descriptor, Facts, Generation, KernelVersion};

/// Descriptor of CFQ.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "cfq",
    aliases: &[],
    summary: "Time slices per process, with idling for the next request of the same process.",
    path: BlockPath::Legacy,
    facts: Facts::USUAL,
    generations: &[
        Generation {
            index: 0,
            name: "2.6.18",
            first: KernelVersion(2, 6, 13),
            last: Some(KernelVersion(2, 6, 21)),
            summary: "Priority walk over lists of queues; every write is asynchronous; rounds of `quantum`.",
        },
        Generation {
            index: 1,
            name: "3.12",
            first: KernelVersion(2, 6, 33),
            last: Some(KernelVersion(4, 7, 0)),
            summary: "Service trees by workload type, slices from the first completion, cooperators, \
                      low_latency, control groups; times in jiffies.",
        },
        Generation {
            index: 2,
            name: "4.12",
            first: KernelVersion(4, 8, 0),
            last: Some(KernelVersion(4, 20, 0)),
            summary: "Times in nanoseconds; slice_idle 0 on SSDs; expired requests bypass the limits; \
                      asynchronous queues per group.",
        },
    ],
    tunables: tunables::TUNABLES,
    build: &build,
};

fn build(args: &BuildArgs<'_>) -> Box<dyn Scheduler> {
    match args.generation {
        0 => Box::new(walk::Walk::new(args)),
        _ => Box::new(core::Cfq::new(args)),
    }
}

/// Scheduling classes in the order in which they are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Rt = 0,
    Be = 1,
    Idle = 2,
}

/// Class and level a request is served with: its own, or best effort derived from the nice value of its
/// process ((nice + 20) / 5) when none was set.
fn effective_prio(prio: IoPrio, task: u32, queue: &QueueFacts) -> (Class, u8) {
    match prio.class {
        PrioClass::Rt => (Class::Rt, prio.level.min(7)),
        PrioClass::Be => (Class::Be, prio.level.min(7)),
        PrioClass::Idle => (Class::Idle, 7),
        PrioClass::None => {
            let nice = queue.tasks.get(task as usize).map_or(0, |t| t.nice);
            (Class::Be, ((i16::from(nice) + 20) / 5).clamp(0, 7) as u8)
        }
    }
}

/// Index of the shared asynchronous queue of a class and level.
fn async_slot(class: Class, level: u8) -> usize {
    match class {
        Class::Rt => usize::from(level),
        Class::Be => 8 + usize::from(level),
        Class::Idle => 16,
    }
}

/// Shared asynchronous queues: eight levels of two classes, and the idle class.
const ASYNC_SLOTS: usize = 17;

/// Index of a queue in its pool.
type Qi = u32;
/// No queue.
const NOQ: Qi = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::TaskInfo;

    #[test]
    fn levels_derive_from_nice_when_nothing_is_set() {
        let mut queue = QueueFacts::default();
        for nice in [-20, -1, 0, 4, 5, 19] {
            queue.tasks.push(TaskInfo { nice, ..TaskInfo::default() });
        }
        let levels: Vec<u8> =
            (0..6).map(|t| effective_prio(IoPrio::default(), t, &queue).1).collect();
        assert_eq!(levels, [0, 3, 4, 4, 5, 7]);
        let rt = IoPrio { class: PrioClass::Rt, level: 2 };
        assert_eq!(effective_prio(rt, 0, &queue), (Class::Rt, 2));
        assert_eq!(effective_prio(IoPrio::default(), 99, &queue), (Class::Be, 4), "unknown task");
    }
}
