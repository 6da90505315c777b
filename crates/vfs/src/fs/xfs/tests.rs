//! Worked scenarios on a fresh file system of 20 GiB, read off block traces of Linux 6.12 and 6.18. Sectors of 512 bytes; those
//! of the log are counted from its start.

use super::*;
use crate::cache::readahead::Stream;
use crate::fs::testing::{letters, trace};
use crate::fs::{FileSystem as _, Kind};
use crate::kernel::read::Open;
use crate::kernel::writeback::Backing as _;
use crate::kernel::{Kernel, Wait};

const ROOT: u32 = 0;
const LOG: u64 = 20_971_568;
const MS: u64 = 1_000_000;

fn traced<F>(program: impl FnOnce(Kernel, Xfs) -> F) -> Vec<String>
where
    F: Future<Output = ()> + 'static,
{
    timed(program).into_iter().map(|(_, bio)| bio).collect()
}

/// With times in milliseconds.
fn timed<F>(program: impl FnOnce(Kernel, Xfs) -> F) -> Vec<(u64, String)>
where
    F: Future<Output = ()> + 'static,
{
    let log = trace(Xfs::new(20 << 18, ROOT, Options::default(), None), program);
    log.iter().map(|(at, b)| (at / MS, letters(b, 1, LOG..LOG + 131_072))).collect()
}

async fn create(k: &Kernel, fs: &Xfs, file: u32) -> Open {
    k.with(|w| w.memory.open(file));
    fs.create(k, (ROOT, file), Kind::File, &format!("f0_{file}")).await.unwrap();
    Open { file, size: 0, ra: 32, large_folios: false, stream: Stream::default(), noted: true }
}

async fn write(k: &Kernel, fs: &Xfs, file: &mut Open, at: u64, len: u64) {
    let place = fs.place(file.file);
    k.write(file, &place, at, len).await;
    fs.wrote(k, file.file, (at / 4096, (at + len).div_ceil(4096))).await;
}

async fn pause(k: &Kernel) {
    k.wait(Wait::Compute(50 * MS)).await;
}

/// Headers are sectors 1 to 3 of a group; its trees are blocks 1 to 4, the first inodes blocks 16 to 19.
const COLD: [&str; 3] = ["RM 32+8", "RM 24+8", "RM 128+32"];

#[test]
fn creating_appending_and_overwriting() {
    let log = traced(|k, fs| async move {
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
    });
    assert_eq!(log[..3], COLD);
    assert_eq!(
        log[3..],
        [
            // The free list and both trees of free space, then the first block of the gap before the inodes.
            "RM 3+1",
            "RM 16+8",
            "RM 8+8",
            "WS 80+8",
            "FWFSM p2+5",
            "WS 88+8",
            "FWFSM p7+3",
            "WS 96+8",
            "FWFSM p10+3",
            // Only the time has changed.
            "WS 80+8",
            "FWFSM p13+2",
            // fdatasync does not care for it.
            "WS 80+8",
            "FWS",
            "FWS",
            "FWFSM p15+2",
            "FWS",
        ]
    );
}

#[test]
fn a_log_record_grows_with_the_directory() {
    let log = traced(|k, fs| async move {
        for file in 1..=60 {
            let mut a = create(&k, &fs, file).await;
            write(&k, &fs, &mut a, 0, 4096).await;
            fs.fsync(&k, file, false).await;
        }
    });
    let records = log.iter().filter_map(|l| Some(l.strip_prefix("FWFSM p")?.split_once('+')?.1));
    let records: Vec<u32> = records.map(|n| n.parse().unwrap()).collect();
    // In the inode, then in a block whose entries and hashes are logged again and again.
    assert_eq!(records[..26], [5; 26]);
    assert_eq!(records[26..36], [7; 10]);
    assert_eq!(records[36..52], [8; 16]);
    assert_eq!(records[52..], [9; 8]);
}

/// Every 30 s, rounded up as timers are: the log, then all of it home; then two records that mark the log as clean.
#[test]
fn the_worker_tidies_up() {
    let log = timed(|k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 40960).await;
        fs.fsync(&k, 1, false).await;
        k.wait(Wait::Compute(150_000 * MS)).await;
    });
    let after: Vec<(u64, &str)> = log.iter().skip(8).map(|(t, l)| (*t, l.as_str())).collect();
    assert_eq!(
        after,
        [
            (30_000, "WM 1+1"),
            (30_000, "WM 2+1"),
            // Four blocks of trees.
            (30_000, "WM 8+32"),
            (30_000, "WM 128+32"),
            (61_440, "FWFSM p7+2"),
            (61_440, "WM 0+1"),
            (92_160, "FWFSM p9+2"),
            (92_160, "WM 0+1"),
        ]
    );
}

