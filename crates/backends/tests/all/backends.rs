//! The protocol on the mock, and trials on the running kernel.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests of what touches the machine"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use iosched_backends::backend::{Emulated, LiveOptions, Real, refusals};
use iosched_backends::emulate::{self, EmulatedDisk};
use iosched_backends::startup::{self, How, Stage};
use iosched_backends::target::{Leave, Target};
use iosched_backends::validity::Thresholds;
use iosched_backends::{Error, ExitClass, Result, SysRoot, discover};
use iosched_block::KernelProfile;
use iosched_devices::DeviceSpec;
use iosched_experiment::{
    BackendKind, Collect, FioWork, Mix, ProgramWork, Record, Startup, Status, Steady, Trial,
    TrialId, Work, choose_scheduler,
};
use iosched_lab::machine::Interrupt;
use iosched_lab::machine::protocol::{Outcome, Plan, Sink, run};
use iosched_lab::machine::{Backend, Fault, Mock};
use iosched_schedulers::registry::Registry;
use iosched_workloads::fio::{NoLookup, parse};
use iosched_workloads::programs::Descriptor;

const DISK: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"256MiB\"\nlat_ns=4000000\npar=2\n\
                    [queue]\nmax_hw_sectors_kb=64\nqueue_depth=4\nrotational=true\n";

pub(crate) fn trial(scheduler: &str, job: &str) -> Trial {
    let device = DeviceSpec::from_toml("slow", DISK).unwrap();
    let kernel = KernelProfile::find("6.12").unwrap();
    let none = |_: &str| Err("no includes".to_string());
    let jobs = parse("t.fio", job, &NoLookup, &none, &[]).unwrap();
    let choice = choose_scheduler(scheduler, &[], &kernel, Registry::builtin()).unwrap();
    Trial {
        id: TrialId {
            experiment: "t".into(),
            device: device.name.clone(),
            scheduler: scheduler.into(),
            workload: "t".into(),
            ..TrialId::default()
        },
        cpus: 2,
        collect: Collect::default(),
        ..Trial::new(device, choice, kernel, jobs)
    }
}

const JOB: &str = "[r]\nfilename=/dev/disk\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\n\
                   runtime=1\ntime_based\n";

fn cells() -> Vec<Trial> {
    ["none", "mq-deadline", "kyber"].map(|s| trial(s, JOB)).to_vec()
}

#[derive(Default)]
struct Memory {
    records: Vec<Record>,
    asked: u32,
    confident_after: u32,
}

impl Sink for Memory {
    fn has(&mut self, id: &TrialId) -> bool {
        self.records.iter().any(|r| r.trial == *id && r.status == Status::Complete)
    }

    fn store(&mut self, record: Record) -> Result<()> {
        self.records.push(record);
        Ok(())
    }

    fn confident(&mut self) -> bool {
        self.asked += 1;
        self.asked > self.confident_after
    }
}

fn plan(rounds: u32) -> Plan {
    Plan { rounds, max_rounds: rounds, warm_up: false, ..Plan::default() }
}

fn go(mock: &mut Mock, plan: &Plan, sink: &mut Memory) -> Result<Outcome> {
    run(mock, &cells(), plan, &Interrupt::default(), sink)
}

#[test]
fn every_cell_runs_once_a_round_with_the_rounds_seed() {
    let (mut mock, mut sink) = (Mock::default(), Memory::default());
    let outcome = go(&mut mock, &Plan { warm_up: true, ..plan(4) }, &mut sink).unwrap();
    assert_eq!((outcome.complete, outcome.rounds), (12, 4));
    assert!(!mock.prepared, "cleaned up");
    for round in 1..=4 {
        let of: Vec<_> = sink.records.iter().filter(|r| r.trial.repetition == round).collect();
        assert_eq!(of.len(), 3);
        let seeds: BTreeSet<u64> = of.iter().map(|r| r.trial.seed).collect();
        assert_eq!(seeds.len(), 1, "paired runs share the load");
    }
}

