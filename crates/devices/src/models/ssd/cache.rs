//! The write cache: what enters it, and how it drains to the channels.

use iosched_types::{Bytes, Nanos};

use super::super::flash::{Operation, Page, Target};
use super::{DRAIN, Event, Ssd, Transfer};
use crate::math::mix;

/// A block of the write cache in a used drive.
const BLOCK: Bytes = 4096;
impl Ssd {
    /// Fills the write cache with blocks from all over the drive.
    pub fn fill_cache(&mut self) {
        let (block, blocks) = (BLOCK.min(self.p.stripe), (self.p.cap / BLOCK).max(1));
        for i in 0..self.p.cache / block {
            self.dirty.create();
            self.drain.push_back((mix(i) % blocks * BLOCK, block));
            self.used += block;
        }
        self.unnoted = true;
        self.try_drain(0);
    }

    /// The data of a write is in the cache: its pieces wait to be programmed.
    pub(super) fn cache_pieces(&mut self, slot: u32) {
        let s = &self.slots[slot as usize];
        let (mut at, end) = (s.offset, s.offset + s.len);
        while at < end {
            let (next, _) = self.piece(at, end);
            if self.drain.is_empty() {
                self.drain_first = self.dirty.created();
            }
            self.dirty.create();
            self.drain.push_back((at, next - at));
            at = next;
        }
    }

    #[inline]
    pub(super) fn try_write(&mut self, now: Nanos) {
        while let Some(slot) = self.writes.front().copied() {
            let len = self.slots[slot as usize].len;
            if self.used != 0 && self.used + len > self.p.cache {
                return;
            }
            self.used += len;
            self.writes.pop_front();
            self.transfer(now, Transfer { slot, bytes: len });
        }
    }

    #[inline]
    pub(super) fn try_drain(&mut self, now: Nanos) {
        if !self.drain_pending && !self.drain.is_empty() && !self.gathers() {
            self.drain_pending = true;
            self.events.push(DRAIN, now.max(self.drain_next), Event::Drain);
        }
    }

    /// Whether what is cached stays for now: it fills no stripe, and its channel is busy with the stripe before it.
    fn gathers(&self) -> bool {
        if !self.p.gather || self.programs[self.chan_count.rem(self.drain_channel) as usize] == 0 {
            return false;
        }
        let mut room = self.p.stripe;
        for (_, bytes) in &self.drain {
            if *bytes >= room {
                return false;
            }
            room -= bytes;
        }
        true
    }

    pub(super) fn drain(&mut self, now: Nanos) {
        self.drain_pending = false;
        if self.gathers() {
            return;
        }
        let Some((at, mut bytes)) = self.drain.pop_front() else { return };
        let (_, mut channel) = self.piece(at, at + bytes);
        let mut count = 1;
        if self.p.log {
            while let Some((_, more)) = self.drain.front().filter(|m| bytes + m.1 <= self.p.stripe)
            {
                bytes += more;
                count += 1;
                self.drain.pop_front();
            }
            channel = self.chan_count.rem(self.drain_channel) as usize;
            self.drain_channel += 1;
        }
        let target = Target::Cached(self.drain_first, count);
        self.drain_first += count;
        self.drain_next = now + self.drain_rate.time(bytes);
        self.programs[channel] += 1;
        self.channels[channel].push(Operation { bytes, page: Page::Middle, target }, self.p.rprio);
        self.try_channel(now, channel);
        self.try_drain(now);
    }
}
