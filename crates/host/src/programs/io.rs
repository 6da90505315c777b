//! From a call's sectors to bios, and back to the task that sleeps for them.

use iosched_block::Submit;
use iosched_schedulers::TaskInfo;
use iosched_types::request::NO_BIO;
use iosched_types::{Bio, BioId, Bytes, Flags, IoPrio, Op};

use crate::cpu::Piece;
use crate::fs::{Ino, Segment};

use super::Programs;
use super::paths::{actor_of, is_thread, seat_of};
use super::task::{State, Tid};

/// Whose a bio is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    /// A call of a task.
    Call(Tid),
    /// An asynchronous I/O.
    Async(u32),
    /// A path, by the number of its bio.
    Path(u32),
    Free,
}

impl Programs {
    /// The I/O context by which schedulers know a task.
    pub(super) fn context(&mut self, t: Tid) -> u32 {
        if let Some(c) = self.tasks[t as usize].context {
            return c;
        }
        let c = match self.free_contexts.pop().filter(|_| self.identities.is_empty()) {
            Some(free) => free,
            None => self.queue.task_started(self.info_of(t)),
        };
        self.tasks[t as usize].context = Some(c);
        if self.contexts.len() <= c as usize {
            self.contexts.resize(c as usize + 1, 0);
        }
        self.contexts[c as usize] = t;
        c
    }

    /// What a scheduler is told of a task.
    fn info_of(&self, t: Tid) -> TaskInfo {
        let named = self.identities.get(t as usize).map(|i| i.info.clone());
        TaskInfo { pid: t, ..named.unwrap_or_default() }
    }

    pub(super) fn owner(&mut self, owner: Owner) -> BioId {
        match self.free_owners.pop() {
            Some(i) => {
                self.owners[i as usize] = owner;
                i
            }
            None => {
                self.owners.push(owner);
                self.owners.len() as BioId - 1
            }
        }
    }

    pub(super) fn bio(&mut self, t: Tid, op: Op, flags: Flags) -> Bio {
        let task = self.context(t);
        let (prio, cgroup) = match self.identities.get(t as usize) {
            Some(i) => (self.queue.prio_of_bios(i.info.prio, i.info.nice), i.info.cgroup),
            None => (self.queue.prio_of_bios(IoPrio::default(), 0), 0),
        };
        Bio {
            id: 0,
            op,
            flags,
            sector: 0,
            sectors: 0,
            task,
            thread: task,
            prio,
            cgroup,
            cpu: self.tasks[t as usize].cpu,
        }
    }

    /// A call needs these sectors, then perhaps a flush, then answers; `true` when nothing is to be done.
    pub(super) fn work(&mut self, t: Tid, answer: u64, direct: bool) -> bool {
        let instant = self.instant;
        self.add_all(t, direct);
        let work = &mut self.tasks[t as usize].work;
        work.answer = answer;
        if instant {
            (work.flush, work.wait) = (false, None);
            work.writes.clear();
        }
        if work.left.is_empty() && work.wait.is_none() && !work.flush {
            self.tasks[t as usize].answer = Ok(answer);
            return true;
        }
        for i in 0..self.tasks[t as usize].work.writes.len() {
            let ino = self.tasks[t as usize].work.writes[i];
            self.under_way.entry(ino).or_default().0 += 1;
        }
        self.tasks[t as usize].work.busy = true;
        self.go_on(t)
    }

    /// The bios of all sectors that a call needs; none while nothing takes time.
    pub(super) fn add_all(&mut self, t: Tid, direct: bool) {
        let mut segments = std::mem::take(&mut self.segments);
        for s in segments.drain(..).filter(|s| s.sectors > 0) {
            if !self.instant {
                self.add_bios(t, s, direct);
            }
        }
        self.segments = segments;
    }

    fn add_bios(&mut self, t: Tid, s: Segment, direct: bool) {
        let (op, flags) = match (s.write, direct) {
            (false, _) => (Op::Read, Flags::NONE),
            (true, true) => (Op::Write, Flags(Flags::SYNC.0 | Flags::IDLE.0)),
            (true, false) => (Op::Write, Flags::SYNC),
        };
        let mut bio = self.bio(t, op, flags);
        let (mut sector, mut left) = (s.sector, s.sectors);
        while left > 0 {
            // What fits into a bio's length; the queue's limits cut further.
            let n = left.min(1 << 20);
            (bio.sector, bio.sectors) = (sector, n as u32);
            self.tasks[t as usize].work.left.extend(self.queue.split(bio));
            sector += n;
            left -= n;
        }
    }

