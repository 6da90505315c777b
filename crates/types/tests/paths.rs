//! Source files that the documents name are there: who follows a path finds what is meant.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads the files it checks"
)]

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder with one of these endings, relative to the root.
fn files(folder: &str, end: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut left = vec![root().join(folder)];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                left.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                out.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    out.sort();
    out
}

/// The words of a text that are paths of source files.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "_-/.".contains(c);
    text.split(move |c| !inside(c))
        .map(|w| w.trim_end_matches('.'))
        .filter(|w| w.ends_with(".rs") && !w.starts_with('.'))
}

/// A whole path from the root, or the end of one, as the map of the code abbreviates them.
fn exists(path: &str, sources: &[String]) -> bool {
    let end = format!("/{path}");
    match path.starts_with("crates/") {
        true => sources.iter().any(|s| s == path),
        false => sources.iter().any(|s| s == path || s.ends_with(&end)),
    }
}

#[test]
fn source_files_in_documents_exist() {
    let sources = [files("crates", ".rs"), files("fuzz", ".rs")].concat();
    let mut documents = files("docs", ".md");
    documents.extend(["README.md", "ARCHITECTURE.md"].map(String::from));
    let mut wrong = Vec::new();
    for document in &documents {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let lacking = named(&text).filter(|p| !exists(p, &sources));
        wrong.extend(lacking.map(|p| format!("{document}: {p}")));
    }
    assert!(wrong.is_empty(), "no such files:\n{}", wrong.join("\n"));
}

/// The code spans of a cell, in their order.
fn spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn files_and_lists_to_touch_are_there() {
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, table) = text.split_once("## What to touch").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows = table.lines().filter(|l| l.starts_with("| ")).skip(1);
    let (mut count, mut wrong) = (0, Vec::new());
    for row in rows.map(|l| l.split('|').map(str::trim).collect::<Vec<_>>()) {
        count += 1;
        for path in spans(row[2]) {
            let folder = Path::new(path).parent().unwrap();
            let end = path.rsplit_once('.').unwrap().1;
            if files(folder.to_str().unwrap(), end).is_empty() {
                wrong.push(format!("{}: no files like {path}", row[1]));
            }
        }
        // `LIST` and `LIST` in `FILE`, `LIST` in `FILE`
        let mut lists = Vec::new();
        for word in spans(row[3]) {
            match word.starts_with("crates/") {
                false => lists.push(word),
                true => {
                    let source = std::fs::read_to_string(root().join(word)).unwrap_or_default();
                    let lacking = lists.drain(..).filter(|l| !source.contains(l));
                    wrong.extend(lacking.map(|l| format!("{}: no {l} in {word}", row[1])));
                }
            }
        }
        assert!(lists.is_empty(), "{}: {lists:?} in which file?", row[1]);
    }
    assert!(count >= 11, "{count} rows");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn paths_are_found_in_sentences() {
    let text = "See `crates/a/src/b.rs`, (c/d.rs) and e.rs. Not .rs, rs, f.rst or g.rs.txt.";
    let found: Vec<&str> = named(text).collect();
    assert_eq!(found, ["crates/a/src/b.rs", "c/d.rs", "e.rs"]);
    let sources = ["crates/a/src/b.rs".to_string(), "crates/x/src/c/d.rs".to_string()];
    assert!(exists("crates/a/src/b.rs", &sources) && exists("c/d.rs", &sources));
    assert!(!exists("crates/b.rs", &sources) && !exists("/d2.rs", &sources));
}
