//! One file per kind of device.
//!
//! `fixed`, `hdd` and `ssd` follow the definitions in `data/truth/MODELS.md` to the last rounding rule.

mod admission;
mod arm;
mod dirty;
mod flash;
mod mechanics;
mod nearest;

pub mod array;
pub mod cached;
pub mod copying;
pub mod fixed;
pub mod hdd;
pub mod ssd;
pub mod volume;

pub use array::Array;
pub use cached::CachedHdd;
pub use copying::CopyingHdd;
pub use fixed::Fixed;
pub use hdd::Hdd;
pub use ssd::Ssd;
pub use volume::Volume;
