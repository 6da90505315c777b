//! What happens in a run, for who explains it: calls, what they find in memory, their bios, their waits and who ends them.
//!
//! Whoever waits is woken by exactly one cause, and each is noted where it arises: a bio that is done, a timer, room in
//! the queue, or another task or thread that goes on.

use std::collections::{BTreeMap, BTreeSet};

use iosched_block::Room;
use iosched_syscalls::{Answer, Call};
use iosched_types::{Flags, Nanos, Op, Sector};
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::kernel::{BioOut, Done, Event, Found, Wait};

use super::Programs;
use super::calls::PAGE;
use super::paths::{THREADS, actor_of, is_thread};
use super::task::Tid;
use crate::fs::Part;

/// Happenings that are kept. A run with more of them cannot be read anyway.
const MOST: usize = 1 << 20;

/// Who does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// A thread of the kernel: 0 writes dirty pages back, 1 is the journal's, 2 frees files that the last has closed, 3
    /// makes asynchronous direct writes durable, 4 notes what came back from the disk, 5 ends writes of the log.
    Thread(u32),
    /// A task, by the order of births.
    Task(u32),
}

impl Who {
    fn of(t: Tid) -> Who {
        if is_thread(t) { Who::Thread(actor_of(t)) } else { Who::Task(t) }
    }

    fn of_actor(a: u32) -> Who {
        a.checked_sub(THREADS).map_or(Who::Thread(a), Who::Task)
    }
}

/// What somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// A page to be unlocked: its read or its write ends.
    Page {
        /// Whose, by number.
        file: u32,
        /// Counted from the start of the file.
        page: u64,
    },
    /// Bios, by their numbers.
    Bios(Vec<u32>),
    /// The end of a pause of who dirties memory too fast.
    Pause(Nanos),
    /// Until this moment others may join the commit that it wants.
    Others(Nanos),
    /// Something that another path brings about; for a thread perhaps time, too.
    Event(Event, Option<Nanos>),
    /// Room in the queue.
    Room(Room),
}

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The end of a bio, by its number.
    Bio(u32),
    /// Its time has come.
    Time,
    /// Room in the queue.
    Room,
    /// Somebody.
    Who(Who),
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A call begins.
    Calls(&'static str),
    /// It finds this of a file's pages in memory.
    Finds(u32, Found),
    /// A bio is made, by its number.
    Submits(u32),
    /// It goes to sleep.
    Waits(WaitsFor),
    /// It goes on.
    Woken(Cause),
    /// Its call is answered.
    Returns(Answer),
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// When.
    pub at: Nanos,
    /// To whom.
    pub who: Who,
    /// What.
    pub what: What,
}

/// A bio, before it is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotedBio {
    /// By whom.
    pub by: Who,
    /// What.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Sectors; 0 of an empty flush.
    pub sectors: u32,
    /// Which pages of which file, if any.
    pub purpose: Done,
    /// What lies there; see [`FileSystem::class`](iosched_vfs::fs::FileSystem::class).
    pub class: &'static str,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// In the order of time.
    pub happenings: Vec<Happening>,
    /// Bios by their numbers.
    pub bios: Vec<NotedBio>,
    /// Files by their numbers, with the names by which they were last opened.
    pub names: BTreeMap<u32, String>,
    /// Which number the block layer knew a bio by, from when on.
    pub known_as: Vec<(Nanos, u32, u32)>,
    /// There was more.
    pub cut: bool,
}

/// What is being noted.
#[derive(Debug, Default)]
pub(super) struct Notes {
    seen: Seen,
    /// Of bios under way: their numbers by the kernel's.
    numbers: Vec<u32>,
    /// Of those whose wait is over and who were not told yet: so many have their cause.
    caused: usize,
    /// Who goes on at the moment.
    running: Option<Who>,
    /// Who sleeps.
    asleep: BTreeSet<Who>,
    /// Calls that are not answered, by task: opens with their names.
    open_calls: BTreeMap<Tid, Option<String>>,
}

