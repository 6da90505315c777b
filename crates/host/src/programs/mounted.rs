//! Calls on a mounted file system.

use std::cell::RefCell;
use std::collections::BTreeMap;

use iosched_syscalls::{Answer, Call, Completion, Entry, Errno, Fd, Io, OpenFlags};
use iosched_types::Bytes;
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::kernel::Group;
use iosched_vfs::kernel::read::Open;

use crate::fs::{Direct, Ino, Names as _, Part, Path, of_started};

use super::Programs;
use super::calls::{MOST, PAGE};
use super::descriptors::Behind;
use super::task::Tid;

/// What is done with the answer of a path before the call is answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum After {
    /// Nothing.
    #[default]
    Say,
    /// It is a file, which gets a descriptor.
    Open(OpenFlags),
    /// The open file's position moves on.
    Move(u32, Bytes),
    /// The descriptor is given back.
    Close(Fd),
    /// An I/O of this task with this tag is done, by a worker of io_uring.
    Ring(Tid, u32),
    /// It is a group of bios of an asynchronous I/O with this tag.
    Group(u32),
}

/// Asynchronous I/O past the cache that is under way: whose, its tag, its length.
pub(super) type Groups = BTreeMap<Group, (Tid, u32, u64)>;

impl Programs {
    /// Serves a call on a mounted file system. `None`: the call is the same on any, or there is none.
    pub(super) fn mounted(&mut self, t: Tid, call: &Call) -> Result<Option<bool>, Errno> {
        if self.fs.mount().is_none() {
            return Ok(None);
        }
        let a = super::paths::actor_of(t);
        let answered = match call {
            Call::Read { fd, len } => self.read_mounted(t, *fd, None, *len)?,
            Call::Pread { fd, at, len } => self.read_mounted(t, *fd, Some(*at), *len)?,
            Call::Write { fd, len } => self.write_mounted(t, *fd, None, *len)?,
            Call::Pwrite { fd, at, len } => self.write_mounted(t, *fd, Some(*at), *len)?,
            Call::Submit { io } => Some(self.submit_mounted(t, *io)?),
            Call::Ring { io } => Some(self.ring_mounted(t, *io)?),
            Call::Load { map, at } => Some(self.touch_map(t, map.0, *at, false)?),
            Call::Store { map, at } => Some(self.touch_map(t, map.0, *at, true)?),
            Call::AdviseMap { map, advice } => Some(self.advise_map(t, map.0, *advice)?),
            Call::DropCaches => Some(self.drop_caches(t)),
            Call::ReadDir { fd, into } => self.list_mounted(t, a, *fd, into)?,
            Call::Close { fd } => self.close_mounted(t, a, *fd)?,
            Call::Advise { fd, at, len, advice } => {
                Some(self.advise(t, *fd, (*at, *len), *advice)?)
            }
            other => match self.path_of(t, a, other)? {
                None => None,
                Some((None, _)) => Some(self.said(t, 0)),
                Some((Some(path), after)) => Some(self.begin_path(t, path, after)),
            },
        };
        Ok(answered)
    }

    pub(super) fn said(&mut self, t: Tid, n: u64) -> bool {
        self.tasks[t as usize].answer = Ok(n);
        true
    }

    /// Takes a path; `true` when it has ended and the call is answered.
    pub(super) fn begin_path(&mut self, t: Tid, path: Path, after: After) -> bool {
        self.tasks[t as usize].after = after;
        match self.take_path(t, path) {
            None => false,
            Some(answer) => {
                self.path_ends(t, answer);
                true
            }
        }
    }

