//! Memory that is shared with the kernel. It does not move for as long as the owner lives.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use nix::libc;

/// A mapping of zeros. Pages take room only once they are touched.
#[derive(Debug)]
pub(crate) struct Area {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: an area owns its mapping; access goes through `&self` and `&mut self` as with a Vec.
unsafe impl Send for Area {}

impl Area {
    /// Zeros.
    pub(crate) fn zeros(len: usize) -> io::Result<Area> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Area::map(len, libc::PROT_READ | libc::PROT_WRITE, flags, None)
    }

    fn map(
        len: usize,
        protection: i32,
        flags: i32,
        file: Option<(BorrowedFd<'_>, u64)>,
    ) -> io::Result<Area> {
        let (fd, offset) = file.map_or((-1, 0), |(f, o)| (f.as_raw_fd(), o));
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory of ours.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len.max(1), protection, flags, fd, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Area { start, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Bytes to be changed. The kernel writes only to parts that were handed to it, and only during a
    /// system call of the thread that owns the area.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `len` bytes, writable, lives as long as `self`, and `&mut self` makes
        // the access the only one.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Address of a part, for the kernel.
    pub(super) fn address(&self, part: &Range<usize>) -> u64 {
        assert!(part.start <= part.end && part.end <= self.len, "a part of the area");
        self.start.as_ptr() as u64 + part.start as u64
    }
}

/// A part of a file that the kernel writes and we read.
#[derive(Debug)]
pub(crate) struct Window(Area);

impl Window {
    /// Maps `len` bytes from `offset`, a multiple of the page size.
    pub(crate) fn of(file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Window> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Area::map(len, libc::PROT_READ, flags, Some((file, offset))).map(Window)
    }

    /// Copies bytes out: the kernel may write others at any time.
    pub(crate) fn copy<const N: usize>(&self, at: usize) -> [u8; N] {
        assert!(at + N <= self.0.len, "a part of the window");
        // SAFETY: the bytes lie inside the mapping, which is readable and lives as long as `self`; any bytes
        // are a valid array, and a volatile read takes them as they are.
        unsafe { self.0.start.as_ptr().add(at).cast::<[u8; N]>().read_volatile() }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len.max(1)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn a_window_shows_what_a_file_has_now() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let window = Window::of(file.as_fd(), 4096, 4096).unwrap();
        assert_eq!(window.copy::<4>(4092), [7; 4]);
        std::os::unix::fs::FileExt::write_all_at(&file, b"new", 4096 + 24).unwrap();
        assert_eq!(&window.copy::<24>(24)[..4], b"new\x07");
    }

    #[test]
    #[should_panic(expected = "a part of the window")]
    fn a_window_ends() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        Window::of(file.as_fd(), 0, 4096).unwrap().copy::<24>(4080);
    }
}
