//! Counters, and the words CFQ gives its reasons in.

use crate::api::Ctx;

use super::core::Cfq;
use super::params::Tick;
use super::queue::Queue;
use super::{Class, Qi};

/// Why a queue lost the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The slice was over.
    SliceUsed = 0,
    /// Another queue was more urgent.
    Preempted = 1,
    /// It sent its share of asynchronous requests.
    AsyncLimit = 2,
    /// Nothing came during the wait.
    IdleTimer = 3,
    /// It ran dry and is not worth waiting for.
    Dry = 4,
    /// A close queue goes on where it stopped.
    Cooperator = 5,
    /// The extra wait for the only queue of its group paid off.
    WaitBusy = 6,
    /// Idle class: one request at a time.
    IdleClass = 7,
    /// The process exited.
    Exit = 8,
}

/// Names of the expiration counters, by cause.
const CAUSES: [&str; 9] = [
    "expired_slice_used",
    "expired_preempted",
    "expired_async_limit",
    "expired_idle_timer",
    "expired_dry",
    "expired_cooperator",
    "expired_wait_busy",
    "expired_idle_class",
    "expired_exit",
];

/// What happened so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) slices: u64,
    pub(super) expired: [u64; 9],
    pub(super) idles: u64,
    pub(super) group_idles: u64,
    pub(super) fifo_expired: u64,
    pub(super) merges: u64,
    pub(super) splits: u64,
}

impl Counters {
    pub(super) fn list(&self) -> Vec<(&'static str, u64)> {
        let mut all = vec![
            ("slices", self.slices),
            ("preemptions", self.expired[Cause::Preempted as usize]),
            ("idles", self.idles),
            ("group_idles", self.group_idles),
            ("fifo_expired", self.fifo_expired),
            ("queue_merges", self.merges),
            ("queue_splits", self.splits),
        ];
        all.extend(CAUSES.iter().copied().zip(self.expired));
        all
    }
}

/// `pid 3`, `async be/4`, `pid 3 (shared)`.
pub(super) fn queue_name(pid: u32, sync: bool, class: Class, level: u8, shared: bool) -> String {
    if sync {
        return format!("pid {pid}{}", if shared { " (shared)" } else { "" });
    }
    match class {
        Class::Rt => format!("async rt/{level}"),
        Class::Be => format!("async be/{level}"),
        Class::Idle => "async idle".into(),
    }
}

impl Cfq {
    /// The queue for people.
    pub(super) fn name_in(&self, ctx: &Ctx<'_>, qi: Qi) -> String {
        let q = &self.queues[qi as usize];
        queue_name(ctx.queue.pid(q.owner), q.sync, q.class, q.level, q.coop)
    }

    /// Notes why the active queue loses the disk.
    pub(super) fn why_expired(&self, ctx: &mut Ctx<'_>, now: Tick, cause: Cause) {
        if ctx.out.why.is_none() {
            return;
        }
        let name = self.name_in(ctx, self.active);
        let text = self.cause_text(&self.queues[self.active as usize], now, cause);
        ctx.why(|_, _| format!("{text} ({name})"));
    }

    fn cause_text(&self, q: &Queue, now: Tick, cause: Cause) -> String {
        let show = |t: Tick| self.p.clock.show(t);
        match cause {
            Cause::SliceUsed => {
                let (used, slice) = (now - q.slice_start, q.slice_end - q.slice_start);
                let sign = if used > slice { ">" } else { "=" };
                format!("slice expired: {} {sign} {}", show(used), show(slice))
            }
            Cause::Preempted => "slice cut short by preemption".into(),
            Cause::AsyncLimit => {
                let max = self.p.max_async(q.level);
                format!("async slice: {} of {max} dispatched", q.slice_dispatch)
            }
            Cause::IdleTimer => "nothing came while idling".into(),
            Cause::Dry if !q.sync => "asynchronous queue ran dry".into(),
            Cause::Dry => "ran dry, no idling".into(),
            Cause::Cooperator => "gives way to a close queue".into(),
            Cause::WaitBusy => "new requests came in the group's extra wait".into(),
            Cause::IdleClass => "idle class: one request at a time".into(),
            Cause::Exit => "its process exited".into(),
        }
    }
}
