//! When requests came and went, by the server's own clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use iosched_types::Nanos;

use super::clockwork::Clockwork;

/// One request's way through the server, on the disk's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The server was woken, or saw that something had come.
    pub(crate) woken: Nanos,
    /// It has the request.
    pub(crate) taken: Nanos,
    /// The data is where it belongs.
    pub(crate) placed: Nanos,
    /// It begins to give the answer.
    pub(crate) begun: Nanos,
    /// The kernel has the answer.
    pub(crate) answered: Nanos,
}

impl Stamp {
    pub(crate) fn new(woken: Nanos, taken: Nanos, placed: Nanos) -> Stamp {
        Stamp { woken, taken, placed, ..Stamp::default() }
    }
}

/// Stamps of answered requests, while they are collected. Otherwise the clock is not read.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    on: AtomicBool,
    seen: Mutex<Vec<Stamp>>,
}

impl Stamps {
    /// Begins to collect, or ends it.
    pub(crate) fn collect(&self, on: bool) {
        self.on.store(on, Ordering::Release);
    }

    /// What was collected since this was asked last.
    pub(crate) fn take(&self) -> Vec<Stamp> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The time, if it is wanted.
    pub(crate) fn now<A>(&self, clock: &Clockwork<A>) -> Nanos {
        if self.on.load(Ordering::Relaxed) { clock.now() } else { 0 }
    }

    /// A request was answered.
    pub(crate) fn answered<A>(&self, clock: &Clockwork<A>, stamp: Stamp, begun: Nanos) {
        // Those that came before it was switched on are left out.
        if self.on.load(Ordering::Acquire) && stamp.placed > 0 {
            let stamp = Stamp { begun, answered: clock.now(), ..stamp };
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(stamp);
        }
    }
}
