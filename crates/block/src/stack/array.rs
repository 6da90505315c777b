//! From bios of an array to bios of its legs, and back.
//!
//! A bio becomes steps of the thread that submits it. A step that finds no tag on a leg, or an array that must first be
//! marked dirty, puts the thread to sleep; it goes on there when it is woken. Two threads belong to the array: one
//! writes its superblocks and what waited for the bitmap, the other what waited for a flush.

use std::collections::VecDeque;

use iosched_schedulers::{KernelVersion, TaskInfo};
use iosched_types::{Bio, BioId, Flags, IoPrio, Op, Sector, TaskId};

use super::balance::{Balance, Why};
use super::dirty::{DAEMON, Dirty, May};
use super::parts::Layout;
use crate::config::{ArrayConfig, Level};
use crate::outbox::{Done, Outbox, Submit};
use crate::profile::{KernelProfile, LegacyFlush};
use crate::queue::Queue;
use crate::timeline::{ArrayEvent, Event, Timeline};

/// The array's own threads, numbered before all others on the legs.
const OWN: [&str; 2] = ["md0_raid1", "md-flush"];
/// Superblocks, bitmap, and writes that waited for it.
const WRITER: TaskId = 0;
/// What waited for a flush.
const FLUSHER: TaskId = 1;

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

/// What an array sent to a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegStats {
    /// Bios that read.
    pub reads: u64,
    /// Bios that write or discard.
    pub writes: u64,
    /// Reads that followed one on another leg.
    pub changes: u64,
}

/// Where a bio of a leg comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The bio of the array.
    pub bio: BioId,
    /// Why it went to this leg.
    pub why: Why,
}

/// A bio of the array that is not done.
#[derive(Clone, Copy, Debug, Default)]
struct Master {
    bio: BioId,
    /// Bios on legs, and parts that are not there yet.
    left: u32,
    /// It counts as a write under way.
    write: bool,
}

/// Whose a bio on a leg is.
#[derive(Clone, Copy, Debug, Default)]
enum Of {
    Master(u32),
    /// The round of flushes.
    Round,
    /// Superblock or bitmap.
    #[default]
    Own,
}

/// A bio on a leg.
#[derive(Clone, Copy, Debug, Default)]
struct Below {
    of: Of,
    leg: usize,
    end: Sector,
    read: bool,
}

/// Entries by number; numbers are used again.
#[derive(Debug, Default)]
struct Slab<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    fn add(&mut self, t: T) -> u32 {
        match self.free.pop() {
            Some(i) => {
                self.all[i as usize] = t;
                i
            }
            None => {
                self.all.push(t);
                self.all.len() as u32 - 1
            }
        }
    }
}

/// What a thread still has to do for its bios.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A part of a write that may have to wait for a mark.
    Write(u32, Bio),
    /// A part of a read, which has no leg yet.
    Read(u32, Bio),
    /// A bio for a leg.
    Send(usize, Bio),
}

/// A thread that submits.
#[derive(Debug, Default)]
struct Thread {
    steps: VecDeque<Step>,
    /// It sleeps for a tag or a request of the leg of its first step.
    asleep: bool,
}

/// How a kernel flushes an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlushRule {
    /// The legs are flushed beside the data (since 6.11).
    Beside,
    /// The legs are flushed, then the data go, one round at a time.
    Rounds,
    /// Barriers are passed on (2.6.18).
    Barrier,
}

/// Who sends the writes of a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Task,
    /// The array's thread where there is a bitmap and the task has no plug.
    TaskIfPlugged,
    /// The array's thread.
    Thread,
}

/// Several queues as one device.
#[derive(Debug)]
pub(super) struct Array {
    level: Level,
    layout: Layout,
    balance: Balance,
    dirty: Option<Dirty>,
    flush: FlushRule,
    sender: Sender,
    /// The array's outbox while the first leg has its own.
    out: Outbox,
    masters: Slab<Master>,
    sent: Slab<Below>,
    threads: Vec<Thread>,
    /// Threads that sleep until the array is marked dirty.
    markers: Vec<TaskId>,
    /// Writes that the array's thread will send, some of them once the bitmap is written.
    kept: Vec<(u32, Bio)>,
    spare: Vec<(u32, Bio)>,
    /// Bios that wait for the next round of flushes, and those for the one under way.
    next_round: Vec<(u32, Bio)>,
    round: Vec<(u32, Bio)>,
    round_left: u32,
    rounds: u64,
    legs: Vec<LegStats>,
    last_read: Option<usize>,
    routed: Option<Vec<Option<Routed>>>,
    /// The array's threads have something to do.
    called: bool,
}

