//! Programs on the host: tasks that make system calls, on one clock with a queue.
//!
//! A task is resumed with the answer of its last call and names the next. A call that needs the disk submits its bios under
//! the task's own identity and sleeps until the last is done. Without a CPU model calls take no time of their own; with one
//! each call takes what the kernel profile says, on the core that the task lives on.
//!
//! Order within one instant is that of the machine for jobs: the device, deferred runs of the queue, then tasks in the
//! order in which they were woken.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::rc::Rc;

use iosched_block::{Issue, Stack, Timeline};
use iosched_schedulers::TaskInfo;
use iosched_syscalls::{Birth, Completion, Errno};
use iosched_types::{CpuTime, Nanos};

use crate::cpu::{Cores, Costs};
use crate::error::HostError;
use iosched_vfs::cache::readahead::Stream;
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::kernel::read::Open;

use crate::fs::{Counts, Files, Ino, Mount, Segment};
use crate::player::Beside;
use crate::samples::Thin;

mod advice;
mod amounts;
mod asynchronous;
mod bios;
mod calls;
mod descriptors;
mod events;
mod io;
mod measured;
mod mounted;
mod paths;
mod pipes;
mod ring;
mod seen;
mod task;
mod tasks;
mod waits;

pub use amounts::Amounts;
pub use bios::{SeenBio, Submitter};
pub use measured::{Mark, Measured, Operation};
pub use seen::{Cause, Happening, NotedBio, Seen, WaitsFor, What, Who};
pub use task::{Begun, TaskStats};

use asynchronous::Async;
use descriptors::{Map, OpenFile, Table};
use io::Owner;
use mounted::Groups;
use paths::Actor;
use pipes::Pipe;
use ring::Workers;
use seen::Notes;
use task::{Task, Tid};

/// Calls at one instant after which the simulation counts as stuck.
const MOST_AT_ONCE: u64 = 200_000_000;
/// Calls between two looks at whether to go on.
const LOOK: u64 = 1 << 16;
/// Points of the dispatch picture.
const MOST_DISPATCHES: usize = 4096;

/// Who a task is, where a load says so.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// What schedulers are told: name, I/O priority, nice value, control group.
    pub info: TaskInfo,
    /// CPUs on which it may run; all, where the list is empty.
    pub cpus: Vec<u16>,
}

/// Programs, a queue and a file system on one clock.
pub struct Programs {
    /// The queue.
    pub queue: Stack,
    /// The clock.
    pub tl: Timeline,
    fs: Files,
    actors: Vec<Actor>,
    /// The worker that ends writes of XFS's log has something to do.
    log_ends: bool,
    /// Open files of a mounted file system: size and read-ahead.
    opens: Rc<RefCell<Vec<Open>>>,
    /// Bios of paths: of how many pieces each still consists.
    pieces: Vec<u32>,
    groups: Groups,
    /// Groups that were done before their call had returned.
    early: BTreeSet<u32>,
    /// Threads that work for rings.
    workers: Workers,
    async_results: Rc<RefCell<Vec<(Tid, Completion)>>>,
    tasks: Vec<Task>,
    ready: VecDeque<Tid>,
    alive: usize,
    tables: Vec<Table>,
    free_tables: Vec<u32>,
    files: Vec<OpenFile>,
    free_files: Vec<u32>,
    maps: Vec<Option<Map>>,
    /// Their read-ahead.
    map_streams: Rc<RefCell<BTreeMap<u32, Stream>>>,
    pipes: Vec<Pipe>,
    barriers: BTreeMap<u32, VecDeque<Tid>>,
    counters: BTreeMap<u32, i64>,
    /// Who waits until nothing of a file is on its way to the disk any more.
    under_way: BTreeMap<Ino, (u32, VecDeque<Tid>)>,
    owners: Vec<Owner>,
    free_owners: Vec<u32>,
    asyncs: Vec<Async>,
    free_asyncs: Vec<u32>,
    /// Asynchronous I/Os of tasks that are not done.
    asyncs_begun: usize,
    /// Notes are the host's own, not looks of the program at the clock.
    notes_are_free: bool,
    /// Transactions of the journal that were committed while files were prepared.
    prepared_commits: u64,
    /// Names and priorities of the first tasks, by their numbers.
    identities: Vec<Identity>,
    /// I/O contexts that a task which has ended had.
    free_contexts: Vec<u32>,
    /// The task that an I/O context belongs to.
    contexts: Vec<Tid>,
    segments: Vec<Segment>,
    cores: Option<Cores>,
    costs: Option<Costs>,
    cpus: u16,
    /// Nothing takes time: what is there before the measured part is made so.
    instant: bool,
    calls: u64,
    at_once: (Nanos, u64),
    most_at_once: u64,
    began: Nanos,
    measured: Measured,
    /// A core of which a piece of work has ended.
    core_ended: Option<u16>,
    dispatches: Option<Thin<Issue>>,
    /// Bios that are noted, and how many at most.
    bios: Option<(usize, Vec<SeenBio>)>,
    /// What happens, where somebody explains it.
    notes: Option<Box<Notes>>,
    /// A recording that is played beside the tasks.
    pub beside: Beside,
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Programs({} tasks, t={})", self.tasks.len(), self.tl.now)
    }
}

