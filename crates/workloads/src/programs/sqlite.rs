//! `sqlite`: inserts into one table, each its own transaction, as PTS 1.9.0 does it.
//!
//! The calls are those of SQLite 3.40, seen with strace. File locks cost nothing worth counting and are left out.

use std::collections::BTreeMap;

use iosched_syscalls::{Done, Errno, Fd, OpenFlags, Sys};
use iosched_types::units::SEC;

use super::btree::{Changed, Table};
use super::{Descriptor, Figure, Kind, Param, Params, files, fits};

const DB: &str = "pts.db";
const JOURNAL: &str = "pts.db-journal";
const WAL: &str = "pts.db-wal";
const SHM: &str = "pts.db-shm";
/// Frames in the write-ahead log from which on a commit makes a checkpoint (`wal_autocheckpoint`).
const CHECKPOINT: u64 = 1000;
/// A frame's header.
const FRAME: u64 = 24;

/// The inserts.
pub(super) static SQLITE: Descriptor = Descriptor {
    name: "sqlite",
    quick: &[("inserts", "100"), ("passes", "1")],
    text: "SQLite: inserts rows into one table, each in a transaction of its own, by processes one after the other \
           (Phoronix Test Suite, sqlite-1.9.0).",
    params: &[
        Param {
            name: "inserts",
            text: "INSERTs of a pass.",
            default: "2500",
            kind: Kind::Count(1, 10_000_000),
        },
        Param {
            name: "passes",
            text: "Processes, one after the other.",
            default: "3",
            kind: Kind::Count(1, 100),
        },
        Param {
            name: "journal",
            text: "`journal_mode`.",
            default: "delete",
            kind: Kind::Word(&["delete", "truncate", "persist", "wal"]),
        },
        Param {
            name: "synchronous",
            text: "`synchronous`.",
            default: "full",
            kind: Kind::Word(&["full", "normal", "off"]),
        },
        Param {
            name: "page_size",
            text: "Bytes of a page; 1024 was the default before SQLite 3.12, 4096 since then.",
            default: "1024",
            kind: Kind::Bytes(512, 65_536),
        },
        Param {
            name: "row",
            text: "Bytes of a row as stored.",
            default: "46",
            kind: Kind::Bytes(4, 120),
        },
    ],
    figures: &[Figure { name: "seconds", unit: "s", higher_is_better: Some(false) }],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| p.count("passes").saturating_mul(p.count("inserts")).saturating_mul(p.bytes("row")),
    fits: |p| {
        let page = p.bytes("page_size");
        fits(page.is_power_of_two(), || format!("page_size={page} is no power of two"))
    },
    prepare: None,
    run: |sys, p| Box::pin(run(sys, p)),
};

async fn run(sys: Sys, p: Params) -> Done {
    let begun = sys.now();
    for pass in 0..p.count("passes") {
        let p = p.clone();
        sys.fork_as("shell", async move |sys| shell(sys, p, pass).await).await?;
        files::wait_for(&sys, 1).await?;
    }
    sys.figure("seconds", (sys.now() - begun) as f64 / SEC as f64).await
}

/// One run of the shell.
async fn shell(sys: Sys, p: Params, pass: u64) -> Done {
    let mut table = Table::new(p.bytes("page_size"), p.bytes("row"));
    for _ in 0..pass * p.count("inserts") {
        table.insert();
    }
    let db = sys.open(DB, OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE).await?;
    sys.pread(db, 0, 100).await?;
    let wal = match &*p.word("journal") {
        "wal" => Some(Wal::open(&sys, db).await?),
        _ => None,
    };
    let mut shell = Shell { sys, db, wal, page: p.bytes("page_size"), p: p.clone() };
    if pass == 0 {
        shell.commit(&Changed { old: Vec::new(), new: vec![0, 1] }).await?;
    } else {
        // The first look at the table: its pages from the root down.
        for page in table.way_down() {
            shell.sys.pread(db, page * shell.page, shell.page).await?;
        }
    }
    for _ in 0..p.count("inserts") {
        let begun = shell.sys.now();
        let changed = table.insert();
        shell.commit(&changed).await?;
        shell.sys.note("insert", begun, p.bytes("row")).await?;
    }
    shell.close().await
}

struct Shell {
    sys: Sys,
    db: Fd,
    wal: Option<Wal>,
    page: u64,
    p: Params,
}

impl Shell {
    fn full(&self) -> bool {
        &*self.p.word("synchronous") == "full"
    }

    fn off(&self) -> bool {
        &*self.p.word("synchronous") == "off"
    }

    async fn sync(&self, fd: Fd) -> Done {
        if self.off() { Ok(()) } else { self.sys.fdatasync(fd).await }
    }

    async fn commit(&mut self, changed: &Changed) -> Done {
        let (full, off) = (self.full(), self.off());
        match &mut self.wal {
            Some(wal) => wal.commit(&self.sys, self.db, self.page, changed, full, off).await,
            None => self.commit_by_journal(changed).await,
        }
    }

