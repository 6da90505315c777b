//! One cold start under load.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use iosched_experiment::{Access, Metric, Mix, Startup};
use iosched_lab::machine::Interrupt;

use super::stage::{Stage, load_file};
use super::surroundings::environment;
use crate::error::{Error, Result};
use crate::load::child::{Load, on_its_own};
use crate::load::{guard, meter};
use crate::parse::diskstats::DiskStats;
use crate::root::SysRoot;
use crate::sys;
use crate::target::open_node;

/// What is started, and how.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Command and load.
    pub what: &'a Startup,
    /// A directory for the load's own files.
    pub scratch: &'a Path,
    /// Load and command get a CPU before others do, because the disk is measured and not the CPU.
    pub urgent: bool,
    /// Signals to look out for.
    pub interrupt: &'a Interrupt,
}

/// One start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// Time from the start to the end of the command, in seconds.
    pub seconds: f64,
    /// The limit struck: it would have taken longer.
    pub censored: bool,
    /// Bytes that the disks moved from the load's first I/O to the end of the command.
    pub moved: u64,
    /// Bytes a second in that time: a start of half a second says nothing about the load's own rate.
    pub throughput: f64,
    /// CPU ticks of the load's processes. They were killed and have no parent any more.
    pub load_ticks: u64,
}

/// Starts the command once, cold, under the load.
///
/// # Errors
/// [`Error::Tool`] when the command or fio fails, [`Error::Interrupted`].
pub fn measure(stage: &Stage, how: &How<'_>) -> Result<Start> {
    let root = SysRoot::default();
    let mut period = Period::begin(&root, &stage.disks);
    let mut load = start_load(stage, how)?;
    if let Some(load) = &mut load {
        let settle = Duration::from_nanos(how.what.settle);
        let mut check = || {
            period.look(&root, &stage.disks);
            how.interrupt.check()
        };
        if let Some(status) = load.wait(settle, &mut check)? {
            return Err(ended_early(how, status));
        }
    }
    meter::drop_caches()?;
    if load.is_none() {
        period = Period::begin(&root, &stage.disks);
    }
    let mut command = command(stage, how)?;
    let began = Instant::now();
    let mut child = Load::start(&mut command, "the package of the command")?;
    let limit = Duration::from_nanos(how.what.limit);
    let status = child.wait(limit, &mut || how.interrupt.check())?;
    let seconds = began.elapsed().as_secs_f64();
    let (moved, period) = period.end(&root, &stage.disks);
    child.kill();
    let load_ended = load.as_mut().map(|l| l.wait(Duration::ZERO, &mut || Ok(()))).transpose()?;
    let load_ticks = load.as_ref().map_or(0, Load::descendants_ticks);
    drop(load);
    drain(&root, &stage.disks, how.interrupt)?;
    if let Some(status) = load_ended.flatten() {
        return Err(ended_early(how, status));
    }
    if let Some(status) = status
        && !status.success()
    {
        return Err(Error::Tool {
            tool: how.what.command.join(" "),
            status: status.to_string(),
            message: format!(
                "it must end with success in its small root{}; {}",
                if std::env::var_os("DISPLAY").is_none() { " (DISPLAY is not set)" } else { "" },
                first_words(&how.scratch.join("command.txt"))
            ),
        });
    }
    Ok(Start {
        seconds,
        censored: status.is_none(),
        moved,
        throughput: moved as f64 / period.max(1e-9),
        load_ticks,
    })
}

/// The time over which a load's rate is taken: from its first I/O, however long fio takes to start.
struct Period {
    disk: DiskStats,
    began: Instant,
    running: bool,
}

impl Period {
    fn begin(root: &SysRoot, disks: &[String]) -> Period {
        Period { disk: meter::disks(root, disks), began: Instant::now(), running: false }
    }

    /// Moves the beginning until something has happened.
    fn look(&mut self, root: &SysRoot, disks: &[String]) {
        if self.running {
            return;
        }
        let now = meter::disks(root, disks);
        if now.since(&self.disk).bytes() > 0 {
            self.running = true;
        } else {
            self.began = Instant::now();
        }
    }

    /// Bytes moved and seconds passed.
    fn end(&self, root: &SysRoot, disks: &[String]) -> (u64, f64) {
        let moved = meter::disks(root, disks).since(&self.disk).bytes();
        (moved, self.began.elapsed().as_secs_f64())
    }
}

fn command(stage: &Stage, how: &How<'_>) -> Result<Command> {
    let program = how.what.command.first().map_or("", String::as_str);
    let mut command = Command::new(stage.program(program)?);
    command.args(how.what.command.iter().skip(1)).env_clear().envs(environment());
    let said = how.scratch.join("command.txt");
    let said = File::create(&said).map_err(|e| Error::io("creating", said, e))?;
    command.stdout(Stdio::null()).stderr(said);
    stage.enter(&mut command)?;
    if how.urgent {
        sys::urgent(&mut command);
    }
    Ok(command)
}

