//! `posix_fadvise` and `madvise` on a mounted file system.

use std::collections::BTreeSet;

use iosched_syscalls::{Advice, Errno, Fd};
use iosched_types::Bytes;
use iosched_vfs::cache::readahead::Stream;
use iosched_vfs::kernel::read::Order;

use super::Programs;
use super::mounted::{After, no_pipe};
use super::paths::actor_of;
use super::task::Tid;
use crate::fs::{Ino, Part};

impl Programs {
    /// `true`: it is answered.
    pub(super) fn advise(
        &mut self,
        t: Tid,
        fd: Fd,
        (at, len): (Bytes, Bytes),
        advice: Advice,
    ) -> Result<bool, Errno> {
        let (ino, file) = self.ino(t, fd).map_err(no_pipe)?;
        let a = actor_of(t);
        let state = self.open_file(file, ino);
        let Some(mount) = self.fs.mount() else { return Ok(self.said(t, 0)) };
        let part = Part { ino, at, len };
        let path = match advice {
            Advice::WillNeed => mount.will_need(a, state, part),
            Advice::DontNeed => mount.not_needed(a, part),
            _ => {
                let ra = mount.open(ino).ra;
                let mut opens = self.opens.borrow_mut();
                let open = &mut opens[file as usize];
                match advice {
                    Advice::Normal => (open.ra, open.stream.random) = (ra, false),
                    Advice::Sequential => (open.ra, open.stream.random) = (2 * ra, false),
                    Advice::Random => open.stream.random = true,
                    Advice::WillNeed | Advice::DontNeed | Advice::NoReuse => {}
                }
                drop(opens);
                return Ok(self.said(t, 0));
            }
        };
        Ok(self.begin_path(t, path, After::Say))
    }

    /// A new map: its faults read ahead as far as the open file that it came from, and heed what was said of that.
    pub(super) fn begin_map(&mut self, id: u32, file: u32) {
        let opens = self.opens.borrow();
        let Some(open) = opens.get(file as usize).filter(|_| self.fs.mount().is_some()) else {
            return;
        };
        if let Some(Some(map)) = self.maps.get_mut(id as usize) {
            map.ra = open.ra;
        }
        let mut stream = Stream::default();
        stream.random = open.stream.random;
        self.map_streams.borrow_mut().insert(id, stream);
    }

    /// What is mapped stays. So do names and inodes.
    pub(super) fn drop_caches(&mut self, t: Tid) -> bool {
        let mapped: BTreeSet<Ino> = self.maps.iter().flatten().map(|m| m.ino).collect();
        if let Some(mount) = self.fs.mount() {
            mount.forget_all_but(|ino| mapped.contains(&ino));
        }
        self.said(t, 0)
    }

    /// `madvise`: `true`, it is answered.
    pub(super) fn advise_map(&mut self, t: Tid, id: u32, advice: Advice) -> Result<bool, Errno> {
        let map = self.maps.get_mut(id as usize).and_then(Option::as_mut).ok_or(Errno::EINVAL)?;
        map.order = match advice {
            Advice::Normal => Order::Unsaid,
            Advice::Sequential => Order::Sequential,
            Advice::Random => Order::Random,
            Advice::WillNeed | Advice::DontNeed | Advice::NoReuse => return Err(Errno::EINVAL),
        };
        Ok(self.said(t, 0))
    }
}
