//! A file of rules as lines of tokens. Lines that udev ignores are ignored here, with the reason.

use std::collections::BTreeMap;

use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// `==`
    Is,
    /// `!=`
    IsNot,
    /// `=`
    Set,
    /// `:=`, which protects no attribute and no property.
    Final,
    /// `+=`
    Add,
    /// `-=`
    Remove,
}

/// `KEY{attribute} op "value"`.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) key: String,
    pub(crate) attribute: String,
    pub(crate) op: Op,
    pub(crate) value: String,
    /// `i"…"`: compared without regard to case.
    pub(crate) any_case: bool,
    /// As it is written.
    pub(crate) text: String,
}

/// A rule.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) tokens: Vec<Token>,
}

/// A file of rules.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// As the user named it.
    pub(crate) path: String,
    /// The name that it is sorted by.
    pub(crate) name: String,
    pub(crate) lines: Vec<Line>,
    labels: BTreeMap<String, usize>,
}

const KEYS: &[&str] = &[
    "ACTION",
    "DEVPATH",
    "KERNEL",
    "KERNELS",
    "NAME",
    "SYMLINK",
    "SUBSYSTEM",
    "SUBSYSTEMS",
    "DRIVER",
    "DRIVERS",
    "ATTR",
    "ATTRS",
    "SYSCTL",
    "ENV",
    "CONST",
    "TAG",
    "TAGS",
    "TEST",
    "PROGRAM",
    "RESULT",
    "IMPORT",
    "OPTIONS",
    "OWNER",
    "GROUP",
    "MODE",
    "SECLABEL",
    "RUN",
    "GOTO",
    "LABEL",
];

/// Keys that only match: `=` stands for `==`.
const MATCHES: &[&str] = &[
    "ACTION",
    "DEVPATH",
    "KERNEL",
    "KERNELS",
    "SUBSYSTEM",
    "SUBSYSTEMS",
    "DRIVER",
    "DRIVERS",
    "ATTRS",
    "CONST",
    "TAGS",
    "TEST",
    "PROGRAM",
    "RESULT",
    "IMPORT",
];

impl Line {
    /// Whether it has a key with a value.
    pub(crate) fn has(&self, key: &str, value: &str) -> bool {
        self.tokens.iter().any(|t| t.key == key && t.value == value)
    }
}

impl File {
    /// The line of a label; of several the last.
    pub(crate) fn label(&self, name: &str) -> Option<usize> {
        self.labels.get(name).copied()
    }
}

impl Token {
    /// Why udev takes it for no token.
    fn misuse(&self) -> Option<&'static str> {
        // These are run or looked at whatever the operator is.
        let runs = ["TEST", "PROGRAM", "IMPORT"].contains(&self.key.as_str());
        match self.op {
            Op::Is | Op::IsNot => None,
            _ if MATCHES.contains(&self.key.as_str()) && !runs => {
                Some("this key is compared: == or != belongs here")
            }
            Op::Remove if ["ATTR", "ENV", "SYSCTL"].contains(&self.key.as_str()) => {
                Some("nothing can be taken away from this key with -=")
            }
            _ => None,
        }
    }

    /// Whether it is asked before anything of its line is done.
    pub(crate) fn is_match(&self) -> bool {
        matches!(self.op, Op::Is | Op::IsNot) || MATCHES.contains(&self.key.as_str())
    }
}

/// Reads a file. Problems are of lines that udev leaves out.
pub(crate) fn parse(path: &str, text: &str, problems: &mut Vec<Diagnostic>) -> File {
    let name = path.rsplit('/').next().unwrap_or(path).to_string();
    let mut file = File { path: path.into(), name, lines: Vec::new(), labels: BTreeMap::new() };
    let mut joined = String::new();
    let mut first = 0;
    for (i, raw) in text.lines().enumerate() {
        // A comment has no next line, and ends none.
        if raw.trim_start().starts_with('#') {
            continue;
        }
        if joined.is_empty() {
            first = i + 1;
        }
        if let Some(part) = raw.strip_suffix('\\') {
            joined.push_str(part);
            continue;
        }
        joined.push_str(raw);
        let line = std::mem::take(&mut joined);
        if line.trim().is_empty() {
            continue;
        }
        match tokens(&line) {
            Ok(tokens) => file.lines.push(Line { number: first, tokens }),
            Err((column, message, help)) => {
                let mut d = Diagnostic::file(path, message).with_help(help);
                (d.line, d.column, d.width) = (first, column + 1, 1);
                d.text = line;
                problems.push(d);
            }
        }
    }
    if !joined.is_empty() {
        let mut d = Diagnostic::file(path, "the last line ends with a backslash: udev ignores it");
        (d.line, d.column, d.width, d.text) = (first, 1, 1, joined);
        problems.push(d);
    }
    for line in &file.lines {
        for t in line.tokens.iter().filter(|t| t.key == "LABEL") {
            file.labels.insert(t.value.clone(), line.number);
        }
    }
    gotos(&file, problems);
    file
}

