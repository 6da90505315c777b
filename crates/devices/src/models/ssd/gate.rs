//! Flushes and trims: what must be clean before a flush ends, and commands that ATA serves alone.

use iosched_types::{Nanos, Op};

use super::{Event, FLUSHED, Ssd, TRIMMED};

/// Which commands a flush that is served alone lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// Everybody: there is no flush.
    Open,
    /// Everybody but another flush: one has come.
    Lead,
    /// None: this flush waits until nothing else is served.
    Closed(u32),
    /// None: the flush goes on.
    Flushing,
}

impl Ssd {
    /// ATA's commands that are not queued.
    fn is_alone(&self, op: Op) -> bool {
        op == Op::Flush || op == Op::Discard && self.p.trim_ns > 0
    }

    /// With `flush_alone`: whether a command may begin; otherwise it waits outside.
    pub(super) fn enter(&mut self, now: Nanos, slot: u32) -> bool {
        let alone = self.is_alone(self.slots[slot as usize].op);
        match self.gate {
            Gate::Open | Gate::Lead if !alone => {
                self.inside += 1;
                return true;
            }
            Gate::Open => {
                self.gate = Gate::Lead;
                // No flush goes on, so the lane of their ends is empty. The same holds below.
                self.events.push(FLUSHED, now + self.p.flush_lead_ns, Event::Lead(slot));
            }
            _ => self.held.push_back(slot),
        }
        false
    }

    /// A command is over. A flush may be next, or all commands that waited for one.
    pub(super) fn leave(&mut self, now: Nanos, op: Op) {
        if self.is_alone(op) {
            self.gate = Gate::Open;
            for slot in self.held.drain(..) {
                self.events.push(FLUSHED, now, Event::Again(slot));
            }
        } else {
            self.inside -= 1;
            self.flush_alone(now);
        }
    }

    /// Begins the flush that waits until the rest is over.
    pub(super) fn flush_alone(&mut self, now: Nanos) {
        if let Gate::Closed(slot) = self.gate
            && self.inside == 0
        {
            self.gate = Gate::Flushing;
            if self.slots[slot as usize].op == Op::Discard {
                self.trim(now, slot);
            } else {
                self.begin_flush(now, slot);
            }
        }
    }

    /// The drive's table is changed by one trim at a time.
    pub(super) fn trim(&mut self, now: Nanos, slot: u32) {
        if std::mem::replace(&mut self.trimming, true) {
            self.trims.push_back(slot);
            return;
        }
        self.slots[slot as usize].t_start = Some(now);
        self.events.push(TRIMMED, now + self.p.trim_ns, Event::Trimmed(slot));
    }

    pub(super) fn begin_flush(&mut self, now: Nanos, slot: u32) {
        self.flushing += 1;
        self.flushes.push_back((slot, self.dirty.created()));
        self.check_flushes(now);
    }

    #[inline]
    pub(super) fn check_flushes(&mut self, now: Nanos) {
        while let Some((slot, _)) =
            self.flushes.front().filter(|f| self.dirty.all_clean(f.1)).copied()
        {
            self.flushes.pop_front();
            self.slots[slot as usize].t_start = Some(now);
            let at = self.flush_ends(now);
            self.events.push(FLUSHED, at, Event::Slot(slot));
        }
    }

    /// When a flush ends that finds all data on flash: what was written since the last one is noted, which takes `flush_ns`. With
    /// nothing to note it ends at once, or with a flush under way.
    fn flush_ends(&mut self, now: Nanos) -> Nanos {
        if self.p.plain_sync || std::mem::take(&mut self.unnoted) {
            self.flushed_at = now + self.p.flush_ns;
        }
        self.flushed_at.max(now)
    }
}
