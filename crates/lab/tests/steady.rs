//! What a run chooses itself: how long a load runs before it is measured, and how often it is repeated.
#![allow(clippy::unwrap_used, reason = "tests")]

use iosched_experiment::until::{MIN_RUNS, MOST_CHOSEN};
use iosched_experiment::{Experiment, Record, Sources, Trial, WarmUp};
use iosched_lab::machine::Interrupt;
use iosched_lab::{Error, Job, Options, Storing, Watch, run};
use iosched_results::store::Store;
use iosched_results::verdict::{UNSTEADY, WARMED_UP};
use iosched_types::units::SEC;

struct Quiet;

impl Watch for Quiet {}

fn options(threads: u16) -> Options {
    Options {
        threads: Some(threads),
        interrupt: Interrupt::default(),
        machine: None,
        warm_up: false,
        allow_noise: false,
    }
}

const WRITERS: &str = include_str!("../../../examples/jobs/random-writers.fio");

fn planned(device: &str, job: &str, more: &str) -> (Experiment, Vec<Trial>) {
    let text = format!(
        "name = \"e\"\ndevices = [\"{device}\"]\nschedulers = [\"none\", \"mq-deadline\"]\n\
         workloads = [{{ name = \"w\", job = '''\n{job}''' }}]\n{more}\n"
    );
    let e = Experiment::from_toml("e.toml", &text).unwrap();
    let trials = iosched_experiment::plan(&e, &Sources::default()).unwrap();
    (e, trials)
}

fn records(e: &Experiment, trials: &[Trial], threads: u16) -> Vec<Record> {
    let job = Job { experiment: e, trials, storing: None };
    run(job, &options(threads), &Quiet, |_| Ok::<(), Error>(())).unwrap()
}

/// I/Os a second of all jobs, in the mean over the runs of a scheduler.
fn rate(all: &[Record], scheduler: &str) -> f64 {
    let mine: Vec<&Record> =
        all.iter().filter(|r| r.trial.scheduler.starts_with(scheduler)).collect();
    let of = |r: &&Record| {
        let of = |d: &iosched_experiment::DirStats| match d.runtime {
            0 => 0.0,
            ns => d.ios as f64 * 1e9 / ns as f64,
        };
        r.jobs.iter().map(|j| of(&j.read) + of(&j.write)).sum::<f64>()
    };
    mine.iter().map(of).sum::<f64>() / mine.len() as f64
}

#[test]
fn figures_do_not_depend_on_how_long_a_load_is_measured() {
    let with = |seconds: u32, runs: u32| {
        let more = format!("runs = {runs}\nwarm_up = \"steady\"\n[set]\nruntime = {seconds}\n");
        let (e, trials) = planned("hdd-7200", WRITERS, &more);
        records(&e, &trials, 2)
    };
    let (short, usual, long) = (with(5, 8), with(30, 3), with(120, 1));
    for scheduler in ["none", "mq-deadline"] {
        let all = [&short, &usual, &long].map(|r| rate(r, scheduler));
        for a in all {
            assert!((a / all[2] - 1.0).abs() < 0.05, "{scheduler}: {all:?}");
        }
    }
    let warm: Vec<&String> = long.iter().map(|r| &r.provenance[WARMED_UP]).collect();
    assert!(short.iter().all(|r| r.provenance[WARMED_UP] == *warm[0]), "{warm:?}");
    assert!(long.iter().all(|r| !r.provenance.contains_key(UNSTEADY)));
}

#[test]
fn without_a_warm_up_the_first_seconds_count() {
    let (e, trials) = planned("hdd-7200", WRITERS, "warm_up = 0\n[set]\nruntime = 5\n");
    assert_eq!(e.warm_up, Some(WarmUp::None));
    let fresh = records(&e, &trials, 2);
    for (r, t) in fresh.iter().zip(&trials) {
        assert_eq!(r.jobs.len(), iosched_sim::simulate(t).unwrap().jobs.len());
        assert!(!r.provenance.contains_key(WARMED_UP));
    }
    assert!(rate(&fresh, "none") > 1000.0, "the write cache takes them");
}

