//! The layout that `mke2fs` 1.47 makes, with its defaults and blocks of 4 KiB. Positions are blocks of the device.
//!
//! Measured: images of 512 MiB to 2 TB.

use crate::fs::age::Ageing;

/// Blocks of a group: as many as a bitmap of one block has bits.
pub const GROUP: u64 = 32768;
/// Blocks of a group's inode table.
pub const TABLE: u64 = 512;
/// Groups that keep their bitmaps and inode tables together (`flex_bg`), in ext4.
pub const FLEX: u64 = 16;
/// Blocks of the root directory, of lost+found, and the double-indirect block of the resize inode.
const FIRST_FILES: u64 = 1 + 4 + 1;

/// What the formats differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Groups that keep their bitmaps and inode tables together.
    pub flex: u64,
    /// Inodes of a group.
    pub inodes: u64,
    /// Group descriptors in a block.
    pub descriptors: u64,
    /// Blocks of files are found through indirect blocks. Those of the journal lie between its blocks.
    pub indirect: bool,
    /// The largest journal is of 128 MiB, from 4 GiB on.
    pub small_journal: bool,
}

impl Format {
    /// ext4 by mke2fs 1.47: descriptors of 64 bytes, inodes of 256.
    pub const EXT4: Format =
        Format { flex: FLEX, inodes: 8192, descriptors: 64, indirect: false, small_journal: false };

    /// Inodes in a block of the table.
    #[must_use]
    pub const fn in_block(&self) -> u64 {
        self.inodes / TABLE
    }
}

/// The layout of an empty file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its format.
    pub format: Format,
    /// Blocks of 4 KiB.
    pub blocks: u64,
    /// Groups of them.
    pub groups: u64,
    /// Blocks of group descriptors after each copy of the superblock.
    pub descriptors: u64,
    /// Blocks kept for more of them.
    pub reserved: u64,
    /// The journal's first block and its length.
    pub journal: (u64, u64),
    /// Where it lies: its own blocks and, in ext3, its indirect blocks.
    pub journal_runs: Vec<(u64, u64)>,
}

impl Layout {
    /// A file system on a device of `blocks` blocks, at least 512 MiB. A last group that cannot hold its own tables
    /// is left out.
    #[must_use]
    pub fn new(blocks: u64) -> Self {
        Self::of(blocks, Format::EXT4)
    }

    /// The same in a format.
    #[must_use]
    pub fn of(blocks: u64, format: Format) -> Self {
        let mut layout = Self {
            format,
            blocks,
            groups: 0,
            descriptors: 0,
            reserved: 0,
            journal: (0, 0),
            journal_runs: Vec::new(),
        };
        layout.size(blocks);
        let last = layout.groups - 1;
        let rest = blocks - last * GROUP;
        if last > 0 && rest < GROUP && rest < layout.copies(last) + 2 + TABLE + 50 {
            layout.size(last * GROUP);
        }
        layout.journal = layout.place_journal();
        layout.journal_runs = layout.runs_of_journal();
        layout
    }

    fn size(&mut self, blocks: u64) {
        self.blocks = blocks;
        self.groups = blocks.div_ceil(GROUP);
        self.descriptors = self.groups.div_ceil(self.format.descriptors);
        let most = (blocks * 1024).min(1 << 32).div_ceil(GROUP).div_ceil(self.format.descriptors);
        self.reserved = most.saturating_sub(self.descriptors).min(1024);
    }

    /// Blocks of a copy of superblock and descriptors at the start of the group, 0 where there is none.
    #[must_use]
    pub fn copies(&self, group: u64) -> u64 {
        let sparse = group <= 1 || [3, 5, 7].into_iter().any(|n| is_power(group, n));
        if sparse { 1 + self.descriptors + self.reserved } else { 0 }
    }

    /// The flex group's first group and how many groups it has.
    fn flex(&self, group: u64) -> (u64, u64) {
        let flex = self.format.flex;
        let first = group / flex * flex;
        (first, flex.min(self.groups - first))
    }

    fn base(&self, group: u64) -> u64 {
        let first = self.flex(group).0;
        first * GROUP + self.copies(first)
    }

    /// Block bitmap of a group.
    #[must_use]
    pub fn block_bitmap(&self, group: u64) -> u64 {
        self.base(group) + group % self.format.flex
    }

    /// Inode bitmap of a group.
    #[must_use]
    pub fn inode_bitmap(&self, group: u64) -> u64 {
        self.base(group) + self.flex(group).1 + group % self.format.flex
    }

    /// First block of a group's inode table.
    #[must_use]
    pub fn inode_table(&self, group: u64) -> u64 {
        self.base(group) + 2 * self.flex(group).1 + TABLE * (group % self.format.flex)
    }

