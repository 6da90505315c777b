//! The page: one file, nothing loaded from elsewhere, readable without its script.
//!
//! Rust computes all numbers and verdicts and draws everything once; the script (`assets/page.js`) only
//! filters, sorts, rescales and draws bars again from the numbers in the page. Text from records goes
//! through the template's escaping, the SVG writer's, or [`data::inline`]; nothing else reaches the page.

mod bars;
mod curves;
mod data;
mod input;
mod judge;
mod measures;
mod number;
mod overview;
mod pictures;
mod stored;
mod tables;
mod verdict;
mod view;

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;
use sha2::{Digest, Sha256};

pub use input::{Input, Options};

use bars::Bars;
use curves::Budget;
use overview::Overview;
use pictures::Pictures;
use tables::{SchedulerPart, Table, Total};
use verdict::DeviceVerdict;
use view::View;

/// A page with a CSV larger than this offers it through the script only.
const CSV_INLINE: usize = 120_000;

/// Characters that turn the direction of the text after them: a name must not rearrange the words around it.
pub(crate) const DIRECTIONS: [char; 12] = [
    '\u{200e}', '\u{200f}', '\u{061c}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut env = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    env.set_syntax(syntax.build().expect("the default delimiters are valid"));
    for (name, text) in [
        ("macros.html", include_str!("../../assets/macros.html")),
        ("workload.html", include_str!("../../assets/workload.html")),
    ] {
        env.add_template(name, text).expect("the shipped template parses");
    }
    env.add_template("page.html", include_str!("../../assets/page.html"))
        .expect("the shipped template parses");
    env
});

/// The script without its comments and indentation.
pub(crate) fn script() -> String {
    squeeze(include_str!("../../assets/page.js"))
}

/// What the server allows its pages, as a header: their own styles and the one script.
pub(crate) fn policy() -> &'static str {
    static POLICY: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        format!(
            "default-src 'none'; style-src 'unsafe-inline'; script-src '{}'; img-src data:; base-uri 'none'; \
             form-action 'self'; frame-ancestors 'none'",
            hash(&script())
        )
    });
    &POLICY
}

/// The source expression by which the page's Content Security Policy allows this script and no other.
fn hash(script: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::from("sha256-");
    for c in Sha256::digest(script.as_bytes()).chunks(3) {
        let n = c.iter().enumerate().fold(0u32, |n, (i, b)| n | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            let letter = LETTERS[(n >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= c.len() { letter as char } else { '=' });
        }
    }
    out
}

fn squeeze(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// What the template of a workload sees.
#[derive(Debug, Serialize)]
struct WorkloadPart<'a> {
    id: usize,
    title: &'a str,
    arguments: &'a str,
    bars: Vec<Bars>,
    pictures: Vec<Pictures>,
    all: Table,
    several_devices: bool,
    base: &'a str,
}

/// A workload's place in the page: its title for the contents, and its part, ready to be put in.
#[derive(Debug, Serialize)]
struct Workload<'a> {
    id: usize,
    title: &'a str,
    html: String,
}

/// The parts of the workloads. Each is rendered by itself, so that a page of very many cells needs no more memory
/// than its text.
fn workloads<'a>(input: &'a Input, view: &View, base: &str) -> Vec<Workload<'a>> {
    let budget = Budget::new(input.details.len());
    let template = TEMPLATES.get_template("workload.html").expect("it was added above");
    let part = |(id, w): (usize, &'a input::WorkloadFacts)| {
        let mine = |t: &usize| view.tests[*t].workload == id && view.tests[*t].head;
        let pictures = (0..view.devices.len())
            .map(|d| pictures::pictures(view, input, id, d, budget))
            .filter(|p| !p.is_empty())
            .collect();
        let part = WorkloadPart {
            id,
            title: &w.title,
            arguments: &w.arguments,
            bars: (0..view.tests.len()).filter(mine).map(|t| bars::bars(view, t)).collect(),
            pictures,
            all: tables::details(view, id),
            several_devices: view.devices.len() > 1,
            base,
        };
        let html = template
            .render(Value::from(Serde(part)))
            .expect("the shipped template renders whatever the data are");
        Workload { id, title: &w.title, html }
    };
    input.workloads.iter().enumerate().map(part).collect()
}

#[derive(Debug, Serialize)]
struct Warned {
    run: String,
    message: String,
    advice: String,
    times: u32,
}

fn warnings(input: &Input, view: &View) -> Vec<Warned> {
    let of = |r: &view::Run| {
        let name = r.name.clone();
        input.runs[r.from].warnings.iter().map(move |((_, message, advice), times)| Warned {
            run: name.clone(),
            message: message.clone(),
            advice: advice.clone(),
            times: *times,
        })
    };
    view.runs.iter().flat_map(of).collect()
}

