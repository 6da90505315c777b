//! `rd`: reads of one file at exact positions.

use iosched_syscalls::{Advice, Done, Errno, OpenFlags, Sys};
use iosched_types::units::SEC;

use super::{Descriptor, Figure, Kind, Param, Params, files, fits};

/// The reader.
pub(super) static RD: Descriptor = Descriptor {
    name: "rd",
    quick: &[],
    text: "Reads one file at exact positions, one after the other, and times each read.",
    params: &[
        Param {
            name: "pattern",
            text: "How: `pread`; `mmap` (a byte of each place of a map); `two` (two positions in turn on one descriptor); \
                   `two2` (on two); `fadvrandom`, `fadvseq` (`pread` after that advice).",
            default: "pread",
            kind: Kind::Word(&["pread", "mmap", "two", "two2", "fadvrandom", "fadvseq"]),
        },
        Param { name: "file", text: "What is read.", default: "small", kind: Kind::Name },
        Param {
            name: "bs",
            text: "Length of a read.",
            default: "4096",
            kind: Kind::Bytes(1, 1 << 30),
        },
        Param {
            name: "start",
            text: "Position of the first read.",
            default: "0",
            kind: Kind::Bytes(0, 1 << 50),
        },
        Param {
            name: "stride",
            text: "From one position to the next; may be negative.",
            default: "4096",
            kind: Kind::Bytes(-(1 << 50), 1 << 50),
        },
        Param { name: "count", text: "Reads.", default: "1000", kind: Kind::Count(1, 1 << 40) },
        Param {
            name: "size",
            text: "Length of the file, which is made before.",
            default: "256M",
            kind: Kind::Bytes(1, 1 << 50),
        },
        Param {
            name: "apart",
            text: "Distance of the two positions of `two` and `two2`.",
            default: "128M",
            kind: Kind::Bytes(0, 1 << 50),
        },
    ],
    figures: &[Figure { name: "all reads", unit: "s", higher_is_better: Some(false) }],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| p.bytes("size"),
    fits: |p| {
        let (bs, size) = (p.bytes("bs"), p.bytes("size"));
        let both = p.word("pattern").starts_with("two");
        let steps = i128::from((p.number("count").max(1) - 1) / if both { 2 } else { 1 });
        let first = i128::from(p.number("start"));
        let last = first + steps * i128::from(p.number("stride"));
        let aside = if both { i128::from(p.number("apart")) } else { 0 };
        let ends = [first, last, first + aside, last + aside];
        let inside = ends.iter().all(|at| *at >= 0 && at + i128::from(bs) <= i128::from(size));
        fits(inside, || {
            let (low, high) = (ends.iter().min(), ends.iter().max());
            let (low, high) = (low.copied().unwrap_or(0), high.copied().unwrap_or(0));
            format!(
                "reads of {bs} bytes from {low} to {high} do not lie in size={size}; --param size=… makes the file larger"
            )
        })
    },
    prepare: Some(|sys, p| {
        Box::pin(async move {
            let (name, size) = (p.word("file"), p.bytes("size"));
            match sys.stat(&name).await {
                Ok(there) if there.bytes >= size => Ok(()),
                _ => files::make(&sys, &name, size).await,
            }
        })
    }),
    run: |sys, p| Box::pin(run(sys, p)),
};

async fn run(sys: Sys, p: Params) -> Done {
    let (pattern, file) = (p.word("pattern"), p.word("file"));
    let (bs, start, stride) = (p.bytes("bs"), p.number("start"), p.number("stride"));
    let first = sys.open(&file, OpenFlags::READ).await?;
    let second = sys.open(&file, OpenFlags::READ).await?;
    let map = match &*pattern {
        "mmap" => Some(sys.mmap(first, 0, p.bytes("size")).await?),
        _ => None,
    };
    match &*pattern {
        "fadvrandom" => sys.fadvise(first, 0, 0, Advice::Random).await?,
        "fadvseq" => sys.fadvise(first, 0, 0, Advice::Sequential).await?,
        _ => {}
    }
    let both = pattern.starts_with("two");
    let opened = sys.now();
    for i in 0..p.number("count") {
        let begun = sys.now();
        let odd = both && i % 2 == 1;
        let step = if both { i / 2 } else { i };
        let aside = if odd { p.number("apart") } else { 0 };
        let at = u64::try_from(start + step * stride + aside).map_err(|_| Errno::EINVAL)?;
        match map {
            Some(map) => sys.load(map, at).await?,
            None => {
                let fd = if odd && &*pattern == "two2" { second } else { first };
                if sys.pread(fd, at, bs).await? != bs {
                    return Err(Errno::EINVAL);
                }
            }
        }
        sys.note("read", begun, if map.is_some() { 1 } else { bs }).await?;
    }
    sys.figure("all reads", (sys.now() - opened) as f64 / SEC as f64).await
}
