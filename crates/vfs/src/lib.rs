//! Between system calls and bios: the page cache, read-ahead, write-back and throttling of writers, and file systems.
//!
//! Nothing here knows a block layer, a clock or a scheduler. [`kernel`] has the paths of system calls and kernel
//! threads as straight-line code. The host that runs them hands their bios to a queue and tells them when something is
//! done. [`cache`] and [`fs`] are the parts, each a value without waiting.

pub mod cache;
pub mod fs;
pub mod kernel;
