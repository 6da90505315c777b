//! Names of a mounted file system: what is made, moved and removed. Names change when the call begins; what that does to
//! the disk is on the path.

use iosched_syscalls::{Errno, Kind, OpenFlags};
use iosched_vfs::fs::volume::Volume;
use iosched_vfs::fs::{FileSystem as _, Kind as Made};
use iosched_vfs::kernel::Lock;

use super::lookup::Way;
use super::mount::{Mount, Path};
use super::tree::{Place, Tree};
use super::walk::check_target;
use super::{Ino, Names as _};

/// A file, and where it was made if it was.
type Opened = (Ino, Option<(Ino, String)>);

impl Mount {
    /// Opens a name, and makes it if it has to.
    pub(crate) fn open_path(
        &self,
        actor: u32,
        path: &str,
        flags: OpenFlags,
    ) -> Result<Path, Errno> {
        let way = self.way(path, follows(flags));
        let (ino, made) = self.look_up(path, flags)?;
        let directory = self.stat(ino).kind == Kind::Directory;
        // Cutting needs no flag for writing.
        let changes = flags.writes() || flags.has(OpenFlags::TRUNCATE);
        if directory && (changes || flags.has(OpenFlags::CREATE)) {
            return Err(Errno::EISDIR);
        }
        if !directory && flags.has(OpenFlags::DIRECTORY) {
            return Err(Errno::ENOTDIR);
        }
        let cut = flags.has(OpenFlags::TRUNCATE) && self.stat(ino).bytes > 0;
        if cut {
            self.tree.borrow_mut().node_mut(ino).len = 0;
        }
        self.world.borrow_mut().memory.open(ino.0);
        let (k, volume, tree) = (self.kernel(actor), self.volume.clone(), self.tree.clone());
        let opening: Path = Box::pin(async move {
            if let Some((parent, name)) = made {
                let at = (parent.0, ino.0);
                k.lock(Lock::Names(parent.0), true).await;
                let made = volume.create(&k, at, Made::File, &name).await;
                k.unlock(Lock::Names(parent.0));
                if made.is_err() {
                    tree.borrow_mut().unmake(parent, &name, ino);
                    return Err(Errno::ENOSPC);
                }
            }
            if cut {
                volume.truncate(&k, ino.0, 0).await;
            }
            if !directory {
                volume.opened(&k).await;
            }
            Ok(u64::from(ino.0))
        });
        Ok(self.after_way(actor, [way, Way::default()], opening))
    }

    /// The file of a name, and the directory in which it was made, with its name there.
    fn look_up(&self, path: &str, flags: OpenFlags) -> Result<Opened, Errno> {
        let mut tree = self.tree.borrow_mut();
        if let Volume::Raw(_) = self.volume {
            return Ok((super::tree::DEVICE, None));
        }
        let place = if follows(flags) { tree.follow(path)? } else { tree.place(path)? };
        match place.found {
            Some(_) if flags.has(OpenFlags::CREATE) && flags.has(OpenFlags::EXCLUSIVE) => {
                Err(Errno::EEXIST)
            }
            Some(ino) if tree.node(ino).kind == Kind::Link => {
                Err(if flags.has(OpenFlags::DIRECTORY) { Errno::ENOTDIR } else { Errno::ELOOP })
            }
            Some(ino) => Ok((ino, None)),
            None if flags.has(OpenFlags::CREATE) => {
                let (parent, name) = (place.parent, place.name.to_string());
                let ino = tree.add(place, Kind::File)?;
                Ok((ino, Some((parent, name))))
            }
            None => Err(Errno::ENOENT),
        }
    }

    pub(crate) fn unlink(&self, actor: u32, path: &str) -> Result<Path, Errno> {
        let way = self.way(path, false);
        let dropped = self.tree.borrow_mut().unlink(path)?;
        Ok(self.after_way(actor, [way, Way::default()], self.drop_path(actor, path, dropped)))
    }

