//! `compilebench`: trees of source files are made, filled with object files, read and deleted, by one process and
//! without any sync in the measured parts.
//!
//! After the description of CompileBench 0.6 with `--makej`.

use iosched_syscalls::{Done, Errno, OpenFlags, Part, Sys};
use iosched_types::units::SEC;
use iosched_types::{Bytes, Nanos};

use super::files::Dice;
use super::{Descriptor, Figure, Kind, Param, Params};

/// Bytes of a call.
const CHUNK: Bytes = 256 << 10;

/// The trees.
pub(super) static COMPILEBENCH: Descriptor = Descriptor {
    name: "compilebench",
    quick: &[("i", "3"), ("scale", "10")],
    text: "CompileBench 0.6: makes trees as large as a kernel's sources, writes object files into them, reads some and \
           deletes all; no sync in the measured parts (`-i 10 --makej`, as Phoronix Test Suite 1.0.x runs it).",
    params: &[
        Param { name: "i", text: "Trees (-i).", default: "10", kind: Kind::Count(1, 1000) },
        Param {
            name: "scale",
            text: "Percent of the files and directories of a tree: less is a shorter run of another benchmark.",
            default: "100",
            kind: Kind::Count(1, 100),
        },
        Param {
            name: "read",
            text: "Trees that are read.",
            default: "3",
            kind: Kind::Count(0, 1000),
        },
        Param {
            name: "think",
            text: "Microseconds of CPU time of the program itself for each file: the original is a Python program, and \
                   10 is what Python 3 takes to open, write and close one.",
            default: "10",
            kind: Kind::Count(0, 1_000_000),
        },
        Param {
            name: "seed",
            text: "Seed of order and lengths.",
            default: "555",
            kind: Kind::Count(0, 1 << 32),
        },
    ],
    figures: &[
        rate("initial create"),
        rate("compile"),
        rate("read compiled tree"),
        Figure { name: "delete", unit: "s/tree", higher_is_better: Some(false) },
    ],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| {
        // Lengths are whole bytes: each file may have one less than its share.
        let tree = (SOURCE_BYTES + OBJECT_BYTES) as Bytes - FILES - OBJECT_FILES;
        p.count("i") * p.count("scale") * tree / 100
    },
    fits: |_| Ok(()),
    prepare: None,
    run: |sys, p| Box::pin(run(sys, p)),
};

const fn rate(name: &'static str) -> Figure {
    Figure { name, unit: "MB/s", higher_is_better: Some(true) }
}

