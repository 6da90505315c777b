//! Pipes: 64 KiB each; who finds no room or nothing in one sleeps, in order.

use std::collections::VecDeque;

use iosched_syscalls::{Answer, Errno, OpenFlags};
use iosched_types::Bytes;

use super::Programs;
use super::calls::MOST;
use super::descriptors::Behind;
use super::task::{State, Tid};

/// What a pipe holds.
const ROOM: Bytes = 64 << 10;

/// A pipe.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    held: Bytes,
    readers: u32,
    writers: u32,
    /// Who sleeps at it.
    sleepers: VecDeque<Tid>,
}

impl Pipe {
    pub(super) fn opened(&mut self, write: bool) {
        *if write { &mut self.writers } else { &mut self.readers } += 1;
    }
}

/// What a task moves through a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) pipe: u32,
    pub(super) write: bool,
    pub(super) len: Bytes,
    pub(super) done: Bytes,
}

impl Programs {
    pub(super) fn make_pipe(&mut self, t: Tid) -> Answer {
        self.pipes.push(Pipe::default());
        let p = self.pipes.len() as u32 - 1;
        let reads = self.open(t, Behind::Pipe(p, false), OpenFlags::READ)?;
        match self.open(t, Behind::Pipe(p, true), OpenFlags::WRITE) {
            Ok(writes) => Ok(u64::from(writes.0) << 32 | u64::from(reads.0)),
            Err(e) => {
                // It was there a moment ago.
                let _ = self.close(t, reads);
                Err(e)
            }
        }
    }

    /// Moves what can be moved; `None` when the task must sleep for the rest.
    fn transfer(&mut self, x: &mut Transfer) -> Option<Answer> {
        let p = &mut self.pipes[x.pipe as usize];
        if x.write {
            if x.len == 0 {
                return Some(Ok(0));
            }
            if p.readers == 0 {
                return Some(if x.done > 0 { Ok(x.done) } else { Err(Errno::EPIPE) });
            }
            let n = (x.len - x.done).min(ROOM - p.held);
            p.held += n;
            x.done += n;
            return (x.done == x.len).then_some(Ok(x.len));
        }
        let n = x.len.min(p.held);
        p.held -= n;
        (n > 0 || x.len == 0 || p.writers == 0).then_some(Ok(n))
    }

    /// A task reads or writes; `false` when it must sleep.
    pub(super) fn through_pipe(&mut self, t: Tid, pipe: u32, write: bool, len: Bytes) -> bool {
        // No disk hears of it: it counts neither as a read nor as a write.
        self.tasks[t as usize].moves = None;
        let mut x = Transfer { pipe, write, len: len.min(MOST), done: 0 };
        match self.transfer(&mut x) {
            Some(answer) => {
                self.tasks[t as usize].answer = answer;
                self.rouse(pipe);
                true
            }
            None => {
                self.sleep(t, State::Pipe(x));
                self.pipes[pipe as usize].sleepers.push_back(t);
                self.rouse(pipe);
                false
            }
        }
    }

    /// Something changed: sleepers that can go on do.
    fn rouse(&mut self, pipe: u32) {
        let mut moved = true;
        while moved {
            moved = false;
            for _ in 0..self.pipes[pipe as usize].sleepers.len() {
                let Some(t) = self.pipes[pipe as usize].sleepers.pop_front() else { return };
                let State::Pipe(mut x) = self.tasks[t as usize].state else { continue };
                let before = x.done;
                match self.transfer(&mut x) {
                    Some(answer) => {
                        moved = true;
                        self.answer(t, answer);
                    }
                    None => {
                        moved |= x.done > before;
                        self.tasks[t as usize].state = State::Pipe(x);
                        self.pipes[pipe as usize].sleepers.push_back(t);
                    }
                }
            }
        }
    }

    /// The last descriptor of an end is closed.
    pub(super) fn pipe_closed(&mut self, pipe: u32, write: bool) {
        let p = &mut self.pipes[pipe as usize];
        *if write { &mut p.writers } else { &mut p.readers } -= 1;
        self.rouse(pipe);
    }
}