/// Whether to go on, asked with the virtual time.
pub type GoOn<'a> = &'a mut dyn FnMut(Nanos) -> ControlFlow<()>;

impl Programs {
    /// A host without tasks.
    #[must_use]
    pub fn new(queue: impl Into<Stack>, fs: Files, costs: Option<Costs>) -> Programs {
        let queue = queue.into();
        Programs {
            cpus: queue.facts().cpus.max(1),
            queue,
            tl: Timeline::default(),
            fs,
            actors: Vec::new(),
            log_ends: false,
            opens: Rc::default(),
            pieces: Vec::new(),
            groups: Groups::new(),
            early: BTreeSet::new(),
            async_results: Rc::default(),
            workers: Workers::default(),
            tasks: Vec::new(),
            ready: VecDeque::new(),
            alive: 0,
            tables: Vec::new(),
            free_tables: Vec::new(),
            files: Vec::new(),
            free_files: Vec::new(),
            maps: Vec::new(),
            map_streams: Rc::default(),
            pipes: Vec::new(),
            barriers: BTreeMap::new(),
            counters: BTreeMap::new(),
            under_way: BTreeMap::new(),
            owners: Vec::new(),
            free_owners: Vec::new(),
            asyncs: Vec::new(),
            free_asyncs: Vec::new(),
            asyncs_begun: 0,
            notes_are_free: false,
            prepared_commits: 0,
            identities: Vec::new(),
            free_contexts: Vec::new(),
            contexts: Vec::new(),
            segments: Vec::new(),
            cores: None,
            costs,
            instant: false,
            calls: 0,
            at_once: (0, 0),
            most_at_once: MOST_AT_ONCE,
            began: 0,
            measured: Measured::default(),
            core_ended: None,
            dispatches: None,
            bios: None,
            notes: None,
            beside: Beside::default(),
        }
    }

    /// Calls at one instant after which a program counts as one that never waits.
    pub fn most_at_once(&mut self, calls: u64) {
        self.most_at_once = calls;
    }

    /// Gives the first tasks names, I/O priorities, nice values and control groups, in the order of their births.
    pub fn identify(&mut self, tasks: Vec<Identity>) {
        self.identities = tasks;
    }

    /// The program does not look at the clock for what it notes, as with a log whose calls are noted.
    pub fn notes_are_free(&mut self) {
        self.notes_are_free = true;
    }

    /// Collects the way of the head.
    pub fn collect_dispatches(&mut self) {
        self.queue.out_mut().issues = Some(Vec::new());
        self.dispatches = Some(Thin::new(MOST_DISPATCHES));
    }

    /// Runs what makes the files of a program, in no time; then everything is written and nothing is in memory.
    ///
    /// # Errors
    /// What a task failed with, and as [`Programs::run`].
    pub fn prepare(&mut self, birth: Birth, go_on: GoOn<'_>) -> Result<(), HostError> {
        self.instant = true;
        let cores = self.cores.take();
        if let Some(mount) = self.fs.mount() {
            mount.unlimited(true);
        }
        self.start_threads();
        let mut result = self.run_tasks(birth, &mut *go_on);
        if result.is_ok() {
            result = self.until_all_end(&mut *go_on);
        }
        self.all_written(go_on)?;
        self.prepared_commits = self.fs.mount().map_or(0, |m| m.volume().commits());
        self.cores = cores;
        self.instant = false;
        result
    }