    /// The path of a call has ended.
    pub(super) fn path_ends(&mut self, t: Tid, answer: Answer) {
        let after = std::mem::take(&mut self.tasks[t as usize].after);
        if let After::Ring(owner, tag) = after {
            return self.worker_ends(t, owner, Completion { tag, answer });
        }
        let answer = answer.and_then(|n| match after {
            After::Say => Ok(n),
            After::Open(flags) => self.open_mounted(t, Ino(n as u32), flags),
            After::Move(file, from) => {
                self.files[file as usize].at = from + n;
                Ok(n)
            }
            After::Ring(..) => Ok(n),
            After::Close(fd) => self.close(t, fd).map(|()| 0),
            After::Group(tag) => {
                let (group, bytes) = of_started(n);
                self.started(t, group, tag, bytes);
                Ok(0)
            }
        });
        self.tasks[t as usize].answer = answer;
    }

    /// The path of a call that takes no more than one, or none where nothing is to be done.
    fn path_of(
        &mut self,
        t: Tid,
        a: u32,
        call: &Call,
    ) -> Result<Option<(Option<Path>, After)>, Errno> {
        if let Call::Open { .. } = call {
            self.free_place(t)?;
        }
        let Some(mount) = self.fs.mount() else { return Ok(None) };
        let path = match call {
            Call::Open { path, flags } => {
                return Ok(Some((Some(mount.open_path(a, path, *flags)?), After::Open(*flags))));
            }
            Call::Unlink { path } => mount.unlink(a, path)?,
            Call::Rmdir { path } => mount.rmdir(a, path)?,
            Call::Mkdir { path } => mount.mkdir(a, path)?,
            Call::Symlink { target, path } => mount.symlink(a, target, path)?,
            Call::ReadLink { path, into } => {
                let Some(found) = mount.link_path(a, path) else { return Ok(None) };
                if let Ok(said) = mount.find_itself(path).and_then(|ino| mount.target(ino)) {
                    into.replace(said);
                }
                found
            }
            Call::Rename { from, to } => {
                return Ok(Some((mount.rename(a, from, to)?, After::Say)));
            }
            Call::Fsync { fd } | Call::Fdatasync { fd } => {
                let data_only = matches!(call, Call::Fdatasync { .. });
                mount.fsync(a, self.ino(t, *fd)?.0, data_only)
            }
            Call::Sync => mount.sync(a),
            Call::SyncFs { fd } => match self.files[self.file(t, *fd)? as usize].behind {
                Behind::File(_) => mount.sync(a),
                // Pipes have a file system of their own.
                Behind::Pipe(..) => return Ok(None),
            },
            Call::SyncRange { fd, at, len, wait } => {
                let (ino, _) = self.ino(t, *fd).map_err(no_pipe)?;
                mount.sync_range(a, Part { ino, at: *at, len: *len }, *wait)
            }
            Call::Discard { fd, at, len } => {
                let (ino, file) = self.ino(t, *fd).map_err(|_| Errno::ENOTTY)?;
                self.writable(file)?;
                mount.discard(a, Part { ino, at: *at, len: *len })?
            }
            Call::Truncate { fd, len } => {
                let (ino, file) = self.ino(t, *fd)?;
                self.writable(file).map_err(|_| Errno::EINVAL)?;
                mount.truncate(a, ino, *len)?
            }
            Call::Fallocate { fd, at, len, keep_size } => {
                let file = self.file(t, *fd)?;
                if *len == 0 {
                    return Err(Errno::EINVAL);
                }
                self.writable(file)?;
                let (ino, _) = self.ino(t, *fd).map_err(|_| Errno::ESPIPE)?;
                mount.fallocate(a, Part { ino, at: *at, len: *len }, *keep_size)?
            }
            Call::Stat { path, follow, into } => {
                let Some(found) = mount.find_path(a, path, *follow) else { return Ok(None) };
                if let Ok(ino) = if *follow { mount.find(path) } else { mount.find_itself(path) } {
                    into.set(mount.stat(ino));
                }
                found
            }
            Call::Touch { path } => match mount.find_path(a, path, true) {
                None => return Ok(None),
                Some(found) => found,
            },
            Call::CopyRange { from, to, len } => return self.copy_path(t, a, (*from, *to), *len),
            _ => return Ok(None),
        };
        Ok(Some((Some(path), After::Say)))
    }

