//! Calls of a log that work with names.

use iosched_syscalls::{Errno, OpenFlags};

use super::Act;
use super::args::{field, number, string};
use super::names;
use super::read::{Call, Reader};
use super::walks::Listing;

impl Reader {
    pub(super) fn look(&mut self, c: &Call<'_>) -> bool {
        let at = matches!(
            c.name,
            "newfstatat" | "fstatat64" | "statx" | "faccessat" | "faccessat2" | "readlinkat"
        );
        let said = c.args.iter().find(|a| a.starts_with('{')).copied().unwrap_or_default();
        let directory = said.contains("S_IFDIR");
        let len = field(said, "st_size").or_else(|| field(said, "stx_size"));
        let len = len.map_or(0, i64::cast_unsigned);
        let itself = c.name.starts_with("lstat")
            || c.name.starts_with("readlink")
            || c.args.iter().any(|a| a.contains("AT_SYMLINK_NOFOLLOW"));
        let at_path = (at.then_some(0), usize::from(at));
        if itself && let Some(done) = self.look_at_link(c, at_path) {
            return done;
        }
        let no_file = ["S_IFCHR", "S_IFBLK", "S_IFIFO", "S_IFSOCK", "S_IFLNK"];
        if no_file.iter().any(|k| said.contains(k)) {
            return self.elsewhere(c);
        }
        let nameless = at && string(c.arg(1)).is_some_and(|(n, _)| n.is_empty());
        if c.name.starts_with("fstat") && !at || nameless {
            let Some(file) = self.file(c, 0) else { return true };
            if c.ok().is_some() {
                self.disk.fstat(file, directory, len);
            }
            return self.done(c, Act::Fstat { file }, None);
        }
        let link = c.name.starts_with("readlink");
        let Some(path) = self.path(c, at.then_some(0), usize::from(at)) else {
            return self.elsewhere(c);
        };
        match c.end.ret {
            Some(Ok(_)) if link => return self.null(c),
            Some(Ok(_)) if said.is_empty() => _ = self.disk.found(&path, false),
            Some(Ok(_)) => {
                self.disk.stat(&path, directory, len);
                self.disk.numbered(&path, field(said, "st_ino"));
            }
            Some(Err(Errno::ENOENT)) => self.disk.missed(&path),
            Some(Err(Errno::ELOOP)) if self.symlinks.is_link(&path) => {}
            _ => return self.null(c),
        }
        let name = self.name(&path);
        self.done(c, Act::Stat { name, follow: true }, c.answer())
    }

    pub(super) fn list(&mut self, c: &Call<'_>) -> bool {
        let Some(file) = self.file(c, 0) else { return true };
        if c.ok().is_none() {
            return self.null(c);
        }
        self.disk.is_directory(file);
        let dir = self.opened[file as usize].clone();
        let mut listed = Vec::new();
        // Only -v prints the names.
        for entry in c.arg(1).split("{d_ino=").skip(1) {
            let Some((_, rest)) = entry.split_once("d_name=") else { continue };
            let Some((name, _)) = string(rest) else { continue };
            if name != "." && name != ".." {
                let path = names::absolute(&dir, &name);
                self.disk.found(&path, entry.contains("DT_DIR"));
                self.disk.numbered(&path, entry.split(',').next().and_then(number));
                listed.push(name.into());
            }
        }
        self.done(c, Act::ReadDir { file }, None);
        if let Some(task) = self.tables.alive.get(&c.pid).map(|t| t.task) {
            let step = self.log.tasks[task].steps.len();
            self.listings.push(Listing { task, step, file, names: listed });
        }
        true
    }

