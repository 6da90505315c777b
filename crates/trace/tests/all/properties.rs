//! Any bytes, any format: no panic, and every record is accounted for.

use iosched_trace::formats::FORMATS;
use iosched_trace::summary::Summary;
use iosched_trace::{Tables, open};
use proptest::prelude::*;

use crate::{bytes, data, read};

fn survives(content: &[u8]) {
    let mut all: Vec<_> = FORMATS.iter().map(|f| Some(*f)).collect();
    all.push(None);
    for format in all {
        let Ok(trace) = open(bytes(content), format) else { continue };
        if let Ok((ios, tables)) = read(trace) {
            let mut summary = Summary::default();
            ios.iter().for_each(|io| summary.add(io));
            accounted(&tables, ios.len() as u64);
        }
    }
}

/// Records are used, skipped with a reason, or of no use.
fn accounted(tables: &Tables, ios: u64) {
    let t = &tables.tally;
    assert!(t.other <= t.records && ios <= t.records, "{t:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes(content in proptest::collection::vec(any::<u8>(), 0..600)) {
        survives(&content);
    }

    #[test]
    fn samples_with_bytes_changed(
        which in 0usize..8,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let names = ["loop0.blktrace.1", "vscsi-2.bin", "fio-2.log", "msr.csv", "own.csv", "biosnoop-libbpf.txt", "tencent.csv", "disksim.txt"];
        let mut content = std::fs::read(data(names[which])).unwrap();
        content.truncate(6000);
        for (at, byte) in changes {
            let at = at.index(content.len());
            content[at] = byte;
        }
        survives(&content);
    }
}
