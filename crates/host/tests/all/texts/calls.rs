//! Calls of a text as a simulated host gets them, and of a real program as strace sees them, in the same words.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use iosched_syscalls::OpenFlags;
use iosched_syscalls::recorder::{Recorder, Recording, Seen};
use iosched_workloads::programs::{Descriptor, Params};

/// What was called, in order: call, last part of the name, length.
pub(super) type Calls = Vec<String>;

/// Ways of opening that make writes durable or lead past the page cache, and how the words for them begin.
const DURABLE: [(OpenFlags, &str); 3] = [
    (OpenFlags::DSYNC, " O_DSYNC"),
    (OpenFlags::SYNC, " O_SYNC"),
    (OpenFlags::DIRECT, " O_DIRECT"),
];

/// A call in the words of both sides; nothing for those that strace does not show or that name no file.
fn line(c: &Seen) -> Option<String> {
    let name = c.name.rsplit('/').next().unwrap_or_default();
    let (at, len) = (c.at.unwrap_or(0), c.len.unwrap_or(0));
    Some(match c.call {
        "open" => {
            let set = DURABLE.iter().filter(|(flag, _)| c.flags.has(*flag));
            format!("open {name}{}", set.map(|(_, word)| *word).collect::<String>())
        }
        "read" | "write" => format!("{} {name} {len}", c.call),
        "pread" | "pwrite" => format!("{} {name} at {at} {len}", c.call),
        "sync" => "sync".into(),
        "stat" | "lstat" => format!("stat {name}"),
        "close" | "ftruncate" | "fsync" | "fdatasync" | "fstat" | "lseek" | "unlink" | "mkdir"
        | "rename" | "utimensat" => format!("{} {name}", c.call),
        _ => return None,
    })
}

/// The calls of a text, process by process.
pub(super) fn ours(line: &str) -> Vec<Calls> {
    let (descriptor, params) = Descriptor::from_command_line(line).unwrap();
    calls_of(descriptor, params)
}

pub(super) fn calls_of(descriptor: &Descriptor, params: Params) -> Vec<Calls> {
    let seen = recording(descriptor, params);
    let calls = seen.processes.iter().map(|p| p.iter().filter_map(line).collect::<Calls>());
    calls.filter(|c| !c.is_empty()).collect()
}

/// All that a text calls, with its times.
pub(super) fn recording(descriptor: &Descriptor, params: Params) -> Recording {
    let mut host = crate::rig::mounted("none", 4, 8 << 30, 4 << 30, true);
    let recorder = Recorder::default();
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    if let Some(prepare) = descriptor.preparation(&params) {
        host.prepare(prepare, go_on).unwrap();
    }
    host.run(recorder.observe(descriptor.measured(&params)), go_on).unwrap();
    let seen = recorder.take();
    assert_eq!(seen.left_out, 0, "calls that were not kept");
    seen
}

/// Whether a program is installed, by its name or path.
fn installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|p| p.join(program).is_file())
}

/// The calls of a real program on files below a directory, process by process; `None` where it is not installed or cannot
/// be traced.
pub(super) fn real(dir: &Path, program: &str, args: &[&str], input: &str) -> Option<Vec<Calls>> {
    for tool in ["strace", program] {
        if !installed(tool) {
            eprintln!("SKIPPED: {tool} is not installed");
            return None;
        }
    }
    if !Command::new("strace").arg("true").output().is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: strace may not trace here");
        return None;
    }
    let (logs, text) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    std::fs::write(text.path(), input).unwrap();
    let done = Command::new("strace")
        .args(["-ff", "-s", "0", "-o"])
        .arg(logs.path().join("log"))
        .arg(program)
        .args(args)
        .current_dir(dir)
        .stdin(std::fs::File::open(text.path()).unwrap())
        .output()
        .unwrap();
    let said =
        [done.stdout, done.stderr].map(|t| String::from_utf8_lossy(&t).into_owned()).concat();
    assert!(done.status.success(), "{program} {args:?}: {}: {said}", done.status);
    let mut files: Vec<_> =
        std::fs::read_dir(logs.path()).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort_by_key(|f| f.extension().and_then(|e| e.to_str()?.parse::<u64>().ok()));
    let calls = files.iter().map(|f| below(dir, &std::fs::read_to_string(f).unwrap()));
    Some(calls.filter(|c| !c.is_empty()).collect())
}

