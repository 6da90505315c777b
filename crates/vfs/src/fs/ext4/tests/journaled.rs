//! `data=journal`: data goes through the log, and home afterwards.

use super::*;

/// `data=journal`: data goes through the log, then home in the same sync, then the disk is flushed; and that begins a
/// transaction that stays empty. Seen on Linux 6.18.
#[test]
fn journaled_data_goes_home_in_the_sync() {
    let options = Options { data: Data::Journal, delalloc: false, ..Options::default() };
    let log = traced(options, 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        for n in 0..2 {
            fs.will_write(&k, 1, (n, n + 1)).await.unwrap();
            write(&k, &fs, &mut a, n * 4096, 4096).await;
            fs.fsync(&k, 1, false).await;
            pause(&k).await;
        }
        k.wait(Wait::Until(8000 * MS)).await;
    });
    let tail: Vec<&str> = log[2..].iter().map(String::as_str).collect();
    // J0; descriptor and seven blocks; commit block; home; flush.
    assert_eq!(tail[..2], ["WSM p0+1", "WSM p1+8"], "{tail:?}");
    assert!(tail[2].starts_with("FWFSM p9") && tail[3].starts_with("WS ") && tail[4] == "FWS");
    assert!(
        tail[5].starts_with("WSM p") && tail[5].ends_with("+5"),
        "descriptor and four: {tail:?}"
    );
    assert!(tail[6].starts_with("FWFSM p") && tail[7].starts_with("WS ") && tail[8] == "FWS");
    // Five to six seconds later a commit block alone.
    assert!(tail[9].starts_with("FWFSM p"), "{tail:?}");
}

/// Linux 6.12: journaled data is dirty in memory from the write on. It cannot go home before its commit, whoever asks. Write-back
/// brings it there when it is old, in bios of data, and that begins a transaction that stays empty. Metadata goes later.
#[test]
fn journaled_data_goes_home_by_write_back() {
    let options = Options { data: Data::Journal, delalloc: false, ..Options::default() };
    let log = traced(Options { unwritten: false, ..options }, 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        fs.will_write(&k, 1, (0, 256)).await.unwrap();
        write(&k, &fs, &mut a, 0, 1 << 20).await;
        k.sync_range(1, &fs, (0, u64::MAX), false).await;
        assert_eq!(k.with(|w| (w.memory.dirty, w.memory.writeback)), (256, 0));
        k.with(|w| w.memory.drop_pages(1, 0, 256, false));
        assert_eq!(k.with(|w| w.pages(1).map(|p| p.present())), Some(256));
        k.wait(Wait::Until(80_000 * MS)).await;
        assert_eq!(k.with(|w| w.memory.dirty), 0);
    });
    let data: Vec<usize> = (0..log.len()).filter(|n| log[*n].starts_with("W ")).collect();
    let commit = log.iter().position(|l| l.starts_with("FWFSM")).unwrap();
    assert!(data == [commit + 1] && log[commit + 1].ends_with("+256"), "{log:?}");
    assert!(log[commit + 2].starts_with("FWFSM p"), "{log:?}");
    assert!(log[commit + 3..].iter().all(|l| l.starts_with("WM ")), "{log:?}");
}

/// A checkpoint takes the pages of journaled data along: they are clean when they are home, and a removed file leaves none.
#[test]
fn a_checkpoint_cleans_journaled_pages() {
    let options = Options { data: Data::Journal, delalloc: false, ..Options::default() };
    traced(Options { unwritten: false, ..options }, 600 << 8, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        for n in 0..64 {
            fs.will_write(&k, 1, (n * 256, (n + 1) * 256)).await.unwrap();
            write(&k, &fs, &mut a, n << 20, 1 << 20).await;
        }
        // 64 MiB through a journal of 16 MiB.
        assert!(k.with(|w| w.memory.dirty) < 8192);
        fs.unlink(&k, (ROOT, 1), NAME, true).await;
        assert_eq!(k.with(|w| w.memory.dirty), 0);
        assert_eq!(fs.with(|s| s.journaled.len()), 0);
    });
}

