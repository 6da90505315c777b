use super::*;
use crate::params::Key;
use proptest::prelude::*;

fn params(set: &[(&str, u64)]) -> ArrayParams {
    let value = |k: &Key| {
        let own = set.iter().find(|(n, _)| *n == k.name).map(|(_, v)| *v);
        own.or(k.default).unwrap_or(300 << 30)
    };
    for (name, _) in set {
        assert!(ArrayParams::KEYS.iter().any(|k| k.name == *name), "{name}");
    }
    ArrayParams::from_values(&ArrayParams::KEYS.iter().map(value).collect::<Vec<_>>())
}

/// Keeps `depth` commands of the closure in flight until `end`; bytes done a second, once the first third is over.
fn rate(
    a: &mut Array,
    depth: u32,
    end: Nanos,
    mut next: impl FnMut() -> (Op, Bytes, Bytes),
) -> f64 {
    let (mut now, mut bytes, mut done) = (0, 0, Vec::new());
    let mut len_of = Vec::new();
    let mut submit = |a: &mut Array, now, id: u32| {
        let (op, offset, len) = next();
        len_of.resize(len_of.len().max(id as usize + 1), 0);
        len_of[id as usize] = len;
        a.submit(now, Command { id, op, offset, len, fua: false });
        len
    };
    let mut lens: Vec<Bytes> = (0..depth).map(|id| submit(a, 0, id)).collect();
    while now < end {
        now = a.next_wakeup().expect("commands are under way");
        a.advance(now, &mut done);
        for c in std::mem::take(&mut done) {
            bytes += if now > end / 3 { lens[c.id as usize] } else { 0 };
            lens[c.id as usize] = submit(a, now, c.id);
        }
    }
    bytes as f64 / ((now - end / 3) as f64 / 1e9)
}

/// Streams in turn, each sequential in a place of its own.
fn streams(n: u64, op: Op, len: Bytes) -> impl FnMut() -> (Op, Bytes, Bytes) {
    let mut at: Vec<Bytes> = (0..n).map(|i| i * (40 << 30)).collect();
    let mut turn = 0;
    move || {
        let i = turn % n as usize;
        turn += 1;
        at[i] += len;
        (op, at[i] - len, len)
    }
}

/// The worked check: row 7 has its parity on leg 2 and its data on 3, 4, 0, 1.
#[test]
fn a_small_write_reads_and_writes_two_legs_and_a_whole_row_only_writes() {
    let row = 7 * 4 * 65_536;
    let mut a = Array::new(params(&[("cache", 1 << 20), ("hi", 1), ("lo", 0)]));
    let legs: Vec<usize> = (0..4).map(|k| a.layout.leg(7 * 4 + k)).collect();
    assert_eq!((a.layout.parity(7), legs), (2, vec![3, 4, 0, 1]));
    let mut done = Vec::new();
    a.submit(
        0,
        Command { id: 1, op: Op::Write, offset: row + 65_536 + 8192, len: 4096, fua: false },
    );
    a.idle = true;
    let mut first = Vec::new();
    while let Some(t) = a.next_wakeup() {
        a.idle = true;
        a.advance(t, &mut done);
        if a.leg_reads == 2 && first.is_empty() {
            first = a.at_leg.clone();
        }
    }
    assert_eq!(first, [0, 0, 1, 0, 1], "leg 4 and the parity on leg 2 are read");
    assert_eq!((a.leg_reads, a.leg_writes, a.partial_rows), (2, 2, 1));
    let now = done[0].t_done + 3_000_000_000;
    a.advance(now, &mut done);
    a.submit(now, Command { id: 2, op: Op::Write, offset: row, len: 262_144, fua: false });
    while let Some(t) = a.next_wakeup() {
        a.idle = true;
        a.advance(t, &mut done);
    }
    assert_eq!((a.leg_reads, a.leg_writes, a.full_rows), (2, 7, 1));
    assert_eq!(done.len(), 2);
}

#[test]
fn a_write_is_done_when_controller_link_and_mirror_have_it() {
    let mut a = Array::new(params(&[]));
    let mut done = Vec::new();
    a.submit(0, Command { id: 1, op: Op::Write, offset: 0, len: 400_000, fua: false });
    a.advance(10_000_000, &mut done);
    assert_eq!(done[0].t_done, 60_000 + 1_000_000 + 500_000 + 300_000);
}

#[test]
fn one_link_at_a_time_limits_a_stream() {
    let mb = |a: &mut Array, next: &mut dyn FnMut() -> (Op, Bytes, Bytes)| {
        rate(a, 32, 4_000_000_000, next) / 1e6
    };
    let mut a = Array::new(params(&[]));
    let written = mb(&mut a, &mut streams(1, Op::Write, 512 << 10));
    assert!((380.0..=420.0).contains(&written), "{written} MB/s over one link of 400");
    // Both links are used when the path changes often, and then the disks are the limit.
    let mut both = Array::new(params(&[("rr", 10), ("qd", 16)]));
    let written = mb(&mut both, &mut streams(1, Op::Write, 512 << 10));
    assert!((425.0..=460.0).contains(&written), "{written} MB/s: four disks of 115 at most");
}

