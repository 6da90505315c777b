//! Words that several formats share.

use iosched_types::{Flags, IoPrio, Nanos, Op, PrioClass};

/// The most bytes a disk can have: beyond this no sector is one.
const MOST_BYTES: u64 = i64::MAX as u64;

/// Operations and their words, in the order of reports.
pub const OPERATIONS: [(Op, &str); 4] =
    [(Op::Read, "read"), (Op::Write, "write"), (Op::Discard, "discard"), (Op::Flush, "flush")];

/// The word of an operation.
pub(crate) fn operation(op: Op) -> &'static str {
    OPERATIONS.iter().find(|(o, _)| *o == op).map_or("", |o| o.1)
}

/// Seconds with any number of decimals, exactly: `52989.558781`, `0.000000001`, `7.7e-4`.
pub(crate) fn seconds(word: &str) -> Option<Nanos> {
    decimal(word, 9)
}

/// A decimal number times 10^`digits`: exact for plain decimals, rounded for those with an exponent.
pub(crate) fn decimal(word: &str, digits: usize) -> Option<u64> {
    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let plain = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(part) {
        let v = word.parse::<f64>().ok()? * 10f64.powi(digits as i32);
        return (v.is_finite() && (0.0..9.2e18).contains(&v)).then(|| v.round() as u64);
    }
    let mut n: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut rest = part.bytes();
    for _ in 0..digits {
        let digit = rest.next().map_or(0, |b| u64::from(b - b'0'));
        n = n.checked_mul(10)?.checked_add(digit)?;
    }
    Some(n)
}

/// The letters of an operation and its flags as the kernel prints them. They count by position: an `F` before the
/// operation is a flush before the data, one after it is FUA.
pub(crate) fn rwbs(word: &str) -> Option<(Op, Flags)> {
    let bytes = word.as_bytes();
    let is_op = |b: &u8| b"RWDEFN".contains(b);
    let preflush = bytes.first() == Some(&b'F') && bytes.get(1).is_some_and(is_op);
    let letters = &bytes[usize::from(preflush)..];
    let op = match letters.first()? {
        b'R' => Op::Read,
        b'W' => Op::Write,
        b'D' | b'E' => Op::Discard,
        b'F' => Op::Flush,
        // blkparse's letters for the command of a flush.
        b'N' if preflush => Op::Flush,
        _ => return None,
    };
    let mut flags = if preflush { Flags::PREFLUSH } else { Flags::NONE };
    for letter in &letters[1..] {
        flags = flags.with(match letter {
            b'F' => Flags::FUA,
            b'A' => Flags::RAHEAD,
            b'S' => Flags::SYNC,
            b'M' => Flags::META,
            b'B' | b'E' => Flags::NONE,
            _ => return None,
        });
    }
    Some((op, flags))
}

/// The letters that [`rwbs`] reads.
pub(crate) fn letters(op: Op, flags: Flags) -> String {
    let mut out = String::new();
    let all = [(Flags::FUA, 'F'), (Flags::RAHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::META, 'M')];
    if flags.has(Flags::PREFLUSH) {
        out.push('F');
    }
    out.push(op.letter());
    out.extend(all.iter().filter(|(f, _)| flags.has(*f)).map(|(_, c)| *c));
    out
}

/// `be,0,4` or, as perf prints it, `0x2,0,4`: class, hint, level.
pub(crate) fn prio(word: &str) -> Option<IoPrio> {
    let mut parts = word.split(',');
    let class = match parts.next()? {
        "none" | "0x0" => PrioClass::None,
        "rt" | "0x1" => PrioClass::Rt,
        "be" | "0x2" => PrioClass::Be,
        "idle" | "0x3" => PrioClass::Idle,
        _ => return None,
    };
    let (_hint, level) = (parts.next()?, parts.next()?);
    let level = level.parse::<u8>().ok().filter(|l| *l < 8)?;
    Some(IoPrio { class, level: if class == PrioClass::None { 0 } else { level } })
}

/// Sectors as bytes, where both ends lie on a disk that can be.
pub(crate) fn on_disk(sector: u64, sectors: u64) -> Option<(u64, u64)> {
    bytes_on_disk(sector.checked_mul(512)?, sectors.checked_mul(512)?)
}

/// The same of bytes.
pub(crate) fn bytes_on_disk(offset: u64, len: u64) -> Option<(u64, u64)> {
    offset.checked_add(len).filter(|end| *end <= MOST_BYTES).map(|_| (offset, len))
}

/// Fields between commas, without blanks: as many as are asked for, and whether there were more.
pub(crate) fn commas<const N: usize>(line: &str) -> Option<[&str; N]> {
    let mut fields = line.split(',').map(str::trim_ascii);
    let mut out = [""; N];
    for slot in &mut out {
        *slot = fields.next()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(seconds("52989.558781"), Some(52_989_558_781_000));
        assert_eq!(seconds("0.000000001"), Some(1));
        assert_eq!(seconds("3"), Some(3_000_000_000));
        assert_eq!(seconds("7.7e-4"), Some(770_000));
        for bad in ["", ".", "-1", "nan", "1e40", "99999999999", "1.2.3", "0x4"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn letters_count_by_position() {
        let read = |w| rwbs(w).map(|(op, f)| (op, f.0));
        assert_eq!(read("FWFSM"), Some((Op::Write, 16 + 8 + 1 + 2)));
        assert_eq!(read("FF"), Some((Op::Flush, 16)));
        assert_eq!(read("FS"), Some((Op::Flush, 1)));
        assert_eq!(read("RA"), Some((Op::Read, 4)));
        assert_eq!((read("N"), read(""), read("RX"), read("é")), (None, None, None, None));
        for w in ["FWFSM", "R", "DS", "WFS", "RAM", "FF"] {
            let (op, flags) = rwbs(w).unwrap();
            assert_eq!(letters(op, flags), w);
        }
    }

    #[test]
    fn priorities_have_class_hint_and_level() {
        assert_eq!(prio("be,0,4"), Some(IoPrio::DEFAULT_BE));
        assert_eq!(prio("0x1,0,2"), Some(IoPrio { class: PrioClass::Rt, level: 2 }));
        assert_eq!(prio("none,0,0"), Some(IoPrio::default()));
        assert_eq!((prio("be"), prio("x,0,1"), prio("be,0,9")), (None, None, None));
    }
}
