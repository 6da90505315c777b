//! Block traces, replayed: a recording of a simulated run gives that run back.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use iosched_block::Keep;
use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::{DeviceSpec, catalogue};
use iosched_experiment::record::Seen;
use iosched_experiment::{
    Collect, DispatchPoint, ProgramWork, Record, TraceWork, Trial, Work, choose_scheduler,
};
use iosched_schedulers::registry::Registry;
use iosched_sim::simulate;
use iosched_testing::allocations;
use iosched_trace::{Io, Name, Tables};
use iosched_types::{Flags, Op};
use iosched_workloads::fio::{NoLookup, parse};
use iosched_workloads::programs::{Descriptor, Params};
use iosched_workloads::replay::{Learner, Mode, Recording};
use proptest::prelude::*;

fn trial(scheduler: &str, device: DeviceSpec, work: impl Into<Work>) -> Trial {
    let mut kernel = KernelProfile::find("6.12").unwrap();
    if !scheduler_is_new(scheduler) {
        kernel = KernelProfile::find("3.12").unwrap();
    }
    kernel.cpu.model = CpuModel::Zero;
    let choice = choose_scheduler(scheduler, &[], &kernel, Registry::builtin()).unwrap();
    Trial {
        collect: Collect { series: false, dispatches: true },
        tape: Some(Keep::All),
        first_run_late: false,
        cpus: 1,
        ..Trial::new(device, choice, kernel, work)
    }
}

fn scheduler_is_new(name: &str) -> bool {
    ["none", "mq-deadline", "kyber", "bfq"].contains(&name)
}

fn learn(seen: &Seen) -> Recording {
    let mut tables = Tables::default();
    let names: Vec<Name> = seen.tasks.iter().map(|n| tables.tasks.of(n)).collect();
    let mut learner = Learner::default();
    for io in &seen.ios {
        let io = Io { task: names[io.task.0 as usize - 1], ..*io };
        learner.push(&io, &tables).unwrap();
    }
    learner.finish(&tables)
}

fn work(recording: Recording, mode: Mode) -> TraceWork {
    TraceWork { recording: Arc::new(recording), mode, recorded_under: None, usual: false }
}

/// Runs jobs, records them, and replays the recording.
fn there_and_back(scheduler: &str, device: &str, jobs: &str, mode: Mode) -> (Record, Record) {
    let device = catalogue::find(device).unwrap();
    let text = format!("[global]\nfilename=/dev/d\ndirect=1\n{jobs}");
    let set = parse("job", &text, &NoLookup, &|_| Err(String::new()), &[]).unwrap();
    let first = simulate(&trial(scheduler, device.clone(), set)).unwrap();
    let recording = learn(first.seen.as_ref().unwrap());
    let again = simulate(&trial(scheduler, device, work(recording, mode))).unwrap();
    (first, again)
}

fn commands(record: &Record) -> Vec<(u64, u64, u32, Op)> {
    let of = |d: &DispatchPoint| (d.t, d.sector, d.sectors, d.op);
    record.dispatches.iter().map(of).collect()
}

/// The first command that differs, in its time as well if that matters.
fn differs(first: &Record, again: &Record, times: bool) -> Option<String> {
    let (a, b) = (commands(first), commands(again));
    let same = |i: usize| match (a.get(i), b.get(i)) {
        (Some(a), Some(b)) => (a.1, a.2, a.3) == (b.1, b.2, b.3) && (!times || a.0 == b.0),
        _ => false,
    };
    let at = (0..a.len().max(b.len())).find(|i| !same(*i))?;
    let near =
        |v: &[(u64, u64, u32, Op)]| format!("{:?}", &v[at.saturating_sub(2)..v.len().min(at + 3)]);
    Some(format!("command {at} of {} and {}: {} / {}", a.len(), b.len(), near(&a), near(&b)))
}

