//! A task on its thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iosched_host::programs::TaskStats;
use iosched_syscalls::{Answer, Birth, Call, Completion, Errno};
use iosched_types::{CpuTime, Nanos, TaskId};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::time::{ClockId, clock_gettime};

use super::Shared;
use super::descriptors::{Descriptors, Table};
use super::moves::Memory;

/// A thread's stack: a program keeps its own state elsewhere.
const STACK: usize = 512 << 10;

/// A task.
pub(super) struct Task {
    pub(super) shared: Arc<Shared>,
    pub(super) id: TaskId,
    table: Descriptors,
    /// Data, maps and asynchronous I/O. Made on the task's own thread.
    pub(super) memory: Memory,
    stats: TaskStats,
    /// Core time of the thread before the task began: ours.
    before: CpuTime,
    last_call: &'static str,
}

/// A task that has been announced. Dropping it says that the task has ended, even if the thread panics.
struct Announced {
    shared: Arc<Shared>,
    id: TaskId,
    ended: bool,
}

impl Drop for Announced {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if !self.ended {
            state.measured.failed.get_or_insert((self.id, Errno::EFAULT, "a defect of iosched"));
        }
        state.died(self.id);
    }
}

impl Task {
    /// Starts the thread of a new task; `made` by which one, and what it is to the program.
    ///
    /// # Errors
    /// `EAGAIN` when the machine has no room for one more.
    pub(super) fn start(
        shared: &Arc<Shared>,
        table: Descriptors,
        made: Option<(TaskId, &'static str)>,
        birth: Birth,
    ) -> Result<TaskId, Errno> {
        let id = shared.state().born(made.map(|(parent, _)| parent));
        let role = made.map_or("", |(_, role)| role);
        let own = shared.clone();
        let thread = std::thread::Builder::new().name(format!("task-{id}")).stack_size(STACK);
        let body = move || {
            let mut announced = Announced { shared: own.clone(), id, ended: false };
            Task::live(own, (id, role), table, birth);
            announced.ended = true;
        };
        // Nobody joins it: the last thing that it does is to say that it has ended.
        if thread.spawn(body).is_err() {
            shared.state().stillborn(id);
            return Err(Errno::EAGAIN);
        }
        Ok(id)
    }

    fn live(
        shared: Arc<Shared>,
        (id, role): (TaskId, &'static str),
        table: Descriptors,
        birth: Birth,
    ) {
        let noise = shared.how.noise.then_some(u64::from(id));
        let mut task = Task {
            id,
            table,
            memory: Memory::new(noise),
            stats: TaskStats { role, ..TaskStats::default() },
            before: CpuTime::default(),
            last_call: "start",
            shared,
        };
        // In this order: a task has no more core time than it ran for.
        task.stats.began = task.shared.now();
        task.before = own_time();
        let mut program = (birth.0)();
        let mut answer = Ok(0);
        while let Some(call) = program.resume(task.shared.now(), answer) {
            if task.shared.is_stopped() {
                break;
            }
            answer = task.serve(call);
        }
        // A task that the end of the run has woken has not failed.
        let status = if task.shared.is_stopped() { Ok(()) } else { program.status() };
        drop(program);
        task.end(status);
    }

    /// Makes a call, and books it.
    fn serve(&mut self, call: Call) -> Answer {
        match call {
            Call::Note { what, since, bytes } => {
                let now = self.shared.now();
                self.shared.state().measured.note(what, since, now, bytes);
                return Ok(0);
            }
            Call::Mark { what, part, since } => {
                let now = self.shared.now();
                self.shared.state().measured.mark(what, part, since, now);
                return Ok(0);
            }
            Call::Figure { name, value, beyond } => {
                self.shared.state().measured.figure(name, value, beyond);
                return Ok(0);
            }
            _ => {}
        }
        self.last_call = call.name();
        self.stats.calls += u64::from(call.enters_kernel());
        let moves = self.moves(&call);
        let (begins, takes) = match &call {
            Call::Submit { io } | Call::Ring { io } => (Some((io.tag, io.write)), None),
            Call::Reap { into, .. } => (None, Some(into.clone())),
            _ => (None, None),
        };
        let began = self.shared.now();
        let answer = self.call(call);
        let Ok(n) = answer else { return answer };
        if let Some(moves) = moves {
            moves.book(&mut self.stats, n, self.shared.now() - began);
        }
        if let Some((tag, write)) = begins {
            self.memory.begun.add(tag, began, write);
        }
        if let Some(taken) = takes {
            self.took(&taken.borrow());
        }
        answer
    }

    /// Asynchronous I/Os came.
    fn took(&mut self, taken: &[Completion]) {
        let now = self.shared.now();
        for c in taken {
            if let (Some((since, write)), Ok(n)) = (self.memory.begun.take(c.tag), c.answer) {
                self.stats.moved(write, n, now - since);
            }
        }
    }

    /// Closes everything, then tells.
    fn end(self, status: Result<(), Errno>) {
        let Task { shared, id, table, memory, mut stats, before, last_call } = self;
        // Asynchronous I/O is waited for.
        drop(memory);
        drop(table);
        let CpuTime { user, system, .. } = own_time();
        let (user, system) =
            (user.saturating_sub(before.user), system.saturating_sub(before.system));
        stats.cpu = CpuTime { user, system, ..CpuTime::default() };
        stats.ended = shared.now();
        let mut state = shared.state();
        state.measured.end_of(id, stats);
        if let Err(errno) = status {
            state.measured.failed.get_or_insert((id, errno, last_call));
        }
    }

    /// The descriptors.
    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The descriptors, for a thread of the same process.
    pub(super) fn same_table(&self) -> Descriptors {
        self.table.clone()
    }

    /// A copy of the descriptors, for a new process.
    pub(super) fn copied_table(&self) -> Descriptors {
        Arc::new(Mutex::new(self.table().clone()))
    }
}

/// Core time of this thread so far, in nanoseconds.
pub(super) fn core_time() -> Nanos {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec.cast_unsigned() * 1_000_000_000 + t.tv_nsec.cast_unsigned()
}

/// The same, split as the kernel splits it: it looks at each tick of its clock in which mode the thread is.
fn own_time() -> CpuTime {
    let total = core_time();
    let system = getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |u| {
        let t = u.system_time();
        t.tv_sec().cast_unsigned() * 1_000_000_000 + t.tv_usec().cast_unsigned() * 1000
    });
    let system = system.min(total);
    CpuTime { user: total - system, system, ..CpuTime::default() }
}
