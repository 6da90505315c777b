//! An end for tests that touch the machine: what still runs when the time is over is killed, and the FUSE
//! connections of its disks are cut, so that nobody waits for a disk whose server is gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// In the environment of every process that a test starts: the folder that it works in.
pub(crate) const MARK: &str = "IOSCHED_TEST_FOLDER";

/// What a test may still take after its children were killed.
const GRACE: Duration = Duration::from_secs(20);

/// Barks unless it is dropped in time.
pub(crate) struct Watchdog {
    done: Option<Sender<()>>,
}

impl Watchdog {
    /// For a test whose files are in `folder`, of which the state files in it or one below name the disks.
    pub(crate) fn start(folder: &Path, limit: Duration) -> Watchdog {
        let (done, waiting) = channel::<()>();
        let folder = folder.to_path_buf();
        std::thread::spawn(move || {
            let over = |t| matches!(waiting.recv_timeout(t), Err(RecvTimeoutError::Timeout));
            if !over(limit) {
                return;
            }
            println!("over its limit of {} s: {}", limit.as_secs(), folder.display());
            for _ in 0..2 {
                kill(&folder);
                connections(&folder).into_iter().for_each(cut);
                if !over(GRACE) {
                    return;
                }
            }
            println!("it cannot be ended: {}", folder.display());
            std::process::exit(101);
        });
        Watchdog { done: Some(done) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.done = None;
    }
}

/// Kills every process that has the mark.
fn kill(folder: &Path) {
    let mark = format!("{MARK}={}", folder.display());
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|b| *b == 0).any(|v| v == mark.as_bytes()) {
            let pid = entry.file_name().to_string_lossy().into_owned();
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            println!("killed {pid}: {}", String::from_utf8_lossy(&line).replace('\0', " "));
            quietly(Command::new("kill").args(["-KILL", &pid]));
        }
    }
}

/// Numbers of the FUSE connections that the state files below a folder name.
fn connections(folder: &Path) -> Vec<u64> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![folder.into()];
    while let Some(dir) = folders.pop() {
        for path in fs::read_dir(&dir).into_iter().flatten().flatten().map(|e| e.path()) {
            if path.extension().is_some_and(|x| x == "json") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                found.extend(text.split("\"connection\":").skip(1).filter_map(|t| {
                    t.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
                }));
            } else if path.is_dir() && !path.is_symlink() && folders.len() < 64 {
                folders.push(path);
            }
        }
    }
    found
}

/// Cuts a FUSE connection; where its file system is not mounted, in a mount of our own.
fn cut(number: u64) {
    println!("cut FUSE connection {number}");
    let at = "/sys/fs/fuse/connections";
    let script = format!(
        "test -e {at}/{number} || mount -t fusectl none {at} || exit; echo 1 >{at}/{number}/abort"
    );
    quietly(Command::new("timeout").args(["10", "unshare", "--mount", "sh", "-c", &script]));
}

fn quietly(command: &mut Command) {
    let _ = command.stdin(Stdio::null()).stderr(Stdio::null()).status();
}

#[test]
fn what_outlives_its_limit_is_killed() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("x.json"), "{ \"connection\": 12345678, \"pid\": 1 }")
        .expect("a file");
    assert_eq!(connections(dir.path()), [12_345_678]);
    let _dog = Watchdog::start(dir.path(), Duration::from_millis(100));
    let mut child = Command::new("sleep").arg("1000").env(MARK, dir.path()).spawn().expect("sleep");
    assert!(!child.wait().expect("its end").success());
}
