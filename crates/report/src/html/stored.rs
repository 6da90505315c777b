//! Pages of stored experiments, however many trials they have.

use std::collections::BTreeSet;

use iosched_experiment::source::Source;
use iosched_experiment::{COMMAND_LINE, OPTIONS_LINE, files_of};
use iosched_results::cells::Cells;
use iosched_results::store::{Edits, Store, StoreError};
use iosched_results::verdict::Verdict;

use super::input::{Input, Options};
use super::view::verdicts_of;

/// An experiment of more trials is read by its numbers, not record by record.
const MOST_RECORDS: u32 = 20_000;
/// Of such an experiment so many cells get pictures, from one trial each.
const MOST_PICTURES: usize = 400;

/// So many cells show what their tools printed …
const MOST_LOGS: usize = 48;
/// … and of each text so many characters: a page is no archive.
const LOG: usize = 12_000;

/// Leaves the beginning of a text, and says where the rest is.
fn shorten(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(LOG) {
        text.truncate(at);
        text.push_str("\n… (`iosched results log` prints all)");
    }
}

/// How to run an experiment again: the command, and the file it reads. Empty for what was not run here. Files that are
/// needed beside it are named.
fn again(store: &Store, experiment: i64) -> Result<String, StoreError> {
    let definition = store.definition(experiment)?;
    if definition.trim().is_empty() || definition.trim_start().starts_with(['{', '<']) {
        return Ok(String::new());
    }
    let mut text = definition.trim_end();
    let (mut options, mut rest) = ("", text);
    while let Some((line, below)) = rest.split_once('\n') {
        match line.strip_prefix(OPTIONS_LINE) {
            Some(said) => options = said,
            None if line.starts_with(COMMAND_LINE) => {}
            None => break,
        }
        (text, rest) = (below, below);
    }
    if (Source { file: "", text }).parse().is_err() {
        // Older results hold the command line alone.
        let own = |word: &&str| word.ends_with(".fio") || word.ends_with(".toml");
        let files: Vec<&str> = text.split_whitespace().filter(own).collect();
        return Ok(format!("iosched {text}{}", beside(&files)));
    }
    let gap = if options.is_empty() { "" } else { " " };
    let rounds = match options.contains("--until-ci") {
        true => String::new(),
        false => {
            let trials = store.trials(experiment)?;
            format!(" --runs {}", trials.iter().map(|t| t.trial.repetition).max().unwrap_or(1))
        }
    };
    let files = files_of(text);
    let files = beside(&files.iter().map(String::as_str).collect::<Vec<_>>());
    Ok(format!("iosched run again.toml{rounds}{gap}{options}{files}\n\n# again.toml\n{text}"))
}

/// Names files that are not in the page.
fn beside(files: &[&str]) -> String {
    if files.is_empty() {
        return String::new();
    }
    format!("\n# It reads files that are not in this page: {}", files.join(", "))
}

