//! Cores: what runs on them, interrupts that hold it up, and a scheduler's lock between them.
//!
//! A request pays where the cost arises: submission before the device sees it, the scheduler's lock with contention,
//! the completion's interrupt on the core that submitted, the wake-up and the switch before the process goes on. The
//! model and its figures are described in `docs/kernels.md`.
//!
//! One piece of work runs on a core at a time. A process stays on its core; those that are ready wait in order, and one
//! whose time slice is over stands behind them. An
//! interrupt moves the end of the piece that it falls into, also of one that holds the lock: so the holder keeps every
//! waiter waiting. A core that spins for the lock pays nothing for an interrupt unless it is given the lock meanwhile.

mod costs;

use std::collections::VecDeque;

use iosched_experiment::CpuTime;
use iosched_types::{Nanos, TaskId};

pub(crate) use costs::Costs;

/// Holders of the lock that are looked back at to tell how many cores share it.
const HOLDERS: usize = 16;

/// A piece of work that a process does on its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Coming onto the core.
    SwitchIn,
    /// Handing over a request, up to the scheduler.
    Submit,
    /// In the scheduler, under its lock.
    Locked,
    /// Looking for completions.
    Reap,
}

/// What happened at a core's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing yet.
    Nothing,
    /// This process has done its piece of work and is still on the core.
    Piece(TaskId, Piece),
}

#[derive(Debug, Default)]
struct Core {
    /// Who is on it and what he does.
    current: Option<(TaskId, Piece)>,
    ready: VecDeque<TaskId>,
    /// When the piece ends, as far as is known now.
    end: Nanos,
    /// When the interrupt that is being handled ends.
    interrupt_end: Nanos,
    /// Since when it spins for the lock.
    spinning: Option<Nanos>,
    /// Interrupts since then.
    interrupted: Nanos,
    /// It was idle and will switch to somebody when its interrupt ends.
    waking: bool,
    /// It was idle just now: the next request finds cold caches.
    cold: bool,
    /// Since when the process on it has been there.
    since: Nanos,
    /// Processes that live on it.
    tied: u32,
}

/// The cores of one simulation and the lock of its scheduler.
#[derive(Debug)]
pub(crate) struct Cores {
    costs: Costs,
    cores: Vec<Core>,
    home: Vec<u16>,
    asleep: Vec<bool>,
    times: Vec<CpuTime>,
    owner: Option<u16>,
    waiters: VecDeque<u16>,
    holders: [u16; HOLDERS],
    held: usize,
    /// Events to schedule: when, for which core.
    pub(crate) due: Vec<(Nanos, u16)>,
}

impl Cores {
    /// Idle cores. `home` tells for each process the core it lives on.
    pub(crate) fn new(costs: Costs, cores: u16, home: Vec<u16>) -> Cores {
        let mut all: Vec<Core> = (0..cores.max(1)).map(|_| Core::default()).collect();
        for core in &home {
            all[usize::from(*core)].tied += 1;
        }
        Cores {
            costs,
            cores: all,
            asleep: vec![true; home.len()],
            times: vec![CpuTime::default(); home.len()],
            home,
            owner: None,
            waiters: VecDeque::new(),
            holders: [0; HOLDERS],
            held: 0,
            due: Vec::new(),
        }
    }

    /// Core time of each process.
    pub(crate) fn times(&self) -> &[CpuTime] {
        &self.times
    }

    /// The process on the core begins a piece of work, after having taken completions in so many calls. `false` when its
    /// time is over and others are ready: it stands behind them, and begins when it is switched in again.
    pub(crate) fn begin(&mut self, now: Nanos, task: TaskId, piece: Piece, looks: u32) -> bool {
        let i = self.home[task as usize];
        if piece != Piece::SwitchIn && self.gives_way(now, i, task) {
            return false;
        }
        let core = &mut self.cores[usize::from(i)];
        let (user, system) = match piece {
            Piece::SwitchIn => (0, self.costs.switch(core.tied)),
            Piece::Submit => {
                let all = self.costs.submission(core.cold);
                let user = self.costs.profile.user_ns.min(all);
                (user, all - user)
            }
            Piece::Reap => (0, self.costs.profile.reap_ns),
            Piece::Locked => (0, 0),
        };
        if matches!(piece, Piece::Submit) && !self.costs.locked() {
            core.cold = false;
        }
        let time = &mut self.times[task as usize];
        let system = system + u64::from(looks) * self.costs.profile.reap_ns;
        time.user += user;
        time.system += system;
        self.run(now, i, task, piece, user + system);
        true
    }

    fn gives_way(&mut self, now: Nanos, i: u16, task: TaskId) -> bool {
        let core = &mut self.cores[usize::from(i)];
        if core.ready.is_empty() || now - core.since < self.costs.profile.slice_ns {
            return false;
        }
        core.ready.push_back(task);
        core.current = None;
        self.next(now, i);
        true
    }