    /// The block of the inode table in which an inode lies, counted from 1.
    #[must_use]
    pub fn inode_block(&self, inode: u64) -> u64 {
        let (group, index) = (self.group_of(inode), (inode - 1) % self.format.inodes);
        self.inode_table(group) + index / self.format.in_block()
    }

    /// The group of an inode.
    #[must_use]
    pub fn group_of(&self, inode: u64) -> u64 {
        (inode - 1) / self.format.inodes
    }

    /// The block with a group's descriptor.
    #[must_use]
    pub fn descriptor_block(&self, group: u64) -> u64 {
        1 + group / self.format.descriptors
    }

    /// The root directory's block.
    #[must_use]
    pub fn root(&self) -> u64 {
        self.metadata_end(0)
    }

    /// The block after bitmaps and tables in the first group of a flex group.
    fn metadata_end(&self, first: u64) -> u64 {
        self.base(first) + self.flex(first).1 * (2 + TABLE)
    }

    /// The free stretches of a group, in a file system that is empty except for the journal: start and end, from the
    /// group's start.
    #[must_use]
    pub fn free(&self, group: u64) -> (u64, u64) {
        let start = group * GROUP;
        let end = (self.blocks - start).min(GROUP);
        let used = if group.is_multiple_of(self.format.flex) {
            let files = if group == 0 { FIRST_FILES } else { 0 };
            self.metadata_end(group) + files - start
        } else {
            self.copies(group)
        };
        (used.min(end), end)
    }

    /// Free blocks of each flex group, those of the journal counted.
    #[must_use]
    pub fn free_in_flex(&self, ageing: Option<Ageing>) -> Vec<u64> {
        let free = |group: u64| {
            let (from, to) = self.free(group);
            to - from - ageing.map_or(0, |a| self.aged(a, group).1)
        };
        let starts = (0..self.groups).step_by(usize::try_from(self.format.flex).unwrap_or(1));
        starts.map(|first| (first..first + self.flex(first).1).map(free).sum()).collect()
    }

    /// What an aged file system has taken of a group, from the group's start, and how many blocks that is. The journal is
    /// from `mkfs`.
    #[must_use]
    pub fn aged(&self, ageing: Ageing, group: u64) -> (Vec<(u64, u64)>, u64) {
        let (mut at, end) = self.free(group);
        let start = group * GROUP;
        let mut taken = Vec::new();
        for (from, blocks) in &self.journal_runs {
            let (a, b) =
                (from.saturating_sub(start).max(at), (from + blocks).saturating_sub(start));
            if *from < start + end && b > at {
                taken.extend(ageing.taken(group, at, a));
                at = b.min(end);
            }
        }
        taken.extend(ageing.taken(group, at, end));
        let blocks = taken.iter().map(|(a, b)| b - a).sum();
        (taken, blocks)
    }

    /// What lies in a block: superblock, group descriptors, block bitmaps, inode bitmaps, inode tables, journal, or
    /// anything else (`-`).
    #[must_use]
    pub fn class(&self, block: u64) -> &'static str {
        let group = block / GROUP;
        if group >= self.groups {
            return "-";
        }
        let copies = self.copies(group);
        let (first, n) = self.flex(group);
        let inside = block.wrapping_sub(self.base(first));
        match () {
            () if self.journal_runs.iter().any(|(at, n)| (*at..at + n).contains(&block)) => "JNL",
            () if block.is_multiple_of(GROUP) && copies > 0 => "SB",
            () if block % GROUP < copies => "GDT",
            () if inside < n => "BBM",
            () if inside < 2 * n => "IBM",
            () if inside < (2 + TABLE) * n => "ITAB",
            () => "-",
        }
    }

    fn place_journal(&self) -> (u64, u64) {
        let length = match self.format.small_journal {
            true if self.blocks >= 1 << 20 => 32_768,
            _ => journal_blocks(self.blocks),
        };
        if self.format.indirect {
            return (self.free(0).0, length);
        }
        let middle = self.blocks / 2 / GROUP;
        let (from, to) = if middle > FLEX {
            let first = middle / FLEX * FLEX;
            (first, first + 1)
        } else {
            (middle.saturating_sub(1), middle + 1)
        };
        let free = |g: u64| {
            let (start, end) = self.free(g);
            end - start
        };
        let mut best = from;
        for group in from..=to.min(self.groups - 1) {
            if free(group) > free(best) {
                best = group;
            }
        }
        (best * GROUP + self.free(best).0, length)
    }

    /// From its first block on, as far as blocks are free; group by group where it is long.
    fn runs_of_journal(&self) -> Vec<(u64, u64)> {
        let (start, length) = self.journal;
        if !self.format.indirect {
            return vec![(start, length)];
        }
        let mut left = length + indirect_before(length - 1);
        let (mut runs, mut at) = (Vec::new(), start);
        while left > 0 {
            let group = at / GROUP;
            let (free, end) = self.free(group);
            let from = at.max(group * GROUP + free);
            let n = left.min((group * GROUP + end).saturating_sub(from));
            runs.push((from, n));
            (left, at) = (left - n, (group + 1) * GROUP);
        }
        runs
    }

    /// Where a block of the journal lies.
    #[must_use]
    pub fn journal_block(&self, position: u64) -> u64 {
        let extra = if self.format.indirect { indirect_before(position) } else { 0 };
        let mut at = position + extra;
        for (start, blocks) in &self.journal_runs {
            if at < *blocks {
                return start + at;
            }
            at -= blocks;
        }
        self.journal.0
    }
}

