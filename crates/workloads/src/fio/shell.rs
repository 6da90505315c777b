//! A text of the shell as commands of words, as far as a shell splits it without running anything.

use std::collections::BTreeMap;
use std::rc::Rc;

use iosched_types::Diagnostic;

use super::cmdline::{at_fio, begins, is_fio, is_name};
use super::lexer::Line;
use super::pasted::Pasted;

/// A word of the shell and where it begins.
pub(super) struct Word {
    pub(super) text: String,
    pub(super) line: Line,
    pub(super) column: usize,
}

/// Splits a text into commands of words, as far as a shell does so without running anything.
pub(super) fn commands(file: &Rc<str>, text: &str) -> Vec<Vec<Word>> {
    let mut split = Split { done: vec![Vec::new()], word: None, quote: None, skip: false };
    let mut pasted = Pasted::of(text);
    for (i, raw) in text.split('\n').enumerate() {
        let raw = raw.strip_suffix('\r').unwrap_or(raw);
        let raw = if split.quote.is_none() && pasted.is_no_command(raw) { "" } else { raw };
        let line = Line::new(file, i + 1, raw);
        // Blanks behind the backslash come from pages; the line goes on all the same.
        let body = raw.trim_end();
        let (body, goes_on) = match body.strip_suffix('\\').or_else(|| of_windows(body)) {
            Some(body) if split.quote != Some('\'') => (body, true),
            _ => (body, false),
        };
        let comment = body.trim_start().starts_with('#') && !is_prompt(body);
        if !(comment && split.quote.is_none()) {
            split.line(body, &line);
        }
        if split.quote.is_some() && !goes_on {
            split.push(' ', &line, 1);
        } else {
            split.end_word();
            if !goes_on {
                split.end_command();
            }
        }
    }
    split.end_word();
    split.done.into_iter().flat_map(unquoted).collect()
}

/// A line that goes on below: it ends in `^` in the command prompt of Windows, in a grave accent in PowerShell.
fn of_windows(body: &str) -> Option<&str> {
    let rest = body.strip_suffix(['^', '`'])?;
    rest.ends_with([' ', '\t']).then_some(rest)
}

/// `sh -c 'cd /x && fio --name=a'`: the commands in quotes take the place of their word.
fn unquoted(mut words: Vec<Word>) -> Vec<Vec<Word>> {
    let inner = |w: &Word| {
        Some(quoted(w)).filter(|c| c.iter().any(|c| at_fio(c, &BTreeMap::new()).is_some()))
    };
    let Some((at, mut all)) = words.iter().enumerate().find_map(|(i, w)| Some((i, inner(w)?)))
    else {
        return vec![words];
    };
    let behind: Vec<Word> = words.split_off(at).into_iter().skip(1).collect();
    // `docker run x 'fio …'` is one command, `sh -c 'cd /x && fio …'` two: the other shell has the first of them.
    if let Some(first) = all.first_mut() {
        words.append(first);
        *first = words;
    }
    // Words behind the quoted ones belong to the other shell.
    all.extend(Some(behind).filter(|b| !b.is_empty()));
    all
}

/// The commands in a word that was quoted. Columns are those of the file.
fn quoted(word: &Word) -> Vec<Vec<Word>> {
    if !word.text.contains(char::is_whitespace) {
        return Vec::new();
    }
    let mut split = Split { done: vec![Vec::new()], word: None, quote: None, skip: false };
    split.line(&word.text, &word.line);
    split.end_word();
    split.done.iter_mut().flatten().for_each(|w| w.column += word.column);
    split.done
}

