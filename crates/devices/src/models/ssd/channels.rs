//! The channels: pieces of commands, and the time that reads and programs of their pages take.

use iosched_types::{Bytes, Nanos, Op};

use super::super::flash::{Operation, Page, Target};
use super::{
    Event, FLUSH_READ, FORCED, PROGRAM, READ, READ_FAST, READ_SLOW, SLOW_PROGRAM, Ssd, Transfer,
};
use crate::Completion;
use crate::math::mix;

/// Keeps the kind of a page apart from its channel.
const PAGE_SEED: u64 = 0x70a6_e5ee_d000_0001;

impl Ssd {
    /// End of the piece that begins at `start`, and its channel.
    #[inline]
    pub(super) fn piece(&self, start: Bytes, end: Bytes) -> (Bytes, usize) {
        let index = self.stripe.div(start);
        let next = (index + 1).saturating_mul(self.p.stripe);
        let place = if self.p.scatter { mix(index) } else { index };
        (next.min(end), self.chan_count.rem(place) as usize)
    }

    /// Which page of its cells holds the stripe at `start`.
    #[inline]
    fn page(&self, start: Bytes) -> Page {
        if self.p.rd_spread_ns == 0 {
            return Page::Middle;
        }
        match mix(self.stripe.div(start) ^ PAGE_SEED) % 3 {
            0 => Page::Fast,
            1 => Page::Middle,
            _ => Page::Slow,
        }
    }

    /// Splits a command at stripe boundaries and gives the pieces to their channels.
    pub(super) fn enter_channels(&mut self, now: Nanos, slot: u32, target: Target) {
        let s = &self.slots[slot as usize];
        let (mut at, end) = (s.offset, s.offset + s.len);
        let last = if s.len == 0 { at } else { end - 1 };
        self.slots[slot as usize].pieces = self.stripe.div(last) - self.stripe.div(at) + 1;
        loop {
            let (next, channel) = self.piece(at, end);
            let op = Operation { bytes: next - at, page: self.page(at), target };
            let behind = self.p.rprio && matches!(target, Target::Write(_));
            self.channels[channel].push(op, behind);
            self.try_channel(now, channel);
            at = next;
            if at >= end {
                return;
            }
        }
    }

    #[inline]
    pub(super) fn try_channel(&mut self, now: Nanos, channel: usize) {
        let c = &mut self.channels[channel];
        if c.busy {
            return;
        }
        let Some(op) = c.pop() else { return };
        c.busy = true;
        let event = Event::Channel(channel as u32, op);
        if let Target::Read(slot) = op.target {
            self.slots[slot as usize].t_start.get_or_insert(now);
            self.counters.flash_reads += 1;
            let (lane, time) = match op.page {
                _ if self.flushing > 0 && self.p.flush_rd_ns > 0 => {
                    (FLUSH_READ, self.p.flush_rd_ns)
                }
                Page::Fast => (READ_FAST, self.p.rd_ns.saturating_sub(self.p.rd_spread_ns)),
                Page::Middle => (READ, self.p.rd_ns),
                Page::Slow => (READ_SLOW, self.p.rd_ns + self.p.rd_spread_ns),
            };
            self.events.push(lane, now + time, event);
        } else if self.slc.begin(now, op.bytes) {
            self.counters.programs += 1;
            self.events.push(PROGRAM, now + self.p.wr_ns, event);
        } else {
            self.counters.slow_programs += 1;
            self.events.push(SLOW_PROGRAM, now + self.p.slc_full_wr_ns, event);
        }
    }

    pub(super) fn channel_done(
        &mut self,
        now: Nanos,
        channel: usize,
        op: Operation,
        done: &mut Vec<Completion>,
    ) {
        self.channels[channel].busy = false;
        match op.target {
            Target::Read(slot) => self.transfer(now, Transfer { slot, bytes: op.bytes }),
            Target::Write(slot) => {
                self.slc.end(now);
                self.piece_done(now, slot, done);
            }
            Target::Cached(first, count) => {
                self.slc.end(now);
                self.used -= op.bytes;
                self.programs[channel] -= 1;
                self.try_drain(now);
                for piece in first..first + count {
                    self.dirty.mark_clean(piece);
                }
                self.check_flushes(now);
                self.try_write(now);
            }
        }
        self.try_channel(now, channel);
    }

    #[inline]
    pub(super) fn piece_done(&mut self, now: Nanos, slot: u32, done: &mut Vec<Completion>) {
        let s = &mut self.slots[slot as usize];
        s.pieces -= 1;
        if s.pieces > 0 {
            return;
        }
        if s.forced && s.op == Op::Write {
            self.events.push(FORCED, now + self.p.flush_ns, Event::Slot(slot));
        } else {
            self.complete(now, slot, done);
        }
    }
}
