//! The reads that calls cause, in the form `call→start+length` (KiB), `(n)` for n calls without any.

use std::fmt::Write as _;

use super::super::PAGE;
use super::super::mapping::{Mapping, Mark};
use super::twin::Twin;
use super::{Ask, Era, Limits, Stream, Window};

/// A file, and those who have it open; every read is done before the next call.
struct File {
    era: Era,
    limits: Limits,
    pages: Mapping,
}

impl File {
    fn new(era: Era) -> Self {
        Self { era, limits: limits(16384), pages: Mapping::default() }
    }

    /// Reads a window, gaps between cached pages one by one.
    fn fetch(&mut self, window: Window, out: &mut Vec<(u64, u64)>) {
        let mut at = window.start;
        while let Some(from) = self.pages.next(at, window.end, Mark::Present, false) {
            let to = self.pages.next(from, window.end, Mark::Present, true).unwrap_or(window.end);
            insert(&mut self.pages, from, to, window.folio);
            if let Some(marker) = window.marker.filter(|m| (from..to).contains(m)) {
                let head = self.pages.folio(marker).0;
                self.pages.set(head, head + 1, Mark::Readahead, true);
            }
            out.push((from * 4, (to - from) * 4));
            at = to;
        }
    }

    /// A call that reads `kib` KiB from `at` on.
    fn read(&mut self, stream: &mut Stream, at: u64, kib: u64) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        let end = (at + kib).div_ceil(4).min(self.limits.file);
        let wanted_end = (at + kib).div_ceil(4);
        let mut index = at / 4;
        while index < end {
            let ask = Ask { index, wanted: wanted_end - index };
            if !self.pages.has(index, Mark::Present) {
                let window = stream.miss(self.era, ask, &self.limits, &self.pages);
                self.fetch(window, &mut out);
            }
            let (head, after) = self.pages.folio(index);
            if self.pages.has(head, Mark::Readahead) {
                self.pages.set(head, head + 1, Mark::Readahead, false);
                let more = stream.marked(self.era, ask, after - head, &self.limits, &self.pages);
                if let Some(window) = more {
                    self.fetch(window, &mut out);
                }
            }
            index = after.min(end);
        }
        let bytes = (end * PAGE).min((at + kib) * 1024);
        stream.prev = Some(if self.era.splits() { bytes } else { bytes - 1 });
        out
    }

    /// The same calls with their own stream.
    fn calls(&mut self, stream: &mut Stream, calls: &[(u64, u64)]) -> String {
        let all: Vec<_> =
            calls.iter().map(|(at, kib)| (*at, self.read(stream, *at, *kib))).collect();
        notation(&all)
    }
}

fn insert(pages: &mut Mapping, from: u64, to: u64, folio: u64) {
    let mut at = from;
    while at < to {
        let mut n = folio;
        while !at.is_multiple_of(n) || at + n > to {
            n /= 2;
        }
        pages.insert(at, at + n, n);
        at += n;
    }
    pages.set(from, to, Mark::Uptodate, true);
}

fn limits(file: u64) -> Limits {
    Limits { ra: 32, io: 320, file, large_folios: false }
}

fn notation(calls: &[(u64, Vec<(u64, u64)>)]) -> String {
    let mut out = Vec::new();
    let mut quiet = 0;
    for (at, reads) in calls {
        if reads.is_empty() {
            quiet += 1;
            continue;
        }
        if quiet > 0 {
            out.push(format!("({quiet})"));
            quiet = 0;
        }
        let mut text = format!("{at}→");
        for (i, (start, length)) in reads.iter().enumerate() {
            write!(text, "{}{start}+{length}", if i > 0 { "," } else { "" }).unwrap();
        }
        out.push(text);
    }
    if quiet > 0 {
        out.push(format!("({quiet})"));
    }
    out.join(" ")
}

fn every(from: u64, step: u64, kib: u64, n: u64) -> Vec<(u64, u64)> {
    (0..n).map(|i| (from + i * step, kib)).collect()
}

fn cold(era: Era, calls: &[(u64, u64)]) -> String {
    File::new(era).calls(&mut Stream::default(), calls)
}

fn cold_with(era: Era, limits: Limits, calls: &[(u64, u64)]) -> String {
    File { limits, ..File::new(era) }.calls(&mut Stream::default(), calls)
}

