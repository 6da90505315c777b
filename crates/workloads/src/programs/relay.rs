//! `relay`: processes that pass a token around through pipes. The holder of the token appends a record and syncs it.

use iosched_syscalls::{Done, Errno, Fd, OpenFlags, Sys};

use super::{Descriptor, Kind, Param, Params, files};

const START: u32 = 0;

/// The relay.
pub(super) static RELAY: Descriptor = Descriptor {
    name: "relay",
    quick: &[],
    text: "Processes hand a token round through pipes; who has it appends a record to its own file and makes it durable.",
    params: &[
        Param { name: "nproc", text: "Processes.", default: "4", kind: Kind::Count(1, 4096) },
        Param {
            name: "rounds",
            text: "How often the token goes round.",
            default: "100",
            kind: Kind::Count(1, 1 << 32),
        },
        Param {
            name: "size",
            text: "Bytes of a record.",
            default: "4096",
            kind: Kind::Bytes(1, 1 << 30),
        },
        Param {
            name: "think",
            text: "Microseconds of CPU time before each record.",
            default: "0",
            kind: Kind::Count(0, 1 << 40),
        },
    ],
    figures: &[],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |_| 0,
    fits: |_| Ok(()),
    prepare: None,
    run: |sys, p| Box::pin(run(sys, p)),
};

async fn run(sys: Sys, p: Params) -> Done {
    let n = p.count("nproc") as usize;
    let mut pipes = Vec::with_capacity(n);
    for _ in 0..n {
        pipes.push(sys.pipe().await?);
    }
    for i in 0..n {
        let (from, to) = (pipes[i].0, pipes[(i + 1) % n].1);
        let p = p.clone();
        sys.fork_as("runner", async move |sys| runner(sys, p, i, from, to).await).await?;
    }
    sys.barrier(START, n as u32 + 1).await?;
    sys.write(pipes[0].1, 1).await?;
    files::wait_for(&sys, n as u64).await
}

async fn runner(sys: Sys, p: Params, i: usize, from: Fd, to: Fd) -> Done {
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::APPEND;
    let log = sys.open(format_args!("log{i}"), flags).await?;
    sys.barrier(START, p.count("nproc") as u32 + 1).await?;
    for _ in 0..p.count("rounds") {
        if sys.read(from, 1).await? == 0 {
            return Err(Errno::EPIPE);
        }
        let begun = sys.now();
        sys.compute(p.micros("think")).await?;
        sys.write(log, p.bytes("size")).await?;
        sys.fdatasync(log).await?;
        sys.note("record", begun, p.bytes("size")).await?;
        sys.write(to, 1).await?;
    }
    Ok(())
}
