//! Which scheduler a device should have.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use iosched_experiment::record::Record;
use iosched_schedulers::registry::family;

use super::asks::{Asked, asked};
use super::{Advice, BASE, Firmness, Kind, Other, Point, Row, Verdict, times};
use crate::answer::Candidate;
use crate::cells::Cells;
use crate::cells::usual_base;
use crate::stats::Verdict as Says;

/// Of a rate that is asked for, as much is kept.
const KEPT: f64 = 0.99;
/// Waits that are noticed, in ns: a frame, the limit of an immediate answer and of etcd's fsync, the limit of a train of
/// thought.
const NOTICED: [f64; 3] = [16.7e6, 100e6, 1e9];
/// A smaller difference is no step up or down.
const STEP: f64 = 1.05;
/// The throughput of jobs beside those that ask for something counts half.
const BACKGROUND: f64 = 0.5;

/// One ask under one scheduler, against the base.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// Better, worse or level.
    way: Ordering,
    /// A demand is met that was not, or no longer.
    demand: bool,
    /// The wait passes one that is noticed.
    noticed: bool,
    /// Logarithm of how many times better; 0 where level.
    log: f64,
}

const LEVEL: Step = Step { way: Ordering::Equal, demand: false, noticed: false, log: 0.0 };

/// How a scheduler compares with the base, by importance.
#[derive(Clone, Debug)]
struct Standing {
    at: usize,
    steps: Vec<Step>,
    demands: i32,
    noticed: i32,
    log: f64,
}

impl Standing {
    fn of(at: usize, asks: &[Asked<'_>], base: usize) -> Standing {
        let steps: Vec<Step> = asks.iter().map(|a| step(a, at, base)).collect();
        let sum = |of: fn(&Step) -> bool| {
            let signs = steps.iter().filter(|s| of(s)).map(|s| s.way as i32);
            // What is lost there is not made up for by another gain of its kind.
            if signs.clone().any(|w| w < 0) { -1 } else { signs.sum() }
        };
        let (demands, noticed) = (sum(|s| s.demand), sum(|s| s.noticed));
        let weight = |a: &Asked<'_>| if a.background { BACKGROUND } else { 1.0 };
        let log: f64 = asks.iter().zip(&steps).map(|(a, s)| weight(a) * s.log).sum();
        let log = log / asks.iter().map(weight).sum::<f64>().max(1.0);
        Standing { at, steps, demands, noticed, log }
    }

    fn against(&self, other: &Standing) -> Ordering {
        let demands = self.demands.cmp(&other.demands);
        demands.then(self.noticed.cmp(&other.noticed)).then(self.log.total_cmp(&other.log))
    }

    /// Worth a change.
    fn better(&self) -> bool {
        match (self.demands, self.noticed) {
            (0, 0) => self.log >= STEP.ln() / 2.0,
            (0, n) => n > 0,
            (d, _) => d > 0,
        }
    }

    fn level(&self) -> bool {
        self.steps.iter().all(|s| s.way == Ordering::Equal)
    }

    /// The ask that decides.
    fn decides(&self) -> Option<usize> {
        let key = |i: &usize| {
            let s = &self.steps[*i];
            (s.demand, s.noticed, s.log)
        };
        let up = (0..self.steps.len()).filter(|i| self.steps[*i].way == Ordering::Greater);
        up.max_by(|a, b| {
            let (x, y) = (key(a), key(b));
            x.0.cmp(&y.0).then(x.1.cmp(&y.1)).then(x.2.total_cmp(&y.2))
        })
    }
}

/// How many of the waits that are noticed it passes.
fn passed(v: f64, unit: &str) -> usize {
    let ns = v * match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        _ => 1.0,
    };
    NOTICED.iter().filter(|n| ns > **n).count()
}

fn step(a: &Asked<'_>, at: usize, base: usize) -> Step {
    if at == base {
        return LEVEL;
    }
    let (new, old) = (a.value(at), a.value(base));
    let Some((new, old)) = new.zip(old) else {
        // Nothing at all is behind any figure.
        let way = new.is_some().cmp(&old.is_some());
        let demand = way != Ordering::Equal;
        return Step { way, demand, log: 0.0, ..LEVEL };
    };
    let judged = a.judged[at].as_ref();
    let better = judged.map_or(crate::stats::Better::Higher, |j| j.better);
    let Some(ratio) = judged.and_then(|j| times(j.ratio?, 1.0, j.better)) else { return LEVEL };
    let sure = judged.is_some_and(|j| match j.verdict {
        Says::Better | Says::Worse => !j.negligible,
        Says::NotEnoughData => a.agree(at, base).1 < 2,
        _ => false,
    });
    let way = times(new, old, better).map_or(Ordering::Equal, |t| t.total_cmp(&1.0));
    if !sure || ratio.max(1.0 / ratio) < STEP {
        return LEVEL;
    }
    let log = ratio.ln();
    match a.kind {
        Kind::Rate(n) => match (new >= KEPT * n, old >= KEPT * n) {
            (true, true) => LEVEL,
            (x, y) => Step { way, demand: x != y, noticed: false, log },
        },
        Kind::Wait => {
            let unit = a.each[at].as_ref().map_or("", |(s, _)| s.unit.as_str());
            let (x, y) = (passed(new, unit), passed(old, unit));
            if x == 0 && y == 0 { LEVEL } else { Step { way, demand: false, noticed: x != y, log } }
        }
        Kind::Most => Step { way, demand: false, noticed: false, log },
    }
}

