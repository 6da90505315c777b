//! A disk with a queue that we change for a while.

use std::path::PathBuf;

use iosched_schedulers::KernelVersion;
use iosched_schedulers::registry;
use iosched_types::nearest::did_you_mean;

use super::lock::DiskLock;
use super::put_back::{
    Still, incarnation, put_back, put_back_if_ours, queue_number, restore_depth, still,
};
use super::rounding;
use crate::discover::{QueueState, queue_dir, tag_depth};
use crate::error::{Error, Result};
use crate::guardian::{Guardian, GuardianCommand};
use crate::kernel_fs::KernelFs;
use crate::root::SysRoot;
use crate::state::{Change, STATE_DIR, StateFile};
use std::cell::RefCell;

/// How to guard the changes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where state files go.
    pub state_dir: PathBuf,
    /// How to start the guardian; `None` goes without.
    pub guardian: Option<GuardianCommand>,
}

impl Default for Options {
    fn default() -> Self {
        Options { state_dir: STATE_DIR.into(), guardian: None }
    }
}

/// The right to change a disk's queue. Everything goes back when it is finished or dropped.
#[derive(Debug)]
pub struct Session {
    root: SysRoot,
    device: String,
    diskseq: Option<i64>,
    queue: Option<u64>,
    before: QueueState,
    /// As it was set last and written down.
    set: RefCell<Option<QueueState>>,
    depth: Option<u32>,
    state: Option<StateFile>,
    guardian: Option<Guardian>,
    lock: Option<DiskLock>,
}

impl Session {
    /// Locks the disk, writes down how the queue of `device` (a kernel name) is, and starts the guardian.
    ///
    /// # Errors
    /// [`Error::NotRoot`], [`Error::ReadOnlySysfs`], [`Error::Unavailable`] for a device without
    /// schedulers, [`Error::Locked`] and [`Error::Unrestored`] for a second instance.
    pub fn begin(device: &str, options: &Options) -> Result<Session> {
        let root = SysRoot::default();
        let path = format!("{}/scheduler", queue_dir(device));
        if QueueState::read(&root, device).scheduler.is_none() {
            return Err(Error::Unavailable {
                what: format!("an I/O scheduler for /dev/{device}"),
                why: format!("{path} cannot be read"),
                help: "bio-based devices have none; choose the disks below".into(),
            });
        }
        if !nix::unistd::geteuid().is_root() {
            return Err(Error::NotRoot {
                what: format!("switching the scheduler of /dev/{device}"),
            });
        }
        // Opening shows a read-only sysfs without changing anything.
        std::fs::OpenOptions::new()
            .write(true)
            .open(root.real(&path))
            .map_err(|e| Error::io("writing", &path, e))?;
        let mut lock = DiskLock::take(&root, device)?;
        // Read under the lock, because before it the setting may have been another program's.
        let before = QueueState::read(&root, device);
        let depth = KernelFs::debugfs().ok().and_then(|debugfs| tag_depth(debugfs.root(), device));
        let diskseq = incarnation(&root, device);
        let queue = queue_number(&root, device);
        let change = Change::Queue {
            device: device.into(),
            diskseq,
            queue,
            tag_depth: depth,
            before: Box::new(before.clone()),
            set: None,
        };
        let name = format!("queue-{device}");
        // The lock names the state file before there is one: killed in between, no other run misses it.
        let written = lock
            .names(&StateFile::path_in(&options.state_dir, &name))
            .and_then(|()| StateFile::create(&options.state_dir, &name, change));
        let state = match written {
            Ok(state) => state,
            Err(e) => {
                lock.release();
                return Err(e);
            }
        };
        let guardian = match &options.guardian {
            Some(command) => match Guardian::start(command, &state) {
                Ok(g) => Some(g),
                Err(e) => {
                    state.finish()?;
                    return Err(e);
                }
            },
            None => None,
        };
        let device = device.into();
        let (state, lock, set) = (Some(state), Some(lock), RefCell::default());
        Ok(Session { root, device, diskseq, queue, before, set, depth, state, guardian, lock })
    }

    /// The disk's kernel name.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The queue as it was found.
    #[must_use]
    pub fn before(&self) -> &QueueState {
        &self.before
    }

    /// The guardian's process id.
    #[must_use]
    pub fn guardian_pid(&self) -> Option<u32> {
        self.guardian.as_ref().map(Guardian::pid)
    }

