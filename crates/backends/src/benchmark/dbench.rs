//! `dbench`: dbench 4 with its own load, or with the load file that the workload names.

use iosched_workloads::programs::Params;

use super::{At, Plan, Read, Recipe, Seen, Tool, number, only_text};
use crate::error::Result;

/// dbench.
pub(super) static DBENCH: Recipe = Recipe {
    workload: "dbench",
    // Version 3 reads other load files.
    tools: &[Tool { name: "dbench", folders: &[], package: "dbench", version: ("--help", &[4]) }],
    users: &[],
    server: None,
    tree: None,
    can,
    plan,
    figures,
};

fn can(p: &Params) -> Result<()> {
    match p.number("warmup") {
        -1 => Ok(()),
        _ => Err(only_text("dbench always warms up for a fifth of the time (warmup=-1)")),
    }
}

fn plan(p: &Params, at: &At<'_>) -> Result<Plan> {
    let (time, clients) = (p.count("time").to_string(), p.count("clients").to_string());
    let dir = at.dir.display().to_string();
    let mut line = at.command("dbench", &["-D", &dir, "-t", &time]);
    // `made` is made after the load that dbench takes if none is named.
    if let Some(text) = p.file("loadfile") {
        line.extend(["-c".into(), at.tell("client.txt", &text)?]);
    }
    line.push(clients);
    Ok(Plan { run: vec![line], ..Plan::default() })
}

/// The last line: `Throughput 795.18 MB/sec  4 clients  4 procs  max_latency=44.442 ms`.
fn figures(printed: &str, _: &Params, _: Seen) -> Read {
    let line = printed.lines().rfind(|l| l.starts_with("Throughput"))?;
    let longest = line.split_once("max_latency=")?.1;
    Some(vec![("throughput", number(line)?), ("max latency", number(longest)?)])
}
