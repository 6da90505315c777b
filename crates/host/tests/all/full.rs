//! Nearly full file systems: who is told so, and what comes back.

use iosched_syscalls::{Done, Errno, Fd, OpenFlags, Sys};
use iosched_types::units::MS;
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::fs::volume::Volume;

use crate::rig::{create, on_volume, run, volumes};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 512 * MIB;

/// Takes all room but about so many bytes.
async fn leave(sys: &Sys, bytes: u64) -> Done {
    let room = sys.creat("room").await?;
    sys.fallocate(room, 0, bytes).await?;
    let ballast = sys.creat("ballast").await?;
    let mut at = 0;
    for piece in [64 * MIB, MIB, 64 << 10, 4096] {
        while sys.fallocate(ballast, at, piece).await.is_ok() {
            at += piece;
        }
    }
    sys.close(ballast).await?;
    sys.close(room).await?;
    sys.unlink("room").await?;
    sys.sync().await
}

/// A copy shares its source's blocks on XFS: to write it takes room, and a write that finds none says so. Before, write-back
/// found none, and `fsync` said that all was well.
#[test]
fn a_write_to_a_copy_is_told_that_there_is_no_room() {
    for volume in volumes(SIZE) {
        let shares = volume.name() == "xfs";
        let mut h = on_volume(volume.clone(), "none", 32, SIZE, 64 * MIB, false);
        run(&mut h, async move |sys| {
            let a = sys.open("a", create()).await?;
            sys.write(a, 8 * MIB).await?;
            sys.lseek(a, 0, iosched_syscalls::Whence::Set).await?;
            let b = sys.open("b", create()).await?;
            assert_eq!(sys.copy_file_range(a, b, 8 * MIB).await?, 8 * MIB);
            // Fifteen units of 128 KiB, and less than another.
            leave(&sys, 31 << 16).await?;
            let mut said = 0;
            for n in 0..128 {
                match sys.pwrite(b, n << 16, 1 << 16).await {
                    Ok(n) => assert_eq!(n, 1 << 16),
                    Err(e) => {
                        assert_eq!(e, Errno::ENOSPC);
                        said += 1;
                    }
                }
            }
            assert_eq!(said > 80, shares, "{said}");
            assert_eq!(sys.fsync(b).await, Ok(()));
            // Past the cache, too.
            let direct = sys.open("b", OpenFlags::WRITE | OpenFlags::DIRECT).await?;
            let end = sys.pwrite(direct, 8 * MIB - 4096, 4096).await;
            assert_eq!(end, if shares { Err(Errno::ENOSPC) } else { Ok(4096) });
            Ok(())
        })
        .unwrap();
        assert_eq!(h.counts().dirty, 0);
    }
}

/// ext4 writes as much as there is room for, page by page.
#[test]
fn the_last_write_is_short_on_ext4() {
    let [ext4, _] = volumes(SIZE);
    let volume = ext4.clone();
    let mut h = on_volume(ext4, "none", 32, SIZE, 64 * MIB, false);
    run(&mut h, async move |sys| {
        leave(&sys, MIB).await?;
        let fd = sys.creat("f").await?;
        for _ in 0..17 {
            assert_eq!(sys.write(fd, 15 << 12).await?, 15 << 12);
        }
        assert_eq!(sys.write(fd, 15 << 12).await, Ok(4096), "the last of 256 pages");
        assert_eq!(sys.write(fd, 15 << 12).await, Err(Errno::ENOSPC));
        sys.fsync(fd).await
    })
    .unwrap();
    assert_eq!(volume.free(), (SIZE / 4096 / 50).min(4096), "what is kept for trees");
}

/// Numbers of one seed.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |n| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % n
    }
}

