//! Every figure of a catalogue device that the model can be asked for is met within 10 %, or the device file says why not; and what the
//! models do beside writes and flushes.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use iosched_devices::describe::{LOADS, Load, measure};
use iosched_devices::{Command, DeviceSpec, DeviceState, Figure, FigureValue, Model, catalogue};
use iosched_types::{Bytes, Nanos, Op};

/// How far the model may be off without saying why.
const TOLERANCE: f64 = 0.10;
/// Depth that stands for `xN`: as many threads as it takes.
const MANY: u32 = 512;

/// Commands in flight in a name such as `rand_read_4k_qd32x4`.
fn depth(name: &str) -> Option<u32> {
    let (_, qd) = name.rsplit_once("_qd")?;
    match qd.split_once('x') {
        Some((_, "N")) => Some(MANY),
        Some((a, b)) => Some(a.parse::<u32>().ok()? * b.parse::<u32>().ok()?),
        None => qd.parse().ok(),
    }
}

fn random(spec: &DeviceSpec, op: Op, depth: u32) -> f64 {
    let commands = match (op, depth) {
        // The write cache (64 MiB at most) is full long before the half that counts.
        (Op::Write, 2..) => 80_000,
        (_, 1) => 4000,
        _ => 12_000,
    };
    measure(spec, Load { op, depth, commands, ..LOADS[0] }).unwrap().iops
}

/// What the model yields for a figure of that name; `None` for facts that no load shows.
fn ours(spec: &DeviceSpec, name: &str) -> Option<f64> {
    let sequential = |i: usize| Some(measure(spec, LOADS[i]).unwrap().mb_per_s);
    let latency = |op| Some(1e6 / random(spec, op, 1));
    match name {
        "seq_read" | "media_rate_outer" => sequential(4),
        "seq_write" => sequential(5),
        "read_latency_qd1" => latency(Op::Read),
        "write_latency_qd1" => latency(Op::Write),
        "rand_write_steady" => Some(random(spec, Op::Write, 32)),
        "a1_min_rand_read" => Some(random(spec, Op::Read, 1)),
        "a1_min_rand_write" => Some(random(spec, Op::Write, 1)),
        "seq_read_qd1" => Some(measure(spec, Load { depth: 1, ..LOADS[4] }).unwrap().mb_per_s),
        "post_cache_write" => {
            let state = DeviceState::parse("slc=full").unwrap();
            Some(measure(&DeviceSpec { state, ..spec.clone() }, LOADS[5]).unwrap().mb_per_s)
        }
        _ if name.starts_with("rand_read_") => Some(random(spec, Op::Read, depth(name)?)),
        _ if name.starts_with("rand_write_") => Some(random(spec, Op::Write, depth(name)?)),
        _ => None,
    }
}

/// By how much a value lies outside a figure.
fn off(f: &Figure, ours: f64) -> Option<f64> {
    match f.value {
        FigureValue::Number(v) => Some(ours / v - 1.0),
        FigureValue::Range(from, to) if ours < from => Some((ours / from - 1.0).min(to - from)),
        FigureValue::Range(_, to) => Some((ours / to - 1.0).max(0.0)),
        FigureValue::Text(_) => None,
    }
}

#[test]
fn a_device_meets_its_own_figures_or_says_why_not() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (name, spec) in catalogue::all() {
        // Figures with a host in them are checked with one (`crates/sim/tests/all/catalogue_figures.rs`).
        for f in spec.figures.iter().filter(|f| !f.with_host) {
            let Some(ours) = ours(spec, &f.name) else { continue };
            let Some(off) = off(f, ours) else { continue };
            checked += 1;
            if (off.abs() > TOLERANCE) == f.reason.is_empty() {
                wrong.push(format!(
                    "{name} {}: {ours:.1} against {:?}, {:+.1} %, reason \"{}\"",
                    f.name,
                    f.value,
                    100.0 * off,
                    f.reason
                ));
            }
        }
    }
    assert!(checked > 50, "only {checked} figures are of a name that is known here");
    assert!(wrong.is_empty(), "a reason for more than 10 % only:\n{}", wrong.join("\n"));
}

/// A process that reads one block after the other, and one that writes one and (perhaps) flushes after each: reads and
/// writes per second over the last part of `seconds`.
struct Beside {
    writers: u32,
    flush: bool,
    seconds: u64,
    /// What the others do instead of writing a block.
    other: (Op, Bytes),
}

impl Default for Beside {
    fn default() -> Self {
        Self { writers: 1, flush: false, seconds: 2, other: (Op::Write, 4096) }
    }
}

