use proptest::prelude::*;

use super::*;
use crate::model::{Cell, Comparison, PublishedSummary, Run, Test};
use crate::published;
use crate::stats::Better;

const MINIMAL: &str = r#"<?xml version="1.0"?>
<PhoronixTestSuite>
  <Generated><Title>Smoke &amp; fire</Title><LastModified>2025-01-31 12:00:00</LastModified></Generated>
  <System>
    <Identifier>bfq</Identifier>
    <Hardware>Processor: A (8 Cores), Disk: 1TB Model B</Hardware>
    <Software>OS: Debian 12, Kernel: 6.1.0 (x86_64)</Software>
    <JSON>{"disk-scheduler":"BFQ"}</JSON>
  </System>
  <Result>
    <Identifier>pts/fs-mark-1.0.0</Identifier><Title>FS-Mark</Title><AppVersion>3.3</AppVersion>
    <Scale>Files/s</Scale><Proportion>HIB</Proportion><DisplayFormat>BAR_GRAPH</DisplayFormat>
    <Data><Entry><Identifier>bfq</Identifier><Value>20.1</Value><RawString>20.0:20.1:20.2</RawString></Entry></Data>
  </Result>
</PhoronixTestSuite>"#;

#[test]
fn another_programs_file_is_read() {
    let c = from_pts("composite.xml", MINIMAL).unwrap();
    assert_eq!(c.title, "Smoke & fire");
    let r = &c.runs[0];
    assert_eq!(
        (r.device.as_str(), r.kernel.as_str(), r.scheduler.as_str()),
        ("1TB Model B", "6.1.0", "bfq")
    );
    assert_eq!(c.tests[0].cells[0].samples, [20.0, 20.1, 20.2]);
    let records = c.to_records();
    assert_eq!(records.len(), 3);
    assert_eq!(records[2].metrics[0].value, 20.2);
}

#[test]
fn bad_files_are_refused_with_their_place() {
    let cases = [
        (MINIMAL.replace("20.1</Value>", "NaN</Value>"), "finite"),
        (MINIMAL.replace("20.0:20.1", "20.0:x"), "not a number"),
        (MINIMAL.replace("HIB", "HIGH"), "none of HIB"),
        (MINIMAL.replace("BAR_GRAPH", "BAR_GRAF"), "display format"),
        (MINIMAL.replace("{\"disk", "[\"disk"), "JSON"),
        (MINIMAL.replace("&amp;", "&lol;"), "entities"),
        (MINIMAL[..500].to_string(), "cut off"),
        ("<a><b></a>".into(), "well-formed"),
        (String::new(), "no XML"),
        ("<Other/>".into(), "PhoronixTestSuite"),
        ("<x>".repeat(40), "nested"),
    ];
    for (text, word) in cases {
        let e = from_pts("c.xml", &text).unwrap_err().to_string();
        assert!(e.contains(word), "{word}: {e}");
    }
    let twice =
        MINIMAL.replace("</Result>", "</Result><System><Identifier>bfq</Identifier></System>");
    let e = from_pts("c.xml", &twice).unwrap_err();
    assert!(e.message.contains("two systems") && e.line > 1, "{e}");
}

#[test]
fn a_billion_laughs_are_not_heard() {
    let bomb = format!("<!DOCTYPE x [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;\">]>{MINIMAL}");
    let e = from_pts("c.xml", &bomb).unwrap_err().to_string();
    assert!(e.contains("document type"), "{e}");
}

#[test]
fn published_comparisons_survive() {
    for name in published::names() {
        let c = published::load(name).unwrap();
        let again = from_pts("c.xml", &to_pts(&c)).unwrap();
        assert_eq!(again, c, "{name}");
        valid(&to_pts(&c));
    }
}

/// The rules of PTS's result files.
fn valid(text: &str) {
    let root = xml::parse("c.xml", text).unwrap();
    assert_eq!(root.all("Generated").count(), 1);
    let g = root.child("Generated").unwrap();
    let length = |e: &xml::Element, name: &str| e.text_of(name).chars().count();
    assert!(length(g, "Title") <= 126 && length(g, "Description") <= 2048);
    let systems: Vec<String> = root.all("System").map(|s| s.text_of("Identifier")).collect();
    assert!(systems.iter().all(|s| s.chars().count() <= 128));
    for r in root.all("Result") {
        assert!((2..=50).contains(&length(r, "Title")), "{}", r.text_of("Title"));
        assert!(["HIB", "LIB", "ABSTRACT"].contains(&r.text_of("Proportion").as_str()));
        for e in r.child("Data").unwrap().all("Entry") {
            assert!(systems.contains(&e.text_of("Identifier")));
        }
    }
}

fn word() -> impl Strategy<Value = String> {
    "[ -~äß€\t\n]{2,60}"
}

fn a_cell(run: String) -> impl Strategy<Value = Cell> {
    let number = || -1e12f64..1e12;
    (
        proptest::option::of(number()),
        proptest::collection::vec(number(), 0..4),
        any::<bool>(),
        number(),
    )
        .prop_map(move |(value, samples, flag, se)| {
            let summary =
                flag.then_some(PublishedSummary { n: 3, mean: 1.5, se, min: 1.0, max: 2.0 });
            let samples = if value.is_some() { samples } else { Vec::new() };
            let missing = value.is_none().then(|| "n/a".to_string());
            Cell {
                run: run.clone(),
                value,
                samples,
                summary,
                missing,
                censored: flag,
                unsteady: if flag { vec![2] } else { Vec::new() },
                facts: if flag {
                    [("fs".into(), Some("ext4".into())), ("raw".into(), None)].into()
                } else {
                    Default::default()
                },
                ..Cell::default()
            }
        })
}

prop_compose! {
    fn a_comparison()(title in word(), words in proptest::collection::vec(word(), 6), units in "[a-z/]{1,5}",
        cells in (a_cell("a: b".into()), a_cell("c".into())), better in 0usize..3,
    ) -> Comparison {
        let run = |name: &str| Run {
            name: name.into(), device: words[0].clone(), scheduler: words[1].clone(), kernel: words[2].clone(),
            notes: words[3].clone(), facts: [(words[4].clone(), words[5].clone())].into(), ..Run::default()
        };
        let test = Test {
            identifier: "x/y-1.0.0".into(), title: words[0].clone(), description: words[1].clone(),
            arguments: words[2].clone(), unit: units,
            better: [None, Some(Better::Higher), Some(Better::Lower)][better],
            cells: vec![cells.0, cells.1], ..Test::default()
        };
        Comparison { title, runs: vec![run("a: b"), run("c")], tests: vec![test], ..Comparison::default() }
    }
}

proptest! {
    #[test]
    fn reading_our_own_file_is_the_identity(c in a_comparison()) {
        let text = to_pts(&c);
        valid(&text);
        prop_assert_eq!(from_pts("c.xml", &text).unwrap(), c);
    }

    #[test]
    fn no_input_makes_it_panic(cut in 0usize..900, insert in ".{0,20}") {
        let mut text = MINIMAL.to_string();
        text.insert_str(cut.min(text.len()), &insert);
        let _ = from_pts("c.xml", &text);
        let _ = from_pts("c.xml", &insert);
    }
}
