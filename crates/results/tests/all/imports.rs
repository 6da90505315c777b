//! What other tools printed, of several versions, and the figures that an import takes from it.

use iosched_experiment::record::{IMPORT, Record, Status, Warning};
use iosched_results::import::{Context, Format, detect, import};
use iosched_results::measure::measures;

macro_rules! printed {
    ($name:literal) => {
        ($name, include_str!(concat!("../data/imports/", $name)))
    };
}

pub(crate) fn read((name, text): (&str, &str)) -> Vec<Record> {
    import(name, text, None, &Context::default()).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn refused(text: &str) -> String {
    let e = import("x.txt", text, None, &Context::default()).expect_err("a refusal");
    format!("{} {}", e.message, e.help)
}

#[track_caller]
pub(crate) fn figure(r: &Record, name: &str) -> f64 {
    let all = measures(r);
    let found = all.iter().find(|m| m.name == name).map(|m| m.value);
    let plain = || r.metrics.iter().find(|m| m.name == name).map(|m| m.value);
    let names = || all.iter().map(|m| m.name.as_str()).collect::<Vec<_>>().join(" ");
    found.or_else(plain).unwrap_or_else(|| panic!("{name}: {}", names()))
}

#[track_caller]
pub(crate) fn near(r: &Record, name: &str, wanted: f64) {
    let got = figure(r, name);
    assert!((got - wanted).abs() <= wanted.abs() * 1e-3, "{name}: {got}, not {wanted}");
}

pub(crate) fn said(r: &Record) -> String {
    let ours = r.warnings.iter().filter(|w| w.code == IMPORT);
    ours.map(|w| w.message.as_str()).collect::<Vec<_>>().join("; ")
}

/// fio 3.33 with `--status-interval=1`: four reports in JSON, for people and terse.
#[test]
fn reports_of_one_run_are_one_run() {
    for file in
        [printed!("fio-status-interval.json"), printed!("fio-si.txt"), printed!("fio-terse-si.txt")]
    {
        let r = read(file);
        assert_eq!(r.len(), 1, "{}", file.0);
        assert!(said(&r[0]).contains("reports of one run"), "{}: {}", file.0, said(&r[0]));
        assert!(r[0].jobs[0].runtime >= 2_900_000_000, "{}: the last one", file.0);
    }
    let r = read(printed!("fio-status-interval.json"));
    assert_eq!((r[0].jobs[0].read.ios, r[0].jobs[0].write.ios), (6952, 6982));
}

/// Two runs, one after the other, are two: the second begins when the first is over.
#[test]
fn runs_one_after_the_other_are_repetitions() {
    let one = |at: u64, ios: u64| {
        format!(
            r#"{{"fio version":"fio-3.33","timestamp":{0},"timestamp_ms":{0}500,"jobs":[{{"jobname":"a","elapsed":4,
            "read":{{"io_bytes":{1},"total_ios":{2},"runtime":3000,"iops":1.0}}}}]}}"#,
            1_795_833_000 + at,
            ios * 4096,
            ios
        )
    };
    let all = |ats: &[(u64, u64)]| -> usize {
        let text: Vec<String> = ats.iter().map(|(at, ios)| one(*at, *ios)).collect();
        read(("f.json", &text.join("\n"))).len()
    };
    assert_eq!(all(&[(0, 100), (3, 110), (7, 120)]), 3);
    assert_eq!(all(&[(0, 100), (0, 100)]), 1, "the same report twice");
    assert_eq!(all(&[(0, 100), (3, 90)]), 2);
}

#[test]
fn reads_and_writes_as_one_are_mixed() {
    for file in [printed!("fio-mixed.json"), printed!("fio-uni.txt")] {
        let r = &read(file)[0];
        assert!(said(r).contains("called mixed"), "{}", said(r));
        let iops = figure(r, "mixed.iops");
        let bw = figure(r, "mixed.bw");
        assert!((bw / iops - 4096.0).abs() < 1.0, "{bw} {iops}");
        assert!(figure(r, "mixed.clat.p99") > figure(r, "mixed.clat.p50"));
    }
    near(&read(printed!("fio-mixed.json"))[0], "mixed.iops", 13473.684);
    let both = &read(printed!("fio-both.json"))[0];
    assert!(said(both).contains("sum of what stands beside it"), "{}", said(both));
    assert_eq!((both.jobs[0].read.ios, both.jobs[0].write.ios), (994, 1054));
    let both = &read(printed!("fio-both.txt"))[0];
    assert_eq!((both.jobs[0].read.ios, both.jobs[0].write.ios), (994, 1054));
}

