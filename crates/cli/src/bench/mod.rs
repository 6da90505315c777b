//! `iosched bench`: how fast the simulator is, each figure beside a check of the same run.

mod calls;
mod host;
mod plot;
mod replay;

use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::{DeviceSpec, truth};
use iosched_experiment::{Record, Trial, TrialId, choose_scheduler, label};
use iosched_report::terminal::{Align, Cell, Grid};
use iosched_schedulers::registry::{self, Registry};
use iosched_types::nearest::did_you_mean;
use iosched_types::units::{show_bytes, show_count};
use iosched_workloads::fio::{JobSet, NoLookup, parse};
use serde::Serialize;

use crate::args::{BenchArgs, Format};
use crate::fail::{Failure, Outcome, code};
use crate::files::{note, print, print_json};
use crate::progress;

/// The reference devices: name here, name in `data/truth/devices.toml`.
const DEVICES: [(&str, &str); 3] = [("fixed", "fixed"), ("hdd", "hdd7k_ncq"), ("ssd", "ssd_nvme")];
const DEPTHS: [u32; 3] = [1, 32, 256];
/// Pending requests of the memory measurement.
const PENDING: u64 = 1_000_000;

/// One line of the benchmark.
#[derive(Serialize)]
struct Row {
    scheduler: String,
    device: String,
    processes: u32,
    depth: u32,
    requests: u64,
    requests_per_second: f64,
    ns_per_request: f64,
    checks: String,
}