/// `sync` brings journaled data home, in 6.4 and later by one call, before by two.
#[test]
fn syncs_bring_journaled_data_home() {
    for (data_home, calls) in [(true, 1), (false, 2)] {
        let options =
            Options { data: Data::Journal, delalloc: false, data_home, ..Options::default() };
        traced(Options { unwritten: false, ..options }, 20 << 18, move |k, fs| async move {
            let mut a = create(&k, &fs, 1).await;
            fs.will_write(&k, 1, (0, 4)).await.unwrap();
            write(&k, &fs, &mut a, 0, 16_384).await;
            for _ in 0..calls {
                assert_eq!(k.with(|w| w.memory.dirty), 4);
                fs.sync(&k).await;
            }
            assert_eq!(k.with(|w| w.memory.dirty), 0);
        });
    }
}

/// An overwrite is in the log with data alone, so `fdatasync` commits it, also amid a tick, and so does `fsync` of jbd.
#[test]
fn every_sync_of_journaled_data_commits() {
    for driver in [Driver::Jbd2, Driver::Jbd] {
        let options =
            Options { data: Data::Journal, delalloc: false, driver, ..Options::default() };
        let log = traced(options, 20 << 18, |k, fs| async move {
            let mut a = create(&k, &fs, 1).await;
            for n in 0..4 {
                fs.will_write(&k, 1, (0, 1)).await.unwrap();
                write(&k, &fs, &mut a, 0, 4096).await;
                fs.fsync(&k, 1, n > 0).await;
            }
        });
        let commits = log.iter().filter(|l| l.starts_with("FWFSM")).count();
        assert_eq!(commits, 4, "{log:?}");
    }
}

/// Before 6.4 a sync of journaled data is its commit and nothing else.
#[test]
fn syncs_of_journaled_data_ended_with_the_commit() {
    let options =
        Options { data: Data::Journal, delalloc: false, data_home: false, ..Options::default() };
    let log = traced(options, 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        fs.will_write(&k, 1, (0, 1)).await.unwrap();
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        fs.fsync(&k, 1, false).await;
    });
    let commit = log.iter().position(|l| l.starts_with("FWFSM")).unwrap();
    assert_eq!(commit + 1, log.len(), "{log:?}");
}

/// What went through the journal is read from the disk, also where `fallocate` gave the blocks.
#[test]
fn allocated_blocks_hold_data_once_it_is_in_the_journal() {
    let options = Options { data: Data::Journal, delalloc: false, ..Options::default() };
    traced(options, 20 << 18, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        fs.fallocate(&k, 1, 0, 16).await.unwrap();
        let holes = |fs: &Ext4| (0..16).filter(|p| fs.data(1).at(*p).0.is_none()).count();
        assert_eq!(holes(&fs), 16);
        fs.will_write(&k, 1, (0, 4)).await.unwrap();
        write(&k, &fs, &mut a, 0, 16_384).await;
        assert_eq!(holes(&fs), 12);
        fs.fsync(&k, 1, false).await;
    });
}

/// 32 MiB through a journal of 16 MiB: no transaction takes more than it may, and the sync ends. It was a panic.
#[test]
fn journaled_data_takes_several_transactions() {
    let options = Options { data: Data::Journal, delalloc: false, ..Options::default() };
    let log = traced(options, 600 << 8, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        fs.will_write(&k, 1, (0, 8192)).await.unwrap();
        write(&k, &fs, &mut a, 0, 32 << 20).await;
        fs.fsync(&k, 1, false).await;
    });
    let commits = log.iter().filter(|l| l.starts_with("FWFSM")).count();
    // A transaction takes up to a third of the journal.
    assert!((6..=8).contains(&commits), "{commits} commits");
}
