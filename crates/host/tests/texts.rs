//! Texts of benchmarks beside the real programs: the same system calls, as strace sees them.
//!
//! Where a program or strace is not installed, its test says so.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests of real programs in real directories"
)]

mod rig;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use iosched_syscalls::{Answer, Birth, Call, Done, Fd, Program};
use iosched_types::Nanos;
use iosched_workloads::programs::{Descriptor, Params};

/// What was called, in order: call, last part of the name, length.
type Calls = Vec<String>;

/// A program whose calls are written down.
struct Recorded {
    inner: Box<dyn Program>,
    /// The calls of each process, in the order of their births.
    log: Arc<Mutex<Vec<Calls>>>,
    process: usize,
    names: BTreeMap<Fd, String>,
    opening: Option<String>,
}

impl Recorded {
    fn birth(birth: Birth, log: Arc<Mutex<Vec<Calls>>>) -> Birth {
        Birth(Box::new(move || {
            let mut all = log.lock().unwrap();
            all.push(Calls::new());
            let (process, names) = (all.len() - 1, BTreeMap::new());
            drop(all);
            Box::new(Recorded { inner: (birth.0)(), log, process, names, opening: None })
        }))
    }

    fn line(&mut self, call: &Call) -> Option<String> {
        let last = |path: &dyn std::fmt::Debug| {
            let text = format!("{path:?}");
            text.trim_matches('"').rsplit('/').next().unwrap_or_default().to_string()
        };
        let name = |fd: &Fd| self.names.get(fd).cloned().unwrap_or_default();
        Some(match call {
            Call::Open { path, .. } => {
                let name = last(path);
                self.opening = Some(name.clone());
                format!("open {name}")
            }
            Call::Close { fd } => format!("close {}", name(fd)),
            Call::Read { fd, len } => format!("read {} {len}", name(fd)),
            Call::Pread { fd, at, len } => format!("pread {} at {at} {len}", name(fd)),
            Call::Write { fd, len } => format!("write {} {len}", name(fd)),
            Call::Pwrite { fd, at, len } => format!("pwrite {} at {at} {len}", name(fd)),
            Call::Truncate { fd, .. } => format!("ftruncate {}", name(fd)),
            Call::Fsync { fd } => format!("fsync {}", name(fd)),
            Call::Fdatasync { fd } => format!("fdatasync {}", name(fd)),
            Call::Sync => "sync".into(),
            Call::Stat { path, .. } => format!("stat {}", last(path)),
            Call::Fstat { fd, .. } => format!("fstat {}", name(fd)),
            Call::Seek { fd, .. } => format!("lseek {}", name(fd)),
            Call::Unlink { path } => format!("unlink {}", last(path)),
            Call::Mkdir { path } => format!("mkdir {}", last(path)),
            Call::Rename { from, .. } => format!("rename {}", last(from)),
            Call::Touch { path } => format!("utimensat {}", last(path)),
            _ => return None,
        })
    }
}

impl Program for Recorded {
    fn resume(&mut self, now: Nanos, answer: Answer) -> Option<Call> {
        if let (Some(name), Ok(fd)) = (self.opening.take(), answer) {
            self.names.insert(Fd(fd as u32), name);
        }
        let mut call = self.inner.resume(now, answer)?;
        if let Some(line) = self.line(&call) {
            self.log.lock().unwrap()[self.process].push(line);
        }
        if let Call::Spawn { birth, .. } = &mut call {
            let nothing = Birth(Box::new(|| unreachable!("taken")));
            let inner = std::mem::replace(birth, nothing);
            *birth = Recorded::birth(inner, self.log.clone());
        }
        Some(call)
    }

    fn status(&self) -> Done {
        self.inner.status()
    }
}

/// The calls of a text, process by process.
fn ours(line: &str) -> Vec<Calls> {
    let (descriptor, params) = Descriptor::from_command_line(line).unwrap();
    calls_of(descriptor, params)
}

