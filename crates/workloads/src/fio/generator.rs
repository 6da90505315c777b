//! Which I/O comes next: direction, block size, file and offset, by fio's rules and random streams.

use iosched_types::Bytes;

use super::blockmap::BlockMap;
use super::layout::{Extent, Files};
use super::shape::Shape;
use super::skew::Skew;
use super::spec::{Distribution, FileService, JobSpec};
use super::taus::{StreamId, Taus88};

/// Draws of a block size before the smallest is taken.
const MOST_DRAWS: u32 = 10_000;

/// Read, write, trim as an index.
pub type DirIndex = usize;

/// One I/O to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextIo {
    /// 0 read, 1 write, 2 trim.
    pub dir: DirIndex,
    /// Byte offset on the device.
    pub offset: Bytes,
    /// Bytes.
    pub len: Bytes,
}

/// Position and free-block map of one file.
#[derive(Debug)]
struct FileState {
    extent: Extent,
    /// End of the last I/O relative to the region, by direction.
    last: [i64; 3],
    /// Its start.
    last_start: [Bytes; 3],
    map: Option<BlockMap>,
    /// How likely each block is, where the likelihood is skewed.
    skew: Option<Skew>,
    /// There is nothing left to do in it.
    done: bool,
}

/// The generator of one job.
#[derive(Debug)]
pub struct Generator {
    read_write: (bool, bool),
    trim_then_write: bool,
    pending_write: Option<NextIo>,
    mix: [u64; 2],
    mix_stream: Taus88,
    mix_dir: usize,
    mix_issues: u64,
    issues: [u64; 3],
    only: usize,
    bs: super::spec::BlockSizes,
    bs_streams: [Taus88; 3],
    offsets: Taus88,
    file_stream: Taus88,
    zone_stream: Taus88,
    seq_rand: [Taus88; 3],
    percentage: [u32; 3],
    shapes: [Shape; 3],
    files: Vec<FileState>,
    service: FileService,
    /// How likely each file is, where the likelihood is skewed.
    picks: Option<Skew>,
    current: usize,
    served: u32,
    /// Files that are done.
    done: usize,
    random: bool,
    stride: i64,
    repeat: u64,
    repeat_left: u64,
    identical: bool,
    wrap: bool,
    /// A repeatable job begins every pass through its files with the streams it began with.
    restarts: Option<Box<Streams>>,
    plain: Option<Plain>,
}

/// The streams a new loop starts again.
#[derive(Clone, Debug)]
struct Streams {
    mix: Taus88,
    block_sizes: [Taus88; 3],
    offsets: Taus88,
    file: Taus88,
    zone: Taus88,
    seq_rand: [Taus88; 3],
}

impl Streams {
    fn of(job: &JobSpec) -> Self {
        let stream = |id| Taus88::of_job(id, job);
        Streams {
            mix: stream(StreamId::Mix),
            block_sizes: [
                stream(StreamId::BlockSizeRead),
                stream(StreamId::BlockSizeWrite),
                stream(StreamId::BlockSizeTrim),
            ],
            offsets: stream(StreamId::Offset),
            file: stream(StreamId::File),
            zone: stream(StreamId::Zone),
            // Each direction draws the same numbers for itself.
            seq_rand: [stream(StreamId::SeqRand); 3],
        }
    }
}

/// The common case: uniformly random blocks of one size in one file, no map. One multiplication each.
#[derive(Clone, Copy, Debug)]
struct Plain {
    start: Bytes,
    blocks: f64,
    len: Bytes,
}

fn plain(job: &JobSpec, files: &Files) -> Option<Plain> {
    let [file] = files.as_slice() else { return None };
    let p = job.pattern;
    let len = (0..3).find(|d| job.does(*d)).map(|d| job.bs.range[d].0)?;
    let same = (0..3).filter(|d| job.does(*d)).all(|d| {
        job.bs.range[d] == (len, len)
            && job.bs.split[d].is_empty()
            && (job.bs.align[d] == 0 || job.bs.align[d] == len)
            && job.percentage_random[d] >= 100
            && job.distribution[d] == Distribution::Random
    });
    let blocks = file.len / len.max(1);
    let fits = p.random
        && !p.trim_then_write
        && p.ddir_seq_nr <= 1
        && !job.bs.seq_rand
        && job.norandommap
        && (1..=1 << 32).contains(&blocks);
    (same && fits).then_some(Plain { start: file.start, blocks: blocks as f64, len })
}

