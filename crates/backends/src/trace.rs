//! Block tracepoints of one disk through a tracefs instance of our own: it works under lockdown, tells
//! processes apart and disturbs no other tracer.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iosched_experiment::{DispatchPoint, Warning};

use crate::backend::Traced;
use crate::error::{Error, Result};
use crate::guardian::{Guardian, GuardianCommand};
use crate::kernel_fs::KernelFs;
use crate::parse::trace::{Event, parse_line};
use crate::root::{DevNum, SysRoot};
use crate::state::{Change, StateFile};

/// Buffer per CPU: nothing is lost at 100 thousand I/Os a second while the reader sleeps.
const BUFFER_KB: &str = "16384";
/// Points of a record's picture of the head's way.
const POINTS: usize = 4096;
/// Events kept during a run, so that a long run cannot eat the memory.
const MAX_EVENTS: usize = 8 << 20;

/// Traces of this process so far: several disks may be traced at once.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A trace being taken.
#[derive(Debug)]
pub struct Tracer {
    tracefs: KernelFs,
    dir: PathBuf,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<Collected>>,
    state: Option<StateFile>,
    guardian: Option<Guardian>,
}

#[derive(Debug, Default)]
struct Collected {
    points: Vec<DispatchPoint>,
    dropped: u64,
}

impl Tracer {
    /// Starts tracing what is issued to `disk` (a kernel name).
    ///
    /// # Errors
    /// [`Error::Unavailable`] without tracefs, [`Error::Io`].
    pub fn start(
        disk: &str,
        state_dir: &Path,
        guardian: Option<&GuardianCommand>,
    ) -> Result<Tracer> {
        let root = SysRoot::default();
        let number = root.get(&format!("/sys/block/{}/dev", disk.replace('/', "!")));
        let dev = number
            .as_deref()
            .and_then(DevNum::parse)
            .ok_or_else(|| Error::NoDevice { name: disk.into(), help: String::new() })?;
        let tracefs = KernelFs::tracefs().map_err(|e| Error::Unavailable {
            what: "tracefs".into(),
            why: e.to_string(),
            help: "run without --trace".into(),
        })?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("iosched-{}-{count}", std::process::id());
        let change = Change::TraceInstance { name: name.clone() };
        let state = StateFile::create(state_dir, &format!("trace-{name}"), change)?;
        let dir = tracefs.root().real(&format!("/instances/{name}"));
        let mut tracer = Tracer {
            tracefs,
            dir,
            stop: Arc::default(),
            reader: None,
            state: None,
            guardian: None,
        };
        match guardian.map(|g| Guardian::start(g, &state)).transpose() {
            Ok(guardian) => tracer.guardian = guardian,
            Err(e) => {
                state.finish()?;
                return Err(e);
            }
        }
        tracer.state = Some(state);
        fs::create_dir(&tracer.dir).map_err(|e| Error::io("creating", &tracer.dir, e))?;
        tracer.set("buffer_size_kb", BUFFER_KB)?;
        // Timestamps that can be compared with the program's own clock.
        tracer.set("trace_clock", "mono")?;
        tracer.set(
            "events/block/block_rq_issue/filter",
            &format!("dev == {}", dev.major << 20 | dev.minor),
        )?;
        let pipe = tracer.dir.join("trace_pipe");
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nix::libc::O_NONBLOCK)
            .open(&pipe)
            .map_err(|e| Error::io("opening", &pipe, e))?;
        let stop = tracer.stop.clone();
        let thread = std::thread::Builder::new().name("trace".into());
        let reader = thread.spawn(move || collect(file, &stop));
        tracer.reader = Some(reader.map_err(|e| Error::io("starting a reader of", &pipe, e))?);
        tracer.set("events/block/block_rq_issue/enable", "1")?;
        Ok(tracer)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, value).map_err(|e| Error::io("writing", path, e))
    }

    /// Ends the trace and takes the instance away.
    pub(crate) fn finish(mut self) -> Result<Traced> {
        self.set("events/block/block_rq_issue/enable", "0")?;
        let collected = self.end_reader();
        self.take_away()?;
        Ok(digest(collected))
    }

    fn end_reader(&mut self) -> Collected {
        self.stop.store(true, Ordering::Relaxed);
        self.reader.take().and_then(|r| r.join().ok()).unwrap_or_default()
    }

    fn take_away(&mut self) -> Result<()> {
        let Some(state) = self.state.take() else { return Ok(()) };
        remove_instance(&self.dir)?;
        state.finish()?;
        if let Some(guardian) = self.guardian.take() {
            guardian.join();
        }
        Ok(())
    }

    /// Where the instance is, for messages.
    #[must_use]
    pub fn root(&self) -> &SysRoot {
        self.tracefs.root()
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.end_reader();
        // The state file stays when this fails.
        let _ = self.take_away();
    }
}

