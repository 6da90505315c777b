//! fio jobs on files or through the page cache: the main loop of [`Job`] as a program over system calls.
//!
//! Everything between a call and the disk is the host's. What is here is what fio does around its I/O: it makes the files,
//! opens them, drops cached pages, tells the kernel the order of its I/Os, and closes the files in the end.

mod names;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use iosched_syscalls::{
    Advice, Birth, Completion, Done, Errno, Fd, Io as AsyncIo, MapId, OpenFlags, Program, Script,
    Sys,
};
use iosched_types::{Bytes, Nanos, Op};

use self::names::Names;
use super::file_options::{Allocate, Hint};
use super::layout::{Extent, Files};
use super::process::{Io, Job, Ring, Step};
use super::spec::{IoEngine, JobSet, JobSpec};
use super::stats::JobStats;
use crate::programs::files;

/// The sleep of fio's main thread, with the timer slack of Linux.
const SLEEP: Nanos = 100_050_000;
/// How often fio 3.33 looks at the clock for an I/O of a synchronous engine. The last look before the call begins the
/// completion latency, and the look after it ends it.
const LOOKS: u64 = 5;
/// Counts processes that have ended.
const ENDED: u32 = 0;
/// Barriers of the processes; each meets fio's main thread at its own.
const START: u32 = 1;
/// What files may take together before they are on a file system: they have no place yet.
pub const ROOM: Bytes = 1 << 62;
/// A page of a map.
const PAGE: Bytes = 4096;

/// Jobs on files: what is to be done, and what was measured.
#[derive(Debug)]
pub struct OnFiles {
    set: JobSet,
    layouts: Vec<Files>,
    /// Files that are there before, with their lengths, in the order in which they were made.
    existing: Vec<(String, Bytes)>,
    start: Start,
    /// Core time of a look at the clock.
    look: Nanos,
    stats: Mutex<Vec<Option<JobStats>>>,
}

/// fio's own start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// When it looks for the jobs' files.
    pub looks_after: Nanos,
    /// How long after that the first job runs.
    pub runs_after: Nanos,
}

/// Whether a job needs the host's memory or file system: it is buffered, or its files lie in a directory.
#[must_use]
pub fn needed(set: &JobSet) -> bool {
    set.jobs.iter().any(|j| {
        j.target.directory.is_some() || j.engine.is_of_names() || !j.direct && reads_or_writes(j)
    })
}

fn reads_or_writes(job: &JobSpec) -> bool {
    match &job.replay {
        None => job.pattern.read || job.pattern.write,
        Some(log) => log.entries.iter().any(|e| matches!(e.op, Op::Read | Op::Write)),
    }
}

/// Whether a job works on the device itself.
#[must_use]
pub fn on_device(job: &JobSpec) -> bool {
    job.file_names().iter().any(|n| n.starts_with("/dev/"))
}

/// Bytes that the jobs' files take before the jobs run: those that are read or overwritten, and those whose space `fallocate`
/// sets aside. Files that fill as they are written count nothing.
#[must_use]
pub fn bytes_before(set: &JobSet, layouts: &[Files]) -> Bytes {
    let mut files: BTreeMap<String, Bytes> = BTreeMap::new();
    for (job, places) in set.jobs.iter().zip(layouts).filter(|(job, _)| !on_device(job)) {
        let o = &job.file_options;
        let is_filled = job.pattern.read || o.overwrite || job.replay.is_some();
        let is_set_aside = o.allocate == Allocate::Whole && !o.create_on_open;
        let is_made = is_filled && !o.create_on_open || is_set_aside;
        if job.engine == IoEngine::FileCreate || !is_made {
            continue;
        }
        for (name, place) in job.file_names().into_iter().zip(places) {
            let bytes = files.entry(name).or_default();
            *bytes = place.size.max(*bytes);
        }
    }
    files.values().fold(0, |sum: Bytes, bytes| sum.saturating_add(*bytes))
}

/// The name of a file below the root of the file system.
fn inside(name: &str) -> &str {
    name.trim_start_matches('/')
}

impl OnFiles {
    /// Jobs with the places of their files, which [`lay_out_beside`](super::layout::lay_out_beside) gave.
    #[must_use]
    pub fn new(
        set: JobSet,
        layouts: Vec<Files>,
        existing: Vec<(String, Bytes)>,
        start: Start,
        clock: Nanos,
    ) -> Arc<OnFiles> {
        let stats = Mutex::new(set.jobs.iter().map(|_| None).collect());
        Arc::new(OnFiles { set, layouts, existing, start, look: clock, stats })
    }

