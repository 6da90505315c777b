//! What a run of programs came to.

use std::collections::{BTreeMap, BTreeSet};

use iosched_syscalls::{Errno, Part};
use iosched_types::{Bytes, CpuTime, LatencyHistogram, Nanos, TaskId};

use crate::fs::Counts;

use super::amounts::Amounts;
use super::task::TaskStats;

/// One kind of operation of a benchmark.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// Latencies, in nanoseconds.
    pub latency: LatencyHistogram,
    /// What they moved.
    pub bytes: Bytes,
    /// How many ended when.
    pub ended: Amounts,
    /// What they moved when.
    pub moved: Amounts,
}

/// A part of a run, from its beginning on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its name.
    pub what: &'static str,
    /// What kind of part.
    pub part: Part,
    /// When it began, in nanoseconds.
    pub began: Nanos,
    /// And ended.
    pub ended: Nanos,
}

/// Parts of a run that are kept one by one.
const MARKS: usize = 512;

/// Tasks whose statistics are kept one by one; those of later ones are added up.
const KEPT: usize = 256;

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// From the start to the end of the last task and of its own asynchronous I/O, in nanoseconds.
    pub elapsed: Nanos,
    /// Core time of the kernel's threads in that time: they write back, commit, and send what a task left to them.
    pub threads_cpu: CpuTime,
    /// Operations, by name.
    pub operations: BTreeMap<&'static str, Operation>,
    /// Figures of the program's own, in order.
    pub figures: Vec<(&'static str, f64)>,
    /// Those of them that are limits at which the program gave up.
    pub beyond: BTreeSet<&'static str>,
    /// Parts of the run that are no events, in the order in which they ended; the first 512.
    pub marks: Vec<Mark>,
    /// Events, by name.
    pub events: BTreeMap<&'static str, Amounts>,
    /// Tasks, by number; from some number on all in one.
    pub tasks: BTreeMap<TaskId, TaskStats>,
    /// How many tasks there were.
    pub count: u64,
    /// Calls that entered the kernel, of all tasks.
    pub calls: u64,
    /// Dirty bytes when the run began.
    pub before: Counts,
    /// And when it ended.
    pub after: Counts,
    /// The first failure of a task: which, why, in which call.
    pub failed: Option<(TaskId, Errno, &'static str)>,
}

impl Measured {
    /// A figure of the program's own.
    pub fn figure(&mut self, name: &'static str, value: f64, beyond: bool) {
        self.figures.push((name, value));
        if beyond {
            self.beyond.insert(name);
        }
    }

    /// An operation is done. Times are those since the run began.
    pub fn note(&mut self, what: &'static str, since: Nanos, now: Nanos, bytes: Bytes) {
        let op = self.operations.entry(what).or_default();
        op.latency.record(now.saturating_sub(since));
        op.bytes += bytes;
        op.ended.add(now, 1);
        if bytes > 0 {
            op.moved.add(now, bytes);
        }
    }

    /// A part of the run is over. Times are those since the run began.
    pub fn mark(&mut self, what: &'static str, part: Part, since: Nanos, now: Nanos) {
        if part == Part::Event {
            self.events.entry(what).or_default().add(now, 1);
        } else if self.marks.len() < MARKS {
            self.marks.push(Mark { what, part, began: since, ended: now });
        }
    }

    /// A task has ended: its figures go to the others'.
    pub fn end_of(&mut self, task: TaskId, stats: TaskStats) {
        self.count += 1;
        self.calls += stats.calls;
        let key = (task as usize).min(KEPT) as TaskId;
        match self.tasks.entry(key) {
            std::collections::btree_map::Entry::Vacant(v) => {
                v.insert(stats);
            }
            std::collections::btree_map::Entry::Occupied(mut o) => add(o.get_mut(), &stats),
        }
    }
}

fn add(all: &mut TaskStats, one: &TaskStats) {
    all.calls += one.calls;
    for (a, o) in
        [(&mut all.read, &one.read), (&mut all.write, &one.write), (&mut all.sync, &one.sync)]
    {
        a.0 += o.0;
        a.1 += o.1;
        a.2.merge(&o.2);
    }
    all.began = all.began.min(one.began);
    all.ended = all.ended.max(one.ended);
    all.cpu.add(&one.cpu);
}
