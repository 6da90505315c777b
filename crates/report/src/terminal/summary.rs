//! Over all workloads: the geometric mean of each scheduler's ratios to the base's figures.

use iosched_results::answer::wrap;
use iosched_results::cells::usual_base;

use super::cells::{Place, Row};
use super::figures::Figures;
use super::{Align, Cell, Grid};
use super::{Look, bar};

const BAR: usize = 16;

/// Ratios of a scheduler to the base over some places.
#[derive(Default)]
struct Ratios {
    rate: Vec<f64>,
    mean: Vec<f64>,
    p99: Vec<f64>,
    best: usize,
}

/// Geometric mean: ratios multiply.
fn geometric(ratios: &[f64]) -> Option<f64> {
    let n = ratios.len() as f64;
    (!ratios.is_empty()).then(|| (ratios.iter().map(|r| r.ln()).sum::<f64>() / n).exp())
}

/// A table for each device when there are several, and one for all; nothing for a single table.
pub(super) fn summary(places: &[Place<'_>], look: Look) -> String {
    if places.len() < 2 {
        return String::new();
    }
    let mut devices: Vec<&str> = Vec::new();
    for p in places {
        if !devices.contains(&p.device) {
            devices.push(p.device);
        }
    }
    let mut out = String::new();
    if devices.len() > 1 && devices.len() < places.len() {
        for d in &devices {
            let of: Vec<&Place<'_>> = places.iter().filter(|p| p.device == *d).collect();
            out.push_str(&table(&format!("All workloads on {d}"), &of, look));
            out.push('\n');
        }
    }
    let all: Vec<&Place<'_>> = places.iter().collect();
    let name = if devices.len() > 1 { "All devices and workloads" } else { "All workloads" };
    out + &table(name, &all, look)
}

fn schedulers<'a>(places: &[&Place<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for row in places.iter().flat_map(|p| &p.rows) {
        if !names.contains(&row.scheduler) {
            names.push(row.scheduler);
        }
    }
    names
}

fn ratios(places: &[&Place<'_>], base: &str, scheduler: &str) -> Ratios {
    let mut out = Ratios::default();
    for p in places {
        let row = |name: &str| p.rows.iter().find(|r| r.scheduler == name);
        let (Some(b), Some(s)) = (row(base), row(scheduler)) else { continue };
        if b.noisy || s.noisy {
            continue;
        }
        type Get = fn(&Figures) -> f64;
        let mut put = |list: fn(&mut Ratios) -> &mut Vec<f64>, f: Get| {
            let (Some(x), Some(y)) = (b.mean(f), s.mean(f)) else { return };
            if x > 0.0 && y > 0.0 {
                list(&mut out).push(y / x);
            }
        };
        put(|r| &mut r.rate, Figures::rate);
        put(|r| &mut r.mean, |f| f.mean);
        put(|r| &mut r.p99, |f| f.p99);
        let rate = |r: &Row<'_>| r.mean(Figures::rate).unwrap_or(0.0);
        let most = p.rows.iter().map(rate).fold(0.0, f64::max);
        // Half a percent behind the best is as good as the best.
        out.best += usize::from(rate(s) >= most * 0.995 && most > 0.0);
    }
    out
}

fn table(name: &str, places: &[&Place<'_>], look: Look) -> String {
    let names = schedulers(places);
    let base = usual_base(names.iter().copied());
    let Some(base) = base.filter(|_| names.len() > 1) else {
        return String::new();
    };
    let all: Vec<Ratios> = names.iter().map(|n| ratios(places, base, n)).collect();
    let most = all.iter().filter_map(|r| geometric(&r.rate)).fold(0.0, f64::max);
    if most == 0.0 {
        return String::new();
    }
    let top = |list: fn(&Ratios) -> &Vec<f64>, pick: fn(f64, f64) -> f64| {
        let values = all.iter().filter_map(|r| geometric(list(r)));
        values.reduce(pick).map(|v| format!("{v:.2}"))
    };
    let tops = [top(|r| &r.rate, f64::max), top(|r| &r.mean, f64::min), top(|r| &r.p99, f64::min)];
    let mut grid = Grid::new()
        .column("scheduler", Align::Left)
        .column("", Align::Left)
        .column("throughput", Align::Right)
        .column("mean latency", Align::Right)
        .column("p99 latency", Align::Right)
        .column("fastest in", Align::Right);
    for (name, r) in names.iter().zip(&all) {
        let share = geometric(&r.rate).unwrap_or(0.0) / most;
        let cell = |list: &Vec<f64>, top: &Option<String>| {
            let text = geometric(list).map(|v| format!("{v:.2}"));
            let best = text.is_some() && text == *top;
            Cell { best, ..Cell::new(text.map_or("–".into(), |t| t + "×")) }
        };
        grid.row(vec![
            Cell::new(name),
            Cell::new(bar(share, BAR)),
            cell(&r.rate, &tops[0]),
            cell(&r.mean, &tops[1]),
            cell(&r.p99, &tops[2]),
            Cell::new(format!("{} of {}", r.best, places.len())),
        ]);
    }
    let title = format!("{name}: geometric mean of the ratios to {base}");
    wrap("", 2, &title, look.columns()) + &grid.render(look.columns(), look.color)
}
