//! The table of README.md is what its first command prints. `BLESS=1 cargo test -p iosched --test all readme` rewrites it.

use std::path::Path;

use super::Place;

/// How the table begins, and how what follows it does.
const TABLE: &str = "random-writers on ssd-sata, Linux 6.12";

#[test]
fn the_first_command_prints_the_table_that_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = root.join("examples/desktop.toml").display().to_string();
    let place = Place::new();
    let out = place.out(&["run", &example, "--runs", "1", "--quiet", "--tables"]);
    let brief = place.out(&["results", "show", "desktop"]);
    assert!(brief.lines().count() <= 40, "one screen: {brief}");
    assert!(brief.lines().all(|l| l.chars().count() <= 80), "{brief}");
    assert!(brief.contains("tables   iosched results show desktop --tables\n"), "{brief}");
    let table = &out[out.find(TABLE).unwrap()..];
    let table = &table[..table.find("\nAll workloads").unwrap()];
    let table: String = table.trim_end().lines().map(|l| format!("{}\n", l.trim_end())).collect();
    let page = root.join("README.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let begin = text.find(TABLE).unwrap();
    let end = begin + text[begin..].find("```").unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&page, [&text[..begin], &table, &text[end..]].concat()).unwrap();
        return;
    }
    assert_eq!(text[begin..end], table, "BLESS=1 rewrites the README");
}
