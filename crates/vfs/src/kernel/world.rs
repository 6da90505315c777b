//! What all paths share: memory, files, I/O under way, and the waits of tasks.

mod seen;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use iosched_types::{Flags, Nanos, Op, Sector, TaskId};

use super::Wait;
use super::locks::{Held, Lock};
use super::memory::Memory;
use crate::cache::mapping::{Mapping, Mark};
use crate::cache::pdflush::{Asked, Counters};
use crate::cache::throttle::Dirtier;
use crate::cache::writeback::Flusher;

pub use seen::Found;

/// I/Os that a task waits for together.
pub type Group = u32;

/// An event that happens once and wakes all tasks that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A transaction has been committed.
    Committed(u64),
    /// A transaction of jbd2 has been committed: all who wait for one look whether it was theirs.
    CommitEnded,
    /// It is this task's turn to have a lock.
    Turn(TaskId),
    /// The flusher has something to do.
    Flusher,
    /// The journal thread has something to do.
    Journal,
    /// A sync's work item is done.
    Synced(u64),
    /// The journal has room, a transaction takes changes again, or a change has ended.
    Room,
    /// A file without a name was closed by the last who had it.
    Orphans,
    /// A request for a write was given back, and the disk is not congested.
    Uncongested,
    /// A buffer of metadata has been read, or its copy has been written to the log.
    Buffer(Sector),
    /// Pages came back from the disk that the file system has to note.
    Ended,
    /// A write of the log came back from the disk.
    Logged,
    /// A log wants a checkpoint of what has changed.
    Push,
    /// It is made up.
    Pushed,
    /// A buffer of metadata has been written to its own place.
    Home(Sector),
}

/// What a bio is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Pages become readable.
    Read {
        /// Whose.
        file: u32,
        /// The first page.
        from: u64,
        /// The page after the last one.
        to: u64,
    },
    /// Pages have been written back.
    Written {
        /// Whose.
        file: u32,
        /// The first page.
        from: u64,
        /// The page after the last one.
        to: u64,
    },
    /// A buffer of metadata has been read.
    Metadata {
        /// Where it begins.
        sector: Sector,
    },
    /// A buffer of metadata has been copied to the log.
    Copied {
        /// Where it begins.
        sector: Sector,
    },
    /// The last write of a record of the log.
    Logged,
    /// Only its group counts it.
    Other,
}

/// A bio that a task hands to the block layer. Sectors of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioOut {
    /// The number; [`World::completed`] takes it back.
    pub id: u32,
    /// What it asks for.
    pub op: Op,
    /// The flags.
    pub flags: Flags,
    /// Where it begins.
    pub sector: Sector,
    /// The length; 0 of an empty flush.
    pub sectors: u32,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    done: Done,
    group: Option<Group>,
    /// A worker of the file system ends it.
    late: bool,
    /// First sector and sectors of what a journal waits for.
    home: Option<(Sector, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct GroupState {
    left: u32,
    waiter: Option<TaskId>,
    /// Nobody sleeps for it; it is told in [`World::finished`].
    told: bool,
}

/// A slab of numbers.
#[derive(Clone, Debug)]
struct Slab<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    fn add(&mut self, item: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self.items[id as usize] = Some(item);
            return id;
        }
        self.items.push(Some(item));
        u32::try_from(self.items.len() - 1).unwrap_or(u32::MAX)
    }

    fn take(&mut self, id: u32) -> Option<T> {
        let item = self.items.get_mut(id as usize)?.take()?;
        self.free.push(id);
        Some(item)
    }

    fn get(&mut self, id: u32) -> Option<&mut T> {
        self.items.get_mut(id as usize)?.as_mut()
    }
}

