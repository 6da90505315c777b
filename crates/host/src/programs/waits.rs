//! Sleeps, barriers, counters, signals.

use iosched_syscalls::{Answer, Errno};
use iosched_types::Nanos;

use crate::events::HostEvent;

use super::Programs;
use super::task::{State, Tid};

impl Programs {
    /// `false`: it sleeps.
    pub(super) fn nap(&mut self, t: Tid, time: Nanos) -> bool {
        let task = &mut self.tasks[t as usize];
        if task.told_to_stop {
            task.answer = Err(Errno::EINTR);
            return true;
        }
        if self.instant || time == 0 {
            task.answer = Ok(0);
            return true;
        }
        self.alarm(t, time);
        false
    }

    /// Own work without a CPU model: it takes its time and holds up nobody.
    pub(super) fn think(&mut self, t: Tid, time: Nanos) -> bool {
        let task = &mut self.tasks[t as usize];
        task.answer = Ok(0);
        if self.instant || time == 0 {
            return true;
        }
        task.computed += time;
        self.alarm(t, time);
        false
    }

    fn alarm(&mut self, t: Tid, time: Nanos) {
        let task = &mut self.tasks[t as usize];
        task.nap = task.nap.wrapping_add(1);
        let nap = task.nap;
        let at = self.tl.now.saturating_add(time);
        self.tl.events.push(at, HostEvent::wake(t, nap).into());
        self.sleep(t, State::Sleeping);
    }

    /// A sleep is over.
    pub(super) fn alarm_fired(&mut self, t: Tid, nap: u32) {
        if self.path_alarm(t, nap) {
            return;
        }
        // A task of an earlier phase may have had the number.
        let Some(task) = self.tasks.get(t as usize) else { return };
        if HostEvent::is_sleep(nap, task.nap) && task.state == State::Sleeping {
            self.answer(t, Ok(0));
        }
    }

    /// `false` when it must wait for others.
    pub(super) fn barrier(&mut self, t: Tid, barrier: u32, parties: u32) -> bool {
        let waiting = self.barriers.entry(barrier).or_default();
        if waiting.len() + 1 < parties as usize {
            waiting.push_back(t);
            self.sleep(t, State::Barrier(barrier));
            return false;
        }
        let mut waiting = std::mem::take(waiting);
        for other in waiting.drain(..) {
            self.answer(other, Ok(0));
        }
        self.barriers.insert(barrier, waiting);
        self.tasks[t as usize].answer = Ok(0);
        true
    }

    pub(super) fn add(&mut self, counter: u32, by: i64) -> Answer {
        let value = self.counters.entry(counter).or_default();
        *value = value.wrapping_add(by);
        Ok(value.cast_unsigned())
    }

    pub(super) fn signal(&mut self, task: Tid) -> Answer {
        let Some(target) = self.tasks.get_mut(task as usize) else { return Err(Errno::ESRCH) };
        if target.state == State::Ended {
            return Err(Errno::ESRCH);
        }
        target.told_to_stop = true;
        if target.state == State::Sleeping && target.last_call == "sleep" {
            target.nap = target.nap.wrapping_add(1);
            self.answer(task, Err(Errno::EINTR));
        }
        Ok(0)
    }
}
