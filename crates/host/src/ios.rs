//! The I/Os under way: which process waits for which bios.

use iosched_types::{BioId, TaskId};

/// The I/Os of all processes, one for each of their units; a bio's id is the index of its I/O.
#[derive(Debug, Default)]
pub(crate) struct Ios {
    /// Whose they are.
    tasks: Vec<TaskId>,
    /// Bios that are not done, where an I/O went as several.
    left: Vec<u32>,
    /// I/Os that went as several bios. Most of the time there are none, and `left` is not read.
    split: usize,
    under_way: usize,
}

impl Ios {
    /// Makes room for the units of a process; returns the id of its first.
    pub(crate) fn add_task(&mut self, task: TaskId, units: u32) -> BioId {
        let first = self.tasks.len() as BioId;
        self.tasks.resize(self.tasks.len() + units as usize, task);
        self.left.resize(self.tasks.len(), 0);
        first
    }

    /// An I/O that goes as this many bios.
    #[inline]
    pub(crate) fn start(&mut self, id: BioId, pieces: u32) {
        self.under_way += 1;
        if pieces > 1 {
            let left = &mut self.left[id as usize];
            debug_assert_eq!(*left, 0, "I/O {id} of task {} is busy", self.tasks[id as usize]);
            *left = pieces;
            self.split += 1;
        }
    }

    /// A bio finished. Returns the process once the whole I/O has finished.
    #[inline]
    pub(crate) fn bio_done(&mut self, id: BioId) -> Option<TaskId> {
        if self.split > 0 && !self.piece_was_last(id) {
            return None;
        }
        self.under_way -= 1;
        Some(self.tasks[id as usize])
    }

    /// Whether nothing of an I/O is left.
    fn piece_was_last(&mut self, id: BioId) -> bool {
        let left = &mut self.left[id as usize];
        if *left == 0 {
            return true;
        }
        *left -= 1;
        self.split -= usize::from(*left == 0);
        *left == 0
    }

    /// I/Os under way.
    pub(crate) fn len(&self) -> usize {
        self.under_way
    }
}
