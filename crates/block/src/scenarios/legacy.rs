//! The single-queue path: device plug, request pool, plug merges, forced drains, expiry inheritance.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use iosched_devices::{Command, Completion, Device};
use iosched_types::{Flags, Nanos, Op};

use super::{Rig, config};

fn rhel5() -> Rig {
    Rig::new(config("noop@2.6.18", "2.6.18", 32, 1))
}

fn write_at(r: &mut Rig, ms: f64, sector: u64) {
    r.to(ms);
    r.bio(0, Op::Write, sector, 8, Flags::NONE);
    r.returns();
}

/// BL-1: asynchronous writes wait for the plug's 3 ms.
#[test]
fn a_device_plug_ends_after_3_ms() {
    let mut r = rhel5();
    for (ms, sector) in [(0.0, 100), (1.0, 300), (2.0, 500)] {
        write_at(&mut r, ms, sector);
    }
    r.to(10.0);
    assert_eq!(r.sent(), ["W100@3", "W300@3", "W500@3"]);
}

/// BL-2: the fourth allocated request ends the plug.
#[test]
fn a_device_plug_ends_at_four_requests() {
    let mut r = rhel5();
    for (ms, sector) in [(0.0, 100), (1.0, 300), (2.0, 500), (2.5, 700)] {
        write_at(&mut r, ms, sector);
    }
    r.to(10.0);
    assert_eq!(r.sent(), ["W100@2.5", "W300@2.5", "W500@2.5", "W700@2.5"]);
}

/// BL-3: a process waits for a read.
#[test]
fn a_device_plug_ends_at_a_read() {
    let mut r = rhel5();
    write_at(&mut r, 0.0, 100);
    write_at(&mut r, 1.0, 300);
    r.to(1.2);
    r.submits(1, "R900").returns();
    write_at(&mut r, 2.0, 500);
    r.to(10.0);
    assert_eq!(r.sent()[..3], ["W100@1.2", "W300@1.2", "R900@1.2"]);
    // The next plug begins with the write that found the scheduler empty.
    assert_eq!(r.sent()[3..], ["W500@5"]);
}

/// A plug of 3 ms is one jiffy at least: 4 ms at HZ 250, 10 ms at HZ 100.
#[test]
fn a_device_plug_counts_jiffies() {
    for (hz, sent) in [(250, "W100@4"), (100, "W100@10")] {
        let mut c = config("noop@2.6.18", "2.6.18", 32, 1);
        c.profile.hz = hz;
        let mut r = Rig::new(c);
        write_at(&mut r, 0.0, 100);
        r.to(20.0);
        assert_eq!(r.sent(), [sent], "HZ {hz}");
    }
}

/// BL-4: one process takes 159 of 128 requests, another none once it is full; the first completion
/// that wakes anybody is the 32nd.
#[test]
fn a_full_pool_lets_its_batcher_go_on() {
    for kernel in ["2.6.18", "3.12"] {
        let mut r = Rig::new(config("noop@3.12", kernel, 1, 1));
        let write = |r: &mut Rig, task, n: u64| r.bio(task, Op::Write, n * 100, 8, Flags::NONE);
        assert!((0..128).all(|n| write(&mut r, 0, n)));
        assert!(!write(&mut r, 1, 1000), "the pool is full and task 1 no batcher");
        assert!((128..159).all(|n| write(&mut r, 0, n)));
        assert!(!write(&mut r, 0, 159), "the credit is used up");
        r.returns();
        r.to(31.5);
        assert_eq!(r.woken, [], "128 are left ({kernel})");
        r.to(32.5);
        assert_eq!(r.woken, [1], "127 are left, and task 1 came first ({kernel})");
        assert_eq!(r.q.stats().submitted, 160, "{kernel}");
    }
}

/// BL-6: bios join plugged requests, newest first; the plug is handed over sorted.
#[test]
fn a_task_plug_merges_and_sorts() {
    let mut r = Rig::new(config("noop@3.12", "3.12", 32, 1));
    r.q.start_plug(0);
    r.submits(0, "R5000 R1000 R1008 R9000 R1016").returns();
    assert!(r.sent().is_empty(), "the plug holds everything back");
    r.q.finish_plug(&mut r.tl, 0);
    r.returns();
    assert_eq!(r.order(), ["R1000+24", "R5000", "R9000"]);
}

