//! The figures as data: the JSON of `iosched trace info`.

use iosched_types::LatencyHistogram;
use serde::Serialize;

use super::{OPERATIONS, OfOp, Summary, axes, doubts};
use crate::event::Io;
use crate::tally::Tally;
use crate::trace::{Tables, in_words};

/// Latencies in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// I/Os with a known latency.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Half are shorter.
    pub p50_ns: u64,
    /// 90 % are shorter.
    pub p90_ns: u64,
    /// 99 % are shorter.
    pub p99_ns: u64,
    /// 99.9 % are shorter.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// A length and its share.
#[derive(Clone, Debug, Serialize)]
pub struct Size {
    /// Bytes.
    pub bytes: u64,
    /// I/Os of this length.
    pub ios: u64,
}

/// Figures of an operation.
#[derive(Clone, Debug, Serialize)]
pub struct Operation {
    /// `read`, `write`, `discard`, `flush`.
    pub operation: &'static str,
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// I/Os that a process waits for.
    pub sync: u64,
    /// The most frequent lengths.
    pub sizes: Vec<Size>,
    /// From arrival to completion.
    pub latency: Option<Latency>,
    /// From the driver to completion.
    pub device_latency: Option<Latency>,
}

/// Figures of a task.
#[derive(Clone, Debug, Serialize)]
pub struct Task {
    /// Command name.
    pub task: String,
    /// Pid; 0 when unknown.
    pub pid: u32,
    /// I/Os.
    pub ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Share of I/Os that begin where the task's last one ended.
    pub sequential: f64,
    /// From arrival to completion.
    pub latency: Option<Latency>,
}

/// I/Os in flight.
#[derive(Clone, Debug, Serialize)]
pub struct Depth {
    /// Mean over time.
    pub mean: f64,
    /// The most.
    pub max: u64,
    /// Share of I/Os that found none in flight.
    pub alone: f64,
}

/// A part of the trace's time.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// I/Os that arrived.
    pub ios: u64,
    /// Bytes of reads that arrived.
    pub read_bytes: u64,
    /// Bytes of writes that arrived.
    pub written_bytes: u64,
    /// I/Os in flight, mean.
    pub depth: f64,
    /// I/Os in flight, at most.
    pub max_depth: u64,
}

/// Records that were not used, or counted for another reason.
#[derive(Clone, Debug, Serialize)]
pub struct Oddity {
    /// Why.
    pub what: String,
    /// How many.
    pub count: u64,
    /// The first: line of a text, byte of a binary file; 0 when it has no place.
    pub first: u64,
    /// Its text.
    pub text: String,
}

/// A trace in figures.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The file, as named.
    pub file: String,
    /// Name of the format.
    pub format: &'static str,
    /// The format in words, with compression.
    pub about: String,
    /// The disk that the figures are of.
    pub disk: String,
    /// The first I/O in words.
    pub first: String,
    /// Unix time of the first record in ns, where the trace has it.
    pub wall_clock_ns: Option<i64>,
    /// Records read.
    pub records: u64,
    /// I/Os.
    pub ios: u64,
    /// From the first arrival to the last completion, in ns.
    pub span_ns: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// By operation.
    pub operations: Vec<Operation>,
    /// Share of I/Os that begin where the last one of their direction ended.
    pub sequential: f64,
    /// Bytes of the disk that are touched.
    pub footprint_bytes: u64,
    /// Of these read.
    pub read_footprint_bytes: u64,
    /// Of these written or discarded.
    pub written_footprint_bytes: u64,
    /// Share of the disk's regions of 64 KiB in which footprints are counted: 1 when they are exact.
    pub footprint_share: f64,
    /// The end of the furthest I/O.
    pub end_bytes: u64,
    /// I/Os in flight; absent where the trace has no completions.
    pub depth: Option<Depth>,
    /// Length of a part in ns.
    pub part_ns: u64,
    /// The trace's time in parts.
    pub parts: Vec<Part>,
    /// By task, the busiest first.
    pub tasks: Vec<Task>,
    /// Tasks beyond those.
    pub more_tasks: usize,
    /// Counts of what is odd.
    pub oddities: Vec<Oddity>,
    /// How the file was understood.
    pub notes: Vec<String>,
    /// What is implausible.
    pub doubts: Vec<String>,
    /// Pictures.
    #[serde(skip)]
    pub picture: Pixels,
}