/// A backend that remembers what it was asked to run.
#[derive(Default)]
struct Watching(Mock, Vec<Trial>);

impl Backend for Watching {
    fn kind(&self) -> BackendKind {
        self.0.kind()
    }
    fn requirements(&self) -> Vec<iosched_lab::machine::Requirement> {
        self.0.requirements()
    }
    fn prepare(&mut self, trial: &Trial) -> Result<()> {
        self.0.prepare(trial)
    }
    fn run(&mut self, trial: &Trial) -> Result<Record> {
        self.1.push(trial.clone());
        self.0.run(trial)
    }
    fn cleanup(&mut self) -> Result<()> {
        self.0.cleanup()
    }
}

#[test]
fn rounds_have_the_seeds_of_the_simulators_repetitions() {
    let cells = |own: bool| {
        let job = if own { format!("{JOB}randseed=7\n") } else { JOB.into() };
        let mut cell = trial("none", &job);
        cell.work = Work::Fio(FioWork::repeated(cell.jobs().clone()));
        [cell]
    };
    let ran = |own, rounds| {
        let (mut backend, mut sink) = (Watching::default(), Memory::default());
        let plan = Plan { seed: 40, ..plan(rounds) };
        run(&mut backend, &cells(own), &plan, &Interrupt::default(), &mut sink).unwrap();
        let of = |t: &Trial| {
            (t.jobs().jobs[0].randseed.unwrap(), t.jobs().jobs[0].randrepeat, t.id.seed)
        };
        backend.1.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(ran(false, 3), [(40, false, 40), (41, false, 41), (42, false, 42)]);
    assert_eq!(ran(false, 1), [(40, true, 40)]);
    assert_eq!(ran(true, 2), [(7, true, 40), (7, true, 41)]);
}

#[test]
fn a_drive_is_written_and_brought_into_its_steady_state_first() {
    let (mut backend, mut sink) = (Watching::default(), Memory::default());
    let steady = Some(Steady { precondition: 3, max_rounds: 9 });
    let plan = Plan { steady, ..plan(2) };
    run(&mut backend, &[trial("kyber", JOB)], &plan, &Interrupt::default(), &mut sink).unwrap();
    let fill = &backend.1[0].jobs().jobs[0];
    assert!(fill.pattern.write && !fill.pattern.random && fill.loops == 3, "{fill:?}");
    // The mock's rates differ by less than 5 %, so the first window is steady.
    assert_eq!(backend.1.len(), 1 + 5 + 2);
    assert_eq!(sink.records.len(), 2);
    for r in &sink.records {
        assert!(r.provenance["steady_state"].starts_with("steady: range"), "{:?}", r.provenance);
        assert_eq!(r.provenance["steady_state.iops"].split(' ').count(), 5);
        assert!(r.warnings.is_empty());
    }
    let e = run(
        &mut Mock::with(vec![Fault::Fail(1)]),
        &[trial("kyber", JOB)],
        &plan,
        &Interrupt::default(),
        &mut Memory::default(),
    );
    assert!(e.is_err(), "a device that cannot be written cannot be preconditioned");
}

#[test]
fn an_interrupted_experiment_goes_on_where_it_stopped() {
    let (mut whole, mut parts) = (Memory::default(), Memory::default());
    go(&mut Mock::default(), &plan(3), &mut whole).unwrap();
    let mut first = Mock::with(vec![Fault::Interrupt(5)]);
    let e = go(&mut first, &plan(3), &mut parts).unwrap_err();
    assert!(matches!(e, Error::Interrupted { .. }));
    assert!(!first.prepared, "cleaned up after the interrupt");
    assert_eq!(parts.records.len(), 4);
    let outcome = go(&mut Mock::default(), &plan(3), &mut parts).unwrap();
    assert_eq!((outcome.kept, outcome.complete), (4, 5));
    let key = |r: &Record| (r.trial.repetition, r.trial.scheduler.clone());
    whole.records.sort_by_key(key);
    parts.records.sort_by_key(key);
    assert_eq!(whole.records, parts.records);
}

#[test]
fn a_failed_run_does_not_stop_the_others_and_an_invalid_one_is_repeated() {
    let mut sink = Memory::default();
    let mut mock = Mock::with(vec![Fault::Fail(2), Fault::Invalid(3)]);
    let outcome = go(&mut mock, &plan(1), &mut sink).unwrap();
    assert_eq!((outcome.complete, outcome.failed, outcome.invalid), (2, 1, 1));
    assert_eq!(sink.records.len(), 4, "the invalid run is kept, marked");
    assert_eq!(
        sink.records[3].warnings[0].message,
        "attempt 1 was invalid: the mock was told to be invalid"
    );
    assert!(matches!(&sink.records[1].status, Status::Failed(why) if why.contains("told to fail")));
}

#[test]
fn a_failed_warm_up_is_said_by_the_first_run_of_its_cell_only() {
    let mut sink = Memory::default();
    let mut mock = Mock::with(vec![Fault::Fail(2)]);
    let outcome = go(&mut mock, &Plan { warm_up: true, ..plan(2) }, &mut sink).unwrap();
    assert_eq!((outcome.complete, outcome.failed), (6, 0));
    let told: Vec<_> =
        sink.records.iter().filter(|r| r.warnings.iter().any(|w| w.code == "warm_up")).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].trial.repetition, 1);
    let words = &told[0].warnings[0].message;
    assert!(words.starts_with("the warm-up failed: ") && words.contains("told to fail"), "{words}");
}

