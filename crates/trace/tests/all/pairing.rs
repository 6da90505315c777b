//! Events become I/Os: merges, partitions, stacked devices, clocks.

use iosched_trace::{Io, Tables, open};

use crate::{bytes, read};

/// Lines of ftrace: `queue 7,0 RS 2048 + 8`, one microsecond apart.
fn ftrace(events: &[&str]) -> (Vec<Io>, Tables) {
    let line = |(i, e): (usize, &&str)| {
        let (point, text) = e.split_once(' ').unwrap();
        let point = match point {
            "queue" | "remap" | "done" => {
                format!("block_bio_{}", if point == "done" { "complete" } else { point })
            }
            of => format!("block_rq_{of}"),
        };
        let task = if i == 0 { "fio-303" } else { "kworker/0:1-9" };
        format!(" {task}  [000] .....  1.{i:06}: {point}: {text} [x]\n")
    };
    let text: String = events.iter().enumerate().map(line).collect();
    read(open(bytes(text.as_bytes()), None).unwrap()).unwrap()
}

/// Disk, first sector, sectors, arrival and completion in µs.
fn seen(from: &(Vec<Io>, Tables)) -> Vec<(&str, u64, u64, u64, Option<u64>)> {
    let name = |io: &Io| from.1.disks.text(io.disk);
    let row = |io: &Io| {
        (name(io), io.offset / 512, io.len / 512, io.queued / 1000, io.done.map(|d| d / 1000))
    };
    from.0.iter().map(row).collect()
}

#[test]
fn requests_that_grow_behind_their_insertion_keep_all_sectors() {
    // A back merge, then two inserted requests and a front merge that become one.
    let got = ftrace(&[
        "insert 7,0 WS 4096 () 2048 + 8",
        "issue 7,0 WS 8192 () 2048 + 16",
        "complete 7,0 WS () 2048 + 16",
        "insert 7,0 R 4096 () 108 + 8",
        "insert 7,0 R 4096 () 116 + 8",
        "issue 7,0 R 12288 () 100 + 24",
        "complete 7,0 R () 100 + 24",
    ]);
    assert_eq!(seen(&got), [("7,0", 2048, 16, 0, Some(2)), ("7,0", 100, 24, 3, Some(6))]);
    assert_eq!(got.1.tally.unfinished, 0);
    // Without the event of the driver the completion has the length.
    let got = ftrace(&["insert 7,0 WS 4096 () 2048 + 8", "complete 7,0 WS () 2048 + 16"]);
    assert_eq!(seen(&got), [("7,0", 2048, 16, 0, Some(1))]);
}

#[test]
fn a_request_with_a_bio_from_before_the_trace_loses_no_sectors() {
    let got =
        ftrace(&["queue 7,0 R 8 + 8", "issue 7,0 R 8192 () 0 + 24", "complete 7,0 R () 0 + 24"]);
    let all = [("7,0", 8, 8, 0, Some(2)), ("7,0", 0, 8, 1, Some(2)), ("7,0", 16, 8, 1, Some(2))];
    assert_eq!(seen(&got), all);
    assert_eq!(got.1.tally.issues_without_queue, 2);
}

#[test]
fn each_level_of_a_stack_keeps_its_own() {
    // LVM on LUKS on a disk, both of one driver.
    let got = ftrace(&[
        "queue 253,1 WS 0 + 8",
        "remap 253,0 WS 2048 + 8 <- (253,1) 0",
        "queue 253,0 WS 2048 + 8",
        "remap 7,0 WS 34816 + 8 <- (253,0) 2048",
        "queue 7,0 WS 34816 + 8",
        "issue 7,0 WS 4096 () 34816 + 8",
        "complete 7,0 WS () 34816 + 8",
        "done 253,0 WS 2048 + 8",
        "done 253,1 WS 0 + 8",
    ]);
    let all = [
        ("253,1", 0, 8, 0, Some(8)),
        ("253,0", 2048, 8, 2, Some(7)),
        ("7,0", 34816, 8, 4, Some(6)),
    ];
    assert_eq!(seen(&got), all);
    assert!(got.0.iter().all(|io| io.pid == 303), "the task of the uppermost bio");
}

