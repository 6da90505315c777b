//! Whether an emulated disk was as fast as its model, by the I/O itself: compares how long commands took from issue to
//! completion in the block trace with the model's answers to the same commands.
//!
//! The server's own lateness is not enough. A busy machine also delays the workers of loop, the way to the server and
//! the way back.

use iosched_experiment::{Metric, Record, TIMING_DEVIATION, Warning};
use iosched_types::units::three_digits;

use crate::backend::invalidate_record;
use crate::trace::{Times, Took};
use crate::validity::{NOISY, Thresholds};

/// The trace and the model of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// By the trace.
    pub traced: Times,
    /// What the model answered meanwhile, but for flushes, and its own answer times.
    pub data: Took,
    /// Flushes that the model answered.
    pub flushes: Took,
    /// Whether the trace is a sample of the commands.
    pub sampled: bool,
}

/// Share of the commands that the trace may lack or have in excess, such as those at its ends.
const MISCOUNT: f64 = 0.02;
/// A sample of fewer commands says nothing.
const FEWEST: u64 = 20;

impl Timing {
    /// By how much the mean command took longer than the model's answer, as a share of that answer. Below 0 the answer
    /// came too early.
    ///
    /// # Errors
    /// Why it cannot be told.
    pub fn deviation(&self) -> Result<f64, String> {
        let Timing { traced, data, flushes, sampled } = *self;
        if traced.lost > 0 {
            return Err(format!("{} events of the block trace were lost", traced.lost));
        }
        // A sample and some kernels' traces have no flushes. Then those of the model are left out, too.
        let (seen, answered) = match traced.flushes.commands {
            0 => (traced.data, data),
            _ => (traced.data.and(traced.flushes), data.and(flushes)),
        };
        if answered.commands == 0 || answered.time == 0 {
            return Err("the disk answered no command".into());
        }
        let close = |a: u64, b: u64| a.abs_diff(b) as f64 <= (b as f64 * MISCOUNT).max(2.0);
        let enough = match sampled {
            true => seen.commands >= FEWEST.min(answered.commands),
            false => close(seen.commands, answered.commands),
        };
        if !enough {
            let and = match traced.flushes.commands {
                0 => String::new(),
                n => format!(" ({n} flushes; {} of the model)", flushes.commands),
            };
            return Err(format!(
                "the block trace has {} commands, the model answered {}{and}",
                seen.commands, answered.commands
            ));
        }
        let mean = |took: Took| took.time as f64 / took.commands.max(1) as f64;
        Ok(mean(seen) / mean(answered) - 1.0)
    }
}

/// Writes the deviation beside the result, and marks the record or makes it invalid.
pub(crate) fn judge(record: &mut Record, timing: &Result<Timing, String>, limits: &Thresholds) {
    let deviation = timing.as_ref().map_err(Clone::clone).and_then(Timing::deviation);
    let deviation = match deviation {
        Ok(d) => d,
        Err(why) => {
            noise_decides(record);
            record.warnings.push(Warning {
                code: "timing-unchecked".into(),
                message: format!("the disk's times could not be checked against the model: {why}"),
                advice: "only the server's own lateness is known".into(),
            });
            return;
        }
    };
    record.metrics.push(Metric {
        name: TIMING_DEVIATION.into(),
        value: deviation.abs() * 100.0,
        unit: "%".into(),
        higher_is_better: Some(false),
        censored: false,
    });
    let size = deviation.abs();
    let word = if deviation > 0.0 { "longer" } else { "less" };
    let percent = three_digits(size * 100.0);
    let message =
        format!("the disk's commands took {percent} % {word} than the model's own answers");
    if size > limits.deviation_invalid {
        noise_decides(record);
        // All of a control group's commands go through one worker of loop, and a flush holds it until it is answered.
        let syncs = deviation > 0.0 && record.jobs.iter().any(|j| j.sync.ios > 0);
        let flushes =
            if syncs { "; jobs that sync hold up all others on the way through loop" } else { "" };
        let limit = limits.deviation_invalid * 100.0;
        invalidate_record(record, format!("{message} (limit {limit} %{flushes})"));
    } else if size > limits.deviation_marked {
        record.warnings.push(Warning {
            code: "timing".into(),
            message,
            advice: "differences of this size between schedulers may be the machine's".into(),
        });
    }
}

