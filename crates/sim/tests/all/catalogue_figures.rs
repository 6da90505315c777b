//! A user's run on a device of the catalogue shows the device's own figures: with a host's time in those that were
//! measured on one, and at the depths of data sheets.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use iosched_block::KernelProfile;
use iosched_devices::{DeviceSpec, Figure, FigureValue, Model, catalogue};
use iosched_experiment::{Trial, choose_scheduler};
use iosched_schedulers::registry::Registry;
use iosched_sim::simulate;
use iosched_workloads::fio::{NoLookup, parse};

/// How far a run may be off without a reason in the device file.
const TOLERANCE: f64 = 0.10;
/// Data sheets are measured with several threads. One core does 360,000 I/Os a second.
const CPUS: u16 = 16;

/// Depth and processes of a name such as `rand_read_4k_qd32x4`: `xN` is as many as it takes. A number alone is the
/// commands in flight, shared by four where they are many.
fn shape(name: &str) -> Option<(u32, u32)> {
    if name.ends_with("latency_qd1") || name.starts_with("a1_min") {
        return Some((1, 1));
    }
    if name.ends_with("_steady") {
        return Some((32, 4));
    }
    let (_, qd) = name.rsplit_once("_qd")?;
    Some(match qd.split_once('x') {
        Some((depth, "N")) => (depth.parse().ok()?, u32::from(CPUS)),
        Some((depth, processes)) => (depth.parse().ok()?, processes.parse().ok()?),
        None => match qd.parse().ok()? {
            depth @ ..16 => (depth, 1),
            depth => (depth / 4, 4),
        },
    })
}

/// IOPS of random 4 KiB with the host that a run has by default.
fn iops(spec: &DeviceSpec, write: bool, depth: u32, processes: u32) -> f64 {
    let kernel = KernelProfile::find("6.12").unwrap();
    // The write cache is full before what counts begins.
    let ramp = match &spec.model {
        Model::Ssd(p) if write && depth > 1 && p.cache > 0 => 1200,
        _ => 20,
    };
    let text = format!(
        "[a]\nfilename=/dev/d\ndirect=1\nioengine=libaio\nrw={}\nbs=4k\nnorandommap\niodepth={depth}\n\
         numjobs={processes}\ntime_based\nramp_time={ramp}ms\nruntime=100ms\n",
        if write { "randwrite" } else { "randread" },
    );
    let trial = Trial {
        cpus: CPUS,
        first_run_late: false,
        ..Trial::new(
            spec.clone(),
            choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap(),
            kernel,
            parse("job", &text, &NoLookup, &|_| Err(String::new()), &[]).unwrap(),
        )
    };
    let record = simulate(&trial).unwrap();
    record.jobs.iter().map(|j| if write { j.write.iops() } else { j.read.iops() }).sum()
}

/// By how much a run is off a figure that a random load shows.
fn off(spec: &DeviceSpec, f: &Figure) -> Option<f64> {
    let FigureValue::Number(value) = f.value else { return None };
    let named = |prefix: &str| f.name.starts_with(prefix) || f.name == format!("a1_min_{}", prefix);
    let latency = f.name.ends_with("latency_qd1");
    let write = named("rand_write") || f.name == "write_latency_qd1";
    if !(named("rand_read") || write || f.name == "read_latency_qd1") {
        return None;
    }
    let (depth, processes) = shape(&f.name)?;
    let ours = iops(spec, write, depth, processes);
    Some(if latency { 1e6 / ours / value - 1.0 } else { ours / value - 1.0 })
}

#[test]
fn a_run_shows_the_figures_of_its_device() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (name, spec) in catalogue::all() {
        if !matches!(spec.model, Model::Ssd(_)) || spec.stack.is_some() {
            continue;
        }
        // What is the drive's alone no run can show.
        let alone = |f: &Figure| f.name.ends_with("latency_qd1") && !f.with_host;
        for f in spec.figures.iter().filter(|f| f.reason.is_empty() && !alone(f)) {
            let Some(off) = off(spec, f) else { continue };
            checked += 1;
            if off.abs() > TOLERANCE {
                wrong.push(format!("{name} {}: {:+.1} %", f.name, 100.0 * off));
            }
        }
    }
    assert!(checked > 20, "only {checked} figures");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whatever the depth, a drive does not exceed its data sheet.
#[test]
fn an_optane_drive_does_its_figure_at_any_depth() {
    let spec = catalogue::find("optane-p5800x").unwrap();
    for (write, value) in [(false, 1.5e6), (true, 1.35e6)] {
        let deep = iops(&spec, write, 32, 16);
        assert!((deep / value - 1.0).abs() < TOLERANCE, "{deep}");
    }
}
