//! The journal's thread, those who wait for it, and blocks on their way home.

use iosched_types::{Flags, Nanos, Op};

use super::mballoc::Extent;
use super::{Data, Driver, Ext, Name};
use crate::cache::mapping::Mark;
use crate::fs::jbd2::{Block, Tid};
use crate::kernel::timer::expires;
use crate::kernel::world::{BioOut, Done, Group};
use crate::kernel::writeback::METADATA;
use crate::kernel::{Event, Kernel, Wait};

const SECOND: Nanos = 1_000_000_000;
/// Blocks that a checkpoint writes at a time.
const BATCH: usize = 64;

/// How a caller of `fsync` stands to the transaction that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// Nothing, or it is in the log: a flush of one's own.
    Flush,
    /// To wait; a flush of one's own after it where the record was on its way already.
    Wait { flush: bool },
}

impl<N: Name> Ext<N> {
    /// The journal's thread. Never ends.
    pub(super) async fn run_journal(&self, k: &Kernel) {
        loop {
            let now = k.with(|w| w.now);
            let due = self.with(|s| {
                let t = s.journal.running.as_ref()?;
                // Timers of seconds end with a full one, and then as all timers do.
                let end = (t.started + s.options.commit).next_multiple_of(SECOND);
                let wheel = if s.options.wheel { s.options.tick } else { 0 };
                Some(match s.wanted >= t.tid {
                    true => now,
                    false => expires(t.started, end - t.started, wheel),
                })
            });
            match due {
                Some(at) if at <= now => self.commit(k).await,
                Some(at) => {
                    k.wait(Wait::EventUntil(Event::Journal, at)).await;
                    // A flusher whose timer goes off at the same moment is a step ahead.
                    k.wait(Wait::Compute(0)).await;
                }
                None => k.wait(Wait::Event(Event::Journal)).await,
            }
        }
    }

    /// Commits the running transaction.
    async fn commit(&self, k: &Kernel) {
        let log_flags = self.with(|s| s.options.log_flags);
        if self.with(|s| s.journal.starts()) {
            self.log(k, &[(0, 1)], &[], log_flags).await;
        }
        self.with(|s| s.locked = true);
        while self.with(|s| s.journal.running.as_ref().is_some_and(|t| t.handles > 0)) {
            k.wait(Wait::Event(Event::Room)).await;
        }
        let commit = self.with(|s| {
            s.locked = false;
            s.record_issued = false;
            let freed = std::mem::take(&mut s.freed[0]);
            s.freed[1].extend(freed);
            s.journal.commit()
        });
        k.with(|w| w.signal_last_first(Event::Room));
        let Some(commit) = commit else { return };
        self.write_ordered(k, &commit.ordered).await;
        self.write_filed(k, &commit.filed).await;
        let (barrier, early) = self.with(|s| (s.options.barrier, s.options.async_commit));
        if early {
            // The commit block has a checksum: it need not come last.
            let mut body = commit.body.clone();
            body.push((commit.record, 1));
            self.with(|s| s.record_issued = true);
            self.log(k, &body, &commit.copies, log_flags).await;
            if barrier {
                k.flush().await;
            }
        } else {
            self.log(k, &commit.body, &commit.copies, log_flags).await;
            self.with(|s| s.record_issued = true);
            let durable = if barrier { Flags::PREFLUSH.with(Flags::FUA) } else { Flags::NONE };
            self.log(k, &[(commit.record, 1)], &[], log_flags.with(durable)).await;
        }
        let now = k.with(|w| w.now);
        self.note_home(k);
        let (moves, freed) = self.with(|s| {
            let freed = std::mem::take(&mut s.freed[1]);
            (s.journal.finish(now), freed)
        });
        if moves {
            self.write_tail(k).await;
        }
        k.with(|w| {
            w.flusher.dirtied(METADATA, now);
            w.signal(Event::Flusher);
            w.signal_last_first(Event::CommitEnded);
            w.signal_last_first(Event::Room);
        });
        self.discard(k, &freed).await;
    }

    /// Tells the disk of blocks that are free since the last commit. Nobody waits for that.
    async fn discard(&self, k: &Kernel, freed: &[Extent]) {
        for e in freed {
            let sectors = u32::try_from(e.blocks * 8).unwrap_or(u32::MAX);
            let (op, flags) = (Op::Discard, Flags::SYNC);
            let out = BioOut { id: 0, op, flags, sector: e.start * 8, sectors };
            k.with(|w| w.bio(k.task(), out, Done::Other, None));
        }
        if !freed.is_empty() {
            k.wait(Wait::Submit).await;
        }
    }

    /// Writes the journal's superblock, with the new tail.
    async fn write_tail(&self, k: &Kernel) {
        let (jbd, barrier) = self.with(|s| (s.options.driver == Driver::Jbd, s.options.barrier));
        let fua = if barrier && !jbd { Flags::FUA } else { Flags::NONE };
        let flags = self.with(|s| s.options.log_flags);
        self.log(k, &[(0, 1)], &[], flags.with(fua)).await;
    }

