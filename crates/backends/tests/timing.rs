//! fio's main loop by the wall clock: every job of `timing/jobs.fio` runs with the real fio on an emulated disk of
//! constant service time, and in the simulator on the same device file. IOPS of every job and direction must be within
//! 5 %, mean latencies within 10 % or 20 µs.
//!
//! A machine that others use disturbs what is measured. A run in which the disk's commands took longer than its model
//! says counts as not measured, never as a pass. A job that misses is tried again: noise makes it hold once, a wrong
//! mechanism never.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test of what touches the machine"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use iosched_backends::backend::{Emulated, LiveOptions};
use iosched_backends::validity::Thresholds;
use iosched_backends::{Error, emulate};
use iosched_block::KernelProfile;
use iosched_devices::DeviceSpec;
use iosched_experiment::{
    Collect, DirStats, Record, Status, TIMING_DEVIATION, Trial, TrialId, choose_scheduler,
};
use iosched_lab::machine::Backend;
use iosched_schedulers::registry::Registry;
use iosched_types::LatencyHistogram;
use iosched_workloads::fio::{NoLookup, parse};

const JOBS: &str = include_str!("timing/jobs.fio");
const GLOBAL: &str = "[global]\nfilename=/dev/disk\ndirect=1\nbs=4k\nrw=randread\nioengine=libaio\n\
                      time_based\nruntime=1\n";
const DISK: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns=4000000\npar=8\n\
                    [queue]\nqueue_depth=32\n";

/// How far IOPS may differ, as a share.
const IOPS: f64 = 0.05;
/// How far mean latencies may differ: as a share, or in ns.
const LATENCY: (f64, f64) = (0.10, 20_000.0);
/// A run counts as not measured if the mean command took longer than the model's answer by this share.
const LATE: f64 = 0.04;
/// Runs of a job of which one must hold.
const TRIES: usize = 3;
/// Runs of a job, with those that are not measured.
const RUNS: usize = 6;

/// Name and text of every job.
fn jobs() -> Vec<(&'static str, String)> {
    let parts = JOBS.split("\n== ").skip(1);
    parts
        .map(|part| part.split_once('\n').unwrap())
        .map(|(name, text)| (name, format!("{GLOBAL}{text}")))
        .collect()
}

fn trial(name: &str, text: &str) -> Trial {
    let kernel = KernelProfile::find("6.12").unwrap();
    let none = |_: &str| Err("no includes".to_string());
    Trial {
        id: TrialId { device: "constant".into(), workload: name.into(), ..TrialId::default() },
        cpus: 2,
        collect: Collect::default(),
        first_run_late: false,
        ..Trial::new(
            DeviceSpec::from_toml("constant", DISK).unwrap(),
            choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap(),
            kernel,
            parse(name, text, &NoLookup, &none, &[]).unwrap_or_else(|e| panic!("{name}: {e:?}")),
        )
    }
}

