//! One line of a log: the task, the time, the call and its answer.

use std::borrow::Cow;

use iosched_syscalls::Errno;
use iosched_types::Nanos;
use iosched_types::units::{SEC, US};

use super::args;

/// A number that the kernel uses only internally: the call was restarted after a signal.
pub(super) const INTERNAL: Errno = Errno(512);

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) enum Said<'a> {
    /// A call with its result.
    Whole { name: &'a str, args: Cow<'a, str>, end: End },
    /// A call that another line ends.
    Begun { name: &'a str, args: &'a str },
    /// The end of a call that another line begins.
    Resumed { name: &'a str, args: &'a str, end: End },
    /// The task is gone.
    Gone,
    /// A signal, or something that strace says of itself.
    Nothing,
    /// Another architecture's calls from here on.
    Architecture(&'a str),
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct End {
    /// `None` where strace prints `?`.
    pub(super) ret: Option<Result<i64, Errno>>,
    /// Time inside of the call (`-T`).
    pub(super) took: Option<Nanos>,
    /// `?` without a reason: the task was killed inside of the call.
    pub(super) killed: bool,
}

/// A line.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'a> {
    pub(super) pid: Option<u32>,
    pub(super) stamp: Option<Stamp>,
    /// The stamp has whole seconds only (`-t`).
    pub(super) coarse: bool,
    pub(super) said: Said<'a>,
}

/// When.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stamp {
    /// Since 1970 (`-ttt`).
    Absolute(Nanos),
    /// Time of day (`-t`, `-tt`).
    Day(Nanos),
    /// Since the line before (`-r`).
    Relative(Nanos),
}

/// What is wrong with a line: where (in bytes), and what was expected.
#[derive(Debug, PartialEq)]
pub(super) struct Bad {
    pub(super) at: usize,
    pub(super) message: &'static str,
}

fn bad<T>(line: &str, rest: &str, message: &'static str) -> Result<T, Bad> {
    Err(Bad { at: line.len() - rest.len(), message })
}

/// Reads a line.
pub(super) fn read(line: &str) -> Result<Line<'_>, Bad> {
    // As it stands in what people quote: indented.
    let (pid, rest) = pid(line.trim_start_matches([' ', '\t', '\u{feff}']));
    let (stamp, coarse, rest) = stamp(rest);
    // With -r beside another stamp.
    let rest = match rest.strip_prefix("(+").and_then(|r| r.split_once(')')) {
        Some((since, after)) if seconds(since.trim()).is_some() => after.trim_start(),
        _ => rest,
    };
    let said = said(line, numbers(rest))?;
    Ok(Line { pid, stamp, coarse, said })
}

/// What stands before a call with `-n` (its number) and `-i` (the place in the program), both in brackets.
fn numbers(rest: &str) -> &str {
    let inner = rest.strip_prefix('[').and_then(|inner| inner.split_once("] "));
    match inner {
        Some((n, after)) if n.trim_start().bytes().all(|b| b.is_ascii_hexdigit() || b == b'?') => {
            numbers(after)
        }
        _ => rest,
    }
}

/// `1234  ` (of `-o`) or `[pid  1234] `.
pub(super) fn pid(line: &str) -> (Option<u32>, &str) {
    let (digits, after) = match line.strip_prefix("[pid") {
        Some(inner) => match inner.split_once(']') {
            Some((n, after)) => (n.trim(), after),
            None => return (None, line),
        },
        None => {
            let end = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
            (&line[..end], &line[end..])
        }
    };
    // With --decode-pids=comm the name stands after it.
    let digits = digits.split('<').next().unwrap_or(digits);
    let after = match after.strip_prefix('<').and_then(|a| a.split_once('>')) {
        Some((_, after)) => after,
        None => after,
    };
    match digits.parse() {
        Ok(n) if after.starts_with([' ', '\t']) => (Some(n), after.trim_start()),
        _ => (None, line),
    }
}

/// The time of a line, whether it has whole seconds only, and what stands behind it.
fn stamp(rest: &str) -> (Option<Stamp>, bool, &str) {
    let trimmed = rest.trim_start();
    let (word, after) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
    let stamp = match word.split(':').collect::<Vec<_>>()[..] {
        [h, m, s] => day(h, m, s).map(Stamp::Day),
        [s] if s.contains('.') => seconds(s).map(|n| match n {
            // No log is older than 1973.
            n if n > 100_000_000 * SEC => Stamp::Absolute(n),
            n => Stamp::Relative(n),
        }),
        _ => None,
    };
    match stamp {
        Some(s) => (Some(s), !word.contains('.'), after.trim_start()),
        None => (None, false, trimmed),
    }
}

