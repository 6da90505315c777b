//! How long to go on: until when figures are certain, and when a drive is steady.

use iosched_types::Nanos;
use iosched_types::units::{SEC, parse_nanos};
use toml::de::DeTable;

use crate::file::MAX_RUNS;
use crate::source::{At, Read, Source};

/// The fewest repetitions with a useful interval.
pub const MIN_RUNS: u32 = 3;
/// Repetitions at most, unless the experiment says otherwise.
pub const DEFAULT_MAX_RUNS: u32 = 30;

/// Repeat until the 95 % confidence interval of every cell is narrow enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// Half the interval's width at most, as a share of the mean: 0.03 for ±3 %.
    pub ci: f64,
    /// Repetitions at most.
    pub max_runs: u32,
    /// No new repetition begins after this time.
    pub max_time: Option<Nanos>,
}

/// Repetitions at most of an experiment that chooses them itself: another one narrows an interval by a twentieth.
pub const MOST_CHOSEN: u32 = 12;
/// The time that it takes where nothing is said.
pub const DEFAULT_BUDGET: Nanos = 10 * SEC;

/// Preconditioning and steady state after SNIA's Performance Test Specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// How often the whole device is written before, one block after another.
    pub precondition: u32,
    /// Rounds of the workload at most.
    pub max_rounds: u32,
}

impl Default for Steady {
    fn default() -> Self {
        Steady { precondition: 2, max_rounds: 25 }
    }
}

/// `3%` or `3`: half the width of an interval, as a share. `None` for anything else.
#[must_use]
pub fn parse_percent(text: &str) -> Option<f64> {
    let text = text.trim();
    let v: f64 = text.strip_suffix('%').unwrap_or(text).trim_end().parse().ok()?;
    (0.01..=100.0).contains(&v).then_some(v / 100.0)
}

/// `90s`, `20m`, `2h`; a bare number counts seconds. `None` for anything else, and for nothing at all.
#[must_use]
pub fn parse_time(text: &str) -> Option<Nanos> {
    parse_nanos(text.trim(), SEC).filter(|t| *t > 0)
}

/// The message for an invalid percentage.
pub const PERCENT_HELP: &str = "a percentage from 0.01 to 100, such as 3%";
/// The message for an invalid time.
pub const TIME_HELP: &str = "a time such as 90s, 20m or 2h";

/// Reads `until_ci`, `max_runs`, `max_time`.
pub(crate) fn read(src: &Source, root: &DeTable, runs: u32) -> Read<Option<Until>> {
    let Some(at) = root.get("until_ci") else {
        for key in ["max_runs", "max_time"] {
            if let Some(at) = root.get(key) {
                let d = src.error(at, format!("{key} goes with until_ci"));
                return Err(d.with_help("add a line such as until_ci = \"3%\", or use runs"));
            }
        }
        return Ok(None);
    };
    let text = src.fio_value(at, "until_ci")?;
    let ci = parse_percent(&text)
        .ok_or_else(|| src.error(at, format!("\"{text}\" is no share")).with_help(PERCENT_HELP))?;
    let least = i64::from(runs.max(MIN_RUNS));
    let max_runs = match root.get("max_runs") {
        Some(at) => src.within(at, "max_runs", least..=i64::from(MAX_RUNS))? as u32,
        None => DEFAULT_MAX_RUNS.max(runs),
    };
    let max_time = root.get("max_time").map(|at| {
        let text = src.fio_value(at, "max_time")?;
        parse_time(&text)
            .ok_or_else(|| src.error(at, format!("\"{text}\" is no time")).with_help(TIME_HELP))
    });
    Ok(Some(Until { ci, max_runs, max_time: max_time.transpose()? }))
}

/// Reads `budget`.
pub(crate) fn budget(src: &Source, root: &DeTable, at: &At) -> Read<Nanos> {
    for key in ["runs", "until_ci"] {
        if root.contains_key(key) {
            let d = src.error(at, format!("budget chooses the repetitions, and so does {key}"));
            return Err(d.with_help("leave one of them out"));
        }
    }
    let text = src.fio_value(at, "budget")?;
    parse_time(&text)
        .ok_or_else(|| src.error(at, format!("\"{text}\" is no time")).with_help(TIME_HELP))
}

/// Reads `steady_state`: `true`, or a table.
pub(crate) fn steady(src: &Source, at: &At) -> Read<Option<Steady>> {
    let mut out = Steady::default();
    let Some(table) = at.get_ref().as_table() else {
        return Ok(src.boolean(at, "steady_state")?.then_some(out));
    };
    src.known(table, "steady_state", &["precondition", "max_rounds"])?;
    if let Some(at) = table.get("precondition") {
        out.precondition = src.within(at, "precondition", 0..=10)? as u32;
    }
    if let Some(at) = table.get("max_rounds") {
        out.max_rounds = src.within(at, "max_rounds", 5..=1000)? as u32;
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_times_are_read() {
        assert_eq!(parse_percent("3%"), Some(0.03));
        assert_eq!(parse_percent("0.5"), Some(0.005));
        for bad in ["", "%", "0", "-3", "101%", "nan", "three"] {
            assert_eq!(parse_percent(bad), None, "{bad}");
        }
        assert_eq!(parse_time("2h"), Some(7200 * SEC));
        assert_eq!(parse_time("90"), Some(90 * SEC));
        assert_eq!((parse_time("0"), parse_time("soon")), (None, None));
    }
}
