//! Machines that lack something, and disks and people that come and go: one clear message, the exit code for it,
//! the machine as before, the results so far kept. What needs root, FUSE, loop devices or fio is skipped with
//! the reason where they are missing.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests of what touches the machine"
)]

mod disks;
mod moved;
mod programs;
mod record;
mod trees;
#[path = "../../../backends/tests/watchdog/mod.rs"]
mod watchdog;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use watchdog::Watchdog;

const SLOW: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"64MiB\"\nlat_ns=8000000\npar=4\n\
                    [queue]\nmax_hw_sectors_kb=64\nqueue_depth=8\nrotational=true\nwrite_cache=true\n";
const JOB: &str = "[r]\nfilename=/dev/disk\nrw=randread\nbs=4k\ndirect=1\nruntime=1\ntime_based\n";

/// A folder with a model, a job, a folder for state and one for results.
struct Place {
    /// Ends what outlives its test.
    _dog: Watchdog,
    dir: TempDir,
}

/// Longer than any test takes, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(150);

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("slow.toml", SLOW), ("job.fio", JOB)] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        std::fs::create_dir(dir.path().join("state")).unwrap();
        Place { _dog: Watchdog::start(dir.path(), LIMIT), dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A command with our places in its environment.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command.env("IOSCHED_DB", self.path("results.db")).env("IOSCHED_STATE", self.path("state"));
        command.env(watchdog::MARK, self.dir.path());
        command
    }

    fn iosched(&self, args: &[&str]) -> Command {
        let mut command = self.command(program());
        command.args(args);
        command
    }

    /// Runs `script` in mounts of its own; `$1` is the program.
    fn in_own_mounts(&self, script: &str) -> Output {
        let mut command = self.command("unshare");
        let script = format!("set -e; mount --make-rprivate /; {script}");
        command.args(["--mount", "sh", "-c", &script, "sh", program()]).output().unwrap()
    }

    /// No state file, no load, nothing of ours.
    fn nothing_is_left(&self) {
        let left = || std::fs::read_dir(self.path("state")).unwrap().flatten().collect::<Vec<_>>();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !left().is_empty() {
            assert!(Instant::now() < deadline, "{:?}", left());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How many trials the newest experiment has, with usable figures or not: a busy machine makes runs
    /// invalid, and they are kept all the same. `None` without any experiment.
    fn trials(&self, db: &str) -> Option<u32> {
        self.listed(db, "trials")
    }

    /// A number that the list of results has of the newest experiment.
    fn listed(&self, db: &str, key: &str) -> Option<u32> {
        let rows = self.iosched(&["results", "list", "--json", "--db", db]).output().unwrap();
        let text = String::from_utf8_lossy(&rows.stdout).into_owned();
        let begin = format!("\"{key}\": ");
        text.split(&begin).nth(1)?.split([',', '\n']).next()?.trim().parse().ok()
    }

    /// How many experiments are stored.
    fn experiments(&self) -> usize {
        let rows = self.iosched(&["results", "list", "--json"]).output().unwrap();
        String::from_utf8_lossy(&rows.stdout).matches("\"name\"").count()
    }

    /// Waits until the newest experiment has that many.
    fn wait_for_trials(&self, n: u32) {
        self.wait_for("trials", n);
    }

    fn wait_for(&self, key: &str, n: u32) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.listed("results.db", key).is_none_or(|t| t < n) {
            assert!(Instant::now() < deadline, "{key}: {n} were never stored");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A process that emulates the slow disk, and the disk's node.
    fn emulator(&self) -> (Emulator, String) {
        let state = self.path("emulator");
        let mut child = self
            .iosched(&["emulate", "slow.toml"])
            .env("IOSCHED_STATE", state)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let node = line.trim().to_string();
        let child = Emulator(child);
        assert!(node.starts_with("/dev/loop"), "{line}");
        (child, node)
    }
}

/// Kills the server of the disk with its state in `folder`.
fn kill_server(folder: &Path) {
    let wanted = format!("IOSCHED_STATE={}", folder.display());
    let text = |p: PathBuf| std::fs::read(p).map(|t| String::from_utf8_lossy(&t).into_owned());
    let mut killed = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let process = entry.path();
        let environment = text(process.join("environ")).unwrap_or_default();
        if !environment.split('\0').any(|v| v == wanted) {
            continue;
        }
        let mut threads = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
        let serves = |t: std::fs::DirEntry| {
            text(t.path().join("comm")).is_ok_and(|c| c.trim() == "emulated-disk")
        };
        if threads.any(serves) {
            let pid = entry.file_name().to_string_lossy().into_owned();
            assert!(
                std::process::Command::new("kill")
                    .args(["-KILL", &pid])
                    .status()
                    .unwrap()
                    .success()
            );
            killed += 1;
        }
    }
    assert_eq!(killed, 1, "one process serves the disk");
}

/// Ends with its test, however that ends.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        signal(&self.0, "-TERM");
        let _ = self.0.wait();
    }
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_iosched")
}

