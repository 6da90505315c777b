//! A change of metadata: a handle on the running transaction.

use super::{Ext, Name};
use crate::kernel::{Event, Kernel, Wait};

impl<N: Name> Ext<N> {
    /// A change of metadata begins: there is room in the journal, and the running transaction takes it.
    pub(super) async fn begin(&self, k: &Kernel) {
        loop {
            if self.with(|s| s.locked) {
                k.wait(Wait::Event(Event::Room)).await;
            } else if self.with(|s| s.journal.running.is_none() && !s.journal.has_room()) {
                self.make_room(k).await;
            } else if self.with(|s| !s.journal.fits(1)) {
                // It is as large as one may be: its commit makes way for the next.
                self.with(|s| {
                    let tid = s.journal.running.as_ref().map_or(0, |t| t.tid);
                    s.wanted = s.wanted.max(tid);
                });
                k.with(|w| w.signal(Event::Journal));
                k.wait(Wait::Event(Event::Room)).await;
            } else {
                break;
            }
        }
        let first = self.with(|s| s.journal.running.is_none());
        let now = k.with(|w| w.now);
        self.with(|s| {
            s.journal.begin(now);
            s.handles += 1;
        });
        if first {
            k.with(|w| w.signal(Event::Journal));
        }
    }

    /// The change ends, when the copies of what it changes are in the log. One that finds its transaction old asks for the
    /// commit.
    pub(super) async fn end(&self, k: &Kernel) {
        self.copied(k).await;
        let now = k.with(|w| w.now);
        let old = self.with(|s| {
            s.journal.end();
            let old = s.journal.running.as_ref().filter(|t| t.started + s.options.commit <= now);
            let tid = old.map(|t| t.tid);
            s.wanted = s.wanted.max(tid.unwrap_or(0));
            tid.is_some()
        });
        k.with(|w| {
            w.signal_last_first(Event::Room);
            if old {
                w.signal(Event::Journal);
            }
        });
    }

    /// Waits until the copies of what was changed so far are in the log.
    pub(super) async fn copied(&self, k: &Kernel) {
        let held = self.with(|s| s.journal.take_held());
        for block in &held {
            k.metadata_copied(*block * 8).await;
        }
        self.with(|s| s.journal.reuse_held(held));
    }
}