impl Programs {
    /// Notes from now on what happens.
    pub fn explain(&mut self) {
        self.notes = Some(Box::default());
        self.queue.explain();
    }

    /// What was noted.
    #[must_use]
    pub fn take_seen(&mut self) -> Seen {
        self.notes.take().map(|n| n.seen).unwrap_or_default()
    }

    /// Who has an I/O context.
    #[must_use]
    pub fn who_has(&self, context: u32) -> Option<Who> {
        self.contexts.get(context as usize).map(|t| Who::of(*t))
    }

    fn note(&mut self, who: Who, what: What) {
        let at = self.tl.now;
        let Some(notes) = &mut self.notes else { return };
        match what {
            What::Waits(_) => _ = notes.asleep.insert(who),
            // A turn given up for a moment is no sleep.
            What::Woken(_) if !notes.asleep.remove(&who) => return,
            _ => {}
        }
        if notes.seen.happenings.len() >= MOST {
            notes.seen.cut = true;
            return;
        }
        notes.seen.happenings.push(Happening { at, who, what });
    }

    /// Who goes on from here.
    #[inline]
    pub(super) fn note_running(&mut self, t: Tid) {
        if let Some(notes) = &mut self.notes {
            notes.running = Some(Who::of(t));
        }
    }

    /// A call begins.
    #[inline]
    pub(super) fn note_call(&mut self, t: Tid, call: &Call) {
        if self.notes.is_none() {
            return;
        }
        let name = match call {
            Call::Open { path, .. } => Some(path.to_string()),
            _ => None,
        };
        if let Some(notes) = &mut self.notes {
            notes.running = Some(Who::of(t));
            notes.open_calls.insert(t, name);
        }
        self.note(Who::of(t), What::Calls(call.name()));
    }

    /// A task goes on with the answer of its call.
    #[inline]
    pub(super) fn note_answer(&mut self, t: Tid) {
        let Some(notes) = &mut self.notes else { return };
        if notes.open_calls.remove(&t).is_some() {
            let answer = self.tasks[t as usize].answer;
            self.note(Who::of(t), What::Returns(answer));
        }
    }

    /// A name was opened: from now on its file is called so.
    pub(super) fn note_name(&mut self, t: Tid, file: u32) {
        let Some(notes) = &mut self.notes else { return };
        if let Some(Some(name)) = notes.open_calls.get(&t) {
            notes.seen.names.insert(file, name.clone());
        }
    }

    /// What a call finds of a range.
    pub(super) fn note_found(&mut self, t: Tid, part: Part, read: bool) {
        if self.notes.is_none() {
            return;
        }
        let Some(mount) = self.fs.mount() else { return };
        let (from, end) = (part.at / PAGE, part.at.saturating_add(part.len));
        let (to, last) = (end.div_ceil(PAGE), mount.len(part.ino).div_ceil(PAGE));
        // A read ends with the file; a write finds nothing behind its end.
        let to = if read { to.min(last) } else { to };
        let found = mount.world.borrow_mut().found(part.ino.0, from, to);
        self.note(Who::of(t), What::Finds(part.ino.0, found));
    }

    /// Bios that a path hands over.
    pub(super) fn note_made(&mut self, t: Tid, bios: &[BioOut]) {
        if self.notes.is_none() {
            return;
        }
        let Some(mount) = self.fs.mount().cloned() else { return };
        for bio in bios {
            let purpose = mount.world.borrow().purpose(bio.id).unwrap_or(Done::Other);
            let BioOut { id, op, flags, sector, sectors } = *bio;
            let class = if sectors == 0 { "-" } else { mount.volume().class(sector) };
            let noted = NotedBio { by: Who::of(t), op, flags, sector, sectors, purpose, class };
            let Some(notes) = &mut self.notes else { return };
            let number = notes.seen.bios.len() as u32;
            if number as usize >= MOST {
                notes.seen.cut = true;
                return;
            }
            notes.seen.bios.push(noted);
            if notes.numbers.len() <= id as usize {
                notes.numbers.resize(id as usize + 1, 0);
            }
            notes.numbers[id as usize] = number;
            self.note(Who::of(t), What::Submits(number));
        }
    }

