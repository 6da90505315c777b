//! What an operation of a program is in system calls: a typical one of each kind, with repetitions folded.

use std::collections::BTreeMap;
use std::sync::Arc;

use iosched_types::{Bytes, Nanos};

use crate::OpenFlags;
use crate::recorder::{Recording, Seen, Span};

/// Calls in a row that are looked for again behind it.
const LONGEST: usize = 8;
/// So often a row must come to be folded.
const REPEATS: usize = 3;

/// One kind of operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What the program calls it; empty for the whole program.
    pub what: &'static str,
    /// How many there were.
    pub of: usize,
    /// How long the one took that is shown: the median.
    pub took: Nanos,
    /// The process that it belongs to, and those that run beside it and were made by it.
    pub lanes: Vec<Lane>,
}

/// A process, or several that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// How many call the same in the same order, each row as often as it likes; the first of them is shown.
    pub processes: usize,
    /// Its calls.
    pub groups: Vec<Group>,
}

impl Lane {
    /// Whether both call the same in the same order.
    fn is_like(&self, other: &Lane) -> bool {
        let same = |(a, b): (&Group, &Group)| {
            a.calls.len() == b.calls.len()
                && a.calls.iter().zip(&b.calls).all(|(a, b)| a.call == b.call && a.flags == b.flags)
        };
        self.groups.len() == other.groups.len() && self.groups.iter().zip(&other.groups).all(same)
    }
}

/// Calls that come so often in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// How often.
    pub times: usize,
    /// The calls of a round.
    pub calls: Vec<Folded>,
}

/// A call, or all calls of one place in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    /// Its name.
    pub call: &'static str,
    /// Its file, if all have the same.
    pub name: Option<Arc<str>>,
    /// How many files there are.
    pub files: usize,
    /// How the file is, or was, opened.
    pub flags: OpenFlags,
    /// Bytes of the smallest and the largest.
    pub len: Option<(Bytes, Bytes)>,
    /// Time of all together.
    pub took: Nanos,
    /// Bytes of all together.
    pub bytes: Bytes,
}

impl Recording {
    /// A typical operation of each kind that the program names, in the order in which they first ended. A program that
    /// names none is shown by its parts, and one without parts as a whole.
    #[must_use]
    pub fn typical(&self) -> Vec<Operation> {
        let all = self.processes.iter().flatten();
        let end = all.map(|c| c.end).max().unwrap_or(0);
        let whole = [Span { what: "", process: 0, begin: 0, end }];
        let spans: &[Span] = match (&self.operations[..], &self.parts[..]) {
            ([], []) => &whole,
            ([], parts) => parts,
            (operations, _) => operations,
        };
        let mut kinds: Vec<(&str, Vec<&Span>)> = Vec::new();
        for span in spans {
            match kinds.iter_mut().find(|k| k.0 == span.what) {
                Some(kind) => kind.1.push(span),
                None => kinds.push((span.what, vec![span])),
            }
        }
        kinds.into_iter().map(|(_, spans)| self.median(spans)).collect()
    }

    fn median(&self, mut spans: Vec<&Span>) -> Operation {
        // Stable: of those that took equally long, the earliest.
        spans.sort_by_key(|s| s.end - s.begin);
        let span = spans[(spans.len() - 1) / 2];
        let took = span.end - span.begin;
        Operation { what: span.what, of: spans.len(), took, lanes: self.within(span) }
    }

    /// The calls that a process and those that it made began within a span, its own first.
    fn within(&self, span: &Span) -> Vec<Lane> {
        let of = |process: usize| {
            let seen = &self.processes[process];
            let from = seen.partition_point(|c| c.begin < span.begin);
            let calls = seen[from..].iter().take_while(|c| c.begin < span.end.max(1));
            Lane { processes: 1, groups: fold(&calls.collect::<Vec<_>>()) }
        };
        let mut lanes = vec![of(span.process)];
        for process in 0..self.processes.len() {
            if process == span.process || !self.descends(process, span.process) {
                continue;
            }
            let lane = of(process);
            match lanes[1..].iter_mut().find(|l| l.is_like(&lane)) {
                _ if lane.groups.is_empty() => {}
                Some(like) => like.processes += 1,
                None => lanes.push(lane),
            }
        }
        lanes
    }
}

/// Whether two calls do the same to something.
fn alike(a: &Seen, b: &Seen) -> bool {
    a.call == b.call && a.flags == b.flags
}

/// Folds rows of calls that repeat.
fn fold(calls: &[&Seen]) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut i = 0;
    while i < calls.len() {
        let times = |len: usize| {
            let rest = &calls[i..];
            let same = (len..rest.len()).take_while(|n| alike(rest[*n], rest[n - len])).count();
            (len, 1 + same / len)
        };
        // The row that covers most; of equal ones the shortest.
        let best = (1..=LONGEST).map(times).filter(|r| r.1 >= REPEATS);
        let best = best.min_by_key(|(len, times)| (usize::MAX - len * times, *len));
        let (len, times) = best.unwrap_or((1, 1));
        let round = |place: usize| -> Vec<&Seen> {
            (0..times).map(|t| calls[i + t * len + place]).collect()
        };
        groups.push(Group { times, calls: (0..len).map(|p| folded(&round(p))).collect() });
        i += len * times;
    }
    groups
}

