//! Which figures stand together: a panel for each workload, or for each program where every workload is one figure.

use std::collections::BTreeSet;

use super::input::Input;
use super::view::{View, without_unit};

/// Some figures under one heading.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    /// For addresses: letters, digits and dashes.
    pub(crate) id: String,
    pub(crate) title: String,
    /// What all its figures have in common, small.
    pub(crate) sub: String,
    pub(crate) workloads: Vec<usize>,
    pub(crate) rows: Vec<Row>,
}

/// One figure of a panel.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) test: usize,
    /// Its address: `desktop/read.bw`.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) sub: String,
    /// As the overview calls it: with `sub` where the panel has several of that title.
    pub(crate) line: String,
}

/// The words of a title in an address.
fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '.' {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    let cut: String = out.trim_matches(['-', '.']).chars().take(48).collect();
    if cut.is_empty() { "w".into() } else { cut }
}

fn unique(wanted: String, taken: &mut BTreeSet<String>) -> String {
    let name = (1..)
        .map(|i| if i == 1 { wanted.clone() } else { format!("{wanted}-{i}") })
        .find(|n| !taken.contains(n))
        .unwrap_or(wanted);
    taken.insert(name.clone());
    name
}

/// The program of a workload that a tool reported under its own name.
fn program<'a>(view: &View, workload: usize, title: &'a str) -> Option<(&'a str, &'a str)> {
    let mut own = view.tests.iter().filter(|t| t.workload == workload);
    own.all(|t| !super::measures::derived(&t.measure)).then(|| title.split_once(": "))?
}

/// `Type: Sequential Read` without the word before the colon, unless the rest alone says nothing (`6`, `No`).
fn bare(part: &str) -> &str {
    let rest = part.split_once(": ").map_or(part, |(_, rest)| rest);
    if rest.chars().filter(|c| c.is_alphabetic()).count() > 3 { rest } else { part }
}

/// A part as title and what stands small beside it. What is no word before the colon is an option (`-t 1: write
/// throughput`): it tells the figure from others of the same name.
fn shown(part: &str) -> Vec<&str> {
    match part.split_once(": ") {
        Some((option, rest)) if option.starts_with('-') => vec![rest, option],
        _ => vec![bare(part)],
    }
}

/// The panels, in the order of the workloads.
pub(crate) fn panels(view: &View, input: &Input) -> Vec<Panel> {
    let mut out: Vec<Panel> = Vec::new();
    for (w, facts) in input.workloads.iter().enumerate() {
        let program = program(view, w, &facts.title).map(|p| p.0.to_string());
        let known = program.as_ref().and_then(|p| out.iter_mut().find(|o| o.title == *p));
        match known {
            Some(panel) => panel.workloads.push(w),
            None => out.push(Panel {
                title: program.unwrap_or_else(|| facts.title.clone()),
                workloads: vec![w],
                ..Panel::default()
            }),
        }
    }
    let mut taken = BTreeSet::new();
    for p in &mut out {
        p.id = unique(slug(&p.title), &mut taken);
        fill(p, view, input, &mut taken);
    }
    out
}

fn fill(p: &mut Panel, view: &View, input: &Input, taken: &mut BTreeSet<String>) {
    let parts = |w: usize| -> Vec<String> {
        let unit = view.tests.iter().find(|t| t.workload == w).map_or("", |t| t.unit.as_str());
        let title = without_unit(&input.workloads[w].title, unit);
        let rest = title.strip_prefix(&format!("{}: ", p.title)).unwrap_or_default();
        rest.split(" - ").filter(|s| !s.is_empty()).map(Into::into).collect()
    };
    let all: Vec<Vec<String>> = p.workloads.iter().map(|w| parts(*w)).collect();
    let common: Vec<&String> =
        all[0].iter().filter(|x| all.len() > 1 && all.iter().all(|v| v.contains(x))).collect();
    p.sub = common.iter().map(|c| bare(c)).collect::<Vec<_>>().join(", ");
    for (w, parts) in p.workloads.iter().zip(&all) {
        let words: Vec<&str> =
            parts.iter().filter(|x| !common.contains(x)).flat_map(|x| shown(x)).collect();
        for (t, test) in view.tests.iter().enumerate() {
            if test.workload != *w || test.twin {
                continue;
            }
            let alone = view.tests.iter().filter(|o| o.workload == *w && !o.twin).count() == 1;
            let single = p.workloads.len() == 1;
            let (title, sub) = match (words.is_empty(), alone) {
                (false, true) if single => (p.title.clone(), words.join(", ")),
                (true, _) => (test.title.clone(), String::new()),
                (false, true) => (words[0].to_string(), words[1..].join(", ")),
                (false, false) => (test.title.clone(), words.join(", ")),
            };
            // A title that only repeats the unit says less than the program's name.
            let title = if title == test.unit { p.title.clone() } else { title };
            let wanted = format!("{}/{}", p.id, slug(if alone { &title } else { &test.measure }));
            p.rows.push(Row {
                test: t,
                id: unique(wanted, taken),
                title,
                sub,
                line: String::new(),
            });
        }
    }
    let titles: Vec<String> = p.rows.iter().map(|r| r.title.clone()).collect();
    for r in &mut p.rows {
        let alone = titles.iter().filter(|t| **t == r.title).count() == 1;
        let gap = if alone || r.sub.is_empty() { "" } else { ", " };
        r.line = format!("{}{gap}{}", r.title, if alone { "" } else { &r.sub });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hold_no_other_signs() {
        assert_eq!(slug("Random Writers, 4 KiB"), "random-writers-4-kib");
        assert_eq!(slug("</script>{{7*7}}"), "script-7-7");
        assert_eq!(slug("\u{202e}"), "w");
        let mut taken = BTreeSet::new();
        let names = [unique("a".into(), &mut taken), unique("a".into(), &mut taken)];
        assert_eq!(names, ["a", "a-2"]);
    }
}
