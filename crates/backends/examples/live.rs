//! The smallest program around the library: emulates a disk, restores, inspects. The tests that kill
//! things use it; `iosched` itself does the same with more words.
//!
//! ```text
//! live emulate FILE.toml [SIZE]   serve a device file until a signal comes
//! live switch DISK SCHEDULER      switch, wait for a signal, put back
//! live restore                    undo what killed runs left behind
//! live find PATH                  show the stack below a path
//! live doctor [PATH]              show the machine
//! live rounds FILE.toml|/dev/DISK JOB.fio ROUNDS   every scheduler of the kernel, in
//!                                 rounds; an emulated disk beside the simulator
//! ```
//! `LIVE_STATE` names the directory of state files, `LIVE_TRANSPORT` the way to the kernel; with
//! `LIVE_UNCHECKED` no model is too fast.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program")]

use std::path::{Path, PathBuf};

use iosched_backends::backend::{Emulated, LiveOptions, Real};
use iosched_backends::emulate::{EmulatedDisk, Options, Transport};
use iosched_backends::guardian::{self, GuardianCommand};
use iosched_backends::target::Leave;
use iosched_backends::{
    Error, Result, SysRoot, discover, doctor, restore, state, switch, validate,
};
use iosched_block::KernelProfile;
use iosched_experiment::{Collect, Record, Trial, TrialId, choose_scheduler};
use iosched_lab::machine::protocol::{self, Plan};
use iosched_lab::machine::{Interrupt, Sim};
use iosched_schedulers::registry::Registry;
use iosched_workloads::fio::NoLookup;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Err(e) = run(&args) {
        eprintln!("error: {e}");
        if !e.help().is_empty() {
            eprintln!("  = help: {}", e.help());
        }
        std::process::exit(e.class() as i32);
    }
}

fn state_dir() -> PathBuf {
    std::env::var_os("LIVE_STATE").map_or_else(|| state::STATE_DIR.into(), PathBuf::from)
}

fn run(args: &[&str]) -> Result<()> {
    let guardian = Some(GuardianCommand::this_program("guardian")?);
    if let ["guardian", file] = args {
        return guardian::main(Path::new(file));
    }
    iosched_backends::made::keep_others_out();
    let interrupt =
        Interrupt::install().map_err(|e| Error::io("catching signals for", "live", e))?;
    match args {
        ["emulate", file, size @ ..] => {
            let text = std::fs::read_to_string(file).map_err(|e| Error::io("reading", *file, e))?;
            let spec = iosched_devices::DeviceSpec::from_toml(file, &text)
                .map_err(|e| Error::input(e.to_string(), ""))?;
            let bytes = size.first().and_then(|s| iosched_types::units::parse_bytes(s));
            let options = Options {
                bytes,
                state_dir: state_dir(),
                guardian,
                interrupt: interrupt.clone(),
                // For measuring: the way and the refusals.
                transport: std::env::var("LIVE_TRANSPORT").ok().and_then(|w| Transport::parse(&w)),
                unchecked: std::env::var_os("LIVE_UNCHECKED").is_some(),
                ..Options::default()
            };
            let disk = EmulatedDisk::start(&spec, &options)?;
            println!("{}", disk.node().display());
            println!("{}", disk.self_check_result().render());
            disk.notes().iter().for_each(|n| println!("note: {n}"));
            wait_for_signal(&interrupt);
            println!("{:?}", disk.served());
            println!("awake before answers, in all: {:?}", disk.waking());
            disk.stop()
        }
        ["switch", device, scheduler] => {
            let options = switch::Options { state_dir: state_dir(), guardian };
            let session = switch::Session::begin(device, &options)?;
            println!("{}", session.set_scheduler(scheduler)?);
            wait_for_signal(&interrupt);
            session.finish()?.iter().for_each(|d| println!("{d}"));
            Ok(())
        }
        ["restore"] => restore::restore_all(&state_dir()).into_iter().try_for_each(|(name, r)| {
            println!("{name}: {:?}", r?);
            Ok(())
        }),
        ["find", path] => {
            print!("{}", discover::find(&SysRoot::default(), path)?.render());
            Ok(())
        }
        ["doctor", target @ ..] => {
            print!(
                "{}",
                doctor::examine(target.first().copied(), &Interrupt::default())?.render(80)
            );
            Ok(())
        }
        ["rounds", target, job, n] => {
            rounds(target, job, n.parse().unwrap_or(1), guardian, &interrupt)
        }
        _ => Err(Error::input("usage: live emulate|switch|restore|find …", "")),
    }
}

