//! A FUSE file system of our own: one file, which a loop device makes a disk of.
//!
//! The mount is attached nowhere: nobody else sees it, and it goes away with the last user of the file.
//!
//! Only the serving thread has `/dev/fuse` and the ring open. When that thread ends, for whatever reason, the kernel
//! closes them and fails the requests that still wait. If the whole process had them open, a killed process with a
//! thread that reads its own disk could never end: that thread would wait for an answer, and the ring, which holds the
//! request, for that thread.

mod node;
mod plain;
mod ring;
mod wire;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use nix::libc;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use super::port::BellPull;
use super::queue::Queue;
use super::serve::Shared;
use crate::root::SysRoot;
use node::Node;

/// Where the kernel says which CPUs there could be.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// Starts serving and opens the file. With `ring` over io_uring, which the caller has switched on.
///
/// # Errors
/// The kernel's: FUSE, or io_uring, is missing or forbidden.
pub(crate) fn serve(
    shared: Arc<Shared>,
    bell: BellPull,
    bytes: u64,
    ring: bool,
) -> io::Result<(File, JoinHandle<()>)> {
    let (device, mount) = mount()?;
    let theirs = [device.as_raw_fd(), bell.as_fd().as_raw_fd()];
    let (tell, told) = channel();
    let thread = std::thread::Builder::new()
        .name(super::THREAD.into())
        .spawn(move || run(&shared, device, bell, Node { bytes }, ring, &tell))?;
    let (own, started) =
        told.recv().unwrap_or_else(|_| (false, Err(io::Error::other("the server ended"))));
    if own {
        // These are copies, because the thread now has files of its own. Without that, closing them would close them
        // for both.
        theirs.into_iter().for_each(crate::sys::close_here);
    }
    started?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC | rustix::fs::OFlags::DIRECT;
    let file = rustix::fs::openat(&mount, node::NAME, flags, rustix::fs::Mode::empty())?;
    Ok((File::from(file), thread))
}

/// The thread's work. It reports an error at the start. Later only the disk's users see errors.
fn run(
    shared: &Shared,
    device: File,
    bell: BellPull,
    node: Node,
    ring: bool,
    tell: &Sender<(bool, io::Result<()>)>,
) {
    crate::sys::real_time();
    // Otherwise the kernel rounds the end of a sleep up to 50 µs.
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut keep = vec![device.as_raw_fd(), bell.as_fd().as_raw_fd()];
    keep.extend(shared.data.file());
    let own = crate::sys::own_files(&keep);
    let is_own = own.is_ok();
    let served = own.and_then(|()| {
        if plain::handshake(&device, ring)? != ring {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "no FUSE over io_uring here"));
        }
        if ring {
            let cpus =
                SysRoot::default().get(POSSIBLE).and_then(|l| ring::cpus_of(&l)).unwrap_or(1);
            let mut port = Queue::start(ring::FuseRing::new(device, node, cpus), bell)?;
            let _ = tell.send((true, Ok(())));
            shared.serve(&mut port)
        } else {
            let _ = tell.send((true, Ok(())));
            shared.serve(&mut plain::Plain::new(device, node, bell))
        }
    });
    if let Err(e) = served {
        let _ = tell.send((is_own, Err(e)));
    }
}

/// Makes the file system; the kernel's first message then waits at the device.
fn mount() -> io::Result<(File, OwnedFd)> {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/fuse")?;
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "iosched")?;
    fsconfig_set_string(&context, "fd", device.as_raw_fd().to_string())?;
    fsconfig_set_string(&context, "rootmode", "40000")?;
    fsconfig_set_string(&context, "user_id", "0")?;
    fsconfig_set_string(&context, "group_id", "0")?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok((device, mount))
}
