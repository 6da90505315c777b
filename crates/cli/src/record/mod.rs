//! `iosched record`.

mod out;
mod top;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use iosched_backends::record::{Choice, Recorder, Room, choose, facts};
use iosched_backends::{Error, SysRoot, made};
use iosched_lab::machine::Interrupt;
use iosched_trace::formats::comments;
use iosched_trace::{Io, Tables};
use iosched_types::units::{SEC, parse_nanos, show_bytes, show_nanos};

use crate::args::RecordArgs;
use crate::fail::{Failure, Outcome, code};
use crate::files::{self, note};
use crate::live::{guardian, size_of, state_dir};
use crate::trace::{form, odd};
use out::{Out, Said, Writing};
use top::Top;

/// Between two looks at the clock, the signals and the disk.
const LOOK: Duration = Duration::from_millis(50);

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Time,
    Signal,
    Size,
    Full,
    Gone,
}

impl Why {
    fn words(self, after: Duration) -> String {
        let after = show_nanos(after.as_nanos() as f64);
        match self {
            Why::Time => format!("after {after}, as asked"),
            Why::Signal => format!("after {after}, by a signal"),
            Why::Size => format!("after {after}, because the file was as large as asked"),
            Why::Full => format!("after {after}, because there was no more room for the file"),
            Why::Gone => format!("after {after}, because the disk was gone"),
        }
    }
}

/// What is asked for.
struct Asked {
    duration: Option<Duration>,
    size: Option<u64>,
    choice: Choice,
}

/// `iosched record`.
pub(crate) fn record(args: &RecordArgs) -> Outcome {
    let duration = args.duration.as_deref().map(time).transpose()?;
    let size = args.size.as_deref().map(size_of).transpose()?;
    let root = SysRoot::default();
    let choice = choose(&root, &args.target)?;
    choice.notes.iter().for_each(|n| note(&format!("note: {n}")));
    let asked = Asked { duration, size, choice };
    match &args.output {
        None => watch(args, &asked),
        Some(path) => to_file(args, &asked, path),
    }
}

fn time(text: &str) -> Outcome<Duration> {
    let time = parse_nanos(text, SEC).filter(|t| *t > 0);
    time.map(Duration::from_nanos).ok_or_else(|| {
        Failure::with_help(format!("--for {text} is no time"), "like 90, 60s, 500ms, 10m")
    })
}

fn begin(args: &RecordArgs, asked: &Asked) -> Outcome<(Recorder, Interrupt)> {
    let interrupt =
        Interrupt::ending().map_err(|e| Error::io("catching signals for", "iosched", e))?;
    let begun = Recorder::start(&asked.choice.disk, &state_dir(&args.state), Some(&guardian()?));
    let recorder = begun.map_err(|e| match e {
        Error::NotRoot { .. } => {
            Failure::new(code::MISSING, format!("{e}\n  = help: run it with sudo"))
        }
        e => e.into(),
    })?;
    Ok((recorder, interrupt))
}

/// The view alone.
fn watch(args: &RecordArgs, asked: &Asked) -> Outcome {
    let (mut recorder, interrupt) = begin(args, asked)?;
    let mut top = Some(Top::new(false));
    let (why, after) = run(&mut recorder, asked, &interrupt, &mut top, |_, _| Ok(false))?;
    recorder.stop()?;
    recorder.finish()?;
    odd(&recorder.live().tables);
    note(&format!("ended {}", why.words(after)));
    Ok(())
}

fn to_file(args: &RecordArgs, asked: &Asked, path: &Path) -> Outcome {
    let form = form(&path.to_string_lossy(), args.form.as_deref())?;
    let packed = path.to_string_lossy().ends_with(".gz");
    files::no_disk(path)?;
    files::writable(path)?;
    if path.metadata().is_ok_and(|m| m.is_file() && m.len() > 0) {
        let message = format!("{} is there, and a recording cannot be made again", path.display());
        return Err(Failure::with_help(message, "name another file, or remove it first"));
    }
    // No other user may write to it.
    made::keep_others_out();
    let mut why = Why::Time;
    let mut to = |file: File, regular: bool| {
        let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let room = Room::new(file, regular.then_some(folder)).map_err(|e| {
            let message = format!("{}: no room for a recording: {e}", path.display());
            Failure::with_help(message, "free space, or name a file on another disk")
        })?;
        let out = Out { form, packed, room: &room, again: regular };
        let made = written(args, asked, &out)?;
        why = made.0;
        told(path, &out, made)
    };
    if path == Path::new("-") {
        let stdout = std::io::stdout().as_fd().try_clone_to_owned();
        let stdout =
            stdout.map_err(|e| Failure::input(format!("cannot use standard output: {e}")))?;
        to(stdout.into(), false)?;
    } else {
        files::stream_file(path, to)?;
    }
    match why {
        Why::Full => Err(Failure::new(
            code::FAILED,
            format!("{}: the disk is full; the file has what was recorded before", path.display()),
        )),
        Why::Gone => Err(Failure::new(
            code::FAILED,
            format!("{} disappeared; the file has what was recorded before", asked.choice.disk),
        )),
        Why::Time | Why::Signal | Why::Size => Ok(()),
    }
}