/// Writes, copies, cuts and removes files; only what needs room is told that there is none.
async fn task(sys: &Sys, seed: u64, own: &str) -> Done {
    let mut next = numbers(seed);
    let mut fds: Vec<Fd> = Vec::new();
    for _ in 0..60 {
        let name = format!("{own}{}", next(4));
        if fds.is_empty() || next(6) == 0 {
            let flags = if next(4) == 0 { create() | OpenFlags::DIRECT } else { create() };
            match sys.open(&name, flags).await {
                Ok(fd) => fds.push(fd),
                Err(e) => assert_eq!(e, Errno::ENOSPC),
            }
            continue;
        }
        let (fd, other) =
            (fds[next(fds.len() as u64) as usize], fds[next(fds.len() as u64) as usize]);
        let (at, len) = (next(256) * 4096, (1 + next(64)) * 4096);
        let needs_room = match next(12) {
            0..5 => sys.pwrite(fd, at, len).await.map(drop),
            5 => sys.fallocate(fd, at, len).await,
            6 | 7 if fd != other => {
                let whole = async {
                    sys.lseek(fd, 0, iosched_syscalls::Whence::Set).await?;
                    sys.lseek(other, next(2) as i64 * at as i64, iosched_syscalls::Whence::Set)
                        .await?;
                    sys.copy_file_range(fd, other, 1 << 20).await.map(drop)
                };
                whole.await
            }
            _ => Ok(()),
        };
        assert!(
            matches!(needs_room, Ok(()) | Err(Errno::ENOSPC | Errno::EINVAL)),
            "{needs_room:?}"
        );
        match next(10) {
            0 => sys.truncate(fd, at).await?,
            1 => _ = sys.unlink(&name).await,
            // No byte is lost.
            2 | 3 => sys.fsync(fd).await?,
            4 => sys.sleep(next(20) * MS).await?,
            5 if fds.len() > 3 => sys.close(fds.remove(0)).await?,
            _ => {}
        }
    }
    for fd in fds {
        sys.fsync(fd).await?;
        sys.close(fd).await?;
    }
    Ok(())
}

/// What is wrong with a run.
fn check(volume: Volume, seed: u64) -> Option<String> {
    let start = volume.free();
    let scheduler = ["none", "mq-deadline", "bfq", "kyber"][(seed % 4) as usize];
    let mut h = on_volume(volume.clone(), scheduler, 8, SIZE, 16 * MIB, seed.is_multiple_of(3));
    let done = run(&mut h, async move |sys| {
        leave(&sys, (1 + seed % 5) * MIB / 2).await?;
        sys.spawn(async move |sys| task(&sys, seed + 1000, "y").await).await?;
        task(&sys, seed, "x").await?;
        sys.wait().await?;
        for n in 0..4 {
            let _ = sys.unlink(format_args!("x{n}")).await;
            let _ = sys.unlink(format_args!("y{n}")).await;
        }
        sys.unlink("ballast").await?;
        sys.sync().await
    });
    let (c, free) = (h.counts(), volume.free());
    let kept = c.dirtied == c.written + c.dropped && c.dirty == 0;
    let fine = done.is_ok() && kept && free == start;
    (!fine).then(|| format!("{} {seed}: {done:?}, {c:?}, {free} of {start} free", volume.name()))
}

#[test]
fn nearly_full_disks_lose_nothing_and_get_every_block_back() {
    let runs = (0..60).flat_map(|seed| volumes(SIZE).into_iter().map(move |v| check(v, seed)));
    let wrong: Vec<String> = runs.flatten().collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What could not be made has no name.
#[test]
fn a_file_for_which_there_was_no_room_is_not_there() {
    let [_, xfs] = volumes(SIZE);
    let mut h = on_volume(xfs, "none", 32, SIZE, 64 * MIB, false);
    run(&mut h, async move |sys| {
        leave(&sys, 8192).await?;
        assert_eq!(sys.open("f", create()).await, Err(Errno::ENOSPC));
        assert_eq!(sys.mkdir("d").await, Err(Errno::ENOSPC));
        assert_eq!(sys.stat("f").await.err(), Some(Errno::ENOENT));
        assert_eq!(sys.stat("d").await.err(), Some(Errno::ENOENT));
        sys.rename("ballast", "b").await?;
        sys.unlink("b").await?;
        sys.sync().await?;
        sys.open("f", create()).await.map(drop)
    })
    .unwrap();
}