/// What a floating-point simulation of the definition gave, in MB/s, and what was published for such an array:
/// 10 streams of large writes 198 to 218 (deadline 209), of page-sized ones 68 (noop 74), of reads 289 to 301 (281 to 342).
#[test]
fn ten_streams_are_limited_by_the_disks_or_by_the_controller() {
    let mb = |op, len, set: &[(&str, u64)]| {
        let mut a = Array::new(params(set));
        rate(&mut a, 32, 16_000_000_000, streams(10, op, len)) / 1e6
    };
    let large = mb(Op::Write, 512 << 10, &[]);
    assert!((180.0..=240.0).contains(&large), "{large} MB/s of large writes");
    let small = mb(Op::Write, 4096, &[]);
    assert!((60.0..=70.0).contains(&small), "{small} MB/s of small writes: 60 us each");
    let sorted = mb(Op::Write, 512 << 10, &[("dord", 1)]);
    assert!(sorted > large * 1.2, "sorted {sorted} MB/s, by age {large}");
}

#[test]
fn streams_are_read_ahead_and_what_was_read_is_there() {
    let mut a = Array::new(params(&[]));
    let read = rate(&mut a, 4, 3_000_000_000, streams(1, Op::Read, 128 << 10)) / 1e6;
    let mut none = Array::new(params(&[("ra_n", 60_000)]));
    let alone = rate(&mut none, 4, 3_000_000_000, streams(1, Op::Read, 128 << 10)) / 1e6;
    assert!(read > 1.5 * alone && read < 420.0, "{read} MB/s, {alone} without reading ahead");
    assert!(a.hits > 0);
    let mut cached = Array::new(params(&[]));
    let again = rate(&mut cached, 1, 1_000_000_000, || (Op::Read, 0, 4096));
    let each = 1e9 * 4096.0 / again;
    assert!((330_000.0..=340_000.0).contains(&each), "{each} ns for a hit: 20 us, 10 us, 300 us");
}

#[test]
fn without_a_cache_a_write_ends_on_the_disks() {
    let mut a = Array::new(params(&[("cache", 0)]));
    let mut at = 0;
    let next = || {
        at = (at + 7919 * 4096) % (64 << 30);
        (Op::Write, at, 4096)
    };
    let each = 4096.0 * 1e3 / rate(&mut a, 1, 2_000_000_000, next);
    // A read takes a seek and half a turn, the write after it a whole turn.
    assert!((6.0..=20.0).contains(&each), "{each} ms: two reads, then two writes");
    assert_eq!(a.dirty.used(), 4096, "only the write under way");
}

proptest! {
    /// Every command ends once; the cache holds no more than it may; everything that was written gets to the legs.
    #[test]
    fn commands_end_once_and_the_cache_keeps_its_size(
        raid in 0u64..3,
        cache in prop_oneof![Just(0u64), Just(1 << 20), Just(8 << 20)],
        dord in 0u64..2,
        commands in prop::collection::vec((0u8..4, 0u64..2000, 1u64..80, 0u64..3_000_000), 1..120),
    ) {
        let p = params(&[
            ("raid", raid), ("legs", 4), ("cache", cache), ("dord", dord), ("qd", 3), ("rr", 5),
            ("rcache", 1 << 20), ("leg_cap", 1 << 30),
        ]);
        let mut a = Array::new(p);
        let (mut now, mut done) = (0, Vec::new());
        let n = commands.len();
        for (id, (op, at, pages, wait)) in commands.into_iter().enumerate() {
            now += wait;
            a.advance(now, &mut done);
            let op = [Op::Read, Op::Write, Op::Flush, Op::Discard][op as usize];
            let len = if op == Op::Flush { 0 } else { pages * 4096 };
            a.submit(now, Command { id: id as u32, op, offset: at * 4096, len, fua: false });
            // Pages that were dirty when room was made for a write may be clean when it comes.
            let most = cache + 6 * 80 * 4096;
            prop_assert!(cache == 0 || a.dirty.used() <= most);
        }
        let mut last = now;
        while let Some(t) = a.next_wakeup() {
            prop_assert!(t >= last);
            last = t;
            a.advance(t, &mut done);
        }
        let mut ids: Vec<u32> = done.iter().map(|c| c.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..n as u32).collect::<Vec<_>>());
        prop_assert_eq!(a.dirty.used(), 0);
        prop_assert_eq!(a.in_flight(), 0);
        prop_assert!(a.at_leg.iter().all(|n| *n == 0));
    }
}
