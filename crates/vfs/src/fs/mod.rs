//! File systems.

pub mod ext4;
pub mod jbd2;
