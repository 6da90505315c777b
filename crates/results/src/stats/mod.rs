//! Statistics: pure functions from samples to summaries, tests and verdicts.
//!
//! `docs/statistics.md` says which method is used when and why. Every number is checked against
//! SciPy's in `tests/scipy_agreement.rs`.

mod bootstrap;
mod fairness;
mod flags;
mod percentiles;
mod rank;
mod rearranged;
pub mod special;
mod summary;
mod t_test;
mod verdict;

pub use bootstrap::{RESAMPLES, abc, bca};
pub use fairness::jain;
pub use flags::{SteadyWindow, is_noisy, modified_z_scores, outliers, steady_state};
pub use percentiles::{PERCENTILES, merged_percentiles};
pub use rank::{MannWhitney, cliffs_delta, effect_word, mann_whitney};
pub use rearranged::{Stratum, rearranged};
pub use summary::{CiMethod, Interval, LARGE, Observation, Summary, quantile, summarize};
pub use verdict::{
    Better, Judged, NEGLIGIBLE, Sample, Test, Verdict, VerdictOptions, benjamini_hochberg, judge,
    judge_all,
};

pub(crate) use flags::noisy_from;

/// The arithmetic mean, `None` for no values.
#[must_use]
pub fn mean_of(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| summary::mean(values))
}

/// The figure of some runs, by the rule of [`Summary::centre`]; `None` for no values.
#[must_use]
pub fn centre_of(values: &[f64]) -> Option<f64> {
    summary::centre(values)
}

/// Arithmetic mean and sample standard deviation (n − 1); zeros for none.
#[must_use]
pub fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    (summary::mean(values), summary::sd(values))
}

pub(crate) use verdict::{Compared, Lent, Together, judge_together};
