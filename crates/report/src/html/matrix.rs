//! The overview: every figure of every scheduler against the base, in one table. The script draws the same again.

use std::fmt::Write;

use super::number::{behind, decimals, scale, sig};
use super::panels::Panel;
use super::standing::{standing, times, words};
use super::strip::runs_of;
use super::view::{Cell, Test, View};
use crate::svg::escape;

/// A place to break a long name at.
fn breakable(name: &str) -> String {
    wrappable(name).replace("anticipatory", "antici&shy;patory")
}

/// A name that may go on in the next line behind a sign: tunables make long ones.
pub(crate) fn wrappable(name: &str) -> String {
    let mut out = escape(name).replace("mq-deadline", "mq-<wbr>deadline");
    for sign in [",", "(", "="] {
        out = out.replace(sign, &format!("{sign}<wbr>"));
    }
    // Also within a tunable's name, but not in `a_b` alone.
    if name.contains('=') { out.replace('_', "_<wbr>") } else { out }
}

/// A figure as text.
pub(crate) fn figure(test: &Test, v: f64) -> String {
    if test.measure == "fairness.jain" {
        return decimals(v, 3);
    }
    // A longer unit has no room in a cell; the chart of the figure names it.
    let (by, word) = scale(v, &test.unit);
    format!("{} {}", sig(v / by), behind(&word)).trim_end().into()
}

/// Before a figure that is a bound.
fn at_least(c: &Cell) -> &'static str {
    if c.censored() > 0 { "> " } else { "" }
}

/// More columns than this are too narrow: then devices stand below each other ...
const MANY: usize = 18;
/// ... as many side by side as have so many columns.
const BESIDE: usize = 14;

/// Which devices stand side by side. The script does the same.
fn groups(columns: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let all: usize = columns.iter().map(Vec::len).sum();
    let mut out: Vec<Vec<usize>> = Vec::new();
    let mut taken = 0;
    for (d, c) in columns.iter().enumerate() {
        taken += c.len();
        match out.last_mut().filter(|_| all <= MANY || taken <= BESIDE) {
            Some(group) => group.push(d),
            None => {
                out.push(vec![d]);
                taken = c.len();
            }
        }
    }
    out
}

/// The rows and heads of the table.
pub(crate) fn matrix(view: &View, panels: &[Panel]) -> String {
    let columns: Vec<Vec<usize>> = (0..view.devices.len()).map(|d| runs_of(view, d)).collect();
    let groups = groups(&columns);
    let wide = |g: &[usize]| g.iter().map(|d| columns[*d].len()).sum::<usize>();
    let mut out = String::from(
        "<caption class=\"vh\">Every measure of every scheduler against the base; arrow keys walk the cells, Enter opens the measure</caption><colgroup><col class=\"cl\">",
    );
    let widest = groups.iter().max_by_key(|g| wide(g)).cloned().unwrap_or_default();
    for d in widest {
        out.push_str("<col class=\"cf\">");
        out.push_str(&"<col>".repeat(columns[d].len().saturating_sub(1)));
    }
    out.push_str("</colgroup>");
    for (n, g) in groups.iter().enumerate() {
        let of: Vec<String> = g.iter().map(|d| format!("d{d}")).collect();
        let of = if groups.len() > 1 { of.join(" ") } else { String::new() };
        head(&mut out, view, (&columns, g), (n, &of));
        let span = 1 + wide(g);
        for p in panels {
            let rows = rows(view, p, (&columns, g));
            if !rows.is_empty() {
                let class = if of.is_empty() { of.clone() } else { format!(" class=\"{of}\"") };
                let title = escape(&p.title);
                let _ = write!(
                    out,
                    "<tbody{class}><tr class=\"wl\"><th colspan=\"{span}\" scope=\"rowgroup\">{title}</th></tr>{rows}</tbody>"
                );
            }
        }
    }
    out
}

/// The measures of a workload on some devices.
fn rows(view: &View, p: &Panel, (columns, devices): (&[Vec<usize>], &[usize])) -> String {
    let mut out = String::new();
    for r in p.rows.iter().filter(|r| view.tests[r.test].head) {
        let test = &view.tests[r.test];
        if test.cells.iter().all(|c| c.summary.is_none()) {
            continue;
        }
        let id = escape(&r.id);
        let _ = write!(
            out,
            "<tr data-m=\"{id}\"><th class=\"rl\" scope=\"row\"><a href=\"#{id}\">{}</a></th>",
            escape(&r.line)
        );
        for d in devices {
            cells(&mut out, view, test, *d, &columns[*d]);
        }
        out.push_str("</tr>");
    }
    out
}

