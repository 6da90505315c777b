//! Pauses, ramps and flows beside fio 3.33: figures of fio on Linux 6.12 in virtual time, on a disk that takes 4 ms for
//! any command, eight at a time. Neither fio nor the kernel takes time there, so jobs agree to the I/O.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::DeviceSpec;
use iosched_experiment::{Collect, JobRecord, Record, Trial, choose_scheduler};
use iosched_schedulers::registry::Registry;
use iosched_sim::simulate;
use iosched_workloads::fio::{NoLookup, parse};

const DISK: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns=4000000\npar=8\n\
                    [queue]\nqueue_depth=32\n";

fn record(text: &str) -> Record {
    let mut kernel = KernelProfile::find("6.12").unwrap();
    kernel.cpu.model = CpuModel::Zero;
    let global = "[global]\nfilename=/dev/disk0\ndirect=1\nbs=4k\nrw=randread\nioengine=libaio\n";
    let jobs = format!("{global}{text}\n");
    let trial = Trial {
        collect: Collect { series: true, dispatches: false },
        first_run_late: false,
        ..Trial::new(
            DeviceSpec::from_toml("constant", DISK).unwrap(),
            choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap(),
            kernel,
            parse("job", &jobs, &NoLookup, &|_| Err(String::new()), &[]).unwrap(),
        )
    };
    simulate(&trial).unwrap()
}

/// I/Os of each job as fio counts them, and its run time in ms.
fn run(text: &str) -> Vec<(u64, u64)> {
    let record = record(text);
    let of = |j: &JobRecord| {
        let side = if j.read.ios > 0 { &j.read } else { &j.write };
        (side.ios, side.runtime / 1_000_000)
    };
    record.jobs.iter().map(of).collect()
}

/// The count of I/Os is fio's, and the run time but for its rounding.
fn same(text: &str, fio: &[(u64, u64)]) {
    let ours = run(text);
    assert_eq!(ours.len(), fio.len(), "{text}");
    for (ours, fio) in ours.iter().zip(fio) {
        let agree = ours.0 == fio.0 && ours.1.abs_diff(fio.1) <= 1;
        assert!(agree, "{text}: {ours:?} (I/Os, ms), fio {fio:?}");
    }
}

const RAMP: &str = "time_based\nruntime=500ms\nramp_time=300ms\n[a]\n";

/// The ramp ends at the first I/O after its time, which counts no more; the run time begins then.
#[test]
fn a_ramp_ends_with_an_io_and_the_run_time_begins() {
    // I/Os at 0, 204, 408 (the ramp ends), 412, 416, 620 and 824 ms; nothing cuts the last think time.
    same(&format!("{RAMP}thinktime=200ms"), &[(4, 621)]);
    let short = "time_based\nruntime=50ms\nramp_time=300ms\n[a]\nthinktime=200ms";
    same(short, &[(2, 212)]);
    same("time_based\nruntime=500ms\nramp_time=100ms\n[a]\nthinktime=200ms", &[(3, 616)]);
}

/// The counts begin anew, but not the one at which the process thought last.
#[test]
fn after_a_ramp_the_first_think_time_is_late() {
    let counted = "iodepth=4\nthinktime=20ms\nthinktime_blocks=16\nthinktime_blocks_type=issue";
    same(&format!("{RAMP}{counted}"), &[(300, 501)]);
    same(&format!("{RAMP}iodepth=4\nthinktime=20ms\nthinktime_iotime=50ms"), &[(363, 505)]);
}

/// The rate begins anew with the ramp's end; the pause that the run time's end cuts is followed by an I/O.
#[test]
fn rates_begin_anew_after_a_ramp_and_end_with_an_io() {
    same(&format!("{RAMP}rate_iops=5"), &[(4, 504)]);
    same("time_based\nruntime=1\n[a]\nioengine=psync\nrate_iops=200", &[(201, 1004)]);
}

/// An I/O amid which the ramp ends counts in bytes alone, unless it is a call: then in both (fio 3.33: 50 of 51 and 50 of 50 at
/// `rate_iops=50`).
#[test]
fn calls_amid_the_end_of_a_ramp_count() {
    for (engine, ahead) in [("psync", 0), ("libaio", 1)] {
        let read = &record(&format!("{RAMP}ioengine={engine}\nrate_iops=50")).jobs[0].read;
        assert_eq!(read.bytes / 4096, read.ios + ahead, "{engine}");
    }
}