fn calls_of(descriptor: &Descriptor, params: Params) -> Vec<Calls> {
    let mut host = rig::mounted("none", 4, 8 << 30, 4 << 30, true);
    let log = Arc::new(Mutex::new(Vec::new()));
    let birth = Recorded::birth(descriptor.measured(&params), log.clone());
    host.run(birth, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let calls = log.lock().unwrap().clone();
    calls.into_iter().filter(|c| !c.is_empty()).collect()
}

/// The calls of a real program on files below a directory, process by process; `None` where it is not installed.
fn real(dir: &Path, program: &str, args: &[&str], input: &str) -> Option<Vec<Calls>> {
    let installed = |p: &str| {
        p.contains('/') && Path::new(p).exists()
            || Command::new("sh")
                .args(["-c", &format!("command -v {p}")])
                .output()
                .is_ok_and(|o| o.status.success())
    };
    for tool in ["strace", program] {
        if !installed(tool) {
            eprintln!("SKIPPED: {tool} is not installed");
            return None;
        }
    }
    let (logs, text) = (tempfile::tempdir().unwrap(), dir.with_extension("in"));
    std::fs::write(&text, input).unwrap();
    let status = Command::new("strace")
        .args(["-ff", "-s", "0", "-o"])
        .arg(logs.path().join("log"))
        .arg(program)
        .args(args)
        .current_dir(dir)
        .stdin(std::fs::File::open(&text).unwrap())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    if !status.success() {
        eprintln!("SKIPPED: strace {program} failed (no right to trace?)");
        return None;
    }
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
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_string();
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
                let name = if path == dir || path == "." { ".".to_string() } else { last };
                names.insert(result, name.clone());
                format!("open {name}")
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
fn split_at<'a>(calls: &'a [String], begins: &str) -> Vec<&'a [String]> {
    let mut at: Vec<usize> = (0..calls.len()).filter(|i| calls[*i] == begins).collect();
    at.push(calls.len());
    at.windows(2).map(|w| &calls[w[0]..w[1]]).collect()
}

/// The same with names that do not matter left out.
fn kinds(calls: &[String]) -> BTreeMap<String, u64> {
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

fn inserts(journal: &str, synchronous: &str, page: u32, n: u32) -> String {
    let mut sql = format!("PRAGMA page_size={page}; PRAGMA journal_mode={journal};\n");
    sql += &format!("PRAGMA synchronous={synchronous};\n");
    sql += "CREATE TABLE t (i SMALLINT NOT NULL, d TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, \
            a VARCHAR(4) NOT NULL, b VARCHAR(16) NOT NULL);\n";
    for i in 0..n {
        sql += &format!(
            "INSERT INTO t VALUES ({}, CURRENT_TIMESTAMP, 'abcd', 'abcdefghijklmnop');\n",
            200 + i % 700
        );
    }
    sql
}

#[test]
fn sqlite_makes_the_same_calls_in_the_same_order() {
    const N: u32 = 120;
    for (journal, synchronous, page) in [
        ("delete", "full", 1024),
        ("delete", "normal", 1024),
        ("delete", "off", 4096),
        ("truncate", "full", 1024),
        ("persist", "full", 4096),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let sql = inserts(journal, synchronous, page, N);
        let Some(real) = real(dir.path(), "sqlite3", &["pts.db"], &sql) else { return };
        let ours = ours(&format!("sqlite {N} 1 {journal} {synchronous} {page} 46"));
        // A transaction begins when the journal is opened for writing. The first one makes the table.
        let [real, ours] = [real.concat(), ours.concat()];
        let parts = |calls: &[String]| -> Vec<Calls> {
            let all = split_at(calls, "open pts.db-journal");
            let large = all.into_iter().filter(|p| p.len() > 9).map(<[String]>::to_vec);
            large.collect()
        };
        let [real, ours] = [parts(&real), parts(&ours)];
        let real = &real[real.len() - N as usize..];
        let ours = &ours[ours.len() - N as usize..];
        // The last one is followed by the end of the program.
        for (i, (r, o)) in real.iter().zip(ours).enumerate().take(N as usize - 1) {
            assert_eq!(r, o, "{journal} {synchronous}, insert {i}: the real one, ours");
        }
    }
}

#[test]
fn sqlite_writes_its_log_in_the_same_way() {
    const N: u32 = 1200;
    for (synchronous, page) in [("full", 1024), ("normal", 4096)] {
        let dir = tempfile::tempdir().unwrap();
        let sql = inserts("wal", synchronous, page, N);
        let Some(real) = real(dir.path(), "sqlite3", &["pts.db"], &sql) else { return };
        let ours = ours(&format!("sqlite {N} 1 wal {synchronous} {page} 46"));
        let of = |calls: Vec<Calls>| -> Calls {
            let all = calls.concat();
            let after = all.iter().position(|c| c == "pwrite pts.db-wal at 0 32").unwrap();
            let about = |c: &&String| {
                (c.contains("write") || c.contains("sync") || c.contains("pread pts.db-wal"))
                    && !c.contains("-shm")
            };
            all[after..].iter().filter(about).cloned().collect()
        };
        let [real, ours] = [of(real), of(ours)];
        // Reads of frames that are already in memory do not count in either.
        let first = real.iter().zip(&ours).position(|(r, o)| r != o);
        assert_eq!(
            first,
            None,
            "{:?}",
            first.map(|i| (i, &real[i - 3..i + 3], &ours[i - 3..i + 3]))
        );
        assert_eq!(real.len(), ours.len());
    }
}

#[test]
fn fs_mark_makes_the_same_calls_for_each_file() {
    for sync in 0..=6 {
        let dir = tempfile::tempdir().unwrap();
        let (path, s) = (dir.path().to_str().unwrap(), sync.to_string());
        let log = tempfile::NamedTempFile::new().unwrap();
        let args = ["-d", path, "-s", "40000", "-n", "10", "-t", "1", "-L", "1", "-S", &s, "-l"];
        let args = [&args[..], &[log.path().to_str().unwrap()]].concat();
        let Some(real) = real(dir.path(), "fs_mark", &args, "") else { return };
        let ours = ours(&format!("fs-mark 10 40000 1 0 {sync}"));
        let [real, ours] = [kinds(&real.concat()), kinds(&ours.concat())];
        // It makes its directory once more at the start.
        let files = |all: &BTreeMap<String, u64>| -> BTreeMap<String, u64> {
            let mut all = all.clone();
            all.remove("mkdir");
            all
        };
        assert_eq!(files(&real), files(&ours), "-S {sync}");
        assert_eq!(real["mkdir"] - 1, ours["mkdir"]);
    }
}

#[test]
fn pg_test_fsync_makes_the_same_calls_for_each_operation() {
    const PROGRAM: &str = "/usr/lib/postgresql/15/bin/pg_test_fsync";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pg_test_fsync.out");
    let args = ["-s", "1", "-f", file.to_str().unwrap()];
    let Some(real) = real(dir.path(), PROGRAM, &args, "") else { return };
    let ours = ours("pg-test-fsync 1 8k");
    // Between two openings of the file: each different call once.
    let bodies = |calls: Vec<Calls>| -> Vec<Calls> {
        let mut bodies = vec![Calls::new()];
        for call in calls.concat() {
            if call.starts_with("open") {
                bodies.push(Calls::new());
            }
            let body = bodies.last_mut().unwrap();
            if !body.contains(&call) {
                body.push(call);
            }
        }
        // What comes before the first one is the start of the program.
        bodies.remove(0);
        // Of the two tests that open it each time the rounds are equal.
        let mut seen = Vec::new();
        bodies
            .into_iter()
            .filter(|b| {
                !seen.contains(b) && {
                    seen.push(b.clone());
                    true
                }
            })
            .collect()
    };
    assert_eq!(bodies(real), bodies(ours));
}

#[test]
fn postmark_makes_as_many_calls_of_each_kind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let config = dir.path().with_extension("cfg");
    let text = format!(
        "set location {path}\nset size 5120 524288\nset number 100\nset transactions 2000\nrun\nquit\n"
    );
    std::fs::write(&config, text).unwrap();
    let Some(real) = real(dir.path(), "postmark", &[config.to_str().unwrap()], "") else { return };
    let ours = ours("postmark 100 2000");
    let [real, ours] = [kinds(&real.concat()), kinds(&ours.concat())];
    let sum = |all: &BTreeMap<String, u64>, kind: &str| -> f64 {
        let of = all.iter().filter(|(k, _)| k.split(' ').next() == Some(kind));
        of.map(|(_, n)| *n as f64).sum()
    };
    // Chance decides: 2,000 throws of a coin differ by 45 between two series, sums of lengths by some percent.
    for (kind, within) in
        [("open", 0.04), ("close", 0.04), ("unlink", 0.08), ("read", 0.1), ("write", 0.1)]
    {
        let (r, o) = (sum(&real, kind), sum(&ours, kind));
        assert!((r / o - 1.0).abs() < within, "{kind}: {r} beside {o}");
    }
}