/// IOPS and mean latency in ns of each job, clones together, and direction.
type Figures = BTreeMap<(String, &'static str), (f64, f64)>;

fn figures(record: &Record) -> Figures {
    let mut sums: BTreeMap<_, (f64, LatencyHistogram)> = BTreeMap::new();
    let mut add = |job: &str, direction, d: &DirStats| {
        if d.ios > 0 {
            let sum = sums.entry((job.to_string(), direction)).or_default();
            sum.0 += d.iops();
            sum.1.merge(&d.clat);
        }
    };
    for j in &record.jobs {
        add(&j.name, "read", &j.read);
        add(&j.name, "write", &j.write);
        add(&j.name, "trim", &j.trim);
    }
    sums.into_iter().map(|(key, (iops, clat))| (key, (iops, clat.mean()))).collect()
}

/// What differs by more than it may.
fn differences(sim: &Figures, fio: &Figures) -> Vec<String> {
    let mut out = Vec::new();
    for ((job, direction), &(iops, latency)) in fio {
        let ours = sim.get(&(job.clone(), *direction)).copied().unwrap_or_default();
        let off = ours.0 / iops - 1.0;
        if off.abs() > IOPS {
            let percent = off * 100.0;
            out.push(format!(
                "{job} {direction}: {:.1} IOPS, fio {iops:.1} ({percent:+.1} %)",
                ours.0
            ));
        }
        let off = ours.1 - latency;
        if off.abs() > LATENCY.1 && off.abs() > latency * LATENCY.0 {
            let us = |ns: f64| ns / 1e3;
            out.push(format!("{job} {direction}: {:.0} µs, fio {:.0} µs", us(ours.1), us(latency)));
        }
    }
    let missing = sim.keys().filter(|key| !fio.contains_key(*key));
    out.extend(missing.map(|(job, direction)| format!("{job} {direction}: fio did none")));
    out
}

/// What came out of the runs of a job.
#[derive(Debug)]
enum Outcome {
    Held,
    Off(Vec<String>),
    /// Why, and whether that happened although no other program used the CPUs.
    NotMeasured {
        why: String,
        idle: bool,
    },
}

/// One run: what differs, or why it says nothing.
fn measure(
    backend: &mut Emulated,
    trial: &Trial,
    sim: &Figures,
) -> Result<Vec<String>, (String, bool)> {
    let record = backend.run(trial).unwrap_or_else(|e| panic!("{}: {e}", trial.id.workload));
    let others = record.warnings.iter().map(|w| w.message.as_str()).chain(match &record.status {
        Status::Invalid(why) => Some(why.as_str()),
        _ => None,
    });
    let idle =
        !others.into_iter().any(|m| m.starts_with("others used") || m.contains("hypervisor"));
    match &record.status {
        Status::Complete => {}
        Status::Invalid(why) => return Err((why.clone(), idle)),
        Status::Failed(why) => panic!("{}: {why}", trial.id.workload),
    }
    if !record.metrics.iter().any(|m| m.name == TIMING_DEVIATION) {
        let unchecked = record.warnings.iter().find(|w| w.code == "timing-unchecked");
        return Err((unchecked.map_or("not checked".into(), |w| w.message.clone()), idle));
    }
    Ok(differences(sim, &figures(&record)))
}

fn outcome(backend: &mut Emulated, trial: &Trial) -> Outcome {
    let sim = figures(&iosched_sim::simulate(trial).unwrap());
    let (mut off, mut unmeasured) = (Vec::new(), None);
    for _ in 0..RUNS {
        match measure(backend, trial, &sim) {
            Ok(differences) if differences.is_empty() => return Outcome::Held,
            Ok(differences) => off.push(differences),
            Err(why) => unmeasured = Some(why),
        }
        if off.len() == TRIES {
            break;
        }
    }
    match (off.pop(), unmeasured) {
        (Some(differences), _) if off.len() + 1 == TRIES => Outcome::Off(differences),
        (_, Some((why, idle))) => Outcome::NotMeasured { why, idle },
        (differences, None) => Outcome::Off(differences.unwrap_or_default()),
    }
}

fn skip() -> Option<&'static str> {
    if !nix::unistd::geteuid().is_root() {
        return Some("no root");
    }
    if !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
        return Some("no /dev/fuse or no /dev/loop-control");
    }
    iosched_backends::load::fio::installed().is_err().then_some("no fio")
}

fn options(dir: &Path) -> LiveOptions {
    LiveOptions {
        state_dir: dir.into(),
        thresholds: Thresholds {
            // Whether they disturbed is seen by the disk's times.
            foreign_cpu: 0.05,
            late_share: LATE,
            deviation_marked: LATE,
            deviation_invalid: LATE,
            ..Thresholds::default()
        },
        settle: Duration::from_millis(50),
        ..LiveOptions::default()
    }
}

