//! Worked scenarios of 2.6.18, derived from descriptions of its behaviour, and one that was seen on Linux 6.18 with a file
//! system of ext3's format.

use std::cell::RefCell;
use std::rc::Rc;

use iosched_types::Flags;

use super::layout::{BY_1_39, BY_1_47};
use super::*;
use crate::cache::readahead::{Era, Stream};
use crate::fs::ext4::{Data, Driver};
use crate::fs::testing::letters;
use crate::fs::{FileSystem as _, Kind};
use crate::kernel::memory::{Memory, Settings};
use crate::kernel::read::Open;
use crate::kernel::testing::{Path, run};
use crate::kernel::writeback::Backing as _;
use crate::kernel::{BioOut, Kernel, Wait, World};

const ROOT: u32 = 0;
const NAME: &str = "a";
const MS: u64 = 1_000_000;

/// ext3 of 2.6.18 with HZ 1000.
fn jbd() -> Options {
    Options {
        barrier: false,
        driver: Driver::Jbd,
        log_flags: Flags::NONE,
        parts: 4,
        tick: MS,
        ..Options::default()
    }
}

fn open(file: u32) -> Open {
    Open { file, size: 0, ra: 32, large_folios: false, stream: Stream::default(), noted: true }
}

async fn create(k: &Kernel, fs: &Ext3, file: u32) -> Open {
    k.with(|w| w.memory.open(file));
    fs.create(k, (ROOT, file), Kind::File, NAME).await.unwrap();
    open(file)
}

async fn write(k: &Kernel, fs: &Ext3, file: &mut Open, at: u64, len: u64) {
    let pages = (at / 4096, (at + len).div_ceil(4096));
    fs.will_write(k, file.file, pages).await.unwrap();
    match k.with(|w| w.memory.settings.writers_write) {
        true => k.write_and_look(file, fs, at, len).await,
        false => k.write(file, &fs.place(file.file), at, len).await,
    };
    fs.wrote(k, file.file, pages).await;
}

/// A program's bios beside `kjournald` and `pdflush`: when, and as the block trace prints them. Journal blocks by position.
fn traced<F>(options: Options, program: impl FnOnce(Kernel, Ext3) -> F) -> Vec<(u64, String)>
where
    F: Future<Output = ()> + 'static,
{
    let old = options.driver == Driver::Jbd;
    let format = if old { BY_1_39 } else { BY_1_47 };
    let fs = Ext3::new(20 << 18, ROOT, format, options, None);
    let mut world = World::default();
    world.memory = Memory::new(Settings {
        writers_write: old,
        era: if old { Era::Twin } else { Era::Split },
        bio_pages: if old { 1 } else { u64::MAX },
        ..Settings::default()
    });
    world.memory.introduce(4096);
    let world = Rc::new(RefCell::new(world));
    let kernel = |task| Kernel::new(world.clone(), task);
    let (f, j, ff, jf) = (kernel(1), kernel(2), fs.clone(), fs.clone());
    let paths: Vec<Path> = vec![
        Box::pin(program(kernel(0), fs.clone())),
        Box::pin(async move {
            match old {
                true => f.pdflush(&ff).await,
                false => f.flusher(&ff).await,
            }
        }),
        Box::pin(async move { jf.journal_thread(&j).await }),
    ];
    let log = run(&world, paths, 1, 100_000);
    assert!(world.borrow().memory.accounts());
    let layout = Layout::of(20 << 18, format);
    let journal = layout.journal.0..layout.journal_block(layout.journal.1 - 1) + 1;
    log.iter().map(|(at, b): &(u64, BioOut)| (*at, letters(b, 8, journal.clone()))).collect()
}

fn words(log: &[(u64, String)]) -> Vec<&str> {
    log.iter().map(|(_, l)| l.as_str()).collect()
}

/// A small file's sync waits for a megabyte of somebody else: `kjournald` writes it in the same commit, page by page,
/// before any block of the journal, and the commit block last. Nothing is flushed, nothing says SYNC. The other's own
/// sync afterwards finds nothing to do.
#[test]
fn a_sync_waits_for_everybodys_data() {
    let log = traced(jbd(), |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        let mut b = create(&k, &fs, 2).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        k.wait(Wait::Until(2000 * MS)).await;
        write(&k, &fs, &mut b, 0, 1 << 20).await;
        k.wait(Wait::Until(3000 * MS)).await;
        write(&k, &fs, &mut a, 4096, 4096).await;
        fs.fsync(&k, 1, false).await;
        k.wait(Wait::Until(3500 * MS)).await;
        fs.fsync(&k, 2, false).await;
    });
    let log: Vec<_> = log.into_iter().filter(|(at, _)| *at >= 2000 * MS).collect();
    let all = words(&log);
    let journal = all.iter().position(|l| l.contains(" p")).unwrap();
    assert_eq!(journal, 257, "a's page, then b's 256: {:?}", &all[..4]);
    assert!(all.iter().all(|l| l.starts_with("W ")), "{all:?}");
    let (body, commit) = (&log[journal..log.len() - 1], &log[log.len() - 1]);
    assert!(
        body.iter().all(|(_, l)| l.contains(" p") && l.ends_with("+1")),
        "a bio for each block"
    );
    assert!(commit.0 > body.last().unwrap().0, "the commit block waits for them");
    assert!(body[0].0 > log[256].0, "and they for the data");
    assert_eq!(log[0].0, 3000 * MS, "the caller starts his own page at once");
    // Nobody else has synced before: no tick is waited for others to join.
    assert_eq!(log[1].0 / MS, 3000);
}

