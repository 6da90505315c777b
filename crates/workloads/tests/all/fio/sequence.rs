//! The I/Os of a job one by one against those of the fio that is installed (3.33; skipped elsewhere).

use std::path::{Path, PathBuf};

use iosched_types::Op;
use iosched_workloads::fio::layout::{Extent, Files, lay_out};
use iosched_workloads::fio::process::{Job, Ring, Step};
use iosched_workloads::fio::{JobSet, JobSpec};

use super::sequence_jobs::JOBS;
use super::support::{fio_3_33, jobs, log_of_real_run};

/// Operation, file, offset in it, length.
type Line = (String, usize, u64, u64);

/// fio mostly waits for itself when it starts.
const WORKERS: usize = 4;

/// What real fio does, from its own I/O log. A sync has no place.
fn theirs(folder: &Path, lines: &str) -> Vec<Line> {
    let text = log_of_real_run(folder, lines);
    let mut files: Vec<&str> = Vec::new();
    let mut all = Vec::new();
    for l in text.lines().skip(1) {
        let w: Vec<&str> = l.split_whitespace().collect();
        match w[1..] {
            [name, "add"] => files.push(name),
            [_, "sync" | "datasync", ..] => all.push(("sync".into(), 0, 0, 0)),
            [name, op, offset, len] => {
                let at = files.iter().position(|f| *f == name).unwrap();
                all.push((op.into(), at, offset.parse().unwrap(), len.parse().unwrap()));
            }
            _ => {}
        }
    }
    all
}

fn in_file(files: &Files, at: u64, op: Op, len: u64) -> Line {
    let name = ["read", "write", "trim", "sync"][op as usize];
    let holds = |f: &Extent| (f.start..f.start + f.len).contains(&at);
    let i = files.iter().position(holds).unwrap_or(0);
    if op == Op::Flush {
        return (name.into(), 0, 0, 0);
    }
    (name.into(), i, at - files[i].origin, len)
}

/// What ours does when each I/O takes a moment.
fn ours(job: &JobSpec, files: &Files) -> Vec<Line> {
    let mut process = Job::new(job, files);
    let mut ring = Ring::with_capacity(process.units() as usize);
    let (mut now, mut under_way, mut all) = (0, std::collections::VecDeque::new(), Vec::new());
    loop {
        match process.step(now, &mut ring) {
            Step::Submit(io) => {
                under_way.push_back(io.unit);
                all.push(in_file(files, io.offset, io.op, io.len));
            }
            Step::Wait(n) => {
                while ring.len() < n as usize {
                    now += 1_000;
                    ring.push(under_way.pop_front().unwrap());
                }
            }
            Step::Await(_) => {
                now += 1_000;
                ring.push(under_way.pop_front().unwrap());
            }
            Step::Sleep(until) => now = until,
            Step::BeginBatch(_) | Step::EndBatch => {}
            Step::Exit => return all,
        }
        assert!(all.len() < 1_000_000);
    }
}

/// When each I/O is submitted, each taking `service` ns.
fn times(lines: &str, service: u64) -> Vec<u64> {
    let set = JobSet { jobs: jobs(&format!("[a]\n{lines}\n")), ..JobSet::default() };
    let files = lay_out(&set, 1 << 40).unwrap();
    let mut process = Job::new(&set.jobs[0], &files[0]);
    let mut ring = Ring::with_capacity(process.units() as usize);
    let (mut now, mut under_way, mut all) = (0, std::collections::VecDeque::new(), Vec::new());
    loop {
        match process.step(now, &mut ring) {
            Step::Submit(io) => {
                under_way.push_back((now + service, io.unit));
                all.push(now);
            }
            Step::Wait(n) => {
                while ring.len() < n as usize {
                    let (at, unit) = under_way.pop_front().unwrap();
                    now = now.max(at);
                    ring.push(unit);
                }
            }
            Step::Await(_) => {
                let (at, unit) = under_way.pop_front().unwrap();
                now = now.max(at);
                ring.push(unit);
            }
            Step::Sleep(until) => now = until,
            Step::BeginBatch(_) | Step::EndBatch => {}
            Step::Exit => return all,
        }
    }
}

