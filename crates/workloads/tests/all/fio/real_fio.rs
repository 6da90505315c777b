//! Our reading of values and jobs against the fio that is installed (3.33; skipped elsewhere).

use std::path::Path;
use std::process::Command;

use iosched_workloads::fio::JobSpec;

use super::support::{fio_3_33, jobs, log_of_real_run, try_parse};

/// A small generator, so that the same values are tried everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len() as u64) as usize]
    }

    fn number(&mut self) -> u64 {
        let digits = 1 + self.roll(5);
        1 + self.roll(10u64.pow(digits as u32))
    }
}

/// What fio makes of each `(option, lines)`: the numbers it prints for the option. All are read in one
/// run, since starting fio takes a tenth of a second.
fn fio_reads(folder: &Path, all: &[(&str, String)]) -> Vec<Vec<u64>> {
    let file = folder.join("value.fio");
    let mut text = String::new();
    for (_, lines) in all {
        text.push_str(&format!("[a]\nioengine=null\nsize=1m\n{lines}\n"));
    }
    std::fs::write(&file, text).unwrap();
    let out = Command::new("fio").args(["--debug=parse", "--parse-only"]).arg(&file).output();
    let out = out.unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let runs: Vec<&str> = text.split("Parsing section [a]").skip(1).collect();
    assert_eq!(runs.len(), all.len());
    let numbers = |(run, (option, _)): (&&str, &(&str, String))| -> Vec<u64> {
        let start = run.rfind(&format!(" handle_option={option},")).unwrap();
        let numbers = run[start..].lines().filter_map(|l| l.split("ret=0, out=").nth(1));
        numbers.filter_map(|n| n.trim().parse().ok()).collect()
    };
    runs.iter().zip(all).map(numbers).collect()
}

