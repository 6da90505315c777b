//! The table of a validation.

use std::collections::BTreeMap;

use iosched_report::terminal::{Align, Cell, Grid};
use iosched_types::units::three_digits;

use super::{Compared, totals};
use crate::tables::{columns, entry};

/// The summary; `rows` puts every figure before it.
pub(super) fn render(result: &Compared, rows: bool) -> String {
    let mut grid = Grid::new()
        .column("case", Align::Left)
        .column("process", Align::Left)
        .column("metric", Align::Left)
        .column("kernel", Align::Right)
        .column("ours", Align::Right)
        .column("error", Align::Right);
    let mut last = String::new();
    for r in result.rows.iter().filter(|_| rows) {
        let case = format!("{}/{}/{}", r.device, r.job, r.scheduler);
        let process =
            if r.section == "*" { "all".into() } else { format!("{} {}", r.section, r.op) };
        let shown = if case == last { String::new() } else { case.clone() };
        grid.row(vec![
            Cell::new(shown),
            Cell::new(process),
            Cell::new(r.metric),
            Cell::new(three_digits(r.kernel)),
            Cell::new(three_digits(r.ours)),
            Cell::new(percent(r.error)),
        ]);
        last = case;
    }
    let mut out = String::new();
    if !grid.is_empty() {
        out.push_str(
            "IOPS in 1/s, bw in KiB/s, latencies in us, cpu in % of a core for each process\n",
        );
        out.push_str(&grid.render(columns(), false));
        out.push('\n');
    }
    out.push_str(&skipped(&result.skipped));
    if !result.rows.is_empty() {
        out.push_str(&totals::render(&result.rows));
    }
    out
}

/// The cases left out, by reason.
fn skipped(cases: &[(String, String)]) -> String {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, why) in cases {
        reasons.entry(why).or_default().push(name);
    }
    let mut out = String::new();
    for (why, names) in reasons {
        let number = names.len();
        out.push_str(&entry(&format!("{number} skipped"), 14, &format!("{why}:")));
        out.push_str(&entry("", 14, &names.join(", ")));
        out.push('\n');
    }
    out
}

pub(super) fn percent(error: f64) -> String {
    format!("{:+.2} %", error * 100.0)
}
