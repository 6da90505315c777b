//! The decisions of several schedulers on one scenario, side by side as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use iosched_types::Nanos;

use super::explanation::{Explanation, Row, WIDTH, ms, wrapped};

/// Width of the times.
const TIME: usize = 9;

/// Decisions in the order of time, one column a scheduler; where the first two part, with reasons; then sums.
#[must_use]
pub fn beside(all: &[(&str, &Explanation)]) -> String {
    let rows: Vec<Vec<Row>> = all.iter().map(|(_, e)| e.rows()).collect();
    let column = (WIDTH - TIME - 2) / all.len().max(1);
    let mut out = String::new();
    let mut line = |time: &str, cells: &[String]| {
        let mut text = format!("{time:>TIME$}");
        for c in cells {
            let c: String = c.chars().take(column - 2).collect();
            let _ = write!(text, "  {c:<w$}", w = column - 2);
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line("time ms", &all.iter().map(|(n, _)| (*n).to_string()).collect::<Vec<_>>());
    let mut times: BTreeMap<Nanos, usize> = BTreeMap::new();
    for r in &rows {
        for (at, n) in counted(r) {
            let most = times.entry(at).or_default();
            *most = n.max(*most);
        }
    }
    let mut next = vec![0; rows.len()];
    for (at, most) in times {
        for i in 0..most {
            let cell = |(r, n): (&Vec<Row>, &mut usize)| match r.get(*n).filter(|row| row.at == at)
            {
                None => String::new(),
                Some(row) => {
                    *n += 1;
                    what(row)
                }
            };
            let cells: Vec<String> = rows.iter().zip(&mut next).map(cell).collect();
            line(if i == 0 { ms(at) } else { String::new() }.as_str(), &cells);
        }
    }
    parting(all, &rows, &mut out);
    sums(all, column, &mut out);
    out
}

/// How many rows each time has.
fn counted(rows: &[Row]) -> BTreeMap<Nanos, usize> {
    let mut out = BTreeMap::new();
    for r in rows {
        *out.entry(r.at).or_default() += 1;
    }
    out
}

/// `R1000+8 of 1`, `idle 8.000 ms`.
fn what(row: &Row) -> String {
    let [_, what, pid, _] = &row.cells;
    match pid.is_empty() {
        true => what.clone(),
        false => format!("{what} {} {pid}", if what.starts_with("idle") { "for" } else { "of" }),
    }
}

/// The first decision in which a scheduler differs from the first one.
fn parting(all: &[(&str, &Explanation)], rows: &[Vec<Row>], out: &mut String) {
    for (i, other) in rows.iter().enumerate().skip(1) {
        let same = |(a, b): (&Row, &Row)| a.at == b.at && a.cells == b.cells;
        let at = rows[0].iter().zip(other).position(|pair| !same(pair));
        let at = at.unwrap_or_else(|| rows[0].len().min(other.len()));
        let (a, b) = (rows[0].get(at), other.get(at));
        if a.is_none() && b.is_none() {
            let _ = writeln!(out, "\n{} and {} decide alike", all[0].0, all[i].0);
            continue;
        }
        let _ = writeln!(out, "\n{} and {} part here:", all[0].0, all[i].0);
        for (name, row) in [(all[0].0, a), (all[i].0, b)] {
            let text = row.map_or("nothing more".into(), |r| {
                format!("{} ms, {}: {}", ms(r.at), what(r), r.reason)
            });
            for (n, part) in wrapped(&format!("{name}: {text}"), WIDTH - 4).iter().enumerate() {
                let _ = writeln!(out, "{}{part}", if n == 0 { "  " } else { "    " });
            }
        }
    }
}

/// The end of the last request, idle time, and the mean wait of each process.
fn sums(all: &[(&str, &Explanation)], column: usize, out: &mut String) {
    let mut line = |head: &str, of: &dyn Fn(&Explanation) -> Option<Nanos>| {
        let mut text = format!("{head:<18}");
        for (n, (_, e)) in all.iter().enumerate() {
            let cell = of(e).map_or_else(|| "-".into(), ms);
            let wide = if n == 0 { column + TIME - 18 } else { column - 2 };
            let _ = write!(text, "  {cell:<wide$}");
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line("\nall done, ms", &|e| e.requests.iter().map(|r| r.done_ns).max().flatten());
    line("held idle, ms", &|e| Some(e.idle.iter().map(|i| i.to_ns - i.from_ns).sum()));
    let mut pids: Vec<u32> =
        all.iter().flat_map(|(_, e)| e.requests.iter().map(|r| r.pid)).collect();
    pids.sort_unstable();
    pids.dedup();
    for pid in pids {
        line(&format!("pid {pid} waits, ms"), &|e| {
            let of = e.requests.iter().filter(|r| r.pid == pid);
            let waits = of.map(|r| Some(r.done_ns? - r.came_ns?)).collect::<Option<Vec<_>>>()?;
            Some(waits.iter().sum::<Nanos>() / waits.len().max(1) as u64)
        });
    }
}
