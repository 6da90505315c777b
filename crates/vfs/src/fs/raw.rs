//! A device without a file system: one file, which is the device.

use iosched_types::{Flags, Sector};

use super::FileSystem;
use crate::cache::PAGE;
use crate::kernel::Kernel;
use crate::kernel::read::Place;
use crate::kernel::writeback::Backing;

/// The device as a file of so many bytes.
#[derive(Clone, Copy, Debug)]
pub struct Raw {
    /// Its size.
    pub bytes: u64,
}

impl Place for Raw {
    fn at(&self, page: u64) -> (Option<Sector>, u64) {
        (Some(page * 8), self.bytes.div_ceil(PAGE).saturating_sub(page))
    }
}

impl Backing for Raw {
    type Place = Raw;

    fn place(&self, _: u32) -> Raw {
        *self
    }

    async fn prepare(&self, _: &Kernel, _: u32, _: u64, to: u64) -> u64 {
        to
    }

    async fn write_metadata(&self, _: &Kernel, _: Flags) {}
}

impl FileSystem for Raw {
    const NAME: &'static str = "raw";

    fn has_journal(&self) -> bool {
        false
    }

    /// `fsync`: dirty pages, then the device's cache.
    async fn fsync(&self, k: &Kernel, file: u32, _: bool) {
        k.write_and_wait(file, self).await;
        k.flush().await;
    }

    async fn sync(&self, k: &Kernel) {
        k.sync_pages(self).await;
        k.flush().await;
    }
}
