//! `composite.xml` to a comparison.

use std::collections::{BTreeMap, BTreeSet};

use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;
use serde_json::{Map, Value};

use super::xml::{Element, parse};
use crate::model::{Cell, Comparison, PublishedSummary, Run, Test};
use crate::stats::Better;

const DISPLAYS: [&str; 9] = [
    "BAR_GRAPH",
    "LINE_GRAPH",
    "SCATTER_PLOT",
    "PASS_FAIL",
    "MULTI_PASS_FAIL",
    "IMAGE_COMPARISON",
    "NO_RESULT",
    "BAR_ANALYZE_GRAPH",
    "BOX_PLOT",
];

/// Where an element stands, for messages.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn bad(&self, e: &Element, message: String) -> Diagnostic {
        Diagnostic::at_span(self.file, self.text, e.at..e.at + e.name.len() + 2, message)
    }
}

/// Reads a PTS result file.
///
/// # Errors
/// A diagnostic with line and column: not well-formed, a document type, a name given twice, a value that
/// is no number.
pub fn from_pts(file: &str, text: &str) -> Result<Comparison, Diagnostic> {
    let source = Source { file, text };
    let root = parse(file, text)?;
    if root.name != "PhoronixTestSuite" {
        return Err(source.bad(
            &root,
            format!("a PTS result file starts with <PhoronixTestSuite>, not <{}>", root.name),
        ));
    }
    let generated = root
        .child("Generated")
        .ok_or_else(|| source.bad(&root, "no <Generated> in the file".into()))?;
    let mut out = Comparison {
        title: generated.text_of("Title"),
        description: generated.text_of("Description"),
        modified: generated.text_of("LastModified"),
        client: generated.text_of("TestClient"),
        ..Comparison::default()
    };
    for e in root.all("System") {
        let run = run(&source, e)?;
        if out.runs.iter().any(|r| r.name == run.name) {
            return Err(source.bad(e, format!("two systems are called \"{}\"", run.name)));
        }
        out.runs.push(run);
    }
    let mut names: BTreeSet<String> = out.runs.iter().map(|r| r.name.clone()).collect();
    let mut keys = BTreeSet::new();
    for e in root.all("Result") {
        let test = test(&source, e)?;
        if !keys.insert((
            test.identifier.clone(),
            test.title.clone(),
            test.version.clone(),
            test.arguments.clone(),
            test.description.clone(),
            test.unit.clone(),
        )) {
            return Err(source.bad(e, format!("the test \"{}\" is given twice", test.name())));
        }
        // A result may outlive its system's entry. Its run is still shown.
        for c in &test.cells {
            if names.insert(c.run.clone()) {
                out.runs.push(named_run(&c.run));
            }
        }
        out.tests.push(test);
    }
    Ok(out)
}

/// A run known by its name only: `X: Y` (one ": ") is device and scheduler, as PTS reads two-way names.
fn named_run(name: &str) -> Run {
    let mut parts = name.split(": ");
    let (device, scheduler) = match (parts.next(), parts.next(), parts.next()) {
        (Some(d), Some(s), None) => (d, s),
        _ => ("", name),
    };
    Run { name: name.into(), device: device.into(), scheduler: scheduler.into(), ..Run::default() }
}

fn object(source: &Source<'_>, e: &Element) -> Result<Map<String, Value>, Diagnostic> {
    let Some(json) = e.child("JSON").filter(|j| !j.text.trim().is_empty()) else {
        return Ok(Map::new());
    };
    match serde_json::from_str(&json.text) {
        Ok(Value::Object(m)) => Ok(m),
        Ok(_) => Err(source.bad(json, "the JSON is not an object".into())),
        Err(err) => Err(source.bad(json, format!("the JSON is damaged: {err}"))),
    }
}

fn run(source: &Source<'_>, e: &Element) -> Result<Run, Diagnostic> {
    let mut facts: BTreeMap<String, String> = object(source, e)?
        .into_iter()
        .map(|(k, v)| (k, if let Value::String(s) = v { s } else { v.to_string() }))
        .collect();
    let named = named_run(&e.text_of("Identifier"));
    let disk = |hardware: &str| {
        hardware.split(", ").find_map(|p| p.strip_prefix("Disk: ")).unwrap_or_default().to_string()
    };
    let kernel = |software: &str| {
        let found =
            software.split(", ").find_map(|p| p.strip_prefix("Kernel: ")).unwrap_or_default();
        found.split(' ').next().unwrap_or_default().to_string()
    };
    let (hardware, software) = (e.text_of("Hardware"), e.text_of("Software"));
    // Ours are exact; other files' are the best guess from the words.
    let device = facts.remove("iosched-device").unwrap_or_else(|| {
        if named.device.is_empty() { disk(&hardware) } else { named.device.clone() }
    });
    Ok(Run {
        device,
        scheduler: facts.remove("iosched-scheduler").unwrap_or_else(|| named.scheduler.clone()),
        kernel: facts.remove("iosched-kernel").unwrap_or_else(|| kernel(&software)),
        name: named.name,
        hardware,
        software,
        user: e.text_of("User"),
        timestamp: e.text_of("TimeStamp"),
        client_version: e.text_of("TestClientVersion"),
        notes: e.text_of("Notes"),
        facts,
    })
}

