//! What follows the controls although it was judged before, what comes back from the page, and what fits a phone.

use std::path::Path;

use iosched_experiment::Record;
use iosched_report::{Input, Options, html};
use iosched_results::cells::group;
use iosched_results::import::{from_csv, from_pts};
use iosched_results::published;
use serde_json::json;

use super::Stage;
use super::controls::set;
use crate::saved::{same, values};
use crate::synthetic;

/// Four schedulers, of which the last is far ahead in every round, and none failed.
fn won() -> Vec<Record> {
    let mut records = synthetic::records(2, 4, 6);
    let fine = records[0].status.clone();
    for r in &mut records {
        r.status = fine.clone();
        let factor = if r.trial.scheduler.starts_with("bfq") { 2.0 } else { 1.0 };
        for j in &mut r.jobs {
            j.read.bytes = (1e9 * factor) as u64 + u64::from(r.trial.repetition);
        }
    }
    records
}

/// The text of the answer's first goal as a reader sees it, one space between words.
const GOAL: &str = "(document.querySelector('.goals').open = true, document.querySelector('#answer .goal').innerText.replace(/\\s+/g, ' '))";
/// The text of the verdict.
const VERDICT: &str = "document.querySelector('.adv article').innerText.replace(/\\s+/g, ' ')";

#[test]
fn the_answer_follows_hiding_names_and_the_base() {
    let Some(mut stage) = Stage::new("answer") else { return };
    let records = won();
    let url = stage.show("answer", "Won", &records);
    let first = stage.browser.text(GOAL);
    assert!(first.contains("bfq@6.12: +") && first.contains("against none"), "{first}");
    let number = |stage: &mut Stage, name: &str| {
        let list = "JSON.parse(document.querySelector('#data').textContent).schedulers";
        stage.browser.number(&format!("{list}.findIndex(s => s.startsWith({name:?}))"))
    };
    let (bfq, none) = (number(&mut stage, "bfq"), number(&mut stage, "none"));
    let open = |stage: &mut Stage, state: &str| {
        stage.browser.open(&format!("{url}#?{state}"));
        stage.quiet(state);
        stage.browser.text(GOAL)
    };
    let hidden = open(&mut stage, &format!("hide={bfq}"));
    assert!(
        hidden.contains("No winner among those shown: bfq@6.12, which leads, is hidden."),
        "{hidden}"
    );
    assert!(hidden.contains("winner hidden") && !hidden.contains("bfq@6.12: +"), "{hidden}");
    assert!(stage.browser.text(VERDICT).contains("hidden here"));
    let other = open(&mut stage, &format!("hide={none}"));
    assert!(
        other.contains("bfq@6.12: +") && other.contains("Judged with none@6.12, hidden here"),
        "{other}"
    );
    let renamed = open(&mut stage, &format!("name=%7B%22{bfq}%22%3A%22my%20%3Cb%3E%22%7D"));
    assert!(renamed.contains("my <b>: +") && !renamed.contains("bfq"), "{renamed}");
    let verdict = stage.browser.text(VERDICT);
    assert!(verdict.contains("Use my <b>: ") && !verdict.contains("hidden here"), "{verdict}");
    let keys =
        stage.browser.texts("[...document.querySelectorAll('.key span')].map(e => e.textContent)");
    assert!(
        keys.iter().any(|k| k.contains("my <b>")) && !keys.iter().any(|k| k.contains("bfq")),
        "{keys:?}"
    );
    let base = open(&mut stage, &format!("base={bfq}"));
    assert!(
        base.contains("against none@6.12 not against bfq, the base of the tables below"),
        "{base}"
    );
    stage.browser.eval("document.querySelector('#undo').click()");
    assert_eq!(stage.browser.text(GOAL), first, "reset brings it back");
    // Two pages of one store: the base that the page was made with is not that of the answer.
    let options = Options { base: Some("bfq".into()), ..Options::default() };
    let page = html(&Input::from_records(options, &records));
    assert!(page.contains("not against bfq, the base of the tables below"));
}

