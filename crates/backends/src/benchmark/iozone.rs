//! `iozone`: IOzone in its throughput mode. It is not in Debian main.

use iosched_workloads::programs::Params;

use super::{At, Plan, Recipe, Tool, only_text};
use crate::error::Result;

/// IOzone.
pub(super) static IOZONE: Recipe = Recipe {
    workload: "iozone",
    tools: &[Tool { name: "iozone", folders: &[], package: "", version: ("", &[]) }],
    users: &[],
    plan,
    figures,
};

fn plan(p: &Params, at: &At<'_>) -> Result<Plan> {
    let mut line = at.command("iozone", &["-i", "0"]);
    if &*p.word("tests") == "read" {
        line.extend(["-i".into(), "1".into()]);
    }
    for (option, name) in [("-r", "record"), ("-s", "size")] {
        if !p.bytes(name).is_multiple_of(1024) {
            return Err(only_text(&format!("{name}={}: IOzone counts in KiB", p.bytes(name))));
        }
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

/// What the children saw, phase by phase.
fn figures(printed: &str, p: &Params, _: f64) -> Option<Vec<(&'static str, f64)>> {
    let phases: &[(&str, &str)] = match &*p.word("tests") {
        "read" => &[
            ("initial writers", "write"),
            (" rewriters", "rewrite"),
            (" readers", "read"),
            ("re-readers", "reread"),
        ],
        _ => &[("initial writers", "write"), (" rewriters", "rewrite")],
    };
    let children = |l: &&str| l.contains("Children see throughput");
    let of = |(words, figure): &(&str, &'static str)| {
        let line = printed.lines().filter(children).find(|l| l.contains(words))?;
        Some((*figure, super::number(line.split_once('=')?.1)?))
    };
    phases.iter().map(of).collect()
}
