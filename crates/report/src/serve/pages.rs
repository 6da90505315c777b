//! The addresses: `/`, `/experiment/ID`, `/compare?a=ID&b=ID`.

use std::path::Path;
use std::sync::LazyLock;

use iosched_results::store::{ExperimentRow, Store, StoreError};
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use super::{Answer, Request};
use crate::html::{Input, Options, html};

/// More trials than this are shown by their numbers alone: curves of so many would not fit in memory.
const MOST_RECORDS: u32 = 20_000;

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut env = Environment::new();
    env.add_template("list.html", include_str!("../../assets/list.html"))
        .expect("the shipped template parses");
    env
});

/// The answer to a request.
pub(super) fn answer(store: &Path, r: &Request) -> Answer {
    let found = Store::open_read_only(store).and_then(|s| route(&s, r));
    match found {
        Ok(Some(html)) => Answer::html(html),
        Ok(None) => Answer::text(404, "no such page; the list of results is at /"),
        Err(e) => Answer::text(500, &e.to_string()),
    }
}

fn route(store: &Store, r: &Request) -> Result<Option<String>, StoreError> {
    let of = |key: &str| r.query.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
    let id = |text: Option<&str>| text.and_then(|t| t.parse::<i64>().ok());
    let rows = store.list()?;
    let row = |id: i64| rows.iter().find(|r| r.id == id);
    let refresh = of("live").and_then(|s| s.parse().ok()).map(|s: u32| s.clamp(2, 600));
    if r.path == "/" {
        return Ok(Some(list(&rows, of("q").unwrap_or_default(), refresh)));
    }
    if r.path == "/compare" {
        let (Some(a), Some(b)) = (id(of("a")).and_then(row), id(of("b")).and_then(row)) else {
            return Ok(None);
        };
        return compare(store, a, b).map(Some);
    }
    let Some(row) = id(r.path.strip_prefix("/experiment/")).and_then(row) else { return Ok(None) };
    let live = format!("/experiment/{}?live=5", row.id);
    let watch = if refresh.is_some() {
        ("stop watching", live.split('?').next())
    } else {
        ("watch live", Some(live.as_str()))
    };
    let options = Options {
        title: row.name.clone(),
        made: progress(row),
        links: vec![
            ("all results".into(), "/".into()),
            (watch.0.into(), watch.1.unwrap_or("/").into()),
        ],
        refresh,
        ..Options::default()
    };
    if row.trials > MOST_RECORDS {
        return Ok(Some(html(&Input::from_cells(options, store.cells(row.id)?))));
    }
    let mut input = Input { options, ..Input::default() };
    store.for_each(row.id, |_, record| input.add(&record))?;
    Ok(Some(html(&input)))
}

fn progress(row: &ExperimentRow) -> String {
    format!(
        "{} trials stored ({} complete, {} invalid, {} failed), begun {}",
        row.trials, row.complete, row.invalid, row.failed, row.created
    )
}

/// Both experiments on one page, schedulers told apart by the experiment they belong to.
fn compare(store: &Store, a: &ExperimentRow, b: &ExperimentRow) -> Result<String, StoreError> {
    let options = Options {
        title: format!("{} (A) and {} (B)", a.name, b.name),
        made: format!("A: {}; B: {}", progress(a), progress(b)),
        links: vec![("all results".into(), "/".into())],
        ..Options::default()
    };
    let mut input = Input { options, ..Input::default() };
    for (row, mark) in [(a, "A"), (b, "B")] {
        store.for_each(row.id, |_, mut record| {
            record.trial.scheduler = format!("{mark}: {}", record.trial.scheduler);
            input.add(&record);
        })?;
    }
    Ok(html(&input))
}

#[derive(Serialize)]
struct Listing<'a> {
    query: &'a str,
    rows: Vec<&'a ExperimentRow>,
    all: usize,
    refresh: Option<u32>,
    css: &'static str,
}

fn list(rows: &[ExperimentRow], query: &str, refresh: Option<u32>) -> String {
    let wanted = query.to_lowercase();
    let fits = |r: &&ExperimentRow| {
        let text = format!("{} {} {} {}", r.id, r.name, r.source, r.created).to_lowercase();
        wanted.split_whitespace().all(|w| text.contains(w))
    };
    let shown = rows.iter().filter(fits).collect();
    let css = include_str!("../../assets/page.css");
    let listing = Listing { query, rows: shown, all: rows.len(), refresh, css };
    TEMPLATES
        .get_template("list.html")
        .and_then(|t| t.render(Value::from(Serde(listing))))
        .expect("the shipped template renders whatever the data are")
}
