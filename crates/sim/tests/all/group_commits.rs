//! Several processes that sync: how many commands, flushes and commits it takes, beside Linux 6.12 in virtual time.
//!
//! `group_commits.txt` has what the kernel did with the programs and disks of `data/truth-fs`: 2 to 32 processes that append a block
//! and sync, or make a file of one block and sync, on disks with and without a volatile cache.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_sim::simulate;
use iosched_sim::validate::{FileCase, FileFolder, beside_files};

const DEVICES: &str = include_str!("../../../../data/truth-fs/devices.toml");
const COUNTS: &str = include_str!("group_commits.txt");

/// `DEVICE FS OP PROCESSES CALLS SCHEDULER REQUESTS FLUSHES COMMITS`, as a row of a folder of measurements.
fn row(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [device, fs, op, processes, calls, scheduler, requests, flushes, commits] = words[..]
    else {
        panic!("{line}");
    };
    let writes = requests.parse::<u64>().unwrap() - flushes.parse::<u64>().unwrap();
    let journal = if fs == "ext4" { format!("\"commits\":{commits}") } else { String::new() };
    format!(
        "{{\"device\":\"{device}\",\"fs\":\"{fs}\",\"job\":\"{op}_{processes}\",\"scheduler\":\"{scheduler}\",\
         \"repetition\":1,\"set\":\"C\",\"mem\":\"1G\",\"mount\":\"noatime\",\"journal\":{{{journal}}},\
         \"settings\":{{\"wbt_lat_usec\":\"0\",\"max_sectors_kb\":\"512\",\"read_ahead_kb\":\"128\"}},\
         \"run_sh\":\"./fsops run {op} . {processes} {calls} 4096 0\",\
         \"requests_until_end\":{{\"W\":{writes},\"F\":{flushes}}}}}"
    )
}

/// What differs, in words; the largest difference as a share of the kernel's count.
fn differs(case: &FileCase<'_>) -> (String, f64) {
    let trial = case.trial.as_ref().unwrap_or_else(|why| panic!("{}: {why}", case.name()));
    let record = simulate(trial).unwrap_or_else(|e| panic!("{}: {e}", case.name()));
    let counts = beside_files(case.run, &record);
    let counted = ["requests", "flushes", "commits"];
    let off: Vec<_> = counts
        .iter()
        .filter(|r| counted.contains(&r.metric) && r.ours.to_bits() != r.kernel.to_bits())
        .collect();
    let words = off.iter().map(|r| format!(" {} {} for {}", r.metric, r.ours, r.kernel));
    let most = off.iter().map(|r| (r.ours - r.kernel).abs() / r.kernel.max(1.0));
    (words.collect(), most.fold(0.0, f64::max))
}

/// The bounds are what is reached, so that a change for the worse is seen.
#[test]
fn commits_take_who_the_kernels_take() {
    let lines = COUNTS.lines().filter(|l| !l.starts_with('#'));
    let rows = format!("[{}]", lines.map(row).collect::<Vec<_>>().join(","));
    let folder = FileFolder::parse(("d", DEVICES), ("r", &rows), &|_| None).unwrap();
    let cases = folder.plan();
    let all = crate::spread(&cases, |case| (case.name(), differs(case)));
    for (fs, within, reached) in
        [("ext4", 0.0, 103), ("ext4", 0.02, 116), ("xfs", 0.0, 85), ("xfs", 0.05, 97)]
    {
        let of: Vec<_> = all.iter().filter(|(name, _)| name.contains(&format!(".{fs}."))).collect();
        let off: Vec<_> = of.iter().filter(|(_, (_, share))| *share > within).collect();
        let n = of.len() - off.len();
        let list = off.iter().map(|(name, (words, _))| format!("{name}:{words}\n"));
        assert!(
            n >= reached,
            "{fs}: {n} of {} within {within}, {reached} before\n{}",
            of.len(),
            list.collect::<String>()
        );
    }
}
