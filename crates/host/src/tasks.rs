//! The tasks of a machine.

use std::collections::VecDeque;

use iosched_syscalls::Errno;
use iosched_types::{Bio, BioId, Flags, IoPrio};
use iosched_workloads::fio::process::{Job, Ring};

use crate::charged::Then;
use crate::threads::Others;

#[derive(Debug)]
pub(crate) enum State {
    /// Not started: waits for earlier jobs or its delay.
    Waiting,
    Ready,
    /// Sleeps until this many I/Os are done.
    Io(u32),
    /// Sleeps in a call until the I/O of this unit is done.
    Call(u32),
    Sleeping,
    /// Blocked in a submission.
    Blocked,
    /// Its write is done, and the call that wrote goes on: it flushes.
    Written,
    Exited,
}

/// One task of the machine.
///
/// The fields stay in this order in memory, and the first begins a cache line. Ten thousand processes at one disk are
/// visited without pattern, so a visit fetches what it needs from memory, line by line.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Task {
    pub(crate) state: State,
    pub(crate) sleep: u32,
    /// The id of the I/O of its first unit.
    pub(crate) first_io: BioId,
    pub(crate) ring: Ring,
    /// The bio it is blocked on.
    pub(crate) left: Option<Bio>,
    /// The priority on its bios.
    pub(crate) prio: IoPrio,
    pub(crate) cpu: u16,
    /// Flags of all its bios: `NOWAIT` if other threads do the waiting for it.
    pub(crate) flags: Flags,
    pub(crate) batch: bool,
    /// It has begun an I/O by itself.
    pub(crate) began: bool,
    /// The pieces of a large I/O are on their way, under a plug of their own unless there is a batch.
    pub(crate) in_pieces: bool,
    /// The call under way discards: it holds the device's lock for that, or waits for it.
    pub(crate) trims: bool,
    /// The call under way flushes when its write is done.
    pub(crate) flushes: bool,
    pub(crate) cgroup: u32,
    /// What it does when its core time is over.
    pub(crate) then: Then,
    /// Calls that took completions and were not charged to its core yet.
    pub(crate) looks: u32,
    /// Why its job failed.
    pub error: Option<Errno>,
    /// What it runs.
    pub job: Job,
    /// Who else does its I/O.
    pub(crate) others: Others,
    /// The pieces after `left`.
    pub(crate) rest: VecDeque<Bio>,
}

impl Task {
    /// A task that waits for its start.
    pub(crate) fn new(
        job: Job,
        others: Others,
        first_io: BioId,
        cpu: u16,
        of_bios: (IoPrio, u32),
    ) -> Self {
        let (prio, cgroup) = of_bios;
        let waits = !matches!(others, Others::Pool(_));
        Task {
            flags: if waits { Flags::NONE } else { Flags::NOWAIT },
            began: false,
            prio,
            cgroup,
            cpu,
            ring: Ring::with_capacity(job.units() as usize),
            first_io,
            others,
            job,
            state: State::Waiting,
            batch: false,
            sleep: 0,
            left: None,
            in_pieces: false,
            flushes: false,
            trims: false,
            error: None,
            rest: VecDeque::new(),
            then: Then::Step,
            looks: 0,
        }
    }
}

/// The CPU of the `i`-th task, by turns among the CPUs that it may use, or among all.
pub(crate) fn home(job: &Job, i: usize, cpus: u16) -> u16 {
    let allowed = &job.spec().cpus;
    if allowed.is_empty() {
        (i % usize::from(cpus)) as u16
    } else {
        allowed[i % allowed.len()] % cpus
    }
}