    /// A directory's names, where they may have to be read.
    fn list_mounted(
        &mut self,
        t: Tid,
        a: u32,
        fd: Fd,
        into: &RefCell<Vec<Entry>>,
    ) -> Result<Option<bool>, Errno> {
        let cold = self.fs.mount().is_some_and(|m| m.volume().is_cold());
        let Ok((ino, _)) = self.ino(t, fd) else { return Ok(None) };
        if !cold {
            return Ok(None);
        }
        let n = self.read_dir(t, fd, into)?;
        let path = self.fs.mount().and_then(|m| m.list_path(a, ino, n));
        Ok(path.map(|path| self.begin_path(t, path, After::Say)))
    }

    /// Closing may start I/O. `None`: it does not.
    fn close_mounted(&mut self, t: Tid, a: u32, fd: Fd) -> Result<Option<bool>, Errno> {
        let file = self.file(t, fd)?;
        let open = self.files[file as usize];
        let Behind::File(ino) = open.behind else { return Ok(None) };
        if !open.flags.writes() || !self.is_last(file) {
            return Ok(None);
        }
        let path = self.fs.mount().and_then(|m| m.close(a, ino));
        Ok(path.map(|path| self.begin_path(t, path, After::Close(fd))))
    }

    fn open_mounted(&mut self, t: Tid, ino: Ino, flags: OpenFlags) -> Answer {
        let past = self.fs.mount().is_none_or(|m| m.takes_direct());
        let flags = if past { flags } else { flags.without(OpenFlags::DIRECT) };
        let Some(mount) = self.fs.mount() else { return Err(Errno::ENOSYS) };
        let open = mount.open(ino);
        self.note_name(t, ino.0);
        let fd = self.open(t, Behind::File(ino), flags)?;
        let file = self.file(t, fd)? as usize;
        let mut opens = self.opens.borrow_mut();
        if opens.len() <= file {
            opens.resize(file + 1, open.clone());
        }
        opens[file] = open;
        Ok(u64::from(fd.0))
    }

    /// What an open file is like now.
    pub(super) fn open_file(&self, file: u32, ino: Ino) -> Open {
        let mut open = self.opens.borrow()[file as usize].clone();
        open.size = self.fs.names().stat(ino).bytes;
        open
    }

    fn read_mounted(
        &mut self,
        t: Tid,
        fd: Fd,
        at: Option<Bytes>,
        len: Bytes,
    ) -> Result<Option<bool>, Errno> {
        let file = self.file(t, fd)?;
        let open = self.files[file as usize];
        let Behind::File(ino) = open.behind else { return Ok(None) };
        if !open.flags.reads() {
            return Err(Errno::EBADF);
        }
        let len = len.min(MOST);
        let from = at.unwrap_or(open.at);
        let part = Part { ino, at: from, len };
        in_range(part)?;
        self.note_found(t, part, true);
        let after = if at.is_none() { After::Move(file, from) } else { After::Say };
        let a = super::paths::actor_of(t);
        let Some(mount) = self.fs.mount() else { return Ok(None) };
        if mount.is_directory(ino) {
            return Err(Errno::EISDIR);
        }
        if open.flags.has(OpenFlags::DIRECT) {
            let path = mount.direct(a, Direct { part, write: false, sync: None })?;
            return Ok(Some(self.begin_path(t, path, after)));
        }
        {
            let mut opens = self.opens.borrow_mut();
            let state = &mut opens[file as usize];
            state.size = mount.len(ino);
            if let Some(n) = mount.read_cached(state, part) {
                drop(opens);
                self.tasks[t as usize].after = after;
                self.path_ends(t, Ok(n));
                return Ok(Some(true));
            }
        }
        let path = mount.read(a, self.open_file(file, ino), part, self.opens.clone(), file);
        Ok(Some(self.begin_path(t, path, after)))
    }

