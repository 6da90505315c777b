//! `iosched trace`.

pub(crate) mod source;
pub(crate) mod write;

use iosched_report::trace_page;
use iosched_trace::summary::{self, About, Report, Summary};

use crate::args::{Format, InfoArgs, TraceArgs, TraceCommand};
use crate::fail::Outcome;
use crate::files;

pub(crate) use write::{form, odd, through};

/// `iosched trace`.
pub(crate) fn trace(args: &TraceArgs) -> Outcome {
    match &args.command {
        TraceCommand::Info(args) => info(args),
        TraceCommand::Cut(args) => write::cut(args),
        TraceCommand::Filter(args) => write::filter(args),
        TraceCommand::Merge(args) => write::merge(args),
        TraceCommand::Anonymise(args) => write::anonymise(args),
        TraceCommand::Convert(args) => write::convert(args),
    }
}

fn info(args: &InfoArgs) -> Outcome {
    if let Some(page) = &args.html {
        files::writable(page)?;
    }
    let report = report(args)?;
    if let Some(page) = &args.html {
        files::write(page, &trace_page(&report))?;
    }
    match args.format {
        Format::Table => files::print(&summary::text(&report)),
        Format::Json => files::print_json(&report),
    }
}

fn report(args: &InfoArgs) -> Outcome<Report> {
    let mut summary = Summary::default();
    let mut source = source::open(&args.source)?;
    let first = source.each(&args.source, |io, _| {
        summary.add(io);
        Ok(())
    })?;
    let about = About {
        file: &args.source.files[0],
        format: source.trace.format,
        packed: &source.trace.packed,
        first: &first,
    };
    Ok(summary.report(&about, &source.trace.tables))
}
