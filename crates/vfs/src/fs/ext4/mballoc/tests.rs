use super::*;

/// Writes a file of this many blocks into a fresh allocator, in requests of at most 8 MiB. Returns where it lies.
fn write(space: &mut Allocator, file: u32, blocks: u64) -> Vec<Extent> {
    let mut out: Vec<Extent> = Vec::new();
    let mut logical = 0;
    while logical < blocks {
        let request = Request {
            group: 0,
            logical,
            blocks: (blocks - logical).min(LARGEST),
            file: blocks,
            left: out.last().map(|e| e.start + e.blocks - 1),
            right: None,
            closed: false,
            exact: false,
            of_file: true,
        };
        let extent = space.allocate(file, 0, &request).unwrap();
        logical += extent.blocks;
        match out.last_mut() {
            Some(last) if last.start + last.blocks == extent.start => last.blocks += extent.blocks,
            _ => out.push(extent),
        }
    }
    out
}

/// Measured on a fresh file system of 20 GiB: files of different sizes in group 1.
#[test]
fn files_lie_where_ext4_puts_them() {
    let mut space = Allocator::new(Layout::new(20 << 18), 1, None);
    let mut place = |file: u32, blocks: u64| {
        let extents = write(&mut space, file, blocks);
        (extents[0].start - GROUP, extents.len())
    };
    assert_eq!(place(1, 1), (1536, 1));
    assert_eq!(place(2, 17), (1056, 1));
    assert_eq!(place(3, 32), (1088, 1));
    assert_eq!(place(4, 256), (1280, 1));
    assert_eq!(place(5, 1024), (2048, 1));
    assert_eq!(place(6, 2560), (4096, 1));
    assert_eq!(place(7, 16384), (8192, 1));
    // Small files follow one another.
    assert_eq!(place(8, 2), (1537, 1));
    assert_eq!(place(9, 16), (1539, 1));
}

#[test]
fn nothing_is_given_twice_and_all_comes_back() {
    let mut space = Allocator::new(Layout::new(1 << 18), 1, None);
    let before = space.free();
    let mut used = std::collections::BTreeSet::new();
    let mut all = Vec::new();
    for file in 0..200_u32 {
        let blocks = 1 + u64::from(file) * 37 % 900;
        for extent in write(&mut space, file, blocks) {
            for block in extent.start..extent.start + extent.blocks {
                assert!(used.insert(block), "block {block} is used twice");
            }
            all.push(extent);
        }
        space.close(file);
    }
    for extent in all {
        space.release(extent);
    }
    for rest in std::mem::take(&mut space.locality[0]) {
        space.release(rest);
    }
    assert_eq!(space.free(), before);
}

#[test]
fn a_full_file_system_says_so() {
    let mut space = Allocator::new(Layout::new(512 << 8), 1, None);
    let mut file = 0;
    let request = Request {
        group: 0,
        logical: 0,
        blocks: LARGEST,
        file: LARGEST,
        left: None,
        right: None,
        closed: false,
        exact: false,
        of_file: true,
    };
    let mut sum = 0;
    let free = space.free();
    while let Some(extent) = space.allocate(file, 0, &request) {
        sum += extent.blocks;
        file += 1;
    }
    assert_eq!((sum, space.free()), (free, 0));
}

/// Event logs of 6.12 on an SSD of 64 GiB: the first file of a mount gets the first free blocks, the next ones aligned chunks. A
/// first block of a small file lies before the preallocation that the others share.
#[test]
fn the_first_file_after_a_mount_gets_the_first_free_blocks() {
    let fresh = || Allocator::new(Layout::new(1 << 24), 1, None).with_lists(true);
    let request = |blocks| Request {
        group: 0,
        logical: 0,
        blocks,
        file: blocks,
        left: None,
        right: None,
        closed: false,
        exact: false,
        of_file: true,
    };
    let mut space = fresh();
    let mut at = |file| space.allocate(file, 0, &request(2048)).unwrap().start;
    assert_eq!([at(1), at(2), at(3)], [9263, 34816, 36864]);
    let mut space = fresh();
    let mut at = |file| space.allocate(file, 0, &request(1)).unwrap().start;
    assert_eq!([at(1), at(2), at(3)], [33801, 34304, 34305]);
    let mut space = fresh();
    space.prefetched();
    assert_eq!(space.allocate(1, 0, &request(2048)).unwrap().start, 34816);
}

fn closed(group: u64, blocks: u64) -> Request {
    Request {
        group,
        logical: 0,
        blocks,
        file: blocks,
        left: None,
        right: None,
        closed: true,
        exact: false,
        of_file: true,
    }
}

/// Event log of 6.12 for a tree unpacked by tar (`untar_sync`): each file is closed before it is written back. Those of more than
/// 64 KiB take the first free blocks of their own directory's groups, one behind the other, and nothing beside.
#[test]
fn a_closed_file_takes_what_it_needs_where_its_inode_is() {
    let mut space = Allocator::new(Layout::new(1 << 24), 1, None);
    let (group, first) = (288, 289 * GROUP);
    let mut place = |file: u32, blocks: u64| {
        space.allocate(file, 0, &closed(group, blocks)).map(|e| (e.start - first, e.blocks))
    };
    assert_eq!(place(1, 2), Some((0, 2)));
    assert_eq!(place(2, 67), Some((512, 67)));
    assert_eq!(place(3, 11), Some((2, 11)));
    assert_eq!(place(4, 25), Some((579, 25)));
    assert_eq!(place(5, 33), Some((604, 33)));
}

/// Asked of 6.12: 414 files of 15 blocks leave two blocks of each of twelve preallocations. Four of these rests are given back
/// when there are nine. Files of two blocks then take the others, the nearest to their group first.
#[test]
fn rests_of_preallocations_are_for_smaller_files() {
    let mut space = Allocator::new(Layout::new(1 << 24), 1, None);
    let mut place = |file: u32, blocks: u64| {
        space.allocate(file, 0, &closed(0, blocks)).map(|e| e.start).unwrap_or_default()
    };
    let large: Vec<u64> = (0..414).map(|file| place(file, 15)).collect();
    assert_eq!((large[0], large[34], large[408]), (34304, 34816, 40448));
    let small: Vec<u64> = (414..424).map(|file| place(file, 2)).collect();
    assert_eq!(small, [36862, 37374, 37886, 38398, 38910, 39422, 39934, 40446, 40538, 40540]);
}
