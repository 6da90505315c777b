//! Parts of traces, and traces in other forms.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use iosched_trace::select::{Anonymous, Filter, shift};
use iosched_trace::write::{self, Form, Sink};
use iosched_trace::{Error, Io, Merge, Tables, summary};
use iosched_types::units::{SEC, parse_bytes, parse_nanos, show_nanos};

use super::source;
use crate::args::{
    Align, AnonymiseArgs, ConvertArgs, CutArgs, FilterArgs, MergeArgs, OutArgs, PARQUET,
    SourceArgs, SpanArgs,
};
use crate::fail::{Failure, Outcome};
use crate::files;

/// `iosched trace convert`.
pub(crate) fn convert(args: &ConvertArgs) -> Outcome {
    selected(&args.source, &args.out, &Filter::default(), 0)
}

/// `iosched trace cut`.
pub(crate) fn cut(args: &CutArgs) -> Outcome {
    let filter = span(&args.span)?;
    if filter.from.is_none() && filter.to.is_none() {
        return Err(Failure::with_help(
            "nothing to cut",
            "say where: --from 10s, --to 70s, or both",
        ));
    }
    selected(&args.source, &args.out, &filter, filter.from.unwrap_or(0))
}

/// `iosched trace filter`.
pub(crate) fn filter(args: &FilterArgs) -> Outcome {
    let filter = Filter {
        ops: args.op.clone(),
        tasks: args.task.clone(),
        range: args.range.as_deref().map(range).transpose()?,
        ..span(&args.span)?
    };
    if filter == Filter::default() {
        let help = "name --task, --op, --range, --from or --to; `iosched trace convert` takes all";
        return Err(Failure::with_help("nothing to filter by", help));
    }
    selected(&args.source, &args.out, &filter, 0)
}

/// `iosched trace anonymise`.
pub(crate) fn anonymise(args: &AnonymiseArgs) -> Outcome {
    let mut source = source::open(&args.source)?;
    let mut names = Anonymous::default();
    let written = written(&args.out, |sink| {
        source.each(&args.source, |io, _| {
            let mut io = *io;
            names.hide(&mut io);
            sink.take(&io, &names.tables)
        })?;
        sink.end(&names.tables)
    })?;
    told(&args.out, &written, &source.trace.tables)
}

/// `iosched trace merge`.
pub(crate) fn merge(args: &MergeArgs) -> Outcome {
    let mut traces = Vec::new();
    for name in &args.files {
        let trace = source::open_as(std::slice::from_ref(name), None)?.trace;
        traces.push(if args.align == Align::Clock { trace.absolute() } else { trace });
    }
    let mut merge = Merge::new(traces)?;
    let apart = merge.apart();
    if apart > 3600 * SEC {
        let apart = show_nanos(apart as f64);
        files::note(&format!(
            "warning: the traces begin {apart} apart; where their clocks differ, lay them together with --align start"
        ));
    }
    let written = written(&args.out, |sink| {
        while let Some(io) = merge.next_io()? {
            sink.take(&io, &merge.tables)?;
        }
        sink.end(&merge.tables)
    })?;
    for trace in merge.traces() {
        odd(&trace.tables);
    }
    told(&args.out, &written, &merge.tables)
}

/// Writes the I/Os that pass, their times less `before`.
fn selected(from: &SourceArgs, to: &OutArgs, filter: &Filter, before: u64) -> Outcome {
    let mut source = source::open(from)?;
    let mut seen = 0u64;
    let written = written(to, |sink| {
        let over = |io: &Io| filter.is_over(io);
        source.each_until(from, over, |io, tables| {
            seen += 1;
            if !filter.passes(io, tables) {
                return Ok(());
            }
            let mut io = *io;
            shift(&mut io, before);
            sink.take(&io, tables)
        })?;
        if sink.ios == 0 {
            let message = format!("none of {seen} I/Os is in the selection; nothing is written");
            return Err(Failure::with_help(
                message,
                "`iosched trace info` shows times, tasks and places",
            ));
        }
        sink.end(&source.trace.tables)
    })?;
    told(to, &written, &source.trace.tables)
}

/// A file on its way.
struct Out<'a> {
    sink: Box<dyn Sink + 'a>,
    ios: u64,
}

impl Out<'_> {
    fn take(&mut self, io: &Io, tables: &Tables) -> Outcome {
        self.ios += 1;
        self.sink.io(io, tables).map_err(Error::Write)?;
        Ok(())
    }

    fn end(&mut self, tables: &Tables) -> Outcome {
        self.sink.end(tables).map_err(Error::Write)?;
        Ok(())
    }
}

