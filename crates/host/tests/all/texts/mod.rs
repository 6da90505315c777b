//! Texts of benchmarks beside the real programs: the same system calls, as strace sees them.
//!
//! Where a program or strace is not installed, its test says so.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests of real programs in real directories"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use iosched_workloads::programs::{Descriptor, Params};

mod calls;

use calls::{Calls, anonymous, calls_of, kinds, ours, real, recording, round, split_at};

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
fn fs_mark_makes_the_same_calls_in_the_same_order() {
    let ways = (0..=6).map(|sync| (sync, 1, 0)).chain([(1, 3, 0), (5, 2, 4)]);
    for (sync, threads, subdirs) in ways {
        let dir = tempfile::tempdir().unwrap();
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut args = format!("-s 40000 -n 10 -L 1 -S {sync} -t {threads}");
        if subdirs > 0 {
            args += &format!(" -D {subdirs}");
        }
        let places = ["-d", dir.path().to_str().unwrap(), "-l", log.path().to_str().unwrap()];
        let args: Vec<&str> = args.split(' ').chain(places).collect();
        let Some(real) = real(dir.path(), "fs_mark", &args, "") else { return };
        let ours = ours(&format!("fs-mark 10 40000 {threads} {subdirs} {sync}"));
        assert_eq!((real.len(), ours.len()), (threads, threads), "processes of {args:?}");
        for (real, ours) in real.iter().zip(&ours) {
            // It makes its directory once more at the start.
            assert_eq!(real[0], "mkdir .");
            assert_eq!(anonymous(&real[1..]), anonymous(ours), "{args:?}: the real one, ours");
        }
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
    // What is done with the file from an opening to its end, each different way once: how it was opened, then one round
    // of the loop. What comes before the first opening is the start of the program.
    let bodies = |calls: Vec<Calls>| -> Vec<Calls> {
        let calls = calls.concat();
        let opens = |c: &String| c.starts_with("open");
        let at: Vec<usize> = (0..calls.len()).filter(|i| opens(&calls[*i])).collect();
        let ends = at.iter().skip(1).copied().chain([calls.len()]);
        let mut bodies = Vec::new();
        for (begin, end) in at.iter().zip(ends) {
            let over = |c: &&String| c.starts_with("close") || c.starts_with("unlink");
            let inside = calls[begin + 1..end].iter().filter(|c| !over(c));
            let inside: Calls = inside.cloned().collect();
            let body = [calls[*begin].clone()].into_iter().chain(round(&inside)).collect();
            if !bodies.contains(&body) {
                bodies.push(body);
            }
        }
        bodies
    };
    assert_eq!(bodies(real), bodies(ours));
}

/// The kinds of calls from an opening to the closing, with repeated ones once: what a program does with a file.
fn sessions(calls: &[String]) -> BTreeSet<String> {
    let mut sessions = BTreeSet::new();
    let mut session: Vec<&str> = Vec::new();
    for call in calls {
        let kind = call.split(' ').next().unwrap_or_default();
        if kind == "open" {
            session.clear();
        }
        if session.last() != Some(&kind) {
            session.push(kind);
        }
        if kind == "close" {
            sessions.insert(session.join(" "));
        }
    }
    sessions
}

#[test]
fn postmark_makes_as_many_calls_of_each_kind() {
    let dir = tempfile::tempdir().unwrap();
    let config = tempfile::NamedTempFile::new().unwrap();
    let text = format!(
        "set location {}\nset size 512 8192\nset number 500\nset transactions 60000\nset seed 42\nrun\nquit\n",
        dir.path().display()
    );
    std::fs::write(config.path(), text).unwrap();
    let args = [config.path().to_str().unwrap()];
    let Some(real) = real(dir.path(), "postmark", &args, "") else { return };
    let (real, ours) = (real.concat(), ours("postmark 500 60000 512 8192 42").concat());
    assert_eq!(sessions(&real), sessions(&ours));
    // Calls, and bytes of those that move some. Both throw their dice with a seed, so each run is the same.
    let sums = |calls: &[String], bytes: bool| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (key, n) in kinds(calls) {
            let (kind, len) = key.split_once(' ').unwrap_or((&key, "1"));
            let each = if bytes { len.parse().unwrap() } else { 1 };
            *sums.entry(kind.to_string()).or_default() += n * each;
        }
        sums
    };
    for bytes in [false, true] {
        let (real, ours) = (sums(&real, bytes), sums(&ours, bytes));
        assert!(real.keys().eq(ours.keys()), "{real:?} beside {ours:?}");
        for (kind, r) in &real {
            let o = ours[kind];
            let off = (*r as f64 / o as f64 - 1.0).abs();
            assert!(off < 0.02, "{kind}: {r} beside {o}, in bytes: {bytes}");
        }
    }
}

