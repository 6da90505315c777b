//! Whether the figures can be: most mistakes of units and columns show in one of these.

use iosched_types::units::{MS, SEC, show_bytes, show_nanos};

use super::Summary;
use crate::tally::Tally;

const DAY: u64 = 86_400 * SEC;
/// A disk this large is not sold.
const LARGEST: u64 = 1 << 50;

/// What is implausible, in sentences that say what to do.
pub(super) fn of(s: &Summary, tally: &Tally) -> Vec<String> {
    let mut out = places(s);
    out.extend(times(s, tally));
    out.extend(order(tally));
    out.extend(completions(s, tally));
    out
}

fn places(s: &Summary) -> Vec<String> {
    let mut out = Vec::new();
    let placed: u64 = s.ops[..3].iter().map(|o| o.ios).sum();
    if placed > 10 && s.below_sector * 2 > placed {
        out.push(
            "most I/Os are shorter than 512 bytes: lengths may be sectors, not bytes".to_string(),
        );
    } else if placed > 10 && s.whole_sectors * 2 < placed {
        out.push("most I/Os are not of whole 512-byte sectors: a column may be mistaken".into());
    }
    if s.furthest > LARGEST {
        let end = show_bytes(s.furthest as f64);
        out.push(format!(
            "the trace reaches to {end}: offsets may be bytes that were taken for sectors"
        ));
    }
    out
}

fn times(s: &Summary, tally: &Tally) -> Vec<String> {
    let mut out = Vec::new();
    let median = s.gaps.percentile(50.0);
    if s.gaps.count() > 100 && !(100..=100 * SEC).contains(&median) && s.gaps.max() > 0 {
        let between = show_nanos(median as f64);
        out.push(format!(
            "half of the I/Os come within {between} of the one before: the unit of time may be mistaken"
        ));
    }
    let span = s.last.saturating_sub(s.first.unwrap_or(0));
    let (gap, after) = s.longest_gap;
    if gap > DAY && gap > span / 2 {
        let (gap, after) = (years(gap), show_nanos(after as f64));
        out.push(format!(
            "nothing for {gap} after {after}: a time there is wrong, or two recordings were \
            joined; cut them apart with `iosched trace cut`"
        ));
    }
    let reads = &s.ops[0].latency;
    if reads.count() > 100 && reads.percentile(50.0) < 1_000 {
        out.push("half of the reads take less than 1 µs: cache hits, or ticks that were taken for nanoseconds".into());
    }
    if tally.wall_clock.is_some_and(|t| t < 0) {
        out.push("the times lie before 1970: they are no Windows file times of a real clock, so only their \
            differences count".into());
    }
    let all = s.ios();
    if span > 0 && span < MS && all > 1_000 {
        out.push(format!(
            "{all} I/Os within {}: the unit of time may be mistaken",
            show_nanos(span as f64)
        ));
    }
    out
}

fn order(tally: &Tally) -> Option<String> {
    let recorded = tally.records.max(1);
    (tally.inversions * 100 > recorded).then(|| {
        let back = show_nanos(tally.furthest_back as f64);
        let share = tally.inversions as f64 * 100.0 / recorded as f64;
        format!(
            "{} records ({share:.1} %) are earlier than one before them, by up to {back}: several clocks, or in \
                order of completion; they were sorted",
            tally.inversions
        )
    })
}

fn completions(s: &Summary, tally: &Tally) -> Option<String> {
    let all = s.ios();
    let without: u64 = s.ops.iter().map(|o| o.no_latency).sum();
    (tally.unfinished * 100 > all && without < all).then(|| {
        format!(
            "{} I/Os do not complete in the trace: completions were lost, or some were recorded without",
            tally.unfinished
        )
    })
}

fn years(ns: u64) -> String {
    let days = ns / DAY;
    if days > 730 { format!("{} years", days / 365) } else { format!("{days} days") }
}
