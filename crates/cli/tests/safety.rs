//! Data that is not ours stays as it is, every byte of it: what once destroyed it, on throw-away loop devices. What
//! needs root, loop devices or fio is skipped with the reason where they are missing. `tests/attack.sh` does
//! the same at length.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests of what touches the machine"
)]

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A child that takes longer is killed.
const LIMIT: &str = "20";
const MIB: u64 = 1 << 20;
const WRITE: &str = "[w]\nfilename=/dev/disk\nrw=write\nbs=64k\nsize=1m\ndirect=1\n";
const LONG: &str =
    "[w]\nfilename=/dev/disk\nrw=randwrite\nbs=4k\ndirect=1\nruntime=4\ntime_based\n";

/// A folder with jobs, and what has to be taken away when the test is over, however it ends.
struct Place {
    dir: TempDir,
    /// Waits for the end of its input, and then cleans up: it outlives a test that is killed.
    cleaner: Child,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        for (name, text) in [("write.fio", WRITE), ("long.fio", LONG)] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let script = "cat >/dev/null; exec 2>/dev/null
            for m in $(awk -v d=\"$1\" 'index($5, d) == 1 {print $5}' /proc/self/mountinfo | sort -r)
            do timeout 5 umount -l \"$m\"; done
            for i in $(tac \"$1/loops\"); do timeout 5 losetup -d \"$i\"; done; rm -rf \"$1\"";
        let mut cleaner = Command::new("sh");
        cleaner.args(["-c", script, "sh"]).arg(dir.path()).process_group(0).stdin(Stdio::piped());
        let cleaner = cleaner.stdout(Stdio::null()).spawn().unwrap();
        Place { dir, cleaner }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A program with a time limit; what it printed.
    fn tool(&self, program: &str, args: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", LIMIT, program]).args(args).stdin(Stdio::null());
        command.current_dir(self.dir.path());
        command.env("IOSCHED_DB", self.path("results.db")).env("IOSCHED_STATE", self.path("state"));
        command.output().unwrap()
    }

    #[track_caller]
    fn must(&self, program: &str, args: &[&str]) -> String {
        let output = self.tool(program, args);
        assert!(output.status.success(), "{program} {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    }

    /// A blank file of 16 MiB.
    fn image(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        File::create(&path).unwrap().set_len(16 * MIB).unwrap();
        path
    }

    /// A loop device over a file or device.
    fn attach(&self, over: &Path, offset: u64) -> String {
        let offset = offset.to_string();
        let over = over.to_str().unwrap();
        let node = self.must("losetup", &["-f", "--show", "-o", &offset, over]);
        let mut loops = fs::read_to_string(self.path("loops")).unwrap_or_default();
        loops.push_str(&node);
        loops.push('\n');
        fs::write(self.path("loops"), loops).unwrap();
        node
    }

    fn disk(&self, name: &str) -> (String, PathBuf) {
        let image = self.image(name);
        (self.attach(&image, 0), image)
    }

    fn file_system(&self, on: &str) {
        self.must("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", on]);
    }

    fn mount(&self, node: &str, name: &str, how: &str) -> PathBuf {
        let point = self.path(name);
        fs::create_dir_all(&point).unwrap();
        self.must("mount", &["-o", how, node, point.to_str().unwrap()]);
        point
    }

    fn run_args<'a>(job: &'a str, device: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut args = vec!["run", job, "--backend", "real", "--device", device];
        args.extend([
            "--scheduler",
            "none",
            "--runs",
            "1",
            "--no-warm-up",
            "--no-store",
            "--quiet",
            // What a busy machine does to the figures is no matter here.
            "--allow-noise",
        ]);
        args.extend(more);
        args
    }

    fn run(&self, job: &str, device: &str, more: &[&str]) -> Output {
        self.tool(program(), &Self::run_args(job, device, more))
    }

    /// It must say no, with these words.
    #[track_caller]
    fn refused(&self, words: &str, device: &str, more: &[&str]) {
        let output = self.run("write.fio", device, more);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{device} {more:?}: {text}");
        assert!(text.contains(words), "{device} {more:?}: no \"{words}\" in {text}");
    }

    /// A run under way that has begun to write, as its load's job file shows.
    fn under_way(&self, device: &str, more: &[&str]) -> Child {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", LIMIT, program()]).args(Self::run_args("long.fio", device, more));
        command.current_dir(self.dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("IOSCHED_STATE", self.path("state")).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let scratch = || {
            let all = fs::read_dir(self.path("state")).into_iter().flatten().flatten();
            all.map(|e| e.path().join("job.fio")).any(|p| p.exists())
        };
        while !scratch() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(scratch(), "it never began");
        child
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.cleaner.stdin.take());
        let _ = self.cleaner.wait();
    }
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_iosched")
}

fn bytes(path: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    File::open(path).unwrap().read_to_end(&mut all).unwrap();
    all
}

fn noise(path: &Path, mib: u64) -> Vec<u8> {
    let mut all = vec![0; (mib * MIB) as usize];
    File::open("/dev/urandom").unwrap().read_exact(&mut all).unwrap();
    fs::write(path, &all).unwrap();
    all
}

fn skip() -> bool {
    let works = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|s| s.success())
    };
    let missing = [
        (!works("sh", &["-c", "test $(id -u) = 0"]), "no root"),
        (!works("losetup", &["-f"]), "no loop devices"),
        (!works("fio", &["--version"]), "no fio"),
        (!works("sh", &["-c", "command -v mkfs.ext4 timeout blkid"]), "no e2fsprogs or util-linux"),
    ];
    if let Some((_, why)) = missing.iter().find(|(m, _)| *m) {
        println!("SKIPPED: {why}");
    }
    missing.iter().any(|(m, _)| *m)
}

