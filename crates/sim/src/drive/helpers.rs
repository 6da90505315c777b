//! Threads that do the I/O of a process: glibc's for POSIX AIO.
//!
//! A thread serves one open file and does its requests one after the other; so the queue sees one I/O of a file at a
//! time, whatever the depth. When one is done the thread goes on with the next before the process has looked.

use std::collections::VecDeque;
use std::ops::Range;

use iosched_block::Submit;
use iosched_types::{Bio, Fifo, TaskId};
use iosched_workloads::fio::IoEngine;
use iosched_workloads::fio::process::{Io, Process};

use super::Drive;

/// In the list of those who are ready, the threads are numbered from here.
const FIRST: TaskId = 1 << 31;

/// The thread with this number, if it is one.
#[inline(always)]
pub(super) fn helper_of(t: TaskId) -> Option<u32> {
    t.checked_sub(FIRST)
}

/// One thread.
#[derive(Debug)]
pub(super) struct Helper {
    task: TaskId,
    /// What it has to do yet.
    requests: VecDeque<Io>,
    /// The unit whose I/O it waits for, or is about to begin.
    busy: Option<u32>,
    /// It was told to begin; the I/O is the first of the requests.
    beginning: bool,
    /// The bio it is blocked on, and those after it.
    left: VecDeque<Bio>,
    /// A large I/O goes under a plug.
    plugged: bool,
}

impl Helper {
    /// Adds the threads of a process to `all`: one for each of its files, where it needs any.
    pub(super) fn of(task: TaskId, process: &Process, all: &mut Vec<Helper>) -> Range<u32> {
        let first = all.len() as u32;
        if process.job().engine == IoEngine::Posixaio {
            all.extend(process.files().iter().map(|_| Helper {
                task,
                requests: VecDeque::with_capacity(process.units() as usize),
                busy: None,
                beginning: false,
                left: VecDeque::new(),
                plugged: false,
            }));
        }
        first..all.len() as u32
    }
}

/// The I/O of a unit is done: its thread goes on.
pub(super) fn done(all: &mut [Helper], own: Range<u32>, unit: u32, ready: &mut Fifo<TaskId>) {
    for h in own {
        let helper = &mut all[h as usize];
        if helper.busy == Some(unit) {
            helper.busy = None;
            if !helper.requests.is_empty() {
                helper.beginning = true;
                ready.push_back(FIRST + h);
            }
        }
    }
}

/// A thread that slept for a request or a tag may try again.
pub(super) fn woken(all: &[Helper], own: Range<u32>, ready: &mut Fifo<TaskId>) {
    for h in own {
        if !all[h as usize].left.is_empty() {
            ready.push_back(FIRST + h);
        }
    }
}

impl Drive {
    /// A process gives an I/O to the thread of its file.
    pub(super) fn hand_over(&mut self, t: TaskId, io: Io) {
        let task = &self.tasks[t as usize];
        let inside = |f: &iosched_workloads::fio::layout::Extent| {
            (f.start..f.start + f.len.max(1)).contains(&io.offset)
        };
        let file = task.process.files().iter().position(inside).unwrap_or(0) as u32;
        let h = task.helpers.start + file;
        let helper = &mut self.helpers[h as usize];
        helper.requests.push_back(io);
        if helper.busy.is_none() && !helper.beginning {
            helper.beginning = true;
            self.ready.push_back(FIRST + h);
        }
    }

    /// A thread begins its next I/O, or goes on with a blocked one.
    pub(super) fn run_helper(&mut self, h: u32) {
        let helper = &mut self.helpers[h as usize];
        let t = helper.task;
        let mut resumed = !helper.left.is_empty();
        if !resumed {
            helper.beginning = false;
            let Some(io) = helper.requests.pop_front() else { return };
            helper.busy = Some(io.unit);
            self.begin(h, t, io);
        }
        while let Some(bio) = self.helpers[h as usize].left.front().copied() {
            if self.queue.submit(&mut self.tl, &bio, resumed) == Submit::Blocked {
                self.end_call();
                return;
            }
            resumed = false;
            self.helpers[h as usize].left.pop_front();
        }
        if std::mem::take(&mut self.helpers[h as usize].plugged) {
            self.queue.finish_plug(&mut self.tl, t);
        }
        self.end_call();
    }

    fn begin(&mut self, h: u32, t: TaskId, io: Io) {
        let bio = self.bio_of(t, io);
        let helper = &mut self.helpers[h as usize];
        if bio.sectors <= self.single {
            helper.left.push_back(bio);
        } else {
            helper.left.extend(self.queue.split(bio));
            helper.plugged = true;
            self.queue.start_plug(t);
        }
        self.ios.start(bio.id, helper.left.len() as u32);
    }
}
