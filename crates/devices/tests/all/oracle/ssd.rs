//! `ssd`, transcribed.

use std::collections::{BTreeSet, VecDeque};

use iosched_devices::params::SsdParams;
use iosched_devices::{Command, Completion};
use iosched_types::Op;
use proptest::prelude::*;

use super::{Heap, Oracle, rate, time};

pub(crate) fn params(cap: u64) -> impl Strategy<Value = SsdParams> {
    let times = (time(), time(), time(), time());
    let rates = (rate(), rate(), prop_oneof![Just(0u64), Just(4096), 512u64..65_536]);
    let shape = (1u64..6, 1u64..40, 0u64..12, any::<bool>());
    (times, rates, shape).prop_map(move |(times, rates, shape)| {
        let (flush_ns, rd_ns, wr_ns, cmd) = times;
        let (bus_bw, drain_bw, cache) = rates;
        let (chans, stripe, depth, rprio) = shape;
        SsdParams {
            cap,
            depth,
            flush_ns,
            chans,
            stripe: stripe * 512,
            rd_ns,
            wr_ns,
            bus_bw,
            cache,
            drain_bw,
            cmd_ns: cmd + 1,
            rprio,
            log: false,
            slc: 0,
            slc_full_wr_ns: 0,
            slc_fold_bw: 0,
            vcache: false,
            flush_alone: false,
            flush_lead_ns: 0,
            flush_rd_ns: 0,
            rd_spread_ns: 0,
            duplex: false,
            trim_ns: 0,
            scatter: false,
            bus_cmd_ns: 0,
            ctl_ns: 0,
            gather: false,
            plain_sync: true,
        }
    })
}

#[derive(Clone, Debug)]
struct Piece {
    request: usize,
    start: u64,
    bytes: u64,
    read: bool,
    id: Option<u64>,
}

#[derive(Clone, Debug)]
enum Event {
    Cmd(usize),
    Chan(usize, Piece),
    Bus(usize, Option<Piece>),
    Drain,
    Flushed(usize),
}

#[derive(Default, Clone)]
struct Chan {
    busy: bool,
    reads: VecDeque<Piece>,
    programs: VecDeque<Piece>,
}

struct Request {
    c: Command,
    t_start: Option<u64>,
    left: usize,
}

pub(crate) struct Slow {
    p: SsdParams,
    inflight: u64,
    outer: VecDeque<usize>,
    requests: Vec<Request>,
    heap: Heap<Event>,
    chans: Vec<Chan>,
    bus: VecDeque<(usize, Option<Piece>)>,
    bus_busy: bool,
    writes: VecDeque<usize>,
    used: u64,
    drain: VecDeque<Piece>,
    drain_pending: bool,
    drain_next: u64,
    flushes: VecDeque<(usize, u64)>,
    created: u64,
    dirty: BTreeSet<u64>,
}

fn xfer(bytes: u64, bw: u64) -> u64 {
    (bytes * 1_000_000_000).checked_div(bw).unwrap_or(0)
}

impl Slow {
    pub(crate) fn new(p: SsdParams) -> Self {
        Slow {
            chans: vec![Chan::default(); p.chans as usize],
            p,
            inflight: 0,
            outer: VecDeque::new(),
            requests: Vec::new(),
            heap: Heap::new(),
            bus: VecDeque::new(),
            bus_busy: false,
            writes: VecDeque::new(),
            used: 0,
            drain: VecDeque::new(),
            drain_pending: false,
            drain_next: 0,
            flushes: VecDeque::new(),
            created: 0,
            dirty: BTreeSet::new(),
        }
    }

    fn admit(&mut self, now: u64, r: usize) {
        self.inflight += 1;
        self.heap.push(now + self.p.cmd_ns, Event::Cmd(r));
    }

    fn complete(&mut self, now: u64, r: usize, done: &mut Vec<Completion>) {
        let q = &self.requests[r];
        done.push(Completion { id: q.c.id, t_start: q.t_start.unwrap_or(now), t_done: now });
        self.inflight -= 1;
        if let Some(next) = self.outer.pop_front() {
            self.admit(now, next);
        }
    }

    /// Byte by byte where it counts: a piece ends at each multiple of the stripe.
    fn split(&self, r: usize) -> Vec<Piece> {
        let c = self.requests[r].c;
        let (mut pieces, mut start) = (Vec::new(), c.offset);
        let piece =
            |start, bytes| Piece { request: r, start, bytes, read: c.op == Op::Read, id: None };
        for at in c.offset + 1..c.offset + c.len {
            if at % self.p.stripe == 0 {
                pieces.push(piece(start, at - start));
                start = at;
            }
        }
        pieces.push(piece(start, c.offset + c.len - start));
        pieces
    }

    fn enter_channel(&mut self, now: u64, piece: Piece) {
        let c = ((piece.start / self.p.stripe) % self.p.chans) as usize;
        if self.p.rprio && !piece.read {
            self.chans[c].programs.push_back(piece);
        } else {
            self.chans[c].reads.push_back(piece);
        }
        self.chan(now, c);
    }

