//! Processes whose work takes time on cores. Without a CPU model none of this runs.

use iosched_block::Event;
use iosched_experiment::CpuTime;
use iosched_types::TaskId;
use iosched_workloads::fio::process::Io;

use crate::cpu::{Cores, Ended, Piece};

use super::{Drive, State};

/// What a process does when its piece of core time is over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Then {
    /// Goes on.
    #[default]
    Step,
    /// Hands this over.
    Submit(Io),
    /// Sleeps, unless so many are done.
    Look(u32),
}

/// The events of cores stand behind the others'.
const FIRST_CORE: u32 = 16;

impl Drive {
    /// Makes work take core time.
    pub(crate) fn charge_cores(&mut self, costs: Option<crate::cpu::Costs>) {
        let cores = self.queue.facts().cpus.max(1);
        let home = self.tasks.iter().map(|t| t.cpu).collect();
        self.cores = costs.map(|c| Cores::new(c, cores, home));
    }

    /// Core time of a process since its start.
    pub(crate) fn cpu_time(&self, task: usize) -> CpuTime {
        self.cores.as_ref().and_then(|c| c.times().get(task)).copied().unwrap_or_default()
    }

    /// The events that cores asked for.
    #[inline]
    pub(super) fn schedule_cores(&mut self) {
        if let Some(cores) = &mut self.cores {
            for (at, core) in cores.due.drain(..) {
                self.tl.events.push(at, Event::User(FIRST_CORE + u32::from(core)));
            }
        }
    }

    /// An event of a core fires.
    pub(super) fn core_event(&mut self, number: u32) {
        let Some(cores) = &mut self.cores else { return };
        let Ended::Piece(t, piece) = cores.event(self.tl.now, (number - FIRST_CORE) as u16) else {
            return;
        };
        match piece {
            Piece::SwitchIn => match self.tasks[t as usize].then {
                Then::Step => self.run_task(t),
                Then::Submit(_) => self.begin_piece(t, Piece::Submit),
                Then::Look(_) => self.begin_piece(t, Piece::Reap),
            },
            Piece::Submit if cores.lock(self.tl.now, t) => {}
            Piece::Submit | Piece::Locked => self.submit_now(t),
            Piece::Reap => self.looked(t),
        }
    }

    /// The process has something to hand over: that takes time, and more when it took completions just before.
    pub(super) fn begin_submission(&mut self, t: TaskId, io: Io) {
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
        if let Then::Submit(io) = then
            && !self.submit(t, io)
        {
            return;
        }
        self.run_task(t);
    }

    /// Too few are done: the process looks for them, and sleeps if they are not there by then. A synchronous call
    /// sleeps where it is.
    pub(super) fn begin_look(&mut self, t: TaskId, min: u32) {
        let task = &mut self.tasks[t as usize];
        if task.process.job().engine.is_sync() {
            self.sleep_for_ios(t, min);
        } else {
            task.then = Then::Look(min);
            self.begin_piece(t, Piece::Reap);
        }
    }

    fn looked(&mut self, t: TaskId) {
        let task = &mut self.tasks[t as usize];
        match std::mem::take(&mut task.then) {
            Then::Look(min) if task.ring.len() < min as usize => self.sleep_for_ios(t, min),
            _ => self.run_task(t),
        }
    }

    fn sleep_for_ios(&mut self, t: TaskId, min: u32) {
        self.tasks[t as usize].state = State::Io(min);
        self.queue.task_sleeps(&mut self.tl, t);
        self.leave_core(t);
        self.end_call();
    }

    /// The process sleeps or has ended: its core is the next one's.
    #[inline]
    pub(super) fn leave_core(&mut self, t: TaskId) {
        if let Some(cores) = &mut self.cores {
            cores.leave(self.tl.now, t);
        }
    }
}
