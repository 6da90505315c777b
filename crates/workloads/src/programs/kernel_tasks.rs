//! `kernel-tasks`: what kernel developers wait for, cold: make, git grep, git checkout, git merge, while others read.
//!
//! After the description of `kern_dev_tasks-vs-rw` of the S suite.

use iosched_syscalls::{Advice, Done, Errno, OpenFlags, Sys};
use iosched_types::units::{MS, SEC};

use super::compile::{self, Job};
use super::files::{self, Dice, MIB};
use super::{Descriptor, Figure, Kind, Param, Params, background};

/// Counters: the task is done; files of the task that are.
const DONE: u32 = 0;
const FILES: u32 = 1;
/// Files of a kernel of the 2.6.30s.
const TREE: u64 = 27_900;
/// Threads of git grep.
const GREP_THREADS: u64 = 8;
/// Bytes of an object in a pack, of an entry of the index.
const PACKED: u64 = 4 << 10;
const ENTRY: u64 = 80;
/// Compilers at a time, and what a compilation takes.
const JOBS: u64 = 5;
const COMPILATION: Job = Job { cpu: 450 * MS, object: 48 << 10 };

/// The tasks.
pub(super) static KERNEL_TASKS: Descriptor = Descriptor {
    name: "kernel-tasks",
    quick: &[("scale", "5")],
    text: "Kernel development tasks of the S suite: make -j5 for some seconds, git grep, git checkout or git merge on a \
           cold tree, while others read and write large files.",
    params: &[
        Param {
            name: "task",
            text: "Which.",
            default: "grep",
            kind: Kind::Word(&["make", "grep", "checkout", "merge"]),
        },
        Param {
            name: "readers",
            text: "Sequential readers meanwhile, each of its own file.",
            default: "0",
            kind: Kind::Count(0, 100),
        },
        Param {
            name: "writers",
            text: "Sequential writers meanwhile.",
            default: "0",
            kind: Kind::Count(0, 100),
        },
        Param {
            name: "file",
            text: "Bytes of a reader's or writer's file.",
            default: "500M",
            kind: Kind::Bytes(1 << 20, 1 << 40),
        },
        Param {
            name: "limit",
            text: "Seconds after which the task counts as far as it is: of make always, of the others at most.",
            default: "60",
            kind: Kind::Count(1, 100_000),
        },
        Param {
            name: "scale",
            text: "Percent of the files of a kernel's tree.",
            default: "100",
            kind: Kind::Count(1, 100),
        },
        Param {
            name: "changed",
            text: "Percent of the files that checkout and merge change.",
            default: "30",
            kind: Kind::Count(1, 100),
        },
    ],
    figures: &[
        Figure { name: "seconds", unit: "s", higher_is_better: Some(false) },
        // The number of files once more: it is that which is compared.
        Figure { name: "done", unit: "%", higher_is_better: None },
        Figure { name: "files", unit: "files", higher_is_better: Some(true) },
    ],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| {
        let large = (p.count("readers") + p.count("writers")).saturating_mul(p.bytes("file"));
        large.saturating_add(tree(p) * (compile::SOURCE + ENTRY + 2 * PACKED))
    },
    fits: |_| Ok(()),
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p)),
};

fn tree(p: &Params) -> u64 {
    (TREE * p.count("scale")).div_ceil(100)
}

async fn prepare(sys: Sys, p: Params) -> Done {
    let n = tree(&p);
    compile::tree(&sys, n).await?;
    files::make_directory(&sys, ".git").await?;
    files::make(&sys, ".git/index", n * ENTRY).await?;
    files::make(&sys, ".git/pack", n * PACKED * 2).await?;
    for i in 0..p.count("readers") {
        files::make(&sys, &format!("large{i}"), p.bytes("file")).await?;
    }
    sys.sync().await
}

