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

/// The rows and heads of the table.
pub(crate) fn matrix(view: &View, panels: &[Panel]) -> String {
    let columns: Vec<Vec<usize>> = (0..view.devices.len()).map(|d| runs_of(view, d)).collect();
    let mut out = String::from(
        "<caption class=\"vh\">Every measure of every scheduler against the base; arrow keys walk the cells, Enter opens the measure</caption><colgroup><col class=\"cl\">",
    );
    for c in &columns {
        out.push_str("<col class=\"cf\">");
        out.push_str(&"<col>".repeat(c.len().saturating_sub(1)));
    }
    out.push_str("</colgroup>");
    head(&mut out, view, &columns);
    for p in panels {
        let rows: Vec<_> = p.rows.iter().filter(|r| view.tests[r.test].head).collect();
        if rows.is_empty() {
            continue;
        }
        let span = 1 + columns.iter().map(Vec::len).sum::<usize>();
        let _ = write!(
            out,
            "<tbody><tr class=\"wl\"><th colspan=\"{span}\" scope=\"rowgroup\">{}</th></tr>",
            escape(&p.title)
        );
        for r in rows {
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
            for (d, runs) in columns.iter().enumerate() {
                cells(&mut out, view, test, d, runs);
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody>");
    }
    out
}

fn head(out: &mut String, view: &View, columns: &[Vec<usize>]) {
    out.push_str("<thead><tr><th class=\"rl\" rowspan=\"3\">Measure</th>");
    for (d, c) in columns.iter().enumerate() {
        let _ = write!(
            out,
            "<th class=\"dev d{d}\" colspan=\"{}\" scope=\"colgroup\">{}</th>",
            c.len(),
            escape(&view.devices[d])
        );
    }
    out.push_str("</tr><tr>");
    let now = |r: &usize| view.names[view.runs[*r].scheduler].now();
    for (d, c) in columns.iter().enumerate() {
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
    out.push_str("</tr><tr>");
    for (d, c) in columns.iter().enumerate() {
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
    out.push_str("</tr></thead>");
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
