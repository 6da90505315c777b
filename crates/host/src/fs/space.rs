//! Free room on the disk: what is taken next lies behind what was taken last.

use std::collections::BTreeMap;

/// Free runs of pages, by their first page.
#[derive(Debug)]
pub(super) struct Space {
    free: BTreeMap<u64, u64>,
    left: u64,
    next: u64,
}

impl Space {
    pub(super) fn new(pages: u64) -> Space {
        let free = (pages > 0).then_some((0, pages)).into_iter().collect();
        Space { free, left: pages, next: 0 }
    }

    /// Free pages.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Takes at most `pages`, in one run: at `goal` if that is free, else where the last run ended. `None` when the
    /// disk is full.
    pub(super) fn take(&mut self, goal: Option<u64>, pages: u64) -> Option<(u64, u64)> {
        let run = goal.and_then(|g| self.run_at(g)).or_else(|| self.run_at(self.next));
        let (from, start, len) = match run {
            Some(run) => run,
            None => {
                let after = self.free.range(self.next..).next();
                let (s, l) = after.or_else(|| self.free.iter().next()).map(|(s, l)| (*s, *l))?;
                (s, s, l)
            }
        };
        self.free.remove(&start);
        let n = pages.min(start + len - from);
        if from > start {
            self.free.insert(start, from - start);
        }
        if from + n < start + len {
            self.free.insert(from + n, start + len - from - n);
        }
        self.left -= n;
        self.next = from + n;
        Some((from, n))
    }

    /// The free run around a page: `(page, start, length)`.
    fn run_at(&self, page: u64) -> Option<(u64, u64, u64)> {
        let (start, len) = self.free.range(..=page).next_back()?;
        (page < start + len).then_some((page, *start, *len))
    }

    /// Gives a run back.
    pub(super) fn give(&mut self, start: u64, pages: u64) {
        self.left += pages;
        let (mut start, mut len) = (start, pages);
        if let Some(after) = self.free.remove(&(start + len)) {
            len += after;
        }
        if let Some((s, l)) = self.free.range(..start).next_back().map(|(s, l)| (*s, *l))
            && s + l == start
        {
            self.free.remove(&s);
            (start, len) = (s, l + len);
        }
        self.free.insert(start, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_grow_stay_in_one_piece_where_there_is_room() {
        let mut s = Space::new(100);
        assert_eq!(s.take(None, 10), Some((0, 10)));
        assert_eq!(s.take(Some(10), 10), Some((10, 10)));
        assert_eq!(s.take(None, 10), Some((20, 10)));
        assert_eq!(s.take(Some(20), 5), Some((30, 5)), "taken: behind the last");
        s.give(10, 10);
        s.give(0, 10);
        assert_eq!(s.free, BTreeMap::from([(0, 20), (35, 65)]));
        assert_eq!(s.take(None, 200), Some((35, 65)));
        assert_eq!(s.take(None, 200), Some((0, 20)), "from the start again");
        assert_eq!((s.take(None, 1), s.left()), (None, 0));
    }
}