/// Stands in for the store: prints the outcome of every record at once.
#[derive(Default)]
struct Lines {
    records: Vec<Record>,
}

impl protocol::Sink for Lines {
    fn has(&mut self, _id: &TrialId) -> bool {
        false
    }

    fn store(&mut self, record: Record) -> Result<()> {
        let iops: f64 = record.jobs.iter().map(|j| j.read.iops() + j.write.iops()).sum();
        let id = &record.trial;
        println!("{} {:<12} {iops:.1} IOPS {:?}", id.repetition, id.scheduler, record.status);
        self.records.push(record);
        Ok(())
    }
}

fn rounds(
    target: &str,
    job: &str,
    rounds: u32,
    guardian: Option<GuardianCommand>,
    interrupt: &Interrupt,
) -> Result<()> {
    let read = |p: &str| std::fs::read_to_string(p).map_err(|e| Error::io("reading", p, e));
    let bad = |e: &dyn std::fmt::Display| Error::input(e.to_string(), "");
    let options = LiveOptions {
        state_dir: state_dir(),
        guardian,
        interrupt: interrupt.clone(),
        trace: true,
        settle: std::time::Duration::from_millis(200),
        ..LiveOptions::default()
    };
    let real = target.starts_with("/dev/");
    let text = if real { FIXED.to_string() } else { read(target)? };
    let device = iosched_devices::DeviceSpec::from_toml(target, &text).map_err(|e| bad(&e))?;
    let none = |_: &str| Err("no includes".to_string());
    let jobs = iosched_workloads::fio::parse(job, &read(job)?, &NoLookup, &none, &[])
        .map_err(|e| e.first().map_or_else(|| bad(&"bad job"), |d| bad(d)))?;
    let kernel = KernelProfile::find("6.12").map_err(|e| bad(&e))?;
    let mut cells = Vec::new();
    for name in ["none", "mq-deadline", "kyber", "bfq"] {
        let Ok(scheduler) = choose_scheduler(name, &[], &kernel, Registry::builtin()) else {
            continue;
        };
        cells.push(Trial {
            id: TrialId { scheduler: name.into(), ..TrialId::default() },
            cpus: 2,
            collect: Collect::default(),
            ..Trial::new(device.clone(), scheduler, kernel.clone(), jobs.clone())
        });
    }
    let plan = Plan { rounds, max_rounds: rounds, warm_up: false, retries: 0, ..Plan::default() };
    let mut lines = Lines::default();
    let outcome = if real {
        let mut backend = Real::new(target, Leave::default(), options);
        protocol::run(&mut backend, &cells, &plan, interrupt, &mut lines)?
    } else {
        let mut backend = Emulated::new(options, Options::default());
        let outcome = protocol::run(&mut backend, &cells, &plan, interrupt, &mut lines)?;
        let mut sim = Lines::default();
        protocol::run(&mut Sim::default(), &cells, &plan, interrupt, &mut sim)?;
        let rows = validate::rows(&sim.records, &lines.records);
        let ends = |v: &[f64]| {
            let ends = v.iter().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
            (ends.0, ends.1)
        };
        print!("{}", validate::render(&rows, &ends));
        for (name, tau) in validate::rank_agreement(&rows, 0.02) {
            println!("{name}: rank agreement {tau:?}");
        }
        outcome
    };
    println!("{outcome:?}");
    Ok(())
}

/// A trial names a device; a real one is what it is.
const FIXED: &str = "title=\"real\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns=1\n";

fn wait_for_signal(interrupt: &Interrupt) {
    while interrupt.check().is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