fn point(a: &Asked<'_>, at: usize, base: usize) -> Point {
    let judged = a.judged[at].as_ref();
    let turned = |(low, high): (f64, f64)| match judged.map(|j| j.better) {
        Some(crate::stats::Better::Lower) => (1.0 / high, 1.0 / low),
        _ => (low, high),
    };
    let unit = a.each.iter().flatten().next().map(|(s, _)| s.unit.clone());
    Point {
        workload: a.workload.into(),
        job: a.name.clone(),
        ask: a.kind,
        measure: a.measure.clone(),
        unit: unit.unwrap_or_default(),
        value: a.value(at),
        base_value: a.value(base),
        ratio: judged.and_then(|j| times(j.ratio?, 1.0, j.better)),
        interval: judged.and_then(|j| j.ratio_ci).map(turned),
    }
}

/// Gains and prices of a standing, the most important first.
fn sides(s: &Standing, asks: &[Asked<'_>], base: usize) -> (Vec<Point>, Vec<Point>) {
    let of = |way: Ordering| {
        let mut at: Vec<usize> = (0..asks.len()).filter(|i| s.steps[*i].way == way).collect();
        at.sort_by(|a, b| {
            let (x, y) = (&s.steps[*a], &s.steps[*b]);
            let first = (y.demand, y.noticed).cmp(&(x.demand, x.noticed));
            first.then(y.log.abs().total_cmp(&x.log.abs()))
        });
        at.into_iter().map(|i| point(&asks[i], s.at, base)).collect::<Vec<Point>>()
    };
    (of(Ordering::Greater), of(Ordering::Less))
}

fn family_of(scheduler: &str) -> String {
    scheduler.split(['@', ' ', '(']).next().unwrap_or_default().to_lowercase()
}

/// Families of which the kernel has one version among the candidates, by the candidates' names.
fn short(here: &[&Candidate]) -> BTreeMap<String, String> {
    let own = || here.iter().filter(|c| c.gone.is_empty()).map(|c| c.scheduler.as_str());
    let alone = |s: &&str| own().filter(|o| family_of(o) == family_of(s)).count() == 1;
    let bare = |s: &&str| s.split_once('@').is_some_and(|(_, g)| !g.contains(' '));
    own().filter(|s| alone(s) && bare(s)).map(|s| (s.to_string(), family_of(s))).collect()
}

/// The kernel's default among the candidates, else the usual base.
fn base_of(here: &[&Candidate], records: &[&Record]) -> Option<usize> {
    let named = records.iter().find_map(|r| r.provenance.get(BASE));
    let default = named.and_then(|d| {
        let mut all = here.iter().enumerate().filter(|(_, c)| family_of(&c.scheduler) == *d);
        let own = all.clone().find(|(_, c)| c.gone.is_empty());
        own.or_else(|| all.next()).map(|(i, _)| i)
    });
    let usual = || {
        let base = usual_base(here.iter().map(|c| c.scheduler.as_str()))?;
        here.iter().position(|c| c.scheduler == base)
    };
    default.or_else(usual)
}

fn firmness(ask: Option<&Asked<'_>>, at: usize, base: usize) -> (Firmness, usize, usize) {
    let Some(ask) = ask else { return (Firmness::Likely, 0, 0) };
    let (agree, of) = ask.agree(at, base);
    let sure = ask.judged[at].as_ref().is_some_and(|j| {
        matches!(j.verdict, Says::Better | Says::Worse) && (j.exact || j.p.is_some())
    });
    let firmness = match (sure, of) {
        (_, 0 | 1) | (false, _) => Firmness::Unsure,
        (true, _) if agree == of => Firmness::Sure,
        _ => Firmness::Likely,
    };
    (firmness, agree, of)
}

/// Equal rows are one.
fn matrix(all: &[Standing], here: &[&Candidate], asks: &[Asked<'_>], base: usize) -> Vec<Row> {
    let mut out: Vec<Row> = Vec::new();
    for s in all.iter().filter(|s| s.at != base) {
        let shown = |(a, step): (&Asked<'_>, &Step)| {
            let ratio = a.judged[s.at].as_ref().and_then(|j| times(j.ratio?, 1.0, j.better));
            let ratio = ratio.filter(|_| step.way != Ordering::Equal);
            ratio.map(|r| (r * 100.0).round() / 100.0)
        };
        let ratios: Vec<Option<f64>> = asks.iter().zip(&s.steps).map(shown).collect();
        let name = here[s.at].scheduler.clone();
        match out.iter_mut().find(|r| r.ratios == ratios) {
            Some(row) => row.schedulers.push(name),
            None => out.push(Row { schedulers: vec![name], ratios }),
        }
    }
    out
}

/// Whether the base's runs are compared with themselves well enough to call others level.
fn level_is_known(asks: &[Asked<'_>], at: usize) -> bool {
    asks.iter().all(|a| a.judged[at].as_ref().is_some_and(|j| j.verdict != Says::NotEnoughData))
}

/// The command that sets a scheduler, by its name in the kernel.
fn set(scheduler: &str) -> String {
    let name = family_of(scheduler);
    match family(&name) {
        Ok(_) => format!("echo {name} | sudo tee /sys/block/sdX/queue/scheduler"),
        Err(_) => String::new(),
    }
}

/// The verdict on a device, where the kernel has two of the schedulers that were run.
pub(super) fn verdict(
    device: &str,
    here: &[&Candidate],
    records: &[&Record],
    cells: &Cells,
) -> Option<Verdict> {
    let base = base_of(here, records)?;
    let asks = asked(device, here, base, records, cells);
    let present: Vec<usize> =
        (0..here.len()).filter(|i| here[*i].gone.is_empty() || *i == base).collect();
    if asks.is_empty() || present.len() < 2 {
        return None;
    }
    let all: Vec<Standing> = (0..here.len()).map(|i| Standing::of(i, &asks, base)).collect();
    let others = || all.iter().filter(|s| s.at != base && present.contains(&s.at));
    let best = others().max_by(|a, b| a.against(b).then(b.at.cmp(&a.at)))?;
    let runs = |i: usize| asks[0].each[i].as_ref().map_or(0, |(s, _)| s.sample.rounds.len());
    let takes = best.better();
    let chosen = if takes { best.at } else { base };
    let deciding = best.decides().map(|i| &asks[i]);
    let (mut firm, mut agree, pairs) = match takes {
        true => firmness(deciding, best.at, base),
        false => (Firmness::Likely, runs(base), runs(base)),
    };
    if !takes && (runs(base) < 2 || !others().all(|s| level_is_known(&asks, s.at) || !s.level())) {
        (firm, agree) = (Firmness::Unsure, 0);
    }
    let (gains, prices) = sides(best, &asks, base);
    let other = (!takes && !gains.is_empty()).then(|| Other {
        scheduler: here[best.at].scheduler.clone(),
        gains: gains.clone(),
        prices: prices.clone(),
    });
    let named = |of: &mut dyn Iterator<Item = &Standing>| -> Vec<String> {
        of.map(|s| here[s.at].scheduler.clone()).collect()
    };
    let one_run = runs(base) < 2 && gains.is_empty();
    Some(Verdict {
        device: device.into(),
        verdict: match takes {
            true => Advice::Use,
            false if one_run => Advice::Unknown,
            false => Advice::Keep,
        },
        scheduler: here[chosen].scheduler.clone(),
        base: here[base].scheduler.clone(),
        firmness: firm,
        runs: runs(base).max(pairs),
        agree,
        gains: if takes { gains } else { Vec::new() },
        prices: if takes { prices } else { Vec::new() },
        level: named(&mut others().filter(|s| s.level())),
        gone: named(&mut all.iter().filter(|s| {
            let as_good = s.against(best) != Ordering::Less && s.better();
            takes && as_good && !present.contains(&s.at)
        })),
        other,
        asks: asks.iter().map(|a| a.name.clone()).collect(),
        matrix: matrix(&all, here, &asks, base),
        set: if takes { set(&here[chosen].scheduler) } else { String::new() },
        warnings: warnings(here),
        short: short(here),
    })
}

/// What changes the reading.
fn warnings(here: &[&Candidate]) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for w in here.iter().flat_map(|c| &c.unsteady) {
        if !names.contains(&w.as_str()) {
            names.push(w);
        }
    }
    let told = format!(
        "The rate changes while {} runs (a cache of the device fills, or a scheduler adapts): longer runs may say otherwise",
        names.join(", ")
    );
    if names.is_empty() { Vec::new() } else { vec![told] }
}
