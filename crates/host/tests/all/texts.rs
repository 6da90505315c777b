//! Texts of benchmarks beside the real programs: the same system calls, as strace sees them.
//!
//! Where a program or strace is not installed, its test says so.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests of real programs in real directories"
)]

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
    let mut host = crate::rig::mounted("none", 4, 8 << 30, 4 << 30, true);
    let log = Arc::new(Mutex::new(Vec::new()));
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    if let Some(prepare) = descriptor.preparation(&params) {
        host.prepare(prepare, go_on).unwrap();
    }
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

/// PostgreSQL with one client, and what its log has done: syncs, bytes; `None` where it cannot run.
fn real_log_of_pgbench(transactions: u64) -> Option<(u64, u64)> {
    const SCRIPT: &str = r#"
        B=/usr/lib/postgresql/15/bin; cd "$1"
        P="-k $1 -c listen_addresses= -c autovacuum=off"
        $B/initdb -D d -E SQL_ASCII --locale=C
        $B/pg_ctl -w -D d -o "$P" -l log start
        $B/createdb -h "$1" b && $B/pgbench -h "$1" -i -s 10 b && $B/psql -h "$1" b -c checkpoint
        $B/pg_ctl -w -D d stop
        strace -f -ff -y -s 0 -e trace=pwrite64,fdatasync -o st $B/postgres -D d $P > log2 2>&1 &
        i=0; until $B/pg_isready -q -h "$1" || [ $i = 60 ]; do sleep 0.5; i=$((i + 1)); done
        $B/pgbench -h "$1" -n -c 1 -t "$2" b > result 2>&1
        $B/pg_ctl -w -D d stop -m immediate
        wait
    "#;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let n = transactions.to_string();
    let chown = Command::new("chown").args(["postgres", path]).output();
    let script = Command::new("su")
        .args(["postgres", "-s", "/bin/sh", "-c", &format!("set -- {path} {n}; {SCRIPT}")])
        .current_dir(path)
        .output();
    let result = std::fs::read_to_string(dir.path().join("result")).unwrap_or_default();
    if chown.is_err() || script.is_err() || !result.contains(&format!("processed: {n}/{n}")) {
        eprintln!("SKIPPED: PostgreSQL 15, its user or strace is missing");
        return None;
    }
    let logs = std::fs::read_dir(path).unwrap().map(|f| f.unwrap().path());
    let logs = logs.filter(|f| f.file_stem().is_some_and(|s| s == "st"));
    let texts: Vec<String> = logs.map(|f| std::fs::read_to_string(f).unwrap()).collect();
    // The process of the client is the one with the most commits.
    let count = |t: &String| t.matches("fdatasync(").count() as u64;
    let client = texts.iter().max_by_key(|t| count(t))?;
    let writes = client.lines().filter(|l| l.starts_with("pwrite64") && l.contains("/pg_wal/"));
    let bytes = writes.filter_map(|l| l.rsplit_once(" = ")?.1.trim().parse::<u64>().ok()).sum();
    Some((count(client), bytes))
}

#[test]
fn pgbench_syncs_and_writes_its_log_as_postgresql_does() {
    const N: u64 = 1500;
    let Some((real_syncs, real_bytes)) = real_log_of_pgbench(N) else { return };
    let ours = ours(&format!("pgbench 10 1 60 {N}"));
    let client =
        ours.iter().max_by_key(|c| c.iter().filter(|l| l.starts_with("fdatasync")).count());
    let client = client.unwrap();
    let syncs = client.iter().filter(|l| l.starts_with("fdatasync")).count() as u64;
    let log = client.iter().filter(|l| l.starts_with("pwrite 0000000100000000"));
    let bytes: u64 = log.filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum();
    let near = |real: u64, ours: u64| (ours as f64 / real as f64 - 1.0).abs() < 0.1;
    assert!(near(real_syncs, syncs), "syncs: {real_syncs} beside {syncs}");
    assert!(near(real_bytes, bytes), "bytes of the log: {real_bytes} beside {bytes}");
}

#[test]
fn clients_of_pgbench_share_the_syncs_of_the_log() {
    let calls = |clients: u64| {
        let ours = ours(&format!("pgbench 20 {clients} 60 50"));
        let all = ours.concat();
        let n = |begins: &str| all.iter().filter(|l| l.starts_with(begins)).count() as f64;
        n("fdatasync") / (clients * 50) as f64
    };
    assert!((calls(1) - 1.0).abs() < 0.1, "{}", calls(1));
    assert!(calls(16) < 0.5, "{}", calls(16));
}