const MS: u64 = 1_000_000;

/// Gaps of more than 3 ms between I/Os, in ms: from when to when.
fn gaps(times: &[u64]) -> Vec<(u64, u64)> {
    let pairs = times.windows(2).map(|w| (w[0] / MS, w[1] / MS));
    pairs.filter(|(a, b)| b - a > 3).collect()
}

#[test]
fn thinktime_iotime_thinks_after_a_time_of_io() {
    // As fio 3.33 did with 1000 I/Os a second: the first time it counts the thinking, too.
    let job = "size=800k\nrw=read\nthinktime=20ms\nthinktime_iotime=10ms";
    let got = gaps(&times(job, MS));
    assert_eq!(got[..3], [(29, 50), (59, 80), (89, 110)]);
    // With a number of blocks as well, whatever comes first.
    let both = gaps(&times(&format!("{job}\nthinktime_blocks=4"), MS));
    assert_eq!(both[..2], [(3, 24), (27, 48)]);
}

#[test]
fn a_full_queue_drains_to_iodepth_low() {
    let job = "size=1m\nrw=read\nioengine=libaio\niodepth=16\niodepth_low=4";
    let times = times(job, MS);
    let at = |t: u64| times.iter().filter(|x| **x == t).count();
    assert_eq!((at(0), at(MS), times.len()), (16, 12, 256));
}

/// The I/Os of each call for more than two when I/Os are done in the order in which they were handed over.
fn calls(lines: &str) -> Vec<usize> {
    let mut process = job_of(lines);
    let mut ring = Ring::with_capacity(process.units() as usize);
    let (mut now, mut under_way, mut all) = (0, std::collections::VecDeque::new(), Vec::new());
    let mut call = None;
    loop {
        match process.step(now, &mut ring) {
            Step::Submit(io) => {
                under_way.push_back(io.unit);
                call = call.map(|n| n + 1);
            }
            Step::BeginBatch(_) => call = Some(0),
            Step::EndBatch => all.extend(call.take()),
            Step::Wait(n) => {
                now += 1_000;
                while ring.len() < n as usize {
                    ring.push(under_way.pop_front().unwrap());
                }
            }
            Step::Await(_) | Step::Sleep(_) => unreachable!("plain I/O"),
            Step::Exit => return all,
        }
    }
}

fn job_of(lines: &str) -> Job {
    let set = JobSet { jobs: jobs(&format!("[a]\n{lines}\n")), ..JobSet::default() };
    let files = lay_out(&set, 1 << 40).unwrap();
    Job::new(&set.jobs[0], &files[0])
}

#[test]
fn what_a_full_queue_hands_over_counts_for_the_batch() {
    // As in a trace of fio 3.33: 6 and the 5 before are a batch of 11. Calls for one or two are left out.
    let job = "rw=read\nsize=512k\niodepth=16\niodepth_batch=11\niodepth_batch_complete_min=16";
    let whole = [11, 5, 6, 10, 11, 4, 7, 9, 11, 3, 8, 8, 3, 11, 9, 7];
    assert_eq!(calls(&format!("{job}\nioengine=io_uring")), whole);
    assert_eq!(calls(&format!("{job}\nioengine=libaio")), whole);
}

#[test]
fn a_call_of_libaio_ends_where_its_ring_ends() {
    let job = "rw=read\nsize=160k\niodepth=16\niodepth_batch=11\niodepth_batch_complete_min=4\n\
               iodepth_batch_complete_max=4\niodepth_low=4";
    let (whole, parts) =
        (calls(&format!("{job}\nioengine=io_uring")), calls(&format!("{job}\nioengine=libaio")));
    assert_eq!(whole, [11, 5, 6, 6, 5, 7]);
    // The fifth would have gone beyond I/O 32: 4 go before, and 1 behind.
    assert_eq!(parts, [11, 5, 6, 6, 4, 7]);
}

