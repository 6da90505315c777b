//! A device with a constant service time and a number of servers.

use std::collections::VecDeque;

use iosched_types::{Bytes, Nanos, Op};

use super::admission::Admission;
use crate::lanes::Lanes;
use crate::params::FixedParams;
use crate::{Command, Completion, Device};

const SERVED: usize = 0;
const FLUSHED: usize = 1;
const DISCARDED: usize = 2;

/// The device.
#[derive(Debug)]
pub struct Fixed {
    p: FixedParams,
    admission: Admission<Command>,
    queue: VecDeque<u32>,
    events: Lanes<(u32, Nanos), 3>,
    busy: u64,
    served: u64,
    flushes: u64,
    discards: u64,
    busy_ns: u64,
}

impl Fixed {
    /// A device at rest.
    #[must_use]
    pub fn new(p: FixedParams) -> Self {
        Fixed {
            admission: Admission::new(p.depth),
            p,
            queue: VecDeque::new(),
            events: Lanes::new(),
            busy: 0,
            served: 0,
            flushes: 0,
            discards: 0,
            busy_ns: 0,
        }
    }

    #[inline]
    fn admit(&mut self, now: Nanos, c: Command) {
        match c.op {
            Op::Read | Op::Write => self.queue.push_back(c.id),
            Op::Flush => self.events.push(FLUSHED, now + self.p.flush_ns, (c.id, now)),
            Op::Discard => self.events.push(DISCARDED, now, (c.id, now)),
        }
        self.kick(now);
    }

    #[inline]
    fn kick(&mut self, now: Nanos) {
        while self.busy < self.p.par {
            let Some(id) = self.queue.pop_front() else { return };
            self.busy += 1;
            self.events.push(SERVED, now + self.p.lat_ns, (id, now));
        }
    }
}

impl Device for Fixed {
    fn capacity(&self) -> Bytes {
        self.p.cap
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        if let Some(command) = self.admission.enter(command) {
            self.admit(now, command);
        }
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        self.events.next_time()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some((t, lane, (id, t_start))) = self.events.pop_due(now) {
            match lane {
                SERVED => {
                    self.busy -= 1;
                    self.served += 1;
                    self.busy_ns += t - t_start;
                }
                FLUSHED => self.flushes += 1,
                _ => self.discards += 1,
            }
            done.push(Completion { id, t_start, t_done: t });
            if let Some(next) = self.admission.leave() {
                self.admit(t, next);
            }
            self.kick(t);
        }
    }

    fn in_flight(&self) -> usize {
        self.admission.in_flight()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("served", self.served),
            ("flushes", self.flushes),
            ("discards", self.discards),
            ("busy_ns", self.busy_ns),
        ]
    }
}
