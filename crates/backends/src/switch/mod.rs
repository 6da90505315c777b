//! Changing a disk's scheduler and queue values so that everything is put back whatever happens.

mod put_back;
mod session;

pub use put_back::put_back;
pub use session::{Options, Session, offered, removed, running_kernel};
