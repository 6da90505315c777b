//! What is saved of a page is the original, in six digits.

use std::collections::BTreeMap;

use iosched_report::{Input, Options, html};
use iosched_results::cells::{Cells, charge_starved, group};
use iosched_results::import::{Context, from_page, import};

use crate::synthetic;

/// Every value of a cell, with its round and whether it is a limit.
pub(crate) type Values = BTreeMap<(String, String, String, String), Vec<(u32, f64, bool)>>;

pub(crate) fn values(cells: &Cells) -> Values {
    let mut out = Values::new();
    for (k, c) in &cells.0 {
        for (measure, m) in &c.measures {
            let key = (k.device.clone(), k.scheduler.clone(), k.workload.clone(), measure.clone());
            let all = m.sample.rounds.iter();
            out.insert(key, all.map(|(r, o)| (*r, o.value, o.censored)).collect());
        }
    }
    out
}

/// Whether what was read is the original, as far as it goes.
pub(crate) fn same(form: &str, original: &Values, back: &Values) {
    assert!(back.len() > 40, "{form}: {} cells", back.len());
    for (key, all) in back {
        let first = original.get(key).unwrap_or_else(|| panic!("{form}: no cell {key:?}"));
        assert_eq!(first.len(), all.len(), "{form}: {key:?}");
        for (a, b) in first.iter().zip(all) {
            // The page has six digits.
            let near = (a.1 - b.1).abs() <= 1e-5 * a.1.abs();
            assert!(near && (a.0, a.2) == (b.0, b.2), "{form}: {key:?}: {a:?}, {b:?}");
        }
    }
}

#[test]
fn a_page_reads_as_results_do() {
    let mut records = synthetic::records(3, 4, 5);
    synthetic::variety(&mut records);
    records.retain(|r| r.trial.repetition != 2 || !r.trial.scheduler.starts_with("kyber"));
    let options = Options { title: "Saved".into(), ..Options::default() };
    let page = html(&Input::from_records(options, &records));
    let mut original = group(&records);
    charge_starved([&mut original]);
    // Its form is recognised.
    let read = import("saved.html", &page, None, &Context::default()).unwrap();
    same("page", &values(&original), &values(&group(&read)));
    let other = from_page("a.html", "<!doctype html><p>no page of ours").unwrap_err();
    assert!(other.message.contains("it has no numbers"), "{other}");
}
