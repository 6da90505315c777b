//! Programs on ext4 and XFS above a page cache: what is read ahead, written back, journaled, and who waits for it.

use std::ops::ControlFlow;

use iosched_host::programs::Programs;
use iosched_syscalls::{Advice, Errno, Io, Kind, OpenFlags};
use iosched_types::Op;
use iosched_types::units::{MS, SEC};

use iosched_vfs::fs::ext3::Ext3;
use iosched_vfs::fs::ext3::layout::BY_1_47;
use iosched_vfs::fs::ext4::Options;
use iosched_vfs::fs::volume::Volume;

use crate::rig::{birth, create, host, mounted, on_volume, random, run, volumes};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// A host of 64 MiB of memory with a file `f` of 8 MiB that is not in memory.
fn with_file() -> Programs {
    let mut h = mounted("none", 32, GIB, 64 * MIB, false);
    let prepare = birth(async |sys| {
        let fd = sys.creat("f").await?;
        sys.write(fd, 8 * MIB).await?;
        sys.close(fd).await
    });
    h.prepare(prepare, &mut |_| ControlFlow::Continue(())).expect("files can be made");
    assert_eq!(h.counts().dirty, 0, "prepared files are on the disk");
    h
}

/// Commands that the device was given: reads, writes, flushes.
fn commands(h: &mut Programs) -> Vec<(Op, u32)> {
    h.take_dispatches().iter().map(|i| (i.op, i.sectors)).collect()
}

/// As in Linux: forty links are followed, a circle is `ELOOP`, and a link to nothing `ENOENT` until the file is made through it.
#[test]
fn symbolic_links_lead_on() {
    let simple = host("none", 1, GIB, false);
    let mounted = volumes(GIB).into_iter().map(|v| on_volume(v, "none", 32, GIB, 256 * MIB, false));
    for mut h in std::iter::once(simple).chain(mounted) {
        run(&mut h, async |sys| {
            sys.mkdir("d").await?;
            sys.symlink("../loop", "d/back").await?;
            sys.symlink("d/back", "loop").await?;
            assert_eq!(sys.open("loop", OpenFlags::READ).await, Err(Errno::ELOOP));
            assert_eq!(sys.stat("d/back/x").await, Err(Errno::ELOOP));
            sys.symlink("d/f", "l0").await?;
            for i in 1..=40 {
                sys.symlink(format_args!("l{}", i - 1), format_args!("l{i}")).await?;
            }
            assert_eq!(sys.open("l0", OpenFlags::READ).await, Err(Errno::ENOENT));
            let fd = sys.open("l0", OpenFlags::WRITE | OpenFlags::CREATE).await?;
            sys.write(fd, 5000).await?;
            sys.fsync(fd).await?;
            sys.close(fd).await?;
            assert_eq!(sys.stat("l39").await?.bytes, 5000);
            assert_eq!(sys.stat("l40").await, Err(Errno::ELOOP));
            let link = sys.lstat("l40").await?;
            assert_eq!((link.kind, link.bytes), (Kind::Link, 3));
            assert_eq!(sys.readlink("l40").await?, "l39");
            assert_eq!(sys.readlink("d/f").await, Err(Errno::EINVAL));
            let itself = OpenFlags::READ | OpenFlags::NOFOLLOW;
            assert_eq!(sys.open("l1", itself).await, Err(Errno::ELOOP));
            let directory = itself | OpenFlags::DIRECTORY;
            assert_eq!(sys.open("l1", directory).await, Err(Errno::ENOTDIR));
            let new = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
            assert_eq!(sys.open("l1", new).await, Err(Errno::EEXIST));
            assert_eq!(sys.symlink("x", "l1").await, Err(Errno::EEXIST));
            assert_eq!(sys.symlink("", "e").await, Err(Errno::ENOENT));
            sys.symlink("/etc", "out").await?;
            assert_eq!(sys.stat("out/passwd").await, Err(Errno::EXDEV));
            sys.rename("l0", "d/f2").await?;
            assert_eq!(sys.stat("l1").await, Err(Errno::ENOENT));
            sys.unlink("d/f2").await?;
            assert_eq!(sys.stat("d/f").await?.bytes, 5000);
            let long = "n/".repeat(200);
            sys.symlink(&long, "long").await?;
            sys.unlink("long").await?;
            sys.sync().await
        })
        .unwrap();
    }
}

