//! `fs-mark`: fs_mark 3.3.

use iosched_workloads::programs::Params;

use super::{At, Plan, Read, Recipe, Seen, Tool};
use crate::error::Result;

/// fs_mark.
pub(super) static FS_MARK: Recipe = Recipe {
    workload: "fs-mark",
    tools: &[Tool { name: "fs_mark", folders: &[], package: "fsmark", version: ("", &[]) }],
    users: &[],
    server: None,
    tree: None,
    can: |_| Ok(()),
    plan,
    figures,
};

fn plan(p: &Params, at: &At<'_>) -> Result<Plan> {
    let mut line = at.command("fs_mark", &["-d", &at.file("files")]);
    for (option, name) in
        [("-n", "n"), ("-s", "size"), ("-t", "threads"), ("-S", "sync"), ("-L", "loops")]
    {
        line.extend([option.into(), p.count(name).to_string()]);
    }
    if p.count("subdirs") > 0 {
        line.extend(["-D".into(), p.count("subdirs").to_string()]);
    }
    Ok(Plan { run: vec![line], ..Plan::default() })
}

/// The table's rows, one for each loop; loops have the same number of files.
fn figures(printed: &str, _: &Params, _: Seen) -> Read {
    let rows = printed.lines().skip_while(|l| !l.contains("Files/sec")).skip(1);
    let rates: Vec<f64> = rows.map_while(|l| l.split_whitespace().nth(3)?.parse().ok()).collect();
    let seconds: f64 = rates.iter().map(|r| 1.0 / r).sum();
    (seconds > 0.0).then(|| vec![("files per second", rates.len() as f64 / seconds)])
}
