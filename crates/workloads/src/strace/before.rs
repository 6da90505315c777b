//! Descriptors that were open when a log began: of a program that strace was attached to, or that its parent opened.
//!
//! `strace -y` prints their paths. Without it a number stands for a file when a call succeeds that fails on pipes and
//! sockets: one with a position, a sync, a length. Reads and writes alone say nothing.

use std::collections::{BTreeMap, BTreeSet};

use iosched_syscalls::OpenFlags;

use super::args::{self, number};
use super::line::{self, End, Said};
use super::names;
use super::read::{Call, Reader, makes_tasks};
use super::rows::Rows;

/// Calls with a descriptor first that only files take.
const OF_FILES: &str = "pread64 pread preadv preadv2 pwrite64 pwrite pwritev pwritev2 fsync fdatasync lseek _llseek llseek \
    ftruncate ftruncate64 fallocate fadvise64 fadvise64_64 readahead sync_file_range copy_file_range";
/// Calls that return a new descriptor.
const MAKES: &str = "open openat openat2 creat socket accept accept4 dup dup2 dup3 epoll_create epoll_create1 eventfd \
    eventfd2 timerfd_create signalfd signalfd4 inotify_init inotify_init1 memfd_create perf_event_open pidfd_open \
    io_uring_setup userfaultfd";

fn one_of(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|n| n == name)
}

/// A file that is open when the replay begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inherited {
    /// Its name, an index of the log.
    pub name: u32,
    /// How it is opened.
    pub flags: OpenFlags,
    /// The open file.
    pub file: u32,
}

/// What the log shows of a number.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    /// No task of the log had opened the number, whichever it is.
    by_none: bool,
    /// It is read or written at places.
    placed: bool,
    /// It is a directory.
    directory: bool,
}

/// What is known of the time before the log.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Numbers that stand for files, by the first task of the process.
    shown: BTreeMap<(u32, i64), Shown>,
    /// The first task of each task's process.
    roots: BTreeMap<u32, u32>,
    /// The tasks that were there are threads of one process.
    pub(super) threads: bool,
    /// Open files of numbers.
    files: BTreeMap<(u32, i64, String), u32>,
    /// Numbers of files, with the path where strace prints it.
    told: BTreeSet<(i64, Option<String>)>,
    /// Numbers that were only read and written.
    streams: BTreeSet<i64>,
}

/// The state of the first look at a log.
#[derive(Default)]
struct Look {
    before: Before,
    pending: BTreeMap<u32, (String, String)>,
    /// Numbers that calls returned, by process.
    assigned: BTreeSet<(u32, i64)>,
    /// The same of those that are open, with the process.
    open: BTreeMap<i64, u32>,
    /// Two processes had the same number at once.
    apart: bool,
    first: Option<String>,
}

impl Before {
    /// Looks at a whole log.
    pub(super) fn of(rows: &Rows<'_>) -> Before {
        let mut look = Look::default();
        for row in &rows.rows {
            let Ok(line) = line::read(&row.text) else { continue };
            let pid = line.pid.unwrap_or(0);
            match line.said {
                Said::Whole { name, args, end } => look.call(pid, name, &args, end),
                Said::Begun { name, args } => {
                    look.root(pid);
                    look.pending.insert(pid, (name.into(), args.into()));
                }
                Said::Resumed { name, args, end } => {
                    let begun = look.pending.remove(&pid).filter(|p| p.0 == name);
                    let begun = begun.map_or_else(String::new, |p| p.1 + " ");
                    look.call(pid, name, &(begun + args), end);
                }
                Said::Gone | Said::Nothing | Said::Architecture(_) => {}
            }
        }
        let Look { mut before, apart, first, .. } = look;
        let processes: BTreeSet<u32> = before.roots.values().copied().collect();
        before.threads = processes.len() > 1 && !apart && first.is_none_or(|f| f != "execve");
        if before.threads {
            before.shown.retain(|_, s| s.by_none);
            let shown = std::mem::take(&mut before.shown);
            for ((_, fd), s) in shown {
                let all = before.shown.entry((0, fd)).or_insert(s);
                all.placed |= s.placed;
                all.directory |= s.directory;
            }
        }
        before
    }

