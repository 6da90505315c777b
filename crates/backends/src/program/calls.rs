//! What each call does.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use iosched_syscalls::{
    Advice, Answer, Call, Completion, Errno, Fd, Io, OpenFlags, Shares, Stat, Whence,
};
use iosched_types::{Bytes, Nanos};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs as files;
use rustix::pipe::{PipeFlags, pipe_with};

use super::descriptors::{Behind, OpenFile};
use super::task::{Task, core_time};
use super::waits::Wait;
use crate::sys::transfer::{self, Aio, FileMap};

/// Asynchronous I/Os that a task may have under way.
const MOST_ASYNC: u32 = 256;
/// The longest time that a computation goes on without a look at its core time.
const SPIN: Nanos = 1_000_000;
/// Computations up to so long go by the time alone.
const SHORT: Nanos = 10_000;

/// The system's error as the program sees it.
pub(super) fn errno(e: impl Into<io::Error>) -> Errno {
    let number = e.into().raw_os_error().and_then(|n| u16::try_from(n).ok());
    number.map_or(Errno::EIO, Errno)
}

impl Task {
    /// Makes a call.
    pub(super) fn call(&mut self, call: Call) -> Answer {
        match call {
            Call::Read { fd, len } => self.read(fd, None, len),
            Call::Pread { fd, at, len } => self.read(fd, Some(at), len),
            Call::Write { fd, len } => self.write(fd, None, len),
            Call::Pwrite { fd, at, len } => self.write(fd, Some(at), len),
            Call::Map { fd, at, len } => self.map(fd, at, len),
            Call::Unmap { map } => self.shared.state().maps.remove(map).map(|_| 0),
            Call::AdviseMap { map, advice } => {
                let map = self.shared.state().maps.get(map)?;
                map.advise(advice).map(|()| 0).map_err(errno)
            }
            Call::Load { map, at } => self.touch(map, at, false),
            Call::Store { map, at } => self.touch(map, at, true),
            Call::Pipe => self.pipe(),
            Call::Submit { io } | Call::Ring { io } => self.submit(io),
            Call::Reap { min, into } => {
                self.wait_for_ios(min as usize)?;
                let mut into = into.borrow_mut();
                into.clear();
                into.append(&mut self.memory.done);
                Ok(into.len() as u64)
            }
            Call::Compute { time } => self.compute(time),
            Call::Sleep { time } => self.shared.sleep(self.id, time),
            Call::Spawn { shares, role, birth } => {
                let table = match shares {
                    Shares::Everything => self.same_table(),
                    Shares::OpenFiles => self.copied_table(),
                };
                Task::start(&self.shared, table, Some((self.id, role)), birth).map(u64::from)
            }
            Call::Wait => self.shared.wait(self.id, None),
            Call::Join { task } => self.shared.wait(self.id, Some(task)),
            Call::Barrier { barrier, parties } => self.shared.barrier(self.id, barrier, parties),
            Call::Add { counter, by } => self.shared.state().add(counter, by),
            Call::Signal { task } => self.shared.state().signal(task),
            Call::Stopped => Ok(u64::from(self.shared.state().told_to_stop(self.id))),
            Call::GetPid => {
                let _ = nix::unistd::getpid();
                Ok(u64::from(self.id))
            }
            Call::Elsewhere { bytes } => {
                let _ = nix::unistd::getpid();
                Ok(bytes)
            }
            Call::Note { .. }
            | Call::Look { .. }
            | Call::Copied { .. }
            | Call::Figure { .. }
            | Call::Mark { .. } => Ok(0),
            other => self.on_files(other),
        }
    }

    /// What a descriptor stands for.
    pub(super) fn open_file(&self, fd: Fd) -> Result<Arc<OpenFile>, Errno> {
        self.table().get(fd)
    }

    pub(super) fn opened(&self, fd: OwnedFd, behind: Behind, flags: OpenFlags) -> Fd {
        self.table().add(Arc::new(OpenFile { fd, behind, flags }))
    }

    fn read(&mut self, fd: Fd, at: Option<Bytes>, len: Bytes) -> Answer {
        let file = self.open_file(fd)?;
        if file.behind == Behind::Pipe && at.is_none() {
            return self.read_pipe(&file, len);
        }
        self.memory.buffer.read(file.fd.as_fd(), at, len).map_err(errno)
    }

    fn write(&mut self, fd: Fd, at: Option<Bytes>, len: Bytes) -> Answer {
        let file = self.open_file(fd)?;
        if file.behind == Behind::Pipe && at.is_none() {
            return self.write_pipe(&file, len);
        }
        self.memory.buffer.write(file.fd.as_fd(), at, len).map_err(errno)
    }

    /// The ends do not block, so that who sleeps at a pipe can be told that the run is over.
    fn pipe(&self) -> Answer {
        let both = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        let (reads, writes) = both.map_err(errno)?;
        let reads = self.opened(reads, Behind::Pipe, OpenFlags::READ);
        let writes = self.opened(writes, Behind::Pipe, OpenFlags::WRITE);
        Ok(u64::from(writes.0) << 32 | u64::from(reads.0))
    }

    fn read_pipe(&mut self, pipe: &OpenFile, len: Bytes) -> Answer {
        loop {
            match self.memory.buffer.read(pipe.fd.as_fd(), None, len).map_err(errno) {
                Err(Errno::EAGAIN) => self.at_pipe(pipe, PollFlags::IN, Wait::PipeData)?,
                other => {
                    self.shared.state().changes += 1;
                    return other;
                }
            }
        }
    }