/// Appending past 64 KiB takes blocks along: as many as follow one another on the disk before it, doubled, as a power of two.
#[test]
fn appending_takes_blocks_along_and_closing_gives_them_back() {
    let log = traced(|k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        for n in 0..48 {
            write(&k, &fs, &mut a, n * 4096, 4096).await;
            fs.fsync(&k, 1, false).await;
        }
        let before = fs.free();
        fs.closed(&k, 1);
        assert_eq!(fs.free() - before, 16);
    });
    let records = log.iter().filter_map(|l| Some(l.strip_prefix("FWFSM p")?.split_once('+')?.1));
    let places: Vec<usize> = records.enumerate().filter(|(_, n)| *n == "3").map(|r| r.0).collect();
    // Each of the first 16 pages needs a block of its own, then one in 16, and one in 32.
    assert_eq!(places, (1..=16).chain([32]).collect::<Vec<_>>());
}

#[test]
fn directories_go_round_the_groups() {
    let log = traced(|k, fs| async move {
        for n in 1..=5 {
            k.with(|w| w.memory.open(n));
            fs.create(&k, (ROOT, n), Kind::Directory, &format!("m{n}")).await.unwrap();
            fs.fsync_directory(&k, ROOT).await;
        }
    });
    let group = 1_310_720 * 8;
    let in_group = |g: u64| {
        [3, 16, 8, 24, 32].map(|s| format!("RM {}+{}", g * group + s, if s == 3 { 1 } else { 8 }))
    };
    let mut expected: Vec<String> = COLD.map(String::from).to_vec();
    expected.push("FWFSM p2+4".into());
    let mut at = 6;
    for g in 1..4 {
        expected.extend(in_group(g));
        expected.push(format!("FWFSM p{at}+5"));
        at += 5;
    }
    expected.push(format!("FWFSM p{at}+4"));
    assert_eq!(log, expected);
}

/// Linux 6.12: the text of a link is in its inode, one of more than 336 bytes in a block.
#[test]
fn long_links_have_a_block() {
    let log = traced(|k, fs| async move {
        for (n, bytes) in [(1, 7), (2, 59), (3, 60), (4, 400)] {
            k.with(|w| w.memory.open(n));
            let name = char::from(b'j' + n as u8).to_string();
            fs.create(&k, (ROOT, n), Kind::Link(bytes), &name).await.unwrap();
            fs.fsync_directory(&k, ROOT).await;
        }
        for n in [3, 4] {
            let name = char::from(b'j' + n as u8).to_string();
            fs.unlink(&k, (ROOT, n), &name, true).await;
            fs.fsync_directory(&k, ROOT).await;
        }
    });
    let mut expected: Vec<&str> = COLD.to_vec();
    expected.extend(["FWFSM p2+4", "FWFSM p6+4", "FWFSM p10+4"]);
    expected.extend(["RM 3+1", "RM 16+8", "RM 8+8", "FWFSM p14+6", "FWFSM p20+3", "FWFSM p23+3"]);
    assert_eq!(log, expected);
}

/// What was freed is not given away before the log has it, and no block is in two files.
#[test]
fn freed_blocks_come_back_with_the_log() {
    traced(|k, fs| async move {
        let free = fs.free();
        for round in 0..3 {
            for file in 1..=40 {
                let mut a = create(&k, &fs, file).await;
                write(&k, &fs, &mut a, 0, 300_000).await;
                fs.fsync(&k, file, true).await;
            }
            let mut places: Vec<u64> = (1..=40)
                .flat_map(|f| fs.with(|s| s.inodes.get(f).unwrap().extents.clone().cut(0)))
                .flat_map(|m| m.start..m.start + m.blocks)
                .collect();
            let n = places.len();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), n, "round {round}");
            for file in 1..=40 {
                fs.unlink(&k, (ROOT, file), &format!("f0_{file}"), true).await;
            }
            fs.sync(&k).await;
            // The directory keeps its first block.
            assert_eq!(free - fs.free(), 1, "round {round}");
        }
        let usable: u64 = fs.with(|s| s.usable.iter().map(Space::free).sum());
        let all: u64 = fs.with(|s| s.groups.iter().map(Space::free).sum());
        assert_eq!(usable, all);
    });
}

/// Data behind the end that the disk knows goes before the file gets a new one. Seen in the event log of `sqlite_waln`.
#[test]
fn data_past_the_end_on_disk_goes_before_a_cut() {
    let log = traced(|k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        write(&k, &fs, &mut a, 0, 24_576).await;
        fs.truncate(&k, 1, 6).await;
        fs.fsync(&k, 1, true).await;
    });
    let data: Vec<_> = log.iter().filter(|b| b.starts_with("WS ")).map(String::as_str).collect();
    assert_eq!(data, ["WS 80+8", "WS 88+40", "WS 80+8"]);
}

