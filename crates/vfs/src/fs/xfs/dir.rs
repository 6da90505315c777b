//! Directories: the form that one has for its number of entries, and the bytes that a change touches.
//!
//! Few entries are in the inode itself; more are in one block with their hashes at its end; then blocks of entries and a
//! leaf of hashes; then several leaves below a root.

use std::collections::BTreeMap;

use crate::cache::PAGE;

/// Bytes of the inode for what it holds itself.
const IN_INODE: u64 = 336;
/// Bytes before the first entry of a block; `.` and `..` come next.
const HEADER: u64 = 64;
const DOTS: u64 = 32;
/// Bytes of an entry's hash in a leaf, and of the two counts at the end of a block.
const HASH: u64 = 8;
const TAIL: u64 = 8;
/// The block of the directory in which the leaf lies: at 32 GiB. The root and more leaves follow.
pub const LEAF: u64 = (32 << 30) / PAGE;
/// The block with what each block of entries has room for, once there are several leaves: at 64 GiB.
pub const ROOMS: u64 = (64 << 30) / PAGE;
/// Hashes of a leaf, and after a split of it.
const LEAF_ENTRIES: usize = 504;
const AFTER_SPLIT: usize = 378;

/// Bytes of a block of the directory that change: block, from, to.
pub type Edit = (u64, u64, u64);

/// An entry's place.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its block, and where in it.
    block: u64,
    at: u64,
    /// Bytes.
    len: u64,
}

/// A directory's entries.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// By hash and order of arrival. In the inode: block 0, anywhere.
    entries: BTreeMap<(u32, u32), Slot>,
    arrivals: u32,
    /// Bytes of entries in the inode.
    short: u64,
    /// It has left the inode.
    blocks: Vec<Block>,
    leaves: u64,
    ranks: Ranks,
}

/// How many hashes are below another one, to the nearest 4096th of all that there could be.
#[derive(Clone, Debug, Default)]
struct Ranks {
    coarse: Vec<u32>,
    fine: Vec<u32>,
}

impl Ranks {
    fn add(&mut self, hash: u32, n: i32) {
        if self.fine.is_empty() {
            (self.coarse, self.fine) = (vec![0; 64], vec![0; 4096]);
        }
        let (c, f) = ((hash >> 26) as usize, (hash >> 20) as usize);
        self.coarse[c] = self.coarse[c].saturating_add_signed(n);
        self.fine[f] = self.fine[f].saturating_add_signed(n);
    }

    fn below(&self, hash: u32) -> usize {
        let (c, f) = ((hash >> 26) as usize, (hash >> 20) as usize);
        let sum = |counts: &[u32]| counts.iter().sum::<u32>() as usize;
        match self.fine.is_empty() {
            true => 0,
            false => sum(&self.coarse[..c]) + sum(&self.fine[c * 64..f]),
        }
    }
}

/// A block of entries.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Where the next entry goes.
    end: u64,
    /// Entries that were taken out: length and place.
    holes: Vec<(u64, u64)>,
    live: u64,
}

/// What a change of entries needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Blocks of the directory that are new.
    pub new: Vec<u64>,
    /// Blocks that it has no longer.
    pub gone: Vec<u64>,
    /// What changes.
    pub edits: Vec<Edit>,
}

/// The hash of a name, by the directory's format: seven bits further for each letter.
#[must_use]
pub fn hash(name: &str) -> u32 {
    name.bytes().fold(0u32, |h, b| h.rotate_left(7) ^ u32::from(b))
}

fn entry_bytes(name: &str) -> u64 {
    (8 + 1 + name.len() as u64 + 1 + 2).next_multiple_of(8)
}

fn short_bytes(name: &str) -> u64 {
    8 + name.len() as u64
}

impl Directory {
    /// Bytes that it takes in its inode; 0 when it has blocks.
    #[must_use]
    pub fn in_inode(&self) -> u64 {
        if self.blocks.is_empty() { (6 + self.short).next_multiple_of(4) } else { 0 }
    }

    /// The blocks that a look for a name reads: those of hashes, then that of the entry.
    #[must_use]
    pub fn looked_at(&self, name: &str) -> Vec<u64> {
        let hash = hash(name);
        let mut out = Vec::new();
        if self.leaves > 1 {
            out.push(LEAF);
        }
        if self.leaves > 0 {
            out.push(self.leaf_of(self.rank((hash, 0))));
        }
        let slot = self.entries.range((hash, 0)..=(hash, u32::MAX)).next();
        if !self.blocks.is_empty() {
            out.push(slot.map_or(0, |(_, s)| s.block));
        }
        out
    }

