//! What can go wrong with the store.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// An error of the store, with the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is something else.
    #[error("{0} is not an SQLite database; choose another file with --db")]
    NotADatabase(PathBuf),
    /// An SQLite database of another program.
    #[error("{0} is an SQLite database, but not one of iosched; choose another file with --db")]
    Foreign(PathBuf),
    /// Written by a newer iosched.
    #[error(
        "{path} has schema {found}, this iosched knows up to {known}; use the newer iosched that wrote it"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// Needs migration but may not be written.
    #[error(
        "{path} has the older schema {found}, and it was opened for reading only; open it once for writing to migrate it"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// The schema.
        found: i64,
    },
    /// Another process holds the lock for longer than the time-out.
    #[error("{0} is locked by another process; wait for it to finish and try again")]
    Locked(PathBuf),
    /// No permission to write.
    #[error("{0} cannot be written: it, or its file system, is read-only")]
    ReadOnly(PathBuf),
    /// The disk is full; the trial being written was not stored, earlier ones are.
    #[error("no space left for {0}; the results stored so far are intact")]
    Full(PathBuf),
    /// The file cannot be opened at all.
    #[error("{path} cannot be opened: {reason}")]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// The system's word.
        reason: String,
    },
    /// Damaged.
    #[error("{path} is damaged ({reason}); restore a backup, or recover with sqlite3's .recover")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A stored part cannot be read back.
    #[error("trial {trial} in {path} cannot be read: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Key of the trial.
        trial: i64,
        /// What was found.
        reason: String,
    },
    /// A number that no database can compare.
    #[error("{what} of {trial} is not a finite number; the trial was not stored")]
    NotFinite {
        /// Which number.
        what: String,
        /// Which trial.
        trial: String,
    },
    /// The record is newer than this program.
    #[error("a record has schema {found}, this iosched knows up to {known}")]
    RecordSchema {
        /// The schema.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// No such experiment.
    #[error("no experiment \"{name}\" in {path}{help}")]
    NoExperiment {
        /// The file.
        path: PathBuf,
        /// As asked for.
        name: String,
        /// ` (did you mean …)` or empty.
        help: String,
    },
    /// The same trial twice in what is imported.
    #[error("trial {0} is given twice")]
    Duplicate(String),
    /// Two schedulers would be called the same.
    #[error("two schedulers would be called \"{0}\"; give each a label of its own")]
    SameName(String),
    /// Nothing would be left to show.
    #[error("all schedulers would be hidden; show at least one")]
    AllHidden,
    /// Anything else SQLite says.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's word.
        source: rusqlite::Error,
    },
}

/// Whether the file system of a results file lacks the room that the start of a log needs.
fn is_full(path: &Path) -> bool {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder).is_ok_and(|s| s.f_bavail.saturating_mul(s.f_frsize) < 256 << 10)
}

/// Translates SQLite's error codes.
pub(crate) fn of(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
    move |e| {
        let p = path.to_path_buf();
        match e.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => StoreError::NotADatabase(p),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked(p),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly(p),
            Some(ErrorCode::DiskFull) => StoreError::Full(p),
            // With its log mapped into memory, SQLite calls a full disk an I/O error.
            Some(ErrorCode::SystemIoFailure) if is_full(path) => StoreError::Full(p),
            Some(ErrorCode::CannotOpen) => {
                StoreError::CannotOpen { path: p, reason: e.to_string() }
            }
            Some(ErrorCode::DatabaseCorrupt) => {
                StoreError::Corrupt { path: p, reason: e.to_string() }
            }
            _ => StoreError::Sqlite { path: p, source: e },
        }
    }
}