    /// Writes everything; less only when the last reader goes meanwhile.
    fn write_pipe(&mut self, pipe: &OpenFile, len: Bytes) -> Answer {
        let len = len.min(transfer::MOST);
        let mut done = 0;
        loop {
            let n = self.memory.buffer.write(pipe.fd.as_fd(), None, len - done).map_err(errno);
            match n {
                Ok(n) => {
                    self.shared.state().changes += 1;
                    done += n;
                    if done == len {
                        return Ok(done);
                    }
                }
                Err(Errno::EAGAIN) => self.at_pipe(pipe, PollFlags::OUT, Wait::PipeRoom)?,
                Err(_) if done > 0 => return Ok(done),
                Err(e) => return Err(e),
            }
        }
    }

    /// Sleeps until a pipe has something to offer.
    fn at_pipe(&self, pipe: &OpenFile, what: PollFlags, wait: Wait) -> Result<(), Errno> {
        self.shared.state().waits(self.id, Some(wait));
        let mut ends =
            [PollFd::new(&pipe.fd, what), PollFd::new(&self.shared.stopped, PollFlags::IN)];
        let polled = poll(&mut ends, None);
        self.shared.state().waits(self.id, None);
        match polled {
            _ if self.shared.is_stopped() => Err(Errno::EINTR),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(errno(e)),
        }
    }

    fn map(&self, fd: Fd, at: Bytes, len: Bytes) -> Answer {
        let file = self.open_file(fd)?;
        let map = FileMap::of(file.fd.as_fd(), at, len, file.flags.writes()).map_err(errno)?;
        Ok(u64::from(self.shared.state().maps.add(map).0))
    }

    fn touch(&self, map: iosched_syscalls::MapId, at: Bytes, write: bool) -> Answer {
        let map = self.shared.state().maps.get(map)?;
        map.touch(at, write).map(|()| 0).map_err(errno)
    }

    fn submit(&mut self, io: Io) -> Answer {
        let file = self.open_file(io.fd)?;
        if file.behind != Behind::File {
            return Err(Errno::EINVAL);
        }
        let noise = self.memory.noise;
        let aio = match &mut self.memory.aio {
            Some(aio) => aio,
            none => none.insert(Aio::new(MOST_ASYNC, noise).map_err(errno)?),
        };
        if aio.under_way() >= MOST_ASYNC as usize {
            self.take_ios(1)?;
        }
        let Some(aio) = &mut self.memory.aio else { return Err(Errno::EIO) };
        let submitted = aio.submit(file.fd.as_fd(), io.write, io.at, io.len, io.tag);
        submitted.map(|()| 0).map_err(errno)
    }

    /// Takes asynchronous I/Os until so many are there, or none is under way.
    fn wait_for_ios(&mut self, min: usize) -> Result<(), Errno> {
        self.take_ios(0)?;
        while self.memory.done.len() < min && self.under_way() > 0 {
            self.take_ios(min - self.memory.done.len())?;
            if self.shared.is_stopped() {
                return Err(Errno::EINTR);
            }
        }
        Ok(())
    }

    fn under_way(&self) -> usize {
        self.memory.aio.as_ref().map_or(0, Aio::under_way)
    }

    fn take_ios(&mut self, min: usize) -> Result<(), Errno> {
        let super::moves::Memory { aio: Some(aio), done, .. } = &mut self.memory else {
            return Ok(());
        };
        let min = min.min(aio.under_way());
        aio.reap(min, |tag, answer| done.push(Completion { tag, answer: answer.map_err(Errno) }))
            .map_err(errno)
    }

    /// Uses core time, not only time: a task that has to wait for its core goes on until it had its share.
    fn compute(&self, time: Nanos) -> Answer {
        if self.shared.how.instant {
            return Ok(0);
        }
        // Asking for the core time is a system call, which takes longer than what a program does between two of its own.
        if time <= SHORT {
            spin(time);
            return Ok(0);
        }
        let until = core_time().saturating_add(time);
        loop {
            let left = until.saturating_sub(core_time());
            if left == 0 || self.shared.is_stopped() {
                return Ok(0);
            }
            spin(left.min(SPIN));
        }
    }
}

/// Uses the core for so long, unless it is taken away meanwhile.
fn spin(time: Nanos) {
    let begun = Instant::now();
    while (begun.elapsed().as_nanos() as Nanos) < time {
        std::hint::spin_loop();
    }
}

/// A position as the kernel takes it.
pub(super) fn seek_from(to: i64, whence: Whence) -> files::SeekFrom {
    match whence {
        // The kernel says what it thinks of a negative one.
        Whence::Set => files::SeekFrom::Start(to.cast_unsigned()),
        Whence::Current => files::SeekFrom::Current(to),
        Whence::End => files::SeekFrom::End(to),
    }
}

/// An announcement as the kernel takes it.
pub(super) fn advice(advice: Advice) -> files::Advice {
    match advice {
        Advice::Normal => files::Advice::Normal,
        Advice::Sequential => files::Advice::Sequential,
        Advice::Random => files::Advice::Random,
        Advice::WillNeed => files::Advice::WillNeed,
        Advice::DontNeed => files::Advice::DontNeed,
        Advice::NoReuse => files::Advice::NoReuse,
    }
}

/// What a file is, as programs see it.
pub(super) fn stat(found: &files::Stat) -> Stat {
    let kind = match files::FileType::from_raw_mode(found.st_mode) {
        files::FileType::Directory => iosched_syscalls::Kind::Directory,
        files::FileType::Symlink => iosched_syscalls::Kind::Link,
        _ => iosched_syscalls::Kind::File,
    };
    let bytes = match kind {
        iosched_syscalls::Kind::Directory => 0,
        _ => found.st_size.cast_unsigned(),
    };
    Stat { kind, bytes }
}