    /// All blocks with entries, as reading the whole directory reads them.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Puts a name in.
    pub fn add(&mut self, name: &str) -> Change {
        let key = (hash(name), self.arrivals);
        self.arrivals += 1;
        let len = entry_bytes(name);
        let mut change = Change::default();
        if self.blocks.is_empty() {
            self.short += short_bytes(name);
            self.entries.insert(key, Slot { block: 0, at: 0, len });
            if 6 + self.short > IN_INODE {
                self.leave_inode(&mut change);
            }
            return change;
        }
        let slot = self.room(len, &mut change);
        change.edits.extend([(slot.block, slot.at, slot.at + len), (slot.block, 0, HEADER)]);
        self.entries.insert(key, slot);
        let index = self.rank(key);
        self.ranks.add(key.0, 1);
        self.hashes_move(index, &mut change);
        change
    }

    /// Takes a name out.
    pub fn remove(&mut self, name: &str) -> Change {
        let hash = hash(name);
        let mut change = Change::default();
        let found = self.entries.range((hash, 0)..=(hash, u32::MAX)).next().map(|(k, s)| (*k, *s));
        let Some((key, slot)) = found else { return change };
        let index = self.rank(key);
        self.entries.remove(&key);
        if self.blocks.is_empty() {
            self.short -= short_bytes(name).min(self.short);
            return change;
        }
        self.ranks.add(hash, -1);
        let block = &mut self.blocks[slot.block as usize];
        block.live -= 1;
        block.holes.push((slot.len, slot.at));
        let empty = block.live == 0 && self.leaves > 0 && slot.block > 0;
        if empty {
            *block = Block::default();
            change.gone.push(slot.block);
        } else {
            change.edits.push((slot.block, slot.at, slot.at + slot.len));
            change.edits.push((slot.block, 0, HEADER));
        }
        // The hash stays, marked as stale.
        change.edits.push(self.hash_place(index));
        change
    }

    /// The entries leave the inode for a block.
    fn leave_inode(&mut self, change: &mut Change) {
        let mut at = HEADER + DOTS;
        let mut slots: Vec<((u32, u32), Slot)> =
            self.entries.iter().map(|(k, s)| (*k, *s)).collect();
        slots.sort_by_key(|((_, order), _)| *order);
        for (key, slot) in slots {
            self.entries.insert(key, Slot { at, ..slot });
            self.ranks.add(key.0, 1);
            at += slot.len;
        }
        let live = self.entries.len() as u64;
        self.blocks.push(Block { end: at, holes: Vec::new(), live });
        change.new.push(0);
        change.edits.extend([(0, 0, at), (0, PAGE - self.hash_bytes(), PAGE)]);
    }

    /// Bytes of the hashes at the end of the only block.
    fn hash_bytes(&self) -> u64 {
        TAIL + HASH * (self.entries.len() as u64 + 2)
    }

    /// Room for an entry.
    fn room(&mut self, len: u64, change: &mut Change) -> Slot {
        let limit = if self.leaves == 0 { PAGE - self.hash_bytes() - HASH } else { PAGE };
        for (number, block) in (0..).zip(&mut self.blocks) {
            if block.end == 0 {
                continue;
            }
            if block.end + len <= limit {
                let at = block.end;
                block.end += len;
                block.live += 1;
                return Slot { block: number, at, len };
            }
            if let Some(i) = block.holes.iter().position(|(n, _)| *n >= len) {
                let (_, at) = block.holes.swap_remove(i);
                block.live += 1;
                return Slot { block: number, at, len };
            }
        }
        if self.leaves == 0 {
            // The hashes leave for a leaf, which frees the end of the block.
            self.leaves = 1;
            change.new.push(LEAF);
            let end = self.blocks[0].end;
            change.edits.extend([
                (0, 0, HEADER),
                (0, end, PAGE),
                (LEAF, 0, 64 + self.hash_bytes()),
            ]);
            change.edits.push((LEAF, PAGE - 8, PAGE));
            return self.room(len, change);
        }
        let number = self.blocks.iter().position(|b| b.end == 0).unwrap_or(self.blocks.len());
        let fresh = Block { end: HEADER + len, holes: Vec::new(), live: 1 };
        match self.blocks.get_mut(number) {
            Some(block) => *block = fresh,
            None => self.blocks.push(fresh),
        }
        change.new.push(number as u64);
        Slot { block: number as u64, at: HEADER, len }
    }

