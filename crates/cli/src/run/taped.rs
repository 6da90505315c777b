//! `--record-trace`: a simulated run as a block trace.

use std::path::{Path, PathBuf};

use iosched_experiment::{Record, Trial};
use iosched_trace::write::Form;
use iosched_trace::{Error, Tables};
use iosched_types::units::show_count;
use iosched_workloads::fio::on_files;

use super::iolog::own_name;
use crate::fail::{Failure, Outcome};
use crate::files;
use crate::trace::write::{form, through};

/// Where traces go.
pub(super) struct Traces<'a> {
    file: &'a Path,
    form: &'static Form,
    several: bool,
}

/// Lets all trials be recorded; checks before anything runs that they can.
pub(super) fn begin<'a>(file: &'a Path, plans: &mut [Vec<Trial>]) -> Outcome<Traces<'a>> {
    let form = form(&file.to_string_lossy(), None)?;
    let trials = plans.iter_mut().flatten();
    let mut number = 0;
    for trial in trials {
        let (id, jobs) = (&trial.id, trial.jobs());
        let on_device = !jobs.jobs.is_empty() && !on_files::needed(jobs);
        if !on_device && trial.work.trace().is_none() {
            return Err(Failure::with_help(
                format!("--record-trace: {} works on files", id.workload),
                "fio jobs on a device and block traces are recorded",
            ));
        }
        trial.tape = Some(iosched_block::Keep::All);
        number += 1;
    }
    let traces = Traces { file, form, several: number > 1 };
    if !traces.several {
        files::writable(file)?;
    }
    Ok(traces)
}

impl Traces<'_> {
    /// Writes the trace of a trial and drops it. With several trials each has a name of its own.
    pub(super) fn write(&self, record: &mut Record) -> Outcome {
        let Some(seen) = record.seen.take() else { return Ok(()) };
        let path = self.path(record);
        let mut tables = Tables::default();
        let disk = tables.disks.of(&record.trial.device);
        let names: Vec<_> = seen.tasks.iter().map(|n| tables.tasks.of(n)).collect();
        let packed = path.to_string_lossy().ends_with(".gz");
        files::stream(&path, |file| {
            through(packed, file, |file| {
                let mut sink = (self.form.begin)(file).map_err(Error::Write)?;
                for io in &seen.ios {
                    let mut io = *io;
                    io.disk = disk;
                    io.task = names.get(io.task.0 as usize - 1).copied().unwrap_or_default();
                    sink.io(&io, &tables).map_err(Error::Write)?;
                }
                sink.end(&tables).map_err(Error::Write)?;
                Ok(())
            })
        })?;
        if seen.left_out > 0 {
            let message = format!(
                "warning: the trace {} is without the last {} I/Os: they have no room in memory",
                path.display(),
                show_count(seen.left_out as f64)
            );
            files::note(&message);
        }
        Ok(())
    }

    fn path(&self, record: &Record) -> PathBuf {
        if !self.several {
            return self.file.to_path_buf();
        }
        let name = self.file.to_string_lossy();
        let (bare, gz) = match name.strip_suffix(".gz") {
            Some(bare) => (bare, ".gz"),
            None => (&*name, ""),
        };
        let stem = bare.strip_suffix(self.form.ending).unwrap_or(bare);
        PathBuf::from(own_name(stem, &record.trial) + self.form.ending + gz)
    }
}
