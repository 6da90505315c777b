//! File systems.

pub mod ext4;
pub mod jbd2;
pub mod raw;
pub mod volume;
