//! Data through each way to the kernel, and the end of a server. A disk that answers nobody would hold
//! its test for ever: a watchdog kills the test, and the disk's guardian cuts the connection.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests of what touches the machine"
)]

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iosched_backends::Error;
use iosched_backends::emulate::{EmulatedDisk, Options, Transport};
use iosched_backends::guardian::GuardianCommand;
use iosched_devices::DeviceSpec;
use iosched_lab::machine::Interrupt;

const MODEL: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"8MiB\"\nlat_ns=200000\npar=4\n\
                     [queue]\nmax_hw_sectors_kb=1024\nqueue_depth=8\nwrite_cache=true\n";
const BYTES: usize = 8 << 20;
const LIMIT: Duration = Duration::from_secs(20);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Keeps tests apart and ends the process if one takes too long.
struct Watchdog {
    _turn: MutexGuard<'static, ()>,
    _done: Sender<()>,
}

fn machine() -> Option<Watchdog> {
    let usable = |node| OpenOptions::new().read(true).write(true).open(node).is_ok();
    if !nix::unistd::geteuid().is_root() || !usable("/dev/fuse") || !usable("/dev/loop-control") {
        println!("SKIPPED: no root, no /dev/fuse, or no /dev/loop-control");
        return None;
    }
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (done, is_done) = channel::<()>();
    std::thread::spawn(move || {
        if is_done.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            eprintln!("a disk did not answer within {LIMIT:?}");
            let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::SIGKILL);
        }
    });
    Some(Watchdog { _turn: turn, _done: done })
}

fn options(dir: &Path, transport: Transport) -> Options {
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    program.push("examples/live");
    let guardian = GuardianCommand { program, args: vec!["guardian".into()], own: false };
    Options {
        state_dir: dir.into(),
        transport: Some(transport),
        unchecked: true,
        guardian: Some(guardian),
        ..Options::default()
    }
}

fn start(dir: &Path, transport: Transport) -> EmulatedDisk {
    let spec = DeviceSpec::from_toml("t", MODEL).unwrap();
    EmulatedDisk::start(&spec, &options(dir, transport)).unwrap()
}

/// The ways that can be tried here. A way that a killed test would leave hanging in the kernel is tried by those who ask
/// for it: `IOSCHED_TEST_FUSE_URING=1 cargo test -p iosched-backends --test transport`.
fn ways() -> impl Iterator<Item = Transport> {
    let all = std::env::var_os("IOSCHED_TEST_FUSE_URING").is_some();
    let safe = move |t: &Transport| {
        if !all && !t.survives_kills() {
            println!("SKIPPED: {}: set IOSCHED_TEST_FUSE_URING=1", t.title());
        }
        all || t.survives_kills()
    };
    Transport::ALL.into_iter().filter(safe).filter(|t| match t.missing() {
        Some(why) => {
            println!("SKIPPED: {}: {why}", t.title());
            false
        }
        None => true,
    })
}

fn direct(node: &Path) -> File {
    OpenOptions::new().read(true).write(true).custom_flags(nix::libc::O_DIRECT).open(node).unwrap()
}

/// Memory at a page boundary.
struct Page(Vec<u8>, usize);

impl Page {
    fn new(len: usize) -> Page {
        let store = vec![0; len + 4096];
        let start = store.as_ptr().align_offset(4096);
        Page(store, start)
    }

    fn part(&mut self, len: usize) -> &mut [u8] {
        &mut self.0[self.1..self.1 + len]
    }
}

/// Numbers by which one step follows another; the same every time.
struct Steps(u64);

impl Steps {
    fn next(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Four users at once, each in its own quarter: random reads and writes of all sizes, each read compared
/// with what was written there.
fn exercise(node: &Path) {
    let user = |quarter: usize| {
        let (file, size) = (direct(node), BYTES / 4);
        let base = (quarter * size) as u64;
        let mut shadow = vec![0u8; size];
        let (mut steps, mut page) = (Steps(quarter as u64 + 1), Page::new(size));
        for step in 0..60u64 {
            let len = 512usize << steps.next(13);
            let len = len.min(size);
            let at = steps.next(((size - len) / 512 + 1) as u64) as usize * 512;
            let buf = page.part(len);
            if steps.next(2) == 0 {
                let seed = steps.next(1 << 30);
                buf.iter_mut()
                    .enumerate()
                    .for_each(|(i, b)| *b = (seed + i as u64 / 7 + step) as u8);
                shadow[at..at + len].copy_from_slice(buf);
                file.write_all_at(buf, base + at as u64).unwrap();
            } else {
                file.read_exact_at(buf, base + at as u64).unwrap();
                assert!(buf == &shadow[at..at + len], "quarter {quarter}, step {step}, {at}+{len}");
            }
        }
        file.sync_all().unwrap();
        let all = page.part(size);
        file.read_exact_at(all, base).unwrap();
        assert!(all == &shadow[..], "quarter {quarter} at the end");
    };
    std::thread::scope(|s| (0..4).for_each(|q| drop(s.spawn(move || user(q)))));
}

#[test]
fn data_is_what_was_written_by_every_way() {
    let Some(_guard) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    for way in ways() {
        let disk = start(dir.path(), way);
        assert_eq!(disk.transport(), way);
        exercise(&disk.node());
        let served = disk.served();
        assert!(served.commands[0] > 50 && served.commands[1] > 50, "{served:?}");
        assert!(served.commands[3] >= 4, "each user's flush came: {served:?}");
        disk.stop().unwrap();
    }
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "no state file stays");
}

#[test]
fn a_hole_reads_as_zeros_by_every_way() {
    let Some(_guard) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    for way in ways() {
        let disk = start(dir.path(), way);
        let (file, mut page) = (direct(&disk.node()), Page::new(64 << 10));
        page.part(64 << 10).fill(0xA5);
        file.write_all_at(page.part(64 << 10), 0).unwrap();
        let flags = nix::fcntl::FallocateFlags::FALLOC_FL_PUNCH_HOLE
            | nix::fcntl::FallocateFlags::FALLOC_FL_KEEP_SIZE;
        nix::fcntl::fallocate(&file, flags, 8192, 16384).unwrap();
        file.read_exact_at(page.part(64 << 10), 0).unwrap();
        let hole = |i: usize| (8192..8192 + 16384).contains(&i);
        let got = page.part(64 << 10);
        assert!(got.iter().enumerate().all(|(i, b)| *b == if hole(i) { 0 } else { 0xA5 }));
        assert!(disk.served().commands[2] >= 1, "a discard came");
        drop(file);
        disk.stop().unwrap();
    }
}

#[test]
fn the_kernels_parameter_is_as_before() {
    let Some(_guard) = machine() else { return };
    let path = PathBuf::from("/sys/module/fuse/parameters/enable_uring");
    let Ok(before) = fs::read_to_string(&path) else {
        return println!("SKIPPED: no such parameter");
    };
    let dir = tempfile::tempdir().unwrap();
    let disk = start(dir.path(), Transport::best());
    assert_eq!(fs::read_to_string(&path).unwrap(), before, "it is needed for the start only");
    disk.stop().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn a_start_ends_when_a_signal_comes() {
    let Some(_guard) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let interrupt = Interrupt::install().unwrap();
    let spec = DeviceSpec::from_toml("t", MODEL).unwrap();
    let start = Options { interrupt, ..options(dir.path(), Transport::best()) };
    nix::sys::signal::raise(nix::sys::signal::SIGHUP).unwrap();
    let e = EmulatedDisk::start(&spec, &start).unwrap_err();
    assert!(matches!(e, Error::Interrupted { .. }), "{e:?}");
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing stays");
}
