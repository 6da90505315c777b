//! `trace-cmd report`: the lines of ftrace below a count of CPUs, without flags in older versions.

use super::text::{Grammar, Line, reader};
use super::{Format, tracepoint};
use crate::trace::Tables;

pub(super) static FORMAT: Format = Format {
    name: "trace-cmd",
    about: "the text of trace-cmd report",
    per_cpu: false,
    sniff: |head| {
        head.lines.iter().take(3).any(|l| above(l))
            && tracepoint::has(&head.lines, tracepoint::ftrace)
    },
    open: |_, files| reader(TraceCmd, files),
};

/// Lines above the events.
fn above(line: &str) -> bool {
    line.starts_with("cpus=") || line.starts_with("version = ")
}

struct TraceCmd;

impl Grammar for TraceCmd {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        if above(line) {
            return Line::Other;
        }
        tracepoint::line(line, tracepoint::ftrace, tables)
    }
}
