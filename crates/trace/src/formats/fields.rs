//! I/Os of formats that have one I/O a line.

use iosched_types::{Bytes, Nanos, Op};

use super::text::Line;
use crate::event::{Io, Item};
use crate::tally::Reason;
use crate::trace::Tables;
use crate::words;

/// What a field should have been.
pub(super) const TIME: Reason = "the time is no number, or beyond the clock's range";
pub(super) const NUMBER: Reason = "offset and length are whole numbers";
pub(super) const OPERATION: Reason = "the operation is neither read nor write";
pub(super) const COLUMNS: Reason = "the line has too few fields";
pub(super) const BEYOND: Reason = "the sector is beyond any disk";
pub(super) const EMPTY: Reason = "the length is zero";

/// An I/O by its place in bytes; `latency` where the format has one.
pub(super) fn io(
    tables: &mut Tables,
    at: Nanos,
    op: Op,
    disk: &str,
    place: (Bytes, Bytes),
    latency: Option<Nanos>,
) -> Line {
    if place.1 == 0 && op != Op::Flush {
        return Line::Skip(EMPTY);
    }
    let Some((offset, len)) = words::bytes_on_disk(place.0, place.1) else {
        return Line::Skip(BEYOND);
    };
    let mut io = Io::new(at, op, tables.disks.of(disk), offset, len);
    io.done = latency.map(|l| at.saturating_add(l));
    Line::Item(Item::Io(io))
}

/// `R`, `W`, `Read`, `write` …
pub(super) fn read_or_write(word: &str) -> Option<Op> {
    match word.as_bytes() {
        [b'R' | b'r'] => Some(Op::Read),
        [b'W' | b'w'] => Some(Op::Write),
        _ if word.eq_ignore_ascii_case("read") => Some(Op::Read),
        _ if word.eq_ignore_ascii_case("write") => Some(Op::Write),
        _ => None,
    }
}

/// A number of 512-byte blocks as bytes.
pub(super) fn blocks(word: &str) -> Option<Bytes> {
    word.parse::<u64>().ok().map(|n| n.saturating_mul(512))
}

/// Whether a line has `N` fields between commas that are whole numbers where `numbers` has their index.
pub(super) fn shaped<const N: usize>(line: &str, numbers: &[usize]) -> bool {
    line.split(',').count() == N
        && words::commas::<N>(line)
            .is_some_and(|f| numbers.iter().all(|n| f[*n].parse::<u64>().is_ok()))
}
