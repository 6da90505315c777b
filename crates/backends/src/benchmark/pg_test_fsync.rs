//! `pg-test-fsync`: PostgreSQL's pg_test_fsync.

use iosched_experiment::OF_ONE;
use iosched_workloads::programs::Params;

use super::{At, Plan, Read, Recipe, Seen, Tool, number, of_text, only_text, pgbench};
use crate::error::Result;

/// pg_test_fsync.
pub(super) static PG_TEST_FSYNC: Recipe = Recipe {
    workload: "pg-test-fsync",
    // 9.0 has tests of all kinds.
    tools: &[Tool {
        name: "pg_test_fsync",
        folders: pgbench::FOLDERS,
        package: pgbench::PACKAGE,
        version: ("--version", &[9]),
    }],
    users: &[],
    server: None,
    tree: None,
    can,
    plan,
    figures,
};

/// A block of a PostgreSQL that was built as usual.
const BLOCK: u64 = 8 << 10;

fn can(p: &Params) -> Result<()> {
    match p.bytes("block") {
        BLOCK => Ok(()),
        other => Err(only_text(&format!("block={other}: PostgreSQL's blocks have 8 KiB"))),
    }
}

fn plan(p: &Params, at: &At<'_>) -> Result<Plan> {
    let (seconds, file) = (p.count("seconds").to_string(), at.file("log"));
    let run = vec![at.command("pg_test_fsync", &["-s", &seconds, "-f", &file])];
    Ok(Plan { run, ..Plan::default() })
}

/// Lines of a section and the figures that they are.
const SECTIONS: &[(&str, &[(&str, &str)])] = &[
    (
        "using one 8kB write",
        &[
            ("open_datasync", "open_datasync"),
            ("fdatasync", "fdatasync"),
            ("fsync ", "fsync"),
            ("open_sync", "open_sync"),
        ],
    ),
    (
        "using two 8kB writes",
        &[
            ("open_datasync", "open_datasync, two writes"),
            ("fdatasync", "fdatasync, two writes"),
            ("fsync ", "fsync, two writes"),
            ("open_sync", "open_sync, two writes"),
        ],
    ),
    (
        "different write sizes",
        &[
            ("1 * 16kB", "open_sync 1 * 16kB"),
            ("2 *  8kB", "open_sync 2 * 8kB"),
            ("4 *  4kB", "open_sync 4 * 4kB"),
            ("8 *  2kB", "open_sync 8 * 2kB"),
            ("16 *  1kB", "open_sync 16 * 1kB"),
        ],
    ),
    (
        "non-write file descriptor",
        &[
            ("write, fsync, close", "write, fsync, close"),
            ("write, close, fsync", "write, close, fsync"),
        ],
    ),
    ("Non-sync'ed", &[("write", "write")]),
];

/// Operations a second, then the time of one as it is printed: in whole microseconds. What this machine has not is `n/a` and
/// left out; versions before 9.3 print no times.
fn figures(printed: &str, _: &Params, _: Seen) -> Read {
    let (mut found, mut times) = (Vec::new(), Vec::new());
    let all = of_text(PG_TEST_FSYNC.workload).ok()?.figures;
    for (title, lines) in SECTIONS {
        let section = printed.lines().skip_while(|l| !l.contains(title)).skip(1);
        let section: Vec<&str> = section.take_while(|l| !l.trim().is_empty()).collect();
        for (begins, figure) in *lines {
            let line = section.iter().find(|l| l.trim_start().starts_with(begins))?;
            let (rate, time) = line.split_once("ops/sec").unwrap_or((line, ""));
            match rate.split_whitespace().next_back()?.parse() {
                Ok(rate) => {
                    found.push((*figure, rate));
                    let each = all
                        .iter()
                        .map(|f| f.name)
                        .find(|n| n.strip_suffix(OF_ONE) == Some(figure))?;
                    times.extend(number(time).map(|us| (each, us)));
                }
                Err(_) if line.contains("n/a") => {}
                Err(_) => return None,
            }
        }
    }
    found.extend(times);
    Some(found)
}
