//! `kernel-compile` and `php-compile`: `make -j` of a tree that is in memory.
//!
//! How many files there are and how long a compilation takes is chosen here, so that the published times on twelve
//! hardware threads come out; what a compiler does with files is seen with strace.

use iosched_syscalls::{Done, Errno, OpenFlags, Sys};
use iosched_types::units::{MS, SEC};

use super::files::{self, Dice};
use super::{Descriptor, Figure, Kind, Param, Params};

/// Headers of a tree, and how many of them a source includes.
const HEADERS: u64 = 2000;
const INCLUDED: u64 = 200;
/// Bytes of a header and of a source.
const HEADER: u64 = 6 << 10;
pub(super) const SOURCE: u64 = 14 << 10;
/// Bytes of a write of an object.
const CHUNK: u64 = 4096;
/// Files of a directory.
const DIRECTORY: u64 = 20;

const fn jobs() -> Param {
    Param {
        name: "jobs",
        text: "Compilers at a time (-j); the published runs have twice the hardware threads.",
        default: "24",
        kind: Kind::Count(1, 4096),
    }
}

const fn files_of(default: &'static str) -> Param {
    Param { name: "files", text: "Sources.", default, kind: Kind::Count(1, 1_000_000) }
}

const fn cpu(default: &'static str) -> Param {
    Param {
        name: "cpu",
        text: "Milliseconds of CPU time of a compilation.",
        default,
        kind: Kind::Count(0, 100_000),
    }
}

const fn object(default: &'static str) -> Param {
    Param { name: "object", text: "Bytes of an object.", default, kind: Kind::Bytes(1, 1 << 30) }
}

const fn scale() -> Param {
    Param {
        name: "scale",
        text: "Percent of the sources that are compiled.",
        default: "100",
        kind: Kind::Count(1, 100),
    }
}

const fn cached() -> Param {
    Param {
        name: "cached",
        text: "1: the tree is read before, as it is in memory when it was just unpacked.",
        default: "1",
        kind: Kind::Count(0, 1),
    }
}

const fn config() -> Param {
    Param {
        name: "config",
        text: "Configuration of a real kernel's tree (live); `files` and `cpu` are those of the text.",
        default: "defconfig",
        kind: Kind::Word(&["defconfig", "allnoconfig", "tinyconfig"]),
    }
}

const SECONDS: &[Figure] = &[Figure { name: "seconds", unit: "s", higher_is_better: Some(false) }];

/// The kernel.
pub(super) static KERNEL_COMPILE: Descriptor = Descriptor {
    name: "kernel-compile",
    quick: &[("scale", "5")],
    text: "Timed Linux compilation: `make -j` of a kernel's sources that are in memory; a link at the end.",
    params: &[jobs(), files_of("1650"), cpu("450"), object("48k"), scale(), cached(), config()],
    figures: SECONDS,
    absent: &[],
    only_real: &["config"],
    periodic: &[],
    room: |p| sources(p).saturating_mul(p.bytes("object")),
    fits: |_| Ok(()),
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p)),
};

/// PHP.
pub(super) static PHP_COMPILE: Descriptor = Descriptor {
    name: "php-compile",
    quick: &[("scale", "10")],
    text: "Timed PHP compilation: `make -j` of PHP's sources that are in memory; a link at the end.",
    params: &[jobs(), files_of("480"), cpu("540"), object("64k"), scale(), cached()],
    figures: SECONDS,
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| sources(p).saturating_mul(p.bytes("object")),
    fits: |_| Ok(()),
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p)),
};

fn sources(p: &Params) -> u64 {
    (p.count("files") * p.count("scale")).div_ceil(100)
}

async fn prepare(sys: Sys, p: Params) -> Done {
    tree(&sys, sources(&p)).await
}

/// A tree with headers and so many sources.
pub(super) async fn tree(sys: &Sys, sources: u64) -> Done {
    files::make_directory(sys, "include").await?;
    for i in 0..HEADERS {
        plain(sys, &format!("include/h{i}.h"), HEADER).await?;
    }
    for i in 0..sources {
        if i % DIRECTORY == 0 {
            files::make_directory(sys, &format!("d{}", i / DIRECTORY)).await?;
        }
        plain(sys, &source(i), SOURCE).await?;
    }
    sys.sync().await
}

