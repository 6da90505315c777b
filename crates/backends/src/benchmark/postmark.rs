//! `postmark`: PostMark, told what to do by a file.

use iosched_workloads::programs::Params;

use super::{At, Plan, Read, Recipe, Seen, Tool};
use crate::error::Result;

/// PostMark.
pub(super) static POSTMARK: Recipe = Recipe {
    workload: "postmark",
    tools: &[Tool {
        name: "postmark",
        folders: &[],
        package: "postmark",
        version: ("-v", &[1, 5]),
    }],
    users: &[],
    server: None,
    tree: None,
    can: |_| Ok(()),
    plan,
    figures,
};

fn plan(p: &Params, at: &At<'_>) -> Result<Plan> {
    let text = format!(
        "set location {}\nset size {} {}\nset number {}\nset transactions {}\nset seed {}\nrun\nquit\n",
        at.dir.display(),
        p.bytes("smallest"),
        p.bytes("largest"),
        p.count("number"),
        p.count("transactions"),
        p.count("seed")
    );
    let run = vec![at.command("postmark", &[&at.tell("postmark.cfg", &text)?])];
    Ok(Plan { run, ..Plan::default() })
}

/// PostMark counts whole seconds, and a part of one as one.
fn figures(printed: &str, _: &Params, _: Seen) -> Read {
    let line = |words: &str| printed.lines().find(|l| l.contains(words));
    let rate = |line: &str| super::number(line.split_once('(')?.1);
    let data = |words: &str| {
        let line = printed.lines().find(|l| l.contains(words) && l.contains("bytes"))?;
        let each = line.split_once('(')?.1;
        let unit = match each.split_whitespace().nth(1)? {
            "bytes" => 1.0 / f64::from(1 << 20),
            "kilobytes" => 1.0 / 1024.0,
            "megabytes" => 1.0,
            _ => 1024.0,
        };
        Some(super::number(each)? * unit)
    };
    Some(vec![
        ("transactions per second", rate(line("seconds of transactions")?)?),
        ("read", data("bytes read")?),
        ("written", data("bytes written")?),
    ])
}