/// `# fio …`: the prompt of root, not a comment.
fn is_prompt(line: &str) -> bool {
    let rest = line.trim_start().trim_start_matches('#').trim_start();
    let rest = rest.strip_prefix("sudo ").unwrap_or(rest);
    let (first, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    is_fio(first) && rest.split_whitespace().next().is_some_and(begins)
}

struct Split {
    done: Vec<Vec<Word>>,
    word: Option<Word>,
    quote: Option<char>,
    /// Behind a redirection: the name of a file follows.
    skip: bool,
}

impl Split {
    fn line(&mut self, body: &str, line: &Line) {
        let mut chars = body.chars().enumerate().peekable();
        while let Some((i, c)) = chars.next() {
            let column = i + 1;
            match (self.quote, c) {
                (Some(q), c) if q == c => self.quote = None,
                (Some('"') | None, '\\') => {
                    let next = chars.next().map_or('\\', |(_, c)| c);
                    self.push(next, line, column);
                }
                (Some(_), c) => self.push(c, line, column),
                (None, '\'' | '"') => {
                    self.quote = Some(c);
                    self.begin(line, column);
                }
                (None, c) if c.is_whitespace() => self.end_word(),
                (None, ';' | '|' | '&') if self.word.as_ref().is_none_or(|w| w.text != "$") => {
                    self.end_word();
                    self.end_command();
                }
                (None, '>' | '<') => {
                    if self
                        .word
                        .as_ref()
                        .is_some_and(|w| ["1", "2", "&"].contains(&w.text.as_str()))
                    {
                        self.word = None;
                    }
                    self.end_word();
                    self.skip = true;
                    // `2>&1` is one redirection.
                    chars.next_if(|(_, c)| *c == '>' || *c == '&');
                }
                (None, c) => self.push(c, line, column),
            }
        }
    }

    fn begin(&mut self, line: &Line, column: usize) {
        self.word.get_or_insert_with(|| Word { text: String::new(), line: line.clone(), column });
    }

    fn push(&mut self, c: char, line: &Line, column: usize) {
        self.begin(line, column);
        if let Some(word) = &mut self.word {
            word.text.push(c);
        }
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.skip)
            && let Some(command) = self.done.last_mut()
        {
            command.push(word);
        }
    }

    fn end_command(&mut self) {
        self.skip = false;
        if self.done.last().is_some_and(|c| !c.is_empty()) {
            self.done.push(Vec::new());
        }
    }
}

