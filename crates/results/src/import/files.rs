//! Reading from the file system: bounded, and fio-plot's folder layout.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use iosched_experiment::record::{Record, Status, TrialId};
use iosched_schedulers::registry::SCHEDULERS;
use iosched_types::Diagnostic;

use super::MAX_BYTES;
use crate::store::{DOCUMENT_FORMAT, Document};

/// Deepest folder below the one named.
const MAX_DEPTH: usize = 6;
/// Most files of one folder tree.
const MAX_FILES: usize = 20_000;

/// A text file of at most [`MAX_BYTES`], in UTF-8 or UTF-16; other bytes become U+FFFD.
///
/// # Errors
/// A diagnostic: absent, unreadable, too large.
pub fn read_file(path: &Path) -> Result<String, Diagnostic> {
    let name = path.display().to_string();
    let failed = |e: std::io::Error| Diagnostic::file(name.clone(), unreadable(&e));
    #[expect(clippy::disallowed_methods, reason = "importers read the files that people name")]
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // Not by the file's length: a pipe has none.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Diagnostic::file(name, format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(decoded(bytes))
}

/// The text of a file: UTF-8, or UTF-16 with its mark, which PowerShell's `>` writes. What is neither becomes U+FFFD.
pub(super) fn decoded(bytes: Vec<u8>) -> String {
    let word: Option<fn([u8; 2]) -> u16> = match bytes[..] {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    };
    if let Some(word) = word {
        let words = bytes[2..].chunks(2).map(|c| word([c[0], c.get(1).copied().unwrap_or(0)]));
        let chars = char::decode_utf16(words).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
        return chars.collect();
    }
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    }
}

/// Why a file cannot be read, without the system's number for it.
fn unreadable(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        std::io::ErrorKind::PermissionDenied => "you may not read it".into(),
        std::io::ErrorKind::IsADirectory => "is a folder".into(),
        _ => e.to_string(),
    }
}

/// A document of ours that is larger than `limit` bytes, read without holding its text. `None` for smaller files, which
/// [`read_file`] takes, and for those that are no such document.
///
/// # Errors
/// A diagnostic: damaged, or of a newer version.
pub fn large_document(path: &Path, limit: u64) -> Result<Option<Document>, Diagnostic> {
    let name = path.display().to_string();
    let failed = |e: std::io::Error| Diagnostic::file(name.clone(), unreadable(&e));
    #[expect(clippy::disallowed_methods, reason = "importers read the files that people name")]
    let file = std::fs::File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() || meta.len() <= limit {
        return Ok(None);
    }
    let mut reader = std::io::BufReader::with_capacity(1 << 20, file);
    let head = reader.fill_buf().map_err(failed)?;
    let head = String::from_utf8_lossy(&head[..head.len().min(200)]).into_owned();
    if !head.contains(&format!("\"{DOCUMENT_FORMAT}\"")) {
        return Ok(None);
    }
    let damaged = |e: serde_json::Error| {
        Diagnostic::file(name.clone(), format!("not a results document: {e}"))
    };
    let document: Document = serde_json::from_reader(reader).map_err(damaged)?;
    super::detect::version(&name, &document)?;
    Ok(Some(document))
}

/// Reads a folder as fio-plot's bench-fio leaves it: JSON files `randread-32-4.json` (pattern, depth, jobs), often in
/// folders named after device and block size. Schedulers are the folders (or, for one folder, `trial`'s).
///
/// The workload is the file's stem with the block-size folder before it; a folder named like a known
/// scheduler gives the scheduler, otherwise the option `ioscheduler` in the file does.
///
/// # Errors
/// A diagnostic: no folder, no JSON file, a damaged file.
pub fn fio_plot(folder: &Path, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let mut files = Vec::new();
    collect(folder, 0, ".json", &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(Diagnostic::file(folder.display().to_string(), "no .json file in this folder"));
    }
    let mut out = Vec::new();
    for path in files {
        let text = read_file(&path)?;
        let inside = path.strip_prefix(folder).unwrap_or(&path);
        let mut id = trial.clone();
        let stem = inside.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let mut above: Vec<String> =
            folder.file_name().into_iter().map(|s| s.to_string_lossy().into_owned()).collect();
        above.extend(
            inside
                .parent()
                .into_iter()
                .flat_map(Path::components)
                .map(|c| c.as_os_str().to_string_lossy().into_owned()),
        );
        place(&mut id, &above);
        if id.workload.is_empty() {
            let size = above.iter().rev().find(|f| is_block_size(f));
            id.workload = size.map_or_else(|| stem.clone(), |s| format!("{stem}-{s}"));
        }
        out.extend(super::from_fio_json(&path.display().to_string(), &text, &id)?);
    }
    number_repetitions(&mut out);
    super::detect::figured(&folder.display().to_string(), out)
}

