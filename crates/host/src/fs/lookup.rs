//! Names, inodes and places of files that have to be read, because the file system was mounted after they were made.

use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::kernel::Kernel;

use super::mount::{Mount, Path};
use super::{Ino, Names as _};

/// A part of a path: directory, name, what it stands for.
type Part = (u32, String, Option<u32>);

/// The way of a path through directories. Empty where everything is in memory for sure.
#[derive(Debug, Default)]
pub(super) struct Way(Vec<Part>);

impl Way {
    /// Reads what is missing on it.
    pub(super) async fn walk(&self, k: &Kernel, mount: &Mount) {
        for (directory, name, file) in &self.0 {
            mount.volume().look_up(k, *directory, name, *file).await;
        }
    }
}

impl Mount {
    /// The way of a path, as names are before the call.
    pub(super) fn way(&self, path: &str) -> Way {
        if !self.volume().is_cold() {
            return Way::default();
        }
        Way(self.tree.borrow().parts(path))
    }

    /// Finds a name, or that there is none, where something may have to be read for it.
    pub(crate) fn find_path(&self, actor: u32, path: &str) -> Option<Path> {
        if !self.volume().is_cold() {
            return None;
        }
        let found = self.find(path).map(|_| 0);
        let (k, way, mount) = (self.kernel(actor), self.way(path), self.clone());
        Some(Box::pin(async move {
            way.walk(&k, &mount).await;
            found
        }))
    }

    /// Reads the names of a directory, where that may be needed; then the answer is `answer`.
    pub(crate) fn list_path(&self, actor: u32, ino: Ino, answer: u64) -> Option<Path> {
        let (k, volume) = (self.kernel(actor), self.volume().clone());
        volume.is_cold().then(|| -> Path {
            Box::pin(async move {
                volume.read_directory(&k, ino.0).await;
                Ok(answer)
            })
        })
    }

    /// The path `then`, after the way that its names take.
    pub(super) fn after_way(&self, actor: u32, ways: [Way; 2], then: Path) -> Path {
        if ways.iter().all(|w| w.0.is_empty()) {
            return then;
        }
        let (k, mount) = (self.kernel(actor), self.clone());
        Box::pin(async move {
            for way in ways {
                way.walk(&k, &mount).await;
            }
            then.await
        })
    }
}
