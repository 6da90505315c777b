//! What looks at loads may cost, of the budget.

use iosched_experiment::Trial;
use iosched_experiment::until::{DEFAULT_BUDGET, MIN_RUNS};
use iosched_types::Nanos;
use iosched_types::units::SEC;

use crate::budget::{costs, pays, share};

/// How long a load is looked at: as long as the slowest that a scheduler takes to know its processes (BFQ raises a new one
/// for up to 13 s on a slow disk).
pub(crate) const LOOK: Nanos = 15 * SEC;
/// ... and at least, where so long a look would take too much work: its halves can be compared.
const LEAST: Nanos = 2 * SEC;
/// How long it is looked at to learn how much work that is.
pub(crate) const GLANCE: Nanos = SEC / 10;
/// Of the budget, this part is for looks.
const LOOKS: Nanos = 3;

/// A cell while it is looked for.
pub(crate) struct Cell<'a> {
    pub(crate) trial: &'a Trial,
    /// How long it is looked at.
    pub(crate) time: Nanos,
    /// What a second of the load costs.
    pub(crate) second: Nanos,
}

impl Cell<'_> {
    fn wants(&self, after: Nanos) -> Nanos {
        costs(self.second, after + self.time)
    }

    /// What it costs to measure it as often and as short as possible.
    fn runs(&self, after: Nanos) -> Nanos {
        costs(self.second, after + LEAST).saturating_mul(MIN_RUNS.into())
    }
}

/// What looks may cost, and the runs after them.
pub(crate) struct Purse {
    looks: Nanos,
    runs: Nanos,
}

impl Purse {
    /// `None`: the runs cost what they cost.
    pub(crate) fn of(budget: Option<Nanos>) -> Purse {
        let looks = budget.unwrap_or(DEFAULT_BUDGET) / LOOKS;
        Purse { looks, runs: budget.map_or(Nanos::MAX, |b| b - looks) }
    }

    /// How long each cell is looked at.
    pub(crate) fn times(&self, cells: &mut [Cell<'_>], after: Nanos) {
        let wants: Vec<Nanos> = cells.iter().map(|c| costs(c.second, after + LOOK)).collect();
        // As much again is for those that are not steady then.
        let most = share(self.looks / 2, &wants);
        for c in cells {
            c.time = pays(most, c.second).saturating_sub(after).clamp(LEAST, LOOK);
        }
    }

    /// Those of some cells that can be looked at after a longer warm-up, and measured after it.
    pub(crate) fn affords<'a>(
        &self,
        spent: Nanos,
        after: Nanos,
        cells: impl Iterator<Item = &'a Cell<'a>>,
    ) -> Vec<bool> {
        let both = cells.map(|c| (c.wants(after), c.runs(after)));
        let (wants, runs): (Vec<Nanos>, Vec<Nanos>) = both.unzip();
        let (look, run) =
            (share(self.looks.saturating_sub(spent), &wants), share(self.runs, &runs));
        wants.iter().zip(&runs).map(|(l, r)| *l <= look && *r <= run).collect()
    }
}
