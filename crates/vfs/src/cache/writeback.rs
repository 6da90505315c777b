//! Which file is written back when: the flusher of one device, as in Linux 3.2 and later.
//!
//! The flusher decides. The host writes the pages that it names and reports the result. Times are nanoseconds.

mod by_hand;

use std::collections::{BTreeMap, VecDeque};

use crate::kernel::timer::expires;

/// A file with dirty pages or a dirty inode.
pub type Inode = u32;

/// Pages are written in multiples of this: 4 MiB.
const CHUNK: u64 = 1024;
/// After this long the flusher checks whether it should go on.
const SLICE_NS: u64 = 100_000_000;

/// What the flusher was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `sync`, `syncfs`: all that is dirty now. A task waits.
    Sync {
        /// Who.
        waiter: u64,
    },
    /// All that is dirty, without waiting: for the first part of `sync`, or when memory is short.
    All,
    /// What has been dirty for long.
    Old,
    /// Down to the background threshold.
    Background,
}

/// What it does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write up to `pages` dirty pages of the inode for `task`, then call [`Flusher::wrote`].
    Write {
        /// Whose.
        inode: Inode,
        /// At most.
        pages: u64,
        /// What for.
        task: Task,
    },
    /// Tell who waits.
    Done {
        /// Who.
        waiter: u64,
    },
    /// Sleep until then, or until it is woken.
    Sleep {
        /// When it wakes by itself.
        until: Option<u64>,
    },
}

/// What is left of an inode after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing.
    Clean,
    /// The turn was used up.
    More,
    /// Pages were locked or dirtied again.
    Some,
}

/// The figures that the flusher looks at. Pages and pages a second.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// Virtual time.
    pub now: u64,
    /// Dirty memory, or the device's part of it, is above the background threshold.
    pub over_background: bool,
    /// Dirty pages on all devices.
    pub dirty: u64,
    /// The smoothed bandwidth of the device.
    pub bandwidth: u64,
    /// The slow limit of dirty memory.
    pub limit: u64,
}

/// `dirty_writeback_centisecs` and `dirty_expire_centisecs`, as nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// 0: never wakes by itself.
    pub wake: u64,
    /// Pages that have been dirty for this long are written.
    pub expire: u64,
    /// The tick to which timers are rounded up ([`expires`]); 0: none.
    pub tick: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Inodes that wait since they became dirty, by time and order.
    Dirty(u64, u64),
    Io,
    More,
    /// Somebody writes it, before 3.2.
    Taken,
}

#[derive(Clone, Copy, Debug)]
struct Pass {
    task: Task,
    left: u64,
    /// What became dirty after this stays.
    until: u64,
    slice: u64,
    /// The first round has begun.
    begun: bool,
    /// This round has written something.
    progress: bool,
}

/// The flusher of one device.
#[derive(Clone, Debug)]
pub struct Flusher {
    intervals: Intervals,
    dirty: BTreeMap<(u64, u64), Inode>,
    io: VecDeque<Inode>,
    more: VecDeque<Inode>,
    places: BTreeMap<Inode, Place>,
    order: u64,
    work: VecDeque<Task>,
    start_all: bool,
    last_old: u64,
    timer: Option<u64>,
    /// Work was requested before its time.
    asked: bool,
    /// The last pass in the background wrote nothing: all pages are on their way, so there is none until somebody asks again.
    fruitless: bool,
    pass: Option<Pass>,
}

impl Default for Flusher {
    /// Every 5 s, what is 30 s old.
    fn default() -> Self {
        Self::new(Intervals { wake: 5_000_000_000, expire: 30_000_000_000, tick: 0 })
    }
}

impl Flusher {
    /// A flusher that has nothing to do.
    #[must_use]
    pub fn new(intervals: Intervals) -> Self {
        Self {
            intervals,
            dirty: BTreeMap::new(),
            io: VecDeque::new(),
            more: VecDeque::new(),
            places: BTreeMap::new(),
            order: 0,
            work: VecDeque::new(),
            start_all: false,
            last_old: 0,
            timer: None,
            asked: false,
            fruitless: false,
            pass: None,
        }
    }

    /// Inodes that are not clean.
    #[must_use]
    pub fn inodes(&self) -> usize {
        self.places.len()
    }

    /// An inode has become dirty. Returns when a sleeping flusher has to wake.
    pub fn dirtied(&mut self, inode: Inode, now: u64) -> Option<u64> {
        if self.places.contains_key(&inode) {
            return None;
        }
        let first = self.places.is_empty();
        self.queue_dirty(inode, now);
        if first && self.intervals.wake > 0 {
            self.timer = Some(self.next_look(now));
            return self.timer;
        }
        None
    }

    fn next_look(&self, now: u64) -> u64 {
        expires(now, self.intervals.wake, self.intervals.tick)
    }

    fn queue_dirty(&mut self, inode: Inode, now: u64) {
        self.order += 1;
        self.dirty.insert((now, self.order), inode);
        self.places.insert(inode, Place::Dirty(now, self.order));
    }

    /// Adds requested work. The flusher has to be woken.
    pub fn ask(&mut self, task: Task) {
        self.asked = true;
        match task {
            Task::All => self.start_all = true,
            Task::Old | Task::Background => {}
            Task::Sync { .. } => self.work.push_back(task),
        }
    }

