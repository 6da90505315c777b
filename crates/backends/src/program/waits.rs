//! Tasks that wait for each other: children, barriers, sleeps, pipes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, PoisonError};
use std::time::{Duration, Instant};

use iosched_host::programs::Measured;
use iosched_syscalls::{Answer, Errno, MapId};
use iosched_types::{Nanos, TaskId};

use super::Shared;
use crate::sys::transfer::FileMap;

/// What a task waits for that only another task can bring about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Child(Option<TaskId>),
    Barrier(u32),
    PipeData,
    PipeRoom,
}

impl Wait {
    fn words(self) -> String {
        match self {
            Wait::Child(None) => "a child".into(),
            Wait::Child(Some(t)) => format!("task {t}"),
            Wait::Barrier(n) => format!("others at barrier {n}"),
            Wait::PipeData => "something in a pipe".into(),
            Wait::PipeRoom => "room in a pipe".into(),
        }
    }
}

/// What all know of a task.
#[derive(Default)]
struct Slot {
    parent: Option<TaskId>,
    ended: bool,
    told_to_stop: bool,
    waits: Option<Wait>,
    woken: Arc<Condvar>,
    /// Children that run, or that nobody has waited for.
    children: u32,
    /// Children that have ended and were not waited for.
    dead: VecDeque<TaskId>,
}

/// Who is at a barrier.
#[derive(Default)]
struct Barrier {
    here: u32,
    /// How often it was left.
    left: u64,
}

/// Maps of files, for all tasks.
#[derive(Default)]
pub(super) struct Maps(Vec<Option<Arc<FileMap>>>);

impl Maps {
    pub(super) fn add(&mut self, map: FileMap) -> MapId {
        self.0.push(Some(Arc::new(map)));
        MapId(self.0.len() as u32 - 1)
    }

    pub(super) fn get(&self, map: MapId) -> Result<Arc<FileMap>, Errno> {
        self.0.get(map.0 as usize).cloned().flatten().ok_or(Errno::EINVAL)
    }

    pub(super) fn remove(&mut self, map: MapId) -> Result<Arc<FileMap>, Errno> {
        self.0.get_mut(map.0 as usize).and_then(Option::take).ok_or(Errno::EINVAL)
    }
}

/// What the tasks of a run know of each other.
#[derive(Default)]
pub(super) struct State {
    slots: Vec<Slot>,
    pub(super) alive: usize,
    waiting: usize,
    /// How often anything was done for which somebody may wait.
    pub(super) changes: u64,
    barriers: BTreeMap<u32, Barrier>,
    counters: BTreeMap<u32, i64>,
    pub(super) maps: Maps,
    pub(super) measured: Measured,
    /// The last task has ended.
    pub(super) ended: Arc<Condvar>,
}

impl State {
    /// A new task.
    pub(super) fn born(&mut self, parent: Option<TaskId>) -> TaskId {
        let id = self.slots.len() as TaskId;
        self.slots.push(Slot { parent, ..Slot::default() });
        self.alive += 1;
        self.changes += 1;
        if let Some(parent) = parent {
            self.slots[parent as usize].children += 1;
        }
        id
    }

    /// A task that could not be started.
    pub(super) fn stillborn(&mut self, id: TaskId) {
        let slot = &mut self.slots[id as usize];
        slot.ended = true;
        self.alive -= 1;
        if let Some(parent) = slot.parent.take() {
            self.slots[parent as usize].children -= 1;
        }
    }