#[test]
fn rounds_go_on_until_confident_or_the_maximum() {
    let many = Plan { rounds: 2, max_rounds: 10, warm_up: false, ..Plan::default() };
    let mut sink = Memory { confident_after: 3, ..Memory::default() };
    assert_eq!(go(&mut Mock::default(), &many, &mut sink).unwrap().rounds, 5);
    let mut never = Memory { confident_after: 99, ..Memory::default() };
    assert_eq!(go(&mut Mock::default(), &many, &mut never).unwrap().rounds, 10);
}

#[test]
fn a_missing_requirement_stops_before_the_first_run() {
    let mut sink = Memory::default();
    let e = go(&mut Mock::with(vec![Fault::NotRoot]), &plan(1), &mut sink).unwrap_err();
    assert_eq!(e.class(), ExitClass::Missing);
    assert!(sink.records.is_empty());
}

/// The machine for one test at a time: a child that another test is about to start has copies of this one's descriptors
/// until it runs, and a disk that somebody has claimed is in use. `None`, with a word, where a test cannot run.
pub(crate) fn machine() -> Option<std::sync::MutexGuard<'static, ()>> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    if let Some(why) = skip() {
        println!("SKIPPED: {why}");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn skip() -> Option<&'static str> {
    if !nix::unistd::geteuid().is_root() {
        return Some("no root");
    }
    if !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
        return Some("no /dev/fuse or no /dev/loop-control");
    }
    iosched_backends::load::fio::installed().is_err().then_some("no fio")
}

/// The tests share two busy CPUs with other programs, so no run is called invalid for that.
pub(crate) fn tolerant(dir: &Path) -> LiveOptions {
    LiveOptions {
        state_dir: dir.into(),
        thresholds: Thresholds {
            foreign_cpu: 1.0,
            steal: 1.0,
            memory_pressure: 10.0,
            late_share: f64::INFINITY,
            ..Thresholds::default()
        },
        settle: Duration::from_millis(100),
        trace: true,
        ..LiveOptions::default()
    }
}