    fn write_mounted(
        &mut self,
        t: Tid,
        fd: Fd,
        at: Option<Bytes>,
        len: Bytes,
    ) -> Result<Option<bool>, Errno> {
        let file = self.file(t, fd)?;
        let open = self.files[file as usize];
        let Behind::File(ino) = open.behind else { return Ok(None) };
        self.writable(file)?;
        let len = len.min(MOST);
        // On Linux that holds for a given position, too.
        let from = match open.flags.has(OpenFlags::APPEND) {
            true => self.fs.names().stat(ino).bytes,
            false => at.unwrap_or(open.at),
        };
        if len == 0 {
            return Ok(Some(self.said(t, 0)));
        }
        let part = Part { ino, at: from, len };
        in_range(part)?;
        self.note_found(t, part, false);
        let after = if at.is_none() { After::Move(file, from) } else { After::Say };
        let a = super::paths::actor_of(t);
        let sync = durable(open.flags);
        let Some(mount) = self.fs.mount() else { return Ok(None) };
        if sync.is_none()
            && !open.flags.has(OpenFlags::DIRECT)
            && let Some(n) = mount.write_cached(a, part, self.tl.now)
        {
            self.tasks[t as usize].after = after;
            self.path_ends(t, Ok(n));
            return Ok(Some(true));
        }
        let state = self.open_file(file, ino);
        let path = match open.flags.has(OpenFlags::DIRECT) {
            true => mount.direct(a, Direct { part, write: true, sync })?,
            false => mount.write(a, state, part, sync),
        };
        Ok(Some(self.begin_path(t, path, after)))
    }

    /// Starts an asynchronous I/O. Through the cache it is done when the call returns.
    pub(super) fn submit_mounted(&mut self, t: Tid, io: Io) -> Result<bool, Errno> {
        let (ino, file) = self.ino(t, io.fd)?;
        let flags = self.files[file as usize].flags;
        if io.write && !flags.writes() || !io.write && !flags.reads() {
            return Err(Errno::EBADF);
        }
        let at = match io.write && flags.has(OpenFlags::APPEND) {
            true => self.fs.names().stat(ino).bytes,
            false => io.at,
        };
        let part = Part { ino, at, len: u64::from(io.len) };
        in_range(part)?;
        self.note_found(t, part, !io.write);
        let a = super::paths::actor_of(t);
        let state = self.open_file(file, ino);
        let Some(mount) = self.fs.mount() else { return Err(Errno::ENOSYS) };
        let path = if flags.has(OpenFlags::DIRECT) {
            let sync = durable(flags).filter(|_| io.write);
            match mount.start_direct(a, Direct { part, write: io.write, sync }) {
                Ok(path) => {
                    return Ok(self.begin_path(t, path, After::Group(io.tag)));
                }
                Err(e) => {
                    let refused = Completion { tag: io.tag, answer: Err(e) };
                    self.tasks[t as usize].done.push(refused);
                    return Ok(self.said(t, 0));
                }
            }
        } else if io.write {
            mount.write(a, state, part, durable(flags))
        } else {
            mount.read(a, state, part, self.opens.clone(), file)
        };
        let (done, tag) = (self.async_results.clone(), io.tag);
        let path: Path = Box::pin(async move {
            let answer = path.await;
            done.borrow_mut().push((t, Completion { tag, answer }));
            Ok(0)
        });
        Ok(self.begin_path(t, path, After::Say))
    }

    /// Buffered asynchronous I/O that paths have done goes to their tasks.
    pub(super) fn take_async_results(&mut self) {
        if self.async_results.borrow().is_empty() {
            return;
        }
        let results = std::mem::take(&mut *self.async_results.borrow_mut());
        for (t, completion) in results {
            self.tasks[t as usize].done.push(completion);
        }
    }

    /// The bios of an asynchronous I/O are handed over.
    fn started(&mut self, t: Tid, group: Group, tag: u32, len: u64) {
        self.async_begins(t);
        self.groups.insert(group, (t, tag, len));
        if self.early.remove(&group) {
            self.group_done(group);
        }
    }

