//! From the bios of a run to I/Os of a trace.

use iosched_block::{Stack, Taped};
use iosched_experiment::record::Seen;
use iosched_trace::{Io, Name};
use iosched_types::{Bytes, Flags, Nanos, SECTOR, TaskId};

/// What a recorder keeps of a bio's flags.
const KEPT: Flags =
    Flags(Flags::SYNC.0 | Flags::META.0 | Flags::RAHEAD.0 | Flags::FUA.0 | Flags::PREFLUSH.0);

/// The bios of a stack that was recorded from `start` on. `who` has pid and name of a task.
pub(crate) fn seen(
    stack: &mut Stack,
    start: Nanos,
    who: impl Fn(TaskId) -> (u32, String),
) -> Option<Box<Seen>> {
    let (bios, left_out) = stack.take_tape();
    let mut out = Seen { left_out, ..Seen::default() };
    let mut known: Vec<Option<(u32, Name)>> = Vec::new();
    for bio in &bios {
        let at = bio.task as usize;
        if known.len() <= at {
            known.resize(at + 1, None);
        }
        let (pid, task) = *known[at].get_or_insert_with(|| {
            let (pid, name) = who(bio.task);
            out.tasks.push(name);
            (pid, Name(out.tasks.len() as u32))
        });
        out.ios.push(io(bio, start, pid, task));
    }
    Some(Box::new(out))
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
