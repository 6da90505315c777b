//! A ring of io_uring that carries commands of a driver (`IORING_OP_URING_CMD`), and the memory that they refer to.
//! Addresses are filled in here, so no command can name memory that is not the ring's.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::squeue::Entry128;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use nix::libc;

use super::memory::Area;

/// Bytes for a driver's own arguments in an entry of 128 bytes.
pub(crate) const ARGS: usize = 80;
const OP_URING_CMD: u8 = 46;
const ENTER_GETEVENTS: u32 = 1;

/// Where a command names memory of the area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Nowhere.
    None,
    /// In the entry's own `addr` and `len`: a list of two parts, written to `list` in the area.
    List { list: usize, parts: [Range<usize>; 2] },
    /// In the driver's arguments, from byte `at` of them: the address of a part.
    Argument { at: usize, part: Range<usize> },
}

/// A command of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    /// What to do, in the driver's numbers.
    pub(crate) op: u32,
    /// The driver's arguments.
    pub(crate) args: [u8; ARGS],
    /// Memory.
    pub(crate) memory: Memory,
}

/// The ring. It belongs to the thread that made it.
pub(crate) struct Ring {
    // Dropped before the area, because the kernel must have released it.
    ring: IoUring<Entry128, cqueue::Entry>,
    area: Area,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring for this many entries at once.
    pub(crate) fn new(entries: u32, completions: u32, area: Area) -> io::Result<Ring> {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(completions.max(entries));
        let mut deferred = builder.clone();
        // The kernel's work for this thread waits until the thread asks for it. A flag in shared memory says that there
        // is some, so polling costs no system call.
        deferred.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        let ring = deferred.build(entries).or_else(|_| builder.build(entries))?;
        Ok(Ring { ring, area })
    }

    /// The memory, to be changed.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.area.bytes_mut()
    }

    /// Queues a command for a device.
    pub(crate) fn command(
        &mut self,
        device: BorrowedFd<'_>,
        command: Command,
        user: u64,
    ) -> io::Result<()> {
        let (mut address, mut count) = (0, 0);
        let Command { op, mut args, memory } = command;
        match memory {
            Memory::None => {}
            Memory::List { list, parts } => {
                let mut text = Vec::with_capacity(32);
                for part in &parts {
                    text.extend(self.area.address(part).to_ne_bytes());
                    text.extend((part.len() as u64).to_ne_bytes());
                }
                address = self.area.address(&(list..list + text.len()));
                self.area.bytes_mut()[list..list + text.len()].copy_from_slice(&text);
                count = parts.len() as u32;
            }
            Memory::Argument { at, part } => {
                args[at..at + 8].copy_from_slice(&self.area.address(&part).to_ne_bytes());
            }
        }
        let bytes = entry(device.as_raw_fd(), op, (address, count), &args, user);
        // SAFETY: both are 128 bytes without padding or invalid values; `layouts` tests the first.
        self.push(&unsafe { std::mem::transmute::<[u8; 128], Entry128>(bytes) })
    }

    /// Queues a read of a file into a part of the memory.
    pub(crate) fn read(
        &mut self,
        file: BorrowedFd<'_>,
        part: Range<usize>,
        offset: u64,
        user: u64,
    ) -> io::Result<()> {
        let to = self.area.address(&part) as *mut u8;
        let len = u32::try_from(part.len()).map_err(io::Error::other)?;
        let entry = opcode::Read::new(Fd(file.as_raw_fd()), to, len).offset(offset);
        self.push(&Entry128::from(entry.build().user_data(user)))
    }

    /// Says once with `user` when a file can be read.
    pub(crate) fn watch(&mut self, file: BorrowedFd<'_>, user: u64) -> io::Result<()> {
        let events = libc::POLLIN as u32;
        let entry = opcode::PollAdd::new(Fd(file.as_raw_fd()), events).build().user_data(user);
        self.push(&Entry128::from(entry))
    }

    fn push(&mut self, entry: &Entry128) -> io::Result<()> {
        if self.ring.submission().is_full() {
            self.submit()?;
        }
        // SAFETY: what the entry refers to lies in the area, which outlives the ring.
        unsafe { self.ring.submission().push(entry) }
            .map_err(|_| io::Error::other("the submission queue of io_uring is full"))
    }

    /// Hands over what was queued and lets the kernel do its work for this thread.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        let queued = self.ring.submission().len() as u32;
        // SAFETY: no argument but numbers; the entries were checked when they were pushed.
        let entered =
            unsafe { self.ring.submitter().enter::<()>(queued, 0, ENTER_GETEVENTS, None) };
        harmless(entered)
    }

    /// As [`submit`](Self::submit), and waits for a completion, at most this long.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let time = limit.map(Timespec::from);
        let args = match &time {
            Some(time) => SubmitArgs::new().timespec(time),
            None => SubmitArgs::new(),
        };
        harmless(self.ring.submitter().submit_with_args(1, &args))
    }

    /// Whether there is something to take, or to [`submit`](Self::submit) for.
    pub(crate) fn ready(&mut self) -> bool {
        !self.ring.completion().is_empty() || self.ring.submission().taskrun()
    }

    /// Whether something was queued and not yet handed over.
    pub(crate) fn has_queued(&mut self) -> bool {
        !self.ring.submission().is_empty()
    }

    /// The next completion: what was given as `user`, and the result.
    pub(crate) fn take(&mut self) -> Option<(u64, i32)> {
        self.ring.completion().next().map(|c| (c.user_data(), c.result()))
    }
}