/// Linux 6.12 on ext4, seen in its block trace.
#[test]
fn streams_grow_as_in_6_12() {
    let e = |calls: &[(u64, u64)]| cold(Era::Split, calls);
    assert_eq!(
        cold_with(Era::Split, limits(256), &every(0, 4, 4, 256)),
        "0→0+16 4→16+32 (2) 16→48+64 (7) 48→112+128 (15) 112→240+128 (31) 240→368+128 (31) \
         368→496+128 (31) 496→624+128 (31) 624→752+128 (31) 752→880+128 (31) 880→1008+16 (35)"
    );
    assert_eq!(
        e(&every(0, 64, 64, 9)),
        "0→0+128 64→128+128 128→256+128 (1) 256→384+128 (1) 384→512+128 (1) 512→640+128"
    );
    assert_eq!(e(&every(0, 128, 128, 3)), "0→0+128,128+128 128→256+128 256→384+128");
    assert_eq!(e(&every(0, 1024, 1024, 3)), "0→0+1024,1024+1024 1024→2048+1024 2048→3072+1024");
    assert_eq!(e(&every(0, 256, 256, 2)), "0→0+256,256+256 256→512+256");
    assert_eq!(e(&every(0, 500, 500, 3)), "0→0+500,500+500 500→1000+500 1000→1500+500");
    assert_eq!(e(&[(0, 2048)]), "0→0+1280,1280+1280,2560+1280");
    assert_eq!(e(&[(0, 4096)]), "0→0+1280,1280+1280,2560+1280,3840+1280,5120+1280");
    assert_eq!(
        e(&every(0, 12, 12, 19)),
        "0→0+32 12→32+64 24→96+128 (5) 96→224+128 (9) 216→352+128"
    );
    assert_eq!(
        e(&every(10240, 4, 4, 61)),
        "10240→10240+4 10244→10244+16 10248→10260+32 (2) 10260→10292+64 (7) 10292→10356+128 (15) \
         10356→10484+128 (31)"
    );
    assert_eq!(
        e(&every(10240, 64, 64, 6)),
        "10240→10240+64 10304→10304+128 10368→10432+128 10432→10560+128 (1) 10560→10688+128"
    );
    assert_eq!(
        e(&every(4096, 32, 32, 8)),
        "4096→4096+32 4128→4128+64 4160→4192+128 4192→4320+128 (3) 4320→4448+128"
    );
    assert_eq!(e(&[(9000, 4), (500, 16), (40000, 256)]), "9000→9000+4 500→500+16 40000→40000+256");
}

#[test]
fn strides_and_backward_reads_as_in_6_12() {
    let e = |calls: &[(u64, u64)]| cold(Era::Split, calls);
    assert_eq!(e(&every(0, 64, 4, 4)), "0→0+16 64→64+4 128→128+4 192→192+4");
    assert_eq!(e(&every(0, 16, 4, 10)), "0→0+16 16→16+36 (1) 48→52+72 (4) 128→128+4 144→144+4");
    assert_eq!(e(&every(0, 8, 4, 6)), "0→0+16 (1) 16→16+16 (1) 32→32+16 (1)");
    assert_eq!(e(&every(0, 128, 64, 3)), "0→0+128 128→128+128 256→256+128");
    assert_eq!(e(&[(1024, 4), (1020, 4), (1016, 4)]), "1024→1024+4 1020→1020+4 1016→1016+4");
    assert_eq!(e(&[(4096, 64), (4032, 64), (3968, 64)]), "4096→4096+64 4032→4032+64 3968→3968+64");
    assert_eq!(
        e(&every(0, 12, 4, 16)),
        "0→0+16 (1) 24→24+4 36→36+4 48→48+4 60→60+4 72→72+4 84→84+4 96→96+4 108→108+4 120→120+4 \
         132→132+4 144→144+4 156→156+4 168→168+4 180→180+4"
    );
}

#[test]
fn small_files_are_read_whole() {
    let small = limits(10);
    assert_eq!(cold_with(Era::Split, small, &every(0, 4, 4, 10)), "0→0+16 4→16+24 (8)");
    assert_eq!(cold_with(Era::Split, small, &[(0, 64)]), "0→0+40");
}

/// Two readers of one open file.
#[test]
fn interleaved_streams_as_in_6_12() {
    let two = |step: u64, n: u64| -> Vec<(u64, u64)> {
        (0..n).flat_map(|i| [(i * step, step), (32768 + i * step, step)]).collect()
    };
    let small = cold(Era::Split, &two(4, 34));
    assert!(
        small.starts_with(
            "0→0+16 32768→32768+4 4→16+32 32772→32772+4 (1) 32776→32776+12 (2) 16→48+72 \
             32784→32788+16 (1) 32788→32804+32 (7) 32804→32836+64 (4) 48→120+128 (10) \
             32836→32900+128"
        ),
        "{small}"
    );
    let large = cold(Era::Split, &two(64, 5));
    assert!(
        large.starts_with(
            "0→0+128 32768→32768+64 64→128+128 32832→32832+64 128→256+128 32896→32896+128 (1) \
             32960→33024+128 256→384+128 33024→33152+128"
        ),
        "{large}"
    );
}

