//! The kernel of a published comparison itself, run again: a third opinion beside the publication's and ours.

use serde::{Deserialize, Serialize};

use super::cells::{Cell, LEVEL};

/// A ratio farther than this from 1 is a difference, of the kernel and of the publication.
const DIFFERENCE: f64 = 0.05;
/// Ratios of kernel and simulator that are no farther apart are the same.
const SAME: f64 = 0.10;

static SHIPPED: &[(&str, &str)] =
    &[("linux-4.12", include_str!("../../../../data/published/linux-4.12.kernel.json"))];

/// What the kernel did.
#[derive(Debug, Deserialize)]
pub(super) struct RealKernel {
    /// Its version.
    pub kernel: String,
    /// How that was measured.
    pub source: String,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    /// Tests whose figure it is: fio's rate in MB/s and in I/Os is one.
    tests: Vec<String>,
    /// Model of the device.
    device: String,
    /// Scheduler, as published.
    scheduler: String,
    /// As a multiple of the base's figure.
    ratio: f64,
}

/// Counts over the kernel's figures that are not the base's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BesideKernel {
    /// Figures of the kernel that have one of ours.
    pub compared: usize,
    /// Those of which our ratio is within 10 % of the kernel's.
    pub within_10_percent: usize,
    /// Differences of the kernel from its base above 5 %.
    pub differences: usize,
    /// Those that ours points the same way.
    pub same_direction: usize,
    /// Published differences above 5 % that kernel and simulator show.
    pub published_shown_by_both: usize,
    /// Those that the kernel shows and the simulator does not.
    pub published_shown_by_kernel_only: usize,
    /// The other way round.
    pub published_shown_by_us_only: usize,
    /// Those that neither shows: they are not the schedulers', or hang on what was not published.
    pub published_shown_by_neither: usize,
}

impl RealKernel {
    /// The figures of a comparison, where there are some.
    pub(super) fn of(name: &str) -> Result<Option<RealKernel>, serde_json::Error> {
        let shipped = SHIPPED.iter().find(|s| s.0 == name);
        shipped.map(|(_, text)| serde_json::from_str(text)).transpose()
    }

    fn is_of(row: &Row, cell: &Cell) -> bool {
        row.tests.contains(&cell.test)
            && row.device == cell.model
            && row.scheduler == cell.scheduler
    }

    /// Gives each cell the kernel's ratio.
    pub(super) fn lay_beside(&self, cells: &mut [Cell]) {
        for cell in cells {
            cell.kernel_ratio = self.rows.iter().find(|r| Self::is_of(r, cell)).map(|r| r.ratio);
        }
    }

    /// The counts. A figure that stands in two tests counts once.
    pub(super) fn count(&self, cells: &[Cell]) -> BesideKernel {
        let mut n = BesideKernel::default();
        for row in &self.rows {
            let Some(cell) = cells.iter().find(|c| Self::is_of(row, c)) else { continue };
            let Some(ours) = cell.our_ratio.filter(|_| cell.scheduler != cell.base) else {
                continue;
            };
            n.compared += 1;
            n.within_10_percent += usize::from((ours / row.ratio - 1.0).abs() <= SAME);
            if (row.ratio - 1.0).abs() > DIFFERENCE {
                n.differences += 1;
                n.same_direction += usize::from(shows(ours, row.ratio));
            }
            let published = cell.published_ratio.filter(|p| (p - 1.0).abs() > DIFFERENCE);
            let Some(published) = published else { continue };
            let count = match (shows(row.ratio, published), shows(ours, published)) {
                (true, true) => &mut n.published_shown_by_both,
                (true, false) => &mut n.published_shown_by_kernel_only,
                (false, true) => &mut n.published_shown_by_us_only,
                (false, false) => &mut n.published_shown_by_neither,
            };
            *count += 1;
        }
        n
    }
}

/// Whether a ratio points the way of another.
pub(super) fn shows(ratio: f64, way: f64) -> bool {
    (ratio > 1.0) == (way > 1.0) && (ratio - 1.0).abs() >= LEVEL
}

impl BesideKernel {
    /// In words.
    pub(super) fn sentence(&self, kernel: &str) -> String {
        let published = self.published_shown_by_both
            + self.published_shown_by_kernel_only
            + self.published_shown_by_us_only
            + self.published_shown_by_neither;
        format!(
            "Beside {kernel} itself, run again: {} of its {} differences above 5 % point the same way here, {} of {} ratios are \
             within 10 %. Of {published} published differences above 5 % both show {}, neither {}, the kernel alone {}, iosched \
             alone {}.",
            self.same_direction,
            self.differences,
            self.within_10_percent,
            self.compared,
            self.published_shown_by_both,
            self.published_shown_by_neither,
            self.published_shown_by_kernel_only,
            self.published_shown_by_us_only
        )
    }
}
