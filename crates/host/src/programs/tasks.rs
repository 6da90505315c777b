//! Tasks are born, run, end, and are waited for.

use iosched_syscalls::{Birth, Errno, Shares};
use iosched_types::Nanos;

use crate::cpu::Seat;
use crate::error::HostError;

use super::calls::PAGE;
use super::paths::seat_of;
use super::task::{Moves, State, Task, Tid};
use super::{GoOn, LOOK, Programs};

/// Tasks that a run may have.
const MOST: usize = 10_000_000;

impl Programs {
    /// A new task, ready to run.
    pub(super) fn born(&mut self, birth: Birth, parent: Option<Tid>, table: u32) -> Tid {
        let t = self.tasks.len() as Tid;
        let identity = self.identities.get(t as usize).cloned().unwrap_or_default();
        let cpu = identity.cpus.first().copied().unwrap_or((t % u32::from(self.cpus)) as u16);
        let mut task = Task::new((birth.0)(), table, parent, cpu);
        task.stats.began = self.tl.now.saturating_sub(self.began);
        task.since = self.tl.now;
        self.tasks.push(task);
        self.tables[table as usize].users += 1;
        self.alive += 1;
        match &mut self.cores {
            Some(cores) => {
                cores.add_task(Seat {
                    core: cpu,
                    allowed: identity.cpus,
                    nice: identity.info.nice,
                });
                cores.wake(self.tl.now, seat_of(t));
            }
            None => self.ready.push_back(t),
        }
        t
    }

