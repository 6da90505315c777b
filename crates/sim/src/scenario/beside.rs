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
    let mut out = in_step(all);
    parting(all, &rows, &mut out);
    sums(all, column(all), &mut out);
    out
}

fn column(all: &[(&str, &Explanation)]) -> usize {
    (WIDTH - TIME - 2) / all.len().max(1)
}

/// Decisions in the order of time, one column a scheduler.
pub(crate) fn in_step(all: &[(&str, &Explanation)]) -> String {
    let rows: Vec<Vec<Row>> = all.iter().map(|(_, e)| e.rows()).collect();
    let column = column(all);
    let mut out = String::new();
    let width = column.saturating_sub(2).max(8);
    let mut line = |time: &str, cells: &[String]| {
        let mut text = format!("{time:>TIME$}");
        for c in cells {
            let _ = write!(text, "  {c:<width$}");
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line("time ms", &all.iter().map(|(n, _)| cut(n, width)).collect::<Vec<_>>());
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
                    fitted(row, width)
                }
            };
            let cells: Vec<String> = rows.iter().zip(&mut next).map(cell).collect();
            line(if i == 0 { ms(at) } else { String::new() }.as_str(), &cells);
        }
    }
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

/// `R1000+8 (1)`, `idle 8.000 ms (1)`: with the process.
fn what(row: &Row) -> String {
    let [_, what, pid, _] = &row.cells;
    if pid.is_empty() { what.clone() } else { format!("{what} ({pid})") }
}

/// The same in so many columns: first without lengths and units, then cut.
fn fitted(row: &Row, width: usize) -> String {
    let full = what(row);
    if full.chars().count() <= width {
        return full;
    }
    let [_, what, pid, _] = &row.cells;
    let what = what.split('+').next().unwrap_or_default().trim_end_matches(" ms");
    let short = if pid.is_empty() { what.to_string() } else { format!("{what} ({pid})") };
    cut(&short, width)
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    text.chars().take(width - 1).chain(['…']).collect()
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
    out.push('\n');
    let mut line = |head: &str, of: &dyn Fn(&Explanation) -> Option<Nanos>| {
        let mut text = format!("{head:<18}");
        for (n, (_, e)) in all.iter().enumerate() {
            let cell = of(e).map_or_else(|| "-".into(), ms);
            let wide = if n == 0 { column + TIME } else { column + 16 }.saturating_sub(18);
            let _ = write!(text, "  {cell:<wide$}");
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line("all done, ms", &|e| e.requests.iter().map(|r| r.done_ns).max().flatten());
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

#[cfg(test)]
mod tests {
    use iosched_types::Op;

    use super::super::{Dispatched, Idle};
    use super::*;

    #[test]
    fn four_columns_keep_time_place_and_process() {
        let one = |sector: u64| Explanation {
            dispatched: vec![Dispatched {
                t_ns: 0,
                op: Op::Read,
                sector,
                sectors: 1024,
                pid: 12,
                requests: vec![0],
                leg: None,
                reason: "next".into(),
            }],
            idle: vec![Idle {
                from_ns: 5_000_000,
                to_ns: 13_000_000,
                for_pid: Some(12),
                reason: "hope".into(),
            }],
            ..Explanation::default()
        };
        let all = [one(1_234_567), one(8), one(8), one(8)];
        let names = ["none", "mq-deadline", "a-very-long-scheduler-name", "bfq"];
        let text = beside(&names.into_iter().zip(&all).collect::<Vec<_>>());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|l| l.chars().count() <= 80), "{text}");
        assert!(lines[0].contains("a-very-long-sc…"), "{text}");
        assert!(lines[1].contains("R1234567 (12)") && lines[1].contains("R8+1024 (12)"), "{text}");
        assert!(lines[2].contains("5.000  idle 8.000 (12)"), "{text}");
        let at = |head: &str| text.lines().find(|l| l.starts_with(head)).unwrap().find("8.000");
        assert_eq!(at("held idle, ms"), Some(20), "{text}");
        assert!(
            text.contains("none and bfq part here:") && text.contains("R1234567+1024 (12): next")
        );
    }
}
