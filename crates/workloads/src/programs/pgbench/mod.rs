//! `pgbench`: PostgreSQL's server and its TPC-B-like load, as far as they reach the disk.
//!
//! The calls are those of PostgreSQL 15, seen with strace; figures that differ are those of 9.6.

use std::sync::Arc;

use iosched_syscalls::{Done, Sys};
use iosched_types::Bytes;
use iosched_types::units::SEC;

use super::{Descriptor, Figure, Kind, Param, Params, Periodic, files, fits};

mod backend;
mod buffers;
mod checkpoint;
mod server;
mod wal;

use server::Server;

/// A page of PostgreSQL.
const PAGE: Bytes = 8192;
/// Pages of a file; a longer table has several.
const FILE_PAGES: u64 = 131_072;
/// A segment of the write-ahead log.
const SEGMENT: Bytes = 16 << 20;
/// Segments that are always there, as `min_wal_size` of 80 MB keeps them.
const SEGMENTS: u64 = 5;
/// Accounts of a branch; rows of a page, entries of a page of the index (as 15 builds them).
const ACCOUNTS: u64 = 100_000;
const ROWS: u64 = 61;
const ENTRIES: u64 = 366;
/// Entries of an inner page of the index.
const FAN_OUT: u64 = 285;
/// Rows of a page of the history.
const HISTORY_ROWS: u64 = 157;

/// Barrier of the start; counters of transactions.
const START: u32 = 0;
const DONE: u32 = 1;

/// The server and its clients.
pub(super) static PGBENCH: Descriptor = Descriptor {
    name: "pgbench",
    quick: &[("scale", "100"), ("time", "10")],
    text: "pgbench on PostgreSQL: clients update random accounts, each commit is a synced write of the log; shared \
           buffers, group commit, background writer and checkpoints (Phoronix Test Suite 1.6.0, normal load).",
    params: &[
        Param {
            name: "scale",
            text: "Branches of 100,000 accounts (-s); the published runs on disk have 4915, 73 GB.",
            default: "1000",
            kind: Kind::Count(1, 100_000),
        },
        Param { name: "clients", text: "Clients (-c).", default: "32", kind: Kind::Count(1, 1000) },
        Param {
            name: "time",
            text: "Seconds (-T).",
            default: "60",
            kind: Kind::Count(1, 1_000_000),
        },
        Param {
            name: "transactions",
            text: "Transactions of each client (-t); 0: as many as the time lets.",
            default: "0",
            kind: Kind::Count(0, 1 << 32),
        },
        Param {
            name: "mode",
            text: "`tpcb`, or `select-only` (-S).",
            default: "tpcb",
            kind: Kind::Word(&["tpcb", "select-only"]),
        },
        Param {
            name: "shared_buffers",
            text: "Memory for pages.",
            default: "128M",
            kind: Kind::Bytes(1 << 20, 1 << 40),
        },
        Param {
            name: "full_page_writes",
            text: "1: the log has a whole page when it is first changed after a checkpoint.",
            default: "1",
            kind: Kind::Count(0, 1),
        },
        Param {
            name: "synchronous_commit",
            text: "1: a commit waits for the log.",
            default: "1",
            kind: Kind::Count(0, 1),
        },
        Param {
            name: "checkpoint_timeout",
            text: "Seconds between checkpoints.",
            default: "300",
            kind: Kind::Count(1, 86_400),
        },
        Param {
            name: "max_wal_size",
            text: "Length of the log that checkpoints keep to.",
            default: "1G",
            kind: Kind::Bytes(2 << 24, 1 << 44),
        },
        Param {
            name: "completion",
            text: "Percent of the time to the next checkpoint in which one writes (checkpoint_completion_target).",
            default: "50",
            kind: Kind::Count(0, 100),
        },
        Param {
            name: "think",
            text: "Microseconds of CPU time of a statement, of which a transaction of `tpcb` has seven.",
            default: "45",
            kind: Kind::Count(0, 1_000_000),
        },
        Param { name: "seed", text: "Seed.", default: "1", kind: Kind::Count(0, 1 << 32) },
    ],
    figures: &[
        Figure { name: "tps", unit: "1/s", higher_is_better: Some(true) },
        Figure { name: "log syncs per transaction", unit: "1", higher_is_better: None },
        Figure { name: "log per transaction", unit: "KiB", higher_is_better: None },
        Figure { name: "pages written by clients", unit: "1", higher_is_better: None },
        Figure { name: "checkpoints", unit: "1", higher_is_better: None },
    ],
    absent: &[],
    only_real: &[],
    periodic: &[Periodic {
        figure: "checkpoints",
        none: "no checkpoint fell into this run",
        advice: "one comes every checkpoint_timeout seconds, and when the log grows towards max_wal_size: give it more \
                 time to see what checkpoints do",
    }],
    room: |p| {
        let pages = |t: &Table| t.pages(p.count("scale"));
        Table::ALL.iter().map(pages).sum::<u64>() * PAGE + SEGMENTS * SEGMENT
    },
    fits: |p| {
        // A page is pinned by whoever waits for it, two by who also makes room.
        let (buffers, clients) = (p.bytes("shared_buffers"), p.count("clients"));
        let least = 4 * PAGE * clients;
        fits(buffers >= least, || {
            format!(
                "shared_buffers={buffers} is too little for {clients} clients: {least} at least"
            )
        })
    },
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p)),
};

