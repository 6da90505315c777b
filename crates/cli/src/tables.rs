//! Text layout shared by the commands: as wide as the terminal, from 40 to 200 columns.

use std::io::IsTerminal;

use crate::fail::Outcome;
use crate::files::print;

/// Columns where there is no terminal.
const COLUMNS: usize = 80;
/// Narrower terminals get lines that wrap, wider ones space at the right.
const RANGE: (usize, usize) = (40, 200);
/// Help texts are no wider than this.
const HELP: usize = 100;
/// Sentences are read in lines no longer than this.
const SENTENCE: usize = 120;

/// Columns of the terminal that is written to; 80 where there is none, or where it does not know.
pub(crate) fn columns() -> usize {
    terminal().map_or(COLUMNS, |c| c.clamp(RANGE.0, RANGE.1))
}

/// What the terminal that is written to says of its width.
fn terminal() -> Option<usize> {
    let stdout = std::io::stdout();
    // The rows do not matter: terminals of scripts often have none.
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
    size.map(|s| usize::from(s.ws_col)).filter(|c| *c > 0)
}

/// How wide help texts are, where a terminal says it.
pub(crate) fn help_columns() -> Option<usize> {
    terminal().map(|columns| columns.min(HELP))
}

/// How wide sentences are in so many columns.
pub(crate) fn prose(columns: usize) -> usize {
    columns.min(SENTENCE)
}

/// Words wrapped behind a first column that is `indent` wide: `name      text text\n          text`.
pub(crate) fn entry(name: &str, indent: usize, text: &str) -> String {
    entry_in(columns(), name, indent, text)
}

fn entry_in(columns: usize, name: &str, indent: usize, text: &str) -> String {
    let columns = prose(columns);
    // On a narrow terminal the text has two thirds.
    let indent = indent.min(columns / 3);
    let mut out = format!("{name:<indent$}");
    if name.chars().count() >= indent {
        out.push('\n');
        out.push_str(&" ".repeat(indent));
    }
    let mut column = indent;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > indent && column + 1 + width > columns {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Prints text that was laid out for 80 columns; on a narrower terminal its lines wrap between words.
pub(crate) fn print_fitted(text: &str) -> Outcome {
    print(&fit(text, columns()))
}

/// Lines of more than `columns` broken between words (between characters where a word is as long), what follows being
/// indented by two more than the line.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let indent = line.chars().take_while(|c| *c == ' ').count().min(columns / 2);
        let mut rest: Vec<char> = line.chars().collect();
        let mut first = true;
        loop {
            let lead = if first { 0 } else { indent + 2 };
            let room = columns.saturating_sub(lead).max(1);
            out.push_str(&" ".repeat(lead));
            if rest.len() <= room {
                out.extend(&rest);
                break;
            }
            let from = if first { indent + 1 } else { 1 };
            let space = (from.min(room)..=room).rev().find(|i| rest[*i] == ' ');
            let end = space.unwrap_or(room);
            let piece: String = rest[..end].iter().collect();
            out.push_str(piece.trim_end());
            out.push('\n');
            let next = rest[end..].iter().position(|c| *c != ' ').map_or(rest.len(), |i| end + i);
            rest.drain(..next);
            first = false;
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_behind_its_name() {
        for columns in [40, 80, 120] {
            let text = entry_in(columns, "noop", 6, &"word ".repeat(60));
            let widest = text.lines().map(|l| l.chars().count()).max();
            assert!(widest <= Some(columns) && widest > Some(columns - 6), "{text}");
        }
        let text = entry_in(80, "noop", 6, &"word ".repeat(30));
        assert!(
            text.starts_with("noop  word")
                && text.lines().nth(1).unwrap().starts_with("      word")
        );
        assert_eq!(entry_in(80, "a-long-name", 4, "x"), "a-long-name\n    x\n");
    }

    #[test]
    fn long_lines_are_broken_and_lose_nothing() {
        let text =
            "short\n  name      some words that go on and on\n\nverylongwordwithoutanyspace ü\n";
        for columns in [10, 20, 40, 80] {
            let fitted = fit(text, columns);
            assert!(fitted.lines().all(|l| l.chars().count() <= columns), "{columns}\n{fitted}");
            let letters = |s: &str| s.split_whitespace().collect::<String>();
            assert_eq!(letters(&fitted), letters(text));
        }
        assert_eq!(fit(text, 80), text);
        assert_eq!(fit("  a bb ccc\n", 7), "  a bb\n    ccc\n");
    }
}