    pub(crate) fn rmdir(&self, actor: u32, path: &str) -> Result<Path, Errno> {
        let way = self.way(path, false);
        let dropped = self.tree.borrow_mut().rmdir(path)?;
        Ok(self.after_way(actor, [way, Way::default()], self.drop_path(actor, path, dropped)))
    }

    fn drop_path(&self, actor: u32, path: &str, dropped: super::tree::Dropped) -> Path {
        let (k, volume, tree) = (self.kernel(actor), self.volume.clone(), self.tree.clone());
        let name = last_part(path);
        Box::pin(async move {
            volume.unlink(&k, (dropped.parent.0, dropped.ino.0), &name, dropped.gone).await;
            if dropped.gone {
                tree.borrow_mut().free(dropped.ino);
            }
            Ok(0)
        })
    }

    pub(crate) fn mkdir(&self, actor: u32, path: &str) -> Result<Path, Errno> {
        self.make(actor, path, Made::Directory, |tree, place| tree.add(place, Kind::Directory))
    }

    /// Makes a symbolic link.
    pub(crate) fn symlink(&self, actor: u32, target: &str, path: &str) -> Result<Path, Errno> {
        check_target(target)?;
        let kind = Made::Link(u32::try_from(target.len()).unwrap_or(u32::MAX));
        self.make(actor, path, kind, |tree, place| tree.add_link(place, target))
    }

    /// Makes something under a name that must be free.
    fn make(
        &self,
        actor: u32,
        path: &str,
        kind: Made,
        add: impl FnOnce(&mut Tree<()>, Place<'_>) -> Result<Ino, Errno>,
    ) -> Result<Path, Errno> {
        let way = self.way(path, false);
        let mut tree = self.tree.borrow_mut();
        let place = tree.place(path)?;
        if place.found.is_some() {
            return Err(Errno::EEXIST);
        }
        let (parent, name) = (place.parent, place.name.to_string());
        let ino = add(&mut tree, place)?;
        self.world.borrow_mut().memory.open(ino.0);
        let (k, volume, names) = (self.kernel(actor), self.volume.clone(), self.tree.clone());
        let making: Path = Box::pin(async move {
            k.lock(Lock::Names(parent.0), true).await;
            let made = volume.create(&k, (parent.0, ino.0), kind, &name).await;
            k.unlock(Lock::Names(parent.0));
            if made.is_err() {
                names.borrow_mut().unmake(parent, &name, ino);
                return Err(Errno::ENOSPC);
            }
            Ok(0)
        });
        Ok(self.after_way(actor, [way, Way::default()], making))
    }

    pub(crate) fn rename(&self, actor: u32, from: &str, to: &str) -> Result<Option<Path>, Errno> {
        let ways = [self.way(from, false), self.way(to, false)];
        let Some(moved) = self.tree.borrow_mut().rename(from, to)? else { return Ok(None) };
        let (k, volume, tree) = (self.kernel(actor), self.volume.clone(), self.tree.clone());
        let (old, new) = (last_part(from), last_part(to));
        let moving: Path = Box::pin(async move {
            let names = (old.as_str(), new.as_str());
            let replaced = moved.replaced.map(|(ino, gone)| (ino.0, gone));
            let at = (moved.from.0, moved.to.0);
            volume.rename(&k, moved.ino.0, at, names, replaced).await;
            if let Some((ino, true)) = moved.replaced {
                tree.borrow_mut().free(ino);
            }
            Ok(0)
        });
        Ok(Some(self.after_way(actor, ways, moving)))
    }
}

/// Whether opening goes through a link that the name ends with.
fn follows(flags: OpenFlags) -> bool {
    let new = flags.has(OpenFlags::CREATE) && flags.has(OpenFlags::EXCLUSIVE);
    !new && !flags.has(OpenFlags::NOFOLLOW)
}

/// The name that a path ends with.
fn last_part(path: &str) -> String {
    path.split('/').rfind(|p| !matches!(*p, "" | ".")).unwrap_or("").to_string()
}
