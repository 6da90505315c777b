//! `posix_fadvise` on a mounted file system.

use iosched_syscalls::{Advice, Errno, Fd};
use iosched_types::Bytes;

use super::Programs;
use super::mounted::{After, no_pipe};
use super::paths::actor_of;
use super::task::Tid;
use crate::fs::Part;

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
}
