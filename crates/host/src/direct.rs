//! Direct I/O: makes bios of a job's I/Os, and goes on with a task that was blocked on one.

use iosched_block::Submit;
use iosched_types::{Bio, DirectSync, Flags, Op, SECTOR, TaskId};
use iosched_workloads::fio::process::Io;

use crate::machine::Machine;
use crate::tasks::State;
use crate::threads::Others;

impl Machine {
    /// The system call returns: deferred work runs.
    #[inline]
    pub(crate) fn end_call(&mut self) {
        self.settle();
        self.queue.next_call();
    }

    /// A piece of a large I/O is submitted: deferred work runs.
    #[inline(always)]
    pub(crate) fn settle(&mut self) {
        // Most of the time there is none: that is seen without a call.
        if self.looks.is_some() || !self.queue.is_settled() {
            self.settle_rest();
        }
    }

    #[inline(never)]
    fn settle_rest(&mut self) {
        self.take_finished();
        if self.in_waiting_calls {
            self.queue.hold_runs();
        }
        self.queue.run_deferred(&mut self.tl);
        self.take_finished();
        if !self.queue.out().done.is_empty() || !self.queue.out().woken.is_empty() {
            self.collect();
        }
    }

    /// Submits an I/O of a job that needs more than the short main loop.
    #[inline(never)]
    pub(crate) fn submit_any(&mut self, t: TaskId, io: Io) -> bool {
        if self.refused(t, io) {
            return true;
        }
        if self.cores.is_some() {
            self.begin_submission(t, io);
            return false;
        }
        self.submit(t, io)
    }

    /// Submits an I/O; `false` when the process fell asleep in it.
    #[inline(always)]
    pub(crate) fn submit(&mut self, t: TaskId, io: Io) -> bool {
        let bio = self.bio_of(t, io);
        match &self.tasks[t as usize].others {
            Others::None if io.stable => self.tasks[t as usize].flushes = self.is_flushed(t),
            Others::None => {}
            Others::Helpers(_) if io.op == Op::Discard => {}
            Others::Helpers(_) => {
                self.hand_over(t, io);
                return true;
            }
            // A discard is a call that waits, of whatever size.
            Others::Pool(_) if io.op == Op::Discard => {}
            Others::Pool(_) if bio.sectors > self.single || io.op == Op::Flush => {
                self.hand_to_worker(t, bio);
                return true;
            }
            Others::Pool(_) => {}
        }
        if io.op == Op::Discard && !self.may_trim(t, bio.id) {
            self.block(t, bio);
            return false;
        }
        self.send(t, bio)
    }

    /// Sends a bio, whole or in pieces; `false` when the process fell asleep in it.
    #[inline(always)]
    fn send(&mut self, t: TaskId, bio: Bio) -> bool {
        if bio.sectors <= self.single {
            self.ios.start(bio.id, 1);
            return self.submit_one(t, &bio);
        }
        self.submit_pieces(t, bio)
    }

    #[inline(always)]
    pub(crate) fn bio_of(&self, t: TaskId, io: Io) -> Bio {
        let task = &self.tasks[t as usize];
        let mut flags = match io.op {
            // Direct writes are synchronous and not throttled.
            Op::Write => Flags(Flags::SYNC.0 | Flags::IDLE.0),
            Op::Flush => Flags(Flags::SYNC.0 | Flags::PREFLUSH.0),
            Op::Read => Flags::NONE,
            // The call waits for the discard.
            Op::Discard => Flags::SYNC,
        };
        if io.stable && !self.is_plain(t) {
            flags = flags.with(Flags::FUA);
        }
        flags = flags.with(task.flags);
        Bio {
            id: task.first_io + io.unit,
            op: io.op,
            flags,
            sector: io.offset / SECTOR,
            sectors: (io.len / SECTOR) as u32,
            task: t,
            thread: t,
            prio: task.prio,
            cgroup: task.cgroup,
            cpu: task.cpu,
        }
    }

    /// Whether a write that is to be durable goes as a plain one. Before 4.10 a flush follows it, which is what a FUA write of an
    /// asynchronous engine comes to where the device knows no FUA.
    #[cold]
    fn is_plain(&self, t: TaskId) -> bool {
        match self.direct_sync {
            DirectSync::Fua => false,
            DirectSync::Flush => self.in_calls(t),
            DirectSync::Cached => true,
        }
    }