fn download(stage: &mut Stage, button: &str, dir: &Path, name: &str) -> String {
    let allow = json!({ "behavior": "allow", "downloadPath": dir, "eventsEnabled": true });
    stage.browser.call("Browser.setDownloadBehavior", allow);
    stage.browser.eval(&format!("document.querySelector({button:?}).click()"));
    stage.browser.wait("Browser.downloadProgress", |p| p["state"] == "completed");
    stage.quiet(button);
    std::fs::read_to_string(dir.join(name)).unwrap()
}

#[test]
fn what_the_page_saves_can_be_imported_and_is_the_original() {
    let Some(mut stage) = Stage::new("saved") else { return };
    let mut records = synthetic::records(3, 4, 5);
    synthetic::variety(&mut records);
    // A lost round stays lost.
    records.retain(|r| r.trial.repetition != 2 || !r.trial.scheduler.starts_with("kyber"));
    stage.show("saved", "Saved", &records);
    let original = values(&group(&records));
    let dir = stage.dir.join("saved");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let csv = download(&mut stage, "#csv", &dir, "iosched.csv");
    let xml = download(&mut stage, "#xml", &dir, "composite.xml");
    let read = [
        ("csv", from_csv("iosched.csv", &csv).unwrap()),
        ("xml", from_pts("composite.xml", &xml).unwrap().to_records()),
    ];
    for (form, read) in read {
        same(form, &original, &values(&group(&read)));
    }
}

#[test]
fn a_filter_searches_what_is_shown() {
    let Some(mut stage) = Stage::new("filter") else { return };
    // Its second workload reads and writes; `rw=randread` stands in every job's options.
    stage.show("filter", "Filter", &synthetic::records(2, 3, 3));
    let shown = "[...document.querySelectorAll('#mx tr[data-m] th')].map(e => e.textContent)";
    let all = stage.browser.texts(shown);
    assert!(all.iter().any(|t| t.starts_with("Write")), "{all:?}");
    set(&mut stage, "oss", "'read'");
    let left = stage.browser.texts(shown);
    assert!(!left.is_empty() && left.iter().all(|t| t.starts_with("Read")), "{left:?}");
    assert!(stage.browser.text("document.querySelector('#count').textContent").contains(" of "));
}

#[test]
fn more_cores_make_no_wait_longer() {
    let Some(mut stage) = Stage::new("cores") else { return };
    stage.show("cores", "Cores", &synthetic::records(1, 3, 3));
    let of = |stage: &mut Stage, title: &str| {
        let cell = format!(
            "[...document.querySelectorAll('#mx tr[data-m]')].find(e => e.textContent.startsWith({title:?})).querySelector('td').textContent"
        );
        stage.browser.text(&cell)
    };
    set(&mut stage, "view", "'abs'");
    let plain =
        ["Read completion latency", "Fairness", "Read throughput"].map(|t| of(&mut stage, t));
    set(&mut stage, "view", "'core'");
    let cores =
        ["Read completion latency", "Fairness", "Read throughput"].map(|t| of(&mut stage, t));
    assert_eq!((&plain[0], &plain[1]), (&cores[0], &cores[1]));
    assert_ne!(plain[2], cores[2], "a rate for each of eight cores");
}

