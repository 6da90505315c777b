//! The page: one file, nothing loaded from elsewhere, readable without its script.
//!
//! Rust computes all numbers and verdicts and draws everything once; the script (`assets/page.js`) only
//! filters, sorts, rescales and draws bars again from the numbers in the page. Text from records goes
//! through the template's escaping, the SVG writer's, or [`data::inline`]; nothing else reaches the page.

mod curves;
mod data;
mod input;
mod number;
mod page;
mod verdict;
mod view;

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;
use sha2::{Digest, Sha256};

pub use input::{Input, Options};

use curves::Budget;
use page::{Bars, Overview, Pictures, SchedulerPart, Table, Total};
use verdict::DeviceVerdict;
use view::View;

/// A page with a CSV larger than this offers it through the script only.
const CSV_INLINE: usize = 120_000;

/// Characters that turn the direction of the text after them: a name must not rearrange the words around it.
const DIRECTIONS: [char; 12] = [
    '\u{200e}', '\u{200f}', '\u{061c}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut env = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    env.set_syntax(syntax.build().expect("the default delimiters are valid"));
    env.add_template("page.html", include_str!("../../assets/page.html"))
        .expect("the shipped template parses");
    env
});

/// The script without its comments and indentation.
pub(crate) fn script() -> String {
    squeeze(include_str!("../../assets/page.js"))
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

#[derive(Debug, Serialize)]
struct WorkloadPart {
    id: usize,
    title: String,
    arguments: String,
    bars: Vec<Bars>,
    pictures: Vec<Pictures>,
    all: Table,
}

fn workloads(input: &Input, view: &View) -> Vec<WorkloadPart> {
    let budget = Budget::new(input.details.len());
    let part = |(id, w): (usize, &input::WorkloadFacts)| {
        let mine = |t: &usize| view.tests[*t].workload == id && view.tests[*t].head;
        let pictures = (0..view.devices.len())
            .map(|d| page::pictures(view, input, id, d, budget))
            .filter(|p| !p.is_empty())
            .collect();
        WorkloadPart {
            id,
            title: w.title.clone(),
            arguments: w.arguments.clone(),
            bars: (0..view.tests.len()).filter(mine).map(|t| page::bars(view, t)).collect(),
            pictures,
            all: page::details(view, id),
        }
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
    let (common, differing) = page::provenance(&view, input);
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
        data: data::inline(&data::page(input, &view)),
        verdicts: verdict::verdicts(&view),
        overviews: (0..view.devices.len()).map(|d| page::overview(&view, input, d)).collect(),
        totals: page::totals(&view, input),
        harmonic: view.harmonic.iter().map(|h| h.0.as_str()).collect(),
        workloads: workloads(input, &view),
        schedulers: page::schedulers(&view, input),
        devices: &view.devices,
        suites: &view.suites,
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
    };
    let template = TEMPLATES.get_template("page.html").expect("it was added above");
    let page = template
        .render(Value::from(Serde(page)))
        .expect("the shipped template renders whatever the data are");
    page.replace(DIRECTIONS, "\u{fffd}")
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
    workloads: Vec<WorkloadPart>,
    schedulers: Vec<SchedulerPart>,
    devices: &'a [String],
    suites: &'a [String],
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