pub(crate) fn bench(args: &BenchArgs) -> Outcome {
    if args.host {
        let trial = trial("none", reference("fixed")?, jobs(Load::new(1, 1, 1))?)?;
        return host::bench(&trial, args);
    }
    let families: Vec<&str> = registry::SCHEDULERS.iter().map(|d| d.name).collect();
    let schedulers = chosen("scheduler", &args.scheduler, &families)?;
    let names = DEVICES.map(|d| d.0);
    let devices = chosen("device", &args.device, &names)?;
    let depths = if args.depth.is_empty() { DEPTHS.to_vec() } else { args.depth.clone() };
    let axis = picture_axis(args, &depths)?;
    if let Some(file) = &args.svg {
        crate::files::no_disk(file)?;
        crate::files::writable(file)?;
    }
    let rows = measure_all(args, &schedulers, &devices, &depths)?;
    match args.format {
        Format::Json => print_json(&rows)?,
        Format::Table => {
            print(&table(&rows))?;
            if !args.no_memory {
                print(&memory(&schedulers)?)?;
            }
        }
    }
    if let (Some(file), Some(axis)) = (&args.svg, axis) {
        std::fs::write(file, plot::svg(&rows, axis))
            .with_context(|| format!("writing {}", file.display()))?;
        note(&format!("the picture is in {}", file.display()));
    }
    let wrong: Vec<String> = rows
        .iter()
        .filter(|r| r.checks != "ok")
        .map(|r| {
            let Row { scheduler, device, processes, depth, checks, .. } = r;
            format!("{scheduler} on {device}, {processes} processes at depth {depth}: {checks}")
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(Failure { code: code::FAILED, messages: wrong }) }
}

/// The axis of the picture, if one is wanted: processes or depths.
fn picture_axis(args: &BenchArgs, depths: &[u32]) -> Outcome<Option<plot::Axis>> {
    if args.svg.is_none() {
        return Ok(None);
    }
    let axis = plot::Axis::of(&args.processes, depths);
    let help = "for example --depth 8 --processes 8,100,1000";
    let message = "--svg needs several --processes at one --depth, or several depths";
    axis.map(Some).ok_or_else(|| Failure::with_help(message, help))
}

fn measure_all(
    args: &BenchArgs,
    schedulers: &[&str],
    devices: &[&str],
    depths: &[u32],
) -> Outcome<Vec<Row>> {
    let number = schedulers.len() * devices.len() * depths.len() * args.processes.len();
    let bar = progress::bar(number, false);
    let mut rows = Vec::with_capacity(number);
    for scheduler in schedulers {
        for device in devices {
            for depth in depths {
                for n in &args.processes {
                    bar.set_message(format!("{scheduler} on {device}"));
                    rows.push(measure(scheduler, device, Load::new(*n, *depth, args.requests))?);
                    bar.inc(iosched_lab::STEPS);
                }
            }
        }
    }
    bar.finish_and_clear();
    // Calls that memory answers reach neither a scheduler nor a device.
    if args.scheduler.is_empty() && args.device.is_empty() {
        let trial = trial("none", reference("fixed")?, jobs(Load::new(1, 1, 1))?)?;
        rows.push(calls::measure(&trial, args.requests.max(100))?);
        rows.push(replay::measure(args.requests.max(100))?);
    }
    Ok(rows)
}

fn chosen<'a>(what: &str, wanted: &'a [String], known: &[&'a str]) -> Outcome<Vec<&'a str>> {
    if wanted.is_empty() {
        return Ok(known.to_vec());
    }
    for w in wanted {
        let family = w.split('@').next().unwrap_or_default();
        if !known.contains(&family) {
            let near = did_you_mean(w, known.iter().copied());
            let help =
                if near.is_empty() { format!("known are {}", known.join(", ")) } else { near };
            return Err(Failure::with_help(format!("unknown {what} \"{w}\""), help));
        }
    }
    Ok(wanted.iter().map(String::as_str).collect())
}

/// A reference device of the kernel measurements.
fn reference(name: &str) -> Outcome<DeviceSpec> {
    let text = include_str!("../../../../data/truth/devices.toml");
    let wanted = DEVICES.iter().find(|d| d.0 == name).map_or(name, |d| d.1);
    let all = truth::parse("devices.toml", text)?;
    let found = all.into_iter().find(|d| d.spec.name == wanted);
    found.map(|d| d.spec).ok_or_else(|| Failure::input(format!("no reference device {wanted}")))
}

/// Who reads how much.
#[derive(Clone, Copy)]
struct Load {
    processes: u32,
    depth: u32,
    /// Requests of each process.
    each: u64,
}

impl Load {
    /// A load of about this many requests, the same number for each process.
    fn new(processes: u32, depth: u32, requests: u64) -> Load {
        Load { processes, depth, each: (requests / u64::from(processes)).max(1) }
    }

    fn requests(self) -> u64 {
        self.each * u64::from(self.processes)
    }
}

/// Random 4 KiB reads of asynchronous processes.
fn jobs(load: Load) -> Outcome<JobSet> {
    let Load { processes, depth, each } = load;
    let text = format!(
        "[bench]\nfilename=/dev/disk\ndirect=1\nioengine=libaio\nrw=randread\nbs=4k\nnorandommap\n\
         iodepth={depth}\nnumber_ios={each}\nio_size=1p\n"
    );
    let mut set = parse("bench.fio", &text, &NoLookup, &|_| Err("no includes".into()), &[])?;
    // As `numjobs` does it, without fio's limit of 4096 jobs.
    if let [job] = set.jobs.as_slice() {
        let clone = |i: u32| {
            let mut job = job.clone();
            (job.thread, job.subjob) = (job.thread + i, i);
            job
        };
        set.jobs = (0..processes).map(clone).collect();
    }
    Ok(set)
}

/// A kernel in which I/Os cost no CPU time. So queues and device alone bound every simulated request.
fn profile(version: &str) -> Outcome<KernelProfile> {
    let mut kernel = KernelProfile::find(version).map_err(Failure::input)?;
    kernel.cpu.model = CpuModel::Zero;
    Ok(kernel)
}

fn trial(scheduler: &str, device: DeviceSpec, jobs: JobSet) -> Outcome<Trial> {
    let newest = profile("6.12")?;
    // A removed scheduler is measured on the last kernel that had it.
    let (kernel, choice) = match choose_scheduler(scheduler, &[], &newest, Registry::builtin()) {
        Ok(choice) => (newest, choice),
        Err(_) => {
            let family = scheduler.split('@').next().unwrap_or_default();
            let d = registry::family(family).map_err(Failure::input)?;
            let last = d.generations.last().map_or("", |g| g.name);
            let kernel = profile("4.12")?;
            let choice =
                choose_scheduler(&format!("{}@{last}", d.name), &[], &kernel, Registry::builtin());
            (kernel, choice.map_err(Failure::input)?)
        }
    };
    Ok(Trial {
        id: TrialId {
            experiment: "bench".into(),
            device: device.name.clone(),
            scheduler: label(&choice),
            kernel: kernel.version.clone(),
            workload: "bench".into(),
            repetition: 1,
            seed: 1,
        },
        settings: vec![("wbt_lat_usec".into(), 0)],
        first_run_late: false,
        ..Trial::new(device, choice, kernel, jobs)
    })
}

/// All requested I/Os must have been issued, completed, counted and transferred.
fn check(r: &Record, requests: u64) -> String {
    let ios: u64 = r.jobs.iter().map(|j| j.read.ios).sum();
    let counted: u64 = r.jobs.iter().map(|j| j.read.clat.count()).sum();
    let completed: u64 = r.device.commands.iter().sum();
    let issued = r.scheduler.dispatched;
    let through = completed + r.device.merges.iter().sum::<u64>();
    let bytes = r.device.bytes[0];
    if ios == requests
        && counted == requests
        && through == requests
        && issued == completed
        && bytes == requests * 4096
    {
        return "ok".into();
    }
    format!(
        "{requests} wanted, {ios} done, {counted} in the histogram, {issued} issued, {completed} completed, \
         {through} with merges, {bytes} bytes"
    )
}

/// Simulates a load. Returns how many seconds it took, and the record.
fn timed(scheduler: &str, device: &str, load: Load) -> Outcome<(f64, Record)> {
    let trial = trial(scheduler, reference(device)?, jobs(load)?)?;
    let begin = Instant::now();
    let result = iosched_sim::simulate(&trial);
    let seconds = begin.elapsed().as_secs_f64();
    let record =
        result.map_err(|e| Failure::new(code::FAILED, format!("{scheduler} on {device}: {e}")))?;
    Ok((seconds, record))
}

/// Times a load, less a run of the same processes with one request each, because making ten thousand processes takes
/// longer than many runs.
fn measure(scheduler: &str, device: &str, load: Load) -> Outcome<Row> {
    let (mut seconds, record) = timed(scheduler, device, load)?;
    let requests = load.requests();
    let mut counted = requests;
    if load.each > 1 {
        let (start, _) = timed(scheduler, device, Load { each: 1, ..load })?;
        seconds -= start;
        counted -= u64::from(load.processes);
    }
    let each = seconds.max(1e-9) / counted as f64;
    Ok(Row {
        scheduler: scheduler.into(),
        device: device.into(),
        processes: load.processes,
        depth: load.depth,
        requests,
        requests_per_second: each.recip().round(),
        ns_per_request: (each * 1e10).round() / 10.0,
        checks: check(&record, requests),
    })
}

fn table(rows: &[Row]) -> String {
    let mut grid = Grid::new()
        .column("scheduler", Align::Left)
        .column("device", Align::Left)
        .column("processes", Align::Right)
        .column("depth", Align::Right)
        .column("requests", Align::Right)
        .column("requests/s", Align::Right)
        .column("ns/request", Align::Right)
        .column("checks", Align::Left);
    for r in rows {
        grid.row(vec![
            Cell::new(&r.scheduler),
            Cell::new(&r.device),
            Cell::new(show_count(f64::from(r.processes))),
            Cell::new(r.depth.to_string()),
            Cell::new(show_count(r.requests as f64)),
            Cell::new(show_count(r.requests_per_second)),
            Cell::new(format!("{:.1}", r.ns_per_request)),
            Cell::new(&r.checks),
        ]);
    }
    grid.render(usize::MAX, false)
}

/// Peak memory of a queue in which a million requests wait, measured in a process for each scheduler.
fn memory(schedulers: &[&str]) -> Outcome<String> {
    let program = std::env::current_exe().context("finding the program's own path")?;
    let mut out = format!("\nMemory with {} pending requests\n", show_count(PENDING as f64));
    for s in schedulers {
        let child = Command::new(&program)
            .args(["bench-memory", s, &PENDING.to_string()])
            .output()
            .with_context(|| format!("starting {}", program.display()))?;
        let text = String::from_utf8_lossy(&child.stdout);
        match text.trim().parse::<u64>() {
            Ok(bytes) => {
                let (all, each) = (show_bytes(bytes as f64), bytes / PENDING);
                out.push_str(&format!("{s:<14} {all:>9}  {each} bytes a request\n"));
            }
            Err(_) => {
                let why = String::from_utf8_lossy(&child.stderr);
                note(&format!("warning: memory of {s} was not measured: {}", why.trim()));
            }
        }
    }
    Ok(out)
}

/// The child: fills a queue, and prints by how much its memory grew at most.
pub(crate) fn memory_child(scheduler: &str, requests: u64) -> Outcome {
    let depth = u32::try_from(requests).unwrap_or(u32::MAX);
    let mut trial = trial(scheduler, reference("fixed")?, jobs(Load::new(1, depth, requests))?)?;
    trial.settings.push(("nr_requests".into(), i64::try_from(requests).unwrap_or(i64::MAX)));
    let before = status("VmRSS:")?;
    let record = iosched_sim::simulate(&trial).map_err(|e| Failure::new(code::FAILED, e))?;
    let after = status("VmHWM:")?;
    let checks = check(&record, requests);
    if checks != "ok" {
        return Err(Failure::new(code::FAILED, checks));
    }
    print(&format!("{}\n", after.saturating_sub(before)))
}

/// A field of `/proc/self/status` in bytes.
fn status(field: &str) -> Outcome<u64> {
    let text = std::fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = text.lines().find_map(|l| l.strip_prefix(field));
    let kb = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kb.map(|k| k * 1024)
        .ok_or_else(|| Failure::new(code::MISSING, format!("no {field} in /proc/self/status")))
}