/// A file that is not synced.
pub(super) async fn plain(sys: &Sys, name: &str, len: u64) -> Done {
    let fd = sys.creat(name).await?;
    files::write_all(sys, fd, len).await?;
    sys.close(fd).await
}

/// The name of a source.
pub(super) fn source(i: u64) -> String {
    format!("d{}/f{i}.c", i / DIRECTORY)
}

/// Reads a whole file.
pub(super) async fn slurp(sys: &Sys, name: &str) -> Done {
    let fd = sys.open(name, OpenFlags::READ).await?;
    sys.fstat(fd).await?;
    while sys.read(fd, files::MIB).await? > 0 {}
    sys.close(fd).await
}

async fn run(sys: Sys, p: Params) -> Done {
    let n = sources(&p);
    if p.count("cached") == 1 {
        for i in 0..HEADERS {
            slurp(&sys, &format!("include/h{i}.h")).await?;
        }
        for i in 0..n {
            slurp(&sys, &source(i)).await?;
        }
    }
    let begun = sys.now();
    let job = Job { cpu: p.count("cpu") * MS, object: p.bytes("object") };
    make(&sys, p.count("jobs"), n, u64::MAX, job).await?;
    link(&sys, n, job).await?;
    sys.figure("seconds", (sys.now() - begun) as f64 / SEC as f64).await
}

/// What a compilation takes and leaves.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) cpu: u64,
    pub(super) object: u64,
}

/// As `make -j` does it: as many compilers as there may be, each behind a shell. Returns how many sources are done when
/// all are or the time is over.
pub(super) async fn make(sys: &Sys, jobs: u64, n: u64, end: u64, job: Job) -> Result<u64, Errno> {
    let (mut running, mut done) = (0, 0);
    for i in 0..n {
        // make looks whether the object is there and older than its source.
        sys.stat(source(i)).await?;
        let _ = sys.stat(object_of(i)).await;
        if running == jobs {
            sys.wait().await?;
            done += u64::from(sys.now() < end);
            running -= 1;
        }
        if sys.now() >= end {
            break;
        }
        sys.fork_as("shell", async move |sys| shell(sys, i, job).await).await?;
        running += 1;
    }
    for _ in 0..running {
        sys.wait().await?;
        done += u64::from(sys.now() < end);
    }
    Ok(done)
}

fn object_of(i: u64) -> String {
    format!("d{}/f{i}.o", i / DIRECTORY)
}

async fn shell(sys: Sys, i: u64, job: Job) -> Done {
    sys.fork_as("compiler", async move |sys| compiler(sys, i, job).await).await?;
    files::wait_for(&sys, 1).await
}

/// Reads a source and its headers, computes, and writes an object in small pieces.
async fn compiler(sys: Sys, i: u64, job: Job) -> Done {
    let begun = sys.now();
    slurp(&sys, &source(i)).await?;
    let mut dice = Dice::new(i);
    for _ in 0..INCLUDED {
        slurp(&sys, &format!("include/h{}.h", dice.below(HEADERS))).await?;
        sys.compute(job.cpu / 2 / INCLUDED).await?;
    }
    let fd = sys.creat(object_of(i)).await?;
    let pieces = job.object.div_ceil(CHUNK);
    for piece in 0..pieces {
        sys.compute(job.cpu / 2 / pieces).await?;
        sys.write(fd, CHUNK.min(job.object - piece * CHUNK)).await?;
    }
    sys.close(fd).await?;
    sys.note("compilation", begun, job.object).await
}

/// Reads all objects and writes the program, as long as they are together; takes as long as ten compilations.
async fn link(sys: &Sys, n: u64, job: Job) -> Done {
    let fd = sys.creat("program").await?;
    for i in 0..n {
        slurp(sys, &object_of(i)).await?;
        sys.compute(job.cpu * 10 / n).await?;
        files::write_all(sys, fd, job.object).await?;
    }
    sys.close(fd).await
}
