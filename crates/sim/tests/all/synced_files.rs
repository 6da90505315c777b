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
