//! `iosched emulate` under the hands of a user: Ctrl-Z, Ctrl-C, and kills, with the disk in use. Skipped with a word
//! without root, FUSE or loop devices.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests of what touches the machine"
)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
const LIMIT: Duration = Duration::from_secs(40);
const MODEL: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"32MiB\"\nlat_ns=2000000\npar=4\n\
                     [queue]\nmax_hw_sectors_kb=64\nqueue_depth=8\nwrite_cache=true\n";

/// An emulated disk, and the process in the foreground that a terminal would send signals to.
struct Disk {
    front: Child,
    server: i32,
    node: String,
    dir: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

fn can() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n");
    let usable = |n| File::options().read(true).write(true).open(n).is_ok();
    let can = root && usable("/dev/fuse") && usable("/dev/loop-control");
    if !can {
        println!("SKIPPED: no root, no /dev/fuse, or no /dev/loop-control");
    }
    can
}

fn eventually<T>(what: &str, mut f: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = f() {
            return found;
        }
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A word of `/proc/PID/stat` behind the name: 0 is the state, 1 the parent, 3 the session.
fn stat(pid: i32, word: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').nth(word)?.to_string())
}

/// Whether a process is there and no corpse.
fn lives(pid: i32) -> bool {
    stat(pid, 0).is_some_and(|s| s != "Z" && s != "X")
}

fn child_of(parent: i32) -> Option<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.into_iter().find(|pid| stat(*pid, 1).is_some_and(|p| p == parent.to_string()))
}

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().unwrap()
}

fn must(program: &str, args: &[&str]) {
    let output = run(program, args);
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
}

impl Disk {
    fn start() -> Option<Disk> {
        if !can() {
            return None;
        }
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("model.toml");
        fs::write(&model, MODEL).unwrap();
        let said = File::create(dir.path().join("said")).unwrap();
        let mut front = Command::new(env!("CARGO_BIN_EXE_iosched"))
            .args(["emulate", model.to_str().unwrap(), "--state-dir"])
            .arg(dir.path().join("state"))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(said)
            .spawn()
            .unwrap();
        let mut node = String::new();
        BufReader::new(front.stdout.as_mut().unwrap()).read_line(&mut node).unwrap();
        let node = node.trim().to_string();
        let text = fs::read_to_string(dir.path().join("said")).unwrap();
        assert!(node.starts_with("/dev/"), "{node} {text}");
        let server = child_of(i32::try_from(front.id()).unwrap()).unwrap();
        Some(Disk { front, server, node, dir, _alone: alone })
    }

    fn front(&self) -> i32 {
        i32::try_from(self.front.id()).unwrap()
    }

    /// As a terminal does it: to everybody of the foreground's group.
    fn key(&self, signal: &str) {
        must("kill", &[&format!("-{signal}"), "--", &format!("-{}", self.front())]);
    }

    fn said(&self) -> String {
        fs::read_to_string(self.dir.path().join("said")).unwrap()
    }

    fn says(&self, words: &str) {
        eventually(words, || self.said().contains(words).then_some(()));
    }

    /// Makes a file system, mounts it, and puts a file on it.
    fn mount(&self) -> PathBuf {
        let place = self.dir.path().join("m");
        fs::create_dir(&place).unwrap();
        let at = place.to_str().unwrap();
        must("mkfs.ext4", &["-q", "-F", &self.node]);
        must("mount", &[&self.node, at]);
        fs::write(place.join("letter"), vec![b'x'; 300_000]).unwrap();
        must("sync", &["-f", at]);
        place
    }

    /// From the disk, not from memory.
    fn reads(&self, place: &Path) {
        let letter = place.join("letter");
        let letter = format!("if={}", letter.display());
        let output = run("dd", &[&letter, "iflag=direct", "bs=4096", "count=50", "status=none"]);
        assert!(output.status.success() && output.stdout == vec![b'x'; 50 * 4096], "{output:?}");
    }

    fn front_ends(&mut self) -> ExitStatus {
        let front = &mut self.front;
        eventually("the foreground ends", || front.try_wait().unwrap())
    }

    fn nothing_stays(&self) {
        let name = self.node.replace("/dev/", "/sys/block/");
        eventually("the disk goes", || (!Path::new(&name).exists()).then_some(()));
        eventually("the server goes", || (!lives(self.server)).then_some(()));
        let state = self.dir.path().join("state");
        let empty = || fs::read_dir(&state).unwrap().next().is_none();
        eventually("the state file goes", || empty().then_some(()));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // After a test that failed: its own mount and processes only.
        let _ = run("umount", &["-l", self.dir.path().join("m").to_str().unwrap()]);
        let _ = self.front.kill();
        let _ = self.front.wait();
    }
}

