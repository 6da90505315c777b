//! The files of this crate use each other in one direction: no file is above itself.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads the files it checks"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files by module name (`core::issue`), without those that only tests use.
fn modules() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut all);
    all.remove("lib").unwrap();
    all
}

fn read(dir: &Path, parent: &str, all: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let name = if parent.is_empty() { stem.into() } else { format!("{parent}::{stem}") };
        if ["scenarios", "queue::peek"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            read(&path, &name, all);
        } else {
            let name = if stem == "mod" { parent.into() } else { name };
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            all.insert(name, code.into());
        }
    }
}

/// The paths of one `use`, with its braces written out.
fn spelled_out(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else { return vec![tree.trim().into()] };
    let inside = &rest[..rest.rfind('}').unwrap()];
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (i, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inside[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    let parts = parts.into_iter().map(str::trim).filter(|p| !p.is_empty());
    parts.flat_map(|p| spelled_out(&format!("{}{p}", before.trim()))).collect()
}

/// The modules that a module names in its `use` lines.
fn uses(module: &str, code: &str, all: &BTreeMap<String, String>) -> BTreeSet<String> {
    let lines: Vec<&str> = code.lines().map(str::trim).filter(|l| !l.starts_with("//")).collect();
    let code = lines.join(" ");
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut named = BTreeSet::new();
    for tree in code.split("use ").skip(1).filter_map(|u| u.split(';').next()) {
        for path in spelled_out(tree) {
            let path = match path.split_once("::") {
                Some(("crate", rest)) => rest.to_string(),
                Some(("super", rest)) if parent.is_empty() => rest.to_string(),
                Some(("super", rest)) => format!("{parent}::{rest}"),
                _ => format!("{module}::{path}"),
            };
            let mut prefix = path.as_str();
            while !all.contains_key(prefix) && !prefix.is_empty() {
                prefix = prefix.rsplit_once("::").map_or("", |(before, _)| before);
            }
            if !prefix.is_empty() && prefix != module {
                named.insert(prefix.to_string());
            }
        }
    }
    named
}

/// The types that a file gives methods to.
fn extends(code: &str) -> impl Iterator<Item = &str> {
    let heads = code.lines().filter(|l| l.starts_with("impl")).map(|l| l.trim_end_matches(" {"));
    heads.map(|l| {
        let of = l.rsplit_once(" for ").or_else(|| l.rsplit_once(' ')).unwrap().1;
        of.split('<').next().unwrap()
    })
}

fn declares(code: &str, name: &str) -> bool {
    let is = |l: &str, kind| {
        l.split_once(kind).is_some_and(|(_, rest)| {
            rest.split(|c: char| !c.is_alphanumeric()).next() == Some(name)
        })
    };
    code.lines().any(|l| is(l, "struct ") || is(l, "enum "))
}

/// The module that a file belongs to: its own, or that of the folder whose type it extends.
fn home(module: &str, all: &BTreeMap<String, String>) -> String {
    let mut home = module;
    for name in extends(&all[module]).filter(|name| !declares(&all[module], name)) {
        let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
        assert!(
            all.get(parent).is_some_and(|code| declares(code, name)),
            "{module}: methods of {name} belong into its file or its folder"
        );
        home = parent;
    }
    home.into()
}

#[test]
fn no_file_is_above_itself() {
    let all = modules();
    let mut below: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, code) in &all {
        let home = home(module, &all);
        let named = uses(module, code, &all);
        let homes = named.iter().map(|n| self::home(n, &all)).filter(|n| *n != home);
        let homes: Vec<String> = homes.collect();
        below.entry(home).or_default().extend(homes);
    }
    assert!(below["mq"].contains("core") && below["steps::flush"].contains("steps::finish"));
    while let Some(lowest) = below.iter().find(|(_, b)| b.is_empty()).map(|(m, _)| m.clone()) {
        below.remove(&lowest);
        below.values_mut().for_each(|b| _ = b.remove(&lowest));
    }
    assert!(below.is_empty(), "these files use each other in a circle: {below:#?}");
}