/// Counts by time and place, and by time and latency.
#[derive(Clone, Debug)]
pub struct Pixels {
    /// Columns and rows of the pictures by offset.
    pub size: (usize, usize),
    /// Nanoseconds of a column.
    pub column_ns: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Reads, column by column.
    pub reads: Vec<u32>,
    /// Writes and discards.
    pub writes: Vec<u32>,
    /// Rows of latencies, four to a power of two from 1 µs on.
    pub latency_rows: usize,
    /// I/Os by latency.
    pub latencies: Vec<u32>,
}

/// Lengths listed.
const SIZES: usize = 6;
/// Tasks listed.
const TASKS: usize = 20;

fn latency(h: &LatencyHistogram) -> Option<Latency> {
    (!h.is_empty()).then(|| Latency {
        count: h.count(),
        mean_ns: h.mean(),
        p50_ns: h.percentile(50.0),
        p90_ns: h.percentile(90.0),
        p99_ns: h.percentile(99.0),
        p999_ns: h.percentile(99.9),
        max_ns: h.max(),
    })
}

fn operation(name: &'static str, o: &OfOp) -> Operation {
    let mut sizes: Vec<Size> = o.sizes.iter().map(|(b, n)| Size { bytes: *b, ios: *n }).collect();
    sizes.sort_by_key(|s| (std::cmp::Reverse(s.ios), s.bytes));
    sizes.truncate(SIZES);
    Operation {
        operation: name,
        ios: o.ios,
        bytes: o.bytes,
        sync: o.sync,
        sizes,
        latency: latency(&o.latency),
        device_latency: latency(&o.device),
    }
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

/// What a report says of a trace beside its figures.
#[derive(Clone, Debug)]
pub struct About<'a> {
    /// The file, as named.
    pub file: &'a str,
    /// The format.
    pub format: &'static crate::Format,
    /// How it was compressed.
    pub packed: &'a [&'static str],
    /// The first I/O.
    pub first: &'a Io,
}

impl Summary {
    /// The figures of a trace.
    #[must_use]
    pub fn report(&self, about: &About<'_>, tables: &Tables) -> Report {
        let span = self.end.saturating_sub(self.first.unwrap_or(0));
        let per_second = |n: u64| if span == 0 { 0.0 } else { n as f64 * 1e9 / span as f64 };
        let placed: u64 = self.ops[..3].iter().map(|o| o.ios).sum();
        let bytes: u64 = self.ops[..2].iter().map(|o| o.bytes).sum();
        let mut words = about.format.about.to_string();
        for p in about.packed.iter().rev() {
            words += &format!(", {p}");
        }
        let (parts, part_ns) = self.parts();
        let tasks = self.task_list(tables);
        let wall = tables.tally.wall_clock.and_then(|t| i64::try_from(t).ok());
        Report {
            file: about.file.into(),
            format: about.format.name,
            about: words,
            disk: tables.disks.text(about.first.disk).into(),
            first: in_words(about.first, tables),
            wall_clock_ns: wall,
            records: tables.tally.records,
            ios: self.ios(),
            span_ns: span,
            iops: per_second(self.ios()),
            bytes_per_second: per_second(bytes),
            operations: OPERATIONS
                .iter()
                .zip(&self.ops)
                .filter(|(_, o)| o.ios > 0)
                .map(|((_, name), o)| operation(name, o))
                .collect(),
            sequential: share(self.follows, placed),
            footprint_bytes: self.footprint.bytes(),
            read_footprint_bytes: self.read_footprint.bytes(),
            written_footprint_bytes: self.written_footprint.bytes(),
            footprint_share: self.footprint.share(),
            end_bytes: self.furthest,
            depth: self.depth(span),
            part_ns,
            parts,
            more_tasks: tasks.len().saturating_sub(TASKS),
            tasks: tasks.into_iter().take(TASKS).collect(),
            oddities: oddities(&tables.tally),
            notes: tables.tally.notes.clone(),
            doubts: doubts::of(self, &tables.tally),
            picture: self.pixels(),
        }
    }