/// Ending of the files that the S suite writes.
const S_ENDING: &str = "_stat.txt";

/// Whether a folder tree has files of the S suite.
///
/// # Errors
/// A diagnostic: no folder.
pub fn has_s_files(folder: &Path) -> Result<bool, Diagnostic> {
    let mut files = Vec::new();
    collect(folder, 0, S_ENDING, &mut files)?;
    Ok(!files.is_empty())
}

/// Reads a folder of S result files, one trial each. S leaves no file for a start-up that struck its time limit, and
/// its tables print an X there. So a cell that only another scheduler has is a failed trial.
///
/// # Errors
/// A diagnostic: no folder, no such file, a damaged one.
pub fn s_folder(folder: &Path, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let mut files = Vec::new();
    collect(folder, 0, S_ENDING, &mut files)?;
    files.sort();
    let mut out = Vec::new();
    for path in files {
        out.extend(super::from_s_suite(&path.display().to_string(), &read_file(&path)?, trial)?);
    }
    if out.is_empty() {
        let message = format!("no file *{S_ENDING} in this folder");
        return Err(Diagnostic::file(folder.display().to_string(), message));
    }
    let all = |f: fn(&TrialId) -> &String| -> Vec<String> {
        out.iter().map(|r| f(&r.trial).clone()).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let (schedulers, workloads) = (all(|t| &t.scheduler), all(|t| &t.workload));
    for (s, w) in schedulers.iter().flat_map(|s| workloads.iter().map(move |w| (s, w))) {
        if !out.iter().any(|r| r.trial.scheduler == *s && r.trial.workload == *w) {
            let mut r = super::iozone::fresh(trial, None);
            (r.trial.scheduler, r.trial.workload) = (s.clone(), w.clone());
            r.status = Status::Failed("no file: S leaves none when its time limit struck".into());
            out.push(r);
        }
    }
    let name = folder.display().to_string();
    out.iter_mut().for_each(|r| super::detect::fill(&mut r.trial, trial, &name));
    number_repetitions(&mut out);
    Ok(out)
}

/// Scheduler and device from folder names.
fn place(id: &mut TrialId, folders: &[String]) {
    let is_scheduler = |f: &&String| SCHEDULERS.iter().any(|d| d.name == f.as_str());
    if let (true, Some(s)) = (id.scheduler.is_empty(), folders.iter().rev().find(is_scheduler)) {
        id.scheduler.clone_from(s);
    }
    let device = folders.iter().rev().find(|f| !is_scheduler(f) && !is_block_size(f));
    if let (true, Some(d)) = (id.device.is_empty(), device) {
        id.device.clone_from(d);
    }
}

/// `4k`, `1m`, `65536`.
fn is_block_size(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_digit())
        && iosched_types::units::parse_bytes(name).is_some()
}

fn number_repetitions(records: &mut [Record]) {
    let mut counts = BTreeMap::<(String, String, String), u32>::new();
    for r in records {
        let t = &mut r.trial;
        let n =
            counts.entry((t.device.clone(), t.scheduler.clone(), t.workload.clone())).or_default();
        *n += 1;
        t.repetition = *n;
    }
}

fn collect(
    folder: &Path,
    depth: usize,
    ending: &str,
    out: &mut Vec<PathBuf>,
) -> Result<(), Diagnostic> {
    let failed = |e: std::io::Error| Diagnostic::file(folder.display().to_string(), e.to_string());
    #[expect(clippy::disallowed_methods, reason = "importers read the folders that people name")]
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    for entry in entries {
        let entry = entry.map_err(failed)?;
        // Links are not followed, because a loop would never end.
        let kind = entry.file_type().map_err(failed)?;
        let path = entry.path();
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(&path, depth + 1, ending, out)?;
        } else if kind.is_file() && entry.file_name().to_string_lossy().ends_with(ending) {
            if out.len() >= MAX_FILES {
                return Err(Diagnostic::file(
                    folder.display().to_string(),
                    format!("more than {MAX_FILES} files"),
                ));
            }
            out.push(path);
        }
    }
    Ok(())
}
