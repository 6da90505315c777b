//! From the bios of a run to I/Os of a trace, with the decisions of the scheduler where they were asked for.

use iosched_block::{Keep, Stack, Taped, Timeline, TraceEvent};
use iosched_experiment::record::Seen;
use iosched_trace::{Io, Name};
use iosched_types::{Bytes, Flags, Nanos, SECTOR, TaskId};

/// What a recorder keeps of a bio's flags.
const KEPT: Flags =
    Flags(Flags::SYNC.0 | Flags::META.0 | Flags::RAHEAD.0 | Flags::FUA.0 | Flags::PREFLUSH.0);

/// What was recorded of a stack from `start` on. `who` has pid and name of a task.
pub(crate) fn seen(
    (stack, tl): (&mut Stack, &Timeline),
    (keep, start): (Keep, Nanos),
    who: impl Fn(TaskId) -> (u32, String),
) -> Box<Seen> {
    let reel = stack.take_tape();
    let mut out = Seen { left_out: reel.left_out, waits: reel.waits, start, ..Seen::default() };
    if let Keep::Window { from, to, .. } = keep {
        out.decisions = decisions(stack, tl, from, to);
    }
    let tasks = reel.bios.iter().map(|b| b.task).chain(out.waits.of.keys().map(|k| k.1));
    let tasks = tasks.max().map_or(0, |most| most + 1);
    out.who = (0..tasks).map(&who).collect();
    let mut known: Vec<Option<Name>> = vec![None; tasks as usize];
    for bio in &reel.bios {
        let (pid, name) = &out.who[bio.task as usize];
        let task = *known[bio.task as usize].get_or_insert_with(|| {
            out.tasks.push(name.clone());
            Name(out.tasks.len() as u32)
        });
        out.ios.push(io(bio, start, *pid, task));
    }
    Box::new(out)
}

/// The decisions of each disk in a window, with the tasks that the host knows.
fn decisions(stack: &mut Stack, tl: &Timeline, from: Nanos, to: Nanos) -> Vec<Vec<TraceEvent>> {
    let mut all = stack.take_traces(tl);
    let above = |t: TaskId| stack.task_above(t);
    for trace in &mut all {
        trace.events.retain_mut(|e| match e {
            TraceEvent::Dispatch { issue, .. } => {
                issue.task = above(issue.task).unwrap_or(TaskId::MAX);
                (from..to).contains(&issue.t)
            }
            TraceEvent::Idle { from: began, to: ended, task, .. } => {
                *task = task.and_then(above);
                began < ended && *began < to && *ended > from
            }
            TraceEvent::Switch { .. } => false,
        });
    }
    all.into_iter().map(|t| t.events).collect()
}

fn io(bio: &Taped, start: Nanos, pid: u32, task: Name) -> Io {
    let since = |t: Nanos| t.saturating_sub(start);
    let (offset, len) = (bio.sector * SECTOR, Bytes::from(bio.sectors) * SECTOR);
    Io {
        issued: bio.issued.map(since),
        done: bio.done.map(since),
        flags: Flags(bio.flags.0 & KEPT.0),
        pid,
        task,
        prio: bio.prio,
        cpu: bio.cpu,
        ..Io::new(since(bio.queued), bio.op, Name(0), offset, len)
    }
}
