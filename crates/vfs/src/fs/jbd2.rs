//! The journal of ext4: which metadata blocks belong to which transaction, where the log's head and tail are, and which
//! blocks still have to be written to their home place.
//!
//! This is only the book-keeping. The host does the writing and waiting. Positions are blocks from the journal's start.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::filed::Filed;

/// A metadata block, by its place on the device.
pub type Block = u64;
/// A transaction's number.
pub type Tid = u64;

/// Journaled blocks behind one descriptor block, with checksums.
const TAGS: u64 = 253;
/// Block numbers in a revoke block.
const REVOKES: u64 = 500;
/// Blocks that are kept free in addition to the needs of transactions.
const SPARE: u64 = 32;

/// A transaction that still takes changes, or is being committed.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The number.
    pub tid: Tid,
    /// When its first change began, in nanoseconds.
    pub started: u64,
    /// Changed metadata blocks.
    pub blocks: BTreeSet<Block>,
    /// The same in the order in which they came; some may have gone again.
    order: Vec<Block>,
    /// Files whose data has to be on disk before the commit.
    pub ordered: BTreeSet<u32>,
    /// With jbd: the pages that have to be.
    pub filed: Filed,
    revoked: u64,
    /// Changes under way.
    pub handles: u32,
    /// Blocks that now belong to the running transaction. No checkpoint of this one waits for them.
    retaken: BTreeSet<Block>,
}

/// A committed transaction with some blocks not written home yet.
#[derive(Clone, Debug)]
struct Checkpoint {
    blocks: BTreeSet<Block>,
    /// Where it begins in the log.
    log_start: u64,
}

/// What a commit writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The transaction.
    pub tid: Tid,
    /// Files whose data is written before.
    pub ordered: Vec<u32>,
    /// Pages that are written before.
    pub filed: Filed,
    /// Revoke and descriptor blocks and copies, in runs: position and length.
    pub body: Vec<(u64, u64)>,
    /// Of which block each of them is a copy, if of any.
    pub copies: Vec<Option<Block>>,
    /// The commit block.
    pub record: u64,
}

/// The journal of a file system.
#[derive(Clone, Debug)]
pub struct Journal {
    length: u64,
    /// Blocks that one transaction may have.
    max: u64,
    /// Blocks behind one descriptor.
    tags: u64,
    head: u64,
    tail: u64,
    /// Blocks in the log: from tail to head.
    used: u64,
    empty: bool,
    next: Tid,
    committed: Tid,
    /// Takes changes.
    pub running: Option<Transaction>,
    /// On its way to the log.
    pub committing: Option<Transaction>,
    committing_start: u64,
    checkpoints: VecDeque<Checkpoint>,
    /// How many checkpoints have left the front.
    gone: u64,
    /// Which checkpoint waits for a block, counted from the first that there was. No block is waited for twice.
    waiting: BTreeMap<Block, u64>,
    /// Blocks that are dirty at home since then, in nanoseconds, and the transaction with the checkpoint that they hold
    /// up.
    dirty: BTreeMap<Block, u64>,
    /// Blocks on their way to their home place, with the checkpoint that waits for that.
    homeward: BTreeMap<Block, u64>,
    /// Blocks that were changed while the committing transaction had them, since somebody asked.
    held: Vec<Block>,
}

impl Journal {
    /// An empty journal of `length` blocks, the superblock included, of which a transaction may have one part in
    /// `parts` (3 since 6.7, 4 before).
    #[must_use]
    pub fn new(length: u64, parts: u64) -> Self {
        Self {
            length,
            max: length / parts,
            tags: TAGS,
            head: 1,
            tail: 1,
            used: 0,
            empty: true,
            next: 1,
            committed: 0,
            running: None,
            committing: None,
            committing_start: 1,
            checkpoints: VecDeque::new(),
            gone: 0,
            waiting: BTreeMap::new(),
            dirty: BTreeMap::new(),
            homeward: BTreeMap::new(),
            held: Vec::new(),
        }
    }

    /// The same with so many blocks behind a descriptor block.
    #[must_use]
    pub fn with_tags(self, tags: u64) -> Self {
        Self { tags, ..self }
    }