    /// Writes runs of journal blocks, each block a bio, under one plug, and waits for them. `copies` tells of which blocks they
    /// are copies: these cannot be changed while they are on their way. What is behind the next descriptor block is not on
    /// its way as long as the queue is full.
    async fn log(&self, k: &Kernel, runs: &[(u64, u64)], copies: &[Option<Block>], flags: Flags) {
        let group = k.with(|w| w.group());
        let positions = runs.iter().flat_map(|(from, blocks)| *from..from + blocks);
        let mut copies = copies.iter().copied();
        let row = self.with(|s| s.journal.tags()) + 1;
        k.with(|w| w.keep_plug(k.task(), true));
        for (n, at) in (0..).zip(positions) {
            if n > 0 && n % row == 0 {
                k.wait(Wait::Submit).await;
            }
            let done = match copies.next().flatten() {
                Some(block) => Done::Copied { sector: block * 8 },
                None => Done::Other,
            };
            let block = self.with(|s| s.layout.journal_block(at));
            write_block(k, block, flags, (done, group));
        }
        k.with(|w| w.keep_plug(k.task(), false));
        k.wait(Wait::Submit).await;
        k.wait(Wait::Io(group)).await;
    }

    /// Begins to write blocks home.
    pub(super) async fn start_home(
        &self,
        k: &Kernel,
        blocks: &[Block],
        flags: Flags,
        group: Option<Group>,
    ) {
        for batch in blocks.chunks(BATCH) {
            for block in batch {
                let data = self.with(|s| s.journaled.get(block).copied());
                if let Some((file, page)) = data {
                    page_is_back(k, file, page).await;
                }
                // Somebody else may have changed or written it meanwhile.
                if self.with(|s| s.journal.is_dirty(*block)) {
                    self.with(|s| s.journal.goes_home(*block));
                    let done = data.and_then(|(file, page)| take_page(k, file, page));
                    write_home_block(k, *block, flags, (done.unwrap_or(Done::Other), group));
                }
            }
            k.wait(Wait::Submit).await;
        }
    }

    /// Writes blocks home, and waits for all of them.
    pub(super) async fn write_home(&self, k: &Kernel, blocks: &[Block], flags: Flags) {
        if !blocks.is_empty() {
            let group = k.with(|w| w.group());
            self.start_home(k, blocks, flags, Some(group)).await;
            k.wait(Wait::Io(group)).await;
        }
    }

    /// The journal learns which blocks have been written home: no checkpoint waits for these any longer.
    fn note_home(&self, k: &Kernel) {
        for sector in k.with(|w| w.take_home()) {
            self.with(|s| s.journal.came_home(sector / 8));
        }
    }

    /// A caller that finds the journal full writes the oldest transaction's blocks home.
    pub(super) async fn make_room(&self, k: &Kernel) {
        while !self.with(|s| s.journal.has_room()) {
            self.note_home(k);
            match self.with(|s| s.journal.oldest()) {
                None => {
                    let tid = self.with(|s| {
                        let last = s.journal.running.as_ref().or(s.journal.committing.as_ref());
                        last.map(|t| t.tid)
                    });
                    if let Some(tid) = tid {
                        self.wait_for(k, tid).await;
                    }
                }
                Some(blocks) => {
                    let flags = self.with(|s| s.options.metadata(Flags::SYNC.with(Flags::META)));
                    for batch in blocks.chunks(BATCH) {
                        self.write_home(k, batch, flags).await;
                    }
                    self.note_home(k);
                    // Others may have some of them under way.
                    while let Some(block) = self.with(|s| s.journal.awaited_home()) {
                        k.buffer_home(block * 8).await;
                        self.note_home(k);
                    }
                    if self.with(|s| s.options.barrier && s.options.driver == Driver::Jbd2) {
                        k.flush().await;
                    }
                    self.with(|s| s.journal.move_tail());
                    self.write_tail(k).await;
                }
            }
        }
    }

    /// Asks for the transaction's commit and waits until it is in the log.
    pub(super) async fn wait_for(&self, k: &Kernel, tid: Tid) {
        self.with(|s| s.wanted = s.wanted.max(tid));
        k.with(|w| w.signal(Event::Journal));
        while self.with(|s| s.journal.committed() < tid) {
            k.wait(Wait::Event(Event::CommitEnded)).await;
        }
    }

    /// `fsync` and, with `data_only`, `fdatasync` of a file.
    pub(super) async fn sync_file(&self, k: &Kernel, file: u32, data_only: bool) {
        if self.with(|s| s.options.driver == Driver::Jbd) {
            return self.sync_with_jbd(k, file).await;
        }
        if self.with(|s| s.options.data == Data::Journal) {
            return self.sync_journaled(k, file, data_only).await;
        }
        k.write_and_wait(file, self).await;
        let tid = self.wanted_by(file, data_only);
        let barrier = self.with(|s| s.options.barrier);
        match self.needs(tid) {
            Needs::Flush if barrier => k.flush().await,
            Needs::Flush => {}
            Needs::Wait { flush } => {
                self.wait_for(k, tid).await;
                if flush && barrier {
                    k.flush().await;
                }
            }
        }
    }

