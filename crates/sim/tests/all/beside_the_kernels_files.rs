//! Programs and fio jobs on ext4 and XFS beside Linux 6.12 in virtual time: `data/truth-fs`.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use iosched_sim::simulate;
use iosched_sim::validate::{FileFolder, Row, beside_files, compare, plan};

use super::beside_the_kernel::{data, folder_of};

const DEVICES: &str = include_str!("../../../../data/truth-fs/devices.toml");
const RESULTS: &str = include_str!("../../../../data/truth-fs/results.json");

fn rows() -> Vec<Row> {
    let folder =
        FileFolder::parse(("devices.toml", DEVICES), ("results.json", RESULTS), &|_| None).unwrap();
    let cases = folder.plan();
    assert!(cases.len() >= 430, "{}", cases.len());
    let of = |c: &iosched_sim::validate::FileCase<'_>| {
        let trial = c.trial.as_ref().unwrap_or_else(|why| panic!("{}: {why}", c.name()));
        let record = simulate(trial).unwrap_or_else(|e| panic!("{}: {e}", c.name()));
        beside_files(c.run, &record)
    };
    crate::spread(&cases, of).into_iter().flatten().collect()
}

/// Errors without sign, from the least on.
fn errors(rows: &[Row], (fs, set): (&str, &str), metric: &str) -> Vec<f64> {
    let of = rows.iter().filter(|r| r.fs == fs && r.set == set && r.metric == metric);
    let mut errors: Vec<f64> = of.map(|r| r.error.abs()).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

/// The bounds are what is reached, so that a change for the worse is seen. `docs/fidelity-host.md` says what is known
/// of the runs beyond.
#[test]
fn programs_take_the_kernels_time_and_commands() {
    let rows = rows();
    for (fs, set, metric, most) in [
        ("ext4", "A", "elapsed", 0.0001),
        ("ext4", "C", "elapsed", 0.0001),
        ("ext4", "C", "op_mean", 0.0001),
        ("ext4", "A", "iops", 0.0001),
        ("ext4", "B", "bw", 0.003),
        ("xfs", "A", "iops", 0.002),
        ("xfs", "B", "bw", 0.02),
        ("xfs", "C", "elapsed", 0.0001),
        ("xfs", "C", "op_mean", 0.0001),
    ] {
        let e = errors(&rows, (fs, set), metric);
        let median = e[e.len() / 2];
        assert!(median < most, "{fs} {set} {metric}: {median}");
    }
    let least = BTreeMap::from([
        (("ext4", "A", "iops", 30), (84, 86)),
        (("ext4", "A", "commits", 0), (17, 17)),
        (("ext4", "B", "bw", 150), (84, 90)),
        (("xfs", "B", "bw", 150), (12, 13)),
        (("ext4", "B", "requests", 50), (53, 62)),
        (("ext4", "B", "bytes", 50), (55, 62)),
        (("ext4", "C", "op_p99", 30), (99, 99)),
        (("ext4", "A", "elapsed", 30), (23, 23)),
        (("ext4", "A", "requests", 0), (93, 109)),
        (("ext4", "A", "bytes", 30), (109, 109)),
        (("ext4", "C", "elapsed", 30), (118, 121)),
        (("ext4", "C", "requests", 0), (120, 121)),
        (("ext4", "C", "requests", 30), (121, 121)),
        (("ext4", "C", "flushes", 0), (121, 121)),
        (("ext4", "C", "commits", 0), (102, 103)),
        (("xfs", "C", "elapsed", 30), (122, 125)),
        (("xfs", "C", "requests", 0), (119, 125)),
        (("xfs", "C", "requests", 30), (123, 125)),
        (("xfs", "C", "bytes", 30), (123, 125)),
        (("xfs", "C", "flushes", 0), (120, 125)),
        (("xfs", "C", "flushes", 30), (122, 125)),
    ]);
    let mut wrong = Vec::new();
    for ((fs, set, metric, permille), (reached, of)) in least {
        let e = errors(&rows, (fs, set), metric);
        let most = f64::from(permille) / 1000.0;
        let (n, all) = (e.iter().filter(|e| **e <= most).count(), e.len());
        if n < reached || all != of {
            wrong
                .push(format!("{fs} {set} {metric}: {n} of {all}, {reached} of {of} before; off:"));
            let of = rows.iter().filter(|r| r.fs == fs && r.set == set && r.metric == metric);
            let off = of.filter(|r| r.error.abs() > most);
            wrong.extend(off.map(|r| {
                format!("  {}.{}.{}: {} for {}", r.device, r.job, r.scheduler, r.ours, r.kernel)
            }));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_cannot_run_says_why() {
    let row = |fs: &str, run: &str, fio: &str| {
        format!(
            "[{{\"device\":\"fixed\",\"fs\":\"{fs}\",\"job\":\"j\",\"scheduler\":\"none\",\"repetition\":1,\
             \"mem\":\"1G\",\"run_sh\":\"{run}\",\"fio_job\":\"{fio}\"}}]"
        )
    };
    for (text, why) in [
        (row("btrfs", "./rd pread f 1 0 1 1", ""), "no file system"),
        (row("ext4", "", "[a]\\nioengine=null"), "no I/O"),
        (row("ext4", "./rd pread f 1 0 1 1; ./rd pread f 1 0 1 1", ""), "several"),
        (row("ext4", "dbench 4", ""), "no log of their calls"),
    ] {
        assert!(FileFolder::is_one(&text));
        let folder = FileFolder::parse(("d", DEVICES), ("r", &text), &|_| None).unwrap();
        let reason = folder.plan().remove(0).trial.unwrap_err();
        assert!(reason.contains(why), "{reason}");
    }
    for bare in ["[{\"fs\": \"\", \"job\": \"g\"}]", "[{\"job\": \"g\"}]", "no JSON"] {
        assert!(!FileFolder::is_one(bare), "{bare}");
    }
    let wrong = FileFolder::parse(("d", DEVICES), ("r", "[{\"fs\": 1}]"), &|_| None).unwrap_err();
    assert_eq!((wrong.line, wrong.column), (1, 9), "{wrong}");
}

/// A whole program: its log is played in the directory of the tests, after what made its files.
#[test]
fn a_log_of_system_calls_stands_for_its_program() {
    let row = "[{\"device\":\"fixed\",\"fs\":\"ext4\",\"job\":\"grep_remount\",\"scheduler\":\"none\",\"set\":\"D\",\
               \"repetition\":1,\"mem\":\"1G\",\"cost\":\"1000 400\",\"prep_sh\":\"tar -xf t\",\
               \"run_sh\":\"{ cd $M; grep x tree; sync; }\",\"t_begin_ns\":1000,\"t_end_ns\":111000}]";
    let log = |job: &str| {
        let text = match job {
            "untar_sync" => {
                "1 clone(child_stack=NULL) = 2\n2 mkdir(\"$M/d\", 0700) = 0\n\
                 2 openat(AT_FDCWD, \"$M/d/f\", O_WRONLY|O_CREAT|O_EXCL) = 3\n\
                 2 write(3, \"\"..., 20000) = 20000\n2 close(3) = 0\n"
            }
            "grep" => {
                "1 clone(child_stack=NULL) = 2\n2 openat(AT_FDCWD, \"$M/d/f\", O_RDONLY) = 3\n\
                 2 read(3, \"\"..., 32768) = 20000\n2 read(3, \"\"..., 32768) = 0\n2 close(3) = 0\n"
            }
            _ => return None,
        };
        Some(text.to_string())
    };
    let folder = FileFolder::parse(("d", DEVICES), ("r", row), &log).unwrap();
    let case = folder.plan().remove(0);
    let record = simulate(case.trial.as_ref().unwrap()).unwrap();
    let rows = beside_files(case.run, &record);
    let ours = |metric| rows.iter().find(|r| r.metric == metric).unwrap().ours;
    // Five calls of 1 us, 20000 copied bytes, and four commands of 100 us: the root, inodes, the directory, data.
    assert_eq!((ours("requests"), ours("bytes")), (4.0, 32768.0));
    assert!((ours("elapsed") - 406.95).abs() < 0.2, "{}", ours("elapsed"));
}

/// fio writes the files of its jobs with the device at work, where the measured run holds that: BFQ then knows the rate of the
/// disk, and a raise is half as long. Without it the two are 33 and 36 % off.
#[test]
fn files_that_fio_makes_in_the_run_are_part_of_it() {
    let folder = folder_of(&data("truth-fs-7.1"));
    let cases = plan(&folder);
    let totals = crate::spread(&cases, |case| {
        let record = simulate(&case.trials.as_ref().unwrap()[0]).unwrap();
        let rows = compare(case, std::slice::from_ref(&record));
        rows.into_iter().find(|r| r.metric == "iops" && r.section == "*").unwrap()
    });
    assert_eq!(totals.len(), 21);
    for r in totals {
        let name = format!("{}.{}.{}", r.device, r.job, r.scheduler);
        let most = if name == "hdd7k_ncq.ext4buf.bfq on 6.12" { 0.061 } else { 0.04 };
        assert!(r.error.abs() < most, "{name}: {} against {}", r.ours, r.kernel);
    }
}