#[test]
fn curves_as_averages_are_bars_with_values() {
    let Some(mut stage) = Stage::new("averages") else { return };
    stage.show("averages", "Averages", &synthetic::records(1, 3, 3));
    super::controls::open_all(&mut stage);
    let seen = |stage: &mut Stage, what: &str| {
        stage.browser.number(&format!(
            "[...document.querySelectorAll({what:?})].filter(e => e.getClientRects().length).length"
        ))
    };
    let (curves, bars) = (seen(&mut stage, ".fold svg.lines"), seen(&mut stage, ".avg tbody tr"));
    assert!(curves > 2.0 && bars == 0.0, "{curves} curves, {bars} bars");
    set(&mut stage, "scalar", "true");
    assert_eq!(seen(&mut stage, ".fold svg.lines"), 0.0);
    let bars = seen(&mut stage, ".avg tbody tr");
    assert!(bars >= curves, "{curves} pictures, {bars} averages");
    let values = stage
        .browser
        .texts("[...document.querySelectorAll('.avg td:last-child')].map(e => e.textContent)");
    assert!(values.iter().all(|v| v.starts_with(|c: char| c.is_ascii_digit())), "{values:?}");
}

#[test]
fn a_phone_shows_whole_menus_and_the_whole_toolbar() {
    let Some(mut stage) = Stage::new("phone") else { return };
    stage.show("phone", "Phone", &synthetic::records(2, 4, 3));
    stage.browser.phone(true);
    let beyond = "(() => { const out = [], wide = document.documentElement.clientWidth;
        const look = (e, what) => { const b = e.getBoundingClientRect(); if (b.width && (b.left < 0 || b.right > wide + 0.5)) out.push(what + ' ' + Math.round(b.left) + ' to ' + Math.round(b.right)); };
        for (const e of document.querySelectorAll('#ctl > *')) look(e, e.textContent.trim().slice(0, 20));
        for (const d of document.querySelectorAll('.pop')) { d.open = true; const name = d.querySelector('summary').textContent;
            for (const e of d.querySelectorAll('div, label, button, input, select, pre')) look(e, name + ' ' + e.tagName); d.open = false; }
        for (const e of document.querySelectorAll('#schedulers :is(th, td)')) look(e, 'provenance');
        return out; })()";
    let cut = stage.browser.texts(beyond);
    assert!(cut.is_empty(), "{cut:#?}");
    // Names of runs do not break into many lines beside empty cells.
    stage
        .browser
        .eval("document.querySelectorAll('.fold > details').forEach(e => { e.open = true; })");
    let high = "[...document.querySelectorAll('.fold .dt:not(.left) tbody tr')].map(e => e.getBoundingClientRect().height).reduce((a, b) => Math.max(a, b), 0)";
    let high = stage.browser.number(high);
    assert!(high < 60.0, "a row of {high} px");
    stage.browser.phone(false);
}

#[test]
fn headings_stand_over_columns_and_a_few_columns_stay_together() {
    let Some(mut stage) = Stage::new("columns") else { return };
    stage.show("columns", "iozone-san", &published::records("iozone-san").unwrap());
    let titles = stage
        .browser
        .texts("[...document.querySelectorAll('#mx tr[data-m] th')].map(e => e.textContent)");
    let mut once = titles.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), titles.len(), "every line has a name of its own: {titles:?}");
    assert!(titles.contains(&"write throughput, -t 1".to_string()), "{titles:?}");
    let cut = stage.browser.texts(super::controls::CUT);
    assert!(cut.is_empty(), "{cut:#?}");
    let wide = "Math.max(...[...document.querySelectorAll('#mx tbody td')].map(e => e.getBoundingClientRect().width))";
    let wide = stage.browser.number(wide);
    assert!(wide < 140.0, "a column of {wide} px");
    let heads = "[...document.querySelectorAll('.dh > span')].filter(e => e.getClientRects().length).length";
    assert!(stage.browser.number(heads) > 0.0);
    for kind in ["l", "v"] {
        set(&mut stage, "kind", &format!("{kind:?}"));
        assert_eq!(stage.browser.number(heads), 0.0, "{kind}: headings over no columns");
    }
    let one = "(() => { const e = document.forms[0].elements.oss; e.value = 'write throughput'; e.dispatchEvent(new Event('input', { bubbles: true })); return document.querySelector('#count').textContent; })()";
    let said = stage.browser.text(one);
    assert!(said.contains("of 16 measures"), "{said}");
}