fn folded(same: &[&Seen]) -> Folded {
    let mut names: BTreeMap<&str, &Arc<str>> = BTreeMap::new();
    for c in same.iter().filter(|c| !c.name.is_empty()) {
        names.insert(&c.name, &c.name);
    }
    let lens = || same.iter().filter_map(|c| c.len);
    Folded {
        call: same[0].call,
        name: if names.len() == 1 { names.values().next().map(|n| (*n).clone()) } else { None },
        files: names.len(),
        flags: same[0].flags,
        len: lens().min().zip(lens().max()),
        took: same.iter().map(|c| c.took()).sum(),
        bytes: lens().sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(call: &'static str, name: &str, begin: Nanos, took: Nanos) -> Seen {
        let flags = OpenFlags::default();
        let (name, len) = (Arc::from(name), Some(100));
        Seen { call, name, flags, at: None, len, begin, end: begin + took }
    }

    fn span(what: &'static str, begin: Nanos, end: Nanos) -> Span {
        Span { what, process: 0, begin, end }
    }

    fn shape(groups: &[Group]) -> Vec<(usize, Vec<&str>)> {
        groups.iter().map(|g| (g.times, g.calls.iter().map(|c| c.call).collect())).collect()
    }

    #[test]
    fn the_longest_row_that_repeats_is_folded() {
        let names = ["open", "write", "close"].iter().cycle().take(12).enumerate();
        let mut calls: Vec<Seen> =
            names.map(|(i, n)| seen(n, &format!("f{}", i / 3), i as u64, 1)).collect();
        calls.push(seen("fsync", "dir", 20, 5));
        let groups = fold(&calls.iter().collect::<Vec<_>>());
        assert_eq!(shape(&groups), [(4, vec!["open", "write", "close"]), (1, vec!["fsync"])]);
        let write = &groups[0].calls[1];
        assert_eq!((write.files, &write.name, write.bytes, write.took), (4, &None, 400, 4));
        assert_eq!(groups[1].calls[0].name.as_deref(), Some("dir"));
    }

    #[test]
    fn twice_is_not_folded_and_one_call_many_times_is() {
        let calls = ["open", "read", "open", "read", "fsync", "fsync", "fsync", "fsync"];
        let calls: Vec<Seen> =
            calls.iter().enumerate().map(|(i, n)| seen(n, "a", i as u64, 1)).collect();
        let groups = fold(&calls.iter().collect::<Vec<_>>());
        let one = |n| (1, vec![n]);
        assert_eq!(
            shape(&groups),
            [one("open"), one("read"), one("open"), one("read"), (4, vec!["fsync"])]
        );
    }

    #[test]
    fn the_median_of_each_kind_is_shown_with_the_calls_of_its_children() {
        let recording = Recording {
            processes: vec![
                vec![
                    seen("read", "a", 0, 5),
                    seen("write", "a", 10, 90),
                    seen("wait", "", 200, 40),
                ],
                vec![seen("fsync", "b", 210, 20)],
                vec![seen("pread", "other", 210, 20)],
                vec![seen("fsync", "c", 220, 20), seen("late", "c", 241, 20)],
            ],
            parents: vec![None, Some(0), None, Some(1)],
            operations: vec![
                span("short", 0, 5),
                span("op", 10, 100),
                span("op", 200, 240),
                span("op", 300, 301),
            ],
            ..Recording::default()
        };
        let found = recording.typical();
        let of = |o: &Operation| (o.what, o.of, o.took);
        assert_eq!(found.iter().map(of).collect::<Vec<_>>(), [("short", 1, 5), ("op", 3, 40)]);
        let lanes: Vec<_> =
            found[1].lanes.iter().map(|l| (l.processes, shape(&l.groups))).collect();
        assert_eq!(lanes, [(1, vec![(1, vec!["wait"])]), (2, vec![(1, vec!["fsync"])])]);
    }

    #[test]
    fn a_program_that_names_nothing_is_shown_by_its_parts_or_whole() {
        let mut recording = Recording {
            processes: vec![vec![seen("read", "a", 0, 5), seen("write", "a", 10, 90)]],
            parents: vec![None],
            ..Recording::default()
        };
        let whole = recording.typical();
        assert_eq!((whole[0].what, whole[0].took, whole[0].lanes[0].groups.len()), ("", 100, 2));
        recording.parts.push(span("phase", 0, 8));
        let parts = recording.typical();
        assert_eq!((parts[0].what, parts[0].lanes[0].groups.len()), ("phase", 1));
    }
}
