//! Bookkeeping bits in [`iosched_types::Request::state`].

/// In the back-merge hash.
pub(crate) const HASHED: u16 = 1;
/// The driver has seen it: no merging any more.
pub(crate) const STARTED: u16 = 2;
/// Never merge again (2.6.18: a limit was hit).
pub(crate) const NOMERGE: u16 = 4;
/// Went through the scheduler.
pub(crate) const ELV: u16 = 8;
/// Part of a flush sequence.
pub(crate) const FLUSH_SEQ: u16 = 16;
/// The flush command itself.
pub(crate) const FLUSH_CMD: u16 = 32;
/// Holds a driver tag.
pub(crate) const DRIVER_TAG: u16 = 64;
/// Counted by the writeback throttle.
pub(crate) const WBT: u16 = 128;
/// Background class of the throttle.
pub(crate) const WBT_BACKGROUND: u16 = 256;
/// Class bit of the legacy request pool.
pub(crate) const POOL_CLASS1: u16 = 512;
/// Shown by `explain` already.
pub(crate) const TRACED: u16 = 1024;
/// Steps of a flush sequence that are still to come: the flush before the data, the data, the flush after it.
pub(crate) const FLUSH_BEFORE: u16 = 2048;
pub(crate) const FLUSH_DATA: u16 = 4096;
pub(crate) const FLUSH_AFTER: u16 = 8192;
