//! Random programs of bytes, for a test with fixed seeds and for a fuzz target.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use iosched_host::HostError;
use iosched_host::programs::Programs;
use iosched_syscalls::{
    Advice, Birth, Done, Errno, Fd, Io, MapId, OpenFlags, Program, Script, Sys, Whence,
};

use super::{host, mounted};

/// What a program of bytes may wait for in vain: other tasks. Everything else must come.
const OTHERS: [&str; 5] = ["for a child", "for task", "for others at barrier", "in a pipe", "pipe"];
/// Calls without virtual time that are more than bytes can ask for.
const MOST_AT_ONCE: u64 = 10_000_000;

/// The bytes, which all tasks take from.
struct Tape {
    bytes: Vec<u8>,
    next: AtomicUsize,
    born: AtomicU64,
}

impl Tape {
    fn take(&self) -> Option<u8> {
        self.bytes.get(self.next.fetch_add(1, Relaxed)).copied()
    }

    fn number(&self) -> u64 {
        u64::from(self.take().unwrap_or_default())
    }

    fn birth(self: &Arc<Self>) -> Birth {
        let tape = self.clone();
        Birth(Box::new(move || {
            tape.born.fetch_add(1, Relaxed);
            Box::new(Script::new(async move |sys| task(sys, tape).await)) as Box<dyn Program>
        }))
    }
}

fn name(n: u64) -> &'static str {
    ["a", "b", "d", "d/x", "d/y", "d/e", "..", "", "/a", "d/e/z"][n as usize % 10]
}

fn flags(n: u64) -> OpenFlags {
    let mut flags = [OpenFlags::READ, OpenFlags::WRITE][n as usize % 2];
    for (bit, flag) in [
        (1, OpenFlags::READ | OpenFlags::CREATE),
        (2, OpenFlags::WRITE),
        (3, OpenFlags::EXCLUSIVE),
        (4, OpenFlags::TRUNCATE),
        (5, OpenFlags::APPEND),
        (6, OpenFlags::DIRECT),
        (7, OpenFlags::SYNC),
    ] {
        if n >> bit & 1 == 1 {
            flags = flags | flag;
        }
    }
    flags
}

/// Takes bytes and makes calls of them until there are none.
async fn task(sys: Sys, tape: Arc<Tape>) -> Done {
    while let Some(what) = tape.take() {
        match what % 48 {
            0 => return Ok(()),
            1 if what > 200 => return Err(Errno::EIO),
            2..=4 => {
                let birth = tape.birth();
                let shares = match what % 2 {
                    0 => iosched_syscalls::Shares::Everything,
                    _ => iosched_syscalls::Shares::OpenFiles,
                };
                let _ = sys.call(iosched_syscalls::Call::Spawn { shares, role: "", birth }).await;
            }
            other => {
                let _ = step(&sys, &tape, other).await;
            }
        }
    }
    Ok(())
}

async fn step(sys: &Sys, tape: &Tape, what: u8) -> Done {
    let (a, b, c) = (tape.number(), tape.number(), tape.number());
    let fd = Fd(2 + a as u32 % 12);
    let (at, len) = (c * c * 311, b * b * 17);
    match what {
        1 | 5..=8 => sys.open(name(b), flags(a)).await.map(drop),
        9 => sys.close(fd).await,
        10 => sys.dup(fd).await.map(drop),
        11 => sys.read(fd, len).await.map(drop),
        12 | 13 => sys.pread(fd, at & !511, len & !511).await.map(drop),
        14 | 15 => sys.write(fd, len).await.map(drop),
        16 | 17 => sys.pwrite(fd, at & !511, len & !511).await.map(drop),
        18 => sys.lseek(fd, c as i64 - 99, Whence::End).await.map(drop),
        19 => sys.truncate(fd, at).await,
        20 => sys.fallocate(fd, at << (a % 30), len << (b % 20)).await,
        21 => sys.fadvise(fd, at, len, Advice::DontNeed).await,
        22 => sys.fsync(fd).await,
        23 => sys.fdatasync(fd).await,
        24 => sys.sync_file_range(fd, at, len, true).await,
        25 => sys.syncfs(fd).await,
        26 => sys.sync().await,
        27 => sys.readdir(fd).await.map(drop),
        28 => sys.copy_file_range(fd, Fd(2 + b as u32 % 12), at).await.map(drop),
        29 => sys.unlink(name(b)).await,
        30 => sys.rename(name(b), name(a)).await,
        31 => sys.mkdir(name(b)).await,
        32 => sys.rmdir(name(b)).await,
        33 => sys.mmap(fd, 0, len).await.map(drop),
        34 => sys.munmap(MapId(b as u32 % 4)).await,
        35 => sys.load(MapId(b as u32 % 4), at).await,
        36 => sys.store(MapId(b as u32 % 4), at).await,
        37 => sys.pipe().await.map(drop),
        38 | 39 => {
            let (at, len) = (at & !511, (len & !511) as u32);
            sys.submit(Io { fd, write: a % 2 == 0, at, len, tag: c as u32 }).await
        }
        40 => sys.reap(b as u32 % 5, drop).await.map(drop),
        41 => sys.compute(b * b * 1000).await,
        42 => sys.sleep(b * b * 1000).await,
        43 => sys.wait().await.map(drop),
        44 => sys.join(b as u32 % 6).await,
        45 => sys.barrier(b as u32 % 2, c as u32 % 4).await,
        46 => sys.signal(b as u32 % 6).await,
        _ => sys.stat(name(b)).await.map(drop),
    }
}

/// What a run came to, without what may be large.
type Outcome = (String, u64, u64, u64);

fn outcome(bytes: &[u8]) -> Outcome {
    let (head, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let scheduler = ["none", "mq-deadline", "kyber", "bfq"][usize::from(head % 4)];
    let tape =
        Arc::new(Tape { bytes: rest.to_vec(), next: AtomicUsize::new(0), born: AtomicU64::new(0) });
    let (depth, cpu) = (1 + u32::from(head >> 5), head & 16 != 0);
    let mut h = match head & 8 {
        0 => host(scheduler, depth, 64 << 20, cpu),
        _ => mounted(scheduler, depth, 256 << 20, 16 << 20, cpu),
    };
    h.most_at_once(MOST_AT_ONCE);
    let result = h.run(tape.birth(), &mut |_| ControlFlow::Continue(()));
    look(&h, &result, tape.born.load(Relaxed));
    let m = h.measured();
    (result.map_err(|e| e.to_string()).err().unwrap_or_default(), m.elapsed, m.calls, m.count)
}

/// What holds after every run of a program, however it ended.
pub(crate) fn look(h: &Programs, result: &Result<(), HostError>, born: u64) {
    let (m, c) = (h.measured(), h.counts());
    assert_eq!(c.dirtied, c.written + c.dropped + c.dirty, "no dirty byte is lost: {c:?}");
    match result {
        Ok(()) => assert_eq!(m.count, born, "every task is accounted for"),
        Err(HostError::Program { .. }) => assert!(m.count <= born),
        Err(HostError::Deadlock { who, .. }) => {
            let fine = |w: &str| OTHERS.iter().any(|o| w.contains(o));
            assert!(who.split(", ").all(fine), "something that must come did not: {who}");
        }
        Err(e) => panic!("{e}"),
    }
}

/// Runs the program twice: nobody sleeps for ever, every task is accounted for, and the runs are the same.
pub(crate) fn check(bytes: &[u8]) {
    assert_eq!(outcome(bytes), outcome(bytes), "the same bytes, the same run");
}
