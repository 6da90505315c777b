//! Parts of a solid-state drive: channels, the window of dirty pieces, the SLC cache.

use std::collections::VecDeque;

use iosched_types::{Bytes, Nanos};

/// An operation on a flash channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) bytes: Bytes,
    pub(crate) page: Page,
    pub(crate) target: Target,
}

/// Pages of a cell that holds several bits: the first bit is read faster than the last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Page {
    Fast,
    #[default]
    Middle,
    Slow,
}

/// What an operation is done for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// A piece of the read in this slot.
    Read(u32),
    /// A piece of the uncached write in this slot.
    Write(u32),
    /// Cached pieces: the first and how many.
    Cached(u64, u64),
}

/// A channel: busy or not, and what waits for it.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    pub(crate) busy: bool,
    first: VecDeque<Operation>,
    second: VecDeque<Operation>,
}

impl Channel {
    /// Queues an operation. With `behind_reads` the operation waits behind all reads.
    #[inline]
    pub(crate) fn push(&mut self, op: Operation, behind_reads: bool) {
        if behind_reads {
            self.second.push_back(op);
        } else {
            self.first.push_back(op);
        }
    }

    /// The operation that is next.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Operation> {
        self.first.pop_front().or_else(|| self.second.pop_front())
    }
}

/// Which cached pieces are not yet on flash. Pieces are numbered from 0 in order of creation.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    oldest: u64,
    clean: VecDeque<bool>,
}

impl Dirty {
    /// Number of a new dirty piece.
    #[inline]
    pub(crate) fn create(&mut self) -> u64 {
        self.clean.push_back(false);
        self.created() - 1
    }

    /// Pieces created so far.
    #[inline]
    pub(crate) fn created(&self) -> u64 {
        self.oldest + self.clean.len() as u64
    }

    /// A piece is on flash.
    #[inline]
    pub(crate) fn mark_clean(&mut self, piece: u64) {
        if let Some(c) = self.clean.get_mut((piece - self.oldest) as usize) {
            *c = true;
        }
        while self.clean.front() == Some(&true) {
            self.clean.pop_front();
            self.oldest += 1;
        }
    }

    /// Whether all of the first `n` pieces are on flash.
    #[inline]
    pub(crate) fn all_clean(&self, n: u64) -> bool {
        n <= self.oldest || self.clean.is_empty()
    }
}

/// The SLC cache: programs are fast while it has room. An idle drive makes room.
#[derive(Debug)]
pub(crate) struct Slc {
    size: Bytes,
    used: Bytes,
    fold_bw: u64,
    /// Programs not yet finished, and when the last one was.
    running: u64,
    idle_since: Nanos,
}

impl Slc {
    pub(crate) fn new(size: Bytes, fold_bw: u64) -> Self {
        Slc { size, used: 0, fold_bw, running: 0, idle_since: 0 }
    }

    /// Bytes in it, and bytes that it holds.
    pub(crate) fn fill_level(&self) -> (Bytes, Bytes) {
        (self.used, self.size)
    }

    /// No room is left.
    pub(crate) fn fill(&mut self) {
        self.used = self.size;
    }

    /// A program of `bytes` begins at `now`; whether it goes to the SLC cache.
    #[inline]
    pub(crate) fn begin(&mut self, now: Nanos, bytes: Bytes) -> bool {
        if self.size == 0 {
            return true;
        }
        if self.running == 0 && self.used > 0 {
            let idle = u128::from(now - self.idle_since);
            let folded = idle * u128::from(self.fold_bw) / 1_000_000_000;
            self.used = self.used.saturating_sub(u64::try_from(folded).unwrap_or(u64::MAX));
        }
        self.running += 1;
        let fits = self.used + bytes <= self.size;
        if fits {
            self.used += bytes;
        }
        fits
    }

    /// A program has ended.
    #[inline]
    pub(crate) fn end(&mut self, now: Nanos) {
        if self.size != 0 {
            self.running -= 1;
            self.idle_since = now;
        }
    }
}