/// The SLC cache of a drive takes half a minute to fill: it is full before the load is measured.
#[test]
fn a_cache_that_fills_is_full_before_the_load_is_measured() {
    let job = "[w]\nfilename=/dev/x\ndirect=1\nrw=write\nbs=1m\nioengine=libaio\niodepth=8\nruntime=5\ntime_based\n";
    let (e, trials) = planned("samsung-980-pro", job, "warm_up = \"steady\"\n");
    for r in records(&e, &trials, 2) {
        let ms: u64 = r.provenance[WARMED_UP].parse().unwrap();
        assert!(ms >= 30_000 && !r.provenance.contains_key(UNSTEADY), "{:?}", r.provenance);
    }
}

#[test]
fn jobs_with_an_end_are_measured_whole() {
    let job = "[a]\nfilename=/dev/x\ndirect=1\nrw=randread\nbs=4k\nsize=1m\n";
    let (e, trials) = planned("hdd-7200", job, "warm_up = \"steady\"\n");
    for (r, t) in records(&e, &trials, 1).iter().zip(&trials) {
        assert_eq!(r.jobs[0].read, iosched_sim::simulate(t).unwrap().jobs[0].read);
    }
}

#[test]
fn the_runs_that_fit_are_the_same_with_any_threads() {
    let job = "[a]\nfilename=/dev/x\ndirect=1\nrw=randread\nbs=4k\nruntime=1\ntime_based\n";
    let (mut e, trials) = planned("hdd-7200", job, "runs = 3\n");
    let of = |e: &Experiment, threads| {
        let all = records(e, &trials, threads);
        (all.iter().map(|r| r.trial.repetition).max().unwrap(), all.len())
    };
    e.budget = Some(10 * SEC);
    assert_eq!(of(&e, 1), (MOST_CHOSEN, 24));
    e.budget = Some(1);
    assert_eq!(of(&e, 1), (MIN_RUNS, 6), "three at least");
    // Two trials of 100 I/Os or so take 5 ms each, on two cores.
    e.budget = Some(32_000_000);
    let some = of(&e, 1);
    assert!((4..MOST_CHOSEN).contains(&some.0), "{some:?}");
    assert_eq!(of(&e, 2), some);
}

/// How many there are to be is known after the first: an interrupted start goes on to the same number.
#[test]
fn an_interrupted_start_goes_on_to_the_same_number() {
    let job = "[a]\nfilename=/dev/x\ndirect=1\nrw=randread\nbs=4k\nruntime=1\ntime_based\n";
    let (mut e, trials) = planned("hdd-7200", job, "runs = 3\n");
    e.budget = Some(32_000_000);
    let whole = records(&e, &trials, 2);
    let dir = tempfile::tempdir().unwrap();
    let go = |most: usize| {
        let store = Store::open(&dir.path().join("r.db")).unwrap();
        let storing = Storing::begin(store, (&e, "words"), &trials, &[], &mut |_| ()).unwrap();
        let kept = storing.kept();
        let mut seen = 0;
        let job = Job { experiment: &e, trials: &trials, storing: Some(storing) };
        let result = run(job, &options(2), &Quiet, |_| {
            seen += 1;
            if seen > most { Err(Error::Threads("power cut".into())) } else { Ok(()) }
        });
        (result, kept)
    };
    go(whole.len() - 2).0.unwrap_err();
    let (again, kept) = go(99);
    assert!(kept > 6 && kept < whole.len(), "{kept}");
    let ids = |all: &[Record]| all.iter().map(|r| r.trial.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&again.unwrap()), ids(&whole));
}