    /// Everything is on the disk, and nothing is in memory.
    fn all_written(&mut self, go_on: GoOn<'_>) -> Result<(), HostError> {
        let failed = |errno| HostError::Program { task: 0, errno, call: "sync" };
        if let Some(mount) = self.fs.mount().cloned() {
            // Journaled data may be in the log alone when a first sync ends.
            for _ in 0..2 {
                if let Some(answer) = self.take_path(0, mount.sync(paths::actor_of(0))) {
                    answer.map_err(failed)?;
                }
                self.until_all_end(&mut *go_on)?;
                if self.counts().dirty == 0 {
                    break;
                }
            }
            mount.unlimited(false);
            mount.forget(None);
            return Ok(());
        }
        let mut io = std::mem::take(&mut self.segments);
        for ino in self.fs.at_once().map_err(failed)?.dirty_files() {
            let taken = self.fs.at_once().map_err(failed)?.take_dirty(ino, 0, u64::MAX, &mut io);
            io.clear();
            taken.map_err(failed)?;
        }
        self.segments = io;
        self.fs.at_once().map_err(failed)?.drop_caches();
        Ok(())
    }

    /// Runs a program, with all that it starts, until the last task has ended and its asynchronous I/O is done. What it
    /// left in memory, and what of that is on its way to the disk, is not waited for: [`Programs::until_all_end`].
    ///
    /// # Errors
    /// [`HostError::Deadlock`] when all wait for each other, [`HostError::Program`] with the first failure of a task,
    /// [`HostError::NoProgress`] for one that never waits, [`HostError::Stopped`].
    pub fn run(&mut self, birth: Birth, go_on: GoOn<'_>) -> Result<(), HostError> {
        self.measured = Measured::default();
        self.measured.before = self.fs.names().counts();
        if let Some(costs) = self.costs.clone() {
            self.cores = Some(Cores::new(costs, self.cpus, Vec::new()));
            self.seat_threads();
        }
        self.began = self.tl.now;
        self.beside.begin(self.tl.now);
        if self.actors.is_empty() {
            self.start_threads();
        }
        let result = self.run_tasks(birth, go_on);
        self.measured.elapsed = self.tl.now - self.began;
        self.measured.threads_cpu = self.threads_time();
        self.measured.after = self.fs.names().counts();
        result
    }

    fn run_tasks(&mut self, birth: Birth, go_on: GoOn<'_>) -> Result<(), HostError> {
        self.tasks.clear();
        self.workers = Workers::default();
        self.tables = vec![Table::new()];
        self.free_tables.clear();
        self.barriers.clear();
        self.counters.clear();
        self.measured.tasks.clear();
        self.born(birth, None, 0);
        let ended = self.until_tasks_end(go_on);
        match (&ended, self.measured.failed) {
            // Others may wait for ever for one that has failed: that is not the reason.
            (Ok(()) | Err(HostError::Deadlock { .. }), Some((task, errno, call))) => {
                Err(HostError::Program { task, errno, call })
            }
            _ => ended,
        }
    }

    /// What the run came to.
    #[must_use]
    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    /// The way of the head, if it was collected.
    #[must_use]
    pub fn take_dispatches(&mut self) -> Vec<Issue> {
        self.dispatches.take().map_or_else(Vec::new, Thin::into_vec)
    }

    /// Core time of the kernel's threads so far.
    fn threads_time(&self) -> CpuTime {
        let mut all = CpuTime::default();
        let cores = self.cores.iter().flat_map(|c| c.times());
        cores.take(paths::THREADS as usize).for_each(|t| all.add(t));
        all
    }

    /// Where the dirty bytes went since the file system was made.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.fs.names().counts()
    }

    /// Transactions of the journal that the run committed.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.fs.mount().map_or(0, |m| m.volume().commits()) - self.prepared_commits
    }

    /// The files were made before the file system was mounted.
    pub fn mount_anew(&mut self) {
        if let Some(mount) = self.fs.mount() {
            mount.volume().mounted_anew();
            mount.restarted();
        }
    }

    /// The same, and none of its metadata is in memory.
    pub fn mount_cold(&mut self) {
        if let Some(mount) = self.fs.mount() {
            mount.volume().mounted_cold();
        }
    }

    /// What is mounted, if a file system is.
    #[must_use]
    pub fn mount(&self) -> Option<&Mount> {
        self.fs.mount()
    }

    /// A task's figures go to the others'.
    fn book(&mut self, t: Tid) {
        let cpu =
            self.cores.as_ref().and_then(|c| c.times().get(paths::seat_of(t) as usize)).copied();
        let task = &mut self.tasks[t as usize];
        let mut stats = std::mem::take(&mut task.stats);
        stats.ended = self.tl.now.saturating_sub(self.began);
        stats.cpu = cpu.unwrap_or_default();
        stats.cpu.user += task.computed;
        self.measured.end_of(t, stats);
    }

    /// The first failure of a task, for people.
    fn failed(&mut self, t: Tid, errno: Errno) {
        let call = self.tasks[t as usize].last_call;
        self.measured.failed.get_or_insert((t, errno, call));
    }
}