/// The first lines of the real load, so that every kind of operation is among them.
const LINES: usize = 3000;

#[test]
fn dbench_makes_the_same_calls_in_a_loop_of_its_own_load() {
    const CLIENT: &str = "/usr/share/dbench/client.txt";
    let Ok(text) = std::fs::read_to_string(CLIENT) else {
        return eprintln!("SKIPPED: {CLIENT} is not installed");
    };
    let text: String = text.lines().take(LINES).flat_map(|l| [l, "\n"]).collect();
    let (dir, file) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    std::fs::write(file.path(), &text).unwrap();
    let path = dir.path().to_str().unwrap();
    let args = ["-c", file.path().to_str().unwrap(), "-D", path, "-t", "12", "1"];
    let Some(real) = real(dir.path(), "dbench", &args, "") else { return };
    let set = [("clients", "1"), ("time", "3"), ("warmup", "0"), ("loadfile", "first lines")];
    let set = set.map(|(n, v)| (n.to_string(), v.to_string()));
    let d = Descriptor::find("dbench").unwrap();
    let params = Params::of(d, &set).unwrap();
    let ours = calls_of(d, params.with_files(d, &|_| Ok(text.clone())).unwrap());
    // The first whole loop: from one `Mkdir` to the next, so with the deletion of all in between.
    let first = |calls: &[Calls]| -> BTreeMap<String, u64> {
        let client = calls.iter().max_by_key(|c| c.len()).unwrap();
        let loops = split_at(client, "mkdir clients");
        assert!(loops.len() > 1, "one loop is not done in the time");
        kinds(loops[0])
    };
    assert_eq!(first(&real), first(&ours));
    assert!(first(&ours)["fsync"] > 30);
}