/// fio cut names at these signs, and wrote to the file named by the part before.
#[test]
fn a_name_with_signs_leads_to_its_own_file() {
    if skip() {
        return;
    }
    let place = Place::new();
    let (node, _) = place.disk("img");
    place.file_system(&node);
    let dir = place.mount(&node, "m", "rw");
    let name = "data#1;2:3 \\4\n5 ";
    let mut others = Vec::new();
    for (at, sign) in name.char_indices().filter(|(_, c)| !c.is_alphanumeric()) {
        for part in [&name[..at], &name[..at + sign.len_utf8()]] {
            let path = dir.join(part);
            if part != name && !path.exists() {
                let content = noise(&path, 1);
                others.push((path, content));
            }
        }
    }
    let target = dir.join(name);
    let before = noise(&target, 1);
    let device = target.to_str().unwrap();
    let output = place.run("write.fio", device, &["--overwrite-file", device]);
    for (path, content) in &others {
        assert!(bytes(path) == *content, "{path:?} was overwritten");
    }
    if output.status.code() == Some(124) {
        println!("SKIPPED: the machine is too busy for a run");
        return;
    }
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    assert!(bytes(&target) != before, "the file itself was not written: {output:?}");
}

/// sysfs names no holder of a device below a loop device.
#[test]
fn a_loop_device_over_a_device_is_use_of_it() {
    if skip() {
        return;
    }
    for offset in [0, MIB] {
        let place = Place::new();
        let (low, image) = place.disk("img");
        let high = place.attach(Path::new(&low), offset);
        place.refused("in use", &low, &["--destroy-data", &low]);
        place.file_system(&high);
        place.mount(&high, "m", "ro");
        let before = bytes(&image);
        place.refused("in use", &low, &[]);
        place.refused("in use", &low, &["--destroy-data", &low]);
        assert!(bytes(&image) == before, "from {offset} on");
    }
}

#[test]
fn a_file_is_ours_or_it_is_named() {
    if skip() {
        return;
    }
    let place = Place::new();
    let (node, image) = place.disk("img");
    let of_image = image.to_str().unwrap();
    let before = bytes(&image);
    place.refused("backs /dev/loop", of_image, &["--overwrite-file", of_image]);
    place.file_system(&node);
    place.mount(&node, "m", "ro");
    let mounted = bytes(&image);
    place.refused("backs /dev/loop", of_image, &["--overwrite-file", of_image]);
    assert!(before != mounted && bytes(&image) == mounted);
    let letters = place.path("iosched-letters.img");
    let content = noise(&letters, 1);
    let named = letters.to_str().unwrap();
    place.refused("no file that iosched made", named, &[]);
    place.refused("no file that iosched made", named, &["--overwrite-file", of_image]);
    let open = File::options().append(true).open(&letters).unwrap();
    place.refused("in use", named, &["--overwrite-file", named]);
    drop(open);
    fs::hard_link(&letters, place.path("other")).unwrap();
    place.refused("it has 2 names", named, &["--overwrite-file", named]);
    assert!(bytes(&letters) == content);
}

