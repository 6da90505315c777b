//! Command by command: the kernel's dispatch logs and our own.

use std::ops::ControlFlow;

use iosched_block::Issue;
use iosched_experiment::Trial;
use iosched_types::Diagnostic;
use iosched_workloads::fio::on_files;
use serde::Serialize;

/// One command of a dispatch log: operation, byte offset, length, arrival at the device in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LoggedCommand {
    /// Operation.
    pub op: iosched_types::Op,
    /// Byte offset.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// When it reached the device.
    pub at: u64,
}

/// Parses a dispatch log (`seq op off len t_arr t_start t_done prio flags`), in order of dispatch.
/// Commands behind the first gap in `seq` are left out: the log was cut there.
///
/// # Errors
/// The first line that is no such line.
pub fn parse_dispatch_log(file: &str, text: &str) -> Result<Vec<LoggedCommand>, Diagnostic> {
    Ok(without_gaps(numbered(file, text)?, 0))
}

/// The same of a log that begins in the middle of a run.
///
/// # Errors
/// See [`parse_dispatch_log`].
pub fn parse_later_log(file: &str, text: &str) -> Result<Vec<LoggedCommand>, Diagnostic> {
    let lines = numbered(file, text)?;
    let begin = lines.first().map_or(0, |l| l.0);
    Ok(without_gaps(lines, begin))
}

/// The commands from number `begin` to the first that is missing.
fn without_gaps(lines: Vec<(u64, LoggedCommand)>, begin: u64) -> Vec<LoggedCommand> {
    (begin..).zip(lines).take_while(|(n, (seq, _))| n == seq).map(|(_, (_, c))| c).collect()
}

/// The commands of a log in order of dispatch, with their numbers.
fn numbered(file: &str, text: &str) -> Result<Vec<(u64, LoggedCommand)>, Diagnostic> {
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let span = at..at + line.trim_end().len();
        at += line.len();
        let mut words = line.split_whitespace();
        let Some(first) = words.next().filter(|w| !w.starts_with('#')) else { continue };
        let bad = || {
            Diagnostic::at_span(file, text, span.clone(), "not a line of a dispatch log")
                .with_help("expected: seq op off len t_arr t_start t_done prio flags")
        };
        let seq: u64 = first.parse().map_err(|_| bad())?;
        let op = words.next().and_then(|w| iosched_types::Op::from_letter(w.chars().next()?));
        let mut number = || words.next().and_then(|w| w.parse::<u64>().ok());
        let (offset, len, t) = (number(), number(), number());
        let (Some(op), Some(offset), Some(len), Some(at)) = (op, offset, len, t) else {
            return Err(bad());
        };
        lines.push((seq, LoggedCommand { op, offset, len, at }));
    }
    lines.sort_by_key(|(seq, _)| *seq);
    Ok(lines)
}

/// The commands our run of a trial sends to the device, at most `most`.
///
/// # Errors
/// See [`crate::simulate`].
fn our_commands(trial: &Trial, most: usize) -> Result<Vec<LoggedCommand>, crate::SimError> {
    let issues = if on_files::needed(trial.jobs()) {
        crate::files::commands(trial)?
    } else {
        let mut drive = crate::run::build(trial)?;
        drive.queue.out_mut().issues = Some(Vec::with_capacity(most));
        drive.run(&mut |_| ControlFlow::Continue(()))?;
        drive.queue.out_mut().issues.take().unwrap_or_default()
    };
    Ok(issues.iter().take(most).map(logged).collect())
}

/// A command of ours as logs have it.
pub(super) fn logged(i: &Issue) -> LoggedCommand {
    LoggedCommand { op: i.op, offset: i.sector * 512, len: u64::from(i.sectors) * 512, at: i.t }
}

/// How far our run of a trial and a kernel's log agree.
#[derive(Debug, Default)]
pub struct Parting {
    /// Where our tag maps were first searched.
    pub tag_start: u32,
    /// Our commands.
    pub ours: Vec<LoggedCommand>,
    /// Index of the first command that differs, `None` if one stream is a prefix of the other.
    pub first: Option<usize>,
}

/// Compares our run of a case's first trial with a log. Where the measurement does not say from where the kernel searched
/// its tag maps, there are trials with several starts. Then, if the first does not lead to the same commands, all are
/// tried, and the one that agrees the longest is the answer.
///
/// # Errors
/// See [`crate::simulate`].
pub fn beside_log(trials: &[Trial], kernel: &[LoggedCommand]) -> Result<Parting, crate::SimError> {
    let Some(trial) = trials.first() else { return Ok(Parting::default()) };
    let with = |tag_start: u32| {
        let ours = our_commands(&Trial { tag_start, ..trial.clone() }, kernel.len())?;
        let first = first_difference(kernel, &ours);
        Ok::<_, crate::SimError>(Parting { tag_start, ours, first })
    };
    let mut best = with(trial.tag_start)?;
    if trials.iter().any(|t| t.tag_start != trial.tag_start) {
        let nr = trial.settings.iter().find(|(name, _)| name == "nr_requests").map_or(0, |s| s.1);
        for tag_start in 0..u32::try_from(nr).unwrap_or(0) {
            let Some(reached) = best.first else { break };
            let other = with(tag_start)?;
            if other.first.is_none_or(|i| i > reached) {
                best = other;
            }
        }
    }
    Ok(best)
}

/// Where two command streams part: index of the first command that differs, `None` if one is a prefix
/// of the other.
pub(super) fn first_difference(kernel: &[LoggedCommand], ours: &[LoggedCommand]) -> Option<usize> {
    let same =
        |a: &LoggedCommand, b: &LoggedCommand| (a.op, a.offset, a.len) == (b.op, b.offset, b.len);
    (0..kernel.len().min(ours.len())).find(|i| !same(&kernel[*i], &ours[*i]))
}