/// Removes a trace instance; `false` when there was none. A child that another thread has forked a moment
/// ago holds its files open until it executes its program, so a busy one is asked again.
pub(crate) fn remove_instance(dir: &Path) -> Result<bool> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let deadline = Instant::now() + PATIENCE;
    loop {
        match fs::remove_dir(dir) {
            Ok(()) => return Ok(true),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(e) => return Err(Error::io("removing", dir, e)),
        }
    }
}

fn collect(mut pipe: File, stop: &AtomicBool) -> Collected {
    let mut out = Collected::default();
    let mut buf = vec![0u8; 1 << 16];
    let mut rest = String::new();
    loop {
        // Read once more after the stop: what was traced before it counts.
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
            if out.points.len() == MAX_EVENTS {
                out.dropped += 1;
                return;
            }
            out.points.push(DispatchPoint {
                t: t.at,
                sector: t.sector,
                sectors: t.sectors,
                op: t.op,
                pid: t.pid,
            });
        }
        // "CPU:1 [LOST 15 EVENTS]"
        _ => {
            if let Some((_, tail)) = line.split_once("[LOST ") {
                let n = tail.split(' ').next().and_then(|n| n.parse().ok());
                out.dropped += n.unwrap_or(1u64);
            }
        }
    }
}

/// Times from the first event, seeks and travel over all.
fn digest(collected: Collected) -> Traced {
    let mut points = collected.points;
    // Each CPU has its own buffer; the pipe joins them almost in order.
    points.sort_by_key(|p| p.t);
    let start = points.first().map_or(0, |p| p.t);
    let (mut seeks, mut travel, mut end) = (0, 0, None);
    for p in &mut points {
        p.t -= start;
        if p.sectors > 0 {
            if let Some(e) = end
                && e != p.sector
            {
                seeks += 1;
                travel += p.sector.abs_diff(e);
            }
            end = Some(p.sector + u64::from(p.sectors));
        }
    }
    let warning = (collected.dropped > 0).then(|| Warning {
        code: "trace-incomplete".into(),
        message: format!("{} trace events were lost", collected.dropped),
        advice: "seeks and head travel are too low; trace a shorter run".into(),
    });
    Traced { points, seeks, travel, warning }
}

/// At most a few thousand points of a trace, evenly thinned out.
pub(crate) fn thin(points: &[DispatchPoint]) -> Vec<DispatchPoint> {
    let step = points.len().div_ceil(POINTS).max(1);
    points.iter().step_by(step).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issue(t: &str, sector: u64) -> String {
        format!("  fio-7 [001] ..... {t}: block_rq_issue: 7,3 RS 4096 () {sector} + 8 be,0,4 [fio]")
    }

    #[test]
    fn seeks_and_travel_are_those_of_the_whole_trace() {
        let mut c = Collected::default();
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
    fn long_traces_are_thinned() {
        let mut c = Collected::default();
        for i in 0..3 * POINTS as u64 {
            take(&issue(&format!("2.{i:06}"), i * 8), &mut c);
        }
        let t = digest(c);
        assert_eq!((t.points.len(), t.seeks), (3 * POINTS, 0));
        let picture = thin(&t.points);
        assert_eq!((picture.len(), picture[1]), (POINTS, t.points[3]));
    }
}