#[test]
fn other_sizes_of_read_ahead_as_in_6_12() {
    let wide = Limits { ra: 256, io: 320, file: 16384, large_folios: false };
    assert_eq!(
        cold_with(Era::Split, wide, &every(0, 4, 4, 245)),
        "0→0+16 4→16+64 (2) 16→80+128 (15) 80→208+256 (31) 208→464+512 (63) 464→976+1024 (127) \
         976→2000+1024"
    );
    assert_eq!(
        cold_with(Era::Split, wide, &every(0, 64, 64, 15)),
        "0→0+128 64→128+256 128→384+512 (3) 384→896+1024 (7) 896→1920+1024"
    );
    // POSIX_FADV_SEQUENTIAL doubles it.
    let double = Limits { ra: 64, ..limits(16384) };
    assert_eq!(
        cold_with(Era::Split, double, &every(0, 4, 4, 61)),
        "0→0+16 4→16+32 (2) 16→48+64 (7) 48→112+128 (15) 112→240+256 (31) 240→496+256"
    );
    // None at all: a page at a time.
    let off = Limits { ra: 0, ..limits(16384) };
    let mut calls = vec![(0, 4), (4, 4)];
    calls.push((128, 64));
    let sixteen: Vec<_> = (0..16).map(|i| format!("{}+4", 128 + i * 4)).collect();
    assert_eq!(
        cold_with(Era::Split, off, &calls),
        format!("0→0+4 4→4+4 128→{}", sixteen.join(","))
    );
}

#[test]
fn advice_and_pages_that_are_there_as_in_6_12() {
    let mut file = File::new(Era::Split);
    let mut stream = Stream { random: true, ..Stream::default() };
    assert_eq!(
        file.calls(&mut stream, &[(0, 4), (4, 4), (64, 64), (1024, 256)]),
        "0→0+4 4→4+4 64→64+64 1024→1024+256"
    );
    // Pages 16 to 31 were read by POSIX_FADV_WILLNEED.
    let mut file = File::new(Era::Split);
    insert(&mut file.pages, 16, 32, 1);
    assert_eq!(
        file.calls(&mut Stream::default(), &every(0, 4, 4, 13)),
        "0→0+16 4→16+32 (2) 16→48+16 (7) 48→128+112"
    );
    let mut file = File::new(Era::Split);
    let mut stream = Stream::default();
    let mut calls = every(0, 4, 4, 20);
    calls.extend(every(1024, 4, 4, 3));
    assert_eq!(
        file.calls(&mut stream, &calls),
        "0→0+16 4→16+32 (2) 16→48+64 (7) 48→112+128 (7) 1024→1024+4 1028→1028+16 1032→1044+32"
    );
}

/// Scenarios with several calls, some with two open files. Linux 6.12, most on ext4 and XFS.
#[test]
fn scenarios_as_in_6_12() {
    let e = |calls: &[(u64, u64)]| cold(Era::Split, calls);
    assert_eq!(e(&every(0, 20, 20, 13)), "0→0+64 20→64+128 (1) 60→192+128 (5) 180→320+128 (3)");
    let mut calls = every(16, 8, 8, 30);
    calls.extend(every(5000, 8, 8, 12));
    let wide = Limits { ra: 64, ..limits(16384) };
    assert_eq!(
        cold_with(Era::Split, wide, &calls),
        "16→16+8 24→24+32 32→56+64 (2) 56→120+128 (7) 120→248+256 (15) 248→504+256 5000→5000+8 \
         5008→5008+32 5016→5040+64 (2) 5040→5104+128 (6)"
    );
    assert_eq!(
        e(&[512, 516, 520, 528, 536, 548, 560].map(|at| (at, 4))),
        "512→512+4 516→516+16 520→532+32 (4)"
    );
    assert_eq!(e(&[(30000, 4), (30004, 1024)]), "30000→30000+4 30004→30004+1024,31028+1024");
    let three: Vec<_> =
        (0..10).flat_map(|i| [8192, 16384, 24576].map(|b| (b + 4 * i, 4))).collect();
    let mut file = File::new(Era::Split);
    let mut stream = Stream::default();
    let reads: Vec<_> =
        three.iter().map(|(at, kib)| (*at, file.read(&mut stream, *at, *kib))).collect();
    for base in [8192, 16384, 24576] {
        let own: Vec<_> =
            reads.iter().filter(|(at, _)| (base..base + 4096).contains(at)).cloned().collect();
        let b = |n: u64| base + n;
        assert_eq!(
            notation(&own),
            format!(
                "{}→{}+4 {}→{}+4 {}→{}+12 (1) {}→{}+16 {}→{}+40 (3) {}→{}+88",
                b(0),
                b(0),
                b(4),
                b(4),
                b(8),
                b(8),
                b(16),
                b(20),
                b(20),
                b(36),
                b(36),
                b(76)
            )
        );
    }
}