fn scratch(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The numbers we read, in fio's units (bytes, microseconds).
fn we_read(lines: &str, numbers: impl Fn(&JobSpec) -> Vec<u64>) -> Option<Vec<u64>> {
    let set = try_parse(&format!("[a]\n{lines}\n")).ok()?;
    Some(numbers(&set.jobs[0]))
}

type Numbers = fn(&JobSpec) -> Vec<u64>;

const SIZES: [&str; 20] = [
    "", "b", "B", "k", "K", "kb", "KB", "ki", "kib", "KiB", "m", "Mb", "MiB", "mi", "g", "GB",
    "gib", "t", "TiB", "Tb",
];
const TIMES: [&str; 11] = ["", "us", "usec", "ms", "msec", "MS", "s", "S", "m", "h", "d"];

#[test]
fn well_formed_values_mean_what_they_mean_to_fio() {
    if !fio_3_33() {
        return;
    }
    let folder = scratch("well_formed");
    let mut dice = Dice(1);
    let size: Numbers = |j| j.target.size.into_iter().collect();
    let bs: Numbers = |j| j.bs.range.iter().map(|r| r.0).collect();
    let runtime: Numbers = |j| vec![j.runtime.unwrap_or(0) / 1_000];
    let think: Numbers = |j| vec![j.think.time / 1_000];
    let rate_min: Numbers = |j| vec![j.rate[0].min_bytes];
    let rate: Numbers = |j| j.rate.iter().map(|r| r.bytes).collect();
    let offset: Numbers = |j| vec![j.target.offset];
    let mut tried = Vec::new();
    let mut expected = Vec::new();
    for round in 0..420 {
        let (n, m) = (dice.number(), dice.number());
        let (s, t) = (dice.pick(&SIZES), dice.pick(&TIMES));
        let kb = if dice.roll(2) == 0 { "kb_base=1000\n" } else { "" };
        let (option, value, ours) = match round % 7 {
            0 => ("size", format!("{}{s}", n + 4096), size),
            1 => ("bs", format!("{n}{s},{m}{}", dice.pick(&SIZES)), bs),
            2 => ("rate_min", format!("{n}{s}"), rate_min),
            3 => ("runtime", format!("{}{t}", n % 1000), runtime),
            4 => ("thinktime", format!("{}{t}", n % 1000), think),
            5 => ("rate", format!("{n}{s}"), rate),
            _ => ("offset", format!("{n}{s}"), offset),
        };
        let lines = format!("{kb}{option}={value}");
        expected.push(we_read(&lines, ours).unwrap_or_else(|| panic!("we refuse {lines}")));
        tried.push((option, lines));
    }
    let theirs = fio_reads(&folder, &tried);
    for (((_, lines), mut ours), mut theirs) in tried.iter().zip(expected).zip(theirs) {
        assert!(!theirs.is_empty(), "fio refuses {lines}");
        let common = ours.len().min(theirs.len());
        ours.truncate(common);
        theirs.truncate(common);
        assert_eq!(ours, theirs, "{lines}");
    }
}

#[test]
fn whatever_we_accept_fio_accepts_with_the_same_number() {
    if !fio_3_33() {
        return;
    }
    let folder = scratch("arbitrary");
    let mut dice = Dice(2);
    let size: Numbers = |j| j.target.size.into_iter().collect();
    let runtime: Numbers = |j| j.runtime.map(|t| t / 1_000).into_iter().collect();
    let depth: Numbers = |j| vec![u64::from(j.iodepth)];
    let rwmix: Numbers = |j| vec![u64::from(j.rwmixread)];
    let parts =
        ["1", "40", "4096", "0", "k", "m", "b", "i", "s", "-", "%", ".", "0x", "e", ":", " "];
    let (mut accepted, mut expected) = (Vec::new(), Vec::new());
    for round in 0..4000 {
        let length = 1 + dice.roll(4);
        let value: String = (0..length).map(|_| dice.pick(&parts)).collect();
        let (option, ours) = match round % 4 {
            0 => ("size", size),
            1 => ("runtime", runtime),
            2 => ("iodepth", depth),
            _ => ("rwmixread", rwmix),
        };
        let lines = format!("{option}={value}");
        let ours = we_read(&format!("ioengine=libaio\n{lines}"), ours);
        if let Some(ours) = ours.filter(|n| !n.is_empty()) {
            accepted.push((option, lines));
            expected.push(ours);
        }
    }
    assert!(accepted.len() > 100, "only {} values were accepted", accepted.len());
    let theirs = fio_reads(&folder, &accepted);
    for (((_, lines), ours), theirs) in accepted.iter().zip(expected).zip(theirs) {
        assert_eq!(ours, theirs, "{lines}");
    }
}

#[test]
fn percentages_and_choices_are_accepted_or_refused_alike() {
    if !fio_3_33() {
        return;
    }
    let folder = scratch("choices");
    let mut accepted = String::new();
    for lines in [
        "size=1%",
        "size=100%",
        "offset=50%",
        "offset_increment=5%",
        "io_size=20%",
        "rw=randrw:8",
        "rw=write:4k",
        "rw=read:-8k",
        "rw=trimwrite",
        "rw=randtrim",
        "bssplit=4k/10:64k/50:32k/40",
        "bssplit=4k",
        "bssplit=4k/50:8k",
        "random_distribution=zipf",
        "random_distribution=zipf:1.2:0.25",
        "random_distribution=pareto:0.2",
        "random_distribution=normal:50",
        "random_distribution=zoned:60/10:30/20:8/30:2/40",
        "random_distribution=zoned_abs:60/20G:40/100G",
        "percentage_random=50,60",
        "file_service_type=random:8",
        "file_service_type=zipf:1.1",
        "file_service_type=gauss",
        "sync=dsync",
        "prio=7",
        "prioclass=3",
        "nice=19",
        "percentile_list=50:99.9",
        "cpus_allowed=0-1",
        "flow=5",
        "flow=-1",
        "rate=,500k",
        "rate=500k,",
        "rate_process=poisson",
        "thinktime_blocks_type=issue",
        "startdelay=1-3",
        "number_ios=5k",
        "randseed=0x55",
        "replay_align=4k",
        "replay_skip=read,write",
        "stonewall",
        "time_based=0",
        "rw_sequencer=identical",
        "blocksize=8k",
        "io_limit=1m",
        "ss_dur=5",
    ] {
        assert!(we_read(lines, |_| vec![]).is_some(), "we refuse {lines}");
        accepted.push_str(&format!("[a]\nioengine=null\nsize=1m\n{lines}\n"));
    }
    assert_eq!(complaints(&folder, &accepted), "");
    for lines in [
        "bs=0",
        "rw=foo",
        "rw= read",
        "bsrange=4k",
        "direct",
        "prio=8",
        "sync=2",
        "kb_base=10",
        "random_distribution=zipf:1.0",
        "random_distribution=zoned:60/10",
        "iodpeth=5",
        "percentile_list=101",
        "replay_align=3",
        "size=99999999999999999999",
        "runtime=x",
        "bs=(4*1024)",
    ] {
        assert!(we_read(lines, |_| vec![]).is_none(), "we accept {lines}");
        let text = format!("[a]\nioengine=null\nsize=1m\n{lines}\n");
        assert_ne!(complaints(&folder, &text), "", "fio accepts {lines}");
    }
}

/// What fio has to say against a job file.
fn complaints(folder: &Path, text: &str) -> String {
    let file = folder.join("choice.fio");
    std::fs::write(&file, text).unwrap();
    let out = Command::new("fio").arg("--parse-only").arg(&file).output().unwrap();
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn ranges_are_those_that_fio_announces() {
    if !fio_3_33() {
        return;
    }
    let folder = scratch("ranges");
    let file = folder.join("range.fio");
    for lines in ["bsrange=4k-1k,2k:8k", "bsrange=1k-2k\nbs=16k", "bs=512,1k,", "bssplit=2k/50:1k"]
    {
        std::fs::write(&file, format!("[a]\nioengine=null\nsize=1m\n{lines}\n")).unwrap();
        let out = Command::new("fio").current_dir(&folder).arg(&file).output().unwrap();
        let theirs = String::from_utf8_lossy(&out.stdout).into_owned();
        let job = jobs(&format!("[a]\n{lines}\n")).remove(0);
        for (name, (lo, hi)) in ["R", "W", "T"].iter().zip(job.bs.range) {
            let ours = format!("({name}) {lo}B-{hi}B");
            assert!(theirs.contains(&ours), "{lines}: {ours} is not in {theirs}");
        }
    }
}

/// Runs a job on the null engine and returns (operation, offset, length) of each I/O of its log.
fn replayed(folder: &Path, lines: &str) -> Vec<(String, u64, u64)> {
    let text = log_of_real_run(folder, lines);
    let io = |l: &str| -> Option<(String, u64, u64)> {
        let w: Vec<&str> = l.split_whitespace().collect();
        let [_, _, op, offset, len] = w[..] else { return None };
        Some((op.to_string(), offset.parse().ok()?, len.parse().ok()?))
    };
    text.lines().skip(1).filter_map(io).collect()
}

#[test]
fn regions_strides_and_block_sizes_are_those_of_a_real_run() {
    if !fio_3_33() {
        return;
    }
    let folder = scratch("runs");
    const FILE: u64 = 1 << 20;
    for lines in [
        "rw=read",
        "rw=write\nbs=8k,16k",
        "rw=read\nbs=8k\noffset=64k",
        "rw=read\nrw=read:8k",
        "rw=write\noffset=10%\nbs=16k",
        "rw=read\nsize=30%",
        "rw=read\nio_size=50%",
        "rw=read\nio_size=96k\nsize=64k",
        "rw=read\nnumber_ios=7",
        "rw=read\nsize=10k",
        "rw=read\nkb_base=1000\nbs=4kib\nsize=64kib",
        "rw=read\nbsrange=4k-4k\nbs=16k",
        "rw=write\nbssplit=8k/100\nbs=16k",
        "rw=read\nbs=,8k",
        "rw=trim\nbs=4k,8k,32k",
    ] {
        let lines = format!("filesize=1m\nsize=1m\n{lines}");
        let ios = replayed(&folder, &lines);
        let job = jobs(&format!("[a]\n{lines}\n")).remove(0);
        let direction = if job.pattern.trim { 2 } else { usize::from(job.pattern.write) };
        let (bs, _) = job.bs.range[direction];
        let aligned = |bytes: u64| bytes.div_ceil(bs) * bs;
        let offset = match job.target.offset_percent {
            Some(p) => aligned(FILE * u64::from(p) / 100),
            None => job.target.offset,
        };
        let size = match (job.target.size, job.target.size_percent) {
            (_, Some(p)) => FILE * u64::from(p) / 100,
            (Some(s), _) => s.min(FILE - offset),
            _ => FILE - offset,
        };
        // A file size overrides the size, which is then only the default of the amount.
        let region = if job.target.size_percent.is_some() { size } else { FILE - offset };
        let bytes = match (job.io_size, job.target.io_size_percent) {
            (_, Some(p)) => size * u64::from(p) / 100,
            (Some(b), _) => b,
            _ => size,
        };
        let step = bs + job.pattern.stride as u64;
        let in_region = (region - bs) / step + 1;
        let more = job.io_size.is_some();
        let mut count = bytes.div_ceil(bs);
        count = if more { count } else { count.min(in_region) };
        count = count.min(job.number_ios.unwrap_or(u64::MAX));
        assert_eq!(ios.len() as u64, count, "{lines}");
        for (i, (_, at, len)) in ios.iter().enumerate() {
            let expected = offset + i as u64 % in_region * step;
            assert_eq!((*at, *len), (expected, bs), "{lines}: I/O {i}");
        }
    }
}

#[test]
fn groups_and_names_are_those_of_a_real_run() {
    if !fio_3_33() {
        return;
    }
    let folder = scratch("groups");
    for sections in [
        "[a]\nnumjobs=2\n[b]\n[c]\nnew_group\nnumjobs=2\n[d]\nstonewall\n[e]\nnew_group=0\n[f]\nnew_group\nstonewall\n",
        "[global]\nstonewall\nnew_group\n[a]\nnumjobs=2\nname=xx\n[b]\n",
        "[a]\n[global]\nnew_group\n[b]\n[c]\nnew_group=0\n",
    ] {
        let file = folder.join("groups.fio");
        let text = format!("[global]\nioengine=null\nsize=64k\n{sections}");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new("fio");
        let out = command.current_dir(&folder).arg("--output-format=json").arg(&file).output();
        let out = out.unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let field = |key: &str| -> Vec<String> {
            let lines = text.lines().filter_map(|l| l.trim().strip_prefix(key));
            lines.map(|v| v.trim_matches([' ', ':', ',', '"']).to_string()).collect()
        };
        let theirs: Vec<_> = field("\"jobname\"").into_iter().zip(field("\"groupid\"")).collect();
        let ours: Vec<_> =
            jobs(sections).into_iter().map(|j| (j.name, j.group.to_string())).collect();
        assert!(!ours.is_empty());
        assert_eq!(ours, theirs, "{sections}");
    }
}
