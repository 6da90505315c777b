//! The log: what has changed since the last checkpoint (CIL), what is in the log and not yet at home (AIL), and how many
//! bytes a checkpoint has.
//!
//! This is only the book-keeping; [`super::commit`] writes and waits. Sizes are those of the log's format on disk: each
//! region is preceded by an operation header; of a buffer the changed pieces of 128 bytes are logged, and what has changed
//! since it was last written home is logged again each time.

use std::collections::{BTreeMap, BTreeSet};

/// The number of a checkpoint.
pub type Seq = u64;

/// Bytes before each region.
const OPERATION: u64 = 12;
/// Bytes of a checkpoint's own: its start, the header of the transaction, its commit record.
const TRANSACTION: u64 = OPERATION + (OPERATION + 16) + OPERATION;
/// What describes an inode, and its core.
const INODE: u64 = (OPERATION + 56) + (OPERATION + 176);
/// What describes a buffer, without its map of changed pieces: 4 bytes for each 32 of them.
const BUFFER: u64 = OPERATION + 20;
/// A buffer is logged in pieces of so many bytes.
const PIECE: u64 = 128;
/// What says that a chunk of inodes was made.
pub const NEW_CHUNK: u64 = OPERATION + 28;

/// Bytes of a sector of the log.
const SECTOR: u64 = 512;

/// Something that the log has changes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// A buffer of metadata, by its first sector on the device.
    Buffer(u64),
    /// An inode, by its number.
    Inode(u64),
}

/// A buffer of metadata with changes that are not at home.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    sectors: u64,
    /// Pieces that changed.
    pieces: u128,
}

impl Buffer {
    /// Bytes that it takes in a checkpoint. One that is only to be written home takes none.
    fn bytes(&self) -> u64 {
        let n = u64::from(self.pieces.count_ones());
        if n == 0 {
            return 0;
        }
        let runs = u64::from((self.pieces & !(self.pieces << 1)).count_ones());
        BUFFER + 4 * (self.sectors * 4).div_ceil(32) + runs * OPERATION + n * PIECE
    }
}

/// Checkpoints on their way into the log.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The number of the last one.
    pub seq: Seq,
    /// Writes that it takes: first sector of the log and sectors. A write that would cross the log's end is two.
    pub writes: Vec<(u64, u64)>,
    items: BTreeSet<Item>,
    /// Where they begin, counted from the log's first use on.
    at: u64,
}

/// Checkpoints that have been made up, in a log buffer that is not written yet.
#[derive(Clone, Debug, Default)]
struct Filling {
    /// The last one.
    seq: Option<Seq>,
    bytes: u64,
    items: BTreeSet<Item>,
}

/// The log of a file system. Positions in sectors.
#[derive(Clone, Debug)]
pub struct Log {
    sectors: u64,
    /// Sectors of a log buffer (`logbsize`), of which the first is its header.
    buffer: u64,
    /// Where the next checkpoint begins, ever growing.
    head: u64,
    buffers: BTreeMap<u64, Buffer>,
    /// Changed since the last checkpoint.
    changed: BTreeSet<Item>,
    /// Bytes of it that belong to no item.
    extra: u64,
    /// In the log and not at home: since which position.
    pending: BTreeMap<Item, u64>,
    by_age: BTreeSet<(u64, Item)>,
    /// The checkpoint that takes changes.
    seq: Seq,
    durable: Seq,
    filling: Filling,
    in_flight: Option<Seq>,
}

impl Log {
    /// An empty log of so many sectors, whose first record begins at `head`, with log buffers of `buffer` sectors.
    #[must_use]
    pub fn new(sectors: u64, head: u64, buffer: u64) -> Self {
        Self {
            sectors,
            buffer,
            head,
            buffers: BTreeMap::new(),
            changed: BTreeSet::new(),
            extra: 0,
            pending: BTreeMap::new(),
            by_age: BTreeSet::new(),
            seq: 1,
            durable: 0,
            filling: Filling::default(),
            in_flight: None,
        }
    }

    /// The checkpoint that takes changes now.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The last checkpoint that is wholly in the log.
    #[must_use]
    pub fn durable(&self) -> Seq {
        self.durable
    }

    /// The one on its way.
    #[must_use]
    pub fn in_flight(&self) -> Option<Seq> {
        self.in_flight
    }

    /// Whether anything has changed since the last checkpoint.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Bytes of a buffer change: from, to.
    pub fn change(&mut self, sector: u64, sectors: u64, (from, to): (u64, u64)) {
        let buffer = self.buffers.entry(sector).or_default();
        buffer.sectors = sectors;
        for piece in from / PIECE..to.div_ceil(PIECE).max(from / PIECE + 1) {
            buffer.pieces |= 1 << piece.min(127);
        }
        self.changed.insert(Item::Buffer(sector));
    }

