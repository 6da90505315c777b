//! Names, inodes and places of files that have to be read, because the file system was mounted after they were made.

use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::kernel::Kernel;

use super::mount::{Mount, Path};
use super::walk::Looked;
use super::{Ino, Names as _};

/// The way of a path through directories. Empty where everything is in memory for sure.
#[derive(Debug, Default)]
pub(super) struct Way(Vec<Looked>);

impl Way {
    /// Reads what is missing on it.
    pub(super) async fn walk(&self, k: &Kernel, mount: &Mount) {
        for looked in &self.0 {
            let file = looked.found.map(|ino| ino.0);
            mount.volume().look_up(k, looked.directory.0, &looked.name, file).await;
            if let Some(link) = file.filter(|_| looked.through) {
                mount.volume().read_link(k, link).await;
            }
        }
    }
}

impl Mount {
    /// The way of a path, as names are before the call; through a link that it ends with, or up to that.
    pub(super) fn way(&self, path: &str, follow: bool) -> Way {
        if !self.volume().is_cold() {
            return Way::default();
        }
        Way(self.tree.borrow().looked_up(path, follow))
    }

    /// Finds a name, or that there is none, where something may have to be read for it.
    pub(crate) fn find_path(&self, actor: u32, path: &str, follow: bool) -> Option<Path> {
        if !self.volume().is_cold() {
            return None;
        }
        let found = if follow { self.find(path) } else { self.find_itself(path) };
        let found = found.map(|_| 0);
        let (k, way, mount) = (self.kernel(actor), self.way(path, follow), self.clone());
        Some(Box::pin(async move {
            way.walk(&k, &mount).await;
            found
        }))
    }

    /// Reads what a link says, where that has to be read. → its length
    pub(crate) fn link_path(&self, actor: u32, path: &str) -> Option<Path> {
        if !self.volume().is_cold() {
            return None;
        }
        let link = self.find_itself(path);
        let said = link.and_then(|ino| self.target(ino)).map(|text| text.len() as u64);
        let (k, way, mount) = (self.kernel(actor), self.way(path, false), self.clone());
        Some(Box::pin(async move {
            way.walk(&k, &mount).await;
            if let (Ok(ino), Ok(_)) = (link, said) {
                mount.volume().read_link(&k, ino.0).await;
            }
            said
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
