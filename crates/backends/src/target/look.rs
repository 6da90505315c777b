//! Everything that is known about a target before a write, and the judgement that follows.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use nix::libc;

use super::{Kind, Leave, Target, file, reopen};
use crate::error::{Error, Result};
use crate::inspect::{self, Finding, Weight};
use crate::root::{SysRoot, Thing};
use crate::sys;

/// The findings, and the target opened for writing if the caller claims it and nothing speaks against it.
pub(super) struct Looked {
    pub(super) findings: Vec<Finding>,
    pub(super) opened: Option<File>,
}

/// Looks at a target. With `claim` opens it for writing, a device exclusively, and looks at everything while it is
/// held. So any new user comes after us.
pub(super) fn look(target: &Target, root: &SysRoot, leave: &Leave, claim: bool) -> Result<Looked> {
    match target.kind {
        Kind::Block => device(target, root, claim),
        Kind::File => regular(target, root, leave, claim),
        Kind::Directory => Ok(Looked { findings: Vec::new(), opened: None }),
    }
}

fn device(target: &Target, root: &SysRoot, claim: bool) -> Result<Looked> {
    let opened = match reopen(&target.handle, &target.path, claim, libc::O_EXCL) {
        Ok(file) => Ok(file),
        Err(Error::Io { source, .. }) => Err(source),
        Err(e) => return Err(e),
    };
    let mut findings = patiently(root, target.thing);
    let used = findings.iter().any(|f| f.weight == Weight::Always);
    let opened = match opened {
        Ok(file) => file,
        Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
            // In most cases the user of the target was named already.
            if !used {
                let what = "the kernel uses it (mounted, swap, or part of something)";
                findings.insert(0, Finding::always(what));
            }
            return Ok(Looked { findings, opened: None });
        }
        Err(e) if read_only(&e) => {
            findings.push(Finding::always("it is read-only"));
            return Ok(Looked { findings, opened: None });
        }
        Err(e) => return Err(Error::io("opening", &target.path, e)),
    };
    if let Thing::Block(dev) = target.thing
        && root.number(&format!("/sys/dev/block/{dev}/ro")) == Some(1)
    {
        findings.push(Finding::always("it is read-only"));
    }
    if target.bytes == 0 {
        findings.push(Finding::always("it has no size: there is no medium, or it is not set up"));
    }
    if !used {
        findings.extend(inspect::content(&opened, target.bytes));
    }
    // What is known says more than what is not.
    findings.sort_by_key(|f| f.weight);
    Ok(Looked { findings, opened: claim.then_some(opened) })
}

fn read_only(e: &std::io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EROFS | libc::EACCES | libc::EPERM))
}

fn regular(target: &Target, root: &SysRoot, leave: &Leave, claim: bool) -> Result<Looked> {
    let mut findings = Vec::new();
    let meta = target.held.metadata().map_err(|e| Error::io("looking at", &target.path, e))?;
    match meta.nlink() {
        0 => findings.push(Finding::always("it has no name any more (deleted)")),
        1 => {}
        n => findings.push(Finding::always(format!("it has {n} names (hard links)"))),
    }
    if target.bytes == 0 {
        let message = format!("{} is empty", target.path);
        let help =
            "write the file once in full size before comparing, or remove it and give --size";
        return Err(Error::input(message, help));
    }
    if leave.size.is_some_and(|s| s != target.bytes) {
        let message = format!("{} is there already, with {} bytes", target.path, target.bytes);
        return Err(Error::input(message, "leave --size out, or remove the file"));
    }
    findings.extend(patiently(root, target.thing));
    // The kernel's own count of writers sees what no list of open files does.
    let alone = sys::nobody_writes(&target.held);
    match alone {
        // Who cannot be seen does not write to it.
        Some(true) => findings.retain(|f| f.weight == Weight::Always),
        Some(false) if findings.iter().all(|f| f.weight != Weight::Always) => findings
            .insert(0, Finding::always("somebody who cannot be seen has it open for writing")),
        _ => {}
    }
    if !file::is_ours(&target.held, &target.path) {
        findings.push(Finding::content("it is no file that iosched made"));
    }
    let mut opened = None;
    if claim && target.refusal(&findings, leave).is_none() {
        match lock(target)? {
            Some(file) => opened = Some(file),
            None => findings.push(Finding::always("somebody holds its lock: another iosched?")),
        }
    }
    findings.sort_by_key(|f| f.weight);
    Ok(Looked { findings, opened })
}

/// Opens a file for writing and locks it against other instances; the lock goes with the descriptor.
fn lock(target: &Target) -> Result<Option<File>> {
    use rustix::fs::{FlockOperation, flock};
    let file = reopen(&target.handle, &target.path, true, 0)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(e) => Err(Error::io("locking", &target.path, e.into())),
    }
}

/// The users. udev and similar programs open every device for a moment, so a process that only has it open is looked at
/// again.
pub(super) fn patiently(root: &SysRoot, thing: Thing) -> Vec<Finding> {
    const PAUSE: Duration = Duration::from_millis(150);
    let mut found = inspect::users(root, thing);
    for _ in 0..4 {
        let passing = |f: &Finding| f.what.contains(" is open in ");
        let always = || found.iter().filter(|f| f.weight == Weight::Always);
        if always().count() == 0 || !always().all(passing) {
            break;
        }
        std::thread::sleep(PAUSE);
        found = inspect::users(root, thing);
    }
    found
}

