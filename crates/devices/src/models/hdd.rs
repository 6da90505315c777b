//! A disk with one arm: seek curve, rotation, and a queue served in order of arrival or by shortest
//! positioning time (SPTF, what native command queueing does).

use iosched_types::{Bytes, Nanos, Op, Sector};

use super::admission::Admission;
use super::arm::Arm;
use crate::params::HddParams;
use crate::{Command, Completion, Device};

/// The time that never comes.
const IDLE: Nanos = Nanos::MAX;

/// A disk without a write cache.
#[derive(Debug)]
pub struct Hdd {
    cap: Bytes,
    arm: Arm,
    admission: Admission<(Command, Nanos)>,
    /// The command under the head, until `done_at`.
    serving: Completion,
    /// When it is done; [`IDLE`] when there is none.
    done_at: Nanos,
    served: u64,
    flushes: u64,
}

impl Hdd {
    /// A disk at rest with its arm over sector 0.
    #[must_use]
    pub fn new(p: &HddParams) -> Self {
        Hdd {
            cap: p.cap,
            arm: Arm::new(p),
            admission: Admission::new(p.depth),
            serving: Completion { id: 0, t_start: 0, t_done: 0 },
            done_at: IDLE,
            served: 0,
            flushes: 0,
        }
    }

    #[inline(always)]
    fn kick(&mut self, now: Nanos) {
        if self.done_at == IDLE && !self.arm.is_empty() {
            self.serve_next(now);
        }
    }

    /// A command that found the arm at rest.
    #[inline(never)]
    fn serve_next(&mut self, now: Nanos) {
        self.serve(now);
    }

    #[inline(always)]
    fn serve(&mut self, now: Nanos) {
        let s = self.arm.serve(now);
        let flush = u64::from(s.op == Op::Flush);
        self.served += 1 - flush;
        self.flushes += flush;
        self.done_at = now + s.service;
        self.serving = Completion { id: s.id, t_start: now, t_done: self.done_at };
    }
}

impl Device for Hdd {
    fn capacity(&self) -> Bytes {
        self.cap
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        if let Some((command, t_arr)) = self.admission.enter((command, now)) {
            self.arm.push(command, t_arr);
            self.kick(now);
        }
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        (self.done_at != IDLE).then_some(self.done_at)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.done_at <= now && self.done_at != IDLE {
            let at = std::mem::replace(&mut self.done_at, IDLE);
            done.push(self.serving);
            if let Some((next, t_arr)) = self.admission.leave() {
                self.arm.push(next, t_arr);
            }
            if !self.arm.is_empty() {
                self.serve(at);
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.admission.in_flight()
    }

    fn position(&self) -> Sector {
        self.arm.mech.head
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let c = &self.arm.count;
        vec![
            ("served", self.served),
            ("sequential", c.sequential),
            ("seeks", c.seeks),
            ("travel_sectors", c.travel),
            ("flushes", self.flushes),
            ("busy_ns", c.busy_ns),
            ("position_ns", c.position_ns),
        ]
    }
}
