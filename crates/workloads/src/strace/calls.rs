//! What each call of a log is in a replay.

use iosched_syscalls::{Advice, Answer, Errno, OpenFlags, Whence};
use iosched_types::Bytes;

use super::Act;
use super::args::{has, number, string};
use super::before::printed;
use super::by_flags;
use super::names;
use super::read::{Call, Reader, makes_tasks};
use super::tables::Held;

/// The name of an open file that is an end of a pipe.
pub(super) const PIPE: &str = "/_pipe";

/// Bytes of a path with its end.
const PATH_MAX: usize = 4096;
/// Bytes of a name in a directory.
const NAME_MAX: usize = 255;

/// Calls without any I/O. They cost a call.
const NO_DISK: &str = "\
    alarm arch_prctl brk capget clock_getres clock_gettime epoll_create epoll_create1 \
    epoll_ctl eventfd2 exit exit_group fcntl fcntl64 fgetxattr flistxattr flock fstatfs \
    fstatfs64 get_robust_list getcwd getegid getegid32 geteuid geteuid32 getgid getgid32 \
    getgroups getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid \
    getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getuid32 \
    getxattr io_cancel io_destroy io_setup ioctl ioprio_get ioprio_set kill lgetxattr listxattr llistxattr madvise \
    membarrier mlock mmap mmap2 mprotect mremap munlock personality prctl prlimit64 \
    rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn sched_get_priority_max \
    sched_get_priority_min sched_getaffinity sched_getparam sched_getscheduler \
    sched_setaffinity sched_setparam sched_setscheduler sched_yield set_robust_list \
    set_thread_area set_tid_address setgid setgroups setitimer setpgid setpriority setrlimit \
    setsid setsockopt setuid shutdown sigaltstack sigreturn socket socketpair statfs \
    statfs64 sysinfo tgkill time times tkill ugetrlimit umask uname";

impl Reader {
    /// Applies a call to tables and files and pushes its steps. Returns whether the call is simulated.
    pub(super) fn convert(&mut self, c: &Call<'_>) -> bool {
        match c.name {
            "open" | "openat" | "openat2" | "creat" => self.open(c),
            "close" => self.close(c),
            "read" | "pread64" | "pread" | "readv" | "preadv" | "preadv2" => self.read(c),
            "write" | "pwrite64" | "pwrite" | "writev" | "pwritev" | "pwritev2" => self.write(c),
            "lseek" | "_llseek" | "llseek" => self.seek(c),
            "ftruncate" | "ftruncate64" | "fallocate" | "fadvise64" | "fadvise64_64"
            | "arm_fadvise64_64" | "readahead" => self.range(c),
            "fsync" | "fdatasync" | "syncfs" | "sync_file_range" | "sync" => self.sync(c),
            "stat" | "stat64" | "lstat" | "lstat64" | "newfstatat" | "fstatat64" | "statx"
            | "fstat" | "fstat64" | "access" | "faccessat" | "faccessat2" | "readlink"
            | "readlinkat" => self.look(c),
            "getdents" | "getdents64" => self.list(c),
            "mkdir" | "mkdirat" | "rmdir" | "unlink" | "unlinkat" | "rename" | "renameat"
            | "renameat2" | "truncate" | "truncate64" => self.change(c),
            "utimensat" | "utime" | "utimes" | "futimesat" | "chmod" | "fchmodat" | "chown"
            | "lchown" | "fchownat" | "fchmod" | "fchown" | "fchown32" | "setxattr"
            | "lsetxattr" | "fsetxattr" | "removexattr" | "lremovexattr" | "fremovexattr" => {
                self.touch(c)
            }
            "dup" | "dup2" | "dup3" | "pipe" | "pipe2" => self.numbers(c),
            "fcntl" | "fcntl64" if c.arg(1).contains("FD") => self.numbers(c),
            "copy_file_range" | "sendfile" | "sendfile64" => self.copy(c),
            "io_submit" => self.submit(c),
            "io_getevents" | "io_pgetevents" => self.reap(c),
            "mmap" | "mmap2" => self.map(c),
            "munmap" => self.unmap(c),
            "link" | "linkat" => self.link(c),
            "symlink" | "symlinkat" => self.symlink(c),
            "mknod" | "mknodat" => self.stand_in(c),
            "chdir"
            | "fchdir"
            | "execve"
            | "execveat"
            | "nanosleep"
            | "clock_nanosleep"
            | "clock_nanosleep_time64"
            | "wait4"
            | "waitid"
            | "waitpid" => self.task_call(c),
            name if makes_tasks(name) => self.task_call(c),
            name if NO_DISK.split(' ').any(|n| n == name) => self.null(c),
            _ => false,
        }
    }

