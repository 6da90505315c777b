//! Memory that is shared with the kernel: it stays where it is for as long as the owner lives.

use std::io;
use std::ops::Range;
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
        Area::map(len, libc::PROT_READ | libc::PROT_WRITE, flags)
    }

    fn map(len: usize, protection: i32, flags: i32) -> io::Result<Area> {
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory of ours.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len.max(1), protection, flags, -1, 0) };
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

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len.max(1)) };
    }
}
