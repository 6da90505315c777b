//! What the processes of the server share: its memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use iosched_syscalls::Fd;

use super::buffers::Buffers;
use super::wal::Wal;
use super::{PAGE, Params, Table};

/// A page of a table.
pub(super) type Page = (Table, u64);

/// The name of a file of a table.
pub(super) fn name(table: Table, file: u64) -> String {
    match file {
        0 => table.file().into(),
        n => format!("{}.{n}", table.file()),
    }
}

/// What is counted for the figures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) syncs: u64,
    pub(super) log: u64,
    pub(super) by_clients: u64,
    pub(super) checkpoints: u64,
}

/// Rows that one transaction has changed and others wait for: who has it, who waits.
type Rows = BTreeMap<(Table, u64), (usize, VecDeque<usize>)>;

#[derive(Debug)]
pub(super) struct Memory {
    pub(super) buffers: Buffers,
    pub(super) wal: Wal,
    /// Pages that the log has as a whole since the last checkpoint began.
    pub(super) imaged: BTreeSet<Page>,
    pub(super) rows: Rows,
    /// Pages of each table, and new rows of the accounts and of the history.
    pub(super) pages: BTreeMap<Table, u64>,
    pub(super) new_rows: BTreeMap<Table, u64>,
    pub(super) counted: Counted,
    /// Files that were written since the last checkpoint.
    pub(super) written_files: BTreeSet<(Table, u64)>,
}

/// The server.
#[derive(Debug)]
pub(super) struct Server {
    memory: Mutex<Memory>,
    /// Where each process sleeps, and where others wake it.
    pipes: Vec<(Fd, Fd)>,
    pub(super) full_pages: bool,
    pub(super) synchronous: bool,
    pub(super) scale: u64,
}

impl Server {
    pub(super) fn new(p: &Params, pipes: Vec<(Fd, Fd)>) -> Server {
        let scale = p.count("scale");
        let memory = Memory {
            buffers: Buffers::new((p.bytes("shared_buffers") / PAGE) as usize),
            wal: Wal::default(),
            imaged: BTreeSet::new(),
            rows: Rows::new(),
            pages: Table::ALL.into_iter().map(|t| (t, t.pages(scale))).collect(),
            new_rows: BTreeMap::new(),
            counted: Counted::default(),
            written_files: BTreeSet::new(),
        };
        Server {
            memory: Mutex::new(memory),
            pipes,
            full_pages: p.count("full_page_writes") == 1,
            synchronous: p.count("synchronous_commit") == 1,
            scale,
        }
    }

    /// Nobody panics while holding it, and nobody makes a call.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counted(&self) -> Counted {
        self.memory().counted
    }

    pub(super) fn pipe(&self, process: usize) -> (Fd, Fd) {
        self.pipes[process]
    }
}