/// Where the I/O before the first would have ended. Backwards fio counts from the end of the region, but leaves out its
/// offset in the file, and not at all where that is 0.
fn first(region: Extent, stride: i64) -> i64 {
    let offset = (region.start - region.origin) as i64;
    if stride < 0 && offset > 0 { region.len as i64 - offset } else { 0 }
}

/// I/Os that the file before the first has had.
fn served_at_first(service: &FileService) -> u32 {
    match service {
        FileService::Unset | FileService::RoundRobin(_) | FileService::Sequential => 0,
        // The first file is drawn like every other.
        _ => u32::MAX,
    }
}

fn skewed(service: &FileService) -> Option<Distribution> {
    Some(match service {
        FileService::Zipf(theta) => Distribution::Zipf(*theta, None),
        FileService::Pareto(power) => Distribution::Pareto(*power, None),
        FileService::Normal(deviation) => Distribution::Normal(*deviation, None),
        _ => return None,
    })
}

/// Each file stands for so many ranks of a skewed choice, in their order.
const RANKS_OF_A_FILE: u64 = 1 << 10;

fn picks(job: &JobSpec, files: u64) -> Option<Skew> {
    let stream = Taus88::of_job(StreamId::File, job);
    Skew::new(&skewed(&job.target.service)?, files * RANKS_OF_A_FILE, false, stream)
}

impl Generator {
    /// The generator of a job whose files are laid out.
    #[must_use]
    pub fn new(job: &JobSpec, files: &Files) -> Self {
        let streams = Streams::of(job);
        let p = job.pattern;
        // The smallest block of all directions, used or not.
        let map_block = job.bs.range.iter().map(|r| r.0).min();
        let uses_map = p.random && !job.norandommap;
        let unit = map_block.unwrap_or(1).max(1);
        let mut skews = Skew::of_files(job, files.iter().map(|f| f.len.div_ceil(unit)));
        skews.resize_with(files.len(), || None);
        Generator {
            read_write: (p.read, p.write),
            trim_then_write: p.trim_then_write,
            pending_write: None,
            mix: [u64::from(job.rwmixread), 100 - u64::from(job.rwmixread.min(100))],
            mix_stream: streams.mix,
            mix_dir: 0,
            mix_issues: 0,
            issues: [0; 3],
            only: if p.trim_then_write { 2 } else { (0..3).find(|d| job.does(*d)).unwrap_or(0) },
            bs: job.bs.clone(),
            bs_streams: streams.block_sizes,
            offsets: streams.offsets,
            file_stream: streams.file,
            zone_stream: streams.zone,
            seq_rand: streams.seq_rand,
            percentage: job.percentage_random,
            shapes: std::array::from_fn(|d| {
                let block = job.bs.range[d].0.max(1);
                Shape::new(&job.distribution[d], files.first().map_or(1, |f| f.len / block), block)
            }),
            files: files
                .iter()
                .zip(skews)
                .map(|(e, skew)| FileState {
                    extent: *e,
                    last: [first(*e, p.stride); 3],
                    last_start: [0; 3],
                    done: false,
                    skew,
                    map: map_block.filter(|_| uses_map).map(|b| BlockMap::new(e.len / b.max(1))),
                })
                .collect(),
            service: job.target.service.clone(),
            picks: picks(job, files.len() as u64),
            done: 0,
            current: 0,
            served: served_at_first(&job.target.service),
            random: p.random,
            stride: p.stride,
            repeat: p.ddir_seq_nr.max(1),
            repeat_left: 1,
            identical: p.identical,
            wrap: job.time_based || skewed(&job.target.service).is_some(),
            restarts: job.randrepeat.then(|| Box::new(streams)),
            plain: plain(job, files),
        }
    }

    /// I/Os issued so far by direction.
    #[must_use]
    pub fn issued(&self) -> [u64; 3] {
        self.issues
    }

    /// The next I/O; `None` when a sequential job has reached the end of all its files.
    #[inline(always)]
    pub fn next_io(&mut self) -> Option<NextIo> {
        let Some(p) = self.plain else { return self.next_of_any_kind() };
        let dir = self.direction();
        self.issues[dir] += 1;
        // Through i64, which the processor converts to in one instruction; there are at most 2^32 blocks.
        let block = (p.blocks * self.offsets.unit()) as i64 as u64;
        Some(NextIo { dir, offset: p.start + block * p.len, len: p.len })
    }