/// Times that run out, signals, and a full completion queue only mean: look again.
fn harmless(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Err(e)
            if !matches!(
                e.raw_os_error(),
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)
            ) =>
        {
            Err(e)
        }
        _ => Ok(()),
    }
}

/// A submission queue entry of 128 bytes, as `linux/io_uring.h` has it.
fn entry(fd: i32, op: u32, memory: (u64, u32), args: &[u8; ARGS], user: u64) -> [u8; 128] {
    let mut e = [0; 128];
    e[0] = OP_URING_CMD;
    e[4..8].copy_from_slice(&fd.to_ne_bytes());
    e[8..12].copy_from_slice(&op.to_ne_bytes());
    e[16..24].copy_from_slice(&memory.0.to_ne_bytes());
    e[24..28].copy_from_slice(&memory.1.to_ne_bytes());
    e[32..40].copy_from_slice(&user.to_ne_bytes());
    e[48..].copy_from_slice(args);
    e
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn an_entry_is_the_crates_own_with_a_length() {
        let args = std::array::from_fn(|i| i as u8 + 1);
        let theirs = opcode::UringCmd80::new(Fd(7), 0x0102_0304).cmd(args).addr(Some(0xABCD));
        let theirs = theirs.build().user_data(99);
        // SAFETY: both are 128 bytes of integers.
        let theirs = unsafe { std::mem::transmute::<Entry128, [u8; 128]>(theirs) };
        let mut ours = entry(7, 0x0102_0304, (0xABCD, 2), &args, 99);
        assert_eq!((ours[24], theirs[24]), (2, 0), "the crate cannot set the length");
        ours[24] = 0;
        assert_eq!(ours, theirs);
    }

    #[test]
    fn a_ring_says_when_a_pipe_can_be_read_and_stops_waiting_in_time() {
        let Ok(mut ring) = Ring::new(8, 8, Area::zeros(4096).unwrap()) else { return };
        let (reader, mut writer) = io::pipe().unwrap();
        ring.watch(reader.as_fd(), 5).unwrap();
        assert!(ring.has_queued());
        ring.wait(Some(Duration::from_millis(1))).unwrap();
        assert_eq!((ring.take(), ring.has_queued()), (None, false));
        writer.write_all(b"x").unwrap();
        ring.wait(Some(Duration::from_secs(10))).unwrap();
        assert_eq!(ring.take().map(|(user, _)| user), Some(5));
        assert_eq!(ring.take(), None);
    }

    #[test]
    fn files_are_read_into_the_memory() {
        let Ok(mut ring) = Ring::new(8, 8, Area::zeros(4096).unwrap()) else { return };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        ring.read(file.as_fd(), 100..104, 3, 1).unwrap();
        ring.wait(Some(Duration::from_secs(10))).unwrap();
        assert_eq!(ring.take(), Some((1, 4)));
        assert_eq!(&ring.bytes_mut()[99..105], b"\x003456\0");
    }

    #[test]
    #[should_panic(expected = "a part of the area")]
    fn memory_outside_the_area_is_not_named() {
        let area = Area::zeros(4096).unwrap();
        area.address(&(0..4097));
    }
}
