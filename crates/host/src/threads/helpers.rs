//! The threads of glibc that do the I/O of POSIX AIO.
//!
//! A thread serves one open file and does its requests one after the other. So the queue sees one I/O of a file at a
//! time, whatever the depth. When one is done, the thread goes on with the next before the process has looked.

use std::collections::VecDeque;
use std::ops::Range;

use iosched_types::TaskId;
use iosched_workloads::fio::process::Io;

use crate::machine::Machine;

use super::{Left, Others, Role, Threads, Waker};

/// The thread of one file.
#[derive(Debug)]
pub(crate) struct Helper {
    /// What it has to do yet.
    requests: VecDeque<Io>,
    /// The unit of the I/O that the thread waits for, or is about to begin.
    busy: Option<u32>,
    /// It was never told to begin, so the C library makes it.
    new: bool,
    /// The thread was told to begin. The I/O is the first of its requests.
    beginning: bool,
    /// A flush follows the write under way.
    flushes: bool,
}

impl Helper {
    pub(crate) fn with_room_for(units: u32) -> Self {
        let requests = VecDeque::with_capacity(units as usize);
        Helper { requests, busy: None, new: true, beginning: false, flushes: false }
    }
}

impl Threads {
    fn helper(&mut self, h: u32) -> Option<&mut Helper> {
        match &mut self.all[h as usize].role {
            Role::Helper(helper) => Some(helper),
            Role::Worker(_) => None,
        }
    }

    /// The I/O of a unit is done, so its thread goes on. Returns whether it goes on with a flush of the same unit.
    pub(crate) fn helper_done(
        &mut self,
        own: Range<u32>,
        unit: u32,
        waker: &mut Waker<'_>,
    ) -> bool {
        for h in own {
            let number = self.all[h as usize].number;
            let Some(helper) = self.helper(h) else { continue };
            if helper.busy == Some(unit) {
                helper.busy = None;
                let flushes = std::mem::take(&mut helper.flushes);
                if flushes {
                    helper.requests.push_front(Io::flush(unit));
                }
                if !helper.requests.is_empty() {
                    helper.beginning = true;
                    waker.wake(number);
                }
                return flushes;
            }
        }
        false
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
            if std::mem::take(&mut helper.new) {
                self.start_thread(number);
            } else {
                self.wake_thread(number);
            }
        }
    }

    /// A thread begins its next I/O, or goes on with a blocked one.
    pub(crate) fn run_helper(&mut self, h: u32) {
        loop {
            let thread = &mut self.threads.all[h as usize];
            let resumed = !std::mem::replace(&mut thread.running, true) && !thread.left.is_empty();
            if thread.left.is_empty() {
                self.begin_request(h);
            }
            match self.submit_left(h, resumed) {
                Left::Working => return,
                Left::Asleep => break,
                Left::Nothing => {}
            }
            // An I/O that took no time is done already, and its thread was awake when it was to be woken.
            let goes_on = self.threads.helper(h).is_some_and(|helper| helper.beginning);
            if self.cores.is_none() || !goes_on {
                self.leave_core(self.threads.all[h as usize].number);
                break;
            }
        }
        self.threads.all[h as usize].running = false;
    }

    /// A thread takes the next request of its file.
    fn begin_request(&mut self, h: u32) {
        let t = self.threads.all[h as usize].task;
        let flushed = self.is_flushed(t);
        let Some(helper) = self.threads.helper(h) else { return };
        helper.beginning = false;
        let Some(io) = helper.requests.pop_front() else { return };
        helper.busy = Some(io.unit);
        helper.flushes = io.stable && flushed;
        let bio = self.bio_of(t, io);
        self.take_up(h, bio);
        self.ios.start(bio.id, self.threads.all[h as usize].left.len() as u32);
    }
}
