//! `exitall`, commands that drop caches, and partitions: what jobs do to each other.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_block::KernelProfile;
use iosched_devices::DeviceSpec;
use iosched_experiment::{Collect, Record, Trial, choose_scheduler};
use iosched_schedulers::registry::Registry;
use iosched_sim::simulate;
use iosched_workloads::fio::{NoLookup, parse};

const DISK: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"4GiB\"\nlat_ns=1000000\npar=8\n\
                    [queue]\nqueue_depth=32\n";

fn run(jobs: &str) -> Record {
    let kernel = KernelProfile::find("6.12").unwrap();
    let device = DeviceSpec::from_toml("constant", DISK).unwrap();
    let scheduler = choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap();
    let jobs = parse("job", jobs, &NoLookup, &|_| Err(String::new()), &[]).unwrap();
    let trial = Trial::new(device, scheduler, kernel, jobs);
    simulate(&Trial { collect: Collect::default(), ..trial }).unwrap()
}

/// Seconds of each job to one digit, as fio 3.33 shows `job_runtime` of the same sections; 0 of a job that never began.
fn seconds(global: &str, jobs: &str) -> Vec<f64> {
    let text = format!(
        "[global]\nrw=randread\nbs=4k\nsize=1g\nthinktime=10ms\ntime_based\n{global}\n{jobs}"
    );
    let seconds = |j: &iosched_experiment::JobRecord| {
        let time = if j.read.ios > 0 { j.ended - j.began } else { 0 };
        (time as f64 / 1e8).round() / 10.0
    };
    run(&text).jobs.iter().map(seconds).collect()
}

#[test]
fn exitall_ends_what_fio_ends() {
    let groups = "[a]\nruntime=1\nexitall\nWHAT\n[b]\n[c]\nnew_group\n[d]\nstonewall\n";
    let late = "[a]\nruntime=1\nexitall\nWHAT\n[b]\n[c]\nstartdelay=2\n";
    for files in ["direct=1\nfilename=/dev/d", "directory=/data\nfilename=f"] {
        let of = |jobs: &str, what: &str| {
            seconds(
                &format!("{files}\nruntime=2"),
                &jobs.replace("WHAT", &format!("exit_what={what}")),
            )
        };
        assert_eq!(of(groups, "group"), [1.0, 1.0, 2.0, 2.0], "{files}");
        assert_eq!(of(groups, "stonewall"), [1.0, 1.0, 1.0, 2.0], "{files}");
        assert_eq!(of(groups, "all"), [1.0, 1.0, 1.0, 0.0], "{files}");
        for what in ["group", "stonewall", "all"] {
            assert_eq!(of(late, what), [1.0, 1.0, 0.0], "{files} {what}");
        }
        let second =
            "[a]\nruntime=1\n[b]\nstonewall\nruntime=1\nexitall\n[c]\n[d]\nstonewall\nruntime=1\n";
        assert_eq!(of(second, "group"), [1.0; 4], "{files}");
        // A job ends when its pause is over.
        let thinks = "[a]\nruntime=1\nexitall\n[b]\nthinktime=2s\n";
        assert_eq!(of(thinks, "group"), [1.0, 2.0], "{files}");
        let ramp = "[a]\nruntime=1\nexitall\n[b]\nramp_time=2\n";
        assert_eq!(of(ramp, "group"), [1.0, 1.0], "{files}");
    }
}

/// The second pass over a file is read from memory, unless a command has dropped that.
#[test]
fn a_command_that_drops_caches_does_so() {
    let read = |command: &str| {
        let text = format!(
            "[global]\ndirectory=/data\nfilename=f\nsize=16m\nbs=64k\nrw=read\ninvalidate=0\n\
             [warm]\n[measured]\nstonewall\n{command}\n"
        );
        run(&text).device.bytes[0]
    };
    let once = read("");
    assert_eq!(read("exec_prerun=echo 3 > /proc/sys/vm/drop_caches"), once + (16 << 20));
    assert_eq!(read("exec_prerun=sync"), once);
}

/// Two partitions of one disk are two places on it, with and without the page cache.
#[test]
fn partitions_are_places_of_their_own() {
    for direct in [1, 0] {
        let text = format!(
            "[global]\ndirect={direct}\nrw=write\nbs=64k\nsize=1m\nend_fsync=1\n[a]\nfilename=/dev/sda1\n[b]\nfilename=/dev/sda2\n"
        );
        let record = run(&text);
        let far = record.dispatches.iter().map(|d| d.sector).max().unwrap();
        assert!((4 << 20..(4 << 20) + 2048).contains(&far), "{far}");
        assert!(record.warnings.iter().any(|w| w.code == "parts-of-disk"), "{:?}", record.warnings);
    }
}
