//! Programs on the host: what calls answer, how long they take, who waits for whom.

use std::ops::ControlFlow;

use iosched_host::HostError;
use iosched_syscalls::{Call, Errno, Fd, Io, Kind, OpenFlags, Shares, Whence};
use iosched_types::units::{MS, SEC, US};

use crate::rig::{birth, create, host, random, run};

const RW: OpenFlags = OpenFlags::WRITE;
const GIB: u64 = 1 << 30;

#[test]
fn memory_answers_at_once_and_the_disk_takes_its_time() {
    let mut h = host("none", 1, GIB, false);
    let prepare = birth(async |sys| {
        let fd = sys.creat("f").await?;
        sys.write(fd, 1 << 20).await?;
        sys.close(fd).await
    });
    h.prepare(prepare, &mut |_| ControlFlow::Continue(())).unwrap();
    run(&mut h, async |sys| {
        let fd = sys.open("f", create()).await?;
        assert_eq!(sys.now(), 0, "the preparation took no time");
        assert_eq!(sys.pread(fd, 4096, 4096).await?, 4096);
        assert_eq!(sys.now(), MS, "from the disk");
        assert_eq!(sys.pread(fd, 5000, 100).await?, 100);
        assert_eq!(sys.now(), MS, "from memory");
        assert_eq!(sys.pread(fd, (1 << 20) - 10, 100).await?, 10, "up to the end");
        assert_eq!(sys.pread(fd, 1 << 20, 100).await?, 0);
        assert_eq!(sys.now(), 2 * MS);
        sys.pwrite(fd, 0, 8192).await?;
        assert_eq!(sys.now(), 2 * MS, "whole pages are not read first");
        sys.pwrite(fd, 100_000, 10).await?;
        assert_eq!(sys.now(), 3 * MS, "part of a page is");
        sys.fsync(fd).await?;
        assert_eq!(sys.now(), 3 * MS + 2 * MS + 2 * MS, "two runs of pages, then the flush");
        sys.fsync(fd).await?;
        assert_eq!(sys.now(), 9 * MS, "nothing to write, but the flush");
        Ok(())
    })
    .unwrap();
    let m = h.measured();
    assert_eq!(m.elapsed, 9 * MS);
    let (task, c) = (&m.tasks[&0], h.counts());
    assert_eq!((task.read.0, task.write.0, task.sync.0), (4, 2, 2));
    assert_eq!((c.dirty, c.dirtied), (0, c.written + c.dropped));
}

/// A process has 1,048,576 descriptors at most, the terminal's included. One more fails before a file is made.
#[test]
fn too_many_open_files() {
    let mut h = host("none", 1, 64 << 20, false);
    run(&mut h, async |sys| {
        let first = sys.creat("f").await?;
        let mut last = Ok(first);
        let mut open = 0;
        while last.is_ok() {
            last = sys.open("f", OpenFlags::READ).await;
            open += 1;
        }
        assert_eq!((last, open), (Err(Errno::EMFILE), 1 << 20));
        assert_eq!(sys.open("new", create()).await, Err(Errno::EMFILE));
        assert_eq!(sys.dup(first).await, Err(Errno::EMFILE));
        sys.close(first).await?;
        assert_eq!(sys.open("new", OpenFlags::READ).await, Err(Errno::ENOENT), "it was not made");
        assert_eq!(sys.open("new", create()).await?, first, "the lowest number that is free");
        Ok(())
    })
    .unwrap();
}

