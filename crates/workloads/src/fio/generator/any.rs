//! Files with free-block maps, block sizes, skew, strides and mixes: everything but the common case.

use iosched_types::Bytes;

use super::super::blockmap::BlockMap;
use super::super::layout::{Extent, Files};
use super::super::shape::Shape;
use super::super::skew::Skew;
use super::super::spec::{BlockSizes, Distribution, FileService, JobSpec};
use super::super::taus::{StreamId, Taus88};
use super::{DirIndex, Directions, NextIo, repeats};

/// Draws of a block size before the smallest is taken.
const MOST_DRAWS: u32 = 10_000;

/// Position and free-block map of one file.
#[derive(Debug)]
struct FileState {
    extent: Extent,
    /// End of the last I/O relative to the region, by direction.
    last: [i64; 3],
    /// The start.
    last_start: [Bytes; 3],
    map: Option<BlockMap>,
    /// How likely each block is, where the likelihood is skewed.
    skew: Option<Skew>,
    /// There is nothing left to do in it.
    done: bool,
    /// It has been opened, and is not done.
    open: bool,
}

/// What chooses the I/Os of a job of any kind.
#[derive(Debug)]
pub(super) struct AnyKind {
    streams: Streams,
    trim_then_write: bool,
    pending_write: Option<NextIo>,
    bs: BlockSizes,
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
    /// Files that are open, and how many may be.
    open: usize,
    open_most: usize,
    random: bool,
    stride: i64,
    repeat: u64,
    repeat_left: u64,
    identical: bool,
    wrap: bool,
    /// `file_append`: fio takes the end of the file for the region's beginning when it asks whether a block fits, so each does.
    /// One that would go beyond the end ends the file.
    appends: bool,
    /// The streams with which every pass of a repeatable job begins.
    restarts: Option<Box<Streams>>,
}

