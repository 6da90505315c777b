//! Checkpointer and background writer.

use std::collections::BTreeSet;

use iosched_syscalls::{Done, OpenFlags, Part};
use iosched_types::units::{MS, SEC};

use super::backend::Backend;
use super::server::Page;
use super::{FILE_PAGES, PAGE, Params, SEGMENT, files, wal};

/// The kernel is told to write so many pages at a time (checkpoint_flush_after, bgwriter_flush_after).
const CHECKPOINT_FLUSH: usize = 32;
const WRITER_FLUSH: usize = 64;
/// The background writer's pause, the most pages of a round, and how far it looks ahead of what is taken.
const WRITER_DELAY: u64 = 200 * MS;
const WRITER_PAGES: usize = 100;
const WRITER_MULTIPLE: u64 = 2;
/// Pause of a checkpoint that is ahead of its plan.
const NAP: u64 = 100 * MS;
/// Bytes of a checkpoint's own record.
const RECORD: u64 = 120;

/// Checkpoints by time and by length of the log.
pub(super) async fn checkpointer(mut b: Backend, p: &Params) -> Done {
    let timeout = p.count("checkpoint_timeout") * SEC;
    let completion = p.count("completion") as f64 / 100.0;
    // So that the log of two checkpoints and of what is on its way stays below max_wal_size.
    let most = (p.bytes("max_wal_size") as f64 / (2.0 + completion)) as u64;
    let (mut redo, mut last) = (0, b.sys.now());
    while b.pause(SEC).await? {
        let inserted = b.server.memory().wal.inserted;
        if inserted == redo || b.sys.now() - last < timeout && inserted - redo < most {
            continue;
        }
        last = b.sys.now();
        let plan = Plan { timeout, most, completion, begun: last, redo: inserted };
        checkpoint(&mut b, &plan).await?;
        redo = inserted;
    }
    Ok(())
}

struct Plan {
    timeout: u64,
    most: u64,
    completion: f64,
    begun: u64,
    redo: u64,
}

impl Plan {
    /// Whether so much of the work is ahead of time and of the log's growth.
    fn is_ahead(&self, b: &Backend, done: f64) -> bool {
        let done = done * self.completion;
        let log = b.server.memory().wal.inserted - self.redo;
        let time = b.sys.now() - self.begun;
        done > log as f64 / self.most as f64 && done > time as f64 / self.timeout as f64
    }
}

async fn checkpoint(b: &mut Backend, plan: &Plan) -> Done {
    let begun = b.sys.now();
    let pages = {
        let mut m = b.server.memory();
        m.imaged.clear();
        m.buffers.dirty()
    };
    let xact = b.sys.open("pg_xact/0000", OpenFlags::READ | OpenFlags::WRITE).await?;
    b.sys.pwrite(xact, 0, PAGE).await?;
    let mut touched: BTreeSet<(super::Table, u64)> = BTreeSet::new();
    let mut unflushed = Vec::new();
    for (i, page) in pages.iter().enumerate() {
        if !b.write_page(*page).await? {
            continue;
        }
        touched.insert((page.0, page.1 / FILE_PAGES));
        unflushed.push(*page);
        if unflushed.len() == CHECKPOINT_FLUSH {
            start_writing(b, &mut unflushed).await?;
        }
        while plan.is_ahead(b, (i + 1) as f64 / pages.len() as f64) {
            if !b.pause(NAP).await? {
                return b.sys.close(xact).await;
            }
        }
    }
    start_writing(b, &mut unflushed).await?;
    // Files that clients and the background writer wrote are among them.
    touched.extend(std::mem::take(&mut b.server.memory().written_files));
    for (table, file) in touched {
        let fd = b.file((table, file * FILE_PAGES)).await?;
        b.sys.fsync(fd).await?;
    }
    b.sys.fsync(xact).await?;
    b.sys.close(xact).await?;
    let lsn = b.insert(RECORD);
    wal::flush(b, lsn).await?;
    let control = b.sys.open("global/pg_control", OpenFlags::READ | OpenFlags::WRITE).await?;
    b.sys.write(control, PAGE).await?;
    b.sys.fsync(control).await?;
    b.sys.close(control).await?;
    recycle(b, plan.redo / SEGMENT).await?;
    b.server.memory().counted.checkpoints += 1;
    b.sys.mark(Part::Beside, "checkpoint", begun).await?;
    b.sys.note("checkpoint", begun, pages.len() as u64 * PAGE).await
}

/// Segments before the checkpoint get names that the log will come to.
async fn recycle(b: &mut Backend, redo: u64) -> Done {
    loop {
        let (old, new) = {
            let mut m = b.server.memory();
            if m.wal.oldest >= redo {
                break;
            }
            m.wal.oldest += 1;
            let last = (m.wal.inserted / SEGMENT).max(4 + m.wal.recycled);
            m.wal.recycled = last + 1 - 4;
            (m.wal.oldest - 1, last + 1)
        };
        b.sys.rename(wal::name(old), wal::name(new)).await?;
        files::sync_directory(&b.sys, "pg_wal").await?;
    }
    Ok(())
}

/// Pages behind each other in one call.
async fn start_writing(b: &mut Backend, pages: &mut Vec<Page>) -> Done {
    pages.sort_unstable();
    let mut rest = pages.as_slice();
    while let [(table, first), ..] = *rest {
        let follows = |(i, p): (usize, &Page)| *p == (table, first + i as u64);
        let n = rest.iter().enumerate().take_while(|(i, p)| follows((*i, p))).count();
        let fd = b.file((table, first)).await?;
        let at = first % FILE_PAGES * PAGE;
        b.sys.sync_file_range(fd, at, n as u64 * PAGE, false).await?;
        rest = &rest[n..];
    }
    pages.clear();
    Ok(())
}

/// Writes pages that clients would soon have to write themselves.
pub(super) async fn background_writer(mut b: Backend) -> Done {
    let (mut smoothed, mut unflushed) = (0.0f64, Vec::new());
    while b.pause(WRITER_DELAY).await? {
        let pages = {
            let mut m = b.server.memory();
            let taken = std::mem::take(&mut m.buffers.taken) as f64;
            smoothed = if taken > smoothed { taken } else { smoothed + (taken - smoothed) / 16.0 };
            m.buffers.ahead((smoothed * WRITER_MULTIPLE as f64) as usize)
        };
        for page in pages.into_iter().take(WRITER_PAGES) {
            if b.write_page(page).await? {
                unflushed.push(page);
            }
            if unflushed.len() == WRITER_FLUSH {
                start_writing(&mut b, &mut unflushed).await?;
            }
        }
    }
    Ok(())
}
