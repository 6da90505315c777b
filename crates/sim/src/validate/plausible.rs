//! Whether a measured row can be true at all, by laws that hold for every machine.

use std::collections::BTreeMap;

use iosched_types::Diagnostic;

use super::measured::{MeasuredRow, Shape, shape};

/// Room for figures that were rounded before they were written down, and for processes that did not all run equally long.
const ROUNDING: f64 = 1.05;
/// Core time of an I/O below which no kernel has ever been: a system call alone takes longer.
const LEAST_NS: f64 = 50.0;

/// Checks all rows. Gives back what is strange but may be.
///
/// # Errors
/// The first row that cannot be, and by which law.
pub(super) fn check(file: &str, rows: &[MeasuredRow]) -> Result<Vec<String>, Diagnostic> {
    let mut seen: BTreeMap<(&str, u32, &str), usize> = BTreeMap::new();
    let mut strange = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let place = named(i, row);
        let refuse = |what: String, law: &str| {
            Err(Diagnostic::file(file, format!("{place}: {what}")).with_help(law))
        };
        let key = (row.setup.as_str(), row.n, row.scheduler.as_str());
        if let Some(before) = seen.insert(key, i) {
            let what = format!("row {} has the same setup, n and scheduler", before + 1);
            return refuse(what, "a mean over repeated runs is one row");
        }
        let laws = [signs(row), percentiles(row)].into_iter().chain(
            // A setup that cannot be read is told where the row would be simulated.
            shape(&row.setup, row.n).ok().map(|s| throughput(row, s)),
        );
        for law in laws {
            if let Err((what, law)) = law {
                return refuse(what, law);
            }
        }
        strange.extend(doubts(row).into_iter().map(|doubt| format!("{place}: {doubt}")));
    }
    Ok(strange)
}

/// Latencies that some rows do not have: nothing is compared there.
pub(super) fn left_out(rows: &[MeasuredRow]) -> Vec<String> {
    type Get = fn(&MeasuredRow) -> Option<f64>;
    let figures: [(&str, Get); 3] =
        [("lat_mean_us", |r| r.lat_mean_us), ("p50_us", |r| r.p50_us), ("p99_us", |r| r.p99_us)];
    let missing = |get: Get| rows.iter().filter(|r| get(r).is_none()).count();
    let missing = figures.map(|(name, get)| (name, missing(get)));
    let said = missing.into_iter().filter(|(_, n)| *n > 0).map(|(name, n)| {
        format!("{name} is not compared in {n} of {} rows, which do not have it", rows.len())
    });
    said.collect()
}

fn named(i: usize, row: &MeasuredRow) -> String {
    format!("row {} ({}, n = {}, {})", i + 1, row.setup, row.n, row.scheduler)
}

