//! The last look at a job file before fio gets it. The file must name only the checked target, and no option by which
//! fio would write elsewhere or run other programs.

use std::path::{Component, Path};

use crate::error::{Error, Result};

/// Options by which fio writes to other files, runs programs, or loads code.
const FORBIDDEN: &[&str] = &[
    "aux_path",
    "directory",
    "exec_postrun",
    "exec_prerun",
    "file_service_type_script",
    "filename_format",
    "ioscheduler",
    "merge_blktrace_file",
    "opendir",
    "unlink",
    "unlink_each_loop",
    "write_bw_log",
    "write_hist_log",
    "write_iolog",
    "write_iops_log",
    "write_lat_log",
];

/// What a job file may name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bounds<'a> {
    /// These files and devices.
    Files(&'a [String]),
    /// Files in a directory of ours.
    Directory(&'a str),
}

/// Checks a job file of ours. It may name only what lies in its bounds.
///
/// # Errors
/// [`Error::Input`] with the line that fio must not get.
pub(crate) fn check(text: &str, bounds: Bounds<'_>) -> Result<()> {
    let ours = |name: &str| match bounds {
        Bounds::Files(files) => files.iter().any(|f| f == name),
        Bounds::Directory(_) => below(name),
    };
    let directory = |value: &str| matches!(bounds, Bounds::Directory(d) if d == value);
    if matches!(bounds, Bounds::Directory(_)) && !text.starts_with("[global]\ndirectory=") {
        return Err(Error::input("a job file without its directory", "report this"));
    }
    let refuse = |line: &str, why: &str| {
        Err(Error::input(
            format!("a live run must not give fio the line \"{line}\": {why}"),
            "leave it out of the job",
        ))
    };
    let redirected = text.lines().any(|l| l.strip_prefix("replay_redirect=").is_some_and(ours));
    let mut named = false;
    for line in text.lines() {
        // fio runs text in backquotes, replaces environment variables, and lets a shell compute where it sees its own
        // words for sizes.
        if line.chars().any(|c| c.is_control() || matches!(c, '`' | '$')) {
            return refuse(line, "fio would replace a part of it");
        }
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['[', '#', ';']) {
            continue;
        }
        let (key, value) = bare.split_once('=').unwrap_or((bare, ""));
        let (key, value) = (key.trim(), value.trim());
        match key {
            // Several files of a job are the one target several times.
            "filename" if value.split(':').all(ours) => named = true,
            "filename" => return refuse(line, "it is not the file that was checked"),
            _ if key.split_whitespace().count() != 1 => return refuse(line, "it is no option"),
            // A log names the devices that it was taken from.
            "read_iolog" if !redirected => return refuse(line, "it names devices of its own"),
            "replay_redirect" if !ours(value) => {
                return refuse(line, "it is not the file that was checked");
            }
            "directory" if directory(value) => {}
            "unlink" if matches!(bounds, Bounds::Directory(_)) => {}
            "ioengine" if value.contains(['/', ':']) => return refuse(line, "it loads code"),
            _ if FORBIDDEN.contains(&key) => {
                return refuse(line, "it leads beyond the file that was checked");
            }
            _ => {}
        }
    }
    if named { Ok(()) } else { refuse("", "it names no file") }
}

/// Whether a name stays below the directory that it is used in.
fn below(name: &str) -> bool {
    let plain = |c: Component<'_>| matches!(c, Component::Normal(_));
    !name.is_empty() && Path::new(name).components().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "[global]\nfilename=/proc/self/fd/7\nallow_file_create=0\n\n[a b]\nrw=write\n";

    #[test]
    fn one_file_and_nothing_beside_it() {
        let check = |text: &str| check(text, Bounds::Files(&["/proc/self/fd/7".to_string()]));
        check(HEAD).unwrap();
        for line in [
            "filename=/dev/sda",
            "filename=/proc/self/fd/7:/dev/sda",
            "filename=/proc/self/fd/70",
            " filename = /dev/sda",
            "directory=/etc",
            "exec_prerun=rm x",
            "write_bw_log=/etc/passwd",
            "ioengine=external:/tmp/x.so",
            "ioengine=/tmp/x.so",
            "bs=`id`",
            "size=$SIZE",
            "size=${SIZE}",
            "include /etc/x.fio",
            "unlink=1",
            "read_iolog=/tmp/log",
            "replay_redirect=/dev/sda",
        ] {
            let e = check(&format!("{HEAD}{line}\n")).unwrap_err();
            assert!(e.to_string().contains(line.trim()), "{line}: {e}");
        }
        let replay = "read_iolog=log\nreplay_redirect=/proc/self/fd/7\n";
        check(&format!("{HEAD}{replay}")).unwrap();
        assert!(check("[a]\nrw=read\n").is_err(), "fio would make a file of its own");
        assert!(check(&HEAD.replace("rw=write", "rw=write\u{0}")).is_err());
    }

    #[test]
    fn files_below_one_directory_and_nothing_beside_it() {
        const HEAD: &str = "[global]\ndirectory=/proc/self/fd/7\n\n[a]\nfilename=a.0.0:sub/b\n";
        let check = |text: &str| check(text, Bounds::Directory("/proc/self/fd/7"));
        check(HEAD).unwrap();
        check(&format!("{HEAD}unlink=1\noverwrite=1\n")).unwrap();
        for line in [
            "filename=/dev/sda",
            "filename=a:../b",
            "filename=a:",
            "filename=./a",
            "directory=/etc",
            "directory=/proc/self/fd/70",
            "opendir=/etc",
            "exec_prerun=rm x",
            "read_iolog=/tmp/log",
        ] {
            let e = check(&format!("{HEAD}{line}\n")).unwrap_err();
            assert!(e.to_string().contains(line.trim()), "{line}: {e}");
        }
        assert!(check("[a]\nfilename=b\n").is_err(), "it would be the working directory");
    }
}