/// What would be done with a target, in words.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Judgement {
    /// As the user wrote it.
    pub target: String,
    /// Where it was found, links followed.
    pub path: String,
    /// `block device`, `file`, `directory`, `file to be made`.
    pub kind: String,
    /// The size.
    pub bytes: u64,
    /// The disks that would be switched.
    pub disks: Vec<String>,
    /// Why none can be.
    pub no_switch: Option<String>,
    /// Whether it may be written to.
    pub writable: bool,
    /// Whether no leave could change that.
    pub refused_always: bool,
    /// What was found, whether or not leave was given for it.
    pub findings: Vec<String>,
    /// The refusal, if it is refused.
    pub refusal: Option<String>,
    /// What to do about that.
    pub help: Option<String>,
    /// Bytes of a file that were never written; a run fills them first, where it may write.
    pub missing: u64,
    /// What else should be known.
    pub notes: Vec<String>,
}

/// Judges a target as a run that writes would, and lets go of it.
///
/// # Errors
/// A target that cannot be found or looked at.
pub fn judge(root: &SysRoot, name: &str, leave: &Leave) -> Result<Judgement> {
    let path = super::resolve(root, name)?;
    if path.symlink_metadata().is_err()
        && let Some(bytes) = leave.size
    {
        return to_be_made(name, &path, bytes);
    }
    let target = Target::find(root, name)?;
    let looked = look(&target, root, leave, false)?;
    let refusal = target.refusal(&looked.findings, leave);
    let mut notes = Vec::new();
    let written = std::path::absolute(&path).unwrap_or(path);
    if written.to_string_lossy() != target.path {
        notes.push(format!("{} leads to {}", written.display(), target.path));
    }
    let missing = target.never_written()?;
    if missing > 0 {
        notes.push(format!(
            "{missing} of its {} bytes were never written: reads of them do not reach the disk",
            target.bytes
        ));
    }
    let switched = switched(&target);
    let kind = match target.kind {
        Kind::Block => "block device",
        Kind::File => "file",
        Kind::Directory => "directory",
    };
    Ok(Judgement {
        target: name.into(),
        path: target.path.clone(),
        kind: kind.into(),
        bytes: target.bytes,
        disks: switched.0,
        no_switch: switched.1,
        writable: refusal.is_none(),
        refused_always: looked.findings.iter().any(|f| f.weight == Weight::Always),
        findings: looked.findings.into_iter().map(|f| f.what).collect(),
        help: refusal.as_ref().map(Error::help),
        refusal: refusal.map(|e| e.to_string()),
        missing,
        notes,
    })
}

fn switched(target: &Target) -> (Vec<String>, Option<String>) {
    match target.stack.compared() {
        Ok(layers) => (layers.iter().map(|l| l.name.clone()).collect(), None),
        Err(e) => (Vec::new(), Some(e.to_string())),
    }
}

/// Refuses a target that a writing run would refuse, and releases it. So all devices are looked at before the first of
/// them is written to.
///
/// # Errors
/// As [`Target::find`] and [`Target::claim`].
pub fn check(root: &SysRoot, name: &str, leave: &Leave) -> Result<()> {
    let path = super::resolve(root, name)?;
    if path.symlink_metadata().is_err() && leave.size.is_some() {
        return file::check_name(&path);
    }
    let target = Target::find(root, name)?;
    let looked = look(&target, root, leave, false)?;
    target.refusal(&looked.findings, leave).map_or(Ok(()), Err)
}

/// Makes sure that what a run would write before its load has room: a file that it makes, or what was never written of one.
///
/// # Errors
/// [`Error::Input`] and [`Error::DiskFull`] with both figures; as [`Target::find`].
pub fn room(root: &SysRoot, name: &str, leave: &Leave) -> Result<()> {
    let path = super::resolve(root, name)?;
    if path.symlink_metadata().is_err()
        && let Some(bytes) = leave.size
    {
        return file::has_room(&path, bytes);
    }
    let target = Target::find(root, name)?;
    if target.kind != Kind::File {
        return Ok(());
    }
    let room = file::room_to_fill(&target.held, target.bytes);
    room.map(drop).map_err(|e| e.into_error(&target.path))
}

fn to_be_made(name: &str, path: &std::path::Path, bytes: u64) -> Result<Judgement> {
    file::check_name(path)?;
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(std::path::Path::new("."));
    let folder = Target::find(&SysRoot::default(), &format!("{}/", parent.display()))?;
    let switched = switched(&folder);
    Ok(Judgement {
        target: name.into(),
        path: std::path::absolute(path).unwrap_or(path.into()).display().to_string(),
        kind: "file to be made".into(),
        bytes,
        disks: switched.0,
        no_switch: switched.1,
        writable: true,
        refused_always: false,
        findings: Vec::new(),
        refusal: None,
        help: None,
        missing: 0,
        notes: vec![format!("it would be made and filled with {bytes} bytes")],
    })
}
