//! What a page promises: one file, small, inert, complete, the same every time.

#![allow(clippy::unwrap_used, reason = "a test")]

mod synthetic;

use iosched_report::{Input, Options, html};
use iosched_results::published;

fn page_of(records: &[iosched_experiment::Record]) -> String {
    html(&Input::from_records(Options { title: "t".into(), ..Options::default() }, records))
}

#[test]
fn twenty_workloads_by_eight_schedulers_stay_small_and_load_nothing() {
    let records = synthetic::records(20, 8, 5);
    let page = page_of(&records);
    // The limit is 1.5 MB; this leaves room for names that are longer than these.
    assert!(page.len() < 1_400_000, "{} bytes", page.len());
    // A namespace is a name, not an address.
    let links = page.replace("http://www.w3.org/2000/svg", "");
    for remote in ["http:", "https:", "//cdn", "@import", "url("] {
        assert!(!links.contains(remote), "{remote}");
    }
    assert_eq!(page, page_of(&records));
    // The failed cell is shown with its reason, in its chart and in the list.
    assert!(page.matches("the device vanished").count() >= 3);
    assert!(page.contains("<td class=\"num\">&gt;60"), "the censored start-up time");
}

#[test]
fn hostile_names_stay_text() {
    let records = synthetic::hostile();
    let options = Options { title: synthetic::HOSTILE.into(), ..Options::default() };
    let page = html(&Input::from_records(options, &records));
    assert_eq!(page.matches("<script").count(), 2, "the data and the script");
    assert_eq!(page.matches("</script").count(), 2);
    assert_eq!(page.matches("<img").count(), 0);
    assert!(page.contains("{{7*7}}"), "template syntax in a name is not run");
    assert!(page.contains("&lt;script&gt;"));
    assert!(!page.contains('\u{202e}'), "a name turns no text around");
}

#[test]
fn the_published_means_are_the_reference_viewers() {
    let page = |n| page_of(&published::records(n).unwrap());
    let old = page("linux-3.12");
    for mean in ["148.7", "150", "148.7"] {
        assert!(old.contains(&format!("<td data-if=\"sgm\">{mean}</td>")), "{mean}");
    }
    let new = page("linux-4.12");
    for text in ["173.8", "187.3", "93.32", "599.5", "414.6"] {
        assert!(new.contains(&format!("<td data-if=\"sgm\">{text}</td>")), "{text}");
    }
    assert!(new.contains("106.6 MB&#x2f;s"), "the harmonic mean of SSD BFQ");
    assert!(new.contains("one value of each proves nothing") && new.contains("not testable"));
}

#[test]
fn no_records_are_still_a_page() {
    let page = page_of(&[]);
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
}
