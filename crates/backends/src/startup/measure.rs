//! One cold start under load.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use iosched_experiment::{BackendKind, Metric, Record, SCHEMA, TrialId};

use super::mix::{Access, Mix};
use super::stage::Stage;
use crate::error::{Error, Result};
use crate::load::child::{Interrupt, Load};
use crate::load::meter;
use crate::root::SysRoot;
use crate::sys;

/// What is started, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Program and arguments: something that starts, does nothing and ends.
    pub command: Vec<String>,
    /// The load.
    pub mix: Mix,
    /// After this long the start counts as "longer" and is given up.
    pub limit: Duration,
    /// Time for the load to get going.
    pub settle: Duration,
    /// Rate of each writer in KiB/s, as the S suite limits them on disks; `None` for no limit.
    pub writer_kib: Option<u64>,
    /// Signals to look out for.
    pub interrupt: Interrupt,
}

impl Options {
    /// `bash -c :` under a mix.
    #[must_use]
    pub fn bash(mix: Mix) -> Self {
        Options {
            command: ["/bin/bash", "-c", ":"].map(String::from).to_vec(),
            mix,
            limit: Duration::from_secs(60),
            settle: Duration::from_millis(1500),
            writer_kib: Some(4000),
            interrupt: Interrupt::default(),
        }
    }

    /// The program's path.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.command.first().map(PathBuf::from).unwrap_or_default()
    }
}

/// One start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Startup {
    /// Time from the start to the end of the command, in seconds.
    pub seconds: f64,
    /// The limit struck: it would have taken longer.
    pub censored: bool,
    /// Bytes a second that the disk moved meanwhile.
    pub throughput: f64,
}

/// Starts the command once, cold, under the load.
///
/// # Errors
/// [`Error::Tool`] when the command or fio fails, [`Error::Interrupted`].
pub fn measure(stage: &Stage, options: &Options) -> Result<Startup> {
    let root = SysRoot::default();
    let stage_root = stage.root();
    let mut load = start_load(stage, options)?;
    if let Some(load) = &mut load {
        let ended = load.wait(options.settle, &mut || options.interrupt.check())?;
        if let Some(status) = ended {
            return Err(Error::Tool {
                tool: "fio (the load)".into(),
                status: status.to_string(),
                message: "it ended before the command was started".into(),
            });
        }
    }
    meter::drop_caches()?;
    let before = meter::read(&root, &stage.disk);
    let mut command = Command::new(options.program());
    command.args(options.command.iter().skip(1)).env_clear().env("PATH", "/usr/bin:/bin");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    sys::in_root(&mut command, stage_root);
    let began = Instant::now();
    let mut child = Load::start(&mut command, "the package of the command")?;
    let status = child.wait(options.limit, &mut || options.interrupt.check())?;
    let seconds = began.elapsed().as_secs_f64();
    let used = meter::read(&root, &stage.disk).since(&before);
    child.kill();
    drop(load);
    drain(&root, &stage.disk, &options.interrupt)?;
    if let Some(status) = status
        && !status.success()
    {
        return Err(Error::Tool {
            tool: options.command.join(" "),
            status: status.to_string(),
            message: "the command must end with success in the small root".into(),
        });
    }
    Ok(Startup {
        seconds,
        censored: status.is_none(),
        throughput: used.disk.bytes() as f64 / seconds.max(1e-9),
    })
}

