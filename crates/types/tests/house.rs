//! The picture of the house, `docs/house.svg`: the crates and their dependencies as the manifests have them.
//!
//! `BLESS=1 cargo test -p iosched-types --test house` writes it anew.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads the files it checks"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What a manifest says.
struct Member {
    does: String,
    needs: BTreeSet<String>,
    /// Crates from elsewhere.
    outside: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The quoted part of a line.
fn quoted(line: &str) -> String {
    line.split('"').nth(1).unwrap().to_string()
}

fn member(manifest: &str) -> (String, Member) {
    let mut section = "";
    let (mut name, mut does) = (String::new(), String::new());
    let (mut needs, mut outside) = (BTreeSet::new(), BTreeSet::new());
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[package]" && line.starts_with("name =") {
            name = quoted(line).trim_start_matches("iosched-").to_string();
        } else if section == "[package]" && line.starts_with("description =") {
            does = quoted(line);
        } else if section == "[dependencies]" && line.contains('=') {
            let dependency = line.split(['.', ' ', '=']).next().unwrap();
            match dependency.strip_prefix("iosched-") {
                Some(own) => needs.insert(own.to_string()),
                None => outside.insert(dependency.to_string()),
            };
        }
    }
    (name, Member { does, needs, outside })
}

fn members() -> BTreeMap<String, Member> {
    let folders = std::fs::read_dir(root().join("crates")).unwrap();
    let manifests = folders.map(|f| f.unwrap().path().join("Cargo.toml")).filter(|m| m.exists());
    let mut all: BTreeMap<String, Member> =
        manifests.map(|m| member(&std::fs::read_to_string(m).unwrap())).collect();
    let cli = all.remove("iosched").unwrap();
    all.insert("cli".into(), cli);
    all
}

/// How many crates lie below one, on the longest way down.
fn floor(of: &str, all: &BTreeMap<String, Member>) -> usize {
    all[of].needs.iter().map(|n| 1 + floor(n, all)).max().unwrap_or(0)
}

/// Whether a crate is reached from another over a third.
fn indirect(from: &str, to: &str, all: &BTreeMap<String, Member>) -> bool {
    let reaches =
        |from: &str| from == to || all[from].needs.contains(to) || indirect(from, to, all);
    all[from].needs.iter().filter(|n| *n != to).any(|n| reaches(n))
}

/// All that a crate's program consists of.
fn reached(from: &str, all: &BTreeMap<String, Member>) -> BTreeSet<String> {
    let own = [&all[from].needs, &all[from].outside].into_iter().flatten().cloned();
    own.chain(all[from].needs.iter().flat_map(|n| reached(n, all))).collect()
}

const WIDTH: usize = 290;
const HEIGHT: usize = 56;
const ACROSS: usize = WIDTH + 24;
const DOWN: usize = HEIGHT + 44;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text in lines of at most `most` characters.
fn lines(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().unwrap();
        if !last.is_empty() && last.len() + 1 + word.len() > most {
            lines.push(word.to_string());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

/// Each crate's box: left and upper edge, the upper floors first.
fn places(all: &BTreeMap<String, Member>) -> BTreeMap<&str, (usize, usize)> {
    let top = all.keys().map(|c| floor(c, all)).max().unwrap();
    let mut places = BTreeMap::new();
    for level in 0..=top {
        let row = all.keys().filter(|c| floor(c, all) == level);
        for (n, name) in row.enumerate() {
            places.insert(name.as_str(), (12 + n * ACROSS, 12 + (top - level) * DOWN));
        }
    }
    places
}

fn svg(all: &BTreeMap<String, Member>) -> String {
    let places = places(all);
    let width = places.values().map(|p| p.0).max().unwrap() + WIDTH + 12;
    let height = places.values().map(|p| p.1).max().unwrap() + HEIGHT + 12;
    let mut s = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\" role=\"img\">\n\
         <title>The crates of iosched; lines lead to the crates that one uses directly and over no other</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (name, m) in all {
        let (x, y) = places[name.as_str()];
        for need in m.needs.iter().filter(|n| !indirect(name, n, all)) {
            let (to_x, to_y) = places[need.as_str()];
            let (x, y) = (x + WIDTH / 2, y + HEIGHT);
            let (to_x, bend) = (to_x + WIDTH / 2, 22);
            writeln!(
                s,
                "<path d=\"M{x} {y}C{x} {} {to_x} {} {to_x} {to_y}\" fill=\"none\" stroke=\"#888\"/>",
                y + bend,
                to_y - bend
            )
            .unwrap();
        }
    }
    for (name, m) in all {
        let (x, y) = places[name.as_str()];
        let middle = x + WIDTH / 2;
        writeln!(
            s,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"5\" fill=\"#eef3f8\" stroke=\"#456\"/>\n\
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\" font-size=\"13\">{name}</text>",
            y + 17
        )
        .unwrap();
        for (n, line) in lines(&m.does, 52).iter().take(2).enumerate() {
            writeln!(
                s,
                "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\">{}</text>",
                y + 33 + n * 14,
                escaped(line)
            )
            .unwrap();
        }
    }
    s + "</svg>\n"
}

#[test]
fn the_picture_shows_the_crates_and_what_they_use() {
    let page = root().join("docs/house.svg");
    let picture = svg(&members());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&page, &picture).unwrap();
    }
    let there = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        there == picture,
        "docs/house.svg is out of date: BLESS=1 cargo test -p iosched-types --test house"
    );
}

/// What runs experiments must run where no machine may be changed: in a browser, below Python, in a kernel of its own.
#[test]
fn the_lab_reaches_no_machine() {
    let all = members();
    let machine: BTreeSet<String> = ["backends", "io-uring", "nix"].map(String::from).into();
    let reached = reached("lab", &all);
    let found: Vec<_> = reached.intersection(&machine).collect();
    assert!(found.is_empty(), "`lab` reaches {found:?}");
    assert!(machine.iter().skip(1).all(|m| all["backends"].outside.contains(m)), "other names");
}

#[test]
fn the_code_map_names_every_crate_below_those_it_uses() {
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let all = members();
    let at = |name: &str| {
        let heading = format!("\n### `{name}`\n");
        map.find(&heading).unwrap_or_else(|| panic!("ARCHITECTURE.md has no {}", heading.trim()))
    };
    for (name, m) in &all {
        for need in &m.needs {
            assert!(at(need) < at(name), "`{name}` uses `{need}`, which the code map has below it");
        }
    }
}
