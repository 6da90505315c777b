//! Blocks that several files have (`reflink`): a copy within the file system takes those of its source.
//!
//! A tree of each group counts the owners of shared blocks. A file that is written gives its share up, page by page, and the
//! written pages get blocks of their own when they are written back ([`super::cow`]).

use std::collections::BTreeMap;

use super::layout::{header, root};
use super::metadata::{BLOCK, FIRST};
use super::{State, Xfs};
use crate::fs::FileSystem as _;
use crate::fs::extents::Mapped;
use crate::kernel::Kernel;

/// Bytes of a record, and where they begin in the block.
const RECORD: u64 = 12;
const RECORDS_AT: u64 = 56;

/// Owners of blocks beyond the first: from → to, how many. Neighbours with as many are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners(BTreeMap<u64, (u64, u32)>);

impl Owners {
    /// Cuts a stretch in two.
    fn part(&mut self, at: u64) {
        if let Some((from, (to, n))) = self.0.range(..at).next_back().map(|(a, b)| (*a, *b))
            && at < to
        {
            self.0.insert(from, (at, n));
            self.0.insert(at, (to, n));
        }
    }

    /// Joins what begins at a block with what ends there.
    fn join(&mut self, at: u64) {
        let before = self.0.range(..at).next_back().map(|(a, b)| (*a, *b));
        if let (Some((from, (end, n))), Some((to, m))) = (before, self.0.get(&at).copied())
            && end == at
            && n == m
        {
            self.0.remove(&at);
            self.0.insert(from, (to, n));
        }
    }

    /// The parts of a range, each with the owners that it has beyond the first.
    pub(super) fn parts(&self, from: u64, to: u64) -> Vec<(u64, u64, u32)> {
        let mut out = Vec::new();
        let mut at = from;
        while at < to {
            let holds = self.0.range(..=at).next_back().filter(|(_, (end, _))| at < *end);
            let (end, n) = match holds {
                Some((_, (end, n))) => (*end, *n),
                None => (self.0.range(at..).next().map_or(to, |(a, _)| *a), 0),
            };
            out.push((at, end.min(to), n));
            at = end;
        }
        out
    }

    fn set(&mut self, from: u64, to: u64, change: impl Fn(u32) -> u32) {
        self.part(from);
        self.part(to);
        for (a, b, n) in self.parts(from, to) {
            match change(n) {
                0 => _ = self.0.remove(&a),
                n => _ = self.0.insert(a, (b, n)),
            }
            self.join(a);
        }
        self.join(to);
    }

    /// One more has these blocks.
    fn add(&mut self, from: u64, to: u64) {
        self.set(from, to, |n| n + 1);
    }

    /// One has them no more. → those that nobody has now
    pub(super) fn drop(&mut self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let alone = self.parts(from, to).into_iter().filter(|(_, _, n)| *n == 0);
        let alone = alone.map(|(a, b, _)| (a, b)).collect();
        self.set(from, to, |n| n.saturating_sub(1));
        alone
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn any(&self, from: u64, to: u64) -> bool {
        !self.0.is_empty() && self.parts(from, to).iter().any(|(_, _, n)| *n > 0)
    }
}

impl Xfs {
    /// Reads what a change of the owners of a group's blocks needs.
    pub(super) async fn read_owners(&self, k: &Kernel, group: u64) {
        let (agf, tree) = self
            .with(|s| (s.layout.header(group, header::AGF), s.layout.sector(group, root::OWNERS)));
        self.read(k, agf, 1).await;
        self.read(k, tree, BLOCK).await;
    }

