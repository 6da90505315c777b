//! How an experiment was asked for, as text that stands alone: an experiment file with its jobs and devices in it, and
//! the options of the command line that change what is run.

use std::path::PathBuf;

use iosched_experiment::{DeviceRef, Experiment, contained};

use crate::args::RunArgs;
use crate::{choose, replay};

/// Before the options, on the first line of a definition.
const OPTIONS: &str = iosched_experiment::OPTIONS_LINE;
/// Before the command line of the quick form.
const COMMAND: &str = iosched_experiment::COMMAND_LINE;

/// An experiment file as it was run.
pub(crate) fn of_file(args: &RunArgs, file: &str, text: &str) -> String {
    // With its jobs: whoever runs it again has other files, or the same ones in another state.
    let text = contained(file, text, &replay::text_but_of_traces);
    let mut options = options(args);
    let lists =
        [("--device", &args.device), ("--scheduler", &args.scheduler), ("--kernel", &args.kernel)];
    for (option, values) in lists {
        options.extend(values.iter().flat_map(|v| [option.to_string(), v.clone()]));
    }
    if let Some(name) = &args.name {
        options.extend(["--name".into(), name.clone()]);
    }
    head(OPTIONS, &options) + &text
}

/// The quick form as an experiment file.
pub(crate) fn of_command(args: &RunArgs, e: &Experiment) -> String {
    let command: Vec<String> = std::env::args().skip(2).collect();
    let mut options = options(args);
    options.extend(args.kernel.iter().flat_map(|v| ["--kernel".to_string(), v.clone()]));
    let strings = |all: &mut dyn Iterator<Item = &String>| {
        let mut seen: Vec<String> = Vec::new();
        for name in all {
            let name = toml::Value::from(name.as_str()).to_string();
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
        seen.join(", ")
    };
    let workload = |file: &String| {
        let text = toml::Value::from(file.as_str());
        match choose::is_command(file) {
            true => format!("{{ name = \"fio\", job = {text} }}"),
            false => text.to_string(),
        }
    };
    let mut workloads: Vec<String> =
        args.files.iter().filter(|f| !f.ends_with(".toml")).map(workload).collect();
    workloads.dedup();
    let devices = e.devices.iter().map(|d| match &d.value {
        DeviceRef::Named(name) | DeviceRef::Inline(name, _) => name,
    });
    let text = format!(
        "name = {}\ndevices = [{}]\nschedulers = [{}]\nworkloads = [{}]\n",
        toml::Value::from(e.name.as_str()),
        strings(&mut devices.into_iter()),
        strings(&mut e.schedulers.iter().map(|s| &s.value.name)),
        workloads.join(", "),
    );
    head(COMMAND, &command)
        + &head(OPTIONS, &options)
        + &contained("", &text, &replay::text_but_of_traces)
}

fn head(what: &str, words: &[String]) -> String {
    if words.is_empty() {
        return String::new();
    }
    // A line of a comment has no control characters; a name with one cannot be asked for again by copying anyway.
    let line = words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ");
    format!("{what}{}\n", line.replace(char::is_control, " "))
}

/// Options that change what is run, besides names. What allows to overwrite something is left out: that is asked for
/// anew on each machine.
fn options(args: &RunArgs) -> Vec<String> {
    let mut out = Vec::new();
    let lists = [
        ("--set", &args.set),
        ("--param", &args.param),
        ("--tunable", &args.tunable),
        ("--queue", &args.queue),
        ("--sysctl", &args.sysctl),
    ];
    for (option, values) in lists {
        out.extend(values.iter().flat_map(|v| [option.to_string(), v.clone()]));
    }
    let number = |n: Option<i64>| n.map(|n| n.to_string());
    let path = |p: &Option<PathBuf>| p.as_ref().map(|p| p.display().to_string());
    let values = [
        ("--seed", number(args.seed)),
        ("--device-state", args.device_state.clone()),
        ("--filesystem", args.filesystem.clone()),
        ("--fill", args.fill.clone()),
        ("--memory", args.memory.clone()),
        ("--cpus", number(args.cpus)),
        ("--backend", args.backend.clone()),
        ("--program", args.program.clone()),
        ("--iozone", path(&args.iozone)),
        ("--tree", path(&args.tree)),
        ("--size", args.size.clone()),
        ("--budget", args.budget.clone()),
        ("--warm-up", args.warm_up.clone()),
        ("--replay", args.replay.clone()),
        ("--beside", args.beside.clone()),
        ("--disk", args.disk.clone()),
        ("--recorded-scheduler", args.recorded_scheduler.clone()),
        ("--until-ci", args.until_ci.clone()),
        ("--max-runs", number(args.max_runs)),
        ("--max-time", args.max_time.clone()),
    ];
    for (option, value) in values {
        out.extend(value.into_iter().flat_map(|v| [option.to_string(), v]));
    }
    let flags = [
        ("--quick", args.quick),
        ("--trace", args.trace),
        ("--no-warm-up", args.no_warm_up),
        ("--allow-noise", args.allow_noise),
        ("--steady-state", args.steady_state),
    ];
    out.extend(flags.iter().filter(|f| f.1).map(|f| f.0.to_string()));
    out
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of a line of such words.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let (mut word, mut inside, mut letters) = (None::<String>, false, line.chars());
    while let Some(c) = letters.next() {
        match c {
            '\'' => {
                inside = !inside;
                word.get_or_insert_default();
            }
            '\\' if !inside => word.get_or_insert_default().extend(letters.next()),
            ' ' if !inside => out.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    out.extend(word);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_as_they_were() {
        let all = ["--set", "bs=4k", "", "it's", "a b", r"\", "--name=ö"].map(String::from);
        let line = all.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ");
        assert_eq!(words(&line), all);
    }
}
