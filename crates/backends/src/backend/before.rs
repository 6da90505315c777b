//! What can be refused before anything is made, switched or started, in a dry run, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use iosched_experiment::{BackendKind, Site, Trial};
use iosched_lab::machine::Interrupt;
use iosched_workloads::fio::layout::lay_out_beside;
use iosched_workloads::fio::on_files;

use crate::error::{Error, Result};
use crate::filesystem::FileSystem;
use crate::ground::{check_room, fits};
use crate::root::SysRoot;
use crate::{benchmark, cgroup, target};

/// The user's own files of tools: name, file.
pub type Own = [(&'static str, PathBuf)];

/// Why trials cannot run live on this machine: tools that are missing or do not answer, what the real program cannot do of
/// a workload, too little room, weights of groups that nobody sets. Each reason once. Looking changes nothing.
#[must_use]
pub fn refusals(
    kind: BackendKind,
    trials: &[&Trial],
    own: &Own,
    interrupt: &Interrupt,
) -> Vec<Error> {
    let mut found = Vec::new();
    let mut said = BTreeSet::new();
    let mut note = |result: Result<()>| {
        found.extend(result.err().filter(|e| said.insert(e.to_string())));
    };
    let (mut cells, mut recipes) = (BTreeSet::new(), BTreeSet::new());
    for trial in trials {
        // Schedulers and repetitions differ in nothing that is looked at.
        if !cells.insert((&trial.id.device, &trial.id.workload)) {
            continue;
        }
        if let Some((recipe, params)) = benchmark::behind(trial) {
            note((recipe.can)(params));
            if recipes.insert(recipe.workload) {
                note(recipe.find(own, interrupt).map(drop));
                note(recipe.user().map(drop));
            }
        }
        note(settings(kind, trial));
        note(groups(trial, interrupt));
        note(room(kind, trial, own));
    }
    found
}

/// What the real programs of trials do on this machine, each in a sentence.
#[must_use]
pub fn programs(trials: &[&Trial], own: &Own) -> Vec<String> {
    let mut said = Vec::new();
    for (recipe, _) in trials.iter().filter_map(|t| benchmark::behind(t)) {
        let does = recipe.does(own);
        if !said.contains(&does) {
            said.push(does);
        }
    }
    said
}

/// Whether fio will do, where trials run it.
///
/// # Errors
/// [`Error::NoTool`], [`Error::OldTool`], [`Error::Unavailable`].
pub fn fio_for(trials: &[&Trial], interrupt: &Interrupt) -> Result<()> {
    match trials.iter().any(|t| t.work.needs_fio()) {
        true => crate::load::fio::found(interrupt).map(drop),
        false => Ok(()),
    }
}

/// Settings of the queue without which nothing can be measured.
pub(super) fn settings(kind: BackendKind, trial: &Trial) -> Result<()> {
    if !kind.has_model() && trial.settings.iter().any(|(name, _)| name == "wbt_lat_usec") {
        return Err(Error::input(
            "wbt_lat_usec of a real disk could not be put back: after a write, also of -1, the kernel takes the throttle for \
             set by hand as long as the disk is there, and bfq does not switch it off any more",
            "set it yourself before the run (echo N >/sys/block/DISK/queue/wbt_lat_usec): it stays then; or use --backend \
             emulated, whose disk is thrown away",
        ));
    }
    match trial.settings.iter().any(|(name, value)| name == "iostats" && *value == 0) {
        true => Err(Error::input(
            "a live run cannot do without the disk's statistics (iostats=0)",
            "what reached the disk is counted by them; leave it at 1, or use the simulator",
        )),
        false => Ok(()),
    }
}

/// Whether there is a file system with room for the trial's files.
fn room(kind: BackendKind, trial: &Trial, own: &Own) -> Result<()> {
    let emulated = kind.has_model();
    if emulated && matches!(trial.site(), Site::Files | Site::FilesOfJobs) {
        FileSystem::of(&trial.host)?;
    }
    let needs = match trial.work.load() {
        Some(load) => match benchmark::room(trial, load, own) {
            // Without its tree a program is refused already.
            Err(Error::NoTool { .. }) => return Ok(()),
            needed => Some(needed?),
        },
        None => files(trial),
    };
    let Some((what, needed)) = needs else { return Ok(()) };
    if emulated {
        return fits(what, needed, iosched_sim::room_for_users(trial), "the emulated disk");
    }
    // What is wrong with the target is said where it is looked at.
    let Ok(path) = target::resolve(&SysRoot::default(), &trial.device.name) else { return Ok(()) };
    let place = match path.metadata() {
        Ok(m) if m.is_dir() => Some(&*path),
        // On a file or a device jobs have regions of it.
        _ if trial.site() != Site::Files => None,
        Ok(m) if !m.is_file() => None,
        _ => path.parent().filter(|p| p.is_dir()),
    };
    place.map_or(Ok(()), |dir| check_room(dir, &path.display().to_string(), what, needed))
}

/// The files that jobs have on a file system before their measured part: whose they are, and their bytes.
fn files(trial: &Trial) -> Option<(&str, u64)> {
    if trial.site() != Site::FilesOfJobs {
        return None;
    }
    // What is wrong with the jobs is said where they are planned.
    let places = lay_out_beside(trial.jobs(), on_files::ROOM, &BTreeMap::new()).ok()?;
    Some((&trial.id.workload, on_files::bytes_before(trial.jobs(), &places, true)))
}

/// Whether the jobs' control groups can be made.
fn groups(trial: &Trial, interrupt: &Interrupt) -> Result<()> {
    let groups = || trial.jobs().jobs.iter().filter_map(|j| j.cgroup.as_ref());
    if groups().next().is_none() {
        return Ok(());
    }
    let weighted = groups().any(|(_, weight)| weight.is_some());
    let fio = crate::load::fio::found(interrupt).unwrap_or_default();
    cgroup::for_jobs(&SysRoot::default(), weighted, &fio).map(drop)
}