impl Array {
    pub(super) fn new(profile: &KernelProfile, config: &ArrayConfig, legs: &mut Legs<'_>) -> Array {
        let kernel = profile.kernel_version();
        let (mut rotational, mut sectors) = (Vec::new(), Vec::new());
        legs.each(|leg| {
            rotational.push(leg.facts().rotational);
            sectors.push(leg.facts().capacity);
        });
        let data = sectors.iter().min().map_or(0, |s| s.saturating_sub(config.data_offset));
        let mirror = config.level == Level::Raid1;
        let flush = match profile.legacy.flush {
            LegacyFlush::Barrier => FlushRule::Barrier,
            LegacyFlush::FlushFua if mirror && kernel >= KernelVersion(6, 11, 0) => {
                FlushRule::Beside
            }
            LegacyFlush::FlushFua => FlushRule::Rounds,
        };
        let chunk = config.bitmap_chunk;
        Array {
            level: config.level,
            layout: Layout::new(kernel, config, &sectors),
            balance: Balance::new(
                kernel,
                rotational.iter().copied(),
                config.optimal_io,
                &config.write_mostly,
            ),
            dirty: mirror.then(|| Dirty::new(profile.hz, chunk, data)),
            flush,
            sender: match kernel {
                _ if !mirror => Sender::Task,
                k if k < KernelVersion(3, 6, 0) => Sender::Thread,
                k if k < KernelVersion(6, 5, 0) => Sender::TaskIfPlugged,
                _ => Sender::Task,
            },
            out: Outbox::default(),
            masters: Slab { all: Vec::new(), free: Vec::new() },
            sent: Slab { all: Vec::new(), free: Vec::new() },
            threads: Vec::new(),
            markers: Vec::new(),
            kept: Vec::new(),
            spare: Vec::new(),
            next_round: Vec::new(),
            round: Vec::new(),
            round_left: 0,
            rounds: 0,
            legs: vec![LegStats::default(); sectors.len()],
            last_read: None,
            routed: None,
            called: false,
        }
    }

    pub(super) fn explain(&mut self) {
        self.routed = Some(Vec::new());
    }

    pub(super) fn routed(&self, below: u32) -> Option<Routed> {
        self.routed.as_ref()?.get(below as usize).copied().flatten()
    }

    pub(super) fn leg_stats(&self) -> Vec<LegStats> {
        self.legs.clone()
    }

