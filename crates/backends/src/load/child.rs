//! Child programs that are never left behind.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::error::{Error, Result};
use crate::parse::proc_stat::parse_process;
use crate::root::SysRoot;
use crate::state::instance;
use crate::sys;

/// Where programs and their libraries are found.
const AROUND: [&str; 2] = ["PATH", "LD_LIBRARY_PATH"];

/// Keeps the user's environment from a measured program, but where programs and libraries are found. Many take settings
/// from variables (`PGOPTIONS`, `MAKEFLAGS`, `KBUILD_OUTPUT`, `GIT_INDEX_FILE`, `LD_PRELOAD`), and then the figures are those of
/// another load. Figures are read in English, with points in numbers.
pub(crate) fn on_its_own(command: &mut Command) {
    command.env_clear().env("LC_ALL", "C");
    for name in AROUND {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
}

/// A child in its own process group; dropping it kills the whole group.
#[derive(Debug)]
pub struct Load {
    child: Child,
    reaped: bool,
    /// Nothing with its mark is left.
    swept: bool,
    /// The value of [`MEMBER`] in the environment of everything that it starts.
    mark: String,
}

impl Load {
    /// Starts a program without input. It dies with the thread that started it.
    ///
    /// # Errors
    /// [`Error::NoTool`] when it is not installed, else [`Error::Tool`].
    pub fn start(command: &mut Command, package: &str) -> Result<Load> {
        let tool = command.get_program().to_string_lossy().into_owned();
        // fio's jobs leave its process group, and only fio itself can end them, which it does on SIGTERM.
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let owner = instance();
        let mark = format!("{owner}.{}", STARTED.fetch_add(1, Ordering::Relaxed));
        command.env(OWNER, owner).env(MEMBER, &mark);
        let signal = if tool == "fio" { Signal::SIGTERM } else { Signal::SIGKILL };
        let child =
            sys::dies_with_us(command.stdin(Stdio::null()), signal).spawn().map_err(|e| {
                if e.kind() == io::ErrorKind::NotFound {
                    Error::NoTool { tool: tool.clone(), package: package.into() }
                } else {
                    Error::Tool {
                        tool: tool.clone(),
                        status: "no start".into(),
                        message: e.to_string(),
                    }
                }
            })?;
        Ok(Load { child, reaped: false, swept: false, mark })
    }

    /// Process id, which is also the group's.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it prints, if that was piped; once.
    pub(crate) fn output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits at most `limit`. Asks `check` every few milliseconds whether to go on. `None` when the time is up; the
    /// child still runs then.
    ///
    /// # Errors
    /// What `check` says; the child is killed then.
    pub fn wait(
        &mut self,
        limit: Duration,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            if let Err(e) = check() {
                self.kill();
                return Err(e);
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            std::thread::sleep(pause.min(deadline - now));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait().map_err(|e| Error::Tool {
            tool: "a child".into(),
            status: "lost".into(),
            message: e.to_string(),
        })?;
        self.reaped |= status.is_some();
        // A job that fio was about to start when it was killed waits for fio for ever, and holds the disk.
        if status.is_some_and(|s| s.signal().is_some()) {
            end_marked(MEMBER, &[&self.mark]);
            self.swept = true;
        }
        Ok(status)
    }

    /// CPU ticks of the child's descendants so far. The kernel counts them as the child's own only when the child waits
    /// for them, which a killed child never does.
    #[must_use]
    pub fn descendants_ticks(&self) -> u64 {
        let root = SysRoot::default();
        let ticks = |pid: &Pid| {
            let p = parse_process(&root.get(&format!("/proc/{pid}/stat"))?)?;
            Some(p.ticks.saturating_add(p.child_ticks))
        };
        descendants(self.child.id()).iter().filter_map(ticks).sum()
    }

    /// Sends a signal to the processes that the child itself has started.
    pub(crate) fn signal_children(&self, signal: Signal) {
        if self.reaped {
            return;
        }
        for pid in children(self.child.id()) {
            // It may have ended by itself meanwhile.
            let _ = kill(pid, signal);
        }
    }

    /// Kills the child, its group and all their descendants, wherever those have moved to.
    pub fn kill(&mut self) {
        let family = if self.reaped { Vec::new() } else { descendants(self.child.id()) };
        // When the child is gone its number may be another program's by now.
        let free = || !std::path::Path::new(&format!("/proc/{}", self.child.id())).exists();
        if let Ok(group) = i32::try_from(self.child.id())
            && (!self.reaped || free())
        {
            // Any of them may be gone already.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        for pid in family {
            let _ = kill(pid, Signal::SIGKILL);
        }
        if !self.reaped {
            let _ = self.child.wait();
            self.reaped = true;
        }
        end_marked(MEMBER, &[&self.mark]);
        self.swept = true;
    }

    /// Ends what loads that have ended themselves left running, wherever that has moved to; how many processes it were.
    pub(crate) fn end_left(loads: &mut [Load]) -> usize {
        let marks: Vec<&str> = loads.iter().map(|l| &*l.mark).collect();
        let ended = end_marked(MEMBER, &marks);
        loads.iter_mut().for_each(|l| l.swept = true);
        ended
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
        } else if !self.swept {
            end_marked(MEMBER, &[&self.mark]);
        }
    }
}

/// Names the owner in the environment of every load process. Descendants inherit it.
const OWNER: &str = "IOSCHED_OWNER";

/// Names the load in the same way: an owner may have several at once.
const MEMBER: &str = "IOSCHED_LOAD";

/// Kills the rest of a dead owner's load, by its [`instance`]. A fio that is killed while it starts leaves jobs that
/// wait for it for ever, in sessions of their own and without a parent to find them by.
pub(crate) fn kill_orphans(owner: &str) -> usize {
    end_marked(OWNER, &[owner])
}

/// How long killed processes may take to end.
const DYING: Duration = Duration::from_secs(2);

/// Kills every process that has a variable with one of these values in its environment, and waits until they are gone;
/// how many there were. They may start others meanwhile.
fn end_marked(name: &str, values: &[&str]) -> usize {
    let mut ended = BTreeSet::new();
    let until = Instant::now() + DYING;
    loop {
        let found = marked(name, values);
        // One that is not ours to kill does not count.
        let killed = found.into_iter().filter(|pid| kill(*pid, Signal::SIGKILL).is_ok());
        let killed: Vec<Pid> = killed.collect();
        if killed.is_empty() || Instant::now() > until {
            return ended.len();
        }
        ended.extend(killed);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The processes that have a variable with one of these values. The environment of one that has ended is empty.
fn marked(name: &str, values: &[&str]) -> Vec<Pid> {
    let ours = |variable: &[u8]| {
        let rest = variable.strip_prefix(name.as_bytes()).and_then(|v| v.strip_prefix(b"="));
        rest.is_some_and(|value| values.iter().any(|v| v.as_bytes() == value))
    };
    let pids = SysRoot::default().list("/proc").into_iter().filter_map(|n| n.parse::<i32>().ok());
    let has = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(ours)
    };
    pids.filter(has).map(Pid::from_raw).collect()
}

/// Everything that descends from a process, by the parents that `/proc` names.
fn descendants(of: u32) -> Vec<Pid> {
    let all = parents();
    let mut family = vec![of];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(all.iter().filter(|(pid, ppid)| *ppid == parent && *pid != of).map(|p| p.0));
        next += 1;
    }
    family.into_iter().skip(1).filter_map(pid).collect()
}

/// The processes whose parent a process is.
fn children(of: u32) -> Vec<Pid> {
    parents().into_iter().filter(|(_, parent)| *parent == of).filter_map(|p| pid(p.0)).collect()
}

/// All processes with their parents.
fn parents() -> Vec<(u32, u32)> {
    let root = SysRoot::default();
    root.list("/proc")
        .into_iter()
        .filter(|n| n.starts_with(|c: char| c.is_ascii_digit()))
        .filter_map(|n| parse_process(&root.get(&format!("/proc/{n}/stat"))?))
        .map(|p| (p.pid, p.ppid))
        .collect()
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().map(Pid::from_raw)
}

#[cfg(test)]
mod tests;
