//! Cores: the processes that run on them, interrupts that delay these, and a scheduler's lock between cores.
//!
//! Each cost is paid where it arises: submission before the device sees the request, the scheduler's lock with
//! contention, the completion's interrupt on the core that submitted, the wake-up and the switch before the process
//! goes on. `docs/kernels.md` describes the model and its figures.
//!
//! One piece of work runs on a core at a time. Each core has a fair queue of its ready processes (`fair`). A process goes
//! back into it between two pieces: when its time slice is over, or when one that woke up has had much less. A process
//! that wakes up while its core is busy goes to an idle one, if it may run there. An interrupt delays the end of the piece that it falls into.
//! If that piece holds the lock, all waiters wait longer, too. A core that spins for the lock pays nothing for an
//! interrupt unless it gets the lock meanwhile.

mod balance;
mod costs;
mod fair;
mod lag;

use std::collections::VecDeque;

use iosched_types::{BioId, CpuTime, Nanos, TaskId};

pub use costs::Costs;

use fair::{Fair, RunQueue, Share};

/// How many recent holders of the lock are remembered, to tell how many cores share it.
const HOLDERS: usize = 16;

/// A piece of work that a process does on its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Coming onto the core.
    SwitchIn,
    /// Handing over a request, up to the scheduler.
    Submit,
    /// The same for a bio of a program.
    Bio,
    /// In the scheduler, under its lock.
    Locked,
    /// Looking for completions.
    Reap,
    /// A system call of a program, or its own work.
    Call,
}

/// What happened at a core's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing yet.
    Nothing,
    /// This process has done its piece of work and is still on the core.
    Piece(TaskId, Piece),
}

/// Where a process begins, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seat {
    /// The core on which it begins.
    pub(crate) core: u16,
    /// The cores on which it may run; all, where the list is empty.
    pub(crate) allowed: Vec<u16>,
    /// Its nice value.
    pub(crate) nice: i8,
}

#[derive(Debug)]
struct Core {
    /// Who is on it and what he does.
    current: Option<(TaskId, Piece)>,
    ready: RunQueue,
    /// One that woke up is to run in place of the current process.
    preempt: bool,
    /// The process was switched in and has done nothing yet. It does its piece of work before it gives way: else one that
    /// is often preempted would pay for switches only, and never get on.
    came: bool,
    /// Up to when the current process has been charged in the fair order.
    charged: Nanos,
    /// When the piece ends, as far as is known now.
    end: Nanos,
    /// When the interrupt that is being handled ends.
    interrupt_end: Nanos,
    /// Since when it spins for the lock.
    spinning: Option<Nanos>,
    /// Interrupts since then.
    interrupted: Nanos,
    /// The core was idle and will switch to a process when its interrupt ends.
    waking: bool,
    /// The core was idle just now, so the next request finds cold caches.
    cold: bool,
    /// Since when the process on it has been there.
    since: Nanos,
    /// Processes that live on it.
    tied: u32,
    /// When it looks for a waiting process again, if it is still idle.
    looks_at: Option<Nanos>,
}

/// The cores of one simulation and the lock of its scheduler.
#[derive(Debug)]
pub(crate) struct Cores {
    costs: Costs,
    fair: Fair,
    cores: Vec<Core>,
    home: Vec<u16>,
    /// The cores on which each process may run; all, where the list is empty.
    allowed: Vec<Vec<u16>>,
    shares: Vec<Share>,
    nices: Vec<i8>,
    /// The core from which each I/O was submitted, by its id: that core is interrupted.
    from: Vec<u16>,
    asleep: Vec<bool>,
    /// When each process was on a core last.
    ran: Vec<Nanos>,
    /// Processes that are ready, on all cores.
    waiting: u32,
    times: Vec<CpuTime>,
    owner: Option<u16>,
    waiters: VecDeque<u16>,
    holders: [u16; HOLDERS],
    held: usize,
    /// Events to schedule: when, and what [`Cores::event`] is to be told.
    pub(crate) due: Vec<(Nanos, u16)>,
}

impl Core {
    fn new(fair: Fair) -> Core {
        Core {
            current: None,
            ready: RunQueue::new(fair),
            preempt: false,
            came: false,
            charged: 0,
            end: 0,
            interrupt_end: 0,
            spinning: None,
            interrupted: 0,
            waking: false,
            cold: false,
            since: 0,
            tied: 0,
            looks_at: None,
        }
    }
}

impl Cores {
    /// Idle cores. `seats` tells for each process where it may run and its nice value.
    pub(crate) fn new(costs: Costs, cores: u16, seats: Vec<Seat>) -> Cores {
        let fair = Fair { slice: costs.profile.slice_ns, lag: costs.profile.eevdf };
        let mut all: Vec<Core> = (0..cores.max(1)).map(|_| Core::new(fair)).collect();
        for seat in &seats {
            all[usize::from(seat.core)].tied += 1;
        }
        let tasks = seats.len();
        Cores {
            fair,
            costs,
            cores: all,
            asleep: vec![true; tasks],
            ran: vec![0; tasks],
            waiting: 0,
            times: vec![CpuTime::default(); tasks],
            home: seats.iter().map(|s| s.core).collect(),
            nices: seats.iter().map(|s| s.nice).collect(),
            shares: seats.iter().map(|s| Share::new(s.nice)).collect(),
            allowed: seats.into_iter().map(|s| s.allowed).collect(),
            from: Vec::new(),
            owner: None,
            waiters: VecDeque::new(),
            holders: [0; HOLDERS],
            held: 0,
            due: Vec::new(),
        }
    }

