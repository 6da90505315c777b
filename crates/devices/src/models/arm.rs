//! The arm's queue: commands waiting, and which of them is next.

use iosched_types::{Bytes, Nanos, Op, SECTOR, Sector};

use super::mechanics::Mechanics;
use super::nearest::{ByAngle, LANES, Starts, Waiting, nearest_of};
use crate::Command;
use crate::params::HddParams;

/// "No command".
const NONE: u32 = u32::MAX;

/// A command that the arm has begun to serve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) id: u32,
    pub(crate) op: Op,
    pub(crate) sector: Sector,
    /// Sector after its last byte.
    pub(crate) end: Sector,
    /// How long it takes.
    pub(crate) service: Nanos,
}

/// An admitted command.
#[derive(Clone, Copy, Debug)]
struct Admitted {
    sector: Sector,
    /// Sector after its last byte.
    end: Sector,
    len: Bytes,
    t_arr: Nanos,
    /// Commands served before it came.
    before: u64,
    id: u32,
    turn: u32,
    prev: u32,
    next: u32,
    op: Op,
    /// One of the candidates of the next choice.
    in_window: bool,
}

impl Admitted {
    const NOTHING: Admitted = Admitted {
        sector: 0,
        end: 0,
        len: 0,
        t_arr: 0,
        before: 0,
        id: 0,
        turn: 0,
        prev: NONE,
        next: NONE,
        op: Op::Read,
        in_window: false,
    };
}

/// The commands waiting, in order of admission, linked through a slab.
///
/// The first of them up to `fence` are the *window*, the candidates of the next choice: at most `window`
/// commands, and none behind a flush.
#[derive(Debug)]
struct Backlog {
    slots: Vec<Admitted>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    /// The first command that is no candidate.
    fence: u32,
    candidates: usize,
    window: usize,
}

impl Backlog {
    fn new(window: usize) -> Self {
        Backlog {
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            fence: NONE,
            candidates: 0,
            window,
        }
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        self.slots.push(Admitted::NOTHING);
        (self.slots.len() - 1) as u32
    }

    #[inline(always)]
    fn push(&mut self, c: &Command, t_arr: Nanos, before: u64, turn: u32) {
        let slot = self.free.pop().unwrap_or_else(|| self.grow());
        self.slots[slot as usize] = Admitted {
            sector: c.offset / SECTOR,
            end: (c.offset + c.len) / SECTOR,
            len: c.len,
            t_arr,
            before,
            id: c.id,
            turn,
            prev: self.newest,
            next: NONE,
            op: c.op,
            in_window: false,
        };
        match self.newest {
            NONE => self.oldest = slot,
            n => self.slots[n as usize].next = slot,
        }
        self.newest = slot;
        if self.fence == NONE {
            self.fence = slot;
        }
    }

    /// Whether [`admit_candidate`](Self::admit_candidate) may have one.
    #[inline]
    fn has_more(&self) -> bool {
        self.fence != NONE
    }

    /// Removes a command from the list and the window.
    #[inline(always)]
    fn unlink(&mut self, slot: u32) -> Admitted {
        let a = self.slots[slot as usize];
        match a.prev {
            NONE => self.oldest = a.next,
            p => self.slots[p as usize].next = a.next,
        }
        match a.next {
            NONE => self.newest = a.prev,
            n => self.slots[n as usize].prev = a.prev,
        }
        if self.fence == slot {
            self.fence = a.next;
        }
        self.candidates -= usize::from(a.in_window);
        self.free.push(slot);
        a
    }

    /// The next command that becomes a candidate.
    #[inline(always)]
    fn admit_candidate(&mut self) -> Option<Waiting> {
        let slot = self.fence;
        if slot == NONE || self.candidates >= self.window {
            return None;
        }
        let a = &mut self.slots[slot as usize];
        if a.op == Op::Flush {
            return None;
        }
        a.in_window = true;
        self.candidates += 1;
        self.fence = a.next;
        Some(Waiting { sector: a.sector, turn: a.turn, slot })
    }

