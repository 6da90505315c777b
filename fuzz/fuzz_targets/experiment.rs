//! The experiment file parser, and planning on whatever it takes.
#![no_main]

use iosched_experiment::{Experiment, Sources, plan};
use iosched_schedulers::registry::Registry;
use iosched_workloads::fio::Lookup;
use libfuzzer_sys::fuzz_target;

struct Machine;

impl Lookup for Machine {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn keyword(&self, _: &str) -> Option<u64> {
        None
    }
}

const JOB: &str = "[a]\nrw=randread\nsize=1m\nbs=4k\ndirect=1\nfilename=f\n";

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let experiment = match Experiment::from_toml("fuzz.toml", text) {
        Ok(experiment) => experiment,
        Err(e) => {
            drop(e.to_string());
            return;
        }
    };
    let sources = Sources {
        // What a file names is the rest of the text after its name, so that jobs are fuzzed as well.
        read: &|path| match text.split_once(path) {
            Some((_, rest)) if !path.is_empty() => Ok(rest.to_string()),
            _ => Err("no such file".into()),
        },
        job: &|_| Ok(JOB),
        disk: &|_| Err("no such disk".into()),
        offered: &|| vec!["none".into(), "adios".into()],
        registry: Registry::builtin(),
        env: &Machine,
        ..Sources::default()
    };
    match plan(&experiment, &sources) {
        Ok(_) => {}
        Err(errors) => {
            assert!(!errors.is_empty());
            errors.iter().for_each(|e| drop(e.to_string()));
        }
    }
});