    fn depth(&self, span: u64) -> Option<Depth> {
        let known: u64 = self.ops.iter().map(|o| o.latency.count()).sum();
        let busy: u128 = self.series.bins.iter().map(|b| b.in_flight).sum();
        let alone = self.alone();
        (known > 0 && span > 0).then(|| Depth {
            mean: busy as f64 / span as f64,
            max: self.in_flight.most as u64,
            alone: share(alone, self.ios()),
        })
    }

    fn parts(&self) -> (Vec<Part>, u64) {
        let width = self.series.width;
        let used = (self.end / width + 1).min(axes::BINS as u64) as usize;
        let part = |b: &axes::Bin| Part {
            ios: b.ios,
            read_bytes: b.read,
            written_bytes: b.written,
            depth: b.in_flight as f64 / width as f64,
            max_depth: b.most,
        };
        (self.series.bins[..used].iter().map(part).collect(), width)
    }

    fn task_list(&self, tables: &Tables) -> Vec<Task> {
        let known = self.tasks.each.iter().filter(|((name, pid), _)| name.0 != 0 || *pid != 0);
        let mut list: Vec<Task> = known
            .map(|((name, pid), t)| Task {
                task: tables.tasks.text(*name).into(),
                pid: *pid,
                ios: t.ios,
                read_bytes: t.read,
                written_bytes: t.written,
                sequential: share(t.follows, t.placed),
                latency: latency(&t.latency),
            })
            .collect();
        list.sort_by_key(|t| (std::cmp::Reverse(t.ios), t.pid));
        if self.tasks.others.ios > 0 {
            let o = &self.tasks.others;
            list.push(Task {
                task: "others".into(),
                pid: 0,
                ios: o.ios,
                read_bytes: o.read,
                written_bytes: o.written,
                sequential: share(o.follows, o.placed),
                latency: latency(&o.latency),
            });
        }
        list
    }

    fn pixels(&self) -> Pixels {
        let p = &self.picture;
        Pixels {
            size: (axes::BINS, axes::ROWS),
            column_ns: p.width,
            row_bytes: p.height,
            reads: p.offsets[0].clone(),
            writes: p.offsets[1].clone(),
            latency_rows: axes::LATENCIES,
            latencies: p.latencies.clone(),
        }
    }
}

/// The counts of a tally that are not zero, in words.
#[must_use]
pub fn oddities(t: &Tally) -> Vec<Oddity> {
    let skipped = t.skipped.iter().map(|(reason, s)| Oddity {
        what: format!("not used: {reason}"),
        count: s.count,
        first: s.first,
        text: s.text.clone(),
    });
    let counted = [
        ("events that the recorder lost", t.lost),
        ("records earlier than one before them", t.inversions),
        ("records too early to be sorted in", t.unsorted),
        ("completions of I/Os that did not begin here", t.completions_without_start),
        ("requests that were not queued here", t.issues_without_queue),
        ("I/Os that do not complete here", t.unfinished),
        ("I/Os with times in a wrong order, without a latency", t.backwards),
        ("requests that went back to the scheduler", t.requeued),
        ("bios that moved from a partition to its disk", t.remapped),
        ("steps of flushes, made by the block layer", t.flush_steps),
    ];
    let counted = counted.into_iter().filter(|c| c.1 > 0).map(|(what, count)| Oddity {
        what: what.into(),
        count,
        first: 0,
        text: String::new(),
    });
    skipped.chain(counted).collect()
}
