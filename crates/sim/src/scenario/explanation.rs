//! What `iosched explain` shows: decisions with times and reasons, as data and as text.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use iosched_types::{Nanos, Op, Sector};
use serde::{Deserialize, Serialize};

use super::calls::CallsShown;

/// The decisions of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Requests in the order in which they left the scheduler.
    pub dispatched: Vec<Dispatched>,
    /// When the scheduler held the device idle although it had requests.
    pub idle: Vec<Idle>,
    /// Requests that did not leave the scheduler, by index.
    pub pending: Vec<usize>,
    /// Schedulers that took over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<Switched>,
    /// The scenario's requests, in the order of the file: when they came and when they were done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Life>,
    /// Processes that have a name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<u32, String>,
    /// Of a scenario of system calls: what became of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallsShown>,
}

/// A request of the scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// Operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Process.
    pub pid: u32,
    /// When it came to the scheduler; absent where it waits for a request that was never done.
    pub came_ns: Option<Nanos>,
    /// When it was done; absent where it never was.
    pub done_ns: Option<Nanos>,
}

/// A scheduler that took over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    /// When it was asked for.
    pub since_ns: Nanos,
    /// From when on it was in force.
    pub at_ns: Nanos,
    /// The old one.
    pub from: String,
    /// The new one.
    pub to: String,
}

/// A request that left the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatched {
    /// When.
    pub t_ns: Nanos,
    /// Operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Process that allocated it; 0 for what an array writes for itself.
    pub pid: u32,
    /// The scenario's requests that it carries, by index.
    pub requests: Vec<usize>,
    /// The disk of an array that it went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leg: Option<usize>,
    /// Why it, and why now.
    pub reason: String,
}

/// A time of idling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// From.
    pub from_ns: Nanos,
    /// Until something was dispatched.
    pub to_ns: Nanos,
    /// The process that the scheduler waits for, if it is one.
    pub for_pid: Option<u32>,
    /// Why.
    pub reason: String,
}

/// Columns of the text.
pub(crate) const WIDTH: usize = 80;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(calls) = &self.calls {
            return calls.fmt(f);
        }
        let rows = self.rows();
        let mut widths = HEAD.map(str::len);
        for row in &rows {
            for (w, cell) in widths.iter_mut().zip(&row.cells) {
                *w = (*w).max(cell.len());
            }
        }
        let indent = widths.iter().map(|w| w + 2).sum::<usize>();
        let line = |f: &mut fmt::Formatter<'_>, cells: &[&str; 4], text: &str| {
            let mut left = String::new();
            let [t, what, pid, requests] = cells;
            let [a, b, c, d] = widths;
            write!(left, "{t:>a$}  {what:<b$}  {pid:>c$}  {requests:<d$}  ")?;
            // Long cells leave the reason a line of its own.
            let (indent, own_line) = if indent + 24 > WIDTH { (4, true) } else { (indent, false) };
            if own_line {
                writeln!(f, "{}", left.trim_end())?;
                left = " ".repeat(indent);
            }
            for (i, part) in wrapped(text, WIDTH - indent).iter().enumerate() {
                let start = if i == 0 { left.clone() } else { " ".repeat(indent) };
                writeln!(f, "{}", format!("{start}{part}").trim_end())?;
            }
            Ok(())
        };
        line(f, &HEAD, "why")?;
        for row in &rows {
            line(f, &row.cells.each_ref().map(String::as_str), &row.reason)?;
        }
        if !self.pending.is_empty() {
            let list: Vec<String> = self.pending.iter().map(|i| format!("#{i}")).collect();
            let text = format!("not dispatched: {}", list.join(" "));
            for part in wrapped(&text, WIDTH) {
                writeln!(f, "{part}")?;
            }
        }
        Ok(())
    }
}

const HEAD: [&str; 4] = ["time ms", "what", "pid", "carries"];
/// Indices shown before the rest is counted.
const MOST_INDICES: usize = 3;

/// A decision as text.
pub(super) struct Row {
    pub(super) at: Nanos,
    pub(super) cells: [String; 4],
    pub(super) reason: String,
}

pub(crate) fn ms(t: Nanos) -> String {
    format!("{}.{:03}", t / 1_000_000, t / 1000 % 1000)
}

impl Explanation {
    /// The name of a process, or its number.
    fn process(&self, pid: u32) -> String {
        self.names.get(&pid).map_or_else(|| pid.to_string(), String::clone)
    }

    /// Decisions and times of idling in the order of time.
    pub(super) fn rows(&self) -> Vec<Row> {
        let idle = self.idle.iter().map(|i| Row {
            at: i.from_ns,
            cells: [
                ms(i.from_ns),
                format!("idle {} ms", ms(i.to_ns - i.from_ns)),
                i.for_pid.map_or_else(String::new, |p| self.process(p)),
                String::new(),
            ],
            reason: i.reason.clone(),
        });
        let dispatched = self.dispatched.iter().map(|d| d.row(self.process(d.pid)));
        // First, so that a takeover stands before what follows from it at the same instant.
        let switches = self.switches.iter().map(Switched::row);
        let mut rows: Vec<Row> = switches.chain(dispatched).chain(idle).collect();
        rows.sort_by_key(|r| r.at);
        rows
    }
}

