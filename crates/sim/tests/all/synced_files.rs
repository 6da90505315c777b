//! Synced writes to files. The counts are those of Linux 6.12 with fio 3.33.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_block::KernelProfile;
use iosched_devices::DeviceSpec;
use iosched_experiment::{FsType, Trial, choose_scheduler};
use iosched_schedulers::registry::Registry;
use iosched_sim::simulate;
use iosched_sim::validate::FileFolder;
use iosched_workloads::fio::{NoLookup, parse};

fn counts(cache: &str, fs: FsType, engine: &str, sync: &str, direct: u8) -> [u64; 4] {
    let text = format!(
        "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns=100000\npar=8\nflush_ns=1000000\n\
         [queue]\nqueue_depth=32\n{cache}"
    );
    let device = DeviceSpec::from_toml("constant", &text).unwrap();
    let kernel = KernelProfile::find("6.12").unwrap();
    let scheduler = choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap();
    let job = format!(
        "[a]\nfilename=f\ndirectory=/mnt/disk0\nioengine={engine}\nsync={sync}\ndirect={direct}\nrw=write\nbs=4k\nsize=64k\niodepth=4\n"
    );
    let job = parse("job", &job, &NoLookup, &|_| Err(String::new()), &[]).unwrap();
    let mut trial = Trial::new(device, scheduler, kernel, job);
    trial.host.filesystem = fs;
    simulate(&trial).unwrap().device.commands
}

