//! Starts of programs beside loads: a folder with `startup.json`.
//!
//! Its rows are of the block layer alone. A program is a list of groups of reads, and what runs beside it readers and one
//! process that writes as a flusher does (`README.md` of the folder). Neither is a fio job.

mod machine;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use iosched_devices::{TruthDevice, truth};
use iosched_experiment::{Trial, TrialId, choose_scheduler, label};
use iosched_schedulers::registry::Registry;
use iosched_types::units::MS;
use iosched_types::{Bytes, Diagnostic, Nanos, SECTOR};
use iosched_workloads::fio::JobSet;

use super::dispatch::{LoggedCommand, Parting, first_difference, logged};
use super::{Driver, Taken, json_error};
use crate::SimError;
use machine::{Load, Machine};

/// Facts of a folder without `devices.toml`, as its README gives them.
const DEVICES: &str = "[hdd7k_ncq]\nqueue_depth = 32\nnr_requests = 128\nruntime_s = 71\nkind = \"hdd\"\n\
    cap = 68719476736\ndepth = 32\novh_ns = 100000\nseek_a = 500000\nseek_b = 8000000\nseek_c = 6000000\n\
    rev_ns = 8333333\nrot = \"angle\"\nspt = 2441\nbw = 150000000\nsptf = 1\nage_ns = 500000000\nflush_ns = 1000000\n";

const S: Nanos = 1000 * MS;
/// When the program begins.
const BEGINS: Nanos = 10 * S;
/// A start that takes longer is one without an end.
const PATIENCE: Nanos = 60 * S;
/// A longer read would not be one bio.
const LARGEST: Bytes = 512 << 10;

/// A row of `startup.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct StartRow {
    /// Device.
    pub device: String,
    /// The program that starts.
    pub program: String,
    /// What runs beside it: `10r-seq` is ten sequential readers, `5r5w-rand` five random readers and as many files written.
    pub load: String,
    /// Scheduler as the kernel names it.
    pub scheduler: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Seconds from the program's first read to the end of its last one.
    pub start_s: StartTime,
    /// Mean time of its reads, in ms.
    #[serde(default)]
    pub read_mean_ms: f64,
    /// Reads that it made.
    #[serde(default)]
    pub reads: u64,
}

/// How long a start took.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Time", into = "Time")]
pub enum StartTime {
    /// Seconds.
    Seconds(f64),
    /// More than a minute.
    TooLong,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Time {
    Seconds(f64),
    Word(String),
}

impl TryFrom<Time> for StartTime {
    type Error = String;

    fn try_from(t: Time) -> Result<StartTime, String> {
        match t {
            Time::Seconds(s) => Ok(StartTime::Seconds(s)),
            Time::Word(w) if w == "X" => Ok(StartTime::TooLong),
            Time::Word(w) => Err(format!("start_s is \"{w}\": seconds or \"X\" are expected")),
        }
    }
}

impl From<StartTime> for Time {
    fn from(t: StartTime) -> Time {
        match t {
            StartTime::Seconds(s) => Time::Seconds(s),
            StartTime::TooLong => Time::Word("X".into()),
        }
    }
}

impl StartTime {
    /// Whether another time is the same within a share of this one; too long is as long as too long.
    #[must_use]
    pub fn is_within(self, share: f64, other: StartTime) -> bool {
        match (self, other) {
            (StartTime::Seconds(a), StartTime::Seconds(b)) => (b - a).abs() <= share * a,
            (a, b) => a == b,
        }
    }
}

impl std::fmt::Display for StartTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartTime::Seconds(s) => write!(f, "{s:.3}"),
            StartTime::TooLong => f.write_str("X"),
        }
    }
}

/// Thinking, then reads that are issued together: offsets and lengths.
pub(crate) type Group = (Nanos, Vec<(Bytes, Bytes)>);

/// A folder of starts as text.
#[derive(Debug)]
pub struct StartFolder {
    devices: Vec<TruthDevice>,
    programs: BTreeMap<String, Vec<Group>>,
    /// Rows.
    pub rows: Vec<StartRow>,
    taken: Taken,
}

/// A row and our run of it.
#[derive(Debug)]
pub struct StartCase<'a> {
    /// The kernel's row.
    pub row: &'a StartRow,
    /// Ours, or why there is none.
    pub start: Result<Start<'a>, String>,
}

/// The start of a program beside a load.
#[derive(Debug)]
pub struct Start<'a> {
    trial: Trial,
    program: &'a [Group],
    load: Load,
}

/// What a start came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Started {
    /// How long it took.
    pub start_s: StartTime,
    /// Mean time of the program's reads, in ms.
    pub read_mean_ms: f64,
    /// Reads that ended.
    pub reads: u64,
}

impl StartFolder {
    /// Parses the parts. `programs` are (file name, text) of `programs/NAME.REPETITION.json`. Without `devices` and `taken` they
    /// are those that the README of the folder names.
    ///
    /// # Errors
    /// Where a file is wrong.
    pub fn parse(
        rows: (&str, &str),
        programs: Vec<(String, String)>,
        devices: Option<(&str, &str)>,
        taken: Option<(&str, &str)>,
    ) -> Result<StartFolder, Diagnostic> {
        #[derive(Deserialize)]
        struct Rows {
            rows: Vec<StartRow>,
        }
        let all: Rows = serde_json::from_str(rows.1).map_err(|e| {
            json_error(rows.0, rows.1, &e).with_help(
                "expected {\"rows\": [{device, program, load, scheduler, repetition, start_s}, …]}",
            )
        })?;
        let program = |(file, text): (String, String)| {
            let groups: Vec<Group> = serde_json::from_str(&text).map_err(|e| {
                json_error(&file, &text, &e)
                    .with_help("expected a list of [think_ns, [[offset, length], …]]")
            })?;
            let name = file.rsplit('/').next().unwrap_or(&file).trim_end_matches(".json");
            Ok((name.to_string(), groups))
        };
        let programs = programs.into_iter().map(program).collect::<Result<_, Diagnostic>>()?;
        let (file, text) = devices.unwrap_or(("devices.toml", DEVICES));
        let devices = truth::parse(file, text)?;
        let taken = taken.map(|(file, text)| Taken::parse(file, text)).transpose()?;
        let taken = taken.unwrap_or(Taken {
            kernel: "3.14".into(),
            hz: Some(250),
            driver: Driver::Scsi,
            start_ns: 0,
            ..Taken::default()
        });
        Ok(StartFolder { devices, programs, rows: all.rows, taken })
    }

