//! Where the time of an emulated disk goes, part by part, beside the model's own.

use std::fs::File;
use std::os::unix::fs::FileExt;

use iosched_lab::machine::Interrupt;
use iosched_types::Nanos;
use serde::Serialize;

use super::attach::EmulatedDisk;
use super::clockwork::Lead;
use super::selfcheck::{self, Aligned, PROBE_LATENCY};
use super::serve::Shared;
use super::stamps::Stamp;
use crate::error::{Error, Result};
use crate::root::SysRoot;
use crate::sys::Urgent;

/// Reads at depth 1.
const READS: u64 = 400;
const LEN: usize = 4096;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The way to the kernel.
    pub transport: String,
    /// One read of 4 KiB at a time from the disk.
    pub disk: Parts,
    /// The same from the FUSE file below the loop device, where there is one.
    pub file: Option<Parts>,
    /// 32 reads at once from the disk, answered as soon as possible.
    pub disk_at_32: Crowd,
    /// The same from the FUSE file.
    pub file_at_32: Option<Crowd>,
}

/// Medians over the reads, in µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Parts {
    /// From the reader's call until the server is awake: block layer, loop and its worker, FUSE or ublk, waking up.
    pub to_server: f64,
    /// Until it has the request.
    pub taking: f64,
    /// Until the data is in place.
    pub data: f64,
    /// Until the server begins to answer: the model's own time, and the server's lateness.
    pub waiting: f64,
    /// How much later than the model said that was.
    pub late: f64,
    /// Until the kernel has the answer.
    pub answering: f64,
    /// Until the reader has it.
    pub to_reader: f64,
    /// From the reader's call to its end, without the model's time.
    pub added: f64,
}

/// Many reads at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Crowd {
    /// Reads a second.
    pub iops: f64,
    /// CPU time of the reader for each, in µs.
    pub reader: f64,
    /// Of the server.
    pub server: f64,
    /// The same for the kernel's workers and softirq threads, which others use too.
    pub workers: f64,
}

impl EmulatedDisk {
    /// Measures; takes some seconds, and leaves the model as after power-on.
    ///
    /// # Errors
    /// The kernel's; [`Error::Interrupted`].
    pub fn measure(&self, interrupt: &Interrupt) -> Result<Measured> {
        let check = || interrupt.check();
        let node = self.node();
        let open = selfcheck::open_direct(&node)?;
        let targets = [Some(&open), self.file()];
        self.settle_probe(PROBE_LATENCY)?;
        let mut parts = [None; 2];
        for (target, parts) in targets.iter().zip(&mut parts) {
            *parts = target.map(|f| self.one_at_a_time(f, &check)).transpose()?;
        }
        self.settle_probe(1)?;
        let mut crowds = [None; 2];
        for (target, crowd) in targets.iter().zip(&mut crowds) {
            *crowd = target.map(|f| self.crowd(f, &check)).transpose()?;
        }
        self.reset()?;
        Ok(Measured {
            transport: self.transport().to_string(),
            disk: parts[0].unwrap_or_default(),
            file: parts[1],
            disk_at_32: crowds[0].unwrap_or_default(),
            file_at_32: crowds[1],
        })
    }

    fn settle_probe(&self, latency: Nanos) -> Result<()> {
        self.settle(super::attach::probe(self.bytes(), latency)?, Lead::default())
    }

    fn one_at_a_time(&self, file: &File, check: &dyn Fn() -> Result<()>) -> Result<Parts> {
        let shared: &Shared = self.shared();
        let clock = &shared.work;
        let mut buffer = Aligned::new(LEN);
        let mut ways = Vec::with_capacity(READS as usize);
        let _urgent = Urgent::here();
        shared.stamps.collect(true);
        shared.stamps.take();
        for i in 0..READS {
            check()?;
            let sent = clock.now();
            let at = selfcheck::offset(i, self.bytes(), LEN as u64);
            let read = file.read_exact_at(buffer.bytes(), at);
            let had = clock.now();
            read.map_err(|e| Error::io("reading", self.node(), e))?;
            // The reader may have had the answer before its stamp is taken.
            let stamps = settled(shared);
            // Another process's read came between, so the stamps cannot be assigned.
            if let [stamp] = stamps[..] {
                ways.push((sent, stamp, had));
            }
        }
        shared.stamps.collect(false);
        Ok(parts(&ways))
    }

    fn crowd(&self, file: &File, check: &dyn Fn() -> Result<()>) -> Result<Crowd> {
        let before = Spent::now();
        let (iops, seconds) = selfcheck::rate_of(file, &self.node(), self.bytes(), LEN, check)?;
        let after = Spent::now();
        let reads = (iops * seconds).max(1.0);
        let each = |f: fn(&Spent) -> u64| f(&after).saturating_sub(f(&before)) as f64 / 1e3 / reads;
        Ok(Crowd {
            iops,
            reader: each(|s| s.reader),
            server: each(|s| s.server),
            workers: each(|s| s.workers),
        })
    }
}

