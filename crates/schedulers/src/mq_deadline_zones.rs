//! Zoned devices under mq-deadline (Linux 4.16 to 6.9): at most one write in flight per zone, so that
//! writes reach a zone in the order of its write pointer.
//!
//! A write is *held* while its zone has another write in flight: the choice passes it over, in order of arrival for the
//! oldest write, in sector order for the sweep. Reads are not affected.

use iosched_types::{Op, ReqId, Requests, Sector};

use crate::deadline_parts::DirQueue;

/// The zones that have a write in flight.
#[derive(Debug, Default)]
pub(crate) struct Zones {
    /// Sectors of a zone; 0: the device has none, or this generation leaves them to the block layer.
    sectors: Sector,
    /// On a rotating disk the sweep passes over the whole contiguous run that a held write begins.
    skips_runs: bool,
    /// As many as the device takes at once, so a plain list.
    locked: Vec<u64>,
}

impl Zones {
    pub(crate) fn new(sectors: Sector, skips_runs: bool, depth: u32) -> Self {
        let room = if sectors == 0 { 0 } else { depth as usize };
        Zones { sectors, skips_runs, locked: Vec::with_capacity(room) }
    }

    pub(crate) fn active(&self) -> bool {
        self.sectors != 0
    }

    /// Whether two positions lie in different zones.
    pub(crate) fn apart(&self, a: Sector, b: Sector) -> bool {
        self.active() && a / self.sectors != b / self.sectors
    }

    /// Zones with a write in flight.
    pub(crate) fn locked(&self) -> usize {
        self.locked.len()
    }

    fn holds(&self, reqs: &Requests, id: ReqId) -> bool {
        let r = &reqs[id];
        r.op == Op::Write && self.locked.contains(&(r.sector / self.sectors))
    }

    /// Notes that a write goes to the device; false if the request locks nothing.
    pub(crate) fn lock(&mut self, reqs: &Requests, id: ReqId) -> bool {
        let writes = self.active() && reqs[id].op == Op::Write;
        if writes {
            self.locked.push(reqs[id].sector / self.sectors);
        }
        writes
    }

    /// The write that locked the zone of `sector` is done.
    pub(crate) fn unlock(&mut self, sector: Sector) {
        let zone = sector / self.sectors;
        if let Some(at) = self.locked.iter().position(|z| *z == zone) {
            self.locked.swap_remove(at);
        }
    }

    /// The first request from `id` on, in sector order, that is not held.
    pub(crate) fn sweep(
        &self,
        reqs: &Requests,
        queue: &DirQueue,
        mut id: Option<ReqId>,
    ) -> Option<ReqId> {
        while let Some(held) = id.filter(|id| self.holds(reqs, *id)) {
            let mut end = reqs[held].end();
            id = queue.tree.next(reqs[held].sector, held);
            while let Some(follows) = id.filter(|id| self.skips_runs && reqs[*id].sector == end) {
                end = reqs[follows].end();
                id = queue.tree.next(reqs[follows].sector, follows);
            }
        }
        id
    }

    /// The oldest request that is not held.
    pub(crate) fn oldest(&self, reqs: &Requests, queue: &DirQueue) -> Option<ReqId> {
        queue.fifo.iter(reqs).find(|id| !self.holds(reqs, *id))
    }
}
