//! Tables for people: one per workload and device, and a summary over all of them.
//!
//! Pure: records in, text out. Without `wide` no line has more than 80 columns, as long as no name is
//! longer than a line.

mod cells;
mod figures;
mod grid;
mod summary;
mod workload;

use iosched_experiment::Record;

pub use figures::Figures;
pub use grid::{Align, Cell, Grid};

use cells::places;

/// Columns of a narrow table.
pub(crate) const COLUMNS: usize = 80;

/// How tables look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// One wide table per workload instead of several narrow ones.
    pub wide: bool,
    /// ANSI colours.
    pub color: bool,
    /// Figures of invalid trials are shown, grey and marked, where a scheduler has no others.
    pub noise: bool,
}

impl Look {
    pub(crate) fn columns(self) -> usize {
        if self.wide { usize::MAX } else { COLUMNS }
    }
}

/// The whole report of some records.
#[must_use]
pub fn report(records: &[Record], look: Look) -> String {
    let places = places(records, look.noise);
    let mut out: String = places.iter().map(|p| workload::tables(p, look) + "\n").collect();
    out.push_str(&summary::summary(&places, look));
    if out.is_empty() {
        out.push_str("There are no results.\n");
    }
    out
}

/// Unicode bar of a share from 0 to 1, `width` columns wide at 1.
#[must_use]
pub fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if !share.is_finite() {
        return String::new();
    }
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    // Something that is there shows.
    let eighths = if share > 0.0 { eighths.max(1) } else { eighths };
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

#[cfg(test)]
mod tests;
