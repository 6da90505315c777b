//! The page: one file, nothing loaded from elsewhere, readable without its script.
//!
//! Rust computes all numbers and verdicts and draws everything once; the script (`assets/page.js`) only
//! filters, sorts, rescales and draws bars again from the numbers in the page. Text from records goes
//! through the template's escaping, the SVG writer's, or [`data::inline`]; nothing else reaches the page.

mod advice;
mod curves;
mod data;
mod folds;
mod input;
mod judge;
mod matrix;
mod measures;
mod number;
mod panels;
mod standing;
mod stored;
mod strip;
mod sweeps;
mod tables;
mod verdict;
mod view;

use std::sync::LazyLock;

use iosched_results::cells::MIXED_LATENCIES;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;
use sha2::{Digest, Sha256};

pub use input::{Input, Options};

use advice::Advised;
use curves::Budget;
use folds::{Fold, Source};
use panels::Panel;
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
        ("panel.html", include_str!("../../assets/panel.html")),
    ] {
        env.add_template(name, text).expect("the shipped template parses");
    }
    env.add_template("page.html", include_str!("../../assets/page.html"))
        .expect("the shipped template parses");
    env
});

/// The script without its comments and indentation.
pub(crate) fn script() -> String {
    squeeze(concat!(include_str!("../../assets/draw.js"), include_str!("../../assets/page.js")))
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
pub(crate) fn hash(script: &str) -> String {
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

pub(crate) fn squeeze(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// What the template of a panel sees.
#[derive(Debug, Serialize)]
struct PanelPart<'a> {
    id: &'a str,
    title: &'a str,
    sub: &'a str,
    arguments: Vec<&'a str>,
    devices: &'a [Heading],
    measures: Vec<Measure<'a>>,
    folds: Vec<Fold>,
    all: Vec<Table>,
    /// How many figures `all` has.
    further: String,
    base: &'a str,
    first: bool,
}

/// One figure: a strip for each device.
#[derive(Debug, Serialize)]
struct Measure<'a> {
    test: usize,
    id: &'a str,
    title: &'a str,
    sub: &'a str,
    better: String,
    strips: Vec<String>,
}

/// A device as the heads of columns call it.
#[derive(Debug, Serialize)]
struct Heading {
    name: String,
    about: String,
}

/// A panel, ready to be put in.
#[derive(Debug, Serialize)]
struct Part {
    id: String,
    title: String,
    html: String,
}

/// The panels. Each is rendered by itself, so that a page of very many cells needs no more memory than its text.
fn parts(
    input: &Input,
    view: &View,
    panels: &[Panel],
    base: &str,
    devices: &[Heading],
) -> Vec<Part> {
    let budget = Budget::new(input.details.len());
    let template = TEMPLATES.get_template("panel.html").expect("it was added above");
    let part = |(i, p): (usize, &Panel)| {
        let source = |w: &usize| Source { view, input, workload: *w, budget }.folds();
        let several = view.devices.len();
        let tables = p
            .workloads
            .iter()
            .flat_map(|w| (0..several).map(|d| (*w, tables::details(view, *w, d))));
        let mut tables: Vec<(usize, Table)> = tables.filter(|(_, t)| !t.rows.is_empty()).collect();
        let further = further(&tables);
        if p.workloads.len() > 1 {
            // Which of them a table is about.
            tables.iter_mut().for_each(|(w, t)| {
                t.title = format!("{}: {}", t.title, input.workloads[*w].title);
            });
        }
        let html = template
            .render(Value::from(Serde(PanelPart {
                id: &p.id,
                title: &p.title,
                sub: &p.sub,
                arguments: p
                    .workloads
                    .iter()
                    .map(|w| input.workloads[*w].arguments.as_str())
                    .filter(|a| !a.is_empty())
                    .collect(),
                devices,
                measures: p.rows.iter().filter_map(|r| measure(view, r)).collect(),
                folds: p.workloads.iter().flat_map(source).collect(),
                all: tables.into_iter().map(|(_, t)| t).collect(),
                further,
                base,
                first: i == 0,
            })))
            .expect("the shipped template renders whatever the data are");
        Part { id: p.id.clone(), title: p.title.clone(), html }
    };
    panels.iter().enumerate().map(part).collect()
}

/// `19 measures`, or of each device where there are several: `hdd: 19 measures, ssd: 17 measures`.
fn further(tables: &[(usize, Table)]) -> String {
    let mut by: Vec<(&str, usize)> = Vec::new();
    for (_, t) in tables {
        match by.iter_mut().find(|b| b.0 == t.title) {
            Some(b) => b.1 += t.rows.len(),
            None => by.push((&t.title, t.rows.len())),
        }
    }
    let of = |n: usize| format!("{n} measure{}", if n == 1 { "" } else { "s" });
    match &by[..] {
        [(_, n)] => of(*n),
        _ => by.iter().map(|(d, n)| format!("{d}: {}", of(*n))).collect::<Vec<_>>().join(", "),
    }
}

fn measure<'a>(view: &View, r: &'a panels::Row) -> Option<Measure<'a>> {
    let test = &view.tests[r.test];
    let strips: Vec<String> =
        (0..view.devices.len()).map(|d| strip::strip(view, test, &r.title, d)).collect();
    (test.head && strips.iter().any(|s| !s.is_empty())).then(|| Measure {
        test: r.test,
        id: &r.id,
        title: &r.title,
        sub: &r.sub,
        better: {
            let more = test.better == iosched_results::stats::Better::Higher;
            let unit = if number::behind(&test.unit).is_empty() { &test.unit } else { "" };
            let gap = if unit.is_empty() { "" } else { ", in " };
            format!("{} is better{gap}{unit}", if more { "more" } else { "less" })
        },
        strips,
    })
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