    /// The first task of a process.
    fn root(&self, pid: u32) -> u32 {
        if self.threads { 0 } else { self.roots.get(&pid).copied().unwrap_or(pid) }
    }
}

impl Look {
    fn root(&mut self, pid: u32) -> u32 {
        if let Some(root) = self.before.roots.get(&pid) {
            return *root;
        }
        // Made by a call that has not come back, or the one that had no number as long as it was alone.
        let maker = self.pending.iter().find(|(_, p)| makes_tasks(&p.0)).map(|(pid, _)| *pid);
        let root = match maker {
            Some(maker) => self.before.roots.get(&maker).copied().unwrap_or(maker),
            None if self.before.roots.contains_key(&0) => 0,
            None => pid,
        };
        self.before.roots.insert(pid, root);
        root
    }

    fn call(&mut self, pid: u32, name: &str, args: &str, end: End) {
        let root = self.root(pid);
        self.first.get_or_insert_with(|| name.to_string());
        let Some(Ok(answer)) = end.ret else { return };
        if makes_tasks(name) {
            self.before.roots.entry(answer as u32).or_insert(root);
            return;
        }
        let args = args::split(args);
        let arg = |i: usize| args.get(i).copied().unwrap_or_default();
        let copies = name.starts_with("fcntl") && arg(1).starts_with("F_DUPFD");
        if copies || one_of(MAKES, name) {
            self.opened(root, answer);
        } else if name.starts_with("pipe") || name == "socketpair" {
            let ends = args.iter().find(|a| a.starts_with('[')).map(|a| a.trim_matches(['[', ']']));
            ends.into_iter()
                .flat_map(|e| e.split(','))
                .filter_map(number)
                .for_each(|fd| self.opened(root, fd));
        } else if name == "close" {
            self.open.remove(&number(arg(0)).unwrap_or(-1));
        }
        let placed = name.starts_with("pwrite") || name.ends_with("seek");
        let regular = || args.iter().any(|a| a.contains("S_IFREG"));
        let nameless = || args::string(arg(1)).is_some_and(|(n, _)| n.is_empty());
        let looks = name.starts_with("fstat")
            && !name.starts_with("fstatat")
            && !name.starts_with("fstatfs")
            || matches!(name, "newfstatat" | "fstatat64" | "statx") && nameless();
        if one_of(OF_FILES, name) || looks && regular() {
            self.shows(root, number(arg(0)), placed, false);
        }
        match name {
            "copy_file_range" => self.shows(root, number(arg(2)), arg(3) != "NULL", false),
            "sendfile" | "sendfile64" => self.shows(root, number(arg(1)), false, false),
            "getdents" | "getdents64" => self.shows(root, number(arg(0)), false, true),
            "io_submit" => {
                for part in arg(2).split("aio_fildes=").skip(1) {
                    // Sockets take these, too; for them no place is given.
                    let end = part.find([',', '}']).unwrap_or(part.len());
                    let at = args::field(part, "aio_offset").filter(|at| *at != 0);
                    let fd = number(&part[..end]).filter(|_| at.is_some());
                    self.shows(root, fd, true, false);
                }
            }
            _ => {}
        }
    }

    fn opened(&mut self, root: u32, fd: i64) {
        self.assigned.insert((root, fd));
        self.apart |= self.open.insert(fd, root).is_some_and(|other| other != root);
    }

    fn shows(&mut self, root: u32, fd: Option<i64>, placed: bool, directory: bool) {
        let Some(fd) = fd.filter(|fd| !self.assigned.contains(&(root, *fd))) else { return };
        let by_none = !self.assigned.iter().any(|(_, f)| *f == fd);
        let shown = self.before.shown.entry((root, fd)).or_default();
        shown.by_none |= by_none;
        shown.placed |= placed;
        shown.directory |= directory;
    }
}

/// The path that `strace -y` prints behind a number: `Some(None)` for what has none, such as a socket.
#[expect(clippy::option_option, reason = "nothing printed, no path, a path")]
pub(super) fn printed(arg: &str) -> Option<Option<String>> {
    let inner = arg.trim().split_once('<')?.1;
    let inner = &inner[..inner.rfind('>')?];
    // `</dev/sda<block 8:0>>`, `</tmp/a (deleted)>`, `</tmp/a>(deleted)`.
    let path = inner.split(['<', '>']).next().unwrap_or(inner);
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    Some(path.starts_with('/').then(|| names::absolute("/", path)))
}

