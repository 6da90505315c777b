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
    let locality = space.locality[0];
    space.release(locality);
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