impl Input {
    /// A page of a stored experiment.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn from_store(
        options: Options,
        store: &Store,
        experiment: i64,
    ) -> Result<Input, StoreError> {
        let mut out = Input { options, ..Input::default() };
        out.add_stored(store, experiment, "")?;
        if out.options.again.is_empty() {
            out.options.again = again(store, experiment)?;
        }
        out.options.stored = experiment.to_string();
        if let (true, Some(words)) = (out.options.status.is_empty(), store.partial(experiment)?) {
            let progress = store.progress(experiment)?;
            out.options.status = words;
            out.options.done = progress.planned.map(|p| (progress.stored, p));
        }
        Ok(out)
    }

    /// The verdicts on a stored experiment.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn verdicts(store: &Store, experiment: i64) -> Result<Vec<Verdict>, StoreError> {
        let mut input = Input::default();
        input.add_stored(store, experiment, "")?;
        Ok(verdicts_of(&input))
    }

    /// Takes a stored experiment; `mark` is put before the names of its schedulers, so that those of several
    /// experiments can be told apart.
    ///
    /// Many trials are never in memory together. Beyond 20,000 only their numbers are read, and records of one trial
    /// for each run (for each cell while there are few): that is what pictures and provenance are made of then.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn add_stored(
        &mut self,
        store: &Store,
        experiment: i64,
        mark: &str,
    ) -> Result<(), StoreError> {
        let edits = store.edits(experiment)?;
        for scheduler in store.schedulers(experiment)? {
            let name = edits.name(&scheduler).to_string();
            if name != scheduler {
                self.own.insert(name, scheduler);
            }
        }
        let notes = edits.notes().into_iter().map(|(what, note)| (format!("{mark}{what}"), note));
        self.options.annotations.extend(notes);
        let hidden = edits.hidden();
        if !hidden.is_empty() {
            let words = format!("{mark}{} (iosched results edit --show)", hidden.join(", "));
            self.options.annotations.push(("left out".into(), words));
            self.options.hidden.extend(hidden.iter().map(|h| format!("{mark}{}", edits.name(h))));
        }
        self.add_logs(store, experiment, mark, &edits)?;
        let trials = store.list()?.iter().find(|e| e.id == experiment).map_or(0, |e| e.trials);
        if trials > MOST_RECORDS {
            return self.add_many(store, experiment, mark, &edits);
        }
        store.for_each(experiment, |_, mut record| {
            if !edits.hides(&record.trial.scheduler) {
                record.trial.scheduler = format!("{mark}{}", edits.name(&record.trial.scheduler));
                self.add(&record);
            }
        })
    }

    /// What tools printed: of the first repetition of each cell, while there are few.
    fn add_logs(
        &mut self,
        store: &Store,
        experiment: i64,
        mark: &str,
        edits: &Edits,
    ) -> Result<(), StoreError> {
        for (id, t) in store.first_of_each_cell(experiment)? {
            if self.logs.len() >= MOST_LOGS {
                break;
            }
            if edits.hides(&t.scheduler) {
                continue;
            }
            let mut logs = store.logs(id)?;
            logs.iter_mut().for_each(|(_, text)| shorten(text));
            if !logs.is_empty() {
                let scheduler = edits.name(&t.scheduler);
                let place =
                    format!("{} on {}, {mark}{scheduler}, trial {id}", t.workload, t.device);
                self.logs.push((place, logs));
            }
        }
        Ok(())
    }

    fn add_many(
        &mut self,
        store: &Store,
        experiment: i64,
        mark: &str,
        edits: &Edits,
    ) -> Result<(), StoreError> {
        for (kernel, cells) in store.cells(experiment)? {
            let shown = cells.0.into_iter().filter(|(k, _)| !edits.hides(&k.scheduler));
            let marked = shown.map(|(mut k, c)| {
                k.scheduler = format!("{mark}{}", edits.name(&k.scheduler));
                (k, c)
            });
            self.add_cells(&kernel, Cells(marked.collect()));
        }
        let firsts = store.first_of_each_cell(experiment)?;
        let pictures = firsts.len() <= MOST_PICTURES;
        let mut known = BTreeSet::new();
        for (id, t) in firsts.into_iter().filter(|(_, t)| !edits.hides(&t.scheduler)) {
            let scheduler = format!("{mark}{}", edits.name(&t.scheduler));
            let (run, workload) = self.place(&t.device, &scheduler, &t.kernel, &t.workload);
            let new = known.insert((usize::MAX, run)) | known.insert((workload, usize::MAX));
            if !pictures && !new {
                continue;
            }
            let record = store.record(id)?;
            self.runs[run].add_facts(&record);
            let named = self.options.suites.get(&t.workload);
            self.workloads[workload].add(&record, named);
            self.asks.add(&record);
            self.ranks.add(&record);
            if pictures {
                let detail = self.details.entry((run, workload)).or_default();
                let complete = std::mem::take(&mut detail.complete);
                detail.add(&record);
                detail.complete = complete;
            }
        }
        self.note = if pictures {
            "So many trials: curves, distributions and percentile tables show the first repetition of each cell; \
             bars and verdicts rest on all."
        } else {
            "So many trials and cells: there are no curves; bars and verdicts rest on all trials."
        }
        .into();
        Ok(())
    }

    fn add_cells(&mut self, kernel: &str, cells: Cells) {
        for (key, cell) in &cells.0 {
            let (run, workload) = self.place(&key.device, &key.scheduler, kernel, &key.workload);
            let most = cell.measures.values().map(|m| m.sample.rounds.len()).max().unwrap_or(0);
            let detail = self.details.entry((run, workload)).or_default();
            detail.complete += most as u32;
            for why in &cell.unusable {
                *detail.unusable.entry(why.clone()).or_default() += 1;
            }
            self.runs[run].trials += (most + cell.unusable.len()) as u32;
        }
        match self.cells.iter_mut().find(|(k, _)| k == kernel) {
            Some((_, known)) => known.0.extend(cells.0),
            None => self.cells.push((kernel.into(), cells)),
        }
    }
}
