//! `docs/cli.md` shows what `iosched COMMAND -h` prints. `BLESS=1 cargo test -p iosched --test all help_page` rewrites it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads the page it checks"
)]

use std::path::Path;
use std::process::Command;

const BEGIN: &str = "<!-- help:begin -->\n";
const END: &str = "<!-- help:end -->";

/// What `iosched … -h` prints, without blanks at the ends of lines.
fn help(words: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_iosched"))
        .args(words)
        .arg("-h")
        .env_remove("COLUMNS")
        .env_remove("IOSCHED_DB")
        .env_remove("IOSCHED_STATE")
        .output()
        .unwrap();
    assert!(out.status.success(), "iosched {} -h failed", words.join(" "));
    let text = String::from_utf8(out.stdout).unwrap();
    text.trim_end().lines().map(|l| format!("{}\n", l.trim_end())).collect()
}

/// The names in a help text's list of commands.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|l| *l != "Commands:").skip(1);
    list.take_while(|l| l.starts_with("  "))
        .filter(|l| !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn pages() -> String {
    let all = help(&[]);
    let names = commands(&all);
    assert!(names.len() > 8, "commands in:\n{all}");
    let mut out = format!("\n## All commands\n\n```text\n{all}```\n");
    for name in &names {
        let text = help(&[name]);
        out += &format!("\n## {name}\n\n```text\n{text}```\n");
        for sub in commands(&text) {
            out += &format!("\n### {name} {sub}\n\n```text\n{}```\n", help(&[name, &sub]));
        }
    }
    out + "\n"
}

#[test]
fn the_page_shows_the_help_texts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page marks where help begins");
    let (_, after) = rest.split_once(END).expect("the page marks where help ends");
    let wanted = format!("{before}{BEGIN}{}{END}{after}", pages());
    iosched_testing::golden(&path, &wanted);
}
