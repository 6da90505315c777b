//! What each call does.

use std::cell::RefCell;

use iosched_syscalls::{Advice, Answer, Call, Entry, Errno, Fd, Kind, OpenFlags, Stat, Whence};
use iosched_types::{Bytes, Nanos};

use crate::cpu::Costs;
use crate::fs::Ino;
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::kernel::memory::Moved;
use iosched_vfs::kernel::read::Order;

use super::Programs;
use super::descriptors::{Behind, Map};
use super::paths::is_thread;
use super::task::{Moves, Tid};

/// The most that Linux moves in a call.
pub(super) const MOST: Bytes = 0x7fff_f000;
/// Slices of one computation, about: up to some seconds they have the length of the profile.
const MOST_SLICES: u64 = 1000;
/// A page, for maps.
pub(super) const PAGE: Bytes = 4096;

/// A file, and the open file that stands for it.
type Opened = (Ino, u32);

impl Programs {
    /// Serves a call; `true` when it is answered, `false` when the task sleeps or its core is busy with it.
    pub(super) fn serve(&mut self, t: Tid, call: Call) -> bool {
        let task = &mut self.tasks[t as usize];
        match call {
            Call::Note { what, since, bytes } => {
                task.answer = Ok(0);
                if self.instant {
                    return true;
                }
                let (began, now) = (self.began, self.tl.now);
                self.measured.note(what, since.max(began) - began, now - began, bytes);
                // It looks at the clock after the operation, and before the next.
                return self.looks(t, 2);
            }
            Call::Look { times } => {
                task.answer = Ok(0);
                return self.looks(t, times);
            }
            Call::Copied { bytes } => {
                task.answer = Ok(0);
                let ns = self.costs.as_ref().map_or(0, |c| c.copying(bytes));
                if ns == 0 || self.instant || self.cores.is_none() {
                    return true;
                }
                self.occupy(t, ns, 0);
                return false;
            }
            Call::Figure { name, value, beyond } => {
                task.answer = Ok(0);
                self.measured.figure(name, value, beyond);
                return true;
            }
            Call::Mark { what, part, since } => {
                task.answer = Ok(0);
                let (began, now) = (self.began, self.tl.now);
                if !self.instant {
                    self.measured.mark(what, part, since.max(began) - began, now - began);
                }
                return true;
            }
            _ => {}
        }
        task.since = self.tl.now;
        // A counter is no call: what is told of a task is the call before.
        if !matches!(call, Call::Add { .. }) {
            task.last_call = call.name();
        }
        self.note_call(t, &call);
        if self.cores.is_none() {
            return self.execute(t, call);
        }
        let enters = call.enters_kernel();
        let copies = self.copied_by(t, &call);
        if let Call::Compute { time } = call {
            let time = self.costs.as_ref().map_or(time, |c| c.own(time));
            self.tasks[t as usize].compute = time;
            self.tasks[t as usize].answer = Ok(0);
            return time == 0 || self.compute(t);
        }
        if !enters {
            return self.execute(t, call);
        }
        let Some(costs) = &self.costs else { return self.execute(t, call) };
        let writes = if self.makes_dirty(t, &call) { costs.write() } else { 0 };
        let (found, changes) = self.names_in(&call);
        let system = costs.call(copies) + writes + costs.names(found, changes);
        let system = system + std::mem::take(&mut self.tasks[t as usize].owes);
        if system == 0 {
            return self.execute(t, call);
        }
        self.tasks[t as usize].call = Some(call);
        self.occupy(t, 0, system);
        false
    }

    /// The task looks at the clock; `true` when that takes no time.
    fn looks(&mut self, t: Tid, times: u32) -> bool {
        let ns = u64::from(times) * self.costs.as_ref().map_or(0, Costs::clock);
        if ns == 0 || self.cores.is_none() || self.notes_are_free {
            return true;
        }
        self.occupy(t, 0, ns);
        false
    }

