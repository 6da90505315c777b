//! The tables of a log's tasks: descriptors and working directory.

use std::collections::BTreeMap;

/// What a descriptor number stands for.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The open file, if it is one that is replayed.
    pub(super) file: Option<u32>,
    /// `O_CLOEXEC`.
    pub(super) closes_at_exec: bool,
}

/// The descriptors of a process.
pub(super) type Table = BTreeMap<i64, Held>;

/// A task of the log.
#[derive(Debug)]
pub(super) struct Tracked {
    /// The index in the log.
    pub(super) task: usize,
    /// The descriptors, in [`Tables::all`].
    pub(super) table: usize,
    /// Where it stands, in [`Tables::standing`].
    pub(super) cwd: usize,
}

/// Who is there.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Tasks that are alive, by pid.
    pub(super) alive: BTreeMap<u32, Tracked>,
    pub(super) all: Vec<Table>,
    pub(super) standing: Vec<String>,
}

impl Tables {
    /// A task that no other task in the log made. It has only a working directory; as a thread it shares the first one's.
    pub(super) fn arrive(&mut self, pid: u32, task: usize, cwd: &str, thread: bool) {
        if thread && !self.all.is_empty() {
            self.alive.insert(pid, Tracked { task, table: 0, cwd: 0 });
            return;
        }
        self.all.push(Table::new());
        self.standing.push(cwd.to_string());
        let tracked = Tracked { task, table: self.all.len() - 1, cwd: self.standing.len() - 1 };
        self.alive.insert(pid, tracked);
    }

    /// A child of `parent`, with the tables that it shares with the parent.
    pub(super) fn born(&mut self, parent: u32, pid: u32, task: usize, files: bool, place: bool) {
        let Some(p) = self.alive.get(&parent) else { return };
        let (mut table, mut cwd) = (p.table, p.cwd);
        if !files {
            self.all.push(self.all[table].clone());
            table = self.all.len() - 1;
        }
        if !place {
            self.standing.push(self.standing[cwd].clone());
            cwd = self.standing.len() - 1;
        }
        self.alive.insert(pid, Tracked { task, table, cwd });
    }

    pub(super) fn table(&mut self, pid: u32) -> Option<&mut Table> {
        let t = self.alive.get(&pid)?.table;
        self.all.get_mut(t)
    }

    pub(super) fn cwd(&mut self, pid: u32) -> Option<&mut String> {
        let c = self.alive.get(&pid)?.cwd;
        self.standing.get_mut(c)
    }

    /// The open file behind a number. `None` for an unknown number, `Some(None)` for something that is not a file.
    pub(super) fn file(&mut self, pid: u32, fd: i64) -> Option<Option<u32>> {
        self.table(pid)?.get(&fd).map(|h| h.file)
    }

    /// Puts something behind a number. Returns the open file that this closes for the process.
    pub(super) fn put(&mut self, pid: u32, fd: i64, held: Held) -> Option<u32> {
        let table = self.table(pid)?;
        let before = table.insert(fd, held)?.file?;
        let kept = table.values().any(|h| h.file == Some(before));
        (!kept).then_some(before)
    }

    /// Frees a number. Returns whether it was known, and the open file that this closes for the process.
    pub(super) fn take(&mut self, pid: u32, fd: i64) -> (bool, Option<u32>) {
        let Some(table) = self.table(pid) else { return (false, None) };
        let Some(held) = table.remove(&fd) else { return (false, None) };
        let closed = held.file.filter(|f| !table.values().any(|h| h.file == Some(*f)));
        (true, closed)
    }

    /// What an `execve` closes.
    pub(super) fn exec(&mut self, pid: u32) -> Vec<u32> {
        let Some(table) = self.table(pid) else { return Vec::new() };
        let gone: Vec<i64> =
            table.iter().filter(|(_, h)| h.closes_at_exec).map(|(fd, _)| *fd).collect();
        gone.into_iter().filter_map(|fd| self.take(pid, fd).1).collect()
    }
}
