//! Recording a disk's I/O: trace points of an instance of our own, raw pages of its buffers, a thread that empties them.

mod choose;
mod room;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use iosched_trace::Live;
use iosched_trace::pages::{Layout, POINTS};
use iosched_types::Nanos;
use rustix::time::{ClockId, clock_gettime};

pub use choose::{Choice, choose, facts};
pub use room::Room;

use crate::error::{Error, Result};
use crate::guardian::GuardianCommand;
use crate::instance::{Instance, of_disks};
use crate::root::SysRoot;
use crate::trace::BUFFER_KB;

/// Pages that the reader hands on together.
const TOGETHER: usize = 64;
/// As many times as many wait, when what takes them is slow: 64 MiB of pages of 4 KiB.
const WAITING: usize = 256;
/// Between two looks at the buffers.
const PAUSE: Duration = Duration::from_millis(20);
/// An event has its time before it is in the buffer; longer than that takes.
const WRITTEN: Nanos = 2_000_000;
/// Buffers take no more than this part of the free memory.
const OF_MEMORY: u64 = 16;
const HELP: &str = "record with blktrace or perf elsewhere, and read that with `iosched trace`";

/// What the reader hands on.
enum Batch {
    /// Pages of a CPU, one behind the other.
    Pages(u16, Vec<u8>),
    /// All events from before this time were handed on.
    Settled(Nanos),
    Failed(std::io::Error),
}

/// A recording.
pub struct Recorder {
    instance: Instance,
    cpus: Vec<u16>,
    page: usize,
    from: Receiver<Batch>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    live: Live,
    buffer_kb: u64,
    /// Unix time less the recorder's clock, at the start.
    unix: i128,
}

impl Recorder {
    /// Begins to record a disk (its kernel name).
    ///
    /// # Errors
    /// [`Error::NotRoot`]; [`Error::Unavailable`] without tracefs or its trace points; [`Error::Io`].
    pub fn start(
        disk: &str,
        state_dir: &Path,
        guardian: Option<&GuardianCommand>,
    ) -> Result<Recorder> {
        if !nix::unistd::geteuid().is_root() {
            return Err(Error::NotRoot { what: "recording a disk's I/O".into() });
        }
        let root = SysRoot::default();
        let filter = of_disks(&root, &[disk])?;
        let buffer_kb = buffer_kb(&root);
        let instance = Instance::make(buffer_kb, state_dir, guardian, HELP)?;
        let points: Vec<&str> = POINTS.into_iter().filter(|p| instance.has(p)).collect();
        if let Some(missing) = POINTS[..1].iter().find(|p| !points.contains(p)) {
            return Err(Error::Unavailable {
                what: format!("the trace point {missing}"),
                why: "this kernel is built without it (CONFIG_BLK_DEV_IO_TRACE)".into(),
                help: HELP.into(),
            });
        }
        let layout = layout(&instance, &points)?;
        // All events begin and end at once.
        instance.set("tracing_on", "0")?;
        for point in &points {
            instance.filter(point, &filter)?;
            instance.enable(point, true)?;
        }
        let pipes = pipes(&instance)?;
        let (to, from) = sync_channel(WAITING);
        let stop: Arc<AtomicBool> = Arc::default();
        let (cpus, page) = (pipes.iter().map(|p| p.0).collect(), layout.page());
        let mut recorder = Recorder {
            instance,
            cpus,
            page,
            from,
            stop: stop.clone(),
            reader: None,
            live: Live::new(layout),
            buffer_kb,
            unix: 0,
        };
        let thread = std::thread::Builder::new().name("record".into());
        let reader = thread.spawn(move || empty(pipes, page, &stop, &to));
        let started = |e| Error::io("starting a reader of", recorder.instance.path(""), e);
        recorder.reader = Some(reader.map_err(started)?);
        recorder.unix = unix() - i128::from(now());
        recorder.instance.set("tracing_on", "1")?;
        Ok(recorder)
    }

