//! Each format's sample, as `iosched trace info` shows it.

use std::path::Path;

use iosched_trace::formats::FORMATS;

use crate::figures;

/// Files of each sample; the first gives the golden file its name.
pub(crate) const SAMPLES: [&[&str]; 19] = [
    &["loop0.blktrace.0", "loop0.blktrace.1"],
    &["blkparse.txt.xz"],
    &["ftrace.txt.zst"],
    &["trace-cmd.txt.gz"],
    &["perf.txt.bz2"],
    &["biosnoop-bcc.txt"],
    &["biosnoop-libbpf.txt"],
    &["fio-1.log"],
    &["fio-2.log"],
    &["fio-3.log"],
    &["msr.csv"],
    &["alibaba.csv"],
    &["tencent.csv"],
    &["spc.csv"],
    &["disksim.txt"],
    &["mqsim.txt"],
    &["vscsi-1.bin"],
    &["vscsi-2.bin"],
    &["own.csv"],
];

#[test]
fn samples_give_these_figures() {
    for files in SAMPLES {
        let golden = format!("tests/golden/{}.txt", files[0]);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(golden);
        iosched_testing::golden(&path, &figures(files));
    }
}

#[test]
fn every_format_has_a_sample() {
    let seen: Vec<_> = SAMPLES.iter().map(|f| crate::report(f).format).collect();
    // Parquet's index is no golden file: what is written is read in `written`.
    for format in FORMATS.iter().filter(|f| f.name != "parquet") {
        assert!(seen.contains(&format.name), "no sample of {}", format.name);
    }
}
