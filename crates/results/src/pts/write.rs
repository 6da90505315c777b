//! A comparison to `composite.xml`.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::model::{Cell, Comparison, Run, Test};
use crate::stats::Better;

/// Longest title of a comparison, description, run name and test title that PTS takes, in characters.
pub(super) const LIMITS: (usize, usize, usize, usize) = (126, 2048, 128, 50);

/// The comparison as a PTS result file.
///
/// Facts without a field in PTS (device, scheduler and kernel of a run, published summaries, censored values, the rest
/// of a title beyond 50 characters) go into the JSON members. So reading the file back gives the same comparison.
/// Characters that XML 1.0 cannot hold become U+FFFD.
#[must_use]
pub fn to_pts(c: &Comparison) -> String {
    let mut x = Xml { out: String::from("<?xml version=\"1.0\"?>\n"), depth: 0 };
    x.open("PhoronixTestSuite");
    x.open("Generated");
    x.leaf("Title", &cut(&c.title, LIMITS.0));
    x.leaf("LastModified", &c.modified);
    x.leaf("TestClient", &c.client);
    x.leaf("Description", &cut(&c.description, LIMITS.1));
    x.close("Generated");
    c.runs.iter().for_each(|r| system(&mut x, r));
    c.tests.iter().for_each(|t| result(&mut x, t));
    x.close("PhoronixTestSuite");
    x.out
}

struct Xml {
    out: String,
    depth: usize,
}

impl Xml {
    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn open(&mut self, name: &str) {
        self.indent();
        let _ = writeln!(self.out, "<{name}>");
        self.depth += 1;
    }

    fn close(&mut self, name: &str) {
        self.depth -= 1;
        self.indent();
        let _ = writeln!(self.out, "</{name}>");
    }

    fn leaf(&mut self, name: &str, text: &str) {
        self.indent();
        let _ = writeln!(self.out, "<{name}>{}</{name}>", escape(text));
    }
}

/// Text for XML 1.0: markup escaped, a carriage return as a reference (parsers turn a bare one into a line
/// feed), characters outside the standard's range replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            '\t' | '\n' => out.push(c),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}

fn system(x: &mut Xml, r: &Run) {
    let mut facts: Map<String, Value> =
        r.facts.iter().map(|(k, v)| (k.clone(), Value::from(v.clone()))).collect();
    for (key, value) in [
        ("iosched-device", &r.device),
        ("iosched-scheduler", &r.scheduler),
        ("iosched-kernel", &r.kernel),
    ] {
        facts.insert(key.into(), value.clone().into());
    }
    x.open("System");
    x.leaf("Identifier", &cut(&r.name, LIMITS.2));
    x.leaf("Hardware", &r.hardware);
    x.leaf("Software", &r.software);
    x.leaf("User", &r.user);
    x.leaf("TimeStamp", &r.timestamp);
    x.leaf("TestClientVersion", &r.client_version);
    x.leaf("Notes", &r.notes);
    x.leaf("JSON", &Value::Object(facts).to_string());
    x.close("System");
}

fn result(x: &mut Xml, t: &Test) {
    let short = {
        let mut s = cut(&t.title, LIMITS.3);
        while s.chars().count() < 2 {
            s.push('-');
        }
        s
    };
    x.open("Result");
    x.leaf("Identifier", &t.identifier);
    x.leaf("Title", &short);
    x.leaf("AppVersion", &t.version);
    x.leaf("Arguments", &t.arguments);
    x.leaf("Description", &t.description);
    x.leaf("Scale", &t.unit);
    x.leaf(
        "Proportion",
        match t.better {
            Some(Better::Higher) => "HIB",
            Some(Better::Lower) => "LIB",
            None => "ABSTRACT",
        },
    );
    x.leaf("DisplayFormat", if t.display.is_empty() { "BAR_GRAPH" } else { &t.display });
    x.open("Data");
    let full = (short != t.title).then_some(t.title.as_str());
    t.cells.iter().for_each(|c| entry(x, c, full));
    x.close("Data");
    x.close("Result");
}

fn entry(x: &mut Xml, c: &Cell, full_title: Option<&str>) {
    let samples: Vec<String> = c.samples.iter().map(f64::to_string).collect();
    let mut facts = Map::new();
    if let Some(why) = &c.missing {
        facts.insert("error".into(), why.clone().into());
    }
    if let Some(s) = c.summary {
        facts.insert("iosched-summary".into(), json!(s));
        facts.insert("min-result".into(), json!(s.min));
        facts.insert("max-result".into(), json!(s.max));
    }
    if c.censored {
        let each = c.exceeded.iter().any(|e| !*e);
        facts.insert("iosched-censored".into(), if each { json!(c.exceeded) } else { true.into() });
    }
    if !c.rounds.is_empty() {
        facts.insert("iosched-rounds".into(), json!(c.rounds));
    }
    if !c.unsteady.is_empty() {
        facts.insert("iosched-unsteady".into(), json!(c.unsteady));
    }
    if !c.facts.is_empty() {
        facts.insert("iosched-facts".into(), json!(c.facts));
    }
    if let Some(t) = full_title {
        facts.insert("iosched-title".into(), t.into());
    }
    x.open("Entry");
    x.leaf("Identifier", &cut(&c.run, LIMITS.2));
    x.leaf("Value", &c.value.map(|v| v.to_string()).unwrap_or_default());
    x.leaf("RawString", &samples.join(":"));
    if !facts.is_empty() {
        x.leaf("JSON", &Value::Object(facts).to_string());
    }
    x.close("Entry");
}
