//! What lies on a disk, by the marks that file systems, volume managers and partition tables leave.

/// Bytes to read from the start of a device.
pub const HEAD: usize = 0x11000;

/// (offset, mark, what it is), from the on-disk formats' own documentation.
const MARKS: &[(usize, &[u8], &str)] = &[
    (0x438, &[0x53, 0xEF], "an ext2/3/4 file system"),
    (0, b"XFSB", "an XFS file system"),
    (0x10040, b"_BHRfS_M", "a btrfs file system"),
    (0, b"LUKS\xba\xbe", "a LUKS container"),
    (0x218, b"LVM2 001", "an LVM physical volume"),
    (0x18, b"LVM2 001", "an LVM physical volume"),
    (0x1000, &[0xfc, 0x4e, 0x2b, 0xa9], "a member of a Linux RAID"),
    (0, &[0xfc, 0x4e, 0x2b, 0xa9], "a member of a Linux RAID"),
    (0x200, b"EFI PART", "a GPT partition table"),
    (0x1000, b"EFI PART", "a GPT partition table"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (0x36, b"FAT", "a FAT file system"),
    (0x52, b"FAT32", "a FAT file system"),
    (0xff6, b"SWAPSPACE2", "swap space"),
    (0x400, &[0x10, 0x20, 0xf5, 0xf2], "an F2FS file system"),
    (0x8001, b"CD001", "an ISO 9660 image"),
    (0x1018, &[0xc6, 0x85, 0x73, 0xf6], "a bcache device"),
    (0x1018, &[0x68, 0x61, 0x73, 0xf6], "a bcache device"),
    (0, b"hsqs", "a squashfs file system"),
    (0x10034, b"ReIsEr", "a ReiserFS file system"),
    (0x8000, b"JFS1", "a JFS file system"),
    // Last: boot sectors of file systems end with it too.
    (0x1fe, &[0x55, 0xAA], "a partition table or boot sector"),
];

/// The first mark found at the start of a device.
#[must_use]
pub fn find(head: &[u8]) -> Option<&'static str> {
    // ZFS keeps a ring of labels; any of its magic numbers in the first label is enough.
    let zfs = |at: usize| {
        head.get(at..at + 8).is_some_and(|m| {
            m == 0x00ba_b10c_u64.to_le_bytes() || m == 0x00ba_b10c_u64.to_be_bytes()
        })
    };
    MARKS
        .iter()
        .find(|(at, mark, _)| head.get(*at..*at + mark.len()) == Some(*mark))
        .map(|m| m.2)
        .or_else(|| {
            (0..)
                .map(|i| 0x400 * i)
                .take_while(|at| at + 8 <= head.len())
                .any(zfs)
                .then_some("a ZFS pool")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_are_found_where_they_stand_and_an_empty_disk_is_empty() {
        assert_eq!(find(&vec![0; HEAD]), None);
        for (at, mark, what) in MARKS {
            let mut head = vec![0; HEAD];
            head[*at..at + mark.len()].copy_from_slice(mark);
            assert!(find(&head).is_some(), "{what}");
        }
    }

    proptest! {
        #[test]
        fn any_start_is_survived(head in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let _ = find(&head);
        }
    }
}
