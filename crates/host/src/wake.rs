//! Books the I/Os that the queue has finished, and wakes the tasks that waited for them or for a tag.

use iosched_types::{BioId, TaskId};
use iosched_workloads::fio::process::Io;

use crate::machine::Machine;
use crate::tasks::State;
use crate::threads::{Others, Waker};

impl Machine {
    /// Books finished bios and wakes processes.
    pub(crate) fn collect(&mut self) {
        self.queue.roll_tape(self.dispatches.is_some());
        if self.dispatches.is_some() {
            self.collect_issues();
        }
        let parallel = self.queue.facts().cpus > 1;
        if parallel {
            self.wake_sleepers();
        }
        let apart = !parallel && !self.queue.out().woken.is_empty();
        for i in 0..self.queue.out().done.len() {
            if apart {
                self.wake_sleepers_behind(i as u32);
            }
            let d = self.queue.out().done[i];
            if self.beside.bio_done(d.bio, self.tl.now) {
                continue;
            }
            let Some(t) = self.ios.bio_done(d.bio) else { continue };
            if self.tasks[t as usize].trims {
                self.trim_done(d.bio);
            }
            let task = &mut self.tasks[t as usize];
            let unit = d.bio - task.first_io;
            if !matches!(task.others, Others::None) {
                let (now, cores, ready) = (self.tl.now, &mut self.cores, &mut self.ready);
                let mut waker = Waker { now, cores, ready };
                if self.threads.done(&task.others, d.bio, unit, &mut waker) {
                    continue;
                }
            }
            if task.flushes {
                self.goes_on_with_flush(t, d.bio);
                continue;
            }
            task.ring.push(unit);
            let wakes = matches!(task.state, State::Io(min) if task.ring.wakes(min))
                || matches!(task.state, State::Call(one) if one == unit);
            if wakes {
                task.state = State::Ready;
                self.completed_once = true;
                if i == 0 && self.looks.is_none() {
                    task.ring.woken_early();
                }
            }
            match &mut self.cores {
                Some(cores) => cores.completion(self.tl.now, t, d.bio, wakes),
                None if wakes && matches!(task.others, Others::Helpers(_)) => self.told.push(t),
                None if wakes => self.ready.push_back(t),
                None => {}
            }
        }
        self.queue.out_mut().done.clear();
        if !parallel {
            self.wake_sleepers();
        }
        // The disk woke a thread, and the thread tells the process. Those whom the disk woke meanwhile are ahead of it.
        self.told.drain(..).for_each(|t| self.ready.push_back(t));
    }

    /// The write that a call waits for is done. The call goes on with a flush, which has the number of the write.
    #[cold]
    fn goes_on_with_flush(&mut self, t: TaskId, io: BioId) {
        let unit = io - self.tasks[t as usize].first_io;
        let bio = self.bio_of(t, Io::flush(unit));
        self.ios.start(io, 1);
        let task = &mut self.tasks[t as usize];
        let asleep = matches!(task.state, State::Io(_));
        (task.flushes, task.left, task.state) = (false, Some(bio), State::Written);
        self.completed_once |= asleep;
        match &mut self.cores {
            Some(cores) => cores.completion(self.tl.now, t, io, asleep),
            None if asleep => self.ready.push_back(t),
            None => {}
        }
    }

    #[cold]
    fn collect_issues(&mut self) {
        if let (Some(list), Some(thin)) = (&mut self.queue.out_mut().issues, &mut self.dispatches) {
            list.drain(..).for_each(|i| thin.push(i));
        }
    }

    /// Processes that slept for a request, a tag or in the throttle may try again.
    #[inline]
    fn wake_sleepers(&mut self) {
        for i in 0..self.queue.out().woken.len() {
            self.wake_sleeper(self.queue.out().woken[i]);
        }
        self.queue.out_mut().woken.clear();
        self.queue.out_mut().woken_behind.clear();
    }

    /// The tasks woken by bios that were done before the `n`-th of the finished ones.
    #[cold]
    fn wake_sleepers_behind(&mut self, n: u32) {
        let behind = &self.queue.out().woken_behind;
        let count = behind.iter().take_while(|b| **b <= n).count();
        for i in 0..count {
            self.wake_sleeper(self.queue.out().woken[i]);
        }
        self.queue.out_mut().woken.drain(..count);
        self.queue.out_mut().woken_behind.drain(..count);
    }

    #[inline]
    fn wake_sleeper(&mut self, t: TaskId) {
        let Some(task) = self.tasks.get(t as usize) else {
            if !self.beside.has_room(t) {
                self.wake_thread(t);
            }
            return;
        };
        task.job.fetch();
        if matches!(task.state, State::Blocked) {
            match &mut self.cores {
                Some(cores) => cores.wake(self.tl.now, t),
                None => self.ready.push_back(t),
            }
        }
    }
}