#[test]
fn fio_2_has_microseconds_and_kib() {
    let r = &read(printed!("fio-2.2.json"))[0];
    near(r, "write.iops", 15624.7);
    near(r, "write.bw", 62499.0 * 1024.0);
    near(r, "write.clat.mean", 8_151_190.0);
    near(r, "write.clat.p99.9", 14_912_000.0);
    let r = &read(printed!("fio-2.6-client.json"))[0];
    near(r, "mixed.iops", 2252.49);
    near(r, "mixed.bw", 16653.0 * 1024.0);
    near(r, "mixed.lat.mean", 1_782_920.0);
}

/// As later versions of fio 2 print it: bytes.
#[test]
fn bytes_of_fio_2_are_known_by_its_rate() {
    let text = r#"{"fio version":"fio-2.18","jobs":[{"jobname":"a","read":{"io_bytes":4096000,"bw":4000,"iops":1000.0,
        "runtime":1000,"total_ios":1000,"clat":{"min":1,"max":9,"mean":5.0,"stddev":1.0}}}]}"#;
    let r = &read(("f.json", text))[0];
    near(r, "read.bw", 4_096_000.0);
    near(r, "read.clat.mean", 5000.0);
}

#[test]
fn clients_are_not_counted_with_their_sum() {
    let r = &read(printed!("fio-client.json"))[0];
    assert_eq!(r.jobs.len(), 2);
    near(r, "read.iops", 2.0 * 1024.0 / 0.073);
    assert!(said(r).contains("percentiles of 2 processes"), "{}", said(r));
    assert_eq!(figure(r, "read.clat.mean"), 70422.463867);
}

#[test]
fn what_is_no_number_is_no_figure() {
    let r = &read(printed!("fio-nan.json"))[0];
    assert!(said(r).contains("are no numbers"), "{}", said(r));
    assert!(r.jobs[0].read.ios + r.jobs[0].write.ios > 0);
    let text = r#"note: something {
        {"fio version":"fio-3.1","jobs":[{"jobname":"a","read":{"total_ios":5,"runtime":1000,"iops":-nan,"bw_mean": inf}}]} and more"#;
    assert_eq!(figure(&read(("f.json", text))[0], "read.iops"), 5.0);
}

#[test]
fn members_that_nothing_reads_are_named() {
    let text = r#"{"fio version":"fio-9.1","jobs":[{"jobname":"a","warp":1,"read":{"total_ios":5,"runtime":1000,"haste":{}}}]}"#;
    let said = said(&read(("f.json", text))[0]);
    assert!(said.contains("haste, warp"), "{said}");
}

#[test]
fn a_trial_without_figures_is_not_stored() {
    let text = r#"{"fio version":"fio-3.33","jobs":[{"jobname":"a","odd":1}]}"#;
    let e = refused(text);
    assert!(e.contains("no figures") && e.contains("odd"), "{e}");
    let one = r#"{"fio version":"fio-3.33","jobs":[{"jobname":"a","read":{"total_ios":5,"runtime":1000}}]}"#;
    let r = read(("f.json", &format!("{text}\n{one}")));
    assert_eq!(r.len(), 1);
    assert!(said(&r[0]).contains("1 of 2 trials"), "{}", said(&r[0]));
}

