//! The load that comes with the program: made from the counts of dbench's client.txt, not a copy of it.
//!
//! After the building of the files a loop has 16,000 rounds. A round is the short life of one file among those that
//! stay: looked for, made, written, renamed, deleted. What happens less or more often than once a round is spread evenly
//! over the rounds, so that the sums are those of the table. Syncs are not: a document is saved with up to six of them in a
//! row, and between two saves little happens or much (`Saves`).

use std::ops::Range;

use super::load::{Handle, Load, Name, Op};

/// Rounds of a loop, each with one file that is deleted: the number of `Unlink`.
const ROUNDS: u64 = 16_000;
/// Documents that stay, and names that files of a round have in turn: 107 written files in all.
const DOCUMENTS: u64 = 57;
const SHORT_LIVED: u64 = 50;
/// Directories of documents.
const DIRECTORIES: u64 = 9;

/// Operations of a loop.
mod count {
    pub(super) const MISSED_OPENS: u64 = 21_030;
    pub(super) const OPENS: u64 = 38_519 + 3_613;
    pub(super) const QUERY_PATH_MISSED: u64 = 24_256 + 129;
    pub(super) const QUERY_PATH: u64 = 47_429;
    pub(super) const QUERY_FILE: u64 = 12_585;
    pub(super) const QUERY_FS: u64 = 13_168;
    pub(super) const SET_FILE: u64 = 6_454;
    pub(super) const FIND: u64 = 27_765;
    pub(super) const FLUSH: u64 = 5_553;
    pub(super) const RENAME: u64 = 3_355;
    pub(super) const LOCK: u64 = 258;
    pub(super) const READS: [(u32, u64); 5] =
        [(4096, 83_172), (61_440, 16_641), (2048, 4_644), (8192, 4_644), (OTHER_READ, 15_098)];
    /// Mean length of the reads of other sizes: 1,403.9 MiB less what the sizes above come to.
    pub(super) const OTHER_READ: u32 = 4069;
    pub(super) const WRITE_64K: u64 = 12_658;
    pub(super) const WRITE_4K: u64 = 9_942;
    pub(super) const WRITE_1: u64 = 7_424;
    pub(super) const WRITE_2K: u64 = 1_677;
    pub(super) const WRITE_8K: u64 = 1_164;
    pub(super) const WRITE_OTHER: u64 = 6_637;
    /// Mean length of the writes of other sizes: 968.9 MiB less what the sizes above come to.
    pub(super) const OTHER_WRITE: u32 = 20_003;
    /// Writes of other sizes before a flush: with them a flush has 11,654 dirty bytes in the mean.
    pub(super) const OTHER_BEFORE_FLUSH: u64 = 550;
}

/// Syncs in a row on one file, and how often client.txt has that many: two of a row are at most eight operations apart.
const ROWS: [(u64, u64); 4] = [(6, 388), (3, 129), (2, 643), (1, 1_552)];
/// Rounds from one row of syncs to the next, in turn: a tenth, a quarter, half, three quarters and nine tenths of
/// client.txt's rows come at most 24, 40, 63, 197 and 453 operations after the one before; a round has 29.
const GAPS: [u64; 8] = [1, 2, 1, 7, 1, 12, 2, 21];

const BLOCK: u32 = 64 << 10;

/// How many of `total` things, spread evenly over `rounds`, belong to a round.
fn share(round: u64, total: u64, rounds: u64) -> u64 {
    (round + 1) * total / rounds - round * total / rounds
}

/// Length of a document.
fn length(document: u64) -> u64 {
    match document {
        0 => 1_867_776,
        1..=3 => 1 << 20,
        _ => 260_096,
    }
}

/// Bytes of a client's documents, which are there together.
pub(super) fn documents() -> u64 {
    (0..DOCUMENTS).map(length).sum()
}

/// When documents are saved, and with how many syncs each.
struct Saves {
    /// Of each row of syncs, in their order.
    rows: Vec<u64>,
    /// The next row, the round in which it comes, and syncs before it.
    next: usize,
    round: u64,
    syncs: u64,
}

