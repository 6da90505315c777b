//! A process of the server, and the transactions that one does for a client.

use std::collections::BTreeMap;
use std::sync::Arc;

use iosched_syscalls::{Done, Errno, Fd, OpenFlags, Sys, Whence};
use iosched_types::units::SEC;

use super::buffers::Found;
use super::server::{self, Page, Server};
use super::{
    ACCOUNTS, DONE, ENTRIES, FAN_OUT, FILE_PAGES, HISTORY_ROWS, PAGE, Params, ROWS, START, Table,
    wal,
};
use crate::programs::files::Dice;

/// Records of a transaction in the log, together; the image of a page of a table, and of an index that is 90 % full.
const RECORDS: u64 = 500;
const IMAGE: u64 = 8130;
const INDEX_IMAGE: u64 = 7400;

/// A process.
pub(super) struct Backend {
    pub(super) sys: Sys,
    pub(super) server: Arc<Server>,
    pub(super) id: usize,
    open: BTreeMap<(Table, u64), Fd>,
    pub(super) segment: Option<(u64, Fd)>,
}

impl Backend {
    pub(super) fn new(sys: Sys, server: Arc<Server>, id: usize) -> Backend {
        Backend { sys, server, id, open: BTreeMap::new(), segment: None }
    }

    pub(super) async fn sleep_until_woken(&self) -> Done {
        self.sys.read(self.server.pipe(self.id).0, 1).await.map(drop)
    }

    pub(super) async fn wake(&self, processes: &[usize]) -> Done {
        for process in processes {
            self.sys.write(self.server.pipe(*process).1, 1).await?;
        }
        Ok(())
    }

    /// Sleeps; whether the server goes on.
    pub(super) async fn pause(&self, time: u64) -> Result<bool, Errno> {
        match self.sys.sleep(time).await {
            Ok(()) | Err(Errno::EINTR) => Ok(!self.sys.stopped().await?),
            Err(e) => Err(e),
        }
    }

    /// The file that a page is in.
    pub(super) async fn file(&mut self, (table, page): Page) -> Result<Fd, Errno> {
        let key = (table, page / FILE_PAGES);
        if let Some(fd) = self.open.get(&key) {
            return Ok(*fd);
        }
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
        let fd = self.sys.open(server::name(table, key.1), flags).await?;
        self.open.insert(key, fd);
        Ok(fd)
    }

    /// Adds to the log. Returns up to where it then is.
    pub(super) fn insert(&self, bytes: u64) -> u64 {
        let mut m = self.server.memory();
        m.wal.inserted += bytes;
        m.wal.inserted
    }

    /// Writes a page if it is dirty, after its log.
    pub(super) async fn write_page(&mut self, page: Page) -> Result<bool, Errno> {
        let Some(lsn) = self.server.memory().buffers.clean(page) else { return Ok(false) };
        self.write_out(page, lsn).await?;
        Ok(true)
    }

    async fn write_out(&mut self, page: Page, lsn: u64) -> Done {
        wal::flush(self, lsn).await?;
        let fd = self.file(page).await?;
        self.sys.pwrite(fd, page.1 % FILE_PAGES * PAGE, PAGE).await?;
        let mut m = self.server.memory();
        m.written_files.insert((page.0, page.1 / FILE_PAGES));
        m.buffers.unpin(page);
        Ok(())
    }

    /// A page in memory, pinned; read if it is not new.
    async fn pin(&mut self, page: Page) -> Done {
        let mut written = None;
        loop {
            let (found, is_new) = {
                let mut m = self.server.memory();
                let is_new = page.1 >= *m.pages.get(&page.0).unwrap_or(&0);
                let found = m.buffers.find(page, self.id, written);
                if found == Found::Read && is_new {
                    m.pages.insert(page.0, page.1 + 1);
                }
                (found, is_new)
            };
            match found {
                Found::Here => return Ok(()),
                Found::Wait => self.sleep_until_woken().await?,
                Found::Write(old, lsn) => {
                    self.server.memory().counted.by_clients += 1;
                    self.write_out(old, lsn).await?;
                    written = Some(old);
                }
                Found::Read => {
                    let (fd, at) = (self.file(page).await?, page.1 % FILE_PAGES * PAGE);
                    if is_new {
                        // A table grows by a page of zeros.
                        self.sys.pwrite(fd, at, PAGE).await?;
                    } else {
                        self.sys.pread(fd, at, PAGE).await?;
                    }
                    let waiting = self.server.memory().buffers.is_read(page);
                    self.wake(&waiting).await?;
                    return Ok(());
                }
            }
        }
    }

    async fn look_at(&mut self, page: Page) -> Done {
        self.pin(page).await?;
        self.server.memory().buffers.unpin(page);
        Ok(())
    }

    /// Changes a page: into the log goes the record, or all of the page the first time after a checkpoint began.
    async fn change(&mut self, page: Page, record: u64, image: u64) -> Done {
        self.pin(page).await?;
        let mut m = self.server.memory();
        let whole = self.server.full_pages && m.imaged.insert(page);
        m.wal.inserted += if whole { record + image } else { record };
        let lsn = m.wal.inserted;
        m.buffers.change(page, lsn);
        m.buffers.unpin(page);
        Ok(())
    }

