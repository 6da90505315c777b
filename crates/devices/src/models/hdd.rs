//! A disk with one arm: seek curve, rotation, and a queue served in order of arrival or by shortest
//! positioning time (SPTF, what native command queueing does).

use std::collections::VecDeque;

use iosched_types::{Bytes, Nanos, Op, Sector};

use super::arm::Arm;
use crate::params::HddParams;
use crate::{Command, Completion, Device};

/// A disk without a write cache.
#[derive(Debug)]
pub struct Hdd {
    cap: Bytes,
    depth: u64,
    arm: Arm,
    outer: VecDeque<(Command, Nanos)>,
    serving: Option<Completion>,
    admitted: u64,
    served: u64,
    flushes: u64,
}

impl Hdd {
    /// A disk at rest with its arm over sector 0.
    #[must_use]
    pub fn new(p: &HddParams) -> Self {
        Hdd {
            cap: p.cap,
            depth: p.depth,
            arm: Arm::new(p),
            outer: VecDeque::new(),
            serving: None,
            admitted: 0,
            served: 0,
            flushes: 0,
        }
    }

    #[inline]
    fn kick(&mut self, now: Nanos) {
        if self.serving.is_some() || self.arm.is_empty() {
            return;
        }
        let s = self.arm.serve(now);
        let flush = u64::from(s.op == Op::Flush);
        self.served += 1 - flush;
        self.flushes += flush;
        self.serving = Some(Completion { id: s.id, t_start: now, t_done: now + s.service });
    }
}

impl Device for Hdd {
    fn capacity(&self) -> Bytes {
        self.cap
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        if self.depth != 0 && self.admitted >= self.depth {
            self.outer.push_back((command, now));
            return;
        }
        self.admitted += 1;
        self.arm.push(command, now);
        self.kick(now);
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        self.serving.as_ref().map(|s| s.t_done)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(s) = self.serving.filter(|s| s.t_done <= now) {
            self.serving = None;
            done.push(s);
            self.admitted -= 1;
            if let Some((next, t_arr)) = self.outer.pop_front() {
                self.admitted += 1;
                self.arm.push(next, t_arr);
            }
            self.kick(s.t_done);
        }
    }

    fn in_flight(&self) -> usize {
        self.admitted as usize + self.outer.len()
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