/// A file that was written.
struct Written {
    form: &'static Form,
    ios: u64,
    lost: Vec<String>,
}

/// The form of a file with this name, unless one is `said`.
pub(crate) fn form(name: &str, said: Option<&str>) -> Outcome<&'static Form> {
    let wanted = match said {
        Some(form) => form,
        None if name == "-" => "csv",
        None if name.trim_end_matches(".gz").ends_with(".parquet") => PARQUET,
        None => match write::of_file(name) {
            Some(form) => return Ok(form),
            None => {
                let endings: Vec<&str> = write::FORMS.iter().map(|f| f.ending).collect();
                let help =
                    format!("name it with --form, or end the name in one of {}", endings.join(" "));
                return Err(Failure::with_help(format!("{name}: the ending names no form"), help));
            }
        },
    };
    if wanted == PARQUET && name.ends_with(".gz") {
        return Err(Failure::with_help("Parquet is packed by itself", "name the file .parquet"));
    }
    write::by_name(wanted).map_err(|e| match wanted {
        PARQUET => Failure::with_help(
            "this build has no Parquet",
            "build it with `cargo build --release --features parquet`, or write .csv",
        ),
        _ => Failure::input(e),
    })
}

fn written(to: &OutArgs, make: impl FnOnce(&mut Out<'_>) -> Outcome) -> Outcome<Written> {
    let form = form(&to.output.to_string_lossy(), to.form.as_deref())?;
    let packed = to.output.to_string_lossy().ends_with(".gz");
    let write = |file: Box<dyn Write + Send>| {
        through(packed, file, |file| {
            let mut out = Out { sink: (form.begin)(file).map_err(Error::Write)?, ios: 0 };
            make(&mut out)?;
            Ok(Written { form, ios: out.ios, lost: out.sink.lost() })
        })
    };
    if to.output == Path::new("-") {
        write(Box::new(std::io::stdout()))
    } else {
        files::stream(&to.output, write)
    }
}

/// Writes through gzip where the file is `packed`.
pub(crate) fn through<T>(
    packed: bool,
    to: Box<dyn Write + Send + '_>,
    make: impl FnOnce(Box<dyn Write + Send + '_>) -> Outcome<T>,
) -> Outcome<T> {
    if !packed {
        return make(to);
    }
    let mut through = GzEncoder::new(to, Compression::fast());
    let made = make(Box::new(&mut through))?;
    through.finish().map_err(Error::Write)?;
    Ok(made)
}

/// Says what was written and what was not.
fn told(to: &OutArgs, written: &Written, tables: &Tables) -> Outcome {
    odd(tables);
    let mut text =
        format!("{} I/Os in {} ({})", written.ios, to.output.display(), written.form.about);
    if !written.lost.is_empty() {
        text += &format!("; without {}: this form has none", written.lost.join(", "));
    }
    files::note(&text);
    Ok(())
}

pub(crate) fn odd(tables: &Tables) {
    let text = summary::odd(tables.tally.records, &summary::oddities(&tables.tally));
    if !text.is_empty() {
        files::note(text.trim_end());
    }
    for note in &tables.tally.notes {
        files::note(&format!("note: {note}"));
    }
}

fn span(args: &SpanArgs) -> Outcome<Filter> {
    let time = |name: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => parse_nanos(text, SEC).map(Some).ok_or_else(|| {
            Failure::with_help(format!("--{name} {text} is no time"), "like 90, 1.5s, 200ms, 2m")
        }),
    };
    let (from, to) = (time("from", &args.from)?, time("to", &args.to)?);
    if let (Some(f), Some(t)) = (from, to)
        && f >= t
    {
        return Err(Failure::input("--from is not before --to"));
    }
    Ok(Filter { from, to, ..Filter::default() })
}

/// `FROM..TO`, either of which may be absent.
fn range(text: &str) -> Outcome<(u64, u64)> {
    let bytes = |word: &str, absent| if word.is_empty() { Some(absent) } else { parse_bytes(word) };
    let ends = text.split_once("..").and_then(|(a, b)| Some((bytes(a, 0)?, bytes(b, u64::MAX)?)));
    ends.filter(|(a, b)| a < b).ok_or_else(|| {
        Failure::with_help(
            format!("--range {text} is no range of bytes"),
            "like 0..100G, 64G.., ..1T",
        )
    })
}
