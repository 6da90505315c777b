//! Loads that are no fio jobs: programs over system calls, and logs of them.

use std::fmt;
use std::sync::Arc;

use iosched_syscalls::Birth;
use iosched_types::units::show_bytes;
use iosched_types::{Bytes, Diagnostic};
use iosched_workloads::programs::{Descriptor, Params};
use iosched_workloads::strace::{self, Log, Options, Replay};

use crate::place::{Place, Placed};
use crate::source::{At, Read, Source};

/// What tasks do that make system calls: a program, or a log that is played again.
pub trait Load: fmt::Debug {
    /// Bytes that its files have at least at some time, in the simulator and live: no disk below that will do.
    fn room(&self) -> Bytes;

    /// What it is called where it does not fit.
    fn title(&self) -> &'static str;

    /// Where they do not fit: which files, as words behind their bytes, and advice.
    fn too_large(&self) -> (String, String);

    /// A fresh start.
    fn start(&self) -> Started;

    /// What the user should know of it beside its figures: code, message, advice.
    fn remarks(&self, replay: Option<&Replay>) -> Vec<(&'static str, String, String)>;

    /// The program, if it is one.
    fn program(&self) -> Option<&ProgramWork> {
        None
    }
}

/// A load on its way: its phases, and what it has to say afterwards.
#[derive(Debug)]
pub struct Started {
    /// What is there before, if anything has to be.
    pub prepare: Option<Birth>,
    /// The measured part.
    pub run: Birth,
    /// The log that is played.
    pub replay: Option<Arc<Replay>>,
}

/// What a live run of a program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramKind {
    /// The real program of that name where there is one, such as sqlite3.
    #[default]
    Real,
    /// The workload's own text with real system calls, as the simulator runs it.
    Text,
}

impl ProgramKind {
    /// The kinds by name.
    pub const NAMES: [(&'static str, ProgramKind); 2] =
        [("real", ProgramKind::Real), ("text", ProgramKind::Text)];

    /// The kind of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<ProgramKind> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, k)| *k)
    }
}

/// A program with its parameters.
#[derive(Clone)]
pub struct ProgramWork {
    /// Which.
    pub program: &'static Descriptor,
    /// With what.
    pub params: Params,
    /// What a live run of it runs.
    pub live: ProgramKind,
}

impl ProgramWork {
    /// A program of which a live run takes the real one, where there is one.
    #[must_use]
    pub fn new(program: &'static Descriptor, params: Params) -> ProgramWork {
        ProgramWork { program, params, live: ProgramKind::default() }
    }
}

impl fmt::Debug for ProgramWork {
    /// What results depend on: stored runs are told apart by it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.program.name, self.params, self.live)
    }
}

impl Load for ProgramWork {
    fn room(&self) -> Bytes {
        (self.program.room)(&self.params)
    }

    fn title(&self) -> &'static str {
        self.program.name
    }

    fn too_large(&self) -> (String, String) {
        let help = format!("give it less to do: iosched show workload {}", self.program.name);
        ("with these parameters".into(), help)
    }

    fn start(&self) -> Started {
        Started {
            prepare: self.program.preparation(&self.params),
            run: self.program.measured(&self.params),
            replay: None,
        }
    }

    fn remarks(&self, _replay: Option<&Replay>) -> Vec<(&'static str, String, String)> {
        let (program, params) = (self.program, &self.params);
        let lengths = params.lengths(program).join(", ");
        let others = params.differing(program, program.only_real).join(", ");
        let remarks = [
            ("length", lengths, "the default is the usual length".to_string()),
            (ONLY_REAL, others, "only a live run of the real program heeds it".into()),
        ];
        remarks.into_iter().filter(|r| !r.1.is_empty()).collect()
    }

    fn program(&self) -> Option<&ProgramWork> {
        Some(self)
    }
}

