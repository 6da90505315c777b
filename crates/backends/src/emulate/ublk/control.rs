//! Making and removing ublk devices: commands to `/dev/ublk-control`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;

use nix::libc;

use super::driver::Form;
use super::wire::{self, Ask, CONTROL, DevInfo, Params, feature};
use crate::sys::memory::Area;
use crate::sys::ring::{ARGS, Command, Memory, Ring};

/// Where commands go.
pub(crate) const CONTROL_NODE: &str = "/dev/ublk-control";

/// Takes commands: the kernel, or a simulated one in tests.
pub(super) trait Answers {
    /// Carries one out; `buffer` is what it reads or writes.
    ///
    /// # Errors
    /// The kernel's.
    fn ask(&mut self, number: u32, command: [u8; CONTROL], buffer: &mut [u8]) -> io::Result<()>;
}

/// The kernel's `/dev/ublk-control`, over a ring of its own.
#[derive(Debug)]
pub(super) struct Kernel {
    ring: Ring,
    file: File,
}

impl Kernel {
    pub(super) fn open() -> io::Result<Kernel> {
        let file = OpenOptions::new().read(true).write(true).open(CONTROL_NODE)?;
        Ok(Kernel { ring: Ring::new(4, 4, Area::zeros(4096)?)?, file })
    }
}

impl Answers for Kernel {
    fn ask(&mut self, number: u32, command: [u8; CONTROL], buffer: &mut [u8]) -> io::Result<()> {
        let mut args = [0; ARGS];
        args[..CONTROL].copy_from_slice(&command);
        let part = 0..buffer.len();
        self.ring.bytes_mut()[part.clone()].copy_from_slice(buffer);
        let memory = match buffer.is_empty() {
            true => Memory::None,
            false => Memory::Argument { at: wire::ADDRESS, part: part.clone() },
        };
        self.ring.command(self.file.as_fd(), Command { op: number, args, memory }, 0)?;
        let result = loop {
            self.ring.wait(None)?;
            if let Some((_, result)) = self.ring.take() {
                break result;
            }
        };
        buffer.copy_from_slice(&self.ring.bytes_mut()[part]);
        if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
    }
}

/// The control device, and how to speak to it.
#[derive(Debug)]
pub(super) struct Control<A> {
    kernel: A,
    features: Option<u64>,
}

impl<A: Answers> Control<A> {
    /// Asks for the driver's features. Linux before 6.5 cannot tell, and has none that matters here.
    pub(super) fn new(mut kernel: A) -> Control<A> {
        let mut buffer = [0; 8];
        let command = wire::control(u32::MAX, buffer.len(), 0);
        let asked = kernel.ask(Ask::Features.number(true), command, &mut buffer);
        Control { kernel, features: asked.ok().map(|()| u64::from_ne_bytes(buffer)) }
    }

    #[cfg(test)]
    pub(super) fn into_kernel(self) -> A {
        self.kernel
    }

    fn is_encoded(&self) -> bool {
        self.features.is_some_and(|f| f & feature::CMD_IOCTL_ENCODE != 0)
    }

    fn ask(&mut self, ask: Ask, device: u32, data: u64, buffer: &mut [u8]) -> io::Result<()> {
        let command = wire::control(device, buffer.len(), data);
        self.kernel.ask(ask.number(self.is_encoded()), command, buffer)
    }

    /// Makes the character device of a number. Returns the parameters that the driver accepted, which may be less than
    /// requested.
    ///
    /// # Errors
    /// `EEXIST` when the number is taken.
    pub(super) fn add(&mut self, wanted: &DevInfo) -> io::Result<Form> {
        // We do not ask for recovery by another server, so users of a killed server get errors and do not wait.
        let known = feature::CMD_IOCTL_ENCODE | feature::USER_COPY;
        let flags = self.features.unwrap_or(0) & known;
        let mut buffer = DevInfo { flags, ..*wanted }.bytes();
        self.ask(Ask::Add, wanted.device, 0, &mut buffer)?;
        let made = DevInfo::parse(&buffer);
        if made.queues == 0 || made.depth == 0 || made.max_io_bytes < wanted.max_io_bytes {
            self.ask(Ask::Delete, wanted.device, 0, &mut [])?;
            return Err(io::Error::other(format!("ublk made another device: {made:?}")));
        }
        Ok(Form {
            queues: made.queues,
            depth: made.depth,
            encoded: self.is_encoded(),
            user_copy: made.flags & flags & feature::USER_COPY != 0,
        })
    }

    /// Says what the disk is like.
    pub(super) fn describe(&mut self, device: u32, params: Params) -> io::Result<()> {
        self.ask(Ask::SetParams, device, 0, &mut params.to_bytes())
    }

    /// Shows the disk; returns when it is there. Another thread of this process must serve its queues, because the
    /// kernel reads partitions.
    pub(super) fn start(&mut self, device: u32) -> io::Result<()> {
        self.ask(Ask::Start, device, u64::from(std::process::id()), &mut [])
    }

    /// Takes the disk away, after what is under way.
    pub(super) fn stop(&mut self, device: u32) -> io::Result<()> {
        self.ask(Ask::Stop, device, 0, &mut [])
    }

    /// Removes the device; waits until its character device is closed.
    pub(super) fn delete(&mut self, device: u32) -> io::Result<()> {
        self.ask(Ask::Delete, device, 0, &mut [])
    }

    /// Whether there is such a device, made with this mark.
    pub(super) fn is_ours(&mut self, device: u32, mark: u64) -> io::Result<bool> {
        let mut buffer = [0; DevInfo::BYTES];
        match self.ask(Ask::DevInfo, device, 0, &mut buffer) {
            Ok(()) => Ok(DevInfo::parse(&buffer).mark == mark),
            Err(e) if is_gone(&e) => Ok(false),
            Err(e) => Err(e),
        }
    }
}

/// There is no such device.
pub(super) fn is_gone(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ENODEV | libc::EINVAL))
}
