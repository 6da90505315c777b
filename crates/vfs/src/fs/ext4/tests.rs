//! Worked scenarios on a fresh file system of 20 GiB. Linux 6.12 to 6.18, seen in the block trace.

use super::*;
use crate::cache::readahead::Stream;
use crate::fs::atime::Atime;
use crate::fs::testing::{letters, trace};
use crate::fs::{FileSystem as _, Full, Kind};
use crate::kernel::read::Open;
use crate::kernel::read::Place as _;
use crate::kernel::testing::{Path, run};
use crate::kernel::writeback::Backing as _;
use crate::kernel::{Kernel, Wait, World};

mod journaled;

const ROOT: u32 = 0;
const NAME: &str = "a";
const JOURNAL: u64 = 2_655_236;
const MS: u64 = 1_000_000;

fn open(file: u32) -> Open {
    Open { file, size: 0, ra: 32, large_folios: false, stream: Stream::default(), noted: true }
}

/// A program's bios on a fresh file system, block and length in blocks; journal blocks by their position.
fn traced<F>(options: Options, blocks: u64, program: impl FnOnce(Kernel, Ext4) -> F) -> Vec<String>
where
    F: Future<Output = ()> + 'static,
{
    let log = trace(Ext4::new(blocks, ROOT, 1, options, None), program);
    log.iter().map(|(_, b)| letters(b, 8, JOURNAL..JOURNAL + 32768)).collect()
}

async fn pause(k: &Kernel) {
    k.wait(Wait::Compute(50 * MS)).await;
}

async fn create(k: &Kernel, fs: &Ext4, file: u32) -> Open {
    k.with(|w| w.memory.open(file));
    fs.create(k, (ROOT, file), Kind::File, NAME).await.unwrap();
    open(file)
}

async fn write(k: &Kernel, fs: &Ext4, file: &mut Open, at: u64, len: u64) {
    let place = fs.place(file.file);
    k.write(file, &place, at, len).await;
    fs.wrote(k, file.file, (at / 4096, (at + len).div_ceil(4096))).await;
}
/// mke2fs makes so many inodes, and the next file finds none: real file systems of 600M have 38,400.
#[test]
fn inodes_run_out() {
    traced(Options::default(), 32_768, |k, fs| async move {
        let all = fs.with(|s| s.layout.groups * s.layout.format.inodes) as u32;
        let create = |file: u32, kind| fs.create(&k, (ROOT, file), kind, NAME);
        let mut made = 0;
        while create(100 + made, Kind::File).await.is_ok() {
            made += 1;
            assert!(made < all, "more files than inodes");
        }
        assert_eq!(made, all - 11);
        assert_eq!(create(99, Kind::Directory).await, Err(Full));
        fs.with(|s| s.inodes.remove(100));
        assert_eq!(create(99, Kind::File).await, Ok(()));
    });
}

#[test]
fn creating_appending_and_overwriting() {
    let log = traced(Options::default(), 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        for n in 1..3 {
            pause(&k).await;
            write(&k, &fs, &mut a, n * 4096, 4096).await;
            fs.fsync(&k, 1, false).await;
        }
        pause(&k).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        pause(&k).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, true).await;
        fs.fsync(&k, 1, true).await;
        fs.fsync(&k, 1, false).await;
        fs.fsync(&k, 1, false).await;
        pause(&k).await;
        write(&k, &fs, &mut a, 3 * 4096, 4096).await;
        fs.fsync(&k, 1, true).await;
    });
    let expected = [
        // Directory and inode bitmap, cold; data; I G T D S B in one transaction.
        "RM 9252+1",
        "RM 1044+1",
        "WS 34304+1",
        "WSM p0+1",
        "WSM p1+7",
        "FWFSM p8+1",
        // Appends: T B G.
        "WS 34305+1",
        "WSM p9+4",
        "FWFSM p13+1",
        "WS 34306+1",
        "WSM p14+4",
        "FWFSM p18+1",
        // Overwritten: T; with fdatasync nothing but a flush, and T at the next fsync.
        "WS 34304+1",
        "WSM p19+2",
        "FWFSM p21+1",
        "WS 34304+1",
        "FWS",
        "FWS",
        "WSM p22+2",
        "FWFSM p24+1",
        "FWS",
        // The size has changed: fdatasync commits.
        "WS 34307+1",
        "WSM p25+4",
        "FWFSM p29+1",
    ];
    assert_eq!(log, expected);
}

