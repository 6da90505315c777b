//! `iosched run --dry-run`: what a live run would write, switch, create and refuse.

use std::collections::BTreeSet;
use std::path::Path;

use iosched_backends::backend::{self, impossible};
use iosched_backends::discover::QueueState;
use iosched_backends::emulate::Transport;
use iosched_backends::load::jobfile;
use iosched_backends::target::{Judgement, Kind, Leave, Target, judge, room};
use iosched_backends::{Error, SysRoot};
use iosched_experiment::{BackendKind, Disk, RunsOn, Site, Traits, Trial};
use serde::Serialize;

use crate::args::{RunArgs, RunFormat};
use crate::choose::Chosen;
use crate::fail::{Failure, Outcome, code};
use crate::files::deliver;
use crate::live;

/// What one experiment would do to one device.
#[derive(Debug, Serialize)]
struct Intent {
    experiment: String,
    backend: BackendKind,
    device: String,
    runs: usize,
    /// What would be written to, and where.
    writes: Vec<String>,
    /// Disks that would be switched.
    switches: Vec<String>,
    /// What would be made and removed again, or kept.
    creates: Vec<String>,
    /// Why it would be refused; empty when it would run.
    refused: Vec<String>,
    /// What else should be known.
    notes: Vec<String>,
    /// All that was found out about the target.
    target: Option<Judgement>,
}

/// Says it; ends with 3 when something would be refused.
pub(super) fn run(args: &RunArgs, chosen: &[Chosen], plans: &[Vec<Trial>]) -> Outcome {
    let leave = live::leave(args)?;
    let mut intents = Vec::new();
    for (chosen, trials) in chosen.iter().zip(plans) {
        let devices: BTreeSet<&str> = trials.iter().map(|t| t.device.name.as_str()).collect();
        for device in devices {
            let trials: Vec<&Trial> = trials.iter().filter(|t| t.device.name == device).collect();
            intents.push(of(args, chosen, device, &trials, &leave)?);
        }
    }
    let text = match args.format {
        RunFormat::Json => {
            let mut text = serde_json::to_string_pretty(&intents)?;
            text.push('\n');
            text
        }
        _ => intents.iter().map(render).collect(),
    };
    deliver(args.output.as_deref(), &text)?;
    if intents.iter().any(|i| !i.refused.is_empty()) {
        return Err(Failure::silent(code::MISSING));
    }
    Ok(())
}

fn of(
    args: &RunArgs,
    chosen: &Chosen,
    device: &str,
    trials: &[&Trial],
    leave: &Leave,
) -> Outcome<Intent> {
    let e = &chosen.experiment;
    let mut intent = Intent {
        experiment: e.name.clone(),
        backend: e.backend,
        device: device.into(),
        runs: trials.len(),
        writes: Vec::new(),
        switches: Vec::new(),
        creates: Vec::new(),
        refused: Vec::new(),
        notes: Vec::new(),
        target: None,
    };
    if !args.no_store {
        intent.creates.push("the results, in the results file".into());
    }
    let state = live::state_dir(&args.state);
    let Traits { kernel, disk, .. } = e.backend.traits();
    match (kernel, disk) {
        (RunsOn::Running, Disk::Model) => {
            let (what, switched) = match Transport::best() {
                Transport::Ublk => ("a disk of ublk", "that disk"),
                _ => ("a loop device from number 64 up", "that loop device"),
            };
            intent.creates.push(format!("an emulated {device}: {what}"));
            intent.switches.push(format!("{switched}, which is removed afterwards"));
        }
        (RunsOn::Running, Disk::Named) => real(&mut intent, trials, leave, e.steady.is_some()),
        (RunsOn::Profile, _) => {
            intent.notes.push("it runs on the simulator: nothing is written or switched".into());
            return Ok(intent);
        }
    }
    around(&mut intent, trials, &live::tools(args)?)?;
    intent.creates.push(format!("state files and scratch in {}", state.display()));
    Ok(intent)
}

/// What is the same on every device: the tools, and what they can do.
fn around(intent: &mut Intent, trials: &[&Trial], tools: &backend::Own) -> Outcome {
    // A signal that ended this program by itself would leave a tool that is just asked something.
    let interrupt = live::ending()?;
    let refused = backend::refusals(intent.backend, trials, tools, &interrupt);
    let fio = backend::fio_for(trials, &interrupt).err();
    interrupt.check()?;
    for wrong in refused.iter().chain(&fio).map(with_help) {
        if !intent.refused.contains(&wrong) {
            intent.refused.push(wrong);
        }
    }
    intent.notes.extend(backend::programs(trials, tools));
    Ok(())
}

