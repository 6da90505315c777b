//! `pg-test-fsync`: PostgreSQL's test of ways to make a block of its log durable.
//!
//! The calls are those of pg_test_fsync 15, seen with strace.

use iosched_syscalls::{Done, Fd, OpenFlags, Part, Sys};
use iosched_types::Bytes;
use iosched_types::units::{SEC, US};

use super::{Descriptor, Figure, Kind, Param, Params, fits};

const FILE: &str = "pg_test_fsync.out";
/// A segment of the log.
const SEGMENT: Bytes = 16 << 20;
/// What direct writes are multiples of.
const SECTOR: Bytes = 512;
/// Tests. Their rates come first among the figures, then the times.
const TESTS: usize = 16;

const fn ops(name: &'static str) -> Figure {
    Figure { name, unit: "ops/s", higher_is_better: Some(true) }
}

/// The same number once more, as the original shows it: it is the rate that is compared.
const fn each(name: &'static str) -> Figure {
    Figure { name, unit: "us", higher_is_better: None }
}

/// The test.
pub(super) static PG_TEST_FSYNC: Descriptor = Descriptor {
    name: "pg-test-fsync",
    quick: &[("seconds", "1")],
    text: "pg_test_fsync: how often a second a block of a log can be made durable, by each way that there is \
           (PostgreSQL 15; fsync_writethrough is not on Linux).",
    params: &[
        Param {
            name: "seconds",
            text: "Length of each test (-s).",
            default: "5",
            kind: Kind::Count(1, 3600),
        },
        Param {
            name: "block",
            text: "Bytes of a block of the log.",
            default: "8k",
            kind: Kind::Bytes(1024, 64 << 10),
        },
    ],
    figures: &[
        ops("open_datasync"),
        ops("fdatasync"),
        ops("fsync"),
        ops("open_sync"),
        ops("open_datasync, two writes"),
        ops("fdatasync, two writes"),
        ops("fsync, two writes"),
        ops("open_sync, two writes"),
        ops("open_sync 1 * 16kB"),
        ops("open_sync 2 * 8kB"),
        ops("open_sync 4 * 4kB"),
        ops("open_sync 8 * 2kB"),
        ops("open_sync 16 * 1kB"),
        ops("write, fsync, close"),
        ops("write, close, fsync"),
        ops("write"),
        each("open_datasync, time of one"),
        each("fdatasync, time of one"),
        each("fsync, time of one"),
        each("open_sync, time of one"),
        each("open_datasync, two writes, time of one"),
        each("fdatasync, two writes, time of one"),
        each("fsync, two writes, time of one"),
        each("open_sync, two writes, time of one"),
        each("open_sync 1 * 16kB, time of one"),
        each("open_sync 2 * 8kB, time of one"),
        each("open_sync 4 * 4kB, time of one"),
        each("open_sync 8 * 2kB, time of one"),
        each("open_sync 16 * 1kB, time of one"),
        each("write, fsync, close, time of one"),
        each("write, close, fsync, time of one"),
        each("write, time of one"),
    ],
    absent: &[
        ("fsync_writethrough", "fsync"),
        ("fsync_writethrough, two writes", "fsync, two writes"),
    ],
    only_real: &[],
    periodic: &[],
    room: |_| SEGMENT,
    fits: |p| {
        let block = p.bytes("block");
        fits(block % SECTOR == 0, || {
            format!("block={block} is no multiple of {SECTOR}, as direct writes must be")
        })
    },
    prepare: None,
    run: |sys, p| Box::pin(run(sys, p)),
};

/// What ends an operation.
#[derive(Clone, Copy)]
enum Durable {
    No,
    Fdatasync,
    Fsync,
}

/// A test on a file that stays open: `writes` of `bytes` each, one behind the other from the start.
struct Test {
    name: &'static str,
    flags: OpenFlags,
    writes: u64,
    bytes: Bytes,
    durable: Durable,
}

