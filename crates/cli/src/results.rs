//! `iosched results`.

use iosched_experiment::Record;
use iosched_experiment::file::stem;
use iosched_experiment::record::IMPORT;
use iosched_results::answer::wrap;
use iosched_results::import::{Format, MAX_BYTES};
use iosched_results::store::edit::{split, unknown};
use iosched_results::store::{Document, Edits, ExperimentDocument, RunEdit, Store};
use iosched_results::{published, render};

use crate::args::{LookArgs, ResultsArgs, ResultsCommand, TraceFormat};
use crate::fail::{Failure, Outcome};
use crate::files::{deliver, note, print, print_json};
use crate::run;
use crate::store::{open, open_read_only};
use crate::tables::{columns, prose};

pub(crate) fn results(args: &ResultsArgs) -> Outcome {
    match &args.command {
        ResultsCommand::List { json } => {
            let rows = open_read_only(&args.db)?.list()?;
            if *json { print_json(&rows) } else { print(&render::list(&rows, columns())) }
        }
        ResultsCommand::Show { name, trials, look } => {
            let store = open_read_only(&args.db)?;
            let id = one(&store, name)?;
            if *trials {
                return print(&render::trials(&store.trials(id)?, columns()));
            }
            let mut out = tables(name, &store.records(id)?, &store.edits(id)?, *look);
            if let Some(words) = store.partial(id)? {
                out.push_str(&wrap("", 2, &format!("partial: {words}"), prose(columns())));
            }
            print(&out)
        }
        ResultsCommand::Export { name, format, full, output } => {
            let store = open_read_only(&args.db)?;
            let id = one(&store, name)?;
            if *format == crate::args::RunFormat::Json {
                // With identity, definition and input hashes, which records alone do not have.
                let mut experiment = store.export(id)?;
                if !full {
                    experiment.records.iter_mut().for_each(run::without_pictures);
                }
                let document = Document::answered(vec![experiment]);
                let mut text = serde_json::to_string_pretty(&document)?;
                text.push('\n');
                return deliver(output.as_deref(), &text);
            }
            let records = store.records(id)?;
            let look = crate::args::LookArgs { tables: true, wide: false, no_color: true };
            deliver(output.as_deref(), &run::render(name, &records, *format, look, (true, false))?)
        }
        ResultsCommand::Log { name, trial } => log(args, name, *trial),
        ResultsCommand::Edit { .. } => edit(args),
        ResultsCommand::Trace { name, trial, format, output } => {
            trace(args, name, *trial, *format, output.as_deref())
        }
        ResultsCommand::Import { files, name, format } => {
            import(args, files, name.as_deref(), *format)
        }
        ResultsCommand::Merge { file } => {
            let other = iosched_results::store::Store::open_read_only(file)?;
            drop(other);
            let mut store = open(&args.db)?;
            let report = store.merge(file)?;
            let mut out = format!(
                "{} experiments added, {} completed, {} trials in all\n",
                report.added, report.completed, report.trials
            );
            for (name, id) in &report.joined {
                let name = render::printable(name);
                out.push_str(&format!(
                    "   {name} is one plan with {id}, which has its trials now\n"
                ));
            }
            for (name, all) in &report.shared {
                let name = render::printable(name);
                out.push_str(&format!(
                    "   {} experiments are called {name}: {}; `iosched results edit {} --rename NAME` renames one\n",
                    all.len(),
                    listed(all),
                    all[0]
                ));
            }
            print(&out)
        }
        ResultsCommand::Delete { name } => {
            let store = open_read_only(&args.db)?;
            let id = store.find(name)?;
            if let all @ [_, _, ..] = &store.named(name)?[..] {
                let message = format!("{} experiments are called \"{name}\"", all.len());
                return Err(Failure::with_help(
                    message,
                    format!("name one by its number: {}", listed(all)),
                ));
            }
            drop(store);
            open(&args.db)?.delete(id)?;
            print(&format!("experiment {id} is deleted\n"))
        }
    }
}

