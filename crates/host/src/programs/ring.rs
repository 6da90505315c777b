//! io_uring through the page cache: what would sleep in the call is done elsewhere.
//!
//! A read that misses starts its read-ahead under the caller's own I/O context, and goes on without it. A write is done by a
//! worker with a context of its own. Writes of one file come one after another, those of a device together.

use std::collections::{BTreeMap, VecDeque};

use iosched_syscalls::{Completion, Errno, Io, OpenFlags, Program, Script};

use super::Programs;
use super::mounted::{After, durable};
use super::paths::actor_of;
use super::task::{State, Task, Tid};
use crate::cpu::Seat;
use crate::fs::{Direct, Ino, Part, Path};

/// Threads that work for rings.
#[derive(Default)]
pub(super) struct Workers {
    idle: Vec<Tid>,
    /// All of them, each with its own I/O context once it has one.
    all: BTreeMap<Tid, Option<u32>>,
    /// Files that are being written, and writes that wait for their turn.
    writes: BTreeMap<Ino, VecDeque<Waiting>>,
    /// What each of them writes.
    busy: BTreeMap<Tid, Ino>,
}

/// A write that waits behind another one of its file, with the worker that its path was made for.
struct Waiting {
    worker: Tid,
    owner: Tid,
    tag: u32,
    path: Path,
}

impl Programs {
    /// Starts an I/O. It never sleeps in the call, if it is buffered.
    pub(super) fn ring_mounted(&mut self, t: Tid, io: Io) -> Result<bool, Errno> {
        let (ino, file) = self.ino(t, io.fd)?;
        let flags = self.files[file as usize].flags;
        if flags.has(OpenFlags::DIRECT) {
            return self.submit_mounted(t, io);
        }
        if io.write && !flags.writes() || !io.write && !flags.reads() {
            return Err(Errno::EBADF);
        }
        let at = match io.write && flags.has(OpenFlags::APPEND) {
            true => self.fs.names().stat(ino).bytes,
            false => io.at,
        };
        let part = Part { ino, at, len: u64::from(io.len) };
        self.note_found(t, part, !io.write);
        if self.served_at_once(t, file, part, io) {
            return Ok(self.said(t, 0));
        }
        let worker = self.worker(t, io.write);
        let a = actor_of(worker);
        let state = self.open_file(file, ino);
        let Some(mount) = self.fs.mount() else { return Err(Errno::ENOSYS) };
        let path = match io.write {
            true => mount.write(a, state, part, durable(flags)),
            false => mount.read(a, state, part, self.opens.clone(), file),
        };
        let in_turn = io.write && !mount.is_device();
        self.async_begins(t);
        let waiting = Waiting { worker, owner: t, tag: io.tag, path };
        if in_turn {
            if let Some(queue) = self.workers.writes.get_mut(&ino) {
                self.workers.busy.insert(worker, ino);
                queue.push_back(waiting);
                return Ok(self.said(t, 0));
            }
            self.workers.writes.insert(ino, VecDeque::new());
            self.workers.busy.insert(worker, ino);
        }
        self.set_to_work(waiting);
        Ok(self.said(t, 0))
    }

    /// The bios of an asynchronous direct write are done. A worker of its own makes it durable.
    pub(super) fn end_by_worker(&mut self, owner: Tid, tag: u32, what: Direct) {
        let worker = self.worker(owner, true);
        let Some(mount) = self.fs.mount() else { return };
        let path = mount.end_direct(actor_of(worker), what);
        self.set_to_work(Waiting { worker, owner, tag, path });
    }

    /// Whether memory answers it, or the call itself may write. Then it is done.
    fn served_at_once(&mut self, t: Tid, file: u32, part: Part, io: Io) -> bool {
        let Some(mount) = self.fs.mount() else { return false };
        if io.write {
            return false;
        }
        let mut opens = self.opens.borrow_mut();
        let state = &mut opens[file as usize];
        state.size = mount.len(part.ino);
        let Some(n) = mount.read_cached(state, part) else { return false };
        drop(opens);
        self.tasks[t as usize].done.push(Completion { tag: io.tag, answer: Ok(n) });
        true
    }

    /// A worker for an I/O of a task.
    fn worker(&mut self, owner: Tid, writes: bool) -> Tid {
        let w = self.workers.idle.pop().unwrap_or_else(|| self.new_worker(owner));
        let own = self.workers.all.get(&w).copied().flatten();
        let context = if writes { own } else { Some(self.context(owner)) };
        self.tasks[w as usize].context = context;
        if writes && own.is_none() {
            let context = self.context(w);
            self.workers.all.insert(w, Some(context));
        }
        w
    }

    fn new_worker(&mut self, owner: Tid) -> Tid {
        let w = self.tasks.len() as Tid;
        let (table, cpu) = (self.tasks[owner as usize].table, self.tasks[owner as usize].cpu);
        let nothing: Box<dyn Program> = Box::new(Script::new(async |_| Ok(())));
        let mut task = Task::new(nothing, table, None, cpu);
        (task.program, task.state) = (None, State::Ended);
        self.tasks.push(task);
        let identity = self.identities.get(owner as usize).cloned().unwrap_or_default();
        let (allowed, nice) = (identity.cpus.clone(), identity.info.nice);
        if !self.identities.is_empty() {
            self.identities.resize(w as usize, super::Identity::default());
            self.identities.push(identity);
        }
        if let Some(cores) = &mut self.cores {
            cores.add_task(Seat { core: cpu, allowed, nice });
        }
        self.workers.all.insert(w, None);
        w
    }

    fn set_to_work(&mut self, work: Waiting) {
        let w = work.worker;
        self.tasks[w as usize].after = After::Ring(work.owner, work.tag);
        self.put_on_path(w, work.path);
        self.wake(w);
    }

    /// A worker's I/O is done.
    pub(super) fn worker_ends(&mut self, w: Tid, owner: Tid, completion: Completion) {
        let ino = self.workers.busy.remove(&w);
        self.sleep(w, State::Ended);
        self.workers.idle.push(w);
        self.async_ends(owner, completion);
        let Some(ino) = ino else { return };
        let Some(queue) = self.workers.writes.get_mut(&ino) else { return };
        match queue.pop_front() {
            Some(next) => self.set_to_work(next),
            None => _ = self.workers.writes.remove(&ino),
        }
    }

    /// A worker that reads for the owner of an I/O context, and sleeps for room in the queue.
    pub(super) fn worker_blocked_on(&self, context: u32) -> Option<Tid> {
        let blocked =
            |w: &&Tid| self.tasks[**w as usize].context == Some(context) && self.is_blocked(**w);
        self.workers.all.keys().find(blocked).copied()
    }
}