async fn run(sys: Sys, p: Params) -> Done {
    let (readers, writers) = (p.count("readers"), p.count("writers"));
    for i in 0..readers {
        sys.fork_as("reader", async move |sys| reader(sys, i).await).await?;
    }
    for i in 0..writers {
        let len = p.bytes("file");
        sys.fork_as("writer", async move |sys| writer(sys, i, len).await).await?;
    }
    if readers + writers > 0 {
        // A load that begins in the same instant would count as a program that starts, too.
        sys.sleep(background::rise(readers + writers)).await?;
    }
    let n = tree(&p);
    let begun = sys.now();
    let end = begun + p.count("limit") * SEC;
    let changed = p.count("changed");
    let of = match &*p.word("task") {
        "make" => {
            let done = make(&sys, n, end).await?;
            sys.add(FILES, done.cast_signed()).await?;
            n
        }
        "grep" => grep(&sys, n, end).await?,
        "checkout" => rewrite(&sys, n, changed, 1, end).await?,
        _ => rewrite(&sys, n, changed, 3, end).await?,
    };
    let time = sys.now() - begun;
    sys.add(DONE, 1).await?;
    files::wait_for(&sys, readers + writers).await?;
    let done = sys.add(FILES, 0).await? as f64;
    if done >= of as f64 {
        sys.figure("seconds", time as f64 / SEC as f64).await?;
    } else if &*p.word("task") != "make" {
        sys.beyond("seconds", p.count("limit") as f64).await?;
    }
    sys.figure("done", 100.0 * done / of.max(1) as f64).await?;
    sys.figure("files", done).await
}

async fn make(sys: &Sys, n: u64, end: u64) -> Result<u64, Errno> {
    compile::make(sys, JOBS, n, end, COMPILATION).await
}

/// Threads that share the files; each is looked at and read.
async fn grep(sys: &Sys, n: u64, end: u64) -> Result<u64, Errno> {
    compile::slurp(sys, ".git/index").await?;
    for thread in 0..GREP_THREADS {
        let search = async move |sys: Sys| {
            let mut i = thread;
            while i < n && sys.now() < end {
                let begun = sys.now();
                sys.stat(compile::source(i)).await?;
                compile::slurp(&sys, &compile::source(i)).await?;
                sys.note("file", begun, 0).await?;
                sys.add(FILES, 1).await?;
                i += GREP_THREADS;
            }
            Ok(())
        };
        sys.spawn_as("search", search).await?;
    }
    // Readers and writers do not end before the task, so these are the threads.
    files::wait_for(sys, GREP_THREADS).await?;
    Ok(n)
}

/// Looks at all files, reads so many versions of the changed ones from the pack, writes them, then the index.
async fn rewrite(sys: &Sys, n: u64, percent: u64, versions: u64, end: u64) -> Result<u64, Errno> {
    compile::slurp(sys, ".git/index").await?;
    for i in 0..n {
        sys.stat(compile::source(i)).await?;
    }
    let pack = sys.open(".git/pack", OpenFlags::READ).await?;
    let (mut dice, changed) = (Dice::new(n), (n * percent).div_ceil(100));
    for k in 0..changed {
        if sys.now() >= end {
            break;
        }
        let begun = sys.now();
        for _ in 0..versions {
            sys.pread(pack, dice.below(n * 2) * PACKED, PACKED).await?;
        }
        let name = compile::source(k * n / changed);
        sys.unlink(&name).await?;
        compile::plain(sys, &name, 14 << 10).await?;
        sys.note("file", begun, 0).await?;
        sys.add(FILES, 1).await?;
    }
    sys.close(pack).await?;
    compile::plain(sys, ".git/index.lock", n * ENTRY).await?;
    sys.rename(".git/index.lock", ".git/index").await?;
    Ok(changed)
}

/// What is noted are the task's operations: those of who loads the disk are not what anybody waits for.
async fn reader(sys: Sys, i: u64) -> Done {
    let fd = sys.open(format_args!("large{i}"), OpenFlags::READ).await?;
    let mut at = 0;
    while sys.add(DONE, 0).await? == 0 {
        let got = sys.pread(fd, at, MIB).await?;
        at += got;
        if got == 0 {
            // What memory still has of the file would be no load.
            sys.fadvise(fd, 0, 0, Advice::DontNeed).await?;
            at = 0;
        }
    }
    Ok(())
}

async fn writer(sys: Sys, i: u64, len: u64) -> Done {
    let fd = sys.creat(format_args!("written{i}")).await?;
    let mut at = 0;
    while sys.add(DONE, 0).await? == 0 {
        at += sys.pwrite(fd, at % len, MIB).await?;
    }
    Ok(())
}