#[test]
fn fio_for_people() {
    let r = &read(printed!("fio-normal.txt"))[0];
    assert_eq!((r.jobs[0].read.ios, r.jobs[0].write.ios), (496, 528));
    near(r, "read.iops", 496.0 / 0.143);
    near(r, "read.bw", 1984.0 * 1024.0 / 0.143);
    near(r, "read.clat.mean", 226_310.0);
    near(r, "write.clat.mean", 2470.6);
    near(r, "write.clat.p99", 8096.0);
    assert_eq!(r.trial.device, "vda");
    let r = &read(printed!("fio-sync.txt"))[0];
    near(r, "sync.lat.mean", 2_999_520.0);
    assert_eq!(r.jobs[0].sync.ios, 133);
    let r = &read(printed!("fio-two.txt"))[0];
    assert_eq!((r.jobs.len(), r.jobs[0].read.ios, r.jobs[1].read.ios), (2, 994, 988));
    let r = &read(printed!("fio-group.txt"))[0];
    assert_eq!((r.jobs.len(), r.jobs[0].name.as_str()), (1, "a"), "a group is one");
    // Four reports of two jobs, each of all that was done up to then.
    let r = &read(printed!("fio-terse-si-two.txt"));
    assert_eq!((r.len(), r[0].jobs.len()), (1, 2));
    near(&r[0], "job/wr/write.iops", 199.0);
    near(&r[0], "job/rd/read.iops", 299.0);
    // A client's sum of its servers is no job beside them.
    let r = &read(printed!("fio-client-two.txt"));
    assert!(r.iter().flat_map(|r| &r.jobs).all(|j| j.name != "All clients"), "{:?}", r.len());
    assert_eq!(r.iter().map(|r| r.jobs.len()).sum::<usize>(), 2);
    near(&read(printed!("fio-noclat.txt"))[0], "read.lat.mean", 936_230.0);
}

/// The form of fio 2: `io=`, `runt=`, KB of 1024 bytes, blanks before commas.
#[test]
fn fio_2_for_people() {
    let text = "\
test: (g=0): rw=randwrite, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32
fio-2.2.10
Starting 1 process

test: (groupid=0, jobs=1): err= 0: pid=2345: Fri Nov 17 23:59:32 2017
  write: io=4000.0MB, bw=102400KB/s, iops=25600, runt= 40000msec
    slat (usec): min=2, max=960, avg= 5.10, stdev= 3.20
    clat (msec): min=1, max=26, avg= 1.25, stdev= 0.30
     lat (usec): min=960 , max=26111 , avg=1255.19, stdev=300.83
    clat percentiles (usec):
     |  1.00th=[  908],  5.00th=[ 1012], 10.00th=[ 1064], 20.00th=[ 1128],
     | 99.00th=[ 2096], 99.50th=[ 2480], 99.90th=[ 5408], 99.95th=[ 8384],
     | 99.99th=[20864]
    bw (KB  /s): min=90000, max=110000, per=100.00%, avg=102400.00, stdev=2000.00
    lat (msec) : 2=98.90%, 4=0.90%, 10=0.15%, 20=0.04%, 50=0.01%
  cpu          : usr=5.00%, sys=15.00%, ctx=500000, majf=0, minf=10
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=0.1%, 32=100.0%, >=64=0.0%
     issued    : total=r=0/w=1024000/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0

Run status group 0 (all jobs):
  WRITE: io=4000.0MB, aggrb=102400KB/s, minb=102400KB/s, maxb=102400KB/s, mint=40000msec, maxt=40000msec

Disk stats (read/write):
  xvda: ios=0/1024000, merge=0/10, ticks=0/1270000, in_queue=1270000, util=100.00%
";
    let r = &read(("f.txt", text))[0];
    near(r, "write.iops", 25600.0);
    near(r, "write.bw", 102_400.0 * 1024.0);
    near(r, "write.clat.mean", 1_250_000.0);
    near(r, "write.clat.p99.99", 20_864_000.0);
    let twice = format!("{text}\n{text}");
    let r = read(("f.txt", &twice.replacen("pid=2345", "pid=2346", 1)));
    assert_eq!(r.iter().map(|r| r.trial.repetition).collect::<Vec<_>>(), [1, 2]);
}

