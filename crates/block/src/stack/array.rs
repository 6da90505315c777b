//! From bios of an array to bios of its legs, and back.
//!
//! A bio becomes steps of the thread that submits it. A step that finds no tag on a leg, or an array that must first be
//! marked dirty, puts the thread to sleep; it goes on there when it is woken. Two threads belong to the array: one
//! writes its superblocks and what waited for the bitmap, the other what waited for a flush.

use iosched_types::{Bio, BioId, Flags, Op, TaskId};

use super::balance::Why;
use super::dirty::{DAEMON, Dirty, May};
use super::inside::{Inside, Step};
use super::ledger::Of;
use super::legs::{FLUSHER, Legs, WRITER, above_checked, below, flush_of, own_bio};
use super::rounds::{Held, Rounds};
use super::route::Routes;
use super::rules::{FlushRule, Sender};
use crate::config::{ArrayConfig, Level};
use crate::outbox::{Done, Outbox, Submit};
use crate::profile::KernelProfile;
use crate::timeline::{ArrayEvent, Event, Timeline};

/// Several queues as one device.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) routes: Routes,
    dirty: Option<Dirty>,
    flush: FlushRule,
    sender: Sender,
    /// The array's outbox while the first leg has its own.
    out: Outbox,
    pub(super) inside: Inside,
    /// Threads that sleep until the array is marked dirty.
    markers: Vec<TaskId>,
    /// Writes that the array's thread will send, some of them once the bitmap is written.
    kept: Held,
    spare: Held,
    rounds: Rounds,
    /// The array's threads have something to do.
    called: bool,
}

impl Array {
    pub(super) fn new(profile: &KernelProfile, config: &ArrayConfig, legs: &mut Legs<'_>) -> Array {
        let kernel = profile.kernel_version();
        let mut sectors = Vec::new();
        legs.each(|leg| sectors.push(leg.facts().capacity));
        let data = sectors.iter().min().map_or(0, |s| s.saturating_sub(config.data_offset));
        let mirror = config.level == Level::Raid1;
        Array {
            routes: Routes::new(kernel, config, legs),
            dirty: mirror.then(|| Dirty::new(profile.hz, config.bitmap_chunk, data)),
            flush: FlushRule::of(profile, config.level),
            sender: Sender::of(kernel, config.level),
            out: Outbox::default(),
            inside: Inside::default(),
            markers: Vec::new(),
            kept: Vec::new(),
            spare: Vec::new(),
            rounds: Rounds::default(),
            called: false,
        }
    }