    pub(super) fn change(&mut self, c: &Call<'_>) -> bool {
        let at = c.name.ends_with("at") || c.name.ends_with("at2");
        let first = usize::from(at);
        let Some(path) = self.own_path(c, at.then_some(0), first) else { return self.elsewhere(c) };
        let found = c.ok().is_some();
        if c.end.ret == Some(Err(Errno::ENOENT)) {
            self.disk.missed(&path);
        } else if !found && c.end.ret != Some(Err(Errno::EEXIST)) {
            return self.null(c);
        }
        let name = self.name(&path);
        let act = match c.name {
            "mkdir" | "mkdirat" => {
                match found {
                    true => drop(self.disk.made(&path, true)),
                    false if c.end.ret == Some(Err(Errno::EEXIST)) => {
                        _ = self.disk.found(&path, true);
                    }
                    false => {}
                }
                Act::Mkdir { name }
            }
            "truncate" | "truncate64" => {
                let path = self.symlinks.resolve(&path, true).unwrap_or(path);
                let path = self.links.target(&path).to_string();
                let name = self.name(&path);
                return self.truncate(c, &path, name);
            }
            "rename" | "renameat" | "renameat2" => {
                let second = if at { 3 } else { 1 };
                let Some(to) = self.own_path(c, at.then_some(2), second) else {
                    return self.elsewhere(c);
                };
                if c.arg(4).contains("RENAME_EXCHANGE") || c.arg(4).contains("WHITEOUT") {
                    return false;
                }
                if found && self.relinked(c, &path, &to) {
                    return true;
                }
                if found {
                    self.disk.renamed(&path, &to);
                    self.link_moved(&path, Some(&to));
                }
                Act::Rename { from: name, to: self.name(&to) }
            }
            _ => {
                let directory = c.name == "rmdir" || c.arg(2).contains("AT_REMOVEDIR");
                if found && !directory && self.unlinked(c, &path) {
                    return true;
                }
                if found {
                    self.disk.removed(&path, directory);
                    self.link_moved(&path, None);
                }
                if directory { Act::Rmdir { name } } else { Act::Unlink { name } }
            }
        };
        self.done(c, act, c.answer())
    }

    /// Uses an open file of its own, because there is no such call by name here.
    fn truncate(&mut self, c: &Call<'_>, path: &str, name: u32) -> bool {
        let len = c.number(1).map_or(0, i64::cast_unsigned);
        let file = self.new_file(path);
        self.push(c, Act::Open { name, flags: OpenFlags::WRITE, file }, c.answer());
        if c.ok().is_some() {
            self.disk.name_truncated(path, len);
            self.push(c, Act::Truncate { file, len }, None);
            self.push(c, Act::Close { file }, None);
        }
        true
    }

    pub(super) fn touch(&mut self, c: &Call<'_>) -> bool {
        if c.ok().is_none() {
            return self.null(c);
        }
        let at = matches!(c.name, "utimensat" | "futimesat" | "fchmodat" | "fchownat");
        let open =
            matches!(c.name, "fchmod" | "fchown" | "fchown32" | "fsetxattr" | "fremovexattr")
                || c.arg(1) == "NULL" && at;
        if open {
            let Some(file) = self.file(c, 0) else { return true };
            return self.done(c, Act::TouchFile { file }, None);
        }
        let Some(path) = self.path(c, at.then_some(0), usize::from(at)) else {
            return self.elsewhere(c);
        };
        if !self.disk.is_there(&path) {
            self.disk.found(&path, false);
        }
        let name = self.name(&path);
        self.done(c, Act::Touch { name }, None)
    }

    /// Devices are not simulated: an empty file has the name, so that the calls after it find one.
    pub(super) fn stand_in(&mut self, c: &Call<'_>) -> bool {
        let (dir, i) = if c.name == "mknodat" { (Some(0), 1) } else { (None, 0) };
        let path = self.path(c, dir, i);
        if let (Some(path), Some(_)) = (path, c.ok()) {
            self.disk.made(&path, false);
            let (name, file) = (self.name(&path), self.new_file(&path));
            let flags = OpenFlags::WRITE | OpenFlags::CREATE;
            self.push(c, Act::Open { name, flags, file }, None);
            self.push(c, Act::Close { file }, None);
        }
        false
    }
}
