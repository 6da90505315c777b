//! On the real kernel: emulated disks, switching, and what is left when things are killed. Where the
//! machine lacks root, FUSE or loop devices each test says so and passes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests of what touches the machine"
)]

mod watchdog;

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use iosched_backends::emulate::{EmulatedDisk, Options};
use iosched_backends::switch::{self, Session};
use iosched_backends::{Error, ExitClass, discover, restore};
use iosched_devices::DeviceSpec;
use watchdog::Watchdog;

/// Emulated disks at once would disturb each other's timing.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Longer than any test takes, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(90);

/// The machine for one test, with a folder for its files; nothing of it outlives the limit.
struct Machine {
    _dog: Watchdog,
    dir: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Machine {
    fn path(&self) -> &Path {
        self.dir.path()
    }
}

fn machine() -> Option<Machine> {
    let missing = [
        (!nix::unistd::geteuid().is_root(), "no root"),
        (!Path::new("/dev/fuse").exists(), "no /dev/fuse"),
        (!Path::new("/dev/loop-control").exists(), "no /dev/loop-control"),
        (OpenOptions::new().write(true).open("/dev/fuse").is_err(), "/dev/fuse cannot be opened"),
    ];
    if let Some((_, why)) = missing.iter().find(|(m, _)| *m) {
        println!("SKIPPED: {why}");
        return None;
    }
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    Some(Machine { _dog: Watchdog::start(dir.path(), LIMIT), dir, _alone: alone })
}

const SLOW: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"64MiB\"\nlat_ns=8000000\npar=4\n\
                    [queue]\nmax_hw_sectors_kb=64\nqueue_depth=8\nrotational=true\nwrite_cache=true\n";

fn spec() -> DeviceSpec {
    DeviceSpec::from_toml("t", SLOW).unwrap()
}

fn start(dir: &Path) -> EmulatedDisk {
    EmulatedDisk::start(&spec(), &Options { state_dir: dir.into(), ..Options::default() }).unwrap()
}

/// The example program, built beside the tests.
fn program(dir: &Path, args: &[&str]) -> Child {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/live");
    Command::new(path)
        .args(args)
        .env("LIVE_STATE", dir)
        .env(watchdog::MARK, dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("examples are built with the tests")
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_string()
}

/// Guardians of a state directory: their command line ends with a path in it.
fn guardians(dir: &Path) -> Vec<nix::unistd::Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(" guardian ")
            && line.contains(&*dir.to_string_lossy())
            && let Ok(pid) = entry.file_name().to_string_lossy().parse()
        {
            found.push(nix::unistd::Pid::from_raw(pid));
        }
    }
    found
}

fn kill9(pid: nix::unistd::Pid) {
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
}

fn pid(child: &Child) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap())
}

fn eventually(what: &str, mut f: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !f() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn model_file(dir: &Path) -> PathBuf {
    let path = dir.join("model.toml");
    fs::write(&path, SLOW).unwrap();
    path
}

#[test]
fn an_emulated_disk_keeps_data_looks_like_the_model_and_leaves_nothing() {
    let Some(dir) = machine() else { return };
    let disk = start(dir.path());
    let (node, name) = (disk.node(), disk.name());
    let queue = discover::QueueState::read(&iosched_backends::SysRoot::default(), &name);
    assert_eq!(queue.attributes["rotational"], "1");
    assert_eq!(queue.attributes["write_cache"], "write back");
    assert_eq!(queue.attributes["nr_requests"], "8");
    let file = OpenOptions::new().read(true).write(true).open(&node).unwrap();
    let data: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
    file.write_all_at(&data, 1 << 20).unwrap();
    let began = Instant::now();
    file.sync_all().unwrap();
    assert!(began.elapsed() >= Duration::from_millis(8), "the model's time passes");
    let _ =
        nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    let mut back = vec![0; data.len()];
    file.read_exact_at(&mut back, 1 << 20).unwrap();
    assert_eq!(back, data);
    drop(file);
    let served = disk.served();
    assert!(served.bytes[1] >= 300_000 && served.commands[3] >= 1, "{served:?}");
    disk.stop().unwrap();
    assert!(!Path::new("/sys/block").join(&name).exists());
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "no state file stays");
}