/// Lengths of files by their quantiles; between two of them the logarithm is uniform.
struct Lengths(&'static [(f64, f64)]);

/// Sources: median 4,055 bytes, none above 873,603; 222.4 MiB in 21,280 files.
const SOURCES: Lengths =
    Lengths(&[(0.0, 64.0), (0.5, 4055.0), (0.9, 25_600.0), (0.99, 95_000.0), (1.0, 873_603.0)]);
/// Objects: 410 of 3,263 are empty, median 14.8 KB, nine in ten below 198 KB, none above 64 MB; 680.6 MiB.
const OBJECTS: Lengths = Lengths(&[
    (0.0, 0.0),
    (0.1256, 0.0),
    (0.126, 1000.0),
    (0.5, 14_800.0),
    (0.9, 198_000.0),
    (0.995, 2_400_000.0),
    (1.0, 64e6),
]);

const FILES: u64 = 21_280;
const DIRECTORIES: u64 = 1_239;
const OBJECT_FILES: u64 = 3_263;
const MIB: f64 = 1024.0 * 1024.0;
/// Bytes of the files of a tree.
const SOURCE_BYTES: f64 = 222.4 * MIB;
const OBJECT_BYTES: f64 = 680.6 * MIB;

impl Lengths {
    /// The length of a quantile.
    fn at(&self, q: f64) -> Bytes {
        let above = self.0.iter().position(|(p, _)| *p >= q).unwrap_or(self.0.len() - 1).max(1);
        let ((p, low), (r, high)) = (self.0[above - 1], self.0[above]);
        let part = (q - p) / (r - p);
        if low == 0.0 { (high * part) as Bytes } else { (low * (high / low).powf(part)) as Bytes }
    }

    /// The lengths of `n` files, which together are `bytes` long, in random order. The quantiles are evenly spaced; what
    /// the sum is short of or beyond the given one, the upper tenth has in proportion.
    fn of(&self, n: u64, bytes: f64, dice: &mut Dice) -> Vec<Bytes> {
        let mut all: Vec<Bytes> = (0..n).map(|i| self.at((i as f64 + 0.5) / n as f64)).collect();
        let tail = all.len() - (all.len() / 10).max(1);
        let sum = |part: &[Bytes]| part.iter().sum::<Bytes>() as f64;
        let factor = (bytes - sum(&all[..tail])) / sum(&all[tail..]).max(1.0);
        let most = self.0[self.0.len() - 1].1;
        for len in &mut all[tail..] {
            *len = (*len as f64 * factor.max(0.1)).min(most) as Bytes;
        }
        shuffle(&mut all, dice);
        all
    }
}

fn shuffle<T>(all: &mut [T], dice: &mut Dice) {
    for i in (1..all.len()).rev() {
        all.swap(i, dice.below(i as u64 + 1) as usize);
    }
}

/// A tree as it is to be: directories, files with their lengths. The order is that in which files are made.
struct Plan {
    directories: u64,
    sources: Vec<(String, Bytes)>,
    objects: Vec<(String, Bytes)>,
}

impl Plan {
    fn new(p: &Params) -> Plan {
        let part = p.count("scale") as f64 / 100.0;
        let scaled = |n: u64| ((n as f64 * part).ceil() as u64).max(1);
        let (directories, mut dice) = (scaled(DIRECTORIES), Dice::new(p.count("seed")));
        let [n, m] = [scaled(FILES), scaled(OBJECT_FILES)];
        let sources = SOURCES.of(n, 222.4 * MIB * part, &mut dice);
        let objects = OBJECTS.of(m, 680.6 * MIB * part, &mut dice);
        // File systems hand names out in the order of hashes: not that of names, and directory by directory.
        let mut order: Vec<u64> = (0..directories).collect();
        shuffle(&mut order, &mut dice);
        let place = |i: u64| order[(i * directories / n) as usize];
        let sources = (0..n).zip(sources).map(|(i, l)| (format!("d{}/f{i}.c", place(i)), l));
        let mut compiled: Vec<(String, Bytes)> = (0..m)
            .zip(objects)
            .map(|(i, l)| (format!("d{}/o{i}.o", place(i * n / m)), l))
            .collect();
        shuffle(&mut compiled, &mut dice);
        Plan { directories, sources: sources.collect(), objects: compiled }
    }
}

async fn run(sys: Sys, p: Params) -> Done {
    let plan = Plan::new(&p);
    let (trees, think) = (p.count("i"), p.micros("think"));
    let mut dice = Dice::new(p.count("seed") + 1);
    let mut rates = Vec::new();
    let phase = sys.now();
    for tree in 0..trees {
        let begun = sys.now();
        sys.mkdir(format_args!("kernel-{tree}")).await?;
        for d in 0..plan.directories {
            sys.mkdir(format_args!("kernel-{tree}/d{d}")).await?;
        }
        rates.push(
            speed(&sys, begun, write(&sys, tree, &plan.sources, think).await?, "create").await?,
        );
    }
    sys.mark(Part::Phase, "initial create", phase).await?;
    mean(&sys, "initial create", &rates).await?;
    sys.sync().await?;
    rates.clear();
    let mut order: Vec<u64> = (0..trees).collect();
    shuffle(&mut order, &mut dice);
    let phase = sys.now();
    for tree in &order {
        let begun = sys.now();
        rates.push(
            speed(&sys, begun, write(&sys, *tree, &plan.objects, think).await?, "compile").await?,
        );
    }
    sys.mark(Part::Phase, "compile", phase).await?;
    mean(&sys, "compile", &rates).await?;
    sys.sync().await?;
    rates.clear();
    shuffle(&mut order, &mut dice);
    let phase = sys.now();
    for tree in order.iter().cycle().take(p.count("read") as usize) {
        let begun = sys.now();
        rates.push(speed(&sys, begun, read(&sys, *tree, think).await?, "read").await?);
    }
    sys.mark(Part::Phase, "read compiled tree", phase).await?;
    mean(&sys, "read compiled tree", &rates).await?;
    let begun = sys.now();
    for tree in 0..trees {
        delete(&sys, &format!("kernel-{tree}"), think).await?;
    }
    sys.mark(Part::Phase, "delete", begun).await?;
    sys.figure("delete", (sys.now() - begun) as f64 / SEC as f64 / trees as f64).await
}

async fn speed(sys: &Sys, begun: u64, bytes: Bytes, what: &'static str) -> Result<f64, Errno> {
    sys.note(what, begun, bytes).await?;
    Ok(bytes as f64 / MIB * SEC as f64 / (sys.now() - begun).max(1) as f64)
}

async fn mean(sys: &Sys, name: &'static str, rates: &[f64]) -> Done {
    if rates.is_empty() {
        return Ok(());
    }
    sys.figure(name, rates.iter().sum::<f64>() / rates.len() as f64).await
}

async fn write(
    sys: &Sys,
    tree: u64,
    all: &[(String, Bytes)],
    think: Nanos,
) -> Result<Bytes, Errno> {
    let mut bytes = 0;
    for (name, len) in all {
        sys.compute(think).await?;
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::APPEND;
        let fd = sys.open(format_args!("kernel-{tree}/{name}"), flags).await?;
        let mut left = *len;
        while left > 0 {
            left -= sys.write(fd, left.min(CHUNK)).await?.clamp(1, left);
        }
        sys.close(fd).await?;
        bytes += len;
    }
    Ok(bytes)
}

/// Reads all files of a tree, as its directories list them.
async fn read(sys: &Sys, tree: u64, think: Nanos) -> Result<Bytes, Errno> {
    let mut bytes = 0;
    let top = format!("kernel-{tree}");
    for directory in list(sys, &top).await? {
        let directory = format!("{top}/{directory}");
        for file in list(sys, &directory).await? {
            sys.compute(think).await?;
            let fd = sys.open(format_args!("{directory}/{file}"), OpenFlags::READ).await?;
            loop {
                match sys.read(fd, CHUNK).await? {
                    0 => break,
                    n => bytes += n,
                }
            }
            sys.close(fd).await?;
        }
    }
    Ok(bytes)
}

async fn list(sys: &Sys, directory: &str) -> Result<Vec<Box<str>>, Errno> {
    let fd = sys.open(directory, OpenFlags::READ | OpenFlags::DIRECTORY).await?;
    let mut names = Vec::new();
    loop {
        let entries = sys.readdir(fd).await?;
        if entries.is_empty() {
            break;
        }
        names.extend(entries.into_iter().map(|e| e.name));
    }
    sys.close(fd).await?;
    Ok(names)
}

async fn delete(sys: &Sys, top: &str, think: Nanos) -> Done {
    for directory in list(sys, top).await? {
        let directory = format!("{top}/{directory}");
        for file in list(sys, &directory).await? {
            sys.compute(think).await?;
            sys.unlink(format_args!("{directory}/{file}")).await?;
        }
        sys.rmdir(&directory).await?;
    }
    sys.rmdir(top).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Descriptor;

    #[test]
    fn a_tree_has_the_files_of_the_published_one() {
        let (_, p) = Descriptor::from_command_line("compilebench").unwrap();
        let plan = Plan::new(&p);
        let mib = |all: &[(String, Bytes)]| all.iter().map(|f| f.1).sum::<Bytes>() as f64 / MIB;
        let sorted = |all: &[(String, Bytes)]| {
            let mut lengths: Vec<Bytes> = all.iter().map(|f| f.1).collect();
            lengths.sort_unstable();
            lengths
        };
        assert_eq!(
            (plan.sources.len(), plan.directories, plan.objects.len()),
            (21_280, 1_239, 3_263)
        );
        assert!((mib(&plan.sources) / 222.4 - 1.0).abs() < 0.02, "{}", mib(&plan.sources));
        assert!((mib(&plan.objects) / 680.6 - 1.0).abs() < 0.02, "{}", mib(&plan.objects));
        let [sources, objects] = [sorted(&plan.sources), sorted(&plan.objects)];
        assert!((sources[10_640] as f64 / 4055.0 - 1.0).abs() < 0.02, "{}", sources[10_640]);
        assert_eq!(objects.iter().filter(|l| **l == 0).count(), 410);
        assert!((objects[1_631] as f64 / 14_800.0 - 1.0).abs() < 0.02, "{}", objects[1_631]);
        assert!(objects[3_262] <= 64_000_000 && objects[3_262] > 20_000_000, "{}", objects[3_262]);
    }

    #[test]
    fn a_scaled_tree_is_smaller_in_everything_but_its_lengths() {
        let (_, p) = Descriptor::from_command_line("compilebench 1 10").unwrap();
        let plan = Plan::new(&p);
        assert_eq!((plan.sources.len(), plan.directories, plan.objects.len()), (2_128, 124, 327));
    }
}
