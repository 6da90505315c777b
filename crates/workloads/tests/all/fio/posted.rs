//! Jobs as people post them: each is accepted here and by fio, or refused with the reason.

use std::process::Command;

use iosched_workloads::fio::{NoLookup, parse};

use super::support::fio_3_33;

/// Name, text, and what is said against it; empty where it is accepted.
const POSTED: &[(&str, &str, &str)] = &[
    (
        "an OLTP mix",
        "\
[global]
ioengine=libaio
direct=1
iodepth=32
rw=randrw
rwmixread=70
bssplit=4k/60:8k/30:64k/10,4k/20:8k/70:64k/10
random_distribution=zipf:1.2
size=4g
runtime=60
time_based
group_reporting
[oltp]
filename=/dev/nvme0n1
numjobs=4
",
        "",
    ),
    (
        "a precondition until it is steady",
        "\
[global]
name=ss-precondition
filename=/dev/sdb
ioengine=libaio
direct=1
bs=4k
rw=randwrite
iodepth=32
numjobs=2
time_based
runtime=3600
steadystate=iops_slope:0.3%
steadystate_duration=60
steadystate_ramp_time=10
[ss]
",
        "steadystate is not supported: ending at a steady state is not simulated",
    ),
    (
        "a verified write",
        "\
[write-and-verify]
rw=randwrite
bs=4k
direct=1
ioengine=libaio
iodepth=16
size=512m
verify=crc32c
verify_async=2
do_verify=1
verify_backlog=1024
verify_fatal=1
filename=testfile
",
        "verify is not supported: the reads of a verification are not simulated",
    ),
    (
        "a writer and a reader with logs",
        "\
[global]
ioengine=libaio
direct=1
time_based=1
runtime=120
ramp_time=5
log_avg_msec=1000
write_bw_log=out
write_lat_log=out
write_iops_log=out
per_job_logs=0
[seq-writer]
rw=write
bs=1m
iodepth=8
rate=100m
filename=/dev/sda
offset=0
size=10g
[rand-reader]
rw=randread
bs=4k
rate_iops=200
thinktime=500us
thinktime_spin=100
thinktime_blocks=4
filename=/dev/sda
offset=50%
size=10g
",
        "",
    ),
    (
        "two control groups",
        "\
[global]
bs=4k
direct=1
ioengine=libaio
iodepth=64
runtime=30
time_based
filename=/dev/sda
[heavy]
rw=randread
cgroup=heavy
cgroup_weight=1000
cgroup_nodelete=1
[light]
rw=randread
cgroup=light
cgroup_weight=100
",
        "",
    ),
    (
        "places beside each other, then batches",
        "\
[global]
ioengine=io_uring
direct=1
bs=128k
rw=read
numjobs=8
size=1g
offset_increment=1g
thread
filename=/dev/nvme0n1
registerfiles
fixedbufs
[seq]
stonewall
[rand]
stonewall
rw=randread
bs=4k
iodepth=64
iodepth_batch_submit=16
iodepth_batch_complete_min=1
iodepth_batch_complete_max=16
norandommap=1
randrepeat=0
",
        "",
    ),
    (
        "a mail server",
        "\
[global]
directory=/mnt/test
nrfiles=1000
filesize=4k-64k
openfiles=100
file_service_type=random:4
bs=4k
ioengine=sync
fsync_on_close=1
create_on_open=1
[deliver]
rw=write
numjobs=4
fsync=1
[fetch]
rw=randread
numjobs=8
",
        "",
    ),
    (
        "buffered writes with sync_file_range",
        "\
[buffered-log]
directory=/mnt/test
rw=randwrite
bs=16k
ioengine=psync
size=1g
sync_file_range=wait_before,write,wait_after:32
end_fsync=1
fadvise_hint=random
[checkpointer]
directory=/mnt/test
rw=write
bsrange=4k-1m
bs_unaligned
size=512m
fdatasync=128
fallocate=keep
overwrite=1
",
        "",
    ),
    (
        "a depth for a latency",
        "\
; hot/cold
[global]
group_reporting=1
ioengine=libaio
direct=1
filename=/dev/sdb:/dev/sdb
[hotcold]
rw=randrw:8
rwmixread=90
percentage_random=50,80
random_distribution=zoned:60/10:30/20:8/30:2/40
blockalign=4k
bs=4k,16k
io_size=8g
size=32g
latency_target=20ms
latency_window=5s
latency_percentile=99.0
iodepth=64
prioclass=2
prio=4
nice=-5
cpus_allowed=0-3
cpus_allowed_policy=split
",
        "latency_target is not supported: searching the depth for a latency is not simulated",
    ),
    (
        "trims beside a limited reader",
        "\
[global]
bs=4k
ioengine=libaio
direct=1
filename=/dev/sdc
[trimwrite]
rw=randtrimwrite
iodepth=4
number_ios=10000
unlink=1
buffer_compress_percentage=50
refill_buffers
scramble_buffers=0
dedupe_percentage=20
[rate-reader]
rw=randread
rate=2m,,1m
rate_process=poisson
rate_cycle=500
percentile_list=50:90:99:99.9
lat_percentiles=1
startdelay=2
loops=3
write_iolog=a.log
",
        "",
    ),
    (
        "a wait for one job",
        "\
[a]
rw=read
size=1m
[b]
wait_for=a
rw=write
size=1m
",
        "wait_for is not supported: waiting for one job by name is not simulated",
    ),
    (
        "an option that fio lacks",
        "\
[a]
rw=read
size=1m
mmap=hugetlb
",
        "unknown option \"mmap\"",
    ),
];

/// What of these fio 3.33 does not know either.
const UNKNOWN: &[&str] = &["an option that fio lacks"];

#[test]
fn posted_jobs_are_accepted_or_refused_with_the_reason() {
    let nothing = |name: &str| Err(format!("no {name}"));
    for (name, text, reason) in POSTED {
        let said = match parse(name, text, &NoLookup, &nothing, &[]) {
            Ok(_) => String::new(),
            Err(all) => all.iter().map(|d| format!("{}\n", d.message)).collect(),
        };
        assert_eq!(said.is_empty(), reason.is_empty(), "{name}: {said}");
        // One reason, not a second one that is a consequence of the first.
        assert!(said.lines().count() <= 1 && said.contains(reason), "{name}: {said}");
    }
}

/// Whatever is accepted here is a job of fio's; what is refused as not simulated, too.
#[test]
fn fio_accepts_all_that_is_not_unknown() {
    if !fio_3_33() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("iosched-posted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text, _) in POSTED {
        let file = folder.join("job.fio");
        std::fs::write(&file, text).unwrap();
        let out = Command::new("fio").arg("--parse-only").arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.success(), !UNKNOWN.contains(name), "{name}: {said}");
    }
}
