//! ADIOS: what it hands out, in which order. The worked scenarios were run on Linux 7.1.5 with ADIOS 3.1.9, and so were the
//! random ones in `adios/`.

use iosched_types::{Flags, Nanos, Op};

use super::{Fixed, FixedParams, Rig, config};
use crate::QueueConfig;

/// One request in the device, one held by the block layer; each takes 0.97 ms.
fn one_tag(rotational: bool, tunables: &[(&str, i64)]) -> QueueConfig {
    let mut c = config("adios@3.1.9", "7.1", 1, 1);
    c.profile.hz = 250;
    c.device = service(1, 970_000);
    c.rotational = rotational;
    c.settings = vec![("nr_requests".into(), 1024), ("wbt_lat_usec".into(), 0)];
    c.scheduler.tunables = tunables.iter().map(|(n, v)| ((*n).into(), *v)).collect();
    c
}

/// A device that serves `par` commands at once in `ns` each.
fn service(par: u32, ns: Nanos) -> Box<dyn iosched_devices::Device> {
    let (cap, par) = (1 << 40, par.into());
    Box::new(Fixed::new(FixedParams { cap, depth: 0, flush_ns: ns, lat_ns: ns, par }))
}

/// When, what, the sync flag, the plug.
type Line<'a> = (Nanos, &'a str, bool, &'a str);

/// `R8+16`: operation, sector, length.
fn parts(word: &str) -> (Op, u64, u32) {
    let op = Op::from_letter(word.chars().next().unwrap()).unwrap();
    let (sector, sectors) = word[1..].split_once('+').unwrap_or((&word[1..], "8"));
    (op, sector.parse().unwrap(), sectors.parse().unwrap())
}

impl Rig {
    fn until(&mut self, t: Nanos) {
        while let Some(at) = iosched_engine::World::next(self)
            && at <= t
        {
            iosched_engine::World::turn(self, at);
            self.collect();
        }
        self.tl.now = t;
    }

