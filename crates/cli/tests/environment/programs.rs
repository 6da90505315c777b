//! Real programs on a mounted file system: their figures come, and in every case of ending neither a process nor a file stays.

use super::*;

/// Makes a file system in a file and mounts it on `m`.
pub(super) const MOUNTED: &str =
    "truncate -s 1G img; mkfs.ext4 -q -F img; mkdir m; mount -o loop img m; ";
/// What has to be true at the end: only what mkfs made, and nobody who works there.
pub(super) const ENDED: &str = "; ls m >left; umount m; exit $code";
pub(super) const RUN: &str = "\"$1\" run --backend real --device $PWD/m --scheduler none --runs 1 --no-warm-up \
                   --allow-noise --quiet --no-store";

impl Place {
    /// Runs a program on a file system of its own.
    fn real(&self, arguments: &str) -> Output {
        self.in_own_mounts(&format!(
            "{MOUNTED} code=0; {RUN} --format json {arguments} >out.json || code=$? {ENDED}"
        ))
    }

    pub(super) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    #[track_caller]
    pub(super) fn is_as_before(&self) {
        assert_eq!(self.text("left").trim(), "lost+found");
        self.nothing_is_left();
    }
}

/// Whether `tool` is missing, which is said.
pub(super) fn lacks(tool: &str) -> bool {
    let paths = "$PATH:/usr/sbin:/usr/lib/postgresql/15/bin";
    let there = works("sh", &["-c", &format!("PATH={paths}; command -v {tool}")]);
    if !there {
        println!("SKIPPED: {tool} is not installed");
    }
    !there
}

/// Tool, command line, a figure.
const SHORT: &[(&str, &str, &str)] = &[
    ("sqlite3", "sqlite --param inserts=20", "seconds"),
    ("fs_mark", "fs-mark --param n=20", "files per second"),
    ("postmark", "postmark --param transactions=200", "transactions per second"),
    ("dbench", "dbench --param clients=2 --param time=2", "throughput"),
    ("postgres", "pg-test-fsync --param seconds=1", "fdatasync"),
    ("postgres", "pgbench --param scale=1 --param clients=2 --param time=2", "tps"),
    ("nginx", "nginx --param n=500 --param c=10", "requests per second"),
    ("apache2", "apache --param n=500 --param c=10 --param workers=10", "requests per second"),
];

/// Real programs that are not among them, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("iozone", "Debian has none"),
    ("kernel-compile", "it has tests of its own, on a small tree"),
    ("kernel-tasks", "it has tests of its own, on a small tree"),
];

#[test]
fn every_real_program_is_run_here() {
    let short = SHORT.iter().filter_map(|s| s.1.split(' ').next());
    let mut here: Vec<_> = short.chain(ELSEWHERE.iter().map(|e| e.0)).collect();
    let mut all: Vec<_> = iosched_backends::real_programs().collect();
    here.sort_unstable();
    all.sort_unstable();
    assert_eq!(here, all, "left is {}, right the recipes", file!());
}

#[test]
fn each_prints_its_figures_and_leaves_nothing() {
    if skip() {
        return;
    }
    for (tool, arguments, figure) in SHORT {
        if lacks(tool) || tool.len() > 5 && arguments.contains("n=500") && lacks("ab") {
            continue;
        }
        let place = Place::new();
        let output = place.real(arguments);
        says(&output, 0, &[]);
        let json = place.text("out.json");
        assert!(json.contains(&format!("\"{figure}\"")), "{arguments}: {json}");
        assert!(json.contains("program.file"), "not the real program: {json}");
        place.is_as_before();
    }
}

/// Settings of the user's own change what is measured: `PGOPTIONS` may switch syncs off, `.sqliterc` locks.
#[test]
fn settings_of_the_user_reach_no_program() {
    if skip() || lacks("sqlite3") {
        return;
    }
    let place = Place::new();
    let wrapper = "mkdir bin; printf '#!/bin/sh\\n[ $1 != -batch ] || (echo \"$@\"; env) >>%s/seen\\nexec %s \"$@\"\\n' \
                   $PWD $(command -v sqlite3) >bin/sqlite3; chmod +x bin/sqlite3; ";
    let run = RUN.replace("\"$1\"", "env PATH=$PWD/bin:$PATH PGOPTIONS=x TAR_OPTIONS=x \"$1\"");
    // What is below /mnt is not hidden from programs that need it.
    let state = "mount -t tmpfs none /mnt; mount --bind state $(mktemp -d -p /mnt); \
                 export IOSCHED_STATE=$(ls -d /mnt/tmp.*); ";
    let output = place.in_own_mounts(&format!(
        "{MOUNTED} {wrapper} {state} code=0; {run} sqlite --param inserts=20 || code=$? {ENDED}"
    ));
    says(&output, 0, &[]);
    let seen = place.text("seen");
    assert!(seen.contains("-init /dev/null") && seen.contains("IOSCHED_OWNER="), "{seen}");
    assert!(!seen.contains("OPTIONS"), "{seen}");
    place.is_as_before();
}

