//! Names in a log, and where they lie in a replay.

/// Longest part of a name, as on Linux.
const LONGEST: usize = 255;

/// A name as one path: absolute (`/a/b`), or below the directory in which the log began (`a/b`).
pub(super) fn absolute(cwd: &str, name: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let rooted = name.starts_with('/') || cwd.starts_with('/');
    let before = if name.starts_with('/') { "" } else { cwd };
    for part in before.split('/').chain(name.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != "..") => drop(parts.pop()),
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if rooted { format!("/{joined}") } else { joined }
}

/// The directories above a path, the highest first; without the one in which everything lies.
pub(super) fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(i, _)| &path[..i]).filter(|p| !p.is_empty())
}

/// Whether a path leads to no file on a disk.
pub(super) fn elsewhere(path: &str) -> bool {
    let under =
        |dir: &str| path == dir || path.strip_prefix(dir).is_some_and(|r| r.starts_with('/'));
    ["/proc", "/sys", "/dev"].into_iter().any(under)
}

/// The rest of a path that lies in a directory.
pub(super) fn inside<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(directory)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

/// Where a path lies in a replay: that of a log of one directory at the top; otherwise absolute ones in `root`, others in
/// `work`, and files above the directory in which the log began in `work/_up`.
pub(super) fn place(path: &str, below: Option<&str>) -> String {
    if let Some(rest) = below.and_then(|b| inside(path, b)) {
        return if rest.is_empty() { ".".into() } else { rest.into() };
    }
    let (top, rest) = match path.strip_prefix('/') {
        Some(rest) => ("root", rest),
        None => ("work", path),
    };
    let mut out = String::from(top);
    for part in rest.split('/').filter(|p| !p.is_empty()) {
        out.push('/');
        match part {
            ".." => out.push_str("_up"),
            long if long.len() > LONGEST => {
                let end = (0..=LONGEST).rev().find(|i| long.is_char_boundary(*i)).unwrap_or(0);
                out.push_str(&long[..end]);
            }
            part => out.push_str(part),
        }
    }
    out
}

/// What a link at `from` says to lead to `to`; both as [`place`] gives them.
pub(super) fn relative(from: &str, to: &str) -> String {
    let parts = |p: &str| -> Vec<String> {
        p.split('/').filter(|p| !matches!(*p, "" | ".")).map(str::to_string).collect()
    };
    let (mut from, to) = (parts(from), parts(to));
    from.pop();
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from.iter().skip(same).map(|_| "..".to_string());
    let all: Vec<String> = up.chain(to.into_iter().skip(same)).collect();
    if all.is_empty() { ".".into() } else { all.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_followed_from_where_a_task_stands() {
        assert_eq!(absolute("/tmp/a", "../b//c/."), "/tmp/b/c");
        assert_eq!(absolute("", "x/../y"), "y");
        assert_eq!(absolute("", "../../etc"), "../../etc");
        assert_eq!(absolute("/", "../.."), "/");
        assert_eq!(absolute("/tmp", "/etc/passwd"), "/etc/passwd");
        assert_eq!(above("/a/b/c").collect::<Vec<_>>(), ["/a", "/a/b"]);
        assert_eq!(above("a/b").collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn links_say_the_way_from_where_they_are() {
        assert_eq!(relative("work/a/l", "work/b/f"), "../b/f");
        assert_eq!(relative("l", "d/f"), "d/f");
        assert_eq!(relative("work/l", "base/etc"), "../base/etc");
        assert_eq!(relative("d/l", "d"), ".");
    }

    #[test]
    fn no_place_leads_out_of_the_replay() {
        assert_eq!(place("/etc/passwd", None), "root/etc/passwd");
        assert_eq!(place("../../etc", None), "work/_up/_up/etc");
        assert_eq!(place("", None), "work");
        assert_eq!(place(&"é".repeat(200), None).len(), 5 + 254);
        assert!(elsewhere("/proc/1/stat") && elsewhere("/dev/null") && !elsewhere("/develop/a"));
    }
}
