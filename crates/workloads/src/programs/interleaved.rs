//! `interleaved`: readers whose zones lie interleaved, so that together they read one stretch of the disk. The S suite's
//! interleaved_io.

use iosched_syscalls::{Done, OpenFlags, Sys};
use iosched_types::units::SEC;
use iosched_types::{Bytes, Nanos};

use super::{Descriptor, Figure, Kind, Param, Params, files, fits};

/// Barrier of the start; counter of bytes.
const START: u32 = 0;
const READ: u32 = 1;

/// The readers.
pub(super) static INTERLEAVED: Descriptor = Descriptor {
    name: "interleaved",
    quick: &[("seconds", "5"), ("size", "2G")],
    text: "Readers of zones that lie interleaved: each reads its own ones in order, and all together one stretch of the \
           disk (the S suite's interleaved_io).",
    params: &[
        Param { name: "readers", text: "Processes.", default: "5", kind: Kind::Count(1, 1024) },
        Param {
            name: "zone",
            text: "Bytes of a zone.",
            default: "16k",
            kind: Kind::Bytes(4096, 1 << 30),
        },
        Param {
            name: "block",
            text: "Bytes of a call; a zone is a multiple of it.",
            default: "16k",
            kind: Kind::Bytes(512, 1 << 30),
        },
        Param {
            name: "seconds",
            text: "How long they read.",
            default: "30",
            kind: Kind::Count(1, 86_400),
        },
        Param {
            name: "size",
            text: "Bytes of the stretch; at its end the readers begin anew.",
            default: "8G",
            kind: Kind::Bytes(1 << 20, 1 << 50),
        },
    ],
    figures: &[Figure { name: "read", unit: "MB/s", higher_is_better: Some(true) }],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| p.bytes("size"),
    fits: |p| {
        let (zone, block, readers) = (p.bytes("zone"), p.bytes("block"), p.count("readers"));
        fits(zone % block == 0, || format!("zone={zone} is no multiple of block={block}"))?;
        let (all, size) = (zone.saturating_mul(readers), p.bytes("size"));
        fits(all <= size, || format!("{readers} zones of {zone} bytes do not fit in size={size}"))
    },
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p)),
};

async fn prepare(sys: Sys, p: Params) -> Done {
    files::make(&sys, "stretch", p.bytes("size")).await
}

async fn run(sys: Sys, p: Params) -> Done {
    let begun = sys.now();
    for reader in 0..p.count("readers") {
        let p = p.clone();
        sys.fork_as("reader", async move |sys| read(&sys, &p, reader, begun).await).await?;
    }
    files::wait_for(&sys, p.count("readers")).await?;
    let seconds = (sys.now() - begun).max(1) as f64 / SEC as f64;
    sys.figure("read", sys.add(READ, 0).await? as f64 / 1e6 / seconds).await
}

async fn read(sys: &Sys, p: &Params, reader: u64, begun: Nanos) -> Done {
    // The suite reads the disk itself. In memory each would find what the others' read-ahead has fetched.
    let fd = sys.open("stretch", OpenFlags::READ | OpenFlags::DIRECT).await?;
    sys.barrier(START, p.count("readers") as u32).await?;
    let (zone, block) = (p.bytes("zone"), p.bytes("block"));
    let stride = zone * p.count("readers");
    let rounds = p.bytes("size") / stride;
    let mut round: Bytes = 0;
    while sys.now() - begun < p.count("seconds") * SEC {
        let first = (round % rounds) * stride + reader * zone;
        for at in (first..first + zone).step_by(block as usize) {
            let call = sys.now();
            let n = sys.pread(fd, at, block).await?;
            sys.add(READ, n.cast_signed()).await?;
            sys.note("read", call, n).await?;
        }
        round += 1;
    }
    sys.close(fd).await
}