/// On a busy machine a run is kept because the disk kept its times. Where that is not so, or not known, nothing speaks
/// for it any more.
fn noise_decides(record: &mut Record) {
    let noisy = record.warnings.iter().position(|w| w.code == NOISY);
    if let Some(warning) = noisy.map(|i| record.warnings.remove(i)) {
        invalidate_record(record, warning.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_experiment::Status;

    fn timing(took_us: u64, answered_us: u64) -> Timing {
        let took = |us: u64| Took { commands: 1000, time: us * 1_000_000 };
        let traced = Times { data: took(took_us), ..Times::default() };
        let (data, flushes) = (took(answered_us), Took::default());
        Timing { traced, data, flushes, sampled: false }
    }

    /// 90 writes and 60 flushes, as of 30 files that are synced.
    #[test]
    fn flushes_count_where_both_sides_have_them() {
        let (data, flushes) =
            (Took { commands: 90, time: 3_600_000 }, Took { commands: 60, time: 480_000_000 });
        let both = Times { data, flushes, lost: 0 };
        let fine = Timing { traced: both, data, flushes, sampled: false };
        assert_eq!(fine.deviation(), Ok(0.0));
        // A late flush is a late command.
        let late = Times { flushes: Took { time: 720_000_000, ..flushes }, ..both };
        let off = Timing { traced: late, ..fine }.deviation().unwrap();
        assert!((0.49..0.5).contains(&off), "{off}");
        let without = Times { flushes: Took::default(), ..both };
        assert_eq!(Timing { traced: without, ..fine }.deviation(), Ok(0.0));
        let lost = Times { flushes: Took { commands: 30, ..flushes }, ..both };
        let why = Timing { traced: lost, ..fine }.deviation().unwrap_err();
        assert!(why.contains("120 commands, the model answered 150 (30 flushes; 60 of"), "{why}");
    }

    fn judged(timing: Result<Timing, String>) -> Record {
        let mut record = Record::default();
        judge(&mut record, &timing, &Thresholds::default());
        record
    }

    #[test]
    fn noise_is_no_excuse_for_a_disk_that_was_late() {
        let with = |timing| {
            let mut record = Record::default();
            let message = "others used 76.9 % of the CPUs".to_string();
            let advice = "the emulated disk kept its times all the same".to_string();
            record.warnings.push(Warning { code: NOISY.into(), message, advice });
            judge(&mut record, &timing, &Thresholds::default());
            let said = record.warnings.iter().any(|w| w.code == NOISY);
            (said, matches!(record.status, Status::Invalid(_)))
        };
        assert_eq!(with(Ok(timing(1000, 1000))), (true, false));
        assert_eq!(with(Ok(timing(2760, 1000))), (false, true));
        assert_eq!(with(Err("lost events".into())), (false, true));
    }

    #[test]
    fn a_late_run_that_synced_is_told_why() {
        let mut record = Record::default();
        record.jobs.push(iosched_experiment::JobRecord::default());
        let late = Ok(timing(9000, 1000));
        judge(&mut record, &late, &Thresholds::default());
        assert!(matches!(&record.status, Status::Invalid(why) if !why.contains("sync")));
        record.status = Status::Complete;
        record.jobs[0].sync.ios = 1;
        judge(&mut record, &late, &Thresholds::default());
        assert!(matches!(&record.status, Status::Invalid(why) if why.contains("jobs that sync")));
    }

    #[test]
    fn five_percent_are_marked_and_ten_are_invalid() {
        let fine = judged(Ok(timing(1030, 1000)));
        assert_eq!((fine.status, fine.warnings.len()), (Status::Complete, 0));
        assert!((fine.metrics[0].value - 3.0).abs() < 1e-9);
        for (took, word) in [(1070, "7.00 % longer"), (930, "7.00 % less")] {
            let marked = judged(Ok(timing(took, 1000)));
            assert_eq!(
                (marked.status, marked.warnings[0].code.as_str()),
                (Status::Complete, "timing")
            );
            assert!(marked.warnings[0].message.contains(word), "{:?}", marked.warnings);
        }
        // What a metering of the server alone let pass.
        let Status::Invalid(why) = judged(Ok(timing(1270, 1000))).status else { panic!() };
        assert!(why.contains("27.0 % longer") && why.contains("limit 10 %"), "{why}");
        assert!(matches!(judged(Ok(timing(880, 1000))).status, Status::Invalid(_)));
    }

    #[test]
    fn what_cannot_be_compared_is_said_to_be_unchecked() {
        let fine = timing(1000, 1000);
        let lost = Timing { traced: Times { lost: 3, ..fine.traced }, ..fine };
        let fewer = Timing { data: Took { commands: 1100, ..fine.data }, ..fine };
        let none = Timing { data: Took::default(), ..fine };
        for unchecked in [Ok(lost), Ok(fewer), Ok(none), Err("no tracefs".to_string())] {
            let record = judged(unchecked);
            assert_eq!(record.status, Status::Complete);
            assert_eq!(record.warnings[0].code, "timing-unchecked");
            assert!(record.metrics.is_empty());
        }
        let all = Took { commands: 8000, time: 8_000_000_000 };
        let sample = Timing { data: all, sampled: true, ..fine };
        assert_eq!(sample.deviation(), Ok(0.0));
        let three = Took { commands: 3, ..fine.traced.data };
        let small = Timing { traced: Times { data: three, ..fine.traced }, ..sample };
        assert!(small.deviation().is_err());
    }
}
