//! The files of jobs before they run, made by the calls that fio 3.33 makes them with.

use std::collections::BTreeMap;

use iosched_syscalls::{Done, OpenFlags, Sys};
use iosched_types::Bytes;

use super::super::file_options::Allocate;
use super::super::layout::{Extent, Files};
use super::super::spec::{IoEngine, JobSet, JobSpec};
use super::{inside, names, on_device};
use crate::programs::files;

/// Bytes that the jobs' files take before the jobs run: those that are read or overwritten, and those whose space `fallocate`
/// sets aside. Files that fill as they are written count nothing.
#[must_use]
pub fn bytes_before(set: &JobSet, layouts: &[Files]) -> Bytes {
    let mut files: BTreeMap<String, Bytes> = BTreeMap::new();
    for (job, places) in set.jobs.iter().zip(layouts).filter(|(job, _)| !on_device(job)) {
        let o = &job.file_options;
        let is_set_aside = matches!(o.allocate, Allocate::Whole | Allocate::Keep);
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
    if !fill && (o.create_on_open || there && !o.append) {
        return Ok(());
    }
    // What is there already is extended, unless data is to be read: that is made anew.
    let fd = match there && !fill {
        true => sys.open(name, OpenFlags::WRITE).await?,
        false => sys.creat(name).await?,
    };
    match o.allocate {
        Allocate::Whole => sys.fallocate(fd, 0, place.size).await?,
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