    pub(super) fn spawn(
        &mut self,
        t: Tid,
        (shares, role): (Shares, &'static str),
        birth: Birth,
    ) -> Result<u64, Errno> {
        if self.tasks.len() >= MOST {
            return Err(Errno::EAGAIN);
        }
        let own = self.tasks[t as usize].table;
        let table = match shares {
            Shares::Everything => own,
            Shares::OpenFiles => self.copy_table(own),
        };
        let child = self.born(birth, Some(t), table);
        self.tasks[child as usize].stats.role = role;
        self.tasks[t as usize].children += 1;
        Ok(u64::from(child))
    }

    /// Lets a task run until it waits for something or ends.
    pub(super) fn resume(&mut self, t: Tid, go_on: GoOn<'_>) -> Result<(), HostError> {
        let Some(mut program) = self.tasks[t as usize].program.take() else { return Ok(()) };
        loop {
            self.book_call(t);
            self.note_answer(t);
            let answer = self.tasks[t as usize].answer;
            let Some(call) = program.resume(self.tl.now, answer) else {
                let status = program.status();
                self.exit(t, status);
                return Ok(());
            };
            self.calls += 1;
            // Files that are made in no time are written in large pieces.
            let looks = if self.instant { LOOK >> 6 } else { LOOK };
            if self.calls.is_multiple_of(looks) {
                self.progress(t, go_on)?;
            }
            if !self.serve(t, call) {
                self.tasks[t as usize].program = Some(program);
                return Ok(());
            }
        }
    }

    /// Refuses to go on with a task that makes calls for ever without time moving on.
    fn progress(&mut self, t: Tid, go_on: GoOn<'_>) -> Result<(), HostError> {
        if self.at_once.0 != self.tl.now {
            self.at_once = (self.tl.now, self.calls);
        }
        let calls = self.calls - self.at_once.1;
        if calls > self.most_at_once {
            let at_ms = self.tl.now as f64 / 1e6;
            return Err(HostError::NeverWaits { task: t, at_ms, calls });
        }
        if go_on(self.tl.now).is_break() {
            return Err(HostError::Stopped);
        }
        Ok(())
    }

    /// A task ends. What it began goes on; who waits for it is told.
    fn exit(&mut self, t: Tid, status: Result<(), Errno>) {
        if let Err(errno) = status {
            self.failed(t, errno);
        }
        self.book(t);
        let task = &mut self.tasks[t as usize];
        task.state = State::Ended;
        task.program = None;
        // Children that nobody will wait for any more.
        task.ended = std::collections::VecDeque::new();
        let (table, parent, context) = (task.table, task.parent, task.context.take());
        self.alive -= 1;
        self.leave_table(table);
        if let Some(context) = context {
            self.queue.task_exited(&mut self.tl, context);
            if self.tasks[t as usize].asyncs == 0 {
                self.free_contexts.push(context);
            }
        }
        if let Some(cores) = &mut self.cores {
            cores.leave(self.tl.now, seat_of(t));
        }
        let Some(p) = parent else { return };
        let mother = &mut self.tasks[p as usize];
        match mother.state {
            State::Ended => {}
            State::Child(None) => {
                mother.children -= 1;
                self.answer(p, Ok(u64::from(t)));
            }
            State::Child(Some(one)) if one == t => {
                mother.children -= 1;
                self.answer(p, Ok(0));
            }
            _ => mother.ended.push_back(t),
        }
    }

    /// Waits for a child; `false` when it must sleep.
    pub(super) fn wait(&mut self, t: Tid, which: Option<Tid>) -> bool {
        let task = &mut self.tasks[t as usize];
        let found = match which {
            None => (!task.ended.is_empty()).then_some(0),
            Some(one) => task.ended.iter().position(|c| *c == one),
        };
        if let Some(i) = found {
            let child = task.ended.remove(i).unwrap_or_default();
            task.children -= 1;
            task.answer = Ok(if which.is_some() { 0 } else { u64::from(child) });
            return true;
        }
        let none = match which {
            None => task.children == 0,
            Some(one) => {
                let child = self.tasks.get(one as usize);
                !child.is_some_and(|c| c.parent == Some(t) && c.state != State::Ended)
            }
        };
        let task = &mut self.tasks[t as usize];
        if none {
            task.answer = Err(Errno::ECHILD);
            return true;
        }
        self.sleep(t, State::Child(which));
        false
    }

    /// A task sleeps until something answers it.
    pub(super) fn sleep(&mut self, t: Tid, state: State) {
        self.tasks[t as usize].state = state;
        if let Some(cores) = &mut self.cores {
            cores.leave(self.tl.now, seat_of(t));
        }
    }

    /// A call of a sleeping task is answered.
    pub(super) fn answer(&mut self, t: Tid, answer: Result<u64, Errno>) {
        self.tasks[t as usize].answer = answer;
        self.wake(t);
    }

    /// A sleeping task goes on when it is its turn.
    pub(super) fn wake(&mut self, t: Tid) {
        self.tasks[t as usize].state = State::Ready;
        match &mut self.cores {
            Some(cores) => cores.wake(self.tl.now, seat_of(t)),
            None => self.ready.push_back(t),
        }
    }

    /// Who waits for what, for people: the first few.
    pub(super) fn waiting(&self) -> String {
        let all = self.tasks.iter().enumerate().filter(|(_, t)| t.state != State::Ended);
        let word =
            |(i, t): (usize, &Task)| format!("task {i} for {} in {}", t.state.words(), t.last_call);
        all.take(4).map(word).collect::<Vec<_>>().join(", ")
    }

    /// A call that moved data has been answered.
    #[inline]
    fn book_call(&mut self, t: Tid) {
        let now = self.tl.now;
        let task = &mut self.tasks[t as usize];
        for (write, since, bytes) in task.taken.drain(..) {
            task.stats.moved(write, bytes, now - since);
        }
        let (Some(moves), Ok(n)) = (task.moves.take(), task.answer) else { return };
        let latency: Nanos = now - task.since;
        let stats = &mut task.stats;
        match moves {
            Moves::Read => stats.moved(false, n, latency),
            Moves::Write => stats.moved(true, n, latency),
            Moves::Copy => {
                stats.moved(false, n, latency);
                stats.moved(true, n, latency);
            }
            Moves::Load => stats.moved(false, PAGE, latency),
            Moves::Store => stats.moved(true, PAGE, latency),
            Moves::Sync => {
                stats.sync.0 += 1;
                stats.sync.2.record(latency);
            }
        }
    }
}
