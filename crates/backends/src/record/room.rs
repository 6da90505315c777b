//! A file that is whole even when the disk gets full: some room is kept for its end.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};

/// Bytes kept: the largest buffer of a form (a row group of Parquet).
const KEPT: u64 = 16 << 20;

/// A writer to a file. Once the disk is full, it takes from the room that was kept, and says so.
#[derive(Clone, Debug)]
pub struct Room {
    file: Arc<File>,
    kept: Arc<Mutex<Option<File>>>,
    written: Arc<AtomicU64>,
    full: Arc<AtomicBool>,
}

impl Room {
    /// A writer to a file in this folder; no room is kept for what is no regular file.
    ///
    /// # Errors
    /// The disk has no room now.
    pub fn new(file: File, folder: Option<&Path>) -> io::Result<Room> {
        let kept = match folder {
            Some(folder) => keep(folder)?,
            None => None,
        };
        Ok(Room {
            file: Arc::new(file),
            kept: Arc::new(Mutex::new(kept)),
            written: Arc::default(),
            full: Arc::default(),
        })
    }

    /// Bytes written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Whether the disk is full: nothing but the end should follow.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// The file, for what is written at a place.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the room back. Returns whether there was some.
    pub fn give_back(&self) -> bool {
        self.kept.lock().is_ok_and(|mut kept| kept.take().is_some())
    }
}

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file: &File = &self.file;
        loop {
            match file.write(bytes) {
                Ok(n) => {
                    self.written.fetch_add(n as u64, Ordering::Relaxed);
                    return Ok(n);
                }
                Err(e) if matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                    self.full.store(true, Ordering::Relaxed);
                    if !self.give_back() {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A nameless file of that size; `None` where a file system has none.
fn keep(folder: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let Ok(file) = open(folder, flags, Mode::RUSR | Mode::WUSR) else { return Ok(None) };
    match fallocate(&file, FallocateFlags::empty(), 0, KEPT) {
        Ok(()) => Ok(Some(file.into())),
        Err(e @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)) => Err(e.into()),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_leaves_room_for_the_end() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut room = Room::new(file, Some(dir.path())).unwrap();
        assert!(!room.is_full());
        // This disk stays full: the room does not help, and the error is that of the disk.
        let e = room.write_all(b"x").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::StorageFull);
        assert!(room.is_full() && !room.give_back());
        let mut room = Room::new(File::create(dir.path().join("a")).unwrap(), None).unwrap();
        room.write_all(b"abc").unwrap();
        assert_eq!((room.written(), room.is_full()), (3, false));
    }
}