#[test]
fn calls_fail_as_on_linux() {
    let mut h = host("none", 1, 64 << 20, false);
    run(&mut h, async |sys| {
        assert_eq!(sys.open("no", OpenFlags::READ).await, Err(Errno::ENOENT));
        sys.mkdir("d").await?;
        assert_eq!(sys.mkdir("d").await, Err(Errno::EEXIST));
        assert_eq!(sys.open("d", RW).await, Err(Errno::EISDIR));
        assert_eq!(sys.unlink("d").await, Err(Errno::EISDIR));
        let fd = sys.open("d/f", create() | OpenFlags::EXCLUSIVE).await?;
        assert_eq!(sys.open("d/f", create() | OpenFlags::EXCLUSIVE).await, Err(Errno::EEXIST));
        assert_eq!(sys.open("d/f/g", create()).await, Err(Errno::ENOTDIR));
        assert_eq!(sys.open("d/f", OpenFlags::DIRECTORY).await, Err(Errno::ENOTDIR));
        assert_eq!(sys.open(&"n".repeat(256), create()).await, Err(Errno::ENAMETOOLONG));
        assert_eq!(sys.open("../up", create()).await, Err(Errno::EXDEV));
        assert_eq!(sys.rmdir("d").await, Err(Errno::ENOTEMPTY));
        assert_eq!(sys.rename("d", "d/e").await, Err(Errno::EINVAL));
        assert_eq!(sys.lseek(fd, -1, Whence::Set).await, Err(Errno::EINVAL));
        assert_eq!(sys.write(fd, 1 << 30).await, Err(Errno::ENOSPC));
        assert_eq!(sys.fallocate(fd, 0, 1 << 30).await, Err(Errno::ENOSPC));
        assert_eq!(sys.pwrite(fd, 1 << 45, 1).await, Err(Errno::EFBIG));
        assert_eq!(sys.write(fd, 60 << 20).await?, 60 << 20);
        let other = sys.open("o", create()).await?;
        assert_eq!(sys.write(other, 8 << 20).await, Err(Errno::ENOSPC), "it is promised");
        sys.close(fd).await?;
        assert_eq!(sys.write(fd, 1).await, Err(Errno::EBADF));
        sys.unlink("d/f").await?;
        assert_eq!(sys.write(other, 8 << 20).await?, 8 << 20);
        let direct = sys.open("o", create() | OpenFlags::DIRECT).await?;
        assert_eq!(sys.pread(direct, 100, 512).await, Err(Errno::EINVAL));
        let read_only = sys.open("o", OpenFlags::READ).await?;
        assert_eq!(sys.write(read_only, 1).await, Err(Errno::EBADF));
        assert_eq!(sys.wait().await, Err(Errno::ECHILD));
        assert_eq!(sys.join(7).await, Err(Errno::ECHILD));
        assert_eq!(sys.signal(7).await, Err(Errno::ESRCH));
        Ok(())
    })
    .unwrap();
}

#[test]
fn names_and_lengths() {
    let mut h = host("none", 1, GIB, false);
    run(&mut h, async |sys| {
        sys.mkdir("a").await?;
        let fd = sys.creat("a/x").await?;
        sys.write(fd, 10).await?;
        sys.rename("a/x", "y").await?;
        assert_eq!(sys.stat("a/x").await, Err(Errno::ENOENT));
        assert_eq!(sys.stat("y").await?.bytes, 10);
        sys.truncate(fd, 5).await?;
        assert_eq!(sys.fstat(fd).await?.bytes, 5);
        assert_eq!(sys.lseek(fd, 0, Whence::End).await?, 5);
        let copy = sys.dup(fd).await?;
        sys.write(copy, 5).await?;
        assert_eq!(sys.lseek(fd, 0, Whence::Current).await?, 10, "one position for both");
        sys.rename("a", "b").await?;
        let top = sys.open(".", OpenFlags::READ).await?;
        let names = sys.readdir(top).await?;
        let found: Vec<(&str, Kind)> = names.iter().map(|e| (&*e.name, e.kind)).collect();
        assert_eq!(found, [("b", Kind::Directory), ("y", Kind::File)]);
        assert!(sys.readdir(top).await?.is_empty());
        sys.unlink("y").await?;
        assert_eq!(sys.fstat(fd).await?.bytes, 10, "held open");
        Ok(())
    })
    .unwrap();
}

