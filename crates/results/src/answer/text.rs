//! Answers in lines of text.

use super::Answer;

/// Stands for a space that no line ends at: that between a number and its percent sign.
const JOINED: char = '\u{a0}';

/// Longer names of goals have a line of their own.
const WIDEST: usize = 20;

/// Answers as text: a line per device, a line per goal, the small print below it.
#[must_use]
pub fn text(answers: &[Answer], columns: usize) -> String {
    let mut out = String::new();
    let mut last = None;
    let widest = answers.iter().map(|a| a.goal.chars().count()).filter(|n| *n <= WIDEST);
    let widest = widest.max().unwrap_or(WIDEST / 2);
    for a in answers {
        if last != Some(&a.device) {
            out.push_str(&format!("Answer for {}\n", crate::render::printable(&a.device)));
            last = Some(&a.device);
        }
        let indent = widest + 4;
        let goal = crate::render::printable(&a.goal);
        let mut head = format!("  {goal:widest$}  ");
        if goal.chars().count() > widest {
            out.push_str(&wrap("  ", indent, &goal, columns));
            head = " ".repeat(indent);
        }
        let said = format!("{}. [{}]", a.words, a.certainty);
        out.push_str(&wrap(&head, indent, &said, columns));
        for n in &a.notes {
            out.push_str(&wrap(&" ".repeat(indent), indent + 2, n, columns));
        }
    }
    out
}

/// Words behind a head, in lines of at most `columns`; further lines are indented.
#[must_use]
pub fn wrap(head: &str, indent: usize, text: &str, columns: usize) -> String {
    let mut out = head.to_string();
    let mut column = head.chars().count();
    let text = crate::render::printable(text).replace(" %", &format!("{JOINED}%"));
    for (i, word) in text.split(' ').enumerate() {
        let width = word.chars().count();
        if i > 0 && column + 1 + width > columns {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word.replace(JOINED, " "));
        column += width;
    }
    out.push('\n');
    out
}
