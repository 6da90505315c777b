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

#[test]
fn paths_are_found_in_sentences() {
    let text = "See `crates/a/src/b.rs`, (c/d.rs) and e.rs. Not .rs, rs, f.rst or g.rs.txt.";
    let found: Vec<&str> = named(text).collect();
    assert_eq!(found, ["crates/a/src/b.rs", "c/d.rs", "e.rs"]);
    let sources = ["crates/a/src/b.rs".to_string(), "crates/x/src/c/d.rs".to_string()];
    assert!(exists("crates/a/src/b.rs", &sources) && exists("c/d.rs", &sources));
    assert!(!exists("crates/b.rs", &sources) && !exists("/d2.rs", &sources));
}