    /// Hashes below this one: exactly while they are in one block, nearly when they are many.
    fn rank(&self, key: (u32, u32)) -> usize {
        match self.leaves {
            0 => self.entries.range(..key).count(),
            _ => self.ranks.below(key.0),
        }
    }

    /// The leaf that has the hash with this number.
    fn leaf_of(&self, index: usize) -> u64 {
        match self.leaves {
            0 | 1 => LEAF,
            n => LEAF + 1 + (index as u64 * n / self.entries.len().max(1) as u64).min(n - 1),
        }
    }

    /// The bytes of one hash.
    fn hash_place(&self, index: usize) -> Edit {
        let index = index as u64;
        match self.leaves {
            0 => {
                let at = PAGE - self.hash_bytes() + HASH * index;
                (0, at, at + HASH)
            }
            n => {
                let within = index % (self.entries.len() as u64 / n).max(1);
                let at = (64 + HASH * within).min(PAGE - HASH);
                (self.leaf_of(index as usize), at, at + HASH)
            }
        }
    }

    /// A hash comes in at `index`: others make room for it, and a full leaf is split.
    fn hashes_move(&mut self, index: usize, change: &mut Change) {
        let n = self.entries.len();
        if self.leaves == 0 {
            // They grow downwards: those before it move.
            let start = PAGE - self.hash_bytes();
            let end = start + HASH * (index as u64 + 1);
            change.edits.extend([(0, start, end), (0, PAGE - TAIL, PAGE)]);
            return;
        }
        let split = match self.leaves {
            1 => n > LEAF_ENTRIES,
            leaves => n > leaves as usize * AFTER_SPLIT,
        };
        if split {
            if self.leaves == 1 {
                // The first leaf becomes the root, and two others and the block of rooms come.
                change.new.extend([LEAF + 1, ROOMS]);
            }
            self.leaves += 1;
            let last = LEAF + self.leaves;
            change.new.push(last);
            change.edits.extend([(LEAF, 0, 64 + HASH * self.leaves), (last, 0, PAGE / 2)]);
        }
        let (leaf, from, _) = self.hash_place(index);
        let in_leaf = n as u64 / self.leaves;
        let to = (64 + HASH * in_leaf).clamp(from + HASH, PAGE);
        change.edits.extend([(leaf, from, to), (leaf, 0, 64)]);
        let rooms = if self.leaves > 1 { ROOMS } else { LEAF };
        change.edits.push((rooms, PAGE - 8, PAGE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.12: of files `f0_0`, `f0_1`, … the 27th is the first that has no room in the inode.
    #[test]
    fn twenty_six_short_names_fit_into_an_inode() {
        let mut d = Directory::default();
        for i in 0..26 {
            assert_eq!(d.add(&format!("f0_{i}")), Change::default(), "{i}");
        }
        assert_eq!(d.in_inode(), 336);
        let c = d.add("f0_26");
        assert_eq!(c.new, [0]);
        // Ten entries of 16 bytes and 17 of 24; 29 hashes and the tail.
        assert_eq!(c.edits, [(0, 0, 64 + 32 + 160 + 408), (0, 4096 - 240, 4096)]);
        assert_eq!(d.in_inode(), 0);
    }

    #[test]
    fn it_grows_and_shrinks() {
        let mut d = Directory::default();
        let mut blocks = std::collections::BTreeSet::new();
        for i in 0..3000 {
            let c = d.add(&format!("file{i}"));
            for b in c.new {
                assert!(blocks.insert(b), "{i}: {b} twice");
            }
            for (b, from, to) in c.edits {
                assert!(blocks.contains(&b) && from < to && to <= 4096, "{i}: {b} {from} {to}");
            }
        }
        assert!(d.leaves > 4 && d.blocks() > 15, "{} leaves, {} blocks", d.leaves, d.blocks());
        for i in 0..3000 {
            let c = d.remove(&format!("file{i}"));
            for b in c.gone {
                assert!(blocks.remove(&b));
            }
            assert!(
                c.edits.iter().all(|(b, f, t)| blocks.contains(b) && f < t && *t <= 4096),
                "{i}"
            );
        }
        assert!(d.entries.is_empty());
        assert!(blocks.range(1..LEAF).next().is_none(), "empty blocks go");
    }

    /// By the format's rule.
    #[test]
    fn hashes_are_those_of_the_format() {
        assert_eq!(hash("."), 0x2e);
        assert_eq!(hash(".."), 0x172e);
    }
}
