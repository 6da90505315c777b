//! The descriptors of a process: its own numbers for open files of ours.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use iosched_syscalls::{Errno, Fd, OpenFlags};

/// The first number: the three before it are the terminal's.
const FIRST: u32 = 3;

/// What is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    File,
    Directory,
    Pipe,
}

/// An open file; several descriptors may stand for it.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) fd: OwnedFd,
    pub(super) behind: Behind,
    pub(super) flags: OpenFlags,
}

/// The descriptors of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    fds: Vec<Option<Arc<OpenFile>>>,
}

/// A table, as the threads of a process share it.
pub(super) type Descriptors = Arc<Mutex<Table>>;

fn place(fd: Fd) -> Option<usize> {
    Some(fd.0.checked_sub(FIRST)? as usize)
}

impl Table {
    /// What a number stands for.
    pub(super) fn get(&self, fd: Fd) -> Result<Arc<OpenFile>, Errno> {
        place(fd).and_then(|i| self.fds.get(i)?.clone()).ok_or(Errno::EBADF)
    }

    /// The lowest number that is free.
    pub(super) fn add(&mut self, file: Arc<OpenFile>) -> Fd {
        let i = self.fds.iter().position(Option::is_none).unwrap_or(self.fds.len());
        match self.fds.get_mut(i) {
            Some(place) => *place = Some(file),
            None => self.fds.push(Some(file)),
        }
        Fd(i as u32 + FIRST)
    }

    /// Gives a number back. The file is closed when nobody has it any more.
    pub(super) fn remove(&mut self, fd: Fd) -> Result<Arc<OpenFile>, Errno> {
        place(fd).and_then(|i| self.fds.get_mut(i)?.take()).ok_or(Errno::EBADF)
    }
}
