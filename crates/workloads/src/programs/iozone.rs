//! `iozone`: sequential writing and reading of large files through the page cache, by one process or by several at a time.
//!
//! After the description of IOzone 3.405 and 3.327 in use: `-i 0`, `-i 1`, `-r`, `-s`, `-t`, `-e`, `-c`.

use iosched_syscalls::{Done, OpenFlags, Part, Sys};
use iosched_types::Bytes;
use iosched_types::units::SEC;

use super::{Descriptor, Figure, Kind, Param, Params, files};

/// Barriers of the phases; counters of bytes, of time, and of who is done.
const START: u32 = 0;
const RATE: u32 = 10;
const DONE: u32 = 20;

const fn rate(name: &'static str) -> Figure {
    Figure { name, unit: "KB/s", higher_is_better: Some(true) }
}

/// The files.
pub(super) static IOZONE: Descriptor = Descriptor {
    name: "iozone",
    quick: &[("size", "256M")],
    text: "IOzone: each process writes, rewrites, reads and rereads a large file of its own, phase by phase. The first that \
           is done with a phase stops the others.",
    params: &[
        Param {
            name: "size",
            text: "Bytes of a file (-s).",
            default: "8G",
            kind: Kind::Bytes(4096, 1 << 50),
        },
        Param {
            name: "record",
            text: "Bytes of a call (-r).",
            default: "4k",
            kind: Kind::Bytes(1024, 1 << 30),
        },
        Param {
            name: "processes",
            text: "Processes (-t).",
            default: "1",
            kind: Kind::Count(1, 1024),
        },
        Param {
            name: "tests",
            text: "`write` (-i 0) or `read` (-i 0 -i 1: after writing).",
            default: "write",
            kind: Kind::Word(&["write", "read"]),
        },
        Param {
            name: "fsync",
            text: "1: the time includes an fsync (-e).",
            default: "1",
            kind: Kind::Count(0, 1),
        },
        Param {
            name: "close",
            text: "1: the time includes the close (-c).",
            default: "0",
            kind: Kind::Count(0, 1),
        },
    ],
    figures: &[rate("write"), rate("rewrite"), rate("read"), rate("reread")],
    periodic: &[],
    room: |p| p.count("processes").saturating_mul(p.bytes("size")),
    fits: |_| Ok(()),
    prepare: None,
    run: |sys, p| Box::pin(run(sys, p)),
};

/// The phases: name, whether it writes.
const PHASES: [(&str, bool); 4] =
    [("write", true), ("rewrite", true), ("read", false), ("reread", false)];

async fn run(sys: Sys, p: Params) -> Done {
    let phases = if &*p.word("tests") == "read" { 4 } else { 2 };
    let n = p.count("processes");
    for (phase, (name, _)) in (0u32..).zip(PHASES).take(phases) {
        sys.sync().await?;
        let begun = sys.now();
        for child in 0..n {
            let p = p.clone();
            sys.fork(async move |sys| process(sys, p, child, phase).await).await?;
        }
        files::wait_for(&sys, n).await?;
        sys.mark(Part::Phase, name, begun).await?;
        // The sum of what each has done a second, as IOzone adds up its children.
        let sum = sys.add(RATE + phase, 0).await?;
        sys.figure(name, sum as f64 / 1024.0).await?;
    }
    Ok(())
}

async fn process(sys: Sys, p: Params, child: u64, phase: u32) -> Done {
    let (name, writes) = PHASES[phase as usize];
    let file = format!("iozone.DUMMY.{child}");
    let fd = if writes {
        if phase == 0 {
            let _ = sys.unlink(&file).await;
            let fd = sys.creat(&file).await?;
            sys.close(fd).await?;
        }
        let fd = sys.open(&file, OpenFlags::READ | OpenFlags::WRITE).await?;
        sys.fsync(fd).await?;
        fd
    } else {
        sys.open(&file, OpenFlags::READ).await?
    };
    sys.barrier(START + phase, p.count("processes") as u32).await?;
    let (size, record) = (p.bytes("size"), p.bytes("record"));
    let (begun, mut done): (u64, Bytes) = (sys.now(), 0);
    while done < size {
        let call = sys.now();
        let len = record.min(size - done);
        let n = if writes { sys.write(fd, len).await? } else { sys.read(fd, len).await? };
        if n == 0 {
            break;
        }
        done += n;
        sys.note(name, call, n).await?;
        // Another one is done: what all did until now counts.
        if sys.add(DONE + phase, 0).await? > 0 {
            break;
        }
    }
    sys.add(DONE + phase, 1).await?;
    if p.count("fsync") == 1 && writes {
        sys.fsync(fd).await?;
    }
    if p.count("close") == 1 {
        sys.close(fd).await?;
    }
    let time = (sys.now() - begun).max(1);
    sys.add(RATE + phase, (u128::from(done) * u128::from(SEC) / u128::from(time)) as i64).await?;
    if p.count("close") == 0 {
        if writes {
            sys.fsync(fd).await?;
        }
        sys.close(fd).await?;
    }
    Ok(())
}