    /// Blocks behind a descriptor block.
    #[must_use]
    pub fn tags(&self) -> u64 {
        self.tags
    }

    /// Whether a change may begin: the log has room for the largest transaction. If not, its caller has to make room
    /// ([`oldest`](Self::oldest)). What the committing transaction still owes the log is taken already: it takes all its
    /// blocks at once.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let free = (self.length - 1).saturating_sub(self.used);
        free >= self.max + SPARE
    }

    /// Whether the running transaction can take `blocks` more.
    #[must_use]
    pub fn fits(&self, blocks: u64) -> bool {
        self.running.as_ref().is_none_or(|t| t.blocks.len() as u64 + blocks <= self.max)
    }

    /// Blocks that may be reserved for changes to come: half of what a transaction can have, without the blocks that describe it.
    #[must_use]
    pub fn reservable(&self) -> u64 {
        (self.max - self.max.div_ceil(self.tags)) / 2
    }

    /// A change begins; the running transaction's number.
    pub fn begin(&mut self, now: u64) -> Tid {
        let next = self.next;
        let transaction = self.running.get_or_insert_with(|| Transaction {
            tid: next,
            started: now,
            blocks: BTreeSet::new(),
            order: Vec::new(),
            ordered: BTreeSet::new(),
            filed: Filed::default(),
            revoked: 0,
            handles: 0,
            retaken: BTreeSet::new(),
        });
        transaction.handles += 1;
        self.next = transaction.tid + 1;
        transaction.tid
    }

    /// The change ends.
    pub fn end(&mut self) {
        if let Some(t) = &mut self.running {
            t.handles -= 1;
        }
    }

    /// A block is changed by the running transaction. It is no longer written home on its own.
    pub fn modify(&mut self, block: Block) {
        let Some(t) = &mut self.running else { return };
        if self.committing.as_ref().is_some_and(|c| c.blocks.contains(&block)) {
            self.held.push(block);
        }
        if !t.blocks.insert(block) {
            return;
        }
        t.order.push(block);
        if let Some(c) = &mut self.committing
            && c.blocks.contains(&block)
        {
            c.retaken.insert(block);
        }
        // The block holds up its old checkpoint until this transaction has committed.
        self.dirty.remove(&block);
    }

    /// Blocks that were changed while the committing transaction had them, in order. Whoever changed one waits while its copy
    /// is on its way to the log.
    pub fn take_held(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.held)
    }

    /// Gives the list back, so that its memory is used again.
    pub fn reuse_held(&mut self, mut held: Vec<Block>) {
        held.clear();
        if self.held.is_empty() {
            self.held = held;
        }
    }

    /// A journaled block is freed. It must not be replayed.
    pub fn revoke(&mut self, block: Block) {
        if let Some(t) = &mut self.running {
            t.blocks.remove(&block);
            t.revoked += 1;
        }
        if self.dirty.remove(&block).is_some() | self.homeward.remove(&block).is_some() {
            self.settle(block);
        }
    }

    /// The file's data goes to disk before the running transaction commits.
    pub fn order(&mut self, inode: u32) {
        if let Some(t) = &mut self.running {
            t.ordered.insert(inode);
        }
    }

    /// Pages of a file go to disk before the running transaction commits.
    pub fn file(&mut self, inode: u32, pages: (u64, u64), now: u64) {
        if let Some(t) = &mut self.running {
            t.filed.add(inode, pages, now);
        }
    }

    /// The last transaction that is wholly in the log.
    #[must_use]
    pub fn committed(&self) -> Tid {
        self.committed
    }

    /// Whether the log is empty: then its superblock is written before anything else, while changes still join the running
    /// transaction.
    pub fn starts(&mut self) -> bool {
        let starts = std::mem::replace(&mut self.empty, false);
        if starts {
            self.tail = self.head;
        }
        starts
    }

    /// The running transaction becomes the committing one, when all its changes have ended. Says what to write.
    pub fn commit(&mut self) -> Option<Commit> {
        if self.committing.is_some() || self.running.as_ref()?.handles > 0 {
            return None;
        }
        let mut t = self.running.take()?;
        let blocks = t.log_blocks(self.tags);
        let start = self.head;
        let body = self.advance(blocks - 1);
        let record = self.advance(1)[0].0;
        self.committing_start = start;
        let ordered = t.ordered.iter().copied().collect();
        let filed = std::mem::take(&mut t.filed);
        let copies = t.log_order(self.tags);
        let tid = t.tid;
        self.committing = Some(t);
        Some(Commit { tid, ordered, filed, body, copies, record })
    }

    /// Takes log blocks from the head on: one run, or two at the log's end.
    fn advance(&mut self, blocks: u64) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        let mut left = blocks;
        while left > 0 {
            let n = left.min(self.length - self.head);
            runs.push((self.head, n));
            left -= n;
            self.head = if self.head + n == self.length { 1 } else { self.head + n };
        }
        self.used += blocks;
        runs
    }

    /// The commit record is on disk. Returns whether the journal's superblock must be written because the tail can move
    /// far enough.
    pub fn finish(&mut self, now: u64) -> bool {
        // Checked before this transaction takes over its blocks from older ones.
        let moves = self.committing.is_some() && self.distance() >= self.max;
        if moves {
            self.move_tail();
        }
        let Some(t) = self.committing.take() else { return false };
        self.committed = t.tid;
        for block in &t.blocks {
            self.settle(*block);
            if !t.retaken.contains(block) {
                self.dirty.insert(*block, now);
            }
        }
        let log_start = self.committing_start;
        let number = self.gone + self.checkpoints.len() as u64;
        self.waiting.extend(t.blocks.iter().map(|b| (*b, number)));
        self.checkpoints.push_back(Checkpoint { blocks: t.blocks, log_start });
        moves
    }

    /// The file system was unmounted: all is at home, and the log is empty from its head on.
    pub fn unmount(&mut self) {
        (self.tail, self.used, self.empty) = (self.head, 0, true);
        self.gone += self.checkpoints.len() as u64;
        self.checkpoints.clear();
        self.waiting.clear();
        self.dirty.clear();
        self.homeward.clear();
    }

    /// Blocks by which the tail can move.
    fn distance(&self) -> u64 {
        let to = self.oldest_start();
        match (to + self.length - 1 - self.tail) % (self.length - 1) {
            0 if to == self.head => self.used,
            ahead => ahead,
        }
    }

    /// Where the oldest transaction begins that the log still needs.
    fn oldest_start(&self) -> u64 {
        match (self.checkpoints.front(), &self.committing) {
            (Some(oldest), _) => oldest.log_start,
            (None, Some(_)) => self.committing_start,
            (None, None) => self.head,
        }
    }

    /// Moves the tail as far as it can. The journal's superblock has to be written then.
    pub fn move_tail(&mut self) {
        self.used -= self.distance();
        self.tail = self.oldest_start();
    }

    /// Whether the tail could move at all.
    #[must_use]
    pub fn tail_can_move(&self) -> bool {
        self.distance() > 0
    }

    /// The blocks of the oldest transaction that are to be written home, for a caller that needs room in the log.
    /// `None`: the running or committing transaction has some of them, and has to be committed first. Those that somebody else
    /// has under way are left out ([`awaited_home`](Self::awaited_home)).
    #[must_use]
    pub fn oldest(&self) -> Option<Vec<Block>> {
        let Some(oldest) = self.checkpoints.front() else { return Some(Vec::new()) };
        let to_write = |b: &Block| !self.is_homeward(*b);
        let home = |b: &Block| self.dirty.contains_key(b).then_some(*b);
        oldest.blocks.iter().filter(|b| to_write(b)).map(home).collect()
    }

    /// A block of the oldest transaction that is on its way home.
    #[must_use]
    pub fn awaited_home(&self) -> Option<Block> {
        self.checkpoints.front()?.blocks.iter().copied().find(|b| self.is_homeward(*b))
    }

    /// Whether a checkpoint waits for the end of the block's way home, and for nothing else.
    fn is_homeward(&self, block: Block) -> bool {
        let retaken = [&self.running, &self.committing];
        self.homeward.contains_key(&block)
            && self.homeward.get(&block) == self.waiting.get(&block)
            && !self.dirty.contains_key(&block)
            && !retaken.into_iter().flatten().any(|t| t.blocks.contains(&block))
    }

    /// Whether the block is in the log and not in its home place.
    #[must_use]
    pub fn is_dirty(&self, block: Block) -> bool {
        self.dirty.contains_key(&block)
    }

    /// Whether the running transaction has the block.
    #[must_use]
    pub fn takes(&self, block: Block) -> bool {
        self.running.as_ref().is_some_and(|t| t.blocks.contains(&block))
    }

    /// Dirty home blocks since `before` or longer, in order of place.
    #[must_use]
    pub fn dirty_since(&self, before: u64) -> Vec<Block> {
        self.dirty.iter().filter(|(_, at)| **at <= before).map(|(b, _)| *b).collect()
    }

    /// The block is on its way home. Its checkpoint waits for it still.
    pub fn goes_home(&mut self, block: Block) {
        if self.dirty.remove(&block).is_some()
            && let Some(number) = self.waiting.get(&block)
        {
            self.homeward.insert(block, *number);
        }
    }

    /// The block has been written home, as it was when that began.
    pub fn came_home(&mut self, block: Block) {
        let waited = self.homeward.remove(&block);
        if waited.is_some() && waited == self.waiting.get(&block).copied() {
            self.settle(block);
        }
    }

    /// No checkpoint waits for the block any longer.
    fn settle(&mut self, block: Block) {
        let Some(n) = self.waiting.remove(&block) else { return };
        let place = usize::try_from(n - self.gone).unwrap_or(usize::MAX);
        if let Some(c) = self.checkpoints.get_mut(place) {
            c.blocks.remove(&block);
        }
        while self.checkpoints.front().is_some_and(|c| c.blocks.is_empty()) {
            self.checkpoints.pop_front();
            self.gone += 1;
        }
    }
}

