//! The kernel's workers for io_uring (`io-wq`): they do the I/Os that would make the process wait.
//!
//! io_uring tries every read and write without waiting. An I/O that finds no tag, or is too large to go in one piece,
//! goes to a worker. So does every sync; the worker waits until it is done. Measured under Linux 6.12
//! (`docs/fidelity-fio.md`):
//!
//! * A process has as many workers as its ring has entries, at most four a core.
//! * Work waits in one list. If workers are idle, the one that became idle last is woken, once for all work that comes
//!   before it runs. If it finds none, it keeps its place. Otherwise another worker is made, unless one is awake.
//! * A worker takes work from the list until the list is empty. If the last worker awake has to sleep and the list is
//!   not empty, another worker is made. Idle ones are not woken.
//! * Workers share the I/O context of their process, if it has one when they are made. It has one if it has a priority,
//!   or has begun an I/O by itself. Otherwise each worker has its own.

use std::collections::VecDeque;

use iosched_types::{Bio, BioId, IoPrio, Op, TaskId};

use crate::events::HostEvent;
use crate::machine::Machine;
use crate::tasks::State;

use super::{Left, Others, Role, Threads, Waker};

/// Workers a core.
const PER_CORE: u32 = 4;

/// The workers of one process.
#[derive(Debug)]
pub(crate) struct Pool {
    task: TaskId,
    /// Handed over and not taken up.
    pending: VecDeque<Bio>,
    /// All of them.
    workers: Vec<u32>,
    most: u32,
    /// The idle workers. The one that became idle last comes last.
    idle: Vec<u32>,
    /// How many are made and not asleep.
    awake: u32,
    /// Syncs under way.
    syncs: u32,
}

impl Pool {
    pub(crate) fn new(task: TaskId, entries: u32, cpus: u32) -> Self {
        let most = entries.min(PER_CORE * cpus.max(1));
        Pool {
            task,
            pending: VecDeque::with_capacity(entries as usize),
            workers: Vec::new(),
            most,
            idle: Vec::with_capacity(most as usize),
            awake: 0,
            syncs: 0,
        }
    }
}

/// One worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pool: u32,
    /// The I/O context it submits in.
    context: TaskId,
    /// It will run, and counts as awake.
    begins: bool,
    /// It is idle and will run.
    called: bool,
    /// The worker sleeps, for a request or until its sync is done.
    asleep: bool,
    /// The unit of its sync, and whether the sync is done.
    sync: Option<(u32, bool)>,
}

impl Threads {
    fn worker(&mut self, h: u32) -> Option<&mut Worker> {
        match &mut self.all[h as usize].role {
            Role::Worker(worker) => Some(worker),
            Role::Helper(_) => None,
        }
    }

    /// Whether the finished I/O of a unit is a sync that a worker waits for. Wakes the worker if it sleeps.
    pub(crate) fn sync_done(
        &mut self,
        pool: u32,
        io: BioId,
        unit: u32,
        waker: &mut Waker<'_>,
    ) -> bool {
        if self.pools[pool as usize].syncs == 0 {
            return false;
        }
        for i in 0..self.pools[pool as usize].workers.len() {
            let h = self.pools[pool as usize].workers[i];
            let number = self.all[h as usize].number;
            if let Some(worker) = self.worker(h)
                && worker.sync == Some((unit, false))
            {
                worker.sync = Some((unit, true));
                let asleep = worker.asleep;
                waker.done(number, io, asleep);
                return true;
            }
        }
        false
    }
}

impl Machine {
    /// A process hands over an I/O that would make it wait.
    #[cold]
    pub(crate) fn hand_to_worker(&mut self, t: TaskId, bio: Bio) {
        let Others::Pool(p) = self.tasks[t as usize].others else { return };
        let pool = &mut self.threads.pools[p as usize];
        pool.pending.push_back(bio);
        match pool.idle.last().copied() {
            Some(h) => {
                let number = self.threads.all[h as usize].number;
                if let Some(worker) = self.threads.worker(h)
                    && !std::mem::replace(&mut worker.called, true)
                {
                    self.wake_thread(number);
                }
            }
            None if pool.awake == 0 => {
                if let Some(number) = self.make_worker(p) {
                    self.start_thread(number);
                }
            }
            None => {}
        }
    }

    /// Makes another worker, if there may be one.
    fn make_worker(&mut self, p: u32) -> Option<TaskId> {
        let pool = &self.threads.pools[p as usize];
        if pool.workers.len() >= pool.most as usize {
            return None;
        }
        let t = pool.task;
        let task = &self.tasks[t as usize];
        let shared = task.began || task.job.spec().prio != IoPrio::default();
        let worker =
            Worker { pool: p, context: t, begins: true, called: false, asleep: false, sync: None };
        let h = self.threads.add(&mut self.queue, t, Role::Worker(worker));
        let number = self.threads.all[h as usize].number;
        self.seat_thread(h);
        if !shared && let Some(worker) = self.threads.worker(h) {
            worker.context = number;
        }
        let pool = &mut self.threads.pools[p as usize];
        pool.workers.push(h);
        pool.awake += 1;
        Some(number)
    }

