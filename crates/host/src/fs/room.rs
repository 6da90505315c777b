//! Room for what calls write: promises, `fallocate`, and what is given back where it is short.

use iosched_syscalls::Errno;
use iosched_vfs::cache::PAGE;
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::fs::volume::Volume;
use iosched_vfs::kernel::Kernel;
use iosched_vfs::kernel::read::Place;

use super::mount::{LONGEST, Mount, Part, Path};

impl Mount {
    /// `EFBIG`, or `ENOSPC` behind the end of a device.
    pub(super) fn fits(&self, part: Part) -> Result<(), Errno> {
        let end = part.at.checked_add(part.len).filter(|e| *e <= LONGEST).ok_or(Errno::EFBIG)?;
        match &self.volume {
            Volume::Raw(raw) if end > raw.bytes => Err(Errno::ENOSPC),
            _ => Ok(()),
        }
    }

    /// Room for a write in memory. Where it is short, what can be given back is. → how much of it there is room for, from its
    /// beginning; `ENOSPC` if for nothing
    pub(super) async fn promised(&self, k: &Kernel, part: Part) -> Result<Part, Errno> {
        self.fits(part)?;
        let (volume, file, (from, to)) = (&self.volume, part.ino.0, part.pages());
        if volume.will_write(k, file, (from, to)).await.is_ok() {
            return Ok(part);
        }
        self.reclaim(k).await;
        if volume.will_write(k, file, (from, to)).await.is_ok() {
            return Ok(part);
        }
        let step = volume.promised_at_once();
        let (mut has, mut lacks) = (0, (to - from).div_ceil(step));
        while has + 1 < lacks {
            let middle = has.midpoint(lacks);
            match volume.will_write(k, file, (from, from + middle * step)).await {
                Ok(()) => has = middle,
                Err(_) => lacks = middle,
            }
        }
        let end = (from + has * step) * PAGE;
        if has == 0 { Err(Errno::ENOSPC) } else { Ok(Part { len: end - part.at, ..part }) }
    }

    /// Room is short: what can be given back is, first of all what files without a name have.
    async fn reclaim(&self, k: &Kernel) {
        loop {
            let next = self.orphans.borrow_mut().pop();
            let Some(file) = next else { break };
            self.let_go(k, file).await;
        }
        self.volume.reclaim(k).await;
    }

    /// `EFBIG`, or `ENOSPC` when there is no room for what a write past the cache needs.
    pub(super) async fn room_for(&self, k: &Kernel, part: Part) -> Result<(), Errno> {
        self.fits(part)?;
        let has_room = || self.volume.has_room(part.ino.0, part.pages());
        if !has_room() {
            self.reclaim(k).await;
        }
        if has_room() { Ok(()) } else { Err(Errno::ENOSPC) }
    }

    pub(crate) fn fallocate(&self, actor: u32, part: Part, keep_size: bool) -> Result<Path, Errno> {
        self.tree.borrow().file(part.ino).map_err(|_| Errno::ENODEV)?;
        if part.len == 0 {
            return Err(Errno::EINVAL);
        }
        let end = part.at.checked_add(part.len).filter(|e| *e <= LONGEST).ok_or(Errno::EFBIG)?;
        if !self.volume.takes_fallocate() {
            return Err(Errno::EOPNOTSUPP);
        }
        let (k, this) = (self.kernel(actor), self.clone());
        Ok(Box::pin(async move {
            let (from, to) = (part.at / PAGE, end.div_ceil(PAGE));
            this.room_for(&k, part).await?;
            let given = this.volume.fallocate(&k, part.ino.0, from, to - from).await;
            given.map_err(|_| Errno::ENOSPC)?;
            if !keep_size {
                this.longer(part);
            }
            Ok(0)
        }))
    }
}

/// Pages of a range that have no place.
pub(super) fn missing(place: &impl Place, from: u64, to: u64) -> u64 {
    let (mut at, mut n) = (from, 0);
    while at < to {
        let (sector, pages) = place.at(at);
        let end = to.min(at.saturating_add(pages.max(1)));
        n += if sector.is_none() { end - at } else { 0 };
        at = end;
    }
    n
}
