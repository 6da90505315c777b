//! Reading a log, line by line.

use std::collections::BTreeMap;
use std::mem::discriminant;

use iosched_syscalls::Answer;
use iosched_types::units::SEC;
use iosched_types::{Diagnostic, Nanos};

use super::args;
use super::before::Before;
use super::by_flags::Flagged;
use super::family::Family;
use super::line::{self, Bad, End, INTERNAL, Said, Stamp};
use super::links::Links;
use super::prepare::Disk;
use super::rows::{LOOKED_AT, Row, Rows};
use super::symlinks::Symlinks;
use super::tables::Tables;
use super::walks::Listing;
use super::{Act, Log, Step, Task};

/// How a log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Refuses a log with calls that are not simulated, instead of leaving them out.
    pub refuse_unknown: bool,
    /// Keeps the time between calls, where the log has it.
    pub think: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { refuse_unknown: false, think: true }
    }
}

/// The part of a log that is replayed: what a shell ran in one directory.
///
/// The first task's calls before it makes another are left out, except that it changes its directory: a shell that starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The directory, absolute; it becomes the root of the file system. Calls elsewhere cost a call and what they copy.
    pub below: String,
    /// What a call that fails takes beside its call, in nanoseconds.
    pub failure: Nanos,
}

/// A call that another line ends.
pub(super) struct Pending {
    pub(super) name: String,
    args: String,
    start: Option<Nanos>,
    /// The child that it made, seen before the call came back.
    pub(super) child: Option<u32>,
    /// It has been dealt with already.
    pub(super) done: bool,
}

/// A call with its result.
pub(super) struct Call<'a> {
    pub(super) pid: u32,
    pub(super) name: &'a str,
    pub(super) args: Vec<&'a str>,
    pub(super) end: End,
    pub(super) start: Option<Nanos>,
    pub(super) line: u32,
}

impl Call<'_> {
    pub(super) fn arg(&self, i: usize) -> &str {
        self.args.get(i).copied().unwrap_or_default()
    }

    pub(super) fn number(&self, i: usize) -> Option<i64> {
        args::number(self.arg(i))
    }

    /// The answer of the log's kernel, if it can be compared.
    pub(super) fn answer(&self) -> Option<Answer> {
        match self.end.ret? {
            Err(INTERNAL) => None,
            other => Some(other.map(i64::cast_unsigned)),
        }
    }

    /// The number that it returned.
    pub(super) fn ok(&self) -> Option<i64> {
        self.end.ret?.ok()
    }
}

/// The state of reading.
pub(super) struct Reader {
    pub(super) log: Log,
    pub(super) known: BTreeMap<String, u32>,
    pub(super) tables: Tables,
    pub(super) disk: Disk,
    pub(super) links: Links,
    pub(super) symlinks: Symlinks,
    pub(super) before: Before,
    /// The names of open files, by file: directories are looked up from there.
    pub(super) opened: Vec<String>,
    /// Tasks that have ended and were not waited for, by pid.
    pub(super) dead: BTreeMap<u32, usize>,
    pub(super) family: Family,
    pub(super) pending: BTreeMap<u32, Pending>,
    /// When each task's last call came back.
    free: Vec<Option<Nanos>>,
    pub(super) clock: Option<Nanos>,
    /// The first stamp: others of its kind count.
    kind: Option<Stamp>,
    days: Nanos,
    pub(super) cwd: String,
    pub(super) options: Options,
    pub(super) part: Option<Part>,
    /// Calls in which their task was killed.
    pub(super) killed: usize,
    /// The stamps have whole seconds only.
    pub(super) coarse: bool,
    /// Calls that move data and are left out, by name: those that a replay should have.
    pub(super) missing: BTreeMap<String, u64>,
    /// Maps of files into which a program can write.
    pub(super) maps: u64,
    /// Names of directories as they were read.
    pub(super) listings: Vec<Listing>,
    /// Maps that are read, by process and address.
    pub(super) mapped: BTreeMap<(u32, i64), super::maps::Mapped>,
    /// Asynchronous I/Os of each task that were not waited for yet.
    pub(super) under_way: BTreeMap<usize, u64>,
    /// Writes with flags of their own.
    pub(super) flagged: Flagged,
    /// Time of failed calls that the next step of each task has before it.
    owed: Vec<Nanos>,
}