#[test]
fn ctrl_z_stops_nobody_but_the_foreground() {
    let Some(mut disk) = Disk::start() else { return };
    let session = |pid| stat(pid, 3).unwrap();
    assert_ne!(session(disk.server), session(disk.front()), "no terminal reaches the server");
    let input = format!("if={}", disk.node);
    let dd = |count| {
        let count = format!("count={count}");
        let args = [&input, "of=/dev/null", "bs=4096", "iflag=direct", "status=none", &count];
        Command::new("dd").args(args).spawn().unwrap()
    };
    let mut under_way = dd(500);
    disk.key("TSTP");
    eventually("it is stopped", || (stat(disk.front(), 0)? == "T").then_some(()));
    let ended = |child: &mut Child| eventually("dd ends", || child.try_wait().unwrap());
    assert!(ended(&mut under_way).success());
    assert!(ended(&mut dd(50)).success());
    assert_eq!(stat(disk.front(), 0).unwrap(), "T", "it still is");
    disk.key("CONT");
    disk.key("INT");
    assert!(disk.front_ends().success(), "{}", disk.said());
    disk.nothing_stays();
}

#[test]
fn a_mounted_disk_outlasts_ctrl_c_and_goes_with_its_mount() {
    let Some(mut disk) = Disk::start() else { return };
    let place = disk.mount();
    disk.key("INT");
    disk.says(&format!("is mounted on {}", place.display()));
    disk.says("It is detached");
    let began = Instant::now();
    disk.reads(&place);
    assert!(began.elapsed() >= Duration::from_millis(100), "50 reads of 2 ms at the model's speed");
    disk.key("TERM");
    disk.says("still in use");
    assert!(disk.front.try_wait().unwrap().is_none());
    must("umount", &[place.to_str().unwrap()]);
    assert!(disk.front_ends().success(), "{}", disk.said());
    disk.nothing_stays();
}

#[test]
fn the_third_ctrl_c_leaves_the_server_to_itself() {
    let Some(mut disk) = Disk::start() else { return };
    let place = disk.mount();
    for words in ["It is detached", "One more Ctrl-C", "kill -9"] {
        disk.key("INT");
        disk.says(words);
    }
    assert_eq!(disk.front_ends().code(), Some(3));
    assert!(lives(disk.server));
    disk.reads(&place);
    must("umount", &[place.to_str().unwrap()]);
    disk.nothing_stays();
}

#[test]
fn a_killed_foreground_is_a_ctrl_c() {
    let Some(mut disk) = Disk::start() else { return };
    let place = disk.mount();
    disk.key("KILL");
    disk.front_ends();
    disk.says("serves it until nobody holds it");
    disk.reads(&place);
    must("umount", &[place.to_str().unwrap()]);
    disk.nothing_stays();
}

#[test]
fn a_killed_server_fails_its_users_and_is_cleaned_up_after() {
    let Some(mut disk) = Disk::start() else { return };
    let input = format!("if={}", disk.node);
    let args = [&input, "of=/dev/null", "bs=4096", "iflag=direct", "count=8000"];
    let mut dd = Command::new("dd").args(args).stderr(Stdio::null()).spawn().unwrap();
    let name = disk.node.replace("/dev/", "");
    let reads = || {
        let text = fs::read_to_string(format!("/sys/block/{name}/stat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    let before = reads().unwrap();
    eventually("dd reads", || (reads()? > before).then_some(()));
    must("kill", &["-9", &disk.server.to_string()]);
    let status = eventually("dd ends", || dd.try_wait().unwrap());
    assert!(!status.success(), "its reads fail");
    assert_eq!(disk.front_ends().code(), Some(4));
    disk.says("its guardian removes the disk");
    disk.nothing_stays();
}

#[test]
fn where_the_time_goes_adds_up() {
    if !can() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let args = ["emulate", "hdd-7200", "--size", "64M", "--measure", "--format", "json"];
    let output = Command::new(env!("CARGO_BIN_EXE_iosched"))
        .args(args)
        .arg("--state-dir")
        .arg(&state)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let measured: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let figure = |part: &str, key: &str| measured[part][key].as_f64().unwrap();
    for part in ["disk", "file"] {
        assert!(figure(part, "waiting") >= 900.0, "the model's millisecond: {measured}");
        assert!(figure(part, "to_server") > 0.0 && figure(part, "answering") > 0.0, "{measured}");
    }
    for part in ["disk_at_32", "file_at_32"] {
        assert!(figure(part, "iops") > 100.0 && figure(part, "server") > 0.0, "{measured}");
    }
    assert!(fs::read_dir(&state).unwrap().next().is_none(), "nothing stays");
}