/// Tables, indexes and what else the server has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Table {
    Accounts,
    AccountsIndex,
    Branches,
    BranchesIndex,
    Tellers,
    TellersIndex,
    History,
}

impl Table {
    const ALL: [Table; 7] = [
        Table::Accounts,
        Table::AccountsIndex,
        Table::Branches,
        Table::BranchesIndex,
        Table::Tellers,
        Table::TellersIndex,
        Table::History,
    ];

    fn file(self) -> &'static str {
        match self {
            Table::Accounts => "base/accounts",
            Table::AccountsIndex => "base/accounts_pkey",
            Table::Branches => "base/branches",
            Table::BranchesIndex => "base/branches_pkey",
            Table::Tellers => "base/tellers",
            Table::TellersIndex => "base/tellers_pkey",
            Table::History => "base/history",
        }
    }

    /// Pages after the load.
    fn pages(self, scale: u64) -> u64 {
        let accounts = scale * ACCOUNTS;
        match self {
            Table::Accounts => accounts.div_ceil(ROWS),
            Table::AccountsIndex => {
                let leaves = accounts.div_ceil(ENTRIES);
                leaves + leaves.div_ceil(FAN_OUT) + 8
            }
            Table::Branches => scale.div_ceil(226),
            Table::Tellers => (scale * 10).div_ceil(185),
            Table::BranchesIndex => 2 + scale.div_ceil(ENTRIES),
            Table::TellersIndex => 2 + (scale * 10).div_ceil(ENTRIES),
            Table::History => 0,
        }
    }
}

async fn prepare(sys: Sys, p: Params) -> Done {
    for dir in ["base", "global", "pg_wal", "pg_xact"] {
        files::make_directory(&sys, dir).await?;
    }
    for table in Table::ALL {
        let pages = table.pages(p.count("scale"));
        for file in 0..=pages.saturating_sub(1) / FILE_PAGES {
            let len = (pages - (file * FILE_PAGES).min(pages)).min(FILE_PAGES) * PAGE;
            files::make(&sys, &server::name(table, file), len).await?;
        }
    }
    for segment in 0..SEGMENTS {
        files::make(&sys, &wal::name(segment), SEGMENT).await?;
    }
    files::make(&sys, "pg_xact/0000", PAGE).await?;
    files::make(&sys, "global/pg_control", PAGE).await?;
    sys.sync().await
}

async fn run(sys: Sys, p: Params) -> Done {
    let clients = p.count("clients");
    // One sleeper more for each of the server's own processes.
    let mut pipes = Vec::new();
    for _ in 0..clients + 3 {
        pipes.push(sys.pipe().await?);
    }
    let server = Arc::new(Server::new(&p, pipes));
    let mut own = Vec::new();
    for (id, which) in (clients..).zip(["checkpointer", "bgwriter", "walwriter"]) {
        let (server, p) = (server.clone(), p.clone());
        own.push(
            sys.fork_as(which, async move |sys| {
                let b = backend::Backend::new(sys, server, id as usize);
                match which {
                    "checkpointer" => checkpoint::checkpointer(b, &p).await,
                    "bgwriter" => checkpoint::background_writer(b).await,
                    _ => wal::writer(b).await,
                }
            })
            .await?,
        );
    }
    let mut children = Vec::new();
    for id in 0..clients {
        let (server, p) = (server.clone(), p.clone());
        let client = async move |sys| {
            let b = backend::Backend::new(sys, server, id as usize);
            backend::client(b, p).await
        };
        children.push(sys.fork_as("client", client).await?);
    }
    sys.barrier(START, clients as u32 + 1).await?;
    let begun = sys.now();
    for child in children {
        sys.join(child).await?;
    }
    let time = (sys.now() - begun).max(1);
    for task in &own {
        sys.signal(*task).await?;
    }
    for task in own {
        sys.join(task).await?;
    }
    let n = sys.add(DONE, 0).await?.max(1) as f64;
    let counted = server.counted();
    sys.figure("tps", n * SEC as f64 / time as f64).await?;
    sys.figure("log syncs per transaction", counted.syncs as f64 / n).await?;
    sys.figure("log per transaction", counted.log as f64 / 1024.0 / n).await?;
    sys.figure("pages written by clients", counted.by_clients as f64).await?;
    sys.figure("checkpoints", counted.checkpoints as f64).await
}