/// It ran to its end. On a busy machine the disk may have been late; then the record says so.
pub(crate) fn ran(record: &Record) {
    let late = |why: &String| why.starts_with("the disk's commands took");
    let fine = match &record.status {
        Status::Complete => true,
        Status::Invalid(why) => late(why),
        Status::Failed(_) => false,
    };
    assert!(fine, "{}: {:?}", record.trial.scheduler, record.status);
}

#[test]
fn an_emulated_disk_serves_fio_under_every_scheduler_of_the_kernel() {
    let Some(_turn) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut backend = Emulated::new(tolerant(dir.path()), emulate::Options::default());
    let first = trial("none", JOB);
    match backend.prepare(&first) {
        // A program with a higher real-time priority has the CPUs.
        Err(e @ Error::TooFast { .. }) => return println!("SKIPPED: {e}"),
        other => other.unwrap(),
    }
    let name = backend.disk().unwrap().name();
    let offered = discover::QueueState::read(&SysRoot::default(), &name).offered;
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        if !offered.iter().any(|s| s == scheduler) {
            println!("SKIPPED: this kernel has no {scheduler}");
            continue;
        }
        let cell = trial(scheduler, JOB);
        let record = backend.run(&cell).unwrap();
        ran(&record);
        assert_eq!(record.backend, BackendKind::Emulated);
        let read = &record.jobs[0].read;
        assert!(read.ios > 20, "{scheduler}: {}", read.ios);
        // Two served at once, 4 ms each: what the model cannot do must not come out.
        assert!(read.iops() < 520.0, "{scheduler}: {}", read.iops());
        assert!(read.clat.percentile(50.0) >= 4_000_000, "{scheduler}");
        assert!(record.device.max_in_flight <= 4, "{scheduler}: {}", record.device.max_in_flight);
        // Neighbours may have been merged into one command.
        let d = &record.device;
        assert!(d.commands[0] + d.merges[0] >= read.ios, "{scheduler}: {d:?}, {} I/Os", read.ios);
        assert_eq!(record.provenance["scheduler"], scheduler);
        assert!(!record.dispatches.is_empty(), "{scheduler}: traced");
    }
    backend.cleanup().unwrap();
    assert!(!Path::new("/sys/block").join(&name).exists());
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "no state file stays");
}

fn bash(load: &str, mib: u64) -> Startup {
    let command = ["bash", "-c", ":"].map(String::from).to_vec();
    let load = Mix::parse(load).unwrap();
    Startup { file_bytes: mib << 20, idle: 1, ..Startup::new(command, load) }
}

/// A trial of a program.
pub(crate) fn program(scheduler: &str, line: &str) -> Trial {
    let (program, params) = Descriptor::from_command_line(line).unwrap();
    Trial { work: ProgramWork::new(program, params).into(), ..trial(scheduler, JOB) }
}

