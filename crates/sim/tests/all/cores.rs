//! Cores in whole runs: jobs on a disk so fast that only core time counts.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::DeviceSpec;
use iosched_experiment::{Record, Trial, choose_scheduler};
use iosched_schedulers::registry::Registry;
use iosched_sim::simulate;
use iosched_workloads::fio::{NoLookup, parse};

const DISK: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns=10000\npar=1024\n\
                    [queue]\nqueue_depth=1023\n";

fn run(cpus: u16, model: CpuModel, text: &str) -> Record {
    run_on(DISK, cpus, model, text)
}

fn run_on(disk: &str, cpus: u16, model: CpuModel, text: &str) -> Record {
    run_under("none", disk, cpus, model, text)
}

fn run_under(scheduler: &str, disk: &str, cpus: u16, model: CpuModel, text: &str) -> Record {
    let mut kernel = KernelProfile::find("6.12").unwrap();
    kernel.cpu.model = model;
    let global = "[global]\nfilename=/dev/disk0\ndirect=1\nbs=4k\nrw=randread\nioengine=libaio\n\
                  iodepth=64\ntime_based\nruntime=1\n";
    let trial = Trial {
        cpus,
        first_run_late: false,
        ..Trial::new(
            DeviceSpec::from_toml("constant", disk).unwrap(),
            choose_scheduler(scheduler, &[], &kernel, Registry::builtin()).unwrap(),
            kernel,
            parse("job", &format!("{global}{text}\n"), &NoLookup, &|_| Err(String::new()), &[])
                .unwrap(),
        )
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

/// A process that has to be woken for a tag gets one beside workers of io_uring that wait for tags, too. On an emulated
/// disk of 4 ms under Linux 6.18 the reader had 43 I/Os a second of 1,998.
#[test]
fn a_reader_is_not_starved_by_the_workers_of_a_deep_writer() {
    let slow = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns=4000000\npar=8\n\
                [queue]\nqueue_depth=32\n";
    let jobs = "[w]\nioengine=io_uring\niodepth=128\nrw=randwrite\n[r]\nioengine=psync";
    for cpus in [1, 2, 4] {
        let record = run_on(slow, cpus, CpuModel::Cost, jobs);
        let reads = record.jobs[1].read.ios;
        assert!((20..=100).contains(&reads), "{reads} reads a second on {cpus} CPUs");
    }
}

/// Threads of a process take core time, and that is its own.
#[test]
fn threads_of_a_process_share_the_core() {
    let record = run(1, CpuModel::Cost, "ioengine=posixaio\n[a]\nnumjobs=4\n[b]\nioengine=libaio");
    let busy = record.cpu().total() as f64 / 1e9;
    assert!((0.95..1.02).contains(&busy), "{busy} s of core time in 1 s on one core");
    assert!(record.jobs.iter().all(|j| j.cpu.total() > 10_000_000), "{:?}", record.jobs);
}

/// As fio's `job_runtime` is: 8028 ms for eight processes of a second.
#[test]
fn a_group_keeps_the_run_times_of_all_its_processes() {
    let record = run(4, CpuModel::Cost, "group_reporting\n[a]\nnumjobs=8");
    let [group] = &record.jobs[..] else { panic!("{}", record.jobs.len()) };
    let per_process = group.processes_ran() as f64 / group.runtime as f64;
    assert!((7.9..8.1).contains(&per_process), "{per_process}");
}

/// bfq injects requests while the queue in service is empty, whatever their class: of the queues that wait it takes the one
/// that came back last. Without core time a reader's next request is there at once and nothing is injected
/// (`data/truth-random`, `ssd_slow.k1`). Linux 6.12 in virtual time, with 2 us a system call, served the real-time
/// reader 1832 times a second, best effort 6476, idle 24,629.
#[test]
fn injection_takes_no_notice_of_classes() {
    let disk = "title=\"t\"\n[model]\nkind=\"ssd\"\ncap=\"64GiB\"\nchans=32\nstripe=\"16KiB\"\n\
                rd_ns=380000\nwr_ns=32000\nbus_bw=7000000000\ncmd_ns=18500\n[queue]\nqueue_depth=32\n";
    let text = "size=16g\nruntime=2\niodepth=16\n[rt]\nprioclass=1\niodepth=1\n[be]\nprioclass=2\n[idle]\n\
                prioclass=3\n";
    let costly = ios(&run_under("bfq", disk, 4, CpuModel::Cost, text));
    assert!(costly[2] > 2.0 * costly[1] && costly[1] > 2.0 * costly[0], "{costly:?}");
}
