//! What a job does with its files around its I/O: options that matter where there are files and a page cache.

use serde::{Deserialize, Serialize};

use super::spec::JobSpec;
use super::value::{self, Parsed, ValueError};

/// `fadvise_hint`: what fio tells the kernel of the order of its I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hint {
    /// Nothing.
    None,
    /// What the pattern says.
    #[default]
    Pattern,
    /// Random.
    Random,
    /// Sequential.
    Sequential,
}

/// `fallocate`: how files that are to be written get their space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Allocate {
    /// Not before they are written.
    None,
    /// By `fallocate(2)`, as long as they will be (`native`).
    #[default]
    Whole,
    /// By `posix_fallocate(3)`: the same call, and where the file system has none, a byte in each block.
    Posix,
    /// By `fallocate(2)` behind their end (`keep`).
    Keep,
    /// By `ftruncate(2)`: as long as they will be, without blocks.
    Truncate,
}

/// `sync_file_range`: after so many writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncRange {
    /// Writes between two calls; 0 never.
    pub every: u32,
    /// It waits for what is written (`wait_before`, `wait_after`).
    pub wait: bool,
}

/// What fio does with a job's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileOptions {
    /// `invalidate`: cached pages are dropped before the job.
    pub invalidate: bool,
    /// `fadvise_hint`.
    pub hint: Hint,
    /// `fallocate`.
    pub allocate: Allocate,
    /// `overwrite`: files are written before the job.
    pub overwrite: bool,
    /// `create_on_open`: files are made when they are opened, and empty.
    pub create_on_open: bool,
    /// `pre_read`: files are read into memory before the job.
    pub pre_read: bool,
    /// `unlink`: files are removed after the job.
    pub unlink: bool,
    /// `fsync_on_close`.
    pub fsync_on_close: bool,
    /// `sync_file_range`.
    pub sync_range: SyncRange,
    /// `filename_format`.
    pub format: Option<String>,
    /// `file_append`: the job's part of a file begins at the end that the file had before.
    pub append: bool,
    /// `create_only`: the job makes its files and does no I/O.
    pub create_only: bool,
    /// `openfiles`: so many files are open at a time; 0 for all.
    pub open_at_once: u32,
    /// `stat_type`: asks for the link itself, not for what it leads to. So fio's `statx` does.
    pub lstat: bool,
}

impl Default for FileOptions {
    /// fio's defaults.
    fn default() -> Self {
        FileOptions {
            invalidate: true,
            hint: Hint::default(),
            allocate: Allocate::default(),
            overwrite: false,
            create_on_open: false,
            pre_read: false,
            unlink: false,
            fsync_on_close: false,
            sync_range: SyncRange::default(),
            format: None,
            append: false,
            create_only: false,
            open_at_once: 0,
            lstat: false,
        }
    }
}

pub(crate) fn apply(spec: &mut JobSpec, name: &str, text: &str) -> Parsed<bool> {
    let o = &mut spec.file_options;
    let flag = match name {
        "invalidate" => &mut o.invalidate,
        "overwrite" => &mut o.overwrite,
        "create_on_open" => &mut o.create_on_open,
        "pre_read" => &mut o.pre_read,
        "unlink" => &mut o.unlink,
        "fsync_on_close" => &mut o.fsync_on_close,
        "file_append" => &mut o.append,
        "create_only" => &mut o.create_only,
        _ => return with_value(spec, name, text),
    };
    *flag = value::boolean(text)?;
    Ok(true)
}

fn with_value(spec: &mut JobSpec, name: &str, text: &str) -> Parsed<bool> {
    let o = &mut spec.file_options;
    match name {
        "fadvise_hint" => {
            let words = ["0", "1", "none", "random", "sequential"];
            let word = value::word(text.split(':').next().unwrap_or(text), &words)?;
            let hints = [Hint::None, Hint::Pattern, Hint::None, Hint::Random, Hint::Sequential];
            o.hint = hints[word];
        }
        "fallocate" => {
            use Allocate::{Keep, None, Posix, Truncate, Whole};
            let words = ["none", "native", "posix", "keep", "truncate", "0", "1"];
            o.allocate =
                [None, Whole, Posix, Keep, Truncate, None, Posix][value::word(text, &words)?];
        }
        "sync_file_range" => o.sync_range = sync_range(text)?,
        "openfiles" => o.open_at_once = value::small(text, 1, u32::MAX, 1024)?,
        "stat_type" => o.lstat = value::word(text, &["stat", "lstat", "statx"])? > 0,
        "filename_format" => o.format = Some(text.to_string()),
        _ => return Ok(false),
    }
    Ok(true)
}

/// `wait_before,write,wait_after:N`.
fn sync_range(text: &str) -> Parsed<SyncRange> {
    let (modes, every) = text.rsplit_once(':').ok_or_else(|| {
        ValueError::new("wait_before, write, wait_after and a number of writes, such as write:8")
    })?;
    let mut wait = false;
    for mode in modes.split(',') {
        wait |= value::word(mode.trim(), &["write", "wait_before", "wait_after"])? > 0;
    }
    Ok(SyncRange { every: value::small(every, 1, u32::MAX, 1024)?, wait })
}

/// The name of a file by `filename_format`.
pub(crate) fn name(format: &str, job: &JobSpec, file: u32) -> String {
    format
        .replace("$jobname", &job.name)
        .replace("$jobnum", &job.subjob.to_string())
        .replace("$filenum", &file.to_string())
        .replace("$clientuid", "localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(options: &[(&str, &str)]) -> FileOptions {
        let mut spec = JobSpec::default();
        for (name, text) in options {
            assert_eq!(apply(&mut spec, name, text), Ok(true), "{name}");
        }
        spec.file_options
    }

    #[test]
    fn options_of_files_are_understood() {
        let o = applied(&[
            ("invalidate", "0"),
            ("fadvise_hint", "random"),
            ("fallocate", "none"),
            ("sync_file_range", "wait_before,write:8"),
            ("unlink", "1"),
        ]);
        assert_eq!((o.invalidate, o.unlink), (false, true));
        assert_eq!((o.hint, o.allocate), (Hint::Random, Allocate::None));
        assert_eq!(o.sync_range, SyncRange { every: 8, wait: true });
        let mut spec = JobSpec::default();
        assert!(apply(&mut spec, "sync_file_range", "write").is_err());
        assert!(apply(&mut spec, "sync_file_range", "wrte:8").is_err());
        assert!(apply(&mut spec, "fallocate", "nativ").is_err());
    }

    #[test]
    fn names_are_made_up_by_the_format() {
        let job = JobSpec { name: "a".into(), subjob: 3, ..JobSpec::default() };
        assert_eq!(name("s$jobnum", &job, 0), "s3");
        assert_eq!(name("$jobname.$jobnum.$filenum", &job, 7), "a.3.7");
    }
}
