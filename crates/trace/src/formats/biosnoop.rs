//! biosnoop of bcc and libbpf-tools: `0.000004001    supervise      1950   xvda1   W  13092560  4096       0.74`.
//!
//! The header names the columns. TIME is the completion's; an I/O arrived LAT (and QUE) before.

use iosched_types::{Flags, Op};

use super::Format;
use super::text::{Grammar, Line, reader};
use super::{Head, fields};
use crate::event::{Io, Item};
use crate::trace::Tables;
use crate::words;

pub(super) static FORMAT: Format = Format {
    name: "biosnoop",
    about: "biosnoop's text (bcc, libbpf-tools)",
    per_cpu: false,
    sniff: |head| head.lines.iter().take(20).any(|l| Columns::of(l).is_some()),
    open: |head, files| reader(Biosnoop::new(head), files),
};

/// Where the columns stand, counted in words. The name of a command may hold blanks, so those behind it count from the
/// right.
#[derive(Clone, Copy, Debug)]
struct Columns {
    words: usize,
    task: usize,
    /// Counted from the right, from 1.
    pid: usize,
    disk: usize,
    op: usize,
    sector: usize,
    bytes: usize,
    queue: Option<usize>,
    latency: usize,
}

impl Columns {
    fn of(line: &str) -> Option<Columns> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = |names: &[&str]| words.iter().position(|w| names.contains(w));
        let right = |names: &[&str]| at(names).map(|i| words.len() - i);
        (at(&["TIME(s)"])? == 0).then_some(())?;
        Some(Columns {
            words: words.len(),
            task: at(&["COMM"])?,
            pid: right(&["PID"])?,
            disk: right(&["DISK"])?,
            op: right(&["T"])?,
            sector: right(&["SECTOR"])?,
            bytes: right(&["BYTES", "SECTORS"])?,
            queue: right(&["QUE(ms)"]),
            latency: right(&["LAT(ms)"])?,
        })
    }
}

struct Biosnoop {
    columns: Option<Columns>,
    task: String,
}

impl Biosnoop {
    fn new(head: &Head<'_>) -> Biosnoop {
        Biosnoop { columns: head.lines.iter().find_map(|l| Columns::of(l)), task: String::new() }
    }

    fn io(&mut self, line: &str, c: Columns, tables: &mut Tables) -> Option<Line> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() < c.words {
            return Some(Line::Skip(fields::COLUMNS));
        }
        let right = |n: usize| words[words.len() - n];
        let Some(done) = words::seconds(words[0]) else { return Some(Line::Skip(fields::TIME)) };
        let ms = |n: usize| words::decimal(right(n), 6);
        let (Some(latency), queued) = (ms(c.latency), c.queue.map_or(Some(0), ms)) else {
            return Some(Line::Skip("the latency is no number"));
        };
        // With -Q the latency is that behind the queue.
        let before = latency.saturating_add(queued?);
        let Some((op, flags)) = words::rwbs(right(c.op)) else {
            return Some(Line::Skip(fields::OPERATION));
        };
        let (Ok(sector), Ok(bytes)) =
            (right(c.sector).parse::<i64>(), right(c.bytes).parse::<u64>())
        else {
            return Some(Line::Skip(fields::NUMBER));
        };
        let flush = op == Op::Flush || bytes == 0;
        if sector < 0 && !flush {
            return Some(Line::Skip("the sector is unknown"));
        }
        let offset = (sector.max(0) as u64).saturating_mul(512);
        let Some((offset, len)) = words::bytes_on_disk(offset, bytes) else {
            return Some(Line::Skip(fields::BEYOND));
        };
        let op = if flush { Op::Flush } else { op };
        // Times count from the tool's start: an I/O that arrived before is moved with all others.
        let at = done.saturating_add(SHIFT).saturating_sub(before);
        let mut io =
            Io::new(at, op, tables.disks.of(right(c.disk)), if flush { 0 } else { offset }, len);
        io.flags = flags.without(if flush { Flags::PREFLUSH } else { Flags::NONE });
        io.pid = right(c.pid).parse().unwrap_or(0);
        self.task.clear();
        for (n, word) in words[c.task..=words.len() - c.pid - 1].iter().enumerate() {
            if n > 0 {
                self.task.push(' ');
            }
            self.task.push_str(word);
        }
        io.task = tables.tasks.of(&self.task);
        io.issued = c.queue.map(|_| at.saturating_add(queued.unwrap_or(0)));
        io.done = Some(at.saturating_add(before));
        Some(Line::Item(Item::Io(io)))
    }
}

/// An hour: longer than any I/O before the tool's start was under way.
const SHIFT: u64 = 3_600_000_000_000;

impl Grammar for Biosnoop {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        if Columns::of(line).is_some() || line.starts_with("Tracing ") {
            return Line::Other;
        }
        let Some(columns) = self.columns else { return Line::Skip("no header names the columns") };
        self.io(line, columns, tables).unwrap_or(Line::Skip("the time in the queue is no number"))
    }
}