/// The second reader meets the first one's mark, which its own state does not expect.
#[test]
fn a_mark_of_somebody_else_counts() {
    let mut file = File::new(Era::Split);
    let mut a = Stream::default();
    assert_eq!(file.calls(&mut a, &every(0, 4, 4, 10)), "0→0+16 4→16+32 (2) 16→48+64 (5)");
    assert_eq!((a.start, a.size, a.ahead), (12, 16, 16));
    let mut b = Stream::default();
    assert_eq!(file.calls(&mut b, &every(0, 4, 4, 13)), "(12) 48→112+128");
    assert_eq!((b.start, b.size, b.ahead), (28, 32, 32));
    assert_eq!(file.calls(&mut b, &every(52, 4, 4, 27)), "(15) 112→240+128 (11)");
}

#[test]
fn random_advice_can_be_taken_back() {
    let mut file = File::new(Era::Split);
    let mut stream = Stream { random: true, ..Stream::default() };
    file.calls(&mut stream, &every(0, 8, 4, 8));
    stream.random = false;
    assert_eq!(
        file.calls(&mut stream, &[(0, 64), (64, 64)]),
        "0→4+4,12+4,20+4,28+4,36+4,44+4,52+4,60+4 64→64+128"
    );
}

/// Folios of several pages, as XFS has them: the mark is reached earlier.
#[test]
fn large_folios_as_in_6_12() {
    let large = Limits { large_folios: true, ..limits(16384) };
    let e = |calls: &[(u64, u64)]| cold_with(Era::Split, large, calls);
    assert_eq!(
        e(&every(0, 4, 4, 60)),
        "0→0+16,16+32 (3) 16→48+64 (7) 48→112+128 (15) 112→240+128 (31)"
    );
    assert_eq!(e(&every(0, 12, 12, 9)), "0→0+32,32+64 (1) 24→96+128 (5) 96→224+128");
    assert_eq!(e(&every(0, 20, 20, 13)), "0→0+64,64+128 (2) 60→192+128 (5) 180→320+128 (3)");
    assert_eq!(e(&every(0, 64, 4, 4)), "0→0+16,16+32 64→64+4 128→128+4 192→192+4");
    assert_eq!(e(&every(0, 16, 4, 15)), "0→0+16,16+32 16→48+64 (1) 48→112+128 (3) 112→240+128 (7)");
    let small = Limits { file: 10, ..large };
    assert_eq!(cold_with(Era::Split, small, &every(0, 4, 4, 10)), "0→0+16,16+24 (9)");
}

/// Reads of a page one after the other from page 1 on, and of a stream that begins aligned (7.1 in virtual time, a raw device).
#[test]
fn windows_end_at_a_multiple_as_in_7_1() {
    let pages = every(4, 4, 4, 120);
    let windows = |era, calls: &[(u64, u64)]| cold(era, calls);
    assert_eq!(
        windows(Era::Aligned, &pages),
        "4→4+4 8→8+16 12→24+24 (2) 24→48+48 (5) 48→96+96 (11) 96→192+128 (23) 192→320+128 (31) \
         320→448+128 (31) 448→576+128 (8)"
    );
    assert!(windows(Era::Split, &pages).starts_with("4→4+4 8→8+16 12→24+32"));
    let aligned = every(0, 4, 4, 100);
    assert_eq!(windows(Era::Aligned, &aligned), windows(Era::Split, &aligned));
}