impl Saves {
    fn new() -> Saves {
        let all: u64 = ROWS.iter().map(|r| r.1).sum();
        let mut rows = vec![0; all as usize];
        for (syncs, times) in ROWS {
            // Spread evenly over the rows that are left.
            let left = rows.iter().filter(|r| **r == 0).count() as u64;
            for (i, row) in rows.iter_mut().filter(|r| **r == 0).enumerate() {
                if share(i as u64, times, left) > 0 {
                    *row = syncs;
                }
            }
        }
        Saves { rows, next: 0, round: 0, syncs: 0 }
    }

    /// The syncs of a round, as numbers among all of them.
    fn of(&mut self, round: u64) -> Range<u64> {
        let from = self.syncs;
        if round == self.round
            && let Some(row) = self.rows.get(self.next)
        {
            self.syncs += row;
            self.round += GAPS[self.next % GAPS.len()];
            self.next += 1;
        }
        from..self.syncs
    }
}

struct Maker {
    load: Load,
    saves: Saves,
    last: Handle,
    missing: Name,
    documents: Vec<Name>,
    short: Vec<(Name, Name)>,
    /// Which document is opened next, where it is read and written next.
    turn: u64,
    at: u64,
}

/// The load.
pub(super) fn made() -> Load {
    let mut m = Maker {
        load: Load::default(),
        saves: Saves::new(),
        last: 0,
        missing: 0,
        documents: Vec::new(),
        short: Vec::new(),
        turn: 0,
        at: 0,
    };
    let top = m.name("clients".into());
    let client = m.name("clients/client1".into());
    m.missing = m.name("clients/client1/~dmtmp/missing".into());
    m.op(Op::Deltree(client));
    m.op(Op::Mkdir(top));
    for name in [client, m.missing + 1] {
        if name != client {
            m.name("clients/client1/~dmtmp".into());
        }
        m.make_directory(name);
    }
    for d in 0..DIRECTORIES {
        let name = m.name(format!("clients/client1/~dmtmp/D{d}"));
        m.make_directory(name);
    }
    let blocks = m.build();
    for round in 0..ROUNDS {
        m.round(round, count::WRITE_64K - blocks);
    }
    m.op(Op::Deltree(client));
    m.load
}

impl Maker {
    fn op(&mut self, op: Op) {
        self.load.ops.push(op);
    }

    fn name(&mut self, name: String) -> Name {
        self.load.names.push(name);
        self.load.names.len() as Name - 1
    }

    fn open(&mut self, name: Name, directory: bool, disposition: u8) -> Handle {
        self.last += 1;
        let handle = self.last;
        self.op(Op::Create { name, directory, disposition, handle });
        handle
    }

    fn make_directory(&mut self, name: Name) {
        let handle = self.open(name, true, 2);
        self.op(Op::Close(handle));
    }

    /// The documents. Returns how many blocks they have.
    fn build(&mut self) -> u64 {
        let mut blocks = 0;
        for i in 0..DOCUMENTS {
            let name = self.name(format!("clients/client1/~dmtmp/D{}/DOC{i}", i % DIRECTORIES));
            self.documents.push(name);
            let handle = self.open(name, false, if i == 0 { 5 } else { 2 });
            for block in 0..length(i).div_ceil(BLOCK.into()) {
                self.op(Op::Write { handle, at: block * u64::from(BLOCK), len: BLOCK });
                blocks += 1;
            }
            self.op(Op::Close(handle));
        }
        for i in 0..SHORT_LIVED {
            let at = format!("clients/client1/~dmtmp/D{}", i % DIRECTORIES);
            let names =
                (self.name(format!("{at}/NEW{i}.TMP")), self.name(format!("{at}/OLD{i}.TMP")));
            self.short.push(names);
        }
        blocks
    }

    fn repeat(&mut self, round: u64, total: u64, op: Op) {
        for _ in 0..share(round, total, ROUNDS) {
            self.op(op);
        }
    }

