//! Cores in whole runs: jobs on a disk so fast that only core time counts.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::DeviceSpec;
use iosched_experiment::{Collect, Record, Trial, TrialId, choose_scheduler};
use iosched_schedulers::registry::Registry;
use iosched_sim::simulate;
use iosched_workloads::fio::{NoLookup, parse};

const DISK: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns=10000\npar=1024\n\
                    [queue]\nqueue_depth=1023\n";

fn run(cpus: u16, model: CpuModel, text: &str) -> Record {
    let mut kernel = KernelProfile::find("6.12").unwrap();
    kernel.cpu.model = model;
    let global = "[global]\nfilename=/dev/disk0\ndirect=1\nbs=4k\nrw=randread\nioengine=libaio\n\
                  iodepth=64\ntime_based\nruntime=1\n";
    let trial = Trial {
        id: TrialId::default(),
        scheduler: choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap(),
        device: DeviceSpec::from_toml("constant", DISK).unwrap(),
        kernel,
        settings: Vec::new(),
        jobs: parse("job", &format!("{global}{text}\n"), &NoLookup, &|_| Err(String::new()), &[])
            .unwrap(),
        cpus,
        cgroups: Vec::new(),
        collect: Collect { series: false, dispatches: false },
        reseeded: Vec::new(),
        startup: None,
        load: None,
        foreign: None,
        start_at: 0,
        reset_at: 0,
        tag_start: 0,
        first_run_late: false,
    };
    simulate(&trial).unwrap()
}

fn ios(record: &Record) -> Vec<f64> {
    record.jobs.iter().map(|j| j.read.ios as f64).collect()
}

#[test]
fn a_nicer_job_gets_less_of_its_core() {
    let same = ios(&run(1, CpuModel::Cost, "[a]\n[b]"));
    assert!((same[0] / same[1] - 1.0).abs() < 0.02, "{same:?}");
    // Weights 1024 and 336.
    let nice = ios(&run(1, CpuModel::Cost, "[a]\n[b]\nnice=5"));
    assert!((nice[0] / nice[1] / (1024.0 / 336.0) - 1.0).abs() < 0.03, "{nice:?}");
    assert!((nice.iter().sum::<f64>() / same.iter().sum::<f64>() - 1.0).abs() < 0.02);
    // On cores of their own nobody gives way.
    let apart = ios(&run(2, CpuModel::Cost, "[a]\n[b]\nnice=5"));
    assert!((apart[0] / apart[1] - 1.0).abs() < 0.02, "{apart:?}");
}

#[test]
fn a_profile_switches_cores_off() {
    let record = run(1, CpuModel::Zero, "[a]\n[b]\nnice=5");
    assert!(record.jobs.iter().all(|j| j.cpu.total() == 0));
    let ios = ios(&record);
    // 64 under way, 10 µs each, and nothing else takes time.
    assert!(ios.iter().all(|n| (n / 6_400_000.0 - 1.0).abs() < 0.01), "{ios:?}");
}

#[test]
fn all_core_time_is_booked() {
    let record = run(1, CpuModel::Cost, "[a]\n[b]\nnice=5\n[c]\nnice=-3");
    let busy = record.cpu().total() as f64 / 1e9;
    assert!((0.98..1.02).contains(&busy), "{busy} s of core time in 1 s on one core");
}