/// The stamps so far, once there is one. The server writes a stamp after the answer.
fn settled(shared: &Shared) -> Vec<Stamp> {
    for _ in 0..1000 {
        let stamps = shared.stamps.take();
        if !stamps.is_empty() {
            return stamps;
        }
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
    Vec::new()
}

/// Medians of what lies between the stamps. An answer may reach the reader before the server is back from giving it.
fn parts(ways: &[(Nanos, Stamp, Nanos)]) -> Parts {
    let median = |f: &dyn Fn(&(Nanos, Stamp, Nanos)) -> i64| {
        let mut all: Vec<i64> = ways.iter().map(f).collect();
        all.sort_unstable();
        all.get(all.len() / 2).map_or(0.0, |ns| *ns as f64 / 1e3)
    };
    let between = |from: Nanos, to: Nanos| to as i64 - from as i64;
    let model = PROBE_LATENCY as i64;
    Parts {
        to_server: median(&|(sent, s, _)| between(*sent, s.woken)),
        taking: median(&|(_, s, _)| between(s.woken, s.taken)),
        data: median(&|(_, s, _)| between(s.taken, s.placed)),
        waiting: median(&|(_, s, _)| between(s.placed, s.begun)),
        late: median(&|(_, s, _)| between(s.taken, s.begun) - model),
        answering: median(&|(_, s, _)| between(s.begun, s.answered)),
        to_reader: median(&|(_, s, had)| between(s.answered, *had)),
        added: median(&|(sent, _, had)| between(*sent, *had) - model),
    }
}

/// CPU time so far, in ns.
struct Spent {
    reader: u64,
    server: u64,
    workers: u64,
}

impl Spent {
    fn now() -> Spent {
        let root = SysRoot::default();
        let of = |dir: &str| {
            let text = root.get(&format!("{dir}/schedstat")).unwrap_or_default();
            text.split(' ').next().and_then(|w| w.parse::<u64>().ok()).unwrap_or(0)
        };
        let name = |dir: &str| root.get(&format!("{dir}/comm")).unwrap_or_default();
        let tasks =
            root.list("/proc/self/task").into_iter().map(|t| format!("/proc/self/task/{t}"));
        let server = tasks.filter(|t| name(t) == super::THREAD).map(|t| of(&t)).sum();
        let all = root.list("/proc").into_iter().filter(|p| p.bytes().all(|b| b.is_ascii_digit()));
        let kernel = all.map(|p| format!("/proc/{p}")).filter(|p| {
            let name = name(p);
            name.starts_with("kworker/") || name.starts_with("ksoftirqd/")
        });
        Spent { reader: of("/proc/thread-self"), server, workers: kernel.map(|p| of(&p)).sum() }
    }
}

impl Measured {
    /// For people, at most 80 columns.
    #[must_use]
    pub fn render(&self) -> String {
        let way = if self.file.is_some() { "block layer, loop, FUSE" } else { "block layer, ublk" };
        let mut out = format!(
            "way: {}\none read of 4 KiB at a time, a model of 1 ms: medians in µs\n",
            self.transport
        );
        let head = |last: &str| format!("{:<44}{:>10}{last:>14}\n", "", "disk");
        out.push_str(&head(if self.file.is_some() { "FUSE alone" } else { "" }));
        let mut row = |what: &str, of: &dyn Fn(&Parts) -> f64| {
            let file = self.file.as_ref().map_or(String::new(), |f| format!("{:.1}", of(f)));
            out.push_str(&format!("{what:<44}{:>10.1}{file:>14}\n", of(&self.disk)));
        };
        row(&format!("to the server: {way}"), &|p| p.to_server);
        row("taking the request", &|p| p.taking);
        row("data", &|p| p.data);
        row("the model's wait", &|p| p.waiting);
        row("  of which too late", &|p| p.late);
        row("giving the answer", &|p| p.answering);
        row("from there to the reader", &|p| p.to_reader);
        row("added to the model, in all", &|p| p.added);
        out.push_str("\n32 reads of 4 KiB at once, answered as soon as may be\n");
        let mut row = |what: &str, of: &dyn Fn(&Crowd) -> f64, digits: usize| {
            let file = self.file_at_32.as_ref();
            let file = file.map_or(String::new(), |f| format!("{:.digits$}", of(f)));
            out.push_str(&format!("{what:<44}{:>10.digits$}{file:>14}\n", of(&self.disk_at_32)));
        };
        row("IOPS", &|c| c.iops, 0);
        row("CPU time a read, µs: reader", &|c| c.reader, 1);
        row("  server", &|c| c.server, 1);
        row("  kernel's workers and softirqs (all users')", &|c| c.workers, 1);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(shift: Nanos) -> (Nanos, Stamp, Nanos) {
        let stamp = Stamp {
            woken: 108_000 + shift,
            taken: 110_000 + shift,
            placed: 110_500 + shift,
            begun: 1_111_000 + shift,
            answered: 1_114_000 + shift,
        };
        (100_000, stamp, 1_113_000 + shift)
    }

    #[test]
    fn parts_add_up_to_what_the_reader_waits() {
        let p = parts(&[way(0), way(1_000), way(50_000)]);
        assert_eq!((p.to_server, p.taking, p.data), (9.0, 2.0, 0.5), "medians");
        assert_eq!((p.waiting, p.late, p.answering), (1000.5, 1.0, 3.0));
        assert_eq!(p.to_reader, -1.0, "it had the answer before the server was back");
        assert_eq!(p.added, 14.0);
        let sum = p.to_server + p.taking + p.data + p.waiting + p.answering + p.to_reader;
        assert_eq!(sum, p.added + 1000.0);
        assert_eq!(parts(&[]), Parts::default());
    }

    #[test]
    fn the_table_fits_and_leaves_out_what_is_not_there() {
        let measured = Measured {
            transport: "ublk".into(),
            disk: parts(&[way(0)]),
            file: None,
            disk_at_32: Crowd { iops: 123_456.7, reader: 1.0, server: 2.0, workers: 3.0 },
            file_at_32: None,
        };
        let text = measured.render();
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert!(text.contains("123457") && !text.contains("FUSE"), "{text}");
        let both = Measured { file: Some(measured.disk), ..measured };
        assert!(both.render().contains("FUSE alone"));
    }
}