    fn round(&mut self, round: u64, blocks: u64) {
        let (new, renamed) = self.short[(round % SHORT_LIVED) as usize];
        self.repeat(round, count::QUERY_PATH_MISSED, Op::QueryPath(self.missing));
        self.repeat(round, count::QUERY_PATH, Op::QueryPath(self.documents[0]));
        self.repeat(round, count::FIND, Op::Find(self.missing));
        self.repeat(round, count::QUERY_FS, Op::QueryFs);
        for _ in 0..share(round, count::MISSED_OPENS, ROUNDS) {
            self.open(self.missing, false, 1);
        }
        let handle = self.open(new, false, 2);
        self.fill(round, handle, blocks);
        self.repeat(round, count::QUERY_FILE, Op::QueryFile(handle));
        self.repeat(round, count::SET_FILE, Op::SetFile(handle));
        self.repeat(round, count::LOCK, Op::Lock);
        self.repeat(round, count::LOCK, Op::Unlock);
        self.op(Op::Close(handle));
        let syncs = self.saves.of(round);
        let opens = share(round, count::OPENS, ROUNDS);
        for open in 0..opens {
            let syncs = if open == 0 { syncs.clone() } else { 0..0 };
            self.use_document(round, open, opens, syncs);
        }
        let gone = if share(round, count::RENAME, ROUNDS) > 0 {
            self.op(Op::Rename(new, renamed));
            renamed
        } else {
            new
        };
        self.op(Op::Unlink(gone));
    }

    /// Extends a file by its last byte, then writes what comes before.
    fn fill(&mut self, round: u64, handle: Handle, blocks: u64) {
        let others = count::WRITE_OTHER - count::OTHER_BEFORE_FLUSH;
        let mut writes = vec![BLOCK; share(round, blocks, ROUNDS) as usize];
        writes.extend(vec![count::OTHER_WRITE; share(round, others, ROUNDS) as usize]);
        let all: u64 = writes.iter().map(|w| u64::from(*w)).sum();
        for _ in 0..share(round, count::WRITE_1, ROUNDS) {
            self.op(Op::Write { handle, at: all.max(1) - 1, len: 1 });
        }
        let mut at = 0;
        for len in writes {
            self.op(Op::Write { handle, at, len });
            at += u64::from(len);
        }
    }

    /// Opens a document and reads its share; writes and syncs, in some rounds.
    fn use_document(&mut self, round: u64, open: u64, opens: u64, syncs: Range<u64>) {
        let document = self.turn % DOCUMENTS;
        self.turn += 1;
        let handle = self.open(self.documents[document as usize], false, 1);
        for (len, total) in count::READS {
            let of_round = share(round, total, ROUNDS);
            for _ in 0..share(open, of_round, opens) {
                let at = self.place(document, len);
                self.op(Op::Read { handle, at, len });
            }
        }
        for sync in syncs {
            for len in dirty_before(sync) {
                let at = self.place(document, len);
                self.op(Op::Write { handle, at, len });
            }
            self.op(Op::Flush(handle));
        }
        self.op(Op::Close(handle));
    }

    /// The next place in a document.
    fn place(&mut self, document: u64, len: u32) -> u64 {
        let room = (length(document) - u64::from(len)) / 4096;
        self.at = self.at.wrapping_add(61);
        self.at % room * 4096
    }
}