/// Suites with the number of their workloads.
fn suites<'a>(input: &Input, view: &'a View) -> Vec<(&'a str, usize)> {
    let size = |s: &String| input.workloads.iter().filter(|w| w.suites.contains(s)).count();
    view.suites.iter().map(|s| (s.as_str(), size(s))).collect()
}

/// What the page does not show although it is stored.
fn notes(input: &Input, view: &View) -> String {
    let thinned =
        view.tests.iter().flat_map(|t| &t.cells).any(|c| {
            c.samples.len() > 1 && c.summary.as_ref().is_some_and(|s| s.n > c.samples.len())
        });
    let samples = "Of so many samples a part is shown and downloaded here; `iosched results export` gives all.";
    let notes = [input.note.as_str(), if thinned { samples } else { "" }];
    notes.into_iter().filter(|n| !n.is_empty()).collect::<Vec<_>>().join(" ")
}

#[derive(Debug, Serialize)]
struct Missing {
    run: String,
    workload: String,
    why: String,
    times: u32,
}

fn incomplete(input: &Input, view: &View) -> Vec<Missing> {
    let mut out = Vec::new();
    for r in &view.runs {
        for (w, facts) in input.workloads.iter().enumerate() {
            let workload = facts.title.clone();
            match input.details.get(&(r.from, w)) {
                None => out.push(Missing {
                    run: r.name.clone(),
                    workload,
                    why: "not run".into(),
                    times: 1,
                }),
                Some(d) => out.extend(d.unusable.iter().map(|(why, times)| Missing {
                    run: r.name.clone(),
                    workload: workload.clone(),
                    why: why.clone(),
                    times: *times,
                })),
            }
        }
    }
    out
}

/// The page of some records as one HTML file.
#[must_use]
pub fn html(input: &Input) -> String {
    let view = view::build(input);
    let (common, differing) = tables::provenance(&view, input);
    let csv = data::csv(input, &view);
    let csv =
        if csv.len() <= CSV_INLINE { data::data_address("text/csv", &csv) } else { String::new() };
    let base = view.schedulers.get(view.base).map_or("", String::as_str);
    let title = if input.options.title.is_empty() {
        "I/O scheduler comparison"
    } else {
        &input.options.title
    };
    let several = view.tests.iter().flat_map(|t| &t.cells).any(|c| c.samples.len() > 1);
    let script = script();
    let page = Page {
        title,
        css: squeeze(include_str!("../../assets/page.css")),
        hash: hash(&script),
        script,
        data: data::page(input, &view),
        verdicts: verdict::verdicts(&view, input),
        overviews: (0..view.devices.len()).map(|d| overview::overview(&view, input, d)).collect(),
        totals: tables::totals(&view, input),
        harmonic: view.harmonic.iter().map(|h| h.0.as_str()).collect(),
        workloads: workloads(input, &view, base),
        schedulers: tables::schedulers(&view, input),
        devices: &view.devices,
        suites: suites(input, &view),
        base,
        common,
        differing,
        csv,
        several,
        warnings: warnings(input, &view),
        incomplete: incomplete(input, &view),
        made: &input.options.made,
        links: &input.options.links,
        refresh: input.options.refresh,
        status: &input.options.status,
        done: input.options.done,
        note: notes(input, &view),
    };
    let template = TEMPLATES.get_template("page.html").expect("it was added above");
    let page = template
        .render(Value::from(Serde(page)))
        .expect("the shipped template renders whatever the data are");
    if page.contains(DIRECTIONS) { page.replace(DIRECTIONS, "\u{fffd}") } else { page }
}

/// What the template sees.
#[derive(Debug, Serialize)]
struct Page<'a> {
    title: &'a str,
    css: String,
    hash: String,
    script: String,
    data: String,
    verdicts: Vec<DeviceVerdict>,
    overviews: Vec<Overview>,
    totals: Vec<Total>,
    harmonic: Vec<&'a str>,
    workloads: Vec<Workload<'a>>,
    schedulers: Vec<SchedulerPart>,
    devices: &'a [String],
    suites: Vec<(&'a str, usize)>,
    base: &'a str,
    common: Vec<(String, String)>,
    differing: Table,
    csv: String,
    several: bool,
    warnings: Vec<Warned>,
    incomplete: Vec<Missing>,
    made: &'a str,
    links: &'a [(String, String)],
    refresh: Option<u32>,
    status: &'a str,
    done: Option<(u32, u32)>,
    note: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_script() {
        // echo -n abc | sha256sum | xxd -r -p | base64
        assert_eq!(hash("abc"), "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }

    #[test]
    fn the_script_cannot_end_its_element() {
        assert!(!script().to_lowercase().contains("</"));
        assert!(!script().contains("<!--"));
    }
}
