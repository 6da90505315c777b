//! Which tasks read and write how much, second by second.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use console::{Term, truncate_str};
use iosched_trace::{Io, Live, Name};
use iosched_types::units::{show_bytes, show_count, show_nanos};
use iosched_types::{LatencyHistogram, Op};

/// Tasks shown on a terminal, and in a line.
const ROWS: usize = 20;
const IN_LINE: usize = 3;
const EVERY: Duration = Duration::from_secs(1);

/// Figures of a second.
#[derive(Default)]
struct Sum {
    reads: u64,
    writes: u64,
    others: u64,
    read: u64,
    written: u64,
    latency: LatencyHistogram,
}

impl Sum {
    fn add(&mut self, io: &Io) {
        match io.op {
            Op::Read => {
                self.reads += 1;
                self.read += io.len;
            }
            Op::Write => {
                self.writes += 1;
                self.written += io.len;
            }
            Op::Discard | Op::Flush => self.others += 1,
        }
        if let Some(latency) = io.latency() {
            self.latency.record(latency);
        }
    }

    fn ios(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    fn row(&self, name: &str, pid: &str, seconds: f64) -> String {
        let rate = |n: u64| show_count(n as f64 / seconds);
        let bytes = |n: u64| show_bytes(n as f64 / seconds) + "/s";
        let of = |p: f64| match self.latency.is_empty() {
            true => "-".to_string(),
            false => show_nanos(self.latency.percentile(p) as f64),
        };
        format!(
            "{name:<16} {pid:>8} {:>9} {:>12} {:>9} {:>12} {:>9} {:>9}",
            rate(self.reads),
            bytes(self.read),
            rate(self.writes),
            bytes(self.written),
            of(50.0),
            of(99.0)
        )
    }
}

/// The view.
pub(super) struct Top {
    tasks: BTreeMap<(Name, u32), Sum>,
    all: Sum,
    begun: Instant,
    shown: Instant,
    /// A terminal, that is written over; else lines.
    term: Option<Term>,
    lines: usize,
    to_stderr: bool,
}

impl Top {
    /// A view on standard output; on standard error where that has the trace.
    pub(super) fn new(to_stderr: bool) -> Top {
        let term = if to_stderr { Term::stderr() } else { Term::stdout() };
        let terminal = match to_stderr {
            true => std::io::stderr().is_terminal(),
            false => std::io::stdout().is_terminal(),
        };
        let now = Instant::now();
        Top {
            tasks: BTreeMap::new(),
            all: Sum::default(),
            begun: now,
            shown: now,
            term: terminal.then_some(term),
            lines: 0,
            to_stderr,
        }
    }

    pub(super) fn add(&mut self, io: &Io) {
        self.all.add(io);
        self.tasks.entry((io.task, io.pid)).or_default().add(io);
    }

    /// Shows the last second, when it is over. An output that went away is no reason to stop.
    pub(super) fn show(&mut self, live: &Live) {
        if self.shown.elapsed() < EVERY {
            return;
        }
        let seconds = self.shown.elapsed().as_secs_f64();
        match self.term.clone() {
            Some(term) => {
                let width = usize::from(term.size().1).max(20);
                let height = usize::from(term.size().0).saturating_sub(4).clamp(1, ROWS);
                let text = self.table(seconds, height, live);
                let _ = term.clear_last_lines(self.lines);
                self.lines = text.len();
                for line in text {
                    let _ = term.write_line(&truncate_str(&line, width, "…"));
                }
            }
            None => {
                let line = self.line(seconds, live);
                let _ = match self.to_stderr {
                    true => writeln!(std::io::stderr().lock(), "{line}"),
                    false => writeln!(std::io::stdout().lock(), "{line}"),
                };
            }
        }
        self.shown = Instant::now();
        self.tasks.clear();
        self.all = Sum::default();
    }

    fn busiest(&self, live: &Live) -> Vec<(String, u32, &Sum)> {
        let name = |n: Name| {
            let text = live.tables.tasks.text(n);
            // A command may have any name.
            let plain: String =
                text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            if plain.is_empty() { "?".to_string() } else { plain }
        };
        let mut list: Vec<_> = self.tasks.iter().map(|((n, pid), s)| (name(*n), *pid, s)).collect();
        list.sort_by_key(|(_, pid, s)| (std::cmp::Reverse((s.read + s.written, s.ios())), *pid));
        list
    }

    /// I/Os that do not end, and events that the kernel lost.
    fn under_way(live: &Live) -> String {
        let lost = live.tables.tally.lost;
        let lost = if lost > 0 { format!("  {lost} events lost") } else { String::new() };
        format!("  {} under way{lost}", live.waiting())
    }

    fn table(&self, seconds: f64, most: usize, live: &Live) -> Vec<String> {
        let time = self.begun.elapsed().as_secs();
        let tasks = self.busiest(live);
        let mut out = vec![
            format!(
                "{:<16} {:>8} {:>9} {:>12} {:>9} {:>12} {:>9} {:>9}",
                "task", "pid", "reads/s", "read", "writes/s", "written", "p50", "p99"
            ),
            self.all.row("all", "", seconds),
        ];
        let rows = tasks.iter().take(most);
        out.extend(rows.map(|(name, pid, s)| s.row(name, &pid.to_string(), seconds)));
        let more = tasks.len().saturating_sub(most);
        let more = if more > 0 { format!("  and {more} more tasks") } else { String::new() };
        out.push(format!("{time} s{}{more}; Ctrl-C ends it", Self::under_way(live)));
        out
    }

    /// One line, for logs and pipes.
    fn line(&self, seconds: f64, live: &Live) -> String {
        let rate = |n: u64| show_count(n as f64 / seconds);
        let bytes = |n: u64| show_bytes(n as f64 / seconds);
        let all = &self.all;
        let mut out = format!(
            "{} s  reads {}/s {}/s  writes {}/s {}/s",
            self.begun.elapsed().as_secs(),
            rate(all.reads),
            bytes(all.read),
            rate(all.writes),
            bytes(all.written)
        );
        if !all.latency.is_empty() {
            let of = |p: f64| show_nanos(all.latency.percentile(p) as f64);
            out += &format!("  p50 {} p99 {}", of(50.0), of(99.0));
        }
        for (name, pid, s) in self.busiest(live).iter().take(IN_LINE) {
            out += &format!("  {name}({pid}) {}/s {}/s", rate(s.ios()), bytes(s.read + s.written));
        }
        out + &Self::under_way(live)
    }
}