    /// How many names the call looks for, and whether it changes a directory.
    fn names_in(&self, call: &Call) -> (u64, bool) {
        let there = |path: &str| self.fs.names().find_itself(path).is_ok();
        match call {
            Call::Open { path, flags } => (1, flags.has(OpenFlags::CREATE) && !there(path)),
            Call::Mkdir { path } | Call::Symlink { path, .. } => (1, !there(path)),
            Call::Unlink { path } | Call::Rmdir { path } => (1, there(path)),
            Call::Rename { from, .. } => (2, there(from)),
            Call::Stat { .. } | Call::Touch { .. } | Call::ReadLink { .. } => (1, false),
            _ => (0, false),
        }
    }

    /// A task's call moved pages into memory or out of it, or wrote some back.
    pub(super) fn owes_for_pages(&mut self, t: Tid, moved: Moved) {
        if self.instant || is_thread(t) || moved == Moved::default() {
            return;
        }
        let owes = self.costs.as_ref().map_or(0, |c| c.pages(&moved));
        self.tasks[t as usize].owes += owes;
    }

    /// Whether the call writes to a file of a file system through memory.
    fn makes_dirty(&self, t: Tid, call: &Call) -> bool {
        let (Call::Write { fd, .. } | Call::Pwrite { fd, .. } | Call::CopyRange { to: fd, .. }) =
            call
        else {
            return false;
        };
        let Some(mount) = self.fs.mount() else { return false };
        let open = self.file(t, *fd).map(|f| self.files[f as usize]);
        mount.volume().has_journal()
            && open.is_ok_and(|o| {
                matches!(o.behind, Behind::File(_)) && !o.flags.has(OpenFlags::DIRECT)
            })
    }

    /// Bytes that the call will copy: a read ends with the file, and direct I/O copies nothing.
    fn copied_by(&self, t: Tid, call: &Call) -> Bytes {
        let (fd, at, reads) = match *call {
            Call::Read { fd, .. } => (fd, None, true),
            Call::Pread { fd, at, .. } => (fd, Some(at), true),
            // From one page cache to another: copied once.
            Call::CopyRange { from, .. } => (from, None, true),
            Call::Write { fd, .. } | Call::Pwrite { fd, .. } => (fd, None, false),
            _ => return call.copies().min(MOST),
        };
        let Ok(file) = self.file(t, fd) else { return 0 };
        let open = self.files[file as usize];
        match open.behind {
            Behind::File(_) if open.flags.has(OpenFlags::DIRECT) => 0,
            Behind::File(ino) if reads => {
                let left = self.fs.names().stat(ino).bytes.saturating_sub(at.unwrap_or(open.at));
                call.copies().min(left).min(MOST)
            }
            _ => call.copies().min(MOST),
        }
    }

    /// A slice of own work; the core is given away between two if others want it.
    pub(super) fn compute(&mut self, t: Tid) -> bool {
        let left = self.tasks[t as usize].compute;
        let slice: Nanos = self.costs.as_ref().map_or(left, |c| c.slice().max(1));
        // A log may have a pause of years. It need not be made of slices of milliseconds.
        let now = left.min(slice.max(left / MOST_SLICES));
        self.tasks[t as usize].compute = left - now;
        self.occupy(t, now, 0);
        false
    }

    /// Does what a call does.
    pub(super) fn execute(&mut self, t: Tid, call: Call) -> bool {
        let task = &mut self.tasks[t as usize];
        task.stats.calls += u64::from(call.enters_kernel());
        task.moves = match call {
            Call::Read { .. } | Call::Pread { .. } => Some(Moves::Read),
            Call::Write { .. } | Call::Pwrite { .. } => Some(Moves::Write),
            Call::CopyRange { .. } => Some(Moves::Copy),
            Call::Fsync { .. } | Call::Fdatasync { .. } | Call::SyncFs { .. } | Call::Sync => {
                Some(Moves::Sync)
            }
            Call::Load { .. } => Some(Moves::Load),
            Call::Store { .. } => Some(Moves::Store),
            _ => None,
        };
        let begins = match &call {
            Call::Submit { io } | Call::Ring { io } => Some((io.tag, io.write)),
            _ => None,
        };
        if let Some((tag, write)) = begins {
            task.begun.add(tag, task.since, write);
        }
        match self.dispatch(t, call) {
            Ok(answered) => answered,
            Err(e) => {
                if let Some((tag, _)) = begins {
                    self.tasks[t as usize].begun.take(tag);
                }
                self.tasks[t as usize].answer = Err(e);
                true
            }
        }
    }