    /// Switches the scheduler and reads back; the kernel's own name for it (`deadline` becomes
    /// `mq-deadline`). Its tunables start at their defaults, also when it was in force already.
    ///
    /// # Errors
    /// [`Error::RemovedScheduler`], [`Error::SchedulerRefused`], [`Error::Gone`].
    pub fn set_scheduler(&self, name: &str) -> Result<String> {
        let path = format!("{}/scheduler", queue_dir(&self.device));
        // Otherwise what the last cell made of them would be this one's.
        restore_depth(&self.root, &self.device, self.depth, &mut Vec::new())?;
        let list = QueueState::read(&self.root, &self.device);
        if list.scheduler.as_deref() == Some(name) && list.offered.len() > 1 {
            // Writing the name in force does nothing, so its tunables would be those of the last run.
            let other = if name == "none" { None } else { Some("none") };
            if let Some(other) = other.filter(|o| list.offered.iter().any(|n| n == o)) {
                self.root.write(&path, other).map_err(|e| self.refused(other, &list, e))?;
            }
        }
        self.root.write(&path, name).map_err(|e| self.refused(name, &list, e))?;
        let now = QueueState::read(&self.root, &self.device).scheduler;
        match now {
            Some(now) if now == name || !list.offered.iter().any(|n| n == name) => {
                self.note()?;
                Ok(now)
            }
            now => Err(Error::ReadBack {
                path: path.into(),
                wrote: name.into(),
                reads: now.unwrap_or_else(|| "-".into()),
            }),
        }
    }

    /// Sets a tunable of the scheduler in force.
    ///
    /// # Errors
    /// [`Error::Input`] with the nearest name, [`Error::ReadBack`] when it does not stick.
    pub fn set_tunable(&self, name: &str, value: i64) -> Result<()> {
        let state = QueueState::read(&self.root, &self.device);
        if !state.tunables.contains_key(name) {
            let near = did_you_mean(name, state.tunables.keys().map(String::as_str));
            let scheduler = state.scheduler.unwrap_or_default();
            let message = format!("{scheduler} has no tunable \"{name}\" in this kernel");
            return Err(Error::input(message, near));
        }
        let path = format!("{}/iosched/{name}", queue_dir(&self.device));
        let scheduler = state.scheduler.unwrap_or_default();
        let rates = rounding::tick_rates(&self.root);
        // A model of ADIOS is two numbers, and reads as two lines of words.
        if let Some(text) = rounding::model(&scheduler, name, value) {
            let read = |reads: &str| rounding::model_reads(reads) == Some(value);
            return self.write_checked(&path, &text, read);
        }
        self.write_checked(&path, &value.to_string(), |reads| {
            rounding::tunable(&rates, &scheduler, name, value, reads)
        })
    }

    /// Sets an attribute of the queue (`read_ahead_kb`, `nr_requests`, …).
    ///
    /// # Errors
    /// [`Error::Input`] when there is no such attribute, [`Error::ReadBack`].
    pub fn set_attribute(&self, name: &str, value: &str) -> Result<()> {
        if !self.before.attributes.contains_key(name) {
            let near = did_you_mean(name, self.before.attributes.keys().map(String::as_str));
            let message =
                format!("/dev/{} has no attribute \"{name}\" that iosched restores", self.device);
            return Err(Error::input(message, near));
        }
        self.write_checked(&format!("{}/{name}", queue_dir(&self.device)), value, |reads| {
            rounding::attribute(rounding::page_size(), name, value, reads)
        })
    }

    fn write_checked(&self, path: &str, value: &str, kept: impl Fn(&str) -> bool) -> Result<()> {
        self.root.write(path, value).map_err(|e| {
            if e.raw_os_error() == Some(nix::libc::EINVAL) {
                Error::input(format!("the kernel refuses {value} for {path}"), String::new())
            } else {
                Error::io("writing", path, e)
            }
        })?;
        let reads = self.root.get(path).unwrap_or_default();
        if kept(&reads) {
            return Ok(());
        }
        Err(Error::ReadBack { path: path.into(), wrote: value.into(), reads })
    }

    /// The queue now.
    #[must_use]
    pub fn state(&self) -> QueueState {
        QueueState::read(&self.root, &self.device)
    }

    /// The depth of the driver's tags now, if it can be read.
    #[must_use]
    pub fn tag_depth(&self) -> Option<u32> {
        KernelFs::debugfs().ok().and_then(|debugfs| tag_depth(debugfs.root(), &self.device))
    }