#[test]
fn nothing_is_journaled_within_a_tick() {
    let log = traced(Options::default(), 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
    });
    assert_eq!(log[6..], ["WS 34304+1", "FWS"]);
}

#[test]
fn without_barriers_nothing_is_flushed() {
    let options = Options { barrier: false, ..Options::default() };
    let log = traced(options, 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        pause(&k).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, true).await;
    });
    assert_eq!(log[2..], ["WS 34304+1", "WSM p0+1", "WSM p1+7", "WSM p8+1", "WS 34304+1"]);
}

#[test]
fn renames_and_unlinks_journal_what_they_change() {
    let log = traced(Options::default(), 20 << 18, |k, fs| async move {
        for file in 1..4 {
            let mut a = create(&k, &fs, file).await;
            write(&k, &fs, &mut a, 0, 4096).await;
        }
        fs.sync(&k).await;
        fs.rename(&k, 1, (ROOT, ROOT), (NAME, NAME), None).await;
        fs.fsync_directory(&k, ROOT).await;
        fs.rename(&k, 1, (ROOT, ROOT), (NAME, NAME), Some((2, true))).await;
        fs.fsync_directory(&k, ROOT).await;
        fs.unlink(&k, (ROOT, 3), NAME, true).await;
        fs.fsync_directory(&k, ROOT).await;
    });
    let commits: Vec<_> = log.iter().filter(|l| l.starts_with("WSM p")).cloned().collect();
    // Rename: T D. Over a file, and unlink: T D S B G I. One descriptor block each.
    let sizes: Vec<_> = commits.iter().map(|c| c.split('+').nth(1).unwrap().to_owned()).collect();
    assert_eq!(sizes, ["1", "7", "3", "7", "7"]);
    // sync writes all metadata home, in order.
    let home: Vec<_> = log.iter().filter(|l| l.starts_with("WSM ") && !l.contains('p')).collect();
    assert_eq!(home, ["WSM 0+2", "WSM 1029+1", "WSM 1044+1", "WSM 1060+1", "WSM 9252+1"]);
}

/// Linux 6.12: a link of up to 59 bytes changes what a file without data changes. A longer one has a block, which the
/// journal has, too, and revokes when it goes.
#[test]
fn long_links_have_a_block_in_the_journal() {
    let log = traced(Options::default(), 20 << 18, |k, fs| async move {
        for (n, bytes) in [(1, 7), (2, 59), (3, 60), (4, 400)] {
            k.with(|w| w.memory.open(n));
            fs.create(&k, (ROOT, n), Kind::Link(bytes), NAME).await.unwrap();
            fs.fsync_directory(&k, ROOT).await;
        }
        for n in [3, 2] {
            fs.unlink(&k, (ROOT, n), NAME, true).await;
            fs.fsync_directory(&k, ROOT).await;
        }
    });
    let bodies = log.iter().filter(|l| l.starts_with("WSM p") && *l != "WSM p0+1");
    let sizes: Vec<&str> = bodies.filter_map(|l| Some(l.split_once('+')?.1)).collect();
    // I G T D; the same with B and the block; D T S B G I with what is revoked; without a block no B.
    assert_eq!(sizes, ["5", "5", "7", "7", "8", "6"], "{log:?}");
}

/// Nothing is synced: the inode's transaction after five to six seconds, data after thirty, metadata thirty after it
/// was committed.
#[test]
fn the_clocks_of_an_idle_file_system() {
    let log = traced(Options::default(), 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 40960).await;
        k.wait(Wait::Until(80_000 * MS)).await;
    });
    assert_eq!(
        log,
        [
            "RM 9252+1",
            "RM 1044+1",
            "WSM p0+1",
            "WSM p1+6",
            "FWFSM p7+1",
            "W 34304+10",
            // Blocks of the place, then all metadata home: the first transaction's are thirty seconds old at 36 s.
            "WSM p8+4",
            "FWFSM p12+1",
            "WM 0+2",
            "WM 1029+1",
            "WM 1044+1",
            "WM 1060+1",
            "WM 9252+1",
        ]
    );
}