#[test]
fn a_model_that_is_too_fast_is_refused_and_nothing_stays() {
    let Some(dir) = machine() else { return };
    let fast = SLOW.replace("lat_ns=8000000", "lat_ns=1000");
    let fast = DeviceSpec::from_toml("fast", &fast).unwrap();
    let options = Options { state_dir: dir.path().into(), ..Options::default() };
    let e = EmulatedDisk::start(&fast, &options).unwrap_err();
    assert!(matches!(e, Error::TooFast { .. }), "{e:?}");
    assert_eq!(e.class(), ExitClass::Missing);
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none());
}

#[test]
fn a_killed_emulator_is_cleaned_up_by_its_guardian() {
    let Some(dir) = machine() else { return };
    let model = model_file(dir.path());
    let mut child = program(dir.path(), &["emulate", model.to_str().unwrap()]);
    let name = first_line(&mut child).replace("/dev/", "");
    assert!(Path::new("/sys/block").join(&name).exists(), "{name}");
    kill9(pid(&child));
    child.wait().unwrap();
    eventually("the loop device goes", || !Path::new("/sys/block").join(&name).exists());
    eventually("the state file goes", || !dir.path().join(format!("{name}.json")).exists());
}

#[test]
fn after_a_kill_of_both_restore_cleans_up() {
    let Some(dir) = machine() else { return };
    let model = model_file(dir.path());
    let mut child = program(dir.path(), &["emulate", model.to_str().unwrap()]);
    let name = first_line(&mut child).replace("/dev/", "");
    guardians(dir.path()).into_iter().for_each(kill9);
    kill9(pid(&child));
    child.wait().unwrap();
    eventually("the guardian is dead", || guardians(dir.path()).is_empty());
    assert!(Path::new("/sys/block").join(&name).exists());
    let results = restore::restore_all(dir.path());
    assert_eq!(results.len(), 1);
    assert!(matches!(results[0].1, Ok(restore::Restored::Done(_))), "{results:?}");
    assert!(!Path::new("/sys/block").join(&name).exists());
    assert!(restore::restore_all(dir.path()).is_empty());
}

/// While it checks itself the program reads from its own disk: killed then, its threads wait for answers
/// that its other threads can no longer give.
#[test]
fn a_kill_at_any_moment_of_the_start_leaves_nothing() {
    let Some(dir) = machine() else { return };
    let model = model_file(dir.path());
    for delay in [50, 200, 350, 500, 650, 800] {
        let mut child = program(dir.path(), &["emulate", model.to_str().unwrap()]);
        std::thread::sleep(Duration::from_millis(delay));
        kill9(pid(&child));
        child.wait().unwrap();
        // It goes only after the loop device went.
        eventually("the state file goes", || {
            fs::read_dir(dir.path()).unwrap().flatten().all(|e| e.file_name() == "model.toml")
        });
    }
}

#[test]
fn sigterm_detaches() {
    let Some(dir) = machine() else { return };
    let model = model_file(dir.path());
    let mut child = program(dir.path(), &["emulate", model.to_str().unwrap()]);
    let name = first_line(&mut child).replace("/dev/", "");
    nix::sys::signal::kill(pid(&child), nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!Path::new("/sys/block").join(&name).exists());
}

fn settings(name: &str) -> discover::QueueState {
    discover::QueueState::read(&iosched_backends::SysRoot::default(), name)
}

