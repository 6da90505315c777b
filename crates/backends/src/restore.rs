//! Undoing what a state file says.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::ground::Purpose;
use crate::kernel_fs::KernelFs;
use crate::made::MadeDirectory;
use crate::root::SysRoot;
use crate::state::{Change, State, StateFile, boot_id, list, sweep};
use crate::switch::{DiskLock, Still};
use crate::{switch, sys};

/// What happened to one state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// Put back; what was done, in words.
    Done(Vec<String>),
    /// It belongs to a running process.
    InUse,
    /// The file was from another boot or another disk. There is nothing to undo; it is forgotten.
    Stale(String),
}

/// Undoes every change in `dir` that a dead owner left. Returns one entry per state file. A failure does not keep the
/// others from being undone.
#[must_use]
pub fn restore_all(dir: &Path) -> Vec<(String, Result<Restored>)> {
    sweep(dir);
    list(dir)
        .into_iter()
        .map(|path| {
            let name =
                path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
            let result = StateFile::take_over(&path, false).and_then(|found| match found {
                Some((file, state)) => undo(file, &state, Some(DYING)),
                None => Ok(Restored::InUse),
            });
            (name, result)
        })
        .collect()
}

/// Undoes one change and removes its file. Waits that long for another process that uses the disk, or until it is done.
///
/// # Errors
/// What stands in the way; the file stays, so that it can be tried again.
pub fn undo(file: StateFile, state: &State, patience: Option<Duration>) -> Result<Restored> {
    // Of all changes only files outlive a boot.
    let outlives = matches!(state.change, Change::Directory(_));
    if state.boot_id != boot_id() && !outlives {
        remove_scratch_of(&file, &state.instance);
        file.finish()?;
        return Ok(Restored::Stale("the machine was booted since".into()));
    }
    let root = SysRoot::default();
    let same_boot = state.boot_id == boot_id();
    let orphans = if same_boot { crate::load::child::kill_orphans(&state.instance) } else { 0 };
    remove_scratch_of(&file, &state.instance);
    let mut done = match &state.change {
        Change::EmulatedDisk { number, label, .. } => remove_loop(*number, label, &file.again())?,
        Change::UblkDisk { number, label } => crate::emulate::ublk::remove(*number, label)
            .map_err(|e| Error::io("removing", format!("/dev/ublkb{number}"), e))?,
        Change::TraceInstance { name } => remove_instance(name)?,
        Change::FuseUring { before } => crate::emulate::put_back(before)?,
        Change::Directory(made) => remove_directory(made, &file.again())?,
        Change::Queue { device, diskseq, queue, .. } => {
            let still = || switch::still(&root, device, *diskseq, *queue);
            match restore_queue(&root, &state.change, patience) {
                Ok(done) => done,
                // The disk may go away during the restore: an emulated disk's other guardian removes it.
                Err(_) if goes(&still) => {
                    DiskLock::forget(file.path());
                    file.finish()?;
                    return Ok(Restored::Stale(format!("{device} is another disk now")));
                }
                Err(Error::Trial { message }) if still() == Still::Outlived => {
                    DiskLock::forget(file.path());
                    file.finish()?;
                    return Ok(Restored::Stale(message));
                }
                Err(e) => return Err(e),
            }
        }
    };
    if orphans > 0 {
        done.push(format!("killed {orphans} processes of its load"));
    }
    file.finish()?;
    Ok(Restored::Done(done))
}

/// Puts the queue of a dead run's disk back.
fn restore_queue(
    root: &SysRoot,
    change: &Change,
    patience: Option<Duration>,
) -> Result<Vec<String>> {
    let Change::Queue { device, diskseq, queue, tag_depth, before, set } = change else {
        return Ok(Vec::new());
    };
    let still = || switch::still(root, device, *diskseq, *queue);
    let gone = || Error::Gone { device: format!("/dev/{device}"), during: "restoring".into() };
    if still() == Still::Gone {
        return Err(gone());
    }
    // No experiment may begin on a disk that is being put back.
    let lock = DiskLock::take_over(root, device, patience)?;
    let done = match still() {
        Still::Same => switch::put_back(root, device, before, *tag_depth)?,
        Still::Outlived => {
            switch::put_back_if_ours(root, device, (before, set.as_deref()), *tag_depth)?
        }
        // Another disk has got the name while we waited.
        Still::Gone => {
            lock.release();
            return Err(gone());
        }
    };
    lock.release();
    Ok(done)
}

/// Whether a disk has gone. One that was detached a moment ago may be about to.
fn goes(still: &dyn Fn() -> Still) -> bool {
    let until = Instant::now() + GOING;
    loop {
        match still() {
            Still::Gone => return true,
            Still::Outlived if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            _ => return false,
        }
    }
}

/// How long the removal of a device may take after it was detached.
const GOING: Duration = Duration::from_secs(1);

/// Whichever guardian of the owner comes first removes it.
fn remove_scratch_of(file: &StateFile, owner: &str) {
    if let Some(dir) = file.path().parent() {
        crate::made::remove_scratch(&scratch_dir(dir, owner));
    }
}

/// The folder of a run's load files. Its state files name it, so it can be removed.
pub(crate) fn scratch_dir(state_dir: &Path, owner: &str) -> PathBuf {
    state_dir.join(format!("run-{owner}"))
}

