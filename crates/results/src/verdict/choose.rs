//! Which scheduler a device should have.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use iosched_schedulers::KernelVersion;
use iosched_schedulers::registry::{family, resolve};

use super::asks::{Asked, asked, twice};
use super::facts::Device;
use super::{Advice, Firmness, Kind, Other, Point, Row, Verdict, times};
use crate::answer::{Candidate, short_names};
use crate::cells::{Cells, usual_base};
use crate::stats::{Better, Judged, Verdict as Says};

/// Of a rate that is asked for, as much is kept.
const KEPT: f64 = 0.99;
/// Of a share that is due, as much is met: slices and batches are coarse.
const MET: f64 = 0.9;
/// ... or all but so many hundredths of the whole.
const POINTS: f64 = 5.0;
/// Waits that are noticed, in ns: a frame, the limit of an immediate answer and of etcd's fsync, the limit of a train of
/// thought.
const NOTICED: [f64; 3] = [16.7e6, 100e6, 1e9];
/// A smaller difference is no step up or down.
const STEP: f64 = 1.05;
/// A difference this improbable by chance is sure.
const SURE: f64 = 0.01;
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
    /// It looks better or worse, and that may be chance.
    unknown: bool,
    /// Logarithm of how many times better; 0 where level.
    log: f64,
}

