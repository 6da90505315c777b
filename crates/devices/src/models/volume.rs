//! A network volume: a latency, a link, and grants of operations and bytes per second that may be
//! saved up (token buckets).

use std::collections::VecDeque;

use iosched_types::{Bytes, Nanos, Op};

use super::admission::Admission;
use crate::lanes::Lanes;
use crate::math::Rate;
use crate::params::VolumeParams;
use crate::{Command, Completion, Device};

/// A token bucket in exact integers: tokens are counted in units of 10^-9.
#[derive(Debug)]
struct Bucket {
    rate: u64,
    size: i128,
    level: i128,
    at: Nanos,
}

const UNIT: i128 = 1_000_000_000;

impl Bucket {
    /// A full bucket of `size` tokens filled at `rate` per second; rate 0 grants everything.
    fn new(rate: u64, size: u64) -> Self {
        let size = i128::from(size.max(1)) * UNIT;
        Bucket { rate, size, level: size, at: 0 }
    }

    /// When `tokens` are there, from `now` on. A full bucket grants more than it holds, on credit.
    fn ready(&mut self, now: Nanos, tokens: u64) -> Nanos {
        if self.rate == 0 {
            return now;
        }
        let gained = i128::from(now - self.at) * i128::from(self.rate);
        self.level = (self.level + gained).min(self.size);
        self.at = now;
        let lack = (i128::from(tokens) * UNIT).min(self.size) - self.level;
        if lack <= 0 {
            return now;
        }
        now + (lack as u128).div_ceil(u128::from(self.rate)) as Nanos
    }

    fn take(&mut self, tokens: u64) {
        self.level -= i128::from(tokens) * UNIT;
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The grant for the command at the head has come.
    Granted,
    /// The volume has served a command; its data goes over the link.
    Served(Command, Nanos),
    /// The command is done.
    Done(u32, Nanos),
}

const GRANT: usize = 0;
const READ: usize = 1;
const WRITE: usize = 2;
const FLUSH: usize = 3;
const LINK: usize = 4;

/// The device.
#[derive(Debug)]
pub struct Volume {
    p: VolumeParams,
    link: Rate,
    admission: Admission<Command>,
    queue: VecDeque<Command>,
    waiting: bool,
    ops: Bucket,
    bytes: Bucket,
    events: Lanes<Event, 5>,
    link_queue: VecDeque<(Command, Nanos)>,
    link_busy: bool,
    served: u64,
    throttled: u64,
    throttled_ns: u64,
}

impl Volume {
    /// A volume at rest with full buckets.
    #[must_use]
    pub fn new(p: VolumeParams) -> Self {
        Volume {
            link: Rate::new(p.link_bw),
            ops: Bucket::new(p.iops, p.iops_burst),
            bytes: Bucket::new(p.bw, p.bw_burst),
            admission: Admission::new(p.depth),
            queue: VecDeque::new(),
            waiting: false,
            events: Lanes::new(),
            link_queue: VecDeque::new(),
            link_busy: false,
            served: 0,
            throttled: 0,
            throttled_ns: 0,
            p,
        }
    }

    fn admit(&mut self, now: Nanos, c: Command) {
        match c.op {
            Op::Read | Op::Write | Op::Discard => {
                self.queue.push_back(c);
                self.grant(now);
            }
            Op::Flush => self.events.push(FLUSH, now + self.p.flush_ns, Event::Done(c.id, now)),
        }
    }

    /// Starts commands in order of arrival as far as the grants go.
    fn grant(&mut self, now: Nanos) {
        while let Some(c) = self.queue.front().copied().filter(|_| !self.waiting) {
            // A discard is one operation and moves no bytes.
            let len = if c.op == Op::Discard { 0 } else { c.len };
            let ops = if self.p.io_unit == 0 { 1 } else { len.div_ceil(self.p.io_unit).max(1) };
            let when = self.ops.ready(now, ops).max(self.bytes.ready(now, len));
            if when > now {
                self.waiting = true;
                self.throttled += 1;
                self.throttled_ns += when - now;
                self.events.push(GRANT, when, Event::Granted);
                return;
            }
            self.ops.take(ops);
            self.bytes.take(len);
            self.queue.pop_front();
            let (lane, latency) =
                if c.op == Op::Read { (READ, self.p.rd_ns) } else { (WRITE, self.p.wr_ns) };
            self.events.push(lane, now + latency, Event::Served(c, now));
        }
    }

    fn kick_link(&mut self, now: Nanos) {
        if self.link_busy {
            return;
        }
        let Some((c, t_start)) = self.link_queue.pop_front() else { return };
        self.link_busy = true;
        let len: Bytes = if c.op == Op::Discard { 0 } else { c.len };
        self.events.push(LINK, now + self.link.time(len), Event::Done(c.id, t_start));
    }
}

impl Device for Volume {
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
        while let Some((t, lane, event)) = self.events.pop_due(now) {
            match event {
                Event::Granted => {
                    self.waiting = false;
                    self.grant(t);
                }
                Event::Served(c, t_start) => {
                    self.link_queue.push_back((c, t_start));
                    self.kick_link(t);
                }
                Event::Done(id, t_start) => {
                    self.link_busy &= lane != LINK;
                    self.served += 1;
                    done.push(Completion { id, t_start, t_done: t });
                    if let Some(next) = self.admission.leave() {
                        self.admit(t, next);
                    }
                    self.kick_link(t);
                }
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.admission.in_flight()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("served", self.served),
            ("throttled", self.throttled),
            ("throttled_ns", self.throttled_ns),
        ]
    }
}
