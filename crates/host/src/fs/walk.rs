//! From a path to what it stands for, through symbolic links.
//!
//! A path stays below its root: it is not absolute and has no `..`. What a link says may have them; whatever leads out
//! then is `EXDEV`, as for a program whose system keeps it below a directory (`openat2` with `RESOLVE_BENEATH`).

use std::borrow::Cow;

use iosched_syscalls::{Errno, Kind};

use super::Ino;
use super::tree::{Place, ROOT, Tree};

/// Longest part of a name, and longest path, in bytes.
const LONGEST: usize = 255;
const LONGEST_PATH: usize = 4095;
/// Symbolic links that a path may lead through, as in Linux.
const LINKS: u32 = 40;

/// A part of a path that was looked up.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    pub(super) directory: Ino,
    pub(super) name: String,
    /// What it stands for, if anything.
    pub(super) found: Option<Ino>,
    /// That is a link, and the path goes on through it.
    pub(super) through: bool,
}

fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|p| !matches!(*p, "" | "."))
}

impl<T: Default> Tree<T> {
    fn is_link(&self, ino: Ino) -> bool {
        self.node(ino).kind == Kind::Link
    }

    /// Follows a path; a link that it ends with is what it stands for. `.` and empty parts stand for nothing; what leads out
    /// is not there.
    pub(super) fn place<'a>(&self, path: &'a str) -> Result<Place<'a>, Errno> {
        self.look(path, false)
    }

    /// The same, and a link that it ends with is followed.
    pub(super) fn follow<'a>(&self, path: &'a str) -> Result<Place<'a>, Errno> {
        self.look(path, true)
    }

    /// What a path stands for, links followed.
    pub(super) fn find(&self, path: &str) -> Result<Ino, Errno> {
        self.follow(path)?.found.ok_or(Errno::ENOENT)
    }

    /// What a path stands for: the link, if it ends with one.
    pub(super) fn find_itself(&self, path: &str) -> Result<Ino, Errno> {
        self.place(path)?.found.ok_or(Errno::ENOENT)
    }

    fn look<'a>(&self, path: &'a str, follow: bool) -> Result<Place<'a>, Errno> {
        if path.is_empty() || path.starts_with('/') {
            return Err(Errno::ENOENT);
        }
        let mut place = Place { parent: ROOT, name: Cow::Borrowed(""), found: Some(ROOT) };
        for part in parts(path) {
            if part == ".." {
                return Err(Errno::EXDEV);
            }
            if part.len() > LONGEST {
                return Err(Errno::ENAMETOOLONG);
            }
            let parent = place.found.ok_or(Errno::ENOENT)?;
            if self.is_link(parent) {
                return self.walk(path, follow, &mut |_| {});
            }
            let found = self.names(parent)?.get(part).copied();
            place = Place { parent, name: Cow::Borrowed(part), found };
        }
        match place.found {
            Some(ino) if follow && self.is_link(ino) => self.walk(path, follow, &mut |_| {}),
            _ => Ok(place),
        }
    }

    /// A path that leads through links. `seen` hears of each name that is looked up.
    fn walk(
        &self,
        path: &str,
        follow: bool,
        seen: &mut dyn FnMut(Looked),
    ) -> Result<Place<'static>, Errno> {
        if parts(path).any(|p| p == "..") {
            return Err(Errno::EXDEV);
        }
        let mut left: Vec<String> = parts(path).rev().map(str::to_string).collect();
        // The directories that it is in, the root first.
        let mut above = vec![ROOT];
        let mut place = Place { parent: ROOT, name: Cow::Borrowed(""), found: Some(ROOT) };
        let mut links = 0;
        while let Some(part) = left.pop() {
            let parent = above.last().copied().ok_or(Errno::EXDEV)?;
            if part == ".." {
                above.pop();
                let found = above.last().copied().ok_or(Errno::EXDEV)?;
                place = Place { parent: found, name: Cow::Borrowed(""), found: Some(found) };
                continue;
            }
            if part.len() > LONGEST {
                return Err(Errno::ENAMETOOLONG);
            }
            let found = self.names(parent)?.get(&*part).copied();
            let link = found.filter(|ino| self.is_link(*ino) && (follow || !left.is_empty()));
            let through = link.is_some();
            seen(Looked { directory: parent, name: part.clone(), found, through });
            if let Some(link) = link {
                links += 1;
                if links > LINKS {
                    return Err(Errno::ELOOP);
                }
                let target = self.target(link)?;
                if target.starts_with('/') {
                    return Err(Errno::EXDEV);
                }
                left.extend(parts(target).rev().map(str::to_string));
                place = Place { parent, name: Cow::Borrowed(""), found: Some(parent) };
                continue;
            }
            if !left.is_empty() {
                let inside = found.ok_or(Errno::ENOENT)?;
                self.names(inside)?;
                above.push(inside);
            }
            place = Place { parent, name: Cow::Owned(part), found };
        }
        Ok(place)
    }

    /// The names that a path looks up, as far as they are there.
    pub(super) fn looked_up(&self, path: &str, follow: bool) -> Vec<Looked> {
        let mut all = Vec::new();
        // Where it ends is the caller's to say.
        let _ = self.walk(path, follow, &mut |looked| all.push(looked));
        all
    }
}