    fn oldest(&self) -> Option<&Admitted> {
        self.slots.get(self.oldest as usize)
    }

    /// The candidates in order of admission.
    fn window(&self) -> impl Iterator<Item = Waiting> + '_ {
        let mut slot = self.oldest;
        std::iter::from_fn(move || {
            let a = self.slots.get(slot as usize).filter(|_| slot != self.fence)?;
            let w = Waiting { sector: a.sector, turn: a.turn, slot };
            slot = a.next;
            Some(w)
        })
    }
}

/// Which command is next.
struct Choice {
    slot: u32,
    /// The place in the order of angles, where known.
    place: Option<usize>,
    /// The positioning time, where the search computed it anyway.
    pos: Option<Nanos>,
}

/// The arm: its mechanics, its queue and its rule of choice.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) mech: Mechanics,
    pub(crate) count: ArmCounters,
    flush_ns: Nanos,
    ovh_ns: Nanos,
    trim_ns: Nanos,
    sptf: bool,
    age_ns: Nanos,
    age_passes: u64,
    /// Commands served.
    served: u64,
    backlog: Backlog,
    /// The candidates by angle, where the drive chooses by angle.
    by_angle: Option<Angles>,
}

/// The candidates by angle.
#[derive(Debug)]
struct Angles {
    order: ByAngle,
    starts: Starts,
    /// `order` has all candidates. After there were too many of them, it is filled again when few are left.
    complete: bool,
}

/// What the arm did.
#[derive(Debug, Default)]
pub(crate) struct ArmCounters {
    pub(crate) sequential: u64,
    pub(crate) seeks: u64,
    pub(crate) travel: Sector,
    pub(crate) busy_ns: u64,
    pub(crate) position_ns: u64,
}

impl Arm {
    pub(crate) fn new(p: &HddParams) -> Self {
        let mech = Mechanics::new(p);
        let by_angle = p.sptf && mech.by_angle();
        Arm {
            mech,
            count: ArmCounters::default(),
            flush_ns: p.flush_ns,
            ovh_ns: p.ovh_ns,
            trim_ns: p.trim_ns,
            sptf: p.sptf,
            age_ns: p.age_ns,
            age_passes: p.age_passes,
            served: 0,
            backlog: Backlog::new(if p.window == 0 { usize::MAX } else { p.window as usize }),
            by_angle: by_angle.then(|| Angles {
                order: ByAngle::new(),
                starts: Starts::new(),
                complete: true,
            }),
        }
    }

    /// Queues a command that arrived at `t_arr`.
    #[inline(always)]
    pub(crate) fn push(&mut self, c: Command, t_arr: Nanos) {
        let turn = if c.op == Op::Flush { 0 } else { self.mech.turn(c.offset / SECTOR) };
        self.backlog.push(&c, t_arr, self.served, turn);
        self.fill_window();
    }

    #[inline(always)]
    fn fill_window(&mut self) {
        while self.backlog.has_more()
            && let Some(w) = self.backlog.admit_candidate()
        {
            if let Some(a) = &mut self.by_angle {
                a.starts.add(w.sector);
                a.complete = a.complete && a.order.insert(&self.mech, w);
            }
        }
    }

