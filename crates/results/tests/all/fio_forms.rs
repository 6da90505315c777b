//! fio's output in the forms that versions and options give it: units, clients, reads and writes as one, disks.

use iosched_results::import::{Context, import, read_file};

use super::imports::{figure, near, read, refused, said};

macro_rules! printed {
    ($name:literal) => {
        ($name, include_str!(concat!("../data/imports/", $name)))
    };
}

/// fio 2.1.3: `runtime=` for `runt=`.
const FIO_2_1: &str = "\
fio-2.1.3
Starting 1 process

random-write: (groupid=0, jobs=1): err= 0: pid=4061: Mon Feb 10 11:20:32 2014
  write: io=1024.0MB, bw=1234.5KB/s, iops=308, runtime=849402msec
    clat (msec): min=1, max=1543, avg=103.65, stdev=56.78
  cpu          : usr=0.31%, sys=0.73%, ctx=262144, majf=0, minf=28
     issued    : total=r=0/w=262144/d=0, short=r=0/w=0/d=0

Run status group 0 (all jobs):
  WRITE: io=1024.0MB, aggrb=1234KB/s, minb=1234KB/s, maxb=1234KB/s, mint=849402msec, maxt=849402msec

Disk stats (read/write):
  sda: ios=0/262100, merge=0/120, ticks=0/27112345, in_queue=27113333, util=99.98%
";

/// fio 1.38: commas part thousands, `issued r/w:`.
const FIO_1: &str = "\
fio 1.38
Starting 1 process

read: (groupid=0, jobs=1): err= 0: pid=10237
  read : io=2,048MiB, bw=57,345KiB/s, iops=14,000, runt= 36571msec
    clat (usec): min=1, max=24,000, avg=68.11, stdev=322.11
  cpu          : usr=2.21%, sys=8.81%, ctx=16,612, majf=0, minf=25
     issued r/w: total=524,288/0, short=0/0

Disk stats (read/write):
  sda: ios=16384/12, merge=0/8, ticks=33000/120, in_queue=33110, util=97.10%
";

#[test]
fn status_lines_of_old_versions() {
    let r = &read(("f.txt", FIO_2_1))[0];
    near(r, "write.bw", 1024.0 * 1024.0 * 1024.0 / 849.402);
    near(r, "write.iops", 262_144.0 / 849.402);
    let r = &read(("f.txt", FIO_1))[0];
    near(r, "read.bw", 2048.0 * 1024.0 * 1024.0 / 36.571);
    near(r, "read.iops", 524_288.0 / 36.571);
    assert_eq!((r.jobs[0].read.lat.max, r.jobs[0].read.ios), (0.0, 524_288));
    assert_eq!(r.provenance["tool"], "fio 1.38");
    // A time in seconds, or none: bytes and their rate give it.
    for (other, bytes) in [("runt=  36.571sec", 36.571), ("iodepth=1", 2_097_152.0 / 57_345.0)] {
        let text = FIO_1.replace("runt= 36571msec", other);
        near(&read(("f.txt", &text))[0], "read.iops", 524_288.0 / bytes);
    }
    let e = refused(&FIO_1.replace("2,048MiB", "2,0q8MiB"));
    assert!(e.contains("2,0q8"), "{e}");
}

#[test]
fn a_quoted_output_is_read_as_it_was() {
    for quote in ["> ", ">", "    > ", "> > "] {
        let lines: Vec<String> = FIO_2_1.lines().map(|l| format!("{quote}{l}")).collect();
        let text = format!("Jane wrote:\n\n{}\n", lines.join("\n"));
        let r = &read(("f.txt", &text))[0];
        near(r, "write.iops", 262_144.0 / 849.402);
        assert_eq!((r.jobs[0].name.as_str(), r.trial.device.as_str()), ("random-write", "sda"));
        let torn = text.replace("io=1024.0MB", "io=10x4.0MB");
        let e = import("x.txt", &torn, None, &Context::default()).expect_err("a refusal");
        assert_eq!(e.line, 7, "{e}");
    }
}

