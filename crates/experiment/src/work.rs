//! What a trial measures.
//!
//! A match on [`Work`] names all its kinds, so that another kind shows every place that needs an answer; the test
//! `types/tests/house.rs` refuses `_ =>`. Most places ask the methods here and match nothing.

use iosched_types::Op;
use iosched_workloads::fio::iolog::IoLog;
use iosched_workloads::fio::{DEFAULT_SEED, JobSet, JobSpec, on_files};

use crate::load::{Load, ProgramWork, SyscallLog};
use crate::replay::TraceWork;
use crate::startup::Startup;

/// What a trial measures.
#[derive(Clone, Debug)]
pub enum Work {
    /// fio jobs.
    Fio(FioWork),
    /// A program over system calls.
    Program(ProgramWork),
    /// A log of system calls, played again.
    Calls(SyscallLog),
    /// The start of a command beside readers and writers.
    Startup(Startup),
    /// A block trace, replayed.
    Trace(TraceWork),
}

/// fio jobs.
#[derive(Clone, Debug, Default)]
pub struct FioWork {
    /// The jobs of the processes.
    pub set: JobSet,
    /// Which jobs take their random seed from the repetition; empty: none does.
    pub reseeded: Vec<bool>,
}

impl FioWork {
    /// Jobs of which those take their random seed from the repetition that set none of their own.
    #[must_use]
    pub fn repeated(set: JobSet) -> FioWork {
        let reseeded = set.jobs.iter().map(|j| j.randseed.is_none()).collect();
        FioWork { set, reseeded }
    }

    /// Gives the jobs the seed of a repetition.
    fn reseed(&mut self, seed: u64, several: bool) {
        for (job, _) in self.set.jobs.iter_mut().zip(&self.reseeded).filter(|(_, own)| **own) {
            // A single run with fio's own seed is what fio does without one. A seed that is named changes more than
            // the numbers: clones and passes of a repeatable job follow it.
            let as_fio = !several && seed == DEFAULT_SEED;
            job.randseed = (!as_fio).then_some(seed);
            job.randrepeat &= !several;
        }
    }

    /// Whether the jobs work on files where there is a file system for them: a job [needs it](on_files::needed),
    /// none names a device, and none replays a log, whose files a live run maps to one target.
    fn on_files(&self) -> bool {
        let jobs = &self.set.jobs;
        on_files::needed(&self.set)
            && !jobs.iter().any(|j| on_files::on_device(j) || j.replay.is_some())
    }
}

impl From<JobSet> for Work {
    /// Jobs that run in every repetition with the seeds that they have.
    fn from(set: JobSet) -> Work {
        Work::Fio(FioWork { set, reseeded: Vec::new() })
    }
}

impl From<ProgramWork> for Work {
    fn from(program: ProgramWork) -> Work {
        Work::Program(program)
    }
}

impl From<TraceWork> for Work {
    fn from(trace: TraceWork) -> Work {
        Work::Trace(trace)
    }
}

impl From<SyscallLog> for Work {
    fn from(log: SyscallLog) -> Work {
        Work::Calls(log)
    }
}

/// Where work lies on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// The bare disk, or regions of one large file.
    Disk,
    /// Files where there is a file system for them, else as [`Site::Disk`].
    FilesOfJobs,
    /// Files of a file system.
    Files,
    /// A small root of its own on a file system.
    Root,
}

static NO_JOBS: JobSet = JobSet { jobs: Vec::new(), warnings: Vec::new() };

impl Work {
    /// The fio jobs; other work has none.
    #[must_use]
    pub fn jobs(&self) -> &JobSet {
        match self {
            Work::Fio(fio) => &fio.set,
            Work::Program(_) | Work::Calls(_) | Work::Startup(_) | Work::Trace(_) => &NO_JOBS,
        }
    }

    /// The fio jobs, to change them.
    pub fn jobs_mut(&mut self) -> Option<&mut JobSet> {
        match self {
            Work::Fio(fio) => Some(&mut fio.set),
            Work::Program(_) | Work::Calls(_) | Work::Startup(_) | Work::Trace(_) => None,
        }
    }

    /// What makes system calls of its own: a program or a log.
    #[must_use]
    pub fn load(&self) -> Option<&dyn Load> {
        match self {
            Work::Program(program) => Some(program),
            Work::Calls(log) => Some(log),
            Work::Fio(_) | Work::Startup(_) | Work::Trace(_) => None,
        }
    }

    /// The start of a command.
    #[must_use]
    pub fn startup(&self) -> Option<&Startup> {
        match self {
            Work::Startup(startup) => Some(startup),
            Work::Fio(_) | Work::Program(_) | Work::Calls(_) | Work::Trace(_) => None,
        }
    }

    /// A block trace.
    #[must_use]
    pub fn trace(&self) -> Option<&TraceWork> {
        match self {
            Work::Trace(trace) => Some(trace),
            Work::Fio(_) | Work::Program(_) | Work::Calls(_) | Work::Startup(_) => None,
        }
    }

    /// Whether a live run of it needs fio: for its jobs, or for the load beside a start.
    #[must_use]
    pub fn needs_fio(&self) -> bool {
        match self {
            Work::Fio(_) | Work::Startup(_) => true,
            Work::Program(_) | Work::Calls(_) | Work::Trace(_) => false,
        }
    }

    /// Whether it changes a target that is a disk or a file. Work of other kinds than fio jobs and traces has no such
    /// target: it makes files of its own.
    #[must_use]
    pub fn writes(&self) -> bool {
        let changes =
            |log: &IoLog| log.entries.iter().any(|e| matches!(e.op, Op::Write | Op::Discard));
        // Only a job that writes to zones resets them.
        let writes = |j: &JobSpec| match &j.replay {
            Some(log) => changes(log),
            None => j.pattern.write || j.pattern.trim,
        };
        match self {
            Work::Fio(fio) => fio.set.jobs.iter().any(writes),
            Work::Trace(trace) => trace.recording.writes(),
            Work::Program(_) | Work::Calls(_) | Work::Startup(_) => false,
        }
    }

    /// Where it lies on a disk.
    #[must_use]
    pub fn site(&self) -> Site {
        match self {
            Work::Fio(fio) if fio.on_files() => Site::FilesOfJobs,
            Work::Fio(_) | Work::Trace(_) => Site::Disk,
            Work::Program(_) | Work::Calls(_) => Site::Files,
            Work::Startup(_) => Site::Root,
        }
    }

    /// The same work in a repetition with this seed, `after` later than the first.
    pub(crate) fn reseed(&mut self, seed: u64, after: u64, several: bool) {
        match self {
            Work::Fio(fio) => fio.reseed(seed, several),
            // The first with the default seed is the program as it comes.
            Work::Program(p) if after != 0 => p.params = p.params.repeated(after),
            Work::Program(_) | Work::Calls(_) | Work::Startup(_) | Work::Trace(_) => {}
        }
    }
}
