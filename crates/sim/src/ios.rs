//! The I/Os under way: which process waits for which bios.

use iosched_types::{BioId, TaskId};

#[derive(Clone, Copy, Debug)]
struct Entry {
    task: TaskId,
    unit: u32,
    /// Bios that are not done.
    left: u32,
}

/// The I/Os of all processes, one for each of their units; a bio's id is the index of its I/O.
#[derive(Debug, Default)]
pub(crate) struct Ios {
    entries: Vec<Entry>,
}

impl Ios {
    /// Makes room for the units of a process; returns the id of its first.
    pub(crate) fn add_task(&mut self, task: TaskId, units: u32) -> BioId {
        let first = self.entries.len() as BioId;
        self.entries.extend((0..units).map(|unit| Entry { task, unit, left: 0 }));
        first
    }

    /// An I/O that goes as so many bios.
    #[inline]
    pub(crate) fn start(&mut self, id: BioId, pieces: u32) {
        let e = &mut self.entries[id as usize];
        debug_assert_eq!(e.left, 0, "unit {} of task {} is busy", e.unit, e.task);
        e.left = pieces;
    }

    /// A bio finished; the process and its unit once the whole I/O has.
    #[inline]
    pub(crate) fn bio_done(&mut self, id: BioId) -> Option<(TaskId, u32)> {
        let e = &mut self.entries[id as usize];
        e.left -= 1;
        (e.left == 0).then_some((e.task, e.unit))
    }

    /// I/Os under way.
    pub(crate) fn len(&self) -> usize {
        self.entries.iter().filter(|e| e.left > 0).count()
    }
}
