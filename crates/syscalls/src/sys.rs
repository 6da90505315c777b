//! The system as a program sees it.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use iosched_types::{Bytes, Nanos, TaskId};

use crate::{
    Advice, Answer, Birth, Call, Completion, Done, Entry, Fd, Io, MapId, OpenFlags, Part, Path,
    PathCache, Program, Script, Shares, Stat, Whence,
};

/// The place where a program and its host meet.
#[derive(Default)]
pub(crate) struct Port {
    pub(crate) now: Cell<Nanos>,
    pub(crate) call: Cell<Option<Call>>,
    pub(crate) answer: Cell<Option<Answer>>,
    paths: PathCache,
    stat: Rc<Cell<Stat>>,
    entries: Rc<RefCell<Vec<Entry>>>,
    completions: Rc<RefCell<Vec<Completion>>>,
}

/// The system calls of one task. Every method but [`Sys::now`] is one call; one at a time.
#[derive(Clone)]
pub struct Sys {
    pub(crate) port: Rc<Port>,
}

impl std::fmt::Debug for Sys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sys(at {} ns)", self.port.now.get())
    }
}

impl Sys {
    /// Makes a call and waits for its answer.
    ///
    /// # Errors
    /// The call's error. The same holds for all methods below.
    #[inline]
    pub async fn call(&self, call: Call) -> Answer {
        self.port.answer.set(None);
        self.port.call.set(Some(call));
        poll_fn(|_| self.port.answer.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    async fn done(&self, call: Call) -> Done {
        self.call(call).await.map(drop)
    }

    async fn fd(&self, call: Call) -> Result<Fd, crate::Errno> {
        self.call(call).await.map(|n| Fd(n as u32))
    }

    fn path(&self, text: impl Display) -> Path {
        self.port.paths.make(0, text)
    }

    /// The time, read without a system call.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.port.now.get()
    }

    /// Opens a file or directory. Give a computed name as `format_args!("d{p}/f{i}")`: this takes no memory.
    pub async fn open(&self, path: impl Display, flags: OpenFlags) -> Result<Fd, crate::Errno> {
        self.fd(Call::Open { path: self.path(path), flags }).await
    }

    /// Makes a file, or empties it, for writing (`creat`).
    pub async fn creat(&self, path: impl Display) -> Result<Fd, crate::Errno> {
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
        self.open(path, flags).await
    }

    /// Gives a descriptor back.
    pub async fn close(&self, fd: Fd) -> Done {
        self.done(Call::Close { fd }).await
    }

    /// Another descriptor of the same open file.
    pub async fn dup(&self, fd: Fd) -> Result<Fd, crate::Errno> {
        self.fd(Call::Dup { fd }).await
    }

    /// Reads at the descriptor's position; 0 at the end.
    pub async fn read(&self, fd: Fd, len: Bytes) -> Answer {
        self.call(Call::Read { fd, len }).await
    }

    /// Reads at a position; 0 at the end.
    pub async fn pread(&self, fd: Fd, at: Bytes, len: Bytes) -> Answer {
        self.call(Call::Pread { fd, at, len }).await
    }

    /// Writes where the descriptor stands.
    pub async fn write(&self, fd: Fd, len: Bytes) -> Answer {
        self.call(Call::Write { fd, len }).await
    }

    /// Writes at a position.
    pub async fn pwrite(&self, fd: Fd, at: Bytes, len: Bytes) -> Answer {
        self.call(Call::Pwrite { fd, at, len }).await
    }

    /// Moves the descriptor's position. Returns the new one.
    pub async fn lseek(&self, fd: Fd, to: i64, whence: Whence) -> Answer {
        self.call(Call::Seek { fd, to, whence }).await
    }

    /// Cuts or extends a file.
    pub async fn truncate(&self, fd: Fd, len: Bytes) -> Done {
        self.done(Call::Truncate { fd, len }).await
    }

    /// Takes room for a range, and extends the file to its end.
    pub async fn fallocate(&self, fd: Fd, at: Bytes, len: Bytes) -> Done {
        self.done(Call::Fallocate { fd, at, len, keep_size: false }).await
    }

    /// Takes room for a range. The file stays as long as it is.
    pub async fn fallocate_keep_size(&self, fd: Fd, at: Bytes, len: Bytes) -> Done {
        self.done(Call::Fallocate { fd, at, len, keep_size: true }).await
    }

    /// Announces what will be done with a range. Length 0 is up to the end.
    pub async fn fadvise(&self, fd: Fd, at: Bytes, len: Bytes, advice: Advice) -> Done {
        self.done(Call::Advise { fd, at, len, advice }).await
    }

    /// Makes a file durable.
    pub async fn fsync(&self, fd: Fd) -> Done {
        self.done(Call::Fsync { fd }).await
    }

    /// Makes a file's data durable.
    pub async fn fdatasync(&self, fd: Fd) -> Done {
        self.done(Call::Fdatasync { fd }).await
    }

    /// Starts writing a range back, and with `wait` waits for it.
    pub async fn sync_file_range(&self, fd: Fd, at: Bytes, len: Bytes, wait: bool) -> Done {
        self.done(Call::SyncRange { fd, at, len, wait }).await
    }

    /// Tells a device that a range is not needed any more.
    pub async fn discard(&self, fd: Fd, at: Bytes, len: Bytes) -> Done {
        self.done(Call::Discard { fd, at, len }).await
    }

    /// Makes everything on a file system durable.
    pub async fn syncfs(&self, fd: Fd) -> Done {
        self.done(Call::SyncFs { fd }).await
    }

    /// Makes everything durable.
    pub async fn sync(&self) -> Done {
        self.done(Call::Sync).await
    }

    /// Drops the clean pages of all files from memory.
    pub async fn drop_caches(&self) -> Done {
        self.done(Call::DropCaches).await
    }

    /// What a name stands for, through links.
    pub async fn stat(&self, path: impl Display) -> Result<Stat, crate::Errno> {
        self.look_at(path, true).await
    }

    /// What a name stands for: the link, if it is one.
    pub async fn lstat(&self, path: impl Display) -> Result<Stat, crate::Errno> {
        self.look_at(path, false).await
    }

    async fn look_at(&self, path: impl Display, follow: bool) -> Result<Stat, crate::Errno> {
        let into = self.port.stat.clone();
        self.call(Call::Stat { path: self.path(path), follow, into }).await?;
        Ok(self.port.stat.get())
    }

    /// Makes a symbolic link `path` that says `target`.
    pub async fn symlink(&self, target: impl Display, path: impl Display) -> Done {
        let target = self.port.paths.make(1, target);
        self.done(Call::Symlink { target, path: self.path(path) }).await
    }

    /// What a symbolic link says.
    pub async fn readlink(&self, path: impl Display) -> Result<String, crate::Errno> {
        let into = Rc::new(RefCell::new(String::new()));
        self.call(Call::ReadLink { path: self.path(path), into: into.clone() }).await?;
        Ok(into.take())
    }

    /// What a descriptor stands for.
    pub async fn fstat(&self, fd: Fd) -> Result<Stat, crate::Errno> {
        self.call(Call::Fstat { fd, into: self.port.stat.clone() }).await?;
        Ok(self.port.stat.get())
    }

    /// The next names of a directory; none at the end.
    pub async fn readdir(&self, fd: Fd) -> Result<Vec<Entry>, crate::Errno> {
        self.call(Call::ReadDir { fd, into: self.port.entries.clone() }).await?;
        Ok(self.port.entries.take())
    }

    /// Copies between files where they stand.
    pub async fn copy_file_range(&self, from: Fd, to: Fd, len: Bytes) -> Answer {
        self.call(Call::CopyRange { from, to, len }).await
    }

    /// Changes the times of a name.
    pub async fn utimensat(&self, path: impl Display) -> Done {
        self.done(Call::Touch { path: self.path(path) }).await
    }

    /// Changes the times of an open file.
    pub async fn futimens(&self, fd: Fd) -> Done {
        self.done(Call::TouchFd { fd }).await
    }

    /// Removes a file's name.
    pub async fn unlink(&self, path: impl Display) -> Done {
        self.done(Call::Unlink { path: self.path(path) }).await
    }

    /// Gives another name.
    pub async fn rename(&self, from: impl Display, to: impl Display) -> Done {
        let to = self.port.paths.make(1, to);
        self.done(Call::Rename { from: self.path(from), to }).await
    }

    /// Makes a directory.
    pub async fn mkdir(&self, path: impl Display) -> Done {
        self.done(Call::Mkdir { path: self.path(path) }).await
    }

    /// Removes an empty directory.
    pub async fn rmdir(&self, path: impl Display) -> Done {
        self.done(Call::Rmdir { path: self.path(path) }).await
    }

    /// Maps a range of a file into memory.
    pub async fn mmap(&self, fd: Fd, at: Bytes, len: Bytes) -> Result<MapId, crate::Errno> {
        self.call(Call::Map { fd, at, len }).await.map(|n| MapId(n as u32))
    }

    /// Announces in which order a map's pages will be touched.
    pub async fn madvise(&self, map: MapId, advice: Advice) -> Done {
        self.done(Call::AdviseMap { map, advice }).await
    }

    /// Gives a map back.
    pub async fn munmap(&self, map: MapId) -> Done {
        self.done(Call::Unmap { map }).await
    }

    /// Reads a byte of a map.
    pub async fn load(&self, map: MapId, at: Bytes) -> Done {
        self.done(Call::Load { map, at }).await
    }

    /// Writes a byte of a map.
    pub async fn store(&self, map: MapId, at: Bytes) -> Done {
        self.done(Call::Store { map, at }).await
    }

    /// A pipe: its reading and its writing end.
    pub async fn pipe(&self) -> Result<(Fd, Fd), crate::Errno> {
        let both = self.call(Call::Pipe).await?;
        Ok((Fd(both as u32), Fd((both >> 32) as u32)))
    }

    /// Starts an asynchronous I/O.
    pub async fn submit(&self, io: Io) -> Done {
        self.done(Call::Submit { io }).await
    }

    /// Starts an asynchronous I/O that never sleeps in the call.
    pub async fn ring(&self, io: Io) -> Done {
        self.done(Call::Ring { io }).await
    }

    /// Waits for at least `min` asynchronous I/Os and hands all that are done to `each`. Returns how many.
    pub async fn reap(&self, min: u32, mut each: impl FnMut(Completion)) -> Answer {
        let n = self.call(Call::Reap { min, into: self.port.completions.clone() }).await?;
        self.port.completions.borrow_mut().drain(..).for_each(&mut each);
        Ok(n)
    }

    /// Uses the CPU.
    pub async fn compute(&self, time: Nanos) -> Done {
        self.done(Call::Compute { time }).await
    }

    /// Sleeps; `EINTR` when told to stop.
    pub async fn sleep(&self, time: Nanos) -> Done {
        self.done(Call::Sleep { time }).await
    }

    /// A thread: it has the same descriptors.
    pub async fn spawn<F>(&self, text: F) -> Result<TaskId, crate::Errno>
    where
        F: AsyncFnOnce(Sys) -> Done + Send + 'static,
    {
        self.born(Shares::Everything, "", text).await
    }

    /// A thread whose figures are shown under what it is: `worker`.
    pub async fn spawn_as<F>(&self, role: &'static str, text: F) -> Result<TaskId, crate::Errno>
    where
        F: AsyncFnOnce(Sys) -> Done + Send + 'static,
    {
        self.born(Shares::Everything, role, text).await
    }

    /// A process: it has copies of the descriptors, and of what `text` holds.
    pub async fn fork<F>(&self, text: F) -> Result<TaskId, crate::Errno>
    where
        F: AsyncFnOnce(Sys) -> Done + Send + 'static,
    {
        self.born(Shares::OpenFiles, "", text).await
    }

    /// A process whose figures are shown under what it is: `client`.
    pub async fn fork_as<F>(&self, role: &'static str, text: F) -> Result<TaskId, crate::Errno>
    where
        F: AsyncFnOnce(Sys) -> Done + Send + 'static,
    {
        self.born(Shares::OpenFiles, role, text).await
    }

    async fn born<F>(
        &self,
        shares: Shares,
        role: &'static str,
        text: F,
    ) -> Result<TaskId, crate::Errno>
    where
        F: AsyncFnOnce(Sys) -> Done + Send + 'static,
    {
        let birth = Birth(Box::new(move || Box::new(Script::new(text)) as Box<dyn Program>));
        self.call(Call::Spawn { shares, role, birth }).await.map(|n| n as TaskId)
    }

    /// Waits for any child; `ECHILD` if there is none.
    pub async fn wait(&self) -> Result<TaskId, crate::Errno> {
        self.call(Call::Wait).await.map(|n| n as TaskId)
    }

    /// Waits for one child.
    pub async fn join(&self, task: TaskId) -> Done {
        self.done(Call::Join { task }).await
    }

    /// Waits until `parties` tasks are here.
    pub async fn barrier(&self, barrier: u32, parties: u32) -> Done {
        self.done(Call::Barrier { barrier, parties }).await
    }

    /// Adds to a counter that all tasks share; its new value.
    pub async fn add(&self, counter: u32, by: i64) -> Result<i64, crate::Errno> {
        self.call(Call::Add { counter, by }).await.map(u64::cast_signed)
    }

    /// Tells a task to stop.
    pub async fn signal(&self, task: TaskId) -> Done {
        self.done(Call::Signal { task }).await
    }

    /// Whether this task was told to stop.
    pub async fn stopped(&self) -> Result<bool, crate::Errno> {
        self.call(Call::Stopped).await.map(|n| n != 0)
    }

    /// Reports an operation that began at `since`, for latencies and operations per second.
    pub async fn note(&self, what: &'static str, since: Nanos, bytes: Bytes) -> Done {
        self.done(Call::Note { what, since, bytes }).await
    }

    /// Looks at the clock, as a program does before it starts to measure.
    pub async fn look(&self, times: u32) -> Done {
        self.done(Call::Look { times }).await
    }

    /// Copies bytes between a map and memory of the program's own.
    pub async fn copied(&self, bytes: Bytes) -> Done {
        self.done(Call::Copied { bytes }).await
    }

    /// Reports a figure of the benchmark's own.
    pub async fn figure(&self, name: &'static str, value: f64) -> Done {
        self.done(Call::Figure { name, value, beyond: false }).await
    }

    /// Reports a figure that the benchmark gave up on at this limit.
    pub async fn beyond(&self, name: &'static str, limit: f64) -> Done {
        self.done(Call::Figure { name, value: limit, beyond: true }).await
    }

    /// Reports a part of the run, from `since` until now, for pictures over time.
    pub async fn mark(&self, part: Part, what: &'static str, since: Nanos) -> Done {
        self.done(Call::Mark { what, part, since }).await
    }

    /// This task.
    pub async fn getpid(&self) -> Result<TaskId, crate::Errno> {
        self.call(Call::GetPid).await.map(|n| n as TaskId)
    }
}