    /// A buffer is made in memory, and goes home later; the log has only `extra` bytes that say so.
    pub fn make(&mut self, sector: u64, sectors: u64, extra: u64) {
        self.buffers.entry(sector).or_default().sectors = sectors;
        self.changed.insert(Item::Buffer(sector));
        self.extra += extra;
    }

    /// An inode changes.
    pub fn change_inode(&mut self, number: u64) {
        self.changed.insert(Item::Inode(number));
    }

    /// A buffer or inode is no more: nothing of it goes home.
    pub fn forget(&mut self, item: Item) {
        if let Item::Buffer(sector) = item {
            self.buffers.remove(&sector);
        }
        self.changed.remove(&item);
        self.settle(item);
    }

    /// Whether a buffer has changes that are not at home: it stays in memory.
    #[must_use]
    pub fn holds(&self, sector: u64) -> bool {
        self.buffers.contains_key(&sector)
    }

    /// The inodes with changes that are not at home: their buffers stay in memory, too.
    pub fn inodes(&self) -> impl Iterator<Item = u64> {
        let all = self.changed.iter().chain(&self.filling.items).chain(self.pending.keys());
        all.filter_map(|item| match item {
            Item::Inode(number) => Some(*number),
            Item::Buffer(_) => None,
        })
    }

    /// Bytes that a checkpoint would have now. `fork` gives those of an inode's fork.
    #[must_use]
    pub fn bytes(&self, fork: &dyn Fn(u64) -> u64) -> u64 {
        let of = |item: &Item| match item {
            Item::Buffer(sector) => self.buffers.get(sector).map_or(0, Buffer::bytes),
            Item::Inode(number) => match fork(*number) {
                0 => INODE,
                bytes => INODE + OPERATION + bytes,
            },
        };
        TRANSACTION + self.extra + self.changed.iter().map(of).sum::<u64>()
    }

    /// A bound of those bytes that costs nothing to tell.
    #[must_use]
    pub fn roughly(&self) -> u64 {
        self.changed.len() as u64 * (INODE + 2 * PIECE) + self.extra
    }

    /// Makes up a checkpoint of all that has changed. It goes into the buffer behind those that wait there already.
    pub fn make_up(&mut self, fork: &dyn Fn(u64) -> u64) {
        if self.changed.is_empty() {
            return;
        }
        self.filling.bytes += self.bytes(fork);
        self.filling.items.append(&mut self.changed);
        self.filling.seq = Some(self.seq);
        self.seq += 1;
        self.extra = 0;
    }

    /// The last checkpoint that has been made up and is not on its way.
    #[must_use]
    pub fn made_up(&self) -> Option<Seq> {
        self.filling.seq
    }

    /// Begins to write what has been made up. One buffer at a time.
    pub fn begin(&mut self) -> Option<Checkpoint> {
        if self.in_flight.is_some() {
            return None;
        }
        let Filling { seq, bytes, items } = std::mem::take(&mut self.filling);
        let seq = seq?;
        let room = (self.buffer - 1) * SECTOR;
        let at = self.head;
        let mut writes = Vec::new();
        let mut left = bytes;
        while left > 0 {
            let n = left.min(room);
            self.advance(1 + n.div_ceil(SECTOR), &mut writes);
            // A region that goes on in the next buffer has its header there again.
            left = if left > room { left - room + OPERATION } else { 0 };
        }
        self.in_flight = Some(seq);
        Some(Checkpoint { seq, writes, items, at })
    }

    fn advance(&mut self, sectors: u64, writes: &mut Vec<(u64, u64)>) {
        let at = self.head % self.sectors;
        let n = sectors.min(self.sectors - at);
        writes.push((at, n));
        if n < sectors {
            writes.push((0, sectors - n));
        }
        self.head += sectors;
    }

    /// A checkpoint is in the log: its items wait for their way home.
    pub fn finish(&mut self, checkpoint: &Checkpoint) {
        self.in_flight = None;
        self.durable = checkpoint.seq;
        for item in &checkpoint.items {
            let gone = matches!(item, Item::Buffer(s) if !self.buffers.contains_key(s));
            if !gone {
                self.settle(*item);
                self.pending.insert(*item, checkpoint.at);
                self.by_age.insert((checkpoint.at, *item));
            }
        }
    }

    fn settle(&mut self, item: Item) {
        if let Some(at) = self.pending.remove(&item) {
            self.by_age.remove(&(at, item));
        }
    }