    fn next_of_any_kind(&mut self) -> Option<NextIo> {
        if let Some(write) = self.pending_write.take() {
            self.issues[1] += 1;
            return Some(write);
        }
        while self.done < self.files.len() {
            // Where a file has nothing left, the direction is chosen anew, too.
            let dir = self.direction();
            let file = self.file();
            if let Some(io) = self.in_file(dir, file) {
                self.issues[dir] += 1;
                if dir == 2 && self.trim_then_write {
                    self.pending_write = Some(NextIo { dir: 1, ..io });
                }
                return Some(io);
            }
            if self.begins_anew(file) {
                self.next_file();
                continue;
            }
            self.done += usize::from(!std::mem::replace(&mut self.files[file].done, true));
            if self.done < self.files.len() {
                self.next_file();
            }
        }
        None
    }

    /// Where some files are likelier than others, one that was read to its end begins anew, lest the others be left.
    fn begins_anew(&mut self, file: usize) -> bool {
        let f = &mut self.files[file];
        let start = [first(f.extent, self.stride); 3];
        let anew = self.picks.is_some() && !self.random && f.last != start;
        if anew {
            f.last = start;
        }
        anew
    }

    /// Back to the start of every file, after their end (`loops`, or a job that transfers more than its size).
    pub fn rewind(&mut self) {
        for f in &mut self.files {
            f.last = [first(f.extent, self.stride); 3];
            f.done = false;
            if let Some(m) = &mut f.map {
                m.clear();
            }
        }
        self.done = 0;
        self.current = (self.current + 1) % self.files.len().max(1);
        self.served = served_at_first(&self.service);
        if let Some(s) = &self.restarts {
            (self.mix_stream, self.bs_streams, self.offsets) = (s.mix, s.block_sizes, s.offsets);
            (self.file_stream, self.zone_stream, self.seq_rand) = (s.file, s.zone, s.seq_rand);
            (self.mix_dir, self.mix_issues, self.issues) = (0, 0, [0; 3]);
        }
    }

    /// A sync takes its turn among the files.
    pub fn sync_turn(&mut self) {
        self.file();
    }

    /// fio draws a new direction only when the current one has caught up with its share.
    #[inline(always)]
    fn direction(&mut self) -> DirIndex {
        if self.read_write != (true, true) {
            return self.only;
        }
        if self.issues[self.mix_dir] >= self.mix_issues {
            let dir = usize::from(self.mix_stream.between(1, 100) > self.mix[0]);
            if dir != self.mix_dir {
                self.mix_issues = self.issues[self.mix_dir] * self.mix[self.mix_dir ^ 1] / 100;
                self.mix_dir = dir;
            }
        }
        self.mix_dir
    }

    /// Whose turn it is.
    fn file(&mut self) -> usize {
        let n = self.files.len();
        if n == 1 {
            return 0;
        }
        let every = match self.service {
            FileService::RoundRobin(k) | FileService::Random(k) => k.max(1),
            FileService::Sequential => return self.current,
            _ => 1,
        };
        if self.served >= every {
            self.next_file();
        }
        self.served += 1;
        self.current
    }

    /// On to another file, one that is not done while there is one.
    fn next_file(&mut self) {
        self.served = 0;
        let n = self.files.len();
        for _ in 0..MOST_DRAWS {
            self.current = match (&mut self.picks, &self.service) {
                (Some(skew), _) => (skew.draw() / RANKS_OF_A_FILE) as usize,
                (None, FileService::Random(_)) => self.file_stream.below(n as u64) as usize,
                (None, _) => (self.current + 1) % n,
            };
            if !self.files[self.current].done {
                return;
            }
        }
    }

    /// A block size that fits into `room`.
    fn block_size(&mut self, dir: DirIndex, random: bool, room: Bytes) -> Bytes {
        let d = if self.bs.seq_rand { usize::from(random) } else { dir };
        let (low, high) = self.bs.range[d];
        if low == high {
            return low.min(room);
        }
        // fio draws again until one fits.
        for _ in 0..MOST_DRAWS {
            let len = self.any_block_size(dir, d);
            if len <= room {
                return len;
            }
        }
        low.min(room)
    }

