//! Block tracepoints of some disks through a tracefs instance of our own: it works under lockdown, tells
//! processes apart and disturbs no other tracer.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use iosched_experiment::{DispatchPoint, Warning};
use iosched_types::{Nanos, Op};

use crate::backend::Traced;
use crate::error::{Error, Result};
use crate::guardian::GuardianCommand;
use crate::instance::{Instance, of_disks};
use crate::parse::trace::{Event, parse_line};
use crate::root::{DevNum, SysRoot};

/// Buffer per CPU: nothing is lost at 100 thousand I/Os a second while the reader sleeps.
pub(crate) const BUFFER_KB: u64 = 16384;
/// Points of a record's picture of the head's way.
const POINTS: usize = 4096;
/// Events kept during a run, so that a long run cannot eat the memory.
const MAX_EVENTS: usize = 8 << 20;

/// What is taken note of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Every command issued, and how long each took.
    All,
    /// Only how long commands took.
    Times,
    /// How long one of eight 4 KiB commands took: those with a first sector that is a multiple of 64.
    Sampled,
}

/// Bits of a sector's number that are 0 in a sample.
const SAMPLE: u32 = 56;

/// Some commands and the sum of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// How many there were.
    pub commands: u64,
    /// How long they took together.
    pub time: Nanos,
}

impl Took {
    pub(crate) fn add(&mut self, time: Nanos) {
        self.commands += 1;
        self.time += time;
    }

    /// What came since an earlier count.
    pub(crate) fn since(self, before: Took) -> Took {
        Took { commands: self.commands - before.commands, time: self.time - before.time }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Took) -> Took {
        Took { commands: self.commands + other.commands, time: self.time + other.time }
    }
}

/// How long commands took from issue to completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Commands with data, and discards, seen from beginning to end.
    pub data: Took,
    /// Flushes seen from beginning to end.
    pub flushes: Took,
    /// Events lost: the sum is not to be trusted.
    pub lost: u64,
}

/// A trace being taken.
#[derive(Debug)]
pub struct Tracer {
    instance: Instance,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<Collected>>,
}

#[derive(Debug, Default)]
struct Collected {
    /// With the device, because each device has a head of its own.
    points: Vec<(DevNum, DispatchPoint)>,
    dropped: u64,
    /// Issue times by device, sector and kind.
    in_flight: BTreeMap<(DevNum, u64, u8), Nanos>,
    /// Issue times of flushes, the first issued first. A flush has no place: it is issued at sector 0 and completed at
    /// sector -1. A disk has one under way for each of its hardware queues; whichever ends first, the sum is the same.
    flushing: BTreeMap<DevNum, VecDeque<Nanos>>,
    times: Times,
    /// Whether points are kept.
    keep: bool,
}

impl Tracer {
    /// Starts tracing what is issued to `disks` (kernel names).
    ///
    /// # Errors
    /// [`Error::Unavailable`] without tracefs, [`Error::Io`].
    pub fn start(
        disks: &[&str],
        detail: Detail,
        state_dir: &Path,
        guardian: Option<&GuardianCommand>,
    ) -> Result<Tracer> {
        let filter = filter(&SysRoot::default(), disks, detail)?;
        let instance = Instance::make(BUFFER_KB, state_dir, guardian, "run without --trace")?;
        let mut tracer = Tracer { instance, stop: Arc::default(), reader: None };
        for event in EVENTS {
            tracer.instance.filter(event, &filter)?;
        }
        let pipe = tracer.instance.path("trace_pipe");
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nix::libc::O_NONBLOCK)
            .open(&pipe)
            .map_err(|e| Error::io("opening", &pipe, e))?;
        let stop = tracer.stop.clone();
        let keep = detail == Detail::All;
        let thread = std::thread::Builder::new().name("trace".into());
        let reader = thread.spawn(move || collect(file, &stop, keep));
        tracer.reader = Some(reader.map_err(|e| Error::io("starting a reader of", &pipe, e))?);
        for event in EVENTS {
            tracer.instance.enable(event, true)?;
        }
        Ok(tracer)
    }

    /// Ends the trace and takes the instance away.
    pub(crate) fn finish(mut self) -> Result<Traced> {
        for event in EVENTS {
            self.instance.enable(event, false)?;
        }
        let collected = self.end_reader();
        self.instance.take_away()?;
        Ok(digest(collected))
    }

    fn end_reader(&mut self) -> Collected {
        self.stop.store(true, Ordering::Relaxed);
        self.reader.take().and_then(|r| r.join().ok()).unwrap_or_default()
    }

    /// Where the instance is, for messages.
    #[must_use]
    pub fn root(&self) -> &SysRoot {
        self.instance.tracefs()
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // The instance goes after its reader.
        self.end_reader();
    }
}