    /// Sectors of the log that what is not at home holds.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.by_age.first().map_or(0, |(at, _)| self.head - at)
    }

    /// Sectors of the log.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Items that can go home: all, or the oldest until no more than `leave` sectors are used. What has changed again stays.
    #[must_use]
    pub fn to_go_home(&self, leave: Option<u64>) -> Vec<Item> {
        let until = leave.map_or(u64::MAX, |n| self.head.saturating_sub(n));
        let old = self.by_age.iter().take_while(|(at, _)| *at < until);
        let pinned = |i: &Item| self.changed.contains(i) || self.filling.items.contains(i);
        old.map(|(_, item)| *item).filter(|i| !pinned(i)).collect()
    }

    /// An item is at home.
    pub fn at_home(&mut self, item: Item) {
        self.settle(item);
        if let Item::Buffer(sector) = item
            && !self.changed.contains(&item)
            && !self.filling.items.contains(&item)
        {
            self.buffers.remove(&sector);
        }
    }

    /// Sectors of a buffer.
    #[must_use]
    pub fn sectors_of(&self, sector: u64) -> u64 {
        self.buffers.get(&sector).map_or(8, |b| b.sectors)
    }

    /// A record that says nothing: it marks the log as clean.
    pub fn dummy(&mut self) {
        self.change(0, 1, (0, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sectors(log: &mut Log, fork: u64) -> u64 {
        log.make_up(&|_| fork);
        let c = log.begin().unwrap();
        log.finish(&c);
        c.writes.iter().map(|w| w.1).sum()
    }

    /// Linux 6.12, read off traces: an overwrite takes 2 sectors, an append 3, a first file with data 5.
    #[test]
    fn records_are_as_long_as_the_kernels() {
        let mut log = Log::new(131_072, 0, 64);
        log.change_inode(1);
        assert_eq!(sectors(&mut log, 16), 2);
        log.change_inode(1);
        for tree in [1, 8, 16] {
            log.change(tree, if tree == 1 { 1 } else { 8 }, (0, 64));
        }
        assert_eq!(sectors(&mut log, 16), 3);
        log.change_inode(1);
        log.change_inode(2);
        for sector in [1, 2, 8, 16, 24, 32] {
            log.change(sector, 8, (0, 64));
        }
        assert_eq!(sectors(&mut log, 20), 5);
        assert_eq!(log.used(), 5, "all was changed again by the last");
    }

    #[test]
    fn long_ones_fill_buffers_of_32_kib() {
        let mut log = Log::new(131_072, 131_070, 64);
        (0..300).for_each(|number| log.change_inode(number));
        log.make_up(&|_| 0);
        let c = log.begin().unwrap();
        assert_eq!(c.writes[..3], [(131_070, 2), (0, 62), (62, 64)]);
        log.change_inode(1);
        log.make_up(&|_| 0);
        assert_eq!(log.begin().map(|c| c.seq), None, "one at a time");
    }

    /// Linux 6.12, read off traces of four tasks: changes are made up as soon as somebody wants them in the log. What comes
    /// while the buffer waits for the one before it is a checkpoint of its own, in the same buffer.
    #[test]
    fn a_buffer_takes_several_checkpoints() {
        let mut log = Log::new(131_072, 0, 64);
        for number in 1..=2 {
            log.change_inode(number);
            for tree in [1, 8, 16] {
                let sectors = if tree == 1 { 1 } else { 8 };
                log.change(number * 4096 + tree, sectors, (0, 64));
            }
        }
        log.make_up(&|_| 32);
        log.change_inode(1);
        log.make_up(&|_| 32);
        let c = log.begin().unwrap();
        assert_eq!((c.seq, c.writes), (2, vec![(0, 6)]));
    }

    #[test]
    fn changed_pieces_add_up_until_they_are_at_home() {
        let mut log = Log::new(131_072, 0, 64);
        log.change(96, 8, (0, 64));
        let one = log.bytes(&|_| 0);
        log.change(96, 8, (128, 129));
        assert_eq!(log.bytes(&|_| 0), one + 128, "one run");
        log.change(96, 8, (4090, 4096));
        assert_eq!(log.bytes(&|_| 0), one + 128 + 140, "two runs");
        sectors(&mut log, 0);
        log.change(96, 8, (0, 1));
        assert_eq!(log.bytes(&|_| 0), one + 268, "logged again");
        sectors(&mut log, 0);
        assert_eq!(log.to_go_home(None), [Item::Buffer(96)]);
        log.at_home(Item::Buffer(96));
        log.change(96, 8, (0, 1));
        assert_eq!(log.bytes(&|_| 0), one);
    }
}