/// A journal of 1,024 blocks and three files in turn.
#[test]
fn a_full_journal_makes_its_caller_write_home() {
    let blocks = 1 << 18;
    let log = traced(Options::default(), blocks, |k, fs| async move {
        fs.with(|s| s.journal = Journal::new(1024, 3));
        let mut files = Vec::new();
        for file in 1..4 {
            files.push(create(&k, &fs, file).await);
        }
        for n in 0..150 {
            pause(&k).await;
            let file = &mut files[n % 3];
            let at = file.size;
            write(&k, &fs, file, at, 4096).await;
            fs.fsync(&k, file.file, false).await;
        }
    });
    let tails: Vec<_> = log.iter().filter(|l| l.starts_with("WFSM")).collect();
    assert!(!tails.is_empty() && tails.len() <= 3, "{tails:?}");
    let before = log.iter().position(|l| l.starts_with("WFSM")).unwrap();
    assert_eq!(
        log[before - 1],
        "FWS",
        "a flush before the first tail: {:?}",
        &log[before - 5..=before]
    );
}

/// Those who sync together share commits.
#[test]
fn commits_are_shared() {
    let world = Rc::new(RefCell::new(World::default()));
    let fs = Ext4::new(20 << 18, ROOT, 1, Options::default(), None);
    let kernel = |task| Kernel::new(world.clone(), task);
    let mut paths: Vec<Path> = Vec::new();
    for task in 0..4_u32 {
        let (k, fs) = (kernel(task), fs.clone());
        paths.push(Box::pin(async move {
            let mut a = create(&k, &fs, task + 1).await;
            for n in 0..6 {
                write(&k, &fs, &mut a, n * 4096, 4096).await;
                fs.fsync(&k, task + 1, false).await;
            }
        }));
    }
    let (f, j, ff, jf) = (kernel(4), kernel(5), fs.clone(), fs.clone());
    let (c, cf) = (kernel(6), fs.clone());
    paths.push(Box::pin(async move { f.flusher(&ff).await }));
    paths.push(Box::pin(async move { jf.journal_thread(&j).await }));
    paths.push(Box::pin(async move { cf.completions(&c).await }));
    run(&world, paths, 4, 100_000);
    assert!((6..=13).contains(&fs.commits()), "{} commits for 24 syncs", fs.commits());
}

/// Linux 6.12 on 64 GiB: each directory of the root goes to the next flex group from its name's hash on that has the fewest
/// directories and as much room as others. The first has inodes of mkfs, the seventeenth the journal.
#[test]
fn directories_of_the_root_are_spread_as_the_kernels() {
    traced(Options::default(), 16 << 20, |k, fs| async move {
        let mut flex = Vec::new();
        for n in 0..20 {
            let name = format!("m0_{n}");
            fs.create(&k, (ROOT, n + 1), Kind::Directory, &name).await.unwrap();
            flex.push(fs.with(|s| {
                let number = s.inodes.get(n + 1).unwrap().number;
                s.layout.group_of(number) / 16
            }));
        }
        let kernels = [1, 30, 17, 6, 20, 10, 14, 18, 24, 31, 2, 8, 22, 3, 15, 12, 4, 11, 5, 7];
        assert_eq!(flex, kernels);
    });
}

/// A commit that begins while write-back is under way does not say that its blocks are written. A worker notes that when they
/// are: the next transaction has the inode.
#[test]
fn written_back_blocks_are_marked_afterwards() {
    traced(Options::default(), 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        let mut b = create(&k, &fs, 2).await;
        write(&k, &fs, &mut b, 0, 4096).await;
        k.write_some(2, &fs, (0, u64::MAX)).await;
        fs.fsync_directory(&k, ROOT).await;
        pause(&k).await;
        let blocks = fs.with(|s| s.journal.running.as_ref().map(|t| t.log_blocks(253)));
        assert_eq!(blocks, Some(3), "descriptor, table of inodes, commit block");
    });
}