/// A log of system calls, played again.
#[derive(Clone)]
pub struct SyscallLog {
    /// The log.
    pub log: Arc<Log>,
    /// Stands for its text.
    pub digest: u64,
    /// A log that is played before it, not measured: what it leaves is there.
    pub before: Option<Arc<Log>>,
}

impl fmt::Debug for SyscallLog {
    /// What results depend on: stored runs are told apart by it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.before.as_ref().map_or(0, |b| b.calls);
        write!(f, "log {:016x} paced {} after {before} calls", self.digest, self.log.paced)
    }
}

impl Load for SyscallLog {
    fn room(&self) -> Bytes {
        self.log.files.iter().fold(0, |sum, f| sum.saturating_add(f.1))
    }

    fn title(&self) -> &'static str {
        "the files before the log"
    }

    fn too_large(&self) -> (String, String) {
        // A log may name a place far behind in a file: what lies before it has to be there.
        let largest = self.log.files.iter().max_by_key(|(_, len)| *len);
        let words = largest.map_or_else(String::new, |(name, len)| {
            format!("(the largest, {name}, {})", show_bytes(*len as f64))
        });
        (words, "take a larger device; a log does not tell where a file has holes".into())
    }

    fn start(&self) -> Started {
        let replay = Replay::new(self.log.clone());
        let first = self.before.as_ref().map(|log| Replay::new(log.clone()).measured());
        Started {
            prepare: Some(replay.preparation(first)),
            run: replay.measured(),
            replay: Some(replay),
        }
    }

    fn remarks(&self, replay: Option<&Replay>) -> Vec<(&'static str, String, String)> {
        let log = &self.log;
        let mut out = Vec::new();
        for w in &log.warnings {
            out.push(("log", w.clone(), String::new()));
        }
        if !log.unknown.is_empty() {
            let message = format!("calls left out, not simulated: {}", Log::list(&log.unknown));
            let advice = "unknown = \"refuse\" refuses such a log".to_string();
            out.push(("calls-left-out", message, advice));
        }
        if !log.elsewhere.is_empty() {
            let list = Log::list(&log.elsewhere);
            let message = format!("calls on what is no file of the log: {list}");
            out.push(("calls-elsewhere", message, "they cost a call and no more".into()));
        }
        if let Some((n, line)) = replay.and_then(Replay::answered_otherwise) {
            let message =
                format!("{n} of {} calls were answered otherwise than in the log", log.replayed());
            let advice = format!(
                "the first is in line {line}: files or an order that the log does not show"
            );
            out.push(("answers-differ", message, advice));
        }
        out
    }
}

/// The remark that a parameter is heeded by the real program alone.
pub const ONLY_REAL: &str = "only-real";

/// The figures that the original of a program prints as n/a right behind this one.
pub fn absent_behind(program: &str, figure: &str) -> impl Iterator<Item = &'static str> {
    let absent = Descriptor::find(program).map_or(&[][..], |d| d.absent);
    absent.iter().filter(move |(_, before)| *before == figure).map(|(name, _)| *name)
}

/// A program as an experiment names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRef {
    /// Its name, or its command line.
    pub line: String,
    /// Parameters by name.
    pub params: Vec<Placed<(String, String)>>,
}

impl ProgramRef {
    /// A program, if the first word is the name of one.
    #[must_use]
    pub fn of_line(line: &str) -> Option<ProgramRef> {
        let first = line.split_whitespace().next()?;
        Descriptor::find(first).ok()?;
        Some(ProgramRef { line: line.into(), params: Vec::new() })
    }

    /// Gives the parameters that set the length of the run the values of a quick look, but for those that are set.
    /// Whether there was one.
    pub fn shorten(&mut self, place: &Place) -> bool {
        let Ok((program, set)) = Descriptor::words(&self.line) else { return false };
        for (name, value) in program.quick {
            let here = |n: &str| n == *name;
            if !set.iter().any(|(n, _)| here(n)) && !self.params.iter().any(|p| here(&p.value.0)) {
                let value = (name.to_string(), value.to_string());
                self.params.push(Placed::new(value, place.clone()));
            }
        }
        !program.quick.is_empty()
    }