/// Whether a link may say that.
pub(super) fn check_target(target: &str) -> Result<(), Errno> {
    match target.len() {
        0 => Err(Errno::ENOENT),
        n if n > LONGEST_PATH => Err(Errno::ENAMETOOLONG),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `d` with a file `f`, and links by their names and texts.
    fn tree(links: &[(&str, &str)]) -> Tree<()> {
        let mut tree = Tree::new();
        let d = tree.place("d").unwrap();
        tree.add(d, Kind::Directory).unwrap();
        let f = tree.place("d/f").unwrap();
        tree.add(f, Kind::File).unwrap();
        for (name, target) in links {
            let place = tree.place(name).unwrap();
            tree.add_link(place, target).unwrap();
        }
        tree
    }

    #[test]
    fn links_lead_from_the_directory_that_they_are_in() {
        let links = [("d/g", "f"), ("e", "d"), ("d/up", "../d/./g"), ("self", "."), ("h", "e/up")];
        let tree = tree(&links);
        let f = tree.find("d/f").unwrap();
        for path in ["d/g", "e/f", "e/g", "d/up", "self/self/d/f", "h", "e/up"] {
            assert_eq!(tree.find(path), Ok(f), "{path}");
        }
        assert_eq!(tree.find("h/x"), Err(Errno::ENOTDIR));
        assert_ne!(tree.find_itself("d/g"), Ok(f));
        assert_eq!(tree.place("e/new").unwrap().parent, tree.find("d").unwrap());
        // Where a file is made through a link that leads to none.
        assert_eq!(tree.looked_up("h", true).len(), 7, "h, e, up, .., d, g, f");
    }

    #[test]
    fn circular_links_and_chains_of_more_than_forty_are_refused() {
        let mut links = vec![("a".to_string(), "b".to_string()), ("b".into(), "a".into())];
        links.push(("own".into(), "own/x".into()));
        links.push(("l0".into(), "d/f".into()));
        links.extend((1..=40).map(|i| (format!("l{i}"), format!("l{}", i - 1))));
        let links: Vec<(&str, &str)> =
            links.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let tree = tree(&links);
        for path in ["a", "b", "a/f", "own"] {
            assert_eq!(tree.find(path), Err(Errno::ELOOP), "{path}");
        }
        assert_eq!(tree.find("l39"), tree.find("d/f"), "forty links");
        assert_eq!(tree.find("l40"), Err(Errno::ELOOP));
        assert!(tree.find_itself("l40").is_ok());
    }

    #[test]
    fn links_to_nothing_and_out_of_the_tree() {
        let tree =
            tree(&[("no", "d/none"), ("out", "../x"), ("etc", "/etc"), ("d/out", "../../x")]);
        assert_eq!(tree.find("no"), Err(Errno::ENOENT));
        assert_eq!(tree.follow("no").unwrap().name, "none");
        assert_eq!(tree.find("no/x"), Err(Errno::ENOENT));
        for path in ["out", "etc", "d/out", "etc/passwd"] {
            assert_eq!(tree.find(path), Err(Errno::EXDEV), "{path}");
        }
        assert_eq!([check_target(""), check_target("x")], [Err(Errno::ENOENT), Ok(())]);
        assert_eq!(check_target(&"x".repeat(4096)), Err(Errno::ENAMETOOLONG));
    }
}
