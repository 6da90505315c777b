//! Where requests wait: lists of the software queues, fed by inserts, and one list per hardware queue and
//! domain, from which they are dispatched.
//!
//! A request can merge only while it is in a list of its software queue.

use iosched_types::{Bio, ReqId, Requests};

use crate::api::{MergeKind, Position};
use crate::list::{Fifo, List};

/// Domains at most (three until 4.19, four from 4.20 on).
pub(super) const DOMAINS: usize = 4;

/// Word of a request that says in which list it is: index + 1, 0 for none.
const PLACE: usize = 1;

/// Everything that is queued.
#[derive(Debug)]
pub(super) struct Queues {
    cpus: usize,
    hctxs: usize,
    /// Lists per software queue: one, or one per domain.
    per_cpu: usize,
    /// Software lists, then the lists per hardware queue and domain.
    lists: Vec<List<Fifo>>,
    /// Per hardware queue and software list: which CPUs have something.
    maps: Vec<u64>,
    words: usize,
    queued: usize,
}

impl Queues {
    /// `per_domain`: software queues keep their domains apart.
    pub(super) fn new(cpus: u16, hctxs: u16, per_domain: bool) -> Queues {
        let (cpus, hctxs) = (usize::from(cpus.max(1)), usize::from(hctxs.max(1)));
        let per_cpu = if per_domain { DOMAINS } else { 1 };
        let words = cpus.div_ceil(64);
        Queues {
            cpus,
            hctxs,
            per_cpu,
            lists: vec![List::default(); cpus * per_cpu + hctxs * DOMAINS],
            maps: vec![0; hctxs * per_cpu * words],
            words,
            queued: 0,
        }
    }

    /// Requests queued.
    pub(super) fn len(&self) -> usize {
        self.queued
    }

    /// Hardware queues.
    pub(super) fn hctxs(&self) -> usize {
        self.hctxs
    }

    /// A hardware queue number that exists.
    pub(super) fn hctx(&self, hctx: u16) -> usize {
        usize::from(hctx).min(self.hctxs - 1)
    }

    fn soft(&self, cpu: u16, domain: usize) -> usize {
        usize::from(cpu).min(self.cpus - 1) * self.per_cpu + domain % self.per_cpu
    }

    fn hard(&self, hctx: usize, domain: usize) -> usize {
        self.cpus * self.per_cpu + hctx * DOMAINS + domain
    }

    fn map(&self, hctx: usize, domain: usize) -> usize {
        (hctx * self.per_cpu + domain % self.per_cpu) * self.words
    }

    /// Puts a request into the list of its software queue.
    pub(super) fn insert(&mut self, reqs: &mut Requests, id: ReqId, domain: usize, at: Position) {
        let (cpu, hctx) = (reqs[id].cpu, self.hctx(reqs[id].hctx));
        let list = self.soft(cpu, domain);
        match at {
            Position::Sort => self.lists[list].push_back(reqs, id),
            Position::Head => self.lists[list].push_front(reqs, id),
        }
        reqs[id].elv[PLACE] = list as u64 + 1;
        let cpu = list / self.per_cpu;
        let word = self.map(hctx, domain) + cpu / 64;
        self.maps[word] |= 1 << (cpu % 64);
        self.queued += 1;
    }

    /// A request that `bio` continues: among the newest of its CPU (and of its domain, where they are kept
    /// apart).
    pub(super) fn find_merge(
        &self,
        reqs: &Requests,
        bio: &Bio,
        domain: usize,
        max_sectors: u32,
    ) -> Option<(ReqId, MergeKind)> {
        self.lists[self.soft(bio.cpu, domain)].newest_match(reqs, bio, max_sectors)
    }

    /// Removes a request from the list that it is in. Returns whether it was in one.
    pub(super) fn remove(&mut self, reqs: &mut Requests, id: ReqId) -> bool {
        let Some(list) = (reqs[id].elv[PLACE] as usize).checked_sub(1) else { return false };
        self.lists[list].remove(reqs, id);
        reqs[id].elv[PLACE] = 0;
        self.queued -= 1;
        true
    }

    /// Whether the dispatch list of a domain holds something.
    pub(super) fn ready(&self, hctx: usize, domain: usize) -> bool {
        !self.lists[self.hard(hctx, domain)].is_empty()
    }

    /// Whether a software queue of this hardware queue holds something for `domain` (for any domain, where
    /// they are not kept apart).
    pub(super) fn pending(&mut self, hctx: usize, domain: usize) -> bool {
        for word in 0..self.words {
            let at = self.map(hctx, domain) + word;
            let mut bits = self.maps[at];
            while bits != 0 {
                let cpu = word * 64 + bits.trailing_zeros() as usize;
                if !self.lists[cpu * self.per_cpu + domain % self.per_cpu].is_empty() {
                    return true;
                }
                // Emptied by a merge.
                bits &= bits - 1;
                self.maps[at] = bits;
            }
        }
        false
    }

    /// Moves the requests of a hardware queue's software queues to its dispatch lists, CPU by CPU: those of `domain`
    /// where domains are kept apart, otherwise all.
    pub(super) fn flush(
        &mut self,
        reqs: &mut Requests,
        hctx: usize,
        domain: usize,
        domain_of: impl Fn(&Requests, ReqId) -> usize,
    ) {
        for word in 0..self.words {
            let at = self.map(hctx, domain) + word;
            let mut bits = std::mem::take(&mut self.maps[at]);
            while bits != 0 {
                let cpu = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let from = cpu * self.per_cpu + domain % self.per_cpu;
                while let Some(id) = self.lists[from].pop_front(reqs) {
                    let to = self.hard(hctx, domain_of(reqs, id));
                    self.lists[to].push_back(reqs, id);
                    reqs[id].elv[PLACE] = to as u64 + 1;
                }
            }
        }
    }

    /// Takes the oldest request of a dispatch list.
    pub(super) fn pop(&mut self, reqs: &mut Requests, hctx: usize, domain: usize) -> Option<ReqId> {
        let list = self.hard(hctx, domain);
        let id = self.lists[list].pop_front(reqs)?;
        reqs[id].elv[PLACE] = 0;
        self.queued -= 1;
        Some(id)
    }

    /// Any request: dispatch lists first, then the software queues.
    pub(super) fn pop_any(&mut self, reqs: &mut Requests) -> Option<ReqId> {
        let soft = self.cpus * self.per_cpu;
        let list = (soft..self.lists.len()).chain(0..soft).find(|&l| !self.lists[l].is_empty())?;
        let id = self.lists[list].pop_front(reqs)?;
        reqs[id].elv[PLACE] = 0;
        self.queued -= 1;
        Some(id)
    }
}