    /// The jobs.
    #[must_use]
    pub fn set(&self) -> &JobSet {
        &self.set
    }

    /// What each job measured; a job that did not end has measured nothing.
    #[must_use]
    pub fn take_stats(&self) -> Vec<JobStats> {
        let all = self.stats.lock();
        all.map(|mut all| all.iter_mut().map(|s| s.take().unwrap_or_default()).collect())
            .unwrap_or_default()
    }

    /// What makes the files that must be there before the jobs run.
    #[must_use]
    pub fn preparation(self: &Arc<Self>) -> Birth {
        let this = self.clone();
        birth(async move |sys| this.prepare(sys).await)
    }

    /// fio.
    #[must_use]
    pub fn measured(self: &Arc<Self>) -> Birth {
        let this = self.clone();
        birth(async move |sys| this.run(sys).await)
    }

    async fn prepare(self: Arc<Self>, sys: Sys) -> Done {
        for (job, places) in self.set.jobs.iter().zip(&self.layouts) {
            if on_device(job) {
                continue;
            }
            for (name, place) in job.file_names().iter().zip(places) {
                if job.file_options.append || !self.existing.iter().any(|(known, _)| known == name)
                {
                    lay_out_file(&sys, job, name, place).await?;
                }
            }
        }
        Ok(())
    }

    /// fio's main thread: it looks again and again which jobs may start, as `docs/fidelity-fio.md` says.
    async fn run(self: Arc<Self>, sys: Sys) -> Done {
        for i in 0..self.set.jobs.len() {
            let this = self.clone();
            sys.fork(async move |sys| this.process(sys, i).await).await?;
        }
        sys.sleep(self.start.looks_after).await?;
        for name in self.set.jobs.iter().flat_map(JobSpec::file_names) {
            // One that is not there is made later.
            let _ = sys.stat(inside(&name)).await;
        }
        sys.sleep(self.start.runs_after).await?;
        let origin = sys.now();
        let mut starts =
            Starts { waiting: (0..self.set.jobs.len()).collect(), started: 0, running: 0 };
        let mut first = true;
        while !starts.waiting.is_empty() {
            let since = if first { 0 } else { sys.now() - origin + SLEEP };
            let due = starts.due(&self.set.jobs, since);
            if !first && !due.is_empty() {
                sys.sleep(SLEEP).await?;
            }
            for i in &due {
                sys.barrier(START + *i as u32, 2).await?;
            }
            if !first || !due.is_empty() {
                let ended = sys.add(ENDED, 0).await?;
                starts.running = starts.started - ended as usize;
                if !starts.waiting.is_empty() {
                    sys.sleep(SLEEP).await?;
                }
            }
            first = false;
        }
        files::wait_for(&sys, self.set.jobs.len() as u64).await
    }

    async fn process(self: Arc<Self>, sys: Sys, i: usize) -> Done {
        sys.barrier(START + i as u32, 2).await?;
        let spec = &self.set.jobs[i];
        let mut opened = OpenFiles::open(&sys, spec, &self.layouts[i]).await?;
        let mut job = Job::new(spec, &self.layouts[i]);
        // The error that is told is that of the call that failed, so nothing comes after it.
        opened.serve(&sys, &mut job, self.look).await?;
        opened.close(&sys).await?;
        let mut stats = job.take_stats();
        if spec.engine.is_of_names() {
            opened.names.into_stats(&mut stats);
        }
        if let Ok(mut all) = self.stats.lock() {
            all[i] = Some(stats);
        }
        sys.add(ENDED, 1).await.map(drop)
    }
}

/// What makes files that are there before a load, with their lengths.
#[must_use]
pub fn image(files: &[(String, Bytes)]) -> Birth {
    let files = files.to_vec();
    birth(async move |sys| {
        for (name, len) in &files {
            make(&sys, name, *len).await?;
        }
        Ok(())
    })
}

fn birth(text: impl AsyncFnOnce(Sys) -> Done + Send + 'static) -> Birth {
    Birth(Box::new(move || Box::new(Script::new(text)) as Box<dyn Program>))
}

/// What fio's main thread knows of its jobs.
struct Starts {
    waiting: Vec<usize>,
    started: usize,
    /// Those that ran when it last looked.
    running: usize,
}

