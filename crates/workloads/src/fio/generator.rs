//! Which I/O comes next: direction, block size, file and offset, by fio's rules and random streams.

use iosched_types::Bytes;

use super::layout::{Extent, Files};
use super::shape::Shape;
use super::spec::{FileService, JobSpec};
use super::taus::{StreamId, Taus88};

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
    /// Next sequential offset relative to the region, by direction.
    last: [Bytes; 3],
    map: Option<BlockMap>,
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
    seq_rand: [Taus88; 3],
    percentage: [u32; 3],
    shapes: [Shape; 3],
    files: Vec<FileState>,
    service: FileService,
    current: usize,
    served: u32,
    random: bool,
    stride: i64,
    repeat: u64,
    repeat_left: u64,
    identical: bool,
    wrap: bool,
    plain: Option<Plain>,
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
            && job.distribution[d] == super::spec::Distribution::Random
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

impl Generator {
    /// The generator of a job whose files are laid out.
    #[must_use]
    pub fn new(job: &JobSpec, files: &Files) -> Self {
        let stream = |id| Taus88::of_job(id, job);
        let p = job.pattern;
        let map_block = (0..3).filter(|d| job.does(*d)).map(|d| job.bs.range[d].0).min();
        let uses_map = p.random && !job.norandommap;
        Generator {
            read_write: (p.read, p.write),
            trim_then_write: p.trim_then_write,
            pending_write: None,
            mix: [u64::from(job.rwmixread), 100 - u64::from(job.rwmixread.min(100))],
            mix_stream: stream(StreamId::Mix),
            mix_dir: 0,
            mix_issues: 0,
            issues: [0; 3],
            only: (0..3).find(|d| job.does(*d)).unwrap_or(0),
            bs: job.bs.clone(),
            bs_streams: [
                stream(StreamId::BlockSizeRead),
                stream(StreamId::BlockSizeWrite),
                stream(StreamId::BlockSizeTrim),
            ],
            offsets: stream(StreamId::Offset),
            file_stream: stream(StreamId::File),
            seq_rand: [
                stream(StreamId::SeqRandRead),
                stream(StreamId::SeqRandWrite),
                stream(StreamId::SeqRandTrim),
            ],
            percentage: job.percentage_random,
            shapes: std::array::from_fn(|d| {
                let block = job.bs.range[d].0.max(1);
                Shape::new(
                    &job.distribution[d],
                    files.first().map_or(1, |f| f.len / block),
                    job.thread,
                )
            }),
            files: files
                .iter()
                .map(|e| FileState {
                    extent: *e,
                    last: [0; 3],
                    map: map_block.filter(|_| uses_map).map(|b| BlockMap::new(e.len / b.max(1), b)),
                })
                .collect(),
            service: job.target.service.clone(),
            current: 0,
            served: 0,
            random: p.random,
            stride: p.stride,
            repeat: p.ddir_seq_nr.max(1),
            repeat_left: p.ddir_seq_nr.max(1),
            identical: p.identical,
            wrap: job.time_based || job.io_size.is_some() || job.loops > 1,
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
        let dir = self.direction();
        for _ in 0..self.files.len() {
            let file = self.file();
            if let Some(io) = self.in_file(dir, file) {
                self.issues[dir] += 1;
                if dir == 2 && self.trim_then_write {
                    self.pending_write = Some(NextIo { dir: 1, ..io });
                }
                return Some(io);
            }
            self.current = (file + 1) % self.files.len();
            self.served = 0;
        }
        None
    }

    /// Back to the start of every file (`loops`, or a job shorter than its time).
    pub fn rewind(&mut self) {
        for f in &mut self.files {
            f.last = [0; 3];
            if let Some(m) = &mut f.map {
                m.clear();
            }
        }
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

    fn file(&mut self) -> usize {
        let n = self.files.len();
        if n == 1 {
            return 0;
        }
        let (random, every) = match self.service {
            FileService::RoundRobin(k) => (false, k.max(1)),
            FileService::Random(k) => (true, k.max(1)),
            FileService::Unset => (false, 1),
            FileService::Sequential => return self.current,
            FileService::Zipf(_) | FileService::Pareto(_) | FileService::Normal(_) => (true, 1),
        };
        if self.served >= every {
            self.served = 0;
            self.current = match (&self.service, random) {
                (FileService::Zipf(t), _) => skewed(&mut self.file_stream, n, *t),
                (FileService::Pareto(h), _) => skewed(&mut self.file_stream, n, 1.0 + *h),
                (FileService::Normal(d), _) => normal(&mut self.file_stream, n, *d),
                (_, true) => self.file_stream.below(n as u64) as usize,
                (_, false) => (self.current + 1) % n,
            };
        }
        self.served += 1;
        self.current
    }

    fn block_size(&mut self, dir: DirIndex, random: bool) -> Bytes {
        let d = if self.bs.seq_rand { usize::from(random) } else { dir };
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
        if low == high {
            return low;
        }
        let len = self.bs_streams[dir].between(low, high);
        if self.bs.unaligned { len } else { (len / low * low).max(low) }
    }

    fn in_file(&mut self, dir: DirIndex, file: usize) -> Option<NextIo> {
        let random = self.random && !self.stays_sequential(dir);
        let new_offset = random && {
            self.repeat_left -= 1;
            let new = self.repeat_left == 0 || self.repeat == 1;
            if new {
                self.repeat_left = self.repeat;
            }
            new || self.issues.iter().sum::<u64>() == 0
        };
        let len = self.block_size(dir, random);
        let at = if new_offset {
            self.random_offset(dir, file)?
        } else if random && self.identical {
            self.files[file].last[dir].saturating_sub(len)
        } else {
            self.sequential_offset(dir, file, len)?
        };
        let f = &mut self.files[file];
        let len = len.min(f.extent.len - at);
        f.last[dir] = (at + len).saturating_add_signed(if random { 0 } else { self.stride });
        if let Some(m) = &mut f.map {
            m.mark(at, len);
        }
        Some(NextIo { dir, offset: f.extent.start + at, len })
    }

    fn stays_sequential(&mut self, dir: DirIndex) -> bool {
        let p = self.percentage[dir];
        p < 100 && self.seq_rand[dir].between(1, 100) > u64::from(p)
    }

    fn sequential_offset(&mut self, dir: DirIndex, file: usize, len: Bytes) -> Option<Bytes> {
        let f = &mut self.files[file];
        let least = len.min(self.bs.range[dir].0);
        if f.last[dir] + least > f.extent.len {
            if !self.wrap {
                return None;
            }
            f.last[dir] = 0;
        }
        Some(f.last[dir])
    }

    fn random_offset(&mut self, dir: DirIndex, file: usize) -> Option<Bytes> {
        let f = &mut self.files[file];
        let align = if self.bs.align[dir] > 0 { self.bs.align[dir] } else { self.bs.range[dir].0 };
        let least = self.bs.range[dir].1.min(f.extent.len);
        let blocks = if self.bs.range[dir].0 == self.bs.range[dir].1 {
            f.extent.len / align
        } else {
            (f.extent.len - least) / align + 1
        };
        let block = self.shapes[dir].draw(&mut self.offsets, blocks);
        let Some(map) = &mut f.map else { return Some(block * align) };
        if map.full() {
            if !self.wrap {
                return None;
            }
            map.clear();
        }
        Some(map.free_from(block * align / map.block) * map.block)
    }
}

fn skewed(stream: &mut Taus88, n: usize, theta: f64) -> usize {
    let u = stream.unit();
    ((n as f64 * u.powf(theta.max(0.01) + 1.0)) as usize).min(n - 1)
}

fn normal(stream: &mut Taus88, n: usize, deviation: f64) -> usize {
    let sum: f64 = (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0;
    let at = n as f64 / 2.0 + sum * n as f64 * deviation / 100.0;
    (at.max(0.0) as usize).min(n - 1)
}

/// Which blocks of a file were touched (`norandommap=0`).
#[derive(Debug)]
struct BlockMap {
    words: Vec<u64>,
    blocks: u64,
    used: u64,
    block: Bytes,
}

impl BlockMap {
    fn new(blocks: u64, block: Bytes) -> Self {
        BlockMap { words: vec![0; blocks.div_ceil(64) as usize], blocks, used: 0, block }
    }

    fn full(&self) -> bool {
        self.used >= self.blocks
    }

    fn clear(&mut self) {
        self.words.fill(0);
        self.used = 0;
    }

    fn mark(&mut self, at: Bytes, len: Bytes) {
        let first = at / self.block;
        let last = (at + len.max(1) - 1) / self.block;
        for b in first..=last.min(self.blocks.saturating_sub(1)) {
            let (w, bit) = ((b / 64) as usize, 1u64 << (b % 64));
            if self.words[w] & bit == 0 {
                self.words[w] |= bit;
                self.used += 1;
            }
        }
    }

    /// The first untouched block at or after `b`, wrapping; the map must not be full.
    fn free_from(&self, b: u64) -> u64 {
        let start = b.min(self.blocks - 1);
        let mut w = (start / 64) as usize;
        let mut word = !self.words[w] & (u64::MAX << (start % 64));
        for _ in 0..=self.words.len() {
            if word != 0 {
                let found = w as u64 * 64 + u64::from(word.trailing_zeros());
                if found < self.blocks {
                    return found;
                }
            }
            w = (w + 1) % self.words.len();
            word = !self.words[w];
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_map_hands_out_each_block_once() {
        let mut m = BlockMap::new(130, 4096);
        let mut seen = [false; 130];
        for i in 0..130 {
            let b = m.free_from(i * 97 % 130);
            assert!(!std::mem::replace(&mut seen[b as usize], true), "block {b} twice");
            m.mark(b * 4096, 4096);
        }
        assert!(m.full());
    }
}