/// The experiment that a name means: the newest, and it says that there are others.
pub(crate) fn one(store: &Store, name: &str) -> Outcome<i64> {
    let id = store.find(name)?;
    let others: Vec<i64> = store.named(name)?.into_iter().filter(|other| *other != id).collect();
    if !others.is_empty() {
        note(&format!(
            "note: {} experiments are called \"{}\": this is {id}, the newest; by number there is {}, too",
            others.len() + 1,
            render::printable(name),
            listed(&others)
        ));
    }
    Ok(id)
}

/// `3, 7`.
fn listed(ids: &[i64]) -> String {
    ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

/// Says what of a file an import did not use, or not as it stands there.
fn remark<'a>(file: &str, records: impl Iterator<Item = &'a Record>) {
    let mut said: Vec<String> = Vec::new();
    for w in records.flat_map(|r| &r.warnings).filter(|w| w.code == IMPORT) {
        let advice = if w.advice.is_empty() { String::new() } else { format!(" ({})", w.advice) };
        let text = render::printable(&format!("warning: {file}: {}{advice}", w.message));
        if !said.contains(&text) {
            note(&text);
            said.push(text);
        }
    }
}

/// The tables of an experiment, as it was edited.
fn tables(name: &str, records: &[Record], edits: &Edits, look: LookArgs) -> String {
    let report = iosched_report::terminal::edited(records, edits, run::look_of(look, false, false));
    let mut out = report.text + &run::hints::after((&report.verdicts, records), look, Some(name));
    for (what, note) in edits.notes() {
        out.push_str(&wrap("", 2, &format!("note on {what}: {note}"), prose(columns())));
    }
    let hidden = edits.hidden();
    if !hidden.is_empty() {
        let text = format!("hidden: {} (results edit --show)", hidden.join(", "));
        out.push_str(&wrap("", 2, &text, prose(columns())));
    }
    out
}

/// Changes what people say about results, or prints it.
fn edit(args: &ResultsArgs) -> Outcome {
    let ResultsCommand::Edit { name, rename, note, label, annotate, hide, show, json } =
        &args.command
    else {
        return Ok(());
    };
    let store = open_read_only(&args.db)?;
    let id = one(&store, name)?;
    let all = store.schedulers(id)?;
    let mut edits = store.edits(id)?;
    let before = edits.clone();
    drop(store);
    let mut of = |option: &str, texts: &[String], set: fn(&mut RunEdit, &str)| -> Outcome {
        for text in texts {
            let pair = split(text, &all);
            let (scheduler, words) =
                pair.map_err(|e| Failure::input(format!("{option} {text}: {e}")))?;
            set(edits.schedulers.entry(scheduler.into()).or_default(), words.trim());
        }
        Ok(())
    };
    of("--label", label, |e, words| e.label = words.into())?;
    of("--annotate", annotate, |e, words| e.note = words.into())?;
    for (option, list, hidden) in [("--hide", hide, true), ("--show", show, false)] {
        for scheduler in list {
            if !all.contains(scheduler) {
                let why = unknown(scheduler, &all);
                return Err(Failure::input(format!("{option} {scheduler}: {why}")));
            }
            edits.schedulers.entry(scheduler.clone()).or_default().hidden = hidden;
        }
    }
    if let Some(note) = note {
        edits.note = note.trim().into();
    }
    if rename.as_ref().is_some_and(|n| n.trim().is_empty()) {
        return Err(Failure::input("--rename: an experiment needs a name"));
    }
    edits.schedulers.retain(|_, e| *e != RunEdit::default());
    if edits != before || rename.is_some() {
        open(&args.db)?.edit(id, &edits, rename.as_deref().map(str::trim))?;
    }
    if *json {
        return print_json(&edits);
    }
    print(&said(id, rename.as_deref().unwrap_or(name), &edits))
}

/// The edits of an experiment in words.
fn said(id: i64, name: &str, edits: &Edits) -> String {
    let mut out = format!("{id}: {}\n", render::printable(name));
    if edits.is_empty() {
        out.push_str("nothing is changed\n");
    }
    let mut line = |what: &str, text: &str| {
        out.push_str(&wrap("  ", 4, &format!("{what}: {text}"), prose(columns())))
    };
    if !edits.note.is_empty() {
        line("note", &edits.note);
    }
    for (scheduler, e) in &edits.schedulers {
        let label =
            if e.label.is_empty() { String::new() } else { format!("called \"{}\"", e.label) };
        let hidden = if e.hidden { "hidden" } else { "" };
        let all = [label.as_str(), hidden, e.note.as_str()];
        let all: Vec<&str> = all.into_iter().filter(|t| !t.is_empty()).collect();
        line(scheduler, &all.join("; "));
    }
    render::printable_lines(&out)
}

