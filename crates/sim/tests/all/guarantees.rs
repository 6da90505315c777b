//! What holds for every simulation: no allocation per request, the same bytes for the same trial, and
//! every I/O that is issued completes once.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::{DeviceState, Model, catalogue};
use iosched_experiment::{Trial, TrialId, choose_scheduler, label};
use iosched_schedulers::registry::{self, Registry};
use iosched_sim::simulate;
use iosched_testing::allocations;
use iosched_workloads::fio::{NoLookup, parse};

/// Every generation of every registered family, with the newest kernel profile it belongs to, or else one that has
/// its block layer.
fn schedulers() -> Vec<(String, &'static str)> {
    let kernels: Vec<(&'static str, KernelProfile)> =
        KernelProfile::names().into_iter().map(|n| (n, KernelProfile::find(n).unwrap())).collect();
    let mut all = Vec::new();
    for d in registry::SCHEDULERS {
        for g in d.generations {
            let has = kernels.iter().filter(|(_, k)| k.has_path(d.path_of(g)));
            let belongs = |k: &KernelProfile| {
                let v = k.kernel_version();
                g.first <= v && g.last.is_none_or(|last| v <= last)
            };
            let best = has.max_by_key(|(_, k)| (belongs(k), k.kernel_version()));
            let (kernel, _) = best.expect("a profile with this block layer");
            let one = d.generations.len() == 1;
            let name = if one { d.name.into() } else { format!("{}@{}", d.name, g.name) };
            all.push((name, *kernel));
        }
    }
    assert!(all.len() > registry::SCHEDULERS.len(), "{all:?}");
    all
}

fn trial(scheduler: &str, kernel: &str, device: &str, job: &str) -> Trial {
    let mut kernel = KernelProfile::find(kernel).unwrap();
    kernel.cpu.model = CpuModel::Zero;
    let choice = choose_scheduler(scheduler, &[], &kernel, Registry::builtin()).unwrap();
    let jobs = parse("job", job, &NoLookup, &|_| Err(String::new()), &[]).unwrap();
    Trial {
        id: TrialId { scheduler: label(&choice), ..TrialId::default() },
        cpus: 2,
        first_run_late: false,
        ..Trial::new(catalogue::find(device).unwrap(), choice, kernel, jobs)
    }
}

fn mixed(ios: u64) -> String {
    format!(
        "[global]\nfilename=/dev/d\ndirect=1\nnorandommap\nio_size=1p\nnumber_ios={ios}\n\
         [random]\nrw=randrw\nbs=4k\nioengine=libaio\niodepth=16\nnumjobs=2\n\
         [sequential]\nrw=read\nbs=64k\nioengine=psync\nsize=10%\n\
         [batches]\nrw=write\nbs=4k\nioengine=io_uring\niodepth=32\niodepth_batch=8\noffset=50%\n"
    )
}

/// A full cache holds what the load leaves: a sequential writer finds its own stream, not blocks from all over the disk.
#[test]
fn a_full_cache_is_the_loads_own() {
    let job = |rw: &str, bs: &str| {
        format!(
            "[w]\nfilename=/dev/d\ndirect=1\nrw={rw}\nbs={bs}\nsize=50%\nruntime=10\ntime_based\n"
        )
    };
    let mib = |rw, bs| {
        let mut t = trial("none", "6.12", "hdd-7200", &job(rw, bs));
        t.device.state = DeviceState::parse("write_cache=full").unwrap();
        let record = simulate(&t).unwrap();
        assert!(record.warnings.iter().all(|w| w.code != "halves-differ"), "{rw} {bs}");
        record.jobs[0].write.bytes_per_second() / f64::from(1 << 20)
    };
    let (sequential, blocks, scattered) =
        (mib("write", "1m"), mib("randwrite", "1m"), mib("randwrite", "4k"));
    assert!(sequential > 120.0, "{sequential}");
    assert!((20.0..sequential).contains(&blocks), "{blocks}");
    assert!(scattered < 2.0, "{scattered}");
}

/// A disk takes random writes fast until its cache is full.
#[test]
fn a_run_whose_halves_differ_says_so() {
    let job = "[w]\nfilename=/dev/d\ndirect=1\nrw=randwrite\nbs=4k\nioengine=psync\nsize=50%\nruntime=20\ntime_based\n";
    let warned = |device: &str, state: &str, full: &str| {
        let mut t = trial("none", "6.12", device, job);
        t.device.state = DeviceState::parse(state).unwrap();
        let record = simulate(&t).unwrap();
        // Who has begun with full caches is not told to.
        for w in record.warnings.iter().filter(|w| w.code == "halves-differ") {
            let told = w.advice.contains("--device-state");
            assert!(told != state.contains("full"), "{device}, {state}: {}", w.advice);
            assert!(!told || w.advice.ends_with(full), "{device}: {}", w.advice);
        }
        let codes: Vec<&str> = record.warnings.iter().map(|w| w.code.as_str()).collect();
        assert_eq!(record.provenance.contains_key("device_state"), state.contains("full"));
        codes.contains(&"halves-differ")
    };
    assert!(warned("hdd-7200", "write_cache=empty", " write_cache=full"));
    assert!(!warned("hdd-7200", "write_cache=full", ""));
}

/// The cache is full after some forty seconds. In a run that is little longer the halves differ by less than 10 %.
#[test]
fn a_rate_that_falls_late_in_the_run_is_named() {
    let told = |tenths: u32| {
        let job = format!(
            "[j]\nfilename=/dev/d\ndirect=1\nrw=randrw\nrwmixread=70\nbs=8k\nioengine=libaio\niodepth=32\n\
             runtime={tenths}00ms\ntime_based\n"
        );
        let record = simulate(&trial("none", "6.12", "hdd-7200", &job)).unwrap();
        record.warnings.into_iter().find(|w| w.code == "halves-differ").map(|w| w.message)
    };
    let all: Vec<_> = (434..=450).map(told).collect();
    assert!(all.iter().all(Option::is_some), "{all:?}");
    let first = all[0].as_ref().unwrap();
    assert!(first.contains("the rate falls by over 25 % within the run"), "{all:?}");
}

/// A run that ends before the cache is full has a steady rate, and a longer one another. Where the device keeps up, and
/// where nothing is written, there is no such mark.
#[test]
fn a_run_that_ends_while_the_cache_fills_is_marked() {
    let told = |device: &str, rw: &str, ms: u32| {
        let job = format!(
            "[j]\nfilename=/dev/d\ndirect=1\n{rw}\nioengine=libaio\nruntime={ms}ms\ntime_based\n"
        );
        let record = simulate(&trial("none", "6.12", device, &job)).unwrap();
        record.warnings.into_iter().find(|w| w.code == "halves-differ").map(|w| w.message)
    };
    let mixed = "rw=randrw\nrwmixread=70\nbs=8k\niodepth=32";
    for (device, rw, ms, cache) in [
        ("hdd-7200", mixed, 10_000, "write cache"),
        ("hdd-7200", "rw=randwrite\nbs=4k\niodepth=32", 100, "write cache"),
        ("samsung-980-pro", "rw=write\nbs=1m\niodepth=8", 5_000, "SLC cache"),
    ] {
        let message = told(device, rw, ms).unwrap();
        let said = format!("the {cache} of the device was ");
        assert!(message.contains(&said) && message.contains(" % full at the end"), "{message}");
    }
    for (device, rw) in [
        ("hdd-7200", "rw=randread\nbs=4k\niodepth=32"),
        ("hdd-7200", "rw=write\nbs=4k\nrate_iops=20"),
        ("hdd-7200", "rw=write\nbs=1m\niodepth=8"),
        ("samsung-980-pro", "rw=randwrite\nbs=4k\nrate_iops=500"),
    ] {
        assert_eq!(told(device, rw, 5_000), None, "{device}, {rw}");
    }
}

/// A disk writes a sector once a turn. A figure that no disk reaches is not left without a word.
#[test]
fn a_sync_takes_a_turn_or_is_named() {
    let syncs = |device: &str, rw: &str, kind: bool| {
        let job = format!(
            "[log]\nfilename=/dev/d\ndirect=1\nrw={rw}\nbs=4k\nioengine=psync\nfsync=1\nnumber_ios=200\n"
        );
        let mut t = trial("none", "6.12", device, &job);
        if let (Model::Hdd(p), true) = (&mut t.device.model, kind) {
            p.missed_rev = false;
        }
        let record = simulate(&t).unwrap();
        let warned = record.warnings.iter().any(|w| w.code == "quick-syncs");
        let write = &record.jobs[0].write;
        (warned, write.ios as f64 * 1e9 / write.runtime as f64)
    };
    for (device, turns) in [("hdd-7200", 120.0), ("wd10ezrx", 90.0), ("exos-x18", 120.0)] {
        let (warned, iops) = syncs(device, "write", false);
        assert!(!warned && iops > 0.9 * turns && iops < 1.01 * turns, "{device}: {iops}");
        let (warned, iops) = syncs(device, "write", true);
        assert!(warned && iops > 10.0 * turns, "{device}: {iops}");
        assert!(!syncs(device, "randwrite", true).0);
    }
    assert!(!syncs("ssd-sata", "write", false).0);
}

#[test]
fn nothing_is_allocated_per_request() {
    for (scheduler, kernel) in &schedulers() {
        let allocations = |ios| {
            let t = trial(scheduler, kernel, "fixed", &mixed(ios));
            let before = allocations();
            simulate(&t).unwrap();
            allocations() - before
        };
        let (short, long) = (allocations(2_000), allocations(6_000));
        // 16,000 more I/Os; lists that double and samples per half second may grow a little.
        assert!(long < short + 160, "{scheduler} on {kernel}: {short} and {long} allocations");
    }
}

#[test]
fn the_same_trial_gives_the_same_bytes_and_every_io_completes() {
    for device in ["hdd-7200", "ssd-sata", "fixed"] {
        for (scheduler, kernel) in &schedulers() {
            let t = trial(scheduler, kernel, device, &mixed(200));
            let (a, b) = (simulate(&t).unwrap(), simulate(&t).unwrap());
            assert_eq!(a, b, "{scheduler} on {device}");
            let ios: u64 = a.jobs.iter().map(|j| j.read.ios + j.write.ios).sum();
            assert_eq!(ios, 4 * 200, "{scheduler} on {device}: issued and completed");
            let bytes: u64 = a.jobs.iter().map(|j| j.read.bytes + j.write.bytes).sum();
            assert_eq!(bytes, a.device.bytes[0] + a.device.bytes[1], "{scheduler} on {device}");
        }
    }
}

/// Processes that sleep for a tag pay for the I/O they then hand over when they hand it over: a debt that
/// grew and was paid in one go left the device idle for a fifth of the time.
/// Under bfq a process over its share may have the first tag alone, so results hang on where the search for tags begins:
/// repetitions draw it, the same ones the same.
#[test]
fn repetitions_draw_where_the_search_for_tags_begins() {
    let writers = "[w]\nfilename=/dev/d\ndirect=1\nioengine=libaio\niodepth=8\nrw=randwrite\nbs=4k\nnumjobs=8\n\
                   runtime=3\ntime_based\n";
    let cell = trial("bfq", "6.12", "hdd-7200", writers);
    let seconds = [cell.at_repetition(2, 7, true), cell.at_repetition(2, 7, true)];
    assert_eq!(seconds[0].tag_start, seconds[1].tag_start);
    assert_ne!(seconds[0].tag_start, cell.at_repetition(3, 7, true).tag_start);
    let ios = |tag_start: u32| {
        let record = simulate(&Trial { tag_start, ..cell.clone() }).unwrap();
        record.jobs.iter().map(|j| j.write.ios).collect::<Vec<_>>()
    };
    assert_ne!(ios(0), ios(48));
    assert_eq!(ios(16), ios(16 + 64), "modulo the depth of the map");
}

#[test]
fn more_cpus_are_not_slower() {
    let job = "[global]\nfilename=/dev/d\ndirect=1\nruntime=3\ntime_based\nbs=4k\n\
               [w]\nrw=randwrite\nioengine=libaio\niodepth=16\nnumjobs=4\noffset=50%\nsize=50%\n\
               [r]\nrw=randread\nioengine=psync\nsize=50%\n";
    let all = schedulers();
    let is = |s: &str, k: &str| s.starts_with("mq-deadline") && k == "6.12";
    for (scheduler, kernel) in all.iter().filter(|(s, k)| is(s, k)) {
        let bytes = |cpus| {
            let mut t = trial(scheduler, kernel, "ssd-sata", job);
            t.kernel.cpu = KernelProfile::find(kernel).unwrap().cpu;
            t.cpus = cpus;
            let r = simulate(&t).unwrap();
            r.device.bytes[0] + r.device.bytes[1]
        };
        let one = bytes(1);
        for cpus in [2, 4] {
            let more = bytes(cpus);
            assert!(
                more * 100 >= one * 95,
                "{scheduler}: {one} bytes with 1 CPU, {more} with {cpus}"
            );
        }
    }
}

/// Processes on cores and hardware queues of their own share a scheduler's tokens and its lock: none is left out.
#[test]
fn hardware_queues_do_not_starve_each_other() {
    let job = "[r]\nfilename=/dev/d\ndirect=1\nruntime=300ms\ntime_based\nbs=4k\nrw=randread\nioengine=libaio\n\
               iodepth=128\nnumjobs=10\n";
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let mut t = trial(scheduler, "6.12", "samsung-980-pro", job);
        t.kernel.cpu = KernelProfile::find("6.12").unwrap().cpu;
        t.cpus = 10;
        let record = simulate(&t).unwrap();
        let ios: Vec<u64> = record.jobs.iter().map(|j| j.read.ios).collect();
        let mean = ios.iter().sum::<u64>() / ios.len() as u64;
        assert!(ios.iter().all(|n| n * 2 > mean), "{scheduler}: {ios:?}");
    }
}

