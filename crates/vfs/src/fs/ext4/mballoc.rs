//! Where the blocks of files go: the multi-block allocator.

use std::collections::BTreeMap;

use super::groups::Group;
use super::layout::{FLEX, GROUP, Layout};
use crate::fs::age::Ageing;

/// Requests of at most this many blocks (64 KiB) share the preallocation of their CPU.
pub(super) const SMALL: u64 = 16;
/// Blocks of a CPU's preallocation.
const LOCALITY: u64 = 512;
/// So many rests of preallocations of one order a CPU keeps, and so many when there were more.
const MOST: usize = 8;
const FEWEST: usize = 5;
/// Blocks that one request can have.
pub const LARGEST: u64 = 2048;

/// Blocks in a row, on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first one.
    pub start: u64,
    /// How many.
    pub blocks: u64,
}

/// A run of blocks of a file that need a place.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The group of the file's inode.
    pub group: u64,
    /// First block of the run within the file.
    pub logical: u64,
    /// The length.
    pub blocks: u64,
    /// Blocks of the file, those of this run included.
    pub file: u64,
    /// Where the block before the run lies.
    pub left: Option<u64>,
    /// The next block of the file after the run that has a place.
    pub right: Option<u64>,
    /// No process has the file open for writing, and the run reaches the file's end.
    pub closed: bool,
    /// Directories and extent blocks take only the blocks that they need.
    pub exact: bool,
    /// Of a regular file, also the block of its extents: it lies behind the first group of a flex group.
    pub of_file: bool,
}

impl Request {
    fn is_small(&self) -> bool {
        (self.logical + self.blocks).max(self.file) <= SMALL
    }

    /// Whether the file takes blocks behind those of the last one that did. One that will not grow takes only what it
    /// needs, where its inode is.
    fn streams(&self) -> bool {
        !self.is_small() && !self.exact && !self.closed
    }
}

/// A file's preallocation: logical start, place, blocks.
#[derive(Clone, Copy, Debug)]
struct Reserve {
    logical: u64,
    start: u64,
    blocks: u64,
}

/// The free space of a file system.
#[derive(Clone, Debug)]
pub struct Allocator {
    layout: Layout,
    groups: Vec<Option<Box<Group>>>,
    /// What is left of each CPU's preallocations.
    locality: Vec<Vec<Extent>>,
    reserves: BTreeMap<u32, Vec<Reserve>>,
    /// The group in which the last stream allocation ended.
    stream: u64,
    free: u64,
    /// Free blocks of each flex group.
    in_flex: Vec<u64>,
    /// No bitmap has been read since the mount.
    unread: bool,
    /// What was taken before, group by group.
    ageing: Option<Ageing>,
}

impl Allocator {
    /// An empty file system with its journal.
    #[must_use]
    pub fn new(layout: Layout, cpus: usize, ageing: Option<Ageing>) -> Self {
        let groups = usize::try_from(layout.groups).unwrap_or(0);
        let in_flex = layout.free_in_flex(ageing);
        let runs = layout.journal_runs.clone();
        let mut this = Self {
            layout,
            groups: vec![None; groups],
            locality: vec![Vec::new(); cpus],
            reserves: BTreeMap::new(),
            stream: 0,
            free: in_flex.iter().sum(),
            in_flex,
            unread: false,
            ageing,
        };
        runs.into_iter().for_each(|(at, blocks)| this.take_range(at, blocks));
        this
    }

    /// The same on a disk where groups are looked for among those whose bitmaps have been read. Right after the mount there are
    /// none: the first file gets what it asks for, where the first free blocks are.
    #[must_use]
    pub fn with_lists(self, by_lists: bool) -> Self {
        Self { unread: by_lists, ..self }
    }

    /// All bitmaps have been read: some seconds after the mount.
    pub fn prefetched(&mut self) {
        self.unread = false;
    }

    /// Free blocks, those in preallocations not counted.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Blocks in preallocations.
    #[must_use]
    pub fn preallocated(&self) -> u64 {
        let files = self.reserves.values().flatten().map(|r| r.blocks);
        files.chain(self.locality.iter().flatten().map(|e| e.blocks)).sum()
    }

    /// Gives all preallocations back.
    fn discard(&mut self) {
        for file in self.reserves.keys().copied().collect::<Vec<_>>() {
            self.close(file);
        }
        for cpu in 0..self.locality.len() {
            std::mem::take(&mut self.locality[cpu]).into_iter().for_each(|e| self.release(e));
        }
    }

    /// Free blocks of a flex group.
    #[must_use]
    pub fn free_in(&self, flex: u64) -> u64 {
        self.in_flex.get(usize::try_from(flex).unwrap_or(usize::MAX)).copied().unwrap_or(0)
    }

    fn group(&mut self, group: u64) -> &mut Group {
        let slot = &mut self.groups[usize::try_from(group).unwrap_or(usize::MAX)];
        let (layout, ageing) = (&self.layout, self.ageing);
        slot.get_or_insert_with(|| {
            let (from, to) = layout.free(group);
            let mut fresh = Group::new(small(from), small(to));
            let taken = ageing.map_or_else(Vec::new, |a| layout.aged(a, group).0);
            taken.into_iter().for_each(|(a, b)| fresh.take(small(a), small(b)));
            Box::new(fresh)
        })
    }