/// Reads a log of `strace`, best one of `strace -f -ttt -T -o FILE`.
///
/// # Errors
/// The place where something is no call, and what to do; a log without any call.
pub fn parse(file: &str, text: &str, options: Options) -> Result<Log, Diagnostic> {
    let rows = Rows::of(text, usize::MAX);
    let before = Before::of(&rows);
    read_all(Reader { before, ..Reader::new(text, &rows, options, None) }, file, text, &rows)
}

/// Reads a part of a log.
///
/// # Errors
/// As [`parse`].
pub fn parse_part(file: &str, text: &str, options: Options, part: Part) -> Result<Log, Diagnostic> {
    let rows = Rows::of(text, usize::MAX);
    read_all(Reader::new(text, &rows, options, Some(part)), file, text, &rows)
}

fn read_all(
    mut reader: Reader,
    file: &str,
    text: &str,
    rows: &Rows<'_>,
) -> Result<Log, Diagnostic> {
    let ends_whole = text.is_empty() || text.ends_with('\n');
    let last = rows.rows.last().map_or(0, |row| row.number);
    for Row { number, text, attached } in &rows.rows {
        match line::read(text) {
            Ok(read) => reader.take(read, *number as u32),
            Err(bad) if *number == last && (!ends_whole || bad.message.contains("is cut")) => {
                let place = format!("the log ends in the middle of line {number}");
                reader.log.warnings.push(place);
            }
            Err(bad) => return Err(diagnose(file, text, *number, &bad)),
        }
        // A line that was interrupted had begun before.
        attached.iter().for_each(|pid| reader.attached(*pid));
    }
    if reader.log.calls == 0 && rows.table {
        let d = Diagnostic::file(file, "strace -c counts calls: there is no call to replay");
        return Err(d.with_help("make a log with: strace -f -ttt -T -o FILE COMMAND"));
    }
    reader.finish(file)
}

/// Whether a text is a log of strace: it begins with lines of one, whatever its file is called.
#[must_use]
pub fn recognise(text: &str) -> bool {
    let rows = Rows::of(text, LOOKED_AT);
    let (mut calls, mut others) = (0, 0);
    for row in &rows.rows {
        match line::read(&row.text).map(|l| l.said) {
            Ok(Said::Whole { .. } | Said::Begun { .. } | Said::Resumed { .. }) => calls += 1,
            Ok(_) => {}
            Err(_) => others += 1,
        }
    }
    calls > others || rows.table && others == 0
}

fn diagnose(file: &str, line: &str, number: usize, bad: &Bad) -> Diagnostic {
    let mut d = Diagnostic::file(file, bad.message);
    let at = (0..=bad.at.min(line.len())).rev().find(|i| line.is_char_boundary(*i)).unwrap_or(0);
    d.line = number;
    d.column = line[..at].chars().count() + 1;
    d.width = line[at..].chars().count().min(40);
    d.text = line.to_string();
    d.with_help(
        "the program's own output mixes with the calls unless the log is written to a file: \
         strace -f -ttt -T -o FILE COMMAND",
    )
}

impl Reader {
    fn new(text: &str, rows: &Rows<'_>, options: Options, part: Option<Part>) -> Reader {
        Reader {
            log: Log::default(),
            known: BTreeMap::new(),
            tables: Tables::default(),
            disk: Disk::default(),
            links: Links::default(),
            symlinks: Symlinks::default(),
            before: Before::default(),
            opened: Vec::new(),
            dead: BTreeMap::new(),
            family: Family::of(rows),
            pending: BTreeMap::new(),
            free: Vec::new(),
            clock: None,
            kind: None,
            days: 0,
            cwd: beginning(text),
            options,
            part,
            killed: 0,
            coarse: false,
            missing: BTreeMap::new(),
            maps: 0,
            mapped: BTreeMap::new(),
            listings: Vec::new(),
            under_way: BTreeMap::new(),
            flagged: Flagged::default(),
            owed: Vec::new(),
        }
    }