/// The random streams of a job, and the direction of its last I/O.
#[derive(Clone, Debug)]
struct Streams {
    directions: Directions,
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
            directions: Directions::new(job),
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

/// Where the I/O before the first one would have ended. Backwards fio counts from the end of the region, but leaves out
/// the region's offset in the file. Where the offset is 0 it begins at 0.
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

/// Each file stands for this many ranks of a skewed choice, in order.
const RANKS_OF_A_FILE: u64 = 1 << 10;

fn picks(job: &JobSpec, files: u64) -> Option<Skew> {
    let stream = Taus88::of_job(StreamId::File, job);
    Skew::new(&skewed(&job.target.service)?, files * RANKS_OF_A_FILE, false, stream)
}

impl AnyKind {
    /// The generator of a job. Its files are laid out already.
    pub(super) fn new(job: &JobSpec, files: &Files) -> Self {
        let streams = Streams::of(job);
        let p = job.pattern;
        // The smallest block of all directions, used or not.
        let map_block = job.bs.range.iter().map(|r| r.0).min();
        let uses_map = p.random && !job.norandommap;
        let unit = map_block.unwrap_or(1).max(1);
        let mut skews = Skew::of_files(job, files.iter().map(|f| f.len.div_ceil(unit)));
        skews.resize_with(files.len(), || None);
        AnyKind {
            trim_then_write: p.trim_then_write,
            pending_write: None,
            bs: job.bs.clone(),
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
                    open: false,
                    skew,
                    map: map_block.filter(|_| uses_map).map(|b| BlockMap::new(e.len / b.max(1))),
                })
                .collect(),
            service: job.target.service.clone(),
            picks: picks(job, files.len() as u64),
            done: 0,
            open: 0,
            open_most: match job.file_options.open_at_once {
                0 => usize::MAX,
                n => n as usize,
            },
            current: 0,
            served: served_at_first(&job.target.service),
            random: p.random,
            stride: p.stride,
            repeat: p.ddir_seq_nr.max(1),
            repeat_left: 1,
            identical: p.identical,
            appends: job.appends(),
            wrap: job.time_based || skewed(&job.target.service).is_some(),
            restarts: repeats(job).then(|| Box::new(streams.clone())),
            streams,
        }
    }

    /// The next I/O; `None` when there is nothing left in any file.
    pub(super) fn next_io(&mut self) -> Option<NextIo> {
        if let Some(write) = self.pending_write.take() {
            self.streams.directions.issued[1] += 1;
            return Some(write);
        }
        while self.done < self.files.len() {
            // Where a file has nothing left, the direction is chosen anew, too.
            let dir = self.streams.directions.next();
            let file = self.file();
            if let Some(io) = self.in_file(dir, file) {
                self.streams.directions.issued[dir] += 1;
                if dir == 2 && self.trim_then_write {
                    self.pending_write = Some(NextIo { dir: 1, ..io });
                }
                return Some(io);
            }
            // A file that was read to its end is closed, whether or not it begins anew.
            self.open -= usize::from(std::mem::take(&mut self.files[file].open));
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

    pub(super) fn directions(&mut self) -> &mut Directions {
        &mut self.streams.directions
    }

    /// Where some files are likelier than others, a file that was read to its end begins anew, so that the other files
    /// are finished, too.
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
    pub(super) fn rewind(&mut self) {
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
        let mut directions = self.streams.directions.clone();
        directions.next_pass(self.restarts.as_ref().map(|s| s.directions.stream));
        if let Some(s) = &self.restarts {
            self.streams.clone_from(s);
        }
        self.streams.directions = directions;
    }

    /// A sync takes its turn among the files.
    pub(super) fn sync_turn(&mut self) {
        self.file();
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
        let first = !std::mem::replace(&mut self.files[self.current].open, true);
        self.open += usize::from(first);
        self.current
    }

    /// On to another file, one that is not done while there is one.
    fn next_file(&mut self) {
        self.served = 0;
        let n = self.files.len();
        for _ in 0..MOST_DRAWS {
            self.current = match (&mut self.picks, &self.service) {
                (Some(skew), _) => (skew.draw() / RANKS_OF_A_FILE) as usize,
                (None, FileService::Random(_)) => self.streams.file.below(n as u64) as usize,
                (None, _) => (self.current + 1) % n,
            };
            // One that would be one too many waits until another is closed, which happens when that is done.
            let f = &self.files[self.current];
            if !f.done && (f.open || self.open < self.open_most) {
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
            let len = self.any_block_size(dir, d, room);
            if len <= room {
                return len;
            }
        }
        low.min(room)
    }

    fn any_block_size(&mut self, dir: DirIndex, d: usize, room: Bytes) -> Bytes {
        let (low, high) = self.bs.range[d];
        if !self.bs.split[d].is_empty() {
            let draw = self.streams.block_sizes[dir].unit() * 100.0;
            let mut sum = 0.0;
            for e in &self.bs.split[d] {
                sum += f64::from(e.percent);
                // What does not fit makes way for the next of the list.
                if draw < sum && e.bs <= room {
                    return e.bs;
                }
            }
            return self.bs.split[d].last().map_or(low, |e| e.bs);
        }
        // The whole of the largest size is drawn on top of the smallest.
        let len = low + (self.streams.block_sizes[dir].unit() * high as f64) as Bytes;
        if self.bs.unaligned { len.min(high) } else { (len / low * low).min(high) }
    }

    fn in_file(&mut self, dir: DirIndex, file: usize) -> Option<NextIo> {
        let (at, random) = self.offset(dir, file)?;
        let left = self.files[file].extent.len - at;
        let len = self.block_size(dir, random, if self.appends { Bytes::MAX } else { left });
        if self.appends && len > left {
            return None;
        }
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
            // `percentage_random` without a map: the end of the file ends the pass.
            if self.files[file].map.is_none() {
                return Some((self.sequential_offset(dir, file)?, false));
            }
        } else if self.identical {
            return Some((self.files[file].last_start[dir], false));
        }
        match self.sequential_offset(dir, file) {
            Some(at) => Some((at, false)),
            // Where only the region ends, so does the pass.
            None if self.files[file].extent.is_part() => None,
            // Nothing follows at the end of the file.
            None => Some((self.random_offset(dir, file)?, false)),
        }
    }

    fn stays_sequential(&mut self, dir: DirIndex) -> bool {
        let p = self.percentage[dir];
        p < 100 && self.streams.seq_rand[dir].between(1, 100) > u64::from(p)
    }

    fn sequential_offset(&mut self, dir: DirIndex, file: usize) -> Option<Bytes> {
        let f = &mut self.files[file];
        let (len, least) = (f.extent.len as i64, self.bs.range[dir].0 as i64);
        let (last, offset) = (f.last[dir], (f.extent.start - f.extent.origin) as i64);
        let size = f.extent.size as i64;
        let at = match last.saturating_add(self.stride) {
            _ if self.stride == 0 || last == 0 => last,
            // An I/O that ended at the end is the last of its pass.
            _ if last >= len => last,
            // Holes: beyond the file's end it goes on at the beginning (fio counts the offset in the file twice), and
            // before the beginning at the end.
            at if at >= size => offset,
            // Where only the region ends, so does the pass.
            at if at >= len => return None,
            at if at < 0 => len.saturating_add(self.stride),
            at => at,
        };
        let fits = |at: i64| (at >= 0 && at + least <= len).then_some(at as Bytes);
        // The one file of a job that only its time ends has no end.
        fits(at).or_else(|| fits(0).filter(|_| self.wrap && !self.appends && self.files.len() == 1))
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
        let block =
            self.shapes[dir].draw(&mut self.streams.offsets, &mut self.streams.zone, blocks);
        match &f.map {
            Some(map) => map.free_from(block, align).filter(|at| at + align <= f.extent.len),
            None => Some(block * align),
        }
    }
}