/// One job by fio 3.33 in the four versions of its terse form.
#[test]
fn terse_forms() {
    let all = [
        (printed!("fio-terse2.txt"), 3976.0 / 0.675, 1472.0, 619_071.7),
        (printed!("fio-terse3.txt"), 3976.0 / 0.506, 1964.0, 459_459.9),
        (printed!("fio-terse4.txt"), 3976.0 / 0.547, 1817.0, 488_480.6),
        (printed!("fio-terse5.txt"), 3976.0 / 0.587, 1693.0, 515_768.1),
    ];
    for (file, kib, iops, mean) in all {
        let r = &read(file)[0];
        near(r, "read.bw", kib * 1024.0);
        near(r, "read.iops", iops);
        near(r, "read.clat.mean", mean);
        assert!(figure(r, "write.clat.p99") > figure(r, "write.clat.p50"), "{}", file.0);
        assert_eq!(r.jobs[0].trim.ios, 0);
    }
    let cut = &printed!("fio-terse3.txt").1[..700];
    assert!(refused(cut).contains("cut off"), "{}", refused(cut));
}

#[test]
fn pg_test_fsync_of_any_version_and_language() {
    let old = &read(printed!("pg_test_fsync-9.1.txt"))[0];
    near(old, "Compare file sync methods using one 8kB write: fdatasync [ops/sec]", 1839.337);
    near(old, "Non-sync'ed 8kB writes: write [ops/sec]", 244_921.142);
    let files = [
        printed!("pg_test_fsync-15-de.txt"),
        printed!("pg_test_fsync-15-fr.txt"),
        printed!("pg_test_fsync-15-ru.txt"),
        printed!("pg_test_fsync-15-ja.txt"),
    ];
    let names = |r: &Record| r.metrics.iter().map(|m| m.name.clone()).collect::<Vec<_>>();
    let english =
        &import("p.txt", include_str!("../data/pg_test_fsync.txt"), None, &Context::default())
            .unwrap()[0];
    for file in files {
        assert_eq!(detect(file.1), Some(Format::PgTestFsync), "{}", file.0);
        let r = &read(file)[0];
        assert_eq!(names(r), names(english), "{}", file.0);
        assert_eq!(r.provenance["n/a"], english.provenance["n/a"], "{}", file.0);
    }
    let comma = printed!("pg_test_fsync-9.1.txt").1.replace("1839.337", "1839,337");
    near(
        &read(("p.txt", &comma))[0],
        "Compare file sync methods using one 8kB write: fdatasync [ops/sec]",
        1839.337,
    );
}

#[test]
fn iozone_by_the_places_of_its_heads() {
    let r = &read(printed!("iozone-gaps.txt"))[0];
    let got: Vec<(&str, f64)> = r.metrics.iter().map(|m| (m.name.as_str(), m.value)).collect();
    let wanted = [
        ("write 1024k of 102400k", 241_174.0),
        ("rewrite 1024k of 102400k", 243_971.0),
        ("random read 1024k of 102400k", 330_626.0),
        ("random write 1024k of 102400k", 297_308.0),
    ];
    assert_eq!(got, wanted);
    let moved: Vec<String> =
        printed!("iozone-gaps.txt").1.lines().map(|l| format!("node-7: {l}")).collect();
    let r = &read(("i.txt", &moved.join("\n")))[0];
    assert_eq!((r.metrics.len(), r.provenance["host"].as_str()), (4, "node-7"));
    let logged: Vec<String> = printed!("iozone-gaps.txt")
        .1
        .lines()
        .map(|l| format!("Nov 28 02:31:39 node-7 iozone[12]: {l}"))
        .collect();
    assert_eq!(read(("i.txt", &logged.join("\n")))[0].metrics.len(), 4);
}

