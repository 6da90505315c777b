//! How long simulated loads run before they are measured: until their rates no longer change. And how long they are measured.
//!
//! Each load is tried on each device for some virtual seconds after a short warm-up, under every scheduler. Where a rate changes,
//! or a cache of the device still fills, it is tried again after a longer one. All schedulers then have the longest of
//! theirs. What is tried does not depend on how long the load is measured, so neither do its figures.
//!
//! All of it is work, and has its part of the budget: what a second of a load costs is known from a glance at it.

use std::collections::BTreeMap;

use iosched_experiment::record::HALVES_DIFFER;
use iosched_experiment::until::MIN_RUNS;
use iosched_experiment::{Record, Trial, WarmUp, warm_up};
use iosched_results::verdict::{SHORTENED, UNSTEADY, UNWARMED, WARM_UP, WARMED_UP};
use iosched_types::Nanos;
use iosched_types::units::{SEC, show_nanos};

use crate::budget::{cost, costs, pays, second, share};
use crate::purse::{Cell, GLANCE, LOOK, Purse};

/// Warm-ups that are tried.
const TRIED: [Nanos; 5] = [SEC, 3 * SEC, 10 * SEC, 30 * SEC, 100 * SEC];
/// A load is measured for so long at least ...
const SHORTEST: Nanos = SEC;
/// ... and until each of its jobs has made so many I/Os.
const IOS: Nanos = 20;

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
    /// What a second of the load costs, under all schedulers together.
    second: Nanos,
    /// Time between two I/Os of its slowest job, under the slowest scheduler.
    apart: Nanos,
    /// How long it is measured, where that is shorter than it asks for.
    measured: Option<Nanos>,
}

/// The warm-ups of an experiment.
#[derive(Debug, Default)]
pub(crate) struct WarmUps {
    asked: WarmUp,
    found: BTreeMap<Place, Found>,
    /// What it cost to find them.
    pub(crate) spent: Nanos,
}

/// A trial that only looks, and its time before that.
fn look(trial: &Trial, after: Nanos, time: Nanos) -> (Trial, Nanos) {
    let mut t = trial.clone();
    let mut before = 0;
    if let Some(jobs) = t.work.jobs_mut() {
        before = warm_up::begin_measuring(jobs, after).unmeasured;
        for j in &mut jobs.jobs {
            // A job with an end of its own is over as soon as it was.
            let own = j.runtime.filter(|_| j.warm_up == 0).unwrap_or(time);
            j.runtime = Some(own.min(time));
        }
    }
    t.collect.series = false;
    t.collect.dispatches = false;
    (t, before)
}

/// Why a record is not steady, without the names of what was run.
fn unsteady(r: &Record) -> Option<String> {
    let w = r.warnings.iter().find(|w| w.code == HALVES_DIFFER)?;
    Some(w.message.split_once(": ").map_or(w.message.clone(), |(_, why)| why.into()))
}

