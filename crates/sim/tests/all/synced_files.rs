//! Synced writes to files. The counts are those of Linux 6.12 with fio 3.33.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_block::KernelProfile;
use iosched_devices::DeviceSpec;
use iosched_experiment::{FsType, Trial, choose_scheduler};
use iosched_schedulers::registry::Registry;
use iosched_sim::simulate;
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
            // What libaio has handed over without a page cache is durable later: see docs/fidelity-fio.md.
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
