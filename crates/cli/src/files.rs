//! Reading what the user names and writing what comes out.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use iosched_types::Diagnostic;
use iosched_workloads::fio::Lookup;

use crate::fail::{Failure, Outcome};

/// The longest text file accepted. Job, device and experiment files are far smaller; I/O logs may be large.
const MAX_TEXT: u64 = 256 << 20;

/// A text file.
///
/// A missing, unreadable, huge or binary file is refused with the reason, and no more than the limit is
/// ever read: `/dev/zero` ends, too.
pub(crate) fn text(path: &str) -> Result<String, String> {
    let plain = |e: std::io::Error| plain(&e);
    let mut file = File::open(path).map_err(plain)?;
    let meta = file.metadata().map_err(plain)?;
    if meta.is_dir() {
        return Err("it is a folder".into());
    }
    let too_large = || format!("larger than {} MiB: this is no file of ours", MAX_TEXT >> 20);
    if meta.len() > MAX_TEXT {
        return Err(too_large());
    }
    // By its first bytes, too: logs lose their ending when they are passed on.
    let mut first = [0u8; 2];
    let packed = meta.is_file() && file.read_exact(&mut first).is_ok() && first == [0x1f, 0x8b];
    if meta.is_file() {
        file.rewind().map_err(plain)?;
    }
    if packed || path.ends_with(".gz") {
        return unpacked(file).map_err(|e| format!("{e}")).and_then(|bytes| match bytes {
            Some(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            None => Err(too_large()),
        });
    }
    let mut bytes = Vec::new();
    // Most binary files show within the first block; then the rest is not read.
    let mut head = [0u8; 4096];
    let mut file = file.take(MAX_TEXT + 1);
    loop {
        let n = file.read(&mut head).map_err(plain)?;
        if n == 0 {
            break;
        }
        if head[..n].contains(&0) {
            return Err("it is a binary file".into());
        }
        bytes.extend_from_slice(&head[..n]);
        if n == head.len() {
            file.read_to_end(&mut bytes).map_err(plain)?;
        }
    }
    if bytes.len() as u64 > MAX_TEXT {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let before = &e.as_bytes()[..at];
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|b| **b != b'\n').count();
        format!(
            "line {line}, byte {column} is not UTF-8: it is a binary file, or of another encoding"
        )
    })
}

/// What a gzip file holds; `None` when that is too much.
fn unpacked(file: File) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let limit = MAX_TEXT + 1;
    flate2::read::MultiGzDecoder::new(file).take(limit).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_TEXT).then_some(bytes))
}