    fn say(&mut self, t: Tid, n: u64) -> Result<bool, Errno> {
        self.tasks[t as usize].answer = Ok(n);
        Ok(true)
    }

    fn dispatch(&mut self, t: Tid, call: Call) -> Result<bool, Errno> {
        if let Some(answered) = self.mounted(t, &call)? {
            self.take_async_results();
            return Ok(answered);
        }
        match call {
            Call::Read { fd, len } => self.read(t, fd, None, len),
            Call::Pread { fd, at, len } => self.read(t, fd, Some(at), len),
            Call::Write { fd, len } => self.write(t, fd, None, len),
            Call::Pwrite { fd, at, len } => self.write(t, fd, Some(at), len),
            Call::Fsync { fd } | Call::Fdatasync { fd } => {
                let (ino, _) = self.ino(t, fd)?;
                Ok(self.sync_file(t, ino, 0, u64::MAX, true))
            }
            Call::Sync => Ok(self.sync_all(t)),
            Call::SyncFs { fd } => match self.files[self.file(t, fd)? as usize].behind {
                Behind::File(_) => Ok(self.sync_all(t)),
                // Pipes have a file system of their own.
                Behind::Pipe(..) => self.say(t, 0),
            },
            Call::SyncRange { fd, at, len, wait } => self.sync_range(t, fd, at, len, wait),
            Call::Sleep { time } => Ok(self.nap(t, time)),
            Call::Compute { time } => Ok(self.think(t, time)),
            Call::Spawn { shares, role, birth } => {
                let n = self.spawn(t, (shares, role), birth)?;
                self.say(t, n)
            }
            Call::Wait => Ok(self.wait(t, None)),
            Call::Join { task } => Ok(self.wait(t, Some(task))),
            Call::Barrier { barrier, parties } => Ok(self.barrier(t, barrier, parties)),
            Call::Submit { io } | Call::Ring { io } => self.submit(t, io),
            Call::Reap { min, into } => Ok(self.reap(t, min, into)),
            Call::Map { .. } | Call::Unmap { .. } | Call::Load { .. } | Call::Store { .. } => {
                self.mapped(t, &call)
            }
            // The simple layer reads what is touched and no more.
            Call::DropCaches => {
                self.fs.at_once()?.drop_caches();
                self.say(t, 0)
            }
            Call::AdviseMap { map, advice } => self.advise_map(t, map.0, advice),
            other => {
                let n = self.at_once(t, other)?;
                self.say(t, n)
            }
        }
    }

