//! Readers and writers that go on beside a measured program until they are told to stop: the loads of the S suite.
//!
//! As its fio jobs: blocks of 4 KiB by synchronous calls through the page cache, each process on a file of its own,
//! again and again. Writers share a rate.

use iosched_syscalls::{Advice, Done, Errno, Fd, OpenFlags, Sys};
use iosched_types::units::SEC;
use iosched_types::{Bytes, Nanos, TaskId};

use super::files::Dice;
use super::{Access, Figure, Kind, Mix, Param, Params, files};

/// Bytes of a call.
const BLOCK: Bytes = 4096;
/// Counters of what was read and written, in bytes. The programs with such a load use others.
const READ: u32 = 100;
const WRITTEN: u32 = 101;
/// Time that a load takes to rise, beside half a second for each process.
const RISE: Nanos = SEC;

/// Which load.
pub(super) const LOAD: Param = Param {
    name: "load",
    text: "Processes beside it: readers and writers (`5r5w`), sequential or random; `raw` reads direct.",
    default: "10r-seq",
    kind: Kind::Load,
};

/// How long the files are.
pub(super) const FILE_SIZE: Param = Param {
    name: "file_size",
    text: "Bytes of the file of each reader and writer.",
    default: "5000M",
    kind: Kind::Bytes(1 << 20, 1 << 50),
};

/// How fast all writers are together.
pub(super) const WRITER_RATE: Param = Param {
    name: "writer_rate",
    text: "Bytes that all writers write in a second; 0: as fast as they can.",
    default: "16500k",
    kind: Kind::Bytes(0, 1 << 40),
};

/// What the load does meanwhile.
pub(super) const THROUGHPUT: [Figure; 2] = [
    Figure { name: "background read", unit: "MB/s", higher_is_better: Some(true) },
    Figure { name: "background write", unit: "MB/s", higher_is_better: Some(true) },
];

/// A load under way.
#[derive(Debug)]
pub(super) struct Background {
    tasks: Vec<TaskId>,
    mix: Mix,
    since: Nanos,
    read: i64,
    written: i64,
}

/// Bytes of the files of the load.
pub(super) fn room(p: &Params) -> Bytes {
    let mix = p.load("load");
    u64::from(mix.readers + mix.writers).saturating_mul(p.bytes("file_size"))
}

/// Makes the files of the load.
pub(super) async fn prepare(sys: &Sys, p: &Params) -> Done {
    for i in 0..p.load("load").readers {
        files::make(sys, &format!("read{i}"), p.bytes("file_size")).await?;
    }
    for i in 0..p.load("load").writers {
        files::make(sys, &format!("written{i}"), p.bytes("file_size")).await?;
    }
    Ok(())
}

/// How long a load of so many processes takes to be steady.
pub(super) fn rise(processes: u64) -> Nanos {
    processes * SEC / 2 + RISE
}

/// Starts the load and waits until it is steady, as long as the suite does.
pub(super) async fn start(sys: &Sys, p: &Params) -> Result<Background, Errno> {
    let mix = p.load("load");
    let size = p.bytes("file_size") / BLOCK * BLOCK;
    let mut tasks = Vec::new();
    for i in 0..mix.readers {
        tasks.push(
            sys.fork_as("reader", async move |sys| reader(&sys, i, mix.access, size).await).await?,
        );
    }
    let rate = p.bytes("writer_rate") / u64::from(mix.writers.max(1));
    for i in 0..mix.writers {
        let random = mix.access == Access::Random;
        tasks.push(
            sys.fork_as("writer", async move |sys| writer(&sys, i, random, size, rate).await)
                .await?,
        );
    }
    if !tasks.is_empty() {
        sys.sleep(rise(tasks.len() as u64)).await?;
    }
    let (read, written) = (sys.add(READ, 0).await?, sys.add(WRITTEN, 0).await?);
    Ok(Background { tasks, mix, since: sys.now(), read, written })
}

impl Background {
    /// Ends the load and reports what it moved since it was steady.
    pub(super) async fn stop(self, sys: &Sys) -> Done {
        let seconds = (sys.now() - self.since).max(1) as f64 / SEC as f64;
        let read = (sys.add(READ, 0).await? - self.read) as f64 / 1e6 / seconds;
        let written = (sys.add(WRITTEN, 0).await? - self.written) as f64 / 1e6 / seconds;
        for task in &self.tasks {
            sys.signal(*task).await?;
        }
        for task in &self.tasks {
            sys.join(*task).await?;
        }
        if self.mix.readers > 0 {
            sys.figure(THROUGHPUT[0].name, read).await?;
        }
        if self.mix.writers > 0 {
            sys.figure(THROUGHPUT[1].name, written).await?;
        }
        Ok(())
    }
}

/// Where the next block of a process lies.
struct Walk {
    dice: Dice,
    random: bool,
    size: Bytes,
    at: Bytes,
}

impl Walk {
    /// The position, and whether the file begins anew.
    fn next(&mut self) -> (Bytes, bool) {
        if self.random {
            return (self.dice.below(self.size / BLOCK) * BLOCK, false);
        }
        let anew = self.at >= self.size;
        let at = if anew { 0 } else { self.at };
        self.at = at + BLOCK;
        (at, anew)
    }
}

async fn reader(sys: &Sys, i: u32, access: Access, size: Bytes) -> Done {
    let direct = if access == Access::Raw { OpenFlags::DIRECT } else { OpenFlags::default() };
    let fd = sys.open(format_args!("read{i}"), OpenFlags::READ | direct).await?;
    let random = access == Access::Random;
    if access != Access::Raw {
        advise(sys, fd, random).await?;
    }
    let mut walk = Walk { dice: Dice::new(u64::from(i) + 1), random, size, at: 0 };
    while !sys.stopped().await? {
        let (at, anew) = walk.next();
        if anew && access != Access::Raw {
            // What memory still has of the file would be no load.
            sys.fadvise(fd, 0, 0, Advice::DontNeed).await?;
        }
        let n = sys.pread(fd, at, BLOCK).await?;
        sys.add(READ, n.cast_signed()).await?;
    }
    sys.close(fd).await
}

async fn advise(sys: &Sys, fd: Fd, random: bool) -> Done {
    let advice = if random { Advice::Random } else { Advice::Sequential };
    sys.fadvise(fd, 0, 0, advice).await
}

async fn writer(sys: &Sys, i: u32, random: bool, size: Bytes, rate: Bytes) -> Done {
    let fd = sys.open(format_args!("written{i}"), OpenFlags::READ | OpenFlags::WRITE).await?;
    advise(sys, fd, random).await?;
    let mut walk = Walk { dice: Dice::new(u64::from(i) + 1001), random, size, at: 0 };
    let (begun, mut done): (Nanos, Bytes) = (sys.now(), 0);
    while !sys.stopped().await? {
        let n = sys.pwrite(fd, walk.next().0, BLOCK).await?;
        sys.add(WRITTEN, n.cast_signed()).await?;
        done += n;
        if rate > 0 {
            let due = (u128::from(done) * u128::from(SEC) / u128::from(rate)) as Nanos;
            pause(sys, (begun + due).saturating_sub(sys.now())).await?;
        }
    }
    sys.close(fd).await
}

/// Sleeps, unless it is told to stop.
pub(super) async fn pause(sys: &Sys, time: Nanos) -> Done {
    if time == 0 {
        return Ok(());
    }
    match sys.sleep(time).await {
        Err(Errno::EINTR) => Ok(()),
        other => other,
    }
}
