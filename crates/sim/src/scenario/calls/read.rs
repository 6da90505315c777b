//! Reading `[[call]]` and what belongs to it.

use std::collections::BTreeMap;

use iosched_experiment::check_setting;
use iosched_experiment::source::{At, Read, Source};
use iosched_syscalls::{Advice, OpenFlags};
use iosched_types::nearest::did_you_mean;
use iosched_types::units::parse_bytes;
use iosched_types::{Bytes, Diagnostic, IoPrio};
use toml::de::{DeTable, DeValue};

use super::super::read::ms;
use super::{Caller, Calls, MOST_CALLS, Wanted, WantedCall};

/// Keys that only a scenario with calls has.
pub(in super::super) const KEYS: &[&str] =
    &["memory", "filesystem", "sysctl", "queue", "cold", "until_ms", "pause_ms", "file", "task"];
/// What every call may have.
const COMMON: [&str; 5] = ["call", "task", "t_ms", "pause_ms", "times"];
/// Files that are there before.
const MOST_FILES: u64 = 1 << 16;
/// Longest range of a call: more than a machine would keep in memory.
const MOST_LEN: Bytes = 1 << 40;
/// The task of calls that name none.
const MAIN: &str = "main";

/// Each call, with the keys that mean something to it.
const CALLS: &[(&str, &[&str])] = &[
    ("open", &["file", "flags", "as"]),
    ("creat", &["file", "as"]),
    ("close", &["file"]),
    ("read", &["file", "len"]),
    ("pread", &["file", "at", "len", "step"]),
    ("write", &["file", "len"]),
    ("pwrite", &["file", "at", "len", "step"]),
    ("ftruncate", &["file", "len"]),
    ("fallocate", &["file", "at", "len", "step", "keep_size"]),
    ("fadvise", &["file", "at", "len", "advice"]),
    ("fsync", &["file"]),
    ("fdatasync", &["file"]),
    ("sync_file_range", &["file", "at", "len", "step", "wait"]),
    ("syncfs", &["file"]),
    ("sync", &[]),
    ("drop_caches", &[]),
    ("getdents", &["file"]),
    ("copy_file_range", &["file", "to", "len"]),
    ("stat", &["file"]),
    ("utimensat", &["file"]),
    ("unlink", &["file"]),
    ("rename", &["file", "to"]),
    ("symlink", &["file", "to"]),
    ("readlink", &["file"]),
    ("lstat", &["file"]),
    ("mkdir", &["file"]),
    ("rmdir", &["file"]),
    ("mmap", &["file", "len"]),
    ("madvise", &["file", "advice"]),
    ("load", &["file", "at", "step"]),
    ("store", &["file", "at", "step"]),
];

const FLAGS: &[(&str, OpenFlags)] = &[
    ("read", OpenFlags::READ),
    ("write", OpenFlags::WRITE),
    ("create", OpenFlags::CREATE),
    ("exclusive", OpenFlags::EXCLUSIVE),
    ("truncate", OpenFlags::TRUNCATE),
    ("append", OpenFlags::APPEND),
    ("direct", OpenFlags::DIRECT),
    ("sync", OpenFlags::SYNC),
    ("dsync", OpenFlags::DSYNC),
    ("directory", OpenFlags::DIRECTORY),
    ("nofollow", OpenFlags::NOFOLLOW),
];

const ADVICE: &[(&str, Advice)] = &[
    ("normal", Advice::Normal),
    ("sequential", Advice::Sequential),
    ("random", Advice::Random),
    ("willneed", Advice::WillNeed),
    ("dontneed", Advice::DontNeed),
    ("noreuse", Advice::NoReuse),
];

/// What the file says of the machine and its calls.
pub(in super::super) fn calls(src: &Source<'_>, root: &DeTable<'_>, at: &At<'_>) -> Read<Calls> {
    let Some(list) = at.get_ref().as_array() else {
        return Err(src.error(at, "calls are written as [[call]] tables"));
    };
    let Some(first) = list.iter().next() else {
        return Err(src.error(at, "a scenario has at least one call"));
    };
    let mut all = Calls {
        host: iosched_experiment::HostSpec::default(),
        settings: Vec::new(),
        files: Vec::new(),
        cold: false,
        until: 0,
        tasks: Vec::new(),
        calls: Vec::new(),
        place: src.place(first.span()),
    };
    machine(src, root, &mut all)?;
    files(src, root, &mut all)?;
    let mut reader = Reader { src, tasks: tasks(src, root)?, handles: BTreeMap::new(), made: 0 };
    let pause = root.get("pause_ms").map_or(Ok(0), |at| ms(src, at, "pause_ms"))?;
    for at in list.iter() {
        all.calls.push(reader.call(at, pause)?);
    }
    all.tasks = reader.tasks;
    Ok(all)
}

