//! The kernel's own text: `trace` and `trace_pipe` of tracefs.

use super::text::{Grammar, Line, reader};
use super::{Format, tracepoint};
use crate::trace::Tables;

pub(super) static FORMAT: Format = Format {
    name: "ftrace",
    about: "ftrace's text (trace, trace_pipe)",
    per_cpu: false,
    sniff: |head| tracepoint::has(&head.lines, tracepoint::ftrace),
    open: |_, files| reader(Ftrace, files),
};

struct Ftrace;

impl Grammar for Ftrace {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        tracepoint::line(line, tracepoint::ftrace, tables)
    }
}