    fn chan(&mut self, now: u64, c: usize) {
        if self.chans[c].busy {
            return;
        }
        let next = self.chans[c].reads.pop_front();
        let Some(piece) = next.or_else(|| self.chans[c].programs.pop_front()) else { return };
        self.chans[c].busy = true;
        if piece.read {
            self.requests[piece.request].t_start.get_or_insert(now);
        }
        let lasts = if piece.read { self.p.rd_ns } else { self.p.wr_ns };
        self.heap.push(now + lasts, Event::Chan(c, piece));
    }

    fn bus(&mut self, now: u64) {
        if self.bus_busy || self.bus.is_empty() {
            return;
        }
        let (r, piece) = self.bus.pop_front().unwrap();
        self.bus_busy = true;
        let bytes = piece.as_ref().map_or(self.requests[r].c.len, |p| p.bytes);
        if piece.is_none() {
            self.requests[r].t_start = Some(now);
        }
        self.heap.push(now + xfer(bytes, self.p.bus_bw), Event::Bus(r, piece));
    }

    fn trywrite(&mut self, now: u64) {
        while let Some(&r) = self.writes.front() {
            let len = self.requests[r].c.len;
            if !(self.used == 0 || self.used + len <= self.p.cache) {
                break;
            }
            self.used += len;
            self.writes.pop_front();
            self.bus.push_back((r, None));
            self.bus(now);
        }
    }

    fn drain(&mut self, now: u64) {
        if !self.drain_pending && !self.drain.is_empty() {
            self.drain_pending = true;
            self.heap.push(now.max(self.drain_next), Event::Drain);
        }
    }

    fn flushcheck(&mut self, now: u64) {
        let m = self.dirty.first().copied();
        while let Some(&(r, snap)) = self.flushes.front() {
            if m.is_some_and(|m| snap > m) {
                break;
            }
            self.flushes.pop_front();
            self.requests[r].t_start = Some(now);
            self.heap.push(now + self.p.flush_ns, Event::Flushed(r));
        }
    }

    fn cmd(&mut self, now: u64, r: usize, done: &mut Vec<Completion>) {
        match self.requests[r].c.op {
            Op::Read => {
                let pieces = self.split(r);
                self.requests[r].left = pieces.len();
                for piece in pieces {
                    self.enter_channel(now, piece);
                }
            }
            Op::Write if self.p.cache > 0 => {
                self.writes.push_back(r);
                self.trywrite(now);
            }
            Op::Write => {
                self.bus.push_back((r, None));
                self.bus(now);
            }
            Op::Flush => {
                self.flushes.push_back((r, self.created));
                self.flushcheck(now);
            }
            Op::Discard => self.complete(now, r, done),
        }
    }

    fn chan_end(&mut self, now: u64, c: usize, piece: Piece, done: &mut Vec<Completion>) {
        self.chans[c].busy = false;
        if piece.read {
            self.bus.push_back((piece.request, Some(piece)));
            self.bus(now);
        } else if let Some(id) = piece.id {
            self.used -= piece.bytes;
            self.dirty.remove(&id);
            self.flushcheck(now);
            self.trywrite(now);
        } else {
            self.last(now, piece.request, done);
        }
        self.chan(now, c);
    }

    fn last(&mut self, now: u64, r: usize, done: &mut Vec<Completion>) {
        self.requests[r].left -= 1;
        if self.requests[r].left == 0 {
            self.complete(now, r, done);
        }
    }

    fn bus_end(&mut self, now: u64, r: usize, piece: Option<Piece>, done: &mut Vec<Completion>) {
        self.bus_busy = false;
        if piece.is_some() {
            self.last(now, r, done);
        } else if self.p.cache > 0 {
            for mut piece in self.split(r).into_iter().filter(|p| p.bytes > 0) {
                piece.id = Some(self.created);
                self.dirty.insert(self.created);
                self.created += 1;
                self.drain.push_back(piece);
            }
            self.complete(now, r, done);
            self.drain(now);
        } else {
            let pieces = self.split(r);
            self.requests[r].left = pieces.len();
            for piece in pieces {
                self.enter_channel(now, piece);
            }
        }
        self.bus(now);
    }
}

impl Oracle for Slow {
    fn arrive(&mut self, now: u64, c: Command) {
        self.requests.push(Request { c, t_start: None, left: 0 });
        let r = self.requests.len() - 1;
        if self.p.depth != 0 && self.inflight >= self.p.depth {
            self.outer.push_back(r);
        } else {
            self.admit(now, r);
        }
    }

    fn run(&mut self, now: u64, done: &mut Vec<Completion>) {
        while let Some((t, event)) = self.heap.pop_until(now) {
            match event {
                Event::Cmd(r) => self.cmd(t, r, done),
                Event::Chan(c, piece) => self.chan_end(t, c, piece, done),
                Event::Bus(r, piece) => self.bus_end(t, r, piece, done),
                Event::Drain => {
                    self.drain_pending = false;
                    let piece = self.drain.pop_front().unwrap();
                    self.drain_next = t + xfer(piece.bytes, self.p.drain_bw);
                    self.enter_channel(t, piece);
                    self.drain(t);
                }
                Event::Flushed(r) => self.complete(t, r, done),
            }
        }
    }
}
