//! `sqlite`: the `sqlite3` shell reads files of INSERTs, one process after the other.

use std::fmt::Write as _;

use iosched_workloads::programs::Params;

use super::{At, Plan, Read, Recipe, Seen, Tool, Words, only_text};
use crate::error::Result;

/// The shell.
pub(super) static SQLITE: Recipe = Recipe {
    workload: "sqlite",
    // 3.7 has the write-ahead log.
    tools: &[Tool {
        name: "sqlite3",
        folders: &[],
        package: "sqlite3",
        version: ("--version", &[3, 7]),
    }],
    users: &[],
    server: None,
    tree: None,
    can,
    plan,
    figures,
};

/// Bytes of a stored row beside its two texts: five of header, a small number of up to two bytes, a stamp of 19
/// characters.
const BESIDE: u64 = 26;

fn can(p: &Params) -> Result<()> {
    match p.bytes("row") {
        BESIDE.. => Ok(()),
        row => {
            Err(only_text(&format!("rows of {row} bytes: sqlite3's have {BESIDE} and more here")))
        }
    }
}

fn plan(p: &Params, at: &At<'_>) -> Result<Plan> {
    let texts = p.bytes("row").saturating_sub(BESIDE);
    let head = format!(
        "PRAGMA page_size={};PRAGMA journal_mode={};PRAGMA synchronous={};\n",
        p.bytes("page_size"),
        p.word("journal"),
        p.word("synchronous")
    );
    let table = "CREATE TABLE IF NOT EXISTS t(n SMALLINT NOT NULL,\
                 at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,a VARCHAR(4) NOT NULL,b VARCHAR NOT NULL);\n";
    let mut run = Vec::new();
    for pass in 0..p.count("passes") {
        let mut text = head.clone();
        if pass == 0 {
            text += table;
        }
        for i in 0..p.count("inserts") {
            let (a, b) = (texts.min(4) as usize, texts.saturating_sub(4) as usize);
            let n = 256 + (pass * p.count("inserts") + i) % 32_000;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "INSERT INTO t(n,a,b) VALUES({n},'{:x>a$}','{:x>b$}');", "", "");
        }
        let file = at.tell(&format!("inserts.{pass}"), &text)?;
        let read = format!(".read '{file}'");
        run.push(shell(at, &read));
    }
    Ok(Plan { run, ask: vec![shell(at, ROWS)], ..Plan::default() })
}

/// A call of the shell. Root's own `.sqliterc` may set what is measured, such as `locking_mode`.
fn shell(at: &At<'_>, text: &str) -> Words {
    at.command("sqlite3", &["-batch", "-bail", "-init", "/dev/null", &at.file("db"), text])
}

/// The rows that there are, in a form that nothing else prints.
const ROWS: &str = "SELECT 'iosched|'||count(*) FROM t;";

/// The time, if all that was asked for is in the database.
fn figures(printed: &str, p: &Params, seen: Seen) -> Read {
    let rows = printed.lines().find_map(|l| l.strip_prefix("iosched|"))?;
    let rows: u64 = rows.trim().parse().ok()?;
    (rows == p.count("passes") * p.count("inserts")).then(|| vec![("seconds", seen.seconds)])
}