/// `fio --client=… --output-format=terse`, 3.33: the status line has no end, the disks have a line, and the sum follows.
#[test]
fn a_clients_terse_output_is_not_counted_with_its_sum() {
    let file = printed!("fio-client-terse.txt");
    let r = read(file);
    assert_eq!(r.len(), 1);
    let names: Vec<&str> = r[0].jobs.iter().map(|j| j.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    near(&r[0], "read.iops", 135_764.0 / 4.0 / 1.001);
    near(&r[0], "write.iops", 309_168.0 / 4.0 / 1.005);
    assert_eq!((r[0].trial.device.as_str(), r[0].device.commands[0]), ("vda", 3137));
    let share = r[0].device.busy as f64 / r[0].elapsed as f64;
    assert!((share - 0.3552).abs() < 1e-4, "{share}");
    // Version 2 has no name of the program behind its number.
    let old = file.1.replace("3;fio-3.33;", "2;");
    let r = read(("c.txt", &old));
    assert_eq!(r[0].jobs.iter().map(|j| j.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn disks_are_as_busy_as_fio_says() {
    let busy = |file: (&str, &str)| {
        let r = &read(file)[0];
        (r.device.busy as f64 / r.elapsed as f64 * 1e4).round() / 100.0
    };
    assert_eq!(busy(("f.txt", FIO_2_1)), 99.98);
    assert_eq!(busy(("f.txt", FIO_1)), 97.1);
    assert_eq!(busy(printed!("fio-uni.txt")), 4.54);
    let r = &read(printed!("fio-uni-terse3.txt"))[0];
    assert_eq!(
        (r.device.commands[..2].to_vec(), r.device.merges[..2].to_vec()),
        (vec![248, 258], vec![0, 0])
    );
    assert_eq!(busy(printed!("fio-uni-terse3.txt")), 8.65);
}

/// fio 3.33 with `unified_rw_reporting=1` has one side, with `both` one more; of version 3, which has no trims, that is the
/// third.
#[test]
fn reads_and_writes_as_one_are_mixed_in_terse_lines() {
    for file in [
        printed!("fio-uni-terse2.txt"),
        printed!("fio-uni-terse3.txt"),
        printed!("fio-uni-terse4.txt"),
        printed!("fio-uni-terse5.txt"),
    ] {
        let r = &read(file)[0];
        assert!(said(r).contains("called mixed"), "{}: {}", file.0, said(r));
        assert_eq!(r.jobs[0].read.ios, 0, "{}", file.0);
        assert!((figure(r, "mixed.bw") / figure(r, "mixed.iops") - 4096.0).abs() < 1.0);
        assert!(r.elapsed > 0 && r.jobs[0].runtime > 90_000_000, "{}", file.0);
    }
    let r = &read(printed!("fio-both-terse3.txt"))[0];
    assert!(said(r).contains("sum of what stands beside it"), "{}", said(r));
    assert_eq!((r.jobs[0].read.ios, r.jobs[0].trim.ios), (496, 0));
    assert!(r.jobs[0].cpu.system > 0);
}

#[test]
fn reports_of_one_run_with_reads_and_writes_as_one_are_one_run() {
    let r = read(printed!("fio-uni-status-interval.json"));
    assert_eq!(r.len(), 1);
    assert!(said(&r[0]).contains("3 reports of one run"), "{}", said(&r[0]));
    near(&r[0], "mixed.iops", 90.0 / 2.019);
    assert_eq!(r[0].jobs[0].runtime, 2_019_000_000);
}

/// fio 3.33, 4000 bytes a request: with `kb_base=1000` kB comes first, which are 1000 bytes.
#[test]
fn kilobytes_of_1000_bytes() {
    for (file, ms) in [(printed!("fio-kb1000.txt"), 0.122), (printed!("fio-bits.txt"), 0.136)] {
        let r = &read(file)[0];
        for (name, ios) in [("read", 509.0), ("write", 539.0)] {
            near(r, &format!("{name}.bw"), ios * 4000.0 / ms);
        }
    }
}

#[test]
fn json_without_its_version_line_is_fios() {
    let text = printed!("fio-both.json").1;
    let start = text.find("  \"fio version\"").unwrap();
    let end = start + text[start..].find('\n').unwrap() + 1;
    let bare = format!("{}{}", &text[..start], &text[end..]);
    let (whole, bare) = (read(("f.json", text)).remove(0), read(("f.json", &bare)).remove(0));
    assert_eq!((whole.jobs, bare.provenance["tool"].as_str()), (bare.jobs, "fio"));
}

/// As PowerShell's `>` writes it, and with the bytes of a word the other way round.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test writes the file that is read")]
fn utf_16_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.txt");
    let text = format!("{FIO_2_1}\u{1f4be}\n").replace('\n', "\r\n");
    type Order = fn(u16) -> [u8; 2];
    let orders: [([u8; 2], Order); 2] =
        [([0xff, 0xfe], u16::to_le_bytes), ([0xfe, 0xff], u16::to_be_bytes)];
    for (mark, bytes) in orders {
        let words = text.encode_utf16().flat_map(bytes);
        std::fs::write(&path, mark.into_iter().chain(words).collect::<Vec<u8>>()).unwrap();
        let read_back = read_file(&path).unwrap();
        assert_eq!(read_back, text);
        near(&read(("f.txt", &read_back))[0], "write.iops", 262_144.0 / 849.402);
    }
}

/// Quotes are taken off a few times, not as often as there are signs.
#[test]
fn a_line_of_quotes_is_no_mail() {
    let e = import("x.txt", &">".repeat(20_000), None, &Context::default()).expect_err("no format");
    assert!(e.message.contains("not recognised"), "{e}");
}