impl Starts {
    /// Jobs with their delay over, up to a `stonewall` while others run.
    fn due(&mut self, jobs: &[JobSpec], since: Nanos) -> Vec<usize> {
        let mut due = Vec::new();
        for i in &self.waiting {
            if jobs[*i].start_delay() > since {
                continue;
            }
            if jobs[*i].wait.stonewall && due.len() + self.running > 0 {
                break;
            }
            due.push(*i);
        }
        self.waiting.retain(|i| !due.contains(i));
        self.started += due.len();
        due
    }
}

/// Makes a file with all directories above it.
async fn make(sys: &Sys, name: &str, len: Bytes) -> Done {
    let name = inside(name);
    if let Some((directory, _)) = name.rsplit_once('/') {
        files::make_directory(sys, directory).await?;
    }
    files::make(sys, name, len).await
}

/// Lays a file out as fio does before its jobs run: what is read or overwritten is written, the space of others is set
/// aside.
async fn lay_out_file(sys: &Sys, job: &JobSpec, name: &str, place: &Extent) -> Done {
    let o = &job.file_options;
    if job.engine.is_of_names() {
        return names::lay_out(sys, job, name, place).await;
    }
    let there = sys.stat(inside(name)).await;
    // With `create_on_open` a file that is not there is empty when the job opens it.
    let is_filled = job.pattern.read || o.overwrite || job.replay.is_some();
    if is_filled && (there.is_ok() || !o.create_on_open) {
        // What another job has laid out stays.
        return match there {
            Ok(stat) if stat.bytes >= place.size => Ok(()),
            _ => make(sys, name, place.size).await,
        };
    }
    let name = inside(name);
    if let Some((directory, _)) = name.rsplit_once('/') {
        files::make_directory(sys, directory).await?;
    }
    let there = there.is_ok();
    if o.create_on_open || there && !o.append {
        return Ok(());
    }
    // What is there already is extended.
    let fd = match there {
        true => sys.open(name, OpenFlags::WRITE).await?,
        false => sys.creat(name).await?,
    };
    match o.allocate {
        Allocate::Whole => sys.fallocate(fd, 0, place.size).await?,
        Allocate::None | Allocate::Truncate => sys.truncate(fd, place.size).await?,
        // Room behind the end, which the file system gives when it is written.
        Allocate::Keep => {}
    }
    sys.close(fd).await
}

/// The files of a running job.
struct OpenFiles<'a> {
    job: &'a JobSpec,
    file_names: Vec<String>,
    places: &'a [Extent],
    /// Files in the order of their origins.
    by_origin: Vec<usize>,
    /// Those that are open.
    fds: Vec<Option<Fd>>,
    maps: Vec<MapId>,
    /// How far the present pass through each has come.
    passes: Vec<Pass>,
    names: Names,
}

/// A pass through a file.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    bytes: Bytes,
    /// Where the last read and the last write began.
    last: [Option<Bytes>; 2],
}

impl Pass {
    fn count(&mut self, io: &Io) {
        self.bytes += io.len;
        self.last[usize::from(io.op == Op::Write)] = Some(io.offset);
    }
}