/// What tools printed during a trial, or the trials of which that is kept.
fn log(args: &ResultsArgs, name: &str, trial: Option<i64>) -> Outcome {
    let store = open_read_only(&args.db)?;
    let trials = store.trials(one(&store, name)?)?;
    let Some(wanted) = trial else {
        let mut with = Vec::new();
        for t in trials {
            if !store.logs(t.id)?.is_empty() {
                with.push(t);
            }
        }
        if with.is_empty() {
            let help = "live runs keep what their tools print (backends emulated and real)";
            return Err(Failure::with_help(format!("no trial of \"{name}\" has logs"), help));
        }
        return print(&render::trials(&with, columns()));
    };
    if !trials.iter().any(|t| t.id == wanted) {
        let help = format!("`iosched results show {name} --trials` lists them");
        return Err(Failure::with_help(format!("\"{name}\" has no trial {wanted}"), help));
    }
    let logs = store.logs(wanted)?;
    if logs.is_empty() {
        return Err(Failure::input(format!("trial {wanted} of \"{name}\" has no logs")));
    }
    let text = |(what, text): &(String, String)| format!("==> {what}\n{}\n\n", text.trim_end());
    let text: String = logs.iter().map(text).collect();
    print(&render::printable_lines(text.trim_end())).and_then(|()| print("\n"))
}

/// One trace as text, or the list of those there are.
fn trace(
    args: &ResultsArgs,
    name: &str,
    trial: Option<i64>,
    format: TraceFormat,
    output: Option<&std::path::Path>,
) -> Outcome {
    let store = open_read_only(&args.db)?;
    let traced = store.traced(one(&store, name)?)?;
    let help = "run it again with --trace (backends emulated and real)";
    if traced.is_empty() {
        return Err(Failure::with_help(format!("no trial of \"{name}\" was traced"), help));
    }
    let Some(trial) = trial else {
        return print(&render::traces(&traced, columns()));
    };
    if !traced.iter().any(|(t, _)| t.id == trial) {
        let all: Vec<String> = traced.iter().map(|(t, _)| t.id.to_string()).collect();
        let message = format!("trial {trial} of \"{name}\" was not traced");
        return Err(Failure::with_help(message, format!("traced are {}", all.join(", "))));
    }
    let points = store.trace(trial)?;
    deliver(
        output,
        &match format {
            TraceFormat::Csv => iosched_results::trace::csv(&points),
            TraceFormat::Iolog => iosched_results::trace::iolog(&points),
        },
    )
}

/// Imports files, each as an experiment of its own. A document of ours may hold several experiments.
fn import(
    args: &ResultsArgs,
    files: &[String],
    name: Option<&str>,
    format: Option<Format>,
) -> Outcome {
    let mut documents = Vec::new();
    for file in files {
        documents.extend(documents_of(file, name, format)?);
    }
    // All files were read without an error, so the experiments are stored now.
    let mut store = open(&args.db)?;
    let mut out = String::new();
    for d in &documents {
        let (id, added) = store.import(d)?;
        let stored = store.list()?.into_iter().find(|e| e.id == id);
        let name = stored.map_or_else(|| d.name.clone(), |e| e.name);
        out.push_str(&imported(id, &name, d, added));
    }
    print(&out)
}

/// What an import did. An experiment that is stored already keeps its name, and gets the trials that it lacks.
fn imported(id: i64, stored: &str, d: &ExperimentDocument, added: usize) -> String {
    let count = |n: usize| format!("{n} trial{}", if n == 1 { "" } else { "s" });
    let known = d.records.len() - added;
    let name = render::printable(stored);
    if known == 0 && stored == d.name {
        return format!("{id}: {name} ({})\n", count(added));
    }
    let mut out = format!(
        "{id}: {name} is this experiment: {} known already, {} added\n",
        count(known),
        count(added)
    );
    if stored != d.name {
        let wanted = render::printable(&d.name);
        out.push_str(&format!(
            "   it is not called {wanted}; `iosched results edit {id} --rename {wanted}` renames it\n"
        ));
    }
    out
}

