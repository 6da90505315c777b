//! Writing the log, waiting for it, and writing home what is in it.

use std::collections::BTreeMap;

use iosched_types::{Flags, Nanos, Op};

use super::inode::{At, CLUSTER_SECTORS};
use super::log::{Item, Seq};
use super::{WORKER, Xfs};
use crate::kernel::timer::expires;
use crate::kernel::world::{BioOut, Done, Group};
use crate::kernel::{Event, Kernel, Wait};

/// Changes that are pushed into the log unasked: an eighth of it, but no more than 32 MiB.
const MOST_CHANGES: u64 = 32 << 20;
/// Sectors that a change may need in the log.
const RESERVE: u64 = 1024;
/// Inodes without a name that are freed at once, without waiting for more.
const DEAD: usize = 32;
/// Records that say nothing, after which the log counts as clean.
const DUMMIES: u32 = 2;

impl Xfs {
    /// The log's worker, and the thread that writes home. Never ends.
    pub(super) async fn run_log(&self, k: &Kernel) {
        loop {
            let now = k.with(|w| w.now);
            let due = self.with(|s| s.next_tick(now));
            if self.with(|s| s.wants_push()) {
                let seq = self.with(|s| s.log.seq());
                self.force(k, seq).await;
            } else if self.with(|s| s.is_full()) {
                let (seq, leave) = self.with(|s| (s.log.seq(), s.log.sectors() / 2));
                // What has changed again can only go home from the log.
                self.force(k, seq).await;
                self.write_home(k, Some(leave)).await;
            } else if self.with(|s| s.dead_at()).is_some_and(|at| at <= now) {
                self.begin(k).await;
                self.free_dead(k).await;
            } else if due.is_some_and(|at| at <= now) {
                self.tidy(k).await;
            } else {
                let times = [due, self.with(|s| s.dead_at())];
                match times.into_iter().flatten().min() {
                    Some(at) => k.wait(Wait::EventUntil(Event::Journal, at)).await,
                    None => k.wait(Wait::Event(Event::Journal)).await,
                }
            }
        }
    }

    /// What the worker does: the log is written, then all of it goes home; a log that stays clean gets two records that say so.
    async fn tidy(&self, k: &Kernel) {
        let now = k.with(|w| w.now);
        self.with(|s| s.next_tick = expires(now, WORKER, s.wheel()));
        if self.with(|s| !s.log.has_changes() && s.log.used() == 0) {
            self.with(|s| {
                s.log.dummy();
                s.dummies += 1;
                s.awake = s.dummies < DUMMIES;
            });
        } else {
            self.with(|s| s.dummies = 0);
        }
        let seq = self.with(|s| s.log.seq());
        self.force(k, seq).await;
        self.write_home(k, None).await;
    }

    /// A change begins: there is room for it in the log.
    pub(super) async fn begin(&self, k: &Kernel) {
        loop {
            let (push, wait) = self.with(|s| (s.wants_push(), s.must_wait()));
            if push || wait || !self.with(|s| std::mem::replace(&mut s.awake, true)) {
                k.with(|w| w.signal(Event::Journal));
            }
            if !wait {
                return;
            }
            k.wait(Wait::Event(Event::Room)).await;
        }
    }

    /// The worker that makes up checkpoints. What changes before it is its turn is in them. Never ends.
    pub(super) async fn make_checkpoints(&self, k: &Kernel) {
        loop {
            if !self.with(|s| std::mem::take(&mut s.asked)) {
                k.wait(Wait::Event(Event::Push)).await;
                continue;
            }
            self.with(|s| {
                let inodes = &s.inodes;
                s.log.make_up(&|number| inodes.fork(number));
            });
            k.with(|w| w.signal(Event::Pushed));
        }
    }

    /// Makes the checkpoint durable: a worker makes it up, and it is written when the buffer before it is on the disk. → whether
    /// this call wrote the log
    pub(super) async fn force(&self, k: &Kernel, seq: Seq) -> bool {
        while self.with(|s| seq >= s.log.seq() && s.log.has_changes()) {
            self.with(|s| s.asked = true);
            k.with(|w| w.signal(Event::Push));
            k.wait(Wait::Event(Event::Pushed)).await;
        }
        loop {
            let (durable, in_flight, waits) =
                self.with(|s| (s.log.durable(), s.log.in_flight(), s.log.made_up().is_some()));
            match in_flight {
                _ if seq <= durable => return false,
                Some(on_its_way) if seq <= on_its_way => {
                    k.wait(Wait::Event(Event::Committed(on_its_way))).await;
                }
                Some(_) => k.wait(Wait::Event(Event::Room)).await,
                None if waits => {
                    self.push(k).await;
                    return true;
                }
                None => return false,
            }
        }
    }

