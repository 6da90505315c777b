//! Engines that work on names: `filecreate`, `filestat`, `filedelete`.
//!
//! As fio 3.33 does by its system calls: each file is made, asked for or removed once a pass, when its first I/O is due, and that is
//! all that is measured. The other I/Os of the file count, and take no time.

use iosched_syscalls::{Done, Errno, Fd, OpenFlags, Sys};
use iosched_types::{Bytes, LatencyHistogram};

use super::super::file_options::Allocate;
use super::super::layout::Extent;
use super::super::spec::{IoEngine, JobSpec};
use super::super::stats::JobStats;
use super::inside;
use super::lay_out::set_aside;
use crate::programs::files;

/// What such a job has done.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Files that had their turn.
    had: Vec<bool>,
    /// Files that it made, which stay open.
    open: Vec<Fd>,
    latencies: LatencyHistogram,
}

/// Files that are asked for or removed get their space before; those that are made do not exist.
pub(super) async fn lay_out(sys: &Sys, job: &JobSpec, name: &str, place: &Extent) -> Done {
    let name = inside(name);
    if let Some((directory, _)) = name.rsplit_once('/') {
        files::make_directory(sys, directory).await?;
    }
    if job.engine == IoEngine::FileCreate {
        return Ok(());
    }
    let fd = sys.creat(name).await?;
    let size: Bytes = place.size;
    match job.file_options.allocate {
        Allocate::Whole | Allocate::Posix => set_aside(sys, fd, job, size, false).await?,
        Allocate::None | Allocate::Truncate | Allocate::Keep => sys.truncate(fd, size).await?,
    }
    sys.close(fd).await
}

impl Names {
    pub(super) fn new(files: usize) -> Names {
        Names { had: vec![false; files], ..Names::default() }
    }

    /// Another pass through a file begins: it has its turn once more.
    pub(super) fn again(&mut self, file: usize) {
        self.had[file] = false;
    }

    /// An I/O of a file is due.
    pub(super) async fn turn(&mut self, sys: &Sys, job: &JobSpec, file: usize, name: &str) -> Done {
        if std::mem::replace(&mut self.had[file], true) {
            return Ok(());
        }
        let (name, began) = (inside(name), sys.now());
        match job.engine {
            IoEngine::FileCreate => {
                let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
                self.open.push(sys.open(name, flags).await?);
            }
            IoEngine::FileStat if job.file_options.lstat => _ = sys.lstat(name).await?,
            IoEngine::FileStat => _ = sys.stat(name).await?,
            IoEngine::FileDelete => sys.unlink(name).await?,
            _ => return Err(Errno::EINVAL),
        }
        self.latencies.record(sys.now() - began);
        Ok(())
    }

    /// Gives its open files away.
    pub(super) fn take_open(&mut self) -> Vec<Fd> {
        std::mem::take(&mut self.open)
    }

    /// Puts its latencies in place of those of the I/Os.
    pub(super) fn into_stats(self, stats: &mut JobStats) {
        if let Some(d) = stats.dirs.iter_mut().find(|d| d.ios > 0) {
            d.only(self.latencies);
        }
    }
}
