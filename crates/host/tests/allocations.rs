//! Calls that memory answers take no memory.
#![allow(clippy::unwrap_used, reason = "tests")]

mod rig;

use std::ops::ControlFlow;

use iosched_testing::{Counting, allocations};
use iosched_types::Op;
use rig::{birth, create, on_volume, volumes};

#[global_allocator]
static COUNTING: Counting = Counting;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// How much is taken for a file of 4 MiB that is in memory and so many reads, or writes, of 4 KiB.
fn taken(which: usize, op: Op, calls: u64) -> u64 {
    let volume = volumes(GIB).into_iter().nth(which).unwrap();
    let mut h = on_volume(volume, "none", 32, GIB, 256 * MIB, false);
    h.most_at_once(u64::MAX);
    let birth = birth(async move |sys| {
        let fd = sys.open("f", create()).await?;
        sys.write(fd, 4 * MIB).await?;
        for i in 0..calls {
            let at = i * 40_960 % (4 * MIB);
            match op {
                Op::Write => sys.pwrite(fd, at, 4096).await?,
                _ => sys.pread(fd, at, 4096).await?,
            };
        }
        Ok(())
    });
    let before = allocations();
    h.run(birth, &mut |_| ControlFlow::Continue(())).unwrap();
    let taken = allocations() - before;
    let task = h.measured().tasks[&0].clone();
    let side = if op == Op::Write { task.write.0 - 1 } else { task.read.0 };
    assert_eq!(side, calls);
    taken
}

#[test]
fn cached_calls_take_no_memory() {
    for which in 0..volumes(GIB).len() {
        for op in [Op::Read, Op::Write] {
            let (few, many) = (taken(which, op, 2000), taken(which, op, 42_000));
            assert!(many - few <= 2, "{op:?}: {few} for 2,000 calls, {many} for 42,000");
        }
    }
}