/// The first lines of the real load, so that every kind of operation is among them.
const LINES: usize = 3000;

/// Lines that close what is still open at the end of a load: dbench's table of files is not large.
fn closing(load: &str) -> String {
    let mut open = BTreeSet::new();
    for line in load.lines().filter(|l| l.ends_with("NT_STATUS_OK")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["NTCreateX", .., handle, _] => open.insert(handle),
            ["Close", handle, _] => open.remove(handle),
            _ => false,
        };
    }
    open.iter().map(|handle| format!("Close {handle} NT_STATUS_OK\n")).collect()
}

#[test]
fn dbench_makes_the_same_calls_in_a_loop_of_its_own_load() {
    const CLIENT: &str = "/usr/share/dbench/client.txt";
    let Ok(text) = std::fs::read_to_string(CLIENT) else {
        return eprintln!("SKIPPED: {CLIENT} is not installed");
    };
    let mut text: String = text.lines().take(LINES).flat_map(|l| [l, "\n"]).collect();
    text += &closing(&text);
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
    let first = |calls: &[Calls]| -> Calls {
        let client = calls.iter().max_by_key(|c| c.len()).unwrap();
        let loops = split_at(client, "mkdir clients");
        assert!(loops.len() > 1, "one loop is not done in the time");
        loops[0].to_vec()
    };
    let (real, ours) = (first(&real), first(&ours));
    assert_eq!(kinds(&real), kinds(&ours));
    assert!(kinds(&ours)["fsync"] > 30);
    // Which files are written, where, and when they are synced. Deletions go in the order of the directory.
    let changes = |calls: &[String]| -> Calls {
        let kinds = ["pwrite", "fsync", "rename", "mkdir"];
        let about = |c: &&String| kinds.iter().any(|k| c.starts_with(k));
        calls.iter().filter(about).cloned().collect()
    };
    assert_eq!(changes(&real), changes(&ours));
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
        assert_eq!(count(&calls, "write access.log 88"), 250, "{program}");
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

/// A reader whose file is in memory loads no disk, and one that begins with the task is a program that starts, too.
#[test]
fn readers_of_kernel_tasks_load_the_disk_before_the_task_and_all_the_time() {
    let line = "kernel-tasks checkout 1 0 1M 60 1";
    let (descriptor, params) = Descriptor::from_command_line(line).unwrap();
    let seen = recording(descriptor, params);
    let [task, reader] = &seen.processes[..] else { panic!("{} processes", seen.processes.len()) };
    let mut forgotten = true;
    for call in reader {
        assert!(call.call != "pread" || call.at != Some(0) || forgotten, "{call:?}");
        forgotten = call.call == "fadvise" || call.call == "open";
    }
    let begun = task.iter().find(|c| c.call == "open").unwrap().begin;
    assert!(begun - reader[0].begin >= 1_500_000_000, "{begun}");
}

/// What is refused for want of room would really have no room.
#[test]
fn programs_write_no_less_than_the_room_that_they_ask_for() {
    for line in [
        "sqlite 50 1",
        "fs-mark 10 40000 2 0 1 2",
        "postmark 50 100",
        "compilebench 1 1 0",
        "iozone 4M 64k 2",
        "pg-test-fsync 1",
        "dbench 2 5 0",
    ] {
        let (descriptor, params) = Descriptor::from_command_line(line).unwrap();
        let room = (descriptor.room)(&params);
        let all = kinds(&ours(line).concat());
        let bytes = |(key, n): (&String, &u64)| {
            let (kind, len) = key.split_once(' ')?;
            kind.ends_with("write").then(|| len.parse::<u64>().unwrap() * n)
        };
        let written: u64 = all.iter().filter_map(bytes).sum();
        assert!(room > 0 && written >= room, "{line}: {written} written, {room} asked for");
    }
}