fn test(source: &Source<'_>, e: &Element) -> Result<Test, Diagnostic> {
    let better = match e.text_of("Proportion").as_str() {
        "HIB" => Some(Better::Higher),
        "LIB" => Some(Better::Lower),
        "ABSTRACT" | "" => None,
        other => {
            let help = did_you_mean(other, ["HIB", "LIB", "ABSTRACT"]);
            let at = e.child("Proportion").unwrap_or(e);
            return Err(source
                .bad(at, format!("proportion \"{other}\" is none of HIB, LIB, ABSTRACT"))
                .with_help(help));
        }
    };
    let display = e.text_of("DisplayFormat");
    if !display.is_empty() && !DISPLAYS.contains(&display.as_str()) {
        let at = e.child("DisplayFormat").unwrap_or(e);
        let help = did_you_mean(&display, DISPLAYS);
        return Err(source
            .bad(at, format!("unknown display format \"{display}\""))
            .with_help(help));
    }
    let mut out = Test {
        identifier: e.text_of("Identifier"),
        title: e.text_of("Title"),
        version: e.text_of("AppVersion"),
        arguments: e.text_of("Arguments"),
        description: e.text_of("Description"),
        unit: e.text_of("Scale"),
        better,
        display: if display == "BAR_GRAPH" { String::new() } else { display },
        cells: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    for entry in e.child("Data").into_iter().flat_map(|d| d.all("Entry")) {
        let (cell, title) = cell(source, entry, &out)?;
        if !seen.insert(cell.run.clone()) {
            return Err(source.bad(
                entry,
                format!("two entries of \"{}\" are for \"{}\"", out.name(), cell.run),
            ));
        }
        if let Some(t) = title {
            out.title = t;
        }
        out.cells.push(cell);
    }
    Ok(out)
}

/// The cell, and the test's full title where PTS's limit cut it.
fn cell(
    source: &Source<'_>,
    e: &Element,
    test: &Test,
) -> Result<(Cell, Option<String>), Diagnostic> {
    let facts = object(source, e)?;
    let text = |key: &str| facts.get(key).and_then(Value::as_str).map(str::to_string);
    let mut out = Cell { run: e.text_of("Identifier"), missing: text("error"), ..Cell::default() };
    // Only bar graphs hold one number; line graphs hold a list, other formats hold words.
    let scalar = test.display.is_empty() || test.display == "BAR_ANALYZE_GRAPH";
    let number = |at: &Element, s: &str| -> Result<f64, Diagnostic> {
        let v: f64 =
            s.trim().parse().map_err(|_| source.bad(at, format!("\"{s}\" is not a number")))?;
        if v.is_finite() {
            Ok(v)
        } else {
            Err(source.bad(at, format!("\"{s}\" is not a finite number")))
        }
    };
    if let Some(v) = e.child("Value").filter(|v| !v.text.trim().is_empty() && scalar) {
        out.value = Some(number(v, &v.text)?);
    }
    if let Some(raw) = e.child("RawString").filter(|v| !v.text.trim().is_empty() && scalar) {
        out.samples = raw.text.split(':').map(|s| number(raw, s)).collect::<Result<_, _>>()?;
    }
    if !scalar {
        out.missing = Some(format!("a {} has no single value", test.display));
    } else if out.value.is_none() {
        out.missing.get_or_insert_with(|| "no value in the file".into());
    }
    if let Some(s) = facts.get("iosched-summary") {
        let s: PublishedSummary = serde_json::from_value(s.clone())
            .map_err(|err| source.bad(e, format!("the published summary is damaged: {err}")))?;
        out.summary = Some(s);
    }
    if let Some(r) = facts.get("iosched-rounds") {
        out.rounds = serde_json::from_value(r.clone())
            .map_err(|err| source.bad(e, format!("the rounds are damaged: {err}")))?;
    }
    if let Some(r) = facts.get("iosched-unsteady") {
        out.unsteady = serde_json::from_value(r.clone())
            .map_err(|err| source.bad(e, format!("the unsteady rounds are damaged: {err}")))?;
    }
    if let Some(own) = facts.get("iosched-facts") {
        out.facts = serde_json::from_value(own.clone())
            .map_err(|err| source.bad(e, format!("the facts of the entry are damaged: {err}")))?;
    }
    match facts.get("iosched-censored") {
        Some(Value::Bool(all)) => out.censored = *all,
        Some(each) => {
            out.censored = true;
            out.exceeded = serde_json::from_value(each.clone()).map_err(|err| {
                source.bad(e, format!("the marks of exceeded limits are damaged: {err}"))
            })?;
        }
        None => {}
    }
    Ok((out, text("iosched-title")))
}