/// A file of any size.
pub(crate) fn open(path: &str) -> Result<Box<dyn Read>, String> {
    if path == "-" {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = File::open(path).map_err(|e| plain(&e))?;
    let kind = file.metadata().map_err(|e| plain(&e))?.file_type();
    if kind.is_dir() {
        return Err("it is a folder".into());
    }
    if kind.is_block_device() {
        return Err("it is a disk; a recording of it is expected".into());
    }
    Ok(Box::new(file))
}

/// Why a file cannot be read, in words.
fn plain(e: &std::io::Error) -> String {
    match e.kind() {
        ErrorKind::NotFound => "no such file".to_string(),
        ErrorKind::PermissionDenied => "permission denied".to_string(),
        _ => e.to_string(),
    }
}

/// A text file. If it is missing, the program ends.
pub(crate) fn required(path: &str) -> Outcome<String> {
    text(path).map_err(|e| Diagnostic::file(path, format!("cannot read {path}: {e}")).into())
}

/// Prints to standard output. A reader that went away (`iosched list … | head`) ends the program quietly.
pub(crate) fn print(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Err(Failure::silent(0)),
        Err(e) => Err(Failure::input(format!("cannot write to standard output: {}", reason(&e)))),
    }
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Outcome {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Refuses a disk where a file is meant, because results would overwrite the disk's data.
pub(crate) fn no_disk(path: &Path) -> Outcome {
    let disk = std::fs::metadata(path).is_ok_and(|m| m.file_type().is_block_device());
    if disk {
        let message = format!("{} is a block device; it is not written to", path.display());
        return Err(Failure::with_help(message, "name a file"));
    }
    Ok(())
}

/// How a database begins, and its log of changes in either order of bytes.
const DATABASE: [&[u8]; 3] = [b"SQLite format 3\0", b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"];

/// Refuses a file of stored results, which a mistaken name would replace by one report.
fn no_results(path: &Path) -> Outcome {
    let mut begin = Vec::new();
    let plain = std::fs::metadata(path).is_ok_and(|m| m.is_file());
    if plain && let Ok(file) = File::open(path) {
        // What cannot be read is no results file that anybody uses here.
        let _ = file.take(16).read_to_end(&mut begin);
    }
    if DATABASE.iter().any(|d| begin.starts_with(d)) {
        let message = format!("{} is a database; it is not written over", path.display());
        return Err(Failure::with_help(message, "name another file, or remove this one first"));
    }
    Ok(())
}

/// Whether two names mean the same file, which need not be there yet.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    let whole = |p: &Path| {
        let absolute = std::path::absolute(p).ok()?;
        p.canonicalize()
            .ok()
            .or_else(|| Some(absolute.parent()?.canonicalize().ok()?.join(absolute.file_name()?)))
    };
    whole(a).is_some_and(|a| whole(b) == Some(a))
}

/// Why a file cannot be written, in words.
fn reason(e: &std::io::Error) -> String {
    match e.kind() {
        ErrorKind::StorageFull => "the disk is full".into(),
        ErrorKind::QuotaExceeded => "the quota is used up".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        ErrorKind::NotFound => "there is no such folder".into(),
        _ => e.to_string(),
    }
}

/// Writes a file whole or not at all: beside it first, then renamed. A link stays, and the file that it names is written.
pub(crate) fn write(path: &Path, text: &str) -> Outcome {
    no_disk(path)?;
    writable(path)?;
    let failed = |e: std::io::Error| {
        Failure::input(format!("cannot write {}: {}", path.display(), reason(&e)))
    };
    let special = std::fs::metadata(path).is_ok_and(|m| !m.is_file());
    if special {
        // /dev/stdout, a pipe: there is nothing to rename over.
        return std::fs::write(path, text).map_err(failed);
    }
    let behind = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut beside = behind.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let written = put(Path::new(&beside), text, std::fs::metadata(&behind).ok());
    let result = written.and_then(|()| std::fs::rename(&beside, &behind)).map_err(failed);
    if result.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    result
}

/// Writes a file whole or not at all, like [`write`], while it is made: `make` writes to what it is given.
pub(crate) fn stream<T>(
    path: &Path,
    make: impl FnOnce(Box<dyn Write + Send>) -> Outcome<T>,
) -> Outcome<T> {
    stream_file(path, |file, _| make(Box::new(file)))
}

/// The same; `make` is told whether the file is a regular one.
pub(crate) fn stream_file<T>(
    path: &Path,
    make: impl FnOnce(File, bool) -> Outcome<T>,
) -> Outcome<T> {
    no_disk(path)?;
    writable(path)?;
    let failed = |e: std::io::Error| {
        Failure::input(format!("cannot write {}: {}", path.display(), reason(&e)))
    };
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        return make(file, false);
    }
    let behind = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut beside = behind.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = Path::new(&beside);
    let replaced = std::fs::metadata(&behind).ok();
    let made = put(beside, "", replaced)
        .and_then(|()| OpenOptions::new().write(true).open(beside))
        .map_err(failed)
        .and_then(|file| make(file, true));
    let result = made.and_then(|made| {
        std::fs::rename(beside, &behind).map_err(failed)?;
        Ok(made)
    });
    if result.is_err() {
        let _ = std::fs::remove_file(beside);
    }
    result
}

/// Writes a new file, with the permissions of the one that it is to replace.
fn put(path: &Path, text: &str, replaced: Option<Metadata>) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    if let Some(old) = replaced {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())
}

/// Whether a file can be written there, as far as can be said before there is anything to write.
pub(crate) fn writable(path: &Path) -> Outcome {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|f| !f.is_dir()) {
        let message =
            format!("cannot write {}: there is no folder {}", path.display(), folder.display());
        return Err(Failure::with_help(message, "make it first, or choose another place"));
    }
    if path.is_dir() {
        let message = format!("cannot write {}: it is a folder", path.display());
        return Err(Failure::with_help(message, "name a file in it"));
    }
    no_results(path)
}

/// Writes to a file where one is named, else to standard output.
pub(crate) fn deliver(output: Option<&Path>, text: &str) -> Outcome {
    match output {
        Some(path) => write(path, text),
        None => print(text),
    }
}

/// Prints to standard error. A closed standard error is no problem.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The environment for job files.
pub(crate) struct Environment {
    /// CPUs of the machine the job is for.
    pub(crate) cpus: u16,
    /// Bytes of its memory, where it is not this one.
    pub(crate) memory: Option<u64>,
}

impl Lookup for Environment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn keyword(&self, name: &str) -> Option<u64> {
        match name {
            "pagesize" => Some(4096),
            "ncpus" => Some(u64::from(self.cpus)),
            "mb_memory" if self.memory.is_some() => self.memory.map(|bytes| bytes >> 20),
            "mb_memory" => {
                let text = std::fs::read_to_string("/proc/meminfo").ok()?;
                let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
                Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? / 1024)
            }
            _ => None,
        }
    }
}