    fn take_range(&mut self, start: u64, blocks: u64) {
        self.each_group(start, blocks, |group, from, to| group.take(from, to));
        self.free -= blocks;
    }

    /// Gives blocks back.
    pub fn release(&mut self, extent: Extent) {
        self.each_group(extent.start, extent.blocks, |group, from, to| group.release(from, to));
        self.free += extent.blocks;
    }

    fn each_group(&mut self, start: u64, blocks: u64, mut f: impl FnMut(&mut Group, u32, u32)) {
        let mut at = start;
        while at < start + blocks {
            let end = (start + blocks).min((at / GROUP + 1) * GROUP);
            let group = self.group(at / GROUP);
            let before = u64::from(group.blocks());
            f(group, small(at % GROUP), small((end - 1) % GROUP + 1));
            let after = u64::from(group.blocks());
            let flex = at / GROUP / self.layout.format.flex;
            if let Some(free) = self.in_flex.get_mut(usize::try_from(flex).unwrap_or(usize::MAX)) {
                *free = *free + after - before;
            }
            at = end;
        }
    }

    /// A place for the run or for its beginning. Where there is none others lose their preallocations. `None`: the file system
    /// is full.
    pub fn allocate(&mut self, file: u32, cpu: usize, request: &Request) -> Option<Extent> {
        self.place(file, cpu, request).or_else(|| {
            self.discard();
            self.place(file, cpu, request)
        })
    }

    fn place(&mut self, file: u32, cpu: usize, request: &Request) -> Option<Extent> {
        if let Some(extent) = self.take_reserve(file, request) {
            return Some(extent);
        }
        if request.exact || request.closed && !request.is_small() {
            return self.find(request, request.blocks);
        }
        if std::mem::take(&mut self.unread)
            && let Some(extent) = self.scan(request, request.blocks)
        {
            self.take_range(extent.start, extent.blocks);
            return Some(extent);
        }
        if request.is_small() {
            return self.take_locality(cpu, request);
        }
        self.stream(file, request)
    }

    /// A place from the file's preallocation at this position.
    fn take_reserve(&mut self, file: u32, request: &Request) -> Option<Extent> {
        let list = self.reserves.get_mut(&file)?;
        let holds = |r: &Reserve| (r.logical..r.logical + r.blocks).contains(&request.logical);
        // Another one may begin at the same page.
        let reserve = list.remove(list.iter().position(holds)?);
        let skip = request.logical - reserve.logical;
        let blocks = request.blocks.min(reserve.blocks - skip);
        let start = reserve.start + skip;
        let after = skip + blocks;
        for (from, to) in [(0, skip), (after, reserve.blocks)] {
            if from < to {
                list.push(Reserve {
                    logical: reserve.logical + from,
                    start: reserve.start + from,
                    blocks: to - from,
                });
            }
        }
        Some(Extent { start, blocks })
    }

    /// The last writer has closed the file. Frees the file's preallocation.
    pub fn close(&mut self, file: u32) {
        for reserve in self.reserves.remove(&file).unwrap_or_default() {
            self.release(Extent { start: reserve.start, blocks: reserve.blocks });
        }
    }

    /// Small files share their CPU's preallocations, whatever their directory: of those with enough left, the one nearest
    /// to where the file would like to lie. What a file finds too short stays for others.
    fn take_locality(&mut self, cpu: usize, request: &Request) -> Option<Extent> {
        let goal = request.left.map_or_else(|| self.start_group(request) * GROUP, |l| l + 1);
        let kept = &self.locality[cpu];
        let fitting = (0..kept.len()).filter(|i| kept[*i].blocks >= request.blocks);
        let own = match fitting.min_by_key(|i| kept[*i].start.abs_diff(goal)) {
            Some(own) => self.locality[cpu].remove(own),
            None => self.find(&Request { left: None, ..*request }, LOCALITY)?,
        };
        let blocks = request.blocks.min(own.blocks);
        self.keep(cpu, Extent { start: own.start + blocks, blocks: own.blocks - blocks });
        Some(Extent { start: own.start, blocks })
    }

    /// Keeps what is left of a preallocation, by size. Of more than eight of the same order the smallest go until five are
    /// left.
    fn keep(&mut self, cpu: usize, rest: Extent) {
        if rest.blocks == 0 {
            return;
        }
        let order = |e: &Extent| e.blocks.ilog2().min(LOCALITY.ilog2());
        let all = &mut self.locality[cpu];
        all.insert(all.partition_point(|e| e.blocks <= rest.blocks), rest);
        let first = all.partition_point(|e| order(e) < order(&rest));
        let same = all.iter().filter(|e| order(e) == order(&rest)).count();
        if same > MOST {
            for old in all.drain(first..first + same - FEWEST).collect::<Vec<_>>() {
                self.release(old);
            }
        }
    }