impl Beside {
    fn run(&self, spec: &DeviceSpec) -> (f64, f64) {
        let mut device = spec.build().unwrap();
        let (mut done, mut count, mut place) = (Vec::new(), [0u64; 2], 1u64);
        let end: Nanos = self.seconds * 1_000_000_000;
        let blocks = device.capacity() / 4096;
        let mut random = || -> Bytes {
            place = place
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (place >> 20) % blocks * 4096
        };
        let mut send = |d: &mut dyn iosched_devices::Device, now: Nanos, id: u32, op: Op| {
            let len = if op == self.other.0 { self.other.1 } else { 4096 };
            let (offset, len) = if op == Op::Flush { (0, 0) } else { (random() / len * len, len) };
            d.submit(now, Command { id, op, offset, len, fua: false });
        };
        send(&mut *device, 0, 0, Op::Read);
        (1..=self.writers).for_each(|w| send(&mut *device, 0, w, self.other.0));
        let mut flushing = vec![false; self.writers as usize + 1];
        while let Some(now) = device.next_wakeup().filter(|t| *t < end) {
            device.advance(now, &mut done);
            for c in std::mem::take(&mut done) {
                let w = c.id as usize;
                flushing[w] = self.flush && w > 0 && !flushing[w];
                let op = match (w, flushing[w]) {
                    (0, _) => Op::Read,
                    (_, true) => Op::Flush,
                    _ => self.other.0,
                };
                count[usize::from(w > 0)] += u64::from(!flushing[w] && now > end / 2);
                send(&mut *device, now, c.id, op);
            }
        }
        let per_s = |n: u64| n as f64 / (self.seconds as f64 / 2.0);
        (per_s(count[0]), per_s(count[1]))
    }
}

fn spec(name: &str) -> DeviceSpec {
    catalogue::find(name).unwrap()
}

/// Samsung 850 EVO: 612 of 10,700 reads a second are left; Kingston KC3000: a fifth.
#[test]
fn a_reader_beside_a_writer_that_flushes_keeps_what_was_measured() {
    let beside = Beside { flush: true, ..Beside::default() };
    for (name, wanted) in [("ssd-sata", 612.0), ("nvme", 0.2 * 14_000.0)] {
        let (reads, writes) = beside.run(&spec(name));
        assert!((reads / wanted - 1.0).abs() < 0.15, "{name}: {reads} instead of {wanted}");
        assert!(writes > 200.0, "{name}: {writes} writes");
    }
}

#[test]
fn a_reader_beside_writers_without_flushes_is_not_shut_out() {
    let beside = Beside { writers: 16, ..Beside::default() };
    for (name, least) in [("ssd-sata", 5000.0), ("adata-su800", 1500.0), ("nvme", 8000.0)] {
        let (reads, writes) = beside.run(&spec(name));
        assert!(reads > least, "{name}: {reads} reads, {writes} writes");
    }
    for name in ["hdd-7200", "st1000dm003", "st3320620as", "wd10ezrx", "exos-x18"] {
        let state = DeviceState::parse("write_cache=full").unwrap();
        let spec = DeviceSpec { state, ..spec(name) };
        let (reads, writes) = Beside { writers: 2, seconds: 10, ..Beside::default() }.run(&spec);
        assert!(reads > 10.0 && writes > reads, "{name}: {reads} reads, {writes} writes");
    }
}

/// PCIe moves both ways at once: reads do not queue behind the bytes of writes. 64 writes of 128 KiB are 1.2 ms of the
/// bus of an Optane drive.
#[test]
fn reads_pass_large_writes_on_a_full_duplex_bus() {
    let beside = Beside { writers: 64, other: (Op::Write, 128 << 10), ..Beside::default() };
    let (reads, writes) = beside.run(&spec("samsung-990-pro"));
    assert!(reads > 4000.0 && writes > 1000.0, "{reads} reads, {writes} writes");
    let mut half = spec("optane-p5800x");
    let (both, _) = beside.run(&half);
    let iosched_devices::Model::Ssd(p) = &mut half.model else { panic!("not an SSD") };
    p.duplex = false;
    let (one, _) = beside.run(&half);
    assert!(both > 2.0 * one, "{both} and {one} reads");
}