#[test]
fn parents_wait_pipes_hand_over_and_barriers_hold() {
    for cpu in [false, true] {
        let mut h = host("mq-deadline", 4, GIB, cpu);
        run(&mut h, async |sys| {
            let (r, w) = sys.pipe().await?;
            let child = sys
                .fork(async move |sys| {
                    sys.close(w).await?;
                    assert_eq!(sys.read(r, 10).await?, 3, "it waits for something");
                    let mut got = 0;
                    loop {
                        match sys.read(r, 1 << 20).await? {
                            0 => break,
                            n => got += n,
                        }
                    }
                    assert_eq!(got, 200_000);
                    sys.barrier(1, 2).await
                })
                .await?;
            sys.sleep(MS).await?;
            sys.write(w, 3).await?;
            sys.write(w, 200_000).await?;
            sys.close(w).await?;
            sys.barrier(1, 2).await?;
            assert_eq!(sys.wait().await?, child);
            assert_eq!(sys.wait().await, Err(Errno::ECHILD));
            let sleeper = sys.fork(async |sys| {
                assert_eq!(sys.sleep(100 * SEC).await, Err(Errno::EINTR));
                assert!(sys.stopped().await?);
                Ok(())
            });
            let sleeper = sleeper.await?;
            sys.sleep(MS).await?;
            sys.signal(sleeper).await?;
            sys.join(sleeper).await?;
            assert!(sys.now() < 3 * MS);
            Ok(())
        })
        .unwrap_or_else(|e| panic!("cpu {cpu}: {e}"));
        assert_eq!(h.measured().count, 3);
    }
}