    /// Writes what has been made up into the log. If it takes several buffers, the last is written when the others are there.
    async fn push(&self, k: &Kernel) {
        let Some(checkpoint) = self.with(|s| s.log.begin()) else { return };
        let (barrier, log_flags) = self.with(|s| (s.options.barrier, s.options.log_flags));
        let (buffers, each) = self.with(|s| (s.options.log_buffers, s.options.flushes_each));
        let flush = if barrier { Flags::PREFLUSH } else { Flags::NONE };
        let fua = if barrier { Flags::FUA } else { Flags::NONE };
        let (last, others) = match checkpoint.writes.split_last() {
            Some((last, others)) => (*last, others),
            None => return,
        };
        for (n, batch) in (0..).zip(others.chunks(buffers)) {
            let group = k.with(|w| w.group());
            for (i, write) in (0..).zip(batch) {
                let first = n == 0 && i == 0;
                let flags = match () {
                    () if each => log_flags.with(flush).with(fua),
                    () if first => log_flags.with(flush),
                    () => log_flags,
                };
                self.write_log(k, *write, flags, Some(group));
                // Each buffer by itself: there is no plug around writes of the log.
                k.wait(Wait::Submit).await;
            }
            k.wait(Wait::Io(group)).await;
        }
        let flags = log_flags.with(flush).with(fua);
        let seq = checkpoint.seq;
        self.with(|s| s.on_its_way = Some(checkpoint));
        self.write_log(k, last, flags, None);
        k.wait(Wait::Submit).await;
        if self.with(|s| s.log.durable()) < seq {
            k.wait(Wait::Event(Event::Committed(seq))).await;
        }
    }

    /// Ends writes of the log. Whoever waits to write his own is woken first; then the writer, and those whose changes he
    /// took along, in the order in which they came.
    pub(super) async fn end_writes(&self, k: &Kernel) {
        loop {
            k.wait(Wait::Event(Event::Logged)).await;
            let Some(checkpoint) = self.with(|s| s.on_its_way.take()) else { continue };
            self.with(|s| {
                s.log.finish(&checkpoint);
                s.freed_until(checkpoint.seq);
                s.checkpoints += 1;
            });
            k.with(|w| {
                w.signal(Event::Room);
                w.signal(Event::Committed(checkpoint.seq));
                w.signal(Event::Journal);
            });
        }
    }

    /// Without a group it is the last write of its record.
    fn write_log(&self, k: &Kernel, at: (u64, u64), flags: Flags, group: Option<Group>) {
        let sector = self.with(|s| s.layout.log.0) * 8 + at.0;
        let done = if group.is_none() { Done::Logged } else { Done::Other };
        write(k, (sector, at.1), flags, (done, group));
    }

    /// Writes home what is in the log, in order of place: all, or the oldest until the log has no more than `leave` sectors.
    pub(super) async fn write_home(&self, k: &Kernel, leave: Option<u64>) {
        let items = self.with(|s| s.log.to_go_home(leave));
        let mut buffers = BTreeMap::new();
        self.with(|s| {
            for item in &items {
                match *item {
                    Item::Buffer(sector) => {
                        buffers.insert(sector, s.log.sectors_of(sector));
                    }
                    Item::Inode(number) => {
                        let at = At::of(number);
                        if s.inodes.has_chunk(at) {
                            buffers.insert(at.cluster(&s.layout), CLUSTER_SECTORS);
                        }
                    }
                }
            }
        });
        if !buffers.is_empty() {
            let group = k.with(|w| w.group());
            for (sector, sectors) in buffers {
                write(k, (sector, sectors), Flags::META, (Done::Other, Some(group)));
            }
            k.wait(Wait::Submit).await;
            k.wait(Wait::Io(group)).await;
        }
        self.with(|s| items.into_iter().for_each(|item| s.log.at_home(item)));
        k.with(|w| w.signal(Event::Room));
    }
}

impl super::State {
    /// When the worker comes next; not at all once nothing has changed for long enough.
    fn next_tick(&mut self, now: Nanos) -> Option<Nanos> {
        let idle = !self.log.has_changes() && self.log.used() == 0;
        if idle && !self.awake {
            return None;
        }
        // It goes on even while it has nothing to do.
        while self.next_tick < now.saturating_sub(WORKER) {
            self.next_tick = expires(self.next_tick, WORKER, self.wheel());
        }
        Some(self.next_tick)
    }

    fn wheel(&self) -> Nanos {
        if self.options.wheel { self.options.tick } else { 0 }
    }

    /// When inodes without a name are freed: a tick after the last of them came, or when they are many.
    fn dead_at(&self) -> Option<Nanos> {
        match self.dead.len() {
            0 => None,
            n if n > DEAD => Some(0),
            _ => Some((self.died / self.options.tick + 2) * self.options.tick),
        }
    }

    fn most_changes(&self) -> u64 {
        (self.log.sectors() * 512 / 8).min(MOST_CHANGES)
    }

    fn wants_push(&self) -> bool {
        self.log.in_flight().is_none() && self.log.roughly() > self.most_changes()
    }

    /// Three quarters of the log are used: its oldest part is to go home.
    fn is_full(&self) -> bool {
        self.log.used() * 4 > self.log.sectors() * 3
    }

    fn must_wait(&self) -> bool {
        let changes = self.log.roughly();
        changes > 2 * self.most_changes()
            || self.log.used() + changes / 512 + RESERVE > self.log.sectors()
    }
}

fn write(
    k: &Kernel,
    (sector, sectors): (u64, u64),
    flags: Flags,
    (done, group): (Done, Option<Group>),
) {
    k.with(|w| {
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
        let out = BioOut { id: 0, op: Op::Write, flags, sector, sectors };
        w.bio(k.task(), out, done, group);
    });
}