/// The heads of some devices' columns: those of the first group are the table's.
fn head(
    out: &mut String,
    view: &View,
    (columns, devices): (&[Vec<usize>], &[usize]),
    (group, of): (usize, &str),
) {
    let (open, row, close) = match group {
        0 => ("<thead>".to_string(), "<tr>", "</thead>"),
        _ => (format!("<tbody class=\"{of} hd\">"), "<tr class=\"h\">", "</tbody>"),
    };
    let each = || devices.iter().map(|d| (*d, &columns[*d]));
    let _ = write!(out, "{open}{row}<th class=\"rl\" rowspan=\"3\">Measure</th>");
    for (d, c) in each() {
        let _ = write!(
            out,
            "<th class=\"dev d{d}\" colspan=\"{}\" scope=\"colgroup\">{}</th>",
            c.len(),
            escape(&view.devices[d])
        );
    }
    let _ = write!(out, "</tr>{row}");
    let now = |r: &usize| view.names[view.runs[*r].scheduler].now();
    for (d, c) in each() {
        let n = c.iter().filter(|r| now(r)).count();
        for (count, title, class) in
            [(n, "in this kernel", " fst"), (c.len() - n, "not in this kernel", " old")]
        {
            if count > 0 {
                let _ = write!(
                    out,
                    "<th class=\"grp d{d}{class}\" colspan=\"{count}\" scope=\"colgroup\">{title}</th>"
                );
            }
        }
    }
    let _ = write!(out, "</tr>{row}");
    for (d, c) in each() {
        for (k, r) in c.iter().enumerate() {
            let s = view.runs[*r].scheduler;
            let name = &view.names[s];
            let until = name
                .meaning
                .until()
                .map_or_else(String::new, |last| format!(" <small>to {}</small>", escape(last)));
            let _ = write!(
                out,
                "<th class=\"sc d{d}{}{}{}\" scope=\"col\" data-b=\"{s}\" title=\"click: compare with {}\">{}{until}</th>",
                if now(r) { "" } else { " old" },
                if k == 0 { " fst" } else { "" },
                if s == view.base { " isb" } else { "" },
                escape(&view.schedulers[s]),
                breakable(&name.short)
            );
        }
    }
    let _ = write!(out, "</tr>{close}");
}

fn cells(out: &mut String, view: &View, test: &Test, d: usize, runs: &[usize]) {
    let now = |r: usize| view.names[view.runs[r].scheduler].now();
    let mut k = 0;
    while k < runs.len() {
        let first = &test.cells[runs[k]];
        let same = |r: &usize| test.cells[*r].same(first) && now(*r) == now(runs[k]);
        let n = 1 + runs[k + 1..].iter().take_while(|r| same(r)).count();
        let group = &runs[k..k + n];
        let base = group.iter().find(|r| view.runs[**r].scheduler == view.base);
        let st = standing(view, test, *base.unwrap_or(&runs[k]));
        let text = match first.centre() {
            None => "–".into(),
            Some(v) if st.class == "base" => format!("{}{}", at_least(first), figure(test, v)),
            Some(_) => times(test, &st),
        };
        let names: Vec<&str> =
            group.iter().map(|r| view.names[view.runs[*r].scheduler].short.as_str()).collect();
        let figure = first
            .centre()
            .map(|v| format!(": {}{}", at_least(first), figure(test, v)))
            .unwrap_or_default();
        let _ = write!(
            out,
            "<td class=\"d{d} {}{}{}\"{} tabindex=\"-1\" title=\"{}{}; {}\"><span>{}</span></td>",
            st.class,
            if n > 1 { " mrg" } else { "" },
            if k == 0 { " fst" } else { "" },
            if n > 1 { format!(" colspan=\"{n}\"") } else { String::new() },
            escape(&names.join(" = ")),
            escape(&figure),
            words(&st.class),
            escape(&text),
        );
        k += n;
    }
}
