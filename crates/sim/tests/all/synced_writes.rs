//! Writes that are to be durable, and what devices do for them. The counts of flushes are those of Linux 6.12 with fio 3.33.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::{DeviceSpec, catalogue};
use iosched_experiment::{Record, Status, Trial, choose_scheduler};
use iosched_schedulers::registry::Registry;
use iosched_sim::simulate;
use iosched_workloads::fio::{NoLookup, parse};

fn trial(device: DeviceSpec, kernel: &str, scheduler: &str, job: &str) -> Trial {
    let kernel = KernelProfile::find(kernel).unwrap();
    let scheduler = choose_scheduler(scheduler, &[], &kernel, Registry::builtin()).unwrap();
    let job = parse("job", job, &NoLookup, &|_| Err(String::new()), &[]).unwrap();
    Trial::new(device, scheduler, kernel, job)
}

/// A disk that takes 0.1 ms for an I/O, and what it says of its cache.
fn disk(cache: &str) -> DeviceSpec {
    let text = format!(
        "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns=100000\npar=8\nflush_ns=1000000\n\
         [queue]\nqueue_depth=32\n{cache}"
    );
    DeviceSpec::from_toml("constant", &text).unwrap()
}

const CACHED: &str = "write_cache=true\n";
const FUA: &str = "write_cache=true\nfua=true\n";

/// Flushes of sixteen writes of 4 KiB at depth 4.
fn counts(cache: &str, kernel: &str, engine: &str, sync: &str, direct: u8) -> u64 {
    // vsync with a depth would join neighbours, which is not simulated.
    let depth = if engine == "vsync" { 1 } else { 4 };
    let job = format!(
        "[a]\nfilename=/dev/d\nioengine={engine}\nsync={sync}\ndirect={direct}\nrw=write\nbs=4k\nsize=64k\niodepth={depth}\n"
    );
    let scheduler = if kernel == "6.12" { "none" } else { "noop" };
    let mut trial = trial(disk(cache), kernel, scheduler, &job);
    trial.kernel.cpu.model = CpuModel::Looks;
    let [_, writes, _, flushes] = simulate(&trial).unwrap().device.commands;
    // What is left in memory is written back after the job.
    assert!(
        writes == 16 || direct == 0 && (sync == "none" || sync == "0"),
        "{engine} {sync}: {writes}"
    );
    flushes
}

/// Engine, `direct`; flushes with `sync=1`, which are those with `sync=dsync`: of a disk with a volatile cache, and of one that has
/// FUA, too. A FUA write of a disk without FUA is a write and a flush, which four libaio writes of a batch share. Without a cache, and
/// with `sync=0`, there is none. A call flushes after its FUA write; what libaio and io_uring have handed over nobody flushes.
const FLUSHES: &[(&str, u8, u64, u64)] = &[
    ("sync", 1, 32, 16),
    ("sync", 0, 16, 16),
    ("psync", 1, 32, 16),
    ("psync", 0, 16, 16),
    ("vsync", 1, 32, 16),
    ("vsync", 0, 16, 16),
    ("pvsync", 1, 32, 16),
    ("pvsync", 0, 16, 16),
    ("pvsync2", 1, 32, 16),
    ("pvsync2", 0, 16, 16),
    ("libaio", 1, 4, 0),
    ("libaio", 0, 16, 16),
    ("posixaio", 1, 32, 16),
    ("posixaio", 0, 16, 16),
    ("io_uring", 1, 4, 0),
    // Four workers write at the same time and share flushes. Under 6.12 it is 10: the first of each four ends alone there.
    ("io_uring", 0, 8, 8),
];