/// `$NAME` by its value where the text sets it, else as `${NAME}`, which a job file has; `$pagesize` and the other
/// keywords stay.
pub(super) fn expanded(text: &str, assigned: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let braced = rest.strip_prefix('{').and_then(|r| r.split_once('}'));
        let plain =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (name, after) = braced.unwrap_or_else(|| rest.split_at(plain));
        match assigned.get(name) {
            Some(value) => out.push_str(value),
            None if !is_name(name) || ["pagesize", "mb_memory", "ncpus"].contains(&name) => {
                out.push('$');
                continue;
            }
            None => out.push_str(&format!("${{{name}}}")),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A command in a loop of the shell is as many commands as the loop has values.
pub(super) fn in_loop(commands: &[Vec<Word>], fio: &[Word]) -> Option<Diagnostic> {
    let before = commands.iter().take_while(|c| !std::ptr::eq(c.as_slice(), fio));
    // The last one that was not ended; `for x in 1 2; do fio …` has fio behind `do`.
    let mut open: Option<&Vec<Word>> = None;
    for command in before {
        let word = |i: usize| command.get(i).map_or("", |w| w.text.as_str());
        match word(0) {
            "for" if word(2) == "in" => open = Some(command),
            "while" | "until" => open = Some(command),
            "done" => open = None,
            _ => {}
        }
    }
    // `for %i in (1 2) do fio …` of Windows is one command.
    let own = fio.first().filter(|w| w.text == "for" && fio.get(2).is_some_and(|w| w.text == "in"));
    let first = open.and_then(|c| c.first()).or(own)?;
    let inside = own.is_some() || fio.first().is_some_and(|w| w.text == "do") || open.is_some();
    let variable = open.map_or(fio, |c| c.as_slice()).get(1).filter(|_| first.text == "for");
    let variable = variable.map_or("each value".into(), |w| format!("a value of {}", w.text));
    let message = "a loop of the shell runs fio more than once";
    inside.then(|| {
        first
            .line
            .diagnostic(first.column, first.text.chars().count(), message)
            .with_help(format!("a workload is one command: write it once for {variable}, and give both files to `iosched run`"))
    })
}

#[cfg(test)]
mod tests {
    use crate::fio::{JobSet, NoLookup, parse};

    fn set(text: &str) -> JobSet {
        parse("a.sh", text, &NoLookup, &|_| Err("none".into()), &[])
            .unwrap_or_else(|e| panic!("{text}: {}", e[0]))
    }

    /// Job by job what the same job file means; the places differ.
    fn same(command: &str, file: &str) {
        let (mut a, mut b) = (set(command), set(file));
        a.jobs.iter_mut().chain(&mut b.jobs).for_each(|j| j.place.clear());
        assert_eq!(a.jobs, b.jobs, "{command}");
    }

    /// As `--showcmd` and the counts of fio 3.33: options of the command are defaults, the file's own stay.
    #[test]
    fn a_job_file_on_the_command_line_is_read() {
        let file = "[global]\nruntime=3\nbs=8k\n[a]\nrw=read\nsize=1m\n";
        let include = |name: &str| match name {
            "job.fio" | "/srv/rr.fio" => Ok(file.to_string()),
            other => Err(format!("{other} is not there")),
        };
        let set = |text: &str| parse("a.sh", text, &NoLookup, &include, &[]);
        let whole = |text: &str| set(text).unwrap_or_else(|e| panic!("{text}: {}", e[0]));
        for (command, more) in [
            (
                "fio job.fio --iodepth=4 --bs=16k --ioengine=libaio",
                "iodepth=4
ioengine=libaio
",
            ),
            (
                "fio --iodepth=4 --ioengine=libaio job.fio",
                "iodepth=4
ioengine=libaio
",
            ),
            (
                "sudo fio --output-format=json /srv/rr.fio
",
                "",
            ),
            ("# fio job.fio", ""),
        ] {
            let (mut jobs, mut same) = (
                whole(command).jobs,
                whole(&format!(
                    "[global]
{more}{file}"
                ))
                .jobs,
            );
            jobs.iter_mut().chain(&mut same).for_each(|j| j.place.clear());
            assert_eq!(jobs, same, "{command}");
        }
        let jobs = whole("fio job.fio --name=x --rw=read --size=1m").jobs;
        assert_eq!(jobs.iter().map(|j| j.name.as_str()).collect::<Vec<_>>(), ["x", "a"]);
        let refused = |text: &str| set(text).unwrap_err()[0].to_string();
        assert!(refused("fio job.fio job.fio").contains("second job file"));
        assert!(refused("fio no.fio --bs=4k").contains("no.fio is not there"));
        let bad = refused("fio job.fio --bsx=4k");
        assert!(bad.contains("bsx") && bad.contains("a.sh:1"), "{bad}");
    }

    #[test]
    fn lines_go_on_as_on_windows() {
        let file = "[a]\nrw=read\nsize=1m\n";
        for end in ["^", "`"] {
            same(&format!("fio.exe --name=a {end}\r\n  --rw=read {end}\r\n  --size=1m\r\n"), file);
        }
    }

    #[test]
    fn a_loop_is_told() {
        for (text, word) in [
            ("for bs in 4k 64k; do fio --name=a --rw=read --bs=$bs --size=1m; done", "bs"),
            ("for d in 1 4\ndo\n  fio --name=a --rw=read --iodepth=$d --size=1m\ndone\n", "d"),
            ("for %i in (4k 64k) do fio --name=a --rw=read --bs=%i --size=1m", "%i"),
            ("while true; do fio --name=a --rw=read --size=1m; done", "each value"),
        ] {
            let e = parse("a.sh", text, &NoLookup, &|_| Err("none".into()), &[]).unwrap_err();
            let e = e[0].to_string();
            assert!(
                e.contains("loop of the shell") && e.contains(word) && e.contains("a.sh:1:1"),
                "{e}"
            );
        }
        set("for i in 1 2; do sync; done; fio --name=a --rw=read --size=1m");
    }
}