/// Sixteen writes of 4 KiB that extend a file, each durable when it returns: commands of the run by write and flush, under
/// 6.12 (its counters of the disk, less the superblock that a mount of ext4 writes).
#[test]
fn synced_writes_to_files_flush_as_often_as_the_kernels() {
    let mut wrong = Vec::new();
    for (fs, writes) in [(FsType::Ext4, 48), (FsType::Xfs, 32)] {
        for (cache, flushes) in
            [("", 0), ("write_cache=true\n", 32), ("write_cache=true\nfua=true\n", 16)]
        {
            for (engine, direct) in [("psync", 0), ("psync", 1), ("libaio", 0)] {
                for sync in ["sync", "1", "dsync"] {
                    let ours = counts(cache, fs, engine, sync, direct);
                    if ours != [0, writes, 0, flushes] {
                        wrong.push(format!("{fs:?} {engine} {sync} {direct} {cache}: {ours:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the reference machine's disk is asked for by a job of direct libaio: its ends of I/O come one after the other.
fn direct_counts(cache: u32, fs: &str, sync: &str) -> [u64; 4] {
    let devices = format!(
        "[d]\nwc = {cache}\nqueue_depth = 32\nnr_requests = 64\nkind = \"fixed\"\ncap = 1073741824\n\
         lat_ns = 100000\npar = 8\nflush_ns = 1000000\n"
    );
    let row = format!(
        "[{{\"device\":\"d\",\"fs\":\"{fs}\",\"job\":\"j\",\"scheduler\":\"none\",\"repetition\":1,\"mem\":\"1G\",\
         \"mount\":\"noatime\",\"settings\":{{\"wbt_lat_usec\":\"0\"}},\"fio_job\":\"[a]\\nfilename=f\\ndirectory=/mnt/x\\n\
         ioengine=libaio\\nsync={sync}\\ndirect=1\\nrw=write\\nbs=4k\\nsize=64k\\niodepth=4\\n\"}}]"
    );
    let folder = FileFolder::parse(("d", &devices), ("r", &row), &|_| None).unwrap();
    simulate(folder.plan()[0].trial.as_ref().unwrap()).unwrap().device.commands
}

/// Without a page cache libaio has four of them under way. Each is made durable by a worker of its own. On ext4 those that end
/// while a commit is under way share the next; on XFS a sync keeps the inode from those that are to be marked as written. Under 6.12,
/// with a journal that is in use; in an empty one the first commit writes the superblock first and takes all four along (30 writes, 14
/// and 7 flushes). Without a cache ext4 makes 38 writes there and 32 here.
#[test]
fn each_direct_write_of_libaio_is_synced_by_a_worker_of_its_own() {
    let mut wrong = Vec::new();
    for (fs, cache, writes, flushes) in [
        ("ext4", 1, 32, 16),
        ("ext4", 2, 32, 8),
        ("xfs", 0, 32, 0),
        ("xfs", 1, 32, 32),
        ("xfs", 2, 32, 16),
    ] {
        for sync in ["sync", "1", "dsync"] {
            let ours = direct_counts(cache, fs, sync);
            if (ours[1], ours[3]) != (writes, flushes) {
                wrong.push(format!("{fs} {sync} {cache}: {ours:?} for {writes}, {flushes}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Direct writes of a job that names its file by a path, over written blocks: flushes, and I/Os a second.
fn overwrites(fua: bool, fs: FsType, engine: &str, sync: &str) -> (u64, u64) {
    let text = format!(
        "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"16GiB\"\nlat_ns=100000\npar=8\nflush_ns=700000\n\
         [queue]\nqueue_depth=32\nwrite_cache=true\nfua={fua}\n"
    );
    let device = DeviceSpec::from_toml("constant", &text).unwrap();
    let kernel = KernelProfile::find("6.12").unwrap();
    let scheduler = choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap();
    let depth = if engine == "psync" { 1 } else { 4 };
    let job = format!(
        "[a]\nfilename=/mnt/disk0/f\nioengine={engine}\niodepth={depth}\nsync={sync}\ndirect=1\nrw=randwrite\nbs=4k\nsize=4m\n\
         overwrite=1\nnumber_ios=100\nfallocate=native\n"
    );
    let job = parse("job", &job, &NoLookup, &|_| Err(String::new()), &[]).unwrap();
    let mut trial = Trial::new(device, scheduler, kernel, job);
    trial.host.filesystem = fs;
    let run = simulate(&trial).unwrap();
    let write = &run.jobs[0].write;
    (run.device.commands[3], write.ios * 1_000_000_000 / write.runtime)
}

/// `O_DSYNC` with FUA writes through and neither flushes nor commits; without it each write or, of an asynchronous engine, all that
/// ended meanwhile share a flush. `O_SYNC` commits the time stamp of each tick, too. The kernel's counts include up to two
/// flushes of the layout; how many commits ticks bring differs by up to three. libaio and io_uring do the same.
#[test]
fn direct_overwrites_of_a_file_named_by_its_path_are_synced_as_the_kernels() {
    let mut wrong = Vec::new();
    for (fs, fua, engine, sync, flushes, iops) in [
        (FsType::Ext4, true, "psync", "1", 101, 1176),
        (FsType::Ext4, true, "psync", "dsync", 1, 10_000),
        (FsType::Ext4, true, "libaio", "1", 51, 2703),
        (FsType::Ext4, true, "io_uring", "1", 51, 2703),
        (FsType::Ext4, true, "libaio", "dsync", 1, 33_333),
        (FsType::Ext4, true, "io_uring", "dsync", 1, 33_333),
        (FsType::Ext4, false, "psync", "1", 128, 962),
        (FsType::Ext4, false, "psync", "dsync", 102, 1235),
        (FsType::Ext4, false, "libaio", "1", 67, 2128),
        (FsType::Ext4, false, "io_uring", "dsync", 52, 2778),
        (FsType::Xfs, true, "psync", "1", 101, 1205),
        (FsType::Xfs, true, "psync", "dsync", 1, 10_000),
        (FsType::Xfs, true, "libaio", "1", 59, 2381),
        (FsType::Xfs, true, "io_uring", "dsync", 1, 33_333),
        (FsType::Xfs, false, "psync", "1", 127, 990),
        (FsType::Xfs, false, "psync", "dsync", 102, 1235),
        (FsType::Xfs, false, "io_uring", "1", 75, 1887),
        (FsType::Xfs, false, "libaio", "dsync", 52, 2778),
    ] {
        let ours = overwrites(fua, fs, engine, sync);
        if ours.0.abs_diff(flushes) > 5 || ours.1.abs_diff(iops) * 10 > iops {
            wrong.push(format!("{fs:?} {engine} {sync} {fua}: {ours:?} for {flushes}, {iops}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
