//! Waiting for I/Os, booking them, thinking, and the end of a job.

use iosched_types::{Bytes, Nanos};

use crate::fio::generator::NextIo;

use super::{Job, Ring, State, Step};

/// `aio_suspend` is called for at most so many I/Os.
const SUSPENDED_FOR: usize = 8;

impl Job {
    pub(super) fn await_sync(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        let Some(unit) = ring.pop() else { return Some(Step::Wait(1)) };
        self.finish_unit(now, unit);
        self.state = State::Think;
        None
    }

    /// A call that returned when its I/O was done.
    pub(super) fn await_call(&mut self, now: Nanos, unit: u32, ring: &mut Ring) -> Option<Step> {
        if !ring.take(unit) {
            return Some(Step::Await(unit));
        }
        self.finish_unit(now, unit);
        self.state = State::Reap;
        None
    }

    /// fio waits only when all units are in use, or a call must wait.
    pub(super) fn reap_if_full(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        self.busy &= self.depth > 0;
        if !self.units.all_used() && !self.draining && !self.busy {
            self.state = State::Think;
            return None;
        }
        if !self.queued.is_empty() {
            self.submit_queued(State::Reap);
            return None;
        }
        let min = self.reap_min.clamp(1, self.depth.max(1));
        self.look_unit_by_unit(ring);
        if (ring.len() as u32) < min {
            return Some(Step::Wait(min));
        }
        self.reap(now, ring);
        let low = self.spec.iodepth_low.clamp(1, self.units.len());
        self.draining = self.depth > low;
        if !self.draining {
            self.busy = false;
            self.state = State::Think;
        }
        None
    }

    /// With POSIX AIO fio asks for the state of each unit by its number, the last taken first, and sleeps until one of
    /// the first eight that were not done is done. Others may end meanwhile, and are seen then.
    #[inline]
    pub(super) fn look_unit_by_unit(&mut self, ring: &mut Ring) {
        if let Some(looks) = &mut self.by_unit {
            looks.found = ring.look_through(looks.found, &mut looks.units);
            for unit in &looks.units {
                self.units[*unit].awaited = false;
            }
            ring.watch(self.units.last_of_highest(SUSPENDED_FOR));
        }
    }

    /// What a call found and did not return is found again by the next.
    #[inline]
    fn begin_looks_anew(&mut self) {
        if let Some(looks) = &mut self.by_unit {
            looks.found = 0;
        }
    }

    #[inline]
    pub(super) fn reap(&mut self, now: Nanos, ring: &mut Ring) {
        let most = match self.reap_max {
            0 => usize::MAX,
            n => n.max(self.reap_min) as usize,
        };
        for _ in 0..most.min(ring.seen()) {
            if let Some(unit) = ring.pop() {
                self.finish_unit(now, unit);
            }
        }
        self.begin_looks_anew();
    }

    #[inline(always)]
    pub(super) fn finish_unit(&mut self, now: Nanos, unit: u32) {
        let u = self.units[unit];
        self.depth -= 1;
        self.units.give_back(unit);
        self.reaped_total += u64::from(u.dir < 3);
        self.synced_last = u.dir == 3;
        self.syncs -= u32::from(u.dir == 3);
        if !self.measuring {
            self.end_warm_up(now);
        }
        if self.is_late(now) {
            return;
        }
        let since = now - self.stats.measured_from.min(now);
        let dir = &mut self.stats.dirs[usize::from(u.dir & 3)];
        if !self.measuring {
            // The end of the ramp forgets the count. A job that ends before keeps it.
            return dir.count(since, u.len);
        }
        let issue = u.issue.min(now);
        dir.book(since, u.len, issue - u.start, now - issue);
        let ramped = self.spec.warm_up == 0;
        if ramped && u.start < self.stats.measured_from && !self.spec.engine.is_sync() {
            // fio takes bytes and latencies of what ended since the ramp, but counts what it issued since. A call of a
            // synchronous engine counts when it returns.
            dir.ios -= 1;
        }
    }

    /// An asynchronous I/O came back with nothing, or with the rest of what came `short` before: fio counts the bytes of its last call,
    /// and each call.
    pub fn came_with(&mut self, unit: u32, bytes: Bytes, short: u64) {
        let u = &mut self.units[unit];
        u.len = bytes;
        if self.measuring {
            self.stats.dirs[usize::from(u.dir & 3)].ios += short;
        }
    }

