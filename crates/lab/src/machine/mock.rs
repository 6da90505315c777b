//! A backend that makes up figures, the same ones for the same trial. It serves to test everything around it.

use iosched_experiment::{
    BackendKind, DirStats, JobRecord, Moments, Record, SCHEMA, Status, Trial,
};
use iosched_types::units::SEC;

use super::{Backend, Error, Requirement, Result};

/// What the mock should do wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The n-th run (from 1) fails.
    Fail(u64),
    /// The n-th run is invalid.
    Invalid(u64),
    /// Root is missing.
    NotRoot,
    /// The n-th run is interrupted.
    Interrupt(u64),
}

/// The mock.
#[derive(Clone, Debug, Default)]
pub struct Mock {
    faults: Vec<Fault>,
    runs: u64,
    /// Whether `prepare` was called without `cleanup` since.
    pub prepared: bool,
}

impl Mock {
    /// A mock with faults.
    #[must_use]
    pub fn with(faults: Vec<Fault>) -> Self {
        Mock { faults, ..Mock::default() }
    }
}

impl Backend for Mock {
    fn kind(&self) -> BackendKind {
        BackendKind::Mock
    }

    fn requirements(&self) -> Vec<Requirement> {
        let state = if self.faults.contains(&Fault::NotRoot) {
            Err(Error::NotRoot { what: "the mock".into() })
        } else {
            Ok("yes".into())
        };
        vec![Requirement { what: "root", state }]
    }

    fn prepare(&mut self, _trial: &Trial) -> Result<()> {
        super::require(self.requirements())?;
        self.prepared = true;
        Ok(())
    }

    fn run(&mut self, trial: &Trial) -> Result<Record> {
        self.runs += 1;
        let has = |f: &dyn Fn(u64) -> Fault| self.faults.contains(&f(self.runs));
        if has(&Fault::Interrupt) {
            return Err(Error::Interrupted { signal: "SIGINT".into() });
        }
        if has(&Fault::Fail) {
            return Err(Error::Trial { message: "the mock was told to fail".into() });
        }
        let status = if has(&Fault::Invalid) {
            Status::Invalid("the mock was told to be invalid".into())
        } else {
            Status::Complete
        };
        Ok(record(trial, status))
    }

    fn cleanup(&mut self) -> Result<()> {
        self.prepared = false;
        Ok(())
    }
}

/// Figures that depend on the trial's names and seed alone.
fn record(trial: &Trial, status: Status) -> Record {
    let key = format!("{} {} {}", trial.id.device, trial.id.scheduler, trial.id.workload);
    let base = 1000 + iosched_engine::fnv1a(key.as_bytes()) % 1000;
    let mut stream = iosched_engine::stream(trial.id.seed, &key);
    let mut read = DirStats { runtime: SEC, ..DirStats::default() };
    read.ios = base + stream.below(base / 20);
    read.bytes = read.ios * 4096;
    for i in 0..read.ios {
        let latency = SEC / base + stream.below(SEC / base) * (1 + u64::from(i % 100 == 0) * 9);
        read.clat.record(latency);
        read.lat.add(latency as f64);
    }
    read.iops = Moments::default();
    read.iops.add(read.ios as f64);
    let job = JobRecord { name: "mock".into(), read, runtime: SEC, ..JobRecord::default() };
    let mut record = Record {
        schema: SCHEMA,
        trial: trial.id.clone(),
        backend: BackendKind::Mock,
        status,
        elapsed: SEC,
        ..Record::default()
    };
    record.device.commands[0] = job.read.ios;
    record.device.bytes[0] = job.read.bytes;
    record.jobs.push(job);
    record
}