#[test]
fn older_kernels_differ_where_their_rules_do() {
    let eras = [Era::OnDemand, Era::History, Era::Capped];
    for (era, expected) in eras.into_iter().zip([
        "0→0+256 128→256+128 256→384+128",
        "0→0+256 128→256+128 256→384+128",
        "0→0+128,128+128 128→256+128 256→384+128",
    ]) {
        assert_eq!(cold(era, &every(0, 128, 128, 3)), expected, "{era:?}");
    }
    for (era, expected) in eras.into_iter().zip([
        "0→0+256,256+128,384+128,512+128,640+128,768+128,896+128,1024+128",
        "0→0+2048",
        "0→0+1024,1024+512",
    ]) {
        assert_eq!(cold(era, &[(0, 1024)]), expected, "{era:?}");
    }
    for (era, expected) in eras.into_iter().zip([
        "0→0+16 16→16+96 (1) 48→112+128 (3) 112→240+128 (7)",
        "0→0+16 16→16+96 (1) 48→112+128 (3) 112→240+128 (7)",
        "0→0+16 16→16+96 (1) 48→112+128 (3) 112→240+128 (7)",
    ]) {
        assert_eq!(cold(era, &every(0, 16, 4, 15)), expected, "{era:?}");
        assert_eq!(
            cold(era, &every(0, 8, 4, 15)),
            "0→0+16 (1) 16→16+96 (3) 48→112+128 (7) 112→240+128",
            "{era:?}"
        );
        assert_eq!(
            cold(era, &every(0, 4, 4, 28)),
            "0→0+16 4→16+32 (2) 16→48+64 (7) 48→112+128 (15)",
            "{era:?}"
        );
    }
    let two: Vec<_> = (0..10).flat_map(|i| [(4 * i, 4), (32768 + 4 * i, 4)]).collect();
    let first = cold(Era::OnDemand, &two);
    assert!(
        first.starts_with(
            "0→0+16 32768→32768+4 4→16+32 32772→32772+48 (4) 16→48+72 (2) 32788→32820+72"
        ),
        "{first}"
    );
}

/// 2.6.18: the engine is called at the start of a read and at the page it named.
fn two_windows(calls: &[(u64, u64)]) -> String {
    let mut pages = Mapping::default();
    let mut twin = Twin::default();
    let limits = limits(16384);
    let mut all = Vec::new();
    for (at, kib) in calls {
        let mut reads = Vec::new();
        let (first, end) = (at / 4, (at + kib).div_ceil(4));
        let mut engine = first;
        for index in first..end {
            if index == engine {
                engine =
                    twin.call(index, end - index, &limits, |w| fetch(&mut pages, w, &mut reads));
            }
            if !pages.has(index, Mark::Present) {
                twin.miss();
                let single = Window { start: index, end: index + 1, marker: None, folio: 1 };
                fetch(&mut pages, single, &mut reads);
            }
        }
        all.push((*at, reads));
    }
    notation(&all)
}

fn fetch(pages: &mut Mapping, window: Window, out: &mut Vec<(u64, u64)>) -> u64 {
    let mut at = window.start;
    let mut read = 0;
    while let Some(from) = pages.next(at, window.end, Mark::Present, false) {
        let to = pages.next(from, window.end, Mark::Present, true).unwrap_or(window.end);
        pages.insert(from, to, 1);
        out.push((from * 4, (to - from) * 4));
        read += to - from;
        at = to;
    }
    read
}

#[test]
fn two_windows_as_in_2_6_18() {
    assert_eq!(two_windows(&every(0, 4, 4, 28)), "0→0+16 4→16+32 (2) 16→48+64 (7) 48→112+128 (15)");
    assert_eq!(two_windows(&every(0, 128, 128, 3)), "0→0+128,128+128 128→256+128 256→384+128");
    let mib = two_windows(&every(0, 1024, 1024, 2));
    let windows = |from: u64, n: u64| -> String {
        (0..n).map(|i| format!("{}+128", from + 128 * i)).collect::<Vec<_>>().join(",")
    };
    assert_eq!(mib, format!("0→{} 1024→{}", windows(0, 9), windows(1152, 8)));
    assert_eq!(two_windows(&every(0, 16, 4, 4)), "0→0+16 16→16+4 32→32+4 48→48+4");
    assert_eq!(two_windows(&every(0, 12, 4, 4)), "0→0+16 (1) 24→24+4 36→36+4");
    assert_eq!(
        two_windows(&every(0, 20, 20, 13)),
        "0→0+64 20→64+128 (1) 60→192+128 (5) 180→320+128 (3)"
    );
    let mut calls: Vec<_> = (0..3).flat_map(|i| [(4 * i, 4), (32768 + 4 * i, 4)]).collect();
    calls.drain(..0);
    assert_eq!(two_windows(&calls), "0→0+16 32768→32768+4 (1) 32772→32772+4 (1) 32776→32776+4");
}