/// What a row says, and the law that speaks against it.
type Checked = Result<(), (String, &'static str)>;

fn signs(row: &MeasuredRow) -> Checked {
    let above = [
        ("iops", Some(row.iops)),
        ("lat_mean_us", row.lat_mean_us),
        ("p50_us", row.p50_us),
        ("p99_us", row.p99_us),
    ];
    let least = [("usr_pct", row.usr_pct), ("sys_pct", row.sys_pct)];
    let wrong = above.into_iter().find(|(_, v)| v.is_some_and(|v| v <= 0.0));
    match wrong.or(least.into_iter().find(|(_, v)| v.is_some_and(|v| v < 0.0))) {
        Some((key, value)) => Err((
            format!("{key} is {}", value.unwrap_or_default()),
            "rates and latencies are above 0, shares of CPU at least 0",
        )),
        None => Ok(()),
    }
}

/// The least mean that latencies with these percentiles can have: half of them are at least the median, one of 100 is at
/// least the 99th percentile.
fn least_mean(row: &MeasuredRow) -> f64 {
    match (row.p50_us, row.p99_us) {
        (Some(p50), Some(p99)) => 0.49 * p50 + 0.01 * p99,
        (p50, p99) => 0.5 * p50.unwrap_or(0.0) + 0.01 * p99.unwrap_or(0.0),
    }
}

fn percentiles(row: &MeasuredRow) -> Checked {
    if let (Some(p50), Some(p99)) = (row.p50_us, row.p99_us)
        && p50 > p99
    {
        let what = format!("p50_us ({p50}) is above p99_us ({p99})");
        return Err((what, "a higher percentile is never smaller"));
    }
    let least = least_mean(row);
    match row.lat_mean_us {
        Some(mean) if mean * ROUNDING < least => Err((
            format!(
                "lat_mean_us is {mean}, with these percentiles at least {least:.4} is expected"
            ),
            "half of the latencies are at least the median, one of 100 at least the 99th percentile",
        )),
        _ => Ok(()),
    }
}

fn throughput(row: &MeasuredRow, shape: Shape) -> Checked {
    let Shape { processes, depth, cores } = shape;
    let (processes, cores) = (f64::from(processes), f64::from(cores));
    let most = processes * f64::from(depth);
    // Little's law: I/Os in flight are rate times latency.
    let (word, mean) = match row.lat_mean_us {
        Some(mean) => ("lat_mean_us", mean),
        None => ("a mean by the percentiles", least_mean(row)),
    };
    let in_flight = row.iops * mean / 1e6;
    if in_flight > most * ROUNDING {
        let what = format!(
            "iops ({}) times {word} ({mean}) is {in_flight:.4} I/Os in flight, at most {most} are expected",
            row.iops
        );
        return Err((what, "no more are in flight than processes times depth (Little's law)"));
    }
    if row.iops > cores * 1e9 / LEAST_NS {
        let what = format!(
            "iops ({}) leaves {:.2} ns of core time for an I/O on {cores} cores",
            row.iops,
            cores * 1e9 / row.iops
        );
        return Err((what, "an I/O is a system call and takes more than 50 ns of core time"));
    }
    let used = row.usr_pct.unwrap_or(0.0) + row.sys_pct.unwrap_or(0.0);
    let share = 100.0 * (cores / processes).min(1.0);
    // Shares have one digit behind the point, which is much of a small one.
    if used > share * ROUNDING + 0.1 {
        let share = (share * 10.0).round() / 10.0;
        let what = format!("usr_pct + sys_pct is {used}, at most {share} is expected");
        return Err((what, "a process has one core, and no more than its share of all cores"));
    }
    Ok(())
}

/// What a machine can do, but hardly one that was measured well.
fn doubts(row: &MeasuredRow) -> Vec<String> {
    let mut out = Vec::new();
    if let (Some(mean), Some(p99)) = (row.lat_mean_us, row.p99_us)
        && mean > p99
    {
        let tail = (mean - 0.99 * p99) / 0.01;
        out.push(format!(
            "lat_mean_us ({mean}) is above p99_us ({p99}): one of 100 I/Os took at least {tail:.0} µs in the mean"
        ));
    }
    if let (Some(mean), Ok(Shape { processes, depth, .. })) =
        (row.lat_mean_us, shape(&row.setup, row.n))
    {
        let (in_flight, most) = (row.iops * mean / 1e6, f64::from(processes) * f64::from(depth));
        if in_flight * 2.0 < most {
            out.push(format!(
                "iops times lat_mean_us is {in_flight:.4} I/Os in flight, about {most} are expected of \
                 processes that submit without a pause"
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Measured;

    const GOOD: &str = r#""setup": "n processes at depth 1 on 2 cores", "scheduler": "none""#;

    fn read(rows: &[&str]) -> Result<Vec<String>, String> {
        let rows: Vec<String> = rows.iter().map(|r| format!("{{{GOOD}, {r}}}")).collect();
        let text = format!(r#"{{"source": "s", "machine": "m", "rows": [{}]}}"#, rows.join(",\n"));
        Measured::parse("f", &text).map(|m| m.warnings).map_err(|d| format!("{}; {d}", d.message))
    }

    #[test]
    fn rows_that_nothing_can_have_are_refused_with_their_place() {
        let fine = r#""n": 3, "iops": 30000, "lat_mean_us": 99, "p50_us": 90, "p99_us": 200, "usr_pct": 5, "sys_pct": 20"#;
        assert_eq!(read(&[fine]), Ok(Vec::new()));
        for (row, expected) in [
            (r#""n": 2, "iops": 0"#, "iops is 0"),
            (r#""n": 2, "iops": 5, "p99_us": 0"#, "p99_us is 0"),
            (r#""n": 2, "iops": 5, "sys_pct": -1"#, "sys_pct is -1"),
            (
                r#""n": 2, "iops": 5, "p50_us": 70, "p99_us": 60"#,
                "p50_us (70) is above p99_us (60)",
            ),
            (r#""n": 2, "iops": 5, "lat_mean_us": 9, "p50_us": 70"#, "at least 35"),
            (r#""n": 2, "iops": 30000, "lat_mean_us": 99"#, "2.97"),
            (r#""n": 1, "iops": 1e9, "p50_us": 70"#, "at most 1 are"),
            (r#""n": 1, "iops": 1e9"#, "2.00 ns of core time"),
            (r#""n": 1, "iops": 5, "usr_pct": 50, "sys_pct": 60"#, "at most 100 is"),
            (r#""n": 8, "iops": 5, "usr_pct": 20, "sys_pct": 20"#, "at most 25 is"),
            (fine, "row 1 has the same"),
            (
                r#""n": 2, "iops": 5, "lat_meen_us": 9"#,
                "unknown field `lat_meen_us`, expected one of",
            ),
        ] {
            let e = read(&[fine, row]).unwrap_err();
            assert!(e.contains(expected), "{row}: {e}");
            assert!(e.contains("row 2 (n processes at") || e.contains("f:2:"), "{row}: {e}");
        }
    }

    #[test]
    fn strange_rows_are_taken_with_a_word() {
        let tail = r#""n": 1, "iops": 500, "lat_mean_us": 2000, "p50_us": 90, "p99_us": 200"#;
        let idle = r#""n": 2, "iops": 5, "lat_mean_us": 99"#;
        let said = read(&[tail, idle]).unwrap();
        assert_eq!(said.len(), 4, "{said:?}");
        assert_eq!(said[3], "p99_us is not compared in 1 of 2 rows, which do not have it");
        assert!(said[0].starts_with("row 1 (") && said[0].contains("180200 µs in the mean"));
        assert!(said[1].contains("about 2 are expected"), "{said:?}");
    }

    #[test]
    fn the_rows_that_were_really_measured_are_fine() {
        let text = include_str!("../../../../data/measured/samsung-980-pro.json");
        let measured = Measured::parse("m.json", text).unwrap();
        assert_eq!((measured.rows.len(), measured.warnings.len()), (63, 0));
    }
}