#[test]
fn a_job_that_ends_in_its_ramp_has_counts_without_latencies() {
    // fio 3.33: 1024 I/Os in 7 ms of a ramp of 50 ms, mean latency 0.
    let mut process = job_of("rw=read\nsize=64k\nioengine=libaio\niodepth=4\nramp_time=1s");
    let mut ring = Ring::with_capacity(process.units() as usize);
    let (mut now, mut under_way) = (0, std::collections::VecDeque::new());
    loop {
        match process.step(now, &mut ring) {
            Step::Submit(io) => under_way.push_back(io.unit),
            Step::Wait(_) => {
                now += 1_000;
                ring.push(under_way.pop_front().unwrap());
            }
            Step::Exit => break,
            _ => {}
        }
    }
    let reads = &process.stats().dirs[0];
    assert_eq!((reads.ios, reads.bytes, reads.clat.count()), (16, 65_536, 0));
}

#[test]
fn a_pass_through_the_files_ends_with_an_empty_queue() {
    // As strace showed fio 3.33: at the end of the file it waits for all, then begins again.
    let times = times("size=40k\nloops=2\nrw=read\nioengine=libaio\niodepth=4", MS);
    let at = |t: u64| times.iter().filter(|x| **x == t * MS).count();
    assert_eq!([0, 1, 2, 3, 4, 5].map(at), [4, 4, 2, 4, 4, 2]);
}

#[test]
fn poisson_arrivals_follow_a_rate_of_bytes_as_one_of_ios() {
    let job = |rate: &str| times(&format!("size=160k\nrw=read\nrate_process=poisson\n{rate}"), 1);
    let by_ios = job("rate_iops=200");
    assert_eq!(job("rate=800k"), by_ios);
    // The very times fio 3.33 showed, less its own delays of up to 0.2 ms.
    let tenths: Vec<u64> = by_ios[..5].iter().map(|t| t / 100_000).collect();
    assert_eq!(tenths, [0, 117, 141, 156, 209]);
    // Writes and trims have streams of their own (`--debug=rate`: 127, 2032, 1953, 6060 a second).
    let writes = times("size=160k\nrw=write\nrate_process=poisson\nrate_iops=200", 1);
    let tenths: Vec<u64> = writes[..5].iter().map(|t| t / 100_000).collect();
    assert_eq!(tenths, [0, 78, 83, 88, 90]);
    let trims = times("size=160k\nrw=trim\nrate_process=poisson\nrate_iops=300", 1);
    let tenths: Vec<u64> = trims[..4].iter().map(|t| t / 100_000).collect();
    assert_eq!(tenths, [0, 31, 92, 145]);
}

/// Directions and blocks of 4 KiB of the second job of a file.
fn of_second_job(lines: &str) -> (String, Vec<u64>) {
    let set = JobSet { jobs: jobs(&format!("[x]\nsize=4k\n[b]\n{lines}\n")), ..JobSet::default() };
    let files = lay_out(&set, 1 << 40).unwrap();
    let all = ours(&set.jobs[1], &files[1]);
    let dirs = all.iter().map(|l| if l.0 == "read" { 'R' } else { 'W' }).collect();
    (dirs, all.iter().map(|l| l.2 / 4096).collect())
}

