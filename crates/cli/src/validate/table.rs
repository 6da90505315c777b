//! The table of a validation.

use std::collections::BTreeMap;

use iosched_report::terminal::{Align, Cell, Grid};
use iosched_results::stats::quantile;
use iosched_sim::validate::Row;
use iosched_types::units::three_digits;

use super::Compared;
use crate::tables::entry;

const COLUMNS: usize = 100;
/// Metrics in the order in which they are shown.
const METRICS: [&str; 5] = ["iops", "bw", "clat_mean", "clat_p50", "clat_p99"];

pub(super) fn render(result: &Compared) -> String {
    let mut grid = Grid::new()
        .column("case", Align::Left)
        .column("process", Align::Left)
        .column("metric", Align::Left)
        .column("kernel", Align::Right)
        .column("ours", Align::Right)
        .column("error", Align::Right);
    let mut last = String::new();
    for r in &result.rows {
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
        out.push_str("IOPS in 1/s, bw in KiB/s, latencies in us\n");
        out.push_str(&grid.render(COLUMNS, false));
        out.push('\n');
        out.push_str(&totals(&result.rows));
    }
    for (name, why) in &result.skipped {
        out.push_str(&entry(&format!("skipped {name}  "), 8, why));
    }
    out
}

fn percent(error: f64) -> String {
    format!("{:+.2} %", error * 100.0)
}

/// Median and worst error by scheduler and metric. Rates count whole runs, latencies each process.
fn totals(rows: &[Row]) -> String {
    let mut groups: BTreeMap<(&str, usize), Vec<&Row>> = BTreeMap::new();
    for r in rows {
        let whole = r.section == "*";
        let rate = matches!(r.metric, "iops" | "bw");
        let Some(metric) = METRICS.iter().position(|m| *m == r.metric) else { continue };
        if whole == rate {
            groups.entry((&r.scheduler, metric)).or_default().push(r);
        }
    }
    let mut grid = Grid::new()
        .column("scheduler", Align::Left)
        .column("metric", Align::Left)
        .column("figures", Align::Right)
        .column("median |error|", Align::Right)
        .column("worst", Align::Right)
        .column("in", Align::Left);
    for ((scheduler, metric), mut rows) in groups {
        rows.sort_by(|a, b| a.error.abs().total_cmp(&b.error.abs()));
        let sorted: Vec<f64> = rows.iter().map(|r| r.error.abs()).collect();
        let (Some(median), Some(worst)) = (quantile(&sorted, 0.5), rows.last()) else { continue };
        let process =
            if worst.section == "*" { String::new() } else { format!(" {}", worst.section) };
        grid.row(vec![
            Cell::new(scheduler),
            Cell::new(METRICS[metric]),
            Cell::new(rows.len().to_string()),
            Cell::new(format!("{:.3} %", median * 100.0)),
            Cell::new(percent(worst.error)),
            Cell::new(format!("{}/{}{process}", worst.device, worst.job)),
        ]);
    }
    grid.render(COLUMNS, false) + "\n"
}
