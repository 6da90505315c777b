//! What a run of programs came to.

use std::collections::{BTreeMap, BTreeSet};

use iosched_syscalls::Errno;
use iosched_types::{Bytes, LatencyHistogram, Nanos, TaskId};

use crate::fs::Counts;

use super::task::TaskStats;

/// One kind of operation of a benchmark.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// Latencies, in nanoseconds.
    pub latency: LatencyHistogram,
    /// What they moved.
    pub bytes: Bytes,
}

/// Tasks whose statistics are kept one by one; those of later ones are added up.
const KEPT: usize = 256;

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// From the start to the end of the last task, in nanoseconds.
    pub elapsed: Nanos,
    /// Operations, by name.
    pub operations: BTreeMap<&'static str, Operation>,
    /// Figures of the program's own, in order.
    pub figures: Vec<(&'static str, f64)>,
    /// Those of them that are limits at which the program gave up.
    pub beyond: BTreeSet<&'static str>,
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

    /// An operation is done.
    pub fn note(&mut self, what: &'static str, latency: Nanos, bytes: Bytes) {
        let op = self.operations.entry(what).or_default();
        op.latency.record(latency);
        op.bytes += bytes;
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
