//! `perf script` of the trace points `block:*`.

use super::text::{Grammar, Line, reader};
use super::{Format, tracepoint};
use crate::trace::Tables;

pub(super) static FORMAT: Format = Format {
    name: "perf",
    about: "the text of perf script",
    per_cpu: false,
    sniff: |head| tracepoint::has(&head.lines, tracepoint::perf),
    open: |_, files| reader(Perf, files),
};

struct Perf;

impl Grammar for Perf {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        tracepoint::line(line, tracepoint::perf, tables)
    }
}