#[test]
fn dbench_pgbench_sysbench_and_bonnie() {
    let both = |r: &[Record]| {
        let all: Vec<&str> = r.iter().map(|r| r.trial.scheduler.as_str()).collect();
        assert_eq!(all, ["mq-deadline", "bfq"]);
    };
    let r = read(printed!("dbench.txt"));
    both(&r);
    assert_eq!((figure(&r[0], "throughput"), figure(&r[1], "max latency")), (795.18, 39.193));
    assert_eq!(figure(&r[0], "Flush mean latency"), 2.21);
    let r = read(printed!("pgbench.txt"));
    both(&r);
    assert_eq!((figure(&r[0], "tps"), figure(&r[1], "latency average")), (795.271304, 2.931));
    assert!(said(&r[0]).contains("statements"));
    let r = read(printed!("pgbench_rate.txt"));
    assert_eq!(figure(&r[0], "tps"), 206.774733);
    let old = "transaction type: TPC-B (sort of)\nlatency average: 1.5 ms\n\
               tps = 85.1 (including connections establishing)\ntps = 85.3 (excluding connections establishing)\n";
    assert_eq!(figure(&read(("p.txt", old))[0], "tps"), 85.3);
    let r = read(printed!("sysbench.txt"));
    both(&r);
    assert_eq!(
        (figure(&r[0], "reads"), figure(&r[0], "written"), figure(&r[0], "latency p99")),
        (10084.61, 105.06, 3.89)
    );
    let old = "sysbench 0.4.12:  multi-threaded system evaluation benchmark\nOperations performed:  6000 Read, 4000 Write, 12800 Other = 22800 Total\n\
               Read 93.75Mb  Written 62.5Mb  Total transferred 156.25Mb  (15.613Mb/sec)\n  999.23 Requests/sec executed\n\n\
               Test execution summary:\n    total time:                          10.0077s\n    per-request statistics:\n         min:                                  0.01ms\n\
               avg:                                  0.22ms\n         max:                                 25.01ms\n         approx.  95 percentile:               0.62ms\n";
    let r = &read(("s.txt", old))[0];
    assert_eq!(
        (figure(r, "throughput"), figure(r, "requests"), figure(r, "latency p95")),
        (15.613, 999.23, 0.62)
    );
    let new = "sysbench 1.1.0\nThroughput:\n         read:  IOPS=10084.61 157.57 MiB/s (165.22 MB/s)\n         write: IOPS=6723.65 105.06 MiB/s (110.16 MB/s)\n         fsync: IOPS=2703.08\n\nFile operations:\n";
    let r = &read(("s.txt", new))[0];
    assert_eq!(
        (figure(r, "reads"), figure(r, "read"), figure(r, "fsyncs")),
        (10084.61, 157.57, 2703.08)
    );
    let r = read(printed!("bonnie++.txt"));
    both(&r);
    assert_eq!(figure(&r[0], "sequential create"), 2290.0);
    assert_eq!(figure(&r[0], "sequential output by block max latency"), 2110.0);
    assert!(r[0].metrics.iter().all(|m| m.name != "rewrite"), "too fast");
    let told = |w: &Warning| w.message.contains("rewrite") && w.message.contains("too fast");
    assert!(r[0].warnings.iter().any(told), "{:?}", r[0].warnings);
}

/// 1.03 has a line of 27 fields, and a table in K/sec.
#[test]
fn bonnie_of_old() {
    let line = "host,300M,8412,98,25000,20,12000,10,9000,95,60000,15,250.1,1,16,2000,5,+++++,+++,3000,6,2100,5,+++++,+++,2900,7";
    let r = &read(("b.csv", line))[0];
    assert_eq!(
        (
            figure(r, "sequential output by block"),
            figure(r, "random seeks"),
            figure(r, "random delete")
        ),
        (25000.0, 250.1, 2900.0)
    );
    let table = "\
Version  1.03       ------Sequential Output------ --Sequential Input- --Random-
                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP
host           300M  8412  98 25000  20 12000  10  9000  95 60000  15 250.1   1
";
    let r = &read(("b.txt", table))[0];
    assert_eq!(
        (figure(r, "rewrite"), figure(r, "sequential input by block"), figure(r, "random seeks")),
        (12000.0, 60000.0, 250.1)
    );
}