    fn any_block_size(&mut self, dir: DirIndex, d: usize) -> Bytes {
        let (low, high) = self.bs.range[d];
        if !self.bs.split[d].is_empty() {
            let draw = self.bs_streams[dir].unit() * 100.0;
            let mut sum = 0.0;
            for e in &self.bs.split[d] {
                sum += f64::from(e.percent);
                if draw < sum {
                    return e.bs;
                }
            }
            return self.bs.split[d].last().map_or(low, |e| e.bs);
        }
        // The whole of the largest size is drawn on top of the smallest.
        let len = low + (self.bs_streams[dir].unit() * high as f64) as Bytes;
        if self.bs.unaligned { len.min(high) } else { (len / low * low).min(high) }
    }

    fn in_file(&mut self, dir: DirIndex, file: usize) -> Option<NextIo> {
        let (at, random) = self.offset(dir, file)?;
        let len = self.block_size(dir, random, self.files[file].extent.len - at);
        let align = self.align(dir);
        let f = &mut self.files[file];
        let len = match &mut f.map {
            // An I/O ends where the next touched block begins.
            Some(m) if random => m.mark(at, len, align),
            _ => len,
        };
        f.last_start[dir] = at;
        f.last[dir] = (at + len) as i64;
        Some(NextIo { dir, offset: f.extent.start + at, len })
    }

    /// Where the next I/O begins, and whether that was drawn.
    fn offset(&mut self, dir: DirIndex, file: usize) -> Option<(Bytes, bool)> {
        if !self.random {
            return Some((self.sequential_offset(dir, file)?, false));
        }
        self.repeat_left -= 1;
        if self.repeat_left == 0 {
            self.repeat_left = self.repeat;
            if !self.stays_sequential(dir) {
                return Some((self.random_offset(dir, file)?, true));
            }
        } else if self.identical {
            return Some((self.files[file].last_start[dir], false));
        }
        // At the end of the file there is nothing to go on with.
        match self.sequential_offset(dir, file) {
            Some(at) => Some((at, false)),
            None => Some((self.random_offset(dir, file)?, false)),
        }
    }

    fn stays_sequential(&mut self, dir: DirIndex) -> bool {
        let p = self.percentage[dir];
        p < 100 && self.seq_rand[dir].between(1, 100) > u64::from(p)
    }

    fn sequential_offset(&mut self, dir: DirIndex, file: usize) -> Option<Bytes> {
        let f = &mut self.files[file];
        let (len, least) = (f.extent.len as i64, self.bs.range[dir].0 as i64);
        let (last, offset) = (f.last[dir], (f.extent.start - f.extent.origin) as i64);
        let at = match last.saturating_add(self.stride) {
            _ if self.stride == 0 || last == 0 => last,
            // An I/O that ended at the end is the last of its pass.
            _ if last >= len => last,
            // Holes: beyond the file's end it goes on at the beginning (fio counts the offset in the file twice), and
            // before the beginning at the end.
            at if at >= offset + len => offset,
            at if at < 0 => len.saturating_add(self.stride),
            at => at,
        };
        let fits = |at: i64| (at >= 0 && at + least <= len).then_some(at as Bytes);
        // The one file of a job that only its time ends has no end.
        fits(at).or_else(|| fits(0).filter(|_| self.wrap && self.files.len() == 1))
    }

    fn random_offset(&mut self, dir: DirIndex, file: usize) -> Option<Bytes> {
        if let Some(at) = self.drawn(dir, file) {
            return Some(at);
        }
        let full = self.files[file].map.as_mut().filter(|m| m.is_full());
        full.filter(|_| self.wrap)?.clear();
        self.drawn(dir, file)
    }

    /// The unit in which offsets are drawn.
    fn align(&self, dir: DirIndex) -> Bytes {
        if self.bs.align[dir] > 0 { self.bs.align[dir] } else { self.bs.range[dir].0 }
    }

    /// A drawn offset; `None` when every block was touched.
    fn drawn(&mut self, dir: DirIndex, file: usize) -> Option<Bytes> {
        let align = self.align(dir);
        let f = &mut self.files[file];
        let blocks = (f.extent.len / align).max(1);
        if let Some(skew) = &mut f.skew {
            return Some(skew.draw() * align).filter(|at| at + align <= f.extent.len);
        }
        let block = self.shapes[dir].draw(&mut self.offsets, &mut self.zone_stream, blocks);
        match &f.map {
            Some(map) => map.free_from(block, align).filter(|at| at + align <= f.extent.len),
            None => Some(block * align),
        }
    }
}