/// Who syncs after another one waits for the end of the tick, for others to join.
#[test]
fn another_ones_sync_lets_others_join() {
    let world = Rc::new(RefCell::new(World::default()));
    world.borrow_mut().memory.settings.writers_write = true;
    let fs = Ext3::new(20 << 18, ROOT, BY_1_39, jbd(), None);
    let kernel = |task| Kernel::new(world.clone(), task);
    let mut paths: Vec<Path> = Vec::new();
    for task in 0..2_u32 {
        let (k, fs) = (kernel(task), fs.clone());
        paths.push(Box::pin(async move {
            let mut a = create(&k, &fs, task + 1).await;
            for n in 0..5 {
                write(&k, &fs, &mut a, n * 4096, 4096).await;
                fs.fsync(&k, task + 1, false).await;
            }
        }));
    }
    let (j, jf) = (kernel(2), fs.clone());
    paths.push(Box::pin(async move { jf.journal_thread(&j).await }));
    run(&world, paths, 2, 10_000);
    assert!(world.borrow().now >= 4 * MS, "{} ns", world.borrow().now);
    // Who syncs twice in a row waits for nobody the second time.
    assert!(fs.commits() < 10, "{} commits for 10 syncs", fs.commits());
}

/// An inode of ext3 has no place for parts of a second: overwrites within one leave nothing that a sync would commit.
#[test]
fn overwrites_of_one_second_need_one_commit() {
    let log = traced(jbd(), |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        for ms in [2100, 2105, 2900, 3001, 3900] {
            k.wait(Wait::Until(ms * MS)).await;
            write(&k, &fs, &mut a, 0, 4096).await;
            fs.fsync(&k, 1, false).await;
        }
    });
    let log = || log.iter().filter(|(at, _)| *at >= 2000 * MS);
    let data = log().filter(|(_, l)| !l.contains(" p")).count();
    assert_eq!(data, 5, "each sync writes its page");
    // An inode, its descriptor and a commit block for each of the two seconds.
    let commits = log().filter(|(_, l)| l.contains(" p")).map(|(at, _)| at / MS / 100);
    assert_eq!(commits.collect::<Vec<_>>(), [21, 21, 21, 30, 30, 30]);
}

/// Without any sync `kjournald` writes what is new five seconds after the first change, and an overwrite, too.
#[test]
fn data_goes_with_the_commit_every_five_seconds() {
    let log = traced(jbd(), |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 8192).await;
        k.wait(Wait::Until(10_000 * MS)).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        k.wait(Wait::Until(20_000 * MS)).await;
    });
    let data: Vec<_> =
        log.iter().filter(|(_, l)| l.starts_with("W ") && !l.contains(" p")).collect();
    let times: Vec<u64> = data.iter().map(|(at, _)| at / MS / 100).collect();
    assert_eq!(times.len(), 3, "{data:?}");
    assert!((50..=60).contains(&times[0]) && (150..=160).contains(&times[2]), "{times:?}");
    assert_eq!(data[0].1, data[2].1, "the same place");
}

/// Two files that were written at the same time on two cores: their pages alternate on the way to the disk.
#[test]
fn data_goes_in_the_order_of_dirtying() {
    let log = traced(jbd(), |k, fs| async move {
        k.with(|w| w.memory.settings.page_ns = 1000);
        let mut a = create(&k, &fs, 1).await;
        let mut b = create(&k, &fs, 2).await;
        write(&k, &fs, &mut a, 0, 8 << 12).await;
        write(&k, &fs, &mut b, 0, 8 << 12).await;
        // An overwrite keeps its place.
        write(&k, &fs, &mut a, 0, 4096).await;
        k.wait(Wait::Until(20_000 * MS)).await;
    });
    let data: Vec<u64> = log
        .iter()
        .filter(|(_, l)| l.starts_with("W ") && !l.contains(" p"))
        .filter_map(|(_, l)| l.strip_prefix("W ")?.strip_suffix("+1")?.parse().ok())
        .collect();
    assert_eq!(data.len(), 16, "{log:?}");
    let turns = data.windows(2).filter(|w| w[1] != w[0] + 1).count();
    assert!(turns >= 14, "{data:?}");
}

/// `kjournald` writes buffers: where write-back of the file goes on stays.
#[test]
fn a_commit_leaves_the_place_of_write_back() {
    let log = traced(jbd(), |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 64 << 12).await;
        k.write_range(1, &fs, (0, 16), u64::MAX, Flags::NONE, None).await;
        k.wait(Wait::Until(8000 * MS)).await;
        assert_eq!(k.with(|w| w.pages(1).map(|p| p.dirty())), Some(0), "the commit wrote them");
        assert_eq!(k.with(|w| w.memory.cursor(1)), 16);
    });
    assert!(log.len() > 64);
}