fn machine(src: &Source<'_>, root: &DeTable<'_>, all: &mut Calls) -> Read<()> {
    if let Some(at) = root.get("memory") {
        all.host.read_memory(src, at)?;
    }
    if let Some(at) = root.get("filesystem") {
        all.host.read_filesystem(src, at)?;
    }
    for (key, at) in in_order(src, root, "sysctl")? {
        let value = src.fio_value(at, key.0)?;
        all.host.set_sysctl(key.0, &value).map_err(|m| src.place(key.1).error(m))?;
    }
    for (key, at) in in_order(src, root, "queue")? {
        let value = src.integer(at, key.0)?;
        check_setting(key.0, value).map_err(|e| src.place(key.1).error(e.to_string()))?;
        all.settings.push((key.0.to_string(), value));
    }
    if let Some(at) = root.get("cold") {
        all.cold = src.boolean(at, "cold")?;
    }
    if let Some(at) = root.get("until_ms") {
        all.until = ms(src, at, "until_ms")?;
    }
    Ok(())
}

/// A key with its place, and its value.
type Entry<'t, 'a> = ((&'t str, std::ops::Range<usize>), &'t At<'a>);

/// The entries of a table in the order of the file.
fn in_order<'t, 'a>(
    src: &Source<'a>,
    root: &'t DeTable<'a>,
    name: &str,
) -> Read<Vec<Entry<'t, 'a>>> {
    let Some(at) = root.get(name) else { return Ok(Vec::new()) };
    let table = src.table(at, name)?;
    let mut all: Vec<Entry<'t, 'a>> =
        table.iter().map(|(k, v)| ((k.get_ref().as_ref(), k.span()), v)).collect();
    all.sort_by_key(|((_, span), _)| span.start);
    Ok(all)
}

/// The tables of an array, or none.
fn tables<'t, 'a>(
    src: &Source<'a>,
    root: &'t DeTable<'a>,
    name: &str,
) -> Read<Vec<(&'t At<'a>, &'t DeTable<'a>)>> {
    let Some(at) = root.get(name) else { return Ok(Vec::new()) };
    let Some(list) = at.get_ref().as_array() else {
        return Err(src.error(at, format!("each is written as a [[{name}]] table")));
    };
    list.iter().map(|at| Ok((at, src.table(at, name)?))).collect()
}

fn files(src: &Source<'_>, root: &DeTable<'_>, all: &mut Calls) -> Read<()> {
    let mut made = 0;
    for (at, t) in tables(src, root, "file")? {
        src.known(t, "[[file]]", &["path", "size", "times"])?;
        let Some(name) = t.get("path") else { return Err(src.error(at, "a file has a path")) };
        let path = path(src, name, "path")?;
        let size = t.get("size").map_or(Ok(0), |at| size(src, at, "size", MOST_LEN))?;
        let times = times(src, t)?;
        made += times;
        if made > MOST_FILES {
            return Err(src.error(at, format!("there are at most {MOST_FILES} files")));
        }
        if times > 1 && !path.contains("{}") {
            let d = src.error(name, format!("{times} files of one name"));
            return Err(d.with_help("write {} where their number goes: path = \"x{}\""));
        }
        all.files.extend((0..times).map(|n| (path.replace("{}", &n.to_string()), size)));
    }
    Ok(())
}

fn tasks(src: &Source<'_>, root: &DeTable<'_>) -> Read<Vec<Caller>> {
    let mut all: Vec<Caller> = Vec::new();
    for (at, t) in tables(src, root, "task")? {
        src.known(t, "[[task]]", &["name", "prio", "nice"])?;
        let Some(name) = t.get("name") else { return Err(src.error(at, "a task has a name")) };
        let text = src.string(name, "name")?;
        if all.iter().any(|c| c.name == text) {
            return Err(src.error(name, format!("there are two tasks of the name \"{text}\"")));
        }
        let prio = match t.get("prio") {
            None => IoPrio::default(),
            Some(at) => {
                let word = src.string(at, "prio")?;
                IoPrio::parse(&word).ok_or_else(|| {
                    let d = src.error(at, format!("unknown priority \"{word}\""));
                    d.with_help("rt/0 to rt/7, be/0 to be/7, idle")
                })?
            }
        };
        let nice = t.get("nice").map_or(Ok(0), |at| src.within(at, "nice", -20..=19))?;
        all.push(Caller { name: text, prio, nice: nice as i8, handles: Vec::new() });
    }
    Ok(all)
}

fn times(src: &Source<'_>, t: &DeTable<'_>) -> Read<u64> {
    let most = MOST_CALLS as i64;
    Ok(t.get("times").map_or(Ok(1), |at| src.within(at, "times", 1..=most))? as u64)
}

/// A length or a position: bytes, or text such as `4K`.
fn size(src: &Source<'_>, at: &At<'_>, key: &str, most: Bytes) -> Read<Bytes> {
    let found = match at.get_ref() {
        DeValue::String(s) => parse_bytes(s),
        _ => u64::try_from(src.integer(at, key)?).ok(),
    };
    match found {
        Some(n) if n <= most => Ok(n),
        Some(n) => Err(src.error(at, format!("{key} = {n} bytes is out of range: 0 to {most}"))),
        None => Err(src.error(at, format!("{key} is no size")).with_help("such as 4096 or \"4K\"")),
    }
}

/// A name below the root of the file system.
fn path(src: &Source<'_>, at: &At<'_>, key: &str) -> Read<String> {
    let text = src.string(at, key)?;
    Ok(if text.starts_with("/dev/") { text } else { text.trim_start_matches('/').to_string() })
}

fn word<'w, T: Copy>(
    src: &Source<'_>,
    at: &At<'_>,
    word: &str,
    what: &str,
    known: &'w [(&'w str, T)],
) -> Read<T> {
    known.iter().find(|(name, _)| *name == word).map(|(_, v)| *v).ok_or_else(|| {
        let names = || known.iter().map(|(n, _)| *n);
        let mut help = did_you_mean(word, names());
        if help.is_empty() {
            help = format!("known here: {}", names().collect::<Vec<_>>().join(", "));
        }
        src.error(at, format!("unknown {what} \"{word}\"")).with_help(help)
    })
}

