//! `hdd`, transcribed: every positioning time computed with native division and integer roots.

use std::collections::VecDeque;

use iosched_devices::params::{HddParams, Rotation};
use iosched_devices::{Command, Completion};
use iosched_types::Op;
use proptest::prelude::*;

use super::{Heap, Oracle, rate, time};

pub(crate) fn params(cap: u64) -> impl Strategy<Value = HddParams> {
    let seek = prop_oneof![Just(0u64), 0u64..50, 0u64..20_000, 0u64..20_000_000];
    let rev = prop_oneof![Just(1u64), Just(100), 1u64..5_000, Just(8_333_333)];
    let rot = prop_oneof![
        1 => Just(Rotation::Half), 1 => Just(Rotation::Hash), 3 => Just(Rotation::Angle)
    ];
    let arm = (time(), seek.clone(), seek.clone(), seek, rev, rot);
    let rest = (any::<u64>(), 1u64..3000, rate(), any::<bool>(), time(), time(), 0u64..40);
    (arm, rest).prop_map(move |(arm, rest)| {
        let (ovh, seek_a, seek_b, seek_c, rev_ns, rot) = arm;
        let (seed, spt, bw, sptf, age_ns, flush_ns, depth) = rest;
        let ovh_ns = ovh + 1;
        HddParams {
            cap,
            depth,
            flush_ns,
            ovh_ns,
            seek_a,
            seek_b,
            seek_c,
            rev_ns,
            rot,
            seed,
            spt,
            bw,
            sptf,
            age_ns,
            window: 0,
            bw_inner: 0,
            zones: 16,
            bus_bw: 0,
            wcache: 0,
            wcache_high: 75,
            destage_window: 0,
            destage_run: 0,
            wc_ns: 0,
            ctl_ns: 0,
            wc_bw: 0,
            trim_ns: 0,
            missed_rev: false,
            age_passes: 0,
        }
    })
}

pub(crate) struct Slow {
    p: HddParams,
    inflight: u64,
    idle: bool,
    prev_end: u64,
    outer: VecDeque<(Command, u64)>,
    q: Vec<(Command, u64)>,
    heap: Heap<(Command, u64)>,
}

fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d049bb133111eb);
    x ^ (x >> 31)
}

impl Slow {
    pub(crate) fn new(p: HddParams) -> Self {
        let (outer, q) = (VecDeque::new(), Vec::new());
        Slow { p, inflight: 0, idle: true, prev_end: 0, outer, q, heap: Heap::new() }
    }

    fn pos(&self, r: &Command, t: u64) -> u64 {
        let p = &self.p;
        let (s, c) = (r.offset / 512, p.cap / 512);
        if s == self.prev_end {
            return 0;
        }
        let dist = s.abs_diff(self.prev_end).min(c - 1);
        let x = ((u128::from(dist) << 32) / u128::from(c)) as u64;
        let seek = p.seek_a + ((p.seek_b * (x << 32).isqrt()) >> 32) + ((p.seek_c * x) >> 32);
        let rot = match p.rot {
            Rotation::Half => p.rev_ns / 2,
            Rotation::Hash => mix(p.seed ^ s) % p.rev_ns,
            Rotation::Angle => {
                let a = (t + p.ovh_ns + seek) % p.rev_ns;
                let g = ((s % p.spt) * p.rev_ns) / p.spt;
                (g + p.rev_ns - a) % p.rev_ns
            }
        };
        seek + rot
    }

    fn kick(&mut self, t: u64) {
        if !self.idle || self.q.is_empty() {
            return;
        }
        let p = self.p.clone();
        let (head, t_arr) = self.q[0];
        let mut choice = 0;
        if p.sptf && head.op != Op::Flush && !(p.age_ns > 0 && t - t_arr > p.age_ns) {
            for i in 0..self.q.len() {
                if self.q[i].0.op == Op::Flush {
                    break;
                }
                if self.pos(&self.q[i].0, t) < self.pos(&self.q[choice].0, t) {
                    choice = i;
                }
            }
        }
        let (r, _) = self.q.remove(choice);
        let service = match r.op {
            Op::Flush => p.flush_ns,
            Op::Discard => p.ovh_ns,
            Op::Read | Op::Write => {
                let xfer = (r.len * 1_000_000_000).checked_div(p.bw).unwrap_or(0);
                let service = p.ovh_ns + self.pos(&r, t) + xfer;
                self.prev_end = (r.offset + r.len) / 512;
                service
            }
        };
        self.idle = false;
        self.heap.push(t + service, (r, t));
    }
}

impl Oracle for Slow {
    fn arrive(&mut self, now: u64, r: Command) {
        if self.p.depth != 0 && self.inflight >= self.p.depth {
            self.outer.push_back((r, now));
        } else {
            self.inflight += 1;
            self.q.push((r, now));
            self.kick(now);
        }
    }

    fn run(&mut self, now: u64, done: &mut Vec<Completion>) {
        while let Some((t, (r, t_start))) = self.heap.pop_until(now) {
            self.idle = true;
            done.push(Completion { id: r.id, t_start, t_done: t });
            self.inflight -= 1;
            if let Some(next) = self.outer.pop_front() {
                self.inflight += 1;
                self.q.push(next);
                self.kick(t);
            }
            self.kick(t);
        }
    }
}