impl Reader {
    /// What stands behind a number: as [`super::tables::Tables::file`], or a file that was open before the log.
    #[expect(clippy::option_option, reason = "unknown, no file, a file")]
    pub(super) fn behind(&mut self, c: &Call<'_>, arg: &str) -> Option<Option<u32>> {
        let fd = number(arg)?;
        let known = self.tables.file(c.pid, fd);
        if known.is_some() || self.part.is_some() {
            return known;
        }
        let found = self.was_open(c, fd, arg);
        if found.is_none() && matches!(c.name, "read" | "readv" | "write" | "writev") && fd > 2 {
            self.before.streams.insert(fd);
        }
        found.map(Some)
    }

    fn was_open(&mut self, c: &Call<'_>, fd: i64, arg: &str) -> Option<u32> {
        let root = self.before.root(c.pid);
        let shown = self.before.shown.get(&(root, fd)).copied();
        let is_directory = c.args.iter().any(|a| a.contains("S_IFDIR"));
        if is_directory || c.name.starts_with("getdents") || shown.is_some_and(|s| s.directory) {
            return None;
        }
        let printed = printed(arg);
        if let Some(Some(path)) = &printed
            && self.device(path)
        {
            let file = self.new_file(path);
            self.hold(c, fd, Some(file), false);
            return Some(file);
        }
        let path = match &printed {
            Some(path) => path.clone().filter(|p| !names::elsewhere(p))?,
            None if shown.is_none() => return None,
            None if root == 0 => format!("_before/descriptor-{fd}"),
            None => format!("_before/{root}-descriptor-{fd}"),
        };
        let key = (root, fd, path.clone());
        let file = match self.before.files.get(&key) {
            Some(file) => *file,
            None => {
                let file = self.new_file(&path);
                let node = self.disk.found(&path, false);
                // What is only written in sequence goes on behind what is there.
                let append = !shown.is_some_and(|s| s.placed);
                self.disk.open(file, node, append, false);
                self.disk.was_open(node);
                let more = if append { OpenFlags::APPEND } else { OpenFlags::default() };
                let flags = OpenFlags::READ | OpenFlags::WRITE | more;
                let name = self.name(&path);
                self.log.inherited.push(Inherited { name, flags, file });
                self.before.files.insert(key, file);
                self.before.told.insert((fd, printed.flatten()));
                file
            }
        };
        self.hold(c, fd, Some(file), false);
        Some(file)
    }

    /// Says what was taken for what.
    pub(super) fn remark_before(&mut self) {
        let before = &self.before;
        let mut named = Vec::new();
        let mut nameless = Vec::new();
        for (fd, path) in &before.told {
            match path {
                Some(path) => named.push(format!("{fd} is {path}")),
                None => nameless.push(fd.to_string()),
            }
        }
        let list = |words: &[String]| match words.len() {
            0..=8 => words.join(", "),
            n => format!("{} and {} more", words[..8].join(", "), n - 8),
        };
        let mut said = Vec::new();
        if !named.is_empty() {
            said.push(format!(
                "descriptors that were open before the log, by their paths: {}",
                list(&named)
            ));
        }
        if !nameless.is_empty() {
            said.push(format!(
                "descriptors that were open before the log are taken for files because calls on them have positions, \
                 sync or name lengths: {}; their lengths are as far as these calls reach (strace -y prints paths)",
                list(&nameless)
            ));
        }
        let streams: Vec<String> = before.streams.iter().map(i64::to_string).collect();
        if !streams.is_empty() {
            said.push(format!(
                "descriptors that were open before the log and are only read or written are taken for pipes or sockets: \
                 {} (strace -y prints paths)",
                list(&streams)
            ));
        }
        if before.threads && self.log.tasks.iter().filter(|t| t.parent.is_none()).count() > 1 {
            said.push(
                "the tasks that were there before the log are taken for threads of one process"
                    .into(),
            );
            self.log.threads = true;
        }
        self.log.warnings.extend(said);
    }
}
