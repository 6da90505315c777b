//! `fs-mark`: files of one size, made durable in one of fs_mark's ways.
//!
//! The calls are those of fs_mark 3.3, seen with strace.

use iosched_syscalls::{Done, Errno, OpenFlags, Sys};
use iosched_types::units::SEC;

use super::{Descriptor, Figure, Kind, Param, Params, files};

/// Bytes of a write.
const CHUNK: u64 = 16 << 10;
/// A process moves on to the next directory after so long.
const MOVES_ON: u64 = 180 * SEC;
/// Counts the time that processes took.
const TIME: u32 = 1;
const START: u32 = 0;

/// The files.
pub(super) static FS_MARK: Descriptor = Descriptor {
    name: "fs-mark",
    quick: &[("n", "100")],
    text: "FS-Mark: makes files of one size and syncs them (fs_mark 3.3).",
    params: &[
        Param {
            name: "n",
            text: "Files of each process (-n).",
            default: "1000",
            kind: Kind::Count(1, 100_000_000),
        },
        Param {
            name: "size",
            text: "Bytes of a file (-s).",
            default: "1M",
            kind: Kind::Bytes(0, 1 << 40),
        },
        Param { name: "threads", text: "Processes (-t).", default: "1", kind: Kind::Count(1, 64) },
        Param {
            name: "subdirs",
            text: "Directories, of which each process uses another one every 180 s; 0: none (-D).",
            default: "0",
            kind: Kind::Count(0, 1 << 20),
        },
        Param {
            name: "sync",
            text: "0 never; 1 fsync before close; 2 sync and an fsync at the end; 3 fsync of all at the end, the last first; \
                   4 sync and then 3; 5 fsync of all at the end, the first first; 6 sync and then 5 (-S).",
            default: "1",
            kind: Kind::Count(0, 6),
        },
        Param {
            name: "loops",
            text: "Iterations (-L).",
            default: "1",
            kind: Kind::Count(1, 1 << 20),
        },
    ],
    figures: &[Figure { name: "files per second", unit: "files/s", higher_is_better: Some(true) }],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| {
        let files = [p.count("n"), p.count("threads"), p.count("loops")];
        files.iter().fold(p.bytes("size"), |room, n| room.saturating_mul(*n))
    },
    fits: |_| Ok(()),
    prepare: None,
    run: |sys, p| Box::pin(run(sys, p)),
};

async fn run(sys: Sys, p: Params) -> Done {
    let threads = p.count("threads");
    let mut rate = 0.0;
    for l in 0..p.count("loops") {
        for t in 0..threads {
            let p = p.clone();
            sys.fork_as("thread", async move |sys| process(sys, p, t, l).await).await?;
        }
        files::wait_for(&sys, threads).await?;
        // fs_mark adds up the rates of its processes, which are nearly equal.
        let time = sys.add(TIME, 0).await?;
        sys.add(TIME, -time).await?;
        let mean = time.max(1) as f64 / threads as f64 / SEC as f64;
        rate += (p.count("n") * threads) as f64 / mean;
    }
    sys.figure("files per second", rate / p.count("loops") as f64).await
}

async fn process(sys: Sys, p: Params, t: u64, l: u64) -> Done {
    sys.barrier(START, p.count("threads") as u32).await?;
    let (n, size, sync) = (p.count("n"), p.bytes("size"), p.count("sync"));
    let begun = sys.now();
    let mut names = Vec::new();
    for i in 0..n {
        let file_begun = sys.now();
        let directory = match p.count("subdirs") {
            0 => ".".to_string(),
            dirs => format!("{:02x}", (sys.now() / MOVES_ON) % dirs),
        };
        // fs_mark makes the directory anew for each file.
        match sys.mkdir(&directory).await {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(e) => return Err(e),
        }
        let name = format!("{directory}/f{l}-{t}-{i}");
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
        let fd = sys.open(&name, flags).await?;
        let mut left = size;
        while left > 0 {
            left -= sys.write(fd, left.min(CHUNK)).await?.max(1).min(left);
        }
        if sync == 1 {
            sys.fsync(fd).await?;
        }
        sys.close(fd).await?;
        sys.note("file", file_begun, size).await?;
        if sync > 1 {
            names.push(name);
        }
    }
    sync_at_the_end(&sys, sync, &mut names).await?;
    sys.add(TIME, (sys.now() - begun) as i64).await.map(drop)
}

async fn sync_at_the_end(sys: &Sys, sync: u64, names: &mut Vec<String>) -> Done {
    if matches!(sync, 2 | 4 | 6) {
        sys.sync().await?;
    }
    match sync {
        2 => names.truncate(1),
        3 | 4 => names.reverse(),
        _ => {}
    }
    for name in names {
        let fd = sys.open(&*name, OpenFlags::READ).await?;
        sys.fsync(fd).await?;
        sys.close(fd).await?;
    }
    Ok(())
}
