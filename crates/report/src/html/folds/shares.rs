//! Which process gets how much of the bytes.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Fold, Source, process_key, tenth, wrap};
use crate::html::strip::names;
use crate::svg::escape;

impl Source<'_> {
    pub(super) fn shares(&self) -> Fold {
        let mut html = String::new();
        for (d, device) in self.devices() {
            html += &self.share_table(d, device);
        }
        let finding = self.finding(|d| {
            let found = self.found(d);
            let mut ranges: BTreeMap<&String, (f64, f64)> = BTreeMap::new();
            for (_, x) in found.iter().filter(|f| f.1.shares.len() > 1) {
                let total: u64 = x.shares.iter().map(|s| s.1).sum();
                for (name, bytes) in &x.shares {
                    let p = *bytes as f64 * 100.0 / total.max(1) as f64;
                    let e = ranges.entry(name).or_insert((p, p));
                    *e = (e.0.min(p), e.1.max(p));
                }
            }
            let apart = |r: &(f64, f64)| (r.1 + 0.1) / (r.0 + 0.1);
            let most =
                ranges.into_iter().reduce(|a, b| if apart(&b.1) > apart(&a.1) { b } else { a })?;
            let (low, high) = (tenth(most.1.0), tenth(most.1.1));
            Some(if low == high {
                format!("{} gets {low} %", most.0)
            } else {
                format!("{} gets {low} to {high} %", most.0)
            })
        });
        wrap("Shares by process", finding, html, "figs")
    }

    fn share_table(&self, d: usize, device: &str) -> String {
        let found = self.found(d);
        let Some((_, first)) = found.iter().find(|f| f.1.shares.len() > 1) else {
            return String::new();
        };
        let head: Vec<String> = first.shares.iter().map(|s| s.0.clone()).collect();
        let mut rows: Vec<(Vec<usize>, Vec<f64>)> = Vec::new();
        for (run, x) in &found {
            let total: u64 = x.shares.iter().map(|s| s.1).sum();
            if x.shares.len() < 2 || total == 0 {
                continue;
            }
            let of = |name: &String| {
                x.shares
                    .iter()
                    .find(|s| s.0 == *name)
                    .map_or(0.0, |s| s.1 as f64 * 100.0 / total as f64)
            };
            let parts: Vec<f64> = head.iter().map(of).collect();
            match rows.iter_mut().find(|r| r.1 == parts) {
                Some(r) => r.0.push(*run),
                None => rows.push((vec![*run], parts)),
            }
        }
        let mut out =
            format!("<figure><h4>{}: share of the bytes moved, by process</h4>", escape(device));
        let keys = head.iter().take(8).enumerate().map(|(i, n)| (n.clone(), i.min(4)));
        out += &process_key(keys);
        out += "<div class=\"scroll\"><table class=\"dt\"><thead><tr><th scope=\"col\">scheduler</th><th class=\"wide\"><span class=\"vh\">chart</span></th>";
        for name in head.iter().take(8) {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(name));
        }
        out += "</tr></thead><tbody>";
        for (runs, parts) in rows {
            let ids = runs.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
            let _ = write!(
                out,
                "<tr data-r=\"{ids}\"><th scope=\"row\">{}</th><td aria-hidden=\"true\"><div class=\"sh100\">",
                names(self.view, &runs)
            );
            for (i, p) in parts.iter().enumerate() {
                let _ = write!(
                    out,
                    "<span style=\"width:{p:.2}%;background:var(--p{})\"></span>",
                    i.min(4)
                );
            }
            out += "</div></td>";
            for p in parts.iter().take(8) {
                let _ = write!(out, "<td>{} %</td>", tenth(*p));
            }
            out += "</tr>";
        }
        out + "</tbody></table></div></figure>"
    }
}
