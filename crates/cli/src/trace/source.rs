//! The trace that is read: its files, its disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iosched_trace::{Error, Format, Input, Io, Name, Tables, Trace, formats};
use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;
use iosched_types::units::show_bytes;

use crate::args::SourceArgs;
use crate::fail::{Failure, Outcome};
use crate::files;

/// A trace of a file.
pub(crate) struct Source {
    pub(crate) trace: Trace<'static>,
    name: String,
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        match e {
            Error::Read { .. } => Failure::with_help(
                e,
                "the file is damaged or cut off: copy it again, or unpack it by hand",
            ),
            e => Failure::input(e),
        }
    }
}

/// Opens the trace of some arguments.
pub(crate) fn open(args: &SourceArgs) -> Outcome<Source> {
    let format =
        args.read_as.as_deref().map(formats::by_name).transpose().map_err(Failure::input)?;
    open_as(&args.files, format)
}

/// Opens the files of one recording.
pub(crate) fn open_as(names: &[String], format: Option<&'static Format>) -> Outcome<Source> {
    let mut inputs = Vec::new();
    for name in recording(names) {
        let from = files::open(&name).map_err(|e| {
            Failure::from(Diagnostic::file(&name, format!("cannot read {name}: {e}")))
        })?;
        inputs.push(Input { name, from });
    }
    let trace = iosched_trace::open(inputs, format)?;
    Ok(Source { trace, name: names[0].clone() })
}

/// All files of a recording of blktrace, which has one for each CPU; other names stay.
pub(crate) fn recording(names: &[String]) -> Vec<String> {
    let [name] = names else { return names.to_vec() };
    let base = match name.rsplit_once(".blktrace.") {
        Some((base, cpu)) if cpu.parse::<u32>().is_ok() => base,
        None if !Path::new(name).exists() => name.as_str(),
        _ => return names.to_vec(),
    };
    let of = |cpu: u32| PathBuf::from(format!("{base}.blktrace.{cpu}"));
    let all = (0..4096).map(of).filter(|p| p.is_file());
    let all: Vec<String> = all.map(|p| p.to_string_lossy().into_owned()).collect();
    if all.is_empty() { names.to_vec() } else { all }
}

/// I/Os and bytes of a disk.
type Share = (u64, u64);

impl Source {
    /// Gives the I/Os of the chosen disk to `take`; returns the first.
    pub(crate) fn each(
        &mut self,
        args: &SourceArgs,
        take: impl FnMut(&Io, &Tables) -> Outcome,
    ) -> Outcome<Io> {
        self.each_until(args, |_| false, take)
    }

    /// The same, up to an I/O that is `over`: what is behind it is not read.
    pub(crate) fn each_until(
        &mut self,
        args: &SourceArgs,
        over: impl Fn(&Io) -> bool,
        mut take: impl FnMut(&Io, &Tables) -> Outcome,
    ) -> Outcome<Io> {
        let mut disks: BTreeMap<Name, Share> = BTreeMap::new();
        let all = args.disk.as_deref() == Some("all");
        let mut first: Option<Io> = None;
        while let Some(io) = self.trace.next_io()? {
            let share = disks.entry(io.disk).or_default();
            *share = (share.0 + 1, share.1 + io.len);
            let chosen = match &args.disk {
                Some(name) if !all => self.trace.disk(io.disk) == name,
                _ => all || first.is_none_or(|f| f.disk == io.disk),
            };
            // Once there is a second disk and none was chosen, only the list of them is wanted.
            if chosen && (args.disk.is_some() || disks.len() == 1) {
                first.get_or_insert(io);
                take(&io, &self.trace.tables)?;
            }
            if over(&io) {
                break;
            }
        }
        match (first, &args.disk) {
            _ if disks.is_empty() => Err(self.trace.nothing().into()),
            (_, None) if disks.len() > 1 => Err(self.several(&disks)),
            (None, Some(wanted)) => Err(self.no_disk(wanted, &disks)),
            (None, None) => Err(self.trace.nothing().into()),
            (Some(first), _) => Ok(first),
        }
    }

    /// The disks of a trace, the busiest first.
    fn list(&self, disks: &BTreeMap<Name, Share>) -> String {
        const MOST: usize = 20;
        let mut list: Vec<_> = disks.iter().collect();
        list.sort_by_key(|(name, share)| (std::cmp::Reverse(share.0), **name));
        let line = |(name, (ios, bytes)): &(&Name, &Share)| {
            format!(
                "\n  {:<12} {ios:>10} I/Os {:>10}",
                self.trace.disk(**name),
                show_bytes(*bytes as f64)
            )
        };
        let mut text: String = list.iter().take(MOST).map(line).collect();
        if list.len() > MOST {
            text += &format!("\n  and {} more", list.len() - MOST);
        }
        text
    }

    fn several(&self, disks: &BTreeMap<Name, Share>) -> Failure {
        let busiest = disks.iter().max_by_key(|(name, share)| (share.0, std::cmp::Reverse(**name)));
        let busiest = busiest.map_or("", |b| self.trace.disk(*b.0));
        let message =
            format!("{}: {} disks are in the trace{}", self.name, disks.len(), self.list(disks));
        Failure::with_help(
            message,
            format!("choose one: --disk {busiest}; or take them together: --disk all"),
        )
    }

    fn no_disk(&self, wanted: &str, disks: &BTreeMap<Name, Share>) -> Failure {
        let message =
            format!("{}: no disk \"{wanted}\" is in the trace{}", self.name, self.list(disks));
        let names = disks.keys().map(|n| self.trace.disk(*n));
        Failure::with_help(message, did_you_mean(wanted, names))
    }
}
