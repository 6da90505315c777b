//! Disks that are models: block devices of the running kernel. Their commands take as long as a device model of the
//! catalogue says.
//!
//! Where the kernel has ublk, its block layer talks to the server itself. Elsewhere a FUSE file system of ours holds
//! one file, and a loop device with direct I/O makes a disk of it. Either device is created for the purpose and removed
//! afterwards, so none of its settings can stay behind.

use iosched_devices::{DeviceSpec, StackSpec};

use crate::error::Error;

mod alert;
mod attach;
mod clockwork;
mod data;
mod fuse;
mod lateness;
mod limits;
mod measure;
mod port;
mod queue;
mod selfcheck;
mod serve;
mod served;
mod softirq;
mod stamps;
mod transport;
pub(crate) mod ublk;

pub(crate) use attach::requirements;
pub use attach::{EmulatedDisk, Options};
pub use data::DataMode;
pub use limits::{ModelLimits, model_limits};
pub use measure::{Crowd, Measured, Parts};
pub use selfcheck::SelfCheck;
pub use served::Served;
pub use transport::Transport;
pub(crate) use transport::put_back;

/// Several disks under md: what is missing here for it.
pub(crate) fn stacked(spec: &DeviceSpec, stack: &StackSpec) -> Error {
    let message = format!(
        "{} is {} disks under md or the device mapper: the emulated disk is a single one",
        spec.name,
        stack.legs.len()
    );
    Error::input(message, "use --backend sim, or emulate a leg: iosched show device names the legs")
}

/// Name of the thread that serves.
const THREAD: &str = "emulated-disk";