    /// The block layer knows a bio under this number from now on.
    #[inline]
    pub(super) fn note_known(&mut self, id: u32, known: u32) {
        let now = self.tl.now;
        let Some(notes) = &mut self.notes else { return };
        if notes.seen.known_as.len() < MOST
            && let Some(number) = notes.numbers.get(id as usize)
        {
            notes.seen.known_as.push((now, known, *number));
        }
    }

    /// Somebody is about to sleep; called before the world forgets what for. Whether that was noted.
    pub(super) fn note_wait(&mut self, t: Tid, wait: &Wait) -> bool {
        if self.notes.is_none() {
            return false;
        }
        let what = match *wait {
            Wait::Page { file, page } => WaitsFor::Page { file, page },
            Wait::Io(group) => WaitsFor::Bios(self.numbers_of(group)),
            Wait::Until(at) => WaitsFor::Pause(at),
            Wait::Joined(at) => WaitsFor::Others(at),
            Wait::Event(event) => WaitsFor::Event(event, None),
            Wait::EventUntil(event, at) => WaitsFor::Event(event, Some(at)),
            Wait::Submit | Wait::Compute(_) => return false,
        };
        self.note(Who::of(t), What::Waits(what));
        true
    }

    /// There was nothing to wait for after all.
    pub(super) fn note_no_wait(&mut self, t: Tid) {
        let Some(notes) = &mut self.notes else { return };
        notes.asleep.remove(&Who::of(t));
        if !notes.seen.cut {
            notes.seen.happenings.pop();
        }
    }

    fn numbers_of(&self, group: u32) -> Vec<u32> {
        let (Some(mount), Some(notes)) = (self.fs.mount(), &self.notes) else { return Vec::new() };
        let world = mount.world.borrow();
        world.bios_of(group).filter_map(|id| notes.numbers.get(id as usize).copied()).collect()
    }

    /// It sleeps for room in the queue.
    #[inline]
    pub(super) fn note_blocked(&mut self, t: Tid, context: u32) {
        if self.notes.is_some() {
            let room = self.queue.sleeps_for(context);
            self.note(Who::of(t), What::Waits(WaitsFor::Room(room)));
        }
    }

    /// Its wait is over for a reason that concerns it alone.
    #[inline]
    pub(super) fn note_woken(&mut self, t: Tid, cause: Cause) {
        if self.notes.is_some() {
            self.note(Who::of(t), What::Woken(cause));
        }
    }

    /// A bio is done: those whose wait that ended get it as its cause.
    #[inline]
    pub(super) fn note_done(&mut self, id: u32) {
        let Some(notes) = &self.notes else { return };
        if let Some(number) = notes.numbers.get(id as usize).copied() {
            self.note_causes(Cause::Bio(number));
        }
    }

    /// Those whose wait is over and have no cause yet were woken by who goes on now. They are told next.
    #[inline]
    pub(super) fn note_told(&mut self) {
        let Some(notes) = &self.notes else { return };
        if let Some(who) = notes.running {
            self.note_causes(Cause::Who(who));
        }
        if let Some(notes) = &mut self.notes {
            notes.caused = 0;
        }
    }

    fn note_causes(&mut self, cause: Cause) {
        let (Some(mount), Some(notes)) = (self.fs.mount(), &mut self.notes) else { return };
        let from = std::mem::take(&mut notes.caused);
        let woken: Vec<u32> = mount.world.borrow().woken.iter().skip(from).copied().collect();
        notes.caused = from + woken.len();
        for a in woken {
            self.note(Who::of_actor(a), What::Woken(cause));
        }
    }
}