/// Seen in the event log of Linux 6.12 after a mount: the table in windows of 32 blocks and the one behind, as far as it is
/// used, the others ahead of the one that is waited for; directories block by block.
#[test]
fn a_cold_mount_reads_names_and_inodes() {
    let log = traced(Options::default(), 20 << 18, |k, fs| async move {
        k.with(|w| w.memory.open(1));
        fs.create(&k, (ROOT, 1), Kind::Directory, "d").await.unwrap();
        for file in 2..702 {
            k.with(|w| w.memory.open(file));
            fs.create(&k, (1, file), Kind::File, NAME).await.unwrap();
        }
        fs.sync(&k).await;
        pause(&k).await;
        fs.mounted_cold();
        k.with(|w| w.signal(crate::kernel::Event::Room));
        fs.look_up(&k, ROOT, "d", Some(1)).await;
        fs.look_up(&k, ROOT, "d", Some(1)).await;
        fs.read_directory(&k, 1).await;
        fs.look_up(&k, 1, "x", Some(701)).await;
        fs.unlink(&k, (1, 701), NAME, true).await;
    });
    // The hash of "d" leads to the seventh flex group.
    let flex = 6 * 524_288;
    let table = flex + 32;
    let first = log.iter().position(|l| *l == "RM 9252+1").map(|n| n + 1).unwrap();
    let reads: Vec<&String> = log[first..].iter().filter(|l| l.starts_with('R')).collect();
    let data = table + 16 * 512;
    let mut expected = vec!["RM 9252+1".to_string()];
    expected.extend([format!("RA {}+32", table + 1), format!("RM {table}+1")]);
    expected.extend((0..6).map(|n| format!("RM {}+1", data + n)));
    // 701 inodes of the group: 44 blocks, of which 33 were read.
    expected.extend([format!("RA {}+10", table + 33), format!("RM {}+1", table + 43)]);
    expected.push(format!("RM {}+1", flex + 16));
    assert_eq!(reads, expected.iter().collect::<Vec<_>>());
}

/// `sync` of a file system without changes empties the disk's cache (Linux 6.18: 50 calls, 50 flushes).
#[test]
fn a_sync_of_nothing_flushes() {
    let log = traced(Options::default(), 20 << 18, |k, fs| async move {
        for _ in 0..3 {
            fs.sync(&k).await;
        }
    });
    assert_eq!(log, ["FWS", "FWS", "FWS"]);
}

/// `sync` ends when all metadata is in its own place, also what the flusher has begun to write.
#[test]
fn a_sync_waits_for_the_flushers_metadata() {
    let options = Options { barrier: false, ..Options::default() };
    traced(options, 20 << 18, |k, fs| async move {
        create(&k, &fs, 1).await;
        fs.fsync_directory(&k, ROOT).await;
        pause(&k).await;
        fs.write_metadata(&k, iosched_types::Flags::NONE).await;
        let begun = k.with(|w| w.now);
        fs.sync(&k).await;
        assert_eq!(k.with(|w| w.now) - begun, 100_000, "the disk's time of a bio");
    });
}

/// A journal is full, and the flusher has the blocks of its oldest transaction under way: the tail moves when these are in their
/// places, not before.
#[test]
fn a_tail_waits_for_the_flushers_metadata() {
    traced(Options::default(), 1 << 18, |k, fs| async move {
        fs.with(|s| s.journal = Journal::new(64, 3));
        let mut a = create(&k, &fs, 1).await;
        while fs.with(|s| s.journal.has_room()) {
            pause(&k).await;
            let at = a.size;
            write(&k, &fs, &mut a, at, 4096).await;
            fs.fsync(&k, 1, false).await;
        }
        fs.write_metadata(&k, iosched_types::Flags::NONE).await;
        let begun = k.with(|w| w.now);
        fs.make_room(&k).await;
        // The blocks come home; then a flush, and the journal's superblock.
        assert_eq!(k.with(|w| w.now) - begun, 300_000);
    });
}

/// `journal_async_commit`: the commit block goes along, and one flush ends it.
#[test]
fn an_early_commit_block_is_followed_by_a_flush() {
    let data = Data::Writeback;
    let options = Options { async_commit: true, data, ..Options::default() };
    let log = traced(options, 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
    });
    assert_eq!(log[2..], ["WS 34304+1", "WSM p0+1", "WSM p1+8", "FWS"]);
}

/// `nodelalloc`: blocks when a page is written to, and their data before the commit.
#[test]
fn without_delay_data_is_ordered() {
    let options = Options { delalloc: false, ..Options::default() };
    let log = traced(options, 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        fs.will_write(&k, 1, (0, 16)).await.unwrap();
        write(&k, &fs, &mut a, 0, 65536).await;
        k.wait(Wait::Until(8000 * MS)).await;
    });
    let data = log.iter().position(|l| l.starts_with("WS ") && l.ends_with("+16")).unwrap();
    let commit = log.iter().position(|l| l.starts_with("FWFSM")).unwrap();
    assert!(data < commit, "{log:?}");
}