/// It was checked once, at the start, by name.
#[test]
fn what_was_checked_is_held_and_written_to() {
    if skip() {
        return;
    }
    let place = Place::new();
    let ((first, image), (second, other)) = (place.disk("one"), place.disk("two"));
    place.file_system(&second);
    let before = bytes(&other);
    let link = place.path("link");
    symlink(&first, &link).unwrap();
    let device = link.to_str().unwrap();
    let mut child = place.under_way(device, &["--destroy-data", device]);
    fs::remove_file(&link).unwrap();
    symlink(&second, &link).unwrap();
    let make = place.tool("mkfs.ext4", &["-q", "-F", &first]);
    let mount = place.tool("mount", &[&first, place.dir.path().to_str().unwrap()]);
    place.refused("in use", &first, &["--destroy-data", &first]);
    child.wait().unwrap();
    assert!(!make.status.success() && !mount.status.success(), "{make:?} {mount:?}");
    assert!(bytes(&other) == before, "the link led elsewhere by then");
    assert!(bytes(&image).iter().any(|b| *b != 0), "the first disk was written to");
}

#[test]
fn marks_and_unmarked_data_need_leave() {
    if skip() {
        return;
    }
    let place = Place::new();
    let (node, image) = place.disk("img");
    // Opened for each: what is below a loop device must not be open either.
    let write = |bytes: &[u8], at| {
        File::options().write(true).open(&image).unwrap().write_all_at(bytes, at).unwrap();
    };
    let end = 16 * MIB;
    for (at, mark) in [
        (128 << 10, &b"\x0c\xb1\xba\0\0\0\0\0"[..]),
        (end - (64 << 10), b"\xfc\x4e\x2b\xa9"),
        (end - 8192, b"\xfc\x4e\x2b\xa9\x01"),
        (65_526, b"SWAPSPACE2"),
        (4086, b"S1SUSPEND\0"),
        (1536, b"LABELONE"),
        (end - 512, b"EFI PART"),
        (0, b"LUKS\xba\xbe\0\x01"),
        (1040, b"\x7f\x13"),
        (32, b"ORCLDISK"),
        (0, b"XFSB"),
        (end - 1, b"x"),
    ] {
        write(mark, at);
        let before = bytes(&image);
        place.refused(&format!("--destroy-data={node}"), &node, &[]);
        assert!(bytes(&image) == before, "{at}");
        write(&vec![0; mark.len()], at);
    }
    write(&vec![7; 4 << 20], 5 << 20);
    let before = bytes(&image);
    place.refused("not blank", &node, &[]);
    // Open in a process: not even with leave.
    let open = File::open(&node).unwrap();
    place.refused("is open in", &node, &["--destroy-data", &node]);
    drop(open);
    assert!(bytes(&image) == before);
}

#[test]
fn a_dry_run_and_the_doctor_judge_alike_and_change_nothing() {
    if skip() {
        return;
    }
    let place = Place::new();
    let (node, image) = place.disk("img");
    place.file_system(&node);
    place.mount(&node, "m", "ro");
    let before = bytes(&image);
    let judge = || {
        let dry = place.run("write.fio", &node, &["--dry-run", "--format", "json"]);
        assert_eq!(dry.status.code(), Some(3));
        let doctor = place.tool(program(), &["doctor", &node, "--format", "json"]);
        let read = |o: &Output| serde_json::from_slice::<serde_json::Value>(&o.stdout).unwrap();
        (read(&dry), read(&doctor))
    };
    // Whoever lists loop devices on this machine opens each for a moment, and is named.
    let (mut dry, mut doctor) = judge();
    for _ in 0..10 {
        if dry[0]["target"] == doctor["writing"] {
            break;
        }
        (dry, doctor) = judge();
    }
    assert_eq!(dry[0]["target"], doctor["writing"], "one judgement");
    assert_eq!(doctor["writing"]["refused_always"], true);
    let why = dry[0]["refused"][0].as_str().unwrap();
    assert!(why.contains(&format!("{node} is mounted on")), "{why}");
    let new = place.path("iosched-new.img");
    let made = new.to_str().unwrap();
    let output = place.run("write.fio", made, &["--size", "4M", "--dry-run"]);
    assert!(output.status.success(), "{output:?}");
    assert!(!new.exists() && bytes(&image) == before);
}
