//! What several programs do with files.

use std::collections::BTreeSet;

use iosched_syscalls::{Done, Errno, Fd, OpenFlags, Sys};
use iosched_types::Bytes;

/// A megabyte: how large files are written.
pub const MIB: Bytes = 1 << 20;

/// Writes `len` bytes where the descriptor stands, in pieces of at most a megabyte; a short write goes on.
///
/// # Errors
/// The system's; `EIO` when nothing more can be written.
pub async fn write_all(sys: &Sys, fd: Fd, len: Bytes) -> Done {
    let mut left = len;
    while left > 0 {
        let n = sys.write(fd, left.min(MIB)).await?;
        if n == 0 {
            return Err(Errno::EIO);
        }
        left = left.saturating_sub(n);
    }
    Ok(())
}

/// Makes a file of that length, durable.
///
/// # Errors
/// The system's.
pub async fn make(sys: &Sys, name: &str, len: Bytes) -> Done {
    let fd = sys.creat(name).await?;
    write_all(sys, fd, len).await?;
    sys.fsync(fd).await?;
    sys.close(fd).await
}

/// Makes a directory with all directories above it; those that are there stay.
///
/// # Errors
/// The system's.
pub async fn make_directory(sys: &Sys, name: &str) -> Done {
    for (end, _) in name.match_indices('/').chain([(name.len(), "")]) {
        let part = &name[..end];
        if part.is_empty() || part == "." {
            continue;
        }
        made_or_there(sys.mkdir(part).await)?;
    }
    Ok(())
}

/// Directories that were made one after the other: none is asked for twice, however deep those below it lie.
#[derive(Debug, Default)]
pub struct Made(BTreeSet<Box<str>>);

impl Made {
    /// Makes a directory and those above it, as [`make_directory`], without those that were made here before.
    ///
    /// # Errors
    /// The system's.
    pub async fn make(&mut self, sys: &Sys, name: &str) -> Done {
        let ends = std::iter::once(name.len()).chain(name.rmatch_indices('/').map(|(i, _)| i));
        let missing: Vec<&str> =
            ends.map(|end| &name[..end]).take_while(|part| !self.0.contains(*part)).collect();
        for part in missing.into_iter().rev() {
            if !matches!(part, "" | ".") {
                made_or_there(sys.mkdir(part).await)?;
            }
            self.0.insert(part.into());
        }
        Ok(())
    }
}

/// A directory that is there already is as good as one that was made.
fn made_or_there(made: Done) -> Done {
    match made {
        Err(Errno::EEXIST) => Ok(()),
        made => made,
    }
}

/// Syncs a directory, so that the names in it are durable.
///
/// # Errors
/// The system's.
pub async fn sync_directory(sys: &Sys, name: &str) -> Done {
    let fd = sys.open(name, OpenFlags::READ | OpenFlags::DIRECTORY).await?;
    sys.fsync(fd).await?;
    sys.close(fd).await
}

/// Waits for `n` children.
///
/// # Errors
/// The system's.
pub async fn wait_for(sys: &Sys, n: u64) -> Done {
    for _ in 0..n {
        sys.wait().await?;
    }
    Ok(())
}

/// Random numbers of a program's own: the same seed gives the same ones in every run (xorshift64*).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Numbers of that seed.
    #[must_use]
    pub fn new(seed: u64) -> Dice {
        // Seeds that lie near each other begin far apart.
        let mut dice = Dice((seed ^ 0x9e37_79b9_7f4a_7c15).max(1));
        for _ in 0..8 {
            dice.below(2);
        }
        dice
    }

    /// A number from 0 to below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(high) * u128::from(n)) >> 64) as u64
    }
}
