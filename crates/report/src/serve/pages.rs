//! The addresses: `/`, `/experiment/ID`, `/compare?a=ID&b=ID`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use iosched_results::store::{ExperimentRow, Progress, Store, StoreError};
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use super::verdicts::{Line, lines};
use super::{Answer, Request};
use crate::html::{DIRECTIONS, Input, Options, html};

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut env = Environment::new();
    env.add_template("list.html", include_str!("../../assets/list.html"))
        .expect("the shipped template parses");
    env
});

/// The answer to a request.
pub(super) fn answer(store: &Path, r: &Request) -> Answer {
    let found = Store::open_read_only(store).and_then(|s| route(&s, store, r));
    match found {
        Ok(Some(html)) => Answer::html(html),
        Ok(None) => Answer::text(404, "no such page; the list of results is at /"),
        Err(e) => Answer::text(500, &e.to_string()),
    }
}

fn route(store: &Store, path: &Path, r: &Request) -> Result<Option<String>, StoreError> {
    let of = |key: &str| r.query.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
    let id = |text: Option<&str>| text.and_then(|t| t.parse::<i64>().ok());
    let rows = store.list()?;
    let row = |id: i64| rows.iter().find(|r| r.id == id);
    let refresh = of("live").and_then(|s| s.parse().ok()).map(|s: u32| s.clamp(2, 600));
    if r.path == "/" {
        let query = of("q").unwrap_or_default();
        let shown = matching(&rows, query);
        let verdicts = lines(store, path, &shown)?;
        let all = rows.len();
        return Ok(Some(list(Listing { query, rows: shown, all, verdicts, refresh, css: CSS })));
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
    let progress = store.progress(row.id)?;
    // What is over does not change: it is not asked for again.
    let refresh = refresh.filter(|_| progress.planned.is_none() || progress.under_way());
    let options = Options {
        title: row.name.clone(),
        made: summary(row),
        links: vec![
            ("all results".into(), "/".into()),
            (watch.0.into(), watch.1.unwrap_or("/").into()),
        ],
        status: status(&progress),
        done: progress.planned.map(|p| (progress.stored, p)),
        refresh,
        ..Options::default()
    };
    Ok(Some(html(&Input::from_store(options, store, row.id)?)))
}

/// How far an experiment is, in words; empty where nobody knows how many trials it is to have.
fn status(p: &Progress) -> String {
    let Some(planned) = p.planned else { return String::new() };
    let so_far = format!("{} of {planned} trials", p.stored);
    if !p.under_way() {
        return format!("{so_far}: finished");
    }
    let silent = duration(p.silent);
    match p.left() {
        _ if p.stalled() => format!("{so_far}; none for {silent}: interrupted, it seems"),
        Some(left) => format!("{so_far}, about {} left", duration(left)),
        None => format!("{so_far}, time left not known yet"),
    }
}

/// `40 s`, `3 min`, `2 h 5 min`.
fn duration(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..=119 => format!("{s} s"),
        120..=7199 => format!("{} min", (s + 30) / 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

fn summary(row: &ExperimentRow) -> String {
    format!(
        "{} trials stored ({} complete, {} invalid, {} failed), begun {}",
        row.trials, row.complete, row.invalid, row.failed, row.created
    )
}

/// Both experiments on one page, schedulers told apart by the experiment they belong to.
fn compare(store: &Store, a: &ExperimentRow, b: &ExperimentRow) -> Result<String, StoreError> {
    let options = Options {
        title: format!("{} (A) and {} (B)", a.name, b.name),
        made: format!("A: {}; B: {}", summary(a), summary(b)),
        links: vec![("all results".into(), "/".into())],
        ..Options::default()
    };
    let mut input = Input { options, ..Input::default() };
    input.add_stored(store, a.id, "A: ")?;
    input.add_stored(store, b.id, "B: ")?;
    Ok(html(&input))
}

#[derive(Serialize)]
struct Listing<'a> {
    query: &'a str,
    rows: Vec<&'a ExperimentRow>,
    all: usize,
    verdicts: BTreeMap<i64, Vec<Line>>,
    refresh: Option<u32>,
    css: &'static str,
}

const CSS: &str = include_str!("../../assets/page.css");

/// The experiments that have all words of a query.
fn matching<'a>(rows: &'a [ExperimentRow], query: &str) -> Vec<&'a ExperimentRow> {
    let wanted = query.to_lowercase();
    let fits = |r: &&ExperimentRow| {
        let text = format!("{} {} {} {}", r.id, r.name, r.source, r.created).to_lowercase();
        wanted.split_whitespace().all(|w| text.contains(w))
    };
    rows.iter().filter(fits).collect()
}

fn list(listing: Listing<'_>) -> String {
    TEMPLATES
        .get_template("list.html")
        .and_then(|t| t.render(Value::from(Serde(listing))))
        .expect("the shipped template renders whatever the data are")
        .replace(DIRECTIONS, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_how_far_it_is() {
        let p = Progress { stored: 5, planned: Some(12), pace: Some(30.0), silent: 10.0 };
        assert_eq!(status(&p), "5 of 12 trials, about 3 min left");
        assert_eq!(status(&Progress { stored: 12, ..p }), "12 of 12 trials: finished");
        assert!(status(&Progress { silent: 9000.0, ..p }).contains("none for 2 h 30 min"));
        assert!(status(&Progress { pace: None, ..p }).contains("not known yet"));
        assert_eq!(status(&Progress { planned: None, ..p }), "");
    }
}
