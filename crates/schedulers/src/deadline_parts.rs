//! What deadline and mq-deadline share: the sorted queue of one direction, the choice between reads
//! and writes, and the words in which both explain themselves.

use iosched_types::{Bio, Dir, ReqId, Requests, Sector};

use crate::jiffies;
use crate::list::{Fifo, List};
use crate::tree::PosTree;

/// Requests of one direction: by position and by age.
#[derive(Debug, Default)]
pub(crate) struct DirQueue {
    /// By start sector.
    pub(crate) tree: PosTree,
    /// By arrival; the head is the oldest. `fifo_time` holds the expiry in jiffies.
    pub(crate) fifo: List<Fifo>,
    /// The request that followed the last one dispatched, in sector order.
    pub(crate) next: Option<ReqId>,
}

impl DirQueue {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// Adds a request that expires at `expiry`.
    #[inline(always)]
    pub(crate) fn add(&mut self, reqs: &mut Requests, id: ReqId, expiry: i64) {
        let r = &mut reqs[id];
        r.fifo_time = expiry as u64;
        self.tree.insert(r.sector, id);
        self.fifo.push_back(reqs, id);
    }

    /// Takes a request out for dispatch and returns its successor.
    #[inline(always)]
    pub(crate) fn take(&mut self, reqs: &mut Requests, id: ReqId) -> Option<ReqId> {
        let successor = self.tree.remove_and_next(reqs[id].sector, id);
        self.fifo.remove(reqs, id);
        successor
    }

    /// Removes a request for dispatch where the successor is not needed.
    #[inline(always)]
    pub(crate) fn drop(&mut self, reqs: &mut Requests, sector: Sector, id: ReqId) {
        self.tree.remove(sector, id);
        self.fifo.remove(reqs, id);
    }

    /// Takes a request out that was not dispatched; `next` moves on if it pointed there.
    pub(crate) fn drop_absorbed(&mut self, reqs: &mut Requests, id: ReqId) {
        let successor = self.take(reqs, id);
        if self.next == Some(id) {
            self.next = successor;
        }
    }

    /// `gone` joins `into`: the earlier deadline and its place in the queue survive.
    pub(crate) fn absorb(&mut self, reqs: &mut Requests, into: ReqId, gone: ReqId) {
        let expiry = reqs[gone].fifo_time;
        if (expiry as i64) < reqs[into].fifo_time as i64 {
            reqs[into].fifo_time = expiry;
            self.fifo.remove(reqs, into);
            self.fifo.insert_before(reqs, gone, into);
        }
        self.drop_absorbed(reqs, gone);
    }

    /// After a front merge the request starts lower than it did.
    pub(crate) fn reposition(&mut self, reqs: &Requests, id: ReqId, old: Sector) {
        self.tree.remove(old, id);
        self.tree.insert(reqs[id].sector, id);
    }

    /// The request a bio would be prepended to.
    #[inline(always)]
    pub(crate) fn front(&self, bio: &Bio) -> Option<ReqId> {
        self.tree.find(bio.end())
    }
}

/// Index of a direction in a pair of queues.
pub(crate) fn index(dir: Dir) -> usize {
    dir as usize
}

/// Counts how often reads went ahead of waiting writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starvation {
    /// Times in a row.
    starved: i64,
    /// `writes_starved`: how often they may.
    pub(crate) limit: i64,
}

impl Starvation {
    pub(crate) fn new(limit: i64) -> Self {
        Starvation { starved: 0, limit }
    }

    /// Reads unless there are none or they have gone first too often; `None` when nothing waits.
    pub(crate) fn choose(&mut self, reads: bool, writes: bool) -> Option<(Dir, Choice)> {
        let choice = match (reads, writes) {
            (false, false) => return None,
            (true, false) => return Some((Dir::Read, Choice::OnlyReads)),
            (false, true) => Choice::OnlyWrites,
            (true, true) => {
                let starved = self.starved;
                self.starved = starved.saturating_add(1);
                if starved < self.limit {
                    return Some((Dir::Read, Choice::ReadsFirst));
                }
                Choice::WritesStarved(starved)
            }
        };
        self.starved = 0;
        Some((Dir::Write, choice))
    }
}

