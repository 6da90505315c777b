//! What readers of lines share.

use std::io::Read;

use super::Reader;
use crate::event::Item;
use crate::lines::Lines;
use crate::tally::Reason;
use crate::trace::Tables;

/// What a line is.
pub(super) enum Line {
    /// A record.
    Item(Item),
    /// A line of the format that is of no use here.
    Other,
    /// A record that comes out later.
    Held,
    /// Not used, and why.
    Skip(Reason),
}

/// A reader of lines.
pub(super) trait Grammar {
    /// Reads a line.
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line;

    /// Looks at a line that begins with `#`.
    fn comment(&mut self, _line: &str, _tables: &mut Tables) {}

    /// An item that the lines so far have left over.
    fn pending(&mut self, _end: bool) -> Option<Item> {
        None
    }
}

/// A grammar over lines.
struct Text<'a, G> {
    lines: Lines<'a>,
    grammar: G,
    ended: bool,
}

/// A reader of a grammar.
pub(super) fn reader<'a, G: Grammar + 'a>(
    grammar: G,
    from: Vec<Box<dyn Read + 'a>>,
) -> Box<dyn Reader + 'a> {
    // Formats of lines have one file; `open` refuses more.
    let from = from.into_iter().next().unwrap_or_else(|| Box::new(std::io::empty()));
    Box::new(Text { lines: Lines::new(from), grammar, ended: false })
}

impl<G: Grammar> Reader for Text<'_, G> {
    fn next(&mut self, tables: &mut Tables) -> std::io::Result<Option<Item>> {
        loop {
            if let Some(item) = self.grammar.pending(self.ended) {
                return Ok(Some(item));
            }
            if self.ended {
                return Ok(None);
            }
            let Some(line) = self.lines.next()? else {
                self.ended = true;
                continue;
            };
            if line.starts_with('#') {
                self.grammar.comment(line, tables);
                continue;
            }
            if line.trim_ascii_start().is_empty() {
                continue;
            }
            tables.tally.records += 1;
            match self.grammar.line(line, tables) {
                Line::Item(item) => return Ok(Some(item)),
                Line::Held => {}
                Line::Other => tables.tally.other += 1,
                Line::Skip(reason) => {
                    let text = line.to_string();
                    let reason = match (self.lines.cut, self.lines.open_end) {
                        (true, _) => "the line is longer than 64 KiB",
                        (_, true) => "the file ends in the middle of a line",
                        _ => reason,
                    };
                    tables.tally.skip(reason, self.lines.number, &text);
                }
            }
        }
    }
}