    pub(super) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut all = vec![("flush rounds", self.rounds.count)];
        if let Some(d) = &self.dirty {
            all.extend([("superblock writes", d.superblocks), ("bitmap writes", d.bitmaps)]);
        }
        all
    }

    /// Bios that no leg has yet.
    pub(super) fn held(&self) -> usize {
        self.kept.len() + self.rounds.held() + self.inside.steps()
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
        match self.routes.came_back(id) {
            Of::Master(master) => self.part_done(tl, master),
            Of::Round => self.leg_flushed(legs, tl),
            Of::Own if self.dirty.as_mut().is_some_and(Dirty::leg_done) => self.marked(),
            Of::Own => {}
        }
    }

    fn part_done(&mut self, tl: &mut Timeline, master: u32) {
        let Some(m) = self.routes.books.part_done(master) else { return };
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
        if !(resumed && self.inside.first(thread).is_some()) {
            let flags = bio.flags.without(Flags::NOWAIT);
            self.plan(legs, tl, thread, Bio { task: below(bio.task), thread, flags, ..*bio });
        }
        if self.go(legs, tl, thread, resumed) { Submit::Taken } else { Submit::Blocked }
    }

    /// Splits a bio of the array into steps.
    fn plan(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline, thread: TaskId, bio: Bio) {
        let flush = bio.op == Op::Flush || bio.flags.has(Flags::PREFLUSH);
        if flush && self.flush == FlushRule::Rounds {
            let master = self.routes.books.master(bio.id, 1);
            self.rounds.wait(master, bio);
            self.begin_round(legs, tl);
            return;
        }
        let master = self.routes.books.master(bio.id, 0);
        if flush && self.flush == FlushRule::Beside || bio.op == Op::Flush {
            for leg in (0..legs.count()).rev() {
                self.routes.books.add_parts(master, 1);
                self.put(thread, Of::Master(master), leg, flush_of(bio));
            }
            if bio.op == Op::Flush {
                return;
            }
        }
        let flags = match self.flush {
            FlushRule::Barrier => bio.flags,
            _ => bio.flags.without(Flags::PREFLUSH),
        };
        self.data(thread, master, Bio { flags, ..bio });
    }

    /// The parts of a bio with data.
    fn data(&mut self, thread: TaskId, master: u32, bio: Bio) {
        for part in self.routes.parts(master, bio) {
            let step = match bio.op {
                Op::Read => Step::Read(master, part),
                _ => Step::Write(master, part),
            };
            self.inside.push(thread, step);
        }
    }

    /// A bio that is known to go to a leg, behind all else of the thread.
    fn put(&mut self, thread: TaskId, of: Of, leg: usize, bio: Bio) {
        let bio = self.routes.books.clone_for(thread, of, leg, bio, Why::Every);
        self.inside.push(thread, Step::Send(leg, bio));
    }

    /// The copies of a write, behind all else of the thread.
    fn send_to_all(&mut self, thread: TaskId, master: u32, bio: Bio) {
        for leg in 0..self.routes.legs() {
            let bio = self.routes.copy(thread, master, leg, bio);
            self.inside.push(thread, Step::Send(leg, bio));
        }
    }

    /// Does the steps of a thread; `false` when it falls asleep.
    fn go(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline, thread: TaskId, woken: bool) -> bool {
        let slot = self.inside.thread(thread);
        if slot.asleep && !woken {
            return false;
        }
        let mut resumed = std::mem::take(&mut slot.asleep);
        let mut parts = 0;
        while let Some(step) = self.inside.first(thread) {
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
                        self.inside.thread(thread).asleep = true;
                        return false;
                    }
                    self.inside.thread(thread).steps.pop_front();
                    resumed = false;
                }
                Step::Read(master, bio) => {
                    let (leg, bio) = self.routes.read(thread, master, bio);
                    self.inside.thread(thread).steps[0] = Step::Send(leg, bio);
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

    /// A part of a write goes on, or waits for a mark; `false` when its thread sleeps.
    fn write(
        &mut self,
        legs: &mut Legs<'_>,
        tl: &mut Timeline,
        thread: TaskId,
        master: u32,
        bio: Bio,
    ) -> bool {
        if let Some(leg) = self.routes.only_leg(bio.sector) {
            let bio = self.routes.copy(thread, master, leg, bio);
            self.inside.thread(thread).steps[0] = Step::Send(leg, bio);
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
        if self.routes.books.is_write(master) {
            dirty.write_begins();
        }
        let plugged = legs.first.has_plug(thread);
        let by_thread = thread > FLUSHER && self.sender.is_thread(bitmap, plugged);
        self.inside.thread(thread).steps.pop_front();
        if by_thread || may == May::Keep {
            let task = if by_thread { WRITER } else { bio.task };
            self.kept.push((master, Bio { task, thread: WRITER, ..bio }));
            self.called |= may == May::Go;
            return true;
        }
        for leg in (0..self.routes.legs()).rev() {
            let bio = self.routes.copy(thread, master, leg, bio);
            self.inside.thread(thread).steps.push_front(Step::Send(leg, bio));
        }
        true
    }

    /// The legs are flushed for all that wait, unless a round is under way.
    fn begin_round(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline) {
        if !self.rounds.begin(legs.count() as u32) {
            return;
        }
        for leg in (0..legs.count()).rev() {
            let flags = Flags::PREFLUSH.with(Flags::SYNC);
            self.put(FLUSHER, Of::Round, leg, own_bio(FLUSHER, Op::Flush, flags, 0, 0));
        }
        self.go(legs, tl, FLUSHER, false);
    }

    /// A leg has been flushed. After the last one the data go, and the next round begins.
    fn leg_flushed(&mut self, legs: &mut Legs<'_>, tl: &mut Timeline) {
        let Some(mut round) = self.rounds.leg_done() else { return };
        for (master, bio) in round.drain(..) {
            if bio.sectors > 0 {
                let flags = bio.flags.without(Flags::PREFLUSH);
                self.data(FLUSHER, master, Bio { flags, thread: FLUSHER, ..bio });
            }
            self.part_done(tl, master);
        }
        self.rounds.give_back(round);
        self.begin_round(legs, tl);
        self.go(legs, tl, FLUSHER, false);
        legs.each(|l| l.run_deferred(tl));
    }
}
