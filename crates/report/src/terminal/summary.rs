//! Over all workloads of a device: how the schedulers stand in the answers, which follow from the same numbers.

use iosched_results::answer::{ABOUT, Answer, Stand, wrap};
use iosched_results::stats::Verdict;

use super::cells::Place;
use super::{Align, Cell, Grid};
use super::{Look, bar};

const BAR: usize = 16;
/// Goals beyond these have their sentences only.
const GOALS: usize = 4;

/// A table for each device with several workloads.
pub(super) fn summary(places: &[Place<'_>], answers: &[Answer], look: Look) -> String {
    let mut devices: Vec<&str> = Vec::new();
    for p in places {
        if !devices.contains(&p.device) {
            devices.push(p.device);
        }
    }
    let one = |d: &&str| {
        let of: Vec<&Place<'_>> = places.iter().filter(|p| p.device == *d).collect();
        let told: Vec<&Answer> =
            answers.iter().filter(|a| a.device == *d && !a.field.is_empty()).take(GOALS).collect();
        if of.len() < 2 || told.is_empty() { String::new() } else { table(d, &of, &told, look) }
    };
    let tables: Vec<String> = devices.iter().map(one).filter(|t| !t.is_empty()).collect();
    tables.iter().map(|t| format!("{t}\n")).collect()
}

fn stand<'a>(a: &'a Answer, scheduler: &str) -> Option<&'a Stand> {
    a.field.iter().find(|s| s.scheduler == scheduler)
}

/// `1.12×`, `~0.50×`, `∞×`.
fn times(s: &Stand) -> String {
    let number = if s.ratio.is_infinite() { "∞".into() } else { format!("{:.2}", s.ratio) };
    format!("{}{number}×", if s.approximate { ABOUT } else { "" })
}

fn table(device: &str, places: &[&Place<'_>], answers: &[&Answer], look: Look) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in places.iter().flat_map(|p| &p.rows) {
        if !names.contains(&row.scheduler) {
            names.push(row.scheduler);
        }
    }
    let base = answers.iter().flat_map(|a| &a.field).find(|s| s.base).map(|s| &*s.scheduler);
    let grid = Grid::new().column("scheduler", Align::Left).column("", Align::Left);
    let mut grid = answers.iter().fold(grid, |g, a| g.column(&a.goal, Align::Right));
    // They count against the scheduler that all workloads are judged against, which may lack something and so not be the
    // one that the answers compare with.
    let same = places.iter().all(|p| {
        let at = p.rows.iter().position(|r| Some(r.scheduler) == base);
        at.is_some_and(|i| p.judged[i].is_none())
    });
    let judged =
        same && places.iter().any(|p| p.judged.iter().flatten().any(|j| j.p.is_some() || j.exact));
    if judged {
        grid = grid.column("better in", Align::Right).column("worse in", Align::Right);
    }
    let first = |name: &str| answers.first().and_then(|a| stand(a, name)).map_or(0.0, |s| s.ratio);
    let most = names.iter().map(|n| first(n)).fold(0.0, f64::max);
    // Beside infinitely much everything else is nothing.
    let part = |name: &str| if first(name).is_infinite() { 1.0 } else { first(name) / most };
    for name in &names {
        let mut cells = vec![Cell::new(name), Cell::new(bar(part(name), BAR))];
        cells.extend(answers.iter().map(|a| {
            let text = stand(a, name).map_or_else(|| "–".into(), times);
            // Only whom the answer names.
            Cell { best: a.winner.as_deref() == Some(name), ..Cell::new(text) }
        }));
        if judged {
            let of = |v: Verdict| {
                let of = |p: &&&Place<'_>| {
                    let at = p.rows.iter().position(|r| r.scheduler == *name);
                    at.and_then(|i| p.judged[i].as_ref()).is_some_and(|j| j.verdict == v)
                };
                let n = places.iter().filter(of).count();
                let text = if Some(*name) == base { String::new() } else { n.to_string() };
                Cell::new(text)
            };
            cells.extend([of(Verdict::Better), of(Verdict::Worse)]);
        }
        grid.row(cells);
    }
    let base = base.unwrap_or("the base");
    let title = format!("All workloads on {device}: how many times better than {base}");
    wrap("", 2, &title, look.columns()) + &grid.render(look.columns(), look.color)
}
