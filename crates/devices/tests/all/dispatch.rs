//! The models against what the kernel's reference devices did: every command of the dispatch logs
//! must start and end at the nanosecond at which it did there.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![allow(clippy::disallowed_methods, reason = "the logs are files")]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use iosched_devices::{Command, Completion, Device, TruthDevice, truth};
use iosched_types::Op;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    seq: u32,
    op: Op,
    offset: u64,
    len: u64,
    t_arr: u64,
    t_start: u64,
    t_done: u64,
}

fn read_log(path: &Path) -> Vec<Line> {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let mut lines = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let f: Vec<&str> = line.split(' ').collect();
        let n = |i: usize| f[i].parse::<u64>().unwrap();
        lines.push(Line {
            seq: n(0) as u32,
            op: Op::from_letter(f[1].chars().next().unwrap()).unwrap(),
            offset: n(2),
            len: n(3),
            t_arr: n(4),
            t_start: n(5),
            t_done: n(6),
        });
    }
    lines
}

/// Replays the arrivals and returns (lines compared, lines that differ, the first of these).
///
/// A log that was cut lacks the commands that completed after its last line but arrived before it:
/// their arrivals are unknown. They show as gaps in `seq`. All lines are compared up to the arrival
/// of the first command missing; beyond it the device may have had work that the log does not show.
fn replay(device: &mut dyn Device, lines: &[Line]) -> (usize, usize, Option<String>) {
    let mut arrivals = lines.to_vec();
    arrivals.sort_by_key(|l| l.seq);
    let known = arrivals.iter().enumerate().take_while(|(i, l)| l.seq == *i as u32).count();
    let horizon = if known == arrivals.len() { u64::MAX } else { arrivals[known - 1].t_arr };
    let mut done: Vec<Completion> = Vec::new();
    for l in &arrivals[..known] {
        device.advance(l.t_arr, &mut done);
        let (id, op, offset, len) = (l.seq, l.op, l.offset, l.len);
        device.submit(l.t_arr, Command { id, op, offset, len, fua: false });
    }
    device.advance(u64::MAX, &mut done);
    assert_eq!((device.in_flight(), done.len()), (0, known));
    let ours: BTreeMap<u32, Completion> = done.iter().map(|c| (c.id, *c)).collect();
    let (mut compared, mut wrong, mut first) = (0, 0, None);
    for (i, l) in lines.iter().enumerate().filter(|(_, l)| l.t_done <= horizon) {
        compared += 1;
        let c = ours[&l.seq];
        let order = done.get(i).map(|c| c.id);
        if (c.t_start, c.t_done, order) != (l.t_start, l.t_done, Some(l.seq)) {
            wrong += 1;
            first.get_or_insert(format!("{l:?}\n ours {c:?}, order {order:?}"));
        }
    }
    (compared, wrong, first)
}

fn device_of<'a>(devices: &'a [TruthDevice], path: &Path) -> Option<&'a TruthDevice> {
    let name = path.file_name()?.to_str()?.strip_suffix(".log.gz")?;
    let device = name.split('.').next()?;
    devices.iter().find(|d| d.spec.name == device)
}

/// Replays every log of a folder: (logs, lines, lines that differ), with a report of the latter.
fn replay_folder(truth: &Path) -> (usize, usize, usize, String) {
    let text = std::fs::read_to_string(truth.join("devices.toml")).unwrap();
    let devices = truth::parse("devices.toml", &text).unwrap();
    let mut logs: Vec<PathBuf> =
        std::fs::read_dir(truth.join("dispatch")).unwrap().map(|e| e.unwrap().path()).collect();
    logs.sort();
    let (mut count, mut lines, mut wrong, mut report) = (0, 0, 0, String::new());
    for path in logs {
        let Some(d) = device_of(&devices, &path) else { continue };
        let log = read_log(&path);
        let (n, bad, first) = replay(&mut *d.spec.build().unwrap(), &log);
        if bad > 0 || n + 64 < log.len() {
            report += &format!(
                "{}: {n} of {} compared, {bad} differ, first {first:?}\n",
                path.display(),
                log.len()
            );
        }
        count += 1;
        lines += n;
        wrong += bad;
    }
    (count, lines, wrong, report)
}

#[test]
fn the_logs_of_the_project_match_to_the_nanosecond() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/truth");
    let (logs, lines, wrong, report) = replay_folder(&root);
    assert!(logs >= 6 && lines > 5_000, "{logs} logs, {lines} lines");
    assert_eq!(wrong, 0, "{report}");
}

/// The first commands of jobs on files, on the disk with a volatile cache.
#[test]
fn a_cache_of_copies_matches_to_the_nanosecond() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/truth-fs");
    let (logs, lines, wrong, report) = replay_folder(&root);
    assert!(logs >= 7 && lines > 4_500, "{logs} logs, {lines} lines\n{report}");
    assert_eq!(wrong, 0, "{report}");
}

/// `TRUTH=DIR cargo test -p iosched-devices --test all dispatch -- --ignored --nocapture` compares all
/// logs of another folder of this form.
#[test]
#[ignore = "needs a truth folder, named by TRUTH"]
fn all_logs_of_a_folder_match() {
    let dir = std::env::var_os("TRUTH").expect("TRUTH names a folder");
    let (logs, lines, wrong, report) = replay_folder(Path::new(&dir));
    println!("{logs} logs, {lines} lines compared, {wrong} differ\n{report}");
    assert_eq!(wrong, 0);
}