/// Blocks that are marked as written and those that are not yet go in bios of their own, though they lie side by side. Seen in
/// the event log of `sqlite_wal`.
#[test]
fn pages_that_are_not_marked_as_written_are_a_bio_of_their_own() {
    traced(|k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        for n in 1..4 {
            write(&k, &fs, &mut a, 0, n * 8192).await;
            fs.fsync(&k, 1, false).await;
        }
        write(&k, &fs, &mut a, 0, 32_768).await;
        for from in [0, 6] {
            fs.prepare(&k, 1, from, 8).await;
        }
        assert_eq!((fs.ends_late(1, (0, 8)), fs.ends_late(1, (6, 8))), ((false, 6), (true, 8)));
        fs.fsync(&k, 1, false).await;
        assert_eq!(fs.ends_late(1, (0, 8)), (false, 8));
    });
}

/// A copy shares its source's blocks and costs none; written pages get blocks of their own, and the others stay shared until
/// both files are gone.
#[test]
fn a_copy_shares_blocks_until_it_is_written() {
    traced(|k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 40_960).await;
        fs.fsync(&k, 1, false).await;
        let mut b = create(&k, &fs, 2).await;
        let one = fs.free();
        assert!(fs.share(&k, (1, 0), (2, 0), 10).await);
        assert!(!fs.share(&k, (1, 0), (2, 0), 10).await, "it has pages there");
        let places = |file| {
            let of = move |s: &mut State| s.inodes.get(file).unwrap().extents.clone();
            fs.with(of).blocks(0, 10).collect::<Vec<_>>()
        };
        assert_eq!((fs.free(), places(1)), (one, places(2)));
        b.size = 40_960;
        write(&k, &fs, &mut b, 8192, 8192).await;
        fs.fsync(&k, 2, false).await;
        // A unit of 128 KiB is for it.
        assert_eq!(one - fs.free(), 32);
        let own: Vec<bool> = places(1).iter().zip(places(2)).map(|(x, y)| *x != y).collect();
        assert_eq!(own.iter().filter(|o| **o).count(), 2);
        assert!(own[2] && own[3]);
        fs.unlink(&k, (ROOT, 1), "f0_1", true).await;
        fs.sync(&k).await;
        assert_eq!(one - fs.free(), 30, "two blocks had one owner");
        fs.unlink(&k, (ROOT, 2), "f0_2", true).await;
        fs.sync(&k).await;
        assert_eq!(fs.free() - one, 10);
    });
}

/// Seen in the event log of Linux 6.12: the buffer of 32 inodes once, all but the first block of a directory ahead of those
/// that are read, leaves for a name, and nothing but leaves for one that is not there.
#[test]
fn a_cold_mount_reads_names_and_inodes() {
    let log = traced(|k, fs| async move {
        for (file, name) in [(1, "d"), (2, "e")] {
            fs.create(&k, (ROOT, file), Kind::Directory, name).await.unwrap();
        }
        for n in 0..1500 {
            fs.create(&k, (1, 3 + n), Kind::File, &format!("some_longer_name_{n}")).await.unwrap();
        }
        fs.create(&k, (2, 2000), Kind::File, "in the inode").await.unwrap();
        fs.sync(&k).await;
        pause(&k).await;
        fs.mounted_cold();
        // A flush marks where it begins.
        fs.fsync(&k, 1, false).await;
        for _ in 0..2 {
            fs.look_up(&k, ROOT, "d", Some(1)).await;
            fs.look_up(&k, ROOT, "e", Some(2)).await;
            fs.read_directory(&k, 2).await;
            fs.read_directory(&k, 1).await;
            fs.look_up(&k, 1, "none", None).await;
            fs.look_up(&k, 1, "some_longer_name_700", Some(703)).await;
        }
        // The next directory would have been in the third group.
        fs.create(&k, (ROOT, 2001), Kind::Directory, "g").await.unwrap();
    });
    let mounted = log.iter().rposition(|l| l == "FWS").unwrap() + 1;
    let expected = [
        // Inodes of "d" and "e"; the second directory lies in the second group, and its entry in its inode.
        "RM 128+32",
        "RM 10485888+32",
        // The first block, nine ahead when it is there, the other three.
        "RAM 120+8",
        "RAM 104+8",
        "RAM 96+8",
        "RAM 88+8",
        "RAM 80+8",
        "RAM 664+16",
        "RAM 688+16",
        "RAM 1344+8",
        "RAM 1360+24",
        // The root of the leaves, one of them; another one, and the inode.
        "RM 112+8",
        "RM 640+8",
        "RM 656+8",
        "RM 896+32",
        // Trees of inodes of the first group, and the buffer with the one that is free.
        "RM 32+8",
        "RM 24+8",
        "RM 1760+32",
    ];
    assert_eq!(log[mounted..], expected);
}