    pub(super) fn null(&mut self, c: &Call<'_>) -> bool {
        self.push(c, Act::Null, None);
        true
    }

    pub(super) fn done(&mut self, c: &Call<'_>, act: Act, answer: Option<Answer>) -> bool {
        self.push(c, act, answer);
        true
    }

    /// The open file behind an argument. Anything else costs a call and is counted.
    pub(super) fn file(&mut self, c: &Call<'_>, i: usize) -> Option<u32> {
        let known = self.behind(c, c.arg(i));
        let Some(Some(file)) = known else {
            *self.log.elsewhere.entry(c.name.to_string()).or_default() += 1;
            let moved = c.name.contains("read") || c.name.contains("write");
            match c.ok().filter(|n| moved && *n > 0) {
                Some(n) => self.push(c, Act::Elsewhere { bytes: n.cast_unsigned() }, None),
                None => self.push(c, Act::Null, None),
            }
            return None;
        };
        if self.is_device(file) {
            self.on_device(c, file);
            return None;
        }
        Some(file)
    }

    /// The path of an argument, as [`Reader::own_path`]; of a symbolic link where it leads, and of a file with several names
    /// that under which it lies.
    pub(super) fn path(&mut self, c: &Call<'_>, dir: Option<usize>, i: usize) -> Option<String> {
        let path = self.own_path(c, dir, i)?;
        let path = self.symlinks.resolve(&path, true).unwrap_or(path);
        let inside = !names::elsewhere(&path) && self.is_inside(&path);
        inside.then(|| self.links.target(&path).to_string())
    }

    /// The path of an argument, looked up from the directory of another where there is one. Symbolic links on its way are
    /// followed; one that it ends with is what it stands for.
    pub(super) fn own_path(
        &mut self,
        c: &Call<'_>,
        dir: Option<usize>,
        i: usize,
    ) -> Option<String> {
        let path = self.any_path(c, dir, i)?;
        (!names::elsewhere(&path) && self.is_inside(&path)).then_some(path)
    }

    /// The same of any file.
    pub(super) fn any_path(
        &mut self,
        c: &Call<'_>,
        dir: Option<usize>,
        i: usize,
    ) -> Option<String> {
        let (name, _) = string(c.arg(i))?;
        // The kernel takes no longer ones (ENAMETOOLONG).
        if name.len() >= PATH_MAX || name.split('/').any(|part| part.len() > NAME_MAX) {
            return None;
        }
        let from = match dir {
            Some(d) if !c.arg(d).starts_with("AT_FDCWD") && !name.starts_with('/') => {
                match self.tables.file(c.pid, c.number(d)?) {
                    Some(file) => self.opened.get(file? as usize)?.clone(),
                    // A directory that was open before the log.
                    None => printed(c.arg(d))??,
                }
            }
            _ => self.tables.cwd(c.pid)?.clone(),
        };
        let path = names::absolute(&from, &name);
        Some(self.symlinks.resolve(&path, false).unwrap_or(path))
    }

    /// What a link says, as a name of the log.
    pub(super) fn text(&mut self, text: &str) -> u32 {
        self.log.name(&mut self.known, text)
    }

    /// Where a path lies in the replay.
    pub(super) fn place(&self, path: &str) -> String {
        names::place(path, self.below())
    }

    pub(super) fn name(&mut self, path: &str) -> u32 {
        let place = names::place(path, self.below());
        self.log.name(&mut self.known, &place)
    }

