//! Beside `fiemap` and `statfs` of Linux 6.12 on a file system of 1 GiB.

use crate::cache::readahead::Stream;
use crate::fs::testing::trace;
use crate::fs::xfs::{Options, Xfs};
use crate::fs::{FileSystem as _, Full, Kind};
use crate::kernel::Kernel;
use crate::kernel::read::Open;
use crate::kernel::writeback::Backing as _;

const ROOT: u32 = 0;

fn traced<F>(program: impl FnOnce(Kernel, Xfs) -> F)
where
    F: Future<Output = ()> + 'static,
{
    trace(Xfs::new(1 << 18, ROOT, Options::default(), None), program);
}

async fn create(k: &Kernel, fs: &Xfs, file: u32) -> Open {
    k.with(|w| w.memory.open(file));
    fs.create(k, (ROOT, file), Kind::File, &format!("f{file}")).await.unwrap();
    Open { file, size: 0, ra: 32, large_folios: false, stream: Stream::default(), noted: true }
}

async fn write(k: &Kernel, fs: &Xfs, file: &mut Open, (at, pages): (u64, u64)) {
    fs.will_write(k, file.file, (at, at + pages)).await.unwrap();
    let place = fs.place(file.file);
    k.write(file, &place, at * 4096, pages * 4096).await;
    fs.wrote(k, file.file, (at, at + pages)).await;
}

/// A file of so many pages, and one with the same blocks.
async fn shared(k: &Kernel, fs: &Xfs, pages: u64) -> [Open; 2] {
    let mut a = create(k, fs, 1).await;
    write(k, fs, &mut a, (0, pages)).await;
    fs.fsync(k, 1, false).await;
    let mut b = create(k, fs, 2).await;
    assert!(fs.share(k, (1, 0), (2, 0), pages).await);
    b.size = pages * 4096;
    fs.sync(k).await;
    [a, b]
}

fn extents(fs: &Xfs, file: u32) -> Vec<(u64, u64, u64)> {
    fs.with(|s| {
        let all = s.inodes.get(file).unwrap().extents.within(0, u64::MAX);
        all.into_iter().map(|m| (m.logical, m.start, m.blocks)).collect()
    })
}

#[test]
fn written_pages_move_to_units_of_their_own() {
    traced(|k, fs| async move {
        let [_, mut b] = shared(&k, &fs, 256).await;
        let start = fs.free();
        let taken = || start - fs.free();
        for (pages, promised, placed) in [
            (vec![(40, 1)], 37, 32),
            (vec![(41, 1)], 32, 32),
            (vec![(63, 1), (100, 2)], 69, 64),
            (vec![(130, 70)], 165, 160),
        ] {
            for part in pages {
                write(&k, &fs, &mut b, part).await;
            }
            assert_eq!(taken(), promised);
            fs.fsync(&k, 2, false).await;
            assert_eq!(taken(), placed);
        }
        let moved = [
            (0, 24, 40),
            (40, 288, 2),
            (42, 66, 21),
            (63, 311, 1),
            (64, 88, 36),
            (100, 348, 2),
            (102, 126, 28),
            (130, 378, 70),
            (200, 224, 56),
        ];
        assert_eq!(extents(&fs, 2), moved);
        assert_eq!(extents(&fs, 1), [(0, 24, 256)], "the other keeps its blocks");
        fs.unlink(&k, (ROOT, 2), "f2", true).await;
        fs.sync(&k).await;
        assert_eq!(fs.free(), start, "and what is left of the units comes back");
    });
}

#[test]
fn a_unit_reaches_past_the_end_and_takes_what_is_appended() {
    traced(|k, fs| async move {
        let [_, mut b] = shared(&k, &fs, 5).await;
        let start = fs.free();
        for (pages, promised, placed) in [((2, 1), 37, 32), ((5, 1), 32, 32), ((6, 60), 85, 80)] {
            write(&k, &fs, &mut b, pages).await;
            assert_eq!(start - fs.free(), promised);
            fs.fsync(&k, 2, false).await;
            assert_eq!(start - fs.free(), placed);
        }
        assert_eq!(extents(&fs, 2), [(0, 10, 2), (2, 26, 1), (3, 13, 2), (5, 29, 75)]);
    });
}

/// `O_DIRECT`: the unit is placed at once.
#[test]
fn direct_writes_do_not_change_what_others_have() {
    traced(|k, fs| async move {
        shared(&k, &fs, 256).await;
        let start = fs.free();
        assert_eq!(fs.prepare(&k, 2, 40, 41).await, 41);
        assert_eq!(start - fs.free(), 32);
        for (from, to) in [(41, 42), (44, 45), (130, 200)] {
            assert_eq!(fs.prepare(&k, 2, from, to).await, to);
        }
        assert_eq!(start - fs.free(), 128);
        let moved = [
            (0, 24, 40),
            (40, 288, 2),
            (42, 66, 2),
            (44, 292, 1),
            (45, 69, 85),
            (130, 378, 70),
            (200, 224, 56),
        ];
        assert_eq!(extents(&fs, 2), moved);
        assert_eq!(extents(&fs, 1), [(0, 24, 256)]);
    });
}

/// On Linux 6.12 with 64 blocks free: three writes of 16 pages, then no other; 11 of one page, then no other.
#[test]
fn a_write_is_told_that_the_disk_is_full() {
    traced(|k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        create(&k, &fs, 2).await;
        fs.fallocate(&k, 2, 0, fs.free() - 64).await.unwrap();
        fs.sync(&k).await;
        assert_eq!(fs.free(), 64);
        for (n, left) in [43, 27, 11].into_iter().enumerate() {
            write(&k, &fs, &mut a, (16 * n as u64, 16)).await;
            assert_eq!(fs.free(), left);
        }
        assert_eq!(fs.will_write(&k, 1, (48, 64)).await, Err(Full));
        fs.reclaim(&k).await;
        assert_eq!(fs.free(), 16);
        assert_eq!(fs.will_write(&k, 1, (48, 64)).await, Err(Full));
        for page in 48..59 {
            write(&k, &fs, &mut a, (page, 1)).await;
            assert_eq!(fs.free(), 58 - page);
        }
        assert_eq!(fs.will_write(&k, 1, (59, 60)).await, Err(Full));
        fs.reclaim(&k).await;
        assert_eq!(fs.will_write(&k, 1, (59, 60)).await, Err(Full));
        assert_eq!(fs.create(&k, (ROOT, 3), Kind::File, "n").await, Err(Full));
        write(&k, &fs, &mut a, (0, 59)).await;
        fs.fsync(&k, 1, false).await;
        assert_eq!(fs.free(), 5);
    });
}
