//! A start-up workload: how long a command takes to start, cold, while others read and write.

use iosched_types::units::{SEC, parse_bytes};
use iosched_types::{Bytes, Nanos};
use iosched_workloads::programs::{Access, Mix};

use crate::source::{At, Read, Source};

/// Longest limit: an hour.
const MAX_LIMIT: f64 = 3600.0;
/// Most idle starts before a measured one.
const MAX_IDLE: i64 = 100;

/// What is started, and under which load.
#[derive(Clone, Debug, PartialEq)]
pub struct Startup {
    /// Program and arguments. The program should start, do nothing and end.
    pub command: Vec<String>,
    /// What else the command needs in its small root: programs (with their libraries), files, folders.
    pub files: Vec<String>,
    /// The load.
    pub load: Mix,
    /// After this long the start counts as "longer" and is given up.
    pub limit: Nanos,
    /// Time for the load to get going.
    pub settle: Nanos,
    /// Size of the file of each reader and writer.
    pub file_bytes: Bytes,
    /// Rate of each writer in KiB/s, as the S suite limits them on disks; `None` for no limit.
    pub writer_kib: Option<u64>,
    /// Starts without load before each measured one; their median is the idle baseline.
    pub idle: u32,
}

impl Startup {
    /// A command under a load, the rest as in the S suite.
    #[must_use]
    pub fn new(command: Vec<String>, load: Mix) -> Startup {
        // A reader that comes to the end of its file goes on in the page cache. It is then no load any more.
        let file_bytes = if load.access == Access::Random { 256 << 20 } else { 1 << 30 };
        Startup {
            command,
            files: Vec::new(),
            load,
            limit: 60 * SEC,
            settle: SEC * 3 / 2,
            file_bytes,
            writer_kib: Some(4000),
            idle: 3,
        }
    }

    /// The name in tables where the experiment gives none: `bash 10r-seq`.
    #[must_use]
    pub fn title(&self) -> String {
        let program = self.command.first().map_or("", String::as_str);
        format!("{} {}", program.rsplit('/').next().unwrap_or(program), self.load)
    }

    /// Room that the load's files take.
    #[must_use]
    pub fn load_bytes(&self) -> Bytes {
        if self.load.access == Access::Raw {
            return 0;
        }
        u64::from(self.load.readers + self.load.writers) * self.file_bytes
    }
}

const KEYS: &[&str] =
    &["command", "load", "files", "limit", "settle", "file_size", "writer_rate", "idle"];

/// Reads the table `startup` of a workload.
pub(crate) fn read(src: &Source, at: &At) -> Read<Startup> {
    let table = src.table(at, "startup")?;
    src.known(table, "startup", KEYS)?;
    let Some(command) = table.get("command") else {
        let d = src.error(at, "startup needs a command");
        return Err(d.with_help("such as startup = { command = \"bash\", load = \"10r-seq\" }"));
    };
    let command = words(src, command, "command")?;
    let load = match table.get("load") {
        None => Mix { readers: 0, writers: 0, access: Access::Sequential },
        Some(at) => {
            let text = src.string(at, "load")?;
            Mix::parse(&text).ok_or_else(|| {
                let d = src.error(at, format!("\"{text}\" is no load"));
                if Mix::is_too_large(&text) {
                    return d.with_help(Mix::BOUNDS);
                }
                d.with_help(
                    "readers and writers: 0r, 10r-seq, 10r-rand, 5r5w-seq, 5r5w-rand, 10r-raw",
                )
            })?
        }
    };
    let mut out = Startup::new(command, load);
    if let Some(at) = table.get("files") {
        for at in src.list(at) {
            let file = src.string(at, "files")?;
            if !file.starts_with('/') {
                return Err(src.error(at, "files are named by their full path"));
            }
            out.files.push(file);
        }
    }
    for (key, to) in [("limit", &mut out.limit), ("settle", &mut out.settle)] {
        if let Some(at) = table.get(key) {
            let s = src.number(at, key)?;
            if !(0.001..=MAX_LIMIT).contains(&s) {
                let message = format!("{key} = {s} is out of range: 0.001 to {MAX_LIMIT} seconds");
                return Err(src.error(at, message));
            }
            *to = (s * SEC as f64) as Nanos;
        }
    }
    if let Some(at) = table.get("file_size") {
        let text = src.fio_value(at, "file_size")?;
        out.file_bytes = parse_bytes(&text).filter(|b| *b >= 1 << 20).ok_or_else(|| {
            let d = src.error(at, format!("\"{text}\" is no size of a file"));
            d.with_help("1MiB or more, such as 512MiB")
        })?;
    }
    if let Some(at) = table.get("writer_rate") {
        let kib = src.within(at, "writer_rate", 0..=i64::from(u32::MAX))?;
        out.writer_kib = (kib > 0).then_some(kib.unsigned_abs());
    }
    if let Some(at) = table.get("idle") {
        out.idle = src.within(at, "idle", 1..=MAX_IDLE)? as u32;
    }
    Ok(out)
}

/// A command: words separated by spaces, or a list of words.
fn words(src: &Source, at: &At, key: &str) -> Read<Vec<String>> {
    if at.get_ref().as_array().is_none() {
        let text = src.string(at, key)?;
        return Ok(text.split_whitespace().map(String::from).collect());
    }
    let words: Vec<String> =
        src.list(at).into_iter().map(|a| src.string(a, key)).collect::<Read<_>>()?;
    if words.is_empty() {
        return Err(src.error(at, format!("{key} is empty")));
    }
    Ok(words)
}
