//! The lines of a log, out of the forms in which logs are passed on: quoted (`> `), in Markdown, from a terminal on which strace
//! and the keyboard write into its lines, with the table of `-C`.

use std::borrow::Cow;

use super::line::{self, Said};

/// Lines that are looked at to recognise a log and how it is quoted.
pub(super) const LOOKED_AT: usize = 200;
/// The end of a call whose task is let go.
const DETACHED: &str = "<detached ...>";

/// A line.
#[derive(Debug, PartialEq)]
pub(super) struct Row<'a> {
    /// Its number in the file; of a line that was interrupted that of its end.
    pub(super) number: usize,
    pub(super) text: Cow<'a, str>,
    /// Tasks that strace says to follow from here on.
    pub(super) attached: Vec<u32>,
}

/// The lines of a log.
#[derive(Debug, Default)]
pub(super) struct Rows<'a> {
    pub(super) rows: Vec<Row<'a>>,
    /// There is a table of `-c` or `-C`.
    pub(super) table: bool,
    /// A line that is interrupted, and those who are attached inside of it.
    carried: String,
    attached: Vec<u32>,
    /// strace lets go of the task that made the call of that line.
    lets_go: bool,
}

impl<'a> Rows<'a> {
    /// Reads so many lines of a text.
    pub(super) fn of(text: &'a str, most: usize) -> Rows<'a> {
        let depth = depth(text);
        let unquoted = |l| if depth == 0 { Some(l) } else { stripped(l, depth) };
        // Around the code of a Markdown text is prose.
        let fenced = text.lines().take(most).filter_map(unquoted).any(is_fence);
        let mut out = Rows::default();
        let (mut inside, mut rules, mut number) = (false, None, 0);
        let mut lines = text.lines().enumerate().take(most).peekable();
        while let Some((i, raw)) = lines.next() {
            number = i + 1;
            let Some(line) = unquoted(raw) else { continue };
            if fenced && (is_fence(line) || !inside) {
                inside ^= is_fence(line);
                continue;
            }
            if lines.peek().and_then(|(_, l)| unquoted(l)).is_some_and(is_rule) && !is_call(line) {
                rules.get_or_insert(0);
            }
            match rules {
                Some(seen) if !is_call(line) => {
                    out.table = true;
                    // The sums stand below the second rule.
                    let more = is_rule(line);
                    rules = (more || seen < 2).then_some(seen + u32::from(more));
                }
                _ => {
                    rules = None;
                    out.line(number, line);
                }
            }
        }
        out.let_go(number);
        if !out.carried.is_empty() {
            out.push(number, "");
        }
        out
    }

    fn line(&mut self, number: usize, line: &'a str) {
        if self.lets_go && !line.trim_start().starts_with(DETACHED) && notice(line).is_none() {
            self.let_go(number - 1);
        }
        match notice(line) {
            Some(n) => {
                self.carried += n.begun.trim_end_matches("^C");
                self.attached.extend((!n.detached).then_some(n.pid));
                self.lets_go |= n.detached && !self.carried.is_empty();
                if self.carried.is_empty() {
                    self.push(number, "");
                }
            }
            // The line that was interrupted was whole.
            None if self.carried.is_empty() && line.trim() == DETACHED => {}
            None => self.push(number, line),
        }
    }

    /// The call of a task that is not traced any more has no end.
    fn let_go(&mut self, number: usize) {
        if self.lets_go {
            self.push(number, DETACHED);
        }
    }

    fn push(&mut self, number: usize, line: &'a str) {
        let text = match self.carried.is_empty() {
            true => without_echo(line),
            false => {
                Cow::Owned(without_echo(&(std::mem::take(&mut self.carried) + line)).into_owned())
            }
        };
        self.lets_go = false;
        self.rows.push(Row { number, text, attached: std::mem::take(&mut self.attached) });
    }
}

/// How many `>` stand before the calls.
fn depth(text: &str) -> usize {
    let mut calls = [0usize; 5];
    for line in text.lines().take(LOOKED_AT) {
        let at = |depth: &usize| stripped(line, *depth).is_some_and(is_call);
        if let Some(depth) = (0..calls.len()).find(at) {
            calls[depth] += 1;
        }
    }
    (0..calls.len()).rev().max_by_key(|depth| calls[*depth]).unwrap_or(0)
}

/// A line without so many `>`; `None` where there are fewer.
fn stripped(line: &str, depth: usize) -> Option<&str> {
    (0..depth).try_fold(line, |line, _| line.trim_start().strip_prefix('>'))
}

fn is_call(line: &str) -> bool {
    let said = line::read(line).map(|l| l.said);
    matches!(said, Ok(Said::Whole { .. } | Said::Begun { .. } | Said::Resumed { .. }))
}

/// Whether a line begins or ends code in a Markdown text.
fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// The rule of a table: `------ -----------`.
fn is_rule(line: &str) -> bool {
    let column = |word: &str| word.len() > 3 && word.bytes().all(|b| b == b'-');
    line.trim_start().starts_with("----")
        && line.split_whitespace().count() > 1
        && line.split_whitespace().all(column)
}

/// `^C` where the terminal shows the keys that were pressed: outside of strings.
fn without_echo(line: &str) -> Cow<'_, str> {
    if !line.contains("^C") {
        return Cow::Borrowed(line);
    }
    let (mut out, mut string, mut chars) = (String::new(), false, line.chars().peekable());
    while let Some(c) = chars.next() {
        if c == '^' && !string && chars.next_if_eq(&'C').is_some() {
            continue;
        }
        out.push(c);
        string ^= c == '"';
        if c == '\\' && string {
            out.extend(chars.next());
        }
    }
    Cow::Owned(out)
}

/// What strace says of a task on a terminal, at times inside of a line: `clone(…strace: Process 7 attached`. strace before 4.9
/// says it without its name.
struct Notice<'a> {
    /// What stood before it.
    begun: &'a str,
    pid: u32,
    detached: bool,
}

fn notice(line: &str) -> Option<Notice<'_>> {
    let line = line.trim_end();
    let (rest, detached) = match line.strip_suffix(" attached") {
        Some(rest) => (rest, false),
        None => (line.strip_suffix(" detached")?, true),
    };
    let at = rest.rfind("Process ")?;
    let pid = rest[at + "Process ".len()..].parse().ok()?;
    let begun = rest[..at].strip_suffix("strace: ").unwrap_or(&rest[..at]);
    // Only calls wait for the rest of their line.
    let begun = if begun.contains('(') { begun } else { "" };
    Some(Notice { begun, pid, detached })
}
