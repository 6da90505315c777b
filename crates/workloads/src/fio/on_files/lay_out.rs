//! The files of jobs before they run, made by the calls that fio 3.33 makes them with.

use std::collections::BTreeMap;

use iosched_syscalls::{Done, Errno, Fd, OpenFlags, Sys};
use iosched_types::Bytes;

use super::super::file_options::Allocate;
use super::super::layout::{Extent, Files};
use super::super::spec::{IoEngine, JobSet, JobSpec};
use super::{inside, names, on_device};
use crate::programs::files;

/// A block of a file system, as `fstatfs` says.
const BLOCK: Bytes = 4096;

/// Bytes that the jobs' files take before the jobs run: those that are read or overwritten, and those whose space `fallocate`
/// sets aside, where the file system `can` do that. Files that fill as they are written count nothing.
#[must_use]
pub fn bytes_before(set: &JobSet, layouts: &[Files], can: bool) -> Bytes {
    let mut files: BTreeMap<String, Bytes> = BTreeMap::new();
    for (job, places) in set.jobs.iter().zip(layouts).filter(|(job, _)| !on_device(job)) {
        let o = &job.file_options;
        let is_set_aside = match o.allocate {
            Allocate::Posix => true,
            Allocate::Whole | Allocate::Keep => can,
            Allocate::None | Allocate::Truncate => false,
        };
        let is_made = (is_filled(job) || is_set_aside) && !o.create_on_open;
        if job.engine == IoEngine::FileCreate || !is_made {
            continue;
        }
        for (name, place) in job.file_names().into_iter().zip(places) {
            let bytes = files.entry(name).or_default();
            *bytes = place.size.max(*bytes);
        }
    }
    files.values().fold(0, |sum: Bytes, bytes| sum.saturating_add(*bytes))
}

/// Whether the job's files have data before it runs: it reads them, overwrites them or maps them.
fn is_filled(job: &JobSpec) -> bool {
    let mapped = job.engine == IoEngine::Mmap;
    job.pattern.read || job.file_options.overwrite || mapped || job.replay.is_some()
}

/// Makes a file with all directories above it.
pub(super) async fn make(sys: &Sys, name: &str, len: Bytes) -> Done {
    let name = inside(name);
    if let Some((directory, _)) = name.rsplit_once('/') {
        files::make_directory(sys, directory).await?;
    }
    files::make(sys, name, len).await
}

/// Lays a file out as fio does before its jobs run: what is read or overwritten is written, the space of others is set
/// aside.
pub(super) async fn lay_out_file(sys: &Sys, job: &JobSpec, name: &str, place: &Extent) -> Done {
    let o = &job.file_options;
    if job.engine.is_of_names() {
        return names::lay_out(sys, job, name, place).await;
    }
    let there = sys.stat(inside(name)).await;
    // With `create_on_open` a file that is not there is empty when the job opens it.
    let fill = is_filled(job) && (there.is_ok() || !o.create_on_open);
    // What another job has laid out stays.
    if fill && there.as_ref().is_ok_and(|stat| stat.bytes >= place.size) {
        return Ok(());
    }
    let name = inside(name);
    if let Some((directory, _)) = name.rsplit_once('/') {
        files::make_directory(sys, directory).await?;
    }
    let there = there.is_ok();
    let kept = there && !fill;
    if !fill && (o.create_on_open || there && !o.append) {
        return Ok(());
    }
    // What is there already is extended, unless data is to be read: that is made anew.
    let fd = match kept {
        true => sys.open(name, OpenFlags::WRITE).await?,
        false => sys.creat(name).await?,
    };
    match o.allocate {
        Allocate::Whole | Allocate::Posix => set_aside(sys, fd, job, place.size, kept).await?,
        Allocate::Keep => sys.fallocate_keep_size(fd, 0, place.size).await?,
        Allocate::Truncate => sys.truncate(fd, place.size).await?,
        Allocate::None => {}
    }
    if fill {
        sys.truncate(fd, place.size).await?;
        files::write_all(sys, fd, place.size).await?;
        sys.fsync(fd).await?;
    }
    sys.close(fd).await
}

/// Sets the space of a file aside. On ext3, which cannot, `native` leaves the file as it is, and for `posix` glibc writes the last byte
/// of each block. In a file that is `there` already it would first read these, which it may not as fio has opened the file: so
/// it does nothing.
pub(super) async fn set_aside(sys: &Sys, fd: Fd, job: &JobSpec, size: Bytes, there: bool) -> Done {
    match sys.fallocate(fd, 0, size).await {
        Err(Errno::EOPNOTSUPP) => {}
        other => return other,
    }
    if job.file_options.allocate == Allocate::Posix && !there {
        let mut at = (size - 1) % BLOCK;
        while at < size {
            sys.pwrite(fd, at, 1).await?;
            at += BLOCK;
        }
    }
    Ok(())
}
