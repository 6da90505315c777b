//! Text layout shared by the commands.

/// Columns of the terminal that text is laid out for.
const COLUMNS: usize = 80;

/// Words wrapped behind a first column that is `indent` wide: `name      text text\n          text`.
pub(crate) fn entry(name: &str, indent: usize, text: &str) -> String {
    let mut out = format!("{name:<indent$}");
    if name.chars().count() >= indent {
        out.push('\n');
        out.push_str(&" ".repeat(indent));
    }
    let mut column = indent;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > indent && column + 1 + width > COLUMNS {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_behind_its_name() {
        let text = entry("noop", 6, &"word ".repeat(30));
        assert!(text.lines().all(|l| l.chars().count() <= COLUMNS));
        assert!(
            text.starts_with("noop  word")
                && text.lines().nth(1).unwrap().starts_with("      word")
        );
        assert_eq!(entry("a-long-name", 4, "x"), "a-long-name\n    x\n");
    }
}
