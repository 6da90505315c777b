//! Any bytes, any format: no panic, and every record is accounted for.

use iosched_trace::formats::FORMATS;
use std::io::Read;

use iosched_trace::summary::Summary;
use iosched_trace::unpack::unpack;
use iosched_trace::{Tables, open};
use proptest::prelude::*;

use crate::samples::SAMPLES;
use crate::{bytes, data, read};

fn survives(content: &[u8]) {
    let mut all: Vec<_> = FORMATS.iter().map(|f| Some(*f)).collect();
    all.push(None);
    for format in all {
        let Ok(trace) = open(bytes(content), format) else { continue };
        if let Ok((ios, tables)) = read(trace) {
            let mut summary = Summary::default();
            ios.iter().for_each(|io| summary.add(io));
            accounted(&tables);
        }
    }
}

/// Records are used, skipped with a reason, or of no use.
fn accounted(tables: &Tables) {
    let t = &tables.tally;
    assert_eq!(t.records, t.used + t.other + t.dropped(), "{t:?}");
}

/// The beginning of a sample, unpacked.
fn beginning(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(data(name)).unwrap();
    let mut content = Vec::new();
    unpack(Box::new(file)).unwrap().all.take(6000).read_to_end(&mut content).unwrap();
    content
}

#[test]
fn samples_are_accounted_for() {
    for name in SAMPLES.map(|files| files[0]) {
        let (_, tables) = read(open(bytes(&beginning(name)), None).unwrap()).unwrap();
        accounted(&tables);
        assert!(tables.tally.used > 0, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes(content in proptest::collection::vec(any::<u8>(), 0..600)) {
        survives(&content);
    }

    #[test]
    fn samples_with_bytes_changed(
        which in any::<prop::sample::Index>(),
        lines in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..5),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        let content = beginning(SAMPLES[which.index(SAMPLES.len())][0]);
        // Lines change places, others come twice.
        let mut parts: Vec<&[u8]> = content.split_inclusive(|b| *b == b'\n').collect();
        for (a, b) in lines {
            let (a, b) = (a.index(parts.len()), b.index(parts.len()));
            parts.swap(a, b);
            parts.insert(a, parts[b]);
        }
        let mut content = parts.concat();
        for (at, byte) in changes {
            let at = at.index(content.len());
            content[at] = byte;
        }
        survives(&content);
    }
}
