//! noop (until 4.20): one FIFO. It merges, and it never sorts, waits or prefers anybody.

use iosched_types::{ReqId, Sector};

use crate::api::{Ctx, Dispatch, Hooks, MergeKind, Merging, Position, Scheduler};
use crate::descriptor::{BlockPath, BuildArgs, Descriptor, Facts, Generation, KernelVersion};
use crate::list::{Fifo, List};

/// Descriptor of noop.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "noop",
    aliases: &[],
    summary: "One queue, first in, first out; merges adjacent requests and does nothing else.",
    path: BlockPath::Legacy,
    facts: Facts { without_merge_hash: &[0], ..Facts::USUAL },
    generations: &[
        Generation {
            index: 0,
            name: "2.6.18",
            first: KernelVersion(2, 6, 10),
            last: Some(KernelVersion(2, 6, 18)),
            summary: "Merges only through the one-entry cache.",
        },
        Generation {
            index: 1,
            name: "2.6.19",
            first: KernelVersion(2, 6, 19),
            last: Some(KernelVersion(4, 20, 0)),
            summary: "Back merges also through the elevator-wide hash.",
        },
    ],
    tunables: &[],
    build: &build,
};

struct Noop {
    fifo: List<Fifo>,
    hash: bool,
}

fn build(args: &BuildArgs<'_>) -> Box<dyn Scheduler> {
    Box::new(Noop { fifo: List::default(), hash: args.generation > 0 })
}

impl Scheduler for Noop {
    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn merging(&self) -> Merging {
        Merging::Elevator { hash: self.hash }
    }

    fn merged(&mut self, _ctx: &mut Ctx<'_>, _req: ReqId, _kind: MergeKind, _old: Sector) {}

    fn absorbed(&mut self, ctx: &mut Ctx<'_>, _into: ReqId, gone: ReqId) {
        self.fifo.remove(ctx.reqs, gone);
    }

    fn next_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.fifo.next(ctx.reqs, req)
    }

    fn prev_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.fifo.prev(ctx.reqs, req)
    }

    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        match at {
            Position::Sort => self.fifo.push_back(ctx.reqs, req),
            Position::Head => self.fifo.push_front(ctx.reqs, req),
        }
    }

    fn has_work(&self) -> bool {
        !self.fifo.is_empty()
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, _hctx: u16) -> Dispatch {
        match self.fifo.pop_front(ctx.reqs) {
            Some(id) => {
                ctx.why(|_, _| "oldest request".into());
                Dispatch::Request(id)
            }
            None => Dispatch::Empty,
        }
    }

    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        self.fifo.pop_front(ctx.reqs)
    }

    fn set_tunable(&mut self, _ctx: &mut Ctx<'_>, _name: &str, _value: i64) {}

    fn tunable(&self, _name: &str) -> Option<i64> {
        None
    }
}