    /// A worker does one I/O after the other until it sleeps or has no work left.
    pub(crate) fn run_worker(&mut self, h: u32) {
        let Some(worker) = self.threads.worker(h) else { return };
        let (p, context) = (worker.pool, worker.context);
        let mut resumed = self.worker_runs(h, p);
        loop {
            match self.submit_left(h, resumed) {
                Left::Nothing => {}
                Left::Asleep => return self.worker_sleeps(h, p),
                Left::Working => return,
            }
            if !self.sync_over(h) {
                self.leave_core(self.threads.all[h as usize].number);
                return self.worker_sleeps(h, p);
            }
            resumed = false;
            let pool = &mut self.threads.pools[p as usize];
            let Some(bio) = pool.pending.pop_front() else {
                if !pool.idle.contains(&h) {
                    pool.idle.push(h);
                }
                pool.awake -= 1;
                self.threads.all[h as usize].running = false;
                self.leave_core(self.threads.all[h as usize].number);
                return;
            };
            pool.idle.retain(|i| *i != h);
            self.begin_work(h, p, Bio { task: context, ..bio });
        }
    }

    /// A worker is on its core. Returns whether it slept before.
    fn worker_runs(&mut self, h: u32, p: u32) -> bool {
        if std::mem::replace(&mut self.threads.all[h as usize].running, true) {
            return false;
        }
        let Some(worker) = self.threads.worker(h) else { return false };
        let counted = std::mem::take(&mut worker.begins);
        (worker.called, worker.asleep) = (false, false);
        let pool = &mut self.threads.pools[p as usize];
        pool.awake += u32::from(!counted);
        true
    }

    fn begin_work(&mut self, h: u32, p: u32, bio: Bio) {
        self.take_up(h, bio);
        if bio.op == Op::Flush {
            let unit = bio.id - self.tasks[self.threads.all[h as usize].task as usize].first_io;
            if let Some(worker) = self.threads.worker(h) {
                worker.sync = Some((unit, false));
                self.threads.pools[p as usize].syncs += 1;
            }
        }
        // An I/O that found no tag was counted when it was tried.
        if bio.op == Op::Flush || bio.sectors > self.single {
            self.ios.start(bio.id, self.threads.all[h as usize].left.len() as u32);
        }
    }

    /// Whether a worker has no sync under way. Tells the process of a finished sync.
    fn sync_over(&mut self, h: u32) -> bool {
        let t = self.threads.all[h as usize].task;
        let Some(worker) = self.threads.worker(h) else { return true };
        let Some((unit, done)) = worker.sync else { return true };
        if done {
            worker.sync = None;
            let pool = worker.pool;
            self.threads.pools[pool as usize].syncs -= 1;
            self.tell(t, unit);
        }
        done
    }

    /// A worker sleeps. If it was the last awake and there is more work, another is made. The process makes it and has
    /// to run for that, so processes that are about to start do so first.
    fn worker_sleeps(&mut self, h: u32, p: u32) {
        self.threads.all[h as usize].running = false;
        if let Some(worker) = self.threads.worker(h) {
            worker.asleep = true;
        }
        let pool = &mut self.threads.pools[p as usize];
        pool.awake -= 1;
        if pool.awake == 0
            && !pool.pending.is_empty()
            && let Some(number) = self.make_worker(p)
        {
            self.tl.events.push(self.tl.now, HostEvent::wake(number, 0).into());
        }
    }

    /// A process learns from a worker that an I/O is done.
    fn tell(&mut self, t: TaskId, unit: u32) {
        let task = &mut self.tasks[t as usize];
        let io = task.first_io + unit;
        task.ring.push(unit);
        let wakes = matches!(task.state, State::Io(min) if task.ring.wakes(min));
        if wakes {
            task.state = State::Ready;
            self.completed_once = true;
        }
        match &mut self.cores {
            Some(cores) => cores.completion(self.tl.now, t, io, wakes),
            None if wakes => self.ready.push_back(t),
            None => {}
        }
    }

    /// A process has ended, and its workers with it.
    pub(crate) fn workers_exit(&mut self, t: TaskId) {
        let Others::Pool(p) = self.tasks[t as usize].others else { return };
        for i in 0..self.threads.pools[p as usize].workers.len() {
            let h = self.threads.pools[p as usize].workers[i];
            if let Some(context) = self.threads.worker(h).map(|w| w.context)
                && context != t
            {
                self.queue.task_exited(&mut self.tl, context);
            }
        }
    }
}