#[test]
fn checkpoints_of_pgbench_sync_what_they_write() {
    // 16 MB of log between two checkpoints, so several of them.
    let ours = ours("pgbench 20 4 60 1200 tpcb 16M 1 1 300 32M 1");
    let checkpointer =
        ours.iter().find(|c| c.iter().any(|l| l.contains("pg_control"))).expect("a checkpoint");
    let at = |what: &str| checkpointer.iter().position(|l| l.starts_with(what)).expect(what);
    // Pages, then the sync of their files, the record in the log, and last the control file.
    assert!(at("pwrite accounts") < at("fsync accounts"));
    assert!(at("fsync accounts") < at("fsync pg_control"));
    assert!(checkpointer.iter().filter(|l| *l == "fsync pg_control").count() >= 2);
}

/// How many calls begin like this.
fn count(calls: &[Calls], begins: &str) -> usize {
    calls.iter().flatten().filter(|c| c.starts_with(begins)).count()
}

#[test]
fn compilebench_syncs_between_its_phases_only() {
    let calls = ours("compilebench 2 1 1");
    // A hundredth of a tree: 213 sources in 13 directories, 33 objects, 5 of them empty.
    assert_eq!(count(&calls, "mkdir"), 2 * (1 + 13));
    assert_eq!((count(&calls, "fsync"), count(&calls, "sync")), (0, 2));
    let all = calls.concat();
    let writes = all.iter().filter(|c| c.starts_with("write"));
    assert!(
        writes.clone().all(|c| c.rsplit(' ').next().unwrap().parse::<u64>().unwrap() <= 262_144)
    );
    assert!(writes.count() >= 2 * (213 + 33 - 5));
    assert_eq!(count(&calls, "unlink"), 2 * (213 + 33));
    // One tree is read; listings for reading and deleting, then its files.
    let directories = 3 * (1 + 13);
    assert_eq!(count(&calls, "open"), 2 * (213 + 33) + directories + 213 + 33);
}

#[test]
fn compilers_read_headers_and_write_objects_without_a_sync() {
    for program in ["kernel-compile", "php-compile"] {
        let calls = ours(&format!("{program} 4 10 1 10000 50 0"));
        // Half of ten sources: each is read by make's compiler, its object is written in three pieces and linked.
        assert_eq!(count(&calls, "write f"), 5 * 3, "{program}");
        assert_eq!(count(&calls, "open h"), 5 * 200, "{program}");
        assert_eq!(count(&calls, "write program"), 5, "{program}");
        assert_eq!(count(&calls, "fsync") + count(&calls, "sync"), 0, "{program}");
    }
}

#[test]
fn web_servers_write_a_line_for_each_request() {
    for program in ["nginx", "apache"] {
        let calls = ours(&format!("{program} 250 20 3"));
        // The log was opened by the parent, so its name is not known here.
        assert_eq!(count(&calls, "write  88"), 250, "{program}");
        assert_eq!(count(&calls, "open test.html"), 250, "{program}");
        assert_eq!(count(&calls, "fsync"), 0, "{program}");
    }
}

#[test]
fn kernel_tasks_do_what_git_and_make_do() {
    // A hundredth of a tree, 279 files; 30 % of them change.
    let grep = ours("kernel-tasks grep 0 0 1M 60 1");
    assert_eq!((count(&grep, "stat f"), count(&grep, "open f")), (279, 279));
    for (task, versions) in [("checkout", 1), ("merge", 3)] {
        let calls = ours(&format!("kernel-tasks {task} 1 1 1M 60 1"));
        assert_eq!(count(&calls, "unlink f"), 84, "{task}");
        assert_eq!(count(&calls, "pread pack"), 84 * versions, "{task}");
        assert_eq!(count(&calls, "rename index.lock"), 1, "{task}");
        assert!(count(&calls, "pread large0") > 0 && count(&calls, "pwrite written0") > 0);
    }
    // Five compilers, 450 ms each on two cores, for three seconds.
    let make = ours("kernel-tasks make 0 0 1M 3 1");
    let objects = count(&make, "close f") - count(&make, "open f") / 2;
    assert!((8..=20).contains(&objects), "{objects}");
}
