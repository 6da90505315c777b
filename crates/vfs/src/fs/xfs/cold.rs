//! Names and inodes that are read because they are not in memory: after a mount.
//!
//! Inodes come in the buffer of 32 that they lie in. The root's came with the mount.

use iosched_types::Flags;

use super::inode::CLUSTER_SECTORS;
use super::metadata::BLOCK;
use super::{State, Xfs};
use crate::kernel::{Kernel, Wait};

/// Blocks of a directory that are read ahead of the one whose entries are told: as many as hold the 32 KiB of entries that a
/// call asks for, and one. Seen in Linux 6.12 with `ls` of a directory of 13 blocks.
const AHEAD: usize = 9;
/// Flags of those, and of the first block, which is read when a directory is opened.
const UNWAITED: Flags = Flags::META.with(Flags::RAHEAD);

impl State {
    /// The mount forgets all that was in memory but the headers of groups and the root's inode.
    pub(super) fn chill(&mut self) {
        self.mount();
        self.cold = true;
    }

    /// The first sector of a block of a directory.
    fn block_of(&self, directory: u32, logical: u64) -> Option<u64> {
        let m = self.inodes.get(directory)?.extents.holds(logical)?;
        Some((m.start + logical - m.logical) * BLOCK)
    }
}

impl Xfs {
    /// The directory's blocks that a look for a name needs.
    pub(super) async fn look(&self, k: &Kernel, directory: u32, name: &str) {
        let looked = self.with(|s| s.inodes.get(directory).map(|i| i.directory.looked_at(name)));
        self.read_directory_blocks(k, directory, &looked.unwrap_or_default()).await;
    }

    async fn read_directory_blocks(&self, k: &Kernel, directory: u32, blocks: &[u64]) {
        for block in blocks {
            if let Some(sector) = self.with(|s| s.block_of(directory, *block)) {
                self.read(k, sector, BLOCK).await;
            }
        }
    }

    /// Finds a name in a directory and reads the inode of what it stands for, if anything.
    pub(super) async fn find_name(
        &self,
        k: &Kernel,
        directory: u32,
        name: &str,
        file: Option<u32>,
    ) {
        let blocks = self.with(|s| {
            let inode = s.inodes.get(directory)?;
            let mut blocks = inode.directory.looked_at(name);
            // Leaves say that there is no such name.
            if file.is_none() && blocks.len() > 1 {
                blocks.pop();
            }
            Some(blocks)
        });
        self.read_directory_blocks(k, directory, &blocks.unwrap_or_default()).await;
        let cluster = self.with(|s| Some(s.inodes.get(file?)?.at.cluster(&s.layout)));
        if let Some(cluster) = cluster {
            self.read(k, cluster, CLUSTER_SECTORS).await;
        }
    }

    /// Reads all blocks of a directory with entries. Opening it has begun to read the first; those behind each come ahead.
    pub(super) async fn read_names(&self, k: &Kernel, directory: u32) {
        let blocks: Vec<u64> = self.with(|s| {
            let n = s.inodes.get(directory).map_or(0, |i| i.directory.blocks());
            (0..n).filter_map(|b| s.block_of(directory, b)).collect()
        });
        let mut begun = 1;
        for (n, sector) in blocks.iter().enumerate() {
            self.read_as(k, (*sector, BLOCK), UNWAITED).await;
            let end = (n + 1 + AHEAD).min(blocks.len());
            if begun < end {
                self.read_ahead(k, &blocks[begun..end]).await;
                begun = end;
            }
        }
    }

    /// Starts to read blocks unless they are in memory.
    async fn read_ahead(&self, k: &Kernel, sectors: &[u64]) {
        for sector in sectors {
            if self.with(|s| s.warm.insert(*sector)) {
                k.late_metadata_bio((*sector, BLOCK), UNWAITED, None);
            }
        }
        k.wait(Wait::Submit).await;
    }
}