    /// The core on which a process is, or was last.
    pub(crate) fn core_of(&self, task: TaskId) -> u16 {
        self.home[task as usize]
    }

    /// Where a process is now, and how it runs: where a thread of it begins.
    pub(crate) fn seat_of(&self, task: TaskId) -> Seat {
        let t = task as usize;
        Seat { core: self.home[t], allowed: self.allowed[t].clone(), nice: self.nices[t] }
    }

    /// A process submits an I/O from its core.
    pub(crate) fn submits(&mut self, task: TaskId, io: BioId) {
        let io = io as usize;
        if io >= self.from.len() {
            self.from.resize(io + 1, 0);
        }
        self.from[io] = self.home[task as usize];
    }

    /// Core time of each process.
    pub(crate) fn times(&self) -> &[CpuTime] {
        &self.times
    }

    /// The process on the core begins a piece of work. It has taken completions in this many calls before. `false` when
    /// its time is over and others are ready: it goes behind them, and begins when it is switched in again.
    pub(crate) fn begin(&mut self, now: Nanos, task: TaskId, piece: Piece, looks: u32) -> bool {
        let i = self.home[task as usize];
        if piece != Piece::SwitchIn && self.gives_way(now, i, task) {
            return false;
        }
        let core = &mut self.cores[usize::from(i)];
        let (user, system) = match piece {
            Piece::SwitchIn => {
                core.came = true;
                (0, self.costs.switch(core.tied))
            }
            Piece::Submit => {
                let all = self.costs.submission(core.cold);
                let user = self.costs.profile.user_ns.min(all);
                (user, all - user)
            }
            Piece::Bio => (0, self.costs.bio(core.cold)),
            Piece::Reap => (0, self.costs.profile.reap_ns),
            Piece::Locked | Piece::Call => (0, 0),
        };
        if matches!(piece, Piece::Submit | Piece::Bio) && !self.costs.locked() {
            core.cold = false;
        }
        let time = &mut self.times[task as usize];
        let system = system + u64::from(looks) * self.costs.profile.reap_ns;
        time.user += user;
        time.system += system;
        self.run(now, i, task, piece, user + system);
        true
    }

    /// A task more, asleep.
    pub(crate) fn add_task(&mut self, seat: Seat) {
        self.cores[usize::from(seat.core)].tied += 1;
        self.home.push(seat.core);
        self.shares.push(Share::new(seat.nice));
        self.nices.push(seat.nice);
        self.allowed.push(seat.allowed);
        self.asleep.push(true);
        self.ran.push(0);
        self.times.push(CpuTime::default());
    }

    /// A task is not new: it has had its first slice before.
    pub(crate) fn has_run(&mut self, task: TaskId) {
        self.shares[task as usize].new = false;
    }

    /// The task on the core makes a call, or does work of its own, of that length; `false` as in [`Cores::begin`].
    pub(crate) fn begin_call(
        &mut self,
        now: Nanos,
        task: TaskId,
        user: Nanos,
        system: Nanos,
    ) -> bool {
        let i = self.home[task as usize];
        if self.gives_way(now, i, task) {
            return false;
        }
        let time = &mut self.times[task as usize];
        time.user += user;
        time.system += system;
        self.run(now, i, task, Piece::Call, user + system);
        true
    }

    fn gives_way(&mut self, now: Nanos, i: u16, task: TaskId) -> bool {
        let core = &mut self.cores[usize::from(i)];
        if std::mem::take(&mut core.came) || core.ready.is_empty() {
            return false;
        }
        self.charge(now, i, task);
        let core = &mut self.cores[usize::from(i)];
        let over = now - core.since >= self.fair.slice;
        let why = (over, core.preempt);
        if !core.ready.gives_way(task, &mut self.shares, self.fair, why) {
            return false;
        }
        core.current = None;
        self.waiting += 1;
        self.ran[task as usize] = now;
        self.next(now, i);
        true
    }

    /// What the process has had of its core counts in the fair order.
    fn charge(&mut self, now: Nanos, i: u16, task: TaskId) {
        let core = &mut self.cores[usize::from(i)];
        let tick = self.costs.profile.clock_tick_ns.max(1);
        let had = (now / tick - std::mem::replace(&mut core.charged, now) / tick) * tick;
        core.ready.charge(&mut self.shares[task as usize], had);
    }

    fn run(&mut self, now: Nanos, i: u16, task: TaskId, piece: Piece, ns: Nanos) {
        let core = &mut self.cores[usize::from(i)];
        core.current = Some((task, piece));
        core.end = now.max(core.interrupt_end) + ns;
        self.due.push((core.end, i));
    }