/// Sends a signal; to a process that has ended already it is none.
fn signal(child: &Child, name: &str) {
    let mut kill = Command::new("kill");
    kill.args([name, &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
}

#[track_caller]
fn says(output: &Output, code: i32, words: &[&str]) {
    let why = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{why}");
    assert!(!why.contains("panicked"), "{why}");
    for w in words {
        assert!(why.contains(w), "no \"{w}\" in: {why}");
    }
}

fn works(command: &str, args: &[&str]) -> bool {
    let mut command = Command::new(command);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|s| s.success())
}

/// A time for `sleep` that no other process has, as tests of several checkouts may run at once.
fn mark(seconds: &str) -> String {
    format!("{seconds}.{}", std::process::id())
}

/// Whether a process sleeps for so long.
fn sleeps(mark: &str) -> bool {
    works("pgrep", &["-f", &format!("^sleep {mark}$")])
}

fn root() -> bool {
    works("sh", &["-c", "test $(id -u) = 0"])
}

/// What keeps live runs from working here.
fn skip() -> bool {
    let missing = [
        (!root(), "no root"),
        (!Path::new("/dev/fuse").exists(), "no /dev/fuse"),
        (!Path::new("/dev/loop-control").exists(), "no /dev/loop-control"),
        (!works("sh", &["-c", ": <>/dev/fuse"]), "/dev/fuse cannot be opened"),
        (!works("fio", &["--version"]), "no fio"),
        (!works("unshare", &["--mount", "true"]), "no mounts of one's own"),
    ];
    if let Some((_, why)) = missing.iter().find(|(m, _)| *m) {
        println!("SKIPPED: {why}");
    }
    missing.iter().any(|(m, _)| *m)
}

const EMULATED: &[&str] =
    &["run", "job.fio", "--device", "slow.toml", "--backend", "emulated", "--scheduler", "none"];

#[test]
fn without_root() {
    let place = Place::new();
    // Where the tests run as root, the program runs as a user who may read it.
    let copy = place.path("iosched");
    std::fs::copy(program(), &copy).unwrap();
    let open = std::fs::Permissions::from_mode(0o777);
    for path in [place.dir.path(), &place.path("state"), &copy] {
        std::fs::set_permissions(path, open.clone()).unwrap();
    }
    let unprivileged = |args: &[&str]| {
        let mut command = place.command(copy.to_str().unwrap());
        command.args(args);
        if root() {
            command.uid(65534).gid(65534);
        }
        command.output().unwrap()
    };
    says(&unprivileged(EMULATED), 3, &["needs root", "sudo", "--backend sim"]);
    says(&unprivileged(&["emulate", "slow.toml"]), 3, &["needs root"]);
    let record = ["record", "/", "--for", "1s", "-o", "a.csv"];
    let output = unprivileged(&record);
    // A container need not show what its file system lies on.
    if output.status.code() == Some(3) {
        says(&output, 3, &["recording a disk's I/O needs root", "run it with sudo"]);
    }
    let doctor = unprivileged(&["doctor"]);
    assert!(doctor.status.success());
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("NO   root"));
    let doctor = unprivileged(&["doctor", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let needs = found["requirements"].as_array().unwrap();
    let root = needs.iter().find(|r| r["what"] == "root").unwrap();
    assert!(root["met"] == false && root["help"].as_str().unwrap().contains("sudo"), "{root}");
    place.nothing_is_left();
    assert_eq!(place.experiments(), 0, "what was refused is no experiment");
}

#[test]
fn with_fio_missing_or_too_old() {
    if skip() {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path("bin")).unwrap();
    let run = || place.iosched(EMULATED).env("PATH", place.path("bin")).output().unwrap();
    says(&run(), 3, &["fio is not installed", "apt install fio"]);
    let fio = place.path("bin/fio");
    std::fs::write(&fio, "#!/bin/sh\necho fio-3.1\n").unwrap();
    std::fs::set_permissions(&fio, std::fs::Permissions::from_mode(0o755)).unwrap();
    says(&run(), 3, &["fio 3.1 is too old", "3.19 or newer"]);
    place.nothing_is_left();
    assert_eq!(place.experiments(), 0);
}

#[test]
fn in_containers() {
    if skip() {
        return;
    }
    let place = Place::new();
    let run = format!("\"$1\" {}", EMULATED.join(" "));
    let read_only = place.in_own_mounts(&format!("mount -o remount,bind,ro /sys; {run}"));
    says(&read_only, 3, &["sysfs is mounted read-only", "outside the container"]);
    place.nothing_is_left();
    let without = |node: &str| {
        let nodes = ["null", "zero", "urandom", "fuse", "loop-control"];
        let kept: Vec<&str> = nodes.into_iter().filter(|n| *n != node).collect();
        place.in_own_mounts(&format!(
            "mkdir dev; mount -t tmpfs none dev; for n in {}; do cp -a /dev/$n dev/; done; \
             mount --bind dev /dev; {run}; code=$?; exit $code",
            kept.join(" ")
        ))
    };
    says(&without("fuse"), 3, &["FUSE is not available: /dev/fuse", "--device /dev/fuse"]);
    std::fs::remove_dir(place.path("dev")).unwrap();
    says(&without("loop-control"), 3, &["loop devices is not available", "modprobe loop"]);
    place.nothing_is_left();
}

#[test]
fn with_a_full_disk() {
    if skip() {
        return;
    }
    let place = Place::new();
    let output = place.in_own_mounts(
        "mkdir full; mount -t tmpfs -o size=600k none full; code=0; \
         \"$1\" run job.fio --backend mock --scheduler none --runs 500 --db full/r.db || code=$?; \
         cp full/r.db* .; exit $code",
    );
    says(&output, 4, &["no space left", "finished runs are kept"]);
    // To a reader of the copy, in-memory results are as good as stored ones.
    let kept = place.trials("r.db");
    assert!(kept > Some(0) && kept < Some(500), "{kept:?}");
    let state = place.in_own_mounts(&format!(
        "mkdir small; mount -t tmpfs -o size=16k none small; \
         dd if=/dev/zero of=small/all bs=4k 2>/dev/null || true; \
         IOSCHED_STATE=$PWD/small/state \"$1\" {}",
        EMULATED.join(" ")
    ));
    says(&state, 4, &["no space left"]);
    place.nothing_is_left();
}

/// A start-up test in a directory of a mounted file system: the figures are stored, valid or not, the directory goes,
/// and the disk has the scheduler that it had.
#[test]
fn a_start_on_a_real_disk_leaves_it_as_it_was() {
    if skip() {
        return;
    }
    let place = Place::new();
    let experiment = "name = \"start\"\nbackend = \"real\"\ndevices = [\"./m\"]\nschedulers = [\"bfq\"]\n\
        [[workloads]]\nname = \"bash\"\nstartup = { command = \"bash -c :\", load = \"1r-seq\", file_size = \"256m\" }\n";
    std::fs::write(place.path("start.toml"), experiment).unwrap();
    let output = place.in_own_mounts(
        "truncate -s 1G img; mkfs.ext4 -q -F img; mkdir m; mount -o loop img m; \
         disk=$(basename $(findmnt -no SOURCE m)); code=0; \
         cat /sys/block/$disk/queue/scheduler >before; \
         \"$1\" run start.toml --runs 1 --quiet || code=$?; \
         cat /sys/block/$disk/queue/scheduler >after; ls m >left; umount m; exit $code",
    );
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{text}");
    assert!(place.trials("results.db") >= Some(1), "{text}");
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("before"), read("after"), "{text}");
    assert_eq!(read("left").trim(), "lost+found", "{text}");
    let export =
        place.iosched(&["results", "export", "start", "--format", "json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&export.stdout).contains("\"startup_time\""), "{text}");
    place.nothing_is_left();
}

#[test]
fn two_at_once_on_one_disk() {
    if skip() {
        return;
    }
    let place = Place::new();
    let (mut emulator, node) = place.emulator();
    let args = ["run", "job.fio", "--backend", "real", "--device", &node, "--scheduler", "none"];
    let more = ["--runs", "3", "--no-store", "--quiet"];
    let mut first = place.iosched(&[&args[..], &more].concat()).spawn().unwrap();
    let file = place.path("state").join(format!("queue-{}.json", node.replace("/dev/", "")));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !file.exists() {
        assert!(Instant::now() < deadline, "the first never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = format!("process {}", first.id());
    for folder in ["state", "another"] {
        let mut second = place.iosched(&[&args[..], &more].concat());
        let second = second.env("IOSCHED_STATE", place.path(folder)).output().unwrap();
        says(&second, 3, &["another iosched", &pid, "wait for it"]);
    }
    signal(&first, "-TERM");
    assert_eq!(first.wait().unwrap().code(), Some(4));
    place.nothing_is_left();
    signal(&emulator.0, "-TERM");
    assert!(emulator.0.wait().unwrap().success());
}

/// btrfs over two disks: both are switched, and both go back to what each had.
#[test]
fn every_disk_of_a_file_system_is_switched() {
    if skip() {
        return;
    }
    if !works("mkfs.btrfs", &["--version"]) || !Path::new("/sys/fs/btrfs").exists() {
        println!("SKIPPED: no btrfs");
        return;
    }
    let place = Place::new();
    std::fs::write(place.path("job.fio"), JOB.replace("bs=4k", "bs=64k")).unwrap();
    // Detached while it is mounted a loop device goes when its last user goes.
    let output = place.in_own_mounts(
        "truncate -s 200M b1 b2; a=$(losetup -f --show b1); b=$(losetup -f --show b2); \
         trap 'losetup -d $a $b 2>/dev/null || true' EXIT; \
         mkfs.btrfs -q -f -d raid0 -m raid1 $a $b >/dev/null; mkdir m; mount $a m; \
         trap 'umount m' EXIT; losetup -d $a $b; \
         dd if=/dev/zero of=m/file bs=1M count=64 2>/dev/null; sync; \
         x=/sys/block/${a#/dev/}/queue/scheduler; y=/sys/block/${b#/dev/}/queue/scheduler; \
         echo mq-deadline >$x; echo none >$y; cat $x $y >before; code=0; \
         \"$1\" run job.fio --backend real --device $PWD/m/file --scheduler bfq --runs 1 --no-warm-up \
         --no-store --allow-noise --format json >out.json || code=$?; cat $x $y >after; exit $code",
    );
    says(&output, 0, &[]);
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("before"), read("after"));
    assert!(read("before").contains("[mq-deadline]") && read("before").contains("[none]"));
    let record = read("out.json");
    let switched = record.matches(".scheduler\":\"bfq\"").count()
        + record.matches(".scheduler\": \"bfq\"").count();
    assert_eq!(switched, 2, "{record}");
    place.nothing_is_left();
}

/// A stopped program would leave the users of its disk asleep.
#[test]
fn ctrl_z_stops_nobody_who_serves_a_disk() {
    if skip() {
        return;
    }
    let place = Place::new();
    let mut run = place.iosched(&[EMULATED, &["--runs", "9", "--no-store"]].concat());
    let child = run.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read_dir(place.path("state")).unwrap().next().is_none() {
        assert!(Instant::now() < deadline, "it never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&child, "-TSTP");
    std::thread::sleep(Duration::from_millis(600));
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    assert!(!stat.contains(") T "), "{stat}");
    signal(&child, "-TERM");
    says(&child.wait_with_output().unwrap(), 4, &["Ctrl-Z is not followed", "SIGTERM"]);
    place.nothing_is_left();
}

#[test]
fn a_disk_that_holds_something_or_goes_away() {
    if skip() {
        return;
    }
    let place = Place::new();
    let (mut emulator, node) = place.emulator();
    let real = |job: &str, more: &[&str]| {
        let args = ["run", job, "--backend", "real", "--device", &node, "--scheduler", "none"];
        place.iosched(&[&args[..], more].concat())
    };
    std::fs::write(place.path("write.fio"), JOB.replace("randread", "randwrite")).unwrap();
    // The mark of swap space.
    let disk = std::fs::OpenOptions::new().write(true).open(&node).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&disk, b"SWAPSPACE2", 4096 - 10).unwrap();
    disk.sync_all().unwrap();
    drop(disk);
    let refused = real("write.fio", &[]).output().unwrap();
    says(&refused, 3, &["not blank", &format!("--destroy-data={node}")]);
    place.nothing_is_left();
    // Reading does no harm. The disk goes away in the second round.
    let mut run = real("job.fio", &["--runs", "30", "--no-warm-up"]);
    let child = run.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    place.wait_for_trials(1);
    // Not the process in the foreground: without that one the disk goes on for who uses it.
    kill_server(&place.path("emulator"));
    emulator.0.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    says(&output, 4, &["disappeared during", "finished runs are kept"]);
    place.nothing_is_left();
    assert!(place.trials("results.db") >= Some(1), "what was stored before stays");
}

#[test]
fn a_reader_that_goes_away_takes_the_disk_with_it() {
    if skip() {
        return;
    }
    let place = Place::new();
    let mut child =
        place.iosched(&["emulate", "slow.toml"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    // It is told when it says which disk it made.
    assert!(child.wait().unwrap().success());
    place.nothing_is_left();
}

#[test]
fn an_experiment_killed_in_the_middle_goes_on() {
    if skip() {
        return;
    }
    let place = Place::new();
    let args = [
        "run",
        "job.fio",
        "--device",
        "slow.toml",
        "--backend",
        "emulated",
        "--no-warm-up",
        "--scheduler",
        "none,mq-deadline",
        "--runs",
        "3",
        "--format",
        "csv",
    ];
    let mut first = place.iosched(&args);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // On a busy machine a run may be invalid; there is nothing to go on from before one is not.
    place.wait_for("complete", 1);
    signal(&first, "-KILL");
    first.wait().unwrap();
    place.nothing_is_left();
    let kept = place.listed("results.db", "complete");
    assert!(kept < Some(6), "{kept:?}");
    // Other words for the same trials are the same experiment; invalid runs are run again.
    let mut words = args[..args.len() - 2].to_vec();
    words.swap(2, 4);
    words.swap(3, 5);
    let second = place.iosched(&words).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("going on where the last start stopped"), "{said}");
    assert_eq!((place.experiments(), place.trials("results.db")), (1, Some(6)), "{said}");
    place.nothing_is_left();
}