/// Median start without load.
///
/// # Errors
/// As [`measure`]; an idle start beyond the limit.
pub fn idle_baseline(stage: &Stage, how: &How<'_>) -> Result<f64> {
    let load = Mix { readers: 0, writers: 0, access: Access::Sequential };
    let idle = Startup { load, ..how.what.clone() };
    let how = How { what: &idle, ..*how };
    let mut all = Vec::new();
    for _ in 0..idle.idle.max(1) {
        let start = measure(stage, &how)?;
        if start.censored {
            let message =
                format!("the command takes longer than {:.0} s without load", start.seconds);
            return Err(Error::input(
                message,
                "it must end by itself: bash -c :, xterm -e /bin/true",
            ));
        }
        all.push(start.seconds);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}

/// Waits until nothing is in flight, so that the rest of the load does not slow the next start.
fn drain(root: &SysRoot, disks: &[String], interrupt: &Interrupt) -> Result<()> {
    nix::unistd::sync();
    let path = |d: &String| format!("/sys/block/{}/inflight", d.replace('/', "!"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        interrupt.check()?;
        let text: String = disks.iter().filter_map(|d| root.get(&path(d))).collect();
        if text.split_whitespace().all(|n| n.bytes().all(|b| b == b'0')) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(Error::Trial {
        message: format!("{} still has I/O in flight a minute after the load", disks.join(", ")),
    })
}

fn start_load(stage: &Stage, how: &How<'_>) -> Result<Option<Load>> {
    let mix = how.what.load;
    if mix.readers + mix.writers == 0 {
        return Ok(None);
    }
    let file = how.scratch.join("load.fio");
    // The load gets descriptors, so the form of a path, and where it leads by now, do not matter.
    let place = if how.what.load.access == Access::Raw {
        open_node(stage.disks.first().map_or("", String::as_str), &stage.node, false)?
    } else {
        stage.open()?
    };
    let held = format!("/proc/self/fd/{}", place.as_raw_fd());
    let (text, names) = job_file(&held, how.what);
    guard::check(&text, guard::Bounds::Files(&names))?;
    fs::write(&file, text).map_err(|e| Error::io("writing", &file, e))?;
    let said = how.scratch.join("load.txt");
    let create = || File::create(&said).map_err(|e| Error::io("creating", &said, e));
    let mut command = Command::new("fio");
    on_its_own(&mut command);
    command.args(["--output-format=terse", "--max-jobs=4096"]).arg(&file).current_dir(how.scratch);
    command.stdout(Stdio::null()).stderr(create()?);
    sys::inherits(&mut command, place.as_fd());
    if how.urgent {
        sys::urgent(&mut command);
    }
    Ok(Some(Load::start(&mut command, "fio")?))
}

fn ended_early(how: &How<'_>, status: std::process::ExitStatus) -> Error {
    let words = first_words(&how.scratch.join("load.txt"));
    let message = format!("it ended before the command did; {words}");
    Error::Tool { tool: "fio (the load)".into(), status: status.to_string(), message }
}

/// What a program said first.
fn first_words(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).take(3).collect();
    if lines.is_empty() { "it said nothing".into() } else { lines.join("; ") }
}

/// The load's job file, and the files that it names. `held` leads to the disk, or to the folder with the load's
/// files.
fn job_file(held: &str, what: &Startup) -> (String, Vec<String>) {
    let mix = what.load;
    let raw = mix.access == Access::Raw;
    let (read, write, bs) = match mix.access {
        Access::Random => ("randread", "randwrite", "4k"),
        _ => ("read", "write", "128k"),
    };
    // Each reader starts at once, because the files are laid out already.
    let mut text = format!(
        "[global]\nioengine=psync\nbs={bs}\ntime_based\nruntime=86400\nallow_file_create=0\n\
         direct={}\ninvalidate=1\n",
        u8::from(raw)
    );
    let mut names = Vec::new();
    for i in 0..mix.readers + mix.writers {
        let reads = i < mix.readers;
        let name = if raw { held.to_string() } else { format!("{held}/{}", load_file(i)) };
        text.push_str(&format!(
            "[l{i}]\nfilename={name}\nrw={}\n",
            if reads { read } else { write }
        ));
        if raw {
            // Each reader in its own part of the disk.
            text.push_str(&format!("offset={}%\n", u64::from(i) * 100 / u64::from(mix.readers)));
        } else {
            text.push_str(&format!("size={}\n", what.file_bytes));
        }
        if !reads {
            if let Some(kib) = what.writer_kib {
                text.push_str(&format!("rate=,{kib}k\n"));
            }
            text.push_str("fdatasync=512\n");
        }
        names.push(name);
    }
    (text, names)
}

/// As a record has it: `startup_time` (censored at the limit), the idle baseline and the `slowdown` against it, by which nothing
/// is judged, and the throughput of the disks over the load's whole period.
#[must_use]
pub fn metrics(start: Start, idle: f64) -> Vec<Metric> {
    let metric = |name: &str, value: f64, unit: &str, higher: Option<bool>, censored| Metric {
        name: name.into(),
        value,
        unit: unit.into(),
        higher_is_better: higher,
        censored,
    };
    vec![
        metric("startup_time", start.seconds, "s", Some(false), start.censored),
        metric("startup_idle", idle, "s", None, false),
        metric("slowdown", start.seconds / idle.max(1e-9), "x", None, start.censored),
        metric("throughput", start.throughput / 1e6, "MB/s", Some(true), false),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_beyond_the_limit_stays_marked() {
        let start =
            Start { seconds: 60.0, censored: true, moved: 0, throughput: 1e8, load_ticks: 0 };
        let all = metrics(start, 0.2);
        let by = |n: &str| all.iter().find(|m| m.name == n).unwrap();
        assert!(by("startup_time").censored && by("slowdown").censored);
        assert!((by("slowdown").value - 300.0).abs() < 1e-9);
        assert_eq!(by("throughput").value, 100.0);
    }
}