/// ATA's TRIM is not queued: whoever reads meanwhile waits for it. A volume's discards are operations like all others.
#[test]
fn trims_cost_those_beside_them() {
    let trims = Beside { other: (Op::Discard, 1 << 20), ..Beside::default() };
    let alone = Beside { writers: 0, ..Beside::default() }.run(&spec("ssd-sata")).0;
    let (reads, trimmed) = trims.run(&spec("ssd-sata"));
    assert!(reads < 0.7 * alone && reads > 500.0, "{reads} of {alone} reads are left");
    assert!(trimmed > 100.0 && trimmed < 1e9 / 600_000.0, "{trimmed} trims");
    let long = Beside { writers: 8, seconds: 20, ..trims };
    let (reads, trimmed) = long.run(&spec("cloud-gp3"));
    assert!((2900.0..3100.0).contains(&(reads + trimmed)), "{reads} reads, {trimmed} trims");
}

/// A drive that was written to for a long time does not begin with empty caches.
#[test]
fn a_device_starts_in_the_state_it_is_given() {
    let writes = |name: &str, state: &str| {
        let state = DeviceState::parse(state).unwrap();
        let spec = DeviceSpec { state, ..spec(name) };
        let l = Load { commands: 4000, ..LOADS[3] };
        measure(&spec, l).unwrap().iops
    };
    let (fresh, full) =
        (writes("hdd-7200", "write_cache=empty"), writes("hdd-7200", "write_cache=full"));
    assert!(fresh > 10.0 * full && full > 80.0, "{fresh} and {full}");
    let (fresh, full) =
        (writes("samsung-990-pro", "slc=empty"), writes("samsung-990-pro", "slc=full"));
    assert!(fresh > 3.0 * full, "{fresh} and {full}");
    assert_eq!(writes("fixed", "write_cache=full,slc=full"), writes("fixed", "slc=empty"));
}

/// Nobody waits for room in the cache, so the arm has time for reads.
#[test]
fn a_full_cache_without_writers_leaves_reads_alone() {
    let reads = |state: &str| {
        let state = DeviceState::parse(state).unwrap();
        let spec = DeviceSpec { state, ..spec("hdd-7200") };
        measure(&spec, Load { depth: 32, commands: 2000, ..LOADS[0] }).unwrap().iops
    };
    let (empty, full) = (reads("write_cache=empty"), reads("write_cache=full"));
    assert!(empty > 160.0 && full > 0.95 * empty, "{empty} and {full}");
}

#[test]
fn a_discard_costs_a_disk_time() {
    for name in ["hdd-7200", "exos-x18"] {
        let mut spec = spec(name);
        assert!(!spec.discard, "{name} records without shingles");
        if let Model::Hdd(p) = &mut spec.model {
            p.trim_ns = 8_333_333;
        }
        let mut device = spec.build().unwrap();
        device.submit(0, Command { id: 0, op: Op::Discard, offset: 0, len: 4096, fua: false });
        let (mut done, mut end) = (Vec::new(), 0);
        while let Some(t) = device.next_wakeup() {
            device.advance(t, &mut done);
            end = t;
        }
        assert!(done.len() == 1 && end > 5_000_000, "{name}: {end} ns");
    }
}

/// How long flushes take: of a clean cache, then of one that holds a block, `writes` times.
fn flushes(name: &str, writes: u32) -> (Nanos, Vec<Nanos>) {
    let mut device = spec(name).build().unwrap();
    let mut now = 1_000_000;
    let mut run = |op, offset, len| {
        let began = now;
        device.submit(now, Command { id: 0, op, offset, len, fua: false });
        let mut done = Vec::new();
        while done.is_empty() {
            now = device.next_wakeup().unwrap();
            device.advance(now, &mut done);
        }
        now - began
    };
    let clean = run(Op::Flush, 0, 0);
    let dirty = (0..writes).map(|i| {
        run(Op::Write, u64::from(i % 7) * (100 << 30), 4096);
        run(Op::Flush, 0, 0)
    });
    (clean, dirty.collect())
}

/// A flush is a command: it takes its overhead, what is dirty, and what it notes, for which a disk has to turn.
#[test]
fn a_flush_takes_overhead_what_is_dirty_and_rotation() {
    for (name, overhead, dirty) in [
        ("hdd-7200", 10_000, 1_000_000),
        ("st1000dm003", 10_000, 24_000_000),
        ("wd10ezrx", 100_000, 1_000_000),
        ("nvme", 3_000, 1_000_000),
        ("ssd-sata", 15_000, 3_000_000),
    ] {
        let (clean, all) = flushes(name, 14);
        assert!((overhead..200_000).contains(&clean), "{name}: {clean}");
        assert!(all.iter().all(|t| *t >= dirty), "{name}: {all:?}");
        if spec(name).rotational {
            let (least, most) = (all.iter().min().unwrap(), all.iter().max().unwrap());
            assert!(most - least > 1_000_000, "{name}: {all:?}");
        }
    }
}
