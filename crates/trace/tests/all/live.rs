//! Pages as `trace_pipe_raw` of Linux 6.18 gave them, beside the kernel's own text of the same events.

use std::io::Read;

use iosched_trace::pages::Layout;
use iosched_trace::unpack::unpack;
use iosched_trace::{Io, Live, Tables, open};
use proptest::prelude::*;

use crate::{bytes, data, read};

fn content(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(data(&format!("pages/{name}"))).unwrap();
    let mut out = Vec::new();
    unpack(Box::new(file)).unwrap().all.read_to_end(&mut out).unwrap();
    out
}

fn layout() -> Layout {
    let text = String::from_utf8(content("layout.txt")).unwrap();
    let (headers, formats) = text.split_at(text.find("name: ").unwrap());
    let (page, entry) = headers.split_at(headers.find("# compressed").unwrap());
    let formats: Vec<String> =
        formats.split("name: ").skip(1).map(|f| format!("name: {f}")).collect();
    let formats: Vec<String> = formats.into_iter().filter(|f| !f.contains("split")).collect();
    Layout::new(page, entry, &formats).unwrap()
}

fn recorded(pages: &[(u16, Vec<u8>)]) -> (Vec<Io>, Tables) {
    let mut live = Live::new(layout());
    for (cpu, content) in pages {
        for page in content.chunks(4096) {
            live.page(*cpu, page);
        }
    }
    live.end();
    let ios = std::iter::from_fn(|| live.next_io()).collect();
    (ios, live.tables)
}

#[test]
fn pages_have_the_events_of_the_kernel_s_text() {
    let (ios, tables) = recorded(&[(0, content("cpu0.raw.xz")), (1, content("cpu1.raw.xz"))]);
    let (text, names) = read(open(bytes(&content("trace.txt.xz")), None).unwrap()).unwrap();
    assert_eq!((ios.len(), tables.tally.lost), (text.len(), 0));
    assert_eq!(tables.tally.used, names.tally.used);
    for (a, b) in ios.iter().zip(&text) {
        assert_eq!(tables.disks.text(a.disk), names.disks.text(b.disk));
        assert_eq!(tables.tasks.text(a.task), names.tasks.text(b.task));
        let same = |io: &Io| (io.op, io.flags, io.offset, io.len, io.pid, io.prio, io.cpu);
        assert_eq!(same(a), same(b));
        // The text has microseconds.
        let near = |a: u64, b: u64| assert!(a.abs_diff(b) < 2_000, "{a} {b}");
        near(a.queued, b.queued);
        near(a.issued.unwrap(), b.issued.unwrap());
        near(a.done.unwrap(), b.done.unwrap());
    }
}

#[test]
fn lost_events_of_a_page_are_counted() {
    // A buffer of 16 KiB under 8,192 events: its `stats` said an overrun of 7,936.
    let (ios, tables) = recorded(&[(0, content("lost.raw"))]);
    assert_eq!(tables.tally.lost, 7936);
    assert!(ios.len() > 20);
}

#[test]
fn another_layout_is_told() {
    let text = String::from_utf8(content("layout.txt")).unwrap();
    let error = Layout::new(&text, &text.replace("27 bits", "28 bits"), &[]).unwrap_err();
    assert!(error.contains("time_delta of 27 bits"), "{error}");
    let error = Layout::new("", &text, &["name: block_bio_queue\nID: 7\n".into()]).unwrap_err();
    assert!(error.contains("no field common_type"), "{error}");
}

#[test]
fn events_settle_up_to_a_time_and_ios_come_out_when_they_are_done() {
    let mut live = Live::new(layout());
    for page in content("cpu0.raw.xz").chunks(4096) {
        live.page(0, page);
    }
    assert!(live.next_io().is_none());
    live.settle(live.origin().unwrap_or(0));
    assert!(live.next_io().is_none() && live.waiting() == 0);
    live.settle(u64::MAX);
    assert!(live.origin().is_some() && live.waiting() > 0 && live.oldest() == Some(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_page(
        changes in proptest::collection::vec((0usize..4096, any::<u8>()), 0..200),
        len in 0usize..4096,
    ) {
        let mut page = content("cpu1.raw.xz");
        for (at, byte) in changes {
            page[at] = byte;
        }
        let (_, tables) = recorded(&[(1, page[..len].to_vec()), (1, page[4096..].to_vec())]);
        let t = &tables.tally;
        prop_assert_eq!(t.records, t.used + t.other + t.dropped());
    }
}
