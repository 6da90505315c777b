//! A kernel's source tree: the user's own, or that of Debian's package `linux-source`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iosched_types::Bytes;
use iosched_workloads::programs::Params;

use super::{At, Tool, Words};
use crate::error::{Error, Result};

/// Bytes that a program makes of a tree of so many.
pub(crate) type Room = fn(&Params, Bytes) -> Bytes;

/// The name of a tree among the user's own files of tools and among those that were found.
pub const TREE: &str = "tree";
/// The package that has one.
pub(crate) const PACKAGE: &str = "linux-source";
/// Where it puts its archives.
const SOURCES: &str = "/usr/src";
/// Their names, around the version.
const NAME: (&str, &str) = ("linux-source-", ".tar.xz");
/// The copy, in the program's directory.
pub(super) const COPY: &str = "linux";
/// What is in the top directory of every kernel's tree.
const MARKS: [&str; 2] = ["Makefile", "Kconfig"];
/// Files take whole blocks of this size.
const BLOCK: Bytes = 4 << 10;

/// What unpacks and copies trees.
pub(super) const TOOLS: [Tool; 3] = [
    Tool { name: "tar", folders: &[], package: "tar", version: ("", &[]) },
    Tool { name: "xz", folders: &[], package: "xz-utils", version: ("", &[]) },
    Tool { name: "git", folders: &[], package: "git", version: ("--version", &[2]) },
];

/// A form in which a tree is there.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    Archive,
    Git,
    Plain,
}

fn form(tree: &Path) -> Form {
    match tree {
        t if !t.is_dir() => Form::Archive,
        t if t.join(".git").exists() => Form::Git,
        _ => Form::Plain,
    }
}

/// The real path of a tree that the user names.
///
/// # Errors
/// [`Error::Input`] for what is no tree, with what is missing.
pub fn own_tree(path: &Path) -> Result<PathBuf> {
    let help = "--tree takes the top directory of a kernel's sources, or a linux-source-*.tar.xz";
    let shown = path.display();
    let Ok(real) = path.canonicalize() else {
        return Err(Error::input(format!("--tree: there is no {shown}"), help));
    };
    if real.is_dir() {
        return match MARKS.iter().find(|m| !real.join(m).is_file()) {
            Some(mark) => Err(Error::input(
                format!("--tree: {shown} is no kernel's source tree: it has no {mark}"),
                help,
            )),
            None => Ok(real),
        };
    }
    match real.to_string_lossy().ends_with(NAME.1) {
        true => Ok(real),
        false => Err(Error::input(
            format!("--tree: {shown} is neither a directory nor a {}", NAME.1),
            help,
        )),
    }
}

