//! Trials of programs on a device of the running kernel: with real calls of our own, and the real programs.

use std::path::PathBuf;

use iosched_experiment::{Load, ProgramWork, Record, Warning};

use super::{Alive, Run, Scratch, apply, wait};
use crate::benchmark::{self, At, Found, Limit, Recipe, Scene, Serving, tree};
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::load::meter;
use crate::program;

impl Run<'_> {
    /// Runs a program, or a log of system calls, in a fresh directory. What it needs is made there first. `cold` then
    /// makes the disk one that was left alone.
    pub(super) fn program(
        &self,
        load: &dyn Load,
        ground: &Ground,
        cold: &dyn Fn() -> Result<()>,
    ) -> Result<Record> {
        self.check_room(load, ground)?;
        let options = self.options;
        let scheduler = apply(self.kind, self.trial, self.disks)?;
        let dir = ground.fresh()?;
        // An emulated disk is as fast on zeros, and storing them costs nothing.
        let how = program::How { instant: false, noise: ground.mounted().is_none() };
        let started = load.start();
        if let Some(prepare) = started.prepare {
            let how = program::How { instant: true, ..how };
            program::run(&dir, how, prepare, &mut || options.interrupt.check())?;
        }
        // What is dirty is written here, while an emulated disk still takes no time.
        nix::unistd::sync();
        cold()?;
        meter::drop_caches()?;
        wait(options.settle, &options.interrupt)?;
        let mut run = Some(started.run);
        let (measured, seen) = self.observed(&mut |alive| match run.take() {
            Some(run) => program::run(&dir, how, run, alive),
            None => Err(Error::Trial { message: "the program has run already".into() }),
        })?;
        let mut record = self.blank(&seen);
        iosched_sim::into_record(&mut record, load, started.replay.as_deref(), &measured);
        self.conclude(&mut record, seen, &scheduler, false);
        Ok(record)
    }

    /// Whether the load's files fit a fresh directory.
    fn check_room(&self, load: &dyn Load, ground: &Ground) -> Result<()> {
        ground.fresh()?;
        ground.check_room(benchmark::room(self.trial, load, &self.options.tools)?)
    }

    /// Runs the real program of a workload in a fresh directory.
    pub(super) fn benchmark(
        &self,
        recipe: &Recipe,
        work: &ProgramWork,
        ground: &Ground,
        cold: &dyn Fn() -> Result<()>,
    ) -> Result<Record> {
        self.check_room(work, ground)?;
        let (options, params) = (self.options, &work.params);
        (recipe.can)(params)?;
        let tools = recipe.find(&options.tools, &options.interrupt)?;
        let scheduler = apply(self.kind, self.trial, self.disks)?;
        ground.fresh()?;
        let scratch = Scratch::new(options)?;
        let (namespace, dir) = ground.shown(&needed(&tools, &scratch))?;
        let scene = Scene::new(recipe, (namespace, &dir), &scratch.0)?;
        let own = ground.run_dir();
        let noise = ground.mounted().is_none();
        let at = At { dir: &dir, own: &own, scratch: &scratch.0, tools: &tools, noise };
        let plan = (recipe.plan)(params, &at)?;
        let go_on: Alive<'_> = &mut || options.interrupt.check();
        scene.lay(&plan.lay, go_on)?;
        let tree_version =
            recipe.tree.map(|_| tree::laid(&own, tools.path(tree::TREE))).transpose()?;
        // What root has written is written: from now on it is another's, who may make links of it.
        ground.open_way()?;
        scene.give(&own, go_on)?;
        scene.run(&plan.prepare, go_on)?;
        let serve = |check: Alive<'_>| -> Result<Option<Serving>> {
            plan.server.as_ref().map(|s| scene.serve(s, check)).transpose()
        };
        if !plan.fill.is_empty() {
            let server = serve(go_on)?;
            scene.run(&plan.fill, go_on)?;
            server.map_or(Ok(()), |s| s.stop(go_on))?;
        }
        nix::unistd::sync();
        cold()?;
        if !plan.keeps_caches {
            meter::drop_caches()?;
        }
        let server = serve(go_on)?;
        wait(options.settle, &options.interrupt)?;
        let ticks = || server.as_ref().map_or(0, Serving::ticks);
        let before = ticks();
        let ((printed, its), mut seen) =
            self.observed(&mut |alive| scene.run_within(&plan.run, plan.limit, alive))?;
        seen.used.own += ticks().saturating_sub(before);
        let asked = scene.run(&plan.ask, go_on)?;
        server.map_or(Ok(()), |s| s.stop(go_on))?;
        let left = scene.end_left();
        plan.logged(&own)?;
        let printed = printed + &asked;
        let figures = recipe.read(&printed, params, its)?;
        let mut record = self.blank(&seen);
        iosched_sim::real_program(&mut record, work, its.seconds, &figures);
        if !its.ended && matches!(plan.limit, Limit::Tells(_)) {
            record.metrics.iter_mut().for_each(|m| m.censored = true);
        }
        let first = plan.run.first().and_then(|words| words.first());
        let main = first.and_then(|file| tools.name(file)).unwrap_or(recipe.main());
        note_tools(&mut record, &tools, main, tree_version);
        if let Some(user) = scene.user() {
            record.provenance.insert("program.user".into(), user.name.clone());
        }
        record.warnings.extend(left_running(main, left));
        record.logs = vec![(main.into(), printed)];
        record.logs.retain(|(_, text)| !text.trim().is_empty());
        self.conclude(&mut record, seen, &scheduler, false);
        Ok(record)
    }
}

/// What programs must see in their namespace: tools, those that they start themselves, and what they are told.
fn needed(tools: &Found, scratch: &Scratch) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    tools.files().chain(&path).chain([&scratch.0]).cloned().collect()
}

/// Files and versions of the programs that ran.
fn note_tools(record: &mut Record, tools: &Found, main: &str, tree: Option<String>) {
    let mut put = |key: &str, value: String| record.provenance.insert(key.into(), value);
    if let Some(version) = tree {
        put("program.tree", tools.path(tree::TREE).display().to_string());
        put("program.tree.version", version);
    }
    put("program.file", tools.path(main).display().to_string());
    put("program.version", tools.version(main).to_string());
    record.provenance.retain(|_, v| !v.is_empty());
}

/// Processes that a program had left behind.
fn left_running(main: &str, left: usize) -> Option<Warning> {
    (left > 0).then(|| Warning {
        code: "left-running".into(),
        message: format!("{main} left {left} processes running: they were ended"),
        advice: "what they did meanwhile is part of the figures".into(),
    })
}
