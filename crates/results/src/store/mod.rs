//! The results store: one SQLite file.
//!
//! Every trial is one transaction, so a program killed at any instant loses at most the trial that
//! was running, and `PRAGMA integrity_check` stays clean. The file is in WAL mode: several
//! processes may read and one may write at the same time; a second writer waits its turn.

pub mod edit;
mod error;
mod progress;
mod read;
mod record;
mod schema;
mod transfer;
mod write;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

pub use edit::{Edits, RunEdit};
pub use error::StoreError;
pub use progress::Progress;
pub use read::{ExperimentRow, SampleRow, TrialRow};
pub use transfer::{DOCUMENT_FORMAT, Document, ExperimentDocument, MergeReport};
pub(crate) use write::backend_kind;

use error::of;

/// How long to wait for another process's transaction.
const BUSY: Duration = Duration::from_secs(20);

/// An open results file.
#[derive(Debug)]
pub struct Store {
    conn: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens a results file for reading and writing; creates it when absent, migrates it when older (a
    /// copy `FILE.v<old>-backup` is made first).
    ///
    /// # Errors
    /// [`StoreError`]: not a database, another program's, newer, locked, read-only, full.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        strangers(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(of(path))?;
        conn.busy_timeout(BUSY).map_err(of(path))?;
        let mut store = Store { conn, path: path.to_path_buf() };
        let version = store.check()?;
        store.pragmas()?;
        if version < schema::CURRENT {
            store.migrate(version)?;
        }
        Ok(store)
    }

    /// Opens a results file for reading only.
    ///
    /// # Errors
    /// As [`Store::open`]; an absent file is [`StoreError::CannotOpen`], an older one [`StoreError::Older`].
    pub fn open_read_only(path: &Path) -> Result<Store, StoreError> {
        // Who only reads a file in WAL mode leaves the two files beside it that reading takes, since it may not remove
        // them. A connection that could write and is forbidden to removes them when it is closed. Not where they are
        // there already: what another program left in them stays as it is.
        let quiet = ["-wal", "-shm", "-journal"].iter().all(|end| !beside(path, end).exists());
        if quiet && path.is_file() {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            match Connection::open_with_flags(path, flags) {
                Ok(conn) if !conn.is_readonly("main").unwrap_or(true) => {
                    conn.pragma_update(None, "query_only", true).map_err(of(path))?;
                    return Self::for_reading(conn, path);
                }
                _ => {}
            }
        }
        match Self::try_read_only(path, "") {
            // WAL needs a file beside the database. On a read-only medium no process writes, so the file can be read as
            // it is.
            Err(StoreError::CannotOpen { .. } | StoreError::ReadOnly(_)) if path.is_file() => {
                Self::try_read_only(path, "&immutable=1")
            }
            other => other,
        }
    }

