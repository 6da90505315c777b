//! Asynchronous I/O: submitted by one call, taken by another.

use std::cell::RefCell;
use std::rc::Rc;

use iosched_syscalls::{Completion, Errno, Io, Kind, OpenFlags};

use iosched_types::request::NO_BIO;

use super::Programs;
use super::io::Owner;
use super::paths::seat_of;
use super::task::{State, Tid};

/// One on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Async {
    task: Tid,
    tag: u32,
    left: u32,
    answer: u64,
}

impl Programs {
    /// Starts one; the task sleeps only where the queue has no room. What memory answers is done at once.
    pub(super) fn submit(&mut self, t: Tid, io: Io) -> Result<bool, Errno> {
        let (ino, file) = self.ino(t, io.fd)?;
        if self.fs.names().stat(ino).kind == Kind::Directory {
            return Err(Errno::EINVAL);
        }
        let flags = self.files[file as usize].flags;
        if io.write && !flags.writes() || !io.write && !flags.reads() {
            return Err(Errno::EBADF);
        }
        let direct = flags.has(OpenFlags::DIRECT);
        let at = match io.write && flags.has(OpenFlags::APPEND) {
            true => self.fs.names().stat(ino).bytes,
            false => io.at,
        };
        let mut segments = std::mem::take(&mut self.segments);
        let found = match io.write {
            true => self.fs.at_once()?.write(ino, at, u64::from(io.len), direct, &mut segments),
            false => self.fs.at_once()?.read(ino, io.at, u64::from(io.len), direct, &mut segments),
        };
        self.segments = segments;
        if found.is_ok() {
            self.add_all(t, direct);
        }
        self.segments.clear();
        let task = &mut self.tasks[t as usize];
        let left = std::mem::take(&mut task.work.left);
        if left.is_empty() {
            task.done.push(Completion { tag: io.tag, answer: found });
            task.answer = Ok(0);
            return Ok(true);
        }
        self.async_begins(t);
        let a = Async { task: t, tag: io.tag, left: left.len() as u32, answer: found.unwrap_or(0) };
        let id = match self.free_asyncs.pop() {
            Some(i) => {
                self.asyncs[i as usize] = a;
                i
            }
            None => {
                self.asyncs.push(a);
                self.asyncs.len() as u32 - 1
            }
        };
        let task = &mut self.tasks[t as usize];
        task.work.left = left;
        task.work.async_of = Some(id);
        task.work.answer = 0;
        task.work.busy = true;
        Ok(self.go_on(t))
    }

    /// A bio of one is done.
    pub(super) fn async_done(&mut self, id: u32) {
        let a = &mut self.asyncs[id as usize];
        a.left -= 1;
        if a.left > 0 {
            return;
        }
        let a = *a;
        self.free_asyncs.push(id);
        self.async_ends(a.task, Completion { tag: a.tag, answer: Ok(a.answer) });
    }

    /// An asynchronous I/O of a task is under way.
    pub(super) fn async_begins(&mut self, t: Tid) {
        self.tasks[t as usize].asyncs += 1;
        self.asyncs_begun += 1;
    }

    /// An asynchronous I/O of a task is done.
    pub(super) fn async_ends(&mut self, t: Tid, completion: Completion) {
        self.asyncs_begun -= 1;
        let task = &mut self.tasks[t as usize];
        task.asyncs -= 1;
        task.done.push(completion);
        let enough = matches!(&task.state, State::Reap(min, _) if task.done.len() >= *min as usize);
        if enough {
            let state = std::mem::replace(&mut task.state, State::Ready);
            if let State::Reap(_, into) = state {
                self.hand_over(t, &into);
            }
        }
        match &mut self.cores {
            Some(cores) => cores.completion(self.tl.now, seat_of(t), NO_BIO, enough),
            None if enough => self.ready.push_back(t),
            None => {}
        }
    }

    fn hand_over(&mut self, t: Tid, into: &Rc<RefCell<Vec<Completion>>>) {
        let task = &mut self.tasks[t as usize];
        let mut into = into.borrow_mut();
        into.clear();
        into.append(&mut task.done);
        for c in into.iter() {
            if let (Some((since, write)), Ok(bytes)) = (task.begun.take(c.tag), c.answer) {
                task.taken.push((write, since, bytes));
            }
        }
        task.answer = Ok(into.len() as u64);
    }

    /// Takes what is done; `false` when the task must sleep for more.
    pub(super) fn reap(&mut self, t: Tid, min: u32, into: Rc<RefCell<Vec<Completion>>>) -> bool {
        let task = &mut self.tasks[t as usize];
        let possible = task.done.len() as u32 + task.asyncs;
        let min = min.min(possible);
        if task.done.len() >= min as usize {
            self.hand_over(t, &into);
            return true;
        }
        self.sleep(t, State::Reap(min, into));
        self.end_call();
        false
    }

    /// Whose the next bio of a task's call is.
    pub(super) fn owner_of(&self, t: Tid) -> Owner {
        match self.tasks[t as usize].work.async_of {
            Some(id) => Owner::Async(id),
            None => Owner::Call(t),
        }
    }
}