/// The root's block; the inode lies in the block of the table that the mount has read.
#[test]
fn a_cold_mount_reads_the_directory_once() {
    let mut h = with_file();
    h.mount_cold();
    h.collect_dispatches();
    run(&mut h, async |sys| {
        assert_eq!(sys.stat("f").await?.bytes, 8 * MIB);
        let looked = sys.now();
        assert_eq!(sys.stat("none").await, Err(Errno::ENOENT));
        let fd = sys.open("f", OpenFlags::READ).await?;
        assert_eq!(sys.now(), looked, "memory has it");
        assert!(looked >= MS, "{looked}");
        sys.close(fd).await
    })
    .unwrap();
    assert_eq!(commands(&mut h), [(Op::Read, 8)]);
}

#[test]
fn a_reader_in_order_finds_what_was_read_ahead() {
    let mut h = with_file();
    h.collect_dispatches();
    run(&mut h, async |sys| {
        let fd = sys.open("f", OpenFlags::READ).await?;
        for _ in 0..256 {
            assert_eq!(sys.read(fd, 4096).await?, 4096);
        }
        let first = sys.now();
        assert!(first < 20 * MS, "1 MiB in {first} ns: windows of up to 128 KiB, 1 ms each");
        for n in 0..200 {
            sys.pread(fd, n * 4096, 4096).await?;
        }
        assert_eq!(sys.now(), first, "memory has it");
        Ok(())
    })
    .unwrap();
    let reads = commands(&mut h);
    let sectors: Vec<u32> = reads.iter().map(|c| c.1).collect();
    // 16 KiB at first, then twice as much each time up to 128 KiB.
    assert_eq!(sectors[..5], [32, 64, 128, 256, 256], "{reads:?}");
    assert!(reads.iter().all(|c| c.0 == Op::Read));
}

#[test]
fn an_append_and_its_fsync_write_data_and_one_transaction() {
    let mut h = mounted("none", 32, GIB, 64 * MIB, false);
    h.collect_dispatches();
    run(&mut h, async |sys| {
        let fd = sys.creat("log").await?;
        sys.fsync(fd).await?;
        sys.sleep(50 * MS).await?;
        let start = sys.now();
        sys.write(fd, 4096).await?;
        assert_eq!(sys.now(), start, "a write is done in memory");
        sys.fsync(fd).await?;
        // The page; the transaction's body; its record between flushes of 2 ms, as the disk has no FUA.
        assert_eq!(sys.now() - start, MS + MS + 2 * MS + MS + 2 * MS);
        Ok(())
    })
    .unwrap();
    assert_eq!(h.counts().dirty, 0);
}

#[test]
fn what_nobody_syncs_is_written_back_by_the_kernel() {
    let mut h = mounted("none", 32, GIB, 256 * MIB, false);
    run(&mut h, async |sys| {
        let fd = sys.creat("f").await?;
        sys.write(fd, MIB).await?;
        sys.sleep(40 * SEC).await
    })
    .unwrap();
    let c = h.counts();
    assert_eq!((c.dirty, c.written), (0, MIB), "30 s are over");
}

/// The flusher keeps its plug over all files of a pass, so neighbours on the disk are one command. What it reserves in the
/// journal for each has to fit: in that of 1 GiB for 37 files.
#[test]
fn small_files_that_lie_together_are_written_together() {
    let mut h = mounted("none", 32, 16 * GIB, 256 * MIB, false);
    h.collect_dispatches();
    run(&mut h, async |sys| {
        for n in 0..50 {
            let fd = sys.creat(format_args!("f{n}")).await?;
            sys.write(fd, 4096).await?;
            sys.close(fd).await?;
        }
        sys.sleep(5500 * MS).await
    })
    .unwrap();
    let writes: Vec<_> = commands(&mut h).into_iter().filter(|c| c.0 == Op::Write).collect();
    assert_eq!(writes[0], (Op::Write, 50 * 8), "a page of each");
    // Giving them places found the transaction old enough: the journal's superblock, all changes, the record.
    let sectors: Vec<_> = writes[1..].iter().map(|w| w.1).collect();
    assert_eq!(sectors, [8, 80, 8]);
}

/// Blocks that are to be marked as written need room in the journal, reserved before. Where it is used up, write-back waits until
/// some are.
#[test]
fn write_back_waits_for_room_to_mark_blocks() {
    let mut h = mounted("none", 32, GIB, 256 * MIB, false);
    h.collect_dispatches();
    run(&mut h, async |sys| {
        for n in 0..50 {
            let fd = sys.creat(format_args!("f{n}")).await?;
            sys.write(fd, 4096).await?;
            sys.close(fd).await?;
        }
        sys.sleep(5500 * MS).await
    })
    .unwrap();
    let writes: Vec<_> = commands(&mut h).into_iter().filter(|c| c.0 == Op::Write).collect();
    assert_eq!(writes[0], (Op::Write, 37 * 8));
    let data: u64 =
        writes.iter().map(|w| u64::from(w.1)).filter(|n| [37 * 8, 13 * 8].contains(n)).sum();
    assert_eq!(data, 50 * 8, "all is written: {writes:?}");
}