    /// Every row with our run.
    #[must_use]
    pub fn plan(&self) -> Vec<StartCase<'_>> {
        self.rows.iter().map(|row| StartCase { row, start: self.start(row) }).collect()
    }

    fn start(&self, row: &StartRow) -> Result<Start<'_>, String> {
        let device = self.devices.iter().find(|d| d.spec.name == row.device);
        let device = device.ok_or_else(|| format!("devices.toml has no [{}]", row.device))?;
        let name = format!("{}.{}", row.program, row.repetition);
        let program =
            self.programs.get(&name).ok_or_else(|| format!("no file programs/{name}.json"))?;
        check(program, device.spec.capacity())
            .map_err(|why| format!("programs/{name}.json {why}"))?;
        let load = Load::parse(&row.load, row.repetition)?;
        if load.end() > device.spec.capacity() {
            return Err(format!("load {} needs more room than {} has", row.load, row.device));
        }
        let kernel = self.taken.profile()?;
        let scheduler = self.taken.scheduler(&row.scheduler);
        let scheduler = choose_scheduler(scheduler, &[], &kernel, Registry::builtin())
            .map_err(|e| e.to_string())?;
        let id = TrialId {
            experiment: "validate".into(),
            device: row.device.clone(),
            scheduler: label(&scheduler),
            kernel: kernel.version.clone(),
            workload: format!("{} {}", row.program, row.load),
            repetition: row.repetition,
            seed: u64::from(row.repetition),
        };
        let settings = vec![("nr_requests".to_string(), i64::from(device.nr_requests))];
        let trial = Trial {
            id,
            settings,
            ..Trial::new(device.spec.clone(), scheduler, kernel, JobSet::default())
        };
        Ok(Start { trial, program, load })
    }
}

/// Whether a disk of this size can serve a program's reads.
fn check(program: &[Group], capacity: Bytes) -> Result<(), String> {
    let reads = || program.iter().flat_map(|g| &g.1);
    if reads().any(|(at, len)| at.saturating_add(*len) > capacity) {
        return Err("reads behind the end of the disk".into());
    }
    if reads().any(|(at, len)| at % SECTOR + len % SECTOR > 0 || !(1..=LARGEST).contains(len)) {
        return Err(format!("has a read that is not 1 to {} sectors", LARGEST / SECTOR));
    }
    let most = Load::MOST_READS;
    match program.iter().map(|g| g.1.len()).find(|n| *n == 0 || *n > most) {
        Some(0) => Err("has a group that reads nothing".into()),
        Some(n) => Err(format!("has a group of {n} reads: {most} at most")),
        None if program.is_empty() => Err("reads nothing".into()),
        None => Ok(()),
    }
}

impl StartCase<'_> {
    /// `PROGRAM.LOAD.SCHEDULER`, as logs are named.
    #[must_use]
    pub fn name(&self) -> String {
        let StartRow { program, load, scheduler, .. } = self.row;
        format!("{program}.{load}.{scheduler}")
    }
}

impl Start<'_> {
    /// Runs the load, and the program beside it until it has started or has taken too long.
    ///
    /// # Errors
    /// See [`crate::simulate`].
    pub fn run(&self) -> Result<Started, SimError> {
        let mut machine = self.machine()?;
        machine.run(&mut |_| ControlFlow::Continue(()));
        let (took, reads, waited) = machine.started();
        let start_s = match took {
            Some(t) if t <= PATIENCE => StartTime::Seconds(t as f64 / S as f64),
            _ => StartTime::TooLong,
        };
        let read_mean_ms = waited as f64 / reads.max(1) as f64 / MS as f64;
        Ok(Started { start_s, read_mean_ms, reads })
    }

    /// Compares our commands from the program's begin on with a log, which has those from then on.
    ///
    /// # Errors
    /// See [`crate::simulate`].
    pub fn beside_log(&self, kernel: &[LoggedCommand]) -> Result<Parting, SimError> {
        let mut machine = self.machine()?;
        machine.queue.out_mut().issues = Some(Vec::new());
        let last = kernel.last().map_or(BEGINS, |c| c.at);
        machine.run(&mut |now| match now > last + S {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        let issues = machine.queue.out_mut().issues.take().unwrap_or_default();
        let ours = issues.iter().filter(|i| i.t >= BEGINS).take(kernel.len());
        let ours: Vec<LoggedCommand> = ours.map(logged).collect();
        let first = first_difference(kernel, &ours);
        Ok(Parting { tag_start: 0, ours, first })
    }

    fn machine(&self) -> Result<Machine<'_>, SimError> {
        let tasks = self.load.tasks();
        let queue = crate::stack::stack(&self.trial, &tasks, &[Default::default()])?;
        Ok(Machine::new(queue, &self.load, self.program))
    }
}
