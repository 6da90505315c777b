//! What completions offer where any name is taken.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};

use iosched_block::KernelProfile;
use iosched_devices::catalogue;
use iosched_experiment::BackendKind;
use iosched_schedulers::registry::SCHEDULERS;

use crate::jobs::JOBS;

/// Takes any text; completions offer these words.
#[derive(Clone)]
pub(crate) struct Names(fn() -> Vec<String>);

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(
        &self,
        cmd: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        // The words are an offer: what is wrong with another one is said where it is looked up, with its place.
        StringValueParser::new().parse_ref(cmd, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

/// Devices of the catalogue.
pub(crate) fn devices() -> Names {
    Names(|| catalogue::all().iter().map(|(n, _)| (*n).to_string()).collect())
}

/// Schedulers, and their generations where there are several.
pub(crate) fn schedulers() -> Names {
    Names(all_schedulers)
}

fn all_schedulers() -> Vec<String> {
    let mut out = Vec::new();
    for d in SCHEDULERS {
        out.push(d.name.to_string());
        if d.generations.len() > 1 {
            out.extend(d.generations.iter().map(|g| format!("{}@{}", d.name, g.name)));
        }
    }
    out
}

/// Kernel profiles.
pub(crate) fn kernels() -> Names {
    Names(|| KernelProfile::names().iter().map(ToString::to_string).collect())
}

/// Jobs that come with the program.
pub(crate) fn workloads() -> Names {
    fn programs() -> impl Iterator<Item = String> {
        iosched_workloads::programs::PROGRAMS.iter().map(|d| d.name.to_string())
    }
    Names(|| JOBS.iter().map(|j| j.name.to_string()).chain(programs()).collect())
}

/// Who runs trials.
pub(crate) fn backends() -> Names {
    Names(|| BackendKind::nameable().map(|k| k.traits().name.to_string()).collect())
}

/// Whatever `show` shows, but options.
pub(crate) fn anything() -> Names {
    Names(|| {
        let all = [devices(), schedulers(), kernels(), workloads()];
        all.iter().flat_map(|n| (n.0)()).collect()
    })
}

/// Published comparisons.
pub(crate) fn published() -> Names {
    Names(|| iosched_results::published::names().into_iter().map(Into::into).collect())
}

/// Published comparisons that can be run again.
pub(crate) fn comparisons() -> Names {
    Names(|| iosched_lab::reproduce::names().iter().map(ToString::to_string).collect())
}