    /// Takes what the buffers hold, or waits that long for it. Returns whether there was something.
    ///
    /// # Errors
    /// [`Error::Io`] when the buffers cannot be read.
    pub fn take(&mut self, wait: Duration) -> Result<bool> {
        match self.from.recv_timeout(wait) {
            Ok(Batch::Pages(cpu, pages)) => {
                pages.chunks(self.page).for_each(|page| self.live.page(cpu, page));
                Ok(true)
            }
            Ok(Batch::Settled(time)) => {
                self.live.settle(time);
                Ok(true)
            }
            Ok(Batch::Failed(e)) => {
                Err(Error::io("reading", self.instance.path("per_cpu/cpu*/trace_pipe_raw"), e))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(false),
        }
    }

    /// The I/Os so far, and what was noticed.
    pub fn live(&mut self) -> &mut Live {
        &mut self.live
    }

    /// Size of the buffer of a CPU.
    #[must_use]
    pub fn buffer_kb(&self) -> u64 {
        self.buffer_kb
    }

    /// The Unix time of the first event.
    #[must_use]
    pub fn first_unix_ns(&self) -> Option<i128> {
        self.live.origin().map(|at| i128::from(at) + self.unix)
    }

    /// Ends the recording. What is still in the buffers is there for [`take`](Self::take), up to its end.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn stop(&mut self) -> Result<()> {
        self.instance.set("tracing_on", "0")?;
        self.stop.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the instance away, after the last event was taken; counts the events that the kernel could not keep. Then
    /// I/Os that are not complete come out, too.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(&mut self) -> Result<()> {
        let mut lost = 0;
        for cpu in &self.cpus {
            lost += lost_in(&self.instance.get(&format!("per_cpu/cpu{cpu}/stats"))?);
        }
        self.live.tables.tally.lost = self.live.tables.tally.lost.max(lost);
        self.live.end();
        self.end_reader();
        self.instance.take_away()
    }

    /// Takes what is left in the buffers after [`stop`](Self::stop); `ios` is called after each part.
    ///
    /// # Errors
    /// [`Error::Io`], and those of `ios`.
    pub fn drain<E: From<Error>>(
        &mut self,
        mut ios: impl FnMut(&mut Live) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        loop {
            let over = self.reader.as_ref().is_none_or(JoinHandle::is_finished);
            let some = self.take(PAUSE)?;
            ios(&mut self.live)?;
            if over && !some {
                return Ok(());
            }
        }
    }

    fn end_reader(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A reader that waits for room in the channel goes on when that is gone.
        let (_, gone) = sync_channel(1);
        self.from = gone;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The instance goes after its reader.
        self.end_reader();
    }
}

fn now() -> Nanos {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec.unsigned_abs() * 1_000_000_000 + t.tv_nsec.unsigned_abs()
}

fn unix() -> i128 {
    let t = clock_gettime(ClockId::Realtime);
    i128::from(t.tv_sec) * 1_000_000_000 + i128::from(t.tv_nsec)
}