/// A warm-up changes no pause of a job: with 10 ms of thinking it cannot make more than 100 I/Os a second.
#[test]
fn pauses_last_as_long_after_a_warm_up() {
    let job = "[t]\nfilename=/dev/x\ndirect=1\nrw=randread\nbs=4k\nthinktime=10ms\nruntime=4\ntime_based\n";
    for warm_up in ["0", "\"4s\"", "\"20s\""] {
        let (e, trials) = planned("ssd-sata", job, &format!("warm_up = {warm_up}\n"));
        let rate = rate(&records(&e, &trials, 1), "none");
        assert!((98.0..100.0).contains(&rate), "{warm_up}: {rate}");
    }
}

/// All jobs are measured in the same time. A job that starves has its long waits in its figures, and no time without the others.
#[test]
fn a_starved_job_is_measured_beside_the_others() {
    let job = "[global]\nfilename=/dev/x\ndirect=1\nioengine=libaio\nruntime=10\ntime_based\n\
               [copy]\nrw=write\nbs=1m\niodepth=32\n\
               [guest]\nnumjobs=4\nrw=randwrite\nbs=4k\niodepth=1\noffset=50%\n";
    let (e, trials) = planned("ssd-sata", job, "warm_up = \"1s\"\n");
    let guests = |scheduler: &str| -> u64 {
        let all = records(&e, &trials, 1);
        let r = all.iter().find(|r| r.trial.scheduler.starts_with(scheduler)).unwrap();
        r.jobs.iter().filter(|j| j.name == "guest").map(|j| j.write.ios).sum()
    };
    assert!(guests("mq-deadline") * 20 < guests("none"), "{}", guests("mq-deadline"));
}

/// One trial under none, after a warm-up of two seconds.
fn warmed(device: &str, job: &str) -> Record {
    let job = format!("[global]\nfilename=/dev/x\ndirect=1\nioengine=libaio\n{job}");
    let (e, trials) = planned(device, &job, "warm_up = \"2s\"\n");
    records(&e, &trials[..1], 1).remove(0)
}

/// A reader ends with the job that ends all: it is measured from the end of the warm-up to there.
#[test]
fn an_end_of_all_ends_what_is_measured() {
    let r = warmed(
        "ssd-sata",
        "exitall\n[r]\nrw=randread\nbs=4k\nruntime=60\ntime_based\n[w]\nrw=write\nbs=4k\nsize=4m\nrate_iops=512\n",
    );
    let reader = r.jobs.iter().find(|j| j.name == "r").unwrap();
    let seconds = reader.read.runtime as f64 / 1e9;
    assert!((1.9..2.2).contains(&seconds), "{seconds} s: 1,024 writes at 512 a second");
    assert!(reader.read.ios > 5_000, "{}", reader.read.ios);
    let measured = r.measured() as f64 / 1e9;
    assert!((1.9..2.2).contains(&measured), "{measured} of {} ns", r.elapsed);
}

/// A stream that comes to the end of the device while it warms up goes on at its beginning.
#[test]
fn a_stream_is_measured_though_the_device_ended_in_the_warm_up() {
    let r = warmed("fixed", "[r]\nrw=read\nbs=1m\niodepth=8\noffset=99%\nruntime=3\n");
    let read = &r.jobs[0].read;
    assert!(read.ios > 0 && (2.9..3.1).contains(&(read.runtime as f64 / 1e9)), "{read:?}");
}

/// A budget shortens what is measured after a warm-up of a stated length, too.
#[test]
fn a_budget_counts_with_a_stated_warm_up() {
    let job = "[a]\nfilename=/dev/x\ndirect=1\nioengine=libaio\niodepth=32\nrw=randread\nbs=4k\nruntime=60\ntime_based\n";
    let (mut e, trials) = planned("ssd-sata", job, "warm_up = \"1s\"\n");
    e.budget = Some(SEC);
    let all = records(&e, &trials, 2);
    assert!(all.iter().all(|r| r.measured() < 20 * SEC), "{}", all[0].measured());
    assert!(all.iter().all(|r| r.provenance.contains_key(iosched_results::verdict::SHORTENED)));
}
