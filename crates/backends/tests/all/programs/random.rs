//! Random small programs.

use iosched_syscalls::{
    Advice, Birth, Call, Done, Errno, Fd, Io, MapId, OpenFlags, Program, Script, Sys, Whence,
};
use proptest::prelude::*;

use super::beside::{Both, same};

const NAMES: [&str; 9] = ["a", "b", "d", "d/x", "d/y", "d/e", "d/e/z", "a/q", "no/such"];

/// A step: what, and three numbers for it.
type Step = (u8, u8, u8, u16);

fn flags(n: u8) -> OpenFlags {
    let access = [OpenFlags::READ, OpenFlags::WRITE, OpenFlags::READ | OpenFlags::WRITE];
    let mut flags = access[usize::from(n % 3)];
    for (bit, flag) in [
        (1, OpenFlags::CREATE),
        (2, OpenFlags::CREATE),
        (3, OpenFlags::EXCLUSIVE | OpenFlags::CREATE),
        (4, OpenFlags::TRUNCATE),
        (5, OpenFlags::APPEND),
        (6, OpenFlags::DSYNC),
        (7, OpenFlags::DIRECTORY),
    ] {
        // What Linux says to both depends on its version.
        let directory = flag.has(OpenFlags::DIRECTORY) && flags.has(OpenFlags::CREATE);
        if n >> bit & 1 == 1 && !directory {
            flags = flags | flag;
        }
    }
    flags
}

/// Makes one call. Which answers it may have is written down by the recorder.
async fn step(sys: &Sys, own: &str, (what, a, b, c): Step) {
    // 3 and 4 are the ends of a pipe, where reads and writes may wait for ever.
    let fd = Fd(u32::from(a % 8) + if matches!(what, 7..=9 | 12..=14) { 5 } else { 3 });
    let name = format!("{own}{}", NAMES[usize::from(b) % NAMES.len()]);
    let other = format!("{own}{}", NAMES[usize::from(a) % NAMES.len()]);
    let (at, len) = (u64::from(c) * 7, u64::from(b) * 97);
    let done: Done = match what {
        0..=5 => sys.open(&name, flags(a)).await.map(drop),
        6 => sys.close(fd).await,
        7 => sys.dup(fd).await.map(drop),
        8 | 9 => sys.read(fd, len).await.map(drop),
        10 | 11 => sys.pread(fd, at, len).await.map(drop),
        12..=14 => sys.write(fd, len).await.map(drop),
        15 | 16 => sys.pwrite(fd, at, len).await.map(drop),
        17 => {
            let whence = [Whence::Set, Whence::Current, Whence::End][usize::from(b) % 3];
            // How long a directory is differs between file systems.
            match sys.fstat(fd).await {
                Ok(stat) if stat.kind == iosched_syscalls::Kind::File => {
                    sys.lseek(fd, i64::from(c) - 3000, whence).await.map(drop)
                }
                other => other.map(drop),
            }
        }
        18 => sys.truncate(fd, at).await,
        19 => sys.fallocate(fd, at, len).await,
        20 => sys.fadvise(fd, at, len, Advice::DontNeed).await,
        21 => sys.fsync(fd).await,
        22 => sys.fdatasync(fd).await,
        23 => sys.sync_file_range(fd, at, len, b % 2 == 0).await,
        24 => sys.syncfs(fd).await,
        25 => sys.fstat(fd).await.map(drop),
        26 => sys.futimens(fd).await,
        27 => sys.readdir(fd).await.map(drop),
        28 => {
            let to = Fd(u32::from(b % 8) + 3);
            sys.copy_file_range(fd, to, at).await.map(drop)
        }
        29 => sys.stat(&name).await.map(drop),
        30 => sys.utimensat(&name).await,
        31 => sys.unlink(&name).await,
        32 | 33 => sys.rename(&name, &other).await,
        34..=36 => sys.mkdir(&name).await,
        37 => sys.rmdir(&name).await,
        38 => sys.mmap(fd, u64::from(a % 3) * 4096, len).await.map(drop),
        39 => sys.munmap(MapId(u32::from(a % 3))).await,
        40 => sys.load(MapId(u32::from(a % 3)), at).await,
        41 => sys.store(MapId(u32::from(a % 3)), at).await,
        42 => {
            let io = Io { fd, write: b % 2 == 0, at, len: len as u32, tag: u32::from(c) };
            sys.submit(io).await
        }
        43 => sys.reap(u32::MAX, drop).await.map(drop),
        44 => sys.add(u32::from(a), i64::from(c)).await.map(drop),
        45 => sys.join(77).await,
        46 => sys.signal(77).await,
        _ => sys.keep_size(fd, at, len).await,
    };
    let _ = done;
}

/// `fallocate` that leaves the length alone.
trait KeepSize {
    async fn keep_size(&self, fd: Fd, at: u64, len: u64) -> Done;
}

impl KeepSize for Sys {
    async fn keep_size(&self, fd: Fd, at: u64, len: u64) -> Done {
        self.call(Call::Fallocate { fd, at, len, keep_size: true }).await.map(drop)
    }
}

/// A task does its steps below its own directory, and has children that do theirs.
fn program(steps: Vec<Vec<Step>>) -> Both {
    let run = async move |sys: Sys| {
        let (reads, writes) = sys.pipe().await?;
        for (i, steps) in steps.into_iter().enumerate() {
            let text = async move |sys: Sys| {
                let own = format!("t{i}/");
                sys.mkdir(own.trim_end_matches('/')).await?;
                sys.barrier(7, 2).await?;
                for s in steps {
                    step(&sys, &own, s).await;
                }
                match sys.reap(u32::MAX, drop).await {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(e) => return Err(e),
                }
                // It may have closed this end.
                match sys.write(writes, 1).await {
                    Ok(_) | Err(Errno::EBADF) => Ok(()),
                    Err(e) => Err(e),
                }
            };
            sys.fork(text).await?;
            // One after the other, since maps have the same numbers for all.
            sys.barrier(7, 2).await?;
            sys.wait().await?;
        }
        sys.close(writes).await?;
        sys.read(reads, 99).await?;
        assert_eq!(sys.wait().await, Err(Errno::ECHILD));
        Ok(())
    };
    let script = move || Box::new(Script::new(run)) as Box<dyn Program>;
    Both { prepare: None, run: Birth(Box::new(script)) }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    })]

    #[test]
    fn answers_are_the_kernels(
        steps in prop::collection::vec(
            prop::collection::vec((0u8..48, any::<u8>(), any::<u8>(), 0u16..6000), 1..60),
            1..3,
        )
    ) {
        same("random steps", || program(steps.clone()));
    }
}
