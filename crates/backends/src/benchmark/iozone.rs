//! `iozone`: IOzone in its throughput mode. It is not in Debian main.

use iosched_workloads::programs::Params;

use super::{At, Plan, Read, Recipe, Seen, Tool, only_text};
use crate::error::Result;

/// IOzone.
pub(super) static IOZONE: Recipe = Recipe {
    workload: "iozone",
    tools: &[Tool { name: "iozone", folders: &[], package: "", version: ("", &[]) }],
    users: &[],
    server: None,
    tree: None,
    can,
    plan,
    figures,
};

fn can(p: &Params) -> Result<()> {
    match ["record", "size"].into_iter().find(|n| !p.bytes(n).is_multiple_of(1024)) {
        Some(name) => Err(only_text(&format!("{name}={}: IOzone counts in KiB", p.bytes(name)))),
        None => Ok(()),
    }
}

fn plan(p: &Params, at: &At<'_>) -> Result<Plan> {
    let mut line = at.command("iozone", &["-i", "0"]);
    if &*p.word("tests") == "read" {
        line.extend(["-i".into(), "1".into()]);
    }
    for (option, name) in [("-r", "record"), ("-s", "size")] {
        line.extend([option.into(), format!("{}k", p.bytes(name) / 1024)]);
    }
    for (option, name) in [("-e", "fsync"), ("-c", "close")] {
        if p.count(name) > 0 {
            line.push(option.into());
        }
    }
    line.extend(["-t".into(), p.count("processes").to_string(), "-F".into()]);
    line.extend((0..p.count("processes")).map(|i| at.file(&format!("iozone.{i}"))));
    Ok(Plan { run: vec![line], ..Plan::default() })
}

/// What children and parent saw, phase by phase.
fn figures(printed: &str, p: &Params, _: Seen) -> Read {
    let phases: &[&str] = match &*p.word("tests") {
        "read" => &["initial writers", " rewriters", " readers", "re-readers"],
        _ => &["initial writers", " rewriters"],
    };
    let several = p.count("processes") > 1;
    let mut out = Vec::new();
    for (words, names) in phases.iter().zip(FIGURES) {
        let children = |l: &&str| l.contains("Children see throughput") && l.contains(words);
        let mut lines = printed.lines().skip_while(|l| !children(l));
        let mut value = |what: &str| {
            let line = lines.find(|l| l.contains(what))?;
            super::number(line.split_once('=')?.1)
        };
        let kinds = ["Children see", "Parent sees", "Min throughput", "Max throughput"];
        for (kind, name) in kinds.into_iter().zip(names).take(if several { 4 } else { 1 }) {
            out.push((name, value(kind)?));
        }
    }
    Some(out)
}

/// A phase's figures: of the children together, as the parent sees it, of the slowest and of the fastest child.
const FIGURES: [[&str; 4]; 4] = [
    ["write", "write, parent", "write, slowest process", "write, fastest process"],
    ["rewrite", "rewrite, parent", "rewrite, slowest process", "rewrite, fastest process"],
    ["read", "read, parent", "read, slowest process", "read, fastest process"],
    ["reread", "reread, parent", "reread, slowest process", "reread, fastest process"],
];
