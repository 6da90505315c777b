//! The files of a running job, and what it does with them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use iosched_syscalls::{Advice, Completion, Done, Errno, Fd, Io as AsyncIo, MapId, OpenFlags, Sys};
use iosched_types::{Bytes, Nanos, Op};

use super::super::disks::is_device;
use super::super::file_options::Hint;
use super::super::layout::Extent;
use super::super::process::{Io, Job, Ring, Step};
use super::super::spec::{IoEngine, JobSpec};
use super::names::Names;
use super::{inside, on_device};

/// How often fio 3.33 looks at the clock for an I/O of a synchronous engine. The last look before the call begins the
/// completion latency, and the look after it ends it.
const LOOKS: u64 = 5;
/// A page of a map.
const PAGE: Bytes = 4096;

/// The files of a running job.
pub(super) struct OpenFiles<'a> {
    job: &'a JobSpec,
    file_names: Vec<String>,
    places: &'a [Extent],
    /// Files in the order of their origins.
    by_origin: Vec<usize>,
    /// Those that are open.
    fds: Vec<Option<Fd>>,
    maps: Vec<Option<MapId>>,
    /// How far the present pass through each has come.
    passes: Vec<Pass>,
    /// What asynchronous I/Os under way ask for, by their tags.
    asked: Vec<AsyncIo>,
    pub(super) names: Names,
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
    pub(super) async fn open(
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
            maps: vec![None; places.len()],
            passes: vec![Pass::default(); places.len()],
            asked: Vec::new(),
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

    /// Where a file begins. Parts of a device are open as the whole of it.
    fn base(&self, file: usize) -> Bytes {
        if is_device(&self.file_names[file]) { 0 } else { self.places[file].origin }
    }

    async fn open_file(&mut self, sys: &Sys, file: usize) -> Result<Fd, Errno> {
        let (job, place, base) = (self.job, &self.places[file], self.base(file));
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
            (job.opens_synced() == 1, OpenFlags::SYNC),
            (job.opens_synced() == 2, OpenFlags::DSYNC),
        ] {
            if set {
                flags = flags | flag;
            }
        }
        let fd = sys.open(inside(&self.file_names[file]), flags).await?;
        self.fds[file] = Some(fd);
        if o.pre_read {
            let mut at = place.origin - base;
            let end = at + place.size;
            while at < end {
                at += sys.pread(fd, at, (128 << 10).min(end - at)).await?.max(1);
            }
        } else if o.invalidate {
            sys.fadvise(fd, place.start - base, place.len, Advice::DontNeed).await?;
        }
        let advice = match (o.hint, p.random) {
            (Hint::None, _) => None,
            (Hint::Random, _) | (Hint::Pattern, true) => Some(Advice::Random),
            (Hint::Sequential, _) | (Hint::Pattern, false) => Some(Advice::Sequential),
        };
        if let Some(advice) = advice {
            sys.fadvise(fd, place.start - base, place.len, advice).await?;
        }
        if job.engine == IoEngine::Mmap && self.maps[file].is_none() {
            let map = sys.mmap(fd, 0, place.origin - base + place.size).await?;
            // Of its map fio says what the pattern is, whatever it has said of the file.
            if o.hint != Hint::None {
                let advice = if p.random { Advice::Random } else { Advice::Sequential };
                sys.madvise(map, advice).await?;
            }
            self.maps[file] = Some(map);
        }
        Ok(fd)
    }

    /// Whether an I/O is the first of another pass through a file. Without a map, random I/Os never end one.
    fn begins_anew(&self, file: usize, io: &Io) -> bool {
        let (job, pass) = (self.job, &self.passes[file]);
        match job.pattern {
            _ if job.replay.is_some() || io.op == Op::Discard => false,
            p if !p.random => {
                // A file of one block has the same offset again.
                let over = pass.bytes >= self.places[file].len && !(p.read && p.write);
                let last = pass.last[usize::from(io.op == Op::Write)];
                last.is_some_and(|at| io.offset < at || over && io.offset == at)
            }
            _ => !job.norandommap && pass.bytes + io.len > self.places[file].len,
        }
    }

    /// fio drops what is cached of the one file that only its time ends, and opens any other again.
    async fn begin_anew(&mut self, sys: &Sys, file: usize) -> Done {
        self.passes[file] = Pass::default();
        let Some(fd) = self.fds[file] else { return Ok(()) };
        if self.job.engine == IoEngine::Mmap {
            return Ok(());
        }
        if self.job.time_based && self.places.len() == 1 {
            let place = &self.places[file];
            if !self.job.file_options.invalidate {
                return Ok(());
            }
            let at = place.start - self.base(file);
            return sys.fadvise(fd, at, place.len, Advice::DontNeed).await;
        }
        self.shut(sys, fd).await?;
        self.open_file(sys, file).await.map(drop)
    }

    /// Closes a file, after the sync that `fsync_on_close` asks for.
    async fn shut(&self, sys: &Sys, fd: Fd) -> Done {
        if self.job.file_options.fsync_on_close && self.job.pattern.write {
            sys.fsync(fd).await?;
        }
        sys.close(fd).await
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
                self.shut(sys, fd).await?;
            }
        }
        self.open_file(sys, file).await
    }

    /// Does what the job asks for until it ends, or fails, or another job ends it by `over`.
    pub(super) async fn serve(
        &mut self,
        sys: &Sys,
        job: &mut Job,
        look: Nanos,
        over: &AtomicBool,
    ) -> Done {
        let mut ring = Ring::with_capacity(job.units() as usize);
        let served = self.step_by_step(sys, job, look, &mut ring, over).await;
        if served.is_err() {
            job.breaks_off(sys.now(), &mut ring);
        }
        served
    }

    async fn step_by_step(
        &mut self,
        sys: &Sys,
        job: &mut Job,
        look: Nanos,
        ring: &mut Ring,
        over: &AtomicBool,
    ) -> Done {
        let (mut writes, mut last) = (0u64, 0);
        loop {
            if over.load(Relaxed) {
                job.terminate();
            }
            match job.step(sys.now(), ring) {
                Step::Submit(io) if io.op == Op::Flush => {
                    self.sync(sys, last).await?;
                    ring.push(io.unit);
                }
                Step::Submit(io) => {
                    let file = self.file_of(io.offset);
                    self.turn_to(sys, file, &io, job).await?;
                    if look > 0 {
                        sys.compute((LOOKS - 1) * look).await?;
                        job.begun(io.unit, sys.now());
                        sys.compute(look).await?;
                    }
                    last = file;
                    if self.begin(sys, file, &io, job).await? {
                        ring.push(io.unit);
                    }
                    if io.op == Op::Write {
                        writes += 1;
                        self.sync_range(sys, file, &io, writes).await?;
                    }
                }
                Step::Wait(n) => {
                    let missing = n.saturating_sub(ring.len() as u32);
                    if self.reap(sys, missing, job, ring).await? == 0 && missing > 0 {
                        return Err(Errno::EDEADLK);
                    }
                }
                // Calls of asynchronous engines return here when they are done.
                Step::Await(_) => return Err(Errno::EDEADLK),
                Step::BeginBatch(_) | Step::EndBatch => {}
                Step::Sleep(until) => sys.sleep(until.saturating_sub(sys.now())).await?,
                Step::Exit => return Ok(()),
            }
        }
    }

    /// Takes at least so many asynchronous I/Os that are done, and says how many it took. What came short, it asks for again.
    async fn reap(
        &mut self,
        sys: &Sys,
        missing: u32,
        job: &mut Job,
        ring: &mut Ring,
    ) -> Result<u64, Errno> {
        let (mut failed, mut short) = (None, Vec::new());
        let asked = &self.asked;
        let done = |c: Completion| match c.answer {
            Err(errno) => failed = failed.or(Some(errno)),
            Ok(n) if n < u64::from(asked[c.tag as usize].len) => short.push((c.tag, n)),
            Ok(_) => ring.push(c.tag),
        };
        let taken = sys.reap(missing, done).await?;
        if let Some(errno) = failed {
            return Err(errno);
        }
        for (tag, n) in short {
            // Nothing is no error to an asynchronous engine: so ends a file.
            if n == 0 {
                job.came_with(tag, 0, 0);
                ring.push(tag);
                continue;
            }
            let io = &mut self.asked[tag as usize];
            (io.at, io.len) = (io.at + n, io.len - n as u32);
            job.came_with(tag, u64::from(io.len), 1);
            self.hand_over(sys, self.asked[tag as usize]).await?;
        }
        Ok(taken)
    }

    async fn hand_over(&self, sys: &Sys, io: AsyncIo) -> Done {
        if self.job.engine == IoEngine::IoUring { sys.ring(io).await } else { sys.submit(io).await }
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

    /// Another pass through a file, and its opening, come before the time from which fio counts its latency.
    async fn turn_to(&mut self, sys: &Sys, file: usize, io: &Io, job: &mut Job) -> Done {
        if self.job.engine.is_of_names() {
            return Ok(());
        }
        let asked = sys.now();
        if self.begins_anew(file, io) {
            self.begin_anew(sys, file).await?;
        }
        self.fd(sys, file).await?;
        if sys.now() > asked {
            job.begun(io.unit, sys.now());
        }
        Ok(())
    }

    /// Starts an I/O; `true` when it is done.
    async fn begin(
        &mut self,
        sys: &Sys,
        file: usize,
        io: &Io,
        job: &mut Job,
    ) -> Result<bool, Errno> {
        if self.job.engine.is_of_names() {
            if self.begins_anew(file, io) {
                self.passes[file] = Pass::default();
                self.names.again(file);
            }
            self.passes[file].count(io);
            self.names.turn(sys, self.job, file, &self.file_names[file]).await?;
            return Ok(true);
        }
        let (fd, at) = (self.fd(sys, file).await?, io.offset - self.base(file));
        self.passes[file].count(io);
        let write = io.op == Op::Write;
        if let Some(map) = self.maps[file] {
            let mut page = at - at % PAGE;
            while page < at + io.len {
                let byte = page.max(at);
                if write {
                    sys.store(map, byte).await?
                } else {
                    sys.load(map, byte).await?
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
            // fio asks again for the rest of what came short. Nothing at all is an error to a synchronous engine.
            let mut done = 0;
            while done < io.len {
                let n = match write {
                    true => sys.pwrite(fd, at + done, io.len - done).await?,
                    false => sys.pread(fd, at + done, io.len - done).await?,
                };
                done += n;
                if n == 0 && self.job.engine.is_sync() {
                    return Err(Errno::EIO);
                }
                if n == 0 {
                    job.came_with(io.unit, 0, 0);
                    break;
                }
                if done < io.len {
                    job.came_with(io.unit, io.len - done, 1);
                }
            }
            return Ok(true);
        }
        let len = u32::try_from(io.len).map_err(|_| Errno::EINVAL)?;
        let io = AsyncIo { fd, write, at, len, tag: io.unit };
        let tag = io.tag as usize;
        if self.asked.len() <= tag {
            self.asked.resize(tag + 1, io);
        }
        self.asked[tag] = io;
        self.hand_over(sys, io).await?;
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
        let end = io.offset + io.len - self.base(file);
        let len = io.len * u64::from(range.every);
        sys.sync_file_range(fd, end.saturating_sub(len), len.min(end), range.wait).await
    }

    pub(super) async fn close(&mut self, sys: &Sys) -> Done {
        let job = self.job;
        for fd in self.names.take_open() {
            sys.close(fd).await?;
        }
        for map in self.maps.iter().flatten() {
            sys.munmap(*map).await?;
        }
        for (fd, name) in self.fds.iter().zip(&self.file_names) {
            if let Some(fd) = *fd {
                self.shut(sys, fd).await?;
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