impl Switched {
    fn row(&self) -> Row {
        let Switched { from, to, .. } = self;
        let reason = format!(
            "{to} takes over from {from}, asked for at {} ms: what {from} had taken is done",
            ms(self.since_ns)
        );
        let cells = [ms(self.at_ns), "switch".into(), String::new(), String::new()];
        Row { at: self.at_ns, cells, reason }
    }
}

impl Dispatched {
    /// `R1000+8`, on an array `leg 0 R1000+8`.
    fn what(&self) -> String {
        let leg = self.leg.map_or_else(String::new, |leg| format!("leg {leg} "));
        match self.op {
            Op::Flush => format!("{leg}flush"),
            op => format!("{leg}{}{}+{}", op.letter(), self.sector, self.sectors),
        }
    }

    fn row(&self, process: String) -> Row {
        let shown = self.requests.iter().take(MOST_INDICES).map(|i| format!("#{i}"));
        let mut list = shown.collect::<Vec<_>>().join(" ");
        if self.requests.len() > MOST_INDICES {
            let _ = write!(list, " +{}", self.requests.len() - MOST_INDICES);
        }
        Row {
            at: self.t_ns,
            cells: [ms(self.t_ns), self.what(), process, list],
            reason: self.reason.clone(),
        }
    }
}

/// Lines of at most `width` characters, broken at spaces; a longer word is cut.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let line = lines.last_mut().expect("there is always a line");
            let used = line.chars().count();
            let room = width.saturating_sub(used + usize::from(used > 0));
            if word.len() <= room || used == 0 {
                if used > 0 {
                    line.push(' ');
                }
                let rest = word.split_off(word.len().min(room.max(1)));
                line.extend(word);
                if rest.is_empty() {
                    break;
                }
                word = rest;
            }
            lines.push(String::new());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatched(t_ns: Nanos, sector: Sector, reason: &str) -> Dispatched {
        let requests = (0..5).collect();
        Dispatched {
            t_ns,
            op: Op::Read,
            sector,
            sectors: 8,
            pid: 1,
            requests,
            leg: None,
            reason: reason.into(),
        }
    }

    #[test]
    fn text_is_at_most_80_columns_wide() {
        let long = "because ".repeat(30) + &"x".repeat(200);
        for sector in [1000, u64::MAX] {
            let e = Explanation {
                dispatched: vec![dispatched(9_000_000_000_000_000_000, sector, &long)],
                idle: vec![Idle {
                    from_ns: 0,
                    to_ns: 8_000_000,
                    for_pid: Some(7),
                    reason: long.clone(),
                }],
                pending: (0..100).collect(),
                switches: Vec::new(),
                ..Explanation::default()
            };
            let text = e.to_string();
            let widest = text.lines().map(|l| l.chars().count()).max().unwrap();
            assert!(widest <= 80, "{text}");
            assert_eq!(text.matches('x').count(), 400, "nothing is lost");
        }
    }

    #[test]
    fn rows_are_in_order_of_time_and_words_stay_whole() {
        let e = Explanation {
            dispatched: vec![
                dispatched(0, 8, "oldest request"),
                dispatched(20_500_000, 16, "next"),
            ],
            idle: vec![Idle {
                from_ns: 5_000_000,
                to_ns: 20_500_000,
                for_pid: None,
                reason: "hope".into(),
            }],
            pending: vec![7],
            switches: vec![Switched {
                since_ns: 6_000_000,
                at_ns: 20_500_000,
                from: "noop".into(),
                to: "cfq".into(),
            }],
            ..Explanation::default()
        };
        let want = "\
time ms  what            pid  carries\x20\x20\x20\x20\x20\x20why
  0.000  R8+8              1  #0 #1 #2 +2  oldest request
  5.000  idle 15.500 ms                    hope
 20.500  switch                            cfq takes over from noop, asked for
                                           at 6.000 ms: what noop had taken is
                                           done
 20.500  R16+8             1  #0 #1 #2 +2  next
not dispatched: #7
";
        assert_eq!(e.to_string(), want);
    }

    #[test]
    fn json_has_exactly_these_keys() {
        let e = Explanation {
            dispatched: vec![Dispatched { requests: vec![0], ..dispatched(5, 8, "r") }],
            idle: vec![Idle { from_ns: 1, to_ns: 2, for_pid: None, reason: "i".into() }],
            pending: vec![3],
            switches: Vec::new(),
            ..Explanation::default()
        };
        let want = r#"{"dispatched":[{"t_ns":5,"op":"R","sector":8,"sectors":8,"pid":1,"requests":[0],"reason":"r"}],"idle":[{"from_ns":1,"to_ns":2,"for_pid":null,"reason":"i"}],"pending":[3]}"#;
        assert_eq!(serde_json::to_string(&e).unwrap(), want);
    }
}
