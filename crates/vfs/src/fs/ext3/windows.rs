//! Where the blocks of files go in ext3: block by block from a goal on, within a window that is reserved for the file.
//!
//! A file that is written has a window of 8 blocks, which no other file's overlaps. When it is used up, the next one is
//! looked for behind it; it is twice as long if more than half of the last was used, up to 1,027 blocks. So files that
//! grow at the same time lie in runs of 8, 16, 32 … 1,027 blocks.

use std::collections::BTreeMap;

use crate::fs::age::Ageing;
use crate::fs::ext4::groups::Group;
use crate::fs::ext4::layout::{GROUP, Layout};
use crate::fs::ext4::mballoc::{Extent, Request};

const FIRST: u64 = 8;
const LARGEST: u64 = 1027;
/// Files of different tasks begin in different sixteenths of their group.
pub const COLOURS: u64 = 16;

/// A stretch reserved for a file.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u64,
    end: u64,
    /// Blocks that came from it.
    used: u64,
}

/// The free space of a file system.
#[derive(Clone, Debug)]
pub struct Space {
    layout: Layout,
    groups: Vec<Option<Box<Group>>>,
    windows: BTreeMap<u32, Window>,
    /// All windows by their start.
    taken: BTreeMap<u64, u64>,
    /// The length of the file's next window.
    lengths: BTreeMap<u32, u64>,
    free: u64,
    /// Free blocks of each flex group; without such, of each group.
    in_flex: Vec<u64>,
    /// What was taken before, group by group.
    ageing: Option<Ageing>,
}

impl Space {
    /// An empty file system with its journal.
    #[must_use]
    pub fn new(layout: Layout, ageing: Option<Ageing>) -> Self {
        let groups = usize::try_from(layout.groups).unwrap_or(0);
        let in_flex = layout.free_in_flex(ageing);
        let runs = layout.journal_runs.clone();
        let mut this = Self {
            layout,
            groups: vec![None; groups],
            windows: BTreeMap::new(),
            taken: BTreeMap::new(),
            lengths: BTreeMap::new(),
            free: in_flex.iter().sum(),
            in_flex,
            ageing,
        };
        runs.into_iter().for_each(|(at, blocks)| this.take(at, blocks));
        this
    }

    /// Free blocks.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.free
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