    /// Whether nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.backlog.oldest == NONE
    }

    /// Whether the oldest command waiting is a flush.
    #[inline]
    pub(crate) fn flush_is_next(&self) -> bool {
        self.backlog.oldest().is_some_and(|a| a.op == Op::Flush)
    }

    /// Whether the oldest command goes first because it has waited too long or was passed too often.
    #[inline]
    pub(crate) fn overdue(&self, now: Nanos) -> bool {
        self.backlog.oldest().is_some_and(|a| {
            self.age_ns > 0 && now - a.t_arr > self.age_ns
                || self.age_passes > 0 && self.served - a.before > self.age_passes
        })
    }

    /// The shortest positioning time of a command in the window.
    pub(crate) fn least_position(&self, now: Nanos) -> Option<Nanos> {
        self.nearest(now).map(|n| n.1)
    }

    /// The command in the window that the head reaches soonest.
    fn nearest(&self, now: Nanos) -> Option<(Waiting, Nanos)> {
        let ops = &self.backlog.slots;
        let go_on = |w: &Waiting| self.mech.go_on(ops[w.slot as usize].op == Op::Read, now);
        nearest_of(&self.mech, self.backlog.window(), go_on, now)
    }

    /// Which of the waiting commands is next.
    #[inline(always)]
    fn choose(&self, now: Nanos) -> Choice {
        let oldest = Choice { slot: self.backlog.oldest, place: None, pos: None };
        if !self.sptf || self.backlog.candidates <= 1 || self.overdue(now) {
            return oldest;
        }
        if let Some(a) = &self.by_angle
            && a.complete
            && !(a.starts.perhaps(self.mech.head) && a.order.starts_at(self.mech.head))
            && let Some((place, pos)) = a.order.nearest(&self.mech, now)
        {
            return Choice { slot: a.order.slot(place), place: Some(place), pos: Some(pos) };
        }
        self.nearest(now).map_or(oldest, |(w, pos)| Choice {
            slot: w.slot,
            place: None,
            pos: Some(pos),
        })
    }

    #[inline(always)]
    fn take(&mut self, c: &Choice) -> Admitted {
        let a = self.backlog.unlink(c.slot);
        if a.in_window
            && let Some(angles) = &mut self.by_angle
        {
            angles.starts.remove(a.sector);
            if !angles.complete {
                self.order_again();
            } else if let Some(place) = c.place.or_else(|| angles.order.place(a.turn, c.slot)) {
                angles.order.remove(place);
            }
        }
        self.fill_window();
        a
    }

    /// Puts the candidates in order of angle again when few enough are left.
    #[cold]
    fn order_again(&mut self) {
        if let Some(a) = &mut self.by_angle
            && self.backlog.candidates <= LANES / 2
        {
            a.order.clear();
            a.complete = self.backlog.window().all(|w| a.order.insert(&self.mech, w));
        }
    }

    /// Takes the next command out of the queue, which is not empty, and serves it.
    #[inline(always)]
    pub(crate) fn serve(&mut self, now: Nanos) -> Served {
        let choice = self.choose(now);
        let a = self.take(&choice);
        self.served += 1;
        let service = match a.op {
            Op::Flush => self.flush_ns,
            Op::Discard => self.ovh_ns + self.trim_ns,
            Op::Read | Op::Write => {
                let read = a.op == Op::Read;
                let pos = choice.pos.unwrap_or_else(|| self.position(a.sector, a.turn, read, now));
                let service = self.move_to(a.sector, a.len, pos);
                self.mech.leave(a.end, now + service, read);
                service
            }
        };
        self.count.busy_ns += service;
        Served { id: a.id, op: a.op, sector: a.sector, end: a.end, service }
    }

    /// Positioning time of a command.
    #[inline(always)]
    fn position(&self, sector: Sector, turn: u32, read: bool, now: Nanos) -> Nanos {
        if sector == self.mech.head {
            return self.mech.go_on(read, now);
        }
        self.mech.position(sector, turn, now)
    }

    /// Positions and transfers; returns how long that takes.
    #[inline(always)]
    pub(crate) fn move_to(&mut self, sector: Sector, len: Bytes, pos: Nanos) -> Nanos {
        self.count.position_ns += pos;
        if sector == self.mech.head {
            self.count.sequential += 1;
        } else {
            self.count.seeks += 1;
            self.count.travel += sector.abs_diff(self.mech.head);
        }
        self.ovh_ns + pos + self.mech.transfer(sector, len)
    }
}