    fn take(&mut self, read: line::Line<'_>, number: u32) {
        let before = self.clock;
        self.coarse |= read.coarse;
        let now = self.now(read.stamp);
        if let (Some(before), Some(now)) = (before, now)
            && now + SEC < before
        {
            let text = format!(
                "line {number}: the clock goes back by {} s; no pause is taken from that",
                (before - now) / SEC
            );
            self.log.warnings.push(text);
        }
        if matches!(read.said, Said::Nothing) {
            return;
        }
        if let Said::Architecture(mode) = read.said {
            let text = format!("line {number}: calls of another architecture ({mode})");
            return self.log.warnings.push(text);
        }
        let pid = self.who(read.pid, matches!(read.said, Said::Resumed { .. }), now);
        match read.said {
            Said::Whole { name, args, end } => self.call(pid, name, &args, end, now, number),
            Said::Begun { name, args } => self.begun(pid, name, args, now, number),
            Said::Resumed { name, args, end } => self.resumed(pid, name, args, (end, now), number),
            Said::Gone => self.gone(pid),
            Said::Nothing | Said::Architecture(_) => {}
        }
    }

    /// The time of a line, since some moment. Logs that were put together may have stamps of several kinds, which have
    /// nothing to do with each other.
    fn now(&mut self, stamp: Option<Stamp>) -> Option<Nanos> {
        let stamp = stamp?;
        if discriminant(self.kind.get_or_insert(stamp)) != discriminant(&stamp) {
            return None;
        }
        let now = match stamp {
            Stamp::Absolute(t) => t,
            Stamp::Relative(d) => self.clock.unwrap_or(0).saturating_add(d),
            Stamp::Day(t) => {
                let before = self.clock.unwrap_or(0);
                // It is past midnight.
                if t.saturating_add(self.days) + 43_200 * SEC < before {
                    self.days += 86_400 * SEC;
                }
                t.saturating_add(self.days)
            }
        };
        self.clock = Some(now);
        Some(now)
    }

    pub(super) fn task(&mut self, pid: u32, parent: Option<usize>, thread: bool) -> usize {
        self.log.tasks.push(Task { pid, parent, thread, ..Task::default() });
        self.free.push(None);
        self.log.tasks.len() - 1
    }

    /// A child of which the parent's call has not come back yet.
    pub(super) fn child(&mut self, parent: u32, pid: u32, now: Option<Nanos>) {
        let Some(p) = self.pending.get_mut(&parent) else { return };
        p.child = Some(pid);
        let (args, start) = (p.args.clone(), p.start);
        self.born(parent, pid, &args, start.or(now));
    }

    /// A child.
    pub(super) fn born(&mut self, parent: u32, pid: u32, args: &str, at: Option<Nanos>) {
        let Some(of) = self.tables.alive.get(&parent).map(|t| t.task) else { return };
        let at = self.begins(of, at);
        let files = args.contains("CLONE_FILES");
        let task = self.task(pid, Some(of), files);
        self.free[task] = at.filter(|_| self.options.think);
        self.tables.born(parent, pid, task, files, args.contains("CLONE_FS"));
    }

    fn begun(&mut self, pid: u32, name: &str, args: &str, now: Option<Nanos>, number: u32) {
        let mut pending = Pending {
            name: name.to_string(),
            args: args.to_string(),
            start: now,
            child: None,
            done: false,
        };
        // Another task may be given the number before the call comes back.
        if name == "close" {
            let end = End { ret: Some(Ok(0)), took: None, killed: false };
            self.call(pid, name, args, end, now, number);
            pending.done = true;
        }
        self.pending.insert(pid, pending);
    }

    fn resumed(
        &mut self,
        pid: u32,
        name: &str,
        rest: &str,
        (end, now): (End, Option<Nanos>),
        number: u32,
    ) {
        let Some(begun) = self.pending.remove(&pid).filter(|p| p.name == name) else {
            // The log began in the middle of it.
            *self.log.unknown.entry(format!("{name} (without its beginning)")).or_default() += 1;
            return;
        };
        if begun.done {
            let Some(task) = self.tables.alive.get(&pid).map(|t| t.task) else { return };
            self.free[task] = end.took.and(self.begins(task, now));
            return;
        }
        let whole = format!("{} {rest}", begun.args);
        if let (Some(seen), Some(Ok(child))) = (begun.child, end.ret)
            && i64::from(seen) != child
        {
            if self.family.is_alias(pid, child as u32, seen) {
                return self.call(pid, name, &whole, end, begun.start, number);
            }
            // Two were made at once: the other one is ours.
            let of = self.tables.alive.get(&pid).map(|t| t.task);
            if let Some(c) = self.tables.alive.get(&(child as u32)) {
                self.log.tasks[c.task].parent = of.filter(|p| *p < c.task);
            }
        }
        self.call(pid, name, &whole, end, begun.start, number);
    }