/// The tree that is used: the user's own one, or the newest that the package has brought; and its version.
///
/// # Errors
/// [`Error::NoTool`] where there is none.
pub(crate) fn find(own: &[(&'static str, PathBuf)]) -> Result<(PathBuf, String)> {
    if let Some((_, tree)) = own.iter().find(|(name, _)| *name == TREE) {
        return Ok((tree.clone(), version(tree)));
    }
    newest(Path::new(SOURCES)).ok_or_else(|| Error::NoTool {
        tool: PACKAGE.into(),
        package: format!(
            "apt install {PACKAGE}, name a kernel's source tree with --tree PATH, or use --program text"
        ),
    })
}

/// The archive of the newest version in a directory.
fn newest(dir: &Path) -> Option<(PathBuf, String)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let archives = entries.filter(|p| p.is_file()).filter_map(|p| Some((of_archive(&p)?, p)));
    let parts = |v: &str| -> Vec<u32> { v.split('.').map(|n| n.parse().unwrap_or(0)).collect() };
    let (version, path) = archives.max_by_key(|(version, _)| parts(version))?;
    Some((path, version))
}

fn of_archive(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    Some(name.strip_prefix(NAME.0)?.strip_suffix(NAME.1)?.to_string())
}

/// The version that a tree says it has; empty if it says none.
pub(crate) fn version(tree: &Path) -> String {
    if let Some(version) = of_archive(tree) {
        return version;
    }
    let text = fs::read_to_string(tree.join(MARKS[0])).unwrap_or_default();
    let value = |name: &str| {
        let line = text.lines().find(|l| l.split('=').next().is_some_and(|n| n.trim() == name));
        let value = line.and_then(|l| l.split_once('=')).map_or("", |(_, v)| v.trim());
        value.to_string()
    };
    let numbers = ["VERSION", "PATCHLEVEL", "SUBLEVEL"].map(value);
    let numbers: Vec<String> = numbers.into_iter().filter(|n| !n.is_empty()).collect();
    numbers.join(".") + &value("EXTRAVERSION")
}

/// Bytes that a copy of it takes.
///
/// # Errors
/// [`Error::Tool`] for an archive that xz cannot read.
pub(crate) fn bytes(tree: &Path) -> Result<Bytes> {
    match form(tree) {
        Form::Archive => unpacked(tree),
        Form::Git | Form::Plain => Ok(below(tree)),
    }
}

/// What an archive says of its length, and as much as file systems add to such files: a seventh.
fn unpacked(archive: &Path) -> Result<Bytes> {
    let told = Command::new("xz").args(["--robot", "--list", "--"]).arg(archive).output();
    let told = told.map_err(|_| TOOLS[1].missing())?;
    let text = String::from_utf8_lossy(&told.stdout);
    let totals = text.lines().find(|l| l.starts_with("totals") && told.status.success());
    let length = totals.and_then(|l| l.split('\t').nth(4)?.parse::<Bytes>().ok());
    let status = format!("no length of {}", archive.display());
    let words = String::from_utf8_lossy(&told.stderr);
    length.map(|n| n + n / 7).ok_or_else(|| super::scene::failed("xz", &status, &words))
}

/// Files and directories in whole blocks, without git's own.
fn below(dir: &Path) -> Bytes {
    let (mut sum, mut left) = (0, vec![dir.to_path_buf()]);
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if entry.file_name() == ".git" {
                continue;
            }
            sum += found.len().max(1).next_multiple_of(BLOCK);
            if found.is_dir() {
                left.push(entry.path());
            }
        }
    }
    sum
}

/// The first that is neither file nor folder nor link, by its path below the copy.
fn strange(copy: &Path) -> Option<String> {
    let mut left = vec![copy.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(entry.path()),
                Ok(kind) if kind.is_file() || kind.is_symlink() => {}
                _ => {
                    let path = entry.path();
                    return Some(path.strip_prefix(copy).unwrap_or(&path).display().to_string());
                }
            }
        }
    }
    None
}

/// The commands that put a copy of the tree into the program's directory. They run as root, who can read the tree, and where
/// it can be seen.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn lay(at: &At<'_>) -> Result<Vec<Words>> {
    let copy = at.own.join(COPY);
    fs::create_dir_all(&copy).map_err(|e| Error::io("creating", &copy, e))?;
    let tree = at.tools.path(TREE);
    let (from, to) = (tree.display().to_string(), copy.display().to_string());
    Ok(vec![match form(tree) {
        Form::Archive => at.command(
            "tar",
            &[
                "-C",
                &to,
                "--strip-components=1",
                "--no-same-owner",
                "--no-same-permissions",
                "-xJf",
                &from,
            ],
        ),
        Form::Git => {
            let own = at.scratch.join("git").display().to_string();
            at.command("sh", &["-c", OF_GIT, "sh", &from, &to, &own])
        }
        Form::Plain => ["cp", "-a", "--no-preserve=ownership", &format!("{from}/."), &to]
            .map(String::from)
            .into(),
    }])
}