    /// Submits requests, those with one plug in one call.
    fn plays(&mut self, lines: &[Line<'_>]) -> Vec<String> {
        let mut at = 0;
        while at < lines.len() {
            let n = lines[at..].iter().take_while(|l| l.3 == lines[at].3).count();
            let call = &lines[at..at + n];
            self.until(call.last().unwrap().0);
            self.q.start_plug(0);
            for (_, what, flagged, _) in call {
                let (op, sector, sectors) = parts(what);
                let flags = if *flagged { Flags::SYNC.with(Flags::IDLE) } else { Flags::NONE };
                self.bio(0, op, sector, sectors, flags);
            }
            self.q.finish_plug(&mut self.tl, 0);
            self.returns();
            at += n;
        }
        self.until(lines.last().unwrap().0 + 10_000_000_000);
        let issues = self.q.out().issues.iter().flatten();
        issues.map(|i| format!("{}{}+{}", i.op.letter(), i.sector, i.sectors)).collect()
    }
}

/// `20.00 R100`: a line of a worked scenario. `A` is a write without the sync flag. Words behind the first share its plug.
fn worked(config: QueueConfig, warm: bool, text: &str) -> String {
    let warm_up = if warm { "1 R8, 5 W16, " } else { "" };
    let text = format!("{warm_up}{text}");
    let mut lines: Vec<(Nanos, String, bool, String)> = Vec::new();
    for (i, call) in text.split(", ").enumerate() {
        let (ms, words) = call.trim().split_once(' ').unwrap();
        for word in words.split(' ') {
            let at = (ms.parse::<f64>().unwrap() * 1e6).round() as Nanos;
            let flagged = word.starts_with(['W', 'D']);
            lines.push((at, word.replace('A', "W"), flagged, i.to_string()));
        }
    }
    let lines: Vec<Line<'_>> =
        lines.iter().map(|l| (l.0, l.1.as_str(), l.2, l.3.as_str())).collect();
    let mut rig = Rig::new(config);
    let order = rig.plays(&lines);
    let order = &order[if warm { 2 } else { 0 }..];
    order.iter().map(|w| w.trim_end_matches("+8").to_string()).collect::<Vec<_>>().join(" ")
}

const NARROW: &[(&str, i64)] = &[("global_latency_window", 1000)];

/// Until both models have a base, it is a FIFO. The request at whose insertion both are seen still is in it.
#[test]
fn the_learning_phase_is_a_fifo() {
    let text = "1.00 R900, 1.01 W500+128, 1.02 R100, 1.03 W300+16, 1.04 R700, 1.05 W200, 1.06 R40000, \
                20 W7000 R6000 W5000 R4000";
    assert_eq!(
        worked(one_tag(false, &[]), false, text),
        "R900 W500+128 R100 W300+16 R700 W200 R40000 W7000 R6000 R4000 W5000"
    );
}

#[test]
fn a_page_gives_its_reads_first() {
    let text = "20.00 W1000, 20.01 W2000, 20.02 W3000, 20.03 R9000, 20.04 W4000, 20.05 R8000";
    assert_eq!(worked(one_tag(false, &[]), true, text), "W1000 W2000 R9000 R8000 W3000 W4000");
}

#[test]
fn young_flagged_writes_pay_nothing_back() {
    let text = "20.00 R100, 20.01 R200, 20.02 W1000, 20.03 W2000, 20.04 W3000, 20.10 R50000, 20.11 R51000, \
                20.12 R52000, 20.13 R53000, 20.14 R54000, 20.15 R55000, 20.16 R56000, 20.17 R57000, 22.90 W9000, \
                22.95 W9500";
    assert_eq!(
        worked(one_tag(false, NARROW), true, text),
        "R100 R200 W1000 W2000 W3000 W9000 W9500 R50000 R51000 R52000 R53000 R54000 R55000 R56000 R57000"
    );
}

#[test]
fn a_batch_is_as_large_as_its_expected_latency_fits_the_window() {
    let text = "20.00 R100, 20.01 R200, 20.02 R1000, 20.03 R2000, 20.04 R3000, 20.05 R4000, 20.06 R5000, \
                20.10 W60000, 20.11 W61000, 20.12 W62000, 20.13 W63000, 20.14 W64000";
    assert_eq!(
        worked(one_tag(false, &[("global_latency_window", 5_000_000)]), true, text),
        "R100 R200 W60000 W61000 W62000 W63000 R1000 R2000 R3000 W64000 R4000 R5000"
    );
}

#[test]
fn a_write_without_the_flag_earns_what_it_overtakes() {
    let text =
        "20.00 R100, 20.01 R200, 20.02 A30000, 20.03 W1000, 20.04 A31000, 20.05 R500, 20.06 W2000";
    assert_eq!(
        worked(one_tag(false, NARROW), true, text),
        "R100 R200 W1000 W2000 W30000 R500 W31000"
    );
}

#[test]
fn a_small_read_overtakes_a_larger_one_by_what_is_expected() {
    let models = [
        ("global_latency_window", 1000),
        ("lat_model_read", iosched_schedulers::pair::of(970_000, 50_000)),
        ("lat_model_write", iosched_schedulers::pair::of(970_000, 20_000)),
    ];
    let text = "20.00 R100, 20.01 R200, 20.02 R1000+128, 20.03 R2000+64, 20.04 W5000, 21.50 R3000, 21.60 R4000+32";
    assert_eq!(
        worked(one_tag(false, &models), false, text),
        "R100 R200 W5000 R2000+64 R3000 R1000+128 R4000+32"
    );
}

#[test]
fn a_discard_is_a_barrier_until_3_2() {
    let text = "20.00 R100, 20.01 R200, 20.02 R1000, 20.03 D4096, 20.04 W5000, 20.05 R6000";
    let old = one_tag(false, &[]);
    assert_eq!(worked(old, true, text), "R100 R200 R1000 D4096 R6000 W5000");
    let mut new = one_tag(false, &[]);
    new.scheduler.generation = &new.scheduler.descriptor.generations[1];
    assert_eq!(worked(new, true, text), "R100 R200 R1000 R6000 W5000 D4096");
}

#[test]
fn a_merge_sends_a_request_to_the_end_of_its_group() {
    let text =
        "20.00 R100, 20.01 R200, 20.02 R1000, 20.03 R5000, 20.04 R1008, 20.05 R7000, 20.06 R6992";
    assert_eq!(worked(one_tag(false, NARROW), true, text), "R100 R200 R5000 R1000+16 R7000 R6992");
}

#[test]
fn batch_order_1_sweeps_over_all_but_flagged_writes() {
    let text = "20.00 R100, 20.01 R200, 20.02 R900000, 20.03 W300000, 20.04 A800000, 20.05 A100000, 20.06 A500000, \
                20.07 W700000";
    assert_eq!(
        worked(one_tag(true, &[("batch_order", 1)]), true, text),
        "R100 R200 W300000 W700000 W100000 W500000 W800000 R900000"
    );
}

#[test]
fn large_samples_become_a_slope() {
    let mut rig = Rig::new(one_tag(false, &[]));
    rig.plays(&[
        (1_000_000, "R8", false, "0"),
        (5_000_000, "W16", true, "1"),
        (20_000_000, "R100000+16", false, "2"),
        (20_010_000, "W200000+64", true, "3"),
        (30_000_000, "R300000+128", false, "4"),
    ]);
    let tunables = rig.q.tunables();
    let model = |name| tunables.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
    // The first timer has two samples of 0.97 ms, less the base once, over 72 KiB.
    assert_eq!(model("lat_model_read").map(iosched_schedulers::pair::parts).unwrap().0, 970_000);
}

#[test]
fn overtaking_an_older_read_is_paid_back() {
    let mut text = "20.00 R100, 20.01 R200".to_string();
    for i in 0..12 {
        text += &format!(", 20.{} R{}", 10 + i, 50_000 + 1000 * i);
    }
    text += ", 24.50 W1000, 24.51 W2000, 24.52 W3000, 24.53 W4000";
    assert_eq!(
        worked(one_tag(false, NARROW), true, &text),
        "R100 R200 R50000 R51000 R52000 R53000 W1000 R54000 R55000 R56000 R57000 R58000 R59000 R60000 R61000 W2000 \
         W3000 W4000"
    );
    // Without the disk's statistics 7.1 gives no time, so a write is never younger than a read, and nothing is paid back.
    let mut untimed = one_tag(false, NARROW);
    untimed.settings.push(("iostats".into(), 0));
    assert_eq!(
        worked(untimed, true, &text),
        "R100 R200 R50000 R51000 R52000 R53000 W1000 W2000 W3000 W4000 R54000 R55000 R56000 R57000 R58000 R59000 \
         R60000 R61000"
    );
}

/// A random script, as the kernel ran it.
fn random(text: &str) {
    let (mut lines, mut kernel, mut config) = (Vec::new(), Vec::new(), one_tag(false, &[]));
    let mut clock = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "device" => {
                let number = |i: usize| words[i].split_once('=').unwrap().1.parse::<u32>().unwrap();
                // The kernel sees a completion a nanosecond late.
                config.device = service(number(1), 970_001);
                (config.queue_depth, config.rotational) = (number(2), number(3) == 1);
            }
            "clock" => clock = words[1].parse::<Nanos>().unwrap(),
            "tunable" => {
                let value = words[2].parse().unwrap();
                config.scheduler.tunables.push((words[1].into(), value));
            }
            "r" => lines.push((
                words[1].parse::<Nanos>().unwrap() + clock,
                words[2],
                words[3] == "f",
                words[4],
            )),
            "d" => kernel.push(words[1].to_string()),
            _ => {}
        }
    }
    let ours = Rig::new(config).plays(&lines);
    let first = kernel.iter().zip(&ours).position(|(k, o)| k != o);
    assert_eq!(first, None, "{:?} {:?}", first.map(|i| &kernel[i..]), first.map(|i| &ours[i..]));
    assert_eq!(kernel.len(), ours.len());
}

/// Four tags; rotational; batch order 1; discards; batch order 1 with another priority and flag.
#[test]
fn random_requests_leave_in_the_kernels_order() {
    for text in [
        include_str!("adios/x5.txt"),
        include_str!("adios/x9.txt"),
        include_str!("adios/x11.txt"),
        include_str!("adios/y21.txt"),
        include_str!("adios/y25.txt"),
    ] {
        random(text);
    }
}
