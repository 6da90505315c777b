//! Where data lie on the legs.

use iosched_types::Bytes;

use crate::params::{ArrayParams, Raid};

/// A page of the cache.
pub(super) const PAGE: Bytes = 4096;

/// Elements, rows and legs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) raid: Raid,
    pub(super) el: Bytes,
    /// Elements of a row that hold data.
    pub(super) width: u64,
    pub(super) legs: u64,
}

impl Layout {
    pub(super) fn new(p: &ArrayParams) -> Layout {
        Layout { raid: p.raid, el: p.el, width: p.width(), legs: p.legs }
    }

    pub(super) fn row(&self, element: u64) -> u64 {
        element / self.width
    }

    /// The leg of an element; of a mirrored one the first of two.
    pub(super) fn leg(&self, element: u64) -> usize {
        let (row, k) = (self.row(element), element % self.width);
        let leg = match self.raid {
            Raid::Raid0 => k,
            Raid::Raid5 => (self.parity(row) as u64 + 1 + k) % self.legs,
            Raid::Raid10 => 2 * k,
        };
        leg as usize
    }

    /// The leg with a row's parity.
    pub(super) fn parity(&self, row: u64) -> usize {
        (self.legs - 1 - row % self.legs) as usize
    }

    /// All mask bits of an element.
    pub(super) fn all(&self) -> u64 {
        mask(0, self.el / PAGE)
    }

    /// The elements of a range with the pages that it covers in each.
    pub(super) fn elements(self, at: Bytes, len: Bytes) -> impl Iterator<Item = (u64, u64)> {
        let (end, el) = (at + len, self.el);
        (at / el..end.div_ceil(el)).map(move |e| {
            let from = at.max(e * el) - e * el;
            let to = end.min((e + 1) * el) - e * el;
            (e, mask(from / PAGE, to.div_ceil(PAGE)))
        })
    }
}

/// Bits `from..to`.
pub(super) fn mask(from: u64, to: u64) -> u64 {
    let below = |n: u64| if n >= 64 { u64::MAX } else { (1 << n) - 1 };
    below(to) & !below(from)
}

/// The bytes between the first and the last page of a mask, in an element: offset and length.
pub(super) fn span(mask: u64) -> (Bytes, Bytes) {
    let from = u64::from(mask.trailing_zeros());
    let to = 64 - u64::from(mask.leading_zeros());
    (from * PAGE, (to - from) * PAGE)
}