#[test]
fn too_little_room_is_told_before_anything_is_made() {
    let own = Vec::new();
    let say = |kind, trial: &Trial| {
        let found = refusals(kind, &[trial], &own, &Interrupt::default());
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    // Two files of 700 MiB: the file system is large enough, but not for its journal and what is kept for root as well.
    let disk = DISK.replace("256MiB", "8GiB");
    let device = DeviceSpec::from_toml("slow", &disk).unwrap();
    let mut copy = Trial { device, ..program("none", "file-copy 700M") };
    copy.host.size = Some(1480 << 20);
    for (fs, fits) in [("ext4", 1700), ("xfs", 1600), ("ext3", 1700)] {
        copy.host.set_filesystem(fs).unwrap();
        copy.host.size = Some(1420 << 20);
        let said = say(BackendKind::Emulated, &copy);
        assert!(
            said.contains("file-copy needs at least 1.37 GiB, and the emulated disk"),
            "{fs}: {said}"
        );
        copy.host.size = Some(fits << 20);
        assert_eq!(say(BackendKind::Emulated, &copy), "", "{fs}");
    }
    // More than any disk has.
    let dir = tempfile::tempdir().unwrap();
    let mut files = trial("none", "[r]\ndirectory=/data\nrw=randread\nsize=900t\n");
    files.device.name = dir.path().display().to_string();
    let said = say(BackendKind::Real, &files);
    assert!(said.contains("t needs at least 900 TiB, and"), "{said}");
    files.work = trial("none", "[r]\ndirectory=/data\nrw=randread\nsize=4k\n").work;
    assert_eq!(say(BackendKind::Real, &files), "");
}

#[test]
fn a_program_runs_on_a_file_system_of_the_emulated_disk() {
    let Some(_turn) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut backend = Emulated::new(tolerant(dir.path()), emulate::Options::default());
    let cell = program("none", "fsops over_fsync . 2 10 4096 1M");
    match backend.prepare(&cell) {
        Err(e @ Error::TooFast { .. }) => return println!("SKIPPED: {e}"),
        other => other.unwrap(),
    }
    let name = backend.disk().unwrap().name();
    for round in 0..2 {
        let record = backend.run(&cell).unwrap();
        ran(&record);
        assert_eq!(record.jobs.len(), 3, "round {round}");
        let (writes, syncs): (u64, u64) =
            record.jobs.iter().fold((0, 0), |n, j| (n.0 + j.write.ios, n.1 + j.sync.ios));
        assert_eq!((writes, syncs), (20, 20), "round {round}");
        assert!(record.cpu().total() > 0, "core time is known");
        let mean = record.metrics.iter().find(|m| m.name.ends_with("mean latency")).unwrap();
        assert!(mean.value >= 4000.0, "the disk takes 4 ms: {mean:?}");
        assert!(record.device.commands[1] >= 20, "{:?}", record.device);
        assert_eq!(record.provenance["program"], "fsops");
    }
    // A job on the bare disk, and then a program again.
    ran(&backend.run(&trial("none", JOB)).unwrap());
    ran(&backend.run(&cell).unwrap());
    backend.cleanup().unwrap();
    assert!(!Path::new("/sys/block").join(&name).exists());
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "no state file stays");
}

#[test]
fn a_program_runs_in_a_directory_that_goes_with_it() {
    let Some(_turn) = machine() else { return };
    let (state, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(dir.path().join("precious"), "kept").unwrap();
    let name = dir.path().to_str().unwrap();
    let mut backend = Real::new(name, Leave::default(), tolerant(state.path()));
    let cell = program("none", "fsops create_fsync . 2 5 4096 0");
    if let Err(e) = backend.prepare(&cell) {
        return println!("SKIPPED: {e}");
    }
    let record = backend.run(&cell).unwrap();
    assert!(!matches!(record.status, Status::Failed(_)), "{:?}", record.status);
    assert_eq!(record.jobs.iter().map(|j| j.write.ios).sum::<u64>(), 10);
    let made = || std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(made(), 2, "beside the user's files while the experiment runs");
    let failed = backend.run(&program("none", "rd pread no/f 4096 0 4096 1 8192")).unwrap_err();
    assert!(failed.to_string().contains("ENOENT"), "{failed}");
    backend.cleanup().unwrap();
    assert_eq!(made(), 1);
    assert!(std::fs::read_dir(state.path()).unwrap().next().is_none(), "no state file stays");
}

#[test]
fn a_command_starts_cold_beside_readers() {
    let Some(_turn) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut backend = Emulated::new(tolerant(dir.path()), emulate::Options::default());
    let start = |scheduler: &str, what: Startup| Trial {
        work: Work::Startup(what),
        ..trial(scheduler, JOB)
    };
    let record = backend.run(&start("none", bash("2r-seq", 32))).unwrap();
    ran(&record);
    let by = |r: &Record, n: &str| r.metrics.iter().find(|m| m.name == n).unwrap().clone();
    assert!(by(&record, "startup_idle").value > 0.004, "a cold start reads from the disk");
    assert!(!by(&record, "startup_time").censored && by(&record, "throughput").value > 0.0);
    assert_eq!(record.trace.len(), record.dispatches.len(), "a short trace is its own picture");
    // The next start needs more files; what is there stays.
    let hurried = Startup { limit: 1_000_000, ..bash("3r-rand", 32) };
    let e = backend.run(&start("mq-deadline", hurried)).unwrap_err();
    assert!(e.to_string().contains("without load"), "an idle start takes longer: {e}");
    let record = backend.run(&start("mq-deadline", bash("3r-rand", 32))).unwrap();
    assert_eq!(record.provenance["scheduler"], "mq-deadline");
    // What programs expect around them is there, and what they are told to run comes along.
    let words = ["bash", "-c", "echo >/dev/null && test -r /proc/self/stat && [ $$ != 1 ] && $0"];
    let command = words.into_iter().chain(["/bin/true"]).map(String::from).collect();
    let what = Startup { command, ..bash("0r", 32) };
    ran(&backend.run(&start("none", what)).unwrap());
    let e = backend
        .run(&start("none", Startup::new(vec!["no-such".into()], Mix::parse("0r").unwrap())));
    assert!(matches!(e, Err(Error::Input { .. })), "{e:?}");
    // Jobs need the disk itself, so the file system goes.
    ran(&backend.run(&trial("none", JOB)).unwrap());
    let name = backend.disk().unwrap().name();
    backend.cleanup().unwrap();
    assert!(!Path::new("/sys/block").join(&name).exists());
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "no state file stays");
}

