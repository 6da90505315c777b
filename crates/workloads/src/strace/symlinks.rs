//! Symbolic links that a log makes. The calls after it lead to what they say; a link itself is only looked at, read,
//! renamed and removed.

use std::collections::BTreeMap;

use iosched_syscalls::Errno;

use super::Act;
use super::args::string;
use super::names;
use super::read::{Call, Reader};

/// Links that a path may lead through.
const MOST: usize = 40;

/// Links by their names, and where they lead. Both as [`names::absolute`] has them.
#[derive(Debug, Default)]
pub(super) struct Symlinks(BTreeMap<String, String>);

impl Symlinks {
    pub(super) fn is_link(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Where a path leads, its last part only with `last`; `None` in a circle.
    pub(super) fn resolve(&self, path: &str, last: bool) -> Option<String> {
        let mut path = path.to_string();
        if self.0.is_empty() {
            return Some(path);
        }
        for _ in 0..=MOST {
            let ends = path.match_indices('/').map(|(i, _)| i).chain(last.then_some(path.len()));
            let link = ends.filter(|i| *i > 0).find_map(|i| Some((i, self.0.get(&path[..i])?)));
            let Some((i, target)) = link else { return Some(path) };
            path = format!("{target}{}", &path[i..]);
        }
        None
    }

    fn renamed(&mut self, from: &str, to: &str) {
        self.0.remove(to);
        let below = format!("{from}/");
        let moved: Vec<String> =
            self.0.keys().filter(|k| *k == from || k.starts_with(&below)).cloned().collect();
        for old in moved {
            if let Some(target) = self.0.remove(&old) {
                self.0.insert(format!("{to}{}", &old[from.len()..]), target);
            }
        }
    }
}

impl Reader {
    /// `symlink`, `symlinkat`.
    pub(super) fn symlink(&mut self, c: &Call<'_>) -> bool {
        let at = c.name == "symlinkat";
        let path = self.own_path(c, at.then_some(1), if at { 2 } else { 1 });
        let (Some(path), Some((said, _))) = (path, string(c.arg(0))) else {
            return self.elsewhere(c);
        };
        match c.end.ret {
            Some(Ok(_)) => {}
            Some(Err(Errno::EEXIST)) => _ = self.disk.found(&path, false),
            _ => return self.null(c),
        }
        let directory =
            path.rsplit_once('/').map_or("", |(d, _)| if d.is_empty() { "/" } else { d });
        let to = names::absolute(directory, &said);
        let (from, target) = (self.place(&path), self.place(&to));
        let text = names::relative(&from, &target);
        let (target, name) = (self.text(&text), self.name(&path));
        if c.ok().is_some() {
            self.disk.made(&path, false);
            self.symlinks.0.insert(path, to);
        }
        self.done(c, Act::Symlink { target, name }, c.answer())
    }

    /// `lstat`, `readlink` of a link that the log made.
    pub(super) fn look_at_link(
        &mut self,
        c: &Call<'_>,
        (dir, i): (Option<usize>, usize),
    ) -> Option<bool> {
        let path = self.own_path(c, dir, i).filter(|p| self.symlinks.is_link(p))?;
        let name = self.name(&path);
        let act = match c.name.starts_with("readlink") {
            true => Act::ReadLink { name },
            false => Act::Stat { name, follow: false },
        };
        Some(self.done(c, act, c.answer()))
    }

    /// A link goes, or gets another name.
    pub(super) fn link_moved(&mut self, path: &str, to: Option<&str>) {
        match to {
            Some(to) => self.symlinks.renamed(path, to),
            None => _ = self.symlinks.0.remove(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_through_links() {
        let of = |(a, b): (&str, &str)| (a.to_string(), b.to_string());
        let mut links = Symlinks(
            [("d/a", "e"), ("e/b", "d/f"), ("x", "y"), ("y", "x")].map(of).into_iter().collect(),
        );
        assert_eq!(links.resolve("d/a/b", true).as_deref(), Some("d/f"));
        assert_eq!(links.resolve("d/a/b", false).as_deref(), Some("e/b"));
        assert_eq!(links.resolve("d/a", false).as_deref(), Some("d/a"));
        assert_eq!(links.resolve("x", true), None);
        links.renamed("d", "g");
        assert_eq!(links.resolve("g/a/c", true).as_deref(), Some("e/c"));
    }
}