    /// A task has ended, and everything of it is closed.
    pub(super) fn died(&mut self, id: TaskId) {
        self.changes += 1;
        self.alive -= 1;
        let slot = &mut self.slots[id as usize];
        slot.ended = true;
        slot.dead = VecDeque::new();
        if let Some(parent) = slot.parent
            && let Some(mother) = self.slots.get_mut(parent as usize)
            && !mother.ended
        {
            mother.dead.push_back(id);
            mother.woken.notify_all();
        }
        if self.alive == 0 {
            self.ended.notify_all();
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.measured.failed.is_some()
    }

    /// Whether every task waits for another one.
    pub(super) fn all_wait(&self) -> bool {
        self.waiting == self.alive
    }

    pub(super) fn wake_all(&self) {
        self.slots.iter().for_each(|s| s.woken.notify_all());
        self.ended.notify_all();
    }

    /// Who waits for what, for people: the first few.
    pub(super) fn waiting(&self) -> String {
        let all = self.slots.iter().enumerate().filter(|(_, s)| !s.ended);
        let waits = all.filter_map(|(i, s)| Some(format!("task {i} for {}", s.waits?.words())));
        waits.take(4).collect::<Vec<_>>().join(", ")
    }

    /// A task begins or ends to wait.
    pub(super) fn waits(&mut self, id: TaskId, wait: Option<Wait>) {
        let slot = &mut self.slots[id as usize];
        match (slot.waits.is_some(), wait.is_some()) {
            (false, true) => self.waiting += 1,
            (true, false) => self.waiting -= 1,
            _ => {}
        }
        slot.waits = wait;
        self.changes += 1;
    }

    pub(super) fn told_to_stop(&self, id: TaskId) -> bool {
        self.slots[id as usize].told_to_stop
    }

    pub(super) fn add(&mut self, counter: u32, by: i64) -> Answer {
        let value = self.counters.entry(counter).or_default();
        *value = value.wrapping_add(by);
        Ok(value.cast_unsigned())
    }

    pub(super) fn signal(&mut self, task: TaskId) -> Answer {
        let target = self.slots.get_mut(task as usize).filter(|s| !s.ended).ok_or(Errno::ESRCH)?;
        target.told_to_stop = true;
        target.woken.notify_all();
        self.changes += 1;
        Ok(0)
    }

    /// A child that has ended; `ECHILD` when there is none to wait for, `None` when it still runs.
    fn reap(&mut self, id: TaskId, which: Option<TaskId>) -> Option<Answer> {
        let slot = &mut self.slots[id as usize];
        let found = match which {
            None => (!slot.dead.is_empty()).then_some(0),
            Some(one) => slot.dead.iter().position(|c| *c == one),
        };
        if let Some(i) = found {
            let child = slot.dead.remove(i).unwrap_or_default();
            slot.children -= 1;
            return Some(Ok(if which.is_some() { 0 } else { u64::from(child) }));
        }
        let none = match which {
            None => slot.children == 0,
            Some(one) => {
                let child = self.slots.get(one as usize);
                !child.is_some_and(|c| c.parent == Some(id) && !c.ended)
            }
        };
        none.then_some(Err(Errno::ECHILD))
    }
}

impl Shared {
    /// Waits until `ready` says what to answer.
    fn until(
        &self,
        id: TaskId,
        wait: Wait,
        mut ready: impl FnMut(&mut State) -> Option<Answer>,
    ) -> Answer {
        let mut state = self.state();
        loop {
            if self.is_stopped() {
                state.waits(id, None);
                return Err(Errno::EINTR);
            }
            if let Some(answer) = ready(&mut state) {
                state.waits(id, None);
                return answer;
            }
            state.waits(id, Some(wait));
            let woken = state.slots[id as usize].woken.clone();
            state = woken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn wait(&self, id: TaskId, which: Option<TaskId>) -> Answer {
        self.until(id, Wait::Child(which), |state| state.reap(id, which))
    }

    pub(super) fn barrier(&self, id: TaskId, barrier: u32, parties: u32) -> Answer {
        let mut came = None;
        self.until(id, Wait::Barrier(barrier), |state| {
            let b = state.barriers.entry(barrier).or_default();
            if let Some(left) = came {
                return (b.left != left).then_some(Ok(0));
            }
            came = Some(b.left);
            b.here += 1;
            if b.here < parties {
                return None;
            }
            b.here = 0;
            b.left += 1;
            let here = |s: &&Slot| s.waits == Some(Wait::Barrier(barrier));
            state.slots.iter().filter(here).for_each(|s| s.woken.notify_all());
            Some(Ok(0))
        })
    }

    /// Sleeps; `EINTR` when told to stop.
    pub(super) fn sleep(&self, id: TaskId, time: Nanos) -> Answer {
        let mut state = self.state();
        let end = Instant::now().checked_add(Duration::from_nanos(time));
        loop {
            if state.told_to_stop(id) || self.is_stopped() {
                return Err(Errno::EINTR);
            }
            let left = match end {
                Some(end) => end.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            if left.is_zero() || self.how.instant {
                return Ok(0);
            }
            let woken = state.slots[id as usize].woken.clone();
            state = woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
