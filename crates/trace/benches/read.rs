//! Records per second of the readers: `cargo bench -p iosched-trace`.

use divan::counter::ItemsCount;
use iosched_trace::summary::Summary;
use iosched_trace::{Input, open};

fn main() {
    divan::main();
}

/// Reads and writes of four tasks, two in flight, as the events of a recorder.
fn events(n: u64, line: impl Fn(u64, &str, u64) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0..n {
        let sector = (i * 7919) % (1 << 30) * 8;
        for (step, action) in ["Q", "I", "D"].iter().enumerate() {
            out.extend(line(i * 10_000 + step as u64 * 1_000, action, sector));
        }
        if i > 0 {
            let before = ((i - 1) * 7919) % (1 << 30) * 8;
            out.extend(line(i * 10_000 + 5_000, "C", before));
        }
    }
    out
}

fn blktrace(n: u64) -> Vec<u8> {
    events(n, |at, action, sector| {
        let (code, category): (u32, u32) = match action {
            "Q" => (1, 0x19),
            "I" => (12, 0x109),
            "D" => (7, 0x149),
            _ => (8, 0x189),
        };
        let mut r = Vec::new();
        r.extend(0x6561_7407u32.to_le_bytes());
        r.extend(0u32.to_le_bytes());
        r.extend(at.to_le_bytes());
        r.extend(sector.to_le_bytes());
        r.extend(4096u32.to_le_bytes());
        r.extend((category << 16 | code).to_le_bytes());
        r.extend((300 + (sector / 8 % 4) as u32).to_le_bytes());
        r.extend((8u32 << 20).to_le_bytes());
        r.extend([0u8; 8]);
        r
    })
}

fn blkparse(n: u64) -> Vec<u8> {
    events(n, |at, action, sector| {
        let (s, ns, pid) = (at / 1_000_000_000, at % 1_000_000_000, 300 + sector / 8 % 4);
        format!("  8,0    1     1000 {s:>5}.{ns:09} {pid:>5}  {action}  RS {sector} + 8 [fio]\n")
            .into()
    })
}

fn ftrace(n: u64) -> Vec<u8> {
    events(n, |at, action, sector| {
        let (s, us, pid) = (at / 1_000_000_000, at % 1_000_000_000 / 1_000, 300 + sector / 8 % 4);
        let what = match action {
            "Q" => format!("block_bio_queue: 8,0 RS {sector} + 8 [fio]"),
            "I" => format!("block_rq_insert: 8,0 RS 4096 () {sector} + 8 be,0,4 [fio]"),
            "D" => format!("block_rq_issue: 8,0 RS 4096 () {sector} + 8 be,0,4 [fio]"),
            _ => format!("block_rq_complete: 8,0 RS () {sector} + 8 be,0,4 [0]"),
        };
        format!("             fio-{pid:<5}   [001] ..... {s:>5}.{us:06}: {what}\n").into()
    })
}

fn msr(n: u64) -> Vec<u8> {
    let line = |i: u64| {
        let at = 128_166_372_003_061_629 + i * 100;
        format!("{at},hm,1,Read,{},4096,270\n", (i * 7919) % (1 << 30) * 4096)
    };
    (0..n).flat_map(|i| line(i).into_bytes()).collect()
}

#[divan::bench(args = ["blktrace", "blkparse", "ftrace", "msr"], sample_count = 5)]
fn read(bencher: divan::Bencher<'_, '_>, format: &str) {
    const IOS: u64 = 100_000;
    let (content, records) = match format {
        "blktrace" => (blktrace(IOS), IOS * 4),
        "blkparse" => (blkparse(IOS), IOS * 4),
        "ftrace" => (ftrace(IOS), IOS * 4),
        _ => (msr(IOS), IOS),
    };
    bencher.counter(ItemsCount::new(records)).bench(|| {
        let input = Input { name: "bench".into(), from: Box::new(&content[..]) };
        let mut trace = open(vec![input], None).expect("it is a trace");
        let mut summary = Summary::default();
        while let Some(io) = trace.next_io().expect("it is in memory") {
            summary.add(&io);
        }
        summary.ios()
    });
}
