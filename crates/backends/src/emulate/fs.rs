//! The FUSE file system: one file, whose reads and writes are answered when the device model says so.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, Session, SessionACL, WriteFlags,
};
use iosched_devices::Command;
use iosched_types::{Nanos, Op};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use super::clockwork::{Answer, Clockwork};
use super::data::DataStore;

/// Outstanding requests the kernel may have at us: more than any block device's tags.
const MAX_BACKGROUND: u16 = 16_384;
/// Largest transfer of one request; the kernel's own limit.
pub(crate) const MAX_TRANSFER: u32 = 1 << 20;
const TTL: Duration = Duration::from_secs(86_400);
const ROOT: INodeNo = INodeNo(1);
const DISK: INodeNo = INodeNo(2);
/// The file's name.
const NAME: &str = "disk";
/// Buffers kept for reuse.
const SPARE_BUFFERS: usize = 256;

/// What answers a FUSE request.
pub(crate) enum Reply {
    Read(ReplyData, Vec<u8>, Arc<Buffers>),
    Write(ReplyWrite, u32),
    Done(ReplyEmpty),
    Failed(ReplyEmpty, Errno),
}

impl Answer for Reply {
    fn send(self) {
        match self {
            Reply::Read(reply, data, buffers) => {
                reply.data(&data);
                buffers.give_back(data);
            }
            Reply::Write(reply, n) => reply.written(n),
            Reply::Done(reply) => reply.ok(),
            Reply::Failed(reply, errno) => reply.error(errno),
        }
    }
}

/// Spare read buffers, so that steady load allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    fn take(&self, len: usize) -> Vec<u8> {
        let mut buf =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        buf.resize(len, 0);
        buf
    }

    fn give_back(&self, buf: Vec<u8>) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_BUFFERS {
            spare.push(buf);
        }
    }
}

struct DiskFs {
    work: Arc<Clockwork<Reply>>,
    data: DataStore,
    buffers: Arc<Buffers>,
    bytes: u64,
}

impl DiskFs {
    fn attr(&self, ino: INodeNo) -> FileAttr {
        let dir = ino == ROOT;
        FileAttr {
            ino,
            size: if dir { 0 } else { self.bytes },
            blocks: 0,
            atime: SystemTime::UNIX_EPOCH,
            mtime: SystemTime::UNIX_EPOCH,
            ctime: SystemTime::UNIX_EPOCH,
            crtime: SystemTime::UNIX_EPOCH,
            kind: if dir { FileType::Directory } else { FileType::RegularFile },
            perm: if dir { 0o700 } else { 0o600 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn submit(&self, arrived: Nanos, op: Op, offset: u64, len: u64, answer: Reply) {
        self.work.submit(arrived, Command { id: 0, op, offset, len, fua: false }, answer);
    }

    fn inside(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.bytes)
    }
}

impl Filesystem for DiskFs {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel's FUSE has no asynchronous direct I/O",
            )
        })?;
        // A smaller limit than asked for only lowers the depth; what the kernel allows is reported.
        let _ = config.set_max_background(MAX_BACKGROUND);
        let _ = config.set_congestion_threshold(MAX_BACKGROUND);
        let _ = config.set_max_write(MAX_TRANSFER);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == ROOT && name == NAME {
            reply.entry(&TTL, &self.attr(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        if ino == ROOT || ino == DISK {
            reply.attr(&TTL, &self.attr(ino));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags | FopenFlags::FOPEN_NOFLUSH);
    }

    #[allow(clippy::too_many_arguments, reason = "the trait's signature")]
    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let arrived = self.work.now();
        let len = u64::from(size).min(self.bytes.saturating_sub(offset));
        if len == 0 {
            return reply.data(&[]);
        }
        // The data is fetched first, so that the answer only has to be sent; the model does not wait for it.
        let mut buf = self.buffers.take(len as usize);
        if let Err(e) = self.data.read(offset, &mut buf) {
            return reply.error(errno(&e));
        }
        let answer = Reply::Read(reply, buf, self.buffers.clone());
        self.submit(arrived, Op::Read, offset, len, answer);
    }

    #[allow(clippy::too_many_arguments, reason = "the trait's signature")]
    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let arrived = self.work.now();
        if !self.inside(offset, data.len() as u64) {
            return reply.error(Errno::ENOSPC);
        }
        if let Err(e) = self.data.write(offset, data) {
            return reply.error(errno(&e));
        }
        let len = data.len() as u64;
        let answer = Reply::Write(reply, data.len() as u32);
        self.submit(arrived, Op::Write, offset, len, answer);
    }

    fn fsync(&self, _r: &Request, _i: INodeNo, _fh: FileHandle, _data: bool, reply: ReplyEmpty) {
        self.submit(self.work.now(), Op::Flush, 0, 0, Reply::Done(reply));
    }

    fn fallocate(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let arrived = self.work.now();
        let hole = nix::libc::FALLOC_FL_PUNCH_HOLE | nix::libc::FALLOC_FL_ZERO_RANGE;
        if mode & hole == 0 || !self.inside(offset, length) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let answer = match self.data.discard(offset, length) {
            Ok(()) => Reply::Done(reply),
            Err(e) => Reply::Failed(reply, errno(&e)),
        };
        self.submit(arrived, Op::Discard, offset, length, answer);
    }
}

fn errno(e: &io::Error) -> Errno {
    e.raw_os_error().map_or(Errno::EIO, Errno::from_i32)
}

/// Starts serving and opens the file. The mount is attached nowhere: nobody else sees it, and it goes
/// away with the last user of the file. The session ends when `/dev/fuse` is closed with it.
pub(crate) fn serve(
    work: Arc<Clockwork<Reply>>,
    data: DataStore,
    bytes: u64,
) -> io::Result<(File, Vec<std::thread::JoinHandle<()>>)> {
    let dev = OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "iosched")?;
    fsconfig_set_string(&context, "fd", dev.as_raw_fd().to_string())?;
    fsconfig_set_string(&context, "rootmode", "40000")?;
    fsconfig_set_string(&context, "user_id", "0")?;
    fsconfig_set_string(&context, "group_id", "0")?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let mut config = Config::default();
    config.n_threads = Some(2);
    let fs = DiskFs { work: work.clone(), data, buffers: Arc::default(), bytes };
    let session = Session::from_fd(fs, OwnedFd::from(dev), SessionACL::All, config)?;
    let mut threads = Vec::new();
    threads.push(spawn("emulated-fuse", move || {
        // The threads that the session starts inherit the priority of their creator.
        crate::sys::real_time();
        // It ends when the file system goes away, which is the only way it can end here.
        let _ = session.run();
    })?);
    threads.push(spawn("emulated-timer", move || {
        crate::sys::real_time();
        work.run_timer();
    })?);
    let file = rustix::fs::openat(
        &mount,
        NAME,
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC | rustix::fs::OFlags::DIRECT,
        rustix::fs::Mode::empty(),
    )?;
    Ok((File::from(file), threads))
}

fn spawn(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(f)
}