/// Each step stays cheap however many files there are: with a look at all of them a step, this would take minutes.
#[test]
fn a_hundred_thousand_files_come_and_go() {
    for volume in volumes(4 * GIB) {
        let mut h = on_volume(volume, "none", 32, 4 * GIB, 256 * MIB, false);
        run(&mut h, async |sys| {
            for n in 0..100_000 {
                let fd = sys.creat(format_args!("f{n}")).await?;
                sys.close(fd).await?;
            }
            for n in 0..100_000 {
                sys.unlink(format_args!("f{n}")).await?;
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(h.counts().dirty, 0);
    }
}

#[test]
fn writers_wait_when_too_much_is_dirty() {
    let mut h = mounted("none", 1, GIB, 64 * MIB, false);
    run(&mut h, async |sys| {
        let fd = sys.creat("f").await?;
        for _ in 0..400 {
            sys.write(fd, MIB / 2).await?;
        }
        assert!(sys.now() > 100 * MS, "200 MiB into 64 MiB of memory in {} ns", sys.now());
        Ok(())
    })
    .unwrap();
    let c = h.counts();
    assert!(c.dirty <= 64 * MIB / 5 + MIB, "{c:?}");
    assert_eq!(c.dirtied, c.written + c.dropped + c.dirty);
}

#[test]
fn direct_io_passes_by_the_cache() {
    let mut h = with_file();
    run(&mut h, async |sys| {
        let fd = sys.open("f", create() | OpenFlags::DIRECT).await?;
        assert_eq!(sys.pread(fd, 1, 512).await, Err(Errno::EINVAL), "not aligned");
        for n in 1..4 {
            assert_eq!(sys.pread(fd, 0, 4096).await?, 4096);
            assert_eq!(sys.now(), n * MS, "from the disk each time");
        }
        let start = sys.now();
        for tag in 0..8 {
            let io = Io { fd, write: false, at: u64::from(tag) * 4096, len: 4096, tag };
            sys.submit(io).await?;
        }
        let mut tags = Vec::new();
        while tags.len() < 8 {
            sys.reap(1, |c| tags.push((c.tag, c.answer))).await?;
        }
        assert_eq!(sys.now() - start, MS, "all at once");
        assert!(tags.iter().all(|t| t.1 == Ok(4096)), "{tags:?}");
        Ok(())
    })
    .unwrap();
}

/// `O_DSYNC` over written blocks: a flush and no commit. `O_SYNC` means the time of the change, too. Asynchronous ones that
/// end together share a flush. A disk takes 1 ms for a command and 2 ms for a flush.
#[test]
fn direct_writes_that_are_to_be_durable_are() {
    for volume in volumes(GIB) {
        let name = volume.name();
        let mut h = on_volume(volume, "none", 32, GIB, 256 * MIB, false);
        run(&mut h, async move |sys| {
            let direct = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::DIRECT;
            let fd = sys.creat("f").await?;
            sys.write(fd, MIB).await?;
            sys.fsync(fd).await?;
            let data = sys.open("f", direct | OpenFlags::DSYNC).await?;
            let begun = sys.now();
            for i in 0..10 {
                sys.pwrite(data, i * 8192, 8192).await?;
            }
            assert_eq!(sys.now() - begun, 10 * 3 * MS, "{name}: write and flush");
            let begun = sys.now();
            for i in 0..4 {
                let (at, len) = (i * 8192, 8192);
                sys.submit(Io { fd: data, write: true, at, len, tag: i as u32 }).await?;
            }
            let mut n = 0;
            while n < 4 {
                n += sys.reap(1, |c| assert_eq!(c.answer, Ok(8192))).await?;
            }
            let took = sys.now() - begun;
            assert!((3 * MS..=6 * MS).contains(&took), "{name}: {took} ns for four at once");
            let all = sys.open("f", direct | OpenFlags::SYNC).await?;
            sys.sleep(50 * MS).await?;
            let begun = sys.now();
            sys.pwrite(all, 0, 8192).await?;
            assert!(sys.now() - begun > 4 * MS, "{name}: and a commit");
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn a_full_file_system_says_so_and_loses_nothing() {
    volumes(GIB).into_iter().for_each(fill);
}

fn fill(volume: Volume) {
    let mut h = on_volume(volume, "none", 32, GIB, 256 * MIB, false);
    run(&mut h, async |sys| {
        let fd = sys.creat("f").await?;
        let mut written = 0;
        let error = loop {
            match sys.write(fd, 16 * MIB).await {
                Ok(n) => written += n,
                Err(e) => break e,
            }
        };
        assert_eq!(error, Errno::ENOSPC);
        assert!((850 * MIB..GIB).contains(&written), "{written} of 1 GiB");
        assert_eq!(sys.fallocate(fd, 0, 2 * GIB).await, Err(Errno::ENOSPC));
        sys.unlink("f").await?;
        sys.close(fd).await?;
        let other = sys.creat("g").await?;
        assert_eq!(sys.write(other, 16 * MIB).await?, 16 * MIB, "its room was given back");
        sys.fsync(other).await
    })
    .expect("a full disk is an answer, not an end");
    let c = h.counts();
    assert_eq!(c.dirtied, c.written + c.dropped + c.dirty, "{c:?}");
}

#[test]
fn a_sync_of_one_task_waits_for_the_journal_that_another_began() {
    let mut h = mounted("none", 32, GIB, 256 * MIB, false);
    run(&mut h, async |sys| {
        for n in 0..4 {
            sys.spawn(async move |sys| {
                let fd = sys.creat(format_args!("f{n}")).await?;
                for _ in 0..20 {
                    sys.write(fd, 4096).await?;
                    sys.fsync(fd).await?;
                }
                Ok(())
            })
            .await?;
        }
        for _ in 0..4 {
            sys.wait().await?;
        }
        Ok(())
    })
    .unwrap();
    // Alone, each sync takes about 7 ms; four tasks share their commits.
    let elapsed = h.measured().elapsed;
    assert!(elapsed < 2 * 20 * 8 * MS, "{elapsed} ns");
}

#[test]
fn random_programs_end_and_lose_nothing() {
    for (seed, fs) in (0..480).map(|n| (n / 2, n % 2)) {
        let cpu = seed % 2 == 0;
        let scheduler = ["none", "mq-deadline", "bfq", "kyber"][(seed % 4) as usize];
        let [ext4, xfs] = volumes(GIB);
        let volume = if fs == 0 { ext4 } else { xfs };
        let mut h = on_volume(volume, scheduler, 1 << (seed % 5), GIB, 4 * MIB, cpu);
        run(&mut h, async move |sys| random(sys, seed, 0).await)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let (c, m) = (h.counts(), h.measured());
        assert_eq!(c.dirtied, c.written + c.dropped + c.dirty, "seed {seed}: {c:?}");
        assert_eq!(m.count as usize, m.tasks.len(), "every task is accounted for");
    }
}

/// Positions are signed in the kernel: what is above the largest is negative. Longer than 16 TiB no file gets here.
#[test]
fn positions_that_no_file_has_are_refused() {
    for volume in volumes(GIB) {
        let mut h = on_volume(volume, "none", 32, GIB, 64 * MIB, false);
        run(&mut h, async |sys| {
            let fd = sys.open("f", create()).await?;
            for (at, len, says) in [
                (1 << 63, 1, Errno::EINVAL),
                (u64::MAX, 4096, Errno::EINVAL),
                ((1 << 63) - 1, 8, Errno::EINVAL),
            ] {
                assert_eq!(sys.pread(fd, at, len).await, Err(says), "reading at {at}");
                assert_eq!(sys.pwrite(fd, at, len).await, Err(says), "writing at {at}");
            }
            assert_eq!(sys.pread(fd, 17 << 40, 1).await, Ok(0));
            assert_eq!(sys.pwrite(fd, 17 << 40, 1).await, Err(Errno::EFBIG));
            assert_eq!(
                sys.creat(format_args!("{}", "n".repeat(256))).await,
                Err(Errno::ENAMETOOLONG)
            );
            sys.close(fd).await
        })
        .unwrap();
    }
}

/// Files of a quarter of memory, each written, synced and removed, beside the flusher: what it has reserved in a small journal comes back,
/// also when the last pages to come back are those of a sync.
#[test]
fn a_small_journal_serves_flusher_and_syncs() {
    for fs in 0..2 {
        let [ext4, xfs] = volumes(GIB);
        let volume = if fs == 0 { ext4 } else { xfs };
        let mut h = on_volume(volume, "none", 32, GIB, 512 * MIB, false);
        run(&mut h, async |sys| {
            for n in 0..12 {
                let name = format!("f{n}");
                let fd = sys.creat(&name).await?;
                for at in 0..128 {
                    sys.pwrite(fd, at * MIB, MIB).await?;
                }
                sys.fsync(fd).await?;
                sys.close(fd).await?;
                if n % 2 == 0 {
                    sys.unlink(&name).await?;
                } else {
                    sys.truncate(sys.open(&name, create()).await?, 0).await?;
                }
            }
            Ok(())
        })
        .unwrap();
    }
}

/// Tasks that write and sync the same pages: one that is on its way and dirty again is waited for, and counts once. It was counted
/// twice, until all writers slept for memory that nobody could clean.
#[test]
fn pages_that_several_write_and_sync_are_counted_once() {
    for (fs, scheduler) in [(0, "none"), (0, "mq-deadline"), (1, "none"), (1, "bfq")] {
        let [ext4, xfs] = volumes(GIB);
        let volume = if fs == 0 { ext4 } else { xfs };
        let mut h = on_volume(volume, scheduler, 32, GIB, 128 * MIB, true);
        run(&mut h, async |sys| {
            let fd = sys.creat("s").await?;
            sys.close(fd).await?;
            for _ in 0..3 {
                sys.fork(async |sys| {
                    let fd = sys.open("s", OpenFlags::WRITE | OpenFlags::DSYNC).await?;
                    for at in 0..64 {
                        sys.pwrite(fd, at * MIB, MIB).await?;
                    }
                    sys.close(fd).await
                })
                .await?;
            }
            Ok(())
        })
        .unwrap();
        let c = h.counts();
        assert_eq!(c.dirtied, c.written + c.dropped + c.dirty, "{c:?}");
    }
}

/// A checkpoint of XFS that is larger than a buffer of the log goes buffer by buffer: no plug makes one command of them. Seen in
/// the event log of `cp_tree`.
#[test]
fn buffers_of_the_log_are_commands_of_their_own() {
    let [_, xfs] = volumes(GIB);
    let mut h = on_volume(xfs, "none", 32, GIB, 256 * MIB, false);
    h.collect_dispatches();
    run(&mut h, async |sys| {
        for n in 0..1000 {
            let fd = sys.creat(format_args!("f{n}")).await?;
            sys.close(fd).await?;
        }
        sys.sync().await
    })
    .unwrap();
    let all = commands(&mut h);
    let buffers = all.iter().filter(|c| **c == (Op::Write, 64)).count();
    let longer = all.iter().filter(|c| c.0 == Op::Write && c.1 > 64).count();
    assert!(buffers > 3 && longer == 0, "{buffers} of 32 KiB, {longer} longer");
}

/// A cut amid a page reads the page, makes its rest zeros in memory, and the next sync writes it (Linux 6.18: 4 KiB read, 4 KiB
/// dirtied).
#[test]
fn a_cut_amid_a_page_writes_its_zeros() {
    for volume in volumes(GIB) {
        let mut h = on_volume(volume, "none", 32, GIB, 256 * MIB, false);
        h.collect_dispatches();
        run(&mut h, async |sys| {
            let fd = sys.creat("f").await?;
            sys.write(fd, 32 << 10).await?;
            sys.fsync(fd).await?;
            sys.fadvise(fd, 0, 0, Advice::DontNeed).await?;
            sys.truncate(fd, 10 << 10).await?;
            sys.fsync(fd).await?;
            sys.close(fd).await
        })
        .unwrap();
        let all = commands(&mut h);
        let mut after = all.iter().skip_while(|c| **c != (Op::Write, 64));
        assert!(after.any(|c| *c == (Op::Read, 8)), "{all:?}");
        assert_eq!(after.next(), Some(&(Op::Write, 8)), "{all:?}");
    }
}

/// ext3 has no extents to say that blocks are not written: `fallocate` is refused there, and leaves the file as it is.
#[test]
fn ext3_sets_nothing_aside() {
    let old = Ext3::new(GIB / 4096, 0, BY_1_47, Options::default(), None);
    for volume in volumes(GIB).into_iter().chain([Volume::Ext3(old)]) {
        let ext3 = volume.name() == "ext3";
        let mut h = on_volume(volume, "none", 32, GIB, 256 * MIB, false);
        run(&mut h, async move |sys| {
            let fd = sys.creat("f").await?;
            let wanted = if ext3 { Err(Errno::EOPNOTSUPP) } else { Ok(()) };
            assert_eq!(sys.fallocate(fd, 0, MIB).await, wanted);
            assert_eq!(sys.fallocate_keep_size(fd, 0, MIB).await, wanted);
            assert_eq!(sys.fallocate(fd, 0, 0).await, Err(Errno::EINVAL));
            assert_eq!(sys.stat("f").await?.bytes, if ext3 { 0 } else { MIB });
            sys.close(fd).await
        })
        .expect("it ends");
    }
}