    /// The process wants the scheduler's lock. It begins its piece under the lock now, or spins until it may. `false`
    /// when the scheduler has no lock.
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

    /// The lock is free. The next waiter gets it.
    fn unlock(&mut self, now: Nanos) {
        self.owner = None;
        let Some(next) = self.waiters.pop_front() else { return };
        if let Some((task, _)) = self.cores[usize::from(next)].current {
            self.grant(now, next, task);
        }
    }

    /// An event fires that was asked for in [`due`](Self::due).
    pub(crate) fn event(&mut self, now: Nanos, event: u16) -> Ended {
        if event & balance::LOOK != 0 {
            self.look_again(now, event & !balance::LOOK);
            return Ended::Nothing;
        }
        let i = event;
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
        self.ran[task as usize] = now;
        self.charge(now, i, task);
        let core = &mut self.cores[usize::from(i)];
        core.current = None;
        core.ready.sleep(task, &mut self.shares, self.fair);
        self.next(now, i);
    }

    /// Switches to the process that is due.
    fn next(&mut self, now: Nanos, i: u16) {
        let core = &mut self.cores[usize::from(i)];
        core.preempt = false;
        let Some(task) = core.ready.pop(&mut self.shares) else {
            return self.take_over(now, i);
        };
        self.waiting -= 1;
        (core.since, core.charged) = (now, now);
        self.begin(now, task, Piece::SwitchIn, 0);
    }

    /// An I/O of the process's is done and interrupts the core from which it came. `wakes`: the process sleeps for it.
    pub(crate) fn completion(&mut self, now: Nanos, task: TaskId, io: BioId, wakes: bool) {
        let home = self.home[task as usize];
        let i = self.from.get(io as usize).copied().unwrap_or(home);
        let wakes = wakes && self.asleep[task as usize];
        self.interrupt(now, i, task, self.costs.profile.complete_ns, wakes);
    }

    /// Something else wakes the process: a timer, a tag, its turn to start.
    pub(crate) fn wake(&mut self, now: Nanos, task: TaskId) {
        if self.asleep[task as usize] {
            self.interrupt(now, self.home[task as usize], task, 0, true);
        }
    }

    fn interrupt(&mut self, now: Nanos, i: u16, task: TaskId, work: Nanos, wakes: bool) {
        let to = if wakes { Some(self.core_for(task)) } else { None };
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
        let told = core.interrupt_end;
        core.interrupted += ns;
        if core.current.is_some() && core.spinning.is_none() {
            core.end += ns;
        }
        let time = &mut self.times[task as usize];
        time.interrupts += ns;
        time.system += ns;
        if let Some(to) = to {
            self.is_ready(now, task, to, (to != i).then_some(told));
        }
    }

    /// The core on which a process that wakes up will run: its own, or an idle one if that is busy.
    fn core_for(&self, task: TaskId) -> u16 {
        let home = self.home[task as usize];
        let idle = |i: &u16| {
            let core = &self.cores[usize::from(*i)];
            core.current.is_none() && !core.waking && core.ready.is_empty()
        };
        if idle(&home) {
            return home;
        }
        let cores = self.cores.len() as u16;
        match self.allowed[task as usize].as_slice() {
            [] => (1..cores).map(|n| (home + n) % cores).find(idle),
            allowed => allowed.iter().copied().find(idle),
        }
        .unwrap_or(home)
    }

    /// A process is awake, to run on the core `i`. `told`: when another core, which handles the interrupt, has told it so.
    fn is_ready(&mut self, now: Nanos, task: TaskId, i: u16, told: Option<Nanos>) {
        self.asleep[task as usize] = false;
        self.move_to(task, i);
        if let Some((current, _)) = self.cores[usize::from(i)].current {
            self.charge(now.max(self.cores[usize::from(i)].charged), i, current);
        }
        let (costs, fair) = (&self.costs.profile, self.fair);
        let core = &mut self.cores[usize::from(i)];
        let current = core.current.map(|(current, _)| current);
        let first = core.ready.wake(task, current, &mut self.shares, fair);
        self.waiting += 1;
        match current {
            Some(_) => core.preempt |= first,
            None if core.waking => {}
            None => {
                if let Some(told) = told {
                    let ns = costs.irq_ns + costs.idle_exit_ns;
                    core.interrupt_end = core.interrupt_end.max(told) + ns;
                    core.cold = true;
                    let time = &mut self.times[task as usize];
                    time.interrupts += ns;
                    time.system += ns;
                }
                core.waking = true;
                self.due.push((core.interrupt_end, i));
            }
        }
    }

    /// A process that is ready nowhere changes its core.
    fn move_to(&mut self, task: TaskId, i: u16) {
        let old = std::mem::replace(&mut self.home[task as usize], i);
        if old != i {
            let [from, to] = [old, i].map(usize::from);
            self.cores[to]
                .ready
                .move_here(&mut self.shares[task as usize], &self.cores[from].ready);
            self.cores[from].tied -= 1;
            self.cores[to].tied += 1;
        }
    }
}

#[cfg(test)]
mod tests;