#[test]
fn a_partition_is_its_disk() {
    // Device mapper on a partition of a loop device (259 is not the disk's number), as Linux 6.18 says it.
    let got = ftrace(&[
        "queue 253,0 R 0 + 8",
        "remap 259,0 R 0 + 8 <- (253,0) 0",
        "remap 7,0 R 2048 + 8 <- (259,0) 0",
        "queue 7,0 R 2048 + 8",
        "issue 7,0 R 4096 () 2048 + 8",
        "complete 7,0 R () 2048 + 8",
        "done 253,0 R 0 + 8",
    ]);
    assert_eq!(seen(&got), [("253,0", 0, 8, 0, Some(6)), ("7,0", 2048, 8, 3, Some(5))]);
    // Queued for the partition only, as other kernels do it: of known numbers and of those given out at start.
    for (part, disk) in [("259,0", "7,0"), ("8,1", "8,0"), ("254,1", "254,0"), ("259,3", "259,0")] {
        let remap = format!("remap {disk} R 2048 + 8 <- ({part}) 0");
        let issue = format!("issue {disk} R 4096 () 2048 + 8");
        let queue = format!("queue {part} R 0 + 8");
        let complete = format!("complete {disk} R () 2048 + 8");
        let got = ftrace(&[&queue, &remap, &issue, &complete]);
        assert_eq!(seen(&got), [(disk, 2048, 8, 0, Some(3))]);
        assert_eq!((got.1.tally.remapped, got.1.tally.unfinished), (1, 0));
    }
}

#[test]
fn times_in_a_wrong_order_give_no_latency() {
    let head = "queued_ns,issued_ns,completed_ns,disk,operation,flags,offset_bytes,length_bytes,pid,task,priority,cpu\n";
    let rows = ["1000,,900", "2000,1900,2500", "3000,3500,3400", "4000,4100,4200", "5000,,5000"];
    let row = |times: &&str| format!("{times},8:0,read,,4096,4096,1,a,none,0\n");
    let text = head.to_string() + &rows.iter().map(row).collect::<String>();
    let (ios, tables) = read(open(bytes(text.as_bytes()), None).unwrap()).unwrap();
    let times: Vec<_> = ios.iter().map(|io| (io.issued.is_some(), io.latency())).collect();
    let wanted =
        [(false, None), (false, Some(500)), (true, None), (true, Some(200)), (false, Some(0))];
    assert_eq!(times, wanted);
    assert_eq!(tables.tally.backwards, 3);
}

#[test]
fn a_completion_behind_lost_events_is_that_of_no_earlier_read() {
    let event = |at: u32, point: &str, text: &str| {
        format!(" a-1  [001] ..... 1.{at:06}: block_{point}: 7,0 R {text} [a]\n")
    };
    let text = [
        event(1, "bio_queue", "8 + 8"),
        event(2, "rq_issue", "4096 () 8 + 8"),
        "CPU:1 [LOST 77 EVENTS]\n".into(),
        event(900_000, "rq_complete", "() 8 + 8"),
        event(900_001, "bio_queue", "8 + 8"),
        event(900_003, "rq_issue", "4096 () 8 + 8"),
        event(900_009, "rq_complete", "() 8 + 8"),
    ];
    let (ios, tables) = read(open(bytes(text.concat().as_bytes()), None).unwrap()).unwrap();
    let latencies: Vec<_> = ios.iter().map(Io::latency).collect();
    assert_eq!(latencies, [None, Some(8_000)]);
    let t = &tables.tally;
    assert_eq!((t.lost, t.unfinished, t.completions_without_start), (77, 1, 1));
}

/// Linux 6.18 on a disk with a write cache and no FUA (tracefs): the write of a journal's commit waits for the flush before
/// and for the flush behind it, whose end is a completion without sectors.
#[test]
fn a_write_with_fua_is_done_when_the_flush_behind_it_is() {
    let events = [
        "queue 7,64 FWFSM 736 + 8",
        "issue 7,64 FF 0 () 0 + 0",
        "complete 7,64 FF () 18446744073709551615 + 0",
        "insert 7,64 WSM 4096 () 736 + 8",
        "issue 7,64 WSM 4096 () 736 + 8",
        "complete 7,64 WSM () 736 + 8",
        "issue 7,64 FF 0 () 0 + 0",
        "complete 7,64 FF () 18446744073709551615 + 0",
        "complete 7,64 WSM () 736 + 0",
    ];
    assert_eq!(seen(&ftrace(&events)), [("7,64", 736, 8, 0, Some(8))]);
    // A trace that ends before, and a disk that has FUA.
    let cut = ftrace(&events[..6]);
    assert_eq!((seen(&cut), cut.1.tally.unfinished), (vec![("7,64", 736, 8, 0, Some(5))], 0));
    let fua = [
        "queue 7,64 WFS 736 + 8",
        "issue 7,64 WFS 4096 () 736 + 8",
        "complete 7,64 WFS () 736 + 8",
    ];
    assert_eq!(seen(&ftrace(&fua)), [("7,64", 736, 8, 0, Some(2))]);
}