    /// The planner looks how long a table is.
    async fn plan(&mut self, tables: &[Table]) -> Done {
        for table in tables {
            let last = self.server.memory().pages.get(table).map_or(0, |p| p.saturating_sub(1));
            let fd = self.file((*table, last)).await?;
            self.sys.lseek(fd, 0, Whence::End).await?;
        }
        Ok(())
    }

    /// From the root of the index to the leaf, then to the row. Returns leaf and page.
    async fn find_account(&mut self, account: u64) -> Result<(u64, u64), Errno> {
        let leaves = (self.server.scale * ACCOUNTS).div_ceil(ENTRIES);
        let leaf = account / ENTRIES;
        // Behind the leaves: inner pages, then the root.
        let inner = leaves + leaf / FAN_OUT;
        let root = leaves + leaves.div_ceil(FAN_OUT);
        for page in [root, inner, leaf] {
            self.look_at((Table::AccountsIndex, page)).await?;
        }
        self.look_at((Table::Accounts, account / ROWS)).await?;
        Ok((leaf, account / ROWS))
    }

    /// Where the next row of a table goes that was full after the load.
    fn append(&self, table: Table, rows: u64) -> Page {
        let mut m = self.server.memory();
        let n = m.new_rows.entry(table).or_default();
        let page = table.pages(self.server.scale) + *n / rows;
        *n += 1;
        (table, page)
    }

    /// Takes a row until the end of the transaction; waits for who has it.
    async fn lock(&self, row: (Table, u64)) -> Done {
        let waits = {
            let mut m = self.server.memory();
            match m.rows.get_mut(&row) {
                Some((_, waiting)) => {
                    waiting.push_back(self.id);
                    true
                }
                None => {
                    m.rows.insert(row, (self.id, Default::default()));
                    false
                }
            }
        };
        if waits { self.sleep_until_woken().await } else { Ok(()) }
    }

    /// Gives a row to who has waited longest.
    async fn unlock(&self, row: (Table, u64)) -> Done {
        let next = {
            let mut m = self.server.memory();
            let next = m.rows.get_mut(&row).and_then(|(_, waiting)| waiting.pop_front());
            match next {
                Some(next) => {
                    if let Some((holder, _)) = m.rows.get_mut(&row) {
                        *holder = next;
                    }
                }
                None => {
                    m.rows.remove(&row);
                }
            }
            next
        };
        self.wake(next.as_slice()).await
    }

    /// The TPC-B-like transaction: its statements, then the commit.
    async fn tpcb(&mut self, dice: &mut Dice, think: u64) -> Done {
        let scale = self.server.scale;
        let account = dice.below(scale * ACCOUNTS);
        let (teller, branch) = (dice.below(scale * 10), dice.below(scale));
        // BEGIN.
        self.sys.compute(think).await?;
        // The page of the old row is full: the new one goes to the end, and the index gets an entry for it.
        self.sys.compute(think).await?;
        self.plan(&[Table::Accounts, Table::AccountsIndex]).await?;
        let (leaf, page) = self.find_account(account).await?;
        self.change((Table::Accounts, page), RECORDS / 4, IMAGE).await?;
        let new = self.append(Table::Accounts, ROWS);
        self.change(new, 0, 0).await?;
        self.change((Table::AccountsIndex, leaf), RECORDS / 8, INDEX_IMAGE).await?;
        // The row is in memory now.
        self.sys.compute(think).await?;
        self.plan(&[Table::Accounts, Table::AccountsIndex]).await?;
        self.find_account(account).await?;
        for (table, index, row, rows) in [
            (Table::Tellers, Table::TellersIndex, teller, 185),
            (Table::Branches, Table::BranchesIndex, branch, 226),
        ] {
            self.sys.compute(think).await?;
            self.plan(&[table, index, table]).await?;
            self.look_at((index, row / ENTRIES)).await?;
            self.look_at((table, row / rows)).await?;
            self.lock((table, row)).await?;
            self.change((table, row / rows), RECORDS / 4, IMAGE).await?;
        }
        self.sys.compute(think).await?;
        let history = self.append(Table::History, HISTORY_ROWS);
        self.change(history, RECORDS / 8, 0).await?;
        self.sys.compute(think).await?;
        if self.server.synchronous {
            let lsn = self.server.memory().wal.inserted;
            wal::flush(self, lsn).await?;
        }
        self.unlock((Table::Branches, branch)).await?;
        self.unlock((Table::Tellers, teller)).await
    }
}

/// A client with its process of the server.
pub(super) async fn client(mut b: Backend, p: Params) -> Done {
    let (think, most) = (p.micros("think"), p.count("transactions"));
    let mut dice = Dice::new(p.count("seed") << 16 | b.id as u64);
    b.sys.barrier(START, p.count("clients") as u32 + 1).await?;
    let end = b.sys.now() + p.count("time") * SEC;
    let select = &*p.word("mode") == "select-only";
    let mut n = 0;
    while if most > 0 { n < most } else { b.sys.now() < end } {
        let begun = b.sys.now();
        if select {
            b.sys.compute(think).await?;
            b.plan(&[Table::Accounts, Table::AccountsIndex]).await?;
            let account = dice.below(b.server.scale * ACCOUNTS);
            b.find_account(account).await?;
        } else {
            b.tpcb(&mut dice, think).await?;
        }
        b.sys.note("transaction", begun, 0).await?;
        n += 1;
    }
    b.sys.add(DONE, n.cast_signed()).await.map(drop)
}
