//! The write-ahead log: segments, group commit, its writer.

use iosched_syscalls::{Done, Errno, Fd, OpenFlags};
use iosched_types::units::MS;

use super::backend::Backend;
use super::{PAGE, SEGMENT};

/// How often the log's writer looks.
const WRITER_DELAY: u64 = 200 * MS;

/// The log, as all processes see it. Positions count from its beginning.
#[derive(Debug, Default)]
pub(super) struct Wal {
    /// Up to where records are in memory, written, durable.
    pub(super) inserted: u64,
    pub(super) written: u64,
    pub(super) flushed: u64,
    /// Somebody writes; who waits for that.
    pub(super) busy: bool,
    pub(super) waiting: Vec<usize>,
    /// Segments that are there beyond the first five: renamed from old ones.
    pub(super) recycled: u64,
    /// The first segment that is still there.
    pub(super) oldest: u64,
}

/// The name of a segment.
pub(super) fn name(segment: u64) -> String {
    format!("pg_wal/0000000100000000{segment:08X}")
}

/// Makes the log durable up to `lsn`. Who finds another one writing waits for that, and then looks again: what many
/// have inserted meanwhile is one write.
pub(super) async fn flush(b: &mut Backend, lsn: u64) -> Done {
    loop {
        let free = {
            let mut m = b.server.memory();
            if m.wal.flushed >= lsn {
                return Ok(());
            }
            if m.wal.busy {
                m.wal.waiting.push(b.id);
            }
            !std::mem::replace(&mut m.wal.busy, true)
        };
        if free {
            break;
        }
        b.sleep_until_woken().await?;
    }
    let (from, to) = {
        let m = b.server.memory();
        (m.wal.written, m.wal.inserted)
    };
    write(b, from, to).await?;
    let woken = {
        let mut m = b.server.memory();
        m.wal.written = to;
        m.wal.flushed = to;
        m.wal.busy = false;
        std::mem::take(&mut m.wal.waiting)
    };
    b.wake(&woken).await
}

/// Writes whole pages, from the last one that was not full, and syncs each segment.
async fn write(b: &mut Backend, from: u64, to: u64) -> Done {
    let (mut at, end) = (from / PAGE * PAGE, to.next_multiple_of(PAGE));
    while at < end {
        let segment = at / SEGMENT;
        let stop = end.min((segment + 1) * SEGMENT);
        let fd = open(b, segment).await?;
        b.sys.pwrite(fd, at % SEGMENT, stop - at).await?;
        b.sys.fdatasync(fd).await?;
        let mut m = b.server.memory();
        m.counted.syncs += 1;
        m.counted.log += stop - at;
        at = stop;
    }
    Ok(())
}

/// The descriptor of a segment. A process has one open at a time.
async fn open(b: &mut Backend, segment: u64) -> Result<Fd, Errno> {
    if let Some((open, fd)) = b.segment {
        if open == segment {
            return Ok(fd);
        }
        b.sys.close(fd).await?;
    }
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let fd = match b.sys.open(name(segment), flags).await {
        Err(Errno::ENOENT) => make(b, segment).await?,
        other => other?,
    };
    b.segment = Some((segment, fd));
    Ok(fd)
}

/// A new segment is filled with zeros under another name, and synced.
async fn make(b: &Backend, segment: u64) -> Result<Fd, Errno> {
    let sys = &b.sys;
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let temporary = format!("pg_wal/xlogtemp.{}", b.id);
    let fd = sys.open(&temporary, flags | OpenFlags::CREATE | OpenFlags::EXCLUSIVE).await?;
    for at in (0..SEGMENT).step_by(PAGE as usize) {
        sys.pwrite(fd, at, PAGE).await?;
    }
    sys.fsync(fd).await?;
    sys.close(fd).await?;
    sys.rename(&temporary, name(segment)).await?;
    super::files::sync_directory(sys, "pg_wal").await?;
    sys.open(name(segment), flags).await
}

/// The log's writer: what no commit has made durable, it does after a while.
pub(super) async fn writer(mut b: Backend) -> Done {
    while b.pause(WRITER_DELAY).await? {
        let to = b.server.memory().wal.inserted;
        flush(&mut b, to).await?;
    }
    Ok(())
}
