//! The device as a queue sees it: what is under way there, and when it wants attention.

use iosched_devices::{Command, Completion, Device};
use iosched_types::{Bytes, Flags, Nanos, Op, ReqId, Request, SECTOR, Sector};

use crate::stats::QueueStats;

/// A device with its commands.
pub(crate) struct Drive {
    device: Box<dyn Device>,
    next: Nanos,
    /// Commands that are done and not booked yet.
    finished: Vec<Completion>,
    in_flight: u32,
    busy_since: Nanos,
    /// Where the command before ended.
    head: Sector,
    /// System calls and events so far.
    call: u32,
}

impl Drive {
    pub(crate) fn new(device: Box<dyn Device>) -> Self {
        let finished = Vec::new();
        Drive { device, next: Nanos::MAX, finished, in_flight: 0, busy_since: 0, head: 0, call: 0 }
    }

    /// Commands at the device.
    #[inline(always)]
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// When the device next needs attention; `Nanos::MAX` when never.
    #[inline(always)]
    pub(crate) fn next(&self) -> Nanos {
        self.next
    }

    pub(crate) fn caches(&self) -> Vec<(&'static str, Bytes, Bytes)> {
        self.device.caches()
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        self.device.counters()
    }

    /// Commands issued from now on belong to another system call.
    #[inline(always)]
    pub(crate) fn next_call(&mut self) {
        self.call = self.call.wrapping_add(1);
    }

    /// Hands over a command.
    #[inline(always)]
    pub(crate) fn submit(
        &mut self,
        now: Nanos,
        id: ReqId,
        r: &mut Request,
        stats: &mut QueueStats,
    ) {
        r.t_issue = now;
        r.call = self.call;
        if r.op != Op::Flush {
            stats.seeks += u64::from(r.sector != self.head);
            stats.travel += r.sector.abs_diff(self.head);
            self.head = r.end();
        }
        let command = Command {
            id,
            op: r.op,
            offset: r.sector * SECTOR,
            len: u64::from(r.sectors) * SECTOR,
            fua: r.flags.has(Flags::FUA),
        };
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        self.in_flight += 1;
        stats.issued += 1;
        stats.given[r.op as usize] += 1;
        stats.bytes[r.op as usize] += u64::from(r.sectors) * SECTOR;
        stats.max_in_flight = stats.max_in_flight.max(self.in_flight);
        if self.next <= now {
            // An arrival is handled after the device's own events of that instant.
            self.device.advance(now, &mut self.finished);
        }
        self.device.submit(now, command);
        self.next = if self.finished.is_empty() {
            self.device.next_wakeup().unwrap_or(u64::MAX)
        } else {
            now
        };
    }

    /// The device works until now.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.device.advance(now, &mut self.finished);
        self.next = self.device.next_wakeup().unwrap_or(Nanos::MAX);
    }

    /// Commands that are done and not booked yet, oldest first.
    #[inline(always)]
    pub(crate) fn finished(&self) -> &[Completion] {
        &self.finished
    }

    /// The first `n` of them are booked.
    #[inline(always)]
    pub(crate) fn booked(&mut self, n: usize) {
        if n == self.finished.len() {
            self.finished.clear();
        } else {
            self.finished.drain(..n);
        }
    }

    /// The rest of them is booked by another event of this instant.
    pub(crate) fn come_again(&mut self, now: Nanos) {
        self.next = now;
    }

    /// Time with commands at the device until now.
    pub(crate) fn busy(&self, now: Nanos, stats: &QueueStats) -> Nanos {
        let since = if self.in_flight > 0 { now.saturating_sub(self.busy_since) } else { 0 };
        stats.busy + since
    }

    /// A command came back.
    #[inline(always)]
    pub(crate) fn came_back(&mut self, now: Nanos, stats: &mut QueueStats) {
        self.in_flight -= 1;
        if self.in_flight == 0 {
            stats.busy += now - self.busy_since;
        }
    }
}