#[test]
fn synced_writes_flush_as_often_as_the_kernels() {
    let mut wrong = Vec::new();
    for (engine, direct, cached, fua) in FLUSHES {
        for sync in ["none", "0", "sync", "1", "dsync"] {
            let never = sync == "none" || sync == "0";
            for (cache, flushes) in [("", 0), (CACHED, *cached), (FUA, *fua)] {
                let theirs = if never { 0 } else { flushes };
                let ours = counts(cache, "6.12", engine, sync, *direct);
                if ours != theirs {
                    wrong.push(format!(
                        "{engine} sync={sync} direct={direct} {cache}: {ours}, not {theirs}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Not measured: before 4.10 a call writes, then flushes; 2.6.18 leaves the data in the disk's cache.
#[test]
fn old_kernels_sync_a_device_less() {
    for cache in [CACHED, FUA] {
        assert_eq!(counts(cache, "3.14", "psync", "1", 1), 16);
        assert_eq!(counts(cache, "2.6.18", "psync", "1", 1), 0);
    }
}

fn writes(device: &str, options: &str) -> f64 {
    let job = format!(
        "[a]\nfilename=/dev/d\nioengine=psync\ndirect=1\nrw=randwrite\nbs=4k\nruntime=1\ntime_based\n{options}\n"
    );
    let device = catalogue::find(device).unwrap();
    simulate(&trial(device, "6.12", "none", &job)).unwrap().jobs[0].write.iops()
}

/// Durable by FUA or by a flush: it is the same data on the same medium, so it takes about as long. Where a battery or capacitors
/// keep the cache, neither takes more than a write.
#[test]
fn what_is_durable_costs_the_same_in_every_way() {
    for drive in ["nvme", "samsung-980-pro", "samsung-990-pro", "wd-sn580", "emmc"] {
        let (sync, fsync, plain) =
            (writes(drive, "sync=1"), writes(drive, "fsync=1"), writes(drive, ""));
        assert!((0.5..2.0).contains(&(sync / fsync)), "{drive}: {sync} and {fsync}");
        assert!(plain > 4.0 * sync, "{drive}: {plain} and {sync}");
    }
    for drive in ["samsung-pm9a3", "optane-p5800x"] {
        let (sync, fsync, plain) =
            (writes(drive, "sync=1"), writes(drive, "fsync=1"), writes(drive, ""));
        assert!(sync > 0.8 * plain && fsync > 0.5 * plain, "{drive}: {plain}, {sync} and {fsync}");
    }
}

/// fio 3.33 opens a device that it trims without `O_SYNC`: on Linux 6.12 no write of it flushes.
#[test]
fn a_job_that_trims_makes_nothing_durable() {
    let flushes = |rw: &str| {
        let job = format!(
            "[t]\nfilename=/dev/d\ndirect=1\nsync=1\nbs=64k\nsize=1m\nioengine=psync\nrw={rw}\n"
        );
        let device = catalogue::find("ssd-sata").unwrap();
        simulate(&trial(device, "6.12", "none", &job)).unwrap().device.counters["flushes"]
    };
    assert!(flushes("write") >= 16);
    assert_eq!(flushes("trimwrite"), 0);
}

/// fio 3.33 on a disk of Linux 6.12 that takes no discards: error 95, one trim counted, no bytes.
#[test]
fn a_disk_without_discards_refuses_trims() {
    for job in [
        "ioengine=psync\nrw=randtrim",
        "ioengine=libaio\niodepth=4\nrw=randtrim",
        "ioengine=psync\nrw=trimwrite",
    ] {
        let job = format!("[t]\nfilename=/dev/d\ndirect=1\nbs=64k\nsize=16m\n{job}\n");
        let run = |device: &str| -> Record {
            simulate(&trial(catalogue::find(device).unwrap(), "6.12", "none", &job)).unwrap()
        };
        let refused = run("hdd-7200");
        assert!(
            matches!(&refused.status, Status::Failed(why) if why.contains("Operation not supported")),
            "{job}"
        );
        let t = &refused.jobs[0];
        assert_eq!((t.trim.ios, t.trim.bytes, t.write.ios), (1, 0, 0), "{job}");
        assert!(run("ssd-sata").failed_jobs().is_none(), "{job}");
    }
}

/// An MMC card has one command at a time and Linux 64 tags for it. So there is something to choose from: bfq divides by weight.
#[test]
fn cards_leave_the_scheduler_a_queue() {
    let job = "[global]\nfilename=/dev/d\ndirect=1\nioengine=libaio\niodepth=16\nrw=randread\nbs=4k\nsize=1g\nruntime=4\ntime_based\n\
               [light]\ncgroup=light\ncgroup_weight=100\n[heavy]\ncgroup=heavy\ncgroup_weight=1000\noffset=8g\n";
    for device in ["sd-card", "emmc"] {
        let share = |scheduler: &str| {
            let r =
                simulate(&trial(catalogue::find(device).unwrap(), "6.12", scheduler, job)).unwrap();
            assert!(r.jobs.iter().all(|j| j.read.ios > 0), "{device}");
            r.jobs[1].read.iops() / r.jobs[0].read.iops()
        };
        let (none, bfq) = (share("none"), share("bfq"));
        assert!((0.8..1.25).contains(&none), "{device} none: {none}");
        assert!(bfq > 4.0, "{device} bfq: {bfq}");
    }
}

/// Reads and writes of an SSD share its interface.
#[test]
fn a_mixed_load_moves_no_more_than_the_interface() {
    let job = "[a]\nfilename=/dev/d\ndirect=1\nioengine=libaio\niodepth=64\nrw=randrw\nbs=64k\nruntime=200ms\ntime_based\n";
    for (device, most) in
        [("samsung-990-pro", 7450.0), ("samsung-980-pro", 7000.0), ("nvme", 3500.0)]
    {
        let r = simulate(&trial(catalogue::find(device).unwrap(), "6.12", "none", job)).unwrap();
        let j = &r.jobs[0];
        let rate = (j.read.bytes + j.write.bytes) as f64 / 0.2 / 1e6;
        assert!((0.4 * most..1.02 * most).contains(&rate), "{device}: {rate}");
    }
}

/// io_uring's syncs are under way beside writes, and `number_ios` counts what is under way: writes and syncs of fio 3.33 on 6.12 with one
/// core, `number_ios=100`. The syncs that are missing from the count are made one by one at the end.
#[test]
fn syncs_under_way_count_for_the_number_of_ios() {
    let text = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"16GiB\"\nlat_ns=30000\npar=32\nflush_ns=500000\n\
                [queue]\nqueue_depth=32\nwrite_cache=true\n";
    for (depth, every, writes, syncs) in
        [(2, 1, 99, 100), (2, 3, 99, 34), (16, 1, 85, 114), (16, 3, 87, 82)]
    {
        let job = format!(
            "[a]\nfilename=/dev/d\nioengine=io_uring\ndirect=1\nrw=randwrite\nbs=4k\nsize=64m\niodepth={depth}\nfsync={every}\nnumber_ios=100\n"
        );
        let disk = DeviceSpec::from_toml("constant", text).unwrap();
        let mut trial = trial(disk, "6.12", "none", &job);
        trial.cpus = 1;
        let job = simulate(&trial).unwrap().jobs.remove(0);
        assert_eq!((job.write.ios, job.sync.ios), (writes, syncs), "depth {depth}, fsync={every}");
    }
}
