//! What is mounted, whatever its kind: the one place that lists them.

use iosched_types::{Flags, Nanos, Sector};

use super::ext3::Ext3;
use super::ext4::Ext4;
use super::extents::Placed;
use super::raw::Raw;
use super::xfs::Xfs;
use super::{FileSystem, Full, Kind};
use crate::kernel::Kernel;
use crate::kernel::read::Place;
use crate::kernel::writeback::Backing;

/// Where a file of it lies.
#[derive(Clone, Debug)]
pub enum Spot {
    /// In extents.
    Placed(Placed),
    /// As on the device.
    Raw(Raw),
}

impl From<Placed> for Spot {
    fn from(placed: Placed) -> Spot {
        Spot::Placed(placed)
    }
}

impl From<Raw> for Spot {
    fn from(raw: Raw) -> Spot {
        Spot::Raw(raw)
    }
}

impl Place for Spot {
    fn at(&self, page: u64) -> (Option<Sector>, u64) {
        match self {
            Spot::Placed(placed) => placed.at(page),
            Spot::Raw(raw) => raw.at(page),
        }
    }
}

/// Makes the list, and the match over it.
macro_rules! volumes {
    ($($(#[$doc:meta])* $kind:ident),+ $(,)?) => {
        /// A file system, or a device without one. Clones are the same one.
        #[derive(Clone, Debug)]
        pub enum Volume {
            $($(#[$doc])* $kind($kind),)+
        }

        macro_rules! each {
            ($volume:expr, $fs:ident => $what:expr) => {
                match $volume { $(Volume::$kind($fs) => $what,)+ }
            };
        }

        impl Volume {
            /// Its name, as `mount` prints it.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Volume::$kind(_) => <$kind as FileSystem>::NAME,)+ }
            }

            /// What its journal's thread is called.
            #[must_use]
            pub fn journal_name(&self) -> &'static str {
                match self { $(Volume::$kind(_) => <$kind as FileSystem>::JOURNAL,)+ }
            }
        }
    };
}

volumes! {
    /// ext3 with its journal.
    Ext3,
    /// ext4 with its journal.
    Ext4,
    /// XFS with its log.
    Xfs,
    /// The device itself.
    Raw,
}

impl Backing for Volume {
    type Place = Spot;

    fn place(&self, file: u32) -> Spot {
        each!(self, fs => fs.place(file).into())
    }

    fn data(&self, file: u32) -> Spot {
        each!(self, fs => fs.data(file).into())
    }

    async fn prepare(&self, k: &Kernel, file: u32, from: u64, to: u64) -> u64 {
        each!(self, fs => fs.prepare(k, file, from, to).await)
    }

    async fn write_metadata(&self, k: &Kernel, flags: Flags) {
        each!(self, fs => fs.write_metadata(k, flags).await);
    }

    async fn dirtied(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        each!(self, fs => fs.dirtied(k, file, pages).await);
    }

    fn marks_background(&self) -> bool {
        each!(self, fs => fs.marks_background())
    }

    fn ends_late(&self, file: u32, pages: (u64, u64)) -> (bool, u64) {
        each!(self, fs => fs.ends_late(file, pages))
    }

    async fn reserve(&self, k: &Kernel, file: u32, page: u64) {
        each!(self, fs => fs.reserve(k, file, page).await);
    }

    fn is_held(&self, file: u32, pages: (u64, u64)) -> (bool, u64) {
        each!(self, fs => fs.is_held(file, pages))
    }

    fn goes_home(&self, file: u32, pages: (u64, u64)) -> bool {
        each!(self, fs => fs.goes_home(file, pages))
    }

    async fn before_sync(&self, k: &Kernel, file: u32) {
        each!(self, fs => fs.before_sync(k, file).await);
    }
}

impl FileSystem for Volume {
    const NAME: &'static str = "";

    fn class(&self, sector: u64) -> &'static str {
        each!(self, fs => fs.class(sector))
    }

    fn takes_direct(&self) -> bool {
        each!(self, fs => fs.takes_direct())
    }

    fn takes_fallocate(&self) -> bool {
        each!(self, fs => fs.takes_fallocate())
    }

    fn has_journal(&self) -> bool {
        each!(self, fs => fs.has_journal())
    }

    fn free(&self) -> u64 {
        each!(self, fs => fs.free())
    }

    fn commits(&self) -> u64 {
        each!(self, fs => fs.commits())
    }

    fn is_stamped(&self, file: u32, now: Nanos) -> bool {
        each!(self, fs => fs.is_stamped(file, now))
    }

    fn is_logged(&self, file: u32, pages: (u64, u64)) -> bool {
        each!(self, fs => fs.is_logged(file, pages))
    }

    fn written_at_once(&self) -> u64 {
        each!(self, fs => fs.written_at_once())
    }

    fn journal_level(&self) -> Option<u8> {
        each!(self, fs => fs.journal_level())
    }

    fn needs_commit(&self, file: u32) -> bool {
        each!(self, fs => fs.needs_commit(file))
    }

    async fn journal_thread(&self, k: &Kernel) {
        each!(self, fs => fs.journal_thread(k).await);
    }

    async fn completions(&self, k: &Kernel) {
        each!(self, fs => fs.completions(k).await);
    }

    async fn came_back_alone(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        each!(self, fs => fs.came_back_alone(k, file, pages).await);
    }

    async fn checkpoints(&self, k: &Kernel) {
        each!(self, fs => fs.checkpoints(k).await);
    }

    async fn log_ends(&self, k: &Kernel) {
        each!(self, fs => fs.log_ends(k).await);
    }

    async fn create(&self, k: &Kernel, at: (u32, u32), kind: Kind, name: &str) -> Result<(), Full> {
        each!(self, fs => fs.create(k, at, kind, name).await)
    }

    async fn reclaim(&self, k: &Kernel) {
        each!(self, fs => fs.reclaim(k).await);
    }

    async fn opened(&self, k: &Kernel) {
        each!(self, fs => fs.opened(k).await);
    }

    fn mounted_anew(&self) {
        each!(self, fs => fs.mounted_anew());
    }

    fn mounted_cold(&self) {
        each!(self, fs => fs.mounted_cold());
    }

    fn is_cold(&self) -> bool {
        each!(self, fs => fs.is_cold())
    }

    async fn look_up(&self, k: &Kernel, directory: u32, name: &str, file: Option<u32>) {
        each!(self, fs => fs.look_up(k, directory, name, file).await);
    }

    async fn read_directory(&self, k: &Kernel, directory: u32) {
        each!(self, fs => fs.read_directory(k, directory).await);
    }

    async fn read_link(&self, k: &Kernel, link: u32) {
        each!(self, fs => fs.read_link(k, link).await);
    }

    async fn read_map(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        each!(self, fs => fs.read_map(k, file, pages).await);
    }

    fn notes_reads(&self) -> bool {
        each!(self, fs => fs.notes_reads())
    }

    async fn accessed(&self, k: &Kernel, file: u32) {
        each!(self, fs => fs.accessed(k, file).await);
    }

    async fn will_write(&self, k: &Kernel, file: u32, pages: (u64, u64)) -> Result<(), Full> {
        each!(self, fs => fs.will_write(k, file, pages).await)
    }

    fn has_room(&self, file: u32, pages: (u64, u64)) -> bool {
        each!(self, fs => fs.has_room(file, pages))
    }

    fn promised_at_once(&self) -> u64 {
        each!(self, fs => fs.promised_at_once())
    }

    fn rested(&self) {
        each!(self, fs => fs.rested());
    }

    async fn extended(&self, k: &Kernel) {
        each!(self, fs => fs.extended(k).await);
    }

    fn listed_at(&self, name: &str, age: u32) -> Option<u32> {
        each!(self, fs => fs.listed_at(name, age))
    }

    async fn share(&self, k: &Kernel, from: (u32, u64), to: (u32, u64), pages: u64) -> bool {
        each!(self, fs => fs.share(k, from, to, pages).await)
    }

    fn starts_at_close(&self, file: u32) -> bool {
        each!(self, fs => fs.starts_at_close(file))
    }

    fn large_folios(&self) -> bool {
        each!(self, fs => fs.large_folios())
    }

    fn closed(&self, k: &Kernel, file: u32) {
        each!(self, fs => fs.closed(k, file));
    }

    async fn unlink(&self, k: &Kernel, at: (u32, u32), name: &str, last: bool) {
        each!(self, fs => fs.unlink(k, at, name, last).await);
    }

    async fn let_go(&self, k: &Kernel, file: u32) {
        each!(self, fs => fs.let_go(k, file).await);
    }

    async fn rename(
        &self,
        k: &Kernel,
        file: u32,
        at: (u32, u32),
        names: (&str, &str),
        replaced: Option<(u32, bool)>,
    ) {
        each!(self, fs => fs.rename(k, file, at, names, replaced).await);
    }

    async fn truncate(&self, k: &Kernel, file: u32, pages: u64) {
        each!(self, fs => fs.truncate(k, file, pages).await);
    }

    async fn fallocate(&self, k: &Kernel, file: u32, from: u64, pages: u64) -> Result<(), Full> {
        each!(self, fs => fs.fallocate(k, file, from, pages).await)
    }

    async fn wrote(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        each!(self, fs => fs.wrote(k, file, pages).await);
    }

    async fn convert(&self, k: &Kernel, file: u32) {
        each!(self, fs => fs.convert(k, file).await);
    }

    async fn fsync(&self, k: &Kernel, file: u32, data_only: bool) {
        each!(self, fs => fs.fsync(k, file, data_only).await);
    }

    async fn fsync_directory(&self, k: &Kernel, directory: u32) {
        each!(self, fs => fs.fsync_directory(k, directory).await);
    }

    async fn sync(&self, k: &Kernel) {
        each!(self, fs => fs.sync(k).await);
    }
}