/// Indirect blocks that lie before a block of a file that was written in order: 12 blocks, an indirect one, 1,024 blocks, a
/// double and an indirect one, 1,024 blocks, an indirect one …
fn indirect_before(block: u64) -> u64 {
    match block {
        0..12 => 0,
        12..1036 => 1,
        _ => 3 + (block - 1036) / 1024,
    }
}

/// The journal's length for a file system of this many blocks.
fn journal_blocks(blocks: u64) -> u64 {
    match blocks {
        0..32_768 => 1024,
        32_768..262_144 => 4096,
        262_144..524_288 => 8192,
        524_288..4_194_304 => 16_384,
        4_194_304..8_388_608 => 32_768,
        8_388_608..16_777_216 => 65_536,
        16_777_216..33_554_432 => 131_072,
        _ => 262_144,
    }
}

fn is_power(mut n: u64, of: u64) -> bool {
    while n > 1 && n.is_multiple_of(of) {
        n /= of;
    }
    n == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gib(n: u64) -> Layout {
        Layout::new(n << 18)
    }

    /// Measured places of the journal.
    #[test]
    fn the_journal_lies_where_mke2fs_puts_it() {
        let at = |blocks: u64| {
            let start = Layout::new(blocks).journal.0;
            (start / GROUP, start % GROUP)
        };
        assert_eq!(at(512 << 8), (2, 0));
        assert_eq!(at(1 << 18), (4, 0));
        assert_eq!(at(2 << 18), (8, 0));
        assert_eq!(at(4 << 18), (15, 0));
        assert_eq!(at(8 << 18), (33, 0));
        assert_eq!(at(10 << 18), (33, 0));
        assert_eq!(gib(20).journal, (2_655_236, 32_768));
        assert_eq!(at(64 << 18), (257, 0));
        assert_eq!(at(100 << 18), (401, 0));
        assert_eq!(at(256 << 18), (1025, 0));
        assert_eq!(at(244_140_625), (3713, 0));
        assert_eq!(at(1 << 28), (4097, 0));
        assert_eq!(at(488_281_250), (7441, 0));
    }

    #[test]
    fn tables_of_20_gib_and_of_a_terabyte() {
        let small = gib(20);
        assert_eq!((small.groups, small.descriptors, small.reserved), (160, 3, 1024));
        assert_eq!((small.block_bitmap(0), small.block_bitmap(15)), (1028, 1043));
        assert_eq!((small.inode_bitmap(0), small.inode_bitmap(15)), (1044, 1059));
        assert_eq!((small.inode_table(0), small.inode_table(15)), (1060, 8740));
        assert_eq!((small.root(), small.free(0)), (9252, (9258, GROUP)));
        assert_eq!((small.block_bitmap(16), small.inode_bitmap(16)), (524_288, 524_304));
        assert_eq!(small.inode_table(16), 524_320);
        assert_eq!(GROUP + small.free(1).0, 33_796);
        let large = Layout::new(244_140_625);
        assert_eq!((large.groups, large.descriptors, large.reserved), (7451, 117, 1024));
        assert_eq!((large.root(), large.free(0).0), (9366, 9372));
        assert_eq!(GROUP + large.free(1).0, 33_910);
        assert_eq!(large.journal, (121_667_584, 262_144));
    }

    #[test]
    fn a_block_is_told_by_its_place() {
        let l = gib(20);
        let class = |b| l.class(b);
        assert_eq!(
            [0, 1, 3, 4, 1028, 1043, 1044, 1060].map(class),
            ["SB", "GDT", "GDT", "GDT", "BBM", "BBM", "IBM", "ITAB"]
        );
        assert_eq!(
            [9251, 9252, 32_768, 2_655_236, 524_288, 5_242_880].map(class),
            ["ITAB", "-", "SB", "JNL", "BBM", "-"]
        );
    }

    #[test]
    fn reserved_descriptors_grow_with_the_device() {
        let reserved = |mib: u64| Layout::new(mib << 8).reserved;
        assert_eq!(
            [512, 1024, 2048, 4096, 8192, 20480].map(reserved),
            [63, 127, 255, 511, 1023, 1024]
        );
    }
}