fn real(intent: &mut Intent, trials: &[&Trial], leave: &Leave, steady: bool) {
    let device = intent.device.clone();
    let starts = trials.iter().any(|t| t.site() == Site::Root);
    let programs = trials.iter().any(|t| t.site() == Site::Files);
    let on_files = trials.iter().any(|t| t.site() == Site::FilesOfJobs);
    let fio = |t: &Trial| matches!(t.site(), Site::Disk | Site::FilesOfJobs);
    let writing = steady || trials.iter().any(|t| t.work.writes());
    let root = SysRoot::default();
    match judge(&root, &device, leave) {
        Ok(judged) => {
            let what = if judged.kind == "block device" { Kind::Block } else { Kind::File };
            let jobs = trials.iter().filter(|t| fio(t) && judged.kind != "directory");
            for trial in jobs {
                let jobs = jobfile::render(trial.jobs(), Path::new(&judged.path), judged.bytes);
                let wrong = jobs.err().or_else(|| impossible(what, trial));
                let wrong = wrong.as_ref().map(with_help);
                intent.refused.extend(wrong.filter(|w| !intent.refused.contains(w)));
            }
            if starts {
                intent.creates.push(format!("a folder iosched-startup-PID at {}", judged.path));
            }
            if programs || on_files && judged.kind == "directory" {
                intent.creates.push(format!(
                    "a folder iosched-program-PID at {}, which is removed afterwards",
                    judged.path
                ));
            }
            if (starts || programs) && judged.kind == "block device" {
                intent.refused.push(format!(
                    "{} itself has no directory to run in (name a directory of a file system on it)",
                    judged.path
                ));
            }
            let makes = judged.kind == "file to be made";
            if makes {
                intent
                    .creates
                    .push(format!("{}, {} bytes, which stays", judged.path, judged.bytes));
            }
            let fills = judged.missing > 0 && judged.writable;
            let jobs = trials.iter().any(|t| fio(t));
            if let Err(e) = room(&root, &device, leave)
                && jobs
                && (fills || makes)
            {
                intent.refused.push(with_help(&e));
            }
            if fills {
                intent.writes.push(format!(
                    "{}: {} bytes that were never written are filled first",
                    judged.path, judged.missing
                ));
            }
            if writing && judged.kind != "directory" {
                let how = if steady { " all of it, twice" } else { " where the jobs say" };
                intent.writes.push(format!("{}:{how}", judged.path));
                let help = judged.help.iter().map(|h| format!(" ({h})"));
                let why = judged.refusal.iter().zip(help.chain([String::new()]));
                intent.refused.extend(why.map(|(w, h)| format!("{w}{h}")));
            } else if !judged.findings.is_empty() && !fills && judged.kind != "directory" {
                intent.notes.push("it is only read; writing to it would be refused".into());
            }
            intent.notes.extend(judged.notes.iter().cloned());
            switched(intent, &judged);
            intent.target = Some(judged);
        }
        Err(e) => intent.refused.push(with_help(&e)),
    }
    if let Ok(target) = Target::find(&root, &device)
        && target.kind() == Kind::Directory
        && trials.iter().any(|t| t.site() == Site::Disk)
    {
        intent.refused.push(format!(
            "{device} is a directory; jobs that are direct and name none work on a file or a device"
        ));
    }
}

fn switched(intent: &mut Intent, judged: &Judgement) {
    for disk in &judged.disks {
        let now = QueueState::read(&SysRoot::default(), disk).scheduler.unwrap_or_default();
        intent.switches.push(format!("/dev/{disk}, now under {now}, and put back"));
    }
    intent.refused.extend(judged.no_switch.iter().cloned());
}

fn with_help(e: &Error) -> String {
    match e.help() {
        help if help.is_empty() => e.to_string(),
        help => format!("{e} ({help})"),
    }
}

fn render(i: &Intent) -> String {
    let on = if i.backend.is_live() { i.backend.traits().words } else { "no disk" };
    let mut out = format!("{} on {} ({on}), {} runs\n", i.experiment, i.device, i.runs);
    if let Some(t) = &i.target {
        out.push_str(&format!("  target    {}, {}, {} bytes\n", t.path, t.kind, t.bytes));
    }
    for (word, lines) in [
        ("writes", &i.writes),
        ("switches", &i.switches),
        ("creates", &i.creates),
        ("note", &i.notes),
        ("REFUSED", &i.refused),
    ] {
        for line in lines {
            out.push_str(&format!("  {word:<9} {line}\n"));
        }
    }
    out
}
