//! Changes a disk's scheduler and queue values, so that everything is put back whatever happens.

mod disks;
pub(crate) mod lock;
mod put_back;
mod rounding;
mod session;

pub use disks::Disks;
pub use lock::{DiskLock, LOCK_DIR};
pub use put_back::put_back;
pub(crate) use put_back::{Still, put_back_if_ours, still};
pub use session::{Options, Session, offered, removed, running_kernel};