    fn try_read_only(path: &Path, options: &str) -> Result<Store, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let uri = format!("file:{}?mode=ro{options}", escape(path));
        let conn = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(of(path))?;
        Self::for_reading(conn, path)
    }

    fn for_reading(conn: Connection, path: &Path) -> Result<Store, StoreError> {
        conn.busy_timeout(BUSY).map_err(of(path))?;
        let store = Store { conn, path: path.to_path_buf() };
        let found = store.check()?;
        if found < schema::CURRENT {
            return Err(StoreError::Older { path: store.path, found });
        }
        store.conn.pragma_update(None, "foreign_keys", true).map_err(of(path))?;
        Ok(store)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// SQLite's own check of the whole file; the problems found, none when it is sound.
    ///
    /// # Errors
    /// When the check itself cannot run.
    pub fn integrity_check(&self) -> Result<Vec<String>, StoreError> {
        let mut check = self.conn.prepare("PRAGMA integrity_check").map_err(of(&self.path))?;
        let rows = check.query_map([], |r| r.get::<_, String>(0)).map_err(of(&self.path))?;
        let lines: Vec<String> = rows.collect::<Result<_, _>>().map_err(of(&self.path))?;
        Ok(if lines == ["ok"] { Vec::new() } else { lines })
    }

    /// The schema version, after making sure that the file is ours (or empty).
    fn check(&self) -> Result<i64, StoreError> {
        let e = of(&self.path);
        // One snapshot: another process may be making the file just now.
        let tx = self.conn.unchecked_transaction().map_err(&e)?;
        let tables: i64 =
            tx.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0)).map_err(&e)?;
        let version: i64 = tx.query_row("PRAGMA user_version", [], |r| r.get(0)).map_err(&e)?;
        let id: i64 = tx.query_row("PRAGMA application_id", [], |r| r.get(0)).map_err(&e)?;
        tx.finish().map_err(&e)?;
        if tables > 0 && id != schema::APPLICATION_ID {
            return Err(StoreError::Foreign(self.path.clone()));
        }
        if version > 0 && tables == 0 {
            return Err(StoreError::Foreign(self.path.clone()));
        }
        if version > schema::CURRENT {
            return Err(StoreError::Newer {
                path: self.path.clone(),
                found: version,
                known: schema::CURRENT,
            });
        }
        Ok(version)
    }

    fn pragmas(&self) -> Result<(), StoreError> {
        let e = of(&self.path);
        self.write_ahead().map_err(&e)?;
        // A trial took seconds to minutes to run: it is worth an fsync.
        self.conn.pragma_update(None, "synchronous", "FULL").map_err(&e)?;
        self.conn.pragma_update(None, "foreign_keys", true).map_err(&e)
    }

    /// Switches to WAL. SQLite does not wait for other processes here, whatever its busy timeout.
    #[expect(clippy::disallowed_methods, reason = "another process holds the file")]
    fn write_ahead(&self) -> rusqlite::Result<()> {
        const PAUSE: Duration = Duration::from_millis(5);
        let mut waited = Duration::ZERO;
        loop {
            let switched = self.conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
            let busy = matches!(
                switched.as_ref().map_err(rusqlite::Error::sqlite_error_code),
                Err(Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked))
            );
            if !busy || waited >= BUSY {
                return switched;
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    fn migrate(&mut self, seen: i64) -> Result<(), StoreError> {
        if seen > 0 {
            self.backup(seen)?;
        }
        let path = self.path.clone();
        let e = of(&path);
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&e)?;
        // Another process may have been faster.
        let version: i64 = tx.query_row("PRAGMA user_version", [], |r| r.get(0)).map_err(&e)?;
        for step in schema::MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
            tx.execute_batch(step).map_err(&e)?;
        }
        tx.pragma_update(None, "application_id", schema::APPLICATION_ID).map_err(&e)?;
        tx.pragma_update(None, "user_version", schema::CURRENT).map_err(&e)?;
        tx.commit().map_err(&e)
    }

    /// A consistent copy of the file, the write-ahead log included.
    fn backup(&self, version: i64) -> Result<PathBuf, StoreError> {
        let name = |i: u32| {
            let mut p = self.path.clone().into_os_string();
            p.push(if i == 0 {
                format!(".v{version}-backup")
            } else {
                format!(".v{version}-backup.{i}")
            });
            PathBuf::from(p)
        };
        let target = (0..).map(name).find(|p| !p.exists()).unwrap_or_else(|| name(0));
        let text = target.to_string_lossy().into_owned();
        self.conn.execute("VACUUM INTO ?1", [text]).map_err(of(&target))?;
        Ok(target)
    }
}

/// SQLite deletes files with these names beside a new database, because it takes them for leftovers of an earlier one.
fn strangers(path: &Path) -> Result<(), StoreError> {
    if path.exists() {
        return Ok(());
    }
    for end in ["-wal", "-shm", "-journal"] {
        let beside = beside(path, end);
        if beside.symlink_metadata().is_ok() {
            let reason = format!(
                "it is not there, but {} is, which a new one would delete; name another file, or move that away",
                beside.display()
            );
            return Err(StoreError::CannotOpen { path: path.into(), reason });
        }
    }
    Ok(())
}

/// A file beside another one: its name with something behind it.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(end);
    PathBuf::from(beside)
}

/// A path inside an SQLite URI. Characters with a meaning there are percent-encoded.
fn escape(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

#[cfg(test)]
mod tests;