    pub(super) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut all = vec![("flush rounds", self.rounds)];
        if let Some(d) = &self.dirty {
            all.extend([("superblock writes", d.superblocks), ("bitmap writes", d.bitmaps)]);
        }
        all
    }

    /// Bios that no leg has yet.
    pub(super) fn held(&self) -> usize {
        let steps: usize = self.threads.iter().map(|t| t.steps.len()).sum();
        self.kept.len() + self.next_round.len() + self.round.len() + steps
    }

    /// The first leg gets an outbox of its own.
    pub(super) fn enter(&mut self, legs: &mut Legs<'_>) {
        std::mem::swap(legs.first.out_mut(), &mut self.out);
        if self.out.issues.is_some() && legs.first.out().issues.is_none() {
            legs.first.out_mut().issues = Some(Vec::new());
        }
    }

    /// What the legs have said becomes what the array says.
    pub(super) fn leave(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline) {
        loop {
            let mut any = false;
            for leg in 0..legs.count() {
                any |= self.hear(legs, tl, leg);
            }
            any |= self.begin_own(legs, tl);
            if !any && !self.called {
                break;
            }
            self.run_own(legs, tl);
        }
        if let (Some(theirs), Some(ours)) = (&mut legs.first.out_mut().issues, &mut self.out.issues)
        {
            // Whoever draws the way of a head sees the one of the first leg.
            ours.extend(theirs.drain(..).map(|mut issue| {
                issue.task = above_checked(issue.task).unwrap_or(TaskId::MAX);
                issue
            }));
        }
        std::mem::swap(legs.first.out_mut(), &mut self.out);
    }

    /// Takes what a leg has finished and whom it has woken.
    fn hear(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline, leg: usize) -> bool {
        let out = legs.get(leg).out_mut();
        if out.done.is_empty() && out.woken.is_empty() {
            return false;
        }
        let mut done = std::mem::take(&mut out.done);
        let mut woken = std::mem::take(&mut out.woken);
        out.woken_behind.clear();
        for d in done.drain(..) {
            self.came_back(legs, tl, d.bio);
        }
        for thread in woken.drain(..) {
            match above_checked(thread) {
                Some(host) => self.out.woken.push(host),
                None => {
                    self.go(legs, tl, thread, true);
                    legs.each(|l| l.run_deferred(tl));
                }
            }
        }
        // Memory goes back, unless more was said meanwhile.
        let out = legs.get(leg).out_mut();
        if out.done.is_empty() {
            out.done = done;
        }
        if out.woken.is_empty() {
            out.woken = woken;
        }
        true
    }

    fn came_back(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline, id: BioId) {
        let below = self.sent.all[id as usize];
        if self.routed.is_none() {
            self.sent.free.push(id);
        }
        if let Of::Master(_) = below.of
            && below.end > 0
        {
            self.balance.came_back(below.leg, below.end, below.read);
        }
        match below.of {
            Of::Master(master) => self.part_done(tl, master),
            Of::Round => self.leg_flushed(legs, tl),
            Of::Own => {
                if self.dirty.as_mut().is_some_and(Dirty::leg_done) {
                    self.marked();
                }
            }
        }
    }

    fn part_done(&mut self, tl: &mut Timeline, master: u32) {
        let m = &mut self.masters.all[master as usize];
        m.left -= 1;
        if m.left > 0 {
            return;
        }
        let m = *m;
        self.masters.free.push(master);
        self.out.done.push(Done { bio: m.bio, at: tl.now });
        if m.write
            && let Some(dirty) = &mut self.dirty
            && let Some((at, timer)) = dirty.write_ended(tl.now)
        {
            tl.events.push(at, Event::Array(ArrayEvent::SafeMode(timer)));
        }
    }

    /// A sector of superblock or bitmap is on all legs: who waited may try again.
    fn marked(&mut self) {
        for thread in self.markers.drain(..) {
            match above_checked(thread) {
                Some(host) => self.out.woken.push(host),
                None => self.called = true,
            }
        }
        if !self.kept.is_empty() {
            self.called = true;
        }
    }

    /// Superblocks and bitmap: the next sector goes to all legs.
    fn begin_own(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline) -> bool {
        let Some(dirty) = &mut self.dirty else { return false };
        if dirty.daemon_wanted() {
            tl.events.push(tl.now + DAEMON, Event::Array(ArrayEvent::Daemon));
        }
        let count = legs.count();
        let Some(sector) = dirty.begin(count as u32) else { return false };
        let flags = Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC).with(Flags::META);
        for leg in (0..count).rev() {
            let bio = own_bio(WRITER, Op::Write, flags, sector, 1);
            self.put(WRITER, Of::Own, leg, bio);
        }
        self.go(legs, tl, WRITER, false);
        legs.each(|l| l.run_deferred(tl));
        true
    }

    /// The array's threads do what has come up for them.
    fn run_own(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline) {
        if !std::mem::take(&mut self.called) {
            return;
        }
        legs.each(|l| l.start_plug(WRITER));
        let mut kept = std::mem::replace(&mut self.kept, std::mem::take(&mut self.spare));
        for (master, bio) in kept.drain(..) {
            let may = self.dirty.as_mut().map_or(May::Go, |d| d.may_write(bio.sector));
            if may == May::Go {
                self.send_to_all(WRITER, master, bio);
            } else {
                self.kept.push((master, bio));
            }
        }
        self.spare = kept;
        self.go(legs, tl, WRITER, false);
        legs.each(|l| l.finish_plug(tl, WRITER));
        self.go(legs, tl, FLUSHER, false);
        legs.each(|l| l.run_deferred(tl));
    }

    /// The time of an event of the array has come.
    pub(super) fn event(&mut self, event: ArrayEvent) {
        let Some(dirty) = &mut self.dirty else { return };
        match event {
            ArrayEvent::SafeMode(timer) => dirty.quiet(timer),
            ArrayEvent::Daemon => dirty.daemon_comes(),
        }
    }

    /// A thread of the host submits a bio, or goes on with one that it slept for.
    pub(super) fn submit(
        &mut self,
        legs: &mut Legs<'_>,
        tl: &mut Timeline,
        bio: &Bio,
        resumed: bool,
    ) -> Submit {
        let thread = below(bio.thread);
        if !(resumed && self.is_inside(thread)) {
            let flags = bio.flags.without(Flags::NOWAIT);
            self.plan(legs, tl, thread, Bio { task: below(bio.task), thread, flags, ..*bio });
        }
        if self.go(legs, tl, thread, resumed) { Submit::Taken } else { Submit::Blocked }
    }

    /// The leg that refused a thread's bio; `None` when it waits for a mark.
    pub(super) fn refused_by(&self, thread: TaskId) -> Option<usize> {
        match self.threads.get(thread as usize)?.steps.front()? {
            Step::Send(leg, _) => Some(*leg),
            Step::Read(..) | Step::Write(..) => None,
        }
    }

    fn is_inside(&self, thread: TaskId) -> bool {
        self.threads.get(thread as usize).is_some_and(|t| !t.steps.is_empty())
    }

    fn thread(&mut self, thread: TaskId) -> &mut Thread {
        let n = thread as usize;
        if self.threads.len() <= n {
            self.threads.resize_with(n + 1, Thread::default);
        }
        &mut self.threads[n]
    }

    /// Splits a bio of the array into steps.
    fn plan(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline, thread: TaskId, bio: Bio) {
        let flush = bio.op == Op::Flush || bio.flags.has(Flags::PREFLUSH);
        if flush && self.flush == FlushRule::Rounds {
            let master = self.masters.add(Master { bio: bio.id, left: 1, write: false });
            self.next_round.push((master, bio));
            self.begin_round(legs, tl);
            return;
        }
        let master = self.masters.add(Master { bio: bio.id, left: 0, write: false });
        if flush && self.flush == FlushRule::Beside || bio.op == Op::Flush {
            for leg in (0..legs.count()).rev() {
                let empty = Bio { prio: IoPrio::default(), ..flush_of(bio) };
                self.masters.all[master as usize].left += 1;
                self.put(thread, Of::Master(master), leg, empty);
            }
            if bio.op == Op::Flush {
                return;
            }
        }
        let flags = match self.flush {
            FlushRule::Barrier => bio.flags,
            _ => bio.flags.without(Flags::PREFLUSH),
        };
        self.data(legs, thread, master, Bio { flags, ..bio });
    }

    /// The parts of a bio with data.
    fn data(&mut self, legs: &Legs<'_>, thread: TaskId, master: u32, bio: Bio) {
        let copies = match (self.level, bio.op) {
            (Level::Raid1, Op::Write | Op::Discard) => legs.count() as u32,
            _ => 1,
        };
        self.thread(thread);
        for part in self.layout.parts(&bio) {
            self.masters.all[master as usize].left += copies;
            let step = match bio.op {
                Op::Read => Step::Read(master, part),
                _ => Step::Write(master, part),
            };
            self.threads[thread as usize].steps.push_back(step);
        }
    }

    /// A bio that is known to go to a leg, behind all else of the thread.
    fn put(&mut self, thread: TaskId, of: Of, leg: usize, bio: Bio) {
        let bio = self.clone_for(thread, of, leg, bio, Why::Every);
        self.thread(thread).steps.push_back(Step::Send(leg, bio));
    }

    fn clone_for(&mut self, thread: TaskId, of: Of, leg: usize, bio: Bio, why: Why) -> Bio {
        let end = if bio.op == Op::Flush { 0 } else { bio.end() };
        let id = self.sent.add(Below { of, leg, end, read: bio.op == Op::Read });
        if let Some(routed) = &mut self.routed {
            let from = match of {
                Of::Master(m) => Some(Routed { bio: self.masters.all[m as usize].bio, why }),
                _ => None,
            };
            routed.push(from);
        }
        Bio { id, thread, ..bio }
    }

    /// The copies of a write, behind all else of the thread.
    fn send_to_all(&mut self, thread: TaskId, master: u32, bio: Bio) {
        for leg in 0..self.legs.len() {
            let bio = self.copy(thread, master, leg, bio);
            self.thread(thread).steps.push_back(Step::Send(leg, bio));
        }
    }

    fn copy(&mut self, thread: TaskId, master: u32, leg: usize, bio: Bio) -> Bio {
        self.legs[leg].writes += 1;
        self.balance.sent(leg);
        let sector = self.layout.on_leg(leg, bio.sector);
        self.clone_for(thread, Of::Master(master), leg, Bio { sector, ..bio }, Why::Every)
    }

    /// Does the steps of a thread; `false` when it falls asleep.
    fn go(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline, thread: TaskId, woken: bool) -> bool {
        let slot = self.thread(thread);
        if slot.asleep && !woken {
            return false;
        }
        let mut resumed = std::mem::take(&mut slot.asleep);
        let mut parts = 0;
        while let Some(step) = self.threads[thread as usize].steps.front().copied() {
            if !matches!(step, Step::Send(..)) {
                // Without a plug a part is on its way before the next one comes.
                if parts > 0 && !legs.first.has_plug(thread) {
                    legs.each(|leg| leg.run_deferred(tl));
                }
                parts += 1;
            }
            match step {
                Step::Send(leg, bio) => {
                    if legs.get(leg).submit(tl, &bio, resumed) == Submit::Blocked {
                        self.threads[thread as usize].asleep = true;
                        return false;
                    }
                    self.threads[thread as usize].steps.pop_front();
                    resumed = false;
                }
                Step::Read(master, bio) => {
                    let (leg, bio) = self.read(thread, master, bio);
                    self.threads[thread as usize].steps[0] = Step::Send(leg, bio);
                }
                Step::Write(master, bio) => {
                    if !self.write(legs, tl, thread, master, bio) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Chooses the leg of a read.
    fn read(&mut self, thread: TaskId, master: u32, bio: Bio) -> (usize, Bio) {
        let (leg, why) = match self.level {
            Level::Linear => {
                let leg = self.layout.leg(bio.sector);
                self.balance.sent(leg);
                (leg, Why::Place)
            }
            Level::Raid1 => {
                let sector = self.layout.on_leg(0, bio.sector);
                self.balance.choose(sector, sector + Sector::from(bio.sectors))
            }
        };
        let stats = &mut self.legs[leg];
        stats.reads += 1;
        stats.changes += u64::from(self.last_read.replace(leg).is_some_and(|last| last != leg));
        let sector = self.layout.on_leg(leg, bio.sector);
        let of = Of::Master(master);
        (leg, self.clone_for(thread, of, leg, Bio { sector, ..bio }, why))
    }

    /// A part of a write goes on, or waits for a mark; `false` when its thread sleeps.
    fn write(
        &mut self,
        legs: &mut Legs<'_>,
        tl: &mut Timeline,
        thread: TaskId,
        master: u32,
        bio: Bio,
    ) -> bool {
        if self.level == Level::Linear {
            let leg = self.layout.leg(bio.sector);
            let bio = self.copy(thread, master, leg, bio);
            self.threads[thread as usize].steps[0] = Step::Send(leg, bio);
            return true;
        }
        let Some(dirty) = &mut self.dirty else { return true };
        let may = dirty.may_write(bio.sector);
        if may == May::Sleep {
            if !self.markers.contains(&thread) {
                self.markers.push(thread);
            }
            self.begin_own(legs, tl);
            return false;
        }
        let bitmap = dirty.has_bitmap();
        let m = &mut self.masters.all[master as usize];
        if !std::mem::replace(&mut m.write, true) {
            dirty.write_begins();
        }
        let by_thread = thread > FLUSHER
            && match self.sender {
                Sender::Task => false,
                Sender::TaskIfPlugged => bitmap && !legs.first.has_plug(thread),
                Sender::Thread => true,
            };
        self.threads[thread as usize].steps.pop_front();
        if by_thread || may == May::Keep {
            let task = if by_thread { WRITER } else { bio.task };
            self.kept.push((master, Bio { task, thread: WRITER, ..bio }));
            self.called |= may == May::Go;
            return true;
        }
        for leg in (0..self.legs.len()).rev() {
            let bio = self.copy(thread, master, leg, bio);
            self.threads[thread as usize].steps.push_front(Step::Send(leg, bio));
        }
        true
    }

    /// The legs are flushed for all that wait, unless a round is under way.
    fn begin_round(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline) {
        if self.round_left > 0 || self.next_round.is_empty() {
            return;
        }
        std::mem::swap(&mut self.round, &mut self.next_round);
        self.rounds += 1;
        self.round_left = legs.count() as u32;
        for leg in (0..legs.count()).rev() {
            let flags = Flags::PREFLUSH.with(Flags::SYNC);
            self.put(FLUSHER, Of::Round, leg, own_bio(FLUSHER, Op::Flush, flags, 0, 0));
        }
        self.go(legs, tl, FLUSHER, false);
    }

    /// A leg has been flushed. After the last one the data go, and the next round begins.
    fn leg_flushed(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline) {
        self.round_left -= 1;
        if self.round_left > 0 {
            return;
        }
        let mut round = std::mem::take(&mut self.round);
        for (master, bio) in round.drain(..) {
            if bio.sectors > 0 {
                let flags = bio.flags.without(Flags::PREFLUSH);
                self.data(legs, FLUSHER, master, Bio { flags, thread: FLUSHER, ..bio });
            }
            self.part_done(tl, master);
        }
        self.round = round;
        self.begin_round(legs, tl);
        self.go(legs, tl, FLUSHER, false);
        legs.each(|l| l.run_deferred(tl));
    }
}

/// A bio of one of the array's threads.
fn own_bio(thread: TaskId, op: Op, flags: Flags, sector: Sector, sectors: u32) -> Bio {
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
fn flush_of(bio: Bio) -> Bio {
    let flags = Flags::PREFLUSH.with(Flags::SYNC);
    Bio { op: Op::Flush, flags, sector: 0, sectors: 0, ..bio }
}
