//! The server's side of a ublk device. Tags are slots. Their descriptors lie in memory that the kernel writes.
//!
//! Data goes one of two ways. Where the driver offers it (Linux 6.5) the server copies data by reads and writes of the
//! character device, and the kernel knows no address of ours. On older kernels every tag has a buffer. The kernel fills
//! it before a write comes and empties it when a read is answered.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use iosched_types::Op;
use nix::libc;

use super::wire::{self, DESCRIPTOR, Turn};
use crate::emulate::port::{MAX_TRANSFER, Outcome, Request};
use crate::emulate::queue::{Arrived, Driver};
use crate::sys::memory::Window;
use crate::sys::ring::{ARGS, Command, Memory};

/// The kernel's side, or a simulated one in tests.
pub(super) trait Side {
    /// The character device.
    fn file(&self) -> BorrowedFd<'_>;

    /// The descriptor of a tag.
    fn descriptor(&self, queue: u16, tag: u16) -> [u8; DESCRIPTOR];

    /// Takes the data of a write.
    ///
    /// # Errors
    /// The kernel's.
    fn fetch(&self, at: u64, to: &mut [u8]) -> io::Result<()>;

    /// Puts the data of a read.
    ///
    /// # Errors
    /// The kernel's.
    fn store(&self, at: u64, from: &[u8]) -> io::Result<()>;
}

/// An open character device.
#[derive(Debug)]
pub(super) struct Character {
    file: File,
    descriptors: Vec<Window>,
}

impl Character {
    /// Maps the descriptors of all queues.
    pub(super) fn new(file: File, queues: u16, depth: u16) -> io::Result<Character> {
        // The driver maps whole pages.
        let len = (usize::from(depth) * DESCRIPTOR).next_multiple_of(page_size());
        let window = |q| Window::of(file.as_fd(), wire::descriptors_at(q), len);
        let descriptors = (0..queues).map(window).collect::<io::Result<_>>()?;
        Ok(Character { file, descriptors })
    }
}

fn page_size() -> usize {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|s| usize::try_from(s).ok()).unwrap_or(4096)
}

impl Side for Character {
    fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn descriptor(&self, queue: u16, tag: u16) -> [u8; DESCRIPTOR] {
        self.descriptors[usize::from(queue)].copy(usize::from(tag) * DESCRIPTOR)
    }

    fn fetch(&self, at: u64, to: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(to, at)
    }

    fn store(&self, at: u64, from: &[u8]) -> io::Result<()> {
        self.file.write_all_at(from, at)
    }
}

/// How a device was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) queues: u16,
    pub(crate) depth: u16,
    /// Commands have numbers of an ioctl.
    pub(crate) encoded: bool,
    /// Data is copied by us.
    pub(crate) user_copy: bool,
}

/// The driver of a [`Queue`](crate::emulate::queue::Queue).
#[derive(Debug)]
pub(super) struct Ublk<S> {
    side: S,
    form: Form,
}

impl<S: Side> Ublk<S> {
    pub(super) fn new(side: S, form: Form) -> Ublk<S> {
        Ublk { side, form }
    }

    fn place(&self, slot: u32) -> (u16, u16) {
        let depth = u32::from(self.form.depth);
        ((slot / depth) as u16, (slot % depth) as u16)
    }

    fn turn(&self, slot: u32, turn: Turn, result: i32) -> Command {
        let (queue, tag) = self.place(slot);
        let io = wire::io(queue, tag, result);
        let mut args = [0; ARGS];
        args[..io.len()].copy_from_slice(&io);
        let memory = match self.form.user_copy {
            true => Memory::None,
            false => Memory::Argument { at: wire::ADDRESS, part: self.data(slot) },
        };
        Command { op: turn.number(self.form.encoded), args, memory }
    }

    /// What a descriptor asks for, with the data of a write in place.
    fn request(&self, slot: u32, memory: &mut [u8]) -> Result<Request, i32> {
        let (queue, tag) = self.place(slot);
        let wire::Asked { op, offset, len, fua } = wire::asked(&self.side.descriptor(queue, tag))?;
        if matches!(op, Op::Read | Op::Write) && len > u64::from(MAX_TRANSFER) {
            return Err(libc::EINVAL);
        }
        if op == Op::Write && self.form.user_copy {
            let to = &mut memory[self.data(slot)][..len as usize];
            self.side.fetch(wire::data_at(queue, tag), to).map_err(|e| errno(&e))?;
        }
        Ok(Request { slot, op, offset, len, fua })
    }
}

fn errno(e: &io::Error) -> i32 {
    e.raw_os_error().unwrap_or(libc::EIO)
}

impl<S: Side> Driver for Ublk<S> {
    fn device(&self) -> BorrowedFd<'_> {
        self.side.file()
    }

    fn slots(&self) -> u32 {
        u32::from(self.form.queues) * u32::from(self.form.depth)
    }

    fn memory(&self) -> usize {
        self.slots() as usize * MAX_TRANSFER as usize
    }

    fn first(&mut self, slot: u32) -> Command {
        self.turn(slot, Turn::Fetch, 0)
    }

    fn arrived(&mut self, slot: u32, memory: &mut [u8]) -> Arrived {
        match self.request(slot, memory) {
            Ok(request) => Arrived::Disk(request),
            Err(errno) => Arrived::Answered(self.turn(slot, Turn::CommitAndFetch, -errno)),
        }
    }

    fn data(&self, slot: u32) -> Range<usize> {
        let start = slot as usize * MAX_TRANSFER as usize;
        start..start + MAX_TRANSFER as usize
    }

    fn commit(&mut self, request: &Request, outcome: Outcome, memory: &mut [u8]) -> Command {
        let &Request { slot, op, len, .. } = request;
        let mut outcome = outcome;
        if op == Op::Read && outcome.is_ok() && self.form.user_copy {
            let (queue, tag) = self.place(slot);
            let from = &memory[self.data(slot)][..len as usize];
            outcome = self.side.store(wire::data_at(queue, tag), from).map_err(|e| errno(&e));
        }
        self.turn(slot, Turn::CommitAndFetch, wire::result(op, len, outcome))
    }

    /// Nothing comes beside the queues.
    fn is_watched(&self) -> bool {
        false
    }

    fn beside(&mut self) -> io::Result<()> {
        Ok(())
    }
}