    /// Calls that never sleep here.
    fn at_once(&mut self, t: Tid, call: Call) -> Result<u64, Errno> {
        match call {
            Call::Open { path, flags } => return self.open_name(t, &path, flags),
            Call::Close { fd } => self.close(t, fd)?,
            Call::Dup { fd } => {
                let file = self.file(t, fd)?;
                return self.number(t, file).map(|fd| u64::from(fd.0));
            }
            Call::Seek { fd, to, whence } => return self.seek(t, fd, to, whence),
            Call::Truncate { fd, len } => {
                let (ino, file) = self.ino(t, fd)?;
                self.writable(file).map_err(|_| Errno::EINVAL)?;
                self.fs.at_once()?.truncate(ino, len)?;
            }
            Call::Fallocate { fd, at, len, keep_size } => {
                let file = self.file(t, fd)?;
                if len == 0 {
                    return Err(Errno::EINVAL);
                }
                self.writable(file)?;
                let (ino, _) = self.ino(t, fd).map_err(|_| Errno::ESPIPE)?;
                self.fs.at_once()?.allocate(ino, at, len, keep_size)?;
            }
            Call::Advise { fd, at, len, advice } => {
                let (ino, _) = self.ino(t, fd).map_err(|e| match e {
                    Errno::EINVAL => Errno::ESPIPE,
                    other => other,
                })?;
                if advice == Advice::DontNeed {
                    self.fs.at_once()?.forget(ino, at, len);
                }
            }
            Call::Fstat { fd, into } => {
                let file = self.file(t, fd)?;
                into.set(match self.files[file as usize].behind {
                    Behind::File(ino) => self.fs.names().stat(ino),
                    Behind::Pipe(..) => Stat::default(),
                });
            }
            Call::TouchFd { fd } => drop(self.file(t, fd)?),
            Call::ReadDir { fd, into } => return self.read_dir(t, fd, &into),
            Call::Stat { path, follow, into } => {
                let names = self.fs.names();
                let found = if follow { names.find(&path) } else { names.find_itself(&path) };
                into.set(names.stat(found?));
            }
            Call::Symlink { target, path } => self.fs.at_once()?.symlink(&target, &path)?,
            Call::ReadLink { path, into } => {
                let names = self.fs.names();
                let said = names.target(names.find_itself(&path)?)?;
                let n = said.len() as u64;
                into.replace(said);
                return Ok(n);
            }
            Call::Touch { path } => drop(self.fs.names().find(&path)?),
            Call::Unlink { path } => self.fs.at_once()?.unlink(&path)?,
            Call::Rename { from, to } => self.fs.at_once()?.rename(&from, &to)?,
            Call::Mkdir { path } => self.fs.at_once()?.mkdir(&path)?,
            Call::Rmdir { path } => self.fs.at_once()?.rmdir(&path)?,
            Call::CopyRange { from, to, len } => return self.copy(t, from, to, len),
            Call::Pipe => return self.make_pipe(t),
            Call::Add { counter, by } => return self.add(counter, by),
            Call::Signal { task } => return self.signal(task),
            Call::Stopped => return Ok(u64::from(self.tasks[t as usize].told_to_stop)),
            Call::GetPid => return Ok(u64::from(t)),
            Call::Elsewhere { bytes } => return Ok(bytes),
            _ => return Err(Errno::ENOSYS),
        }
        Ok(0)
    }

    /// The next names of a directory; how many.
    pub(super) fn read_dir(&mut self, t: Tid, fd: Fd, into: &RefCell<Vec<Entry>>) -> Answer {
        let (ino, file) = self.ino(t, fd).map_err(|e| match e {
            Errno::EINVAL => Errno::ENOTDIR,
            other => other,
        })?;
        let mut names = into.borrow_mut();
        names.clear();
        let n = self.fs.names().list(ino, self.files[file as usize].names, &mut names)?;
        self.files[file as usize].names += n as usize;
        Ok(n)
    }

    fn open_name(&mut self, t: Tid, path: &str, flags: OpenFlags) -> Result<u64, Errno> {
        self.free_place(t)?;
        if flags.has(OpenFlags::NOFOLLOW)
            && let Ok(ino) = self.fs.names().find_itself(path)
            && self.fs.names().stat(ino).kind == Kind::Link
        {
            let new = flags.has(OpenFlags::CREATE) && flags.has(OpenFlags::EXCLUSIVE);
            return Err(match () {
                () if new => Errno::EEXIST,
                () if flags.has(OpenFlags::DIRECTORY) => Errno::ENOTDIR,
                () => Errno::ELOOP,
            });
        }
        let ino = match flags.has(OpenFlags::CREATE) {
            true => self.fs.at_once()?.create(path, flags.has(OpenFlags::EXCLUSIVE))?,
            false => self.fs.names().find(path)?,
        };
        let directory = self.fs.names().stat(ino).kind == Kind::Directory;
        // Cutting needs no flag for writing.
        let changes = flags.writes() || flags.has(OpenFlags::TRUNCATE);
        if directory && (changes || flags.has(OpenFlags::CREATE)) {
            return Err(Errno::EISDIR);
        }
        if !directory && flags.has(OpenFlags::DIRECTORY) {
            return Err(Errno::ENOTDIR);
        }
        if flags.has(OpenFlags::TRUNCATE) {
            self.fs.at_once()?.truncate(ino, 0)?;
        }
        self.open(t, Behind::File(ino), flags).map(|fd| u64::from(fd.0))
    }