    /// Looks program and parameters up.
    pub(crate) fn resolve(
        &self,
        live: ProgramKind,
        place: &Place,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<ProgramWork, Diagnostic> {
        let at = |d: Diagnostic| place.error(d.message).with_help(d.help);
        let (program, mut set) = Descriptor::words(&self.line).map_err(at)?;
        set.extend(self.params.iter().map(|p| p.value.clone()));
        let params = Params::of(program, &set).map_err(|message| {
            // What is wrong with one alone is told at its own place.
            let alone = |p: &&Placed<(String, String)>| {
                let own = Params::of(program, std::slice::from_ref(&p.value));
                own.is_err_and(|m| m == message)
            };
            let place = self.params.iter().find(alone).map_or(place, |p| &p.place);
            place.error(message)
        })?;
        let params = params.with_files(program, read)?;
        Ok(ProgramWork { program, params, live })
    }
}

/// A log as an experiment names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRef {
    /// The file.
    pub file: String,
    /// How it is read.
    pub options: Options,
}

impl TraceRef {
    /// Whether a file is a log of system calls: by its name, or by its first lines.
    #[must_use]
    pub fn is_log_of(file: &str, read: &dyn Fn(&str) -> Result<String, String>) -> bool {
        let other = [".fio", ".toml"].iter().any(|end| file.ends_with(end));
        Self::is_log(file) || !other && read(file).is_ok_and(|text| strace::recognise(&text))
    }

    /// Whether a file is a log of system calls, by its name.
    #[must_use]
    pub fn is_log(file: &str) -> bool {
        let plain = file.strip_suffix(".gz").unwrap_or(file);
        plain.ends_with(".strace")
    }

    /// Sets what an experiment file sets with a key beside `trace`. `None`: there is no such key.
    ///
    /// # Errors
    /// What the key takes.
    pub fn set(&mut self, key: &str, value: &str) -> Option<Result<(), &'static str>> {
        match (key, value) {
            ("unknown", "refuse" | "skip") => self.options.refuse_unknown = value == "refuse",
            ("unknown", _) => return Some(Err("unknown is skip or refuse")),
            ("think", "true" | "false") => self.options.think = value == "true",
            ("think", _) => return Some(Err("think is true or false")),
            _ => return None,
        }
        Some(Ok(()))
    }

    /// Reads it.
    pub(crate) fn resolve(
        &self,
        place: &Place,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<SyscallLog, Diagnostic> {
        let text = read(&self.file)
            .map_err(|x| place.error(format!("cannot read log \"{}\": {x}", self.file)))?;
        let log = strace::parse(&self.file, &text, self.options)?;
        if !log.has_io() {
            let mut message = String::from("no I/O of this log can be replayed");
            for (what, calls) in [("on no file", &log.elsewhere), ("not simulated", &log.unknown)] {
                if !calls.is_empty() {
                    message.push_str(&format!("; {what}: {}", Log::list(calls)));
                }
            }
            let paths = "descriptors that were open before the log need their paths: \
                         strace -f -y -ttt -T -o FILE -p PID";
            let help = log.remark_devices().unwrap_or_else(|| paths.into());
            return Err(Diagnostic::file(&self.file, message).with_help(help));
        }
        let digest = iosched_engine::fnv1a(text.as_bytes());
        Ok(SyscallLog { log: Arc::new(log), digest, before: None })
    }
}

/// Reads `params = { bs = 4096, … }`.
pub(crate) fn params(
    src: &Source,
    pairs: Vec<(String, &At, Place)>,
) -> Read<Vec<Placed<(String, String)>>> {
    let one = |(name, at, place): (String, &At, Place)| {
        let value = src.fio_value(at, &name)?;
        Ok(Placed::new((name, value), place))
    };
    pairs.into_iter().map(one).collect()
}
