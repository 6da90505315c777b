//! `fixed`, transcribed.

use std::collections::VecDeque;

use iosched_devices::params::FixedParams;
use iosched_devices::{Command, Completion};
use iosched_types::Op;

use super::{Heap, Oracle};

pub(crate) fn params(cap: u64, depth: u64, flush_ns: u64, lat_ns: u64, par: u64) -> FixedParams {
    FixedParams { cap, depth, flush_ns, lat_ns, par }
}

pub(crate) struct Slow {
    p: FixedParams,
    inflight: u64,
    busy: u64,
    outer: VecDeque<Command>,
    fifo: VecDeque<Command>,
    heap: Heap<(Command, u64)>,
}

impl Slow {
    pub(crate) fn new(p: FixedParams) -> Self {
        let (outer, fifo) = (VecDeque::new(), VecDeque::new());
        Slow { p, inflight: 0, busy: 0, outer, fifo, heap: Heap::new() }
    }

    fn admit(&mut self, now: u64, r: Command) {
        self.inflight += 1;
        match r.op {
            Op::Flush => self.heap.push(now + self.p.flush_ns, (r, now)),
            Op::Discard => self.heap.push(now, (r, now)),
            _ => self.fifo.push_back(r),
        }
    }

    fn kick(&mut self, now: u64) {
        while self.busy < self.p.par && !self.fifo.is_empty() {
            let r = self.fifo.pop_front().unwrap();
            self.busy += 1;
            self.heap.push(now + self.p.lat_ns, (r, now));
        }
    }
}

impl Oracle for Slow {
    fn arrive(&mut self, now: u64, r: Command) {
        if self.p.depth != 0 && self.inflight >= self.p.depth {
            self.outer.push_back(r);
        } else {
            self.admit(now, r);
            self.kick(now);
        }
    }

    fn run(&mut self, now: u64, done: &mut Vec<Completion>) {
        while let Some((t, (r, t_start))) = self.heap.pop_until(now) {
            if matches!(r.op, Op::Read | Op::Write) {
                self.busy -= 1;
            }
            done.push(Completion { id: r.id, t_start, t_done: t });
            self.inflight -= 1;
            if let Some(next) = self.outer.pop_front() {
                self.admit(t, next);
            }
            self.kick(t);
        }
    }
}