/// What is known while the calls are read one after another.
struct Reader<'s, 'a> {
    src: &'s Source<'a>,
    tasks: Vec<Caller>,
    /// Slots by task and name, and whether the file is mapped.
    handles: BTreeMap<(usize, String), (usize, bool)>,
    made: u64,
}

impl Reader<'_, '_> {
    fn call(&mut self, at: &At<'_>, pause: u64) -> Read<WantedCall> {
        let src = self.src;
        let t = src.table(at, "call")?;
        let Some(name_at) = t.get("call") else {
            src.known(t, "[[call]]", &COMMON)?;
            let d = src.error(at, "a [[call]] says which: call = \"…\"");
            return Err(d.with_help("such as open, pread, write, fsync"));
        };
        let name = src.string(name_at, "call")?;
        let keys = word(src, name_at, &name, "call", CALLS)?;
        let known: Vec<&str> = COMMON.iter().chain(keys).copied().collect();
        src.known(t, &format!("a {name}"), &known)?;
        let times = times(src, t)?;
        self.made += times;
        if self.made > MOST_CALLS {
            return Err(src.error(at, format!("a scenario makes at most {MOST_CALLS} calls")));
        }
        let task = self.task(t)?;
        let what = self.wanted(&name, task, at, t)?;
        let len = t.get("len").map_or(Ok(0), |at| size(src, at, "len", MOST_LEN))?;
        let step = match t.get("step") {
            Some(at) => self.step(at)?,
            None if matches!(what, Wanted::Load { .. } | Wanted::Store { .. }) => 4096,
            None => len as i64,
        };
        let text = |key| t.get(key).and_then(|at| at.get_ref().as_str()).unwrap_or_default();
        let label = match (&what, text("to")) {
            (Wanted::Open { path, .. }, _) if !text("as").is_empty() => {
                format!("{path} as {}", text("as"))
            }
            (Wanted::Advise { .. } | Wanted::AdviseMap { .. }, _) => {
                format!("{} {}", text("file"), text("advice"))
            }
            (_, "") => text("file").to_string(),
            (_, to) => format!("{} to {to}", text("file")),
        };
        Ok(WantedCall {
            task,
            at: t.get("t_ms").map_or(Ok(0), |at| ms(src, at, "t_ms"))?,
            pause: t.get("pause_ms").map_or(Ok(pause), |at| ms(src, at, "pause_ms"))?,
            times,
            step,
            what,
            label: format!("{name} {label}").trim_end().to_string(),
        })
    }

