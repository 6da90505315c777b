//! `file-copy`: copies a large file, as `cp` does where the file system cannot share blocks.

use iosched_syscalls::{Advice, Done, OpenFlags, Sys};
use iosched_types::units::SEC;

use super::{Descriptor, Figure, Kind, Param, Params, files};

/// What coreutils asks for at a time.
const BUFFER: u64 = 128 << 10;

/// The copies.
pub(super) static FILE_COPY: Descriptor = Descriptor {
    name: "file-copy",
    quick: &[("size", "256M")],
    text: "Copies a large file through the page cache, in each of several processes; the time ends when all is durable.",
    params: &[
        Param {
            name: "size",
            text: "Bytes of a file.",
            default: "1G",
            kind: Kind::Bytes(1, 1 << 50),
        },
        Param { name: "copies", text: "Processes.", default: "1", kind: Kind::Count(1, 1024) },
    ],
    figures: &[Figure { name: "copied", unit: "MB/s", higher_is_better: Some(true) }],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| p.count("copies").saturating_mul(p.bytes("size")).saturating_mul(2),
    fits: |_| Ok(()),
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p)),
};

async fn prepare(sys: Sys, p: Params) -> Done {
    for i in 0..p.count("copies") {
        files::make(&sys, &format!("original{i}"), p.bytes("size")).await?;
    }
    Ok(())
}

async fn run(sys: Sys, p: Params) -> Done {
    let begun = sys.now();
    for i in 0..p.count("copies") {
        sys.fork_as("copy", async move |sys| copy(sys, i).await).await?;
    }
    files::wait_for(&sys, p.count("copies")).await?;
    sys.sync().await?;
    let seconds = (sys.now() - begun).max(1) as f64 / SEC as f64;
    sys.figure("copied", (p.bytes("size") * p.count("copies")) as f64 / 1e6 / seconds).await
}

async fn copy(sys: Sys, i: u64) -> Done {
    let from = sys.open(format_args!("original{i}"), OpenFlags::READ).await?;
    sys.fstat(from).await?;
    let to = sys.creat(format_args!("copy{i}")).await?;
    sys.fadvise(from, 0, 0, Advice::Sequential).await?;
    loop {
        let begun = sys.now();
        let n = sys.read(from, BUFFER).await?;
        if n == 0 {
            break;
        }
        files::write_all(&sys, to, n).await?;
        sys.note("copy", begun, n).await?;
    }
    sys.close(from).await?;
    sys.close(to).await
}