const LEVEL: Step =
    Step { way: Ordering::Equal, demand: false, noticed: false, unknown: false, log: 0.0 };

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
        self.steps.iter().all(|s| s.way == Ordering::Equal && !s.unknown)
    }

    /// More runs may tell it from the base.
    fn is_open(&self) -> bool {
        self.steps.iter().any(|s| s.unknown)
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

/// What stands for an ask in a comparison: of waits that are not noticed on either side it is what was moved in them, where one
/// side moves twice as much. A single wait is then no matter, but all of them together are.
fn told<'a, 'b>(a: &'b Asked<'a>, at: usize, base: usize) -> &'b Asked<'a> {
    let short = |i| a.value(i).is_some_and(|v| passed(v, a.unit()) == 0);
    match &a.moved {
        Some(moved) if short(at) && short(base) && twice(moved, at, base) => moved,
        _ => a,
    }
}

fn step(a: &Asked<'_>, at: usize, base: usize) -> Step {
    if at == base {
        return LEVEL;
    }
    let a = told(a, at, base);
    let (new, old) = (a.value(at), a.value(base));
    let Some((new, old)) = new.zip(old) else {
        // Nothing at all is behind any figure.
        let way = new.is_some().cmp(&old.is_some());
        // Where another job was to go first it is a price, and more is no gain.
        if a.behind {
            return Step { way: way.min(Ordering::Equal), ..LEVEL };
        }
        let demand = way != Ordering::Equal;
        return Step { way, demand, log: 0.0, ..LEVEL };
    };
    if let Some(ahead) = a.parted(at, base) {
        let way = if ahead { Ordering::Greater } else { Ordering::Less };
        return Step { way, demand: true, ..LEVEL };
    }
    let Some(judged) = &a.judged[at] else { return LEVEL };
    if judged.better == Better::Higher && (new == 0.0) != (old == 0.0) {
        return Step { way: new.total_cmp(&old), demand: true, ..LEVEL };
    }
    let Some(ratio) = judged.ratio.and_then(|r| times(r, 1.0, judged.better)) else { return LEVEL };
    let sure = match judged.verdict {
        Says::Better | Says::Worse => !judged.negligible,
        Says::NotEnoughData => a.agree(at, base).1 < 2,
        _ => false,
    };
    let way = ratio.total_cmp(&1.0);
    let log = ratio.ln();
    if a.behind && way == Ordering::Greater {
        return LEVEL;
    }
    if !sure || ratio.max(1.0 / ratio) < STEP {
        // A small difference of few scattered runs is not level: the interval holds large ones, too.
        let open = judged.verdict == Says::NotEnoughData && !sure;
        let short = |v: f64| a.kind == Kind::Wait && passed(v, a.unit()) == 0;
        let met = |v: f64| is_met(a.kind, v).unwrap_or(false);
        let settled = (short(new) && short(old)) || (met(new) && met(old));
        return Step { unknown: open && !settled, ..LEVEL };
    }
    match a.kind {
        // Twice as much of next to nothing is no nearer to what is due.
        Kind::Share(n) if new.max(old) < n / 2.0 => LEVEL,
        Kind::Rate(_) | Kind::Share(_) => {
            let met = |v| is_met(a.kind, v).unwrap_or(false);
            asked_for(met(new), met(old), (way, log))
        }
        Kind::Wait => {
            let (x, y) = (passed(new, a.unit()), passed(old, a.unit()));
            if x == 0 && y == 0 { LEVEL } else { Step { way, noticed: x != y, log, ..LEVEL } }
        }
        Kind::Most => Step { way, log, ..LEVEL },
    }
}

/// What is asked for is met under one, under the other, or under neither: then more of it is better.
fn asked_for(new: bool, old: bool, (way, log): (Ordering, f64)) -> Step {
    match (new, old) {
        (true, true) => LEVEL,
        (x, y) => Step { way, demand: x != y, log, ..LEVEL },
    }
}

fn point(a: &Asked<'_>, at: usize, base: usize) -> Point {
    let a = told(a, at, base);
    let judged = a.judged[at].as_ref();
    let turned = |(low, high): (f64, f64)| match judged.map(|j| j.better) {
        Some(Better::Lower) => (1.0 / high, 1.0 / low),
        _ => (low, high),
    };
    Point {
        workload: a.workload.into(),
        job: a.name.clone(),
        ask: a.kind,
        measure: a.measure.clone(),
        unit: a.unit().into(),
        value: a.value(at),
        base_value: a.value(base),
        ratio: judged.and_then(|j| times(j.ratio?, 1.0, j.better)),
        interval: judged.and_then(|j| j.ratio_ci).map(turned),
    }
}

/// What is asked for, under the base.
fn demands(asks: &[Asked<'_>], base: usize) -> Vec<Point> {
    let asked = asks.iter().filter(|a| matches!(a.kind, Kind::Rate(_) | Kind::Share(_)));
    asked.map(|a| point(a, base, base)).collect()
}

/// Whether a demand is met by a figure.
pub(super) fn is_met(ask: Kind, value: f64) -> Option<bool> {
    match ask {
        Kind::Rate(n) => Some(value >= KEPT * n),
        // Of a small share a point more or less is a large part.
        Kind::Share(n) => Some(value >= MET * n || value >= n / 2.0 && n - value <= POINTS),
        _ => None,
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

/// Names without generations, where these tell none apart.
fn short(here: &[&Candidate]) -> BTreeMap<String, String> {
    let names = short_names(here.iter().map(|c| c.scheduler.as_str()));
    names.into_iter().map(|(name, short)| (name.to_string(), short)).collect()
}

/// The kernel's default for the device, where it is not among the candidates.
fn default_not_run(here: &[&Candidate], facts: &Device) -> String {
    let named = facts.default.clone().unwrap_or_default();
    let run = here.iter().any(|c| family_of(&c.scheduler) == named);
    if run { String::new() } else { named }
}

/// The kernel's default among the candidates, else the usual base.
fn base_of(here: &[&Candidate], facts: &Device) -> Option<usize> {
    let default = facts.default.as_ref().and_then(|d| {
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
    let ask = told(ask, at, base);
    let one_sided = ask.parted(at, base) == Some(true) || ask.runs(base).0 == 0;
    let (agree, of) = match one_sided {
        true => (ask.runs(at).0, ask.runs(at).0),
        false => ask.agree(at, base),
    };
    let judged = ask.judged[at].as_ref();
    // Runs that repeat each other are one draw.
    if judged.is_some_and(|j| j.exact) && of > 1 {
        return (Firmness::Likely, agree, of);
    }
    let differs = |j: &&Judged| matches!(j.verdict, Says::Better | Says::Worse);
    let p = if one_sided { Some(0.0) } else { judged.filter(differs).and_then(|j| j.p) };
    let firmness = match (p, of) {
        (_, 0 | 1) | (None, _) => Firmness::Unsure,
        // More runs make it firmer: of many, some may say otherwise.
        (Some(p), _) if p < SURE && agree * 4 >= of * 3 => Firmness::Sure,
        _ => Firmness::Likely,
    };
    (firmness, agree, of)
}

/// Equal rows are one.
fn matrix(all: &[Standing], here: &[&Candidate], asks: &[Asked<'_>], base: usize) -> Vec<Row> {
    let mut out: Vec<Row> = Vec::new();
    for s in all.iter().filter(|s| s.at != base) {
        let shown = |(a, step): (&Asked<'_>, &Step)| {
            let ratio = told(a, s.at, base).judged[s.at]
                .as_ref()
                .and_then(|j| times(j.ratio?, 1.0, j.better));
            match step.way {
                Ordering::Equal if step.unknown => None,
                Ordering::Equal => Some(1.0),
                // Something is infinitely more than nothing, and nothing is no part of it.
                way => Some(ratio.map_or(f64::from(way == Ordering::Greater) * f64::MAX, |r| {
                    (r * 100.0).round() / 100.0
                })),
            }
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

/// The commands that set a scheduler, by its name in the kernel, and its tunables; empty where it has more than those.
fn set(scheduler: &str) -> String {
    let mut words = scheduler.split(' ');
    let name = family_of(words.next().unwrap_or_default());
    let Ok(known) = family(&name) else { return String::new() };
    let mut out = format!("echo {name} | sudo tee /sys/block/sdX/queue/scheduler");
    for word in words {
        let Some((tunable, value)) = word.split_once('=') else { return String::new() };
        if !known.tunables.iter().any(|t| t.name == tunable) {
            return String::new();
        }
        // Behind a colon is its unit.
        let value = value.split(':').next().unwrap_or_default();
        out += &format!("; echo {value} | sudo tee /sys/block/sdX/queue/iosched/{tunable}");
    }
    out
}

/// Workloads whose rate changes; why, where they were given time to settle and did not.
fn unsteady(here: &[&Candidate], facts: &Device) -> (Vec<String>, BTreeMap<String, String>) {
    let all = here.iter().flat_map(|c| &c.unsteady).chain(facts.never_steady.keys());
    let all: BTreeSet<&String> = all.collect();
    (all.into_iter().cloned().collect(), facts.never_steady.clone())
}

/// What one device has: its schedulers, asks and how each scheduler stands to the base.
struct Field<'a> {
    here: &'a [&'a Candidate],
    asks: Vec<Asked<'a>>,
    base: usize,
    all: Vec<Standing>,
    /// Whether the candidates ran on a kernel that has them beside what mainline has.
    live: bool,
    /// No scheduler beside the base is one of this kernel: then those of other kernels are compared.
    past: bool,
}

/// Whether a scheduler was never in mainline Linux.
fn out_of_tree(c: &Candidate) -> bool {
    let version = c.kernel.split_whitespace().next().and_then(KernelVersion::parse);
    let name = c.scheduler.split([' ', '(']).next().unwrap_or_default().to_lowercase();
    let found = version.and_then(|v| resolve(&name, v).ok());
    found.is_some_and(|(known, generation)| known.origin(generation).is_some())
}

impl<'a> Field<'a> {
    fn of(
        device: &str,
        here: &'a [&'a Candidate],
        facts: &'a Device,
        cells: &'a Cells,
    ) -> Option<Field<'a>> {
        let base = base_of(here, facts)?;
        let asks = asked(device, here, base, facts, cells);
        let all = (0..here.len()).map(|i| Standing::of(i, &asks, base)).collect();
        let mut field = Field { here, asks, base, all, live: facts.live, past: false };
        field.past = !(0..here.len()).any(|i| i != base && field.own(i));
        Some(field)
    }

    fn has(&self, i: usize) -> bool {
        i == self.base || self.past || self.own(i)
    }

    /// The kernel has it.
    fn own(&self, i: usize) -> bool {
        let c = self.here[i];
        c.gone.is_empty() && (self.live || !out_of_tree(c))
    }

    /// What is to be known of schedulers that the kernel does not have.
    fn remarks(&self, of: [usize; 2]) -> Vec<String> {
        let of = if of[0] == of[1] { &of[..1] } else { &of[..] };
        let told = |i: &usize| {
            let c = self.here[*i];
            let foreign = !self.live && out_of_tree(c);
            match (&*c.gone, foreign) {
                ("", false) => None,
                ("", true) => Some(format!("mainline Linux does not have {}", c.scheduler)),
                (gone, _) => Some(gone.to_string()),
            }
        };
        of.iter().filter_map(told).collect()
    }

    /// Schedulers of other sources that are as good as the best of this kernel, or the only better ones.
    fn elsewhere(&self, best: &Standing) -> Vec<String> {
        let other = |s: &&Standing| !self.has(s.at) && out_of_tree(self.here[s.at]);
        let as_good = |s: &&Standing| s.better() && s.against(best) != Ordering::Less;
        let all = self.all.iter().filter(other).filter(as_good);
        all.map(|s| self.here[s.at].scheduler.clone()).collect()
    }

    /// Schedulers of this kernel beside the base.
    fn others(&self) -> impl Iterator<Item = &Standing> {
        self.all.iter().filter(|s| s.at != self.base && self.has(s.at))
    }

    fn runs(&self, i: usize) -> usize {
        self.asks.iter().map(|a| a.runs(i).0).max().unwrap_or(0)
    }

    fn named(&self, of: impl Fn(&Standing) -> bool) -> Vec<String> {
        let name = |s: &Standing| self.here[s.at].scheduler.clone();
        self.others().filter(|s| of(s)).map(name).collect()
    }

    /// Removed schedulers that are as good as the best of this kernel.
    fn gone(&self, best: &Standing) -> Vec<String> {
        let as_good = |s: &&Standing| s.against(best) != Ordering::Less && s.better();
        let away = |s: &&Standing| !self.has(s.at) && !out_of_tree(self.here[s.at]);
        let gone = self.all.iter().filter(away).filter(as_good);
        gone.map(|s| self.here[s.at].scheduler.clone()).collect()
    }

    /// Asks under a scheduler that look worse, which may be chance.
    fn unproven(&self, s: &Standing) -> Vec<Point> {
        let open = (0..self.asks.len()).filter(|i| s.steps[*i].unknown);
        let points = open.map(|i| point(&self.asks[i], s.at, self.base));
        points.filter(|p| p.ratio.is_some_and(|r| r < 1.0)).collect()
    }

    /// How sure it is that the base is to be kept.
    fn keeps(&self) -> (Firmness, usize, usize) {
        let runs = self.runs(self.base);
        match runs < 2 || self.others().any(Standing::is_open) {
            true => (Firmness::Unsure, 0, runs),
            false => (Firmness::Likely, runs, runs),
        }
    }
}

/// The verdict on a device, where the kernel has two of the schedulers that were run.
pub(super) fn verdict(
    device: &str,
    here: &[&Candidate],
    facts: &Device,
    cells: &Cells,
) -> Option<Verdict> {
    let field = Field::of(device, here, facts, cells)?;
    let (asks, base) = (&field.asks, field.base);
    let best = field.others().max_by(|a, b| a.against(b).then(b.at.cmp(&a.at)))?;
    if asks.is_empty() {
        return None;
    }
    let takes = best.better();
    let (firmness, agree, pairs) = if takes {
        firmness(best.decides().map(|i| &asks[i]), best.at, base)
    } else {
        field.keeps()
    };
    let (mut gains, mut prices) = sides(best, asks, base);
    let one_run = !facts.replays && field.runs(base) < 2 && gains.is_empty();
    let chosen = if takes { best.at } else { base };
    let other = (!takes && !gains.is_empty()).then(|| Other {
        scheduler: here[best.at].scheduler.clone(),
        gains: std::mem::take(&mut gains),
        prices: std::mem::take(&mut prices),
    });
    let (unsteady, never_steady) = unsteady(here, facts);
    Some(Verdict {
        device: device.into(),
        verdict: match takes {
            true => Advice::Use,
            false if one_run => Advice::Unknown,
            false => Advice::Keep,
        },
        scheduler: here[chosen].scheduler.clone(),
        base: here[base].scheduler.clone(),
        firmness,
        runs: field.runs(base).max(pairs),
        agree,
        gains,
        prices: if takes { prices } else { Vec::new() },
        demands: if takes { Vec::new() } else { demands(asks, base) },
        unproven: if takes { field.unproven(best) } else { Vec::new() },
        open: field.named(|s| s.is_open() && s.at != chosen),
        level: field.named(Standing::level),
        gone: if takes { field.gone(best) } else { Vec::new() },
        elsewhere: field.elsewhere(best),
        other,
        asks: asks.iter().map(|a| a.name.clone()).collect(),
        matrix: matrix(&field.all, here, asks, base),
        set: if takes && field.own(chosen) { set(&here[chosen].scheduler) } else { String::new() },
        remarks: field.remarks([chosen, base]),
        unsteady,
        never_steady,
        default_not_run: default_not_run(here, facts),
        repeats: facts.repeats(field.runs(base).max(pairs)),
        short: short(here),
    })
}
