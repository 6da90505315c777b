//! How long simulated loads run before they are measured: until their rates no longer change.
//!
//! Each load is tried on each device for some virtual seconds after a short warm-up, under every scheduler. Where a rate changes,
//! or a cache of the device still fills, it is tried again after a longer one. All schedulers then have the longest of
//! theirs. What is tried does not depend on how long the load is measured, so neither do its figures.

use std::collections::BTreeMap;

use iosched_experiment::record::HALVES_DIFFER;
use iosched_experiment::{Record, Trial, WarmUp, warm_up};
use iosched_results::verdict::{UNSTEADY, WARM_UP, WARMED_UP};
use iosched_types::Nanos;
use iosched_types::units::{SEC, show_nanos};

use crate::budget::cost;

/// Warm-ups that are tried.
const TRIED: [Nanos; 5] = [SEC, 3 * SEC, 10 * SEC, 30 * SEC, 100 * SEC];
/// How long a load is looked at: as long as the slowest that a scheduler takes to know its processes (BFQ raises a new one
/// for up to 13 s on a slow disk).
const LOOK: Nanos = 15 * SEC;
/// ... and at least, where so long a look would take too much work.
const LEAST: Nanos = 5 * SEC;
/// How long it is looked at to learn how much work that is.
const GLANCE: Nanos = SEC;
/// What the look at one scheduler may cost, by the clock of a usual machine.
const WORK: Nanos = 2 * SEC;

/// Device and workload.
type Place = (String, String);

fn place(t: &Trial) -> Place {
    (t.id.device.clone(), t.id.workload.clone())
}

/// A warm-up, and why the load is not steady after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    length: Nanos,
    unsteady: Option<String>,
}

/// The warm-ups of an experiment.
#[derive(Debug, Default)]
pub(crate) struct WarmUps {
    asked: WarmUp,
    found: BTreeMap<Place, Found>,
    /// What it cost to find them.
    pub(crate) spent: Nanos,
}

/// A trial that only looks.
fn look(trial: &Trial, after: Nanos, time: Nanos) -> Trial {
    let mut t = trial.clone();
    if let Some(jobs) = t.work.jobs_mut() {
        warm_up::begin_measuring(jobs, after);
        for j in &mut jobs.jobs {
            // A job with an end of its own is over as soon as it was.
            let own = j.runtime.filter(|_| j.warm_up == 0).unwrap_or(time);
            j.runtime = Some(own.min(time));
        }
    }
    t.collect.series = false;
    t.collect.dispatches = false;
    t
}

/// Why a record is not steady, without the names of what was run.
fn unsteady(r: &Record) -> Option<String> {
    let w = r.warnings.iter().find(|w| w.code == HALVES_DIFFER)?;
    Some(w.message.split_once(": ").map_or(w.message.clone(), |(_, why)| why.into()))
}

/// A cell while it is looked for.
struct Cell<'a> {
    trial: &'a Trial,
    time: Nanos,
    /// What a second of the load costs.
    second: Nanos,
}

