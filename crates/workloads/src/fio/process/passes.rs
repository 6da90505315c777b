//! How much a job does, and how often it goes through its files (`size`, `io_size`, `number_ios`, `loops`).

use iosched_types::{Bytes, Nanos};

use super::{Job, State};
use crate::fio::spec::JobSpec;

/// What ends a job. `loops` multiplies both numbers; only the end of the files ends a pass through them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    bytes: Bytes,
    ios: u64,
    /// A job that has moved no more than this goes on through its files: `io_size` less the largest block.
    again_at: Option<Bytes>,
    /// A pass is over after this many bytes, unless the end of the files ends it.
    pass: Option<Bytes>,
}

impl Limits {
    /// There is nothing more to do.
    pub(super) fn nothing(&mut self) {
        self.bytes = 0;
    }

    /// Whether a pass can end by bytes, which only the long main loop looks for.
    pub(super) fn by_bytes(&self) -> bool {
        self.pass.is_some()
    }

    /// The limits of a job with files of `size` bytes in all.
    pub(super) fn of(job: &JobSpec, size: Bytes) -> Self {
        let of_size = |p: u32| (u128::from(size) * u128::from(p) / 100) as Bytes;
        let io_size = job.io_size.or(job.target.io_size_percent.map(of_size));
        let unlimited = job.time_based || job.replay.is_some();
        let loops = |n: u64| if unlimited { u64::MAX } else { n.saturating_mul(job.loops.max(1)) };
        // Files of a given size: `size` is what is transferred, and no more than they have.
        let whole = job.target.filesize.and(job.target.size).map_or(size, |n| n.min(size));
        // The trim before a write of the same block does not count as an I/O.
        let per_io = if job.pattern.trim_then_write { 2 } else { 1 };
        let ios = match job.number_ios {
            _ if job.has_no_room() => 0,
            Some(n) => loops(n.saturating_mul(per_io)),
            None => u64::MAX,
        };
        let pass = ends_by_bytes(job).then(|| io_size.unwrap_or(0).max(whole));
        Limits {
            bytes: loops(io_size.unwrap_or(whole)),
            ios,
            // A job that ends by its number of I/Os before that has no such end.
            pass: pass.filter(|bytes| ios.saturating_mul(largest(job)) >= *bytes),
            again_at: match job.time_based {
                true => Some(Bytes::MAX),
                false => io_size.and_then(|size| size.checked_sub(largest(job))),
            },
        }
    }
}

fn largest(job: &JobSpec) -> Bytes {
    (0..3).map(|d| job.bs.range[d].1).max().unwrap_or(0)
}

/// fio counts the bytes that it hands to an asynchronous engine, and begins a new pass after `size` bytes (`io_size`,
/// where that is more). Where reads and writes each go through the files, this is before the end of the files. Random
/// jobs without a map have no other end of a pass.
fn ends_by_bytes(job: &JobSpec) -> bool {
    let several = job.loops > 1 || job.io_size.is_some() || job.target.io_size_percent.is_some();
    !job.engine.is_sync() && several && !job.time_based && job.replay.is_none()
}

impl Job {
    /// Whether a pass that ends by bytes is over; the job goes on with the next, or ends.
    pub(super) fn pass_is_over(&mut self) -> bool {
        let over = self.limits.pass.is_some_and(|n| self.bytes_issued - self.went_round_at >= n);
        if over {
            self.end_pass();
        }
        over
    }

    /// Whether the job has done all it should. fio counts what is under way for `number_ios`, syncs too.
    #[inline(always)]
    pub(super) fn finished(&self, now: Nanos) -> bool {
        now >= self.deadline
            || self.bytes_issued >= self.limits.bytes
            || self.ios_issued + u64::from(self.syncs) >= self.limits.ios
    }

    /// The job ends when the I/Os under way are done.
    pub(super) fn end(&mut self, now: Nanos) {
        self.syncs_left = self.syncs_of_a_pass();
        if self.loops_left > 1 && now < self.deadline {
            // fio begins another pass before it sees that there is nothing to do.
            self.syncs_left *= 2;
        }
        let by_syncs = self.ios_issued + u64::from(self.syncs) >= self.limits.ios;
        if self.syncs > 0 && by_syncs && now < self.deadline {
            // fio ended by syncs that do not count when they are done: it begins anew for each I/O that is missing, with a sync.
            self.own_syncs = self.limits.ios.saturating_sub(self.ios_issued) as usize;
            self.syncs_left += self.own_syncs;
        }
        self.state = State::Drain;
    }

    /// There is nothing left in the files: the pass ends when the I/Os under way are done, and perhaps the job.
    pub(super) fn end_pass(&mut self) {
        let moved = match self.spec.pattern.trim_then_write {
            true => 2 * self.bytes_issued,
            false => self.bytes_issued,
        };
        let progress = self.bytes_issued > self.went_round_at;
        let more = self.loops_left > 1 || self.limits.again_at.is_some_and(|most| moved <= most);
        // Another pass would begin at the end that an appended file has then.
        self.again = self.replay.is_none() && progress && more && !self.spec.appends();
        if self.again {
            self.loops_left = self.loops_left.saturating_sub(1).max(1);
            self.went_round_at = self.bytes_issued;
            self.generator.rewind(&self.spec);
        }
        self.pass_ends = true;
        self.state = State::Drain;
    }

    /// `end_fsync` syncs each file, unless a sync came last.
    pub(super) fn syncs_of_a_pass(&self) -> usize {
        let syncs = self.spec.end_fsync && self.spec.pattern.write && !self.synced_last;
        if syncs { self.files.len() } else { 0 }
    }

    /// Nothing is under way: the next sync of the pass's end, then the next pass or the end.
    pub(super) fn next_sync_or_pass(&mut self) {
        self.state = match (self.syncs_left, self.again) {
            (1.., _) => State::FinalSync,
            (0, true) => State::Loop,
            (0, false) => State::Done,
        };
        self.syncs_left = self.syncs_left.saturating_sub(1);
        self.again &= self.state != State::Loop;
        // A pass begins as if no sync had been.
        self.synced_last &= self.state != State::Loop;
    }
}
