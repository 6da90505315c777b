//! Figures by task.

use std::collections::BTreeMap;

use iosched_types::{Bytes, LatencyHistogram, Op};

use crate::event::Io;
use crate::names::Name;

/// Tasks with figures of their own; the others share the last.
const MOST: usize = 512;

/// A task: a command's name and a pid.
pub(super) type Key = (Name, u32);

#[derive(Debug, Default)]
pub(super) struct OfTask {
    pub(super) ios: u64,
    pub(super) read: Bytes,
    pub(super) written: Bytes,
    pub(super) latency: LatencyHistogram,
    /// I/Os that begin where its last one ended.
    pub(super) follows: u64,
    /// I/Os with a place.
    pub(super) placed: u64,
    end: Option<Bytes>,
}

#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) each: BTreeMap<Key, OfTask>,
    pub(super) others: OfTask,
}

impl Tasks {
    pub(super) fn add(&mut self, io: &Io) {
        let key = (io.task, io.pid);
        let full = self.each.len() >= MOST;
        let task = match self.each.get_mut(&key) {
            Some(task) => task,
            None if full => &mut self.others,
            None => self.each.entry(key).or_default(),
        };
        task.ios += 1;
        match io.op {
            Op::Read => task.read += io.len,
            Op::Write => task.written += io.len,
            Op::Discard | Op::Flush => {}
        }
        if let Some(latency) = io.latency() {
            task.latency.record(latency);
        }
        if io.op != Op::Flush {
            task.placed += 1;
            let follows = task.end.replace(io.offset + io.len) == Some(io.offset);
            task.follows += u64::from(follows);
        }
    }
}