/// What is written before a flush. The most often it is one block of 4 KiB, the median; one flush in three has the rest.
fn dirty_before(flush: u64) -> Vec<u32> {
    let (third, thirds) = (flush / 3, count::FLUSH / 3);
    if flush % 3 != 2 {
        return vec![4096];
    }
    let small = count::FLUSH - thirds;
    let kinds = [
        (4096, count::WRITE_4K - small),
        (2048, count::WRITE_2K),
        (8192, count::WRITE_8K),
        (count::OTHER_WRITE, count::OTHER_BEFORE_FLUSH),
    ];
    let of = |(len, total)| vec![len; share(third, total, thirds) as usize];
    kinds.into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn the_load_has_the_counts_of_the_table() {
        let load = made();
        let mut n: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut read, mut written, mut files) = (0u64, 0u64, BTreeSet::new());
        let mut open: BTreeMap<Handle, (Name, u64)> = BTreeMap::new();
        let mut dirty = Vec::new();
        for op in &load.ops {
            let kind = match *op {
                Op::Deltree(_) => "Deltree",
                Op::Mkdir(_) => "Mkdir",
                Op::Create { name, handle, .. } => {
                    open.insert(handle, (name, 0));
                    "NTCreateX"
                }
                Op::Close(_) => "Close",
                Op::Read { len, .. } => {
                    read += u64::from(len);
                    "ReadX"
                }
                Op::Write { handle, len, .. } => {
                    written += u64::from(len);
                    let of = open.get_mut(&handle).unwrap();
                    of.1 += u64::from(len);
                    files.insert(of.0);
                    "WriteX"
                }
                Op::Flush(handle) => {
                    dirty.push(std::mem::take(&mut open.get_mut(&handle).unwrap().1));
                    "Flush"
                }
                Op::Unlink(_) => "Unlink",
                Op::Rename(..) => "Rename",
                Op::Find(_) => "FIND_FIRST",
                Op::QueryPath(_) => "QUERY_PATH",
                Op::QueryFile(_) => "QUERY_FILE",
                Op::QueryFs => "QUERY_FS",
                Op::SetFile(_) => "SET_FILE",
                Op::Lock => "LockX",
                Op::Unlock => "UnlockX",
            };
            *n.entry(kind).or_default() += 1;
        }
        let counts = [
            ("ReadX", 124_199),
            ("NTCreateX", 79_230),
            ("Close", 58_200),
            ("WriteX", 39_502),
            ("FIND_FIRST", 27_765),
            ("Unlink", 16_000),
            ("QUERY_FS", 13_168),
            ("QUERY_FILE", 12_585),
            ("QUERY_PATH", 71_814),
            ("SET_FILE", 6_454),
            ("Flush", 5_553),
            ("Rename", 3_355),
            ("LockX", 258),
            ("UnlockX", 258),
            ("Deltree", 2),
            ("Mkdir", 1),
        ];
        for (kind, count) in counts {
            assert_eq!(n[kind], count, "{kind}");
        }
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        assert!((mib(read) - 1403.9).abs() < 1.0, "{}", mib(read));
        assert!((mib(written) - 968.9).abs() < 1.0, "{}", mib(written));
        assert_eq!(files.len(), 107);
        dirty.sort_unstable();
        assert_eq!(dirty[dirty.len() / 2], 4096);
        let mean = dirty.iter().sum::<u64>() as f64 / dirty.len() as f64;
        assert!((mean / 11_654.0 - 1.0).abs() < 0.05, "{mean}");
    }

    /// Syncs come in rows. Evenly spread they made six clients share commits in another way than client.txt does.
    #[test]
    fn syncs_come_in_rows_as_those_of_the_original() {
        let load = made();
        let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut row, mut last, mut gaps) = (0u64, None, Vec::new());
        for (i, op) in load.ops.iter().enumerate() {
            if !matches!(op, Op::Flush(_)) {
                continue;
            }
            let gap = last.map(|l| i - l);
            if gap.is_some_and(|g| g > 8) {
                *rows.entry(std::mem::take(&mut row)).or_default() += 1;
                gaps.extend(gap);
            }
            row += 1;
            last = Some(i);
        }
        *rows.entry(row).or_default() += 1;
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), [(1, 1552), (2, 643), (3, 129), (6, 388)]);
        gaps.sort_unstable();
        // client.txt: 63 and 453.
        assert!((40..90).contains(&gaps[gaps.len() / 2]), "{}", gaps[gaps.len() / 2]);
        assert!((300..600).contains(&gaps[gaps.len() * 9 / 10]), "{}", gaps[gaps.len() * 9 / 10]);
    }
}