    fn each(&mut self, start: u64, blocks: u64, mut f: impl FnMut(&mut Group, u32, u32)) {
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

    /// Takes free blocks.
    pub fn take(&mut self, start: u64, blocks: u64) {
        self.each(start, blocks, |group, from, to| group.take(from, to));
        self.free -= blocks;
    }

    /// Gives blocks back.
    pub fn release(&mut self, extent: Extent) {
        self.each(extent.start, extent.blocks, |group, from, to| group.release(from, to));
        self.free += extent.blocks;
    }

    /// The last writer has closed the file: its window is given up.
    pub fn close(&mut self, file: u32) {
        self.drop_window(file);
        self.lengths.remove(&file);
    }

    fn drop_window(&mut self, file: u32) -> Option<Window> {
        let window = self.windows.remove(&file)?;
        self.taken.remove(&window.start);
        Some(window)
    }

    /// A place for the run or for its beginning. `None`: the file system is full.
    pub fn allocate(&mut self, file: u32, colour: u64, request: &Request) -> Option<Extent> {
        let goal = match request.left {
            Some(left) => (left + 1).min(self.layout.blocks - 1),
            None => request.group * GROUP + colour % COLOURS * (GROUP / COLOURS),
        };
        let extent = if request.exact {
            let (start, free) = self.next_free(goal)?;
            Extent { start, blocks: request.blocks.min(free) }
        } else {
            self.in_window(file, goal, request.blocks)?
        };
        self.take(extent.start, extent.blocks);
        Some(extent)
    }

    fn in_window(&mut self, file: u32, goal: u64, blocks: u64) -> Option<Extent> {
        let mut goal = goal;
        // A window whose rest is taken is followed by another one.
        while let Some(window) = self.window_at(file, goal) {
            let from = if (window.start..window.end).contains(&goal) { goal } else { window.start };
            if let Some((start, free)) = self.free_within(from, window.end) {
                let blocks = blocks.min(free);
                if let Some(w) = self.windows.get_mut(&file) {
                    w.used += blocks;
                }
                return Some(Extent { start, blocks });
            }
            goal = window.end % self.layout.blocks;
        }
        // Windows of others have all that is left.
        let (start, free) = self.next_free(goal)?;
        Some(Extent { start, blocks: blocks.min(free) })
    }

    /// The file's window, if the goal is in it, or a new one.
    fn window_at(&mut self, file: u32, goal: u64) -> Option<Window> {
        match self.windows.get(&file) {
            Some(w) if (w.start..w.end).contains(&goal) => Some(*w),
            _ => self.open_window(file, goal),
        }
    }

    /// Reserves a window from the goal on.
    fn open_window(&mut self, file: u32, goal: u64) -> Option<Window> {
        let last = self.drop_window(file);
        let length = self.lengths.entry(file).or_insert(FIRST);
        if let Some(w) = last
            && w.used * 2 > w.end - w.start
        {
            *length = (*length * 2).min(LARGEST);
        }
        let length = *length;
        let (start, end) = self.room_for_window(goal, length)?;
        let window = Window { start, end, used: 0 };
        self.windows.insert(file, window);
        self.taken.insert(start, end);
        Some(window)
    }

    /// From the goal on, around the end of the device: the first stretch in a group that no window overlaps and that
    /// begins with a free block.
    fn room_for_window(&mut self, goal: u64, length: u64) -> Option<(u64, u64)> {
        let (mut at, mut turned) = (goal, false);
        loop {
            let Some((free, _)) = self.free_within(at, self.layout.blocks) else {
                if std::mem::replace(&mut turned, true) {
                    return None;
                }
                at = 0;
                continue;
            };
            if turned && free >= goal {
                return None;
            }
            let end = (free + length).min((free / GROUP + 1) * GROUP).min(self.layout.blocks);
            match self.taken.range(..end).next_back() {
                Some((_, other)) if *other > free => at = *other,
                _ => return Some((free, end)),
            }
        }
    }

    /// The first free block from `from` on and below `to`, and how many follow.
    fn free_within(&mut self, from: u64, to: u64) -> Option<(u64, u64)> {
        let mut at = from;
        while at < to {
            let group = at / GROUP;
            if group >= self.layout.groups {
                return None;
            }
            if let Some(start) = self.group(group).first(small(at % GROUP), 1) {
                let run = u64::from(self.group(group).run(start));
                let start = group * GROUP + u64::from(start);
                return (start < to).then(|| (start, run.min(to - start)));
            }
            at = (group + 1) * GROUP;
        }
        None
    }

    fn next_free(&mut self, goal: u64) -> Option<(u64, u64)> {
        let blocks = self.layout.blocks;
        self.free_within(goal, blocks).or_else(|| self.free_within(0, goal))
    }
}

fn small(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::ext3::layout::BY_1_47;

    fn append(space: &mut Space, file: u32, left: Option<u64>) -> u64 {
        let request = Request {
            group: 1,
            logical: 0,
            blocks: 1,
            file: 1,
            left,
            right: None,
            closed: false,
            exact: false,
            of_file: true,
        };
        space.allocate(file, 0, &request).unwrap().start
    }

    /// Two files that grow at the same time alternate in runs that double.
    #[test]
    fn windows_double() {
        let mut space = Space::new(Layout::of(20 << 18, BY_1_47), None);
        let mut lefts = [None, None];
        let mut runs: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..4000 {
            for (file, left) in lefts.iter_mut().enumerate() {
                let at = append(&mut space, file as u32, *left);
                match (*left, runs[file].last_mut()) {
                    (Some(l), Some(run)) if l + 1 == at => *run += 1,
                    _ => runs[file].push(1),
                }
                *left = Some(at);
            }
        }
        for of in &runs {
            assert_eq!(of[..8], [8, 16, 32, 64, 128, 256, 512, 1024], "{of:?}");
        }
    }

    #[test]
    fn a_file_alone_lies_in_one_piece() {
        let mut space = Space::new(Layout::of(20 << 18, BY_1_47), None);
        let first = append(&mut space, 1, None);
        let mut left = first;
        for n in 1..3000 {
            left = append(&mut space, 1, Some(left));
            assert_eq!(left, first + n);
        }
        let free = space.free();
        space.close(1);
        space.release(Extent { start: first, blocks: 3000 });
        assert_eq!(space.free(), free + 3000);
    }

    #[test]
    fn the_last_block_is_found() {
        let mut space = Space::new(Layout::of(1 << 17, BY_1_47), None);
        let mut left = None;
        let mut n = 0;
        let free = space.free();
        let request = |left| Request {
            group: 0,
            logical: 0,
            blocks: 1 << 20,
            file: 1,
            left,
            right: None,
            closed: false,
            exact: false,
            of_file: true,
        };
        while let Some(e) = space.allocate(n, 0, &request(left)) {
            left = Some(e.start + e.blocks - 1);
            n = (n + 1) % 3;
        }
        assert!(free > 0);
        assert_eq!(space.free(), 0);
    }
}
