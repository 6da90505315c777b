//! Flags: noise, outliers, steady state.

use serde::{Deserialize, Serialize};

use super::summary::{mean, quantile, sd};

/// The reference viewer's noise rule for one cell: more than two samples and SD/mean above 6 %.
#[must_use]
pub fn is_noisy(values: &[f64]) -> bool {
    values.len() > 2 && noisy_from(values.len(), mean(values), sd(values))
}

/// The same from a published summary.
pub(crate) fn noisy_from(n: usize, mean: f64, sd: f64) -> bool {
    n > 2 && mean != 0.0 && sd / mean.abs() > 0.06
}

/// Modified z-scores (Iglewicz & Hoaglin 1993): 0.6745·(x − median)/MAD. When the MAD is 0, the mean absolute deviation
/// takes its place (0.7979·…, as they recommend). All are 0 when that is 0, too.
#[must_use]
pub fn modified_z_scores(values: &[f64]) -> Vec<f64> {
    let median_of = |v: &[f64]| {
        let mut v = v.to_vec();
        v.sort_by(f64::total_cmp);
        quantile(&v, 0.5).unwrap_or(0.0)
    };
    let median = median_of(values);
    let deviations: Vec<f64> = values.iter().map(|v| (v - median).abs()).collect();
    let mad = median_of(&deviations);
    let (factor, scale) =
        if mad > 0.0 { (0.6745, mad) } else { (0.797_884_560_802_865_4, mean(&deviations)) };
    values.iter().map(|v| if scale > 0.0 { factor * (v - median) / scale } else { 0.0 }).collect()
}

/// Indices of outliers: |modified z| above 3.5. Fewer than five values have none.
#[must_use]
pub fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < 5 {
        return Vec::new();
    }
    let z = modified_z_scores(values);
    z.iter().enumerate().filter(|(_, z)| z.abs() > 3.5).map(|(i, _)| i).collect()
}

/// The first window in which a series is steady.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyWindow {
    /// Index of the window's first round.
    pub start: usize,
    /// Mean in the window.
    pub mean: f64,
    /// (max − min)/mean in the window.
    pub range: f64,
    /// Rise or fall of the regression line across the window, over the mean.
    pub slope: f64,
}

/// SNIA's rule (Solid State Storage Performance Test Specification): in a window of five rounds, the
/// values stay within 20 % of their mean (max − min), and the line fitted through them rises or
/// falls by at most 10 % of the mean from the first round of the window to the last.
#[must_use]
pub fn steady_state(rounds: &[f64]) -> Option<SteadyWindow> {
    rounds.windows(5).enumerate().find_map(|(start, w)| {
        let m = mean(w);
        if !(m > 0.0 && w.iter().all(|v| v.is_finite())) {
            return None;
        }
        let low = w.iter().copied().fold(f64::INFINITY, f64::min);
        let high = w.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Least squares over x = −2..2: Σx² = 10; the line runs over 4 steps.
        let per_round = w.iter().zip(-2..=2).map(|(v, x)| v * f64::from(x)).sum::<f64>() / 10.0;
        let window = SteadyWindow {
            start,
            mean: m,
            range: (high - low) / m,
            slope: 4.0 * per_round.abs() / m,
        };
        (window.range <= 0.20 && window.slope <= 0.10).then_some(window)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_spike_is_an_outlier() {
        assert_eq!(outliers(&[10.0, 10.1, 9.9, 10.0, 30.0, 10.2]), [4]);
        assert_eq!(outliers(&[10.0, 10.0, 10.0, 10.0, 30.0, 10.0]), [4]);
        assert!(outliers(&[10.0, 10.0, 30.0]).is_empty());
        assert!(outliers(&[7.0; 9]).is_empty());
    }

    #[test]
    fn steady_means_flat_and_narrow() {
        let w = steady_state(&[500.0, 300.0, 104.0, 100.0, 98.0, 101.0, 99.0, 100.0]).unwrap();
        assert_eq!(w.start, 2);
        // Within 20 % but falling by 12 % across each window.
        assert_eq!(steady_state(&[106.0, 103.0, 100.0, 97.0, 94.0]), None);
        // Flat but wide.
        assert_eq!(steady_state(&[88.0, 111.0, 100.0, 111.0, 88.0]), None);
        assert_eq!(steady_state(&[0.0; 9]), None);
        assert_eq!(steady_state(&[1.0; 4]), None);
    }
}