/// A server in the middle of its work is gone with the run, however that ends.
#[test]
fn a_killed_run_takes_the_server_and_its_data_with_it() {
    if skip() || lacks("postgres") {
        return;
    }
    for (signal, code) in [("KILL", 137), ("TERM", 4)] {
        let place = Place::new();
        let output = place.in_own_mounts(&format!(
            "mount -t tmpfs none /dev/shm; {MOUNTED} code=0; \
             {RUN} pgbench --param scale=1 --param clients=2 --param time=100 & run=$!; \
             i=0; until ls m/iosched-program-*/run/data/postmaster.pid >found 2>/dev/null || [ $i = 600 ]; \
             do sleep 0.1; i=$((i + 1)); done; \
             sleep 2; kill -{signal} $run; wait $run || code=$?; \
             i=0; while ls m | grep -q iosched && [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done; ls /dev/shm >shm {ENDED}"
        ));
        says(&output, code, &[]);
        assert!(place.text("found").contains("postmaster.pid"), "the server never started");
        assert_eq!(place.text("shm"), "", "shared memory of the server is left");
        place.is_as_before();
    }
}

#[test]
fn a_server_that_does_not_start_says_why() {
    if skip() || lacks("postgres") {
        return;
    }
    let place = Place::new();
    // More memory than any machine has.
    let output = place.real("pgbench --param scale=1 --param clients=1 --param shared_buffers=1T");
    says(&output, 4, &["postgres failed", "it ended while it started", "shared memory"]);
    place.is_as_before();
}

#[test]
fn tools_that_are_missing_or_too_old_are_named() {
    if skip() {
        return;
    }
    let place = Place::new();
    let old = "mkdir old; printf '#!/bin/sh\\necho dbench version 3.04\\n' >old/dbench; chmod +x old/dbench; \
               ln -s $(command -v fio) old/fio; ";
    let with = |program: &str| {
        let run = RUN.replace("\"$1\"", "env PATH=$PWD/old \"$1\"");
        let script = format!("{MOUNTED} {old} code=0; {run} {program} || code=$? {ENDED}");
        let output = place.in_own_mounts(&script);
        let _ = std::fs::remove_dir(place.path("m"));
        let _ = std::fs::remove_dir_all(place.path("old"));
        output
    };
    says(&with("fs-mark"), 3, &["fs_mark is not installed", "apt install fsmark"]);
    says(&with("dbench"), 3, &["dbench 3.04 is too old; 4 or newer is needed"]);
    place.is_as_before();
}

#[test]
fn a_small_disk_is_told_before_the_start() {
    if skip() || lacks("fs_mark") {
        return;
    }
    for program in ["real", "text"] {
        let place = Place::new();
        let output = place.real(&format!("fs-mark --param n=2000 --program {program}"));
        says(&output, 2, &["fs-mark needs at least 1.95 GiB, and", "/m has "]);
        place.is_as_before();
    }
}

/// Servers run as others than root, who alone may use the blocks that a file system keeps back.
#[test]
fn room_that_only_root_has_does_not_count_and_a_dry_run_says_so_too() {
    if skip() || lacks("fs_mark") {
        return;
    }
    // Some 900 MiB are free, and 400 of them for everybody.
    let mounted = MOUNTED.replace("-q -F", "-q -F -m 50");
    for (options, code) in [("", 2), ("--dry-run", 3)] {
        let place = Place::new();
        let output = place.in_own_mounts(&format!(
            "{mounted} code=0; {RUN} fs-mark --param n=700 {options} >out || code=$? {ENDED}"
        ));
        says(&output, code, &[]);
        let said = place.text("out") + &String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("fs-mark needs at least 700 MiB, and"), "{said}");
        place.is_as_before();
    }
}

#[test]
fn a_signal_ends_a_run_whose_tool_does_not_answer() {
    if skip() {
        return;
    }
    let place = Place::new();
    let mark = mark("70128");
    let silent = format!(
        "mkdir silent; printf '#!/bin/sh\\ntouch asked\\nexec sleep {mark}\\n' >silent/dbench; \
         chmod +x silent/dbench; "
    );
    let run = RUN.replace("\"$1\"", "env PATH=$PWD/silent:$PATH \"$1\"");
    let output = place.in_own_mounts(&format!(
        "{MOUNTED} {silent} code=0; {run} dbench & run=$!; \
         i=0; until [ -e asked ] || [ $i = 600 ]; do sleep 0.1; i=$((i + 1)); done; \
         kill -TERM $run; wait $run || code=$? {ENDED}"
    ));
    says(&output, 4, &["interrupted by SIGTERM"]);
    assert!(!sleeps(&mark), "the tool is left");
    place.is_as_before();
}