/// A page that is dirty again while somebody else writes it is written once more before its sync returns.
#[test]
fn a_sync_writes_what_is_dirty_again() {
    traced(jbd(), |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        // Who syncs twice in a row does not let others join: the commit begins at once.
        fs.fsync(&k, 1, false).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        k.write_some(1, &fs, (0, u64::MAX)).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        assert_eq!(k.with(|w| w.pages(1).map(|p| p.dirty())), Some(0));
    });
}

/// `data=writeback`: the commit waits for no data.
#[test]
fn written_back_data_is_left_to_pdflush() {
    let log = traced(Options { data: Data::Writeback, ..jbd() }, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        k.wait(Wait::Until(40_000 * MS)).await;
    });
    let data: Vec<_> = log
        .iter()
        .filter(|(_, l)| l.starts_with("W ") && !l.contains(" p") && !l.contains("+0"))
        .collect();
    let first = log.iter().position(|(_, l)| l.contains(" p")).unwrap();
    assert!(log[first].0 < 7000 * MS);
    assert!(data[0].0 >= 30_000 * MS, "{:?}", data[0]);
}

/// A barrier is the commit block's alone.
#[test]
fn barriers_are_of_the_commit_block() {
    let log = traced(Options { barrier: true, ..jbd() }, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
    });
    let barriers: Vec<_> = words(&log).into_iter().filter(|l| l.starts_with('F')).collect();
    assert_eq!(barriers.len(), 1, "{log:?}");
    assert_eq!(words(&log).last(), barriers.last());
}

/// Large files: an indirect block before the 13th block and then before each range of 1,024, in line with the data.
#[test]
fn indirect_blocks_lie_in_line() {
    let world = Rc::new(RefCell::new(World::default()));
    let fs = Ext3::new(20 << 18, ROOT, BY_1_39, jbd(), None);
    let (k, fs2) = (Kernel::new(world.clone(), 0), fs.clone());
    let path: Path = Box::pin(async move {
        let mut a = create(&k, &fs2, 1).await;
        for n in 0..3000 {
            write(&k, &fs2, &mut a, n * 4096, 4096).await;
        }
    });
    run(&world, vec![path], 1, 1000);
    use crate::kernel::read::Place as _;
    let place = fs.place(1);
    let at = |page| place.at(page).0.unwrap() / 8 - place.at(0).0.unwrap() / 8 - page;
    assert_eq!([11, 12, 1035, 1036, 2059, 2060].map(at), [0, 1, 1, 3, 3, 4]);
}

/// Seen on Linux 6.18 with a file system of this format: by jbd2, so with SYNC and META, and the commit block with its
/// flush; data that got new blocks goes before the journal's; the other's sync is a flush.
#[test]
fn by_jbd2_new_blocks_are_ordered() {
    let options = Options { unwritten: false, ..Options::default() };
    let log = traced(options, |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        let mut b = create(&k, &fs, 2).await;
        write(&k, &fs, &mut a, 0, 4096).await;
        fs.fsync(&k, 1, false).await;
        k.wait(Wait::Until(2000 * MS)).await;
        write(&k, &fs, &mut b, 0, 1 << 20).await;
        write(&k, &fs, &mut a, 4096, 8192).await;
        fs.fsync(&k, 1, false).await;
        fs.fsync(&k, 2, false).await;
    });
    let log: Vec<_> = log.into_iter().filter(|(at, _)| *at >= 2000 * MS).collect();
    let all = words(&log);
    assert!(all[0].starts_with("WS ") && all[0].ends_with("+2"), "{all:?}");
    let journal = all.iter().position(|l| l.starts_with("WSM p")).unwrap();
    let blocks: u64 =
        all[1..journal].iter().map(|l| l.rsplit('+').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(blocks, 256);
    assert!(all[1..journal].iter().all(|l| l.starts_with("WS ")), "{all:?}");
    assert!(all[all.len() - 2].starts_with("FWFSM p"), "{all:?}");
    assert_eq!(all[all.len() - 1], "FWS");
}

/// After a mount a file's indirect blocks are read, one by one, before it is freed.
#[test]
fn freeing_a_cold_file_reads_its_indirect_blocks() {
    let log = traced(jbd(), |k, fs| async move {
        let mut a = create(&k, &fs, 1).await;
        write(&k, &fs, &mut a, 0, 3000 * 4096).await;
        fs.fsync(&k, 1, false).await;
        fs.mounted_cold();
        k.with(|w| w.signal(crate::kernel::Event::Room));
        fs.unlink(&k, (ROOT, 1), NAME, true).await;
    });
    let reads: Vec<_> = words(&log).into_iter().filter(|l| l.starts_with("R ")).collect();
    // When it was made: directory and bitmap. Then the bitmap, and three ranges with the double one.
    assert_eq!(reads.len(), 2 + 1 + 4, "{reads:?}");
}
