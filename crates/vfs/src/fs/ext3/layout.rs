//! The layout that `mke2fs -t ext3` makes: each group has its own bitmaps and inode table, and the journal is a file with
//! indirect blocks at the front of the device.

use crate::fs::ext4::layout::Format;

/// By mke2fs 1.47: inodes of 256 bytes. Measured on an image of 20 GiB.
pub const BY_1_47: Format =
    Format { flex: 1, inodes: 8192, descriptors: 128, indirect: true, small_journal: false };

/// By mke2fs 1.39 of 2006, beside kernels before 2.6.28: inodes of 128 bytes, one for every 8 KiB, and at most 128 MiB of
/// journal.
pub const BY_1_39: Format =
    Format { flex: 1, inodes: 16_384, descriptors: 128, indirect: true, small_journal: true };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::ext4::layout::Layout;

    #[test]
    fn tables_of_20_gib() {
        let l = Layout::of(20 << 18, BY_1_47);
        assert_eq!((l.descriptors, l.reserved), (2, 1022));
        assert_eq!((l.block_bitmap(0), l.inode_bitmap(0), l.inode_table(0)), (1025, 1026, 1027));
        assert_eq!((l.root(), l.journal), (1539, (1545, 32_768)));
        // A group without a copy of the superblock.
        let group = 2 << 15;
        assert_eq!((l.block_bitmap(2), l.inode_bitmap(2)), (group, group + 1));
        assert_eq!((l.inode_table(2), l.free(2).0), (group + 2, 514));
        // Block j of the journal is not at a constant distance.
        let at = |j| l.journal_block(j) - 1545 - j;
        assert_eq!([0, 11, 12, 1035, 1036, 2059, 2060].map(at), [0, 0, 1, 1, 3, 3, 4]);
        assert_eq!(l.class(l.journal_block(32_767)), "JNL");
        assert_eq!(l.free(1).0, 1 + 2 + 1022 + 2 + 512);
        assert!(l.journal_block(32_767) > (1 << 15) + l.free(1).0, "it goes on in group 1");
    }

    #[test]
    fn old_file_systems_have_small_inodes_and_journals() {
        let l = Layout::of(300 << 18, BY_1_39);
        assert_eq!(l.journal.1, 32_768);
        assert_eq!(l.inode_block(33) - l.inode_block(32), 1);
        assert_eq!((l.group_of(16_384), l.group_of(16_385)), (0, 1));
    }
}
