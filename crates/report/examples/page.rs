//! Writes a page: `cargo run -p iosched-report --example page -- published linux-4.12 out.html`,
//! `… -- json results.json out.html`, `… -- store results.db out.html` or `… -- synthetic 20 8 out.html`.

#![allow(clippy::disallowed_methods, reason = "an example reads and writes files")]

use std::error::Error;

use iosched_report::{Input, Options, html};
use iosched_results::published;
use iosched_results::store::{Document, Store};

#[path = "../tests/all/synthetic/mod.rs"]
mod synthetic;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut options = Options::default();
    let (input, out) = match words[..] {
        ["published", name, out] => {
            let c = published::load(name)?;
            options.title.clone_from(&c.title);
            options.description.clone_from(&c.description);
            (Input::from_records(options, &c.to_records()), out)
        }
        ["json", file, out] => {
            let d: Document = serde_json::from_str(&std::fs::read_to_string(file)?)?;
            options.title = d.experiments.iter().map(|e| e.name.as_str()).collect();
            (Input::from_records(options, d.experiments.iter().flat_map(|e| &e.records)), out)
        }
        ["store", file, out] => {
            let store = Store::open_read_only(file.as_ref())?;
            let first = store.list()?.into_iter().next().ok_or("an empty store")?;
            options.title = first.name;
            (Input::from_store(options, &store, first.id)?, out)
        }
        ["synthetic", workloads, schedulers, out] => {
            options.title = "Synthetic records".into();
            let records = synthetic::records(workloads.parse()?, schedulers.parse()?, 5);
            (Input::from_records(options, &records), out)
        }
        ["hostile", out] => {
            options.title = synthetic::HOSTILE.into();
            (Input::from_records(options, &synthetic::hostile()), out)
        }
        _ => return Err("see the head of this file for the arguments".into()),
    };
    std::fs::write(out, html(&input))?;
    Ok(())
}
