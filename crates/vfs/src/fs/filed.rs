//! The data of a transaction of `jbd`: pages in the order in which they became dirty, whoever they belong to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use iosched_types::Nanos;

use super::ranges::Ranges;

/// Pages of a file, each dirty a moment after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    file: u32,
    from: u64,
    to: u64,
    /// When the first became dirty.
    at: Nanos,
}

/// What has been filed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filed {
    /// By time.
    runs: Vec<Run>,
    there: BTreeMap<u32, Ranges>,
}

impl Filed {
    /// Files pages, the first of them now. Those that are there already keep their place.
    pub(super) fn add(&mut self, file: u32, (from, to): (u64, u64), now: Nanos) {
        let there = self.there.entry(file).or_default();
        let mut at = from;
        while at < to {
            match there.at(at) {
                Some((_, end)) => at = end,
                None => {
                    let end = there.from(at).map_or(to, |next| next.min(to));
                    there.add(at, end);
                    match self.runs.last_mut() {
                        Some(run) if run.file == file && run.to == at => run.to = end,
                        _ => self.runs.push(Run { file, from: at, to: end, at: now }),
                    }
                    at = end;
                }
            }
        }
    }

    /// The files and their pages, in the order of file numbers.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u32, (u64, u64))> + '_ {
        self.there.iter().flat_map(|(file, ranges)| ranges.iter().map(|r| (*file, r)))
    }

    /// All pages in the order in which they became dirty, where writing one takes `page`: those of writes that went on
    /// at the same time alternate.
    pub(super) fn in_order(&self, page: Nanos) -> impl Iterator<Item = (u32, (u64, u64))> + '_ {
        let mut next = 0;
        let mut begun = BinaryHeap::new();
        std::iter::from_fn(move || {
            while let Some(run) = self.runs.get(next)
                && begun.peek().is_none_or(|Reverse((at, _, _))| page > 0 && run.at < *at)
            {
                begun.push(Reverse((run.at, next, run.from)));
                next += 1;
            }
            let Reverse((at, number, from)) = begun.pop()?;
            let run = self.runs[number];
            let others = begun.peek().map(|Reverse((at, _, _))| *at);
            let other = [others, self.runs.get(next).map(|r| r.at)].into_iter().flatten().min();
            let pages = match other {
                Some(other) if page > 0 => other.saturating_sub(at).div_ceil(page).max(1),
                _ => u64::MAX,
            };
            let to = run.to.min(from.saturating_add(pages));
            if to < run.to {
                begun.push(Reverse((at + (to - from) * page, number, to)));
            }
            Some((run.file, (from, to)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(filed: &Filed, page: Nanos) -> Vec<(u32, (u64, u64))> {
        filed.in_order(page).collect()
    }

    #[test]
    fn pages_of_writes_at_the_same_time_alternate() {
        let mut filed = Filed::default();
        filed.add(7, (0, 4), 1000);
        filed.add(8, (0, 3), 1150);
        filed.add(9, (10, 12), 5000);
        let all = [
            (7, (0, 2)),
            (8, (0, 1)),
            (7, (2, 3)),
            (8, (1, 2)),
            (7, (3, 4)),
            (8, (2, 3)),
            (9, (10, 12)),
        ];
        assert_eq!(order(&filed, 100), all);
        assert_eq!(order(&filed, 0), [(7, (0, 4)), (8, (0, 3)), (9, (10, 12))]);
    }

    #[test]
    fn what_is_there_keeps_its_place() {
        let mut filed = Filed::default();
        filed.add(1, (10, 12), 0);
        filed.add(2, (0, 1), 10);
        filed.add(1, (8, 14), 20);
        filed.add(1, (14, 16), 30);
        let all = [(1, (10, 12)), (2, (0, 1)), (1, (8, 10)), (1, (12, 16))];
        assert_eq!(order(&filed, 0), all);
        assert_eq!(filed.pages().collect::<Vec<_>>(), [(1, (8, 16)), (2, (0, 1))]);
    }
}