    /// Makes sure that the driver's tags are as deep as this scheduler and these settings make them.
    ///
    /// # Errors
    /// [`Error::ReadBack`] if not; [`Error::Unavailable`] when `nr_requests` is set, and how deep they are cannot be
    /// read: they could not be brought back.
    pub fn check_tags(&self, scheduler: &str, settings: &[(String, i64)]) -> Result<()> {
        let set = settings.iter().find(|(name, _)| name == "nr_requests").map(|s| s.1);
        let Some(found) = self.depth else {
            return set.map_or(Ok(()), |_| Err(Error::Unavailable {
                what: format!("nr_requests of /dev/{}", self.device),
                why: "how deep the driver's tags are cannot be read from debugfs, and under none it changes them".into(),
                help: "leave it out, or use a kernel with CONFIG_BLK_DEBUG_FS; see: iosched doctor".into(),
            }));
        };
        let wanted = expected_depth(found, scheduler, set);
        match self.tag_depth() {
            Some(now) if now != wanted => Err(Error::ReadBack {
                path: format!("/sys/kernel/debug/block/{}/hctx0/tags", self.device).into(),
                wrote: wanted.to_string(),
                reads: now.to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// Writes down how the queue is set now. Without that the next disk of a queue that outlives this one would keep it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn note(&self) -> Result<()> {
        let now = Some(self.state());
        if *self.set.borrow() == now {
            return Ok(());
        }
        if let (Some(file), Some(now)) = (&self.state, &now) {
            file.set(now)?;
        }
        self.set.replace(now);
        Ok(())
    }

    fn still(&self) -> Still {
        still(&self.root, &self.device, self.diskseq, self.queue)
    }

    /// Whether the disk is still the one that we began with.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.still() == Still::Same
    }

    /// Puts everything back; what was changed, in words.
    ///
    /// # Errors
    /// See [`put_back`]; the state file stays then, for `iosched restore`.
    pub fn finish(mut self) -> Result<Vec<String>> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<Vec<String>> {
        let Some(state) = self.state.take() else { return Ok(Vec::new()) };
        let set = self.set.borrow();
        let (result, left) = match self.still() {
            Still::Same => match put_back(&self.root, &self.device, &self.before, self.depth) {
                // It went away meanwhile.
                Err(_) if !self.is_present() => (Vec::new(), None),
                other => (other?, None),
            },
            Still::Outlived => {
                let states = (&self.before, set.as_ref());
                match put_back_if_ours(&self.root, &self.device, states, self.depth) {
                    Err(e @ Error::Trial { .. }) => (Vec::new(), Some(e)),
                    Err(_) if self.still() == Still::Gone => (Vec::new(), None),
                    other => (other?, None),
                }
            }
            // It has taken its settings along.
            Still::Gone => (Vec::new(), None),
        };
        drop(set);
        state.finish()?;
        if let Some(lock) = self.lock.take() {
            lock.release();
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.join();
        }
        left.map_or(Ok(result), Err)
    }

    fn refused(&self, name: &str, list: &QueueState, e: std::io::Error) -> Error {
        let device = format!("/dev/{}", self.device);
        match e.raw_os_error() {
            Some(nix::libc::ENODEV | nix::libc::ENOENT) => {
                Error::Gone { device, during: format!("switching to {name}") }
            }
            Some(nix::libc::EINVAL) => removed(name).unwrap_or_else(|| Error::SchedulerRefused {
                name: name.into(),
                device,
                why: "no such scheduler in this kernel".into(),
                help: {
                    let near = did_you_mean(name, list.offered.iter().map(String::as_str));
                    let offers = format!("it offers {}", list.offered.join(", "));
                    if near.is_empty() { offers } else { format!("{near} {offers}") }
                },
            }),
            _ => Error::io("writing", format!("{}/scheduler", queue_dir(&self.device)), e),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A failure here stays in the state file, for the guardian and for `iosched restore`.
        let _ = self.give_back();
    }
}

/// How deep the driver's tags are to be. Under `none` `nr_requests` is their depth; a scheduler has tags of its own.
fn expected_depth(found: u32, scheduler: &str, nr_requests: Option<i64>) -> u32 {
    let set = nr_requests.filter(|_| scheduler == "none");
    set.and_then(|n| u32::try_from(n).ok()).unwrap_or(found)
}

/// The running kernel's release.
#[must_use]
pub fn running_kernel() -> String {
    SysRoot::default().get("/proc/sys/kernel/osrelease").unwrap_or_default()
}

/// Every scheduler that the running kernel offers for some disk.
#[must_use]
pub fn offered() -> Vec<String> {
    let root = SysRoot::default();
    let all = root.list("/sys/block").into_iter();
    let mut names: Vec<String> = all.flat_map(|d| QueueState::read(&root, &d).offered).collect();
    names.sort();
    names.dedup();
    names
}

/// Why a scheduler that iosched knows is not in the running kernel; `None` when it is, or when iosched does
/// not know it.
#[must_use]
pub fn removed(name: &str) -> Option<Error> {
    let descriptor = registry::family(name).ok()?;
    let release = running_kernel();
    let version = release.split('-').next().and_then(KernelVersion::parse)?;
    if descriptor.generations.iter().any(|g| g.covers(version)) {
        return None;
    }
    let first = descriptor.generations.first()?.first;
    let last = descriptor.generations.last().and_then(|g| g.last)?;
    Some(Error::RemovedScheduler {
        name: name.into(),
        history: format!("it lived from Linux {first} to {last}, this is {release}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_none_gives_its_requests_to_the_driver() {
        for (scheduler, nr_requests, depth) in [
            ("none", Some(4), 4),
            ("none", None, 32),
            ("mq-deadline", Some(4), 32),
            ("bfq", None, 32),
        ] {
            assert_eq!(expected_depth(32, scheduler, nr_requests), depth, "{scheduler}");
        }
    }

    #[test]
    fn a_removed_scheduler_says_when_it_lived() {
        let e = removed("noop").expect("noop ended with the single-queue layer");
        assert!(e.to_string().contains("it lived from Linux 2.6"), "{e}");
        assert!(e.help().contains("--backend sim"));
        assert!(removed("adios").is_none());
    }
}
