//! Job file text to sections of options, includes followed.
//!
//! Rules of fio 3.33:
//!
//! * Blanks around a line are dropped.
//! * `#` or `;` anywhere begins a comment.
//! * A line `[name]` begins a section.
//! * `include PATH` reads a file. Its options belong to the current section, and it may not hold sections itself. fio
//!   looks it up from the working folder first, then from the folder of the including file.

use std::rc::Rc;

use iosched_types::Diagnostic;

/// Longest accepted line, in bytes.
const MAX_LINE: usize = 64 << 10;
/// Most text in one run, includes counted, in bytes.
const MAX_TEXT: usize = 4 << 20;
/// Deepest nesting of includes.
const MAX_DEPTH: usize = 16;
/// Most includes in one run.
const MAX_INCLUDES: usize = 1000;
/// Most diagnostics collected before giving up.
pub(crate) const MAX_ERRORS: usize = 20;
/// Characters of a line kept for messages.
const SHOWN: usize = 240;

/// One line of a file, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) file: Rc<str>,
    pub(crate) number: usize,
    pub(crate) text: Rc<str>,
}

impl Line {
    pub(crate) fn new(file: &Rc<str>, number: usize, text: &str) -> Self {
        let shown: String = text.chars().take(SHOWN).collect();
        Line { file: file.clone(), number, text: shown.into() }
    }

    /// A diagnostic at this line; the column counts characters from 1.
    pub(crate) fn diagnostic(
        &self,
        column: usize,
        width: usize,
        message: impl Into<String>,
    ) -> Diagnostic {
        let mut d = Diagnostic::file(&*self.file, message);
        d.line = self.number;
        d.column = column;
        d.width = width;
        d.text = self.text.to_string();
        d
    }

    /// `file:line`.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.file, self.number)
    }
}

/// `key` or `key=value` as written.
#[derive(Clone, Debug)]
pub(crate) struct RawOption {
    pub(crate) key: String,
    pub(crate) value: Option<String>,
    pub(crate) line: Line,
    /// Columns, from 1.
    pub(crate) key_column: usize,
    pub(crate) value_column: usize,
}

impl RawOption {
    pub(crate) fn at_key(&self, message: impl Into<String>) -> Diagnostic {
        self.line.diagnostic(self.key_column, self.key.chars().count(), message)
    }

    pub(crate) fn at_value(&self, message: impl Into<String>) -> Diagnostic {
        match &self.value {
            None => self.at_key(message),
            Some(v) => self.line.diagnostic(self.value_column, v.chars().count(), message),
        }
    }
}

/// A `[section]` and what stands in it.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) line: Line,
    pub(crate) options: Vec<RawOption>,
}

/// How the lexer gets included files.
pub(crate) type Include<'a> = &'a dyn Fn(&str) -> Result<String, String>;

struct Lexer<'a> {
    include: Include<'a>,
    includes: usize,
    bytes: usize,
    sections: Vec<Section>,
    errors: Vec<Diagnostic>,
}

/// Cuts `text` into sections.
pub(crate) fn lex(
    file: &str,
    text: &str,
    include: Include<'_>,
) -> Result<Vec<Section>, Vec<Diagnostic>> {
    let mut lexer =
        Lexer { include, includes: 0, bytes: 0, sections: Vec::new(), errors: Vec::new() };
    lexer.file(text, &mut vec![file.to_string()]);
    if lexer.errors.is_empty() { Ok(lexer.sections) } else { Err(lexer.errors) }
}