#[test]
fn a_reader_gives_the_same_order_again() {
    let mut wrong = Vec::new();
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "cfq", "deadline", "noop"] {
        for device in ["hdd-7200", "ssd-sata"] {
            for job in [
                "[a]\nrw=randread\nbs=4k\nnumber_ios=200\n",
                "[a]\nrw=randread\nbs=4k\nnumber_ios=100\nnumjobs=3\n",
                "[a]\nrw=randread\nbs=4k\nnumber_ios=300\nioengine=libaio\niodepth=8\n",
                "[a]\nrw=read\nbs=64k\nnumber_ios=200\n[b]\nrw=write\nbs=1m\nnumber_ios=50\noffset=50%\n",
                "[a]\nrw=randread\nnumber_ios=100\nthinktime=2ms\n[b]\nrw=randwrite\nioengine=libaio\niodepth=16\nnumber_ios=500\n",
            ] {
                let (first, again) = there_and_back(scheduler, device, job, Mode::Dependent);
                if let Some(words) = differs(&first, &again, true) {
                    wrong.push(format!("{scheduler} on {device}: {job}: {words}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Readers of 4 KiB, each of which waits for its reads.
fn readers(tasks: u64, ios: u64) -> Recording {
    let tables = Tables::default();
    let mut learner = Learner::default();
    for i in 0..ios {
        let at = i / tasks * 10_000_000;
        let mut io = Io::new(at, Op::Read, Name(0), i * 7_919 % 65_536 * 4096, 4096);
        (io.done, io.pid) = (Some(at + 6_000_000), (i % tasks) as u32 + 1);
        learner.push(&io, &tables).unwrap();
    }
    learner.finish(&tables)
}

#[test]
fn a_replay_allocates_nothing_for_an_io() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        for mode in [Mode::Dependent, Mode::AsRecorded, Mode::Closed(Some(4))] {
            let count = |ios| {
                let work = work(readers(8, ios), mode);
                let mut trial = trial(scheduler, catalogue::find("ssd-sata").unwrap(), work);
                (trial.tape, trial.collect.dispatches) = (None, false);
                let before = allocations();
                let record = simulate(&trial).unwrap();
                let took = allocations() - before;
                assert_eq!(record.jobs.iter().map(|j| j.read.ios).sum::<u64>(), ios);
                took
            };
            let (short, long) = (count(8_000), count(16_000));
            assert!(long < short + 100, "{scheduler} {mode}: {short} and {long} allocations");
        }
    }
}

/// A disk that is twice as slow makes what waits for it later, and leaves what does not at its times.
#[test]
fn what_waits_is_later_on_a_slow_disk() {
    let disk = |ms: u64| {
        let text = format!(
            "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns={}\npar=8\n[queue]\nqueue_depth=32\n",
            ms * 1_000_000
        );
        DeviceSpec::from_toml("constant", &text).unwrap()
    };
    let took = |ms, mode| {
        let record = simulate(&trial("none", disk(ms), work(readers(4, 400), mode))).unwrap();
        record.elapsed as f64 / 1e9
    };
    // 100 reads a task: 6 ms each and 4 ms of pauses, but for the last.
    assert!((took(6, Mode::Dependent) - 0.996).abs() < 1e-6);
    assert!((took(12, Mode::Dependent) - 1.596).abs() < 1e-6);
    assert!((took(12, Mode::AsRecorded) - 1.002).abs() < 1e-6);
    assert!((took(6, Mode::Scaled(0.5)) - 0.501).abs() < 1e-6);
    assert!((took(12, Mode::Closed(None)) - 1.2).abs() < 1e-6);
}

/// A reader as a recording beside a writer is what it is as a job beside it.
#[test]
fn a_recording_beside_a_job_is_a_job_beside_it() {
    let reader = "[a]\nrw=read:1m\nbs=4k\nnumber_ios=60\nthinktime=2ms\noffset=30%\n";
    let writer = "[b]\nrw=write\nbs=256k\nnumber_ios=300\n";
    for scheduler in ["none", "mq-deadline", "kyber", "deadline", "noop"] {
        for device in ["hdd-7200", "ssd-sata"] {
            let device = catalogue::find(device).unwrap();
            let jobs = |jobs: &str| {
                let text = format!("[global]\nfilename=/dev/d\ndirect=1\n{jobs}");
                let set = parse("job", &text, &NoLookup, &|_| Err(String::new()), &[]).unwrap();
                trial(scheduler, device.clone(), set)
            };
            let alone = simulate(&jobs(reader)).unwrap();
            let recording = learn(alone.seen.as_ref().unwrap());
            let both = simulate(&jobs(&format!("{reader}{writer}"))).unwrap();
            let mut beside = jobs(writer);
            beside.beside = Some(work(recording, Mode::Dependent));
            let beside = simulate(&beside).unwrap();
            let words = differs(&both, &beside, true);
            assert_eq!(words, None, "{scheduler} on {}", device.name);
            let named = |name: &str| beside.jobs.iter().find(|j| j.name.starts_with(name)).unwrap();
            assert_eq!(named("beside ").read.ios, 60);
            assert_eq!(named("beside ").read.clat, both.jobs[0].read.clat);
            assert_eq!(named("b").write.ios, 300);
        }
    }
}

/// Beside a program and beside jobs on files a recording keeps its I/Os, and waits longer than alone.
#[test]
fn a_recording_shares_the_disk_with_a_program() {
    let device = || catalogue::find("hdd-7200").unwrap();
    let program = Descriptor::find("fs-mark").unwrap();
    let given = [("n".to_string(), "200".to_string()), ("size".into(), "65536".into())];
    let params = Params::of(program, &given).unwrap();
    let text = "[f]\nrw=write\nsize=64m\nbs=64k\nend_fsync=1\n";
    let files = parse("job", text, &NoLookup, &|_| Err(String::new()), &[]).unwrap();
    let alone = simulate(&trial("none", device(), work(readers(2, 400), Mode::Dependent))).unwrap();
    let p99 = |r: &Record, name: &str| r.metrics.iter().find(|m| m.name == name).unwrap().value;
    for load in [Work::from(ProgramWork::new(program, params)), files.into()] {
        let mut beside = trial("none", device(), load);
        beside.beside = Some(work(readers(2, 400), Mode::Dependent));
        let beside = simulate(&beside).unwrap();
        let reads = beside.jobs.iter().filter(|j| j.name.starts_with("beside "));
        assert_eq!(reads.map(|j| j.read.ios).sum::<u64>(), 400);
        let own = beside.jobs.iter().filter(|j| !j.name.starts_with("beside "));
        assert!(own.map(|j| j.write.ios).sum::<u64>() > 0);
        let (shared, own) =
            (p99(&beside, "beside read p99 latency"), p99(&alone, "read p99 latency"));
        assert!(shared > own, "{shared} and {own} us");
    }
}

/// A chain that has issued its last I/O waits for no other task.
#[test]
fn a_task_may_end_before_a_commit_that_others_wait_for() {
    let mut tables = Tables::default();
    let names = ["db", "jbd2/sda-8", "reader"].map(|n| tables.tasks.of(n));
    let mut learner = Learner::default();
    let ms = 1_000_000;
    for (at, done, op, task) in [
        (0, 5 * ms, Op::Write, 0),
        (0, 90 * ms, Op::Read, 2),
        (5 * ms + 1_000, 9 * ms, Op::Write, 1),
        (9 * ms + 1_000, 12 * ms, Op::Write, 0),
    ] {
        let mut io = Io::new(at, op, Name(0), (task as u64 + 1) << 30, 4096);
        (io.done, io.pid, io.task, io.flags) =
            (Some(done), task as u32 + 1, names[task], Flags::SYNC);
        learner.push(&io, &tables).unwrap();
    }
    let recording = learner.finish(&tables);
    assert!(recording.steps.iter().any(|s| s.awaited));
    for scheduler in ["none", "bfq"] {
        let device = catalogue::find("hdd-7200").unwrap();
        let work = work(recording.clone(), Mode::Dependent);
        let record = simulate(&trial(scheduler, device, work)).unwrap();
        assert_eq!(record.jobs.iter().map(|j| j.read.ios + j.write.ios).sum::<u64>(), 4);
    }
}

/// One job of a random load. Batches are left out: where no call takes time, a trace does not show which I/Os came in one
/// call. So are discards, which wait for each other's calls, not for I/Os.
fn job() -> impl Strategy<Value = String> {
    let rw = prop::sample::select(vec!["read", "write", "randread", "randwrite", "randrw"]);
    let bs = prop::sample::select(vec!["4k", "16k", "64k", "1m"]);
    let think = prop::sample::select(vec!["", "thinktime=500us\n", "thinktime=3ms\n"]);
    let sync = prop::sample::select(vec!["", "", "fsync=4\n"]);
    let prio = prop::sample::select(vec!["", "", "prio=0\n", "prio=7\n", "prioclass=3\n"]);
    let delay = prop::sample::select(vec!["", "startdelay=7ms\n"]);
    (rw, bs, 1u32..=16, 1u32..=80, (think, sync, prio, delay)).prop_map(
        |(rw, bs, depth, ios, (think, sync, prio, delay))| {
            let engine = match depth {
                1..=4 => "ioengine=psync\n".to_string(),
                _ => format!("ioengine=libaio\niodepth={depth}\n"),
            };
            format!("rw={rw}\nbs={bs}\nnumber_ios={ios}\n{engine}{think}{sync}{prio}{delay}")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// A recording of a simulated run, replayed under the same scheduler on the same disk, gives back its
    /// commands, to the nanosecond; under BFQ in their order.
    #[test]
    fn a_recording_of_a_run_gives_it_back(
        jobs in prop::collection::vec(job(), 1..=4),
        scheduler in prop::sample::select(vec!["none", "mq-deadline", "kyber", "bfq", "cfq", "deadline", "noop"]),
        device in prop::sample::select(vec!["hdd-7200", "ssd-sata", "nvme"]),
    ) {
        let named = jobs.iter().enumerate();
        let text: String = named.map(|(i, j)| format!("[j{i}]\noffset={}%\nsize=15%\n{j}", i * 20 + 1)).collect();
        // A trace begins with its first I/O, and where a disk's head is depends on the time.
        let text = text.replacen("startdelay", if jobs[0].contains("startdelay") { "# startdelay" } else { "startdelay" }, 1);
        // A job that thinks ends later than its last I/O. These schedulers notice, and a trace does not have it.
        let waits = ["bfq", "cfq"].contains(&scheduler);
        let text = if waits { text.replace("thinktime", "# thinktime") } else { text };
        // Where the second piece of an I/O sleeps for a tag of BFQ, what goes on at that instant may have another order.
        let text = if scheduler == "bfq" { text.replace("bs=1m", "bs=64k") } else { text };
        let (first, again) = there_and_back(scheduler, device, &text, Mode::Dependent);
        prop_assert_eq!(differs(&first, &again, scheduler != "bfq"), None, "{} on {}:\n{}", scheduler, device, text);
    }
}