    /// Goes on with a call's work; `true` when it is done, `false` when the task sleeps.
    pub(super) fn go_on(&mut self, t: Tid) -> bool {
        loop {
            if !self.submit_left(t) {
                return false;
            }
            let work = &mut self.tasks[t as usize].work;
            if work.pending > 0 {
                if let Some(c) = self.tasks[t as usize].context {
                    self.queue.task_sleeps(&mut self.tl, c);
                }
                self.sleep(t, State::Io);
                self.end_call();
                return false;
            }
            self.written(t);
            let work = &mut self.tasks[t as usize].work;
            if let Some(ino) = work.wait.take()
                && let Some((n, waiting)) = self.under_way.get_mut(&ino)
                && *n > 0
            {
                waiting.push_back(t);
                self.tasks[t as usize].work.wait = Some(ino);
                self.sleep(t, State::UnderWay);
                return false;
            }
            let work = &mut self.tasks[t as usize].work;
            if std::mem::take(&mut work.flush) {
                let bio = self.bio(t, Op::Flush, Flags(Flags::SYNC.0 | Flags::PREFLUSH.0));
                self.tasks[t as usize].work.left.push_back(bio);
                continue;
            }
            let task = &mut self.tasks[t as usize];
            task.answer = Ok(task.work.answer);
            task.work.busy = false;
            return true;
        }
    }

    /// Submits the bios of a call, under a plug when there are several; `false` when the task sleeps for room.
    fn submit_left(&mut self, t: Tid) -> bool {
        if self.tasks[t as usize].work.left.is_empty() {
            return true;
        }
        let context = self.context(t);
        if self.tasks[t as usize].work.left.len() > 1 && !self.tasks[t as usize].work.plugged {
            self.queue.start_plug(context);
            self.tasks[t as usize].work.plugged = true;
        }
        while !self.pays(t, self.tasks[t as usize].work.is_new())
            && let Some(mut bio) = self.tasks[t as usize].work.left.pop_front()
        {
            let resumed = std::mem::take(&mut self.tasks[t as usize].work.resumed);
            if !resumed {
                let owner = self.owner_of(t);
                bio.id = self.owner(owner);
                let work = &mut self.tasks[t as usize].work;
                work.pending += u32::from(work.async_of.is_none());
            }
            if self.queue.submit(&mut self.tl, &bio, resumed) == Submit::Taken {
                continue;
            }
            let work = &mut self.tasks[t as usize].work;
            work.left.push_front(bio);
            work.resumed = true;
            self.sleep(t, State::Blocked);
            self.end_call();
            return false;
        }
        if !self.tasks[t as usize].work.left.is_empty() {
            return false;
        }
        if std::mem::take(&mut self.tasks[t as usize].work.plugged) {
            self.queue.finish_plug(&mut self.tl, context);
        }
        self.tasks[t as usize].work.async_of = None;
        self.queue.run_deferred(&mut self.tl);
        true
    }

    /// A bio takes core time before the queue sees it: the way to the device, and the scheduler's lock. Whether the core
    /// is busy with that from now on, or given away before.
    pub(super) fn pays(&mut self, t: Tid, is_new: bool) -> bool {
        let Some(cores) = &mut self.cores else { return false };
        let paid = match is_thread(t) {
            true => &mut self.actors[actor_of(t) as usize].paid,
            false => &mut self.tasks[t as usize].work.paid,
        };
        if !is_new || std::mem::take(paid) {
            return false;
        }
        cores.begin(self.tl.now, seat_of(t), Piece::Bio, 0);
        true
    }

