//! Two pages of batches: while the front one is given out, the other is filled.

use iosched_types::{ReqId, Requests, Sector};

use super::{Adios, COMMITTED, DISCARD, EXPECTED, LENGTH, OTHER, READ, WRITE, kind_of};
use crate::api::Ctx;
use crate::list::{Fifo, List};

/// What a nice value weighs, from -20 to 19, as tasks do.
const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991,
    1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// One page: its requests by kind or, in order 1, by whether a process waits for them.
#[derive(Debug, Default)]
struct Page {
    lists: [List<Fifo>; 4],
    /// Requests of each kind that the last fill took.
    taken: [u64; 4],
    /// The order it was filled in.
    order: u8,
}

impl Page {
    fn is_empty(&self) -> bool {
        self.lists.iter().all(List::is_empty)
    }
}

/// The pages, and the balance between reads and the rest.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pages: [Page; 2],
    front: usize,
    /// Below 0 reads have overtaken more than they may.
    bias: i64,
    downward: bool,
    /// Most requests of a fill: in all, and by kind.
    largest: [u64; 5],
    scratch: Vec<(Sector, u32, ReqId)>,
}

impl Pages {
    pub(super) fn is_empty(&self) -> bool {
        self.pages.iter().all(Page::is_empty)
    }

    pub(super) fn forget_balance(&mut self) {
        self.bias = 0;
    }

    pub(super) fn forget_largest(&mut self) {
        self.largest = [0; 5];
    }

    pub(super) fn turn(&mut self, reqs: &Requests, head: Sector) {
        let page = &self.pages[self.front];
        let ends = (page.lists[1].head(), page.lists[1].tail());
        self.downward = match ends {
            (Some(a), Some(z)) if page.order == 1 => {
                head > (reqs[a].sector + reqs[z].sector) / 2
            }
            _ => false,
        };
    }

    pub(super) fn counters(&self, all: &mut Vec<(&'static str, u64)>) {
        let names =
            ["batch_max", "batch_max_read", "batch_max_write", "batch_max_discard"];
        all.extend(names.into_iter().zip(self.largest));
    }

    /// Sorts what no process waits for by position.
    fn sort(&mut self, reqs: &mut Requests, page: usize) {
        let list = &mut self.pages[page].lists[1];
        self.scratch.clear();
        while let Some(id) = list.pop_front(reqs) {
            self.scratch.push((reqs[id].sector, self.scratch.len() as u32, id));
        }
        self.scratch.sort_unstable();
        for (_, _, id) in self.scratch.drain(..) {
            list.push_back(reqs, id);
        }
    }
}

impl Adios {
    /// Fills a page if it is time, and gives the next request of the front one.
    pub(super) fn take_from_pages(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        let back = 1 - self.pages.front;
        let has = |p: &super::Pages, i: usize| !p.pages[i].is_empty();
        let in_front = has(&self.pages, self.pages.front);
        let low = || {
            let committed = u128::from(self.watch.expected) * 100;
            let level = u128::from(self.tuning.window) * u128::from(self.tuning.refill_percent);
            self.watch.expected == 0 || committed < level
        };
        if !has(&self.pages, back) && !self.waiting.is_empty() && (!in_front || low()) {
            self.fill(ctx, back);
        }
        if !in_front && has(&self.pages, back) {
            self.pages.front = back;
            self.turn(ctx);
        }
        self.take_from_front(ctx)
    }

    fn take_from_front(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        let Pages { pages, front, downward, .. } = &mut self.pages;
        let page = &mut pages[*front];
        let list = (0..4).find(|x| !page.lists[*x].is_empty())?;
        let sweeps = page.order == 1 && list == 1;
        let id = match sweeps && *downward {
            true => page.lists[list].tail()?,
            false => page.lists[list].head()?,
        };
        page.lists[list].remove(ctx.reqs, id);
        let (left, downward) = (page.lists.iter().map(List::len).sum::<usize>(), *downward);
        ctx.why(|reqs, _| {
            let expected = reqs[id].elv[EXPECTED] as f64 / 1e6;
            let order = match (sweeps, downward) {
                (true, true) => "sweep downward",
                (true, false) => "sweep upward",
                (false, _) if page.order == 1 => "a process waits for it",
                _ => ["reads", "writes", "discards", "others"][list],
            };
            format!("batch, {order}: expected {expected:.2} ms, {left} left in the batch")
        });
        Some(id)
    }