    /// An asynchronous I/O is done; perhaps before its call has returned.
    pub(super) fn group_done(&mut self, group: Group) {
        match self.groups.remove(&group) {
            Some((t, tag, len)) => match self.fs.mount().and_then(|m| m.to_end(group)) {
                Some(what) => self.end_by_worker(t, tag, what),
                None => self.async_ends(t, Completion { tag, answer: Ok(len) }),
            },
            None => _ = self.early.insert(group),
        }
    }

    /// A program touches a page of a file in memory.
    fn touch_map(&mut self, t: Tid, id: u32, at: Bytes, store: bool) -> Result<bool, Errno> {
        let map = self.maps.get(id as usize).copied().flatten().ok_or(Errno::EINVAL)?;
        // What is mapped is whole pages: the rest of the last one is there, too.
        let (end, len) = (map.len.next_multiple_of(PAGE), self.fs.names().stat(map.ino).bytes);
        if at >= end || map.at + at >= len.next_multiple_of(PAGE) || store && !map.writable {
            return Err(Errno::EFAULT);
        }
        let place = (map.at + at).min(len - 1);
        let a = super::paths::actor_of(t);
        let part = Part { ino: map.ino, at: place, len: 1 };
        self.note_found(t, part, !store);
        let Some(mount) = self.fs.mount() else { return Err(Errno::ENOSYS) };
        let mut state = mount.open(map.ino);
        state.ra = map.ra;
        // A store needs its page as a load does, before it makes it dirty.
        let write = store.then(|| mount.write(a, state.clone(), part, None));
        let present = store && mount.is_dirty(part);
        let streams = self.map_streams.clone();
        let fault = (!present).then(|| mount.fault(a, state, part, streams, (id, map.order)));
        let path: Path = Box::pin(async move {
            for part in [fault, write].into_iter().flatten() {
                part.await?;
            }
            Ok(0)
        });
        Ok(self.begin_path(t, path, After::Say))
    }

    /// Reads the source and writes the target.
    fn copy_path(
        &mut self,
        t: Tid,
        a: u32,
        (from, to): (Fd, Fd),
        len: Bytes,
    ) -> Result<Option<(Option<Path>, After)>, Errno> {
        let ((source, f), (target, g)) = self.copied(t, from, to)?;
        let (at, to) = (self.files[f as usize].at, self.files[g as usize].at);
        let n = self.fs.names().stat(source).bytes.saturating_sub(at).min(len).min(MOST);
        if source == target && at < to + n && to < at + n {
            return Err(Errno::EINVAL);
        }
        self.files[f as usize].at += n;
        self.files[g as usize].at += n;
        if n == 0 {
            return Ok(Some((None, After::Say)));
        }
        let (reads, writes) = (self.open_file(f, source), self.open_file(g, target));
        let Some(mount) = self.fs.mount() else { return Ok(None) };
        let read = mount.read(a, reads, Part { ino: source, at, len: n }, self.opens.clone(), f);
        let write = mount.write(a, writes, Part { ino: target, at: to, len: n }, None);
        let copy: Path = Box::pin(async move {
            read.await?;
            write.await
        });
        let target = Part { ino: target, at: to, len: n };
        let path = mount.share_or(a, Part { ino: source, at, len: n }, target, copy);
        Ok(Some((Some(path), After::Say)))
    }
}

/// What follows each write: `fdatasync` (true), `fsync`, or nothing.
pub(super) fn durable(flags: OpenFlags) -> Option<bool> {
    match flags {
        f if f.has(OpenFlags::SYNC) => Some(false),
        f if f.has(OpenFlags::DSYNC) => Some(true),
        _ => None,
    }
}

pub(super) fn no_pipe(e: Errno) -> Errno {
    if e == Errno::EINVAL { Errno::ESPIPE } else { e }
}

/// Positions are signed: what is above the largest is negative, and so is an end there.
fn in_range(part: Part) -> Result<(), Errno> {
    const LARGEST: Bytes = i64::MAX as Bytes;
    match part.at.checked_add(part.len) {
        Some(end) if end <= LARGEST => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}
