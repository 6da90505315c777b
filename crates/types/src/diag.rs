//! Diagnostics: what is wrong, where it stands, what was expected, what to do next.
//!
//! Every parser of iosched reports through [`Diagnostic`], so a bad file always looks the same:
//!
//! ```text
//! error: unknown option "iodpeth"
//!  --> job.fio:7:1
//!   |
//! 7 | iodpeth=32
//!   | ^^^^^^^
//!   = help: did you mean "iodepth"?
//! ```

use std::fmt;

/// A problem at a place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as the user named it.
    pub file: String,
    /// Line, from 1; 0 when the problem has no line (a missing file, say).
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// How many characters the caret underlines (at least 1 is shown).
    pub width: usize,
    /// The text of the line.
    pub text: String,
    /// What is wrong.
    pub message: String,
    /// What to do next; empty when there is nothing to add.
    pub help: String,
}

impl Diagnostic {
    /// A problem with the file as a whole.
    pub fn file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Diagnostic {
            file: file.into(),
            line: 0,
            column: 0,
            width: 0,
            text: String::new(),
            message: message.into(),
            help: String::new(),
        }
    }

    /// A problem at a byte range of `source`, as the `toml` crate reports it.
    pub fn at_span(
        file: impl Into<String>,
        source: &str,
        span: std::ops::Range<usize>,
        message: impl Into<String>,
    ) -> Self {
        let start = floor_char(source, span.start.min(source.len()));
        let end = floor_char(source, span.end.clamp(start, source.len()));
        let line = source[..start].matches('\n').count() + 1;
        let from = source[..start].rfind('\n').map_or(0, |i| i + 1);
        let to = source[start..].find('\n').map_or(source.len(), |i| start + i);
        let mut d = Diagnostic::file(file, message);
        d.line = line;
        d.column = source[from..start].chars().count() + 1;
        d.width = source[start..end.min(to)].chars().count();
        d.text = source[from..to].trim_end_matches('\r').to_string();
        d
    }

    /// Adds advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

fn floor_char(s: &str, mut i: usize) -> usize {
    while !s.is_char_boundary(i) {
        i -= 1;
    }
    i
}

/// At most 120 characters of a line, so that a 1 GB line does not fill the terminal.
fn shorten(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(120)
        .map(|c| if c == '\t' || !c.is_control() { c } else { '\u{fffd}' })
        .collect();
    if text.chars().nth(120).is_some() {
        out.push('…');
    }
    out
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        if self.line == 0 {
            write!(f, " --> {}", self.file)?;
        } else {
            let n = self.line.to_string();
            let pad = " ".repeat(n.len());
            writeln!(f, "{pad}--> {}:{}:{}", self.file, self.line, self.column)?;
            writeln!(f, "{pad} |")?;
            writeln!(f, "{n} | {}", shorten(&self.text))?;
            let column = self.column.max(1);
            if column <= 120 {
                let indent: String = self
                    .text
                    .chars()
                    .take(column - 1)
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                write!(f, "{pad} | {indent}{}", "^".repeat(self.width.clamp(1, 121 - column)))?;
            } else {
                write!(f, "{pad} |")?;
            }
        }
        if !self.help.is_empty() {
            write!(f, "\n  = help: {}", self.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_at_the_word() {
        let src = "[global]\niodpeth=32\n";
        let d = Diagnostic::at_span("job.fio", src, 9..16, "unknown option \"iodpeth\"")
            .with_help("did you mean \"iodepth\"?");
        let expected = [
            "unknown option \"iodpeth\"",
            " --> job.fio:2:1",
            "  |",
            "2 | iodpeth=32",
            "  | ^^^^^^^",
            "  = help: did you mean \"iodepth\"?",
        ];
        assert_eq!(d.to_string(), expected.join("\n"));
    }

    #[test]
    fn survives_any_span() {
        for (a, b) in [(0, 0), (3, 1), (999, 1000), (1, 2)] {
            let _ = Diagnostic::at_span("f", "é\nö", a..b, "m").to_string();
        }
    }
}
