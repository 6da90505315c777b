//! The queues below an array, and how its threads are numbered there.

use iosched_schedulers::TaskInfo;
use iosched_types::{Bio, Flags, IoPrio, Op, Sector, TaskId};

use crate::queue::Queue;

/// The array's own threads, numbered before all others on the legs.
const OWN: [&str; 2] = ["md0_raid1", "md-flush"];
/// Superblocks, bitmap, and writes that waited for it.
pub(super) const WRITER: TaskId = 0;
/// What waited for a flush.
pub(super) const FLUSHER: TaskId = 1;

/// The array's own threads, as the legs know them.
pub(super) fn threads() -> impl Iterator<Item = TaskInfo> {
    OWN.iter().map(|name| TaskInfo { name: (*name).into(), ..TaskInfo::default() })
}

/// The number on the legs of a thread of the host.
pub(super) fn below(thread: TaskId) -> TaskId {
    thread + OWN.len() as TaskId
}

/// The way back.
pub(super) fn above(thread: TaskId) -> TaskId {
    thread - OWN.len() as TaskId
}

/// The way back; `None` of a thread of the array.
pub(super) fn above_checked(thread: TaskId) -> Option<TaskId> {
    thread.checked_sub(OWN.len() as TaskId)
}

/// The queues of an array.
pub(super) struct Legs<'a> {
    pub(super) first: &'a mut Queue,
    pub(super) others: &'a mut [Queue],
}

impl Legs<'_> {
    pub(super) fn count(&self) -> usize {
        1 + self.others.len()
    }

    pub(super) fn get(&mut self, leg: usize) -> &mut Queue {
        match leg.checked_sub(1) {
            None => self.first,
            Some(i) => &mut self.others[i],
        }
    }

    pub(super) fn each(&mut self, mut f: impl FnMut(&mut Queue)) {
        f(self.first);
        self.others.iter_mut().for_each(f);
    }
}

/// A bio of one of the array's threads.
pub(super) fn own_bio(thread: TaskId, op: Op, flags: Flags, sector: Sector, sectors: u32) -> Bio {
    Bio {
        id: 0,
        op,
        flags,
        sector,
        sectors,
        task: thread,
        thread,
        prio: IoPrio::default(),
        cgroup: 0,
        cpu: 0,
    }
}

/// The empty flush of a bio.
pub(super) fn flush_of(bio: Bio) -> Bio {
    let flags = Flags::PREFLUSH.with(Flags::SYNC);
    Bio { op: Op::Flush, flags, sector: 0, sectors: 0, prio: IoPrio::default(), ..bio }
}
