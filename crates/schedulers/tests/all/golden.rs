//! Golden files: `tests/golden/*.md`, one per scheduler generation. Each section plays the requests of its
//! `requests` block; the `dispatched` block that follows must say what came out, and why.
//! `BLESS=1 cargo test` rewrites the latter.
#![allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]

use std::path::Path;

use iosched_schedulers::script::play;

const IN: &str = "```requests\n";
const OUT: &str = "```dispatched\n";
const END: &str = "```\n";

/// The page with every `dispatched` block filled in, and how many there are.
fn replay(page: &str) -> Result<(String, usize), String> {
    let (mut done, mut rest, mut blocks) = (String::new(), page, 0);
    while let Some((before, after)) = rest.split_once(IN) {
        let (script, after) = after.split_once(END).ok_or("unclosed requests block")?;
        let (between, after) = after.split_once(OUT).ok_or("no dispatched block follows")?;
        let (_, after) = after.split_once(END).ok_or("unclosed dispatched block")?;
        done += &format!("{before}{IN}{script}{END}{between}{OUT}{}{END}", play(script)?);
        (rest, blocks) = (after, blocks + 1);
    }
    Ok((done + rest, blocks))
}

#[test]
fn golden_files_say_what_happens() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut files = 0;
    for path in paths {
        // Schedulers with a player of their own keep other kinds of blocks here.
        let page = std::fs::read_to_string(&path).unwrap();
        if !page.contains(IN) {
            continue;
        }
        files += 1;
        let (wanted, blocks) = replay(&page).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(blocks > 0, "{} has no scenario", path.display());
        iosched_testing::golden(&path, &wanted);
    }
    assert!(files >= 10, "one file per generation of four families, found {files}");
}
