//! Preconditioning and steady state of solid-state drives, as SNIA's Performance Test Specification
//! has them: a window of five rounds is steady when its range is at most 20 % of its average and the
//! least-squares line through it rises or falls by at most 10 % of the average.

use iosched_experiment::{Record, Status, Steady, Trial, Warning};
use iosched_workloads::fio::{JobSet, NoLookup, parse};

use super::{Backend, Error, Interrupt, Result};

/// Rounds in the window.
pub const WINDOW: usize = 5;
const RANGE: f64 = 0.20;
const EXCURSION: f64 = 0.10;

/// The figures behind a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Steadiness {
    /// The window's values.
    pub window: Vec<f64>,
    /// (max − min) / average.
    pub range: f64,
    /// |slope · (window − 1)| / average.
    pub excursion: f64,
    /// Both are within their limits.
    pub steady: bool,
}

/// Judges the last five rounds; `None` with fewer or when the average is not positive.
#[must_use]
pub fn judge(rounds: &[f64]) -> Option<Steadiness> {
    let window = rounds.get(rounds.len().checked_sub(WINDOW)?..)?.to_vec();
    let n = WINDOW as f64;
    let average = window.iter().sum::<f64>() / n;
    if average.is_nan() || average <= 0.0 {
        return None;
    }
    let max = window.iter().copied().fold(f64::MIN, f64::max);
    let min = window.iter().copied().fold(f64::MAX, f64::min);
    let mid = (n - 1.0) / 2.0;
    let (mut xy, mut xx) = (0.0, 0.0);
    for (i, y) in window.iter().enumerate() {
        let x = i as f64 - mid;
        xy += x * (y - average);
        xx += x * x;
    }
    let range = (max - min) / average;
    let excursion = (xy / xx * (n - 1.0)).abs() / average;
    Some(Steadiness { window, range, excursion, steady: range <= RANGE && excursion <= EXCURSION })
}

impl Steadiness {
    /// One line of evidence for a record.
    #[must_use]
    pub fn render(&self) -> String {
        format!(
            "{}: range {:.1} % (limit 20), slope {:.1} % (limit 10) over {WINDOW} rounds",
            if self.steady { "steady" } else { "not steady" },
            self.range * 100.0,
            self.excursion * 100.0
        )
    }
}

/// What happened before the first round that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// How often the device was written.
    pub precondition: u32,
    /// I/Os a second of every round.
    pub rounds: Vec<f64>,
    /// The verdict on the last of them.
    pub verdict: Option<Steadiness>,
}

impl Evidence {
    /// Writes the evidence into a record: the figures as provenance, and a warning if the drive never became steady.
    pub fn into_record(&self, record: &mut Record) {
        let rounds: Vec<String> = self.rounds.iter().map(|r| format!("{r:.0}")).collect();
        let words =
            self.verdict.as_ref().map_or("not steady: too few rounds".into(), Steadiness::render);
        let mut put = |k: &str, v: String| record.provenance.insert(k.into(), v);
        put("steady_state", words.clone());
        put("steady_state.iops", rounds.join(" "));
        put("steady_state.precondition", format!("written {} times", self.precondition));
        if !self.verdict.as_ref().is_some_and(|v| v.steady) {
            record.warnings.push(Warning {
                code: "not-steady".into(),
                message: format!("the device was {words}"),
                advice: "allow more rounds: steady_state = { max_rounds = … }".into(),
            });
        }
    }
}

/// Writes the device as often as asked and runs a cell until its rate is steady.
///
/// # Errors
/// A write or round that fails, and [`Error::Interrupted`].
pub fn reach(
    backend: &mut dyn Backend,
    cell: &Trial,
    how: Steady,
    interrupt: &Interrupt,
) -> Result<Evidence> {
    if how.precondition > 0 {
        interrupt.check()?;
        let trial = Trial { work: fill(how.precondition)?.into(), ..cell.clone() };
        usable(backend.run(&trial)?, "preconditioning")?;
    }
    let mut run = |i: usize| {
        interrupt.check()?;
        let seed = cell.id.seed.wrapping_add(i as u64);
        usable(backend.run(&cell.at_repetition(1, seed, true))?, "a round before the steady state")
    };
    let (rounds, verdict) = until_steady(how.max_rounds as usize, &mut run)?;
    Ok(Evidence { precondition: how.precondition, rounds, verdict })
}

/// The job that writes the whole device.
fn fill(times: u32) -> Result<JobSet> {
    let text = format!(
        "[precondition]\nfilename=/dev/disk\nrw=write\nbs=128k\ndirect=1\nioengine=libaio\n\
         iodepth=32\nsize=100%\nloops={times}\n"
    );
    let none = |_: &str| Err("no includes".to_string());
    parse("precondition.fio", &text, &NoLookup, &none, &[]).map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Error::input(all.join("\n"), String::new())
    })
}

/// I/Os a second of a run. Noise by others is no reason to stop here; a failure is.
fn usable(record: Record, what: &str) -> Result<f64> {
    if let Status::Failed(why) = record.status {
        return Err(Error::Trial { message: format!("{what} failed: {why}") });
    }
    let jobs = record.jobs.iter().flat_map(|j| [&j.read, &j.write, &j.trim]);
    Ok(jobs.map(|d| d.iops()).sum())
}

/// Runs rounds of a workload (each yields its rate) until steady or `max` rounds are done.
///
/// # Errors
/// The first round that fails.
pub fn until_steady(
    max: usize,
    round: &mut dyn FnMut(usize) -> Result<f64>,
) -> Result<(Vec<f64>, Option<Steadiness>)> {
    let mut values = Vec::new();
    for i in 0..max {
        values.push(round(i)?);
        if let Some(s) = judge(&values)
            && s.steady
        {
            return Ok((values, Some(s)));
        }
    }
    let last = judge(&values);
    Ok((values, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_rules_count() {
        assert!(judge(&[100.0; 5]).unwrap().steady);
        // Range 25 %, no slope.
        assert!(!judge(&[100.0, 112.5, 87.5, 100.0, 100.0]).unwrap().steady);
        // Range 16 %, but it keeps falling.
        let falling = judge(&[108.0, 104.0, 100.0, 96.0, 92.0]).unwrap();
        assert!((falling.range - 0.16).abs() < 1e-9 && (falling.excursion - 0.16).abs() < 1e-9);
        assert!(!falling.steady);
        assert_eq!(judge(&[1.0; 4]), None);
        assert_eq!(judge(&[0.0; 5]), None);
    }

    #[test]
    fn rounds_stop_when_steady() {
        let mut rate = 200.0;
        let (values, s) = until_steady(50, &mut |_| {
            rate = 100.0 + (rate - 100.0) * 0.5;
            Ok(rate)
        })
        .unwrap();
        assert!(s.unwrap().steady && values.len() < 12, "{values:?}");
    }
}