    fn step(&self, at: &At<'_>) -> Read<i64> {
        let back = at.get_ref().as_str().and_then(|s| s.trim().strip_prefix('-'));
        match back {
            Some(text) => {
                let n = parse_bytes(text).filter(|n| *n <= MOST_LEN).ok_or_else(|| {
                    self.src.error(at, "step is no size").with_help("such as \"64K\" or \"-4K\"")
                })?;
                Ok(-(n as i64))
            }
            None => Ok(size(self.src, at, "step", MOST_LEN)? as i64),
        }
    }

    fn task(&mut self, t: &DeTable<'_>) -> Read<usize> {
        let name = t.get("task").map_or(Ok(MAIN.to_string()), |at| self.src.string(at, "task"))?;
        Ok(self.tasks.iter().position(|c| c.name == name).unwrap_or_else(|| {
            self.tasks.push(Caller { name, ..Caller::default() });
            self.tasks.len() - 1
        }))
    }

    fn path_of(&self, at: &At<'_>, t: &DeTable<'_>, key: &str) -> Read<String> {
        match t.get(key) {
            Some(at) => path(self.src, at, key),
            None => Err(self.src.error(at, format!("this call needs \"{key}\""))),
        }
    }

    /// The slot of a file that the task has opened before.
    fn slot(&self, task: usize, at: &At<'_>, t: &DeTable<'_>, key: &str) -> Read<usize> {
        let name = self.path_of(at, t, key)?;
        if let Some((slot, _)) = self.handles.get(&(task, name.clone())) {
            return Ok(*slot);
        }
        let at = t.get(key).unwrap_or(at);
        let caller = &self.tasks[task];
        let d = self.src.error(at, format!("{} has not opened \"{name}\"", caller.name));
        let open = self.handles.keys().filter(|(t, _)| *t == task).map(|(_, n)| n.as_str());
        let help = did_you_mean(&name, open);
        let advice = "put before it: [[call]] call = \"open\" with this file";
        Err(d.with_help(if help.is_empty() { advice.into() } else { help }))
    }

    fn opened(&mut self, task: usize, name: String) -> usize {
        let handles = &mut self.tasks[task].handles;
        handles.push(name.clone());
        let slot = handles.len() - 1;
        self.handles.insert((task, name), (slot, false));
        slot
    }

    fn number(&self, at: &At<'_>, t: &DeTable<'_>, key: &str) -> Read<Bytes> {
        let most = if key == "at" { i64::MAX as Bytes } else { MOST_LEN };
        match t.get(key) {
            Some(at) => size(self.src, at, key, most),
            None => Err(self.src.error(at, format!("this call needs \"{key}\""))),
        }
    }

    fn flag(&self, t: &DeTable<'_>, key: &str) -> Read<bool> {
        t.get(key).map_or(Ok(false), |at| self.src.boolean(at, key))
    }

    fn flags(&self, t: &DeTable<'_>) -> Read<OpenFlags> {
        let Some(at) = t.get("flags") else { return Ok(OpenFlags::READ) };
        let text = self.src.string(at, "flags")?;
        let mut flags = OpenFlags::default();
        for name in text.split([',', '|', ' ']).map(str::trim).filter(|w| !w.is_empty()) {
            flags = flags | word(self.src, at, name, "flag", FLAGS)?;
        }
        Ok(flags)
    }

