//! Walks through directories: what a program does with one name after another, in the order in which it read them.
//!
//! That order is the file system's. A log has the one of the machine that made it, so a replay takes up the names in the
//! order in which its own file system gives them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::read::Reader;
use super::{Act, Task, names};

/// Names of a directory as they were read.
pub(super) struct Listing {
    pub(super) task: usize,
    /// The step after it.
    pub(super) step: usize,
    /// The open directory.
    pub(super) file: u32,
    pub(super) names: Vec<Box<str>>,
}

/// Steps that deal with the names of a directory, one after the other.
#[derive(Debug, PartialEq)]
pub struct Walk {
    /// The open directory.
    pub file: u32,
    /// The first step.
    pub first: usize,
    /// Names, and the step after the last that each is dealt with in.
    pub parts: Vec<(Box<str>, usize)>,
}

impl Walk {
    fn end(&self) -> usize {
        self.parts.last().map_or(self.first, |p| p.1)
    }

    /// The steps of each name.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        let starts = std::iter::once(self.first).chain(self.parts.iter().map(|p| p.1));
        self.parts.iter().zip(starts).map(|((name, end), start)| (&**name, start..*end))
    }

    /// Whether steps lie before or behind it, or in one of its parts.
    fn has_room(&self, other: Range<usize>) -> bool {
        other.end <= self.first
            || self.end() <= other.start
            || self.ranges().any(|(_, r)| r.start < other.start && other.end <= r.end)
    }
}

impl Reader {
    /// Finds the walks of all tasks.
    pub(super) fn find_walks(&mut self) {
        let places: Vec<String> = self.opened.iter().map(|path| self.place(path)).collect();
        let mut listings: Vec<Listing> = Vec::new();
        // One directory may take several calls.
        for l in std::mem::take(&mut self.listings) {
            match listings.iter_mut().rev().find(|o| o.task == l.task && o.file == l.file) {
                Some(before) => {
                    before.names.extend(l.names);
                    before.step = l.step;
                }
                None => listings.push(l),
            }
        }
        for l in listings {
            let Some(directory) = places.get(l.file as usize) else { continue };
            let task = &self.log.tasks[l.task];
            let seen = Names { names: &self.log.names, places: &places, directory };
            let Some(walk) = seen.walk(task, &l) else { continue };
            let fits = task.walks.iter().all(|w| {
                let range = walk.first..walk.end();
                w.has_room(range) || walk.has_room(w.first..w.end())
            });
            if fits && in_order(&walk, &l) && is_whole(task, &walk) {
                self.log.tasks[l.task].walks.push(walk);
            }
        }
        self.log.tasks.iter_mut().for_each(|t| t.walks.sort_by_key(|w| w.first));
    }
}

/// Names as steps know them, and the directory that is looked at.
struct Names<'a> {
    names: &'a [Box<str>],
    places: &'a [String],
    directory: &'a str,
}

impl Names<'_> {
    /// The name in the directory that a step deals with.
    fn of(&self, act: Act) -> Option<&str> {
        let (name, files) = subjects(act);
        let paths = name.into_iter().flatten().filter_map(|n| self.names.get(n as usize));
        let opened = files.into_iter().flatten().filter_map(|f| self.places.get(f as usize));
        let all = paths.map(|p| &**p).chain(opened.map(String::as_str));
        all.filter_map(|path| self.inside(path)).next()
    }

    fn inside<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = if self.directory == "." { path } else { names::inside(path, self.directory)? };
        rest.split('/').next().filter(|n| !n.is_empty() && *n != ".")
    }

    fn walk(&self, task: &Task, listing: &Listing) -> Option<Walk> {
        let mut walk: Option<Walk> = None;
        let mut seen = BTreeSet::new();
        for (i, step) in task.steps.iter().enumerate().skip(listing.step) {
            if moves_tasks(step.act) {
                break;
            }
            let Some(name) = self.of(step.act) else { continue };
            let begun =
                walk.get_or_insert(Walk { file: listing.file, first: i, parts: Vec::new() });
            match begun.parts.last_mut() {
                Some((last, end)) if **last == *name => *end = i + 1,
                _ if !seen.insert(name) => break,
                last => {
                    // Up to here it was the one before.
                    last.into_iter().for_each(|l| l.1 = i);
                    begun.parts.push((name.into(), i + 1));
                }
            }
        }
        walk.filter(|w| w.parts.len() > 1)
    }
}

/// Whether the names are dealt with in the order in which they were read.
fn in_order(walk: &Walk, listing: &Listing) -> bool {
    let place: BTreeMap<&str, usize> =
        listing.names.iter().enumerate().map(|(i, n)| (&**n, i)).collect();
    let places: Option<Vec<usize>> =
        walk.parts.iter().map(|(n, _)| place.get(&**n).copied()).collect();
    places.is_some_and(|p| p.windows(2).all(|w| w[0] < w[1]))
}

/// Whether what is opened for a name is used for that name only.
fn is_whole(task: &Task, walk: &Walk) -> bool {
    let mut uses: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for (i, step) in task.steps.iter().enumerate() {
        for file in subjects(step.act).1.into_iter().flatten() {
            uses.entry(file).or_insert((i, i)).1 = i;
        }
    }
    let range = walk.first..walk.end();
    let parts: Vec<Range<usize>> = walk.ranges().map(|(_, r)| r).collect();
    uses.values()
        .filter(|(opened, _)| range.contains(opened))
        .all(|(opened, last)| parts.iter().any(|p| p.contains(opened) && p.contains(last)))
}

/// Steps that other tasks or what is under way depend on.
fn moves_tasks(act: Act) -> bool {
    matches!(
        act,
        Act::Child { .. }
            | Act::Join { .. }
            | Act::Pipe { .. }
            | Act::Drain { .. }
            | Act::Submit { .. }
            | Act::Reap { .. }
    )
}

/// The names and the open files of a step.
fn subjects(act: Act) -> ([Option<u32>; 2], [Option<u32>; 2]) {
    let none = [None; 2];
    match act {
        Act::Open { name, file, .. } => ([Some(name), None], [Some(file), None]),
        Act::Close { file }
        | Act::Read { file, .. }
        | Act::Pread { file, .. }
        | Act::Write { file, .. }
        | Act::Pwrite { file, .. }
        | Act::Seek { file, .. }
        | Act::Truncate { file, .. }
        | Act::Fallocate { file, .. }
        | Act::Advise { file, .. }
        | Act::Fsync { file }
        | Act::Fdatasync { file }
        | Act::SyncRange { file, .. }
        | Act::SyncFs { file }
        | Act::Fstat { file }
        | Act::TouchFile { file }
        | Act::ReadDir { file }
        | Act::Map { file, .. }
        | Act::Submit { file, .. }
        | Act::Drain { file, .. } => (none, [Some(file), None]),
        Act::CopyRange { from, to, .. } => (none, [Some(from), Some(to)]),
        Act::Pipe { reads, writes } => (none, [Some(reads), Some(writes)]),
        Act::Stat { name, .. }
        | Act::ReadLink { name }
        | Act::Touch { name }
        | Act::Unlink { name }
        | Act::Mkdir { name }
        | Act::Rmdir { name } => ([Some(name), None], none),
        Act::Symlink { name, .. } => ([Some(name), None], none),
        Act::Rename { from, to } => ([Some(from), Some(to)], none),
        Act::Sync
        | Act::Reap { .. }
        | Act::Unmap { .. }
        | Act::Child { .. }
        | Act::Join { .. }
        | Act::Pause { .. }
        | Act::Elsewhere { .. }
        | Act::Null => (none, none),
    }
}