#[test]
fn the_limit_of_a_start_marks_it() {
    let Some(_turn) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let spec = DeviceSpec::from_toml("slow", DISK).unwrap();
    let options = emulate::Options { state_dir: dir.path().into(), ..emulate::Options::default() };
    let disk = EmulatedDisk::start(&spec, &options).unwrap();
    let mut stage = Stage::on_emulated(&disk, &bash("2r-seq", 32), &Interrupt::default()).unwrap();
    let what = Startup { limit: 1_000_000, ..bash("2r-seq", 32) };
    let interrupt = Interrupt::default();
    stage.provide(&what, &interrupt).unwrap();
    disk.reset().unwrap();
    let how = How { what: &what, scratch: dir.path(), urgent: true, interrupt: &interrupt };
    let start = startup::measure(&stage, &how).unwrap();
    assert!(start.censored, "{start:?}");
    drop(stage);
    disk.stop().unwrap();
}

#[test]
fn devices_with_something_on_them_are_refused() {
    let Some(_turn) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let spec = DeviceSpec::from_toml("slow", DISK).unwrap();
    let options = emulate::Options { state_dir: dir.path().into(), ..emulate::Options::default() };
    let disk = EmulatedDisk::start(&spec, &options).unwrap();
    let (root, node, no) = (SysRoot::default(), disk.node(), Leave::default());
    let node = node.to_str().unwrap();
    let claim = |leave: &Leave| Target::find(&root, node).unwrap().claim(&root, leave);
    // Blank; on a machine with processes that may not be looked into that is not all there is to know.
    if let Err(e) = claim(&no) {
        assert!(e.to_string().contains("may not be looked into"), "{e}");
    }
    let stage = Stage::on_emulated(&disk, &bash("2r-seq", 32), &Interrupt::default()).unwrap();
    let named = Leave { destroy_data: Some(node.into()), ..Leave::default() };
    let e = claim(&named).unwrap_err();
    assert!(matches!(&e, Error::InUse { .. }), "mounted, so not even with leave: {e:?}");
    drop(stage);
    let e = claim(&no).unwrap_err();
    assert!(e.to_string().contains("a file system (ext4)"), "{e}");
    assert!(e.help().contains("--destroy-data=/dev/loop"), "{}", e.help());
    claim(&named).unwrap();
    disk.stop().unwrap();
}
