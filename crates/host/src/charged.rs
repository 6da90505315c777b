//! Processes with work that takes time on cores. Without a CPU model none of this runs.

use iosched_types::{CpuTime, TaskId};
use iosched_workloads::fio::process::Io;

use crate::cpu::{Cores, Costs, Ended, Piece, Seat};
use crate::events::HostEvent;
use crate::machine::Machine;
use crate::tasks::{State, Task};

/// The next step of a process when its piece of core time is over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Then {
    /// Goes on.
    #[default]
    Step,
    /// Hands this over.
    Submit(Io),
    /// Sleeps, unless this many are done.
    Look(u32),
}

impl Machine {
    /// Makes work take core time.
    pub fn charge_cores(&mut self, costs: Option<Costs>) {
        let cores = self.queue.facts().cpus.max(1);
        let seat = |t: &Task| {
            let spec = t.job.spec();
            let mut allowed: Vec<u16> = spec.cpus.iter().map(|c| c % cores).collect();
            allowed.dedup();
            Seat { core: t.cpu, allowed, nice: spec.nice }
        };
        let seats = self.tasks.iter().map(seat).collect();
        self.cores = costs.map(|c| Cores::new(c, cores, seats));
        (0..self.threads.all.len() as u32).for_each(|h| self.seat_thread(h));
    }

    /// A new thread gets a place on cores: where its process is, and wherever that may run.
    pub(crate) fn seat_thread(&mut self, h: u32) {
        let thread = &self.threads.all[h as usize];
        if let Some(cores) = &mut self.cores {
            debug_assert_eq!(thread.number as usize, cores.times().len());
            cores.add_task(cores.seat_of(thread.task));
        }
    }

    /// Core time of a process and its threads since its start.
    #[must_use]
    pub fn cpu_time(&self, task: usize) -> CpuTime {
        let Some(cores) = &self.cores else { return CpuTime::default() };
        let of = |t: TaskId| cores.times().get(t as usize).copied().unwrap_or_default();
        let mut all = of(task as TaskId);
        self.threads.of_task(task as TaskId).for_each(|thread| all.add(&of(thread.number)));
        all
    }

    /// The events that cores asked for.
    #[inline]
    pub(crate) fn schedule_cores(&mut self) {
        if let Some(cores) = &mut self.cores {
            for (at, core) in cores.due.drain(..) {
                self.tl.events.push(at, HostEvent::Core(core).into());
            }
        }
    }

    /// An event of a core fires.
    pub(crate) fn core_event(&mut self, core: u16) {
        let Some(cores) = &mut self.cores else { return };
        let Ended::Piece(t, piece) = cores.event(self.tl.now, core) else {
            return;
        };
        if let Some(h) = self.threads.thread_of(t) {
            return self.thread_event(h, piece);
        }
        match piece {
            Piece::SwitchIn => match self.tasks[t as usize].then {
                Then::Step => self.run_task(t),
                Then::Submit(_) => self.begin_piece(t, Piece::Submit),
                Then::Look(_) => self.begin_piece(t, Piece::Reap),
            },
            Piece::Submit if cores.lock(self.tl.now, t) => {}
            Piece::Submit | Piece::Locked => self.submit_now(t),
            Piece::Reap => self.looked(t),
            // Of programs.
            Piece::Bio | Piece::Call => self.run_task(t),
        }
    }

    /// A piece of a thread's work is over.
    fn thread_event(&mut self, h: u32, piece: Piece) {
        let thread = &mut self.threads.all[h as usize];
        if let Some(cores) = &mut self.cores
            && piece == Piece::Submit
            && cores.lock(self.tl.now, thread.number)
        {
            return;
        }
        if matches!(piece, Piece::Submit | Piece::Locked) {
            thread.unpaid = false;
        }
        self.run_thread(h);
    }

    /// A thread has an I/O to submit, which takes time.
    pub(crate) fn begin_thread_piece(&mut self, number: TaskId) {
        if let Some(cores) = &mut self.cores {
            cores.begin(self.tl.now, number, Piece::Submit, 0);
        }
    }

    /// The process has a request to hand over. That takes time, and more when it took completions just before.
    pub(crate) fn begin_submission(&mut self, t: TaskId, io: Io) {
        self.tasks[t as usize].then = Then::Submit(io);
        self.begin_piece(t, Piece::Submit);
    }

    fn begin_piece(&mut self, t: TaskId, piece: Piece) {
        let task = &mut self.tasks[t as usize];
        if let Some(cores) = &mut self.cores
            && cores.begin(self.tl.now, t, piece, task.looks)
        {
            task.looks = 0;
        }
    }

    fn submit_now(&mut self, t: TaskId) {
        let then = std::mem::take(&mut self.tasks[t as usize].then);
        if let Then::Submit(io) = then {
            let task = &mut self.tasks[t as usize];
            if let Some(cores) = &mut self.cores {
                cores.submits(t, task.first_io + io.unit);
                task.cpu = cores.core_of(t);
            }
            if !self.submit(t, io) {
                return;
            }
        }
        self.run_task(t);
    }

    /// Too few I/Os are done. The process looks for them, and sleeps if they are not done by then. A synchronous call
    /// sleeps where it is.
    pub(crate) fn begin_look(&mut self, t: TaskId, min: u32) {
        let task = &mut self.tasks[t as usize];
        if task.job.spec().engine.is_sync() {
            self.sleep_for_ios(t, min);
        } else {
            task.then = Then::Look(min);
            self.begin_piece(t, Piece::Reap);
        }
    }

    fn looked(&mut self, t: TaskId) {
        let task = &mut self.tasks[t as usize];
        match std::mem::take(&mut task.then) {
            Then::Look(min) if task.ring.lacks(min) => self.sleep_for_ios(t, min),
            _ => self.run_task(t),
        }
    }

    fn sleep_for_ios(&mut self, t: TaskId, min: u32) {
        self.tasks[t as usize].state = State::Io(min);
        self.queue.task_sleeps(&mut self.tl, t);
        self.leave_core(t);
        self.end_call();
    }

    /// The process sleeps or has ended. Its core goes to the next one.
    #[inline]
    pub(crate) fn leave_core(&mut self, t: TaskId) {
        if let Some(cores) = &mut self.cores {
            cores.leave(self.tl.now, t);
        }
    }
}