/// The beginning of a command's time at the device, and its end.
const EVENTS: [&str; 2] = ["block_rq_issue", "block_rq_complete"];

/// The kernel's filter for the events of some disks.
fn filter(root: &SysRoot, disks: &[&str], detail: Detail) -> Result<String> {
    let any = of_disks(root, disks)?;
    Ok(match detail {
        Detail::Sampled => format!("({any}) && !(sector & {SAMPLE})"),
        Detail::All | Detail::Times => any,
    })
}

fn collect(mut pipe: File, stop: &AtomicBool, keep: bool) -> Collected {
    let mut out = Collected { keep, ..Collected::default() };
    let mut buf = vec![0u8; 1 << 16];
    let mut rest = String::new();
    loop {
        // Read once more after the stop, because events traced before it count.
        let last = stop.load(Ordering::Relaxed);
        while let Ok(n) = pipe.read(&mut buf) {
            if n == 0 {
                break;
            }
            rest.push_str(&String::from_utf8_lossy(&buf[..n]));
            let end = rest.rfind('\n').map_or(0, |i| i + 1);
            rest[..end].lines().for_each(|l| take(l, &mut out));
            rest.drain(..end);
        }
        if last {
            return out;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn take(line: &str, out: &mut Collected) {
    match parse_line(line) {
        Some(t) if t.event == Event::Issue => {
            if t.op == Op::Flush {
                out.flushing.entry(t.dev).or_default().push_back(t.at);
            } else {
                // A request that went back and is issued again begins anew.
                out.in_flight.insert((t.dev, t.sector, t.op as u8), t.at);
            }
            if !out.keep {
                return;
            }
            if out.points.len() == MAX_EVENTS {
                out.dropped += 1;
                return;
            }
            let point = DispatchPoint {
                t: t.at,
                sector: t.sector,
                sectors: t.sectors,
                op: t.op,
                pid: t.pid,
            };
            out.points.push((t.dev, point));
        }
        Some(t) if t.event == Event::Complete && t.op == Op::Flush => {
            if let Some(issued) = out.flushing.get_mut(&t.dev).and_then(VecDeque::pop_front) {
                out.times.flushes.add(t.at.saturating_sub(issued));
            }
        }
        // A write that had a flush before or behind it completes once more when both are done, without sectors.
        Some(t) if t.event == Event::Complete && t.sectors > 0 => {
            if let Some(issued) = out.in_flight.remove(&(t.dev, t.sector, t.op as u8)) {
                out.times.data.add(t.at.saturating_sub(issued));
            }
        }
        // "CPU:1 [LOST 15 EVENTS]"
        _ => {
            if let Some((_, tail)) = line.split_once("[LOST ") {
                let n = tail.split(' ').next().and_then(|n| n.parse().ok());
                out.dropped += n.unwrap_or(1u64);
                out.times.lost += n.unwrap_or(1u64);
            }
        }
    }
}

/// Times from the first event, seeks and travel over all.
fn digest(collected: Collected) -> Traced {
    let mut points = collected.points;
    // Each CPU has its own buffer; the pipe joins them almost in order.
    points.sort_by_key(|(_, p)| p.t);
    let start = points.first().map_or(0, |(_, p)| p.t);
    let (mut seeks, mut travel, mut ends) = (0, 0, BTreeMap::new());
    for (dev, p) in &mut points {
        p.t -= start;
        if p.sectors > 0 {
            let end = ends.insert(*dev, p.sector + u64::from(p.sectors));
            if let Some(e) = end
                && e != p.sector
            {
                seeks += 1;
                travel += p.sector.abs_diff(e);
            }
        }
    }
    let points = points.into_iter().map(|(_, p)| p).collect();
    let times = collected.times;
    let warning = (collected.dropped > 0).then(|| Warning {
        code: "trace-incomplete".into(),
        message: format!("{} trace events were lost", collected.dropped),
        advice: "seeks and head travel are too low; trace a shorter run".into(),
    });
    Traced { points, seeks, travel, warning, times }
}

/// At most a few thousand points of a trace, evenly thinned out.
pub(crate) fn thin(points: &[DispatchPoint]) -> Vec<DispatchPoint> {
    let step = points.len().div_ceil(POINTS).max(1);
    points.iter().step_by(step).copied().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn issue(t: &str, sector: u64) -> String {
        format!("  fio-7 [001] ..... {t}: block_rq_issue: 7,3 RS 4096 () {sector} + 8 be,0,4 [fio]")
    }

    #[test]
    fn seeks_and_travel_are_those_of_the_whole_trace() {
        let mut c = Collected { keep: true, ..Collected::default() };
        for (t, sector) in [("2.000002", 8), ("2.000001", 0), ("2.000003", 100)] {
            take(&issue(t, sector), &mut c);
        }
        take("CPU:1 [LOST 15 EVENTS]", &mut c);
        let t = digest(c);
        assert_eq!((t.points.len(), t.seeks, t.travel), (3, 1, 84));
        assert_eq!(t.points[2].t, 2000);
        assert!(t.warning.unwrap().message.starts_with("15 "));
    }

    #[test]
    fn commands_are_timed_from_issue_to_completion() {
        let mut c = Collected::default();
        let done = |t: &str, sector: u64, op: &str| {
            format!(
                "  <idle>-0 [001] ..s1. {t}: block_rq_complete: 7,3 {op} () {sector} + 8 be,0,4 [0]"
            )
        };
        take(&issue("2.000100", 8), &mut c);
        take(&issue("2.000200", 16), &mut c);
        // A write at that place is not the read. A command issued before the trace began has no time.
        for line in
            [done("2.000250", 8, "WS"), done("2.000300", 16, "RS"), done("2.000400", 24, "RS")]
        {
            take(&line, &mut c);
        }
        take(&done("2.001100", 8, "RS"), &mut c);
        take("CPU:0 [LOST 2 EVENTS]", &mut c);
        let data = Took { commands: 2, time: 1_100_000 };
        assert_eq!(c.times, Times { data, flushes: Took::default(), lost: 2 });
        assert!(c.points.is_empty());
    }

    /// As Linux 6.18 traces a write with a flush before and behind it, and then a flush alone, on a loop device.
    #[test]
    fn a_flush_is_timed_although_it_is_completed_at_another_place() {
        let lines = [
            "kworker/0:0H-10 [000] ..... 8.000100: block_rq_issue: 7,64 FF 0 () 0 + 0 none,0,0 [kworker/0:0H]",
            "ksoftirqd/0-14 [000] ..s.. 8.000300: block_rq_complete: 7,64 FF () 18446744073709551615 + 0 none,0,0 [0]",
            "kworker/0:0H-10 [000] ..... 8.000310: block_rq_issue: 7,64 WSM 4096 () 0 + 8 be,0,4 [kworker/0:0H]",
            "ksoftirqd/0-14 [000] d.s1. 8.000312: block_rq_complete: 7,64 WS () 0 + 0 be,0,4 [0]",
            "ksoftirqd/0-14 [000] ..s.. 8.000340: block_rq_complete: 7,64 WSM () 0 + 8 be,0,4 [0]",
            "kworker/0:0H-10 [000] ..... 8.000350: block_rq_issue: 7,64 FF 0 () 0 + 0 none,0,0 [kworker/0:0H]",
            "ksoftirqd/0-14 [000] ..s.. 8.008350: block_rq_complete: 7,64 FF () 18446744073709551615 + 0 none,0,0 [0]",
            "ksoftirqd/0-14 [000] d.s1. 8.008360: block_rq_complete: 7,64 WSM () 0 + 0 be,0,4 [0]",
        ];
        let mut c = Collected::default();
        lines.iter().for_each(|line| take(line, &mut c));
        assert_eq!(c.times.flushes, Took { commands: 2, time: 8_200_000 });
        assert_eq!(c.times.data, Took { commands: 1, time: 30_000 });
        // Two hardware queues flush at once.
        let mut c = Collected::default();
        for i in [0, 5, 1, 6] {
            take(lines[i], &mut c);
        }
        assert_eq!(c.times.flushes, Took { commands: 2, time: 8_200_000 });
    }

    #[test]
    fn the_kernel_filters_by_disk_and_samples_by_sector() {
        let dir = tempfile::tempdir().unwrap();
        for (name, number) in [("sda", "8:0"), ("sdb", "8:16")] {
            let dir = dir.path().join("sys/block").join(name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("dev"), number).unwrap();
        }
        let root = SysRoot::at(dir.path());
        assert_eq!(filter(&root, &["sda"], Detail::All).unwrap(), "dev == 8388608");
        assert_eq!(
            filter(&root, &["sda", "sdb"], Detail::Sampled).unwrap(),
            "(dev == 8388608 || dev == 8388624) && !(sector & 56)"
        );
        assert!(filter(&root, &["sdc"], Detail::Times).is_err());
    }

    #[test]
    fn long_traces_are_thinned() {
        let mut c = Collected { keep: true, ..Collected::default() };
        for i in 0..3 * POINTS as u64 {
            take(&issue(&format!("2.{i:06}"), i * 8), &mut c);
        }
        let t = digest(c);
        assert_eq!((t.points.len(), t.seeks), (3 * POINTS, 0));
        let picture = thin(&t.points);
        assert_eq!((picture.len(), picture[1]), (POINTS, t.points[3]));
    }
}