    pub(super) fn writable(&self, file: u32) -> Result<(), Errno> {
        if self.files[file as usize].flags.writes() { Ok(()) } else { Err(Errno::EBADF) }
    }

    fn read(&mut self, t: Tid, fd: Fd, at: Option<Bytes>, len: Bytes) -> Result<bool, Errno> {
        let file = self.file(t, fd)?;
        let open = self.files[file as usize];
        let ino = match (open.behind, at) {
            (Behind::Pipe(..), Some(_)) => return Err(Errno::ESPIPE),
            _ if !open.flags.reads() => return Err(Errno::EBADF),
            (Behind::File(ino), _) => ino,
            (Behind::Pipe(p, _), None) => return Ok(self.through_pipe(t, p, false, len)),
        };
        let (direct, len) = (open.flags.has(OpenFlags::DIRECT), len.min(MOST));
        let n =
            self.fs.at_once()?.read(ino, at.unwrap_or(open.at), len, direct, &mut self.segments);
        let n = n.inspect_err(|_| self.segments.clear())?;
        if at.is_none() {
            self.files[file as usize].at += n;
        }
        if self.segments.is_empty() {
            return self.say(t, n);
        }
        Ok(self.work(t, n, direct))
    }

    fn write(&mut self, t: Tid, fd: Fd, at: Option<Bytes>, len: Bytes) -> Result<bool, Errno> {
        let file = self.file(t, fd)?;
        let open = self.files[file as usize];
        let ino = match (open.behind, at) {
            (Behind::Pipe(..), Some(_)) => return Err(Errno::ESPIPE),
            _ if !open.flags.writes() => return Err(Errno::EBADF),
            (Behind::File(ino), _) => ino,
            (Behind::Pipe(p, _), None) => return Ok(self.through_pipe(t, p, true, len)),
        };
        // On Linux that holds for a given position, too.
        let from = match open.flags.has(OpenFlags::APPEND) {
            true => self.fs.names().stat(ino).bytes,
            false => at.unwrap_or(open.at),
        };
        let (direct, len) = (open.flags.has(OpenFlags::DIRECT), len.min(MOST));
        let n = self.fs.at_once()?.write(ino, from, len, direct, &mut self.segments);
        let n = n.inspect_err(|_| self.segments.clear())?;
        if at.is_none() {
            self.files[file as usize].at = from + n;
        }
        let durable = open.flags.has(OpenFlags::SYNC) || open.flags.has(OpenFlags::DSYNC);
        if durable && n > 0 {
            let mut io = std::mem::take(&mut self.segments);
            let taken = self.fs.at_once()?.take_dirty(ino, from, n, &mut io);
            self.segments = io;
            taken.inspect_err(|_| self.segments.clear())?;
            self.tasks[t as usize].work.flush = true;
        } else if self.segments.is_empty() {
            return self.say(t, n);
        }
        Ok(self.work(t, n, direct))
    }

    fn seek(&mut self, t: Tid, fd: Fd, to: i64, whence: Whence) -> Result<u64, Errno> {
        let (ino, file) = self.ino(t, fd).map_err(|e| match e {
            Errno::EINVAL => Errno::ESPIPE,
            other => other,
        })?;
        let from = match whence {
            Whence::Set => 0,
            Whence::Current => self.files[file as usize].at,
            Whence::End => self.fs.names().stat(ino).bytes,
        };
        let at = from.checked_add_signed(to).filter(|a| i64::try_from(*a).is_ok());
        let at = at.ok_or(Errno::EINVAL)?;
        self.files[file as usize].at = at;
        Ok(at)
    }

    fn sync_range(
        &mut self,
        t: Tid,
        fd: Fd,
        at: Bytes,
        len: Bytes,
        wait: bool,
    ) -> Result<bool, Errno> {
        let (ino, _) = self.ino(t, fd).map_err(|e| match e {
            Errno::EINVAL => Errno::ESPIPE,
            other => other,
        })?;
        let len = if len == 0 { u64::MAX } else { len };
        // Starting the writes alone is left out: nothing here writes on its own.
        if !wait {
            return self.say(t, 0);
        }
        Ok(self.sync_file(t, ino, at, len, false))
    }