/// `GOTO`s to a label that does not come later are dropped: the lines behind them run.
fn gotos(file: &File, problems: &mut Vec<Diagnostic>) {
    for line in &file.lines {
        let Some(goto) = line.tokens.iter().find(|t| t.key == "GOTO").map(|t| &t.value) else {
            continue;
        };
        let why = match file.label(goto) {
            Some(at) if at > line.number => continue,
            Some(_) => "stands before it, and GOTO only goes forward",
            None => "is not in this file",
        };
        let message = format!("GOTO=\"{goto}\" has no effect: its label {why}; the next lines run");
        let mut d = Diagnostic::file(&file.path, message);
        d.help = did_you_mean(goto, file.labels.keys().map(String::as_str));
        d.line = line.number;
        d.text = line.tokens.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join(", ");
        (d.column, d.width) = (d.text.find("GOTO").unwrap_or(0) + 1, 4);
        problems.push(d);
    }
}

/// Column, message, help.
type Problem = (usize, String, String);

fn tokens(line: &str) -> Result<Vec<Token>, Problem> {
    let chars: Vec<char> = line.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        while at < chars.len() && (chars[at].is_whitespace() || chars[at] == ',') {
            at += 1;
        }
        if at >= chars.len() {
            return Ok(out);
        }
        if chars[at] == '#' {
            let help = "a comment needs a line of its own";
            return Err((
                at,
                "udev ignores this line: \"#\" begins no comment here".into(),
                help.into(),
            ));
        }
        let (token, next) = token(&chars, at)?;
        out.push(token);
        at = next;
    }
}

fn token(chars: &[char], start: usize) -> Result<(Token, usize), Problem> {
    let ignored = |at: usize, what: &str, help: &str| -> Problem {
        (at, format!("udev ignores this line: {what}"), help.into())
    };
    let form = "a rule is KEY==\"value\" or KEY{attribute}=\"value\", separated by commas";
    let mut at = start;
    while at < chars.len() && (chars[at].is_ascii_alphabetic() || chars[at] == '_') {
        at += 1;
    }
    let key: String = chars[start..at].iter().collect();
    if !KEYS.contains(&key.as_str()) {
        let near = did_you_mean(&key, KEYS.iter().copied());
        let help = if near.is_empty() { form.to_string() } else { near };
        return Err(ignored(start, &format!("\"{key}\" is no key of udev"), &help));
    }
    let mut attribute = String::new();
    if chars.get(at) == Some(&'{') {
        let Some(end) = chars[at..].iter().position(|c| *c == '}') else {
            return Err(ignored(at, "\"{\" has no end", form));
        };
        attribute = chars[at + 1..at + end].iter().collect();
        at += end + 1;
    }
    while chars.get(at).is_some_and(|c| c.is_whitespace()) {
        at += 1;
    }
    let pair: String = chars[at..].iter().take(2).collect();
    let (op, length) = match pair.as_str() {
        "==" => (Op::Is, 2),
        "!=" => (Op::IsNot, 2),
        "+=" => (Op::Add, 2),
        "-=" => (Op::Remove, 2),
        ":=" => (Op::Final, 2),
        p if p.starts_with('=') => (Op::Set, 1),
        _ => return Err(ignored(at, "an operator is missing (==, !=, =, +=, -=, :=)", form)),
    };
    at += length;
    while chars.get(at).is_some_and(|c| c.is_whitespace()) {
        at += 1;
    }
    // e"…" has escapes, i"…" is compared without regard to case.
    let any_case = chars.get(at) == Some(&'i');
    if matches!(chars.get(at), Some('e' | 'i')) && chars.get(at + 1) == Some(&'"') {
        at += 1;
    }
    if chars.get(at) != Some(&'"') {
        return Err(ignored(at, "the value has no quotes", form));
    }
    let open = at;
    at += 1;
    let mut value = String::new();
    loop {
        match chars.get(at) {
            Some('"') => break,
            Some('\\') if chars.get(at + 1) == Some(&'"') => {
                value.push('"');
                at += 2;
            }
            Some(c) => {
                value.push(*c);
                at += 1;
            }
            None => return Err(ignored(open, "the value's quotes do not end", form)),
        }
    }
    let text = chars[start..=at].iter().collect();
    let token = Token { key, attribute, op, value, any_case, text };
    match token.misuse() {
        Some(what) => Err(ignored(start, what, form)),
        None => Ok((token, at + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tokens_and_what_udev_ignores() {
        let mut problems = Vec::new();
        let text = "# a comment \\\nACTION==\"add|change\", KERNEL==\"sd[a-z]\" \\\n , ATTR{queue/scheduler}=\"bfq\"\n\n\
                    KERNEL==\"sd*\", ATRR{queue/scheduler}=\"bfq\"\nKERNEL==sda\nGOTO=\"edn\"\nLABEL=\"end\"\n";
        let file = parse("/etc/udev/rules.d/60-x.rules", text, &mut problems);
        assert_eq!((file.name.as_str(), file.lines.len()), ("60-x.rules", 3));
        assert_eq!(file.lines[0].number, 2);
        let last = &file.lines[0].tokens[2];
        assert_eq!(
            (last.key.as_str(), last.attribute.as_str(), last.op),
            ("ATTR", "queue/scheduler", Op::Set)
        );
        let said: Vec<(usize, usize, &str)> =
            problems.iter().map(|d| (d.line, d.column, d.message.as_str())).collect();
        assert_eq!(said[0], (5, 16, "udev ignores this line: \"ATRR\" is no key of udev"));
        assert!(problems[0].help.contains("ATTR"), "{}", problems[0].help);
        assert_eq!(said[1], (6, 9, "udev ignores this line: the value has no quotes"));
        assert!(said[2].2.contains("GOTO=\"edn\" has no effect"), "{said:?}");
        assert!(problems[2].help.contains("end"));
    }
}
