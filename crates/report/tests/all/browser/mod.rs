//! The pages in a real browser: every control is clicked and does something, the console stays silent, hostile
//! names are inert, keyboard and screen readers are served.
//!
//! Needs Chromium (`apt-get install chromium`), else the tests say that they are skipped. Screenshots, PDF and pages
//! are left in `target/tmp/browser/`.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that starts a browser"
)]

mod chromium;
mod controls;
mod follows;
mod served;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chromium::Browser;
use iosched_experiment::record::Record;
use iosched_report::{Input, Lane, Options, Step, html, steps};
use iosched_results::published;

use crate::synthetic;

/// One browser at a time: several on a small machine only wait for each other.
static TURN: Mutex<()> = Mutex::new(());

struct Stage {
    browser: Browser,
    dir: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Stage {
    /// A browser and a folder for what the test leaves; `None` where there is no browser.
    fn new(test: &str) -> Option<Stage> {
        let Some(program) = chromium::find() else {
            println!("SKIPPED: {test}: no Chromium on this machine");
            return None;
        };
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
        std::fs::create_dir_all(&dir).unwrap();
        let browser = Browser::start(&program, &dir.join(format!("{test}.log")));
        Some(Stage { browser, dir, _turn: turn })
    }

    /// Writes a page of records and opens it.
    fn show(&mut self, name: &str, title: &str, records: &[Record]) -> String {
        let options = Options { title: title.into(), ..Options::default() };
        let file = self.dir.join(format!("{name}.html"));
        std::fs::write(&file, html(&Input::from_records(options, records))).unwrap();
        let url = format!("file://{}", file.display());
        self.browser.open(&url);
        self.quiet(name);
        url
    }

    fn quiet(&mut self, place: &str) {
        let said = self.browser.complaints();
        assert!(said.is_empty(), "{place}: {said:#?}");
    }

    /// Light, dark, on a phone, and printed.
    fn pictures(&mut self, name: &str) {
        let b = &mut self.browser;
        for scheme in ["light", "dark"] {
            b.scheme(scheme);
            b.screenshot(&self.dir.join(format!("{name}-{scheme}.png")));
        }
        b.scheme("light");
        b.phone(true);
        let wide = b.number("document.documentElement.scrollWidth");
        let culprits = b.eval(
            "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 391 && !e.closest('.scroll, .vert, .mxw, #ctl, .vh, .figs'))
                .map(e => e.tagName + '.' + (e.getAttribute('class') || e.id)).slice(0, 12).join(' ')",
        );
        b.screenshot(&self.dir.join(format!("{name}-phone.png")));
        b.phone(false);
        b.print(&self.dir.join(format!("{name}.pdf")));
        assert!(wide <= 391.0, "{name}: {wide} px wide on a phone of 390 px: {culprits}");
    }
}

impl Browser {
    fn scheme(&mut self, scheme: &str) {
        let feature = serde_json::json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", serde_json::json!({ "features": feature }));
    }

