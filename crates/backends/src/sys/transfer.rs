//! Reads and writes of any length through one piece of memory, asynchronous ones, and pages of mapped files.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use iosched_syscalls::Advice;
use nix::libc;

use super::memory::Area;

/// The most that Linux moves in a call.
pub(crate) const MOST: u64 = 0x7fff_f000;
/// Parts of one call.
const PARTS: usize = 1024;
/// The piece of memory that calls use again and again: with all parts it holds [`MOST`].
const PIECE: usize = 2 << 20;

fn moved(n: isize) -> io::Result<u64> {
    u64::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Positions beyond the largest are negative to the kernel, which refuses them.
fn position(at: u64) -> libc::off_t {
    at.cast_signed()
}

/// Memory for the data of one task's calls. Long calls use the same piece several times, so they need no more of it.
pub(crate) struct Buffer {
    area: Option<Area>,
    len: usize,
    parts: Vec<libc::iovec>,
    /// What writes write: zeros, or noise from this seed.
    noise: Option<u64>,
}

impl Buffer {
    /// No memory yet.
    pub(crate) fn new(noise: Option<u64>) -> Buffer {
        Buffer { area: None, len: 0, parts: Vec::new(), noise }
    }

    /// The parts of a call of `len` bytes.
    fn parts(&mut self, len: u64) -> io::Result<(*const libc::iovec, libc::c_int)> {
        let len = len.min(MOST) as usize;
        let piece = len.clamp(4096, PIECE).next_power_of_two();
        if self.len < piece {
            self.area = Some(filled(piece, self.noise)?);
            self.len = piece;
        }
        let base = self.area.as_mut().map_or(std::ptr::null_mut(), |a| a.bytes_mut().as_mut_ptr());
        let mut left = len;
        self.parts.clear();
        while left > 0 && self.parts.len() < PARTS {
            let n = left.min(self.len);
            self.parts.push(libc::iovec { iov_base: base.cast(), iov_len: n });
            left -= n;
        }
        Ok((self.parts.as_ptr(), self.parts.len() as libc::c_int))
    }

    /// Reads at a position, or where the descriptor stands.
    pub(crate) fn read(
        &mut self,
        fd: BorrowedFd<'_>,
        at: Option<u64>,
        len: u64,
    ) -> io::Result<u64> {
        let ((parts, n), fd) = (self.parts(len)?, fd.as_raw_fd());
        // SAFETY: every part lies in the area, which is writable, as long as it says, and ours alone; parts may
        // overlap, since nobody looks at what was read.
        // The calls for one part take less time than those for several, and are the ones that programs make.
        moved(unsafe {
            match (at, n) {
                (Some(at), 1) => libc::pread(fd, (*parts).iov_base, (*parts).iov_len, position(at)),
                (None, 1) => libc::read(fd, (*parts).iov_base, (*parts).iov_len),
                (Some(at), _) => libc::preadv(fd, parts, n, position(at)),
                (None, _) => libc::readv(fd, parts, n),
            }
        })
    }

    /// Writes at a position, or where the descriptor stands.
    pub(crate) fn write(
        &mut self,
        fd: BorrowedFd<'_>,
        at: Option<u64>,
        len: u64,
    ) -> io::Result<u64> {
        let ((parts, n), fd) = (self.parts(len)?, fd.as_raw_fd());
        // SAFETY: every part lies in the area, which is readable and as long as it says.
        moved(unsafe {
            match (at, n) {
                (Some(at), 1) => {
                    libc::pwrite(fd, (*parts).iov_base, (*parts).iov_len, position(at))
                }
                (None, 1) => libc::write(fd, (*parts).iov_base, (*parts).iov_len),
                (Some(at), _) => libc::pwritev(fd, parts, n, position(at)),
                (None, _) => libc::writev(fd, parts, n),
            }
        })
    }
}

/// Memory with what writes write.
fn filled(len: usize, noise: Option<u64>) -> io::Result<Area> {
    let mut area = Area::zeros(len)?;
    if let Some(seed) = noise {
        let mut stream = iosched_engine::stream(seed, "program-data");
        let words = area.bytes_mut().chunks_exact_mut(8);
        words.for_each(|c| c.copy_from_slice(&stream.next_u64().to_le_bytes()));
    }
    Ok(area)
}

/// Starts to write a range back, and with `wait` waits for it.
///
/// # Errors
/// The system's.
pub(crate) fn sync_range(fd: BorrowedFd<'_>, at: u64, len: u64, wait: bool) -> io::Result<()> {
    let start = libc::SYNC_FILE_RANGE_WRITE;
    let both = libc::SYNC_FILE_RANGE_WAIT_BEFORE | start | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let flags = if wait { both } else { start };
    // SAFETY: the call takes numbers only.
    let n = unsafe { libc::sync_file_range(fd.as_raw_fd(), position(at), position(len), flags) };
    moved(n as isize).map(drop)
}

/// A file in memory. Its pages are only ever made present, never looked at, so a file that is cut cannot kill us.
#[derive(Debug)]
pub(crate) struct FileMap {
    start: *mut libc::c_void,
    /// Whole pages.
    len: usize,
    writable: bool,
}

/// A page, for maps.
const PAGE: usize = 4096;

// SAFETY: the mapping belongs to the value, and no method reads or writes what is mapped.
unsafe impl Send for FileMap {}
// SAFETY: as above.
unsafe impl Sync for FileMap {}

impl FileMap {
    /// Maps a range of a file, shared.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn of(fd: BorrowedFd<'_>, at: u64, len: u64, writable: bool) -> io::Result<FileMap> {
        let len = usize::try_from(len).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory of ours.
        let start = unsafe {
            let null = std::ptr::null_mut();
            libc::mmap(null, len, protection, libc::MAP_SHARED, fd.as_raw_fd(), position(at))
        };
        match start {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(FileMap { start, len: len.next_multiple_of(PAGE), writable }),
        }
    }

    /// Says in which order it will be touched.
    ///
    /// # Errors
    /// `EINVAL` for what is no order.
    pub(crate) fn advise(&self, advice: Advice) -> io::Result<()> {
        let how = match advice {
            Advice::Normal => libc::MADV_NORMAL,
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            Advice::Random => libc::MADV_RANDOM,
            Advice::WillNeed | Advice::DontNeed | Advice::NoReuse => {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
        };
        // SAFETY: the range is the mapping; these three only change how far the kernel reads ahead.
        let n = unsafe { libc::madvise(self.start, self.len, how) };
        moved(n as isize).map(drop)
    }

    /// Has the page of a byte present, as a read or a write of the byte would.
    ///
    /// # Errors
    /// `EFAULT` outside of the map, behind the file's last page, and for a write to a map for reading; `EINVAL` before
    /// Linux 5.14.
    pub(crate) fn touch(&self, at: u64, write: bool) -> io::Result<()> {
        let fault = || io::Error::from_raw_os_error(libc::EFAULT);
        let at = usize::try_from(at).ok().filter(|a| *a < self.len).ok_or_else(fault)?;
        if write && !self.writable {
            return Err(fault());
        }
        let how = if write { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
        // SAFETY: the page lies in the mapping; the advice changes nothing that a program could see in memory.
        let n = unsafe { libc::madvise(self.start.byte_add(at / PAGE * PAGE), PAGE, how) };
        moved(n as isize).map(drop)
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing refers to it any more.
        unsafe { libc::munmap(self.start, self.len) };
    }
}

/// `struct iocb` of `linux/aio_abi.h`, little-endian.
#[repr(C)]
struct Control {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    result_fd: u32,
}

/// `struct io_event` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// Asynchronous I/Os of one task (`io_submit`).
pub(crate) struct Aio {
    context: libc::c_ulong,
    /// Memory of each I/O, and its tag while it is under way.
    slots: Vec<(Area, usize, Option<u32>)>,
    under_way: usize,
    noise: Option<u64>,
}

impl Aio {
    /// Room for this many at once.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn new(most: u32, noise: Option<u64>) -> io::Result<Aio> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the context's number to a live variable.
        let n = unsafe { libc::syscall(libc::SYS_io_setup, most, &raw mut context) };
        moved(n as isize)?;
        Ok(Aio { context, slots: Vec::new(), under_way: 0, noise })
    }

    /// How many are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Starts one.
    ///
    /// # Errors
    /// `EAGAIN` when too many are under way; the system's.
    pub(crate) fn submit(
        &mut self,
        fd: BorrowedFd<'_>,
        write: bool,
        at: u64,
        len: u32,
        tag: u32,
    ) -> io::Result<()> {
        let needed = (len as usize).max(4096).next_power_of_two();
        let free = self.slots.iter().position(|(_, size, tag)| tag.is_none() && *size >= needed);
        let slot = match free {
            Some(slot) => slot,
            None => {
                self.slots.push((filled(needed, self.noise)?, needed, None));
                self.slots.len() - 1
            }
        };
        let mut control = Control {
            data: slot as u64,
            key: 0,
            rw_flags: 0,
            opcode: u16::from(write),
            priority: 0,
            fd: fd.as_raw_fd().cast_unsigned(),
            buffer: self.slots[slot].0.bytes_mut().as_mut_ptr() as u64,
            bytes: u64::from(len),
            offset: position(at),
            reserved: 0,
            flags: 0,
            result_fd: 0,
        };
        let mut list = [&raw mut control];
        // SAFETY: one live control block, which the kernel copies; the memory that it names is in an area of this value,
        // is not used otherwise while the I/O is under way, and goes only after `io_destroy` has waited for it.
        let n = unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1, list.as_mut_ptr()) };
        moved(n as isize)?;
        self.slots[slot].2 = Some(tag);
        self.under_way += 1;
        Ok(())
    }

    /// Waits for at least `min` of those under way, at most a tenth of a second, and hands all that are done to `each`:
    /// tag, and bytes or error number.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn reap(
        &mut self,
        min: usize,
        mut each: impl FnMut(u32, Result<u64, u16>),
    ) -> io::Result<()> {
        let mut events = [Event::default(); 64];
        let limit = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let min = min.min(events.len());
        // SAFETY: the kernel writes at most that many events to a live array, and reads a live time.
        let n = unsafe {
            let (to, most) = (events.as_mut_ptr(), events.len());
            libc::syscall(libc::SYS_io_getevents, self.context, min, most, to, &raw const limit)
        };
        for event in &events[..moved(n as isize)? as usize] {
            let Some((_, _, tag)) = self.slots.get_mut(event.data as usize) else { continue };
            let Some(tag) = tag.take() else { continue };
            self.under_way -= 1;
            let answer = u64::try_from(event.result);
            each(tag, answer.map_err(|_| event.result.unsigned_abs() as u16));
        }
        Ok(())
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: the context is ours. The call waits for all I/Os of it, so their memory can go.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!((size_of::<Control>(), size_of::<Event>()), (64, 32));
    }

    #[test]
    fn long_calls_need_little_memory() {
        let file = tempfile::tempfile().unwrap();
        let mut buffer = Buffer::new(Some(7));
        assert_eq!(buffer.write(file.as_fd(), None, 10 << 20).unwrap(), 10 << 20);
        assert_eq!(buffer.read(file.as_fd(), Some(1 << 20), MOST).unwrap(), 9 << 20);
        assert_eq!(buffer.len, PIECE);
        assert_eq!(buffer.write(file.as_fd(), Some(0), 0).unwrap(), 0);
        let e = buffer.read(file.as_fd(), Some(u64::MAX), 1).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn pages_behind_the_end_are_refused() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(5000).unwrap();
        let map = FileMap::of(file.as_fd(), 0, 12 << 10, true).unwrap();
        map.touch(4999, false).unwrap();
        map.touch(8191, true).unwrap();
        for (at, write) in [(8192, false), (8192, true), (12 << 10, false), (u64::MAX, true)] {
            assert_eq!(map.touch(at, write).unwrap_err().raw_os_error(), Some(libc::EFAULT));
        }
        file.set_len(0).unwrap();
        assert_eq!(map.touch(0, false).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }

    #[test]
    fn asynchronous_ones_come_back_with_their_tags() {
        let file = tempfile::tempfile().unwrap();
        let mut aio = Aio::new(8, None).unwrap();
        for tag in 0..4 {
            aio.submit(file.as_fd(), true, u64::from(tag) * 4096, 4096, tag).unwrap();
        }
        let mut done = Vec::new();
        while aio.under_way() > 0 {
            aio.reap(1, |tag, answer| done.push((tag, answer))).unwrap();
        }
        done.sort_unstable();
        assert_eq!(done, (0..4).map(|t| (t, Ok(4096))).collect::<Vec<_>>());
        aio.submit(file.as_fd(), false, 1 << 30, 4096, 9).unwrap();
        aio.reap(1, |tag, answer| assert_eq!((tag, answer), (9, Ok(0)))).unwrap();
    }
}
