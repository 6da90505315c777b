//! Sums of the house that every match takes apart in full: another kind then shows each place that needs an answer.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads the files it checks"
)]

use std::path::{Path, PathBuf};

/// The enums.
const SUMS: [&str; 2] = ["Work", "BackendKind"];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The number of `#` of a raw string that begins here.
fn raw(from: &[char]) -> Option<usize> {
    let rest = from.strip_prefix(&['r'])?;
    let marks = rest.iter().take_while(|c| **c == '#').count();
    (rest.get(marks) == Some(&'"')).then_some(marks)
}

fn after_word(out: &[char]) -> bool {
    out.last().is_some_and(|c| c.is_alphanumeric() || *c == '_')
}

/// Rust text without comments, and with nothing in its strings.
fn code(text: &str) -> Vec<char> {
    let from: Vec<char> = text.chars().collect();
    let (mut out, mut i) = (Vec::new(), 0);
    let is = |i: usize, c: char| from.get(i) == Some(&c);
    while let Some(&c) = from.get(i) {
        if c == '/' && is(i + 1, '/') {
            while i < from.len() && !is(i, '\n') {
                i += 1;
            }
        } else if let Some(marks) = raw(&from[i..]).filter(|_| !after_word(&out)) {
            let end: Vec<char> = std::iter::once('"').chain(vec!['#'; marks]).collect();
            i += marks + 2;
            while i < from.len() && !from[i..].starts_with(&end) {
                i += 1;
            }
            i += end.len();
        } else if c == '"' {
            i += 1;
            while i < from.len() && !is(i, '"') {
                i += if is(i, '\\') { 2 } else { 1 };
            }
            i += 1;
        } else if c == '\'' && (is(i + 1, '\\') || is(i + 2, '\'')) {
            i += if is(i + 1, '\\') { 3 } else { 2 };
            while i < from.len() && !is(i, '\'') {
                i += 1;
            }
            i += 1;
        } else {
            out.push(c);
            i += 1;
        }
    }
    out
}

/// The end of what opens at `at`, behind its closing bracket.
fn behind(code: &[char], at: usize) -> usize {
    let mut depth = 0;
    for (i, c) in code.iter().enumerate().skip(at) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    code.len()
}

/// Up to what stands at this level, behind brackets that open on the way.
fn until(code: &[char], mut at: usize, stop: &str) -> usize {
    let stop: Vec<char> = stop.chars().collect();
    while at < code.len() && !code[at..].starts_with(&stop) {
        at = if "([{".contains(code[at]) { behind(code, at) } else { at + 1 };
    }
    at
}

/// The patterns of a match, whose body opens at `at`.
fn patterns(code: &[char], at: usize) -> Vec<String> {
    let body = &code[at + 1..behind(code, at) - 1];
    let (mut found, mut i) = (Vec::new(), 0);
    loop {
        let arrow = until(body, i, "=>");
        if arrow >= body.len() {
            return found;
        }
        let pattern: String = body[i..arrow].iter().collect();
        found.push(pattern.trim_start_matches(|c: char| c == ',' || c.is_whitespace()).to_string());
        i = arrow + 2;
        while body.get(i).is_some_and(|c| c.is_whitespace()) {
            i += 1;
        }
        i = if body.get(i) == Some(&'{') { behind(body, i) } else { until(body, i, ",") };
    }
}

/// Places where a sum is not taken apart in full.
fn partial(text: &str, sum: &str) -> Vec<String> {
    let code = code(text);
    let all: String = code.iter().collect();
    let mut found = Vec::new();
    let variant = format!("{sum}::");
    let names = |pattern: &str| {
        pattern
            .match_indices(&variant)
            .any(|(at, _)| !pattern[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let starts = |word: &[char]| -> Vec<usize> {
        (0..code.len()).filter(|i| code[*i..].starts_with(word)).collect()
    };
    for at in starts(&['m', 'a', 't', 'c', 'h', ' ']) {
        let open = (at..code.len()).find(|i| code[*i] == '{').unwrap_or(code.len());
        let arms = if open < code.len() { patterns(&code, open) } else { Vec::new() };
        let whatever = |p: &&String| {
            let first = p.trim_start_matches('(').split([' ', ',', '\n']).next().unwrap();
            !first.is_empty() && !first.contains(|c: char| c != '_' && !c.is_lowercase())
        };
        if arms.iter().any(|p| names(p)) {
            found.extend(arms.iter().filter(whatever).cloned());
        }
    }
    for at in starts(&['m', 'a', 't', 'c', 'h', 'e', 's', '!', '(']) {
        let inside: String = code[at..behind(&code, at + 8)].iter().collect();
        found.extend(names(&inside).then_some(inside));
    }
    let only = format!("let {variant}");
    found.extend(all.lines().filter(|l| l.contains(&only)).map(|l| l.trim().to_string()));
    found
}

/// Comparisons with one of a sum.
fn compared(text: &str, sum: &str) -> Vec<String> {
    let text: String = code(text).into_iter().collect();
    let of = |word: &str| [format!("== {word}::"), format!("!= {word}::")];
    let lines = text.lines().filter(|l| of(sum).iter().any(|c| l.contains(c)));
    lines.map(|l| l.trim().to_string()).collect()
}

/// What a backend is like says its row of traits: a place that asks for one of them forgets the next.
#[test]
fn backends_are_asked_for_their_traits() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    let tests = |f: &Path| f.iter().any(|part| part == "tests" || part == "tests.rs");
    for file in files.iter().filter(|f| !tests(f)) {
        let text = std::fs::read_to_string(file).unwrap();
        let wrong = compared(&text, "BackendKind");
        assert!(wrong.is_empty(), "{}: ask BackendKind::traits(): {wrong:?}", file.display());
    }
    assert_eq!(compared("if e.backend == BackendKind::Sim {", "BackendKind").len(), 1);
}

#[test]
fn matches_name_every_kind() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    // This one's examples are wrong.
    let own = Path::new(file!()).file_name().unwrap();
    for file in files.iter().filter(|f| f.file_name() != Some(own)) {
        let text = std::fs::read_to_string(file).unwrap();
        for sum in SUMS {
            let wrong = partial(&text, sum);
            assert!(wrong.is_empty(), "{}: name every kind of {sum}: {wrong:?}", file.display());
        }
    }
}

#[test]
fn partial_matches_are_found() {
    for wrong in [
        "match &t.work { Work::Fio(f) if f.on('{') => 1, _ => { 2 } }",
        "match (&t.work, floor) { (Work::Fio(_), Floor::Bare) => a(), (_, Floor::Ground(g)) => b(), }",
        "match w { Work::Fio(f) => r#\"a\"b\"#, other => 2 }",
        "if let Work::Program(p) = &t.work { a() }",
        "let Work::Program(p) = work else { return };",
        "matches!(t.work, Work::Calls(_))",
    ] {
        assert_eq!(partial(wrong, "Work").len(), 1, "{wrong}");
    }
    let right = "match w { Work::Fio(f) => match f.n { 1 => \"_ => \", _ => { 'x' } }, Work::Program(_) => 2 }\n\
                 match other { OtherWork::A => 1, _ => 2 } // match Work::Fio { _ => 1 }";
    assert_eq!(partial(right, "Work"), [""; 0]);
}