/// Processes that never sleep share a core by time slices, and their core time adds up to the core's.
#[test]
fn processes_share_a_core() {
    let job = "[r]\nfilename=/dev/d\ndirect=1\nruntime=60ms\ntime_based\nbs=4k\nrw=randread\nioengine=libaio\n\
               iodepth=128\nnumjobs=3\n";
    let mut t = trial("none", "6.12", "samsung-980-pro", job);
    t.kernel.cpu = KernelProfile::find("6.12").unwrap().cpu;
    t.cpus = 1;
    let record = simulate(&t).unwrap();
    let ios: Vec<u64> = record.jobs.iter().map(|j| j.read.ios).collect();
    let (least, most) = (ios.iter().min().unwrap(), ios.iter().max().unwrap());
    assert!(most * 2 < least * 3, "{ios:?}");
    let busy = record.cpu().total() as f64 / record.elapsed as f64;
    assert!((0.9..1.01).contains(&busy), "{busy}");
}

/// The plug of a large I/O closes behind its last piece, even if that had to wait for a tag: what comes next does not
/// merge into it on the way. Without a scheduler there is no other place to merge.
#[test]
fn large_ios_close_their_plug() {
    let job = "[a]\nfilename=/dev/d\ndirect=1\nrw=read\nioengine=libaio\niodepth=64\nnumber_ios=2000\n\
               bssplit=1920k/50:4k/50\n";
    let t = trial("none", "6.12", "hdd-7200", job);
    let record = simulate(&t).unwrap();
    let reads = record.device.commands[0];
    assert!(reads > 2500, "large I/Os go in pieces: {reads}");
    assert_eq!(record.device.merges, [0, 0, 0]);
}

/// A group without a weight has its scheduler's default: `io.bfq.weight` 100, `blkio.weight` 500. Both read
/// at the start of the disk, where it is equally fast.
#[test]
fn a_group_without_a_weight_has_the_schedulers_default() {
    let job = "[global]\nfilename=/dev/d\ndirect=1\nrw=read\nbs=128k\ntime_based\nruntime=60\nsize=4%\n\
               [given]\ncgroup=given\ncgroup_weight=300\n[none]\noffset=4%\ncgroup=none\n";
    for (scheduler, kernel, expected) in [("bfq", "6.12", 3.0), ("cfq", "4.12", 0.6)] {
        let record = simulate(&trial(scheduler, kernel, "hdd-7200", job)).unwrap();
        let [given, none] = record.jobs.as_slice() else { panic!("{scheduler}") };
        let ratio = given.read.ios as f64 / none.read.ios as f64;
        assert!(
            (ratio / expected - 1.0).abs() < 0.1,
            "{scheduler}: {ratio:.2} instead of {expected}"
        );
    }
}
