//! Whole block traces: packed for the store, and as text for other programs.
//!
//! A packed trace is zlib over columns of LEB128 numbers. First come the format (1), the count, and the process ids
//! with their count. Then, for all commands in turn, the time since the one before (ns), the distance of its first
//! sector from the end of the one before (zigzag), the sectors, the operation's letter, the index of the process.
//! Numbers of one kind lie together because they compress better that way. A trace takes a few bytes per command.

use std::fmt::Write as _;
use std::io::{self, ErrorKind};

use iosched_experiment::DispatchPoint;
use iosched_types::Op;

use crate::hist::{deflate, inflate};

const FORMAT: u64 = 1;
/// Largest trace after decompression.
const MAX_BYTES: u64 = 1 << 30;

/// Packs a trace.
///
/// # Errors
/// Only when memory runs out.
pub fn pack(points: &[DispatchPoint]) -> io::Result<Vec<u8>> {
    let mut pids: Vec<u32> = points.iter().map(|p| p.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let mut out = Vec::with_capacity(points.len() * 8);
    for n in [FORMAT, points.len() as u64, pids.len() as u64] {
        put(&mut out, n);
    }
    pids.iter().for_each(|p| put(&mut out, u64::from(*p)));
    let mut last = 0;
    for p in points {
        put(&mut out, zigzag(p.t.wrapping_sub(last)));
        last = p.t;
    }
    let mut end = 0u64;
    for p in points {
        put(&mut out, zigzag(p.sector.wrapping_sub(end)));
        end = p.sector.wrapping_add(u64::from(p.sectors));
    }
    points.iter().for_each(|p| put(&mut out, u64::from(p.sectors)));
    points.iter().for_each(|p| out.push(p.op.letter() as u8));
    for p in points {
        // Sorted and without duplicates above, so it is there.
        put(&mut out, pids.binary_search(&p.pid).unwrap_or(0) as u64);
    }
    deflate(&out)
}

/// The trace of its packed form.
///
/// # Errors
/// Damaged data, or a format of a newer program.
pub fn unpack(packed: &[u8]) -> io::Result<Vec<DispatchPoint>> {
    let bytes = inflate(packed, MAX_BYTES)?;
    let mut from = Reader { rest: &bytes };
    if from.number()? != FORMAT {
        return Err(damaged("a trace of an unknown format"));
    }
    let count = from.count()?;
    let known = from.count()?;
    let narrow = |n: u64| u32::try_from(n).map_err(|_| damaged("a number too large in a trace"));
    let pids: Vec<u32> =
        (0..known).map(|_| from.number().and_then(narrow)).collect::<io::Result<_>>()?;
    let blank = DispatchPoint { t: 0, sector: 0, sectors: 0, op: Op::Read, pid: 0 };
    let mut points = vec![blank; count];
    let mut last = 0u64;
    for p in &mut points {
        p.t = last.wrapping_add(unzigzag(from.number()?));
        last = p.t;
    }
    // Distances come before the lengths that they count from.
    for p in &mut points {
        p.sector = unzigzag(from.number()?);
    }
    let mut end = 0u64;
    for p in &mut points {
        p.sectors = from.number().and_then(narrow)?;
        p.sector = end.wrapping_add(p.sector);
        end = p.sector.wrapping_add(u64::from(p.sectors));
    }
    for p in &mut points {
        let letter = char::from(from.byte()?);
        p.op = Op::from_letter(letter).ok_or_else(|| damaged("an unknown operation in a trace"))?;
    }
    for p in &mut points {
        let index = usize::try_from(from.number()?).ok();
        p.pid =
            index.and_then(|i| pids.get(i)).copied().ok_or_else(|| damaged("no such process"))?;
    }
    if from.rest.is_empty() { Ok(points) } else { Err(damaged("a trace with a tail")) }
}

/// `t_ns,op,sector,sectors,pid`, a line per command.
#[must_use]
pub fn csv(points: &[DispatchPoint]) -> String {
    let mut out = String::from("t_ns,op,sector,sectors,pid\n");
    for p in points {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{},{},{},{},{}", p.t, p.op.letter(), p.sector, p.sectors, p.pid);
    }
    out
}

/// An I/O log that fio replays (version 3, microseconds): flushes become `sync`.
#[must_use]
pub fn iolog(points: &[DispatchPoint]) -> String {
    let mut out = String::from("fio version 3 iolog\n0 /dev/disk add\n0 /dev/disk open\n");
    let mut last = 0;
    for p in points {
        last = last.max(p.t / 1000);
        let (at, len) = (p.sector * 512, u64::from(p.sectors) * 512);
        let _ = match p.op {
            Op::Read => writeln!(out, "{last} /dev/disk read {at} {len}"),
            Op::Write => writeln!(out, "{last} /dev/disk write {at} {len}"),
            Op::Discard => writeln!(out, "{last} /dev/disk trim {at} {len}"),
            Op::Flush => writeln!(out, "{last} /dev/disk sync 0 0"),
        };
    }
    let _ = writeln!(out, "{last} /dev/disk close");
    out
}

fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn zigzag(n: u64) -> u64 {
    (n << 1) ^ (n.cast_signed() >> 63).cast_unsigned()
}

fn unzigzag(n: u64) -> u64 {
    (n >> 1) ^ (n & 1).wrapping_neg()
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> io::Result<u8> {
        let (first, rest) =
            self.rest.split_first().ok_or_else(|| damaged("a trace that ends early"))?;
        self.rest = rest;
        Ok(*first)
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            n |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                return Ok(n);
            }
        }
        Err(damaged("a number too large in a trace"))
    }

    /// A count of items that take at least a byte each. So a false count cannot reserve more memory than there is data.
    fn count(&mut self) -> io::Result<usize> {
        let n = self.number()?;
        usize::try_from(n)
            .ok()
            .filter(|n| *n <= self.rest.len())
            .ok_or_else(|| damaged("a trace that ends early"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point() -> impl Strategy<Value = DispatchPoint> {
        let op = prop_oneof![Just(Op::Read), Just(Op::Write), Just(Op::Discard), Just(Op::Flush)];
        (any::<u64>(), any::<u64>(), any::<u32>(), op, 0u32..5).prop_map(
            |(t, sector, sectors, op, pid)| DispatchPoint {
                t,
                sector,
                sectors,
                op,
                pid: pid * 999,
            },
        )
    }

    proptest! {
        #[test]
        fn packing_loses_nothing(points in proptest::collection::vec(point(), 0..200)) {
            prop_assert_eq!(unpack(&pack(&points).unwrap()).unwrap(), points);
        }

        #[test]
        fn damage_is_an_error_or_another_trace(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&bytes);
            let _ = unpack(&deflate(&bytes).unwrap());
        }
    }

    #[test]
    fn a_command_takes_a_few_bytes() {
        let mut stream = iosched_engine::stream(1, "trace");
        let mut t = 0;
        let points: Vec<DispatchPoint> = (0..100_000)
            .map(|_| {
                t += 100_000 + stream.below(1_000_000);
                let sector = stream.below(1 << 31) * 8;
                DispatchPoint { t, sector, sectors: 8, op: Op::Read, pid: 7 }
            })
            .collect();
        let packed = pack(&points).unwrap();
        // Random places on a 1 TB disk have 28 bits, times of 1 ms in ns 20: six bytes without any overhead.
        assert!(packed.len() < 10 * points.len(), "{} bytes", packed.len());
    }

    #[test]
    fn logs_are_those_of_fio() {
        let p = |t, op, sector, sectors| DispatchPoint { t, sector, sectors, op, pid: 1 };
        let points = [p(0, Op::Read, 8, 8), p(2_500, Op::Flush, 0, 0), p(2_400, Op::Write, 0, 1)];
        assert_eq!(
            iolog(&points),
            "fio version 3 iolog\n0 /dev/disk add\n0 /dev/disk open\n0 /dev/disk read 4096 4096\n\
             2 /dev/disk sync 0 0\n2 /dev/disk write 0 512\n2 /dev/disk close\n"
        );
        assert_eq!(csv(&points[..1]), "t_ns,op,sector,sectors,pid\n0,R,8,8,1\n");
    }
}