    /// The file is gone with what was dirty of it.
    pub fn forget(&mut self, inode: Inode) {
        match self.places.remove(&inode) {
            Some(Place::Dirty(at, order)) => {
                self.dirty.remove(&(at, order));
            }
            Some(Place::Io) => self.io.retain(|i| *i != inode),
            Some(Place::More) => self.more.retain(|i| *i != inode),
            Some(Place::Taken) | None => {}
        }
    }

    /// What to do next.
    pub fn next(&mut self, sight: &Sight) -> Action {
        let due = self.timer.is_some_and(|at| sight.now >= at);
        if self.pass.is_none() && !self.asked && !due {
            return Action::Sleep { until: self.timer };
        }
        // Awake until nothing is left to do.
        self.asked = true;
        loop {
            let Some(pass) = self.pass else {
                match self.begin(sight) {
                    Some(pass) => self.pass = Some(pass),
                    None => return self.sleep(sight.now),
                }
                continue;
            };
            if let Some(action) = self.go_on(pass, sight) {
                return action;
            }
            self.pass = None;
            self.fruitless |= pass.task == Task::Background && pass.begun && !pass.progress;
            if let Task::Sync { waiter } = pass.task {
                return Action::Done { waiter };
            }
        }
    }

    /// The next reason to work.
    fn begin(&mut self, sight: &Sight) -> Option<Pass> {
        let all = sight.dirty + self.places.len() as u64;
        let (task, left) = if let Some(task) = self.work.pop_front() {
            (task, u64::MAX)
        } else if std::mem::take(&mut self.start_all) {
            (Task::All, all)
        } else if self.intervals.wake > 0 && sight.now >= self.last_old + self.intervals.wake {
            self.last_old = sight.now;
            (Task::Old, all)
        } else if sight.over_background && !self.places.is_empty() && !self.fruitless {
            (Task::Background, u64::MAX)
        } else {
            return None;
        };
        let age = if task == Task::Old { self.intervals.expire } else { 0 };
        let until = sight.now.checked_sub(age);
        Some(Pass {
            task,
            left: if until.is_none() { 0 } else { left },
            until: until.unwrap_or(0),
            slice: sight.now,
            begun: false,
            progress: false,
        })
    }

    fn sleep(&mut self, now: u64) -> Action {
        (self.asked, self.fruitless) = (false, false);
        self.timer =
            (!self.places.is_empty() && self.intervals.wake > 0).then(|| self.next_look(now));
        Action::Sleep { until: self.timer }
    }

    /// The next inode of a pass; `None` when it is over.
    fn go_on(&mut self, mut pass: Pass, sight: &Sight) -> Option<Action> {
        let sliced = sight.now - pass.slice >= SLICE_NS;
        if pass.left == 0 || (self.io.is_empty() || sliced) && self.ends(&pass, sight) {
            return None;
        }
        if sliced {
            pass.slice = sight.now;
        }
        if self.io.is_empty() {
            // A round that wrote nothing would be followed by another one of the same kind.
            if pass.begun && !pass.progress && self.more.is_empty() {
                return None;
            }
            // What has become dirty since the pass began is taken along, but not by a sync, which would not end.
            let until = match pass.task {
                Task::Background => sight.now,
                Task::Old => sight.now.saturating_sub(self.intervals.expire),
                Task::All | Task::Sync { .. } => pass.until,
            };
            self.refill(until);
            (pass.begun, pass.progress) = (true, false);
        }
        let inode = self.io.front().copied()?;
        self.pass = Some(pass);
        let pages = match pass.task {
            Task::Sync { .. } => u64::MAX,
            _ => chunk(sight, pass.left),
        };
        Some(Action::Write { inode, pages, task: pass.task })
    }

    /// Whether a pass has nothing more to do, looked at between its rounds.
    fn ends(&self, pass: &Pass, sight: &Sight) -> bool {
        let waits = !self.work.is_empty();
        match pass.task {
            Task::Background => waits || !sight.over_background,
            Task::Old => waits,
            Task::All | Task::Sync { .. } => false,
        }
    }

    /// First the inodes that used up their turn, then those dirty since `until` or longer.
    fn refill(&mut self, until: u64) {
        while let Some(inode) = self.more.pop_front() {
            self.io.push_back(inode);
            self.places.insert(inode, Place::Io);
        }
        while let Some(entry) = self.dirty.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let inode = entry.remove();
            self.io.push_back(inode);
            self.places.insert(inode, Place::Io);
        }
    }

    /// Says what came of [`Action::Write`].
    pub fn wrote(&mut self, inode: Inode, pages: u64, left: Left, now: u64) {
        if self.io.front() == Some(&inode) {
            self.io.pop_front();
        }
        if let Some(pass) = &mut self.pass {
            pass.left = pass.left.saturating_sub(pages.max(1));
            pass.progress |= pages > 0;
        }
        if self.places.remove(&inode).is_none() {
            return;
        }
        match left {
            Left::Clean => {}
            Left::More => {
                self.more.push_back(inode);
                self.places.insert(inode, Place::More);
            }
            Left::Some => self.queue_dirty(inode, now),
        }
    }
}

/// Pages of an inode's turn: half a second of the device's bandwidth, an eighth of the limit, 4 MiB at least.
fn chunk(sight: &Sight, left: u64) -> u64 {
    ((sight.bandwidth / 2).min(sight.limit / 8).min(left) + CHUNK) / CHUNK * CHUNK
}

#[cfg(test)]
mod tests;