/// `discard`: what was freed is discarded after the commit.
#[test]
fn freed_blocks_are_discarded_after_the_commit() {
    let discards = |discard| {
        let fs = Ext4::new(20 << 18, ROOT, 1, Options { discard, ..Options::default() }, None);
        let log = trace(fs, |k, fs| async move {
            let mut a = create(&k, &fs, 1).await;
            write(&k, &fs, &mut a, 0, 65536).await;
            fs.fsync(&k, 1, false).await;
            pause(&k).await;
            fs.unlink(&k, (ROOT, 1), NAME, true).await;
            fs.fsync_directory(&k, ROOT).await;
            pause(&k).await;
        });
        let is = |b: &&(u64, crate::kernel::BioOut)| b.1.op == iosched_types::Op::Discard;
        log.iter().filter(is).map(|(_, b)| b.sectors).sum::<u32>()
    };
    assert_eq!((discards(false), discards(true)), (0, 16 * 8));
}

/// `relatime`: the first read after a change puts the inode into the next commit.
#[test]
fn a_first_read_is_noted() {
    let commits = |atime| {
        let log = traced(Options { atime, ..Options::default() }, 20 << 18, |k, fs| async move {
            let mut a = create(&k, &fs, 1).await;
            write(&k, &fs, &mut a, 0, 4096).await;
            fs.fsync(&k, 1, false).await;
            for _ in 0..3 {
                pause(&k).await;
                fs.accessed(&k, 1).await;
            }
            k.wait(Wait::Until(15_000 * MS)).await;
        });
        log.iter().filter(|l| l.starts_with("FWFSM")).count()
    };
    assert_eq!((commits(Atime::Never), commits(Atime::Relative)), (1, 2));
}

/// A file on an aged file system lies in more pieces, the more the fuller it is.
#[test]
fn files_on_an_aged_file_system_lie_in_pieces() {
    let pieces = |percent| {
        let ageing = Some(crate::fs::age::Ageing { percent, seed: 1 });
        let fs = Ext4::new(20 << 18, ROOT, 1, Options::default(), ageing);
        let kept = fs.clone();
        trace(fs, |k, fs| async move {
            let mut a = create(&k, &fs, 1).await;
            write(&k, &fs, &mut a, 0, 64 << 20).await;
            fs.fsync(&k, 1, false).await;
        });
        kept.with(|s| s.inodes.get(1).map_or(0, |i| i.extents.len()))
    };
    let (fresh, half, full) = (pieces(0), pieces(50), pieces(90));
    assert!(fresh <= 2 && fresh < half && half < full, "{fresh} {half} {full}");
}

/// Event logs of 6.12: who changes a block whose copy is on its way to the log goes on when it is there, before the commit record
/// is written. While data is on its way nobody waits.
#[test]
fn a_change_waits_for_the_copy_of_its_block() {
    let world = Rc::new(RefCell::new(World::default()));
    world.borrow_mut().memory.introduce(4096);
    let kernel = |task| Kernel::new(world.clone(), task);
    let fs = Ext4::new(20 << 18, ROOT, 1, Options::default(), None);
    let ends = Rc::new(RefCell::new(Vec::new()));
    let other = |task: u32, at: u64| -> Path {
        let (k, fs, ends) = (kernel(task), fs.clone(), ends.clone());
        Box::pin(async move {
            k.wait(Wait::Until(at)).await;
            create(&k, &fs, task + 1).await;
            ends.borrow_mut().push((at, k.with(|w| w.now)));
        })
    };
    let (k, first) = (kernel(0), fs.clone());
    let (f, ff, j, jf) = (kernel(4), fs.clone(), kernel(5), fs.clone());
    let (c, cf) = (kernel(6), fs.clone());
    let paths: Vec<Path> = vec![
        Box::pin(async move {
            let mut a = create(&k, &first, 1).await;
            write(&k, &first, &mut a, 0, 4096).await;
            first.fsync(&k, 1, false).await;
        }),
        // Two reads, data, the journal's superblock, the log, the record: 100 us each.
        other(1, 250_000),
        other(2, 450_000),
        other(3, 550_000),
        Box::pin(async move { f.flusher(&ff).await }),
        Box::pin(async move { jf.journal_thread(&j).await }),
        Box::pin(async move { cf.completions(&c).await }),
    ];
    run(&world, paths, 4, 100_000);
    assert_eq!(*ends.borrow(), [(250_000, 250_000), (450_000, 500_000), (550_000, 550_000)]);
}