    /// The read lock and what is looked at under it.
    async fn begin(&self) -> Done {
        let sys = &self.sys;
        if sys.stat(JOURNAL).await.is_ok_and(|s| s.bytes > 0) {
            // Left there by `persist`: its first byte says that it is not hot.
            sys.fstat(self.db).await?;
            sys.stat(DB).await?;
            let journal = sys.open(JOURNAL, OpenFlags::READ).await?;
            sys.fstat(journal).await?;
            sys.pread(journal, 0, 1).await?;
            sys.close(journal).await?;
        }
        sys.pread(self.db, 24, 16).await?;
        let _ = sys.stat(WAL).await;
        sys.fstat(self.db).await?;
        sys.stat(DB).await?;
        sys.stat(DB).await?;
        Ok(())
    }

    /// The old pages go into the journal, are made durable, and only then the new ones into the database.
    async fn commit_by_journal(&self, changed: &Changed) -> Done {
        let (sys, page) = (&self.sys, self.page);
        self.begin().await?;
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
        let journal = sys.open(JOURNAL, flags).await?;
        sys.fstat(journal).await?;
        sys.pwrite(journal, 0, 512).await?;
        let mut at = 512;
        for _ in &changed.old {
            // Number, content and checksum of a page.
            for len in [4, page, 4] {
                sys.pwrite(journal, at, len).await?;
                at += len;
            }
        }
        if !self.off() {
            sys.pread(journal, at.next_multiple_of(512), 8).await?;
        }
        if self.full() {
            self.sync(journal).await?;
            self.sync_directory().await?;
            sys.pwrite(journal, 0, 12).await?;
            self.sync(journal).await?;
        } else if !self.off() {
            sys.pwrite(journal, 0, 12).await?;
            self.sync(journal).await?;
            self.sync_directory().await?;
        }
        for number in changed.pages() {
            sys.pwrite(self.db, number * page, page).await?;
        }
        self.sync(self.db).await?;
        self.end_journal(journal).await
    }

    async fn end_journal(&self, journal: Fd) -> Done {
        let sys = &self.sys;
        match &*self.p.word("journal") {
            "truncate" => {
                sys.truncate(journal, 0).await?;
                self.sync(journal).await?;
                sys.close(journal).await
            }
            "persist" => {
                sys.pwrite(journal, 0, 28).await?;
                self.sync(journal).await?;
                sys.close(journal).await
            }
            _ => {
                sys.close(journal).await?;
                sys.unlink(JOURNAL).await
            }
        }
    }

    async fn sync_directory(&self) -> Done {
        let fd = self.sys.open(".", OpenFlags::READ | OpenFlags::DIRECTORY).await?;
        self.sync(fd).await?;
        self.sys.close(fd).await
    }

    async fn close(mut self) -> Done {
        let off = self.off();
        if let Some(wal) = &mut self.wal {
            wal.checkpoint(&self.sys, self.db, self.page, off).await?;
            self.sys.close(wal.fd).await?;
            self.sys.unlink(WAL).await?;
            self.sys.unlink(SHM).await?;
        }
        self.sys.close(self.db).await
    }
}

/// The write-ahead log.
struct Wal {
    fd: Fd,
    frames: u64,
    /// Where each page of the log stands last.
    last: BTreeMap<u64, u64>,
    /// It is new: its directory must be synced.
    new: bool,
}

impl Wal {
    async fn open(sys: &Sys, db: Fd) -> Result<Wal, Errno> {
        sys.pread(db, 24, 16).await?;
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
        let fd = sys.open(WAL, flags).await?;
        let shm = sys.open(SHM, flags).await?;
        sys.truncate(shm, 3).await?;
        // Its pages are touched so that they have blocks before they are mapped.
        for page in 1..=8 {
            sys.pwrite(shm, page * 4096 - 1, 1).await?;
        }
        sys.close(shm).await?;
        Ok(Wal { fd, frames: 0, last: BTreeMap::new(), new: true })
    }

    async fn commit(
        &mut self,
        sys: &Sys,
        db: Fd,
        page: u64,
        changed: &Changed,
        full: bool,
        off: bool,
    ) -> Done {
        if self.frames == 0 {
            sys.pwrite(self.fd, 0, 32).await?;
            if !off {
                sys.fdatasync(self.fd).await?;
            }
            if std::mem::take(&mut self.new) && !off {
                let directory = sys.open(".", OpenFlags::READ | OpenFlags::DIRECTORY).await?;
                sys.fdatasync(directory).await?;
                sys.close(directory).await?;
            }
        }
        // The first page has the length of the database, and changes only when that does.
        let grows = !changed.new.is_empty();
        for number in changed.pages().filter(|n| grows || *n > 0) {
            let at = 32 + self.frames * (FRAME + page);
            sys.pwrite(self.fd, at, FRAME).await?;
            sys.pwrite(self.fd, at + FRAME, page).await?;
            self.last.insert(number, at + FRAME);
            self.frames += 1;
        }
        if full {
            sys.fdatasync(self.fd).await?;
        }
        if self.frames >= CHECKPOINT { self.checkpoint(sys, db, page, off).await } else { Ok(()) }
    }

    /// The pages go from the log into the database, which is then durable, and the log begins anew.
    async fn checkpoint(&mut self, sys: &Sys, db: Fd, page: u64, off: bool) -> Done {
        if !off {
            sys.fdatasync(self.fd).await?;
        }
        for (number, at) in std::mem::take(&mut self.last) {
            sys.pread(self.fd, at, page).await?;
            sys.pwrite(db, number * page, page).await?;
        }
        self.frames = 0;
        if off { Ok(()) } else { sys.fdatasync(db).await }
    }
}