    fn wanted(&mut self, name: &str, task: usize, at: &At<'_>, t: &DeTable<'_>) -> Read<Wanted> {
        Ok(match name {
            "open" | "creat" => {
                let path = self.path_of(at, t, "file")?;
                let flags = match name {
                    "open" => self.flags(t)?,
                    _ => OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE,
                };
                let known = match t.get("as") {
                    Some(at) => self.src.string(at, "as")?,
                    None => path.clone(),
                };
                Wanted::Open { path, flags, slot: self.opened(task, known) }
            }
            "sync" => Wanted::Sync,
            "drop_caches" => Wanted::DropCaches,
            "stat" => Wanted::Stat { path: self.path_of(at, t, "file")? },
            "lstat" => Wanted::Lstat { path: self.path_of(at, t, "file")? },
            "symlink" => Wanted::Symlink {
                target: match t.get("to") {
                    Some(at) => self.src.string(at, "to")?,
                    None => return Err(self.src.error(at, "this call needs \"to\"")),
                },
                path: self.path_of(at, t, "file")?,
            },
            "readlink" => Wanted::ReadLink { path: self.path_of(at, t, "file")? },
            "utimensat" => Wanted::Touch { path: self.path_of(at, t, "file")? },
            "unlink" => Wanted::Unlink { path: self.path_of(at, t, "file")? },
            "mkdir" => Wanted::Mkdir { path: self.path_of(at, t, "file")? },
            "rmdir" => Wanted::Rmdir { path: self.path_of(at, t, "file")? },
            "rename" => Wanted::Rename {
                from: self.path_of(at, t, "file")?,
                to: self.path_of(at, t, "to")?,
            },
            _ => self.on_open_file(name, self.slot(task, at, t, "file")?, task, at, t)?,
        })
    }

    fn on_open_file(
        &mut self,
        name: &str,
        slot: usize,
        task: usize,
        at: &At<'_>,
        t: &DeTable<'_>,
    ) -> Read<Wanted> {
        let number = |key| self.number(at, t, key);
        let or_zero = |key| if t.contains_key(key) { self.number(at, t, key) } else { Ok(0) };
        Ok(match name {
            "close" => Wanted::Close { slot },
            "read" => Wanted::Read { slot, len: number("len")? },
            "write" => Wanted::Write { slot, len: number("len")? },
            "pread" => Wanted::Pread { slot, at: number("at")?, len: number("len")? },
            "pwrite" => Wanted::Pwrite { slot, at: number("at")?, len: number("len")? },
            "ftruncate" => Wanted::Truncate { slot, len: number("len")? },
            "fallocate" => {
                let keep_size = self.flag(t, "keep_size")?;
                Wanted::Fallocate { slot, at: number("at")?, len: number("len")?, keep_size }
            }
            "fadvise" => {
                let advice = self.advice(at, t, ADVICE)?;
                Wanted::Advise { slot, at: or_zero("at")?, len: or_zero("len")?, advice }
            }
            "fsync" => Wanted::Fsync { slot },
            "fdatasync" => Wanted::Fdatasync { slot },
            "sync_file_range" => {
                let wait = self.flag(t, "wait")?;
                Wanted::SyncRange { slot, at: or_zero("at")?, len: or_zero("len")?, wait }
            }
            "syncfs" => Wanted::SyncFs { slot },
            "getdents" => Wanted::List { slot },
            "copy_file_range" => {
                let to = self.slot(task, at, t, "to")?;
                Wanted::Copy { from: slot, to, len: number("len")? }
            }
            "mmap" => {
                let len = number("len")?;
                let name = self.path_of(at, t, "file")?;
                self.handles.insert((task, name), (slot, true));
                Wanted::Map { slot, len }
            }
            _ => return self.on_map(name, slot, task, at, t),
        })
    }

    fn advice(&self, at: &At<'_>, t: &DeTable<'_>, known: &[(&str, Advice)]) -> Read<Advice> {
        let Some(word_at) = t.get("advice") else {
            return Err(self.src.error(at, "this call needs \"advice\""));
        };
        let text = self.src.string(word_at, "advice")?;
        word(self.src, word_at, &text, "advice", known)
    }

    /// `madvise`, `load` and `store`: the file must be mapped.
    fn on_map(
        &self,
        name: &str,
        slot: usize,
        task: usize,
        at: &At<'_>,
        t: &DeTable<'_>,
    ) -> Read<Wanted> {
        let file = self.path_of(at, t, "file")?;
        let mapped = self.handles.get(&(task, file.clone())).is_some_and(|(_, mapped)| *mapped);
        if !mapped {
            let d: Diagnostic = self.src.error(at, format!("\"{file}\" is not mapped"));
            return Err(d.with_help("put before it: [[call]] call = \"mmap\" with this file"));
        }
        if name == "madvise" {
            // Those of a map are the first three.
            return Ok(Wanted::AdviseMap { slot, advice: self.advice(at, t, &ADVICE[..3])? });
        }
        let at = self.number(at, t, "at")?;
        Ok(if name == "load" { Wanted::Load { slot, at } } else { Wanted::Store { slot, at } })
    }
}
