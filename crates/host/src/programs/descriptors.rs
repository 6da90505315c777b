//! Descriptors: numbers, the open files behind them, maps.

use iosched_syscalls::{Errno, Fd, OpenFlags};
use iosched_types::Bytes;
use iosched_vfs::kernel::read::Order;

use crate::fs::Ino;

use super::Programs;
use super::task::Tid;

/// The first number: the three before it are the terminal's.
const FIRST: u32 = 3;
/// Most descriptors of a process.
const MOST: usize = 1 << 20;
/// An empty place.
const NONE: u32 = u32::MAX;

/// What is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    File(Ino),
    /// A pipe, and whether this is its writing end.
    Pipe(u32, bool),
}

/// An open file: what several descriptors may share.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFile {
    pub(super) behind: Behind,
    pub(super) flags: OpenFlags,
    pub(super) at: Bytes,
    /// Names of a directory that were read.
    pub(super) names: usize,
    refs: u32,
}

/// The descriptors of a process.
#[derive(Debug)]
pub(super) struct Table {
    fds: Vec<u32>,
    lowest: usize,
    pub(super) users: u32,
}

impl Table {
    pub(super) fn new() -> Table {
        Table { fds: Vec::new(), lowest: 0, users: 0 }
    }
}

/// A file in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Map {
    pub(super) ino: Ino,
    pub(super) at: Bytes,
    pub(super) len: Bytes,
    pub(super) writable: bool,
    /// Read-ahead in pages, that of the open file.
    pub(super) ra: u64,
    /// What was said of it.
    pub(super) order: Order,
}

impl Programs {
    /// The open file behind a descriptor.
    #[inline]
    pub(super) fn file(&self, t: Tid, fd: Fd) -> Result<u32, Errno> {
        let table = &self.tables[self.tasks[t as usize].table as usize];
        let i = fd.0.checked_sub(FIRST).ok_or(Errno::EBADF)? as usize;
        table.fds.get(i).copied().filter(|f| *f != NONE).ok_or(Errno::EBADF)
    }

    /// The file behind a descriptor; `EINVAL` for a pipe.
    #[inline]
    pub(super) fn ino(&self, t: Tid, fd: Fd) -> Result<(Ino, u32), Errno> {
        let f = self.file(t, fd)?;
        match self.files[f as usize].behind {
            Behind::File(ino) => Ok((ino, f)),
            Behind::Pipe(..) => Err(Errno::EINVAL),
        }
    }

    /// A new open file, not behind any descriptor yet.
    fn new_file(&mut self, behind: Behind, flags: OpenFlags) -> u32 {
        let file = OpenFile { behind, flags, at: 0, names: 0, refs: 0 };
        match self.free_files.pop() {
            Some(i) => {
                self.files[i as usize] = file;
                i
            }
            None => {
                self.files.push(file);
                self.files.len() as u32 - 1
            }
        }
    }

    /// Opens something: the lowest number that is free.
    pub(super) fn open(&mut self, t: Tid, behind: Behind, flags: OpenFlags) -> Result<Fd, Errno> {
        let file = self.new_file(behind, flags);
        let fd = self.number(t, file);
        if fd.is_err() {
            self.free_files.push(file);
        }
        fd
    }

    /// The lowest place that is free. The kernel takes it before it looks for a name, so a file that cannot be opened is not made.
    pub(super) fn free_place(&mut self, t: Tid) -> Result<usize, Errno> {
        let table = &mut self.tables[self.tasks[t as usize].table as usize];
        let from = table.lowest;
        let i = (from..table.fds.len()).find(|i| table.fds[*i] == NONE).unwrap_or(table.fds.len());
        if i >= MOST {
            return Err(Errno::EMFILE);
        }
        table.lowest = i;
        Ok(i)
    }

    /// Another number for an open file.
    pub(super) fn number(&mut self, t: Tid, file: u32) -> Result<Fd, Errno> {
        let i = self.free_place(t)?;
        let table = &mut self.tables[self.tasks[t as usize].table as usize];
        match table.fds.get_mut(i) {
            Some(place) => *place = file,
            None => table.fds.push(file),
        }
        table.lowest = i + 1;
        self.refer(file);
        Ok(Fd(i as u32 + FIRST))
    }

    fn refer(&mut self, file: u32) {
        let f = &mut self.files[file as usize];
        f.refs += 1;
        if f.refs == 1 {
            match f.behind {
                Behind::File(ino) => self.fs.names_mut().hold(ino),
                Behind::Pipe(p, write) => self.pipes[p as usize].opened(write),
            }
        }
    }

    /// Whether one descriptor is all that an open file has.
    pub(super) fn is_last(&self, file: u32) -> bool {
        self.files[file as usize].refs == 1
    }

    pub(super) fn close(&mut self, t: Tid, fd: Fd) -> Result<(), Errno> {
        let file = self.file(t, fd)?;
        let table = &mut self.tables[self.tasks[t as usize].table as usize];
        let i = (fd.0 - FIRST) as usize;
        table.fds[i] = NONE;
        table.lowest = table.lowest.min(i);
        self.let_go(file);
        Ok(())
    }

    fn let_go(&mut self, file: u32) {
        let f = &mut self.files[file as usize];
        f.refs -= 1;
        if f.refs > 0 {
            return;
        }
        let behind = f.behind;
        self.free_files.push(file);
        match behind {
            Behind::File(ino) => self.fs.names_mut().release(ino),
            Behind::Pipe(p, write) => self.pipe_closed(p, write),
        }
    }

    /// A copy of a process's descriptors, for a child.
    pub(super) fn copy_table(&mut self, table: u32) -> u32 {
        let fds = self.tables[table as usize].fds.clone();
        let lowest = self.tables[table as usize].lowest;
        fds.iter().filter(|f| **f != NONE).for_each(|f| self.refer(*f));
        let copy = Table { fds, lowest, users: 0 };
        match self.free_tables.pop() {
            Some(i) => {
                self.tables[i as usize] = copy;
                i
            }
            None => {
                self.tables.push(copy);
                self.tables.len() as u32 - 1
            }
        }
    }

    /// A task ends: the last one of a process closes its descriptors.
    pub(super) fn leave_table(&mut self, table: u32) {
        let t = &mut self.tables[table as usize];
        t.users -= 1;
        if t.users > 0 {
            return;
        }
        let fds = std::mem::take(&mut t.fds);
        self.free_tables.push(table);
        for file in fds.into_iter().filter(|f| *f != NONE) {
            self.let_go(file);
        }
    }
}