    /// Source and target of a copy with their open files.
    pub(super) fn copied(&self, t: Tid, from: Fd, to: Fd) -> Result<(Opened, Opened), Errno> {
        let (a, b) = (self.file(t, from)?, self.file(t, to)?);
        let behind = [a, b].map(|f| self.files[f as usize].behind);
        let directory =
            |b| matches!(b, Behind::File(ino) if self.fs.names().stat(ino).kind == Kind::Directory);
        if behind.into_iter().any(directory) {
            return Err(Errno::EISDIR);
        }
        let [Behind::File(source), Behind::File(target)] = behind else {
            return Err(Errno::EINVAL);
        };
        if !self.files[a as usize].flags.reads()
            || self.files[b as usize].flags.has(OpenFlags::APPEND)
        {
            return Err(Errno::EBADF);
        }
        self.writable(b)?;
        Ok(((source, a), (target, b)))
    }

    /// Copies in memory what is in memory; the source is read, the target becomes dirty.
    fn copy(&mut self, t: Tid, from: Fd, to: Fd, len: Bytes) -> Result<u64, Errno> {
        let ((source, a), (target, b)) = self.copied(t, from, to)?;
        let (at, to) = (self.files[a as usize].at, self.files[b as usize].at);
        let n = self.fs.names().stat(source).bytes.saturating_sub(at).min(len).min(MOST);
        if source == target && at < to + n && to < at + n {
            return Err(Errno::EINVAL);
        }
        if n > 0 {
            self.fs.at_once()?.read(source, at, n, false, &mut self.segments)?;
            self.fs.at_once()?.write(target, to, n, false, &mut self.segments)?;
        }
        self.files[a as usize].at += n;
        self.files[b as usize].at += n;
        Ok(n)
    }

    fn mapped(&mut self, t: Tid, call: &Call) -> Result<bool, Errno> {
        let map = |m: &Self, i: u32| m.maps.get(i as usize).copied().flatten().ok_or(Errno::EINVAL);
        match *call {
            Call::Map { fd, at, len } => {
                let file = self.file(t, fd)?;
                if len == 0 || !at.is_multiple_of(PAGE) {
                    return Err(Errno::EINVAL);
                }
                let flags = self.files[file as usize].flags;
                if !flags.reads() {
                    return Err(Errno::EACCES);
                }
                let (ino, _) = self.ino(t, fd).map_err(|_| Errno::ENODEV)?;
                if self.fs.names().stat(ino).kind == Kind::Directory {
                    return Err(Errno::ENODEV);
                }
                let writable = flags.writes();
                self.fs.names_mut().hold(ino);
                let order = Order::Unsaid;
                self.maps.push(Some(Map { ino, at, len, writable, ra: 0, order }));
                let id = self.maps.len() as u64 - 1;
                self.begin_map(id as u32, file);
                self.say(t, id)
            }
            Call::Unmap { map: id } => {
                let m = map(self, id.0)?;
                self.maps[id.0 as usize] = None;
                self.map_streams.borrow_mut().remove(&id.0);
                self.fs.names_mut().release(m.ino);
                self.say(t, 0)
            }
            Call::Load { map: id, at } | Call::Store { map: id, at } => {
                let m = map(self, id.0)?;
                let store = matches!(call, Call::Store { .. });
                // What is mapped is whole pages: the rest of the last one is there, too.
                let (end, len) = (m.len.next_multiple_of(PAGE), self.fs.names().stat(m.ino).bytes);
                if at >= end || m.at + at >= len.next_multiple_of(PAGE) || store && !m.writable {
                    return Err(Errno::EFAULT);
                }
                let place = (m.at + at).min(len - 1);
                let moved = match store {
                    true => self.fs.at_once()?.write(m.ino, place, 1, false, &mut self.segments),
                    false => self.fs.at_once()?.read(m.ino, place, 1, false, &mut self.segments),
                };
                moved.inspect_err(|_| self.segments.clear())?;
                Ok(self.work(t, 0, false))
            }
            _ => Err(Errno::ENOSYS),
        }
    }
}