#[test]
fn every_scheduler_goes_on_and_everything_goes_back() {
    let Some(dir) = machine() else { return };
    let disk = start(dir.path());
    let name = disk.name();
    let before = settings(&name);
    let options = switch::Options { state_dir: dir.path().into(), guardian: None };
    let session = Session::begin(&name, &options).unwrap();
    for scheduler in before.offered.iter().filter(|s| *s != "none") {
        assert_eq!(session.set_scheduler(scheduler).unwrap(), *scheduler);
        session.set_attribute("nr_requests", "64").unwrap();
    }
    if before.offered.iter().any(|s| s == "mq-deadline") {
        session.set_scheduler("mq-deadline").unwrap();
        session.set_tunable("read_expire", 77).unwrap();
        let e = session.set_tunable("read_exipre", 77).unwrap_err();
        assert_eq!(e.help(), "did you mean \"read_expire\"?");
        // The same name again starts from the defaults.
        session.set_scheduler("mq-deadline").unwrap();
        assert_eq!(session.state().tunables["read_expire"], "500");
    }
    if before.offered.iter().any(|s| s == "bfq") {
        session.set_scheduler("bfq").unwrap();
        // The kernel makes 1 of it: the run would not be the one that was asked for.
        let e = session.set_tunable("low_latency", 7).unwrap_err();
        assert_eq!(
            (e.to_string().contains("wrote 7, reads 1"), e.class()),
            (true, ExitClass::Failed)
        );
        session.set_tunable("low_latency", 0).unwrap();
        session.set_tunable("timeout_sync", 77).unwrap();
    }
    assert!(session.set_attribute("nr_requests", "1").is_err(), "the kernel makes 4 of it");
    session.set_attribute("nr_requests", "64").unwrap();
    session.set_attribute("read_ahead_kb", "512").unwrap();
    let second = Session::begin(&name, &options).unwrap_err();
    assert!(matches!(second, Error::Locked { .. }), "{second:?}");
    // The folder of its state is nothing that keeps two apart.
    let elsewhere = tempfile::tempdir().unwrap();
    let options = switch::Options { state_dir: elsewhere.path().into(), guardian: None };
    let second = Session::begin(&name, &options).unwrap_err();
    assert!(matches!(second, Error::Locked { pid, .. } if pid == std::process::id()), "{second:?}");
    session.finish().unwrap();
    assert_eq!(settings(&name), before);
    disk.stop().unwrap();
}

#[test]
fn names_the_kernel_does_not_have_are_explained() {
    let Some(dir) = machine() else { return };
    let disk = start(dir.path());
    let options = switch::Options { state_dir: dir.path().into(), guardian: None };
    let session = Session::begin(&disk.name(), &options).unwrap();
    let e = session.set_scheduler("noop").unwrap_err();
    assert!(matches!(e, Error::RemovedScheduler { .. }), "{e:?}");
    let e = session.set_scheduler("bqf").unwrap_err();
    assert!(matches!(e, Error::SchedulerRefused { .. }) && e.help().contains("offers"), "{e:?}");
    assert_eq!(e.class(), ExitClass::Missing);
    session.finish().unwrap();
    disk.stop().unwrap();
}

#[test]
fn a_killed_switch_is_undone_by_the_guardian_and_by_restore() {
    let Some(dir) = machine() else { return };
    let disk = start(dir.path());
    let name = disk.name();
    let before = settings(&name);
    let other = before.offered.iter().find(|s| *s != "none").unwrap().clone();

    let mut child = program(dir.path(), &["switch", &name, &other]);
    assert_eq!(first_line(&mut child), other);
    kill9(pid(&child));
    child.wait().unwrap();
    eventually("the guardian puts the scheduler back", || settings(&name) == before);
    eventually("its state file goes", || !dir.path().join(format!("queue-{name}.json")).exists());

    let mut child = program(dir.path(), &["switch", &name, &other]);
    assert_eq!(first_line(&mut child), other);
    guardians(dir.path()).into_iter().for_each(kill9);
    kill9(pid(&child));
    child.wait().unwrap();
    eventually("the guardian is dead", || guardians(dir.path()).is_empty());
    assert_eq!(settings(&name).scheduler.as_deref(), Some(other.as_str()));
    let elsewhere = tempfile::tempdir().unwrap();
    for state_dir in [dir.path(), elsewhere.path()] {
        let options = switch::Options { state_dir: state_dir.into(), guardian: None };
        let e = Session::begin(&name, &options).unwrap_err();
        assert!(matches!(e, Error::Unrestored { .. }), "{e:?}");
        let help = format!("run: iosched restore --state-dir {}", dir.path().display());
        assert_eq!(e.help(), help);
    }
    for (_, result) in restore::restore_all(dir.path()) {
        result.unwrap();
    }
    assert_eq!(settings(&name), before);
    disk.stop().unwrap();
}