/// Which jobs `tests/timing.sh` wants: all, every fifth, or those with a word in their names.
fn chosen() -> Vec<(&'static str, String)> {
    let wanted = std::env::var("IOSCHED_TIMING").unwrap_or_default();
    let mut jobs = jobs();
    match wanted.as_str() {
        "" | "full" => {}
        "short" => jobs = jobs.into_iter().step_by(5).collect(),
        word => jobs.retain(|(name, _)| name.contains(word)),
    }
    assert!(!jobs.is_empty(), "no job's name contains \"{wanted}\"");
    jobs
}

#[test]
#[ignore = "takes minutes; tests/timing.sh runs it"]
fn jobs_are_as_fast_as_with_fio() {
    if let Some(why) = skip() {
        return println!("SKIPPED: {why}");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut backend = Emulated::new(options(dir.path()), emulate::Options::default());
    let (mut held, mut off, mut unmeasured, mut late) = (0, 0, 0, 0);
    let jobs = chosen();
    for (name, text) in &jobs {
        let trial = trial(name, text);
        match backend.prepare(&trial) {
            // A program with a higher real-time priority has the CPUs.
            Err(e @ Error::TooFast { .. }) => return println!("SKIPPED: {e}"),
            other => other.unwrap(),
        }
        match outcome(&mut backend, &trial) {
            Outcome::Held => {
                held += 1;
                println!("held          {name}");
            }
            Outcome::Off(differences) => {
                off += 1;
                println!("OFF           {name}");
                differences.iter().for_each(|d| println!("                {d}"));
            }
            Outcome::NotMeasured { why, idle } => {
                unmeasured += 1;
                late += usize::from(idle);
                println!("not measured  {name}: {why}");
            }
        }
    }
    backend.cleanup().unwrap();
    println!("{held} held, {off} off, {unmeasured} not measured");
    assert_eq!(off, 0, "jobs that the simulator does at another speed than fio");
    // On a busy machine nothing can be said; on an idle one the disk has to keep its times.
    assert!(
        late * 4 <= jobs.len(),
        "{late} of {} not measured though nobody disturbed",
        jobs.len()
    );
}

/// Without fio: every job is read, simulated, and does enough for the limits to mean something.
#[test]
fn the_table_is_fit_to_be_measured() {
    let jobs = jobs();
    assert!(jobs.len() >= 40, "{}", jobs.len());
    for topic in ["rate", "think", "batch", "low", "flow", "startdelay", "ramp", "stonewall"] {
        let of = jobs.iter().filter(|(name, _)| name.starts_with(&format!("{topic}:"))).count();
        assert!(of >= 3, "{topic}: {of} jobs");
    }
    for (name, text) in &jobs {
        let record = iosched_sim::simulate(&trial(name, text)).unwrap();
        let fewest = figures(&record).into_values().map(|(iops, _)| iops as u64).min();
        assert!(fewest >= Some(20), "{name}: {fewest:?} I/Os a second");
    }
}

#[test]
fn the_limits_are_those_of_the_suite() {
    let of = |iops, us: f64| Figures::from([(("a".to_string(), "read"), (iops, us * 1e3))]);
    let fine = |sim: (f64, f64), fio: (f64, f64)| {
        differences(&of(sim.0, sim.1), &of(fio.0, fio.1)).is_empty()
    };
    assert!(fine((1049.0, 1000.0), (1000.0, 1000.0)) && !fine((1051.0, 1000.0), (1000.0, 1000.0)));
    assert!(!fine((949.0, 1000.0), (1000.0, 1000.0)));
    assert!(fine((1000.0, 1099.0), (1000.0, 1000.0)) && !fine((1000.0, 1101.0), (1000.0, 1000.0)));
    assert!(fine((1000.0, 119.0), (1000.0, 100.0)) && !fine((1000.0, 121.0), (1000.0, 100.0)));
    let nothing = Figures::new();
    assert!(!differences(&of(1.0, 1.0), &nothing).is_empty(), "fio did none");
    assert!(!differences(&nothing, &of(1.0, 1.0)).is_empty(), "the simulator did none");
}
