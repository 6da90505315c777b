//! The server's pages: list, search, comparison, a run that is under way.

use iosched_report::Server;
use iosched_results::store::{Document, Store};

use super::Stage;
use crate::synthetic;

pub(crate) fn walk(stage: &mut Stage) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.db");
    let mut store = Store::open(&path).unwrap();
    for name in ["monday", "tuesday", synthetic::HOSTILE] {
        let document = Document::of(name, synthetic::records(2, 3, 5));
        store.import(&document.experiments[0]).unwrap();
    }
    let server = Server::bind(&path, 0).unwrap();
    let home = format!("http://{}/", server.address());
    std::thread::spawn(move || server.run());

    let names = "[...document.querySelectorAll('tbody th')].map(e => e.innerText.trim())";
    stage.browser.open(&home);
    assert_eq!(stage.browser.texts(names).len(), 3);
    assert_eq!(stage.browser.eval("document.scripts.length"), 0);
    stage.pictures("server-list");

    narrow(stage);

    stage.browser.type_into("input[type=search]", "monday");
    stage.browser.key("Enter");
    stage.browser.wait("Page.loadEventFired", |_| true);
    assert_eq!(stage.browser.texts(names), ["monday"]);

    stage.browser.open(&home);
    let radio = |column: &str, row: u32| format!("tr:nth-child({row}) input[name={column}]");
    stage.browser.click(&radio("a", 2));
    stage.browser.click(&radio("b", 3));
    stage.browser.click("form[action='/compare'] button");
    stage.browser.wait("Page.loadEventFired", |_| true);
    let title = stage.browser.text("document.querySelector('h1').innerText");
    assert_eq!(title, "tuesday (A) and monday (B)");
    stage.browser.eval("document.querySelector('#undo').click()");
    stage.quiet("comparison");
    stage.browser.screenshot(&stage.dir.join("server-compare.png"));

    follow(stage, &mut store, &home);
}

/// In a narrow window the list needs no scrolling, and no word or date is broken over lines.
fn narrow(stage: &mut Stage) {
    let size =
        serde_json::json!({ "width": 500, "height": 844, "deviceScaleFactor": 1, "mobile": false });
    stage.browser.call("Emulation.setDeviceMetricsOverride", size);
    let wide = stage.browser.number("document.documentElement.scrollWidth");
    assert!(wide <= 500.0, "the list is {wide} wide");
    let broken = "[...document.querySelectorAll('.list td:not(.said)')].filter(e => e.getBoundingClientRect().height > 36).map(e => e.innerText)";
    assert!(stage.browser.texts(broken).is_empty(), "{:?}", stage.browser.texts(broken));
    let labels = "[...document.querySelectorAll('.list tbody tr:first-child td')].map(e => getComputedStyle(e, '::before').content)";
    let labels = stage.browser.texts(labels).join(" ");
    assert!(labels.contains("begun") && labels.contains("failed or invalid"), "{labels}");
    stage.browser.screenshot(&stage.dir.join("server-list-narrow.png"));
    stage.browser.call("Emulation.clearDeviceMetricsOverride", serde_json::json!({}));
}

/// An experiment of twelve trials of which five are stored, then all.
fn follow(stage: &mut Stage, store: &mut Store, home: &str) {
    let records = synthetic::records(2, 3, 2);
    let id = store.begin("under way", "", "run").unwrap();
    store.expect(id, records.len() as u32).unwrap();
    let (first, rest) = records.split_at(5);
    store.put_all(id, first.iter().map(|r| (r, ""))).unwrap();
    stage.browser.open(home);
    let list = stage.browser.text("document.querySelector('tbody').innerText");
    assert!(list.contains("5 of 12"), "{list}");
    stage.browser.open(&format!("{home}experiment/{id}?live=2"));
    let progress = "document.querySelector('#progress').innerText";
    let text = stage.browser.text(progress);
    assert!(text.contains("5 of 12 trials") && text.contains("left"), "{text}");
    stage.browser.screenshot(&stage.dir.join("server-live.png"));
    store.put_all(id, rest.iter().map(|r| (r, ""))).unwrap();
    // The page loads itself again.
    let now = |stage: &mut Stage| stage.browser.try_eval(progress).unwrap_or_default();
    while !now(stage).to_string().contains("12 of 12 trials") {
        stage.browser.wait("Page.loadEventFired", |_| true);
    }
    assert_eq!(stage.browser.eval("!!document.querySelector('meta[http-equiv=refresh]')"), false);
    stage.quiet("live");
}
