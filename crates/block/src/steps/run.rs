//! The kernel's deferred work.

use iosched_types::units::SEC;

use crate::core::Core;
use crate::path::Path;
use crate::timeline::{Event, QueueEvent, Timeline};

/// Runs the queue if a run was asked for.
#[inline(always)]
pub(crate) fn deferred<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline) {
    if wanted(core) {
        now(core, path, tl);
    }
}

/// Whether there is a reason to run.
#[inline(always)]
pub(crate) fn wanted(core: &Core) -> bool {
    core.runs.any() || core.switches.any()
}

/// Runs the queue as often as it is asked for.
#[inline(never)]
pub(crate) fn now<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline) {
    while let Some(run) = core.runs.next() {
        if !core.manual {
            path.run(core, tl, run);
        }
    }
    if core.switches.any() {
        try_end_switch::<P>(core, tl);
    }
}

/// Ends the switch once the old scheduler has nothing left to do.
#[cold]
fn try_end_switch<P: Path>(core: &mut Core, tl: &mut Timeline) {
    if P::drained(core) && core.switches.may_end() {
        let grace = P::GRACE_TICKS * SEC / u64::from(core.sched.facts().hz.max(1));
        tl.events.push(tl.now + grace, Event::Queue(core.disk, QueueEvent::Switch));
    }
}
