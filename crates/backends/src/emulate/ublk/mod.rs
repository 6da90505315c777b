//! A disk by ublk (Linux 6.0 and newer): the kernel's block layer hands requests to the server by io_uring, with
//! hardware queues of the model's number and depth, and FUA. Neither loop nor FUSE is on the way.

mod control;
mod driver;
#[cfg(test)]
mod tests;
mod wire;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::port::BellPull;
use super::queue::Queue;
use super::serve::Shared;
pub(crate) use control::CONTROL_NODE;
use control::{Control, Kernel};
pub(crate) use driver::Form;
use driver::{Character, Ublk};
pub(crate) use wire::{DevInfo, MAX_DEPTH, Params};

/// A device of ours that is there, started or not.
#[derive(Debug)]
pub(crate) struct Device {
    number: u32,
    form: Form,
    control: Control<Kernel>,
}

/// How long udev may take to make a node.
const PATIENCE: Duration = Duration::from_secs(5);

impl Device {
    /// Makes the device of a number.
    ///
    /// # Errors
    /// `EEXIST` when the number is taken; the kernel's.
    pub(crate) fn add(wanted: &DevInfo, params: Params) -> io::Result<Device> {
        let mut control = Control::new(Kernel::open()?);
        let form = control.add(wanted)?;
        let mut device = Device { number: wanted.device, form, control };
        device.control.describe(wanted.device, params)?;
        Ok(device)
    }

    /// How it was made.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Starts the thread that serves it.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn serve(&self, shared: Arc<Shared>, bell: BellPull) -> io::Result<JoinHandle<()>> {
        let (tell, told) = channel();
        let (number, form) = (self.number, self.form);
        let theirs = bell.as_fd().as_raw_fd();
        let thread = std::thread::Builder::new()
            .name(super::THREAD.into())
            .spawn(move || run(&shared, number, form, bell, &tell))?;
        let (own, started) =
            told.recv().unwrap_or_else(|_| (false, Err(io::Error::other("the server ended"))));
        if own {
            crate::sys::close_here(theirs);
        }
        started.map(|()| thread)
    }

    /// Shows the disk to everybody, once it is served.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn show(&mut self) -> io::Result<()> {
        self.control.start(self.number)
    }

    /// Removes the disk. I/O under way is answered first. The server's thread ends by itself.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.control
            .stop(self.number)
            .or_else(|e| if control::is_gone(&e) { Ok(()) } else { Err(e) })
    }

    /// Removes the device, once its server has ended.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn delete(&mut self) -> io::Result<()> {
        self.control
            .delete(self.number)
            .or_else(|e| if control::is_gone(&e) { Ok(()) } else { Err(e) })
    }
}

/// Removes the device that a dead server left, if it is ours. Returns what was done, in words.
///
/// # Errors
/// The kernel's.
pub(crate) fn remove(number: u32, label: &str) -> io::Result<Vec<String>> {
    if !std::fs::exists(CONTROL_NODE).unwrap_or(false) {
        return Ok(Vec::new());
    }
    let mut control = Control::new(Kernel::open()?);
    remove_by(&mut control, number, mark(label))
}

fn remove_by<A: control::Answers>(
    control: &mut Control<A>,
    number: u32,
    mark: u64,
) -> io::Result<Vec<String>> {
    if !control.is_ours(number, mark)? {
        return Ok(Vec::new());
    }
    // The kernel has stopped it already when its server died.
    let unless_gone =
        |r: io::Result<()>| r.or_else(|e| if control::is_gone(&e) { Ok(()) } else { Err(e) });
    unless_gone(control.stop(number))?;
    unless_gone(control.delete(number))?;
    Ok(vec![format!("removed /dev/ublkb{number}")])
}

/// The mark that the driver keeps for us, so that we know our device.
pub(crate) fn mark(label: &str) -> u64 {
    iosched_engine::fnv1a(label.as_bytes())
}

/// The thread's work, as with FUSE. Only this thread has the character device and the ring open.
fn run(
    shared: &Shared,
    number: u32,
    form: Form,
    bell: BellPull,
    tell: &Sender<(bool, io::Result<()>)>,
) {
    crate::sys::real_time();
    // Otherwise the kernel rounds the end of a sleep up to 50 µs.
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut keep = vec![bell.as_fd().as_raw_fd()];
    keep.extend(shared.data.file());
    let own = crate::sys::own_files(&keep);
    let is_own = own.is_ok();
    let served = own.and_then(|()| {
        let side = Character::new(open(number)?, form.queues, form.depth)?;
        let mut port = Queue::start(Ublk::new(side, form), bell)?;
        let _ = tell.send((true, Ok(())));
        shared.serve(&mut port)
    });
    if let Err(e) = served {
        let _ = tell.send((is_own, Err(e)));
    }
}

/// Opens the character device, which udev may still be making.
fn open(number: u32) -> io::Result<File> {
    let node = format!("/dev/ublkc{number}");
    let deadline = Instant::now() + PATIENCE;
    loop {
        match OpenOptions::new().read(true).write(true).open(&node) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}