    /// Which tree gives, its first request, and whether taking it changes the balance.
    fn candidate(&self, ctx: &Ctx<'_>) -> Option<(usize, ReqId, bool)> {
        let b = usize::from(self.pages.bias < 0);
        match (self.waiting.first(0), self.waiting.first(1)) {
            (Some(read), Some(other)) => {
                let (this, that) = if b == 0 { (read, other) } else { (other, read) };
                let overtakes = ctx.reqs[this].fifo_time > ctx.reqs[that].fifo_time;
                Some((b, this, overtakes))
            }
            (Some(read), None) => Some((b, read, b == 0)),
            (None, Some(other)) => Some((b, other, b == 1)),
            (None, None) => None,
        }
    }

    fn fill(&mut self, ctx: &mut Ctx<'_>, page: usize) {
        let committed = self.watch.expected;
        self.pages.pages[page].taken = [0; 4];
        self.pages.pages[page].order = self.tuning.order;
        let (mut n, mut added) = (0u64, 0u64);
        while let Some((b, id, counts)) = self.candidate(ctx) {
            let (kind, expected) = (kind_of(ctx.reqs[id].op), ctx.reqs[id].elv[EXPECTED]);
            let full = self.pages.pages[page].taken[kind] >= self.tuning.batch[kind];
            let all = committed.saturating_add(added).saturating_add(expected);
            if n > 0 && (self.models.of(kind).base == 0 || full || all > self.tuning.window) {
                break;
            }
            if counts {
                self.balance(b, expected);
            }
            self.leave_tree(ctx, id);
            ctx.out.findable.push((id, false));
            self.put(ctx, page, kind, id);
            n += 1;
            added = added.saturating_add(expected);
        }
        let Pages { pages, largest, .. } = &mut self.pages;
        let taken = pages[page].taken;
        for (most, now) in largest.iter_mut().zip([n, taken[READ], taken[WRITE], taken[DISCARD]]) {
            *most = (*most).max(now);
        }
        if pages[page].order == 1 && taken[WRITE] > 1 {
            self.pages.sort(ctx.reqs, page);
        }
        let bias = self.pages.bias as f64 / 1e6;
        ctx.why(|_, _| {
            let side = if bias < 0.0 { "writes" } else { "reads" };
            format!("batch of {n}, expected {:.2} ms; balance {bias:.2} ms: {side} are next", added as f64 / 1e6)
        });
    }

    /// A request goes ahead of an older one of the other side, or alone: reads pay, the others earn.
    fn balance(&mut self, b: usize, expected: u64) {
        let sign = if b == 0 { -1 } else { 1 };
        if expected == 0 {
            self.pages.bias = sign;
            return;
        }
        let nice = if b == 0 { self.tuning.read_priority } else { 0 };
        let weight = WEIGHTS[usize::try_from(nice + 20).unwrap_or(0).min(WEIGHTS.len() - 1)];
        let step = u128::from(expected) * u128::from(weight) / 1024;
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        self.pages.bias = self.pages.bias.saturating_add(sign * step);
    }

    fn put(&mut self, ctx: &mut Ctx<'_>, page: usize, kind: usize, id: ReqId) {
        let r = &mut ctx.reqs[id];
        r.elv[LENGTH] |= COMMITTED;
        self.watch.commits(r.elv[EXPECTED]);
        let waits_for_it = r.fifo_time == r.t_start;
        let page = &mut self.pages.pages[page];
        let list = match page.order {
            1 if kind == OTHER => OTHER,
            1 => usize::from(!waits_for_it),
            _ => kind,
        };
        page.lists[list].push_back(ctx.reqs, id);
        page.taken[kind] += 1;
    }
}