/// `size` counts what the ramp moved, `number_ios` does not.
#[test]
fn a_ramp_counts_towards_the_size_alone() {
    same("size=200k\nramp_time=100ms\n[a]", &[(25, 100)]);
    same("number_ios=50\nramp_time=100ms\n[a]", &[(50, 200)]);
}

/// Shares include the next I/O. The others wait for a job with a delayed start.
#[test]
fn flows_are_shared_as_in_fio() {
    let flow = "flow_id=1\nflow_sleep=1000\ntime_based\n";
    let two = |weight, depth| {
        format!(
            "{flow}runtime=200ms\n[a]\niodepth={depth}\nflow={weight}\n[b]\nrw=randwrite\nflow=1"
        )
    };
    same(&two(1, 4), &[(52, 202), (50, 200)]);
    same(&two(3, 16), &[(154, 202), (50, 200)]);
    let delayed =
        "runtime=400ms\n[a]\niodepth=4\nflow=1\n[b]\nrw=randwrite\nflow=1\nstartdelay=150ms";
    same(&format!("{flow}{delayed}"), &[(52, 403), (100, 400)]);
}

/// fio would wait for ever for the job behind the wall.
#[test]
fn nobody_waits_for_a_job_behind_a_stonewall() {
    let flow = "flow_id=1\nflow_sleep=1000\nflow=1\nsize=40k\n[a]\niodepth=4\n[b]\nstonewall";
    let ours = run(flow);
    assert_eq!(ours.iter().map(|j| j.0).collect::<Vec<_>>(), [10, 10]);
}

/// A trim moves no data, but is an I/O.
#[test]
fn the_curve_of_the_throughput_leaves_trims_out() {
    let run = |rw: &str| record(&format!("time_based\nruntime=2\n[a]\nrw={rw}"));
    let curve = |r: &Record, name: &str| {
        r.series.iter().find(|s| s.name == name).unwrap().values.iter().sum::<f64>()
    };
    let (reads, trims) = (run("randread"), run("trimwrite"));
    assert!(curve(&reads, "throughput") > 0.0);
    let (written, done) = (curve(&trims, "throughput"), curve(&trims, "iops"));
    assert!(trims.jobs[0].trim.bytes > 0 && written > 0.0);
    let writes =
        trims.jobs[0].write.ios as f64 / (trims.jobs[0].write.ios + trims.jobs[0].trim.ios) as f64;
    assert!((written / 4096.0 / done - writes).abs() < 0.01, "{written} {done} {writes}");
}

/// On several cores a discarding call that gives the lock back may be overtaken by the one that it wakes: then all come forward
/// alike, one at a time. On one core the same process goes on until another has waited for a tick.
#[test]
fn processes_that_trim_take_turns() {
    let disk = "title=\"t\"\n[model]\nkind=\"hdd\"\ncap=\"1GiB\"\novh_ns=100000\nbw=150000000\n[queue]\nqueue_depth=32\ndiscard=true\n";
    let text = "[t]\nfilename=/dev/disk0\ndirect=1\nbs=4k\nrw=randtrim\nioengine=psync\nnumjobs=3\ntime_based\nruntime=100ms\n";
    for model in [CpuModel::Cost, CpuModel::Zero] {
        let mut kernel = KernelProfile::find("6.12").unwrap();
        kernel.cpu.model = model;
        let trial = Trial::new(
            DeviceSpec::from_toml("disk", disk).unwrap(),
            choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap(),
            kernel,
            parse("job", text, &NoLookup, &|_| Err(String::new()), &[]).unwrap(),
        );
        let record = simulate(&trial).unwrap();
        let ios: Vec<u64> = record.jobs.iter().map(|j| j.trim.ios).collect();
        let all: u64 = ios.iter().sum();
        assert!((900..=1003).contains(&all), "{ios:?}: one every 100 us");
        assert!(ios.iter().all(|n| *n > 200), "{ios:?}: each has its turns");
    }
}
