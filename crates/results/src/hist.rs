//! Histograms from other tools' bins, and their compressed form in the store.

use std::io::{Read, Write};

use iosched_types::LatencyHistogram;
use iosched_types::hist::{BINS, bin_of};
use serde_json::json;

/// Largest size of a decompressed histogram: every bin filled with 20-digit counts.
const MAX_TEXT: u64 = 64 << 10;

/// Builds a histogram from (value in ns, count) pairs and the exact moments that came with them.
///
/// Counts that overflow are refused with `None`.
#[must_use]
pub fn from_bins(
    bins: impl IntoIterator<Item = (u64, u64)>,
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
) -> Option<LatencyHistogram> {
    let mut counts = vec![0u64; BINS];
    let mut total = 0u64;
    for (value, n) in bins {
        let slot = &mut counts[bin_of(value)];
        *slot = slot.checked_add(n)?;
        total = total.checked_add(n)?;
    }
    if !(mean.is_finite() && stddev.is_finite()) {
        return None;
    }
    let n = total as f64;
    let sum = (mean.max(0.0) * n).round();
    if sum >= u64::MAX as f64 {
        return None;
    }
    let sum_sq = stddev * stddev * (n - 1.0).max(0.0) + n * mean * mean;
    let filled: Vec<(usize, u64)> =
        counts.into_iter().enumerate().filter(|(_, n)| *n > 0).collect();
    let sparse = json!({
        "count": total, "sum": sum as u64, "sum_sq": sum_sq, "min": min, "max": max, "bins": filled,
    });
    serde_json::from_value(sparse).ok()
}

/// The stored form: zlib over the JSON of the non-empty bins, so that any language reads it in one
/// line and no bin is lost (the HDR V2 format has other bins and would round every percentile).
///
/// # Errors
/// Only when memory runs out.
pub(crate) fn pack(h: &LatencyHistogram) -> std::io::Result<Vec<u8>> {
    deflate(&serde_json::to_vec(h)?)
}

/// The histogram of a stored form.
///
/// # Errors
/// Damaged data.
pub(crate) fn unpack(bytes: &[u8]) -> std::io::Result<LatencyHistogram> {
    Ok(serde_json::from_slice(&inflate(bytes, MAX_TEXT)?)?)
}

pub(crate) fn deflate(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut z = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    z.write_all(bytes)?;
    z.finish()
}

/// Inflates at most `limit` bytes; more is refused, so that a small file cannot fill the memory.
pub(crate) fn inflate(bytes: &[u8], limit: u64) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    flate2::read::ZlibDecoder::new(bytes).take(limit + 1).read_to_end(&mut out)?;
    if out.len() as u64 > limit {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!("more than {limit} bytes after decompression"),
        ));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packing_loses_nothing(v in proptest::collection::vec(0u64..1 << 36, 0..200)) {
            let mut h = LatencyHistogram::default();
            v.iter().for_each(|x| h.record(*x));
            prop_assert_eq!(unpack(&pack(&h).unwrap()).unwrap(), h);
        }

        #[test]
        fn bins_and_moments_give_the_histogram_back(
            v in proptest::collection::vec(1u64..1 << 34, 1..200),
        ) {
            let mut h = LatencyHistogram::default();
            v.iter().for_each(|x| h.record(*x));
            let again = from_bins(h.iter(), h.min(), h.max(), h.mean(), h.stddev()).unwrap();
            prop_assert_eq!(again.count(), h.count());
            prop_assert_eq!(again.percentile(99.0), h.percentile(99.0));
            prop_assert!((again.mean() - h.mean()).abs() <= 1.0);
            prop_assert!((again.stddev() - h.stddev()).abs() <= 1.0 + h.stddev() * 1e-6);
        }
    }

    #[test]
    fn a_decompression_bomb_is_refused() {
        let bomb = deflate(&vec![b' '; 1 << 20]).unwrap();
        assert!(bomb.len() < 4096);
        assert!(unpack(&bomb).is_err());
    }

    #[test]
    fn overflowing_counts_are_refused() {
        assert!(from_bins([(5, u64::MAX), (6, 1)], 5, 6, 5.0, 0.0).is_none());
        assert!(from_bins([(5, 1)], 5, 5, f64::NAN, 0.0).is_none());
    }
}
