//! Input that is no good trace: a message, counts, and never a panic.

use iosched_trace::summary::{About, Summary};
use iosched_trace::{Error, Io, Tables, open};
use iosched_types::units::SEC;

use crate::{bytes, data, files, read};

fn refused(content: &[u8]) -> String {
    match open(bytes(content), None) {
        Err(e) => e.to_string(),
        Ok(trace) => panic!("read as {}", trace.format.name),
    }
}

fn parsed(content: &[u8]) -> (Vec<Io>, Tables) {
    read(open(bytes(content), None).unwrap()).unwrap()
}

fn doubts(content: &[u8]) -> String {
    let trace = open(bytes(content), None).unwrap();
    let format = trace.format;
    let (ios, tables) = read(trace).unwrap();
    let mut summary = Summary::default();
    ios.iter().for_each(|io| summary.add(io));
    let about = About { file: "trace", format, packed: &[], first: &ios[0] };
    summary.report(&about, &tables).doubts.join("\n")
}

#[test]
fn strangers_are_named() {
    for (content, words) in [
        (&b""[..], "the file is empty"),
        (b"PERFILE2abc", "perf script"),
        (b"\x17\x08Dtracing123", "trace-cmd report"),
        (b"hello world\nand more\n", "no trace of a known format"),
        (b"\x00\x01\x02\x03", "no trace of a known format"),
        (b"\xff\xfe\xfd", "no trace of a known format"),
        (b"\x1f\x8b", "trace: "),
    ] {
        let message = refused(content);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_parquet_file_without_its_end_is_broken() {
    match open(bytes(b"PAR1abcdefghijklmnop"), None) {
        Ok(trace) => assert!(matches!(read(trace), Err(Error::Read { .. }))),
        Err(e) => assert!(e.to_string().contains("does not read"), "{e}"),
    }
}

#[test]
fn a_file_cut_off_anywhere_gives_what_it_has() {
    let whole = std::fs::read(data("loop0.blktrace.1")).unwrap();
    for cut in (48..whole.len()).step_by(997) {
        let (ios, tables) = parsed(&whole[..cut]);
        assert!(!ios.is_empty(), "{cut}");
        assert!(tables.tally.dropped() <= 1, "{cut}");
    }
    let whole = std::fs::read(data("fio-3.log")).unwrap();
    let (ios, tables) = parsed(&whole[..whole.len() - 15]);
    assert!(!ios.is_empty());
    assert!(
        tables.tally.skipped.keys().all(|k| k.contains("middle of a line")),
        "{:?}",
        tables.tally.skipped
    );
    // A compressed file that ends too early is an error of reading, behind the I/Os that it still has.
    let whole = std::fs::read(data("ftrace.txt.zst")).unwrap();
    let trace = open(bytes(&whole[..whole.len() / 2]), None);
    assert!(matches!(trace.map(read), Err(Error::Read { .. }) | Ok(Err(Error::Read { .. }))));
}

#[test]
fn records_between_garbage_are_found() {
    let mut whole = std::fs::read(data("loop0.blktrace.1")).unwrap();
    whole.splice(480..500, [7u8; 33]);
    let (ios, tables) = parsed(&whole);
    assert!(ios.len() > 150);
    let skipped = &tables.tally.skipped["no record begins here"];
    assert!(skipped.count >= 1 && skipped.first >= 432, "{skipped:?}");
}

#[test]
fn both_byte_orders_and_versions_are_read() {
    let little = std::fs::read(data("loop0.blktrace.1")).unwrap();
    let (wanted, _) = parsed(&little);
    for (big, eight) in [(true, false), (false, true), (true, true)] {
        let (ios, tables) = parsed(&rewritten(&little, big, eight));
        assert_eq!(tables.tally.dropped(), 0);
        assert_eq!(ios, wanted, "big-endian {big}, version 8 {eight}");
    }
}

/// The same records in another byte order or version.
fn rewritten(from: &[u8], big: bool, eight: bool) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < from.len() {
        let mut put = |of: usize, n: usize, to: usize| {
            let mut field = from[at + of..at + of + n].to_vec();
            field.resize(to, 0);
            if big {
                field.reverse();
            }
            out.extend(field);
        };
        put(0, 4, 4);
        let magic = out.len() - 4;
        let mut put = |of: usize, n: usize, to: usize| {
            let mut field = from[at + of..at + of + n].to_vec();
            field.resize(to, 0);
            if big {
                field.reverse();
            }
            out.extend(field);
        };
        put(4, 4, 4);
        put(8, 8, 8);
        put(16, 8, 8);
        put(24, 4, 4);
        if eight {
            put(32, 4, 4);
            put(28, 4, 8);
        } else {
            put(28, 4, 4);
            put(32, 4, 4);
        }
        put(36, 4, 4);
        put(40, 4, 4);
        put(44, 2, 2);
        put(46, 2, 2);
        let payload = usize::from(u16::from_le_bytes([from[at + 46], from[at + 47]]));
        if eight {
            out[if big { magic + 3 } else { magic }] = 8;
            out.extend([0; 12]);
        }
        out.extend(&from[at + 48..at + 48 + payload]);
        at += 48 + payload;
    }
    out
}

#[test]
fn completions_alone_are_no_trace() {
    let text: String = (0..9)
        .map(|i| {
            format!("  8,0    0        {i}     0.00000000{i}    14  C  RS {} + 8 [0]\n", i * 8)
        })
        .collect();
    let mut trace = open(bytes(text.as_bytes()), None).unwrap();
    assert!(trace.next_io().unwrap().is_none());
    let message = trace.nothing().to_string();
    assert!(
        message.contains("9 completions and no I/O") && message.contains("block_rq_issue"),
        "{message}"
    );
}

#[test]
fn sectors_beyond_any_disk_are_counted() {
    let lines = "0,1,4096,R,0.1\n0,36028797018963968,4096,R,0.2\n0,18446744073709551615,8,W,0.3\n0,7,0,W,0.3\n0,1,512,x,9\n";
    let (ios, tables) = parsed(lines.as_bytes());
    assert_eq!(ios.len(), 1);
    let counts: Vec<_> = tables.tally.skipped.iter().map(|(k, s)| (*k, s.count, s.first)).collect();
    assert_eq!(
        counts,
        [
            ("the length is zero", 1, 4),
            ("the operation is neither read nor write", 1, 5),
            ("the sector is beyond any disk", 2, 2)
        ]
    );
}

#[test]
fn times_of_1601_are_noticed() {
    let mut text = String::from("120,hm,1,Read,0,4096,10\n");
    for i in 0..20u64 {
        text +=
            &format!("{},hm,1,Read,{},4096,900\n", 128_166_372_003_061_629 + i * 1000, i * 4096);
    }
    let said = doubts(text.as_bytes());
    assert!(said.contains("nothing for 406 years") && said.contains("before 1970"), "{said}");
    let late = "184467440737095517,hm,1,Read,0,4096,10\n128166372003061629,hm,1,Read,0,4096,10\n";
    assert_eq!(parsed(late.as_bytes()).1.tally.dropped(), 1);
}

#[test]
fn mistaken_units_are_noticed() {
    let sectors: String = (0..50).map(|i| format!("0,{},8,R,{}.5\n", i * 8, i)).collect();
    assert!(doubts(sectors.as_bytes()).contains("lengths may be sectors"));
    let huge: String =
        (0..50).map(|i| format!("0,{},4096,R,{i}.5\n", 9_000_000_000_000u64 + i)).collect();
    assert!(doubts(huge.as_bytes()).contains("offsets may be bytes"));
    let ticks: String = (0..200).map(|i| format!("{i} 0 {} 8 1\n", i * 8)).collect();
    assert!(doubts(ticks.as_bytes()).contains("the unit of time may be mistaken"));
}

#[test]
fn clocks_that_go_back_are_sorted_and_counted() {
    let text = "0,1,512,R,2.0\n0,2,512,R,1.0\n0,3,512,R,3.0\n0,4,512,R,3.0\n";
    let (ios, tables) = parsed(text.as_bytes());
    let order: Vec<_> = ios.iter().map(|io| (io.offset / 512, io.queued)).collect();
    assert_eq!(order, [(2, 0), (1, 1_000_000_000), (3, 2_000_000_000), (4, 2_000_000_000)]);
    assert_eq!((tables.tally.inversions, tables.tally.furthest_back), (1, 1_000_000_000));
}

#[test]
fn lost_starts_and_ends_are_counted() {
    let line = |at: u32, what: &str, sector: u32| {
        format!("  8,0    0        1     0.{at:09}    14  {what}  RS {sector} + 8 [a]\n")
    };
    let text = [
        line(1, "C", 0),
        line(2, "Q", 8),
        line(3, "D", 16),
        line(4, "Q", 24),
        line(5, "D", 24),
        line(6, "C", 24),
        line(7, "C", 16),
    ];
    let (ios, tables) = parsed(text.concat().as_bytes());
    let t = &tables.tally;
    assert_eq!((t.completions_without_start, t.issues_without_queue, t.unfinished), (1, 1, 1));
    let done: Vec<_> = ios.iter().map(|io| (io.offset / 512, io.done.is_some())).collect();
    assert_eq!(done, [(8, false), (16, true), (24, true)]);
}

#[test]
fn partitions_merges_and_splits_are_followed() {
    let text = "\
  8,1    0        1     0.000000001    14  Q  RS 0 + 8 [a]
  8,0    0        2     0.000000002    14  A  RS 2048 + 8 <- (8,1) 0
  8,0    0        3     0.000000003    14  Q  RS 2056 + 8 [a]
  8,0    0        4     0.000000004    14  M  RS 2056 + 8 [a]
  8,0    0        5     0.000000005    14  D  RS 2048 + 16 [a]
  8,0    0        6     0.000000009    14  C  RS 2048 + 16 [0]
  8,0    0        7     0.000000010    14  Q  WS 0 + 16 [a]
  8,0    0        8     0.000000011    14  X  WS 0 / 8 [a]
  8,0    0        9     0.000000012    14  D  WS 0 + 8 [a]
  8,0    0       10     0.000000013    14  D  WS 8 + 8 [a]
  8,0    0       11     0.000000014    14  C  WS 8 + 8 [0]
  8,0    0       12     0.000000019    14  C  WS 0 + 8 [0]
";
    let (ios, tables) = parsed(text.as_bytes());
    let all: Vec<_> = ios
        .iter()
        .map(|io| (tables.disks.text(io.disk), io.offset / 512, io.queued, io.done))
        .collect();
    assert_eq!(
        all,
        [("8,0", 2048, 0, Some(8)), ("8,0", 2056, 2, Some(8)), ("8,0", 0, 9, Some(18))]
    );
    assert_eq!((tables.tally.remapped, tables.tally.unfinished), (1, 0));
}

#[test]
fn lost_events_of_the_recorder_are_counted() {
    let text = "CPU:1 [LOST 77 EVENTS]\n  a-1  [001] ..... 1.000000: block_bio_queue: 7,3 WS 1437200 + 8 [a]\n";
    let (ios, tables) = parsed(text.as_bytes());
    assert_eq!((ios.len(), ios[0].queued, tables.tally.lost), (1, 0, 77));
}

#[test]
fn several_files_are_for_blktrace() {
    let error = open(files(&["msr.csv", "spc.csv"]), None).err().unwrap().to_string();
    assert!(error.contains("iosched trace merge"), "{error}");
}

#[test]
fn a_time_of_centuries_is_no_crash() {
    let text = "TIME(s)        COMM           PID    DISK    T  SECTOR    BYTES   LAT(ms)\n\
                18446740474.000004001    supervise      1950   xvda1   W  13092560  4096       0.74\n";
    let trace = open(bytes(text.as_bytes()), None).unwrap();
    _ = read(trace);
}

#[test]
fn ios_that_find_none_in_flight_are_counted() {
    // MSR: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime in 100 ns.
    let line = |at: u64, took: u64| {
        format!("{},h,0,Read,{},4096,{took}\n", 128_166_372_000_000_000 + at, at * 4096)
    };
    let text: String =
        [(0, 100), (10, 100), (20, 100), (1000, 100)].map(|(a, t)| line(a, t)).concat();
    let trace = open(bytes(text.as_bytes()), None).unwrap();
    let (ios, _) = read(trace).unwrap();
    let mut summary = Summary::default();
    ios.iter().for_each(|io| summary.add(io));
    assert_eq!(summary.alone(), 2, "the first and the last");
}

#[test]
fn each_fault_of_a_fio_log_is_a_reason_of_its_own() {
    let text = "fio version 2 iolog\n/d add\n/d open\n/d read 0 4096\n/d red 0 4096\n/d read -1 4096\n/d wait\n\
                /d read 9223372036854775807 1\n/d read 0 1 2\n/x read 0 1\n";
    let (ios, tables) = parsed(text.as_bytes());
    let reasons: Vec<_> = tables.tally.skipped.iter().map(|(why, s)| (*why, s.first)).collect();
    let wanted = [
        ("a number is not a whole number", 6),
        ("the I/O ends beyond 2^63 bytes", 8),
        ("the file was not added before", 10),
        ("the length of the wait is missing", 7),
        ("too many words", 9),
        ("unknown action", 5),
    ];
    assert_eq!((ios.len(), &reasons[..]), (1, &wanted[..]));
}

#[test]
fn a_second_text_of_blkparse_is_read_behind_the_first_one_s_sums() {
    let line = |at: u32, what: &str| {
        format!("  8,0    0        1     {at}.000000000    14  {what}  RS 8 + 8 [a]\n")
    };
    let sums = "CPU0 (8,0):\n Reads Queued:           1,        4KiB\n\nTotal (8,0):\n\nThroughput (R/W): 0KiB/s\nSkips: 0 forward\n";
    let one = [line(1, "Q"), line(2, "D"), line(3, "C"), sums.into()].concat();
    let (ios, tables) = parsed((one.clone() + &one).as_bytes());
    let times: Vec<_> = ios.iter().map(|io| (io.queued / SEC, io.done.map(|t| t / SEC))).collect();
    assert_eq!(times, [(0, Some(2)), (3, Some(5))]);
    assert_eq!((tables.tally.dropped(), tables.tally.inversions), (0, 0));
    assert!(tables.tally.notes[0].contains("another recording"), "{:?}", tables.tally.notes);
}
