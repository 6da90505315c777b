//! What several programs do with files.

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
        match sys.mkdir(part).await {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
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
