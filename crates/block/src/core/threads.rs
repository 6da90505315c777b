//! What a queue remembers of each thread that submits: its plug, and whether it sleeps inside.

use iosched_types::{Nanos, ReqId, TaskId};

#[derive(Debug, Default)]
struct Thread {
    plugged: bool,
    list: Vec<ReqId>,
    /// The time of the plug is known: requests take it, and nothing looks at the clock.
    timed: bool,
    /// It sleeps inside the block layer, for a tag, a request or in the throttle.
    inside: bool,
}

/// The threads by number.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    threads: Vec<Thread>,
    /// A look at the clock takes a nanosecond.
    looks: bool,
    /// Threads asleep inside: a freeze waits for them.
    inside: u32,
}

impl Threads {
    /// Makes room for the memory of `n` more.
    pub(crate) fn reserve(&mut self, n: usize) {
        self.threads.reserve_exact(n);
    }

    /// Another thread, and its number.
    pub(crate) fn add(&mut self) -> TaskId {
        self.threads.push(Thread::default());
        self.threads.len() as TaskId - 1
    }

    /// Numbers of further threads begin at `first` or later. Returns the first of them.
    pub(crate) fn begin_at(&mut self, first: usize) -> TaskId {
        let first = self.threads.len().max(first);
        self.threads.resize_with(first, Thread::default);
        first as TaskId
    }

    /// Whether the thread has a plug now.
    #[inline(always)]
    pub(crate) fn plugged(&self, thread: TaskId) -> bool {
        self.threads.get(thread as usize).is_some_and(|t| t.plugged)
    }

    pub(crate) fn plug(&mut self, thread: TaskId, on: bool) {
        let thread = &mut self.threads[thread as usize];
        (thread.plugged, thread.timed) = (on, false);
    }

    pub(crate) fn charge_looks(&mut self, on: bool) {
        self.looks = on;
    }

    /// How long it takes to learn the time for a plugged request.
    #[inline(always)]
    pub(crate) fn look(&mut self, thread: TaskId) -> Nanos {
        if !self.looks {
            return 0;
        }
        u64::from(!std::mem::replace(&mut self.threads[thread as usize].timed, true))
    }

    /// The next plugged request looks at the clock anew.
    pub(crate) fn forget_time(&mut self, thread: TaskId) {
        self.threads[thread as usize].timed = false;
    }

    /// Whether it has plugged anything.
    #[inline(always)]
    pub(crate) fn any_plugged(&self, thread: TaskId) -> bool {
        self.threads.get(thread as usize).is_some_and(|t| !t.list.is_empty())
    }

    /// What the thread has plugged, oldest first.
    #[inline(always)]
    pub(crate) fn list(&self, thread: TaskId) -> &[ReqId] {
        self.threads.get(thread as usize).map_or(&[], |t| &t.list)
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, thread: TaskId, id: ReqId) {
        self.threads[thread as usize].list.push(id);
    }

    /// Takes the thread's list. [`give_back`](Self::give_back) returns its memory.
    pub(crate) fn take(&mut self, thread: TaskId) -> Vec<ReqId> {
        std::mem::take(&mut self.threads[thread as usize].list)
    }

    pub(crate) fn give_back(&mut self, thread: TaskId, mut list: Vec<ReqId>) {
        list.clear();
        self.threads[thread as usize].list = list;
    }

    /// Whether a thread that has slept is still inside. If not, it enters anew.
    pub(crate) fn slept_inside(&self, thread: TaskId) -> bool {
        self.threads.get(thread as usize).is_none_or(|t| t.inside)
    }

    /// A thread fell asleep for a tag, a request or in the throttle, or got what it slept for.
    pub(crate) fn sleeps(&mut self, thread: TaskId, inside: bool) {
        if let Some(t) = self.threads.get_mut(thread as usize) {
            t.inside = inside;
            if inside {
                self.inside += 1;
            } else {
                self.inside -= 1;
            }
        }
    }

    /// Whether nobody sleeps inside.
    pub(crate) fn all_out(&self) -> bool {
        self.inside == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dispatch logs of 6.12 and 7.1 (random job `fixed.g70`): the first request of a plug looks at the clock.
    #[test]
    fn a_plug_looks_at_the_clock_once() {
        let mut threads = Threads::default();
        let t = threads.add();
        threads.plug(t, true);
        assert_eq!(threads.look(t), 0, "a look takes no time");
        threads.charge_looks(true);
        assert_eq!([threads.look(t), threads.look(t)], [1, 0]);
        threads.forget_time(t);
        assert_eq!(threads.look(t), 1);
        threads.plug(t, false);
        threads.plug(t, true);
        assert_eq!(threads.look(t), 1);
    }
}