#[test]
fn what_cannot_be_read_is_known_by_name() {
    let trace = "259,0    1     9482     7.124364072  8699  Q  DS 0 + 1172272 [fio]\n\
                 259,0    1     9487     7.124393062   101  D  DS 0 + 1172272 [kworker/1:1H]\n";
    let snoop = "TIME(s)        COMM           PID    DISK    T  SECTOR    BYTES   LAT(ms)\n\
                 0.000004001    supervise      1950   xvda1   W  13092560  4096       0.74\n";
    for (text, name, what) in [
        (trace, "blkparse", "read_iolog"),
        (snoop, "biosnoop", "fio"),
        ("fio version 3 iolog\n15 ../m3/fio.dat add\n", "I/O log of fio", "read_iolog"),
        ("1000, 55296, 0, 0, 0\n2000, 55311, 0, 0, 0\n", "bandwidth", "json"),
        ("Device r/s w/s rkB/s wkB/s %util\nvda 1 2 3 4 5\n", "iostat", "fio"),
        (
            "/dev/sda:\n Timing buffered disk reads: 340 MB in  3.01 seconds = 113.0 MB/sec\n",
            "hdparm",
            "fio",
        ),
        (
            "4 KiB <<< m3 (ext4): request=1 time=3.25 ms\n--- m3 ioping statistics ---\n",
            "ioping",
            "fio",
        ),
        ("\u{7}tae\0\0", "blktrace", "read_iolog"),
        (
            "<idle>-0 [001] d.h. 1.0: block_rq_complete: 8,0 R () 1 + 8 [0]\n",
            "tracefs",
            "trace info",
        ),
        (
            " <...>-30496 [001] ..... 3.3: block_rq_issue: 7,3 WS 4096 () 1 + 8 [fio]\n",
            "tracefs",
            "trace info",
        ),
        ("{\"sysstat\": {\n\"hosts\": []}}\n", "iostat", "fio"),
        (
            "Attaching 3 probes...\n4043064072879 WSM 3950992 16 227740 22\n",
            "bpftrace",
            "iosched record",
        ),
        (
            "Total DISK READ: 0.00 B/s | Total DISK WRITE: 7 K/s\n TID PRIO USER DISK READ DISK WRITE\n",
            "iotop",
            "fio",
        ),
        ("Filebench Version 1.4.9.1\n9.1: IO Summary: 1 ops 2 ops/s\n", "filebench", "CSV"),
        ("stress-ng: metrc: [1] hdd 44463 4.00\n", "stress-ng", "fio"),
        ("---\nsystem-info:\n      stress-ng-version: 0.15.06\n", "stress-ng", "fio"),
        ("CrystalDiskMark 8.0.4\n SEQ 1MiB (Q= 8, T= 1): 3504.1 MB/s\n", "CrystalDiskMark", "CSV"),
        (
            "##### scheduler=bfq cmd: ioping -B\n199 359280228 554 2268714 19320 1805428 51 18 200 36\n",
            "ioping",
            "fio",
        ),
        ("  open_datasync 171.282/second\n  fsync 60.1/second\n", "test_fsync", "pg_test_fsync"),
        ("", "empty", "stopped"),
        ("\u{feff}\n \n", "empty", "stopped"),
        ("1 pwrite64(3, \"\", 5, 21) = 5\n1 fsync(3) = 0\n", "strace", "iosched run"),
        ("[a]\nrw=read\n", "fio job", "iosched run"),
        (
            "Simple write timing:\n\twrite                    0.013457\n\nCompare file sync methods with one 8k write:\n\t(o_dsync unavailable)\n\
             \topen o_sync, write       0.142357\n\twrite, fdatasync         0.117462\n",
            "test_fsync",
            "pg_test_fsync",
        ),
    ] {
        let e = refused(text);
        assert!(e.contains(name) && e.contains(what), "{name}: {e}");
    }
}

#[test]
fn failed_jobs_are_failed_trials() {
    let text = "fio-3.33\na: (groupid=0, jobs=1): err=25 (file:ioengines.c:399, func=td_io_queue, error=Inappropriate ioctl for device): pid=18640: Sat\n  cpu          : usr=0.00%, sys=17.86%, ctx=7, majf=0, minf=18\n";
    assert!(matches!(&read(("f.txt", text))[0].status, Status::Failed(why) if why.contains("25")));
}