    /// A larger file gets more than it needs now; the rest is kept for its next blocks.
    fn stream(&mut self, file: u32, request: &Request) -> Option<Extent> {
        let (from, to) = window(request);
        let ahead = request.logical - from;
        let goal = request.left.map(|l| (l + 1).saturating_sub(ahead));
        let found =
            self.find(&Request { left: goal.map(|g| g.saturating_sub(1)), ..*request }, to - from)?;
        self.stream = (found.start + found.blocks - 1) / GROUP;
        // Less than the window was free: it is for the run.
        let skip = if found.blocks == to - from { ahead } else { 0 };
        let logical = request.logical - skip;
        let blocks = request.blocks.min(found.blocks - skip);
        let list = self.reserves.entry(file).or_default();
        for (a, b) in [(0, skip), (skip + blocks, found.blocks)] {
            if a < b {
                list.push(Reserve { logical: logical + a, start: found.start + a, blocks: b - a });
            }
        }
        Some(Extent { start: found.start + skip, blocks })
    }

    /// Free blocks: `wanted` in a row, or as many as the longest stretch has.
    fn find(&mut self, request: &Request, wanted: u64) -> Option<Extent> {
        let extent = self
            .at_goal(request.left, wanted)
            .or_else(|| self.buddy(request, wanted))
            .or_else(|| self.scan(request, wanted))
            .or_else(|| self.longest(request, wanted))?;
        self.take_range(extent.start, extent.blocks);
        Some(extent)
    }

    /// Behind the blocks that the file has, if all that is wanted is free there: a smaller hole is left (event logs of
    /// `append_fsync_4`).
    fn at_goal(&mut self, left: Option<u64>, wanted: u64) -> Option<Extent> {
        let start = left? + 1;
        if start >= self.layout.blocks {
            return None;
        }
        let run = u64::from(self.group(start / GROUP).run(small(start % GROUP)));
        (run >= wanted).then_some(Extent { start, blocks: wanted })
    }

    /// The group that a search begins in: behind the last stream, also when there was no room behind the file's own blocks;
    /// or the one after the first of the inode's flex group, which is for directories.
    fn start_group(&self, request: &Request) -> u64 {
        let first = request.group / FLEX * FLEX;
        if request.streams() {
            self.stream
        } else if let Some(left) = request.left {
            left / GROUP
        } else if request.of_file {
            (first + 1).min(self.layout.groups - 1)
        } else {
            first
        }
    }

    fn groups_from(&self, first: u64) -> impl Iterator<Item = u64> + use<> {
        let groups = self.layout.groups;
        (0..groups).map(move |n| (first + n) % groups)
    }

    fn buddy(&mut self, request: &Request, wanted: u64) -> Option<Extent> {
        if !wanted.is_power_of_two() || wanted < 4 || request.exact {
            return None;
        }
        for group in self.groups_from(self.start_group(request)) {
            if group % FLEX == 0 {
                continue;
            }
            if let Some(at) = self.group(group).piece(small(wanted)) {
                return Some(Extent { start: group * GROUP + u64::from(at), blocks: wanted });
            }
        }
        None
    }

    fn scan(&mut self, request: &Request, wanted: u64) -> Option<Extent> {
        if wanted > GROUP {
            return None;
        }
        for group in self.groups_from(self.start_group(request)) {
            if let Some(at) = self.group(group).first(0, small(wanted)) {
                return Some(Extent { start: group * GROUP + u64::from(at), blocks: wanted });
            }
        }
        None
    }

    fn longest(&mut self, request: &Request, wanted: u64) -> Option<Extent> {
        let mut best: Option<Extent> = None;
        for group in self.groups_from(self.start_group(request)) {
            if let Some((at, blocks)) = self.group(group).longest()
                && best.is_none_or(|b| u64::from(blocks) > b.blocks)
            {
                let start = group * GROUP + u64::from(at);
                best = Some(Extent { start, blocks: u64::from(blocks).min(wanted) });
            }
        }
        best
    }
}

/// The blocks of the file that are allocated together with a run.
fn window(request: &Request) -> (u64, u64) {
    let end = request.logical + request.blocks;
    let file = request.file.max(end);
    // Blocks of 4 KiB: 16 KiB to 1 MiB, then aligned pieces of 2, 4 and 8 MiB.
    let (mut from, mut to) = match file {
        0..=256 => (0, file.next_power_of_two().max(4)),
        257..=1024 => aligned(request.logical, end, 512),
        1025..=2048 => aligned(request.logical, end, 1024),
        _ => aligned(request.logical, end, LARGEST),
    };
    if request.left.is_some() {
        from = from.max(request.logical);
    }
    if let Some(right) = request.right {
        to = to.min(right);
    }
    (
        from.min(request.logical),
        to.max(end).min(from.min(request.logical) + LARGEST.max(request.blocks)),
    )
}

fn aligned(logical: u64, end: u64, piece: u64) -> (u64, u64) {
    let from = logical / piece * piece;
    (from, from + piece.max(end - from))
}

fn small(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