/// The experiments of a file: our own document, `published`, or another tool's output.
pub(crate) fn documents_of(
    file: &str,
    name: Option<&str>,
    format: Option<Format>,
) -> Outcome<Vec<ExperimentDocument>> {
    let of = |name: &str, records, source: &str| ExperimentDocument {
        name: name.into(),
        records,
        source: source.into(),
        ..ExperimentDocument::default()
    };
    if file == "published" && format.is_none() {
        let each = published::names().into_iter().map(|n| {
            let records = published::records(n).map_err(Failure::input)?;
            let mut d = of(n, records, "published");
            // The same identity every time: importing twice changes nothing.
            d.uid = format!("published-{n}");
            Ok(d)
        });
        return each.collect();
    }
    let path = std::path::Path::new(file);
    let trial = iosched_experiment::TrialId { repetition: 1, ..Default::default() };
    let title = name.unwrap_or_else(|| stem(file));
    if path.is_dir() {
        let records = folder(path, format, &trial)?;
        remark(file, records.iter());
        return Ok(vec![of(title, records, file)]);
    }
    if let Some(document) = iosched_results::import::large_document(path, MAX_BYTES)? {
        return named(document.experiments, name, file);
    }
    let text = iosched_results::import::read_file(path)?;
    let ours = format.is_none_or(|f| f == Format::Json);
    if let Some(documents) = own(file, &text)?.filter(|_| ours) {
        return named(documents, name, file);
    }
    let records = iosched_results::import::import(file, &text, format, &trial)?;
    remark(file, records.iter());
    // Each experiment that the file names is one, under that name.
    let mut out: Vec<ExperimentDocument> = Vec::new();
    for r in records {
        match out.iter_mut().find(|d| d.name == r.trial.experiment) {
            Some(d) => d.records.push(r),
            None => out.push(of(&r.trial.experiment.clone(), vec![r], file)),
        }
    }
    named(out, name, file)
}

/// The experiments of a file under the name that the user gave, which is that of one.
fn named(
    mut documents: Vec<ExperimentDocument>,
    name: Option<&str>,
    file: &str,
) -> Outcome<Vec<ExperimentDocument>> {
    match (name, documents.as_mut_slice()) {
        (None, _) => {}
        (Some(name), [one]) => {
            one.name = name.into();
            one.records.iter_mut().for_each(|r| r.trial.experiment = name.into());
        }
        (Some(name), many) => {
            let names: Vec<String> = many.iter().map(|d| render::printable(&d.name)).collect();
            let message =
                format!("{file} has {} experiments, \"{name}\" can be only one", many.len());
            let help = format!("without --name they are {}", names.join(", "));
            return Err(Failure::with_help(message, help));
        }
    }
    Ok(documents)
}

/// A folder: of S files when it has some, else as fio-plot lays it out.
fn folder(
    path: &std::path::Path,
    format: Option<Format>,
    trial: &iosched_experiment::TrialId,
) -> Outcome<Vec<iosched_experiment::Record>> {
    use iosched_results::import::{fio_plot, has_s_files, s_folder};
    let s = match format {
        Some(Format::SSuite) => true,
        Some(Format::Fio) => false,
        Some(_) => {
            return Err(Failure::input(format!(
                "{} is a folder: only fio (as fio-plot lays it out) and s-suite are read from folders",
                path.display()
            )));
        }
        None => has_s_files(path)?,
    };
    Ok(if s { s_folder(path, trial)? } else { fio_plot(path, trial)? })
}

/// The experiments of a document of ours; `None` when it is none.
fn own(file: &str, text: &str) -> Outcome<Option<Vec<ExperimentDocument>>> {
    use iosched_results::store::DOCUMENT_FORMAT;
    let marker = format!("\"{DOCUMENT_FORMAT}\"");
    if !text.trim_start().starts_with('{')
        || !text.chars().take(200).collect::<String>().contains(&marker)
    {
        return Ok(None);
    }
    Ok(Some(iosched_results::import::document(file, text)?.experiments))
}