impl Lexer<'_> {
    fn error(&mut self, d: Diagnostic) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(d);
        }
    }

    fn file(&mut self, text: &str, chain: &mut Vec<String>) {
        let name: Rc<str> = chain.last().map_or("", String::as_str).into();
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_TEXT {
            let message = format!("{} bytes of job file; 4 MiB are the limit", self.bytes);
            return self.error(Diagnostic::file(&*name, message));
        }
        if text.starts_with('\u{feff}') {
            let d =
                Line::new(&name, 1, "").diagnostic(1, 1, "the file begins with a byte order mark");
            let help = "fio does not skip it either; save the file as plain UTF-8";
            return self.error(d.with_help(help));
        }
        for (i, raw) in text.split('\n').enumerate() {
            if self.errors.len() >= MAX_ERRORS {
                return;
            }
            let raw = raw.strip_suffix('\r').unwrap_or(raw);
            let line = Line::new(&name, i + 1, raw);
            if raw.len() > MAX_LINE {
                let message = format!("the line has {} bytes; 64 KiB are the limit", raw.len());
                self.error(line.diagnostic(1, 1, message));
            } else if let Some(at) = raw.chars().position(|c| c.is_control() && c != '\t') {
                let message = "a control character: this is not a job file";
                self.error(line.diagnostic(at + 1, 1, message));
                return;
            } else {
                self.line(raw, &line, chain);
            }
        }
    }

    fn line(&mut self, raw: &str, line: &Line, chain: &mut Vec<String>) {
        let body = raw.split(['#', ';']).next().unwrap_or("");
        let start = body.trim_start();
        let column = body.chars().count() - start.chars().count() + 1;
        let body = start.trim_end();
        if body.is_empty() {
        } else if body.starts_with('[') {
            self.section(body, line, column, chain);
        } else if let Some(path) = include_path(body) {
            self.include(path, line, column, chain);
        } else {
            self.option(body, line, column);
        }
    }

    fn section(&mut self, body: &str, line: &Line, column: usize, chain: &[String]) {
        let width = body.chars().count();
        if chain.len() > 1 {
            let d = line.diagnostic(column, width, "an included file may not hold sections");
            return self.error(
                d.with_help(format!("included by {}", chain[..chain.len() - 1].join(" → "))),
            );
        }
        let name = match body[1..].split_once(']') {
            Some((name, "")) if !name.trim().is_empty() => name.trim(),
            Some((_, "")) => {
                return self.error(line.diagnostic(column, width, "the section has no name"));
            }
            Some((name, _)) => {
                let at = column + name.chars().count() + 2;
                let message = "text behind the section's name";
                return self.error(line.diagnostic(at, width.saturating_sub(at - column), message));
            }
            None => {
                let d = line.diagnostic(column, width, "the section's name has no end");
                return self.error(d.with_help("write [name]"));
            }
        };
        self.sections.push(Section { name: name.into(), line: line.clone(), options: Vec::new() });
    }

    fn option(&mut self, body: &str, line: &Line, column: usize) {
        let (key, value) = body.split_once('=').map_or((body, None), |(k, v)| (k, Some(v)));
        let value_column = column + key.chars().count() + 1;
        let option = RawOption {
            key: key.trim_end().to_string(),
            value: value.map(str::to_string),
            line: line.clone(),
            key_column: column,
            value_column,
        };
        match self.sections.last_mut() {
            Some(section) => section.options.push(option),
            None => {
                let d = option.at_key("an option outside of a section");
                let help = "put a section such as [global] or [job] before it";
                self.error(d.with_help(help));
            }
        }
    }

    fn include(&mut self, path: &str, line: &Line, column: usize, chain: &mut Vec<String>) {
        let at = column + "include ".len();
        let width = path.chars().count();
        let fail = |message: String| line.diagnostic(at, width, message);
        if path.is_empty() {
            return self.error(line.diagnostic(column, 7, "include needs a file name"));
        }
        self.includes += 1;
        if self.includes > MAX_INCLUDES {
            return self.error(fail(format!("more than {MAX_INCLUDES} includes")));
        }
        if chain.len() > MAX_DEPTH {
            return self
                .error(fail(format!("includes are nested too deeply: {}", chain.join(" → "))));
        }
        let (found, text) = match self.open(path, chain) {
            Ok(found) => found,
            Err(reason) => {
                return self.error(fail(format!("cannot include \"{path}\": {reason}")));
            }
        };
        if chain.contains(&found) {
            let circle = format!("circular include: {} → {found}", chain.join(" → "));
            return self.error(fail(circle));
        }
        chain.push(found);
        self.file(&text, chain);
        chain.pop();
    }

    /// As given, then from the folder of the including file.
    fn open(&self, path: &str, chain: &[String]) -> Result<(String, String), String> {
        let first = match (self.include)(path) {
            Ok(text) => return Ok((path.to_string(), text)),
            Err(e) => e,
        };
        let folder = chain.last().and_then(|f| f.rsplit_once('/')).map(|(dir, _)| dir);
        match folder {
            Some(dir) if !path.starts_with('/') => {
                let joined = format!("{dir}/{path}");
                (self.include)(&joined).map(|text| (joined, text)).map_err(|_| first)
            }
            _ => Err(first),
        }
    }
}

/// The path of an `include` line.
fn include_path(body: &str) -> Option<&str> {
    let rest = body.strip_prefix("include")?;
    match rest.chars().next() {
        None => Some(""),
        Some(c) if c.is_whitespace() => Some(rest.trim()),
        Some(_) => None,
    }
}