/// BL-6: the 17th request flushes the 16 before it and stays.
#[test]
fn a_task_plug_holds_16() {
    let mut r = Rig::new(config("noop@3.12", "3.12", 32, 1));
    r.q.start_plug(0);
    for n in 0..16 {
        r.submits(0, &format!("R{}", 1600 - n * 100));
    }
    assert!(r.sent().is_empty());
    r.submits(0, "R50").returns();
    let sorted: Vec<String> = (1..=16).map(|n| format!("R{}", n * 100)).collect();
    assert_eq!(r.order(), sorted, "and not R50");
    r.q.finish_plug(&mut r.tl, 0);
    r.returns();
    assert_eq!(r.order()[16], "R50");
}

/// NP-2: noop of 2.6.18 finds only the request it merged with last; later the hash finds both.
#[test]
fn noop_merges_by_cache_until_2_6_18_and_by_hash_later() {
    for (name, sent) in [
        ("noop@2.6.18", vec!["R900000", "R1000+16", "R5000", "R5008"]),
        ("noop@3.12", vec!["R900000", "R1000+16", "R5000+16"]),
    ] {
        let kernel = name.split_once('@').unwrap().1;
        let mut r = Rig::new(config(name, kernel, 1, 1));
        r.submits(0, "R900000").returns();
        r.submits(0, "R1000 R5000 R1008 R5008").returns();
        r.to(20.0);
        assert_eq!(r.order(), sent, "{name}");
    }
}

/// NP-3: a barrier drains the scheduler one-way from where the head is.
#[test]
fn a_forced_drain_sorts_from_the_boundary() {
    let mut c = config("noop@2.6.18", "2.6.18", 1, 1);
    c.write_cache = true;
    let mut r = Rig::new(c);
    r.submits(0, "R592").returns();
    r.submits(0, "R900 R100 R500 R700");
    r.bio(0, Op::Flush, 0, 0, Flags::PREFLUSH);
    r.submits(0, "R10").returns();
    r.to(20.0);
    // Requests behind the barrier wait for it.
    assert_eq!(r.order(), ["R592", "R700", "R900", "R100", "R500", "F", "R10"]);
    assert_eq!(r.q.pending(), 0);
}

/// A barrier's data is cached like any other write, so the flush behind it has to come before its end. A device that takes writes
/// past its cache needs no such flush.
#[test]
fn a_barrier_is_on_the_medium_when_it_ends() {
    for (fua, order, end) in [(false, "F W8 F", 3.0), (true, "F W8", 2.0)] {
        let mut c = config("noop@2.6.18", "2.6.18", 1, 1);
        (c.write_cache, c.fua) = (true, fua);
        let through = Arc::new(AtomicU32::new(0));
        c.device = Box::new(Noting { device: c.device, through: Arc::clone(&through) });
        let mut r = Rig::new(c);
        r.bio(0, Op::Write, 8, 8, Flags::PREFLUSH.with(Flags::FUA));
        r.returns();
        r.to(20.0);
        assert_eq!((r.order().join(" ").as_str(), through.load(Relaxed)), (order, u32::from(fua)));
        assert_eq!(r.done.iter().map(|d| d.1).collect::<Vec<_>>(), [end]);
    }
}

/// A device that counts writes past its cache.
struct Noting {
    device: Box<dyn Device>,
    through: Arc<AtomicU32>,
}

impl Device for Noting {
    fn capacity(&self) -> u64 {
        self.device.capacity()
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        self.through.fetch_add(u32::from(command.fua), Relaxed);
        self.device.submit(now, command);
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        self.device.next_wakeup()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.device.advance(now, done);
    }

    fn in_flight(&self) -> usize {
        self.device.in_flight()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.device.counters()
    }
}

/// DL-8: the request that absorbs an older one takes over its deadline and its place.
#[test]
fn an_absorbed_request_leaves_its_deadline() {
    let mut r = Rig::new(config("deadline@3.12", "3.12", 1, 530));
    r.submits(0, "R900000").returns();
    r.submits(0, "R1016").returns();
    r.to(5.0);
    r.submits(0, "R5000").returns();
    r.to(10.0);
    r.submits(0, "R1000").returns();
    r.to(20.0);
    r.submits(0, "R1008").returns();
    r.to(3000.0);
    assert_eq!(r.order(), ["R900000", "R1000+24", "R5000"]);
    assert_eq!(r.q.stats().merges[Op::Read as usize], 2);
}
