//! What a fio job asks for, step by step.

use iosched_types::{Nanos, Op, TaskId};
use iosched_workloads::fio::process::{LeanStep, Step};

use crate::events::HostEvent;
use crate::machine::Machine;
use crate::tasks::State;

impl Machine {
    /// Does the steps of the short main loop of most jobs. `false` when the process sleeps now.
    #[inline(always)]
    fn take_lean_step(&mut self, t: TaskId, step: LeanStep) -> bool {
        match step {
            LeanStep::Submit(io) => {
                if self.cores.is_some() {
                    self.begin_submission(t, io);
                    return false;
                }
                self.look(|l| l.io);
                self.submit(t, io)
            }
            LeanStep::Wait(min) => {
                self.wait(t, min);
                false
            }
        }
    }

    /// Too few are done.
    #[inline(always)]
    fn wait(&mut self, t: TaskId, min: u32) {
        if self.cores.is_some() {
            self.begin_look(t, min);
            return;
        }
        self.tasks[t as usize].state = State::Io(min);
        self.queue.task_sleeps(&mut self.tl, t);
        self.end_call();
    }

    /// Lets a process run until it sleeps or needs its core for a while.
    pub(crate) fn run_task(&mut self, t: TaskId) {
        if self.worker_last {
            self.in_waiting_calls = self.tasks[t as usize].job.spec().engine.is_sync();
        }
        if !self.resume_submission(t) {
            return;
        }
        if self.tasks[t as usize].trims {
            self.trimmed(t);
        }
        if self.looks.is_some() {
            self.first_looks(t);
        }
        loop {
            let task = &mut self.tasks[t as usize];
            let before = task.ring.len();
            if let Some(step) = task.job.step_lean(self.tl.now, &mut task.ring) {
                task.looks += u32::from(task.ring.len() < before);
                if self.take_lean_step(t, step) {
                    continue;
                }
                return;
            }
            let step = task.job.step(self.tl.now, &mut task.ring);
            task.looks += u32::from(task.ring.len() < before);
            if !self.take_step(t, step) {
                return;
            }
        }
    }

    /// Does a step of a process. `false` when the process sleeps now.
    fn take_step(&mut self, t: TaskId, step: Step) -> bool {
        let task = &mut self.tasks[t as usize];
        match step {
            Step::Submit(io) => {
                let (batch, sync) = (task.batch, task.job.spec().engine.is_sync());
                self.look(|l| match (batch, sync) {
                    // Before the call.
                    (true, _) => 0,
                    _ if io.op == Op::Discard => l.discard,
                    (_, true) => l.sync_io,
                    _ => l.io,
                });
                let runs = self.submit_any(t, io);
                // A device's plug ends after each I/O of a call.
                if batch && self.queue.plugs_device() {
                    self.queue.unplug_device(&mut self.tl);
                }
                runs
            }
            Step::BeginBatch(ios) => {
                task.batch = true;
                self.look(|l| l.collected * Nanos::from(ios) + l.call);
                self.queue.start_plug(t);
                true
            }
            Step::EndBatch => {
                task.batch = false;
                self.queue.finish_plug(&mut self.tl, t);
                self.end_call();
                true
            }
            Step::Await(unit) => {
                task.state = State::Call(unit);
                self.queue.task_sleeps(&mut self.tl, t);
                self.leave_core(t);
                self.end_call();
                false
            }
            Step::Wait(min) => {
                if !self.resume_submission(t) {
                    return false;
                }
                let task = &mut self.tasks[t as usize];
                let enough = task.ring.len() >= min as usize;
                if !enough {
                    self.wait(t, min);
                }
                enough
            }
            Step::Sleep(until) => {
                task.state = State::Sleeping;
                task.sleep += 1;
                let event = HostEvent::wake(t, task.sleep).into();
                let pause = self.looks.map_or(0, |l| l.pause);
                self.tl.events.push((until + pause).max(self.tl.now), event);
                self.look(|l| l.pause);
                self.queue.task_sleeps(&mut self.tl, t);
                self.leave_core(t);
                self.end_call();
                false
            }
            Step::Exit => {
                task.state = State::Exited;
                self.alive -= 1;
                self.end_others(t);
                self.queue.task_exited(&mut self.tl, t);
                self.workers_exit(t);
                self.leave_core(t);
                self.collect();
                false
            }
        }
    }
}