/// The kernel's state.
#[derive(Debug, Default)]
pub struct World {
    /// Virtual time.
    pub now: Nanos,
    /// Cached and dirty pages.
    pub memory: Memory,
    /// What is to be written back.
    pub flusher: Flusher,
    /// Who looks at the limits when, before 3.2.
    pub counters: Counters,
    /// What `pdflush` was asked for.
    pub asked: Asked,
    /// The disk's queue is congested with reads, with writes. The host says so.
    pub congested: [bool; 2],
    /// Control groups of tasks that have one but the root, and of the files that they made dirty.
    groups_of: BTreeMap<TaskId, u32>,
    owners: BTreeMap<u32, u32>,
    /// What each task has dirtied since it paused.
    dirtiers: Vec<Dirtier>,
    waits: Vec<Option<Wait>>,
    /// Tasks that keep their plug between two submissions.
    plugs: Vec<bool>,
    /// Bios that a task wants to hand over.
    bios: Vec<Vec<BioOut>>,
    in_flight: Slab<InFlight>,
    groups: Slab<GroupState>,
    pages: BTreeMap<(u32, u64), Vec<TaskId>>,
    events: BTreeMap<Event, Vec<TaskId>>,
    waiters: u64,
    /// Buffers of metadata that are being read, by their first sector.
    pub(super) reading: BTreeSet<Sector>,
    /// Those whose copies are on their way to the log.
    copying: BTreeSet<Sector>,
    /// Those on their way to their own place, and by how many bios.
    homeward: BTreeMap<Sector, u32>,
    /// Those that have come there, until the file system has taken note.
    home: Vec<Sector>,
    /// A writer went to sleep because too much memory is dirty; whoever drives the disk takes note.
    pub writer_slept: bool,
    /// Tasks whose wait is over.
    pub woken: Vec<TaskId>,
    /// Groups that nobody slept for and that are done.
    pub finished: Vec<Group>,
    /// Files whose pages came back from the disk while nobody waits for them, in order.
    ended: VecDeque<u32>,
    /// Files with dirty pages for which there was no place, until somebody has been told.
    lost: BTreeSet<u32>,
    /// Locks that somebody has.
    pub(super) locks: BTreeMap<Lock, Held>,
    /// Bios that came back, and that a worker of the file system ends.
    late: VecDeque<(Done, Option<Group>)>,
}

impl World {
    /// A dirty page cannot be written: it goes, and the next sync of its file says so. Not one that has gone meanwhile with its
    /// file.
    pub(crate) fn lose(&mut self, file: u32, page: u64) {
        if !self.pages(file).is_some_and(|p| p.has(page, Mark::Dirty)) {
            return;
        }
        self.memory.drop_pages(file, page, page + 1, true);
        self.lost.insert(file);
    }

    /// Whether dirty pages of the file have been lost since this was last asked.
    pub fn has_lost(&mut self, file: u32) -> bool {
        self.lost.remove(&file)
    }

    /// What the task has dirtied.
    pub fn dirtier(&mut self, task: TaskId) -> &mut Dirtier {
        let index = task as usize;
        if self.dirtiers.len() <= index {
            self.dirtiers.resize(index + 1, Dirtier::default());
        }
        &mut self.dirtiers[index]
    }

    /// The task is in a control group.
    pub fn set_cgroup(&mut self, task: TaskId, cgroup: u32) {
        if cgroup > 0 && self.memory.settings.group_writeback {
            self.groups_of.insert(task, cgroup);
        }
    }

    /// The task has made pages of the file dirty: while it is dirty it is its control group's.
    pub(super) fn own(&mut self, file: u32, task: TaskId) {
        if self.groups_of.is_empty() {
            return;
        }
        let group = self.groups_of.get(&task).copied().unwrap_or(0);
        self.owners.insert(file, group);
    }

