//! Moments of a stream of numbers.

use serde::{Deserialize, Serialize};

/// Count, minimum, maximum, mean and variance of a stream of numbers, mergeable (Chan et al. 1979).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Numbers seen.
    pub n: u64,
    /// Smallest (0 when none).
    pub min: f64,
    /// Largest (0 when none).
    pub max: f64,
    /// Arithmetic mean (0 when none).
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub m2: f64,
}

impl Moments {
    /// Takes one number.
    pub fn add(&mut self, x: f64) {
        self.n += 1;
        if self.n == 1 {
            (self.min, self.max) = (x, x);
        } else {
            self.min = self.min.min(x);
            self.max = self.max.max(x);
        }
        let delta = x - self.mean;
        self.mean += delta / self.n as f64;
        self.m2 += delta * (x - self.mean);
    }

    /// Sample standard deviation, 0 for fewer than two numbers.
    #[must_use]
    pub fn stddev(&self) -> f64 {
        if self.n < 2 { 0.0 } else { (self.m2 / (self.n - 1) as f64).sqrt() }
    }

    /// Adds another stream.
    pub fn merge(&mut self, other: &Moments) {
        if other.n == 0 {
            return;
        }
        if self.n == 0 {
            *self = *other;
            return;
        }
        let (a, b) = (self.n as f64, other.n as f64);
        let delta = other.mean - self.mean;
        self.mean += delta * b / (a + b);
        self.m2 += other.m2 + delta * delta * a * b / (a + b);
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}
