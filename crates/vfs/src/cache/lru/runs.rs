//! A queue of runs of pages that grows by pieces: there may be one a cached page, so it must never be half empty.

use std::collections::VecDeque;

/// Consecutive pages of a file. Twelve bytes: there may be one a cached page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) file: u32,
    low: u32,
    high: u16,
    pub(super) pages: u16,
}

impl Run {
    pub(super) fn start(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }

    pub(super) fn end(self) -> u64 {
        self.start() + u64::from(self.pages)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a file has less than 2^48 pages")]
    pub(super) fn new(file: u32, start: u64, pages: u16) -> Self {
        Self { file, low: start as u32, high: (start >> 32) as u16, pages }
    }
}

/// Runs of a piece.
const PIECE: usize = 1024;

/// The queue. No piece is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    pieces: VecDeque<Vec<Run>>,
    /// Runs of the first piece that have left.
    left: usize,
    /// Taken again by the next piece, so that a queue in motion takes no memory.
    spare: Option<Vec<Run>>,
    len: usize,
}

impl Runs {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn back_mut(&mut self) -> Option<&mut Run> {
        self.pieces.back_mut()?.last_mut()
    }

    fn piece(&mut self) -> Vec<Run> {
        self.spare.take().unwrap_or_else(|| Vec::with_capacity(PIECE))
    }

    pub(super) fn push_back(&mut self, run: Run) {
        if self.pieces.back().is_none_or(|p| p.len() == PIECE) {
            let piece = self.piece();
            self.pieces.push_back(piece);
        }
        if let Some(last) = self.pieces.back_mut() {
            last.push(run);
            self.len += 1;
        }
    }

    pub(super) fn push_front(&mut self, run: Run) {
        match self.pieces.front_mut() {
            Some(first) if self.left > 0 => {
                self.left -= 1;
                first[self.left] = run;
            }
            _ => {
                let mut piece = self.piece();
                piece.push(run);
                self.pieces.push_front(piece);
            }
        }
        self.len += 1;
    }

    pub(super) fn pop_front(&mut self) -> Option<Run> {
        let first = self.pieces.front_mut()?;
        let run = *first.get(self.left)?;
        self.left += 1;
        self.len -= 1;
        if self.left == first.len() {
            self.left = 0;
            self.spare = self.pieces.pop_front().map(|mut piece| {
                piece.clear();
                piece
            });
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The queue does what a plain one does.
        #[test]
        fn pieces_are_one_queue(steps in prop::collection::vec((0u8..10, 1usize..3000), 1..40)) {
            let (mut runs, mut plain) = (Runs::default(), VecDeque::new());
            let mut next = 0;
            for (what, times) in steps {
                for _ in 0..times {
                    next += 1;
                    let run = Run::new(next, 1 << 40, 7);
                    match what {
                        0..=4 => { runs.push_back(run); plain.push_back(run); }
                        5 => { runs.push_front(run); plain.push_front(run); }
                        _ => prop_assert_eq!(runs.pop_front(), plain.pop_front()),
                    }
                    prop_assert_eq!(runs.len(), plain.len());
                    prop_assert_eq!(runs.back_mut(), plain.back_mut());
                }
            }
        }
    }
}
