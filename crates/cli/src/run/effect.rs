//! What was asked for and changes nothing on the backend that runs it.

use iosched_experiment::{Experiment, HostSpec};

use crate::args::RunArgs;

const LIVE: &str = "on this machine the running kernel, its CPUs and the disk's own state count";
const SIM: &str = "the simulator touches nothing";
const TEXT: &str = "the simulator runs iosched's text of programs";

/// Options of the command line and keys of the experiment's file without effect, each in a sentence.
pub(super) fn none(args: &RunArgs, e: &Experiment) -> Vec<String> {
    let given = match e.backend {
        kind if kind.is_live() => live(args, e),
        kind if kind.is_simulated() => simulated(args),
        _ => Vec::new(),
    };
    let given = given.into_iter().filter(|g| g.1);
    given.map(|(name, _, why)| format!("{name} has no effect: {why}")).collect()
}

/// What was given, whether it was, and why it has no effect.
type Given = (String, bool, &'static str);

fn live(args: &RunArgs, e: &Experiment) -> Vec<Given> {
    let real = !e.backend.has_model();
    let own = "a real disk keeps the file system that it has";
    let work = "real work takes the time that it takes";
    let file = args.files.iter().find(|f| f.ends_with(".toml")).map_or("", String::as_str);
    // Who said it: the command line, or else the file.
    let of = |option: &str, key: &str, by_option: bool| match by_option {
        true => option.to_string(),
        false => format!("{file}: {key}"),
    };
    let cpus = args.cpus.is_some() || e.cpus != Experiment::default().cpus;
    let memory = args.memory.is_some() || e.host.memory != HostSpec::default().memory;
    let sysctl = !e.sysctl_places.is_empty();
    vec![
        (of("--kernel", "kernel", !args.kernel.is_empty()), !e.kernels.is_empty(), LIVE),
        (of("--cpus", "cpus", args.cpus.is_some()), cpus, LIVE),
        (of("--memory", "memory", args.memory.is_some()), memory, LIVE),
        (of("--sysctl", "sysctl", !args.sysctl.is_empty()), sysctl, LIVE),
        (format!("{}: [cpu]", e.name), e.cpu_model.is_some() || e.cpu_percent != 100, work),
        (
            of("--filesystem", "filesystem", args.filesystem.is_some()),
            real && (e.host.named || !e.host.given.is_empty() || e.host.size.is_some()),
            own,
        ),
        (of("--fill", "fill", args.fill.is_some()), real && e.host.fill.is_some(), own),
        ("--jobs".into(), args.jobs.is_some(), "one trial runs at a time"),
        (
            of("--budget", "budget", args.budget.is_some()),
            e.budget.is_some(),
            "--runs or --until-ci say how often a live run is repeated",
        ),
        (
            of("--warm-up", "warm_up", args.warm_up.is_some()),
            e.warm_up.is_some(),
            "fio's ramp_time is the warm-up of a live run (--set ramp_time=30s)",
        ),
        ("--size".into(), args.size.is_some() && !real, "the model has a size"),
    ]
}

fn simulated(args: &RunArgs) -> Vec<Given> {
    let given = [
        ("--trace", args.trace, "simulated commands are always recorded"),
        ("--program", args.program.is_some(), TEXT),
        ("--iozone", args.iozone.is_some(), TEXT),
        ("--tree", args.tree.is_some(), TEXT),
        (
            "--no-warm-up",
            args.no_warm_up,
            "it is for live runs; --warm-up 0 measures from the start",
        ),
        ("--destroy-data", args.destroy_data.is_some(), SIM),
        ("--overwrite-file", args.overwrite_file.is_some(), SIM),
        ("--size", args.size.is_some(), SIM),
    ];
    given.into_iter().map(|(name, given, why)| (name.to_string(), given, why)).collect()
}