/// The buffer of a CPU: of 100 thousand I/Os a second half a second, and less on a machine with little memory.
fn buffer_kb(root: &SysRoot) -> u64 {
    let text = root.get("/proc/meminfo").unwrap_or_default();
    let free = text.lines().find_map(|l| l.strip_prefix("MemAvailable:")).unwrap_or("");
    let free: u64 = free.trim().trim_end_matches("kB").trim().parse().unwrap_or(BUFFER_KB << 8);
    let cpus = root.get("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = cpus.rsplit(['-', ',']).next().and_then(|n| n.trim().parse::<u64>().ok());
    (free / OF_MEMORY / (last.unwrap_or(0) + 1)).clamp(64, BUFFER_KB)
}

fn layout(instance: &Instance, points: &[&str]) -> Result<Layout> {
    // They are at the top of tracefs, not in the instance.
    let top = |file: &str| {
        let path = instance.tracefs().real(&format!("/events/{file}"));
        at_once(&path).map_err(|e| Error::io("reading", path, e))
    };
    let (page, entry) = (top("header_page")?, top("header_event")?);
    let formats: Result<Vec<String>> =
        points.iter().map(|p| instance.get(&format!("events/block/{p}/format"))).collect();
    Layout::new(&page, &entry, &formats?).map_err(|why| Error::Unavailable {
        what: "a recording".into(),
        why: format!("this kernel's buffers have a layout that is not known: {why}"),
        help: HELP.into(),
    })
}

/// A text that the kernel gives in one piece: behind a first read of a part of it is nothing (Linux 6.18).
fn at_once(path: &Path) -> std::io::Result<String> {
    let mut text = vec![0; 1 << 16];
    let read = File::open(path)?.read(&mut text)?;
    text.truncate(read);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The buffers of the CPUs.
fn pipes(instance: &Instance) -> Result<Vec<(u16, File)>> {
    let dir = instance.path("per_cpu");
    let names = std::fs::read_dir(&dir).map_err(|e| Error::io("reading", &dir, e))?;
    let cpu = |name: String| name.strip_prefix("cpu").and_then(|n| n.parse::<u16>().ok());
    let names = names.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    let mut cpus: Vec<u16> = names.filter_map(cpu).collect();
    cpus.sort_unstable();
    let open = |cpu: u16| {
        let path = dir.join(format!("cpu{cpu}/trace_pipe_raw"));
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(nix::libc::O_NONBLOCK).open(&path);
        file.map(|f| (cpu, f)).map_err(|e| match e.kind() {
            ErrorKind::ResourceBusy => Error::InUse {
                device: path.display().to_string(),
                why: "another program reads it".into(),
            },
            _ => Error::io("opening", &path, e),
        })
    };
    cpus.into_iter().map(open).collect()
}

/// Empties the buffers until the stop, and then once more.
fn empty(mut pipes: Vec<(u16, File)>, page: usize, stop: &AtomicBool, to: &SyncSender<Batch>) {
    loop {
        let last = stop.load(Ordering::Relaxed);
        // Events from before now are in the buffers, whichever CPU they are of, but those that are being written.
        let settled = now().saturating_sub(WRITTEN);
        let mut most = 0;
        for (cpu, pipe) in &mut pipes {
            loop {
                let mut pages = vec![0; page * TOGETHER];
                let (read, failed) = fill(pipe, page, &mut pages);
                pages.truncate(read);
                most = most.max(read);
                let whole = read == page * TOGETHER;
                if read > 0 && to.send(Batch::Pages(*cpu, pages)).is_err() {
                    return;
                }
                if let Some(e) = failed {
                    let _ = to.send(Batch::Failed(e));
                    return;
                }
                if !whole {
                    break;
                }
            }
        }
        if to.send(Batch::Settled(settled)).is_err() || last {
            return;
        }
        if most < page * TOGETHER {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Reads whole pages while there are some.
fn fill(pipe: &mut File, page: usize, into: &mut [u8]) -> (usize, Option<std::io::Error>) {
    let mut have = 0;
    while have < into.len() {
        match pipe.read(&mut into[have..have + page]) {
            Ok(0) => break,
            Ok(_) => have += page,
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return (have, Some(e)),
        }
    }
    (have, None)
}

/// Events that a CPU's buffer did not keep, by its `stats`.
fn lost_in(stats: &str) -> u64 {
    let of = |name: &str| stats.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok());
    ["overrun:", "commit overrun:", "dropped events:"].map(|n| of(n).unwrap_or(0u64)).iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_those_of_all_reasons() {
        let stats = "entries: 256\noverrun: 7936\ncommit overrun: 2\nbytes: 16840\n\
                     oldest event ts: 68689.325573\nnow ts: 1.5\ndropped events: 1\nread events: 0\n";
        assert_eq!(lost_in(stats), 7939);
        assert_eq!(lost_in(""), 0);
    }

    #[test]
    fn buffers_fit_the_memory() {
        let dir = tempfile::tempdir().unwrap();
        let root = SysRoot::at(dir.path());
        std::fs::create_dir_all(dir.path().join("sys/devices/system/cpu")).unwrap();
        std::fs::create_dir_all(dir.path().join("proc")).unwrap();
        for (free, cpus, wanted) in
            [("16777216", "0-3", 16384), ("1048576", "0-31", 2048), ("1024", "0", 64)]
        {
            let text = format!("MemTotal: 1 kB\nMemAvailable:   {free} kB\n");
            std::fs::write(dir.path().join("proc/meminfo"), text).unwrap();
            std::fs::write(dir.path().join("sys/devices/system/cpu/possible"), cpus).unwrap();
            assert_eq!(buffer_kb(&root), wanted);
        }
    }
}