/// How long a dead owner's lock of a disk may outlive that of its state file: files are closed one by one.
const DYING: Duration = Duration::from_secs(5);

/// How long to wait for the kernel to release a loop device.
const PATIENCE: Duration = Duration::from_secs(20);

/// Unbinds and removes the loop device of an emulated disk, if it is still ours. `again` is the command that tries it once
/// more.
pub(crate) fn remove_loop(number: u32, label: &str, again: &str) -> Result<Vec<String>> {
    let mut done = Vec::new();
    let path = format!("/dev/loop{number}");
    let root = SysRoot::default();
    if !root.exists(&format!("/sys/block/loop{number}")) {
        return Ok(done);
    }
    let io = |e| Error::io("detaching", &path, e);
    let backing = format!("/sys/block/loop{number}/loop/backing_file");
    if root.exists(&backing) {
        let device = OpenOptions::new().read(true).open(&path).map_err(io)?;
        match sys::loop_name(&device) {
            Ok(name) if name != label => return Ok(done),
            Ok(_) => {
                sys::loop_unbind(&device).map_err(io)?;
                done.push(format!("detached {path}"));
            }
            Err(_) => {}
        }
        drop(device);
        let deadline = Instant::now() + PATIENCE;
        while root.exists(&backing) {
            if Instant::now() > deadline {
                return Err(in_use(&path, &root, again));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let control = sys::loop_control().map_err(|e| Error::io("opening", "/dev/loop-control", e))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match sys::loop_remove(&control, number) {
            Ok(()) => break,
            Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy => {
                if Instant::now() > deadline {
                    return Err(in_use(&path, &root, again));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(e) if e.raw_os_error() == Some(nix::libc::ENODEV) => break,
            Err(e) => return Err(io(e)),
        }
    }
    done.push(format!("removed {path}"));
    Ok(done)
}

fn in_use(path: &str, root: &SysRoot, again: &str) -> Error {
    let mounts =
        crate::parse::mountinfo::parse(&root.get("/proc/self/mountinfo").unwrap_or_default());
    let why =
        mounts.iter().find(|m| m.source == path).map_or("some process has it open".into(), |m| {
            format!("it is mounted on {}; unmount it and run: {again}", m.point)
        });
    Error::InUse { device: path.into(), why }
}

/// Removes a directory of a load, and no other. Its name must be one that we give.
fn remove_directory(made: &MadeDirectory, again: &str) -> Result<Vec<String>> {
    if !Purpose::ALL.iter().any(|p| crate::made::is_chosen(&made.path, p.stem())) {
        let message = format!("{} is no directory of ours", made.path.display());
        return Err(Error::input(message, "look at the state file that names it, and remove that"));
    }
    let word = if made.remove(again)? { "removed" } else { "was gone already:" };
    Ok(vec![format!("{word} {}", made.path.display())])
}

fn remove_instance(name: &str) -> Result<Vec<String>> {
    let fs_ = KernelFs::tracefs().map_err(|e| Error::io("opening tracefs for", name, e))?;
    let dir = fs_.root().real(&format!("/instances/{name}"));
    let removed = crate::instance::remove(&dir)?;
    Ok(removed.then(|| format!("removed trace instance {name}")).into_iter().collect())
}

/// Whether a loop device is bound, for tests and messages.
#[must_use]
pub fn is_bound(number: u32) -> bool {
    File::open(format!("/sys/block/loop{number}/loop/backing_file")).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The state of a run that was killed, of another process than this one.
    fn killed(dir: &Path, made: &MadeDirectory) {
        let state = State {
            version: crate::state::VERSION,
            pid: 0,
            instance: "0-0000000000000000".into(),
            boot_id: boot_id(),
            change: Change::Directory(made.clone()),
        };
        fs::write(dir.join("a.json"), serde_json::to_string(&state).unwrap()).unwrap();
    }

    #[test]
    fn only_the_directory_that_was_made_is_removed() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut made = MadeDirectory::choose(dir.path(), "iosched-program-1").unwrap();
        made.make().unwrap();
        fs::write(made.path.join("data"), "ours").unwrap();
        killed(state.path(), &made);
        let moved = dir.path().join("moved");
        fs::rename(&made.path, &moved).unwrap();
        fs::create_dir(&made.path).unwrap();
        fs::write(made.path.join("data"), "theirs").unwrap();
        let [(_, Err(e))] = &restore_all(state.path())[..] else { panic!("it was taken for ours") };
        assert!(e.to_string().contains("is not the directory that the run made"), "{e}");
        assert_eq!(fs::read_to_string(made.path.join("data")).unwrap(), "theirs");
        // As the guardian does it.
        let (file, found) =
            StateFile::take_over(&state.path().join("a.json"), true).unwrap().unwrap();
        undo(file, &found, None).unwrap_err();
        assert_eq!(fs::read_to_string(made.path.join("data")).unwrap(), "theirs");
        fs::remove_dir_all(&made.path).unwrap();
        fs::rename(&moved, &made.path).unwrap();
        let restored = restore_all(state.path());
        assert!(matches!(restored[..], [(_, Ok(Restored::Done(_)))]), "{restored:?}");
        assert!(!made.path.exists() && !state.path().join("a.json").exists());
    }
}