/// The calls of a log of strace that are about files below `dir`.
fn below(dir: &Path, log: &str) -> Calls {
    let dir = dir.to_str().unwrap();
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut calls = Calls::new();
    for line in log.lines() {
        let Some((call, rest)) = line.split_once('(') else { continue };
        let Some((args, result)) = rest.rsplit_once(" = ") else { continue };
        let result = result.split_whitespace().next().unwrap_or_default();
        let path = args.split('"').nth(1).unwrap_or_default();
        let path = path.trim_end_matches('/');
        let last = if path == dir { "." } else { path.rsplit('/').next().unwrap_or_default() };
        let last = last.to_string();
        let fd = args.split([',', ')']).next().unwrap_or_default().trim();
        let inside = path.starts_with(dir) || !path.starts_with('/') && !path.is_empty();
        let words: Vec<&str> = args.trim_end_matches([' ', ')']).split(", ").collect();
        let count = || match words.as_slice() {
            [.., len, at] if call.starts_with('p') => format!("at {at} {len}"),
            [.., len] => (*len).to_string(),
            [] => String::new(),
        };
        let name = names.get(fd).cloned();
        let kind = call.trim_end_matches("64");
        let line = match (kind, name) {
            ("openat" | "open", _) if inside => {
                names.insert(result, last.clone());
                let set = DURABLE.iter().map(|(_, word)| *word);
                let set = set.filter(|w| args.split([',', ' ', '|', ')']).any(|a| a == w.trim()));
                format!("open {last}{}", set.collect::<String>())
            }
            ("close", Some(name)) => {
                names.remove(fd);
                format!("close {name}")
            }
            ("read" | "pread" | "write" | "pwrite", Some(name)) => {
                format!("{kind} {name} {}", count())
            }
            ("ftruncate" | "fsync" | "fdatasync" | "lseek", Some(name)) => format!("{kind} {name}"),
            ("newfstatat", Some(name)) if path.is_empty() => format!("fstat {name}"),
            ("fstat", Some(name)) => format!("fstat {name}"),
            ("newfstatat" | "stat", _) if inside && !path.is_empty() => format!("stat {last}"),
            ("unlink" | "mkdir" | "rename" | "utimensat", _) if inside => format!("{kind} {last}"),
            ("sync", _) => "sync".into(),
            _ => continue,
        };
        calls.push(line);
    }
    calls
}

/// The parts of a list that begin with this line.
pub(super) fn split_at<'a>(calls: &'a [String], begins: &str) -> Vec<&'a [String]> {
    let mut at: Vec<usize> = (0..calls.len()).filter(|i| calls[*i] == begins).collect();
    at.push(calls.len());
    at.windows(2).map(|w| &calls[w[0]..w[1]]).collect()
}

/// The same with names that do not matter left out.
pub(super) fn kinds(calls: &[String]) -> BTreeMap<String, u64> {
    let mut kinds = BTreeMap::new();
    for call in calls {
        let mut words = call.split(' ');
        let kind = words.next().unwrap_or_default();
        let bytes = call.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok());
        let transfer = kind.ends_with("read") || kind.ends_with("write");
        let key =
            if transfer { format!("{kind} {}", bytes.unwrap_or(0)) } else { kind.to_string() };
        *kinds.entry(key).or_default() += 1;
    }
    kinds
}

/// The same with names in the order in which they come first: those of two programs may differ.
pub(super) fn anonymous(calls: &[String]) -> Calls {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines = Calls::new();
    for call in calls {
        let mut words: Vec<String> = call.split(' ').map(String::from).collect();
        let next = names.len();
        if let (Some(name), Some(word)) = (call.split(' ').nth(1), words.get_mut(1)) {
            *word = format!("file{}", names.entry(name).or_insert(next));
        }
        lines.push(words.join(" "));
    }
    lines
}

/// What a loop does again and again; its last round may be cut off.
pub(super) fn round(calls: &[String]) -> Calls {
    let repeats = |n: &usize| (*n..calls.len()).all(|i| calls[i] == calls[i - n]);
    let n = (1..calls.len()).find(repeats).unwrap_or(calls.len());
    calls[..n].to_vec()
}