/// Finds the warm-ups of trials of the first repetition. `simulate` gives their records in their order.
pub(crate) fn find<'a, E>(
    asked: WarmUp,
    budget: Option<Nanos>,
    first: &[&'a Trial],
    mut simulate: impl FnMut(&[Trial]) -> Result<Vec<Record>, E>,
) -> Result<WarmUps, E> {
    let mut out = WarmUps { asked, ..WarmUps::default() };
    let able: Vec<&'a Trial> =
        first.iter().filter(|t| warm_up::possible(t.jobs())).copied().collect();
    let length = match asked {
        WarmUp::None => return Ok(out),
        WarmUp::For(length) => length,
        WarmUp::Steady => TRIED[0],
    };
    out.found = able.iter().map(|t| (place(t), Found { length, ..Found::default() })).collect();
    let mut run = |looks: Vec<(Trial, Nanos)>, spent: &mut Nanos| -> Result<Vec<Record>, E> {
        let (trials, before): (Vec<Trial>, Vec<Nanos>) = looks.into_iter().unzip();
        let mut records = simulate(&trials)?;
        for (r, before) in records.iter_mut().zip(before) {
            r.provenance.insert(warm_up::UNMEASURED.into(), before.to_string());
        }
        *spent += records.iter().map(cost).sum::<Nanos>();
        Ok(records)
    };
    // Without a budget a warm-up that was asked for needs no look at what it costs.
    if asked != WarmUp::Steady && budget.is_none() {
        return Ok(out);
    }
    let glances = run(able.iter().map(|t| look(t, 0, GLANCE)).collect(), &mut out.spent)?;
    let cell = |(trial, r): (&&'a Trial, &Record)| Cell { trial, time: LOOK, second: second(r) };
    let mut left: Vec<Cell<'_>> = able.iter().zip(&glances).map(cell).collect();
    if asked != WarmUp::Steady {
        left.iter_mut().for_each(|c| c.time = GLANCE);
        out.learn(&mut left, &glances);
        return Ok(out);
    }
    let purse = Purse::of(budget);
    purse.times(&mut left, TRIED[0]);
    for (i, after) in TRIED.into_iter().enumerate() {
        let looks = left.iter().map(|c| look(c.trial, after, c.time)).collect();
        let records = run(looks, &mut out.spent)?;
        if i == 0 {
            out.learn(&mut left, &records);
        }
        let again = out.judge(left, &records, after);
        left = match TRIED.get(i + 1) {
            Some(next) => out.afforded(again, &purse, *next),
            None => out.given_up(again, ""),
        };
        if left.is_empty() {
            break;
        }
    }
    Ok(out)
}

impl WarmUps {
    /// What the first looks cost, and how often each job moved something.
    fn learn(&mut self, cells: &mut [Cell<'_>], records: &[Record]) {
        for (c, r) in cells.iter_mut().zip(records) {
            c.second = second(r);
            let Some(found) = self.found.get_mut(&place(c.trial)) else { continue };
            found.second = found.second.saturating_add(c.second);
            let ios = r.jobs.iter().map(|j| j.read.ios + j.write.ios + j.trim.ios);
            let apart = c.time.checked_div(ios.min().unwrap_or(0)).unwrap_or(Nanos::MAX);
            found.apart = found.apart.max(apart);
        }
    }

    /// What was seen after a warm-up. Gives the cells that are not steady, and why.
    fn judge<'a>(
        &mut self,
        cells: Vec<Cell<'a>>,
        records: &[Record],
        after: Nanos,
    ) -> Vec<(Cell<'a>, String)> {
        let mut again = Vec::new();
        for (c, r) in cells.into_iter().zip(records) {
            let Some(found) = self.found.get_mut(&place(c.trial)) else { continue };
            match unsteady(r) {
                // A load that never gets steady is no steadier later on.
                None => found.length = found.length.max(after),
                Some(why) => again.push((c, why)),
            }
        }
        again
    }

    /// Those of some cells that can be looked at after a longer warm-up; the others stay as they are.
    fn afforded<'a>(
        &mut self,
        cells: Vec<(Cell<'a>, String)>,
        purse: &Purse,
        next: Nanos,
    ) -> Vec<Cell<'a>> {
        let affords = purse.affords(self.spent, next, cells.iter().map(|c| &c.0));
        let (mut out, mut dear) = (Vec::new(), Vec::new());
        for (cell, affords) in cells.into_iter().zip(affords) {
            if affords { out.push(cell.0) } else { dear.push(cell) }
        }
        self.given_up(dear, "; a longer --budget looks for longer");
        out
    }

    /// Notes why cells are not steady. None of them is left.
    fn given_up<'a>(&mut self, cells: Vec<(Cell<'a>, String)>, more: &str) -> Vec<Cell<'a>> {
        for (c, why) in cells {
            if let Some(found) = self.found.get_mut(&place(c.trial)) {
                found.unsteady.get_or_insert(why + more);
            }
        }
        Vec::new()
    }

    /// Shortens the time in which loads are measured, as far as the fewest runs do not fit into a budget otherwise.
    pub(crate) fn fit(&mut self, budget: Nanos, first: &[&Trial]) {
        let mut places: BTreeMap<Place, (Nanos, Nanos)> = BTreeMap::new();
        for t in first {
            let Some(found) = self.of(t) else { continue };
            let mut jobs = t.jobs().clone();
            let before = warm_up::begin_measuring(&mut jobs, found.length).from;
            // Jobs with an end need all that runs beside them.
            let endless = jobs.jobs.iter().all(|j| j.warm_up > 0);
            let time = jobs.jobs.iter().filter_map(|j| j.runtime).max();
            if let Some((before, time)) = before.zip(time).filter(|_| endless) {
                places.insert(place(t), (before, time));
            }
        }
        // What cannot be shortened has its part of the budget, too.
        let cells = first.iter().filter(|t| places.contains_key(&place(t))).count();
        let left = budget.saturating_sub(self.spent) / first.len().max(1) as Nanos * cells as Nanos;
        let runs: Nanos = MIN_RUNS.into();
        let wants: Vec<Nanos> = places
            .iter()
            .map(|(p, (before, time))| {
                costs(self.found[p].second, before + time).saturating_mul(runs)
            })
            .collect();
        let most = share(left, &wants);
        for ((p, (before, time)), want) in places.iter().zip(wants) {
            let Some(found) = self.found.get_mut(p).filter(|_| want > most) else { continue };
            let paid = pays(most / runs, found.second).saturating_sub(*before);
            let least = found.apart.saturating_mul(IOS).max(SHORTEST);
            found.measured = Some(paid.max(least)).filter(|m| m < time);
        }
    }

    fn of(&self, trial: &Trial) -> Option<&Found> {
        self.found.get(&place(trial))
    }

    /// The trials with their warm-ups.
    pub(crate) fn apply(&self, trials: &[&Trial]) -> Vec<Trial> {
        let with = |t: &&Trial| {
            let mut t = (*t).clone();
            if let Some((found, jobs)) = self.of(&t).zip(t.work.jobs_mut()) {
                warm_up::begin_measuring(jobs, found.length);
                for j in &mut jobs.jobs {
                    j.runtime = j.runtime.map(|own| own.min(found.measured.unwrap_or(own)));
                }
            }
            t
        };
        trials.iter().map(with).collect()
    }

    /// Notes the warm-up of one of the trials in its record, which begins where measuring did.
    pub(crate) fn note(&self, record: &mut Record, trials: &[&Trial]) {
        let trial = trials.iter().find(|t| t.id == record.trial);
        let Some(trial) = trial else { return };
        let Some(found) = self.of(trial) else {
            let why = warm_up::hindrance(trial.jobs()).filter(|_| self.asked != WarmUp::None);
            record.provenance.extend(why.map(|why| (UNWARMED.into(), why.into())));
            return;
        };
        warm_up::cut(record, warm_up::begin_measuring(&mut trial.jobs().clone(), found.length));
        let asked = match self.asked {
            WarmUp::Steady => "steady".into(),
            _ => show_nanos(found.length as f64),
        };
        record.provenance.insert(WARM_UP.into(), asked);
        record.provenance.insert(WARMED_UP.into(), (found.length / 1_000_000).to_string());
        if found.measured.is_some() {
            let own = trial.jobs().jobs.iter().filter_map(|j| j.runtime).max().unwrap_or(0);
            record.provenance.insert(SHORTENED.into(), (own / 1_000_000).to_string());
        }
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
        let found = [(place(&t), Found { length: SEC, ..Found::default() })].into();
        let mut all = WarmUps { asked: WarmUp::Steady, found, spent: 0 };
        let cell = |second| vec![Cell { trial: &t, time: LOOK, second }];
        let fills = [record(Some("the SLC cache fills"))];
        assert!(all.judge(cell(1), &[record(None)], SEC).is_empty());
        let purse = Purse::of(Some(10 * SEC));
        let again = all.judge(cell(1), &fills, 3 * SEC);
        assert_eq!(all.afforded(again, &purse, 10 * SEC).len(), 1);
        let again = all.judge(cell(SEC), &fills, 10 * SEC);
        assert!(all.afforded(again, &purse, 30 * SEC).is_empty(), "a second takes a second");
        let found = &all.found[&place(&t)];
        assert_eq!(found.length, SEC, "the longest after which some load was steady");
        let why = "the SLC cache fills; a longer --budget looks for longer";
        assert_eq!(found.unsteady.as_deref(), Some(why));
    }

    /// Three runs of a load that is dear are measured for a shorter time, one that is cheap for its own.
    #[test]
    fn what_does_not_fit_is_measured_for_a_shorter_time() {
        let text = "devices = [\"fixed\"]\nschedulers = [\"none\"]\nworkloads = [{ job = \"[a]\\nrw=read\\ndirect=1\\nfilename=/dev/x\\nruntime=60\\ntime_based\\n\" }]\n";
        let e = Experiment::from_toml("e.toml", text).unwrap();
        let t = iosched_experiment::plan(&e, &Sources::default()).unwrap().remove(0);
        let measured = |second: Nanos, apart: Nanos| {
            let found = Found { length: SEC, second, apart, ..Found::default() };
            let found = [(place(&t), found)].into();
            let mut all = WarmUps { asked: WarmUp::Steady, found, spent: SEC };
            all.fit(10 * SEC, &[&t]);
            let jobs = all.apply(&[&t])[0].jobs().jobs[0].runtime;
            let mut record = Record { trial: t.id.clone(), ..Record::default() };
            all.note(&mut record, &[&t]);
            (jobs, record.provenance.get(SHORTENED).cloned())
        };
        assert_eq!(measured(SEC / 1000, 1), (Some(60 * SEC), None));
        assert_eq!(
            measured(SEC / 10, 1),
            (Some(29 * SEC), Some("60000".into())),
            "3 times 30 s at a tenth"
        );
        assert_eq!(measured(100 * SEC, 1).0, Some(SEC), "no shorter than that");
        assert_eq!(measured(100 * SEC, SEC / 4).0, Some(5 * SEC), "20 I/Os of the slowest job");
    }
}