/// Why a direction was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// No writes wait.
    OnlyReads,
    /// No reads wait.
    OnlyWrites,
    /// Reads go before writes.
    ReadsFirst,
    /// Writes have waited long enough.
    WritesStarved(i64),
}

/// How the batch before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There was none.
    First,
    /// `fifo_batch` was reached.
    Full(i64),
    /// No request follows in sector order.
    RanOut(i64),
    /// The next request is not contiguous (2.6.18).
    Gap,
}

/// Where the new batch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the oldest request, because it expired: jiffies waited.
    Expired(i64),
    /// At the oldest request, because nothing follows in sector order.
    Oldest,
    /// At the lowest sector (2.6.18).
    Lowest,
    /// Where the last batch of this direction stopped.
    GoesOn,
}

/// The reasons for one dispatched request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// From the list of requests put at the head.
    Head,
    /// The batch goes on: this is number n.
    Continues(i64),
    /// A new batch starts.
    NewBatch(Ended, Choice, Start),
}

/// What the words of a reason need to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) fifo_batch: i64,
    /// Jiffies until a request of the chosen direction expires.
    pub(crate) expire: i64,
    pub(crate) hz: u32,
    /// `>` where equality is not expired yet, `>=` where it is.
    pub(crate) comparison: &'static str,
    /// Whether the request reads.
    pub(crate) dir: Dir,
}

impl Reason {
    /// The reason in the scheduler's words.
    pub(crate) fn words(self, t: Terms) -> String {
        match self {
            Reason::Head => "inserted at the head".into(),
            Reason::Continues(n) => {
                format!("batch continues: {n} of {}, next in sector order", t.fifo_batch)
            }
            Reason::NewBatch(ended, choice, start) => {
                let parts = [ended.words(t), Some(choice.words()), Some(start.words(t))];
                parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
            }
        }
    }
}

impl Ended {
    fn words(self, t: Terms) -> Option<String> {
        // In 2.6.18 each seek counts as a whole batch, so the count may run beyond it.
        let of = |n: i64| format!("batch ended: {n} of {}", t.fifo_batch);
        match self {
            Ended::First => None,
            Ended::Full(n) if n > t.fifo_batch => Some("batch ended: used up by seeks".into()),
            Ended::Full(n) => Some(of(n)),
            Ended::RanOut(n) if n > t.fifo_batch => Some("batch ended: nothing further up".into()),
            Ended::RanOut(n) => Some(format!("{}, nothing further up", of(n))),
            Ended::Gap => Some("batch ended: the next request is not contiguous".into()),
        }
    }
}

impl Choice {
    fn words(self) -> String {
        match self {
            Choice::OnlyReads => "only reads wait".into(),
            Choice::OnlyWrites => "only writes wait".into(),
            Choice::ReadsFirst => "reads go first".into(),
            Choice::WritesStarved(n) => format!("reads starved writes {n} times"),
        }
    }
}

impl Start {
    fn words(self, t: Terms) -> String {
        let what = if t.dir == Dir::Read { "read" } else { "write" };
        match self {
            Start::Expired(waited) => {
                let (waited, limit) =
                    (jiffies::to_ms(waited, t.hz), jiffies::to_ms(t.expire, t.hz));
                format!("expired: {waited} ms {} {limit} ms", t.comparison)
            }
            Start::Oldest => format!("oldest {what}"),
            Start::Lowest => format!("lowest {what}"),
            Start::GoesOn => format!("{what}s go on in sector order"),
        }
    }
}

/// What both count for the record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    batches: u64,
    expired: u64,
    starved: u64,
}

impl Tally {
    pub(crate) fn note(&mut self, reason: Reason) {
        if let Reason::NewBatch(_, choice, start) = reason {
            self.batches += 1;
            self.expired += u64::from(matches!(start, Start::Expired(_)));
            self.starved += u64::from(matches!(choice, Choice::WritesStarved(_)));
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("batches", self.batches), ("expired", self.expired), ("writes_starved", self.starved)]
    }
}
