//! A scheduler from outside of the workspace, made known at run time, runs beside Linux's own.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use iosched_experiment::{Experiment, Record, Sources};
use iosched_lab::machine::Interrupt;
use iosched_lab::{Error, Job, Options, Watch, run};
use iosched_schedulers::registry::Registry;
use iosched_schedulers::{
    BlockPath, BuildArgs, Ctx, Descriptor, Dispatch, Facts, Generation, KernelVersion, Position,
    Scheduler, Tunable,
};
use iosched_types::ReqId;

struct Quiet;

impl Watch for Quiet {}

/// The newest request goes first.
struct Newest {
    waiting: Vec<ReqId>,
    room: i64,
    seen: Arc<AtomicUsize>,
}

impl Scheduler for Newest {
    fn insert(&mut self, _: &mut Ctx<'_>, req: ReqId, _: Position) {
        self.waiting.push(req);
        self.seen.fetch_add(1, Ordering::Relaxed);
    }

    fn has_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, _: u16) -> Dispatch {
        self.force_dispatch(ctx).map_or(Dispatch::Empty, Dispatch::Request)
    }

    fn force_dispatch(&mut self, _: &mut Ctx<'_>) -> Option<ReqId> {
        self.waiting.pop()
    }

    fn absorbed(&mut self, _: &mut Ctx<'_>, _: ReqId, gone: ReqId) {
        self.waiting.retain(|r| *r != gone);
    }

    fn set_tunable(&mut self, _: &mut Ctx<'_>, _: &str, value: i64) {
        self.room = value;
    }

    fn tunable(&self, _: &str) -> Option<i64> {
        Some(self.room)
    }
}

/// Counts the requests of all its schedulers: a constructor may keep something of its own.
fn newest(seen: &Arc<AtomicUsize>) -> &'static Descriptor {
    let seen = seen.clone();
    let build = move |args: &BuildArgs<'_>| -> Box<dyn Scheduler> {
        let room = args.tunables.get("room");
        Box::new(Newest { waiting: Vec::new(), room, seen: seen.clone() })
    };
    Box::leak(Box::new(Descriptor {
        name: "newest",
        aliases: &[],
        summary: "The newest request.",
        path: BlockPath::Mq,
        facts: Facts::USUAL,
        generations: &[Generation {
            index: 0,
            name: "1",
            first: KernelVersion(4, 0, 0),
            last: None,
            summary: "The only one.",
        }],
        tunables: &[Tunable {
            name: "room",
            unit: "requests",
            default_text: "8",
            default: |_| 8,
            min: 1,
            max: 9,
            generations: &[0],
            help: "Nothing.",
        }],
        build: Box::leak(Box::new(build)),
    }))
}

const EXPERIMENT: &str = "name = \"e\"\ndevices = [\"hdd-7200\"]\nschedulers = [\"none\", { name = \"newest\", tunables = { room = 3 } }, \"mq-deadline\"]\n\
     workloads = [{ job = \"[a]\\nrw=randread\\nbs=4k\\ndirect=1\\nioengine=libaio\\niodepth=64\\nnumber_ios=2000\\nfilename=/dev/x\\n\" }]\n";

fn records(registry: &Registry) -> Result<Vec<Record>, String> {
    let e = Experiment::from_toml("e.toml", EXPERIMENT).unwrap();
    let trials = iosched_experiment::plan(&e, &Sources { registry, ..Sources::default() });
    let options = Options {
        threads: Some(2),
        interrupt: Interrupt::default(),
        machine: None,
        warm_up: false,
        allow_noise: false,
    };
    let trials = trials.map_err(|e| e[0].to_string())?;
    let job = Job { experiment: &e, trials: &trials, storing: None };
    Ok(run(job, &options, &Quiet, |_| Ok::<(), Error>(())).unwrap())
}

#[test]
fn a_scheduler_that_is_added_at_run_time_runs_beside_those_of_linux() {
    let (mut registry, seen) = (Registry::default(), Arc::default());
    registry.add(newest(&seen));
    let records = records(&registry).unwrap();
    let longest = |name: &str| {
        let r = records.iter().find(|r| r.trial.scheduler.starts_with(name)).unwrap();
        assert_eq!(r.jobs[0].read.ios, 2000, "{name}");
        r.jobs[0].read.clat.max()
    };
    assert!((1900..=2000).contains(&seen.load(Ordering::Relaxed)), "{seen:?}: some go directly");
    let (own, linux) = (longest("newest"), longest("mq-deadline"));
    assert!(own > 3 * linux, "the oldest wait to the end: {own}, {linux} ns");
    longest("none");
}

#[test]
fn without_it_its_name_is_unknown() {
    let text = records(Registry::builtin()).unwrap_err();
    assert!(text.contains("unknown scheduler \"newest\""), "{text}");
}