#[test]
fn threads_share_descriptors_and_processes_do_not() {
    let mut h = host("none", 1, GIB, false);
    run(&mut h, async |sys| {
        let fd = sys.creat("f").await?;
        let thread = sys.spawn(async move |sys| sys.close(fd).await).await?;
        sys.join(thread).await?;
        assert_eq!(sys.write(fd, 1).await, Err(Errno::EBADF));
        let fd = sys.creat("g").await?;
        let process = sys.fork(async move |sys| sys.close(fd).await).await?;
        sys.join(process).await?;
        assert_eq!(sys.write(fd, 1).await, Ok(1));
        assert_eq!(sys.add(3, 5).await?, 5);
        let adder = sys.fork(async |sys| sys.add(3, -7).await.map(drop)).await?;
        sys.join(adder).await?;
        assert_eq!(sys.add(3, 0).await?, -2);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_second_sync_waits_for_what_the_first_writes() {
    let mut h = host("none", 8, GIB, false);
    run(&mut h, async |sys| {
        let fd = sys.creat("f").await?;
        sys.write(fd, 4096).await?;
        let other = sys.spawn(async move |sys| {
            sys.sleep(MS / 2).await?;
            sys.fsync(fd).await?;
            // Written at 1 ms; its flush cannot join the first one, which is under way.
            assert_eq!(sys.now(), 5 * MS);
            Ok(())
        });
        let other = other.await?;
        sys.fsync(fd).await?;
        sys.join(other).await
    })
    .unwrap();
}

#[test]
fn asynchronous_io_is_under_way_together() {
    let mut h = host("none", 8, GIB, false);
    run(&mut h, async |sys| {
        let fd = sys.open("f", create() | OpenFlags::DIRECT).await?;
        for tag in 0..8u32 {
            let at = u64::from(tag) * 4096;
            sys.submit(Io { fd, write: true, at, len: 4096, tag }).await?;
        }
        let mut tags = Vec::new();
        assert_eq!(sys.reap(8, |c| tags.push((c.tag, c.answer))).await?, 8);
        assert_eq!(sys.now(), MS);
        assert_eq!(tags, (0..8).map(|t| (t, Ok(4096))).collect::<Vec<_>>());
        assert_eq!(sys.reap(1, |_| ()).await?, 0, "nothing is under way");
        sys.submit(Io { fd, write: false, at: 0, len: 4096, tag: 9 }).await
    })
    .unwrap();
    assert_eq!(h.measured().elapsed, 2 * MS, "a task that ends with I/O under way is waited for");
}

/// They count as what they are, from their submission until the task takes them. Tags need not differ.
#[test]
fn asynchronous_ios_and_pages_of_maps_count_as_reads_and_writes() {
    let mut h = host("none", 8, GIB, false);
    run(&mut h, async |sys| {
        let fd = sys.open("f", create() | OpenFlags::DIRECT).await?;
        for i in 0..4u64 {
            sys.submit(Io { fd, write: true, at: i * 4096, len: 4096, tag: 7 }).await?;
        }
        sys.sleep(3 * MS).await?;
        assert_eq!(sys.reap(4, |_| ()).await?, 4);
        sys.submit(Io { fd, write: false, at: 0, len: 8192, tag: 7 }).await?;
        assert_eq!(sys.reap(1, |_| ()).await?, 1);
        assert!(sys.submit(Io { fd: Fd(99), write: false, at: 0, len: 1, tag: 7 }).await.is_err());
        let map = sys.mmap(fd, 0, 16384).await?;
        for at in [0, 1, 4096] {
            sys.load(map, at).await?;
        }
        sys.store(map, 8192).await
    })
    .unwrap();
    let t = &h.measured().tasks[&0];
    assert_eq!((t.write.0, t.write.1, t.write.2.max()), (5, 5 * 4096, 3 * MS));
    assert_eq!((t.read.0, t.read.1, t.read.2.max()), (4, 8192 + 3 * 4096, MS));
}

#[test]
fn calls_and_work_take_core_time_under_a_cpu_model() {
    let mut h = host("none", 1, GIB, true);
    run(&mut h, async |sys| {
        let begun = sys.now();
        sys.compute(10 * MS).await?;
        assert!(sys.now() >= begun + 10 * MS);
        let fd = sys.creat("f").await?;
        let begun = sys.now();
        sys.write(fd, 65536).await?;
        assert!(sys.now() > begun, "entry and copying");
        // Three tasks on two cores: the work of two of them takes turns until the third is done, whose core takes one over.
        for _ in 0..3 {
            sys.fork(async |sys| sys.compute(10 * MS).await).await?;
        }
        for _ in 0..3 {
            sys.wait().await?;
        }
        Ok(())
    })
    .unwrap();
    let m = h.measured();
    assert!(m.elapsed > 25 * MS && m.elapsed < 28 * MS, "{}", m.elapsed);
    assert_eq!(m.tasks[&1].cpu.user, 10 * MS);
    assert!(m.tasks[&0].cpu.system > 0);
}

#[test]
fn a_copy_from_file_to_file_is_read_written_and_paid() {
    const LEN: u64 = 1 << 20;
    let mut h = host("none", 1, GIB, true);
    run(&mut h, async |sys| {
        let from = sys.open("a", OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE).await?;
        let to = sys.creat("b").await?;
        sys.write(from, LEN).await?;
        sys.lseek(from, 0, Whence::Set).await?;
        let begun = sys.now();
        // It ends with the file.
        assert_eq!(sys.copy_file_range(from, to, 1 << 40).await?, LEN);
        let copied = LEN / 4096 * 450;
        let took = sys.now() - begun;
        assert!((copied..copied + 2 * US).contains(&took), "{took} ns for {copied} of copying");
        Ok(())
    })
    .unwrap();
    let t = &h.measured().tasks[&0];
    assert_eq!((t.read.0, t.read.1), (1, LEN));
    assert_eq!((t.write.0, t.write.1), (2, 2 * LEN));
}

#[test]
fn times_and_lengths_beyond_reason_are_no_overflow() {
    const YEAR: u64 = 31_557_600 * SEC;
    let mut h = host("none", 1, GIB, true);
    run(&mut h, async |sys| {
        let fd = sys.creat("f").await?;
        let huge = sys.call(Call::Write { fd, len: i64::MAX.cast_unsigned() }).await;
        assert!(huge.is_err() || huge.is_ok_and(|n| n <= 0x7fff_f000), "{huge:?}");
        sys.fork(async |sys| sys.compute(100 * YEAR).await).await?;
        sys.compute(3 * YEAR).await?;
        sys.wait().await.map(drop)
    })
    .unwrap();
    assert!(h.measured().elapsed >= 100 * YEAR);
}

#[test]
fn what_never_wakes_and_what_never_waits_is_told() {
    let mut h = host("none", 1, GIB, false);
    let e = run(&mut h, async |sys| {
        sys.fork(async |sys| sys.barrier(4, 3).await).await?;
        sys.wait().await.map(drop)
    });
    let e = e.unwrap_err().to_string();
    assert!(e.contains("task 0 for a child in wait, task 1 for others at barrier 4"), "{e}");
    let mut h = host("none", 1, GIB, false);
    h.most_at_once(1_000_000);
    let e = run(&mut h, async |sys| {
        loop {
            sys.getpid().await?;
        }
    });
    assert!(matches!(e, Err(HostError::NeverWaits { task: 0, .. })), "{e:?}");
    let mut h = host("none", 1, GIB, false);
    let e = run(&mut h, async |sys| sys.unlink("nothing").await).unwrap_err().to_string();
    assert_eq!(e, "task 0 of the program ended with ENOENT (No such file or directory) in unlink");
    // A sleep that is longer than the clock is no defect of the program.
    let mut h = host("none", 1, GIB, false);
    let e = run(&mut h, async |sys| sys.sleep(u64::MAX).await).unwrap_err().to_string();
    assert!(e.contains("ends after 584 years") && !e.contains("defect"), "{e}");
}

#[test]
fn it_can_be_stopped() {
    let mut h = host("none", 1, GIB, false);
    let text = birth(async |sys| {
        loop {
            sys.sleep(US).await?;
        }
    });
    let mut looks = 0;
    let e = h.run(text, &mut |_| {
        looks += 1;
        if looks > 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(e, Err(HostError::Stopped)));
    // Files that are made take no time; large ones are written in large pieces.
    let mut h = host("none", 1, GIB, false);
    let text = birth(async |sys| {
        let fd = sys.creat("f").await?;
        for _ in 0..1 << 20 {
            sys.pwrite(fd, 0, 1 << 20).await?;
        }
        panic!("a terabyte was written before anybody looked");
    });
    let e = h.prepare(text, &mut |_| ControlFlow::Break(()));
    assert!(matches!(e, Err(HostError::Stopped)));
}

#[test]
fn a_hundred_thousand_tasks() {
    let mut h = host("bfq", 32, 4 * GIB, false);
    run(&mut h, async |sys| {
        for i in 0..100_000u32 {
            sys.fork(async move |sys| {
                let fd = sys.creat(format_args!("f{i}")).await?;
                sys.write(fd, 4096).await?;
                if i % 50 == 0 {
                    sys.fsync(fd).await?;
                }
                Ok(())
            })
            .await?;
        }
        for _ in 0..100_000 {
            sys.wait().await?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(h.measured().count, 100_001);
    let c = h.counts();
    assert_eq!((c.dirtied, c.written), (100_000 * 4096, 2000 * 4096));
}

#[test]
fn maps_fault_once_a_page() {
    let mut h = host("none", 1, GIB, false);
    let file = birth(async |sys| {
        let fd = sys.creat("f").await?;
        sys.write(fd, 1 << 20).await.map(drop)
    });
    h.prepare(file, &mut |_| ControlFlow::Continue(())).unwrap();
    run(&mut h, async |sys| {
        let fd = sys.open("f", create()).await?;
        let map = sys.mmap(fd, 4096, 65536).await?;
        sys.load(map, 0).await?;
        sys.load(map, 4095).await?;
        assert_eq!(sys.now(), MS);
        sys.store(map, 5000).await?;
        assert_eq!(sys.now(), 2 * MS);
        assert_eq!(sys.load(map, 65536).await, Err(Errno::EFAULT));
        sys.munmap(map).await?;
        assert_eq!(sys.load(map, 0).await, Err(Errno::EINVAL));
        Ok(())
    })
    .unwrap();
    assert_eq!(h.counts().dirty, 4096);
}

#[test]
fn an_unknown_share_of_a_child_is_its_own() {
    // A process made by hand, as a replay does.
    let mut h = host("none", 1, GIB, false);
    run(&mut h, async |sys| {
        let birth = birth(async |sys| sys.getpid().await.map(|me| assert_eq!(me, 1)));
        let task = sys.call(Call::Spawn { shares: Shares::OpenFiles, role: "", birth }).await?;
        sys.join(task as u32).await
    })
    .unwrap();
}

#[test]
fn random_programs_end_and_lose_nothing() {
    for seed in 0..60 {
        let cpu = seed % 2 == 0;
        let scheduler = ["none", "mq-deadline", "bfq", "kyber"][(seed % 4) as usize];
        let mut h = host(scheduler, 1 << (seed % 5), 8 << 20, cpu);
        run(&mut h, async move |sys| random(sys, seed, 0).await)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let (c, m) = (h.counts(), h.measured());
        assert_eq!(c.dirtied, c.written + c.dropped + c.dirty, "seed {seed}: {c:?}");
        assert_eq!(h.queue.pending(), 0);
        assert_eq!(m.count as usize, m.tasks.len(), "every task is accounted for");
    }
}

#[test]
fn a_failure_is_told_even_if_others_wait_for_it() {
    let mut h = host("none", 1, GIB, false);
    let e = run(&mut h, async |sys| {
        sys.fork(async |sys| sys.barrier(1, 2).await).await?;
        sys.fork(async |sys| sys.unlink("no").await).await?;
        sys.wait().await?;
        sys.wait().await.map(drop)
    });
    let e = e.expect_err("it fails").to_string();
    assert!(e.contains("task 2 of the program ended with ENOENT"), "{e}");
}

#[test]
fn bios_of_programs_take_core_time_and_the_schedulers_lock() {
    let spent = |scheduler: &str, cpu: bool| {
        let mut h = host(scheduler, 1, GIB, cpu);
        run(&mut h, async |sys| {
            let fd = sys.open("f", create() | OpenFlags::DIRECT).await?;
            for i in 0..100 {
                sys.pwrite(fd, i * 4096, 4096).await?;
            }
            Ok(())
        })
        .expect("it runs");
        (h.measured().tasks[&0].cpu.system, h.measured().elapsed)
    };
    assert_eq!(spent("none", false), (0, 100 * MS));
    let (none, elapsed) = spent("none", true);
    assert!(elapsed > 100 * MS + 100_000, "submission goes before the device: {elapsed}");
    // Every request finds cold caches: the core was idle.
    let (deadline, longer) = spent("mq-deadline", true);
    assert_eq!(deadline - none, 100 * 620 * 240 / 100, "the lock");
    assert_eq!(longer - elapsed, 100 * 620 * 240 / 100);
}

#[test]
fn long_computations_are_interrupted_by_who_wakes_up() {
    let mut h = host("none", 1, GIB, true);
    run(&mut h, async |sys| {
        // More of them than cores.
        for _ in 0..4 {
            sys.fork(async |sys| sys.compute(SEC).await).await?;
        }
        let mut worst = 0;
        for _ in 0..50 {
            let begun = sys.now();
            sys.sleep(10 * MS).await?;
            worst = worst.max(sys.now() - begun - 10 * MS);
        }
        assert!(worst < 10 * MS, "it waited for {} us, not for the end of a second", worst / US);
        for _ in 0..4 {
            sys.wait().await?;
        }
        Ok(())
    })
    .unwrap();
    let m = h.measured();
    assert!(m.elapsed >= 2 * SEC, "two cores have 4 s of work");
    assert!((1..5).all(|t| m.tasks[&t].cpu.user == SEC), "core time is counted once");
}
