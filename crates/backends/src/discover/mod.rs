//! From what people name (a path, a mount point, `/dev/…`, a by-id link, a bare name) down to the disks
//! and queues that serve it.

mod disk;
mod stack;

pub use disk::{ATTRIBUTES, Disk, QueueState};
pub(crate) use disk::{queue_dir, tag_depth};
pub use stack::{Layer, LayerKind, Stack, find, find_opened};
pub(crate) use stack::{no_device, no_path, not_utf8};
