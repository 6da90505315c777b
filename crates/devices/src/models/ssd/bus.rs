//! The bus between host and drive.

use iosched_types::{Nanos, Op};

use super::super::flash::Target;
use super::{BUS, BUS_IN, Event, Ssd, Transfer};
use crate::Completion;

impl Ssd {
    /// The direction of the bus that a transfer needs: there is one for both unless it is full duplex.
    #[inline]
    fn way(&self, slot: u32) -> usize {
        usize::from(self.p.duplex && self.slots[slot as usize].op == Op::Write)
    }

    #[inline]
    pub(super) fn transfer(&mut self, now: Nanos, transfer: Transfer) {
        let way = self.way(transfer.slot);
        self.bus[way].push_back(transfer);
        self.try_bus(now, way);
    }

    #[inline]
    fn try_bus(&mut self, now: Nanos, way: usize) {
        if self.bus_busy[way] {
            return;
        }
        let Some(transfer) = self.bus[way].pop_front() else { return };
        self.bus_busy[way] = true;
        let s = &mut self.slots[transfer.slot as usize];
        if s.op == Op::Write {
            s.t_start = Some(now);
        }
        // The first piece pays the command's own time. A write is one transfer.
        let command = if std::mem::replace(&mut s.on_bus, true) { 0 } else { self.p.bus_cmd_ns };
        let time = self.bus_rate.time(transfer.bytes) + command;
        self.counters.bus_ns += time;
        let lane = if way == 0 { BUS } else { BUS_IN };
        self.events.push(lane, now + time, Event::Bus(transfer));
    }

    pub(super) fn bus_done(&mut self, now: Nanos, transfer: Transfer, done: &mut Vec<Completion>) {
        let slot = transfer.slot;
        let way = self.way(slot);
        self.bus_busy[way] = false;
        match self.slots[slot as usize].op {
            Op::Write if self.slots[slot as usize].cached => {
                self.cache_pieces(slot);
                self.complete(now, slot, done);
                self.try_drain(now);
            }
            Op::Write => self.enter_channels(now, slot, Target::Write(slot)),
            _ => self.piece_done(now, slot, done),
        }
        self.try_bus(now, way);
    }
}
