//! Calls that bring pages to the disk, ask for them, or give them up.

use iosched_syscalls::{Errno, Kind};
use iosched_vfs::cache::PAGE;
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::kernel::Kernel;
use iosched_vfs::kernel::read::Open;
use iosched_vfs::kernel::writeback::Backing as _;

use super::mount::{Mount, Part, Path};
use super::{Ino, Names as _};

impl Mount {
    /// `fsync` or `fdatasync` of a file. `ENOSPC` if pages of it were lost because there was no place for them; that is said once.
    pub(super) async fn synced(&self, k: &Kernel, file: u32, data_only: bool) -> Result<(), Errno> {
        self.volume.fsync(k, file, data_only).await;
        if k.with(|w| w.has_lost(file)) { Err(Errno::ENOSPC) } else { Ok(()) }
    }

    pub(crate) fn fsync(&self, actor: u32, ino: Ino, data_only: bool) -> Path {
        let (k, this) = (self.kernel(actor), self.clone());
        let directory = self.stat(ino).kind == Kind::Directory;
        Box::pin(async move {
            match directory {
                true => this.volume.fsync_directory(&k, ino.0).await,
                false => this.synced(&k, ino.0, data_only).await?,
            }
            Ok(0)
        })
    }

    pub(crate) fn sync(&self, actor: u32) -> Path {
        let (k, volume) = (self.kernel(actor), self.volume.clone());
        Box::pin(async move {
            volume.sync(&k).await;
            Ok(0)
        })
    }

    /// `sync_file_range`: starts the writes, and waits for them if asked to.
    pub(crate) fn sync_range(&self, actor: u32, part: Part, wait: bool) -> Path {
        let (k, volume) = (self.kernel(actor), self.volume.clone());
        Box::pin(async move {
            let to = if part.len == 0 { u64::MAX } else { (part.at + part.len).div_ceil(PAGE) };
            k.sync_range(part.ino.0, &volume, (part.at / PAGE, to), wait).await;
            Ok(0)
        })
    }

    /// A range will be read soon: its pages are asked for.
    pub(crate) fn will_need(&self, actor: u32, open: Open, part: Part) -> Path {
        let (k, volume) = (self.kernel(actor), self.volume.clone());
        Box::pin(async move {
            volume.read_map(&k, open.file, part.pages()).await;
            let place = volume.data(open.file);
            k.will_need(&open, &place, part.at, part.len).await;
            Ok(0)
        })
    }

    /// A range is not needed any more: what is dirty is on its way to the disk, whole pages that are clean go.
    pub(crate) fn not_needed(&self, actor: u32, part: Part) -> Path {
        let (k, this) = (self.kernel(actor), self.clone());
        Box::pin(async move {
            let to = match part.len {
                0 => u64::MAX,
                len => part.at.saturating_add(len).div_ceil(PAGE),
            };
            k.write_some(part.ino.0, &this.volume, (part.at / PAGE, to)).await;
            this.forget(Some(part));
            Ok(0)
        })
    }

    /// What closing a file that was open for writing starts on the disk, if anything.
    pub(crate) fn close(&self, actor: u32, ino: Ino) -> Option<Path> {
        if !self.volume.starts_at_close(ino.0) {
            return None;
        }
        let (k, volume) = (self.kernel(actor), self.volume.clone());
        Some(Box::pin(async move {
            k.write_some(ino.0, &volume, (0, u64::MAX)).await;
            Ok(0)
        }))
    }

    /// Drops clean pages of a file, or of all.
    pub(crate) fn forget(&self, part: Option<Part>) {
        let mut w = self.world.borrow_mut();
        match part {
            Some(p) => {
                // The last page of a file counts whole.
                let end = p.at.saturating_add(p.len);
                let whole = p.len == 0 || end >= self.len(p.ino);
                let to = if whole { u64::MAX >> 16 } else { end / PAGE };
                w.memory.drop_pages(p.ino.0, p.at.div_ceil(PAGE), to, false);
            }
            None => {
                w.memory.drop_clean();
                // That is nobody's work.
                w.memory.take_moved();
                drop(w);
                self.volume.rested();
            }
        }
    }

    /// Drops the clean pages of all files but some.
    pub(crate) fn forget_all_but(&self, stays: impl Fn(Ino) -> bool) {
        self.world.borrow_mut().memory.drop_clean_but(|file| stays(Ino(file)));
    }
}