    /// A call on a name that is none of a disk.
    pub(super) fn elsewhere(&mut self, c: &Call<'_>) -> bool {
        *self.log.elsewhere.entry(c.name.to_string()).or_default() += 1;
        self.null(c)
    }

    /// The directory that the replay is limited to.
    pub(super) fn below(&self) -> Option<&str> {
        self.part.as_ref().map(|p| p.below.as_str())
    }

    pub(super) fn is_inside(&self, path: &str) -> bool {
        self.below().is_none_or(|b| names::inside(path, b).is_some())
    }

    pub(super) fn new_file(&mut self, path: &str) -> u32 {
        let file = self.log.opened;
        self.log.opened += 1;
        self.opened.push(path.to_string());
        file
    }

    pub(super) fn hold(&mut self, c: &Call<'_>, fd: i64, file: Option<u32>, closes_at_exec: bool) {
        if let Some(closed) = self.tables.put(c.pid, fd, Held { file, closes_at_exec }) {
            self.push(c, Act::Close { file: closed }, None);
        }
    }

    fn open(&mut self, c: &Call<'_>) -> bool {
        let at = c.name.starts_with("openat");
        let words = match c.name {
            "creat" => "O_WRONLY|O_CREAT|O_TRUNC".to_string(),
            "openat2" => c.arg(2).trim_start_matches("{flags=").replace(',', "|"),
            _ => c.arg(1 + usize::from(at)).to_string(),
        };
        let (dir, i) = (at.then_some(0), usize::from(at));
        // These do not follow a link that the name ends with.
        let itself = has(&words, "O_NOFOLLOW") || has(&words, "O_CREAT") && has(&words, "O_EXCL");
        let path = if itself { self.own_path(c, dir, i) } else { self.path(c, dir, i) };
        let cloexec = has(&words, "O_CLOEXEC");
        let Some(mut path) = path else {
            if let Some(fd) = c.ok() {
                let device = self.any_path(c, dir, i).filter(|path| self.device(path));
                let file = device.map(|path| self.new_file(&path));
                self.hold(c, fd, file, cloexec);
            }
            return self.elsewhere(c);
        };
        let hidden = has(&words, "O_TMPFILE") || has(&words, "__O_TMPFILE");
        if hidden {
            path = format!("{path}/_tmpfile{}", self.log.opened);
        }
        let mut flags = flags(&words);
        if hidden {
            flags = flags | OpenFlags::CREATE;
        }
        let file = self.new_file(&path);
        match c.end.ret {
            Some(Ok(fd)) => {
                let made = flags.has(OpenFlags::CREATE);
                let cut = flags.has(OpenFlags::TRUNCATE);
                let node = match (made, flags.has(OpenFlags::EXCLUSIVE)) {
                    (true, true) => self.disk.made(&path, false),
                    (true, false) if cut && !self.disk.is_there(&path) => {
                        self.disk.made(&path, false)
                    }
                    (true, false) => self.disk.found_or_made(&path),
                    (false, _) => self.disk.found(&path, flags.has(OpenFlags::DIRECTORY)),
                };
                self.disk.open(file, node, flags.has(OpenFlags::APPEND), cut);
                let name = self.name(&path);
                self.push(c, Act::Open { name, flags, file }, Some(Ok(0)));
                self.hold(c, fd, Some(file), cloexec);
            }
            Some(Err(e)) => {
                match e {
                    Errno::ENOENT => self.disk.missed(&path),
                    Errno::EEXIST => _ = self.disk.found(&path, false),
                    Errno::EISDIR => _ = self.disk.found(&path, true),
                    Errno::ELOOP if self.symlinks.is_link(&path) => {}
                    _ => return self.null(c),
                }
                let name = self.name(&path);
                self.push(c, Act::Open { name, flags, file }, c.answer());
            }
            None => {}
        }
        true
    }

    fn close(&mut self, c: &Call<'_>) -> bool {
        let Some(fd) = c.number(0) else { return self.null(c) };
        match self.tables.take(c.pid, fd) {
            (_, Some(file)) => self.done(c, Act::Close { file }, c.answer()),
            _ => self.null(c),
        }
    }

