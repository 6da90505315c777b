//! Virtual time that passes only where fio or the kernel looks at the clock, a nanosecond a look.
//!
//! The reference measurements of `data/truth` and `data/truth-random` were made in such a time. Nanoseconds are no load,
//! but they decide what comes first: which of two processes, which of two commands, and whether fio sees a completion at
//! this look or at the next. All figures are from traces of Linux 6.12 and fio 3.33 on a disk of 100 µs
//! (`docs/fidelity-fio.md`).

use iosched_block::{CpuModel, KernelProfile};
use iosched_schedulers::BlockPath;
use iosched_types::{Nanos, TaskId};

use crate::machine::Machine;

/// How long a process looks at the clock for each thing it does, and how far apart interrupts are.
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    /// A process before it notes when it began.
    pub(crate) begin: Nanos,
    /// An I/O in a call of its own.
    pub(crate) io: Nanos,
    /// An I/O of a synchronous engine.
    pub(crate) sync_io: Nanos,
    /// A discard, whichever engine asks for it: a call that waits, with a plug.
    pub(crate) discard: Nanos,
    /// An I/O of a batch, before the call for all of them.
    pub(crate) collected: Nanos,
    /// That call. The kernel's own look at a plugged request is the block layer's.
    pub(crate) call: Nanos,
    /// One that a thread of the C library or of the kernel hands over.
    pub(crate) thread_io: Nanos,
    /// From an I/O to a pause.
    pub(crate) pause: Nanos,
    /// A timer's interrupt is set at least this far ahead, whatever is due before. The reference device is a timer.
    pub(crate) apart: Nanos,
}

impl Looks {
    /// What a profile asks for; `None` where time does not pass in this way. In the older measurements, those of
    /// `data/truth`, processes `start_together`, and interrupts come as they are due. In the later ones each process is
    /// a microsecond behind the one before. A kernel that still has the single-queue path looks less often, and its
    /// multi-queue path once more than the other; its processes start together. 7.1, which keeps a plug's clock, looks once less
    /// for each request.
    #[must_use]
    pub fn new(kernel: &KernelProfile, path: BlockPath, start_together: bool) -> Option<Looks> {
        let less = u64::from(kernel.plug.keeps_clock);
        let looks = Looks {
            begin: if start_together { 1 } else { 1001 },
            io: 6 - less,
            sync_io: 7 - less,
            discard: 7,
            collected: 3,
            call: 1,
            thread_io: 2,
            pause: 3,
            apart: if start_together { 0 } else { 501 },
        };
        let older = || {
            let io = if path == BlockPath::Legacy { 4 } else { 5 };
            Looks { begin: 2, io, sync_io: io, discard: io, call: 3, ..looks }
        };
        let looks = if kernel.has_path(BlockPath::Legacy) { older() } else { looks };
        (kernel.cpu.model == CpuModel::Looks).then_some(looks)
    }
}

/// From the start of the first process of a run to its first I/O, where only looks at the clock take time.
pub const FIRST_LOOKS: Nanos = 1532;

impl Machine {
    /// A process begins. The first of a run looks at the clock after it has begun, the others before. Those that stand back
    /// because they are nice have all done what takes a microsecond when the first of them begins.
    #[cold]
    pub(crate) fn first_looks(&mut self, t: TaskId) {
        if !self.tasks[t as usize].job.is_new() {
            return;
        }
        if std::mem::replace(&mut self.begun, true) {
            let spec = self.tasks[t as usize].job.spec();
            let behind = spec.nice > 0 && !spec.engine.is_sync();
            self.look(|l| if behind { 2 } else { l.begin });
        } else {
            self.ahead = FIRST_LOOKS;
        }
    }

    /// The clock goes on while a process runs.
    #[inline(always)]
    pub(crate) fn look(&mut self, cost: impl Fn(&Looks) -> Nanos) {
        if let Some(looks) = &self.looks {
            let first = std::mem::take(&mut self.ahead);
            self.tl.now += cost(looks).max(first);
        }
    }
}
