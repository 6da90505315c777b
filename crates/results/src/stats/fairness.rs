//! Fairness between processes.

/// Jain's index (Jain, Chiu, Hawe 1984): 1 when all shares are equal, 1/n when one has everything.
/// `None` without a positive share; negative or non-finite shares are refused likewise.
#[must_use]
pub fn jain(shares: &[f64]) -> Option<f64> {
    if shares.iter().any(|s| !s.is_finite() || *s < 0.0) {
        return None;
    }
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|s| s * s).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_the_scale() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0]), None);
        assert_eq!(jain(&[1.0, f64::NAN]), None);
    }
}