    fn read(&mut self, c: &Call<'_>) -> bool {
        let Some(file) = self.file(c, 0) else { return true };
        let Some(n) = c.ok().map(i64::cast_unsigned) else { return self.null(c) };
        // The log does not always print the lengths of a vector's pieces, but it always prints the result.
        let len = c.number(2).filter(|_| !c.name.contains('v')).map_or(n, i64::cast_unsigned);
        match position(c) {
            Some(at) => {
                self.disk.read(file, Some(at), n);
                self.done(c, Act::Pread { file, at, len }, c.answer())
            }
            // How a pipe's bytes are cut into reads is chance. Their sum is not.
            None if n > 0 && self.opened[file as usize] == PIPE => {
                self.done(c, Act::Drain { file, len: n }, None)
            }
            None => {
                self.disk.read(file, None, n);
                self.done(c, Act::Read { file, len }, c.answer())
            }
        }
    }

    fn write(&mut self, c: &Call<'_>) -> bool {
        let Some(file) = self.file(c, 0) else { return true };
        let Some(n) = c.ok().map(i64::cast_unsigned) else { return self.null(c) };
        let flags = by_flags::of_write(if c.name == "pwritev2" { c.arg(4) } else { "" });
        let through = self.with_flags(file, flags);
        match position(c).filter(|_| !flags.has(OpenFlags::APPEND)) {
            Some(at) => {
                self.disk.wrote(file, Some(at), n);
                self.done(c, Act::Pwrite { file: through, at, len: n }, c.answer())
            }
            None => {
                self.disk.wrote(file, None, n);
                self.done(c, Act::Write { file: through, len: n }, c.answer())
            }
        }
    }

    fn seek(&mut self, c: &Call<'_>) -> bool {
        let Some(file) = self.file(c, 0) else { return true };
        let long = c.name != "lseek";
        let whence = match c.arg(if long { 3 } else { 2 }) {
            "SEEK_SET" => Whence::Set,
            "SEEK_CUR" => Whence::Current,
            "SEEK_END" => Whence::End,
            _ => return self.null(c),
        };
        let at = match long {
            true => number(c.arg(2).trim_matches(['[', ']'])),
            false => c.ok(),
        };
        let (Some(to), Some(at), Some(_)) = (c.number(1), at, c.ok()) else { return self.null(c) };
        let from_end = (whence == Whence::End).then_some(to);
        self.disk.seek(file, at.cast_unsigned(), from_end);
        self.done(c, Act::Seek { file, to, whence }, Some(Ok(at.cast_unsigned())))
    }

    fn range(&mut self, c: &Call<'_>) -> bool {
        let Some(file) = self.file(c, 0) else { return true };
        if c.ok().is_none() {
            return self.null(c);
        }
        let n = |i: usize| c.number(i).map_or(0, i64::cast_unsigned);
        let act = match c.name {
            "fallocate" => {
                let keep_size = match c.arg(1) {
                    "0" => false,
                    "FALLOC_FL_KEEP_SIZE" => true,
                    _ => return false,
                };
                let (at, len) = (n(2), n(3));
                if !keep_size {
                    self.disk.extended(file, at.saturating_add(len));
                }
                Act::Fallocate { file, at, len, keep_size }
            }
            "readahead" => Act::Advise { file, at: n(1), len: n(2), advice: Advice::WillNeed },
            name if name.contains("fadvise") => {
                let words = c.args.iter().find(|a| a.starts_with("POSIX_FADV_"));
                let Some(advice) = words.and_then(|w| advice(w)) else { return self.null(c) };
                let first = if name.starts_with("arm") { 2 } else { 1 };
                Act::Advise { file, at: n(first), len: n(first + 1), advice }
            }
            _ => {
                self.disk.truncated(file, n(1));
                Act::Truncate { file, len: n(1) }
            }
        };
        self.done(c, act, c.answer())
    }

