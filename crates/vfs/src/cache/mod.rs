//! The page cache: which pages of which file are in memory, in which state, and which pages are read ahead.
//!
//! Pages are 4 KiB and counted from the start of their file. The rules are those of Linux; each names its kernels.

pub mod lru;
pub mod mapping;
pub mod pdflush;
pub mod readahead;
pub mod throttle;
pub mod writeback;

/// Bytes in a page.
pub const PAGE: u64 = 4096;
