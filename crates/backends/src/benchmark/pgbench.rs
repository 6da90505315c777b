//! `pgbench`: a PostgreSQL cluster of our own on the tested disk, filled and measured by pgbench.

use iosched_workloads::programs::Params;
use nix::sys::signal::Signal;

use super::{At, Plan, Read, Recipe, Seen, Server, Tool, Words, number, only_defaults, only_text};
use crate::error::Result;

/// Where Debian has the programs of each version, and its package.
pub(super) const FOLDERS: &[&str] = &["/usr/lib/postgresql/*/bin"];
pub(super) const PACKAGE: &str = "postgresql";

/// 14 counts what its log does (`pg_stat_wal`).
const fn tool(name: &'static str) -> Tool {
    Tool { name, folders: FOLDERS, package: PACKAGE, version: ("--version", &[14]) }
}

/// PostgreSQL.
pub(super) static PGBENCH: Recipe = Recipe {
    workload: "pgbench",
    tools: &[
        tool("pgbench"),
        tool("postgres"),
        tool("initdb"),
        tool("psql"),
        tool("createdb"),
        tool("pg_isready"),
    ],
    users: &["postgres", "nobody"],
    server: Some("postgres"),
    tree: None,
    can,
    plan,
    figures,
};

/// The name of the superuser and of the database.
const NAME: &str = "iosched";
/// The syncs of the log since the last reset, in a form that nothing else prints; nothing where the view does not have them.
const ASK: &str = "SELECT 'iosched', to_jsonb(w)->>'wal_sync' FROM pg_stat_wal w";
const RESET: &str = "SELECT pg_stat_reset_shared('wal')";

fn can(p: &Params) -> Result<()> {
    only_defaults(p, "pgbench", &["think"])?;
    match p.count("checkpoint_timeout") {
        30.. => Ok(()),
        n => Err(only_text(&format!("checkpoint_timeout={n}: PostgreSQL's has 30 s and more"))),
    }
}

fn plan(p: &Params, at: &At<'_>) -> Result<Plan> {
    let (data, dir) = (at.file("data"), at.dir.display().to_string());
    // Sockets lie beside the data: nobody else can reach them, and they go with the data.
    let client = |tool: &str, words: &[&str]| -> Words {
        at.command(tool, &[&["-h", dir.as_str(), "-U", NAME], words].concat())
    };
    let prepare = vec![at.command(
        "initdb",
        &["-D", &data, "-U", NAME, "-A", "trust", "-E", "SQL_ASCII", "--locale=C", "--no-sync"],
    )];
    let scale = p.count("scale").to_string();
    let fill = vec![
        client("createdb", &[NAME]),
        client("pgbench", &["-i", "-q", "-s", &scale, NAME]),
        client("psql", &["-q", "-c", RESET, NAME]),
    ];
    let ready = client("pg_isready", &["-q", "-d", NAME]);
    let server = Server { run: server(p, at, &data, &dir), ready, stop: Signal::SIGINT };
    let ask = vec![client("psql", &["-At", "-c", ASK, NAME])];
    let mut run = client("pgbench", &["-n"]);
    run.extend(load(p));
    run.push(NAME.into());
    Ok(Plan { prepare, server: Some(server), fill, run: vec![run], ask, ..Plan::default() })
}

/// The server with the settings of the published runs, and those that the workload has by PostgreSQL's names.
fn server(p: &Params, at: &At<'_>, data: &str, dir: &str) -> Words {
    let mut words = at.command("postgres", &["-D", data, "-k", dir]);
    let on = |name: &str| if p.count(name) > 0 { "on" } else { "off" }.to_string();
    let completion = p.count("completion") as f64 / 100.0;
    for (name, value) in [
        ("listen_addresses", String::new()),
        ("autovacuum", "off".into()),
        ("max_connections", (p.count("clients") + 10).to_string()),
        ("shared_buffers", format!("{}kB", p.bytes("shared_buffers") >> 10)),
        ("full_page_writes", on("full_page_writes")),
        ("synchronous_commit", on("synchronous_commit")),
        ("checkpoint_timeout", format!("{}s", p.count("checkpoint_timeout"))),
        ("max_wal_size", format!("{}MB", p.bytes("max_wal_size") >> 20)),
        ("checkpoint_completion_target", completion.to_string()),
    ] {
        words.extend(["-c".into(), format!("{name}={value}")]);
    }
    words
}

/// What the clients do.
fn load(p: &Params) -> Words {
    let clients = p.count("clients");
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let mut words: Words = vec!["-c".into(), clients.to_string()];
    words.extend(["-j".into(), clients.min(cores).to_string()]);
    words.push(format!("--random-seed={}", p.count("seed")));
    match p.count("transactions") {
        0 => words.extend(["-T".into(), p.count("time").to_string()]),
        n => words.extend(["-t".into(), n.to_string()]),
    }
    if &*p.word("mode") == "select-only" {
        words.push("-S".into());
    }
    words
}

/// pgbench's rate, and the server's syncs by transaction.
fn figures(printed: &str, _: &Params, _: Seen) -> Read {
    let tps = printed.lines().find(|l| l.starts_with("tps = "))?;
    let done = printed.lines().find(|l| l.starts_with("number of transactions actually"))?;
    let done: f64 = done.rsplit(": ").next()?.split('/').next()?.trim().parse().ok()?;
    let mut found = vec![("tps", number(tps.split_once('=')?.1)?)];
    let syncs = printed.lines().find_map(|l| l.strip_prefix("iosched|"))?;
    if let Ok(syncs) = syncs.trim().parse::<f64>() {
        found.push(("log syncs per transaction", syncs / done.max(1.0)));
    }
    Some(found)
}