    fn run(&mut self, now: Nanos, i: u16, task: TaskId, piece: Piece, ns: Nanos) {
        let core = &mut self.cores[usize::from(i)];
        core.current = Some((task, piece));
        core.end = now.max(core.interrupt_end) + ns;
        self.due.push((core.end, i));
    }

    /// The process wants the scheduler's lock: it begins its piece under it now or spins until it may. `false` when
    /// the scheduler has none.
    pub(crate) fn lock(&mut self, now: Nanos, task: TaskId) -> bool {
        if !self.costs.locked() {
            return false;
        }
        let i = self.home[task as usize];
        if self.owner.is_none() {
            self.grant(now, i, task);
        } else {
            let core = &mut self.cores[usize::from(i)];
            core.current = Some((task, Piece::Locked));
            core.spinning = Some(now);
            core.interrupted = core.interrupt_end.saturating_sub(now);
            self.waiters.push_back(i);
        }
        true
    }

    fn grant(&mut self, now: Nanos, i: u16, task: TaskId) {
        self.owner = Some(i);
        self.holders[self.held % HOLDERS] = i;
        self.held += 1;
        let core = &mut self.cores[usize::from(i)];
        if let Some(since) = core.spinning.take() {
            let interrupted = core.interrupted - core.interrupt_end.saturating_sub(now);
            let spun = now - since - interrupted;
            self.times[task as usize].spinning += spun;
            self.times[task as usize].system += spun;
        }
        let cold = std::mem::take(&mut core.cold);
        let ns = self.costs.hold(self.sharers(), self.waiters.len() as u64, cold);
        self.times[task as usize].system += ns;
        self.run(now, i, task, Piece::Locked, ns);
    }

    /// Different cores among the last holders.
    fn sharers(&self) -> u64 {
        let known = &self.holders[..self.held.min(HOLDERS)];
        let first = |i: usize| !known[..i].contains(&known[i]);
        (0..known.len()).filter(|i| first(*i)).count() as u64
    }

    /// The lock is free; the next one who waits for it gets it.
    fn unlock(&mut self, now: Nanos) {
        self.owner = None;
        let Some(next) = self.waiters.pop_front() else { return };
        if let Some((task, _)) = self.cores[usize::from(next)].current {
            self.grant(now, next, task);
        }
    }

    /// A core's event fires.
    pub(crate) fn event(&mut self, now: Nanos, i: u16) -> Ended {
        let core = &mut self.cores[usize::from(i)];
        if core.waking {
            if core.interrupt_end > now {
                self.due.push((core.interrupt_end, i));
            } else {
                core.waking = false;
                self.next(now, i);
            }
            return Ended::Nothing;
        }
        let Some((task, piece)) = core.current else { return Ended::Nothing };
        if core.end > now {
            self.due.push((core.end, i));
            return Ended::Nothing;
        }
        if piece == Piece::Locked {
            self.unlock(now);
        }
        Ended::Piece(task, piece)
    }

    /// The process leaves its core: it sleeps or has ended.
    pub(crate) fn leave(&mut self, now: Nanos, task: TaskId) {
        let i = self.home[task as usize];
        self.asleep[task as usize] = true;
        self.cores[usize::from(i)].current = None;
        self.next(now, i);
    }

    /// Switches to the process that waits longest.
    fn next(&mut self, now: Nanos, i: u16) {
        let core = &mut self.cores[usize::from(i)];
        if let Some(task) = core.ready.pop_front() {
            core.since = now;
            self.begin(now, task, Piece::SwitchIn, 0);
        }
    }

    /// A completion of the process's interrupts its core; `wakes` when it was what the process sleeps for.
    pub(crate) fn completion(&mut self, now: Nanos, task: TaskId, wakes: bool) {
        let wakes = wakes && self.asleep[task as usize];
        self.interrupt(now, task, self.costs.profile.complete_ns, wakes);
    }

    /// Something else wakes the process: a timer, a tag, its turn to start.
    pub(crate) fn wake(&mut self, now: Nanos, task: TaskId) {
        if self.asleep[task as usize] {
            self.interrupt(now, task, 0, true);
        }
    }

    fn interrupt(&mut self, now: Nanos, task: TaskId, work: Nanos, wakes: bool) {
        let i = self.home[task as usize];
        let p = &self.costs.profile;
        let core = &mut self.cores[usize::from(i)];
        let mut ns = work + if wakes { p.wake_ns } else { 0 };
        if core.interrupt_end > now {
            core.interrupt_end += ns;
        } else {
            ns += p.irq_ns;
            if core.current.is_none() && !core.waking {
                ns += p.idle_exit_ns;
                core.cold = true;
            }
            core.interrupt_end = now + ns;
        }
        self.times[task as usize].interrupts += ns;
        self.times[task as usize].system += ns;
        core.interrupted += ns;
        if core.current.is_some() && core.spinning.is_none() {
            core.end += ns;
        }
        if wakes {
            self.asleep[task as usize] = false;
            core.ready.push_back(task);
            if core.current.is_none() && !core.waking {
                core.waking = true;
                self.due.push((core.interrupt_end, i));
            }
        }
    }
}

#[cfg(test)]
mod tests;