impl Transaction {
    /// What it writes before the commit block, in order: revoke blocks, then each descriptor block with its copies.
    fn log_order(&mut self, tags: u64) -> Vec<Option<Block>> {
        let mut left = std::mem::take(&mut self.order);
        // A block that was freed may have come again.
        let mut seen = BTreeSet::new();
        left.retain(|b| self.blocks.contains(b) && seen.insert(*b));
        let mut list = vec![None; usize::try_from(self.revoked.div_ceil(REVOKES)).unwrap_or(0)];
        for part in left.chunks(usize::try_from(tags).unwrap_or(usize::MAX)) {
            list.push(None);
            list.extend(part.iter().map(|b| Some(*b)));
        }
        list
    }

    /// Blocks it takes in the log, its commit block included.
    #[must_use]
    pub fn log_blocks(&self, tags: u64) -> u64 {
        let blocks = self.blocks.len() as u64;
        blocks + blocks.div_ceil(tags) + self.revoked.div_ceil(REVOKES) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(journal: &mut Journal, blocks: &[Block]) {
        journal.begin(0);
        for block in blocks {
            journal.modify(*block);
        }
        journal.end();
    }

    /// Three files are appended to and synced in turn, each commit has four blocks. Measured on Linux 6.18 with a
    /// journal of 1,024 blocks: a first checkpoint after 651 blocks with three to write; then the tail
    /// moves by itself after 348 and 342 blocks.
    #[test]
    fn a_small_journal_moves_its_tail_as_the_kernels() {
        let mut journal = Journal::new(1024, 3);
        let mut file = 0;
        let mut commits = 0;
        let mut log = 0;
        while journal.has_room() {
            change(&mut journal, &[1, 2, 3, 10 + file]);
            if commits == 0 {
                // Superblock, directory and its inode: changed once.
                change(&mut journal, &[100, 101, 102]);
            }
            file = (file + 1) % 3;
            assert_eq!(journal.starts(), commits == 0);
            let commit = journal.commit().unwrap();
            log += commit.body.iter().map(|(_, n)| n).sum::<u64>() + 1;
            journal.finish(0);
            commits += 1;
            assert!(commits < 200);
        }
        // All that was changed again belongs to newer transactions.
        assert!((651..657).contains(&log), "{log}");
        let oldest = journal.oldest().unwrap();
        assert_eq!(oldest, [100, 101, 102]);
        for block in oldest {
            journal.goes_home(block);
            journal.came_home(block);
        }
        assert!(journal.tail_can_move());
        journal.move_tail();
        assert!(journal.has_room());
        let mut since = 0;
        let mut moves = Vec::new();
        for _ in 0..200 {
            change(&mut journal, &[1, 2, 3, 10 + file]);
            file = (file + 1) % 3;
            journal.commit().unwrap();
            since += 1;
            if journal.finish(0) {
                moves.push(since);
                since = 0;
            }
            assert!(journal.has_room());
        }
        // At positions 999 and, in the second lap, 318.
        assert_eq!(moves, [58, 57, 57]);
    }

    /// Linux 6.18: a process that writes 400 MB with `data=journal` fills a third of its journal of 1 GiB and goes on while
    /// that is written to the log.
    #[test]
    fn a_transaction_begins_beside_a_full_one_that_is_committed() {
        for parts in [3, 4] {
            let mut journal = Journal::new(4096, parts);
            change(&mut journal, &(0..4096 / parts).collect::<Vec<_>>());
            journal.commit().unwrap();
            assert!(journal.has_room(), "{parts} parts");
        }
    }

    #[test]
    fn large_transactions_have_a_descriptor_for_every_253_blocks() {
        let mut journal = Journal::new(4096, 3);
        change(&mut journal, &(0..254).collect::<Vec<_>>());
        let commit = journal.commit().unwrap();
        assert_eq!((commit.body, commit.record), (vec![(1, 256)], 257));
    }

    #[test]
    fn the_log_wraps() {
        let mut journal = Journal::new(1024, 3);
        journal.head = 1020;
        change(&mut journal, &[1, 2, 3, 4, 5]);
        let commit = journal.commit().unwrap();
        assert_eq!((commit.body, commit.record), (vec![(1020, 4), (1, 2)], 3));
    }

    #[test]
    fn a_block_in_a_transaction_is_not_written_home() {
        let mut journal = Journal::new(1024, 3);
        change(&mut journal, &[7]);
        assert_eq!(journal.dirty_since(u64::MAX), []);
        let commit = journal.commit().unwrap();
        assert_eq!(commit.copies, [None, Some(7)]);
        assert_eq!(journal.take_held(), []);
        change(&mut journal, &[7, 8]);
        assert_eq!(journal.take_held(), [7]);
        journal.finish(5);
        assert_eq!(journal.dirty_since(5), [], "the running transaction has it");
        journal.commit();
        journal.finish(9);
        assert_eq!(journal.dirty_since(8), []);
        assert_eq!(journal.dirty_since(9), [7, 8]);
        journal.goes_home(7);
        journal.goes_home(8);
        assert_eq!((journal.oldest(), journal.awaited_home()), (Some(vec![]), Some(7)));
        journal.came_home(7);
        // The other has changed meanwhile: what was on its way is not what the checkpoint of that waits for.
        change(&mut journal, &[8]);
        assert_eq!((journal.oldest(), journal.awaited_home()), (None, None));
        journal.commit();
        journal.finish(12);
        journal.came_home(8);
        assert_eq!(journal.oldest(), Some(vec![8]));
        journal.goes_home(8);
        journal.came_home(8);
        assert!(journal.tail_can_move());
    }

    #[test]
    fn open_changes_hold_up_a_commit() {
        let mut journal = Journal::new(1024, 3);
        let tid = journal.begin(0);
        journal.modify(1);
        assert_eq!(journal.commit(), None);
        journal.end();
        assert_eq!(journal.commit().map(|c| c.tid), Some(tid));
        journal.begin(1);
        journal.end();
        assert_eq!(journal.commit(), None, "one commit at a time");
    }
}
