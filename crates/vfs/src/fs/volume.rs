//! What is mounted, whatever its kind: the one place that lists them.

use iosched_types::{Flags, Sector};

use super::ext4::{Ext4, Full, Kind, Placed};
use super::raw::Raw;
use crate::kernel::Kernel;
use crate::kernel::read::Place;
use crate::kernel::writeback::Backing;

/// A file system, or a device without one. Clones are the same one.
#[derive(Clone, Debug)]
pub enum Volume {
    /// ext4 with its journal.
    Ext4(Ext4),
    /// The device itself.
    Raw(Raw),
}

/// Where a file of it lies.
#[derive(Clone, Debug)]
pub enum Spot {
    /// In extents.
    Placed(Placed),
    /// As on the device.
    Raw(Raw),
}

impl Place for Spot {
    fn at(&self, page: u64) -> (Option<Sector>, u64) {
        match self {
            Spot::Placed(placed) => placed.at(page),
            Spot::Raw(raw) => raw.at(page),
        }
    }
}

impl Backing for Volume {
    type Place = Spot;

    fn place(&self, file: u32) -> Spot {
        match self {
            Volume::Ext4(fs) => Spot::Placed(fs.place(file)),
            Volume::Raw(raw) => Spot::Raw(raw.place(file)),
        }
    }

    async fn prepare(&self, k: &Kernel, file: u32, from: u64, to: u64) -> u64 {
        match self {
            Volume::Ext4(fs) => fs.prepare(k, file, from, to).await,
            Volume::Raw(raw) => raw.prepare(k, file, from, to).await,
        }
    }

    async fn write_metadata(&self, k: &Kernel, flags: Flags) {
        match self {
            Volume::Ext4(fs) => fs.write_metadata(k, flags).await,
            Volume::Raw(raw) => raw.write_metadata(k, flags).await,
        }
    }
}

impl Volume {
    /// Its name, as `mount` prints it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Volume::Ext4(_) => "ext4",
            Volume::Raw(_) => "raw",
        }
    }

    /// Whether it is a file system, which notes each change in a journal.
    #[must_use]
    pub fn has_journal(&self) -> bool {
        matches!(self, Volume::Ext4(_))
    }

    /// Blocks of 4 KiB that are free; a device has none to give.
    #[must_use]
    pub fn free(&self) -> u64 {
        match self {
            Volume::Ext4(fs) => fs.free(),
            Volume::Raw(_) => 0,
        }
    }

    /// Transactions committed so far.
    #[must_use]
    pub fn commits(&self) -> u64 {
        match self {
            Volume::Ext4(fs) => fs.commits(),
            Volume::Raw(_) => 0,
        }
    }

    /// Whether there are changes that no commit has taken yet.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        match self {
            Volume::Ext4(fs) => fs.has_changes(),
            Volume::Raw(_) => false,
        }
    }

    /// The journal's thread. Never ends where there is one.
    pub async fn journal_thread(&self, k: &Kernel) {
        if let Volume::Ext4(fs) = self {
            fs.journal_thread(k).await;
        }
    }

    /// Makes a file or directory in `parent`. A device has no room for another file.
    ///
    /// # Errors
    /// [`Full`].
    pub async fn create(
        &self,
        k: &Kernel,
        at: (u32, u32),
        kind: Kind,
        hash: u64,
    ) -> Result<(), Full> {
        match self {
            Volume::Ext4(fs) => fs.create(k, at, kind, hash).await,
            Volume::Raw(_) => Err(Full),
        }
    }

    /// A file has been opened.
    pub async fn opened(&self, k: &Kernel) {
        if let Volume::Ext4(fs) = self {
            fs.opened(k).await;
        }
    }

    /// It has been mounted anew, which costs nothing here.
    pub fn mounted_anew(&self) {
        if let Volume::Ext4(fs) = self {
            fs.mounted_anew();
        }
    }

    /// The last writer has closed the file.
    pub fn closed(&self, file: u32) {
        if let Volume::Ext4(fs) = self {
            fs.closed(file);
        }
    }

    /// Takes a name away.
    pub async fn unlink(&self, k: &Kernel, at: (u32, u32), last: bool) {
        if let Volume::Ext4(fs) = self {
            fs.unlink(k, at, last).await;
        }
    }

    /// A file without a name has been closed by the last who had it open.
    pub async fn let_go(&self, k: &Kernel, file: u32) {
        if let Volume::Ext4(fs) = self {
            fs.let_go(k, file).await;
        }
    }

    /// Moves a name.
    pub async fn rename(
        &self,
        k: &Kernel,
        file: u32,
        at: (u32, u32),
        replaced: Option<(u32, bool)>,
    ) {
        if let Volume::Ext4(fs) = self {
            fs.rename(k, file, at, replaced).await;
        }
    }

    /// Cuts a file to so many pages.
    pub async fn truncate(&self, k: &Kernel, file: u32, pages: u64) {
        if let Volume::Ext4(fs) = self {
            fs.truncate(k, file, pages).await;
        }
    }

    /// Gives pages of a file a place.
    ///
    /// # Errors
    /// [`Full`].
    pub async fn fallocate(
        &self,
        k: &Kernel,
        file: u32,
        from: u64,
        pages: u64,
    ) -> Result<(), Full> {
        match self {
            Volume::Ext4(fs) => fs.fallocate(k, file, from, pages).await,
            Volume::Raw(_) => Err(Full),
        }
    }

    /// The file has been written in memory.
    pub async fn wrote(&self, k: &Kernel, file: u32) {
        if let Volume::Ext4(fs) = self {
            fs.wrote(k, file).await;
        }
    }

    /// Blocks that a direct write filled are marked so.
    pub async fn convert(&self, k: &Kernel, file: u32) {
        if let Volume::Ext4(fs) = self {
            fs.convert(k, file).await;
        }
    }

    /// `fsync`, or `fdatasync`.
    pub async fn fsync(&self, k: &Kernel, file: u32, data_only: bool) {
        match self {
            Volume::Ext4(fs) => fs.fsync(k, file, data_only).await,
            Volume::Raw(raw) => raw.fsync(k, file).await,
        }
    }

    /// `fsync` of a directory.
    pub async fn fsync_directory(&self, k: &Kernel) {
        if let Volume::Ext4(fs) = self {
            fs.fsync_directory(k).await;
        }
    }

    /// `sync`.
    pub async fn sync(&self, k: &Kernel) {
        match self {
            Volume::Ext4(fs) => fs.sync(k).await,
            Volume::Raw(_) => {
                k.sync_pages().await;
                k.flush().await;
            }
        }
    }
}
