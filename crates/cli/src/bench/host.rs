//! How fast the host is: calls through page cache and file system, down to the block layer.

use std::ops::ControlFlow;
use std::time::Instant;

use iosched_experiment::Trial;
use iosched_host::fs::{Files, Mount, Mounted};
use iosched_host::programs::Programs;
use iosched_report::terminal::{Align, Cell, Grid};
use iosched_syscalls::{Done, OpenFlags, Sys};
use iosched_types::units::{SEC, show_count};
use iosched_vfs::cache::PAGE;
use iosched_vfs::cache::writeback::Intervals;
use iosched_vfs::fs::ext4::{Ext4, Options};
use iosched_vfs::fs::volume::Volume;
use iosched_vfs::kernel::memory::Settings;
use serde::Serialize;

use super::calls::{birth, host};
use crate::args::{BenchArgs, Format};
use crate::fail::{Failure, Outcome, code};
use crate::files::{print, print_json};

/// Memory of the machine in bytes. Streams are twice as long and do not fit.
const MEMORY: u64 = 256 << 20;
/// The file that is in memory.
const CACHED: u64 = 16 << 20;
/// Bytes of a call of a stream.
const CHUNK: u64 = 128 << 10;

/// A case: its name, how many units of those that were asked for it does, and its texts. Each text does so many.
struct Case {
    name: &'static str,
    /// What is counted.
    unit: &'static str,
    /// Units for a million requests.
    share: u64,
    prepare: Option<fn(Sys, u64) -> Running>,
    run: fn(Sys, u64) -> Running,
    /// What is wrong after so many.
    wrong: fn(&Programs, u64) -> Option<String>,
}

type Running = std::pin::Pin<Box<dyn Future<Output = Done>>>;

const CASES: &[Case] = &[
    Case {
        name: "cached-read",
        unit: "reads of 4 KiB",
        share: 1_000_000,
        prepare: None,
        run: |sys, n| Box::pin(cached(sys, n, false)),
        wrong: |h, n| in_memory(h, n, false),
    },
    Case {
        name: "cached-write",
        unit: "writes of 4 KiB",
        share: 1_000_000,
        prepare: None,
        run: |sys, n| Box::pin(cached(sys, n, true)),
        wrong: |h, n| in_memory(h, n, true),
    },
    Case {
        name: "stream-read-pages",
        unit: "pages",
        share: 1_000_000,
        prepare: Some(|sys, n| Box::pin(stream(sys, n, true))),
        run: |sys, n| Box::pin(stream(sys, n, false)),
        wrong: |h, n| through(h, n, false),
    },
    Case {
        name: "stream-write-pages",
        unit: "pages",
        share: 1_000_000,
        prepare: None,
        run: |sys, n| Box::pin(stream(sys, n, true)),
        wrong: |h, n| through(h, n, true),
    },
    Case {
        name: "append-fsync",
        unit: "appends of 4 KiB, each with its fsync",
        share: 50_000,
        prepare: None,
        run: |sys, n| Box::pin(append(sys, n)),
        wrong: |h, n| (h.commits() < n).then(|| format!("{} commits for {n} syncs", h.commits())),
    },
    Case {
        name: "create-unlink",
        unit: "files that come and go",
        share: 50_000,
        prepare: None,
        run: |sys, n| Box::pin(come_and_go(sys, n)),
        wrong: |h, n| {
            let calls = h.measured().calls;
            (calls != 3 * n).then(|| format!("{calls} calls for {n} files"))
        },
    },
];

/// One line.
#[derive(Serialize)]
struct Row {
    case: &'static str,
    per_second: f64,
    ns: f64,
    checks: String,
    #[serde(skip)]
    unit: &'static str,
}

pub(super) fn bench(trial: &Trial, args: &BenchArgs) -> Outcome {
    let rows: Vec<Row> =
        CASES.iter().map(|c| measure(trial, c, args.requests)).collect::<Outcome<_>>()?;
    match args.format {
        Format::Json => print_json(&rows)?,
        Format::Table => print(&table(&rows))?,
    }
    let wrong = rows.iter().filter(|r| r.checks != "ok");
    let wrong: Vec<String> = wrong.map(|r| format!("{}: {}", r.case, r.checks)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(Failure { code: code::FAILED, messages: wrong }) }
}

