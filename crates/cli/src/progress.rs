//! How far long work is: a bar with the time left, on standard error and only on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosched_lab::{STEPS, Watch};

use crate::files::note;

/// A bar for `trials` trials.
pub(crate) fn bar(trials: usize, quiet: bool) -> ProgressBar {
    let target =
        if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(10) };
    let bar = ProgressBar::with_draw_target(Some(trials as u64 * STEPS), target);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// A bar that watches an experiment.
pub(crate) struct Watching {
    bar: ProgressBar,
    quiet: bool,
}

impl Watching {
    pub(crate) fn new(quiet: bool) -> Watching {
        Watching { bar: bar(0, quiet), quiet }
    }
}

impl Watch for Watching {
    fn more(&self, trials: usize) {
        self.bar.inc_length(trials as u64 * STEPS);
    }

    fn step(&self, steps: u64) {
        self.bar.inc(steps);
    }

    fn now(&self, what: &str) {
        self.bar.set_message(what.to_string());
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| note(text));
        }
    }

    fn done(&self) {
        self.bar.finish_and_clear();
    }
}