    /// What a call wrote is on the disk: who waits for that of a file goes on.
    fn written(&mut self, t: Tid) {
        let mut writes = std::mem::take(&mut self.tasks[t as usize].work.writes);
        for ino in writes.drain(..) {
            let Some((n, waiting)) = self.under_way.get_mut(&ino) else { continue };
            *n -= 1;
            if *n > 0 {
                continue;
            }
            let waiting = std::mem::take(waiting);
            self.under_way.remove(&ino);
            for other in waiting {
                self.wake(other);
            }
        }
        self.tasks[t as usize].work.writes = writes;
    }

    /// The system call returns: deferred work runs.
    pub(super) fn end_call(&mut self) {
        self.queue.run_deferred(&mut self.tl);
        self.queue.next_call();
    }

    /// Books what the queue has finished, and wakes.
    pub(super) fn collect(&mut self) {
        self.queue.roll_tape(self.dispatches.is_some());
        if let (Some(list), Some(thin)) = (&mut self.queue.out_mut().issues, &mut self.dispatches) {
            list.drain(..).for_each(|i| thin.push(i));
        }
        for i in 0..self.queue.out().done.len() {
            let id = self.queue.out().done[i].bio;
            if self.beside.bio_done(id, self.tl.now) {
                continue;
            }
            let owner = std::mem::replace(&mut self.owners[id as usize], Owner::Free);
            self.free_owners.push(id);
            match owner {
                Owner::Call(t) => {
                    let work = &mut self.tasks[t as usize].work;
                    work.pending -= 1;
                    let wakes = work.pending == 0 && self.tasks[t as usize].state == State::Io;
                    if wakes {
                        self.tasks[t as usize].state = State::Ready;
                    }
                    match &mut self.cores {
                        Some(cores) => cores.completion(self.tl.now, seat_of(t), NO_BIO, wakes),
                        None if wakes => self.ready.push_back(t),
                        None => {}
                    }
                }
                Owner::Async(a) => self.async_done(a),
                Owner::Path(id) => self.path_bio_done(id),
                Owner::Free => {}
            }
        }
        self.queue.out_mut().done.clear();
        self.wake_from_world();
        for i in 0..self.queue.out().woken.len() {
            self.woken(self.queue.out().woken[i]);
        }
        self.queue.out_mut().woken.clear();
        self.queue.out_mut().woken_behind.clear();
        self.log_ends();
    }

    /// A task that slept for room in the queue may try again.
    fn woken(&mut self, context: u32) {
        if self.beside.has_room(context) {
            return;
        }
        let Some(t) = self.contexts.get(context as usize).copied() else { return };
        if self.path_has_room(t) {
            return;
        }
        if let Some(w) = self.worker_blocked_on(context) {
            self.path_has_room(w);
            return;
        }
        if self.tasks[t as usize].state == State::Blocked {
            self.wake(t);
        }
    }

    /// Writes dirty pages of a range back, waits for what others write of the file, and perhaps flushes.
    pub(super) fn sync_file(
        &mut self,
        t: Tid,
        ino: Ino,
        at: Bytes,
        len: Bytes,
        flush: bool,
    ) -> bool {
        let mut io = std::mem::take(&mut self.segments);
        let taken = self.fs.at_once().and_then(|fs| fs.take_dirty(ino, at, len, &mut io));
        let work = &mut self.tasks[t as usize].work;
        if !io.is_empty() {
            work.writes.push(ino);
        }
        (work.wait, work.flush) = (Some(ino), flush);
        self.segments = io;
        if let Err(e) = taken {
            self.segments.clear();
            self.tasks[t as usize].work = Default::default();
            self.tasks[t as usize].answer = Err(e);
            return true;
        }
        self.work(t, 0, false)
    }

    /// Writes everything back and flushes.
    pub(super) fn sync_all(&mut self, t: Tid) -> bool {
        let mut io = std::mem::take(&mut self.segments);
        let dirty = self.fs.at_once().map(|fs| fs.dirty_files()).unwrap_or_default();
        for ino in dirty {
            // A disk that is full keeps the rest dirty.
            let _ = self.fs.at_once().and_then(|fs| fs.take_dirty(ino, 0, u64::MAX, &mut io));
            self.tasks[t as usize].work.writes.push(ino);
        }
        self.segments = io;
        self.tasks[t as usize].work.flush = true;
        self.work(t, 0, false)
    }
}
