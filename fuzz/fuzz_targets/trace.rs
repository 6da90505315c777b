//! Any bytes as a block trace: in the detected format and in each of them, packed or not, to figures and a page of CSV.
#![no_main]

use iosched_trace::formats::FORMATS;
use iosched_trace::summary::{About, Summary, text};
use iosched_trace::{Format, Input, open, write};
use libfuzzer_sys::fuzz_target;

fn read(data: &[u8], format: Option<&'static Format>) {
    let input = Input { name: "fuzz".into(), from: Box::new(data) };
    let Ok(mut trace) = open(vec![input], format) else { return };
    let Ok(mut sink) = write::by_name("csv")
        .and_then(|f| (f.begin)(Box::new(std::io::sink())).map_err(|e| e.to_string()))
    else {
        return;
    };
    let (mut summary, mut first) = (Summary::default(), None);
    while let Ok(Some(io)) = trace.next_io() {
        first.get_or_insert(io);
        summary.add(&io);
        let _ = sink.io(&io, &trace.tables);
    }
    match &first {
        Some(first) => {
            let about = About { file: "fuzz", format: trace.format, packed: &trace.packed, first };
            let _ = text(&summary.report(&about, &trace.tables));
        }
        None => {
            let _ = trace.nothing().to_string();
        }
    }
}

fuzz_target!(|data: &[u8]| {
    read(data, None);
    // One format beside the detected one: the first byte says which.
    if let Some((which, rest)) = data.split_first() {
        read(rest, FORMATS.get(usize::from(*which) % FORMATS.len()).copied());
    }
});
