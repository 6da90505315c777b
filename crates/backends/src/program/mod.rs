//! Programs with real system calls: the same texts that the simulator runs, a thread a task, in a directory of ours.
//!
//! A process is a group of threads with a table of descriptors of its own. So schedulers see each task as a submitter of
//! its own, as they see real processes, and nothing is left behind when the run ends: no process, no signal handler.
//! Names are looked up below the directory only.
//!
//! Files, pipes, maps and asynchronous I/O are the kernel's. Barriers, shared counters, waiting for children and the
//! signal to stop are kept here.

mod calls;
mod descriptors;
mod files;
mod moves;
mod task;
mod waits;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use iosched_host::HostError;
use iosched_host::programs::Measured;
use iosched_syscalls::Birth;
use iosched_types::Nanos;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustix::event::{EventfdFlags, eventfd};

use crate::error::{Error, Result};
use descriptors::Table;
use task::Task;
use waits::State;

/// How a phase of a program is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Sleeps and computations take no time: files are made before the measured part.
    pub instant: bool,
    /// Writes write noise, because some disks are faster on zeros.
    pub noise: bool,
}

/// How often the runner looks whether to go on.
const LOOK: Duration = Duration::from_millis(20);
/// All tasks wait for each other, and nothing has changed for so long: they will wait for ever.
const STUCK: Duration = Duration::from_secs(5);

/// What the tasks of a run share.
struct Shared {
    /// All names are below it.
    dir: OwnedFd,
    how: How,
    began: Instant,
    /// The run is to end: every call that waits returns, and tasks end at their next call.
    stop: AtomicBool,
    /// The program has made a symbolic link. Held while a name is on its way.
    linked: RwLock<bool>,
    /// Can be read once the run is to end; sleepers at pipes look at it.
    stopped: OwnedFd,
    state: Mutex<State>,
}

impl Shared {
    /// Nothing here panics while it holds the lock, so the state is whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Nanos {
        Nanos::try_from(self.began.elapsed().as_nanos()).unwrap_or(Nanos::MAX)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Ends the run.
    fn stop(&self) {
        self.stop.store(true, Relaxed);
        // Writing to it fails only when it is full of unread writes.
        let _ = rustix::io::write(&self.stopped, &1u64.to_ne_bytes());
        self.state().wake_all();
    }
}

/// Runs a program, with all that it starts, until the last task has ended. Asks `check` every few milliseconds whether
/// to go on.
///
/// # Errors
/// What `check` says; [`Error::Trial`] with the first failure of a task, or when all wait for each other.
pub fn run(
    dir: &File,
    how: How,
    birth: Birth,
    check: &mut dyn FnMut() -> Result<()>,
) -> Result<Measured> {
    let io = |e: std::io::Error| Error::io("running a program in", "its directory", e);
    many_files();
    let stopped = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let shared = Arc::new(Shared {
        dir: dir.try_clone().map_err(io)?.into(),
        how,
        began: Instant::now(),
        stop: AtomicBool::new(false),
        linked: RwLock::new(false),
        stopped: stopped.map_err(|e| io(e.into()))?,
        state: Mutex::default(),
    });
    let table = Arc::new(Mutex::new(Table::default()));
    if let Err(errno) = Task::start(&shared, table, None, birth) {
        let message = format!("no thread could be started for the program: {errno}");
        return Err(Error::Trial { message });
    }
    let result = until_all_end(&shared, check);
    let elapsed = shared.now();
    let mut state = shared.state();
    let mut measured = std::mem::take(&mut state.measured);
    measured.elapsed = elapsed;
    result?;
    match measured.failed {
        Some((task, errno, call)) => Err(failed(&HostError::Program { task, errno, call })),
        None => Ok(measured),
    }
}

/// A task that fails ends the run, as nobody needs the rest of it.
fn until_all_end(shared: &Shared, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let mut result = Ok(());
    let mut changed = (0, Instant::now());
    loop {
        let state = shared.state();
        if state.alive == 0 {
            return result;
        }
        let woken = state.ended.clone();
        let state = woken.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        let (over, all_wait, changes) = (state.has_failed(), state.all_wait(), state.changes);
        let who = if all_wait { state.waiting() } else { String::new() };
        let waiting = state.alive;
        drop(state);
        if shared.is_stopped() {
            continue;
        }
        if !all_wait || changed.0 != changes {
            changed = (changes, Instant::now());
        }
        if changed.1.elapsed() > STUCK {
            let at_ms = shared.now() as f64 / 1e6;
            result = Err(failed(&HostError::Deadlock { at_ms, waiting, who }));
        }
        result = result.and_then(|()| check());
        if result.is_err() || over {
            shared.stop();
        }
    }
}

fn failed(e: &HostError) -> Error {
    Error::Trial { message: e.to_string() }
}

/// All tasks together need many descriptors.
fn many_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // With fewer a program may end with EMFILE, which it then says.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