    pub(super) fn gone(&mut self, pid: u32) {
        let inside = self.pending.remove(&pid).filter(|p| !p.done && !ends(&p.name));
        self.killed += usize::from(inside.is_some());
        self.family.followed.remove(&pid);
        if let Some(t) = self.tables.alive.remove(&pid) {
            self.dead.insert(pid, t.task);
        }
    }

    /// When a call of a task began. Stamps of whole seconds only say that it was not earlier: the calls before it may have
    /// taken longer than up to there.
    fn begins(&self, task: usize, start: Option<Nanos>) -> Option<Nanos> {
        match self.free[task].filter(|_| self.coarse) {
            Some(free) => start.map(|s| s.max(free)),
            None => start,
        }
    }

    fn call(
        &mut self,
        pid: u32,
        name: &str,
        args: &str,
        end: End,
        start: Option<Nanos>,
        line: u32,
    ) {
        self.log.calls += 1;
        // Nobody hears of these any more.
        self.killed += usize::from(end.killed && !ends(name));
        if ends(name) && !name.ends_with("return") {
            self.family.followed.remove(&pid);
        }
        let task = self.tables.alive.get(&pid).map(|t| t.task);
        let start = task.and_then(|t| self.begins(t, start));
        let call = Call { pid, name, args: args::split(args), end, start, line };
        let known = self.convert(&call);
        if !known {
            self.misses(&call);
            *self.log.unknown.entry(name.to_string()).or_default() += 1;
            // What it waits for lies outside of the log.
            if let Some(time) = end.took.filter(|_| self.options.think) {
                self.push(&call, Act::Pause { time }, None);
            }
        }
        let Some(task) = self.tables.alive.get(&pid).map(|t| t.task) else { return };
        self.free[task] = match (start, end.took) {
            (Some(s), Some(t)) if self.options.think => {
                self.log.paced = true;
                Some(s.saturating_add(t))
            }
            _ => None,
        };
    }

    /// Another step of the task that made the call.
    pub(super) fn push(&mut self, call: &Call<'_>, act: Act, answer: Option<Answer>) {
        let Some(task) = self.tables.alive.get(&call.pid).map(|t| t.task) else { return };
        if self.starts(task, act) {
            return;
        }
        let act = match act {
            Act::Close { file } if self.is_device(file) => Act::Null,
            act => act,
        };
        let mut think = match (self.free[task].take(), call.start) {
            (Some(free), Some(start)) => start.saturating_sub(free),
            _ => 0,
        };
        if self.part.is_some() {
            self.owed.resize(self.log.tasks.len(), 0);
            think += std::mem::take(&mut self.owed[task]);
            if let (Some(Err(_)), Some(part)) = (call.end.ret, &self.part) {
                self.owed[task] = part.failure;
            }
        }
        self.log.tasks[task].steps.push(Step { line: call.line, think, act, answer });
    }

    /// Whether a shell that starts does this.
    fn starts(&self, task: usize, act: Act) -> bool {
        let alone = self.part.is_some() && task == 0 && self.log.tasks[0].steps.is_empty();
        alone && !matches!(act, Act::Child { .. })
    }
}

/// Where the log began, as far as it says so before a task changes its directory.
fn beginning(text: &str) -> String {
    let moved = text.find("chdir(").unwrap_or(text.len());
    let named = |from: &str, to: char| {
        let at = text[..moved].find(from)? + from.len();
        let name = &text[at..at + text[at..].find(to)?];
        name.starts_with('/').then(|| name.to_string())
    };
    named("AT_FDCWD<", '>').or_else(|| named("getcwd(\"", '"')).unwrap_or_default()
}

/// Whether a call makes tasks.
pub(super) fn makes_tasks(name: &str) -> bool {
    matches!(name, "clone" | "clone3" | "fork" | "vfork" | "clone2")
}

/// Calls that do not come back.
fn ends(name: &str) -> bool {
    matches!(name, "exit" | "exit_group" | "rt_sigreturn" | "sigreturn")
}
