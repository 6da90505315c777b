//! Where `mkfs.xfs` puts everything: allocation groups, their headers, the log.

use crate::fs::jbd2::Block;

/// Blocks of 4 KiB in a TiB, less one: the largest allocation group.
const LARGEST: u64 = (1 << 28) - 1;
/// Block size over that of a sector.
const SECTORS: u64 = 8;
/// Blocks of a chunk of 64 inodes of 512 bytes.
pub const CHUNK: u64 = 8;
/// Where the first chunk lies in the first group; the root directory is its first inode.
pub const FIRST_CHUNK: u64 = 16;
/// Blocks of a group that its headers and the roots of its trees take.
const HEADERS: u64 = 6;
/// Blocks that a group keeps for its free list.
const FREE_LIST: u64 = 4;

/// The roots of a group's trees, by block of the group.
pub mod root {
    /// Free space by place.
    pub const BY_PLACE: u64 = 1;
    /// Free space by size.
    pub const BY_SIZE: u64 = 2;
    /// Chunks of inodes.
    pub const INODES: u64 = 3;
    /// Chunks with free inodes.
    pub const FREE_INODES: u64 = 4;
    /// Blocks of several files.
    pub const OWNERS: u64 = 5;
}

/// The headers of a group, by sector of the group.
pub mod header {
    /// Free space.
    pub const AGF: u64 = 1;
    /// Inodes.
    pub const AGI: u64 = 2;
    /// The free list.
    pub const AGFL: u64 = 3;
}

/// The layout of a file system.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Blocks of 4 KiB.
    pub blocks: u64,
    /// Blocks of an allocation group; the last one may be shorter.
    pub group: u64,
    /// Allocation groups.
    pub groups: u64,
    /// The log: first block, and blocks.
    pub log: (Block, u64),
}

impl Layout {
    /// What `mkfs.xfs` 6.1 makes of so many blocks of 4 KiB by default.
    #[must_use]
    pub fn new(blocks: u64) -> Self {
        let groups = if blocks < 1 << 30 { 4 } else { blocks.div_ceil(LARGEST) };
        let group = if blocks < 1 << 30 { blocks.div_ceil(4) } else { LARGEST };
        let log = (blocks / 2048).clamp(16384, 521_728);
        Self { blocks, group, groups, log: (groups / 2 * group + HEADERS, log) }
    }

    /// Blocks of a group.
    #[must_use]
    pub fn len(&self, group: u64) -> u64 {
        self.group.min(self.blocks - group * self.group)
    }

    /// Free blocks of a group after `mkfs`: first and length, counted from its start.
    #[must_use]
    pub fn free(&self, group: u64) -> Vec<(u64, u64)> {
        let len = self.len(group);
        let first = HEADERS + FREE_LIST;
        let from = |at: u64| (at, len.saturating_sub(at));
        if group == 0 {
            return vec![(first, FIRST_CHUNK - first), from(FIRST_CHUNK + CHUNK)];
        }
        let log = if group == self.groups / 2 { self.log.1 } else { 0 };
        vec![from(first + log)]
    }

    /// The group of a block.
    #[must_use]
    pub fn group_of(&self, block: Block) -> u64 {
        block / self.group
    }

    /// What lies in a sector: the log, headers of groups, or anything else.
    #[must_use]
    pub fn class(&self, sector: u64) -> &'static str {
        let block = sector / SECTORS;
        match block.checked_sub(self.log.0) {
            Some(within) if within < self.log.1 => "LOG",
            _ if block.is_multiple_of(self.group) => "AGH",
            _ => "-",
        }
    }

    /// A sector of a group's header.
    #[must_use]
    pub fn header(&self, group: u64, sector: u64) -> u64 {
        group * self.group * SECTORS + sector
    }

    /// The first sector of a block of a group.
    #[must_use]
    pub fn sector(&self, group: u64, block: u64) -> u64 {
        (group * self.group + block) * SECTORS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `xfs_info` and `xfs_db` of mkfs.xfs 6.1.
    #[test]
    fn sizes_are_those_of_mkfs() {
        let l = Layout::new(5_242_880);
        assert_eq!((l.groups, l.group, l.log), (4, 1_310_720, (2_621_446, 16384)));
        let l = Layout::new(1_000_000_000_000 / 4096);
        assert_eq!((l.group, l.log), (61_035_157, (122_070_320, 119_209)));
        assert_eq!(Layout::new(64 << 18).log, (8_388_614, 16384));
        assert_eq!(Layout::new(1 << 28).log.1, 131_072);
        assert_eq!(Layout::new(5 << 28).log.1, 521_728);
        assert_eq!(Layout::new(5 << 28).group, 268_435_455);
    }

    #[test]
    fn groups_are_free_behind_their_headers() {
        let l = Layout::new(64 << 18);
        assert_eq!(l.free(0), [(10, 6), (24, l.group - 24)]);
        assert_eq!(l.free(1), [(10, l.group - 10)]);
        assert_eq!(l.free(2), [(16394, l.group - 16394)]);
    }
}
