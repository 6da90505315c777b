//! What is written is read again as the same.

use std::io::Write;
use std::sync::{Arc, Mutex};

use iosched_trace::write::{FORMS, by_name};
use iosched_trace::{Io, Tables, open};

use crate::{bytes, files, read};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, b: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(b)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) fn written(form: &str, ios: &[Io], tables: &Tables) -> Vec<u8> {
    let to = Shared::default();
    let mut sink = (by_name(form).unwrap().begin)(Box::new(to.clone())).unwrap();
    for io in ios {
        sink.io(io, tables).unwrap();
    }
    sink.end(tables).unwrap();
    drop(sink);
    to.0.lock().unwrap().clone()
}

fn sample() -> (Vec<Io>, Tables) {
    read(open(files(&["ftrace.txt.zst"]), None).unwrap()).unwrap()
}

#[test]
fn csv_and_parquet_keep_everything() {
    let (ios, tables) = sample();
    for form in FORMS.iter().map(|f| f.name).filter(|f| ["csv", "parquet"].contains(f)) {
        let file = written(form, &ios, &tables);
        let (again, names) = read(open(bytes(&file), None).unwrap()).unwrap();
        assert_eq!(again.len(), ios.len());
        for (a, b) in again.iter().zip(&ios) {
            assert_eq!(names.disks.text(a.disk), tables.disks.text(b.disk));
            assert_eq!(names.tasks.text(a.task), tables.tasks.text(b.task));
            assert_eq!(Io { disk: b.disk, task: b.task, ..*a }, *b, "{form}");
        }
    }
    let text = written("csv", &ios, &tables);
    let first: Vec<u8> =
        text.split_inclusive(|b| *b == b'\n').take(41).flatten().copied().collect();
    iosched_testing::golden(&crate::data("own.csv"), std::str::from_utf8(&first).unwrap());
}

#[test]
fn blkparse_keeps_times_places_and_tasks() {
    let (ios, tables) = sample();
    let text = written("blkparse", &ios, &tables);
    let (again, names) = read(open(bytes(&text), None).unwrap()).unwrap();
    assert_eq!(again.len(), ios.len());
    for (a, b) in again.iter().zip(&ios) {
        assert_eq!(
            (a.queued, a.done, a.op, a.flags, a.offset, a.len),
            (b.queued, b.done, b.op, b.flags, b.offset, b.len)
        );
        assert_eq!(names.tasks.text(a.task), tables.tasks.text(b.task));
    }
}

#[test]
fn fio_logs_keep_order_places_and_microseconds() {
    let (ios, tables) = sample();
    for form in ["iolog", "iolog2"] {
        let text = written(form, &ios, &tables);
        let (again, _) = read(open(bytes(&text), None).unwrap()).unwrap();
        assert_eq!(again.len(), ios.len(), "{form}");
        for (a, b) in again.iter().zip(&ios) {
            assert_eq!((a.op, a.offset, a.len), (b.op, b.offset, b.len), "{form}");
            // Version 2 has no pauses below 100 µs.
            let near = if form == "iolog" { 2_000 } else { 102_000 };
            let (from, to) = (a.queued + ios[0].queued, b.queued);
            assert!(from.abs_diff(to) <= near, "{form}: {from} {to}");
        }
    }
}

#[test]
fn endings_name_forms() {
    for form in FORMS {
        assert_eq!(
            iosched_trace::write::of_file(&format!("a{}", form.ending)).unwrap().name,
            form.name
        );
    }
}

#[test]
fn columns_count_by_their_names() {
    // As pandas writes a table with absent times: an index, floats, another order.
    let text = ",operation,length_bytes,offset_bytes,queued_ns,completed_ns,issued_ns,note,pid,task\n\
                0,read,4096,512.0,1.0,2.5e+03,,x,21075.0,\"a,b\"\n\
                1,write,8192,1.024e+3,7.0,,,,,\n\
                2,write,4096.5,1024,7.0,,,,,\n\
                3,write,4096,1024,7.0,,,\n\
                4,write,4096,1024,7.0,,,,,,\n";
    let (ios, tables) = read(open(bytes(text.as_bytes()), None).unwrap()).unwrap();
    let all: Vec<_> = ios.iter().map(|io| (io.offset, io.len, io.done, io.pid)).collect();
    assert_eq!(all, [(512, 4096, Some(2499), 21075), (1024, 8192, None, 0)]);
    assert_eq!(tables.tasks.text(ios[0].task), "a,b");
    let reasons: Vec<_> = tables.tally.skipped.iter().map(|(why, s)| (*why, s.first)).collect();
    let wanted = [
        ("offset and length are whole numbers", 4),
        ("the line has more fields than the first has columns", 6),
        ("the line has too few fields", 5),
    ];
    assert_eq!(reasons, wanted);
    let notes = [
        "columns that are not read: \"\", \"note\"",
        "columns that are not there: disk, flags, priority, cpu",
    ];
    assert_eq!(tables.tally.notes, notes);
}

#[test]
fn comments_of_a_recording_are_read() {
    let text = "# recorded: loop0 under bfq\n# lost_events: 0   \n# ended: no\nqueued_ns,operation,offset_bytes,length_bytes\n\
                1,read,0,512\n# lost_events: 7\n# first_record_unix_ns: 5\n";
    let (ios, tables) = read(open(bytes(text.as_bytes()), None).unwrap()).unwrap();
    assert_eq!((ios.len(), tables.tally.lost, tables.tally.wall_clock), (1, 7, Some(5)));
    assert!(tables.tally.notes.iter().any(|n| n == "recorded: loop0 under bfq"));
    assert!(tables.tally.notes.iter().any(|n| n.contains("did not end")));
    let text = text.to_string() + "# ended: after 60 s\n";
    let (_, tables) = read(open(bytes(text.as_bytes()), None).unwrap()).unwrap();
    assert!(!tables.tally.notes.iter().any(|n| n.contains("did not end")));
}