    fn sync(&mut self, c: &Call<'_>) -> bool {
        if c.name == "sync" {
            return self.done(c, Act::Sync, None);
        }
        let Some(file) = self.file(c, 0) else { return true };
        let n = |i: usize| c.number(i).map_or(0, i64::cast_unsigned);
        let act = match c.name {
            _ if c.ok().is_none() => Act::Null,
            "fsync" => Act::Fsync { file },
            "fdatasync" => Act::Fdatasync { file },
            "syncfs" => Act::SyncFs { file },
            _ => {
                let wait = has(c.arg(3), "SYNC_FILE_RANGE_WAIT_AFTER");
                Act::SyncRange { file, at: n(1), len: n(2), wait }
            }
        };
        self.done(c, act, None)
    }

    fn copy(&mut self, c: &Call<'_>) -> bool {
        let Some(n) = c.ok().map(i64::cast_unsigned) else { return self.null(c) };
        let sends = c.name.starts_with("sendfile");
        let (from, to, offset) = if sends { (1, 0, 2) } else { (0, 2, 1) };
        let Some(source) = self.file(c, from) else { return true };
        let mut target = self.behind(c, c.arg(to)).flatten();
        if let Some(file) = target.filter(|file| self.is_device(*file)) {
            self.on_device(c, file);
            target = None;
        }
        let (at, goes) = (place(c.arg(offset)), place(c.arg(3)).filter(|_| !sends));
        self.disk.read(source, at, n);
        if let Some(target) = target {
            self.with_flags(target, OpenFlags::default());
            self.disk.wrote(target, goes, n);
        }
        if let (Some(to), None, None) = (target, at, goes) {
            return self.done(c, Act::CopyRange { from: source, to, len: n }, c.answer());
        }
        // With places of its own it is a read and a write.
        let read = match at {
            Some(at) => Act::Pread { file: source, at, len: n },
            None => Act::Read { file: source, len: n },
        };
        self.push(c, read, c.answer());
        match (target, goes) {
            (Some(file), Some(at)) => self.done(c, Act::Pwrite { file, at, len: n }, c.answer()),
            (Some(file), None) => self.done(c, Act::Write { file, len: n }, c.answer()),
            // Into a socket or a terminal.
            (None, _) => true,
        }
    }
}

/// A place that the kernel is given and gives back: `[0]`, `[0] => [4096]`, or `NULL`.
fn place(arg: &str) -> Option<Bytes> {
    number(arg.strip_prefix('[')?.split([']', ' ']).next()?).map(i64::cast_unsigned)
}

/// Where a call with a position reads or writes. The position -1 is the file's own (`preadv2`, `pwritev2`).
fn position(c: &Call<'_>) -> Option<Bytes> {
    let at = c.name.starts_with('p').then(|| c.number(3).unwrap_or(0));
    at.filter(|at| *at != -1).map(i64::cast_unsigned)
}

fn flags(words: &str) -> OpenFlags {
    let mut flags = match () {
        () if has(words, "O_RDWR") => OpenFlags::READ | OpenFlags::WRITE,
        () if has(words, "O_WRONLY") => OpenFlags::WRITE,
        () => OpenFlags::READ,
    };
    for (word, flag) in [
        ("O_CREAT", OpenFlags::CREATE),
        ("O_EXCL", OpenFlags::EXCLUSIVE),
        ("O_TRUNC", OpenFlags::TRUNCATE),
        ("O_APPEND", OpenFlags::APPEND),
        ("O_DIRECT", OpenFlags::DIRECT),
        ("O_SYNC", OpenFlags::SYNC),
        ("O_DSYNC", OpenFlags::DSYNC),
        ("O_DIRECTORY", OpenFlags::DIRECTORY),
        ("O_NOFOLLOW", OpenFlags::NOFOLLOW),
    ] {
        if has(words, word) {
            flags = flags | flag;
        }
    }
    flags
}

fn advice(word: &str) -> Option<Advice> {
    Some(match word {
        "POSIX_FADV_NORMAL" => Advice::Normal,
        "POSIX_FADV_SEQUENTIAL" => Advice::Sequential,
        "POSIX_FADV_RANDOM" => Advice::Random,
        "POSIX_FADV_WILLNEED" => Advice::WillNeed,
        "POSIX_FADV_DONTNEED" => Advice::DontNeed,
        "POSIX_FADV_NOREUSE" => Advice::NoReuse,
        _ => return None,
    })
}