    fn phone(&mut self, on: bool) {
        if on {
            let size = serde_json::json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
            self.call("Emulation.setDeviceMetricsOverride", size);
        } else {
            self.call("Emulation.clearDeviceMetricsOverride", serde_json::json!({}));
        }
    }
}

#[test]
fn every_control_does_something() {
    let Some(mut stage) = Stage::new("controls") else { return };
    // With a lost sample, so that lines have a gap, and a noisy chart.
    let mut records = synthetic::records(4, 5, 5);
    synthetic::variety(&mut records);
    records.retain(|r| {
        r.trial.repetition != 3
            || r.trial.workload != "workload 00"
            || !r.trial.scheduler.starts_with("kyber")
    });
    // Two versions of one scheduler.
    for r in records.iter_mut().filter(|r| r.trial.scheduler.starts_with("bfq")) {
        r.trial.scheduler = "none@5.0".into();
    }
    stage.show("synthetic", "Synthetic records", &records);
    controls::every_control(&mut stage);
    stage.pictures("synthetic");
    controls::views(&mut stage);
}

#[test]
fn published_pages_draw_the_text_that_the_program_wrote() {
    let Some(mut stage) = Stage::new("published") else { return };
    for name in published::names() {
        stage.show(name, name, &published::records(name).unwrap());
        controls::redraws_the_same(&mut stage, name);
        if name.starts_with("linux") {
            stage.pictures(name);
        }
    }
}

/// Two schedulers in step: stepping goes from decision to decision, and each lane says what waits and why.
#[test]
fn schedulers_are_played_in_step() {
    let Some(mut stage) = Stage::new("steps") else { return };
    let step = |sector: u64, n: u64, why: &str| Step {
        what: format!("R{sector}+8"),
        who: format!("pid {sector}"),
        before: 0,
        pid: sector as u32,
        sector,
        sectors: 8,
        came: Some(0),
        sent: Some(n * 5_000_000),
        done: Some((n + 1) * 5_000_000),
        why: why.into(),
    };
    let lane = |name: &str, first: u64, second: u64| Lane {
        name: name.into(),
        steps: vec![step(first, 0, "the oldest"), step(second, 2, "its turn")],
        idle: vec![(5_000_000, 10_000_000, "waits for the next".into())],
    };
    let file = stage.dir.join("steps.html");
    std::fs::write(&file, steps("two", &[lane("none", 10, 90), lane("bfq", 90, 10)])).unwrap();
    stage.browser.open(&format!("file://{}", file.display()));
    let now = |stage: &mut Stage| {
        let all = "[...document.querySelectorAll('#clock, .now, .because')].map(e => e.textContent).join('|')";
        stage.browser.text(all)
    };
    assert!(now(&mut stage).starts_with("15.000 ms|waiting: none"), "{}", now(&mut stage));
    stage.browser.key("Home");
    assert_eq!(
        now(&mut stage),
        "0.000 ms|waiting: 1 of pid 90; at the device: R10+8 of pid 10|the oldest|waiting: 1 of pid 10; at the device: R90+8 of pid 90|the oldest"
    );
    stage.browser.eval("document.querySelector('#step').click()");
    let idle = now(&mut stage);
    assert!(
        idle.starts_with("5.000 ms|waiting: 1 of pid 90; held idle|waits for the next"),
        "{idle}"
    );
    stage.browser.eval(
        "document.querySelector('#speed').value = '1', document.querySelector('#go').click()",
    );
    for _ in 0..100 {
        if now(&mut stage).starts_with("15.000") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(now(&mut stage).starts_with("15.000 ms|waiting: none"), "it plays to the end");
    stage.quiet("steps");
    stage.pictures("steps");
}

#[test]
fn the_figures_are_the_reference_viewers() {
    let Some(mut stage) = Stage::new("figures") else { return };
    stage.show("figures", "linux-3.12", &published::records("linux-3.12").unwrap());
    controls::figures(&mut stage);
}

#[test]
fn hostile_names_are_inert() {
    let Some(mut stage) = Stage::new("hostile") else { return };
    stage.show("hostile", synthetic::HOSTILE, &synthetic::hostile());
    controls::redraws_the_same(&mut stage, "hostile");
    controls::open_all(&mut stage);
    for (name, value) in [
        ("all", "true"),
        ("a", "'0'"),
        ("b", "'1'"),
        ("trn", "true"),
        ("kind", "'l'"),
        ("sro", "'t'"),
    ] {
        controls::set(&mut stage, name, value);
    }
    let inert =
        "window.hacked === undefined && !document.querySelector('img, iframe, object, embed') &&
        document.scripts.length === 2";
    assert_eq!(stage.browser.eval(inert), true, "a name became code");
    stage.quiet("hostile");
    stage.pictures("hostile");
}

#[test]
fn keyboard_screen_reader_and_poor_eyes_are_served() {
    let Some(mut stage) = Stage::new("access") else { return };
    stage.show("access", "Synthetic records", &synthetic::records(3, 4, 5));
    controls::accessible(&mut stage);
}

#[test]
fn without_its_script_the_page_is_complete() {
    let Some(mut stage) = Stage::new("plain") else { return };
    let off = serde_json::json!({ "value": true });
    stage.browser.call("Emulation.setScriptExecutionDisabled", off);
    stage.show("plain", "Synthetic records", &synthetic::records(4, 5, 5));
    let shown = |b: &mut Browser, what: &str| {
        b.number(&format!(
            "[...document.querySelectorAll({what:?})].filter(e => e.getClientRects().length).length"
        ))
    };
    let b = &mut stage.browser;
    assert_eq!(shown(b, "#ctl"), 0.0, "controls that do nothing");
    b.eval("document.querySelectorAll('details').forEach(e => { e.setAttribute('open', ''); })");
    for (what, least) in [(".goal", 1.0), ("#mx td", 20.0), (".strip", 8.0), (".fold svg", 20.0)] {
        assert!(shown(b, what) >= least, "{what}");
    }
    b.screenshot(&stage.dir.join("plain.png"));
}

#[test]
fn text_fits() {
    let Some(mut stage) = Stage::new("fits") else { return };
    stage.show("fits", "linux-4.12", &published::records("linux-4.12").unwrap());
    for (phone, pages) in [(false, 2), (true, 2)] {
        stage.browser.phone(phone);
        for page in 0..pages {
            if page == 1 {
                let mut records = synthetic::records(3, 8, 5);
                for r in &mut records {
                    r.trial.device = "Vendor NVMe drive with a long name, 2 TB".into();
                    r.trial.workload.push_str(" with many words, as people write them");
                }
                stage.show("fits", "Long names", &records);
            }
            let cut = stage.browser.texts(controls::CUT);
            assert!(cut.is_empty(), "phone {phone}, page {page}: {cut:#?}");
        }
    }
    stage.browser.phone(false);
}

#[test]
fn the_server_lists_searches_compares_and_follows_a_run() {
    let Some(mut stage) = Stage::new("server") else { return };
    served::walk(&mut stage);
}