fn table(rows: &[Row]) -> String {
    let mut grid = Grid::new()
        .column("case", Align::Left)
        .column("a second", Align::Right)
        .column("ns", Align::Right)
        .column("checks", Align::Left)
        .column("what is counted", Align::Left);
    for r in rows {
        grid.row(vec![
            Cell::new(r.case),
            Cell::new(show_count(r.per_second)),
            Cell::new(format!("{:.1}", r.ns)),
            Cell::new(&r.checks),
            Cell::new(r.unit),
        ]);
    }
    grid.render(usize::MAX, false)
}

/// ext4 on the whole disk, with a journal whose commits are waited for.
fn mounted(bytes: u64) -> Files {
    Files::Mounted(Mount::new(Mounted {
        volume: Volume::Ext4(Ext4::new(bytes / PAGE, 0, 1, Options::default(), None)),
        memory: Settings { pages: MEMORY / PAGE, ..Settings::default() },
        intervals: Intervals { wake: 5 * SEC, expire: 30 * SEC, tick: 0 },
        read_ahead: 32,
    }))
}

fn measure(trial: &Trial, case: &Case, requests: u64) -> Outcome<Row> {
    let n = (requests * case.share / 1_000_000).max(1);
    let mut host = host(trial, mounted)?;
    let go_on = &mut |_: u64| ControlFlow::Continue(());
    if let Some(prepare) = case.prepare {
        let birth = birth(async move |sys| prepare(sys, n).await);
        host.prepare(birth, go_on).map_err(Failure::input)?;
    }
    let run = case.run;
    let birth = birth(async move |sys| run(sys, n).await);
    let begun = Instant::now();
    host.run(birth, go_on).map_err(Failure::input)?;
    let seconds = begun.elapsed().as_secs_f64();
    let checks = lost(&host).or_else(|| (case.wrong)(&host, n)).unwrap_or_else(|| "ok".into());
    Ok(Row {
        case: case.name,
        per_second: n as f64 / seconds,
        ns: seconds * 1e9 / n as f64,
        checks,
        unit: case.unit,
    })
}

/// Dirty bytes are written, dropped, or still dirty.
fn lost(host: &Programs) -> Option<String> {
    let c = host.counts();
    (c.dirtied != c.written + c.dropped + c.dirty).then(|| format!("dirty bytes: {c:?}"))
}

/// Every call moved its block, and the disk saw no more of them than the file has.
fn in_memory(host: &Programs, n: u64, write: bool) -> Option<String> {
    let task = host.measured().tasks.get(&0).cloned().unwrap_or_default();
    let (side, first) = if write { (&task.write, CACHED) } else { (&task.read, 0) };
    if side.1 != n * 4096 + first {
        return Some(format!("moved {} bytes in {n} calls", side.1));
    }
    let c = host.counts();
    (c.dirtied > CACHED).then(|| format!("{} bytes became dirty", c.dirtied))
}

/// All pages went through the cache to or from the disk; memory holds what it can.
fn through(host: &Programs, n: u64, write: bool) -> Option<String> {
    let bytes = n * PAGE / CHUNK * CHUNK;
    let task = host.measured().tasks.get(&0).cloned().unwrap_or_default();
    let moved = if write { task.write.1 } else { task.read.1 };
    if moved != bytes {
        return Some(format!("moved {moved} of {bytes} bytes"));
    }
    let c = host.counts();
    let least = bytes.saturating_sub(MEMORY);
    (write && c.written < least).then(|| format!("only {} of {bytes} bytes written", c.written))
}

async fn cached(sys: Sys, n: u64, write: bool) -> Done {
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    let fd = sys.open("file", flags).await?;
    sys.write(fd, CACHED).await?;
    let mut at = 0;
    for _ in 0..n {
        match write {
            true => sys.pwrite(fd, at, 4096).await?,
            false => sys.pread(fd, at, 4096).await?,
        };
        at = (at + 40_960) % CACHED;
    }
    Ok(())
}

async fn stream(sys: Sys, pages: u64, write: bool) -> Done {
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    let fd = sys.open("stream", flags).await?;
    for _ in 0..pages * PAGE / CHUNK {
        match write {
            true => sys.write(fd, CHUNK).await?,
            false => sys.read(fd, CHUNK).await?,
        };
    }
    Ok(())
}

async fn append(sys: Sys, n: u64) -> Done {
    let fd = sys.creat("log").await?;
    for _ in 0..n {
        sys.write(fd, 4096).await?;
        sys.fsync(fd).await?;
    }
    Ok(())
}

async fn come_and_go(sys: Sys, n: u64) -> Done {
    for _ in 0..n {
        let fd = sys.creat("file").await?;
        sys.close(fd).await?;
        sys.unlink("file").await?;
    }
    Ok(())
}
