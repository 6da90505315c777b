//! Readers, pairing, figures and writers, over samples of real tools (`tests/data/README.md` says which).
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read and write the files they check"
)]

mod bad;
mod live;
mod pairing;
mod properties;
mod samples;
mod totals;
mod written;

use std::fs::File;
use std::path::PathBuf;

use iosched_trace::summary::{About, Report, Summary, text};
use iosched_trace::{Error, Input, Io, Tables, Trace, open};

/// A sample's path.
fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Files of one recording.
fn files(names: &[&str]) -> Vec<Input<'static>> {
    let input =
        |n: &&str| Input { name: (*n).into(), from: Box::new(File::open(data(n)).unwrap()) };
    names.iter().map(input).collect()
}

/// A text as a file.
fn bytes(text: &[u8]) -> Vec<Input<'_>> {
    vec![Input { name: "trace".into(), from: Box::new(text) }]
}

/// All I/Os, with what was noticed.
fn read(mut trace: Trace<'_>) -> Result<(Vec<Io>, Tables), Error> {
    let mut ios = Vec::new();
    while let Some(io) = trace.next_io()? {
        ios.push(io);
    }
    Ok((ios, trace.tables))
}

/// The figures of files.
fn report(names: &[&str]) -> Report {
    let trace = open(files(names), None).unwrap();
    let (format, packed) = (trace.format, trace.packed.clone());
    let (ios, tables) = read(trace).unwrap();
    let mut summary = Summary::default();
    ios.iter().for_each(|io| summary.add(io));
    let about = About { file: names[0], format, packed: &packed, first: &ios[0] };
    summary.report(&about, &tables)
}

fn figures(names: &[&str]) -> String {
    text(&report(names))
}
