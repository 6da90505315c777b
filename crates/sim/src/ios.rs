//! The I/Os under way: which process waits for which bios.

use iosched_types::{BioId, TaskId};

#[derive(Clone, Copy, Debug)]
struct Entry {
    task: TaskId,
    unit: u32,
    left: u32,
}

/// Slab of I/Os; a bio's id is the index of its I/O.
#[derive(Debug, Default)]
pub(crate) struct Ios {
    slots: Vec<Entry>,
    free: Vec<BioId>,
}

impl Ios {
    #[inline]
    pub(crate) fn add(&mut self, task: TaskId, unit: u32, pieces: u32) -> BioId {
        let entry = Entry { task, unit, left: pieces };
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = entry;
            return id;
        }
        self.slots.push(entry);
        (self.slots.len() - 1) as BioId
    }

    /// A bio finished; the process and its unit once the whole I/O has.
    #[inline]
    pub(crate) fn bio_done(&mut self, id: BioId) -> Option<(TaskId, u32)> {
        let e = &mut self.slots[id as usize];
        e.left -= 1;
        if e.left > 0 {
            return None;
        }
        self.free.push(id);
        Some((e.task, e.unit))
    }

    /// I/Os under way.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
