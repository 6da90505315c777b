//! none (blk-mq without a scheduler): one FIFO per CPU and nothing else.
//!
//! The block layer handles most of `none`: it issues most requests directly, so they never enter a list. How busy the
//! hardware queue is decides whether lists are flushed or served in turn. This file has the software queues: arrival
//! order per CPU, and merging with the newest few requests.

use iosched_types::{Bio, Flags, ReqId, Requests};

use crate::api::{Ctx, Dispatch, MergeKind, Merging, Position, Scheduler};
use crate::descriptor::{BlockPath, BuildArgs, Descriptor, Facts, Generation, KernelVersion};
use crate::list::{Fifo, List};

/// How many of a CPU's requests are looked at for a merge, newest first.
const MERGE_REACH: usize = 8;

/// Descriptor of none.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "none",
    aliases: &[],
    summary: "No scheduler: requests go to the device in order of arrival, as soon as it has room.",
    path: BlockPath::Mq,
    facts: Facts { bypass: true, ..Facts::USUAL },
    generations: &[Generation {
        index: 0,
        name: "3.13",
        first: KernelVersion(3, 13, 0),
        last: None,
        summary: "Software queues per CPU, served in arrival order; direct issue when idle.",
    }],
    tunables: &[],
    build: &build,
};

#[derive(Default)]
struct SoftwareQueues {
    /// One list per CPU.
    lists: Vec<List<Fifo>>,
    queued: usize,
}

fn build(args: &BuildArgs<'_>) -> Box<dyn Scheduler> {
    let lists = vec![List::default(); usize::from(args.queue.cpus.max(1))];
    Box::new(SoftwareQueues { lists, queued: 0 })
}

/// Whether a bio continues a request and may join it.
fn joins(reqs: &Requests, id: ReqId, bio: &Bio) -> Option<MergeKind> {
    let r = &reqs[id];
    if r.op != bio.op || r.flags.has(Flags::NOMERGE) || bio.flags.has(Flags::NOMERGE) {
        return None;
    }
    match () {
        () if r.end() == bio.sector => Some(MergeKind::Back),
        () if bio.end() == r.sector => Some(MergeKind::Front),
        () => None,
    }
}

impl SoftwareQueues {
    fn pop(&mut self, ctx: &mut Ctx<'_>, hctx: Option<u16>) -> Option<ReqId> {
        for (cpu, list) in self.lists.iter_mut().enumerate() {
            let Some(id) = list.head() else { continue };
            // The software queues of a CPU feed one hardware queue.
            if hctx.is_some_and(|h| ctx.reqs[id].hctx != h) {
                continue;
            }
            list.remove(ctx.reqs, id);
            self.queued -= 1;
            ctx.why(|_, _| format!("oldest request of CPU {cpu}"));
            return Some(id);
        }
        None
    }
}

impl Scheduler for SoftwareQueues {
    fn merging(&self) -> Merging {
        Merging::Own
    }

    fn find_merge(&mut self, ctx: &mut Ctx<'_>, bio: &Bio) -> Option<(ReqId, MergeKind)> {
        let list = self.lists.get(usize::from(bio.cpu))?;
        let mut at = list.tail();
        for _ in 0..MERGE_REACH {
            let id = at?;
            let has_room = ctx.reqs[id].sectors + bio.sectors <= ctx.queue.max_sectors;
            if has_room && let Some(kind) = joins(ctx.reqs, id, bio) {
                return Some((id, kind));
            }
            at = list.prev(ctx.reqs, id);
        }
        None
    }

    fn absorbed(&mut self, ctx: &mut Ctx<'_>, _into: ReqId, gone: ReqId) {
        let cpu = usize::from(ctx.reqs[gone].cpu);
        self.lists[cpu].remove(ctx.reqs, gone);
        self.queued -= 1;
    }

    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        let cpu = usize::from(ctx.reqs[req].cpu);
        if cpu >= self.lists.len() {
            self.lists.resize(cpu + 1, List::default());
        }
        match at {
            Position::Sort => self.lists[cpu].push_back(ctx.reqs, req),
            Position::Head => self.lists[cpu].push_front(ctx.reqs, req),
        }
        self.queued += 1;
    }

    fn has_work(&self) -> bool {
        self.queued > 0
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, hctx: u16) -> Dispatch {
        self.pop(ctx, Some(hctx)).map_or(Dispatch::Empty, Dispatch::Request)
    }

    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        self.pop(ctx, None)
    }

    fn set_tunable(&mut self, _ctx: &mut Ctx<'_>, _name: &str, _value: i64) {}

    fn tunable(&self, _name: &str) -> Option<i64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use iosched_types::{IoPrio, Op, Request};

    use super::*;
    use crate::api::QueueFacts;
    use crate::testing::Bench;

    fn bench() -> Bench {
        Bench::on("none", &[], QueueFacts { cpus: 3, ..QueueFacts::default() })
    }

    fn insert(b: &mut Bench, cpu: u16, sector: u64) -> ReqId {
        let mut r = Request::new(Op::Read, sector, 8);
        r.cpu = cpu;
        b.insert_request(0, r)
    }

    fn bio(cpu: u16, sector: u64) -> Bio {
        Bio {
            id: 0,
            op: Op::Read,
            flags: Flags::NONE,
            sector,
            sectors: 8,
            task: 0,
            thread: 0,
            prio: IoPrio::default(),
            cgroup: 0,
            cpu,
        }
    }

    /// MQ-2 with an idle hardware queue: all lists in CPU order.
    #[test]
    fn lists_are_flushed_in_cpu_order() {
        let mut b = bench();
        for (cpu, sector) in [(2, 500), (0, 900), (1, 100), (0, 300), (2, 50)] {
            insert(&mut b, cpu, sector);
        }
        assert_eq!(b.drain(0), ["R900", "R300", "R100", "R500", "R50"]);
        assert!(b.scheduler.is_empty());
    }

    #[test]
    fn a_bio_joins_one_of_the_newest_eight_of_its_own_cpu() {
        let mut b = bench();
        let ids: Vec<ReqId> = (0..9).map(|i| insert(&mut b, 0, i * 100)).collect();
        let mut find = |bio: Bio| b.with(0, |s, c| s.find_merge(c, &bio));
        assert_eq!(find(bio(0, 8)), None, "the ninth newest is out of reach");
        assert_eq!(find(bio(0, 108)), Some((ids[1], MergeKind::Back)));
        assert_eq!(find(bio(0, 792)), Some((ids[8], MergeKind::Front)));
        assert_eq!(find(bio(1, 108)), None, "another CPU's list");
        assert_eq!(find(Bio { op: Op::Write, ..bio(0, 108) }), None);
        assert_eq!(find(Bio { flags: Flags::NOMERGE, ..bio(0, 108) }), None);
    }

    #[test]
    fn a_hardware_queue_gets_only_its_own() {
        let mut b = bench();
        let mut r = Request::new(Op::Read, 7, 8);
        (r.cpu, r.hctx) = (1, 1);
        let id = b.insert_request(0, r);
        assert_eq!(b.with(0, |s, c| s.dispatch(c, 0)), Dispatch::Empty);
        assert_eq!(b.with(0, |s, c| s.dispatch(c, 1)), Dispatch::Request(id));
    }
}