/// Writes what git has of a tree (its index), without what was built there. The repository's own settings may name commands
/// (filters of attributes) that would run as root, so git works in another repository on the same objects.
const OF_GIT: &str = "set -e; cd \"$1\"
index=$(realpath \"$(git rev-parse --git-path index)\"); objects=$(realpath \"$(git rev-parse --git-path objects)\")
case $(git rev-parse --show-object-format) in sha256) format=--object-format=sha256 ;; *) format= ;; esac
cd \"$2\"; git init -q --template= $format \"$3\"
for part in \"${index%/*}\"/sharedindex.*; do [ ! -e \"$part\" ] || ln -s \"$part\" \"$3/.git\"; done
export GIT_DIR=\"$3/.git\" GIT_WORK_TREE=\"$2\" GIT_INDEX_FILE=\"$index\" GIT_OBJECT_DIRECTORY=\"$objects\"
exec git checkout-index -a -q";

/// Whether what was built may lie in the copy.
pub(super) fn may_be_built(at: &At<'_>) -> bool {
    form(at.tools.path(TREE)) == Form::Plain
}

/// Makes sure that what was copied is a kernel's source tree; its version.
///
/// # Errors
/// [`Error::Input`] if not, and for a copy with a node of a device: whoever builds the tree could use that.
pub(crate) fn laid(own: &Path, tree: &Path) -> Result<String> {
    let copy = own.join(COPY);
    if let Some(strange) = strange(&copy) {
        return Err(Error::input(
            format!("{} has {strange}, which is no file, folder or link", tree.display()),
            "name a tree without it with --tree PATH",
        ));
    }
    match MARKS.iter().find(|m| !copy.join(m).is_file()) {
        Some(mark) => Err(Error::input(
            format!("{} holds no kernel's source tree: it has no {mark}", tree.display()),
            "name another one with --tree PATH, or use --program text",
        )),
        None => Ok(version(&copy)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(dir: &Path) -> PathBuf {
        let tree = dir.join("small");
        fs::create_dir_all(tree.join(".git/objects")).unwrap();
        fs::write(tree.join("Makefile"), "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 187\n").unwrap();
        fs::write(tree.join("Kconfig"), "").unwrap();
        fs::write(tree.join("big"), [0; 5000]).unwrap();
        fs::write(tree.join(".git/objects/pack"), [0; 9000]).unwrap();
        tree
    }

    #[test]
    fn a_tree_is_known_by_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let tree = small(dir.path());
        assert_eq!(own_tree(&tree).unwrap(), tree.canonicalize().unwrap());
        assert_eq!(version(&tree), "6.1.187");
        // Makefile and Kconfig a block each, two of the large file, and nothing of git's.
        assert_eq!(bytes(&tree).unwrap(), 4 * BLOCK);
        fs::remove_file(tree.join("Kconfig")).unwrap();
        for (path, why) in [
            (tree.clone(), "is no kernel's source tree: it has no Kconfig"),
            (dir.path().join("none"), "--tree: there is no "),
            (tree.join("big"), "is neither a directory nor a .tar.xz"),
        ] {
            let e = own_tree(&path).unwrap_err();
            assert!(e.to_string().contains(why) && e.help().contains("--tree takes"), "{e}");
        }
        assert!(laid(dir.path(), &tree).unwrap_err().to_string().contains("it has no Makefile"));
        let copy = dir.path().join(COPY);
        fs::create_dir_all(copy.join("drivers")).unwrap();
        nix::unistd::mkfifo(&copy.join("drivers/pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let e = laid(dir.path(), &tree).unwrap_err().to_string();
        assert!(e.contains("has drivers/pipe, which is no file"), "{e}");
    }

    #[test]
    fn the_newest_archive_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(newest(dir.path()), None);
        for name in ["6.1.tar.xz", "6.12.tar.xz", "5.10.tar.xz", "7.0.patch.xz"] {
            fs::write(dir.path().join(format!("linux-source-{name}")), "").unwrap();
        }
        let (path, version) = newest(dir.path()).unwrap();
        assert_eq!((path.ends_with("linux-source-6.12.tar.xz"), &*version), (true, "6.12"));
    }

    #[test]
    fn an_archive_that_is_none_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("linux-source-9.9.tar.xz");
        fs::write(&path, "no archive").unwrap();
        if TOOLS[1].file(&[]).is_some() {
            let e = bytes(&path).unwrap_err().to_string();
            assert!(e.contains("xz failed") && e.contains("no length of"), "{e}");
        }
    }
}