fn day(h: &str, m: &str, s: &str) -> Option<Nanos> {
    let (h, m): (u64, u64) = (h.parse().ok()?, m.parse().ok()?);
    let s = if s.contains('.') { seconds(s)? } else { s.parse::<u64>().ok()?.checked_mul(SEC)? };
    (h < 24 && m < 60 && s < 61 * SEC).then(|| (h * 3600 + m * 60) * SEC + s)
}

/// `12.345678` in nanoseconds.
fn seconds(text: &str) -> Option<Nanos> {
    let (whole, part) = text.split_once('.')?;
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if part.is_empty() || part.len() > 9 || !digits(whole) || !digits(part) {
        return None;
    }
    let part: u64 = part.parse::<u64>().ok()? * 10u64.pow(9 - part.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(SEC)?.checked_add(part)
}

fn said<'a>(line: &'a str, rest: &'a str) -> Result<Said<'a>, Bad> {
    if let Some(gone) = rest.strip_prefix("+++ ") {
        return Ok(if gone.contains("superseded") { Said::Nothing } else { Said::Gone });
    }
    // `-k` prints the stack of a call behind it, a function a line.
    let aside = ["--- ", "#", "> ", "$ ", "System call usage summary for "]
        .iter()
        .any(|sign| rest.starts_with(sign));
    // strace before 4.7 says no name: `Process 7 attached - interrupt to quit`.
    let of_process = |r: &str| {
        let (n, what) = r.split_once(' ').unwrap_or((r, ""));
        n.parse::<u32>().is_ok()
            && ["attached", "detached", "suspended", "resumed"].iter().any(|w| what.starts_with(w))
    };
    let aside = aside || rest.strip_prefix("Process ").is_some_and(of_process);
    if rest.is_empty() || aside {
        return Ok(Said::Nothing);
    }
    if let Some(own) = rest.strip_prefix("strace: ").or_else(|| rest.strip_prefix("[ ")) {
        return Ok(match own.split_once("runs in ").filter(|_| own.contains("mode")) {
            Some((_, mode)) => Said::Architecture(mode.trim_end_matches([' ', ']', '.'])),
            None => Said::Nothing,
        });
    }
    if let Some(resumed) = rest.strip_prefix("<... ") {
        let Some((name, tail)) = resumed.split_once(" resumed>") else {
            return bad(line, resumed, "the name of a call and \" resumed>\" are expected here");
        };
        let tail = tail.strip_prefix(' ').unwrap_or(tail);
        return match args::closing(tail) {
            Some(close) => Ok(Said::Resumed {
                name,
                args: &tail[..close],
                end: end(line, &tail[close + 1..])?,
            }),
            None => bad(line, tail, "the end of the call is missing: the line is cut"),
        };
    }
    let open = rest.find('(').unwrap_or(0);
    let name = &rest[..open];
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '?';
    if name.is_empty() || !name.chars().all(plain) {
        return bad(line, rest, "a system call is expected here: name(arguments) = result");
    }
    let inner = &rest[open + 1..];
    let inner_end = inner.trim_end();
    let open_end = ["<unfinished ...>", "<detached ...>"];
    if let Some(begun) = open_end.iter().find_map(|e| inner_end.strip_suffix(e)) {
        return Ok(Said::Begun { name, args: begun.trim_end() });
    }
    // exit() does not come back: exit_group(0) = ?
    match args::closing(inner) {
        Some(close) => {
            let end = end(line, &inner[close + 1..])?;
            Ok(Said::Whole { name, args: Cow::Borrowed(&inner[..close]), end })
        }
        None => bad(line, inner, "the call's arguments do not end: the line is cut"),
    }
}

/// `= 3`, `= -1 ENOENT (No such file)`, `= ?`, and `<0.000123>` after it.
fn end<'a>(line: &'a str, rest: &'a str) -> Result<End, Bad> {
    let Some(value) = rest.trim_start().strip_prefix('=') else {
        return bad(line, rest, "\"= result\" is expected after the arguments");
    };
    let value = value.trim();
    let took = value.rfind('<').and_then(|at| seconds(value[at + 1..].strip_suffix('>')?));
    let (word, after) = value.split_once(' ').unwrap_or((value, ""));
    if word == "?" {
        let killed = after.is_empty() || after.starts_with('<');
        return Ok(End { ret: None, took, killed });
    }
    let Some(n) = args::number(word) else {
        return bad(line, value, "a number or \"?\" is expected as the result");
    };
    let errno = after.split_whitespace().next().filter(|w| w.starts_with('E'));
    let ret = match (n, errno) {
        (-1, Some(name)) => Err(Errno::from_name(name).unwrap_or(INTERNAL)),
        _ => Ok(n),
    };
    Ok(End { ret: Some(ret), took: took.map(|t| t / US * US), killed: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(line: &str) -> Line<'_> {
        read(line).unwrap_or_else(|b| panic!("{line}: {b:?}"))
    }

    #[test]
    fn who_and_when_come_in_several_forms() {
        let l = ok("20104 1795436806.743947 brk(NULL)       = 0x561d3736b000 <0.000009>");
        assert_eq!(l.pid, Some(20104));
        assert_eq!(l.stamp, Some(Stamp::Absolute(1_795_436_806_743_947_000)));
        let Said::Whole { name: "brk", end, .. } = l.said else { panic!("{l:?}") };
        assert_eq!((end.ret, end.took), (Some(Ok(0x561d_3736_b000)), Some(9_000)));
        let l = ok("20125      0.000041 read(5, \"abcdefgh\", 100) = 8");
        assert_eq!((l.pid, l.stamp), (Some(20125), Some(Stamp::Relative(41_000))));
        let l = ok("[pid 20117] 12:26:46.926917 wait4(-1,  <unfinished ...>");
        assert_eq!(l.stamp, Some(Stamp::Day(44_806_926_917_000)));
        assert_eq!(l.said, Said::Begun { name: "wait4", args: "-1," });
        let l = ok("7 1795632364.194853 [  12] [00007fc97a276c47] brk(NULL) = 0x559439af6000");
        assert!(matches!(l.said, Said::Whole { name: "brk", .. }), "{l:?}");
        let mode = ok("[ Process PID=7 runs in 32 bit mode. ]").said;
        assert_eq!(mode, Said::Architecture("32 bit mode"));
        assert_eq!(ok("close(3) = 0").pid, None);
        assert_eq!(ok("1234<fio> close(3) = 0").pid, Some(1234));
        assert_eq!(ok("12:26:46 close(3) = 0").stamp, Some(Stamp::Day(44_806 * SEC)));
        assert!(ok("12:26:46 close(3) = 0").coarse && !ok("12:26:46.0 close(3) = 0").coarse);
    }

    #[test]
    fn ends_are_numbers_errors_or_unknown() {
        let ret = |l| match ok(l).said {
            Said::Whole { end, .. } | Said::Resumed { end, .. } => end.ret,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            ret("access(\"/x\", R_OK) = -1 ENOENT (No such file or directory) <0.1>"),
            Some(Err(Errno::ENOENT))
        );
        assert_eq!(ret("exit_group(0) = ?"), None);
        assert_eq!(ret("<... wait4 resumed>NULL, 0, NULL) = 20118"), Some(Ok(20118)));
        assert_eq!(ret("lseek(3, -1, SEEK_CUR) = -1"), Some(Ok(-1)));
        assert_eq!(ret("openat(AT_FDCWD</tmp>, \"t\", O_RDONLY) = 5</tmp/t>"), Some(Ok(5)));
    }

    #[test]
    fn what_is_no_call_is_told_with_its_place() {
        let e = read("7991  hello world").unwrap_err();
        assert_eq!((e.at, e.message.contains("a system call is expected")), (6, true));
        assert!(read("7991  read(3, \"ab").unwrap_err().message.contains("is cut"));
        assert!(read("7991  read(3, \"ab\", 2)").unwrap_err().message.contains("= result"));
        assert!(read("7991  read(3) = x").unwrap_err().message.contains("a number or"));
        assert_eq!(ok("+++ exited with 0 +++").said, Said::Gone);
        let stack = " > /usr/lib/libc.so.6(fsync+0x14) [0xf9a24]";
        assert_eq!((ok(stack).said, ok(stack).pid), (Said::Nothing, None));
        assert_eq!(ok("--- SIGCHLD {si_signo=SIGCHLD} ---").said, Said::Nothing);
        let arch = ok("strace: [ Process PID=7 runs in 32 bit mode. ]");
        assert_eq!(arch.said, Said::Architecture("32 bit mode"));
    }
}