/// Median start without load.
///
/// # Errors
/// As [`measure`].
pub fn idle_baseline(stage: &Stage, options: &Options, times: u32) -> Result<f64> {
    let idle = Mix { readers: 0, writers: 0, access: Access::Sequential };
    let options = Options { mix: idle, ..options.clone() };
    let mut all = Vec::new();
    for _ in 0..times.max(1) {
        all.push(measure(stage, &options)?.seconds);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}

/// Waits until nothing is in flight: what the load left must not slow the next start.
fn drain(root: &SysRoot, disk: &str, interrupt: &Interrupt) -> Result<()> {
    nix::unistd::sync();
    let path = format!("/sys/block/{}/inflight", disk.replace('/', "!"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        interrupt.check()?;
        let text = root.get(&path).unwrap_or_default();
        if text.split_whitespace().all(|n| n == "0") {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(Error::Trial { message: format!("{disk} still has I/O in flight a minute after the load") })
}

fn start_load(stage: &Stage, options: &Options) -> Result<Option<Load>> {
    let mix = options.mix;
    if mix.readers + mix.writers == 0 {
        return Ok(None);
    }
    let dir = std::env::temp_dir();
    let file = dir.join(format!("iosched-load-{}.fio", std::process::id()));
    std::fs::write(&file, job_file(stage, options)).map_err(|e| Error::io("writing", &file, e))?;
    let mut command = Command::new("fio");
    command.arg(&file).current_dir(&dir).stdout(Stdio::null()).stderr(Stdio::null());
    let mut load = Load::start(&mut command, "fio")?;
    // fio has read its file once it runs its jobs; the settle time covers that.
    let early = load.wait(Duration::from_millis(300), &mut || options.interrupt.check())?;
    let _ = std::fs::remove_file(&file);
    match early {
        None => Ok(Some(load)),
        Some(status) => Err(Error::Tool {
            tool: "fio (the load)".into(),
            status: status.to_string(),
            message: "it ended at once".into(),
        }),
    }
}

fn job_file(stage: &Stage, options: &Options) -> String {
    let mix = options.mix;
    let raw = mix.access == Access::Raw;
    let (read, write, bs) = match mix.access {
        Access::Random => ("randread", "randwrite", "4k"),
        _ => ("read", "write", "128k"),
    };
    let mut text = format!(
        "[global]\nioengine=psync\nbs={bs}\ntime_based\nruntime=86400\nallow_file_create=0\n\
         direct={}\ninvalidate=1\n",
        u8::from(raw)
    );
    for i in 0..mix.readers + mix.writers {
        let reads = i < mix.readers;
        let target = if raw { &stage.node } else { &stage.files[i as usize] };
        let name = target.display().to_string().replace(':', "\\:");
        text.push_str(&format!(
            "[l{i}]\nfilename={name}\nrw={}\n",
            if reads { read } else { write }
        ));
        if raw {
            // Each reader in its own part of the disk.
            text.push_str(&format!("offset={}%\n", u64::from(i) * 100 / u64::from(mix.readers)));
        } else {
            text.push_str(&format!("size={}\n", stage.file_bytes));
        }
        if !reads {
            if let Some(kib) = options.writer_kib {
                text.push_str(&format!("rate=,{kib}k\n"));
            }
            text.push_str("fdatasync=512\n");
        }
    }
    text
}

/// As a record: `startup_time` (censored at the limit), `slowdown` against the idle baseline, and the
/// aggregate throughput meanwhile.
#[must_use]
pub fn to_record(id: TrialId, kind: BackendKind, start: Startup, idle: f64) -> Record {
    let metric = |name: &str, value: f64, unit: &str, higher, censored| Metric {
        name: name.into(),
        value,
        unit: unit.into(),
        higher_is_better: higher,
        censored,
    };
    let mut record = Record { schema: SCHEMA, trial: id, backend: kind, ..Record::default() };
    record.metrics = vec![
        metric("startup_time", start.seconds, "s", false, start.censored),
        metric("startup_idle", idle, "s", false, false),
        metric("slowdown", start.seconds / idle.max(1e-9), "x", false, start.censored),
        metric("throughput", start.throughput / 1e6, "MB/s", true, false),
    ];
    record.elapsed = (start.seconds * 1e9) as u64;
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_beyond_the_limit_stays_marked() {
        let start = Startup { seconds: 60.0, censored: true, throughput: 1e8 };
        let r = to_record(TrialId::default(), BackendKind::Emulated, start, 0.2);
        let by = |n: &str| r.metrics.iter().find(|m| m.name == n).unwrap();
        assert!(by("startup_time").censored && by("slowdown").censored);
        assert!((by("slowdown").value - 300.0).abs() < 1e-9);
        assert_eq!(by("throughput").value, 100.0);
    }
}
