//! The threads of glibc that do the I/O of POSIX AIO.
//!
//! A thread serves one open file and does its requests one after the other. So the queue sees one I/O of a file at a
//! time, whatever the depth. When one is done, the thread goes on with the next before the process has looked.

use std::collections::VecDeque;
use std::ops::Range;

use iosched_types::{Fifo, TaskId};
use iosched_workloads::fio::process::Io;

use crate::machine::Machine;

use super::{Others, Role, Threads};

/// The thread of one file.
#[derive(Debug)]
pub(crate) struct Helper {
    /// What it has to do yet.
    requests: VecDeque<Io>,
    /// The unit of the I/O that the thread waits for, or is about to begin.
    busy: Option<u32>,
    /// The thread was told to begin. The I/O is the first of its requests.
    beginning: bool,
}

impl Helper {
    pub(crate) fn with_room_for(units: u32) -> Self {
        let requests = VecDeque::with_capacity(units as usize);
        Helper { requests, busy: None, beginning: false }
    }
}

impl Threads {
    fn helper(&mut self, h: u32) -> Option<&mut Helper> {
        match &mut self.all[h as usize].role {
            Role::Helper(helper) => Some(helper),
            Role::Worker(_) => None,
        }
    }

    /// The I/O of a unit is done, so its thread goes on.
    pub(crate) fn helper_done(&mut self, own: Range<u32>, unit: u32, ready: &mut Fifo<TaskId>) {
        for h in own {
            let number = self.all[h as usize].number;
            let Some(helper) = self.helper(h) else { continue };
            if helper.busy == Some(unit) {
                helper.busy = None;
                if !helper.requests.is_empty() {
                    helper.beginning = true;
                    ready.push_back(number);
                }
            }
        }
    }
}

impl Machine {
    /// A process gives an I/O to the thread of its file.
    pub(crate) fn hand_over(&mut self, t: TaskId, io: Io) {
        let task = &self.tasks[t as usize];
        let Others::Helpers(own) = &task.others else { return };
        let inside = |f: &iosched_workloads::fio::layout::Extent| {
            (f.start..f.start + f.len.max(1)).contains(&io.offset)
        };
        let file = task.job.files().iter().position(inside).unwrap_or(0) as u32;
        let h = own.start + file;
        let number = self.threads.all[h as usize].number;
        let Some(helper) = self.threads.helper(h) else { return };
        helper.requests.push_back(io);
        if helper.busy.is_none() && !helper.beginning {
            helper.beginning = true;
            self.ready.push_back(number);
        }
    }

    /// A thread begins its next I/O, or goes on with a blocked one.
    pub(crate) fn run_helper(&mut self, h: u32) {
        let resumed = !self.threads.all[h as usize].left.is_empty();
        if !resumed {
            let t = self.threads.all[h as usize].task;
            let Some(helper) = self.threads.helper(h) else { return };
            helper.beginning = false;
            let Some(io) = helper.requests.pop_front() else { return };
            helper.busy = Some(io.unit);
            let bio = self.bio_of(t, io);
            self.take_up(h, bio);
            self.ios.start(bio.id, self.threads.all[h as usize].left.len() as u32);
        }
        self.submit_left(h, resumed);
    }
}