    /// Gives pages of a file to another one, too. Not pages that have no place, and not where the other has some already.
    pub(super) async fn share_pages(
        &self,
        k: &Kernel,
        (source, at): (u32, u64),
        (target, to): (u32, u64),
        pages: u64,
    ) -> bool {
        if !self
            .with(|s| s.options.shares && source != target && s.is_bare(target, (to, to + pages)))
        {
            return false;
        }
        k.write_and_wait(source, self).await;
        self.convert(k, source).await;
        self.begin(k).await;
        for m in self.with(|s| s.mapped(source, (at, at + pages))) {
            let group = self.with(|s| s.layout.group_of(m.start));
            self.read_owners(k, group).await;
            self.with(|s| {
                // Others may have cut or written the files while the tree was read.
                let (end, at_target) = (m.logical + m.blocks, to + (m.logical - at));
                if s.mapped(source, (m.logical, end)) != [m]
                    || !s.is_bare(target, (at_target, at_target + m.blocks))
                {
                    return;
                }
                s.owners.add(m.start, m.start + m.blocks);
                s.owners_changed(m);
                if let Some(inode) = s.inodes.get_mut(target) {
                    inode.extents.map(Mapped { logical: at_target, ..m });
                }
            });
        }
        self.with(|s| {
            if let Some(inode) = s.inodes.get_mut(target) {
                inode.size = inode.size.max(to + pages);
            }
            s.changed(k, source, true);
            s.changed(k, target, true);
        });
        true
    }
}

impl State {
    /// Whether a file has nothing in a range, in memory or on the disk.
    fn is_bare(&self, file: u32, (from, to): (u64, u64)) -> bool {
        self.inodes.get(file).is_some_and(|i| {
            let next = i.delayed.from(from);
            let copy = i.copies.from(from);
            next.is_none_or(|n| n >= to)
                && copy.is_none_or(|n| n >= to)
                && i.extents.blocks(from, to).next().is_none()
                && i.copied.blocks(from, to).next().is_none()
        })
    }

    /// Where pages of a file lie. Those never written count as a hole.
    pub(super) fn mapped(&self, file: u32, (from, to): (u64, u64)) -> Vec<Mapped> {
        let mut out = Vec::new();
        let Some(inode) = self.inodes.get(file) else { return out };
        let mut at = from;
        while at < to {
            let Some(m) = inode.extents.holds(at) else {
                at = inode.extents.after(at).map_or(to, |m| m.logical);
                continue;
            };
            if let Some((_, end)) = inode.unwritten.at(at) {
                at = end;
                continue;
            }
            let end = to.min(m.logical + m.blocks);
            let end = inode.unwritten.from(at).map_or(end, |u| u.min(end));
            let start = m.start + (at - m.logical);
            out.push(Mapped { logical: at, start, blocks: end - at });
            at = end;
        }
        out
    }

    /// Records of the owners' tree change from those of these blocks on.
    pub(super) fn owners_changed(&mut self, m: Mapped) {
        let group = self.layout.group_of(m.start);
        let first = group * self.layout.group;
        let place = |n: usize| (RECORDS_AT + RECORD * n as u64).min(BLOCK * 512);
        let from = place(self.owners.0.range(first..m.start).count());
        let to = place(self.owners.0.range(first..first + self.layout.group).count());
        let tree = self.layout.sector(group, root::OWNERS);
        self.log.change(tree, BLOCK, FIRST);
        self.log.change(tree, BLOCK, (from.saturating_sub(RECORD).max(RECORDS_AT), to));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Beside a count for each block.
        #[test]
        fn owners_are_counted(steps in prop::collection::vec((0..40_u64, 1..15_u64, any::<bool>()), 1..60)) {
            let (mut owners, mut counts) = (Owners::default(), [0_u32; 60]);
            for (from, n, add) in steps {
                let span = from as usize..(from + n) as usize;
                if add {
                    owners.add(from, from + n);
                    counts[span].iter_mut().for_each(|c| *c += 1);
                } else {
                    let alone: Vec<u64> =
                        owners.drop(from, from + n).into_iter().flat_map(|(a, b)| a..b).collect();
                    let wanted: Vec<u64> =
                        span.clone().filter(|b| counts[*b] == 0).map(|b| b as u64).collect();
                    prop_assert_eq!(alone, wanted);
                    counts[span].iter_mut().for_each(|c| *c = c.saturating_sub(1));
                }
                for (a, b, n) in owners.parts(0, 60) {
                    prop_assert!(counts[a as usize..b as usize].iter().all(|c| *c == n));
                }
                let ends: Vec<(u64, u64, u32)> = owners.0.iter().map(|(a, (b, n))| (*a, *b, *n)).collect();
                prop_assert!(ends.windows(2).all(|w| w[0].1 < w[1].0 || w[0].2 != w[1].2));
            }
        }
    }
}