/// A note as a sentence of the page.
fn sentence(note: &str) -> String {
    let mut letters = note.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// What the page does not show although it is stored.
fn notes(input: &Input, view: &View) -> String {
    let thinned =
        view.tests.iter().flat_map(|t| &t.cells).any(|c| {
            c.samples.len() > 1 && c.summary.as_ref().is_some_and(|s| s.n > c.samples.len())
        });
    let samples = "Of so many samples a part is shown and downloaded here; `iosched results export` gives all.";
    let mixed = match view.mixed_latencies {
        true => sentence(MIXED_LATENCIES),
        false => String::new(),
    };
    let notes = [input.note.as_str(), if thinned { samples } else { "" }, &mixed];
    notes.into_iter().filter(|n| !n.is_empty()).collect::<Vec<_>>().join(" ")
}

/// How it was measured; of so many trials that a part was read it is not known.
fn measured(input: &Input) -> String {
    match input.note.is_empty() && !input.runs.is_empty() {
        true => sentence(&input.asks.measuring().words()),
        false => String::new(),
    }
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
    let base = view.names.get(view.base).map_or("", |n| n.short.as_str());
    let title = if input.options.title.is_empty() {
        "I/O scheduler comparison"
    } else {
        &input.options.title
    };
    let single = view.single;
    let beyond = view.tests.iter().flat_map(|t| &t.cells).any(|c| c.censored() > 0);
    let script = script();
    let panels = panels::panels(&view, input);
    let headings: Vec<Heading> = (0..view.devices.len())
        .map(|d| Heading { name: view.devices[d].clone(), about: verdict::about(&view, input, d) })
        .collect();
    let (verdicts, asked) = verdict::verdicts(&view, input);
    let page = Page {
        title,
        description: input.options.description.trim_end_matches('.'),
        about: about(input, &view),
        measured: measured(input),
        css: squeeze(include_str!("../../assets/page.css")),
        hash: hash(&script),
        script,
        data: data::page(input, &view, &panels),
        advice: advice::advice(&view, input, Budget::new(input.details.len())),
        verdicts,
        asked: asked.map(|n| sentence(&n)),
        matrix: matrix::matrix(&view, &panels),
        columns: view.runs.len(),
        totals: tables::totals(&view, input),
        harmonic: view.harmonic.iter().map(|h| h.0.as_str()).collect(),
        panels: parts(input, &view, &panels, base, &headings),
        schedulers: tables::schedulers(&view, input),
        devices: &headings,
        suites: suites(input, &view),
        base: view.base,
        base_name: base,
        common,
        differing,
        csv,
        single,
        beyond,
        old: view.names.iter().any(|n| !n.now()),
        hardware: view.runs.iter().any(|r| input.runs[r.from].cores().is_some()),
        clock: view.runs.iter().any(|r| input.runs[r.from].clock().is_some()),
        warnings: warnings(input, &view),
        replays: input.ranks.sentences(),
        incomplete: incomplete(input, &view),
        made: &input.options.made,
        links: &input.options.links,
        refresh: input.options.refresh,
        status: &input.options.status,
        done: input.options.done,
        note: notes(input, &view),
        again: &input.options.again,
        annotations: &input.options.annotations,
        logs: &input.logs,
        sweeps: sweeps::sweeps(&view, input),
        simulated: input.runs.iter().any(|r| r.backend.is_simulated()),
        level: level(input.options.verdict.alpha),
    };
    let template = TEMPLATES.get_template("page.html").expect("it was added above");
    let page = template
        .render(Value::from(Serde(page)))
        .expect("the shipped template renders whatever the data are");
    if page.contains(DIRECTIONS) { page.replace(DIRECTIONS, "\u{fffd}") } else { page }
}

/// A share in percent, as people write it: `5`, `0.5`.
fn level(alpha: f64) -> String {
    format!("{}", (alpha * 1e4).round() / 100.0)
}

/// `8 schedulers, 3 workloads, 2 devices, 480 trials; Linux 6.12, simulated`.
fn about(input: &Input, view: &View) -> String {
    let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let trials: u32 = input.runs.iter().map(|r| r.trials).sum();
    let mut text = [
        count(view.schedulers.len(), "scheduler"),
        count(input.workloads.len(), "workload"),
        count(view.devices.len(), "device"),
        count(trials as usize, "trial"),
    ]
    .join(", ");
    let of = |f: fn(&input::RunFacts) -> String| -> Vec<String> {
        let mut all: Vec<String> = input.runs.iter().map(f).filter(|s| !s.is_empty()).collect();
        all.sort();
        all.dedup();
        all
    };
    let kernels = of(|r| r.kernel.clone());
    if let [kernel] = &kernels[..] {
        text += &format!("; Linux {kernel}");
    }
    let backends = of(|r| match r.backend.traits() {
        simulated if r.backend.is_simulated() => simulated.words.into(),
        other => other.name.into(),
    });
    if !backends.is_empty() && !input.runs.is_empty() {
        text += &format!(", {}", backends.join(" and "));
    }
    text + "."
}

/// What the template sees.
#[derive(Debug, Serialize)]
struct Page<'a> {
    title: &'a str,
    description: &'a str,
    about: String,
    /// How often, how long and after what it was measured.
    measured: String,
    css: String,
    hash: String,
    script: String,
    data: String,
    advice: Vec<Advised>,
    verdicts: Vec<DeviceVerdict>,
    /// No answer is about what the experiment asks for.
    asked: Option<String>,
    matrix: String,
    columns: usize,
    totals: Vec<Total>,
    harmonic: Vec<&'a str>,
    panels: Vec<Part>,
    schedulers: Vec<SchedulerPart>,
    devices: &'a [Heading],
    suites: Vec<(&'a str, usize)>,
    base: usize,
    base_name: &'a str,
    common: Vec<(String, String)>,
    differing: Table,
    csv: String,
    /// One value of each: nothing can be tested.
    single: bool,
    /// Some rounds lie beyond a limit.
    beyond: bool,
    /// Some scheduler is gone from the kernel.
    old: bool,
    hardware: bool,
    clock: bool,
    warnings: Vec<Warned>,
    /// What goes ahead of the answers of replays.
    replays: Vec<String>,
    incomplete: Vec<Missing>,
    made: &'a str,
    links: &'a [(String, String)],
    refresh: Option<u32>,
    status: &'a str,
    done: Option<(u32, u32)>,
    note: String,
    again: &'a str,
    annotations: &'a [(String, String)],
    logs: &'a [(String, Vec<(String, String)>)],
    sweeps: String,
    simulated: bool,
    level: String,
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
    fn further_measures_are_counted_by_device() {
        let table = |title: &str, rows: usize| {
            let rows = (0..rows).map(|_| tables::TableRow::default()).collect();
            (0, Table { title: title.into(), rows, ..Table::default() })
        };
        assert_eq!(further(&[table("hdd", 1), table("hdd", 1)]), "2 measures");
        assert_eq!(
            further(&[table("hdd", 1), table("ssd", 1), table("hdd", 1)]),
            "hdd: 2 measures, ssd: 1 measure"
        );
    }

    #[test]
    fn the_script_cannot_end_its_element() {
        assert!(!script().to_lowercase().contains("</script"));
        assert!(!script().contains("<!--"));
    }
}