    /// Whether its writes are calls that return when they are done: of the process, or of its threads.
    fn in_calls(&self, t: TaskId) -> bool {
        let task = &self.tasks[t as usize];
        task.job.spec().engine.is_sync() || matches!(task.others, Others::Helpers(_))
    }

    /// Whether a flush follows a write in the same call.
    #[cold]
    pub(crate) fn is_flushed(&self, t: TaskId) -> bool {
        self.direct_sync != DirectSync::Cached && self.in_calls(t)
    }

    #[inline(always)]
    fn submit_one(&mut self, t: TaskId, bio: &Bio) -> bool {
        match self.queue.submit(&mut self.tl, bio, false) {
            Submit::Taken => {}
            Submit::Blocked => {
                self.block(t, *bio);
                return false;
            }
            Submit::WouldBlock => {
                self.hand_to_worker(t, *bio);
                return true;
            }
        }
        let task = &mut self.tasks[t as usize];
        task.began = true;
        if !task.batch {
            self.end_call();
        }
        true
    }

    /// A large I/O: its pieces travel under a plug, or one by one.
    fn submit_pieces(&mut self, t: TaskId, bio: Bio) -> bool {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        pieces.extend(self.queue.split(bio));
        self.ios.start(bio.id, pieces.len() as u32);
        let alone = !self.tasks[t as usize].batch;
        let one_by_one = alone && bio.sectors <= self.unplugged;
        if alone && !one_by_one {
            self.queue.start_plug(t);
        }
        for i in 0..pieces.len() {
            if self.queue.submit(&mut self.tl, &pieces[i], false) == Submit::Blocked {
                let task = &mut self.tasks[t as usize];
                task.in_pieces = true;
                task.rest.extend(&pieces[i + 1..]);
                self.block(t, pieces[i]);
                self.pieces = pieces;
                return false;
            }
            if one_by_one {
                self.settle();
            }
        }
        self.pieces = pieces;
        if alone {
            if !one_by_one {
                self.queue.finish_plug(&mut self.tl, t);
            }
            self.end_call();
        }
        true
    }

    #[cold]
    fn block(&mut self, t: TaskId, bio: Bio) {
        let task = &mut self.tasks[t as usize];
        (task.state, task.left) = (State::Blocked, Some(bio));
        self.leave_core(t);
        self.end_call();
    }

    /// Goes on with a blocked submission, or with the flush behind a write; `false` when it blocks again.
    pub(crate) fn resume_submission(&mut self, t: TaskId) -> bool {
        let task = &mut self.tasks[t as usize];
        if task.trims && matches!(task.state, State::Blocked) && self.waits_to_trim(t) {
            if let Some(bio) = self.resume_trim(t) {
                return self.send(t, bio);
            }
            self.leave_core(t);
            self.end_call();
            return false;
        }
        let task = &mut self.tasks[t as usize];
        let mut resumed = match task.state {
            State::Blocked => true,
            State::Written => false,
            _ => return true,
        };
        task.state = State::Ready;
        while let Some(bio) = self.tasks[t as usize].left {
            match self.queue.submit(&mut self.tl, &bio, resumed) {
                Submit::Taken => {}
                Submit::Blocked => {
                    self.tasks[t as usize].state = State::Blocked;
                    self.leave_core(t);
                    self.end_call();
                    return false;
                }
                Submit::WouldBlock => self.hand_to_worker(t, bio),
            }
            resumed = false;
            let task = &mut self.tasks[t as usize];
            if task.in_pieces && !task.batch && !self.queue.has_plug(t) {
                self.settle();
            }
            let task = &mut self.tasks[t as usize];
            task.left = if task.in_pieces { task.rest.pop_front() } else { None };
        }
        let task = &mut self.tasks[t as usize];
        let in_pieces = std::mem::take(&mut task.in_pieces);
        if !task.batch {
            if in_pieces {
                self.queue.finish_plug(&mut self.tl, t);
            }
            self.end_call();
        }
        true
    }
}