    /// The same with `data=journal`: the commit has the data. Since 6.4 that goes home afterwards.
    async fn sync_journaled(&self, k: &Kernel, file: u32, data_only: bool) {
        let tid = self.wanted_by(file, data_only);
        let needs = self.needs(tid);
        if needs != Needs::Flush {
            self.wait_for(k, tid).await;
        }
        let (barrier, home) = self.with(|s| (s.options.barrier, s.options.sends_data_home()));
        if home {
            k.write_and_wait(file, self).await;
        }
        if barrier && (home || needs == Needs::Wait { flush: true }) {
            k.flush().await;
        }
    }

    /// The transaction that a sync of the file needs.
    fn wanted_by(&self, file: u32, data_only: bool) -> Tid {
        self.with(|s| {
            let inode = s.inodes.get(file);
            inode.map_or(0, |i| if data_only { i.datasync } else { i.sync })
        })
    }

    fn needs(&self, tid: Tid) -> Needs {
        self.with(|s| {
            if tid <= s.journal.committed() {
                return Needs::Flush;
            }
            let committing = s.journal.committing.as_ref().is_some_and(|t| t.tid == tid);
            Needs::Wait { flush: committing && s.record_issued }
        })
    }

    /// `fsync` of a directory: what the running transaction holds is committed.
    pub(super) async fn sync_directory(&self, k: &Kernel, directory: u32) {
        if self.with(|s| s.options.driver == Driver::Jbd) {
            return self.sync_with_jbd(k, directory).await;
        }
        let running = self.with(|s| s.journal.running.as_ref().map(|t| t.tid));
        if let Some(tid) = running {
            self.wait_for(k, tid).await;
        }
    }

    /// The transaction that runs, or is being committed.
    fn last_begun(&self) -> Option<Tid> {
        self.with(|s| {
            let t = s.journal.running.as_ref().or(s.journal.committing.as_ref());
            t.map(|t| t.tid)
        })
    }

    /// `sync`: data by the flusher, a commit, and all metadata home.
    pub(super) async fn sync_all(&self, k: &Kernel) {
        if let Some(tid) = self.last_begun().filter(|_| self.with(|s| s.options.sends_data_home()))
        {
            self.wait_for(k, tid).await;
        }
        k.sync_pages(self).await;
        let tid = self.last_begun();
        let mut needs = Needs::Flush;
        if let Some(tid) = tid {
            needs = self.needs(tid);
            self.wait_for(k, tid).await;
        }
        let flushes = self.with(|s| s.options.barrier && s.options.driver == Driver::Jbd2);
        if needs != (Needs::Wait { flush: false }) && flushes {
            k.flush().await;
        }
        if self.with(|s| s.options.data == Data::Journal && s.options.driver == Driver::Jbd) {
            // 2.6.18 writes all a second time: what was only in the log can go home now.
            k.sync_pages(self).await;
        }
        let blocks = self.with(|s| s.metadata_to_write());
        let flags = Flags::META.with(Flags::PRIO).with(Flags::SYNC);
        let flags = self.with(|s| s.options.metadata(flags));
        self.write_home(k, &blocks, flags).await;
        // The flusher may have others under way.
        k.metadata_home().await;
    }
}

/// Waits until a page is not on its way to the disk any more.
async fn page_is_back(k: &Kernel, file: u32, page: u64) {
    while k.with(|w| w.pages(file).is_some_and(|p| p.has(page, Mark::Writeback))) {
        if k.with(|w| w.has_bios(k.task())) {
            k.wait(Wait::Submit).await;
        }
        k.wait(Wait::Page { file, page }).await;
    }
}

/// A dirty page goes to the disk with its block.
fn take_page(k: &Kernel, file: u32, page: u64) -> Option<Done> {
    k.with(|w| {
        let dirty = w.pages(file).is_some_and(|p| p.has(page, Mark::Dirty));
        dirty.then(|| {
            w.memory.begin_writeback(file, page, page + 1, w.now);
            Done::Written { file, from: page, to: page + 1 }
        })
    })
}

fn write_home_block(k: &Kernel, block: Block, flags: Flags, (done, group): (Done, Option<Group>)) {
    k.with(|w| {
        let out = BioOut { id: 0, op: Op::Write, flags, sector: block * 8, sectors: 8 };
        w.home_bio(k.task(), out, done, group);
    });
}

fn write_block(k: &Kernel, block: Block, flags: Flags, (done, group): (Done, Group)) {
    k.with(|w| {
        let out = BioOut { id: 0, op: Op::Write, flags, sector: block * 8, sectors: 8 };
        w.bio(k.task(), out, done, Some(group));
    });
}