/// Records into a file; why it ended, how many I/Os, and what the form cannot hold.
fn written(
    args: &RecordArgs,
    asked: &Asked,
    out: &Out<'_>,
) -> Outcome<(Why, u64, Tables, Vec<String>, String)> {
    let (mut recorder, interrupt) = begin(args, asked)?;
    let disk = &asked.choice.disk;
    let facts = facts(&SysRoot::default(), disk);
    let of = |key: &str| facts.iter().find(|f| f.0 == key).map_or("", |f| f.1.as_str());
    let recorded =
        format!("{disk} ({}) under {}, Linux {}", of("number"), of("scheduler"), of("kernel"));
    let mut said =
        Said { recorded, lost: 0, ended: comments::NOT_ENDED.into(), first_unix_ns: 0, facts };
    said.facts.push(("buffer_kb_per_cpu".into(), recorder.buffer_kb().to_string()));
    said.facts.push(("iosched".into(), env!("CARGO_PKG_VERSION").into()));
    let mut top = args.top.then(|| Top::new(args.output.as_deref() == Some(Path::new("-"))));
    let mut ended = (Why::Time, Duration::ZERO);
    let (ios, tables, lost) = out.write(&mut said, asked.size, |writing, said| {
        let take = |io: &Io, tables: &Tables| {
            writing.take(io, tables)?;
            Ok(writing.is_full())
        };
        ended = run(&mut recorder, asked, &interrupt, &mut top, take)?;
        recorder.stop()?;
        rest(&mut recorder, writing)?;
        if writing.is_full() && matches!(ended.0, Why::Time | Why::Signal) {
            ended.0 = if writing.is_large() { Why::Size } else { Why::Full };
        }
        if writing.room().is_full() {
            ended.0 = Why::Full;
        }
        said.lost = recorder.live().tables.tally.lost;
        said.first_unix_ns = recorder.first_unix_ns().unwrap_or(0);
        said.ended = ended.0.words(ended.1);
        Ok((writing.ios, std::mem::take(&mut recorder.live().tables)))
    })?;
    Ok((ended.0, ios, tables, lost, said.ended))
}

/// What is in the buffers at the end, and I/Os that are not complete.
fn rest(recorder: &mut Recorder, writing: &mut Writing<'_>) -> Outcome {
    recorder.drain(|live| {
        while let Some(io) = live.next_io() {
            writing.take(&io, &live.tables)?;
        }
        Ok::<(), Failure>(())
    })?;
    recorder.finish()?;
    let live = recorder.live();
    while let Some(io) = live.next_io() {
        writing.take(&io, &live.tables)?;
    }
    Ok(())
}

/// Records until the end; `take` says whether the file is full.
fn run(
    recorder: &mut Recorder,
    asked: &Asked,
    interrupt: &Interrupt,
    top: &mut Option<Top>,
    mut take: impl FnMut(&Io, &Tables) -> Outcome<bool>,
) -> Outcome<(Why, Duration)> {
    let (begun, root) = (Instant::now(), SysRoot::default());
    let sys = format!("/sys/block/{}", asked.choice.disk.replace('/', "!"));
    let diskseq = root.get(&format!("{sys}/diskseq"));
    let mut looked = Instant::now();
    loop {
        recorder.take(LOOK)?;
        let live = recorder.live();
        let mut full = false;
        while let Some(io) = live.next_io() {
            if let Some(top) = top {
                top.add(&io);
            }
            full |= take(&io, &live.tables)?;
        }
        if let Some(top) = top {
            top.show(live);
        }
        let after = begun.elapsed();
        if full {
            return Ok((Why::Size, after));
        }
        if interrupt.check().is_err() {
            return Ok((Why::Signal, after));
        }
        if asked.duration.is_some_and(|d| after >= d) {
            return Ok((Why::Time, after));
        }
        if looked.elapsed() >= Duration::from_secs(1) {
            looked = Instant::now();
            if root.get(&format!("{sys}/diskseq")) != diskseq || !root.exists(&sys) {
                return Ok((Why::Gone, after));
            }
        }
    }
}

/// Says what was recorded.
fn told(path: &Path, out: &Out<'_>, made: (Why, u64, Tables, Vec<String>, String)) -> Outcome {
    let (_, ios, tables, lost, ended) = made;
    odd(&tables);
    let tally = &tables.tally;
    if tally.lost > 0 {
        let all = tally.lost + tally.records;
        note(&format!(
            "warning: the kernel lost {} of {all} events: the trace has gaps, and some I/Os no latency; record a shorter \
             time, or into a file on another disk",
            tally.lost
        ));
    }
    if ios == 0 {
        note("no I/O reached the disk");
    }
    let size = show_bytes(out.room.written() as f64);
    let mut text =
        format!("{ios} I/Os in {} ({}, {size}); ended {ended}", path.display(), out.form.about);
    if !lost.is_empty() {
        text += &format!("; without {}: this form has none", lost.join(", "));
    }
    if !out.form.comments {
        text += "; this form has no place for the disk's settings and the count of lost events";
    }
    note(&text);
    Ok(())
}