impl<'a> Cell<'a> {
    /// After a glance at it.
    fn of(trial: &'a Trial, glance: &Record) -> Cell<'a> {
        let second = cost(glance).max(1);
        let time = u128::from(WORK) * u128::from(SEC) / 2 / u128::from(second);
        let time = Nanos::try_from(time).unwrap_or(LOOK).clamp(LEAST, LOOK);
        Cell { trial, time, second }
    }

    fn affordable(&self, after: Nanos) -> bool {
        u128::from(self.second) * u128::from(after + self.time)
            <= u128::from(WORK) * u128::from(SEC)
    }
}

/// Finds the warm-ups of trials of the first repetition. `simulate` gives their records in their order.
pub(crate) fn find<E>(
    asked: WarmUp,
    first: &[&Trial],
    mut simulate: impl FnMut(&[Trial]) -> Result<Vec<Record>, E>,
) -> Result<WarmUps, E> {
    let mut out = WarmUps { asked, ..WarmUps::default() };
    let able: Vec<&Trial> = first.iter().filter(|t| warm_up::possible(t.jobs())).copied().collect();
    let length = match asked {
        WarmUp::None => return Ok(out),
        WarmUp::For(length) => length,
        WarmUp::Steady => TRIED[0],
    };
    out.found = able.iter().map(|t| (place(t), Found { length, unsteady: None })).collect();
    if asked != WarmUp::Steady {
        return Ok(out);
    }
    let mut run = |trials: Vec<Trial>, spent: &mut Nanos| -> Result<Vec<Record>, E> {
        let records = simulate(&trials)?;
        *spent += records.iter().map(cost).sum::<Nanos>();
        Ok(records)
    };
    let glances = run(able.iter().map(|t| look(t, 0, GLANCE)).collect(), &mut out.spent)?;
    let mut left: Vec<Cell<'_>> =
        able.iter().zip(&glances).map(|(trial, r)| Cell::of(trial, r)).collect();
    for (i, after) in TRIED.into_iter().enumerate() {
        let looks = left.iter().map(|c| look(c.trial, after, c.time)).collect();
        let records = run(looks, &mut out.spent)?;
        left = out.judge(left, &records, after, TRIED.get(i + 1).copied());
        if left.is_empty() {
            break;
        }
    }
    Ok(out)
}

impl WarmUps {
    /// What was seen after a warm-up. Gives the cells that are to be looked at again, after the next.
    fn judge<'a>(
        &mut self,
        cells: Vec<Cell<'a>>,
        records: &[Record],
        after: Nanos,
        next: Option<Nanos>,
    ) -> Vec<Cell<'a>> {
        let mut again = Vec::new();
        for (c, r) in cells.into_iter().zip(records) {
            let Some(found) = self.found.get_mut(&place(c.trial)) else { continue };
            let Some(why) = unsteady(r) else {
                // A load that never gets steady is no steadier later on.
                found.length = found.length.max(after);
                continue;
            };
            match next {
                Some(next) if c.affordable(next) => again.push(c),
                _ => _ = found.unsteady.get_or_insert(why),
            }
        }
        again
    }

    fn of(&self, trial: &Trial) -> Option<&Found> {
        self.found.get(&place(trial))
    }

    /// The trials with their warm-ups.
    pub(crate) fn apply(&self, trials: &[&Trial]) -> Vec<Trial> {
        let with = |t: &&Trial| {
            let mut t = (*t).clone();
            let found = self.of(&t).map(|f| f.length);
            if let Some((length, jobs)) = found.zip(t.work.jobs_mut()) {
                warm_up::begin_measuring(jobs, length);
            }
            t
        };
        trials.iter().map(with).collect()
    }

    /// Notes the warm-up of one of the trials in its record, which begins where measuring did.
    pub(crate) fn note(&self, record: &mut Record, trials: &[&Trial]) {
        let trial = trials.iter().find(|t| t.id == record.trial);
        let Some((trial, found)) = trial.and_then(|t| Some((t, self.of(t)?))) else { return };
        warm_up::cut(record, warm_up::begin_measuring(&mut trial.jobs().clone(), found.length));
        let asked = match self.asked {
            WarmUp::Steady => "steady".into(),
            _ => show_nanos(found.length as f64),
        };
        record.provenance.insert(WARM_UP.into(), asked);
        record.provenance.insert(WARMED_UP.into(), (found.length / 1_000_000).to_string());
        if let Some(why) = &found.unsteady {
            record.provenance.insert(UNSTEADY.into(), why.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use iosched_experiment::{Experiment, Sources, Warning};

    use super::*;

    fn trial() -> Trial {
        let text = "devices = [\"fixed\"]\nschedulers = [\"none\"]\nworkloads = [{ job = \"[a]\\nsize=1m\\n\" }]\n";
        let e = Experiment::from_toml("e.toml", text).unwrap();
        iosched_experiment::plan(&e, &Sources::default()).unwrap().remove(0)
    }

    fn record(why: Option<&str>) -> Record {
        let warning = |why: &str| Warning {
            code: HALVES_DIFFER.into(),
            message: format!("w on d, none: {why}"),
            ..Warning::default()
        };
        Record { warnings: why.map(warning).into_iter().collect(), ..Record::default() }
    }

    #[test]
    fn what_is_not_steady_is_looked_at_again_as_long_as_that_is_no_work() {
        let t = trial();
        let found = [(place(&t), Found { length: SEC, unsteady: None })].into();
        let mut all = WarmUps { asked: WarmUp::Steady, found, spent: 0 };
        let cell = |second| vec![Cell { trial: &t, time: LOOK, second }];
        let fills = [record(Some("the SLC cache fills"))];
        assert!(all.judge(cell(1), &[record(None)], SEC, Some(3 * SEC)).is_empty());
        assert_eq!(all.judge(cell(1), &fills, 3 * SEC, Some(10 * SEC)).len(), 1);
        let dear = all.judge(cell(SEC), &fills, 10 * SEC, Some(30 * SEC));
        assert!(dear.is_empty(), "a second takes a second");
        let found = &all.found[&place(&t)];
        assert_eq!(found.length, SEC, "the longest after which some load was steady");
        assert_eq!(found.unsteady.as_deref(), Some("the SLC cache fills"));
    }
}