fn tests(block: Bytes) -> Vec<Test> {
    let plain = OpenFlags::READ | OpenFlags::WRITE;
    let [dsync, sync] = [OpenFlags::DSYNC, OpenFlags::SYNC].map(|f| plain | OpenFlags::DIRECT | f);
    let ways = [
        (dsync, Durable::No),
        (plain, Durable::Fdatasync),
        (plain, Durable::Fsync),
        (sync, Durable::No),
    ];
    let names = PG_TEST_FSYNC.figures.iter().map(|f| f.name);
    let by_way = [1, 2]
        .into_iter()
        .flat_map(|writes| ways.map(|(flags, durable)| (flags, writes, block, durable)));
    let by_size = [1, 2, 4, 8, 16].map(|writes| (sync, writes, (16 << 10) / writes, Durable::No));
    let test =
        |(name, (flags, writes, bytes, durable))| Test { name, flags, writes, bytes, durable };
    names.zip(by_way.chain(by_size)).map(test).collect()
}

async fn run(sys: Sys, p: Params) -> Done {
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let fd = sys.open(FILE, flags | OpenFlags::CREATE).await?;
    sys.write(fd, SEGMENT).await?;
    sys.fsync(fd).await?;
    sys.close(fd).await?;
    let (block, time) = (p.bytes("block"), p.count("seconds") * SEC);
    for test in tests(block) {
        let fd = sys.open(FILE, test.flags).await?;
        let (begun, mut n) = (sys.now(), 0u64);
        while sys.now() - begun < time {
            once(&sys, fd, &test).await?;
            n += 1;
        }
        rate(&sys, test.name, n, begun).await?;
        sys.close(fd).await?;
    }
    for (name, closes_first) in [("write, fsync, close", false), ("write, close, fsync", true)] {
        let (begun, mut n) = (sys.now(), 0);
        while sys.now() - begun < time {
            reopen(&sys, block, closes_first).await?;
            n += 1;
        }
        rate(&sys, name, n, begun).await?;
    }
    let fd = sys.open(FILE, flags).await?;
    let (begun, mut n) = (sys.now(), 0);
    while sys.now() - begun < time {
        sys.pwrite(fd, 0, block).await?;
        n += 1;
    }
    rate(&sys, "write", n, begun).await?;
    sys.close(fd).await?;
    sys.unlink(FILE).await
}

async fn once(sys: &Sys, fd: Fd, test: &Test) -> Done {
    for i in 0..test.writes {
        sys.pwrite(fd, i * test.bytes, test.bytes).await?;
    }
    match test.durable {
        Durable::No => Ok(()),
        Durable::Fdatasync => sys.fdatasync(fd).await,
        Durable::Fsync => sys.fsync(fd).await,
    }
}

/// Whether a sync through one descriptor makes durable what another one wrote.
async fn reopen(sys: &Sys, block: Bytes, closes_first: bool) -> Done {
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let fd = sys.open(FILE, flags).await?;
    sys.write(fd, block).await?;
    if !closes_first {
        sys.fsync(fd).await?;
    }
    sys.close(fd).await?;
    let fd = sys.open(FILE, flags).await?;
    if closes_first {
        sys.fsync(fd).await?;
    }
    sys.close(fd).await
}

async fn rate(sys: &Sys, name: &'static str, n: u64, begun: u64) -> Done {
    sys.mark(Part::Phase, name, begun).await?;
    let time = (sys.now() - begun).max(1) as f64;
    sys.figure(name, n as f64 * SEC as f64 / time).await?;
    let all = PG_TEST_FSYNC.figures.iter().map(|f| f.name);
    match all.clone().zip(all.skip(TESTS)).find(|(rate, _)| *rate == name) {
        Some((_, each)) => sys.figure(each, time / (n.max(1) * US) as f64).await,
        None => Ok(()),
    }
}