    /// It has failed. What is done counts; of what is under way fio counts the I/Os, but no bytes and no latencies.
    pub fn breaks_off(&mut self, now: Nanos, ring: &mut Ring) {
        while let Some(unit) = ring.pop() {
            self.finish_unit(now, unit);
        }
        for unit in self.units.in_use() {
            let dir = usize::from(self.units[unit].dir & 3);
            self.stats.dirs[dir].ios += u64::from(self.measuring);
        }
        self.ends(now);
        if let Some(flow) = self.flow.take() {
            flow.leave();
        }
        self.state = State::Done;
    }

    pub(super) fn drain(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        if !self.queued.is_empty() {
            // Collected but never submitted: fio submits the prepared I/Os, then waits for them.
            self.submit_queued(State::Drain);
            return None;
        }
        // One call waits for all of them. It takes those that are done already together with the last one.
        let all = self.depth.min(self.units.len());
        self.look_unit_by_unit(ring);
        if (ring.len() as u32) < all {
            return Some(Step::Wait(all));
        }
        while let Some(unit) = ring.pop() {
            self.finish_unit(now, unit);
        }
        self.begin_looks_anew();
        if !self.again {
            self.ends(now);
            if let Some(flow) = self.flow.take() {
                flow.leave();
            }
        }
        if std::mem::take(&mut self.pass_ends) {
            self.syncs_left = self.syncs_of_a_pass();
        }
        self.next_sync_or_pass();
        None
    }

    pub(super) fn final_sync(&mut self, now: Nanos) -> Option<Step> {
        let step = self.start_unit_sync(now);
        self.state = State::AwaitFinalSync;
        step
    }

    fn start_unit_sync(&mut self, now: Nanos) -> Option<Step> {
        // `end_fsync` is never an fdatasync.
        let full = NextIo { dir: 3, offset: 0, len: 0 };
        self.note(now, full);
        let unit = self.units.take(&full, now)?;
        self.depth += 1;
        self.syncs += 1;
        Some(Step::Submit(self.io(unit)))
    }

    pub(super) fn await_final_sync(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        self.look_unit_by_unit(ring);
        let Some(unit) = ring.pop() else { return Some(Step::Wait(1)) };
        // fio measures the job's own syncs, not that of its end.
        if self.own_syncs > 0 {
            self.own_syncs -= 1;
            self.finish_unit(now, unit);
        } else {
            self.depth -= 1;
            self.syncs -= 1;
            self.units.give_back(unit);
            self.synced_last = true;
        }
        self.ends(now);
        self.next_sync_or_pass();
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::fio::layout::lay_out;
    use crate::fio::process::{Job, Ring, Step};
    use crate::fio::{NoLookup, parse};

    /// Units that the job hands over until it waits.
    fn handed_over(job: &mut Job, ring: &mut Ring) -> Vec<u32> {
        let mut units = Vec::new();
        loop {
            match job.step(0, ring) {
                Step::Submit(io) => units.push(io.unit),
                Step::Wait(_) => return units,
                other => panic!("{other:?}"),
            }
        }
    }

    /// As fio 3.33 does at depths above eight: the ninth last I/O of a full queue wakes it.
    #[test]
    fn posix_aio_sleeps_for_the_last_eight_units() {
        let text =
            "[a]\nfilename=/dev/disk\nsize=1m\nbs=4k\nioengine=posixaio\niodepth=12\nrw=randread\n";
        let set = parse("a.fio", text, &NoLookup, &|_| Err("none".into()), &[]).unwrap();
        let files = lay_out(&set, 1 << 30).unwrap();
        let mut job = Job::new(&set.jobs[0], &files[0]);
        let mut ring = Ring::with_capacity(12);
        assert_eq!(handed_over(&mut job, &mut ring), (0..12).collect::<Vec<_>>());
        for unit in 0..4 {
            ring.push(unit);
            assert!(!ring.wakes(1), "unit {unit}");
        }
        assert!(!ring.lacks(1), "whoever looks for itself sees them");
        ring.push(4);
        assert!(ring.wakes(1));
        // It finds all, from the last unit to the first, and takes the one that it found last first.
        assert_eq!(handed_over(&mut job, &mut ring), [0, 1, 2, 3, 4]);
        ring.push(5);
        assert!(ring.wakes(1));
        assert_eq!(handed_over(&mut job, &mut ring), [5]);
    }
}
