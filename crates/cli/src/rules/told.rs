//! How a policy does in situations, in words.

use iosched_results::answer::wrap;
use iosched_results::standing::{Against, Standing, Way};
use iosched_results::verdict::Point;

use super::suite::{Cell, Given};

/// Of all cells: how many are better than the kernel's default, worse, and so on.
pub(super) struct Counts {
    pub(super) better: usize,
    pub(super) worse: usize,
    pub(super) mixed: usize,
    pub(super) level: usize,
    pub(super) unknown: usize,
}

impl Counts {
    pub(super) fn of(cells: &[Cell]) -> Counts {
        let n = |way: Way| cells.iter().filter(|c| c.standing.against_default.way == way).count();
        Counts {
            better: n(Way::Better),
            worse: n(Way::Worse),
            mixed: n(Way::Mixed),
            level: n(Way::Level),
            unknown: n(Way::Unknown),
        }
    }

    fn words(&self) -> String {
        let of = |n: usize, word: &str| (n > 0).then(|| format!("{word} in {n}"));
        let all = [
            of(self.better, "better"),
            of(self.worse, "worse"),
            of(self.mixed, "better and worse"),
            of(self.unknown, "not to be told"),
            of(self.level, "level"),
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// `1 case`, `3 cases`.
pub(super) fn cases(n: usize) -> String {
    format!("{n} case{}", if n == 1 { "" } else { "s" })
}

/// `2.1 times`; where it is no number, one of the two meets a demand or has a figure, and the other does not.
fn times(a: &Against) -> String {
    let t = a.times();
    if t.is_finite() { format!("{t:.2} times") } else { "a demand that one alone meets".into() }
}

/// `app-start 1.33 MiB/s (mq-deadline: 0.53 MiB/s)`. `own`: the first of the two has the better figure.
fn figures(p: &Point, own: bool, other: &str) -> String {
    let (better, worse) = p.figures();
    let (mine, its) = if own { (better, worse) } else { (worse, better) };
    format!("{} {mine} ({other}: {its})", p.job)
}

fn prices(all: &[Point]) -> String {
    match all.first().and_then(|p| Some((p, p.ratio?))) {
        Some((p, r)) => format!("; price: {} {:.0} % less", p.job, (1.0 - r) * 100.0),
        None => String::new(),
    }
}

/// A cell against the default.
fn line(s: &Standing) -> Option<(&'static str, String)> {
    let a = &s.against_default;
    let first = a.gains.first();
    Some(match a.way {
        Way::Better => {
            let gain = first.map_or("a figure at all".into(), |p| figures(p, true, &s.default));
            ("better", gain + &prices(&a.prices))
        }
        Way::Worse => {
            let loss = first.map_or("no figure".into(), |p| figures(p, false, &s.default));
            ("worse", loss + &gained(&a.prices, &s.default))
        }
        Way::Mixed => {
            let up = first.map(|p| figures(p, true, &s.default));
            let down = a.prices.first().map(|p| figures(p, false, &s.default));
            ("mixed", up.into_iter().chain(down).collect::<Vec<_>>().join("; "))
        }
        Way::Level | Way::Unknown => return None,
    })
}

/// Where the default is better, its prices are gains of the other.
fn gained(all: &[Point], default: &str) -> String {
    all.first().map_or(String::new(), |p| format!("; but {}", figures(p, false, default)))
}

/// Situations of a kind in one line.
fn listed(out: &mut String, word: &str, all: &[&Cell], columns: usize) {
    if !all.is_empty() {
        let names: Vec<&str> = all.iter().map(|c| c.situation).collect();
        out.push_str(&wrap(&format!("  {word:<8}"), 10, &names.join(", "), columns));
    }
}

/// A device with the scheduler that it gets.
fn device(of: &[&Cell], columns: usize) -> String {
    let Some(first) = of.first() else { return String::new() };
    let s = &first.standing;
    let given = match s.scheduler == s.default {
        true => format!("{}, as the kernel has it", s.scheduler),
        false => format!("{} in place of {}", s.scheduler, s.default),
    };
    let head = format!("{}: {given} ({})", first.device, first.classes.join(", "));
    let mut out = format!("\n{}", wrap("", 2, &head, columns));
    for cell in of {
        if let Some((word, text)) = line(&cell.standing) {
            let text = format!("{}: {text}", cell.situation);
            out.push_str(&wrap(&format!("  {word:<8}"), 10, &text, columns));
        }
    }
    let way = |w: Way| -> Vec<&Cell> {
        of.iter().copied().filter(|c| c.standing.against_default.way == w).collect()
    };
    if s.scheduler != s.default {
        listed(&mut out, "level", &way(Way::Level), columns);
        listed(&mut out, "unsure", &way(Way::Unknown), columns);
    }
    for cell in of {
        if let Some(text) = regret(&cell.standing) {
            let text = format!("{}: {text}", cell.situation);
            out.push_str(&wrap("  regret  ", 10, &text, columns));
        }
    }
    out
}

/// What another scheduler would give.
fn regret(s: &Standing) -> Option<String> {
    let (best, gain) = s.best.as_ref().zip(s.regret.gains.first())?;
    let (its, mine) = gain.figures();
    Some(format!(
        "{best} has {} {its} ({}: {mine}){}",
        gain.job,
        s.scheduler,
        prices(&s.regret.prices)
    ))
}

fn worst(cells: &[Cell], of: impl Fn(&Cell) -> &Against, is: Way) -> Option<&Cell> {
    let all = cells.iter().filter(|c| of(c).way == is);
    all.max_by(|a, b| of(a).times().total_cmp(&of(b).times()))
}

/// The cell that is worst against the default.
pub(super) fn worst_loss(cells: &[Cell]) -> Option<&Cell> {
    worst(cells, |c| &c.standing.against_default, Way::Worse)
}

/// The cell in which another scheduler is better by most.
pub(super) fn worst_regret(cells: &[Cell]) -> Option<&Cell> {
    worst(cells, |c| &c.standing.regret, Way::Better)
}

/// `ssd-sata in swap, 2.68 times`.
fn place(cell: &Cell, a: &Against) -> String {
    format!("{} in {}, {}", cell.device, cell.situation, times(a))
}

/// A policy in all situations.
pub(super) fn policy(name: &str, kernel: &str, cells: &[Cell], columns: usize) -> String {
    let counts = Counts::of(cells);
    let head = format!(
        "{name} beside the defaults of Linux {kernel}, simulated, in {} of a device, its scheduler and a situation: {}.",
        cases(cells.len()),
        counts.words()
    );
    let mut out = wrap("", 0, &head, columns);
    if let Some(c) = worst_loss(cells) {
        let text = place(c, &c.standing.against_default);
        out.push_str(&wrap("", 2, &format!("Worst against the default: {text}."), columns));
    }
    if let Some(c) = worst_regret(cells) {
        let best = c.standing.best.as_deref().unwrap_or_default();
        let text = place(c, &c.standing.regret);
        out.push_str(&wrap("", 2, &format!("Worst regret: {text}, under {best}."), columns));
    }
    let mut groups: Vec<(Given<'_>, Vec<&Cell>)> = Vec::new();
    for c in cells {
        let s = &c.standing;
        let key = (c.device.as_str(), s.scheduler.as_str(), s.default.as_str());
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, all)) => all.push(c),
            None => groups.push((key, vec![c])),
        }
    }
    for (_, all) in &groups {
        out.push_str(&device(all, columns));
    }
    out
}

/// Policies beside each other.
pub(super) fn beside(all: &[(String, Vec<Cell>)], columns: usize) -> String {
    let head = ["policy", "better", "worse", "mixed", "level", "unsure"];
    let mut rows: Vec<Vec<String>> = vec![head.map(String::from).to_vec()];
    for (name, cells) in all {
        let n = Counts::of(cells);
        let counts = [n.better, n.worse, n.mixed, n.level, n.unknown].map(|n| n.to_string());
        rows.push([name.clone()].into_iter().chain(counts).collect());
    }
    let mut out = super::columns_of(&rows);
    for (name, cells) in &all[1..] {
        let worst = worst_loss(cells).map(|c| place(c, &c.standing.against_default));
        let regret = worst_regret(cells).map(|c| place(c, &c.standing.regret));
        let both = [("against the default", worst), ("regret", regret)];
        let both = both.into_iter().filter_map(|(what, at)| Some(format!("{what}: {}", at?)));
        let both: Vec<String> = both.collect();
        if !both.is_empty() {
            out.push_str(&wrap("", 2, &format!("{name}, worst {}.", both.join("; ")), columns));
        }
    }
    out
}
