//! I/O past the page cache.

use iosched_syscalls::Errno;
use iosched_types::DirectSync;
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::fs::volume::Volume;
use iosched_vfs::kernel::direct::Range;
use iosched_vfs::kernel::writeback::Backing as _;
use iosched_vfs::kernel::{Group, Kernel, Wait, World};

use super::mount::{Mount, Part, Path};
use super::room::missing;

/// What a call moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direct {
    pub(crate) part: Part,
    pub(crate) write: bool,
    /// A write that is to be durable: by `fdatasync` (`O_DSYNC`: true) or `fsync` (`O_SYNC`).
    pub(crate) sync: Option<bool>,
}

/// Both in an answer. An asynchronous I/O is shorter than 4 GiB.
fn started(group: Group, bytes: u64) -> u64 {
    bytes << 32 | u64::from(group)
}

/// The group and the bytes of an I/O that was started.
pub(crate) fn of_started(answer: u64) -> (Group, u64) {
    (answer as Group, answer >> 32)
}

impl Mount {
    /// Reads or writes past the cache. → bytes
    pub(crate) fn direct(&self, actor: u32, what: Direct) -> Result<Path, Errno> {
        what.part.aligned()?;
        let (k, this, what) = (self.kernel(actor), self.clone(), self.synced_by(what));
        Ok(Box::pin(async move {
            let group = k.with(World::group);
            let (n, through) = this.submit_direct(&k, what, group).await?;
            k.wait(Wait::Io(group)).await;
            this.direct_done(&k, what, true).await;
            if let Some(data_only) = what.sync.filter(|_| !through || this.is_device()) {
                this.synced(&k, what.part.ino.0, data_only).await?;
            }
            Ok(n)
        }))
    }

    /// Starts direct I/O. → the group that [`World::finished`] tells of, and bytes ([`of_started`])
    pub(crate) fn start_direct(&self, actor: u32, what: Direct) -> Result<Path, Errno> {
        what.part.aligned()?;
        let (k, this, what) = (self.kernel(actor), self.clone(), self.synced_by(what));
        Ok(Box::pin(async move {
            let io = k.with(World::group);
            let (n, through) = this.submit_direct(&k, what, io).await?;
            let ends = what.sync.is_none() || through;
            if !ends {
                this.to_sync.borrow_mut().insert(io, what);
            }
            this.direct_done(&k, what, ends).await;
            // Not before: a group that is told of is forgotten when its bios are done, and another I/O gets its number.
            k.with(|w| w.tell(io));
            Ok(started(io, n))
        }))
    }

    /// What is left to do when the bios of an asynchronous write are done, if anything: a worker makes it durable.
    pub(crate) fn to_end(&self, group: Group) -> Option<Direct> {
        self.to_sync.borrow_mut().remove(&group)
    }

    /// Does that. → bytes
    pub(crate) fn end_direct(&self, actor: u32, what: Direct) -> Path {
        let (k, this) = (self.kernel(actor), self.clone());
        Box::pin(async move {
            let part = what.part;
            this.volume.came_back_alone(&k, part.ino.0, part.pages()).await;
            this.synced(&k, part.ino.0, what.sync.unwrap_or(true)).await?;
            Ok(part.len)
        })
    }

    /// Starts it. → bytes, and whether a write goes past the disk's cache and so needs no sync
    async fn submit_direct(
        &self,
        k: &Kernel,
        what: Direct,
        group: Group,
    ) -> Result<(u64, bool), Errno> {
        let Direct { part, write, .. } = what;
        let end = self.tree.borrow().node(part.ino).len;
        if !write {
            let len = end.saturating_sub(part.at).min(part.len);
            if len > 0 {
                let range = Range { len, ..part.range() };
                k.read_direct(&self.volume, range, group).await;
            }
            return Ok((len, false));
        }
        self.room_for(k, part).await?;
        let through = self.goes_through(k, what, end);
        let (mut from, to) = part.pages();
        while from < to {
            let end = self.volume.prepare(k, part.ino.0, from, to).await;
            if end == from {
                return Err(Errno::ENOSPC);
            }
            from = end;
        }
        k.write_direct(&self.volume, part.range(), through, group).await;
        Ok((part.len, through))
    }

    /// Whether it is a bare device.
    pub(crate) fn is_device(&self) -> bool {
        matches!(self.volume, Volume::Raw(_))
    }

    fn direct_sync(&self) -> DirectSync {
        self.world.borrow().memory.settings.direct_sync
    }

    /// Old kernels do not sync what is written to a device.
    fn synced_by(&self, what: Direct) -> Direct {
        let never = self.is_device() && self.direct_sync() == DirectSync::Cached;
        Direct { sync: what.sync.filter(|_| !never), ..what }
    }

    /// To a device each write that is to be durable goes past the cache, with or without FUA. A call flushes after it all the same.
    /// In a file a write with `O_DSYNC` over written blocks needs no flush after it on a disk that has FUA, if the file has nothing to
    /// commit. `O_SYNC` means the time of the change, too.
    fn goes_through(&self, k: &Kernel, what: Direct, end: u64) -> bool {
        let (part, file) = (what.part, what.part.ino.0);
        let (from, to) = part.pages();
        if self.is_device() {
            return what.sync.is_some() && self.direct_sync() == DirectSync::Fua;
        }
        what.sync == Some(true)
            && k.with(|w| w.memory.settings.fua)
            && part.at + part.len <= end
            && missing(&self.volume.data(file), from, to) == 0
            && !self.volume.needs_commit(file)
    }

    /// Notes a write. `ends`: its blocks are marked as written, too, and no worker does it later.
    async fn direct_done(&self, k: &Kernel, what: Direct, ends: bool) {
        if what.write {
            let part = what.part;
            if part.at + part.len > self.len(part.ino) {
                self.volume.extended(k).await;
            }
            self.longer(part);
            if ends {
                self.volume.convert(k, part.ino.0).await;
            }
            self.volume.wrote(k, part.ino.0, part.pages()).await;
        }
    }
}