impl<'a> OpenFiles<'a> {
    async fn open(
        sys: &Sys,
        job: &'a JobSpec,
        places: &'a [Extent],
    ) -> Result<OpenFiles<'a>, Errno> {
        let mut by_origin: Vec<usize> = (0..places.len()).collect();
        by_origin.sort_by_key(|i| places[*i].origin);
        let mut open = OpenFiles {
            job,
            file_names: job.file_names(),
            places,
            by_origin,
            fds: vec![None; places.len()],
            maps: Vec::new(),
            passes: vec![Pass::default(); places.len()],
            names: Names::new(places.len()),
        };
        let later = job.engine.is_of_names() || job.file_options.create_only || open.few() > 0;
        if !later {
            for file in 0..places.len() {
                open.open_file(sys, file).await?;
            }
        }
        Ok(open)
    }

    /// How many files may be open at a time, if that is not all of them.
    fn few(&self) -> usize {
        let n = self.job.file_options.open_at_once as usize;
        if n < self.places.len() { n } else { 0 }
    }

    async fn open_file(&mut self, sys: &Sys, file: usize) -> Result<Fd, Errno> {
        let (job, place) = (self.job, &self.places[file]);
        let (p, o) = (job.pattern, &job.file_options);
        let mut flags = if p.write || p.trim {
            OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE
        } else {
            OpenFlags::READ
        };
        if job.file_options.create_on_open {
            flags = flags | OpenFlags::CREATE;
        }
        for (set, flag) in [
            (job.direct, OpenFlags::DIRECT),
            (job.sync == 1, OpenFlags::SYNC),
            (job.sync == 2, OpenFlags::DSYNC),
        ] {
            if set {
                flags = flags | flag;
            }
        }
        let fd = sys.open(inside(&self.file_names[file]), flags).await?;
        self.fds[file] = Some(fd);
        if o.pre_read {
            let mut at = 0;
            while at < place.size {
                at += sys.pread(fd, at, (128 << 10).min(place.size - at)).await?.max(1);
            }
        } else if o.invalidate {
            sys.fadvise(fd, place.start - place.origin, place.len, Advice::DontNeed).await?;
        }
        let advice = match (o.hint, p.random) {
            (Hint::None, _) => None,
            (Hint::Random, _) | (Hint::Pattern, true) => Some(Advice::Random),
            (Hint::Sequential, _) | (Hint::Pattern, false) => Some(Advice::Sequential),
        };
        if let Some(advice) = advice {
            sys.fadvise(fd, place.start - place.origin, place.len, advice).await?;
        }
        if job.engine == IoEngine::Mmap {
            self.maps.push(sys.mmap(fd, 0, place.size).await?);
        }
        Ok(fd)
    }

    /// Whether an I/O is the first of another pass through a file. Without a map, random I/Os never end one.
    fn begins_anew(&self, file: usize, io: &Io) -> bool {
        let (job, pass) = (self.job, &self.passes[file]);
        match job.pattern {
            _ if job.replay.is_some() || io.op == Op::Discard => false,
            p if !p.random => {
                pass.last[usize::from(io.op == Op::Write)].is_some_and(|at| io.offset < at)
            }
            _ => !job.norandommap && pass.bytes + io.len > self.places[file].len,
        }
    }

    /// fio drops what is cached of the one file that only its time ends, and opens any other again.
    async fn begin_anew(&mut self, sys: &Sys, file: usize) -> Done {
        self.passes[file] = Pass::default();
        let Some(fd) = self.fds[file] else { return Ok(()) };
        if !self.maps.is_empty() {
            return Ok(());
        }
        if self.job.time_based && self.places.len() == 1 {
            let place = &self.places[file];
            if !self.job.file_options.invalidate {
                return Ok(());
            }
            return sys.fadvise(fd, place.start - place.origin, place.len, Advice::DontNeed).await;
        }
        sys.close(fd).await?;
        self.open_file(sys, file).await.map(drop)
    }

    /// The descriptor of a file whose turn it is. With `openfiles` one that is done is closed for it.
    async fn fd(&mut self, sys: &Sys, file: usize) -> Result<Fd, Errno> {
        if let Some(fd) = self.fds[file] {
            return Ok(fd);
        }
        let few = self.few();
        if few > 0 && self.fds.iter().flatten().count() >= few {
            let done =
                |i: &usize| self.fds[*i].is_some() && self.passes[*i].bytes >= self.places[*i].len;
            let victim = (0..self.fds.len()).find(done);
            let victim = victim.or_else(|| self.fds.iter().position(Option::is_some));
            if let Some(fd) = victim.and_then(|i| self.fds[i].take()) {
                sys.close(fd).await?;
            }
        }
        self.open_file(sys, file).await
    }

    /// Does what the job asks for until it ends.
    async fn serve(&mut self, sys: &Sys, job: &mut Job, look: Nanos) -> Done {
        let mut ring = Ring::with_capacity(job.units() as usize);
        let (mut writes, mut last) = (0u64, 0);
        loop {
            match job.step(sys.now(), &mut ring) {
                Step::Submit(io) if io.op == Op::Flush => {
                    self.sync(sys, last).await?;
                    ring.push(io.unit);
                }
                Step::Submit(io) => {
                    if look > 0 {
                        sys.compute((LOOKS - 1) * look).await?;
                        job.begun(io.unit, sys.now());
                        sys.compute(look).await?;
                    }
                    let file = self.file_of(io.offset);
                    last = file;
                    if self.begin(sys, file, &io).await? {
                        ring.push(io.unit);
                    }
                    if io.op == Op::Write {
                        writes += 1;
                        self.sync_range(sys, file, &io, writes).await?;
                    }
                }
                Step::Wait(n) => {
                    let missing = n.saturating_sub(ring.len() as u32);
                    let done = |c: Completion| ring.push(c.tag);
                    if sys.reap(missing, done).await? == 0 && missing > 0 {
                        return Err(Errno::EDEADLK);
                    }
                }
                // Calls of asynchronous engines return here when they are done.
                Step::Await(_) => return Err(Errno::EDEADLK),
                Step::BeginBatch | Step::EndBatch => {}
                Step::Sleep(until) => sys.sleep(until.saturating_sub(sys.now())).await?,
                Step::Exit => return Ok(()),
            }
        }
    }

    /// Which file a position on the device that the layout pretends is in.
    fn file_of(&self, offset: Bytes) -> usize {
        let origin = |i: &usize| self.places[*i].origin;
        let after = self.by_origin.partition_point(|i| origin(i) <= offset);
        let Some(last) = after.checked_sub(1).map(|i| self.by_origin[i]) else { return 0 };
        let p = &self.places[last];
        if offset - p.origin >= p.size.max(p.len) {
            return 0;
        }
        // A file that a job names twice is the first of the two.
        let first = self.by_origin.partition_point(|i| origin(i) < p.origin);
        self.by_origin[first]
    }

    /// Starts an I/O; `true` when it is done.
    async fn begin(&mut self, sys: &Sys, file: usize, io: &Io) -> Result<bool, Errno> {
        if self.job.engine.is_of_names() {
            self.names.turn(sys, self.job, file, &self.file_names[file]).await?;
            return Ok(true);
        }
        if self.begins_anew(file, io) {
            self.begin_anew(sys, file).await?;
        }
        let (fd, at) = (self.fd(sys, file).await?, io.offset - self.places[file].origin);
        self.passes[file].count(io);
        let write = io.op == Op::Write;
        if let Some(map) = self.maps.get(file) {
            let mut page = at - at % PAGE;
            while page < at + io.len {
                let byte = page.max(at);
                if write {
                    sys.store(*map, byte).await?
                } else {
                    sys.load(*map, byte).await?
                }
                page += PAGE;
            }
            // fio copies the block. Without that, I/Os of pages in memory would take no time, and a job never end.
            sys.copied(io.len).await?;
            return Ok(true);
        }
        if io.op == Op::Discard {
            sys.discard(fd, at, io.len).await?;
            return Ok(true);
        }
        let ring = self.job.engine == IoEngine::IoUring;
        // A buffered I/O of libaio is done when its submission returns.
        if self.job.engine.is_sync() || !self.job.direct && !ring {
            // fio asks again for the rest of what came short, and takes nothing at all for an error.
            let mut done = 0;
            while done < io.len {
                let n = match write {
                    true => sys.pwrite(fd, at + done, io.len - done).await?,
                    false => sys.pread(fd, at + done, io.len - done).await?,
                };
                if n == 0 {
                    return Err(Errno::EIO);
                }
                done += n;
            }
            return Ok(true);
        }
        let len = u32::try_from(io.len).map_err(|_| Errno::EINVAL)?;
        let io = AsyncIo { fd, write, at, len, tag: io.unit };
        if ring {
            sys.ring(io).await?
        } else {
            sys.submit(io).await?
        }
        Ok(false)
    }

    async fn sync(&self, sys: &Sys, file: usize) -> Done {
        let Some(fd) = self.fds.get(file).copied().flatten() else { return Ok(()) };
        match self.job.fdatasync > 0 && self.job.fsync == 0 {
            true => sys.fdatasync(fd).await,
            false => sys.fsync(fd).await,
        }
    }

    async fn sync_range(&self, sys: &Sys, file: usize, io: &Io, writes: u64) -> Done {
        let range = self.job.file_options.sync_range;
        if range.every == 0 || !writes.is_multiple_of(u64::from(range.every)) {
            return Ok(());
        }
        let Some(fd) = self.fds[file] else { return Ok(()) };
        let end = io.offset + io.len - self.places[file].origin;
        let len = io.len * u64::from(range.every);
        sys.sync_file_range(fd, end.saturating_sub(len), len.min(end), range.wait).await
    }

    async fn close(&mut self, sys: &Sys) -> Done {
        let job = self.job;
        for fd in self.names.take_open() {
            sys.close(fd).await?;
        }
        for map in &self.maps {
            sys.munmap(*map).await?;
        }
        for (fd, name) in self.fds.iter().zip(&self.file_names) {
            if let Some(fd) = *fd {
                if job.file_options.fsync_on_close && job.pattern.write {
                    sys.fsync(fd).await?;
                }
                sys.close(fd).await?;
            }
            if job.file_options.unlink && !on_device(job) {
                match sys.unlink(inside(name)).await {
                    Ok(()) | Err(Errno::ENOENT) => {}
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(())
    }
}
