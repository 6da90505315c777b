//! Programs on a file system beside its kernel threads, and their bios in the letters of the block trace.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use iosched_types::{Flags, Op};

use super::FileSystem;
use crate::kernel::testing::{Path, run};
use crate::kernel::{BioOut, Kernel, World};

/// Runs a program; its bios with their times, neighbours with equal flags and time as one.
pub(super) fn trace<S, F>(fs: S, program: impl FnOnce(Kernel, S) -> F) -> Vec<(u64, BioOut)>
where
    S: FileSystem + Clone + 'static,
    F: Future<Output = ()> + 'static,
{
    let world = Rc::new(RefCell::new(World::default()));
    world.borrow_mut().memory.introduce(4096);
    let kernel = |task| Kernel::new(world.clone(), task);
    let (f, j, c, l, p) = (kernel(1), kernel(2), kernel(3), kernel(4), kernel(5));
    let (ff, jf, cf, lf, pf) = (fs.clone(), fs.clone(), fs.clone(), fs.clone(), fs.clone());
    let paths: Vec<Path> = vec![
        Box::pin(program(kernel(0), fs)),
        Box::pin(async move { f.flusher(&ff).await }),
        Box::pin(async move { jf.journal_thread(&j).await }),
        Box::pin(async move { cf.completions(&c).await }),
        Box::pin(async move { lf.log_ends(&l).await }),
        Box::pin(async move { pf.checkpoints(&p).await }),
    ];
    let log = run(&world, paths, 1, 100_000);
    assert!(world.borrow().memory.accounts());
    joined(&log)
}

fn joined(log: &[(u64, BioOut)]) -> Vec<(u64, BioOut)> {
    let mut out: Vec<(u64, BioOut)> = Vec::new();
    for (at, bio) in log {
        match out.last_mut() {
            Some((t, last))
                if t == at
                    && last.flags == bio.flags
                    && last.op == bio.op
                    && bio.sectors >= 8
                    && last.sector + u64::from(last.sectors) == bio.sector =>
            {
                last.sectors += bio.sectors;
            }
            _ => out.push((*at, *bio)),
        }
    }
    out
}

/// As the block trace prints it, in units of so many sectors; what lies in the journal by its position there.
pub(super) fn letters(bio: &BioOut, unit: u32, journal: Range<u64>) -> String {
    let mut text = String::new();
    if bio.flags.has(Flags::PREFLUSH) {
        text.push('F');
    }
    text.push(if bio.op == Op::Read { 'R' } else { 'W' });
    for (flag, letter) in
        [(Flags::FUA, 'F'), (Flags::RAHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::META, 'M')]
    {
        if bio.flags.has(flag) {
            text.push(letter);
        }
    }
    let (at, n) = (bio.sector / u64::from(unit), bio.sectors / unit);
    match at.checked_sub(journal.start).filter(|_| at < journal.end) {
        Some(p) => format!("{text} p{p}+{n}"),
        None if n == 0 => text,
        None => format!("{text} {at}+{n}"),
    }
}