    /// The control group to which a write of data belongs that nobody waits for.
    #[must_use]
    pub fn owner_of(&mut self, id: u32) -> u32 {
        match self.in_flight.get(id).map(|b| b.done) {
            Some(Done::Written { file, .. }) => self.owners.get(&file).copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// A number for a waiter.
    pub fn next_waiter(&mut self) -> u64 {
        self.waiters += 1;
        self.waiters
    }

    /// The present moment in jiffies.
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        self.now / (1_000_000_000 / self.memory.settings.hz)
    }

    /// What the task waits for; the event loop acts on it.
    pub fn take_wait(&mut self, task: TaskId) -> Option<Wait> {
        self.waits.get_mut(task as usize)?.take()
    }

    pub(super) fn set_wait(&mut self, task: TaskId, wait: Wait) {
        let task = task as usize;
        if self.waits.len() <= task {
            self.waits.resize(task + 1, None);
        }
        self.waits[task] = Some(wait);
    }

    /// Whether the task's next bios go under a plug that it keeps until it sleeps, as the flusher does over all inodes of a
    /// pass.
    pub fn keep_plug(&mut self, task: TaskId, on: bool) {
        let task = task as usize;
        if self.plugs.len() <= task {
            self.plugs.resize(task + 1, false);
        }
        self.plugs[task] = on;
    }

    /// Whether the task keeps its plug.
    #[must_use]
    pub fn keeps_plug(&self, task: TaskId) -> bool {
        self.plugs.get(task as usize).copied().unwrap_or(false)
    }

    /// Puts a task to sleep for pages, I/O or an event; `false` when there is nothing to wait for.
    pub fn sleep(&mut self, task: TaskId, wait: &Wait) -> bool {
        match *wait {
            Wait::Page { file, page } => {
                let locked = self.memory.pages(file).is_some_and(|p| {
                    p.has(page, Mark::Present) && !p.has(page, Mark::Uptodate)
                        || p.has(page, Mark::Writeback)
                });
                if locked {
                    self.pages.entry((file, page)).or_default().push(task);
                }
                locked
            }
            Wait::Io(group) => match self.groups.get(group) {
                Some(state) if state.left > 0 => {
                    state.waiter = Some(task);
                    true
                }
                _ => {
                    self.groups.take(group);
                    false
                }
            },
            Wait::Event(event) | Wait::EventUntil(event, _) => {
                self.events.entry(event).or_default().push(task);
                true
            }
            Wait::Submit | Wait::Until(_) | Wait::Joined(_) | Wait::Compute(_) => true,
        }
    }

    /// Wakes all who wait for the event.
    pub fn signal(&mut self, event: Event) {
        if let Some(tasks) = self.events.remove(&event) {
            self.woken.extend(tasks);
        }
    }

    /// The same, and who came last goes on first: so the kernel wakes those who wait for a journal.
    pub fn signal_last_first(&mut self, event: Event) {
        if let Some(tasks) = self.events.remove(&event) {
            self.woken.extend(tasks.into_iter().rev());
        }
    }

    /// The moment of an [`Wait::EventUntil`] has come: the task no longer waits for the event.
    pub fn timed_out(&mut self, task: TaskId, event: Event) {
        if let Some(tasks) = self.events.get_mut(&event) {
            tasks.retain(|t| *t != task);
        }
    }

    /// A group to wait for.
    pub fn group(&mut self) -> Group {
        self.groups.add(GroupState::default())
    }

    /// All bios of the group are made, and nobody will sleep for it: [`World::finished`] tells when they are done.
    pub fn tell(&mut self, group: Group) {
        let Some(state) = self.groups.get(group) else { return };
        state.told = true;
        if state.left == 0 {
            self.groups.take(group);
            self.finished.push(group);
        }
    }

    /// Whether all bios of a group are done. It is forgotten then.
    pub fn take_done(&mut self, group: Group) -> bool {
        let done = self.groups.get(group).is_some_and(|g| g.left == 0);
        if done {
            self.groups.take(group);
        }
        done
    }

    /// Makes a bio; the task hands it over with [`Wait::Submit`].
    pub fn bio(&mut self, task: TaskId, out: BioOut, done: Done, group: Option<Group>) {
        self.make(task, out, InFlight { done, group, late: false, home: None });
    }

    /// The same, and whoever waits for it goes on when a worker of the file system has ended it ([`World::end`]).
    pub fn late_bio(&mut self, task: TaskId, out: BioOut, done: Done, group: Option<Group>) {
        self.make(task, out, InFlight { done, group, late: true, home: None });
    }

    /// The same as [`World::bio`], of blocks of which a journal has copies until they are in their own places.
    pub fn home_bio(&mut self, task: TaskId, out: BioOut, done: Done, group: Option<Group>) {
        let home = Some((out.sector, out.sectors));
        for sector in sectors_of(home) {
            *self.homeward.entry(sector).or_default() += 1;
        }
        self.make(task, out, InFlight { done, group, late: false, home });
    }

    fn make(&mut self, task: TaskId, out: BioOut, bio: InFlight) {
        let InFlight { done, group, .. } = bio;
        if let Some(state) = group.and_then(|g| self.groups.get(g)) {
            state.left += 1;
        }
        if let Done::Copied { sector } = done {
            self.copying.insert(sector);
        }
        let id = self.in_flight.add(bio);
        let task = task as usize;
        if self.bios.len() <= task {
            self.bios.resize_with(task + 1, Vec::new);
        }
        self.bios[task].push(BioOut { id, ..out });
    }

    /// Whether a copy of the buffer is on its way to the log.
    #[must_use]
    pub fn is_copied(&self, sector: Sector) -> bool {
        self.copying.contains(&sector)
    }

    /// The bios that the task wants to hand over, in order.
    pub fn take_bios(&mut self, task: TaskId) -> Vec<BioOut> {
        self.bios.get_mut(task as usize).map(std::mem::take).unwrap_or_default()
    }

    /// Whether the task has made bios that it has not handed over.
    #[must_use]
    pub fn has_bios(&self, task: TaskId) -> bool {
        self.bios.get(task as usize).is_some_and(|b| !b.is_empty())
    }

    /// A bio is done.
    pub fn completed(&mut self, id: u32) {
        let Some(bio) = self.in_flight.take(id) else { return };
        if !matches!(bio.done, Done::Read { .. } | Done::Metadata { .. }) && !self.congested[1] {
            self.signal(Event::Uncongested);
        }
        for sector in sectors_of(bio.home) {
            self.comes_home(sector);
        }
        if bio.late {
            self.late.push_back((bio.done, bio.group));
            self.signal(Event::Ended);
        } else {
            self.end(bio.done, bio.group);
        }
    }

    /// The next bio that a worker has to end.
    pub(crate) fn next_late(&mut self) -> Option<(Done, Option<Group>)> {
        self.late.pop_front()
    }

    /// What a bio was for is done.
    pub(crate) fn end(&mut self, done: Done, group: Option<Group>) {
        match done {
            Done::Read { file, from, to } => {
                if let Some(pages) = self.memory.pages(file) {
                    pages.set(from, to, Mark::Uptodate, true);
                }
                self.unlock(file, from, to);
            }
            Done::Written { file, from, to } => {
                self.memory.written(file, from, to, self.now);
                self.unlock(file, from, to);
                if group.is_none() {
                    self.has_ended(file);
                }
            }
            // Whoever waits to change it goes on before the writer of the log.
            Done::Copied { sector } => {
                self.copying.remove(&sector);
                self.signal_last_first(Event::Buffer(sector));
            }
            Done::Logged => self.signal(Event::Logged),
            Done::Metadata { .. } | Done::Other => {}
        }
        self.one_less(group);
        // Who started the read goes on first.
        if let Done::Metadata { sector } = done {
            self.reading.remove(&sector);
            self.signal(Event::Buffer(sector));
        }
    }

    /// A write of a buffer to its own place is done, perhaps the last of several.
    fn comes_home(&mut self, sector: Sector) {
        let Some(left) = self.homeward.get_mut(&sector) else { return };
        *left -= 1;
        if *left == 0 {
            self.homeward.remove(&sector);
            self.home.push(sector);
            self.signal(Event::Home(sector));
        }
    }

    /// The first buffer from a sector on that is on its way to its own place.
    pub(super) fn next_homeward(&self, from: Sector) -> Option<Sector> {
        self.homeward.range(from..).next().map(|(sector, _)| *sector)
    }

    /// Buffers that have come to their own place since this was last asked.
    pub(crate) fn take_home(&mut self) -> Vec<Sector> {
        std::mem::take(&mut self.home)
    }

    /// The file system is told that pages of a file came back.
    pub(crate) fn has_ended(&mut self, file: u32) {
        self.ended.push_back(file);
        self.signal(Event::Ended);
    }

    /// The next file of which it has to note that.
    pub(crate) fn next_ended(&mut self) -> Option<u32> {
        self.ended.pop_front()
    }

    /// A bio of a group is done.
    fn one_less(&mut self, group: Option<Group>) {
        if let Some(group) = group
            && let Some(state) = self.groups.get(group)
        {
            state.left -= 1;
            if state.left > 0 {
                return;
            }
            if let Some(task) = state.waiter.take() {
                self.groups.take(group);
                self.woken.push(task);
            } else if state.told {
                self.groups.take(group);
                self.finished.push(group);
            }
        }
    }

    /// Wakes tasks that wait for one of the pages, in order of pages.
    fn unlock(&mut self, file: u32, from: u64, to: u64) {
        while let Some((key, _)) = self.pages.range((file, from)..(file, to)).next() {
            let key = *key;
            if let Some(tasks) = self.pages.remove(&key) {
                self.woken.extend(tasks);
            }
        }
    }

    /// The file's cached pages.
    pub fn pages(&mut self, file: u32) -> Option<&mut Mapping> {
        self.memory.pages(file)
    }
}

/// The first sectors of the blocks of a bio.
fn sectors_of(home: Option<(Sector, u32)>) -> impl Iterator<Item = Sector> {
    home.into_iter()
        .flat_map(|(sector, sectors)| (0..u64::from(sectors / 8)).map(move |n| sector + n * 8))
}