#[test]
fn a_pass_begins_its_directions_anew_but_what_was_issued_counts() {
    // As fio 3.33 did behind another job (`write_iolog`, `ioengine=null`).
    let (dirs, _) = of_second_job("rw=randrw\nsize=20k\nloops=8");
    assert_eq!(dirs, "RWWWWRWWWWRRWWWRWWWWRRWWWRRWWWRWWWWRRWWW");
    // The file is full when a direction was drawn for one I/O more: that is the current one.
    let (dirs, _) = of_second_job("rw=randrw\nsize=12k\nloops=6\nrwmixread=80");
    assert_eq!(dirs, "RWWRWWRWWRWWRWWRWW");
    let (dirs, _) = of_second_job("rw=randrw\nsize=512k\nloops=2");
    assert_eq!(dirs[..16], *"RWWWWWRWWWWWWRRR");
    assert_eq!(dirs[128..144], *"RWWWWWRWWWWWWRWR");
}

#[test]
fn a_pass_that_ends_by_bytes_begins_its_streams_anew() {
    // As fio 3.33 did with libaio, with a map and without.
    for map in ["", "\nnorandommap"] {
        let job = format!("rw=randrw\nsize=64k\nloops=3\nioengine=libaio{map}");
        let (dirs, blocks) = of_second_job(&job);
        assert_eq!(dirs, "RWWWWWRWWWWWWRRRRWWWWWRRWWWWWWRRRWWWWWRRWWWWWWRR");
        assert_eq!(blocks[..4], [4, 2, 9, 0]);
        assert_eq!(blocks[16..32], blocks[..16]);
        assert_eq!(blocks[32..], blocks[..16]);
    }
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Jobs that a time ends, after some passes through their files.
const TIMED: &[&str] = &[
    "rw=randread:4;size=64k",
    "rw=randread;bsrange=4k-16k;size=64k",
    "rw=randread;filesize=16k-64k;nrfiles=3",
    "rw=randread;percentage_random=50;size=64k",
    "rw=randwrite;bs=4k,8k;size=64k",
    "rw=read;filesize=16k-64k;nrfiles=3",
    "rw=read;size=10k",
    "rw=read;size=64k;nrfiles=2;file_service_type=sequential",
];

/// The I/Os of real fio and ours. They are the same as far as both go, except for the last `cut` of fio's.
fn same_ios(folder: &Path, job: &str, cut: usize) -> (usize, usize) {
    let lines = job.replace(';', "\n");
    let mut theirs = theirs(folder, &lines);
    theirs.truncate(theirs.len().saturating_sub(cut));
    let set = JobSet { jobs: jobs(&format!("[a]\n{lines}\n")), ..JobSet::default() };
    let files = lay_out(&set, 1 << 40).unwrap_or_else(|e| panic!("{job}: {}", e.message));
    let ours = ours(&set.jobs[0], &files[0]);
    let differs = theirs.iter().zip(&ours).position(|(t, o)| t != o);
    if let Some(at) = differs {
        panic!("{job}: I/O {at} is {:?}, fio's {:?}", ours[at], theirs[at]);
    }
    (theirs.len(), ours.len())
}

#[test]
fn a_job_does_the_very_ios_of_fio() {
    if !fio_3_33() {
        return;
    }
    let compare = |worker: usize| {
        let folder = scratch(&format!("sequence{worker}"));
        for job in JOBS.iter().skip(worker).step_by(WORKERS) {
            let (theirs, ours) = same_ios(&folder, job, 0);
            assert_eq!(ours, theirs, "{job}");
        }
    };
    std::thread::scope(|s| {
        let workers: Vec<_> = (0..WORKERS).map(|w| s.spawn(move || compare(w))).collect();
        for w in workers {
            w.join().unwrap();
        }
    });
}

#[test]
fn a_job_of_a_given_time_does_the_very_ios_of_fio() {
    if !fio_3_33() {
        return;
    }
    let folder = scratch("sequence_timed");
    for job in TIMED {
        let job = format!("{job};time_based;runtime=300ms;rate_iops=300");
        // When the end cuts a pause of the rate short, the last I/O is of the next file, or is none.
        let (theirs, ours) = same_ios(&folder, &job, 1);
        assert!(theirs > 0 && ours > 0, "{job}");
    }
}
