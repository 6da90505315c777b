//! `iozone`: sequential writing and reading of large files through the page cache, by one process or by several at a time.
//!
//! After the description of IOzone 3.405 and 3.327 in use: `-i 0`, `-i 1`, `-r`, `-s`, `-t`, `-e`, `-c`.

use iosched_syscalls::{Done, OpenFlags, Part, Sys};
use iosched_types::Bytes;
use iosched_types::units::SEC;

use super::{Descriptor, Figure, Kind, Param, Params, files, fits};

/// Barriers of the phases; counters of who is done, of bytes, of when the first began; from `RATE` on a rate for each child.
const START: u32 = 0;
const DONE: u32 = 10;
const BYTES: u32 = 20;
const BEGUN: u32 = 30;
const RATE: u32 = 40;
/// Processes at most.
const MOST: i64 = 1024;

const fn rate(name: &'static str) -> Figure {
    Figure { name, unit: "KB/s", higher_is_better: Some(true) }
}

/// What several processes add to the sum: it is their sum that is compared.
const fn beside(name: &'static str) -> Figure {
    Figure { name, unit: "KB/s", higher_is_better: None }
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
            kind: Kind::Count(1, MOST),
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
    figures: &[
        rate("write"),
        beside("write, parent"),
        beside("write, slowest process"),
        beside("write, fastest process"),
        rate("rewrite"),
        beside("rewrite, parent"),
        beside("rewrite, slowest process"),
        beside("rewrite, fastest process"),
        rate("read"),
        beside("read, parent"),
        beside("read, slowest process"),
        beside("read, fastest process"),
        rate("reread"),
        beside("reread, parent"),
        beside("reread, slowest process"),
        beside("reread, fastest process"),
    ],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| p.count("processes").saturating_mul(p.bytes("size")),
    fits: |p| {
        let (size, record) = (p.bytes("size"), p.bytes("record"));
        fits(record <= size, || format!("record={record} is above size={size}"))
    },
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
            sys.fork_as("child", async move |sys| process(sys, p, child, phase).await).await?;
        }
        files::wait_for(&sys, n).await?;
        sys.mark(Part::Phase, name, begun).await?;
        report(&sys, phase, n).await?;
    }
    Ok(())
}

/// The sum of what each has done a second, as IOzone adds up its children; of several also what the parent sees, from the
/// barrier to the end of the last, and the slowest and the fastest.
async fn report(sys: &Sys, phase: u32, n: u64) -> Done {
    let name = |i: usize| IOZONE.figures[4 * phase as usize + i].name;
    let (mut sum, mut least, mut most) = (0, i64::MAX, 0);
    for child in 0..n {
        let rate = sys.add(rate_of(phase, child), 0).await?;
        (sum, least, most) = (sum + rate, least.min(rate), most.max(rate));
    }
    sys.figure(name(0), sum as f64 / 1024.0).await?;
    if n == 1 {
        return Ok(());
    }
    let took = (sys.now() as i64 - sys.add(BEGUN + phase, 0).await?).max(1);
    let all = sys.add(BYTES + phase, 0).await? as f64 * SEC as f64 / took as f64;
    sys.figure(name(1), all / 1024.0).await?;
    sys.figure(name(2), least as f64 / 1024.0).await?;
    sys.figure(name(3), most as f64 / 1024.0).await
}

/// The counter of a child's rate in a phase.
fn rate_of(phase: u32, child: u64) -> u32 {
    RATE + phase * MOST as u32 + child as u32
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
    if child == 0 {
        sys.add(BEGUN + phase, begun.cast_signed()).await?;
    }
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
    let rate = u128::from(done) * u128::from(SEC) / u128::from(time);
    sys.add(rate_of(phase, child), rate as i64).await?;
    sys.add(BYTES + phase, done.cast_signed()).await?;
    if p.count("close") == 0 {
        if writes {
            sys.fsync(fd).await?;
        }
        sys.close(fd).await?;
    }
    Ok(())
}
